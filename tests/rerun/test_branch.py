"""A branch beside its recording, moment by moment: one that changes nothing is the recording at every event."""

import contextlib
from pathlib import Path

import pytest
from recording import timeline_of
from rerun.doubled import Doubled
from rerun.rerun_check import same

import gviz.engine as torch
from gviz.events import NOT_SEEN, Warned
from gviz.explain.whatif import branch_of
from gviz.rerun.branch import BranchView
from gviz.rerun.change_parser import Change
from gviz.rerun.iteration import rerun_iteration
from gviz.values.value import Value

NO_NUMBER = Value("float32", ())
SAMPLES = sorted(path for path in Path(__file__).parents[2].joinpath("samples").glob("0*.py"))


def beside(timeline, iteration, *texts):
    branch = branch_of(timeline, iteration, texts)
    return BranchView(timeline, iteration, branch, texts)


def deviations(timeline):
    for iteration in timeline.iterations:
        other = beside(timeline, iteration)
        if other.branch.stopped:
            continue
        nodes = [node for node in timeline.nodes.of(iteration) if timeline.info(node).iteration == iteration.index]
        for n in range(iteration.start, iteration.end + 1):
            for node, here, there in zip(nodes, timeline.at(n).states(nodes), other.states(nodes, n), strict=True):
                if (here is None) != (there is None):
                    yield n, node, "is there" if here is None else "is missing"
                    continue
                for old, new in zip(here.outputs if here else (), there.outputs if there else (), strict=True):
                    for what in ("value", "incoming", "grad"):
                        if not same(timeline, getattr(old, what), other.timeline, getattr(new, what)):
                            yield n, node, what
                    if [(p.source, p.slot) for p in old.parts] != [(p.source, p.slot) for p in new.parts]:
                        yield n, node, "parts"


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_at_every_event_of_a_lesson(path, capsys):
    code = compile(path.read_text(), str(path), "exec")

    def lesson():
        names = {"__name__": "__main__"}
        with contextlib.suppress(RuntimeError):
            exec(code, names)
        return names

    assert list(deviations(timeline_of(lesson, limit=1 << 30))) == []


def twice():
    x = torch.tensor(3.0, requires_grad=True)
    for _ in range(2):
        z = x * x
        z.backward()
        x.grad = None
    return x, z


def test_only_the_iteration_that_ran_again_is_told_of():
    timeline = timeline_of(twice)
    other = beside(timeline, timeline.iterations[1], "x = 5")
    assert [other.covers(n) for n in (1, timeline.iterations[0].end, timeline.iterations[1].start)] == [0, 0, 1]


def test_numbers_appear_when_their_events_do():
    def program():
        x = torch.tensor(3.0, requires_grad=True)
        z = x * x
        z.backward()
        return x, z

    timeline = timeline_of(program)
    other = beside(timeline, timeline.iterations[0], "x = 5")
    x, z = timeline.nodes
    assert other.states([x, z], timeline.info(x).born)[1] is None
    state = other.states([z], timeline.info(z).born)[0]
    assert other.timeline.array(state.outputs[0].value) == 25
    grads = [other.states([x], n)[0].outputs[0].grad for n in range(timeline.info(z).born, len(timeline) + 1)]
    assert grads[0] is None
    assert other.timeline.array(grads[-1]) == 10


def test_what_is_not_known_is_not_told():
    def program():
        x = torch.tensor(3.0, requires_grad=True)
        h = Doubled.apply(x)
        z = h * 3
        z.backward()
        return x, h, z

    timeline = timeline_of(program)
    other = beside(timeline, timeline.iterations[0], "x = 5")
    names = {timeline.info(node).name: node for node in timeline.nodes}
    for state in other.states([names["h"], names["z"]], len(timeline)):
        assert [state.outputs[0].value, state.outputs[0].incoming] == [NO_NUMBER, NO_NUMBER]
    (state,) = other.states([names["x"]], len(timeline))
    assert other.timeline.array(state.outputs[0].value) == 5
    assert [state.outputs[0].incoming, state.outputs[0].grad] == [NO_NUMBER, NO_NUMBER]
    (state,) = other.states([names["x"]], timeline.info(names["z"]).born)
    assert state.outputs[0].grad is None


def tripled(x):
    h = x * x
    h.register_hook(lambda grad: grad * 3)
    return h


def squared(x):
    return Squared.apply(x)


class Squared(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return grad * 2 * ctx.saved_tensors[0]


def accumulated(x, through):
    (through(x) * 5).backward()
    return x.grad * 1


def requested_nodes(x, through):
    (g,) = torch.autograd.grad(through(x) * 5, x)
    return g * 1


def asked_for_with_a_graph(x, through):
    (g,) = torch.autograd.grad(through(x) * 5, x, create_graph=True)
    return g * 1


def stepped(x, through):
    (through(x) * 5).backward()
    with torch.no_grad():
        x -= 0.1 * x.grad
    return x * 1


def retained(x, through):
    y = x * 1
    y.retain_grad()
    (through(y) * 5).backward()
    return y.grad * 1


@pytest.mark.parametrize("use", [accumulated, requested_nodes, asked_for_with_a_graph, stepped, retained])
@pytest.mark.parametrize("through", [tripled, squared])
def test_whatever_is_told_beyond_a_stop_is_what_the_program_gives(use, through):
    def program(start):
        x = torch.tensor(start, requires_grad=True)
        found = use(x, through)
        return x, found

    timeline = timeline_of(lambda: program(2.0))
    real = timeline_of(lambda: program(4.0))
    branch = rerun_iteration(timeline, timeline.iterations[0], [Change(timeline.nodes[0], 4)])
    other = BranchView(timeline, timeline.iterations[0], branch, ())
    assert other.branch.stopped
    nodes = timeline.nodes.of(timeline.iterations[0])
    there = other.states(nodes, timeline.iterations[0].end)
    truths = real.at(real.iterations[0].end).states(nodes)
    for node, told, truth in zip(nodes, there, truths, strict=True):
        assert [*wrong(real, told, truth)] == [], node
    assert any(NO_NUMBER in (state.outputs[0].value, state.outputs[0].grad) for state in there)
    log, known = other.timeline, dict(zip(nodes, truths, strict=True))
    for node, number in other.branch.numbers.items():
        assert [*wrong(real, log.at(len(log)).state(number), known[node])] == [], node


def wrong(real, told, truth):
    """The numbers that are told of a node and are not the true ones."""
    for mine, his in zip(told.outputs, truth.outputs, strict=True):
        for what in ("value", "incoming", "grad"):
            one, two = getattr(mine, what), getattr(his, what)
            if one is None and two is not None and what != "incoming":
                yield what, "is there"
            elif one is not None and one.is_known and not same(real, one, real, two):
                yield what, one, two


@pytest.mark.parametrize("through", [tripled, squared])
def test_a_trace_of_a_branch_says_where_it_stopped(through):
    def program():
        x = torch.tensor(2.0, requires_grad=True)
        accumulated(x, through)
        return x

    timeline = timeline_of(program)
    log = beside(timeline, timeline.iterations[0], "x = 4").timeline
    assert any(event.category == NOT_SEEN and "stopped at" in event.message for _, event in log.select([Warned]))
