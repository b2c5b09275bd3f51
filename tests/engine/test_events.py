"""What a program says: of operations, writes, passes, gradients."""

import copy
import threading

import numpy as np
import pytest
from heard import Heard, number
from recording import events_of

import gviz.engine as torch
from gviz import emit
from gviz import events as e
from gviz.trace.event_log import MemoryLog


def leaf(*data):
    return torch.tensor(list(data) if len(data) != 1 else data[0], requires_grad=True)


def test_an_operation_says_what_it_is_and_what_it_was_given():
    def program():
        x = leaf(1.0, 2.0)
        return x, (x * 3).sum(0, keepdim=True)

    heard = Heard(program)
    product, total = heard.created("mul"), heard.created("sum")
    x, three = (heard.nodes[node] for node, _ in product.inputs)
    assert (x.kind, x.requires_grad, number(x.outputs[0].value)) == ("leaf", True, [1.0, 2.0])
    assert (three.kind, three.attrs, number(three.outputs[0].value)) == ("constant", (("number", True),), 3.0)
    assert (product.kind, product.untracked, product.requires_grad) == ("op", "", True)
    assert number(product.outputs[0].value) == [3.0, 6.0]
    assert total.inputs == ((product.node, 0),)
    assert total.attrs == (("dim", (0,)), ("keepdim", True))
    seen = heard.ops[product.op]
    assert (seen.grad_fn, seen.slots, seen.rules) == ("MulBackward0", ("self", "other"), ("g * other", "g * self"))
    assert heard.grad_fn(total.node) == "SumBackward1"


def test_where_it_happened_is_line_and_column():
    def program():
        x = leaf(1.0)
        return x * x + x

    heard = Heard(program)
    stacks = MemoryLog(heard.all(e.StackSeen)).stacks
    inner, outer = (stacks[heard.created(name).stack][0] for name in ("mul", "add"))
    assert (inner.path, inner.line) == (__file__, program.__code__.co_firstlineno + 2)
    assert inner.column == outer.column
    assert inner.end_column < outer.end_column
    assert heard.all(e.SourceSeen)[0].path == __file__
    assert all(frame.path.find("gviz/engine") < 0 for frames in stacks.values() for frame in frames)


def test_several_outputs_and_list_arguments():
    def program():
        a, b = torch.split(leaf(1.0, 2.0, 3.0), [1, 2])
        return a, b, torch.cat([b, a, b])

    heard = Heard(program)
    split, joined = heard.created("split_with_sizes"), heard.created("cat")
    assert [number(o.value) for o in split.outputs] == [[1.0], [2.0, 3.0]]
    assert joined.inputs == ((split.node, 1), (split.node, 0), (split.node, 1))
    assert {o.storage for o in split.outputs} == {heard.nodes[heard.leaves()[0]].outputs[0].storage}
    assert [(o.view_of, o.offset) for o in split.outputs] == [(heard.leaves()[0], 0), (heard.leaves()[0], 1)]


def detached(x):
    return x.detach() * 1


def under_no_grad(x):
    with torch.no_grad():
        return x * 1


@pytest.mark.parametrize(
    ("name", "make", "reason"),
    [
        ("mul", lambda x: x * 1, ""),
        ("mul", under_no_grad, "no_grad"),
        ("mul", torch.inference_mode()(lambda x: x * 1), "inference"),
        ("detach", detached, "detach"),
        ("mul", detached, "inputs"),
        ("data", lambda x: x.data, "data"),
        ("gt", lambda x: x > 0, "dtype"),
        ("to", lambda x: x.int(), "dtype"),
        ("add", lambda x: torch.ones(2) + 1, "inputs"),
    ],
)
def test_an_operation_that_is_not_recorded_says_why(name, make, reason):
    created = Heard(lambda: make(leaf(1.0, 2.0))).created(name)
    assert (created.untracked, created.requires_grad) == (reason, not reason)


@pytest.mark.parametrize(
    ("name", "make", "reason"),
    [
        ("tensor", lambda x: torch.tensor([x[0], 2, x[1]]), "numbers"),
        ("tensor", lambda x: torch.tensor([[x[0].detach()], [x[1]]], dtype=torch.float64), "numbers"),
        ("tensor", lambda x: torch.tensor([True, x[0] > 0]), "inputs"),
        ("as_tensor", lambda x: torch.as_tensor((x[0], x[1])), "numbers"),
        ("asarray", lambda x: torch.asarray([x[0]]), "numbers"),
        ("tensor", torch.no_grad()(lambda x: torch.tensor([x[0]])), "no_grad"),
    ],
)
def test_data_with_tensors_in_it_is_made_of_them(name, make, reason):
    heard = Heard(lambda: make(leaf(1.0, 2.0)))
    (made,) = [node for node in heard.nodes.values() if heard.ops[node.op].name == name and node.kind == "op"]
    assert (made.untracked, made.requires_grad) == (reason, False)
    assert {heard.ops[heard.nodes[node].op].name for node, _ in made.inputs} <= {"select", "detach", "gt"}


def test_data_that_requires_a_gradient_is_a_leaf_whatever_its_numbers_are_of():
    heard = Heard(lambda: torch.tensor([leaf(1.0, 2.0)[1]], requires_grad=True).sum())
    made = heard.nodes[heard.created("sum").inputs[0][0]]
    assert (made.kind, made.inputs) == ("leaf", ())


def test_every_contribution_to_a_fan_out_is_said_with_the_sum_so_far():
    def program():
        x = leaf(3.0)
        z = x * x + x
        z.backward()
        return x, z

    heard = Heard(program)
    (x,) = heard.leaves()
    flows = [f for f in heard.all(e.GradFlowed) if f.node == x]
    product, total = heard.node("mul"), heard.node("add")
    assert [(f.source, f.slot, number(f.part), number(f.total)) for f in flows] == [
        (total, 1, 1.0, None),
        (product, 0, 3.0, 4.0),
        (product, 1, 3.0, 7.0),
    ]
    (accumulated,) = heard.all(e.GradAccumulated)
    assert (accumulated.node, number(accumulated.part), accumulated.value) == (x, 7.0, None)


def test_a_pass_is_told_in_order():
    def program():
        x = leaf(3.0)
        z = (x * 2).exp()
        z.backward()
        return x, z

    heard = Heard(program)
    exp, mul, (x,) = heard.node("exp"), heard.node("mul"), heard.leaves()
    (start,) = heard.all(e.BackwardStarted)
    assert (start.roots, [number(s) for s in start.seeds], start.retain_graph, start.create_graph, start.inputs) == (
        ((exp, 0),), [1.0], False, False, ()
    )  # fmt: skip
    told = [
        (type(event).__name__, getattr(event, "node", 0))
        for event in heard.between(e.BackwardStarted, e.BackwardFinished)
        if not isinstance(event, e.NodeFreed)  # the number 2 dies with what was saved
    ]
    assert told == [
        ("StepStarted", exp), ("GradFlowed", mul), ("SavedFreed", exp), ("StepFinished", exp),
        ("StepStarted", mul), ("GradFlowed", x), ("SavedFreed", mul), ("StepFinished", mul),
        ("GradAccumulated", x),
    ]  # fmt: skip


def test_accumulation_across_passes_says_part_and_sum():
    def program():
        x = leaf(3.0)
        for factor in (2.0, 5.0):
            (x * factor).backward()
        return x

    first, second = Heard(program).all(e.GradAccumulated)
    assert (number(first.part), first.value, first.pass_nr) == (2.0, None, 1)
    assert (number(second.part), number(second.value), second.pass_nr) == (5.0, 7.0, 2)


def test_a_retained_graph_frees_nothing():
    def program():
        x = leaf(3.0)
        y = x.exp()
        y.backward(retain_graph=True)
        assert len(freed) == 0
        y.backward()
        return x, y

    freed = []
    heard = Heard(program)
    starts = [event.retain_graph for event in heard.all(e.BackwardStarted)]
    assert starts == [True, False]
    assert [f.node for f in heard.all(e.SavedFreed)] == [heard.node("exp")]
    position = heard.events.index(heard.all(e.SavedFreed)[0])
    assert position > heard.events.index(heard.all(e.BackwardFinished)[0])


def test_a_gradient_of_the_wrong_shape_is_said_as_its_input_has_it():
    def program():
        a, b = torch.ones(2, 3, requires_grad=True), torch.ones(3, requires_grad=True)
        (a * b).sum().backward()
        return a, b

    heard = Heard(program)
    a, b = heard.leaves()
    parts = {f.node: f.part.shape for f in heard.all(e.GradFlowed)}
    assert (parts[a], parts[b]) == ((2, 3), (3,))


def test_retained_and_captured_gradients():
    def program():
        x = leaf(3.0)
        y = x * 2
        y.retain_grad()
        z = y * y
        z.backward(retain_graph=True)
        torch.autograd.grad(z, [x, y])
        return x, y, z

    heard = Heard(program)
    (x,), (product, square) = heard.leaves(), heard.named("mul")
    kept, _ = heard.all(e.GradRetained)
    assert (kept.pass_nr, kept.node, kept.output_nr, number(kept.value)) == (1, product, 0, 12.0)
    assert {(c.pass_nr, c.node, number(c.value)) for c in heard.all(e.GradCaptured)} == {
        (2, x, 24.0),
        (2, product, 12.0),
    }
    assert [a.pass_nr for a in heard.all(e.GradAccumulated)] == [1]
    assert heard.all(e.BackwardStarted)[1].inputs == ((x, 0), (product, 0))
    assert square


def test_hooks_say_what_they_returned():
    def double(g):
        return g * 2

    def program():
        x = leaf(3.0)
        x.register_hook(double)
        x.register_hook(lambda g: None)
        (x * 5).backward()
        return x

    heard = Heard(program)
    runs = [(h.node, h.when, h.name, number(h.value)) for h in heard.all(e.HookRan)]
    (x,) = heard.leaves()
    assert runs == [(x, "tensor", "double", 10.0), (x, "tensor", "<lambda>", None)]
    assert number(heard.all(e.GradAccumulated)[0].part) == 10.0


def clear_to_none(x):
    x.grad = None


def clear_assigned(x):
    x.grad = torch.ones(())


def clear_by_optimizer(x):
    torch.optim.SGD([x], lr=0.1).zero_grad()


def clear_by_deleting(x):
    del x.grad


@pytest.mark.parametrize(
    ("change", "how", "value"),
    [
        (clear_to_none, "none", None),
        (clear_by_deleting, "none", None),
        (clear_by_optimizer, "none", None),
        (lambda x: torch.optim.SGD([x], lr=0.1).zero_grad(set_to_none=False), "zero", 0.0),
        (lambda x: x.grad.zero_(), "zero", 0.0),
        (lambda x: x.grad.mul_(10), "in place", 20.0),
        (clear_assigned, "assigned", 1.0),
    ],
)
def test_changes_of_a_gradient_outside_a_pass_are_said(change, how, value):
    def program():
        x = leaf(3.0)
        (x * 2).backward()
        change(x)
        return x

    heard = Heard(program)
    assert [(s.node, s.how, number(s.value)) for s in heard.all(e.GradSet)] == [(heard.leaves()[0], how, value)]


def write_an_element(x):
    x.grad[0] = 9


def share_the_gradient(x):
    other = leaf(0.0, 0.0)
    other.grad = x.grad
    other.grad.mul_(5)
    return other


def assign_part_of_a_tensor(x):
    flat = torch.zeros(4)
    x.grad = flat[1:3]
    flat.add_(1)


@pytest.mark.parametrize(
    ("write", "last"),
    [
        (lambda x: x.grad.data.zero_(), [("zero", [0.0, 0.0])]),
        (lambda x: x.grad.detach()[1:].zero_(), [("in place", [2.0, 0.0])]),
        (write_an_element, [("in place", [9.0, 4.0])]),
        (share_the_gradient, [("in place", [10.0, 20.0])] * 2),
        (assign_part_of_a_tensor, [("in place", [1.0, 1.0])]),
    ],
)
def test_a_write_through_any_alias_of_a_gradient_changes_it(write, last):
    def program():
        x = leaf(1.0, 2.0)
        (x * x).sum().backward()
        return x, write(x)

    heard = Heard(program)
    sets = [s for s in heard.all(e.GradSet) if s.how != "assigned"]
    assert [(s.how, number(s.value)) for s in sets] == last
    assert {s.node for s in sets} == set(heard.leaves())


def test_a_tensor_brings_the_gradient_it_has():
    x = leaf(3.0)
    (x * 2).backward()

    def program():
        twin = copy.deepcopy(x)
        twin.grad.zero_()
        return x * 1, twin

    heard = Heard(program)
    first, second = heard.leaves()
    told = [(s.node, s.how, number(s.value)) for s in heard.all(e.GradSet)]
    assert told == [(first, "assigned", 2.0), (first, "zero", 0.0), (second, "assigned", 2.0)]


def test_a_gradient_that_is_no_longer_one_may_be_written():
    def program():
        x = leaf(1.0)
        (x * x).sum().backward()
        old = x.grad.detach()
        x.grad = None
        return x, old.zero_()

    assert [s.how for s in Heard(program).all(e.GradSet)] == ["none"]


def test_accumulating_writes_the_memory_of_a_gradient_in_use():
    def program():
        x = leaf(1.0)
        (x * 2).backward()
        doubled = x.grad * 2
        (x * 3).backward()
        return x, doubled

    heard = Heard(program)
    (x,), (write,) = heard.leaves(), heard.all(e.StorageWritten)
    (grad,) = [created for created in heard.nodes.values() if ("grad_of", x) in created.attrs]
    assert (write.storage, write.node, number(write.value)) == (grad.outputs[0].storage, x, [5.0])
    assert heard.all(e.GradSet) == []


def test_a_write_says_the_memory_afterwards_and_makes_a_node():
    def program():
        x = leaf(1.0, 2.0)
        y = x * 1
        y.add_(10)
        return x, y, y * 2

    heard = Heard(program)
    (write,) = heard.all(e.StorageWritten)
    add = heard.created("add_")
    assert (write.node, write.version, number(write.value)) == (add.node, 1, [11.0, 12.0])
    assert write.storage == heard.nodes[heard.named("mul")[0]].outputs[0].storage == add.outputs[0].storage
    assert heard.nodes[heard.named("mul")[1]].inputs[0] == (add.node, 0)


def test_a_write_to_a_view_is_a_new_node_of_its_base():
    def program():
        y = torch.zeros(3)
        x = leaf(5.0)
        y[1] = x * 2
        y.sum().backward()
        return y, x

    heard = Heard(program)
    (write,) = heard.all(e.StorageWritten)
    assert number(write.value) == [0.0, 10.0, 0.0]
    written = heard.nodes[write.node]
    assert heard.grad_fn(write.node) == "CopySlices"
    assert number(written.outputs[0].value) == [0.0, 10.0, 0.0]
    assert written.inputs[1] == (heard.node("mul"), 0)
    assert [number(a.part) for a in heard.all(e.GradAccumulated)] == [2.0]
    steps = [s.node for s in heard.all(e.StepStarted)]
    assert steps == [heard.node("sum"), write.node, heard.node("mul")]


def test_an_untracked_write_leaves_a_leaf_the_node_it_is():
    def program():
        x = leaf(1.0, 2.0)
        with torch.no_grad():
            x.add_(1)
        return x, x * 2

    heard = Heard(program)
    assert heard.created("add_").untracked == "no_grad"
    assert heard.created("mul").inputs[0] == (heard.leaves()[0], 0)
    assert number(heard.all(e.StorageWritten)[0].value) == [2.0, 3.0]


def test_writes_through_detach_and_data_are_writes_to_the_same_memory():
    def program():
        x = leaf(1.0, 2.0)
        x.detach().mul_(2)
        x.data.mul_(3)
        return x

    heard = Heard(program)
    first, second = heard.all(e.StorageWritten)
    storage = heard.nodes[heard.leaves()[0]].outputs[0].storage
    assert (first.storage, number(first.value)) == (storage, [2.0, 4.0])
    assert (second.storage, number(second.value)) == (storage, [6.0, 12.0])


@pytest.mark.parametrize("make", [lambda: torch.zeros(2), lambda: torch.zeros(4)[1:3]])
def test_memory_given_by_data_is_written_through_both_tensors(make):
    def program():
        x, value = leaf(1.0, 2.0), make()
        x.data = value
        value.add_(5)
        x.data.mul_(2)
        x.data = torch.ones(2)
        value.zero_()
        return x, value

    heard = Heard(program)
    x = heard.leaves()[0]
    assert number(heard.nodes[x].outputs[0].value) == [1.0, 2.0]
    values = [number(given.value) for given in heard.all(e.DataSet) if given.node == x]
    assert values == [[0.0, 0.0], [5.0, 5.0], [10.0, 10.0], [1.0, 1.0]]
    storage = heard.nodes[x].outputs[0].storage
    assert not [written for written in heard.all(e.StorageWritten) if written.storage == storage]


def test_switching_requires_grad_is_said():
    def program():
        x = torch.ones(2)
        x.requires_grad_()
        x.requires_grad_()
        x.requires_grad = False
        return x

    assert [s.requires_grad for s in Heard(program).all(e.RequiresGradSet)] == [True, False]


def test_gradients_of_gradients_say_during_which_step_they_were_made():
    def program():
        x = leaf(3.0)
        y = x.exp()
        y.backward(create_graph=True)
        return x, y

    heard = Heard(program)
    exp, mul = heard.node("exp"), heard.created("mul")
    assert heard.nodes[exp].during == (0, 0)
    assert mul.during == (1, exp)
    assert mul.requires_grad
    assert heard.all(e.BackwardStarted)[0].create_graph


def test_a_failing_pass_says_so_and_keeps_what_ran():
    def program():
        x, w = leaf(1.0), leaf(2.0)
        y = x.exp()
        z = w * w + y
        y.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.backward()
        return x, w, z

    heard = Heard(program)
    (end,) = heard.all(e.BackwardFinished)
    assert end.error.startswith("one of the variables needed for gradient computation")
    assert heard.all(e.StepStarted)[-1].node == heard.node("exp")
    assert heard.node("exp") not in [s.node for s in heard.all(e.StepFinished)]


def test_a_graph_made_before_the_recording_is_said_without_values():
    x = leaf(3.0)
    y = x.exp() * 2

    heard = Heard(lambda: y.backward())
    late = {heard.ops[c.op].grad_fn: c for c in heard.nodes.values()}
    assert late["MulBackward0"].outputs[0].value is None
    assert late["MulBackward0"].inputs[0] == (late["ExpBackward0"].node, 0)
    (start,) = heard.all(e.BackwardStarted)
    assert start.roots == ((late["MulBackward0"].node, 0),)
    (accumulated,) = heard.all(e.GradAccumulated)
    assert number(heard.nodes[accumulated.node].outputs[0].value) == 3.0


def test_two_recordings_of_one_program_read_the_same():
    def program():
        x = leaf(3.0)
        (x * x).sin().backward()
        return x

    kept = leaf(1.0) * 2
    for repeated in (program, lambda: kept * 2):
        first, second = [events_of(repeated) for _ in range(2)]
        assert first == second


def test_large_values_are_statistics_unless_asked_for():
    def program():
        return torch.ones(1000)

    short, long = (Heard(program, limit=limit).nodes[1].outputs[0].value for limit in (1024, 10_000))
    assert (short.data, short.stats.mean) == (None, 1.0)
    assert number(long) == np.ones(1000).tolist()


def test_threads_speak_one_after_the_other_and_keep_their_modes():
    def work():
        x = leaf(3.0)
        for _ in range(20):
            (x * x).backward()

    def program():
        threads = [threading.Thread(target=work) for _ in range(3)]
        with torch.no_grad():
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    heard = Heard(program)
    assert len(heard.nodes) == len(heard.all(e.NodeCreated))
    assert len(heard.all(e.GradAccumulated)) == 60
    assert {c.untracked for c in heard.nodes.values()} == {""}
    assert sorted(s.pass_nr for s in heard.all(e.BackwardStarted)) == list(range(1, 61))


def test_an_error_in_a_listener_reaches_the_program():
    def listen(event):
        raise OSError("no")

    with emit.listening(emit.Channel(listen)), pytest.raises(OSError, match="no"):
        torch.ones(1)
    assert emit.channel is None


def test_what_cannot_be_differentiated_twice_is_a_node_and_raises_as_it_does_unheard():
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    def program():
        x = leaf(1.0, 2.0)
        (sent,) = torch.autograd.grad((Once.apply(x) * x).sum(), x, create_graph=True)
        with pytest.raises(RuntimeError, match="differentiate twice"):
            sent.sum().backward()

    heard = Heard(program)
    assert heard.grad_fn(heard.created("error").node) == "torch::autograd::Error"
