"""A recording that pauses: what whole iterations hold, what stays between them, and what the sentinel sees."""

import importlib
import math

import pytest
from cli.programs import gviz as command
from cli.programs import python

import gviz
from gviz import emit
from gviz.adapters.recording_scope import RecordingScope
from gviz.errors import GvizError
from gviz.events import BackwardStarted, Marked, NodeCreated, Warned
from gviz.explain.module_times import module_times, time_data, time_lines
from gviz.query.moment_lookup import event_at
from gviz.trace.file.reader import open_trace
from gviz.trace.timeline import Timeline
from gviz.trace.whole_iterations import recorded_iterations

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

hooks = importlib.import_module("torch.optim.optimizer")
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
    return [number for first, last in told.whole for number in range(first, last + 1) if number <= told.iterations]


def test_between_whole_iterations_nothing_listens(tmp_path):
    run = Run()
    told, log = recorded(tmp_path / "a.gviz", run, 300, budget=0.9)
    whole = numbers_of_whole(told)
    assert told.iterations == 300
    assert whole[0] == 1
    assert 2 < len(whole) < 100
    for number, parts in enumerate(run.parts, 1):
        assert parts == LISTENING if number in whole else parts in (IDLE, TIMED)
    assert all(run.parts[each.iteration - 1] == TIMED for each in told.times)
    assert run.parts.count(TIMED) < 100
    with log:
        marks = [event.name for event in events_in(log) if isinstance(event, Marked)]
        assert [f"iteration {number}" for number in whole] == marks[: len(whole)]
        assert sum(isinstance(event, BackwardStarted) for event in events_in(log)) == len(whole)
        assert [event.unseen for event in events_in(log) if isinstance(event, Warned)].count("between") == 1


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
    assert [at for at, _, _ in told.looks][:8] == list(range(1, 9))
    for at, loss, norm in told.looks:
        assert loss == pytest.approx(plain.losses[at - 1])
        assert norm > 0
    gradients = [p.grad.flatten() for p in plain.model.parameters()]
    if told.looks[-1][0] == 12:
        assert told.looks[-1][2] == pytest.approx(torch.cat(gradients).norm().item())


def test_a_nan_is_said_and_what_follows_is_recorded(tmp_path, capfd):
    run = Run()
    told, log = recorded(tmp_path / "a.gviz", run, 300, spoil=30, budget=0)
    log.close()
    ((at, what),) = told.alarms
    assert at == min(seen for seen, _, _ in told.looks if seen >= 30)  # how often it looks depends on the machine
    assert what.endswith("the norm of the gradients is nan")
    assert numbers_of_whole(told) == [1, at + 1, at + 2, at + 3]
    err = capfd.readouterr().err
    assert f"gviz: iteration {at}: the" in err
    good = max(seen for seen, _, norm in told.looks if seen < at)
    assert good < 30
    assert f"gviz record --from-iteration {good} " in err


def test_from_an_iteration_on_everything_is_recorded(tmp_path):
    run = Run()
    told, log = recorded(tmp_path / "a.gviz", run, 9, from_iteration=7)
    with log:
        assert sum(isinstance(event, BackwardStarted) for event in events_in(log)) == 3
    assert numbers_of_whole(told) == [7, 8, 9]
    assert told.looks == ()
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


@pytest.mark.parametrize("options", [{"budget": "much"}, {"budget": 2}, {"from_iteration": 0}, {"from_iteration": "x"}])
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
    assert "seen in iterations 1 to " in training
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
    assert told.times
    assert not {one.iteration for one in told.times} & {*numbers_of_whole(told)}
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
        alarm = min(seen for seen, _, _ in told.looks if seen >= 60)  # how often it looks depends on the machine
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
        ((start, _),) = recorded_iterations(log.meta).whole
    with open_trace(tmp_path / "a.gviz") as log:
        seen = recorded_iterations(log.meta)
    (alarm, _) = seen.alarms[0]
    good = [at for at, loss, norm in seen.looks if at < alarm and math.isfinite(norm) and math.isfinite(loss)]
    assert good
    assert start == good[-1] <= 200  # from the last look at which all was well
    assert "nan" in command("check", "b.gviz", cwd=tmp_path)[1]


def test_a_timed_step_ends_before_what_follows_it(tmp_path, monkeypatch):
    ended = []
    end_step = timer.IterationTimer.end_step
    monkeypatch.setattr(timer.IterationTimer, "end_step", lambda its: (ended.append(its), end_step(its)))
    told, log = recorded(tmp_path / "a.gviz", Run(optimizers=2), 300, budget=0.9)
    log.close()
    assert told.times
    assert {ended.count(one) for one in ended} == {5}  # where each of the two steps begins and ends, and at the end


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
        assert recorded_iterations(log.meta).times
