"""Define-and-run: nothing is computed while a graph is built, and what is run is what the same program gives eagerly."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from recording import events_of, timeline_of

import gviz.engine as torch
from gviz.engine import static
from gviz.events import GradFlowed, NodeCreated, StepStarted


def built():
    w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with static.Graph() as graph:
        x = static.placeholder("x", (3,))
        loss = (torch.sin(x) * w).sum()
        (gradient,) = static.gradients(loss, w)
    return graph, x, w, loss, gradient


def test_runs_with_a_feed():
    graph, x, w, loss, gradient = built()
    for feed in ({x: torch.ones(3)}, {"x": [0.0, 1.0, 2.0]}):
        value = torch.tensor(next(iter(feed.values()))) if "x" in feed else next(iter(feed.values()))
        expected = (torch.sin(value) * w).sum()
        got, got_gradient = graph.run([loss, gradient], feed)
        assert torch.equal(got, expected)
        assert torch.equal(got_gradient, *torch.autograd.grad(expected, w))


def test_nothing_has_a_value_before():
    graph, x, _, loss, _ = built()
    assert repr(x) == "<placeholder 'x': float32[3], no value until the graph is run>"
    assert "no value until the graph is run" in repr(loss)
    for read in (bool, float, int, lambda t: t.item(), lambda t: t.tolist(), lambda t: t.numpy(), "{:.2f}".format):
        with pytest.raises(RuntimeError, match="no value until its graph is run"):
            read(loss)
    with pytest.raises(RuntimeError, match="no value until its graph is run"), graph:
        bool(loss > 0)


def test_only_what_is_fetched_runs():
    with static.Graph() as graph:
        x = static.placeholder("x", (2, 2))
        y = x * 2
        torch.linalg.inv(x)
    assert graph.run(y, {x: torch.zeros(2, 2)}).sum() == 0  # which has no inverse


REFUSED = {
    "nothing fed": (lambda g, x, y: g.run(y), "You must feed a value for placeholder 'x' of float32\\[3\\]"),
    "another shape": (lambda g, x, y: g.run(y, {x: torch.ones(4)}), "Cannot feed value of shape \\[4\\]"),
    "another dtype": (lambda g, x, y: g.run(y, {x: [1j] * 3}), "Cannot feed value of complex128"),
    "no node": (lambda g, x, y: g.run(torch.ones(1)), "is no node of this graph"),
    "no placeholder": (lambda g, x, y: g.run(y, {"z": 1}), "no placeholder 'z'"),
    "outside": (lambda g, x, y: static.placeholder("z"), "a placeholder belongs to a graph"),
}


@pytest.mark.parametrize(("call", "why"), REFUSED.values(), ids=REFUSED)
def test_refused(call, why):
    graph, x, _, loss, _ = built()
    with pytest.raises(RuntimeError, match=why):
        call(graph, x, loss)


def test_names_are_used_once():
    with static.Graph():
        static.placeholder("x")
        with pytest.raises(RuntimeError, match="has a placeholder 'x' already"):
            static.placeholder("x")


def test_nodes_have_values_from_the_run_on():
    def program():
        with static.Graph() as graph:
            x = static.placeholder("x", (2, 2))
            y = x.exp()
            z = x.t() + y
        graph.run(z, {x: torch.zeros(2, 2)})
        return graph, x, y, z

    timeline = timeline_of(program)
    names = {timeline.info(node).op.name: node for node in timeline.nodes if timeline.info(node).op.name != "tensor"}
    made = max(n for n in range(1, len(timeline) + 1) if isinstance(timeline.event(n), NodeCreated) and n < 12)
    before, after = ([timeline.at(n).state(node) for node in names.values()] for n in (made, len(timeline)))
    assert all(state is None or not state.outputs[0].value or not state.outputs[0].value.data for state in before)
    values = {name: state.outputs[0].value.array().tolist() for name, state in zip(names, after, strict=True)}
    assert values["exp"] == values["add"] == [[1, 1], [1, 1]]
    assert values["t"] == [[0, 0], [0, 0]]


def test_what_is_outside_is_left_alone():
    outside = torch.ones(3)
    with static.Graph():
        x = static.placeholder("x", (3,))
        with pytest.raises(RuntimeError, match="add_ writes to a tensor from outside"):
            outside.add_(x)
    assert outside.tolist() == [1, 1, 1]


OUTSIDE = {
    "int": lambda x, n, m: int(n), "if": lambda x, n, m: 1 if n else 0, "arithmetic": lambda x, n, m: n + 1,
    "floats": lambda x, n, m: torch.sin(x), "bools": lambda x, n, m: m & m, "mask": lambda x, n, m: torch.ones(3)[m],
    "where": lambda x, n, m: torch.where(m, 1, 0), "element": lambda x, n, m: bool(m[0]), "list": lambda x, n, m: list(m),
    "write": lambda x, n, m: n.add_(1), "from it": lambda x, n, m: torch.ones(3).add_(n), "data": lambda x, n, m: m.data,
    "equality": lambda x, n, m: n == 0, "copy": lambda x, n, m: n.clone(), "range": lambda x, n, m: range(n),
    "backward": lambda x, n, m: x.sum().backward(),
}  # fmt: skip


@pytest.mark.parametrize("use", OUTSIDE.values(), ids=OUTSIDE)
def test_outside_of_its_graph_a_node_is_no_number(use):
    with static.Graph() as graph:
        x = static.placeholder("x", (3,))
        n = static.placeholder("n", (3,), dtype=torch.int64).sum()
        m = x > 0
    with pytest.raises(RuntimeError, match="no value until its graph is run"):
        use(x, n, m)
    assert (m.shape, m.dtype, len(m), m.numel(), n.dim()) == ((3,), torch.bool, 3, 3, 0)
    assert graph.run([n, m], {"x": [1.0, -1.0, 2.0], "n": [1, 2, 3]})[0] == 6


IN_ANOTHER = {
    "operand": lambda y, u: y + u, "second operand": lambda y, u: u + y, "alone": lambda y, u: y.sin(),
    "into": lambda y, u: torch.zeros(2).copy_(y), "written": lambda y, u: y.mul_(u), "view": lambda y, u: y[0],
    "list": lambda y, u: torch.cat([u, y]), "gradients": lambda y, u: static.gradients(y.sum(), u),
    "memory": lambda y, u: y._array, "data": lambda y, u: y.data, "detached": lambda y, u: y.detach(),
    "placed": lambda y, u: torch.add(torch.ones(2), 1, out=y),
}  # fmt: skip


@pytest.mark.parametrize("use", IN_ANOTHER.values(), ids=IN_ANOTHER)
def test_in_another_graph_a_node_is_no_number(use):
    with static.Graph() as graph:
        x = static.placeholder("x", (2,))
        y = x * 2
    with static.Graph() as other:
        u = static.placeholder("u", (2,), requires_grad=True)
        for node in (x, y):
            with pytest.raises(RuntimeError, match="no value until its graph is run"):
                use(node, u)
        v = u + 1
    assert other.run(v, {u: [0.0, 1.0]}).tolist() == [1, 2]
    with graph:  # which may be built further
        z = y + x
    assert graph.run([y, z], {x: [1.0, 2.0]})[1].tolist() == [3, 6]


def test_threads_take_turns():
    with static.Graph() as graph:
        x = static.placeholder("x", (64,))
        y = (x * 2 + x).sum()

    def ask(number):
        return graph.run(y, {x: torch.full((64,), float(number))}).item() == 3 * 64 * number

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(ask, range(200)))


def test_gradients_of_a_graph_without_values_have_none_either():
    events = events_of(built)
    parts = [event.part for event in events if isinstance(event, GradFlowed)]
    arrived = [grad for event in events if isinstance(event, StepStarted) for grad in event.grads]
    assert parts
    assert arrived
    assert all(value.data is None and value.stats is None for value in (*parts, *arrived) if value is not None)
