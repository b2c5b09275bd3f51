"""The gate without any process: it holds exactly where a recording of the same events stops."""

import threading
from itertools import pairwise

import pytest
from histories import histories, tell
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from recording import events_of
from stories import Story

import gviz.engine as torch
from gviz import events as e
from gviz.engine import nn
from gviz.live.gate import Gate
from gviz.live.node_cache import LEARNED_FROM, NodeCache
from gviz.live.protocol import ResumeRequest
from gviz.query_syntax.stop_condition import stop
from gviz.trace import stepping
from gviz.trace.breakpoint_hits import Hits
from gviz.trace.event_log import MemoryLog
from gviz.trace.graph_state import OPTIMIZER
from gviz.trace.optimizer_steps import OptimizerSteps
from gviz.trace.phases import PHASE_EVENTS, PhaseTracker
from gviz.trace.timeline import Timeline
from gviz.tui.graph_view import Folds

MOVES = {
    "step": stepping.step,
    "next": stepping.next_node,
    "finish": stepping.finish,
    "phase": stepping.phase,
}
STOPS = (
    "#4", "mul", "net.*", "on accumulate", "on backward", "on optimizer", "on nan", "on inf net.*", "on inplace #2",
    "change #3", "change mul.grad", "add if value.sum() > 3", "on accumulate if grad > 2",
    "if step > 1 and event == 'forward'", "if module == 'net.3'", "on free if op == 'mul'",
    "on accumulate if value[0] > 1", "if name == 'x' or value < 0", "demo.py:3",
)  # fmt: skip
laws = settings(deadline=None, max_examples=60)


class Debugger:
    """Plays the debugger's side of a list of requests, and notes where the program was held."""

    def __init__(self, requests):
        self.requests = list(requests)
        self.log = MemoryLog()
        self.stops = []
        self.asked = 0
        self.gate = Gate(self.log.append, self.wait, self.request)

    @property
    def request(self):
        done = len(self.stops)
        return self.requests[done] if done < len(self.requests) else ResumeRequest("run")

    def wait(self, why):
        here = len(self.log)
        self.asked += 1
        if why != "maybe" or self.is_stop(here):
            self.stops.append(here)
        return self.request

    def is_stop(self, here):
        timeline = Timeline(self.log)
        match self.request.mode:
            case "continue":
                hits = (hit.n for text in self.request.stops for hit in Hits(timeline, stop(text)).after(here - 1))
                return here in stepping.stops(timeline) or here in hits
        return True


def closed(events):
    """The same with every module call left: whether one ever is, nobody knows while the program runs."""
    entered = [event.scope for event in events if isinstance(event, e.ScopeEntered)]
    left = {event.scope for event in events if isinstance(event, e.ScopeLeft)}
    return [*events, *(e.ScopeLeft(scope) for scope in reversed(entered) if scope not in left)]


programs = histories.map(closed)


def held(events, *requests):
    debugger = Debugger(requests)
    for event in events:
        debugger.gate.receive(event)
    return debugger.stops


def replayed(events, requests):
    """Where the same requests lead through the finished recording, up to its end."""
    timeline = Timeline(MemoryLog(events))
    n, stops = 0, []
    for request in requests:
        for _ in range(request.count):
            n = moved(timeline, n, request)
        if n == len(timeline):
            return stops
        stops.append(n)
    return stops


def moved(timeline, n, request):
    if request.mode == "continue":
        hits = [next((hit.n for hit in Hits(timeline, stop(text)).after(n)), len(timeline)) for text in request.stops]
        return min([stepping.continue_(timeline, n), *hits])
    if request.mode == "to":
        there = stepping.to_node(timeline, n, request.node)
        return len(timeline) if there == n else there
    return MOVES[request.mode](timeline, n)


def shows_phases_at_once(events):
    """Whether each phase shows with its first event: a forward may have been prepared before anybody could know it."""
    phase_tracker, shown, log = PhaseTracker(), set(), MemoryLog(events)
    for n in range(1, len(log) + 1):
        if isinstance(event := log.event(n), PHASE_EVENTS):
            phase_tracker.process(n, event)
            shown.update({n} & {row[1] for row in phase_tracker.rows[-1:]})
    return shown == {row[1] for row in phase_tracker.rows}


def tells_phases_at_once(events):
    """Whether each event is of the phase that it is in later on: data after a pass may be of the next forward."""

    def kind(known, n):
        phase = Timeline(MemoryLog(known)).phase_at(n)
        return phase.kind if phase is not None else ""

    return all(kind(events[:n], n) == kind(events, n) for n in range(1, len(events) + 1))


def steps_through_freed(events):
    """Whether a pass goes through a node that was freed: no program's does; none that runs knows what it held."""
    freed = set()
    for event in events:
        match event:
            case e.NodeFreed(node=node):
                freed.add(node)
            case e.StepStarted(node=node) if node in freed:
                return True
    return False


def before_the_end(stops, events):
    return [n for n in stops if n < len(MemoryLog(events))]


@given(programs, st.lists(st.sampled_from(list(MOVES)), max_size=30))
@laws
def test_the_program_is_held_where_the_recording_stops(events, modes):
    assume(shows_phases_at_once(events) or not {"phase", "finish"} & {*modes})
    requests = [ResumeRequest(mode) for mode in modes]
    expected = replayed(events, requests)
    assert before_the_end(held(events, *requests), events)[: len(expected)] == expected


@given(programs, st.sampled_from(("step", "next")), st.integers(2, 5))
@laws
def test_a_count_is_as_many_wishes(events, mode, count):
    requests = [ResumeRequest(mode, count=count)] * 5
    expected = replayed(events, requests)
    assert before_the_end(held(events, *requests), events)[: len(expected)] == expected


@given(programs, st.lists(st.sampled_from(STOPS), max_size=3))
@example(closed(tell([("leaf", 0, 0, 0), ("scope", 0, 0, 0), ("leaf", 0, 0, 0)])), ["net.*"])  # a call that makes data
@laws
def test_running_on_stops_at_the_breakpoints_of_the_recording(events, texts):
    assume(not steps_through_freed(events))
    assume(tells_phases_at_once(events) or not any("'forward'" in text for text in texts))
    requests = [ResumeRequest("continue", stops=tuple(texts))] * 40
    expected = replayed(events, requests)
    assert before_the_end(held(events, *requests), events)[: len(expected)] == expected


@given(programs, st.integers(0, 6))
@laws
def test_running_to_a_node_stops_at_its_events(events, at):
    timeline = Timeline(MemoryLog(events))
    assume(len(timeline.nodes))
    info = timeline.info(timeline.nodes[at % len(timeline.nodes)])
    storages = tuple({output.storage for output in info.created.outputs})
    requests = [ResumeRequest("step", count=info.born), *[ResumeRequest("to", node=info.node, storages=storages)] * 40]
    expected = replayed(events, requests)
    assert before_the_end(held(events, *requests), events)[: len(expected)] == expected


def story():
    story = Story()
    x = story.leaf("x", 3.0, 3)
    story.say(e.Marked("begun"))
    story.backward(story.mul("y", x, x, 5), 9)
    return story.events


def test_a_pause_holds_at_the_next_event_whatever_was_wished():
    debugger = Debugger([ResumeRequest("run")])
    debugger.gate.receive(story()[0])
    debugger.gate.pause()
    for event in story()[1:]:
        debugger.gate.receive(event)
    assert debugger.stops == [1]


def test_a_pause_without_events_holds_where_the_program_is():
    debugger = Debugger([ResumeRequest("run")])
    assert debugger.gate.pause_here()
    assert debugger.stops == []
    debugger.gate.pause()
    assert debugger.gate.pause_here()
    assert debugger.stops == [0]


@pytest.mark.parametrize("stands", ["at an event", "at a breakpoint of its own"])
def test_a_pause_while_the_program_stands_still_waits_for_it_to_run_on(stands):
    class Interrupted(Debugger):
        def wait(self, why):
            self.gate.pause()
            paused.append(self.gate.pause_here())
            return super().wait(why)

    paused = []
    debugger = Interrupted([ResumeRequest("step")])
    if stands == "at an event":
        debugger.gate.receive(e.Marked("here"))
    else:
        debugger.gate.stop_here("breakpoint")
    assert paused == [False]
    debugger.gate.pause_here()
    assert paused == [False, False]


def test_a_program_that_runs_freely_is_never_held():
    assert held(story(), ResumeRequest("run")) == []


def test_what_the_wait_raises_goes_to_the_program_which_then_runs_to_a_stop():
    class Interrupted(Debugger):
        def wait(self, why):
            super().wait(why)
            if len(self.stops) == 1:
                raise KeyboardInterrupt
            return ResumeRequest("run")

    debugger = Interrupted([ResumeRequest("step")])
    first, *events = story()
    while isinstance(first, e.DEFINITIONS):
        debugger.gate.receive(first)
        first, *events = events
    with pytest.raises(KeyboardInterrupt):
        debugger.gate.receive(first)
    for event in events:
        debugger.gate.receive(event)
    assert debugger.stops == [1, Timeline(debugger.log).marks[0][0]]


def test_other_threads_wait_where_one_is_held():
    arrived, go = threading.Event(), threading.Event()

    class Threads(Debugger):
        def wait(self, why):
            if threading.current_thread() is worker:
                arrived.set()
                assert go.wait(20)
            return super().wait(why)

    debugger = Threads([ResumeRequest("next"), ResumeRequest("run")])
    worker = threading.Thread(target=lambda: [debugger.gate.receive(event) for event in story()])
    worker.start()
    assert arrived.wait(20)
    other = threading.Thread(target=lambda: debugger.gate.receive(e.Marked("other")))
    other.start()
    count = len(debugger.log)
    aside = threading.Thread(target=lambda: _say_aside(debugger.gate))
    aside.start()
    aside.join(20)
    assert not aside.is_alive()
    assert other.is_alive()
    assert [debugger.log.event(n).name for n in range(count + 1, len(debugger.log) + 1)] == ["aside"]
    go.set()
    worker.join(20)
    other.join(20)
    assert "other" in {name for _, name in Timeline(debugger.log).marks}


def _say_aside(gate):
    gate.exempt_threads = frozenset({threading.get_ident()})
    gate.receive(e.Marked("aside"))


@pytest.mark.parametrize(
    "text",
    [
        "if abs(grad).max() > 2",
        "mul if abs(grad).sum() > 5 and value.max() > 2",
        "change #1.grad if abs(grad).max() > 10",
    ],
)
def test_conditions_on_gradients_stop_where_the_recording_does(text):
    def program():
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        x.register_hook(lambda grad: grad * 2)
        for _ in range(3):
            y = (x * x * torch.tensor([0.5, 1.5])).sum() * 2
            y.register_hook(lambda grad: grad + 1)
            y.backward()
            with torch.no_grad():
                x += 1

    events = events_of(program)
    requests = [ResumeRequest("continue", stops=(text,))] * 40
    assert before_the_end(held(events, *requests), events) == replayed(events, requests) != []


def leaf(*numbers):
    return torch.tensor(numbers, requires_grad=True)


def writes_through_a_view():
    w = leaf(1.0, 2.0)
    y = w * 1.0
    part = y[:1]
    for _ in range(2):
        part.mul_(3.0)
        y.add_(1.0)
    (y * y).sum().backward()


def names_what_was_written_before():
    layer = torch.nn.Linear(2, 1)
    memory = layer.weight.detach()
    memory.fill_(1.0)
    layer(torch.ones(2))  # a module says how its parameters are called when it runs for the first time
    memory.fill_(2.0)
    memory.fill_(3.0)
    layer.weight.sum()


def makes_nodes_of_gradients():
    w = leaf(1.0, 2.0)
    for _ in range(2):
        (w * w * w).sum().backward(create_graph=True)
        gradient = w.grad
        (gradient * gradient).sum().backward()
        w.grad = None


def writes_into_gradients():
    w = leaf(1.0, 2.0)
    w.sum().backward()
    for _ in range(3):
        w.grad.mul_(2.0)


def computes_on_transposed_memory():
    memory = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    w = memory.t().requires_grad_()
    for _ in range(3):
        memory.mul_(2.0)
        w.sum().backward()


def trains():
    w = leaf(1.0, 2.0)
    for _ in range(3):
        (w * w).sum().backward()
        with torch.no_grad():
            w += 10


def has_its_nan_in_the_first_of_two_outputs():
    first, second = leaf(float("nan"), 5.0).unbind()
    (first * second).backward()


def calls_its_modules():
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Linear(3, 1)))
    for _ in range(4):
        net(torch.ones(1, 2)).sum().backward()


def convolves():
    x, w = torch.ones(1, 1, 3, 3, requires_grad=True), torch.ones(1, 1, 2, 2)
    for _ in range(2):
        torch.nn.functional.conv_transpose2d(torch.nn.functional.conv2d(x, w), w).sum().backward()


LINE = computes_on_transposed_memory.__code__.co_firstlineno + 5

REAL = {
    writes_through_a_view: ("on inplace y", "on inplace part", "on inplace y if value.max() > 3"),
    names_what_was_written_before: ("on inplace weight", "change weight", "on inplace weight if value.sum() > 5"),
    makes_nodes_of_gradients: ("w.grad", "change w.grad", "on accumulate w", "*.grad if value.sum() > 1"),
    writes_into_gradients: ("on inplace w.grad", "change w.grad", "on inplace if value.max() > 3"),
    trains: ("#1 if value.max() > 5", "if value.max() > 15 and op != 'mul'",
        "if 0 < value.max() < 30 * step"),
    has_its_nan_in_the_first_of_two_outputs: ("on nan if value > 3",),
    convolves: ("op:conv2d", "op:conv_transpose2d", "op:convolution if value.sum() > 4"),
    computes_on_transposed_memory: ("on inplace w", "change w", "on accumulate w if value[0][1] > 10",
        f"test_gate.py:{LINE}"),
    calls_its_modules: ("net", "net.1", "Sequential.1.0", "net.*", "on backward net[1]", "net.1 if value.max() > -9"),
}  # fmt: skip


@pytest.mark.parametrize(("program", "text"), [(program, text) for program, texts in REAL.items() for text in texts])
def test_the_breakpoints_of_real_programs_hold_where_the_recording_stops(program, text):
    events = events_of(program)
    requests = [ResumeRequest("continue", stops=(text,))] * 40
    named = max((at for at, event in enumerate(events) if isinstance(event, e.Named)), default=0)
    known = len(MemoryLog(events[:named]))  # what a thing will be called, nobody knows while the program runs
    expected = [n for n in replayed(events, requests) if n > known]
    assert before_the_end(held(events, *requests), events) == expected != []


def test_a_condition_that_can_be_told_at_once_asks_nobody():
    def program():
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        for _ in range(20):
            x = x * 1.5
        x.sum().backward()

    events = events_of(program)
    asked = {}
    for text in (
        "if value.max() > 1e9",
        "mul if abs(grad) > 1e9",
        "y if value > 3",
        "if step > 5",
        "if name == 'y'",
        "if op == 'relu' and value.max() > 0",
        "if 1e8 < value.max() < 1e9",
        "SumBackward0",
    ):
        debugger = Debugger([ResumeRequest("continue", stops=(text,))] * 40)
        for event in events:
            debugger.gate.receive(event)
        asked[text] = debugger.asked
    assert asked == {**dict.fromkeys(asked, 0), "SumBackward0": 2}


def test_a_module_asks_once_a_call_and_once_a_pass():
    events = events_of(calls_its_modules)
    asked = {}
    for text in ("net.1", "on forward net.1"):
        debugger = Debugger([ResumeRequest("continue", stops=(text,))] * 40)
        for event in events:
            debugger.gate.receive(event)
        asked[text] = debugger.asked
    assert asked == {"net.1": 8, "on forward net.1": 4}


def test_what_a_running_statement_makes_is_named_when_it_is_over():
    def program():
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = (x * x).relu().sum()
        return y + 1

    events = events_of(program)
    made = [at for at, event in enumerate(events) if isinstance(event, e.NodeCreated)]
    named = []
    for at in made:
        timeline = Timeline(MemoryLog(events[: at + 1]))
        timeline.growing = True
        named.append(timeline.info(events[at].node).name)
    assert named[:4] == ["x", "", "", "y"]


def begun(events):
    """The same with a start of every step that ends: a program that runs says both."""
    steps, said = OptimizerSteps(), []
    for event in events:
        if isinstance(event, e.OptimizerStepped) and event.stack not in steps.running:
            said.append(e.OptimizerStarted(event.kind, event.stack))
            steps.process(0, said[-1])
        steps.process(0, event)
        said.append(event)
    return said


@given(programs.map(begun), st.integers(1, 3))
@laws
def test_a_closed_step_is_passed_by_as_in_the_recording(events, count):
    requests = [ResumeRequest("next", count=count, collapsed=(OPTIMIZER,))] * 40
    assert before_the_end(held(events, *requests), events) == folded(events, requests)


def folded(events, requests):
    """Where the same requests lead through the finished recording, with the steps of optimizers closed."""
    timeline = Timeline(MemoryLog(events))
    folds, n, stops = Folds(timeline), 0, []
    for request in requests:
        for _ in range(request.count):
            n = folds.next_node(timeline, n)
        if n == len(timeline):
            return stops
        stops.append(n)
    return stops


class Own(torch.optim.Optimizer):
    """An optimizer of the program: its lines are stepped through like any others."""

    def __init__(self, parameters):
        super().__init__(parameters, {})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for w in group["params"]:
                state = self.state[w].setdefault("mean", torch.zeros(2))
                state.mul_(0.5).add_(w.grad)
                w.sub_(state * 0.1)


OPTIMIZERS = {
    "Adam": lambda weights: torch.optim.Adam(weights, lr=0.1),
    "momentum": lambda weights: torch.optim.SGD(weights, lr=0.1, momentum=0.9),
    "plain": lambda weights: torch.optim.SGD(weights, lr=0.1),
    "Adagrad": lambda weights: torch.optim.Adagrad(weights, lr=0.1),
    "LBFGS": lambda weights: torch.optim.LBFGS(weights, lr=0.1, max_iter=3),
    "own": Own,
}


WITHIN = {"LBFGS": {e.NodeCreated, e.StepFinished, e.GradAccumulated}, "own": {e.NodeCreated}}
"""What is met between the start and the end of a step: what a closure does, and an optimizer of the program."""


def optimized(name):
    """The events of a training loop."""

    def train():
        w = torch.tensor([2.0, 3.0], requires_grad=True)
        optimizer = OPTIMIZERS[name]([w])

        def closure():
            optimizer.zero_grad()
            loss = (w * w * torch.tensor([1.0, 2.0])).sum()
            loss.backward()
            return loss

        for _ in range(3):
            if name == "LBFGS":
                optimizer.step(closure)
            else:
                closure()
                optimizer.step()
            (w.detach() * 2).sum()

    return events_of(train)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_of_an_optimizer_is_one_stop_live_as_in_the_recording(name):
    events = optimized(name)
    requests = [ResumeRequest("next", collapsed=(OPTIMIZER,))] * 300
    stops = before_the_end(held(events, *requests), events)
    assert stops == folded(events, requests)
    timeline = Timeline(MemoryLog(events))
    starts, ends = ([n for n, _ in timeline.select([kind])] for kind in (e.OptimizerStarted, e.OptimizerStepped))
    within = [[timeline.event(n) for n in stops if start < n < end] for start, end in zip(starts, ends, strict=True)]
    assert set(ends) <= set(stops)
    assert {type(event) for step in within for event in step} == WITHIN.get(name, set())
    if name == "LBFGS":
        made = [timeline.info(event.node).op.name for event in within[1] if isinstance(event, e.NodeCreated)]
        assert set(made) == {"tensor", "mul", "sum"}, "the closure's, and none of the optimizer's own"


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("mode", ["step", "next", "finish", "phase"])
def test_phases_of_a_step_and_what_it_computes_are_met_live_as_in_the_recording(name, mode):
    events = optimized(name)
    requests = [ResumeRequest(mode)] * 600
    assert before_the_end(held(events, *requests), events) == replayed(events, requests)


def trained(layers, *, twice):
    def train():
        parts = [part for _ in range(layers) for part in (nn.Linear(2, 2), nn.Tanh())]
        net = nn.Sequential(*parts)
        x = torch.ones(1, 2, requires_grad=True)
        for _ in range(2):
            out = net(net(x)) if twice else net(x)
            out.sum().backward()

    return events_of(train)


class Penalized(nn.Module):
    """Runs a pass of its own in its forward, through what is made in it and before it."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        hidden = self.layer(x)
        energy = (hidden * hidden).sum()
        steep, outer = torch.autograd.grad(energy, [hidden, x], create_graph=True)
        return (steep * 2 + 1).sum() + (outer * outer).sum()


class Recomputed(torch.autograd.Function):
    """Runs a pass of its own in its rule."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        with torch.enable_grad():
            x = ctx.saved_tensors[0].detach().requires_grad_()
            return torch.autograd.grad((x * x).sum(), x)[0] * grad


class Checkpointed(nn.Module):
    def forward(self, x):
        return (Recomputed.apply(x * 2) * 3).sum()


def trained_once_more(net):
    def train():
        x = torch.ones(1, 2, requires_grad=True)
        for _ in range(2):
            out = net(x * 1) * 3
            out.backward()
            out = None

    return events_of(train)


TRAINED = {
    "once": trained(2, twice=False),
    "twice": trained(2, twice=True),
    "a pass in forward": trained_once_more(Penalized()),
    "a pass in a rule": trained_once_more(Checkpointed()),
}


def paths_of(events):
    return sorted({event.name for event in events if isinstance(event, e.ScopeEntered)})


@pytest.mark.parametrize("program", TRAINED)
@given(st.data(), st.integers(0, 60), st.integers(1, 3))
@laws
def test_a_closed_module_is_one_next_as_in_the_recording(program, data, begin, count):
    events = TRAINED[program]
    timeline = Timeline(MemoryLog(events))
    folds = Folds(timeline)
    for path in data.draw(st.sets(st.sampled_from(paths_of(events)))):
        folds.collapse(0, path)
    first_call = next(n for n in range(1, len(timeline)) if isinstance(timeline.event(n), e.ScopeEntered))
    n = stepping.step(timeline, min(first_call + begin, len(timeline) - 1) - 1)
    so_far = sum(1 for seq in range(1, n + 1) if not isinstance(timeline.event(seq), e.SILENT))
    requests = [
        ResumeRequest("step", count=so_far),
        *[ResumeRequest("next", count=count, collapsed=folds.collapsed_in_program)] * 80,
    ]
    stops = before_the_end(held(events, *requests), events)[1:]
    for stop_at in stops:
        for _ in range(count):
            n = folds.next_node(timeline, n)
        assert n <= stop_at, "it was held within a closed module"
        assert not [end for end in timeline.contexts.node_ends if n < end <= stop_at], "it was held a node too late"
    assert folds.next_node(timeline, n) == len(timeline) or count > 1


def overwrites_and_forgets():
    for _ in range(20):
        y = torch.zeros(4)
        y.add_(1.0)
        view = y[:2]
        del y
        view.mul_(2.0)
        del view


def test_of_what_is_gone_no_numbers_are_kept():
    cache = NodeCache()
    cache.keep_values = True
    kept = []
    for event in events_of(overwrites_and_forgets):
        if type(event) in LEARNED_FROM:
            cache.learn(event)
            kept.append(len(cache.written))
    assert max(kept) > 0
    assert max(kept) == max(kept[: len(kept) // 10])
    assert len(cache.written) == len({remembered.storage for remembered in cache.values.values()} & {*cache.written})


def test_a_step_passes_the_same_events_as_in_a_recording():
    said = list(closed(tell([("leaf", 1, 0, 0), ("op", 0, 0, 1), ("op", 0, 0, 1)])))
    first = next(at for at, event in enumerate(said) if isinstance(event, e.NodeCreated)) + 1
    events = [*said[:first], e.VariableHeld("w", 1, "", "<module>"), e.VariableHeld("v", 1, "", "f"), *said[first:]]
    requests = [ResumeRequest("step")] * len(events)
    assert before_the_end(held(events, *requests), events) == replayed(events, requests)


def test_a_call_is_finished_at_its_end_and_not_with_the_pass_that_runs_in_it():
    def program():
        Penalized()(torch.tensor([[1.0, 2.0]], requires_grad=True)).backward()

    events = events_of(program)
    counted = [event for event in events if type(event) not in e.DEFINITIONS]
    inside = next(n for n, event in enumerate(counted, 1) if isinstance(event, e.NodeCreated) and event.scope)
    requests = [ResumeRequest("step", count=inside), ResumeRequest("finish")]  # out of the layer
    requests += [
        ResumeRequest("step"),
        ResumeRequest("finish"),
    ]  # out of the model around it, whose forward runs a pass
    stops = held(events, *requests)
    assert stops == replayed(events, requests)
    assert isinstance(counted[stops[-1] - 1], e.ScopeLeft)
    assert any(isinstance(event, e.BackwardFinished) for event in counted[: stops[-1]])


def test_a_phase_is_finished_when_an_event_shows_that_the_next_one_began_earlier():
    def program():
        w = torch.tensor(1.0, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        for _ in range(2):
            loss = (w * (torch.tensor([2.0]) / 2)).sum()  # the data is prepared before autograd tracks anything
            loss.backward()
            optimizer.step()
            loss.item()
            w.data.sum()

    events = events_of(program)
    counted = [event for event in events if type(event) not in e.DEFINITIONS]
    phases = Timeline(MemoryLog(events)).phases
    measured, forward = next(pair for pair in pairwise(phases) if pair[1].kind == "forward" and pair[0].end > 20)
    tracked = next(
        n for n, event in enumerate(counted, 1)
        if n > forward.start and isinstance(event, e.NodeCreated) and event.outputs and not event.untracked
        and event.kind == "op"
    )  # fmt: skip
    assert forward.start < tracked - 1
    assert held(events, ResumeRequest("step", count=measured.start), ResumeRequest("finish"))[1] == tracked - 1
