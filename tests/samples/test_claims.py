"""What the lessons tell their readers is so: every number a docstring names, asked of the recording."""

import pytest
from samples.lessons import recording

from gviz.events import (
    BackwardFinished,
    BackwardStarted,
    GradFlowed,
    NodeCreated,
    OptimizerStepped,
    SavedFreed,
    StepStarted,
)
from gviz.trace import stepping


def events(timeline, kind):
    """The events of one class, with their numbers."""
    return [(n, timeline.event(n)) for n in range(1, len(timeline) + 1) if isinstance(timeline.event(n), kind)]


def nodes(timeline, name):
    """All nodes of a name, or of an op where none is called so, in order of creation."""
    infos = [timeline.info(node) for node in timeline.nodes]
    return [info.node for info in infos if info.name == name] or [i.node for i in infos if i.op.name == name]


def output(timeline, node, n=None):
    """The first output of a node at one moment, the end."""
    return timeline.at(len(timeline) if n is None else n).state(node).outputs[0]


def numbers(value):
    """The elements of a value."""
    return None if value is None else value.array().tolist()


def parts(timeline, node, n=None):
    """What arrived at a node in its latest pass, one contribution after the other."""
    return [numbers(part.value) for part in output(timeline, node, n).parts]


def ends(timeline):
    """The last events of the backward passes."""
    return [n for n, _ in events(timeline, BackwardFinished)]


def presses(timeline, moves):
    """Where keys lead from the first event."""
    n = 1
    for key in moves:
        n = {"f": stepping.finish, "c": stepping.continue_, "S": stepping.reverse_step}[key](timeline, n)
    return n


def test_product_and_sine():
    timeline = recording("01_product_and_sine")
    x, y, square, two, double, sine, z = timeline.nodes
    assert numbers(output(timeline, z).value) == 16
    assert parts(timeline, square) == parts(timeline, sine) == [1]
    assert parts(timeline, double) == [1]
    assert numbers(output(timeline, two).value) == 2
    assert parts(timeline, x) == [4, 4]
    assert numbers(output(timeline, x).grad) == 8
    assert numbers(output(timeline, y).grad) == 2


def test_shared_input():
    timeline = recording("02_shared_input")
    [x], [a, _] = nodes(timeline, "x"), nodes(timeline, "a")
    first, second = ends(timeline)
    assert parts(timeline, a, first) == [1, 3]
    assert parts(timeline, x, first) == parts(timeline, x, second) == [-6, -8]
    assert [numbers(output(timeline, x, n).grad) for n in (first, second)] == [-14, -28]


def test_linear_model():
    timeline = recording("03_linear_model")
    [w] = nodes(timeline, "w")
    grads = [numbers(output(timeline, w, n).grad) for n in ends(timeline)]
    assert grads[0] == -7
    assert grads[2] == pytest.approx(-0.5938, abs=5e-5)
    first, second, third, _ = (numbers(output(timeline, w, n).value) for n, _ in events(timeline, OptimizerStepped))
    assert first == 0.875
    assert -grads[2] / 8 == pytest.approx(0.074, abs=5e-4)
    assert (second - first) / 2 == pytest.approx(0.461, abs=5e-4)
    assert third == pytest.approx(2.332, abs=5e-4)
    assert third == pytest.approx(second - grads[2] / 8 + (second - first) / 2)


def test_two_losses():
    timeline = recording("04_two_losses")
    [a], [b], [c] = nodes(timeline, "a"), nodes(timeline, "b"), nodes(timeline, "c")
    assert [numbers(output(timeline, a, n).grad)[0] for n in ends(timeline)[:3]] == [
        [1, 2, 3, 4], [5, 10, 15, 20], [6, 12, 18, 24],
    ]  # fmt: skip
    assert [(timeline.at(n).pass_nr, event.node) for n, event in events(timeline, SavedFreed)] == [(3, c), (3, b)]
    assert presses(timeline, "c") == len(timeline)
    end = timeline.at(len(timeline))
    assert end.failed.node == c
    assert [end.state(node).step for node in (a, b, c)] == ["none", "none", "failed"]
    assert output(timeline, b).incoming is None, "what pass 3 left must not come back when pass 4 fails before it"


def test_five_cases():
    timeline = recording("05_five_cases")
    cases = [event.roots[0][0] for _, event in events(timeline, BackwardStarted)]
    xs = [timeline.info(z).created.inputs[0][0] for z in cases]
    assert [numbers(output(timeline, z).value) for z in cases] == [12] * 6
    assert [numbers(output(timeline, x).grad) for x in xs] == [1, 7, 1, 1, 7, 1]
    assert numbers(output(timeline, nodes(timeline, "y")[0]).grad) == 6
    assert parts(timeline, xs[1]) == [1, 3, 3]
    assert parts(timeline, xs[4]) == [1, 6]
    cut = [timeline.info(node).created.untracked for node in timeline.nodes]
    assert cut.count("detach") == cut.count("no_grad") == 1


def test_lost_leaf():
    timeline = recording("06_lost_leaf")
    leaf, result, kept, _ = nodes(timeline, "x")
    assert leaf == 1
    assert timeline.info(result).op.name == "add"
    n = presses(timeline, "ff")
    assert (numbers(output(timeline, leaf, n).grad), output(timeline, result, n).grad) == (4, None)
    born, end = output(timeline, kept, timeline.info(kept).born), output(timeline, kept)
    assert [numbers(born.value), numbers(end.value), end.version, numbers(end.grad)] == [1, 2, 1, 4]


def test_slices_or_cat():
    timeline = recording("07_slices_or_cat")
    *chain, cat = nodes(timeline, "y")[1:]
    assert [output(timeline, node).incoming.shape for node in chain] == [(3, 4)] * 3
    zero_rows = [sum(not any(row) for row in numbers(output(timeline, node).incoming)) for node in reversed(chain)]
    assert zero_rows == [0, 1, 2]
    assert output(timeline, cat).incoming.size == 12
    handed_on = [event.part.size for _, event in events(timeline, GradFlowed) if event.source == cat]
    assert handed_on == [4, 4, 4]


def test_in_place():
    timeline = recording("08_in_place")
    select, product = timeline.nodes[2:4]
    assert timeline.info(select).created.outputs[0].version == 0
    failed = presses(timeline, "ff")
    assert "is at version 1; expected version 0" in timeline.event(failed).error
    assert timeline.at(failed).state(product).step == "failed"
    assert output(timeline, select, failed).version == 1
    assert numbers(output(timeline, nodes(timeline, "x")[-1]).grad) == 1


def test_two_runs():
    timeline = recording("09_two_runs")
    ran = [{event.node for _, event in events(timeline, StepStarted) if event.pass_nr == nr} for nr in (1, 2)]
    reached = [{event.node for _, event in events(timeline, GradFlowed) if event.pass_nr == nr} for nr in (1, 2)]
    assert [len(nodes) for nodes in ran] == [5, 5]
    assert not ran[0] & ran[1]
    shared = reached[0] & reached[1]
    assert len(shared) == 4
    assert {timeline.info(node).created.kind for node in shared} == {"parameter"}
    assert numbers(output(timeline, nodes(timeline, "x")[1]).value) == [[5.75]]
    [bias] = nodes(timeline, "layer2.bias")
    assert [numbers(output(timeline, bias, n).grad) for n in ends(timeline)] == [[1], [2]]


def test_recurrent_net():
    timeline = recording("10_recurrent_net")
    [bias] = nodes(timeline, "linear.bias")
    for steps, n in zip((5, 10), ends(timeline), strict=True):
        halves = [[0.5**step] for step in range(steps)]
        assert parts(timeline, bias, n) == halves
        assert numbers(output(timeline, bias, n).grad) == [sum(half for [half] in halves)]
    assert sum(info.op.name == "cat" for info in map(timeline.info, timeline.nodes)) == 15


def test_nan_in_backward():
    timeline = recording("11_nan_in_backward")
    n = presses(timeline, "c")
    event = timeline.event(n)
    assert n == timeline.error_index.first_bad()
    assert isinstance(event, GradFlowed)
    assert (timeline.info(event.source).op.name, timeline.info(event.node).name) == ("sqrt", "x")
    assert numbers(output(timeline, event.source, presses(timeline, "cS")).incoming) == [0, 1]
    assert numbers(output(timeline, nodes(timeline, "y")[0], n).value) == [0, 2]
    assert numbers(output(timeline, nodes(timeline, "x")[-1]).grad) == [0, 0.25]


def test_vanishing_gradients():
    timeline = recording("12_vanishing_gradients")
    grads = [numbers(output(timeline, weight).grad) for weight in range(1, 9)]
    assert grads == sorted(grads)
    assert [f"{grads[0]:.1e}", f"{grads[-1]:.2f}"] == ["5.5e-06", "0.15"]
    sigmoids = nodes(timeline, "sigmoid")
    for flow in (event for _, event in events(timeline, GradFlowed) if event.source in sigmoids):
        sigmoid = output(timeline, flow.source)
        h, incoming = numbers(sigmoid.value), numbers(sigmoid.incoming)
        assert numbers(flow.part) == pytest.approx(incoming * h * (1 - h))
        assert numbers(flow.part) <= incoming / 4
    rectified = [event.node for _, event in events(timeline, NodeCreated) if event.kind == "leaf"][8:]
    assert [numbers(output(timeline, weight).grad) for weight in rectified] == [1] * 8
