"""A recording that pauses: what whole iterations hold, what stays between them, and what the sentinel sees."""

import importlib
import json
import math
import time

import pytest
from cli.programs import gviz as command
from cli.programs import python

import gviz
from gviz import emit
from gviz.adapters.monitor_budget import MOST_PASSES, Alarm, Budget
from gviz.adapters.recording_scope import RecordingScope
from gviz.errors import GvizError
from gviz.events import BackwardStarted, Failed, Marked, Named, NodeCreated, OptimizerStepped, Warned
from gviz.explain.check import check
from gviz.explain.event_description import sentence
from gviz.explain.iteration_words import iteration_suffix
from gviz.explain.module_times import module_times, time_data, time_lines
from gviz.query.moments import event_at
from gviz.source.call_stack import Frame
from gviz.trace.file.reader import open_trace
from gviz.trace.timeline import Timeline
from gviz.trace.whole_iterations import recorded_iterations
from gviz.tui.drawing.status import StatusContents, status
from gviz.tui.drawing.training_summary import overview
from gviz.tui.glyphs import glyphs
from gviz.tui.source_location import PausedStack, pause_text
from gviz.tui.stop_reason import CursorStop, Reason
from gviz.tui.styled_lines import plain

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

hooks = importlib.import_module("torch.optim.optimizer")
sentinel = importlib.import_module("gviz.adapters.pytorch.monitored_training")
timer = importlib.import_module("gviz.adapters.pytorch.iteration_timer")


class Run:
    """A loop of training. `losses` are by iteration, `parts` what was put into PyTorch while each ran."""

    def __init__(self, optimizers=1):
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        self.optimizers = [torch.optim.SGD(self.model.parameters(), lr=0.01) for _ in range(optimizers)]
        self.losses = []
        self.parts = []

    def go(self, iterations, spoil=None):
        for _ in range(iterations):
            self.parts.append(put_in())
            for optimizer in self.optimizers:
                optimizer.zero_grad()
                loss = self.model(torch.full((2, 3), 1.0)).pow(2).sum()
                if spoil is not None and len(self.losses) + 1 == spoil:
                    loss = loss * math.nan
                loss.backward()
                optimizer.step()
            self.losses.append(loss.item())


def put_in():
    """What listens to module calls and operations now, and whether a channel does."""
    modules = torch.nn.modules.module
    return (
        len(modules._global_forward_hooks) + len(modules._global_forward_pre_hooks),
        len(torch.overrides._get_current_function_mode_stack()),
        emit.channel is not None,
    )


IDLE, LISTENING, TIMED = (0, 0, False), (2, 1, True), (2, 0, False)


def state_of_pytorch():
    return (
        torch.autograd.graph._engine_run_backward,
        torch.autograd._engine_run_backward,
        torch.autograd.profiler.record_function.__enter__,
        dict(hooks._global_optimizer_pre_hooks),
        dict(hooks._global_optimizer_post_hooks),
        put_in(),
    )


def recorded(path, run, iterations, spoil=None, **options):
    """What a trace of a run says of it, and the trace."""
    before = state_of_pytorch()
    with gviz.record(path, model=run.model, **options):
        run.go(iterations, spoil)
    assert state_of_pytorch() == before
    log = open_trace(path)
    return recorded_iterations(log.meta), log


def events_in(log):
    return [event for _, event in log.select(1, len(log) + 1, range(64))]


def numbers_of_whole(told):
    return [
        number for first, last in told.whole_ranges for number in range(first, last + 1) if number <= told.iterations
    ]


def test_between_whole_iterations_nothing_listens(tmp_path):
    run = Run()
    told, log = recorded(tmp_path / "a.gviz", run, 300, budget=0.9)
    whole = numbers_of_whole(told)
    assert told.iterations == 300
    assert whole[0] == 1
    assert 2 < len(whole) < 100
    for number, parts in enumerate(run.parts, 1):
        assert parts == LISTENING if number in whole else parts in (IDLE, TIMED)
    assert all(run.parts[each.iteration - 1] == TIMED for each in told.timed_iterations)
    assert run.parts.count(TIMED) < 100
    with log:
        marks = [event.name for event in events_in(log) if isinstance(event, Marked)]
        assert [f"iteration {number}" for number in whole] == marks[: len(whole)]
        assert sum(isinstance(event, BackwardStarted) for event in events_in(log)) == len(whole)
        assert [event.unseen for event in events_in(log) if isinstance(event, Warned)].count("between") == 1


def test_the_blocks_around_steps_are_observed_in_whole_iterations_only(tmp_path):
    block, run, seen, failures = torch.autograd.profiler.record_function, Run(), [], []
    before = block.__enter__, block.__exit__

    def fail():
        raise ValueError("in a closure")

    with gviz.record(tmp_path / "a.gviz", model=run.model, budget=0.9):
        for number in range(300):
            if number > 1 and emit.channel is not None and not failures:
                failures.append(number)
                with pytest.raises(ValueError, match="in a closure"):
                    run.optimizers[0].step(fail)
            run.go(1)
            seen.append(((block.__enter__, block.__exit__) == before, emit.channel is None))
    assert {*seen} == {(True, True), (False, False)}
    assert (block.__enter__, block.__exit__) == before
    with open_trace(tmp_path / "a.gviz") as log:
        ended = [event.raised for event in events_in(log) if isinstance(event, OptimizerStepped)]
    assert failures
    assert ended.count("ValueError") == 1  # a failed step of an iteration after a pause


def test_a_recording_within_a_budget_does_not_import_the_compiler(tmp_path):
    code = (
        "import sys, torch, gviz\n"
        "was_there = 'torch._dynamo' in sys.modules\n"
        "with gviz.record('a.gviz', budget=0.05): torch.ones(2, requires_grad=True).sum().backward()\n"
        "print(was_there or 'torch._dynamo' not in sys.modules)"
    )
    assert python("-c", code, cwd=tmp_path)[:2] == (0, "True\n")


def test_whole_iterations_hold_the_values_of_then(tmp_path):
    run = Run()
    told, log = recorded(tmp_path / "a.gviz", run, 300, budget=0.9)
    with log:
        losses = [
            event.outputs[0].value
            for event in events_in(log)
            if isinstance(event, NodeCreated) and event.kind == "op" and event.outputs[0].value.shape == ()
        ]
        held = [float(value.array().item()) for value in losses]
    assert held == pytest.approx([run.losses[number - 1] for number in numbers_of_whole(told)])


def test_the_sentinel_sees_loss_and_norm_of_each_iteration(tmp_path):
    run, plain = Run(), Run()
    told, log = recorded(tmp_path / "a.gviz", run, 12, budget=0)
    log.close()
    plain.go(12)
    assert run.losses == plain.losses
    assert [at for at, _, _ in told.checks][:8] == list(range(1, 9))
    for at, loss, norm in told.checks:
        assert loss == pytest.approx(plain.losses[at - 1])
        assert norm > 0
    gradients = [p.grad.flatten() for p in plain.model.parameters()]
    if told.checks[-1][0] == 12:
        assert told.checks[-1][2] == pytest.approx(torch.cat(gradients).norm().item())


def test_a_nan_is_said_and_what_follows_is_recorded(tmp_path, capfd):
    run = Run()
    told, log = recorded(tmp_path / "a.gviz", run, 300, spoil=30, budget=0)
    log.close()
    ((at, what),) = told.alarms
    assert at == min(seen for seen, _, _ in told.checks if seen >= 30)  # how often it looks depends on the machine
    assert what.endswith("the norm of the gradients is nan")
    assert numbers_of_whole(told) == [1, at + 1, at + 2, at + 3]
    err = capfd.readouterr().err
    assert f"gviz: iteration {at}: the" in err
    good = max(seen for seen, _, norm in told.checks if seen < at)
    assert good < 30
    assert f"gviz record --from-iteration {good} " in err


class Pauses:
    """A debugger of tests: at each pause, the whole iterations so far, and whether gviz listens."""

    def __init__(self, monkeypatch):
        self.seen = []
        self.may_again = True
        monkeypatch.setattr(gviz.frameworks, "debugger_front", lambda: self)

    def pause_monitored(self, recording):
        recording.flush()
        with open_trace(recording.path) as log:
            told = recorded_iterations(log.meta)
            self.seen.append((told.iterations, numbers_of_whole(told), told.last_alarm, put_in()))
        return self.may_again


@pytest.mark.parametrize(("words", "count"), [("nan", 2), ("inf,nan", 2), ("alarm", 2), ("inf", 0), ("", 0)])
def test_the_program_pauses_at_an_alarm_and_after_the_next_whole_iteration(tmp_path, monkeypatch, words, count):
    pauses = Pauses(monkeypatch)
    told, log = recorded(tmp_path / "a.gviz", Run(), 300, spoil=30, budget=0, pause_on=words)
    log.close()
    ((at, what),) = told.alarms
    assert len(pauses.seen) == count
    for (iterations, whole, alarm, parts), ended in zip(pauses.seen, (at, at + 1), strict=False):
        assert iterations == ended
        assert whole == [1, *range(at + 1, ended + 1)]
        assert alarm == told.last_alarm
        assert alarm.startswith("iteration")
        assert alarm.endswith(f" {at}: {what}")  # of several iterations, if the one before was not looked at
        assert parts == LISTENING


class Screens(Pauses):
    """A debugger of tests: at each pause, what a user sees of the place of the program and of the recording."""

    def pause_monitored(self, recording):
        recording.flush()
        with open_trace(recording.path) as log:
            timeline = Timeline(log)
            end, marks = len(timeline), glyphs(ascii=True)
            moment, stack = timeline.at(end), PausedStack((Frame("train.py", "<module>", 9, 9, 0, 4),), 0)
            stop = CursorStop(end, end, Reason("held", pause_text(timeline, stack)))
            row = plain(status(timeline, moment, StatusContents("a", stop), 120, marks))
            summary = " ".join(" ".join(map(plain, overview(timeline, moment, 0, 60, marks))).split())
            self.seen.append((row, summary, sentence(timeline, end)))
        return True


def test_a_pause_says_where_the_program_is_and_which_iteration_is_shown(tmp_path, monkeypatch):
    screens = Screens(monkeypatch)
    told, log = recorded(tmp_path / "a.gviz", Run(), 300, spoil=30, budget=0, pause_on="nan")
    log.close()
    (at, _), (first, second) = told.alarms[0], screens.seen
    row, summary, shown = first
    assert f" iteration 1/{at} " in row
    assert row.endswith(f"at train.py:9, after iteration {at} ")
    assert summary.startswith(f"1 of {at} iterations, ")
    assert f"iteration 1 is the last recorded one; the program has finished iteration {at} " in summary
    assert "was written in place between recorded iterations, version " in shown
    row, summary, _ = second  # after the next iteration, which was recorded
    assert f" iteration {at + 1}/{at + 1} " in row
    assert row.endswith("at train.py:9 ")
    assert summary.startswith(f"2 of {at + 1} iterations, ")
    assert "is the last recorded one" not in summary


def test_a_node_of_an_earlier_iteration_has_the_number_of_that_in_the_run(tmp_path):
    told, log = recorded(tmp_path / "a.gviz", Run(), 300, budget=0.9)
    with log:
        timeline, number = Timeline(log), numbers_of_whole(told)[2]
        made = next(node for node in timeline.nodes.of(timeline.iterations[2]) if timeline.info(node).iteration == 2)
        assert iteration_suffix(timeline, timeline.info(made)) == f"from iteration {number}"


def test_a_program_that_pauses_in_a_whole_iteration_pauses_once(tmp_path, monkeypatch):
    pauses = Pauses(monkeypatch)
    told, log = recorded(tmp_path / "a.gviz", Run(), 20, spoil=1, budget=0, pause_on="nan")
    log.close()
    assert [at for at, _ in told.alarms] == [1]
    assert len(pauses.seen) == 1


def test_a_program_that_cannot_pause_does_not_try_again(tmp_path, monkeypatch):
    pauses = Pauses(monkeypatch)
    pauses.may_again = False
    _, log = recorded(tmp_path / "a.gviz", Run(), 300, spoil=30, budget=0, pause_on="nan")
    log.close()
    assert len(pauses.seen) == 1


def test_the_time_of_a_pause_counts_neither_as_cost_nor_as_time_of_the_program(tmp_path, monkeypatch):
    pauses, passed = Pauses(monkeypatch), [0]
    monkeypatch.setattr(sentinel, "_clock", lambda: time.perf_counter_ns() + passed[0])

    def wait(recording):
        passed[0] += 10**15
        return True

    monkeypatch.setattr(pauses, "pause_monitored", wait)
    _, log = recorded(tmp_path / "a.gviz", Run(), 300, spoil=30, budget=0, pause_on="nan")
    with log:
        spent = json.loads(log.meta["monitored"])["spent"]
    assert passed[0] == 2 * 10**15
    assert 0.01 < spent < 1000


def test_a_process_that_others_wait_for_does_not_pause(tmp_path, monkeypatch, capfd):
    pauses = Pauses(monkeypatch)
    monkeypatch.setattr(sentinel, "has_other_ranks", lambda: True)
    _, log = recorded(tmp_path / "a.gviz", Run(), 300, spoil=30, budget=0, pause_on="nan")
    log.close()
    assert pauses.seen == []
    assert capfd.readouterr().err.count("the program does not pause: the other processes of the training") == 1


def trained(path, loop, **options):
    """Record a loop of a program that trains in its own way; return what the trace says of it, and its log."""
    with gviz.record(path, **{"budget": 0, **options}):
        loop()
    log = open_trace(path)
    return recorded_iterations(log.meta), log


def test_without_an_optimizer_each_backward_pass_ends_an_iteration(tmp_path):
    weight = torch.ones(3, requires_grad=True)

    def loop():
        for turn in range(800):  # many: each is short, so the sentinel may look at every 100th only
            loss = (weight * (math.nan if turn == 400 else 1.0)).pow(2).sum()
            loss.backward()
            with torch.no_grad():
                weight.sub_(weight.grad, alpha=0.01)
            weight.grad = None

    told, log = trained(tmp_path / "a.gviz", loop)
    with log:
        assert sum(isinstance(event, BackwardStarted) for event in events_in(log)) < 16 + 2 * 3
    assert told.iterations == 800 - MOST_PASSES + 1
    assert told.checks[0][1] == pytest.approx(3 * 0.98 ** (2 * told.checks[0][0] + 28), rel=0.01)
    assert told.alarms[0][1].startswith("the loss is nan")
    assert numbers_of_whole(told)[:2] == [1, told.alarms[0][0] + 1]


def test_a_leaf_that_dies_does_not_shift_the_names_of_the_others(tmp_path, capfd):
    a, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)

    def loop():
        x = torch.ones(2, requires_grad=True)
        for turn in range(200):
            still = 0.0 if turn >= 100 else 1.0
            loss = (a * w * still).sum() + (w * w).sum() + (0.0 if x is None else x.sum())
            loss.backward()
            if turn == 60:
                x = None
            with torch.no_grad():
                for leaf in (a, w):
                    leaf -= 0.001 * leaf.grad
                    leaf.grad = None

    told, log = trained(tmp_path / "a.gviz", loop)
    log.close()
    assert {what.split()[0] for _, what in told.alarms} <= {"a", "x"}


def test_a_pass_that_a_later_one_differentiates_ends_no_iteration(tmp_path):
    weight = torch.ones(3, requires_grad=True)

    def loop():
        for _ in range(50):
            (grad,) = torch.autograd.grad(weight.pow(3).sum(), weight, create_graph=True)
            grad.pow(2).sum().backward()

    told, log = trained(tmp_path / "a.gviz", loop)
    log.close()
    assert told.iterations == 50 - MOST_PASSES + 1


def test_without_an_optimizer_marks_divide_a_program(tmp_path):
    weight, turns = torch.ones(3, requires_grad=True), []

    def loop():
        for turn in range(1, 41):
            gviz.mark(f"turn {turn}")
            turns.append(put_in())
            weight.pow(2).sum().backward()
            weight.pow(3).sum().backward()

    told, log = trained(tmp_path / "a.gviz", loop)
    assert told.iterations == 39
    assert numbers_of_whole(told) == [1]
    assert (turns[0], turns[1]) == (LISTENING, IDLE)
    with log:
        marks = [event.name for event in events_in(log) if isinstance(event, Marked)]
    assert marks == ["iteration 1", "turn 1"]


def test_marks_of_epochs_end_no_iteration_of_a_program_with_an_optimizer(tmp_path):
    run = Run()

    def loop():
        for epoch in range(3):
            gviz.mark(f"epoch {epoch}")
            run.go(10)

    told, log = trained(tmp_path / "a.gviz", loop, model=run.model)
    log.close()
    assert told.iterations == 30


def test_gradients_of_every_optimizer_are_looked_at(tmp_path):
    run = Run()
    other = torch.nn.Linear(2, 1)
    critic = torch.optim.SGD(other.parameters(), lr=0.01)

    def loop():
        for turn in range(200):
            run.go(1)
            loss = other(torch.ones(1, 2)).sum() * (math.nan if turn >= 100 else 1)
            critic.zero_grad()
            loss.backward()
            critic.step()

    told, log = trained(tmp_path / "a.gviz", loop)
    log.close()
    assert "the loss at the steps of optimizer 2 is nan and the norm of the gradients at" in told.alarms[0][1]
    assert all(math.isfinite(loss) for _, loss, _ in told.checks)


def test_an_optimizer_of_each_epoch_continues_the_one_before(tmp_path, capfd):
    run = Run(optimizers=0)

    def loop():
        for epoch in range(10):  # long enough for a sentinel that looks at every 100th iteration only
            run.optimizers = [torch.optim.SGD(run.model.parameters(), lr=0.01)]
            run.go(100, spoil=350 if epoch == 3 else None)

    told, log = trained(tmp_path / "a.gviz", loop, model=run.model)
    log.close()
    assert told.iterations == 1000
    ((at, what),) = told.alarms
    assert at >= 350
    assert ("nan" in what, "optimizer" in what) == (True, False)


def test_a_parameter_that_stops_moving_raises_an_alarm_with_its_name(tmp_path, capfd, monkeypatch):
    run = Run()
    monkeypatch.setattr(Budget, "looked", lambda budget, cost: setattr(budget, "every", 20))

    def loop():
        run.go(1000)
        run.model[0].weight.register_hook(torch.zeros_like)
        run.go(1000)

    told, log = trained(tmp_path / "a.gviz", loop, model=run.model)
    log.close()
    ((at, what),) = told.alarms
    assert what == f"0.weight stopped moving after iteration {told.last_good[0]:,}: its gradient is 0 or missing"
    assert told.last_good[0] <= 1000 < told.last_good[0] + told.check_interval * 2
    assert at > 1000
    assert numbers_of_whole(told) == [1, at + 1, at + 2, at + 3]
    assert f"--from-iteration {told.last_good[0]} " in capfd.readouterr().err


@pytest.fixture
def looks_at_each_step(monkeypatch):
    monkeypatch.setattr(Budget, "looked", lambda budget, cost: None)


@pytest.mark.usefixtures("looks_at_each_step")
def test_a_learning_rate_that_becomes_0_raises_an_alarm(tmp_path, capfd):
    run = Run()

    def loop():
        run.go(50)
        run.optimizers[0].param_groups[0]["lr"] = 0.0
        run.go(100)

    told, log = trained(tmp_path / "a.gviz", loop, model=run.model)
    log.close()
    assert told.alarms == ((81, "0.weight and 3 more have not changed since iteration 65: the learning rate is 0"),)
    assert "--from-iteration 65 " in capfd.readouterr().err


@pytest.mark.usefixtures("looks_at_each_step")
def test_a_parameter_whose_updates_are_rounded_away_raises_an_alarm(tmp_path, capfd):
    run = Run()
    run.model.to(torch.bfloat16)
    with torch.no_grad():
        for parameter in run.model.parameters():
            parameter.fill_(1.0)
    run.model[0].float()
    run.model[0].register_forward_hook(lambda module, inputs, output: output.to(torch.bfloat16))
    run.optimizers = [torch.optim.SGD(run.model.parameters(), lr=1e-5)]
    told, log = trained(tmp_path / "a.gviz", lambda: run.go(60), model=run.model)
    log.close()
    ((at, what),) = told.alarms
    assert at == 17
    words = "2.weight and 2.bias have not changed since iteration 1: the updates are too small to change a number"
    assert what == f"{words} in bfloat16"


@pytest.mark.usefixtures("looks_at_each_step")
@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.RMSprop])
@pytest.mark.parametrize("lowest", [0.0, 0.01])
def test_values_that_the_program_holds_where_they_are_raise_no_alarm(tmp_path, kind, lowest):
    weight = torch.nn.Parameter(torch.full((3,), 0.02))
    optimizer = kind([weight], lr=0.01)

    def loop():
        for _ in range(100):
            optimizer.zero_grad()
            weight.sum().backward()
            optimizer.step()
            weight.data.clamp_(min=lowest)

    told, log = trained(tmp_path / "a.gviz", loop)
    log.close()
    assert told.alarms == ()


@pytest.mark.usefixtures("looks_at_each_step")
def test_updates_of_an_optimizer_that_scales_gradients_are_rounded_away(tmp_path):
    weight = torch.nn.Parameter(torch.full((3,), 100.0))
    optimizer = torch.optim.Adam([weight], lr=1e-6)

    def loop():
        for _ in range(40):
            optimizer.zero_grad()
            weight.sum().backward()
            optimizer.step()

    told, log = trained(tmp_path / "a.gviz", loop)
    log.close()
    ((_, what),) = told.alarms
    assert what.endswith("the updates are too small to change a number in float32")


@pytest.mark.usefixtures("looks_at_each_step")
def test_weights_that_only_flip_their_sign_change(tmp_path):
    weight = torch.nn.Parameter(torch.tensor([1.0, 1.0, 1.0]))

    class Flip(torch.optim.Optimizer):
        count = 0

        def step(self):
            self.count += 1
            with torch.no_grad():  # the norm stays the same
                weight.copy_(torch.where(torch.arange(3) < self.count // 16 % 4, 1.0, -1.0))

    optimizer = Flip([weight], {"lr": 0.1})

    def loop():
        for _ in range(100):
            weight.grad = torch.ones(3)
            optimizer.step()
            weight.pow(2).sum().backward()

    told, log = trained(tmp_path / "a.gviz", loop)
    log.close()
    assert not [what for _, what in told.alarms if "not changed" in what]


def test_the_error_that_ends_the_program_is_recorded_between_whole_iterations(tmp_path, capfd):
    run = Run()

    def loop():
        run.go(20)
        raise ValueError("broken data")

    with pytest.raises(ValueError, match="broken data"):
        trained(tmp_path / "a.gviz", loop)
    assert "gviz: iteration 21: the program failed with ValueError\n" in capfd.readouterr().err
    with open_trace(tmp_path / "a.gviz") as log:
        told = recorded_iterations(log.meta)
        assert [event.message for event in events_in(log) if isinstance(event, Failed)] == ["broken data"]
        findings = {one.finding.kind: one.finding for one in check(Timeline(log))}
    assert told.alarms == ((21, "the program failed with ValueError"),)
    assert told.command_from(told.last_good[0]).startswith("gviz record --from-iteration 20 ")
    assert findings["failed"].text == "the program failed with ValueError: broken data"
    assert "alarm" not in findings  # the finding about the error names its iteration
    how = "record what led to it: gviz record --from-iteration 20 "
    assert findings["failed"].parts[-1].text.startswith(f"iteration 21 was not recorded; {how}")


def test_a_whole_iteration_begins_with_the_weights_of_then(tmp_path):
    run, weights = Run(), []

    def loop():
        for _ in range(300):
            weights.append(run.model[0].weight.detach().clone())
            run.go(1)

    told, log = trained(tmp_path / "a.gviz", loop, model=run.model, budget=0.9)
    number = numbers_of_whole(told)[1]
    with log:
        timeline = Timeline(log)
        (node,) = [event.node for event in events_in(log) if isinstance(event, Named) and event.name == "0.weight"]
        at = timeline.iteration_numbered(number).start
        assert timeline.memory_value(node, 0, at).array().tolist() == weights[number - 1].tolist()


def test_a_nan_that_was_made_while_nothing_was_recorded_is_said_to_be(tmp_path):
    told, log = recorded(tmp_path / "a.gviz", Run(), 300, spoil=30, budget=0)
    at = told.alarms[0][0]
    with log:
        found = {one.finding.kind: one.finding for one in check(Timeline(log))}
    nan, alarm = found["nan-born"], found["alarm"]
    assert nan.text.startswith("the first nan appears in #")
    assert nan.text.endswith(f", before iteration {at + 1}, not recorded")
    assert nan.fix == alarm.fix
    assert f"--from-iteration {told.last_good[0]} " in alarm.fix


def test_what_attach_returns_may_be_used_in_a_with_statement(tmp_path):
    run = Run()
    with gviz.attach(run.model, tmp_path / "a.gviz", budget=0.05) as recording:
        run.go(3)
    assert not recording.is_open
    with open_trace(tmp_path / "a.gviz") as log:
        assert log.finished


def test_from_an_iteration_on_everything_is_recorded(tmp_path):
    run = Run()
    told, log = recorded(tmp_path / "a.gviz", run, 9, from_iteration=7)
    with log:
        assert sum(isinstance(event, BackwardStarted) for event in events_in(log)) == 3
    assert numbers_of_whole(told) == [7, 8, 9]
    assert told.checks == ()
    assert run.parts == [IDLE] * 6 + [LISTENING] * 3


def test_an_iteration_ends_with_the_step_of_the_first_of_several_optimizers(tmp_path):
    told, log = recorded(tmp_path / "a.gviz", Run(optimizers=2), 20, budget=0)
    log.close()
    assert told.iterations == 20


def test_a_mode_of_the_program_above_ours_is_entered_once(tmp_path):
    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    run = Run()
    with gviz.record(tmp_path / "a.gviz", model=run.model, budget=0.9), Mode():
        run.go(200)
    assert max(modes for _, modes, _ in run.parts) == 2
    assert put_in()[1:] == (0, False)


@pytest.mark.parametrize(
    "options",
    [
        {"budget": "much"},
        {"budget": 2},
        {"budget": 0.1, "pause_on": "x"},
        {"pause_on": "nan"},
        {"budget": 0.1, "pause_on": "nan", "from_iteration": 7},
        {"from_iteration": 0},
        {"from_iteration": "x"},
    ],
)
def test_what_is_no_budget_is_refused(tmp_path, options):
    with pytest.raises(GvizError):
        gviz.record(tmp_path / "a.gviz", **options)
    with pytest.raises(GvizError):
        RecordingScope(**options)


PROGRAM = """
import sys, torch
torch.manual_seed(0)
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.Adam(net.parameters())
for step in range(400):  # the sentinel may look at every 60th only
    optimizer.zero_grad()
    loss = net(torch.ones(2, 3)).pow(2).sum() * (float("nan") if step == 200 and sys.argv[1:] else 1)
    loss.backward()
    optimizer.step()
print(loss.item())
"""


def test_the_command(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    plain = python("train.py", cwd=tmp_path)
    done = command("monitor", "-o", "a.gviz", "train.py", cwd=tmp_path)
    assert done[:2] == plain[:2]
    assert "of 400 iterations are recorded whole; " in done[2]
    told = command("check", "a.gviz", cwd=tmp_path)
    assert "only some iterations are recorded whole" in told[1] + told[2]
    assert "not seen: the rest of the run: " in told[2]
    assert "of 400 iterations are recorded whole; " in told[2]
    training = command("show", "a.gviz", "training", cwd=tmp_path)[1]
    assert "of 400 iterations are recorded whole; " in training
    assert "checked in iterations 1 to " in training
    with open_trace(tmp_path / "a.gviz") as log:
        assert log.meta["gaps"] == "[]"  # the trace is bounded by default


def test_iterations_have_their_numbers_of_the_run(tmp_path):
    told, log = recorded(tmp_path / "a.gviz", Run(), 300, budget=0.9)
    with log:
        timeline = Timeline(log)
        whole = numbers_of_whole(told)
        assert [one.number for one in timeline.iterations] == whole
        assert timeline.iteration_count == 300
        assert timeline.recorded_iterations.has_whole(whole[-1])
        assert timeline.missing.startswith(f"{len(whole)} of 300 iterations are recorded whole; ")
        at = event_at(timeline, f"iteration {whole[2]}")
        assert timeline.iterations[2].start < at <= timeline.iterations[2].end
        absent = next(number for number in range(1, 300) if number not in whole)
        with pytest.raises(GvizError, match="in this recording"):
            event_at(timeline, f"iteration {absent}")


def test_module_calls_are_timed_in_iterations_of_their_own(tmp_path):
    told, log = recorded(tmp_path / "a.gviz", Run(), 600, budget=0.9)
    assert told.timed_iterations
    assert not {one.iteration for one in told.timed_iterations} & {*numbers_of_whole(told)}
    with log:
        timeline = Timeline(log)
        times = module_times(timeline)
        paths = ["Sequential", "Sequential.0", "Sequential.1", "Sequential.2"]
        assert [(call.path, call.depth) for call in times.calls] == [(path, int("." in path)) for path in paths]
        model, *layers = times.calls
        assert all(min(call.whole) > 0 for call in times.calls)
        for way in (0, 1):
            assert model.whole[way] == pytest.approx(model.own[way] + sum(layer.own[way] for layer in layers))
        assert times.total == pytest.approx(model.total + times.outside + times.optimizer + times.rest)
        text = "\n".join(time_lines(timeline, 100))
        assert "  Sequential.2" in text
        assert "Linear" in text
        assert time_data(timeline)["calls"][1]["module"] == "Sequential.0"


def test_a_recording_without_times_says_so(tmp_path):
    run = Run()
    with gviz.record(tmp_path / "a.gviz", model=run.model):
        run.go(3)
    with open_trace(tmp_path / "a.gviz") as log:
        (line,) = time_lines(Timeline(log), 100)
    assert "gviz monitor" in line
    _, log = recorded(tmp_path / "b.gviz", Run(), 5, budget=0.01)
    with log:
        assert "no iteration was timed" in time_data(Timeline(log))["why_not"]


def test_iterations_around_an_alarm_are_kept(tmp_path):
    run = Run()
    with gviz.record(tmp_path / "a.gviz", model=run.model, budget=0.9, last=1, older="findings"):
        run.go(300, spoil=60)
    with open_trace(tmp_path / "a.gviz") as log:
        timeline = Timeline(log)
        kept = [one.number for one in timeline.iterations]
        told = recorded_iterations(log.meta)
        alarm = min(seen for seen, _, _ in told.checks if seen >= 60)  # how often it looks depends on the machine
        assert [name for _, name in timeline.marks if name.startswith(f"alarm at iteration {alarm}: ")]
        whole = {*numbers_of_whole(told)}
        marked = alarm if alarm in whole else alarm + 1  # the mark is in the first whole iteration from there
        assert {marked, marked + 1} <= {*kept} <= whole
        assert len(kept) < 10


def test_the_command_that_is_printed_can_be_pasted(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    done = command("monitor", "-o", "a.gviz", "train.py", "spoilt", cwd=tmp_path)
    (line,) = [line for line in done[2].splitlines() if "--from-iteration" in line]
    words = line.partition(": gviz ")[2].split(": gviz ")[-1].split()
    again = command(*words[:1], "-o", "b.gviz", *words[1:], cwd=tmp_path)
    assert again[0] == 0
    with open_trace(tmp_path / "b.gviz") as log:
        ((start, _),) = recorded_iterations(log.meta).whole_ranges
    with open_trace(tmp_path / "a.gviz") as log:
        seen = recorded_iterations(log.meta)
    (alarm, _) = seen.alarms[0]
    good = [at for at, loss, norm in seen.checks if at < alarm and math.isfinite(norm) and math.isfinite(loss)]
    assert good
    assert start == good[-1] <= 200  # from the last look at which all was well
    assert "nan" in command("check", "b.gviz", cwd=tmp_path)[1]


def test_a_timed_step_ends_before_what_follows_it(tmp_path, monkeypatch):
    ended = []
    end_step = timer.IterationTimer.end_step
    monkeypatch.setattr(timer.IterationTimer, "end_step", lambda its: (ended.append(its), end_step(its)))
    told, log = recorded(tmp_path / "a.gviz", Run(optimizers=2), 300, budget=0.9)
    log.close()
    assert told.timed_iterations
    *whole, last = (ended.count(one) for one in dict.fromkeys(ended))
    assert {*whole} <= {5}  # where each of the two steps begins and ends, and at the end
    assert last in {3, 5}  # the run ends with the second step, in an iteration that the first would have ended
    assert 5 in {*whole, last}


@pytest.mark.parametrize("captured", [False, True])
def test_no_event_is_asked_for_while_a_graph_is_captured(tmp_path, monkeypatch, captured):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: captured)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: captured)
    asked, run = [], Run()
    monkeypatch.setattr(timer.HostClock, "is_known", lambda clock, moment: asked.append(moment) or True)
    with gviz.record(tmp_path / "a.gviz", model=run.model, budget=0.9):
        run.go(300)
        while_it_ran = len(asked)
    assert bool(while_it_ran) != captured
    with open_trace(tmp_path / "a.gviz") as log:
        assert recorded_iterations(log.meta).timed_iterations


@pytest.mark.parametrize(
    ("alarm", "between"),
    [
        (Alarm(20, "the loss is nan", 19), ""),
        (Alarm(20, "the loss is nan", 12), " (the last check without trouble: iteration 12)"),
        (Alarm(40, "a stopped moving after iteration 10: its gradient is 0 or missing", 10), ""),
    ],
    ids=["each-checked", "some-checked", "named"],
)
def test_the_line_of_an_alarm_names_the_last_check_if_iterations_between_were_not_checked(alarm, between):
    assert sentinel._words(alarm)[0] == (
        f"gviz: iteration {alarm.iteration}: {alarm.what}{between}; the next iterations are recorded whole"
    )
