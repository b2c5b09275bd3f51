"""Every recorded trace is sound: what an event refers to was announced before it, and every answer can read it."""

import pytest

from gviz import events as e
from gviz.events.graph import Output
from gviz.explain.check import check
from gviz.explain.event_description import description
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline
from tests.adapters.recorded import RELEASE, events_of

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
nan = float("nan")


def unsound(log):
    """What events refer to that was not announced before them, in words."""
    nodes, freed, ops, stacks, scopes, passes, memories = {}, set(), set(), {0}, {0}, {0}, {0}
    found = []

    def expects(known, number, what, seq):
        if number not in known:
            found.append(f"event {seq}, {type(event).__name__}: no {what} {number}")

    def expects_edge(edge, seq, *, gap=False):
        node, output_nr = edge
        if gap and edge == (0, 0):
            return
        expects(nodes, node, "node", seq)
        if node in nodes and output_nr >= nodes[node]:
            found.append(f"event {seq}, {type(event).__name__}: node {node} has no output {output_nr}")

    for seq, event in enumerate(log, 1):
        match event:
            case e.NodeCreated():
                for edge in event.inputs:
                    expects_edge(edge, seq, gap=True)
                for output in event.outputs:
                    assert isinstance(output, Output)
                    if output.view_of:
                        expects(nodes, output.view_of, "node", seq)
                expects(ops, event.op, "op", seq)
                expects(scopes, event.scope, "scope", seq)
                expects(passes, event.during[0], "pass", seq)
                if event.node in nodes:
                    found.append(f"event {seq}: node {event.node} is announced again")
                nodes[event.node] = len(event.outputs)
                memories.update(output.storage for output in event.outputs)
            case e.OpSeen(op=op):
                ops.add(op)
            case e.StackSeen(stack=stack):
                stacks.add(stack)
            case e.ScopeEntered(scope=scope, parent=parent):
                expects(scopes, parent, "scope", seq)
                scopes.add(scope)
            case e.ScopeLeft(scope=scope):
                expects(scopes, scope, "scope", seq)
            case e.BackwardStarted(pass_nr=pass_nr, roots=roots, inputs=inputs):
                for edge in (*roots, *inputs):
                    expects_edge(edge, seq)
                passes.add(pass_nr)
            case e.GradFlowed(source=source, node=node, output_nr=output_nr):
                expects(nodes, source, "node", seq)
                expects_edge((node, output_nr), seq)
            case e.StorageWritten(storage=storage, node=node):
                expects(memories, storage, "memory", seq)
                expects(nodes, node, "node", seq)
            case e.DataSet(node=node, output_nr=output_nr, writer=writer):
                expects_edge((node, output_nr), seq)
                expects(nodes, writer, "node", seq)
            case e.OptimizerStepped(parameters=parameters, skipped=skipped):
                for node in (*parameters, *skipped):
                    expects(nodes, node, "node", seq)
            case e.HookRan(node=node):
                expects(nodes, node, "node", seq)
            case e.NodeFreed(node=node):
                expects(nodes, node, "node", seq)
                freed.add(node)
            case _ if hasattr(event, "node") and not isinstance(event, e.Failed):
                expects_edge((event.node, getattr(event, "output_nr", 0)), seq)
        if hasattr(event, "stack") and not isinstance(event, e.StackSeen):
            expects(stacks, event.stack, "stack", seq)
        if hasattr(event, "pass_nr"):
            expects(passes, event.pass_nr, "pass", seq)
    return found


def leaf(*shape):
    return torch.ones(*shape, requires_grad=True)


def seeds_without_a_node():
    """Deterministic algorithms fill new tensors with nan; ``make_graphed_callables`` warms up with such seeds."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        m = torch.nn.Linear(3, 1)
        y = m(torch.ones(2, 3))
        torch.autograd.grad((y,), tuple(m.parameters()), grad_outputs=(torch.empty_like(y),))
    finally:
        torch.use_deterministic_algorithms(before)


def hidden(program):
    def within():
        with torch._C.DisableTorchFunction():
            return program()

    within.__name__ = f"hidden_{program.__name__}"
    return within


def nan_seed_made_unseen():
    y = leaf(2) * 2
    with torch._C.DisableTorchFunction():
        seed = torch.full((2,), nan)
    y.backward(seed)


def nan_seed_of_an_edge():
    x = leaf(2)
    with torch._C.DisableTorchFunction():
        seed = torch.full((2,), nan)
    torch.autograd.grad(torch.autograd.graph.get_gradient_edge(x * 2), x, seed)


def nan_in_the_second_seed():
    x = leaf(2)
    with torch._C.DisableTorchFunction():
        seed = torch.full((2,), nan)
    torch.autograd.backward([x * 2, x * 3], [torch.ones(2), seed])


def nan_of_a_hook():
    y = leaf(2) * 2
    y.register_hook(lambda grad: grad * nan)
    y.sum().backward()


def nan_of_a_node_hook():
    y = leaf(2) * 2
    y.grad_fn.register_hook(lambda given, grads: (given[0] * nan, None))
    y.sum().backward()


def nan_of_a_module_hook():
    m = torch.nn.Linear(2, 1)
    m.register_full_backward_hook(lambda module, given, grads: (given[0] * nan,))
    m(leaf(3, 2)).mean().backward()


def nan_assigned_to_a_grad():
    x = leaf(2)
    with torch._C.DisableTorchFunction():
        grad = torch.full((2,), nan)
    x.grad = grad


def nan_retained():
    x = leaf(2)
    y = x * 0
    y.retain_grad()
    y.sqrt().mul(0).sum().backward(inputs=[y])


def nan_in_grad_alone():
    x = torch.zeros(2, requires_grad=True)
    torch.autograd.grad(x.sqrt().mul(0).sum(), x)


def nan_in_other_data():
    x = leaf(2)
    _ = x * 2
    with torch._C.DisableTorchFunction():
        data = torch.full((2,), nan)
    x.data = data


def a_graph_made_unseen():
    x = leaf(3)
    with torch._C.DisableTorchFunction():
        y = (x * 2).split(1)
    (y[1] * 3).sum().backward(retain_graph=True)
    y[0].sum().backward()


def gradient_of_a_gradient():
    x = leaf(2)
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    torch.autograd.grad(g.sum(), x)


def views_of_one_leaf():
    x = leaf(4, 4)
    a, b = x.unbind(0)[1:3]
    c = x.t()[1:]
    (a * b + c[0]).sum().backward()


def batched_gradients():
    x = leaf(3)
    y = x * 2
    torch.autograd.grad(y, x, torch.eye(3), is_grads_batched=True)


def transforms():
    torch.func.vmap(torch.func.grad(lambda x: x.sin().sum()))(torch.ones(3, 2))
    torch.func.jvp(torch.sin, (torch.ones(2),), (torch.ones(2),))
    torch.func.functional_call(torch.nn.Linear(2, 2), {}, (torch.ones(2),)).sum().backward()


def recomputed():
    from torch.utils.checkpoint import checkpoint

    m = torch.nn.Linear(2, 2)
    for reentrant in (True, False):
        checkpoint(m, leaf(1, 2), use_reentrant=reentrant).sum().backward()


def tensors_of_a_compiled_graph():
    exported = torch.jit.trace(lambda x: x * 2 + 1, torch.ones(2))
    exported(leaf(2)).sum().backward()


def forgotten_between():
    x = leaf(2)
    for _ in range(3):
        x = (x * 2).detach().requires_grad_()
        x.sum().backward()


def other_memory():
    x, y = leaf(2), leaf(2)
    x.data, y.data = y.data, x.data
    (x * y).sum().backward()
    torch.utils.swap_tensors(torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.zeros(2)))


def an_error_within_a_pass():
    y = leaf(2) * 2
    y.register_hook(lambda grad: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.sum().backward()


def an_lstm():
    m = torch.nn.LSTM(2, 3, 2)
    optimizer = torch.optim.Adam(m.parameters())
    for _ in range(2):
        optimizer.zero_grad()
        m(torch.ones(4, 1, 2))[0].sum().backward()
        optimizer.step()


def moved_to_meta():
    x = leaf(2)
    (x.to("meta") * 2).sum()
    torch.nn.Linear(2, 2, device="meta").to_empty(device="cpu")(torch.ones(1, 2)).sum().backward()


def sparse_gradients():
    m = torch.nn.Embedding(5, 2, sparse=True)
    m(torch.tensor([1, 1, 2])).sum().backward()
    torch.optim.SparseAdam(list(m.parameters())).step()


TO_EDGES = (nan_seed_of_an_edge,) if RELEASE >= (2, 6) else ()
"""Older releases of PyTorch fail where an edge is given a seed."""

PROGRAMS = (
    seeds_without_a_node, nan_seed_made_unseen, *TO_EDGES, nan_in_the_second_seed, nan_of_a_hook,
    nan_of_a_node_hook, nan_of_a_module_hook, nan_assigned_to_a_grad, nan_retained, nan_in_grad_alone,
    nan_in_other_data, a_graph_made_unseen, gradient_of_a_gradient, views_of_one_leaf, batched_gradients, transforms,
    recomputed, tensors_of_a_compiled_graph, forgotten_between, other_memory, an_error_within_a_pass, an_lstm,
    moved_to_meta, sparse_gradients,
)  # fmt: skip
HIDDEN = (gradient_of_a_gradient, views_of_one_leaf, forgotten_between, an_lstm, nan_in_grad_alone, sparse_gradients)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", [*PROGRAMS, *map(hidden, HIDDEN)], ids=lambda program: program.__name__)
def test_a_trace_is_sound_and_every_answer_can_read_it(program):
    log = events_of(program)
    assert unsound(log) == []
    timeline = Timeline(MemoryLog(log))
    check(timeline)
    for n in range(len(timeline) + 1):
        description(timeline, timeline.at(n))


@pytest.mark.parametrize(
    ("program", "kind"),
    [
        (seeds_without_a_node, "nan-seed"), (nan_seed_made_unseen, "nan-seed"),
        *((program, "nan-seed") for program in TO_EDGES),
        (nan_in_the_second_seed, "nan-seed"), (nan_in_grad_alone, "nan-born-backward"),
    ],
)  # fmt: skip
def test_where_a_nan_begins_that_no_node_made(program, kind):
    """The first event that holds it may be about no node, and ``autograd.grad`` may be all that it reaches."""
    found = [one for one in check(Timeline(MemoryLog(events_of(program)))) if one.finding.kind == kind]
    assert [one.level for one in found] == ["error"]
    assert all("has stopped it" not in part.text for one in found for part in one.finding.parts)
