"""A branch beside its recording, moment by moment: one that changes nothing is the recording at every event."""

import contextlib
from pathlib import Path

import pytest
from recording import events_of
from whatif.doubled import Doubled
from whatif.rerun_check import same

import gviz.engine as torch
from gviz.trace.log import MemoryLog
from gviz.trace.timeline import Timeline
from gviz.whatif.beside import Beside
from gviz.whatif.change import parsed
from gviz.whatif.rerun import branched

SAMPLES = sorted(path for path in Path(__file__).parents[2].joinpath("samples").glob("0*.py"))


def beside(timeline, iteration, *texts):
    def node_of(place):
        return next(node for node in reversed(timeline.nodes) if timeline.info(node).name == place)

    branch = branched(timeline, iteration, [parsed(text, node_of) for text in texts])
    return Beside(timeline, iteration, branch, texts)


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

    assert list(deviations(Timeline(MemoryLog(events_of(lesson, limit=1 << 30))))) == []


def twice():
    x = torch.tensor(3.0, requires_grad=True)
    for _ in range(2):
        z = x * x
        z.backward()
        x.grad = None
    return x, z


def test_only_the_iteration_that_ran_again_is_told_of():
    timeline = Timeline(MemoryLog(events_of(twice)))
    other = beside(timeline, timeline.iterations[1], "x = 5")
    assert [other.covers(n) for n in (1, timeline.iterations[0].end, timeline.iterations[1].start)] == [0, 0, 1]


def test_numbers_appear_when_their_events_do():
    def program():
        x = torch.tensor(3.0, requires_grad=True)
        z = x * x
        z.backward()
        return x, z

    timeline = Timeline(MemoryLog(events_of(program)))
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

    timeline = Timeline(MemoryLog(events_of(program)))
    other = beside(timeline, timeline.iterations[0], "x = 5")
    names = {timeline.info(node).name: node for node in timeline.nodes}
    assert other.states([names["h"], names["z"]], len(timeline)) == [None, None]
    (state,) = other.states([names["x"]], len(timeline))
    assert other.timeline.array(state.outputs[0].value) == 5
    assert (state.outputs[0].incoming, state.outputs[0].grad) == (None, None)
