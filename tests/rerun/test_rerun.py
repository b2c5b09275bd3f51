"""Recorded operations run again: unchanged they are the recording, changed what the program would have done."""

import contextlib
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from engine.random_programs import START, lines
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recording import timeline_of
from rerun.doubled import Doubled
from rerun.rerun_check import deviations, same, the_same_again

import gviz.engine as torch
from gviz.errors import GvizError
from gviz.explain.whatif import branch_of
from gviz.rerun.change_parser import Change
from gviz.rerun.iteration import rerun_iteration
from gviz.trace.timeline import Timeline

SAMPLES = sorted(path for path in Path(__file__).parents[2].joinpath("samples").glob("[01]*.py"))


def recorded(program, limit=1 << 30):
    return timeline_of(program, limit=limit)


def node_named(timeline, name):
    return next(node for node in reversed(timeline.nodes) if timeline.info(node).name == name)


def after(program, text):
    """The recording, and the timeline of the branch of its last iteration."""
    timeline = recorded(program)
    branch = branch_of(timeline, timeline.iterations[-1], [text])
    return timeline, branch, Timeline(branch.log)


def value(branch, other, node, output_nr=0):
    return other.array(other.info(branch.numbers[node]).created.outputs[output_nr].value)


def grad(branch, other, node):
    output = other.at(len(other)).state(branch.numbers[node]).outputs[0]
    return other.array(output.grad if output.grad is not None else output.incoming)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_lesson_run_again_is_the_lesson(path, capsys):
    code = compile(path.read_text(), str(path), "exec")

    def lesson():
        names = {"__name__": "__main__"}
        with contextlib.suppress(RuntimeError):  # a lesson on an error ends with it
            exec(code, names)
        return names

    timeline = recorded(lesson)
    assert list(deviations(timeline)) == []
    assert list(deviations(timeline, lambda *at: list(the_same_again(*at)))) == []


def program(written, start=START):
    """A program of these lines, of which any may fail."""

    def run():
        names = {name: lambda *args: None for name in ("see", "numbers", "print")}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(start.replace("import torch", "import gviz.engine as torch"), names)
            for line in written:
                try:
                    exec(line, names)
                except Exception:  # programs that fail are programs, too
                    continue
        return names

    return run


@settings(max_examples=120, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(lines().filter(lambda line: "hook" not in line and ".data =" not in line), min_size=1, max_size=10))
def test_any_program_run_again_is_the_program(written):
    assert list(deviations(recorded(program(written)))) == []


def is_run_again(line):
    """Whether what a line does is more than its effect on the numbers of the recording."""
    return re.search(r"hook|\.data|\.grad = (?!None)", line) is None


@settings(max_examples=60, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(lines().filter(is_run_again), min_size=1, max_size=8))
def test_a_changed_number_gives_what_the_program_gives_with_that_number(written):
    before = recorded(program(written))
    real = recorded(program(written, START.replace("[1., 2., 3.]", "[1., 7., 3.]", 1)))
    if len(before.iterations) > 1 or [*kinds(before)] != [*kinds(real)]:
        return  # the program went another way: no branch knows
    branch = rerun_iteration(before, before.iterations[0], [Change(before.nodes[0], 7, (0, 1))])
    other = Timeline(branch.log)
    assert not branch.stopped
    for node, truth in zip(before.nodes, real.nodes, strict=True):
        there, here = real.at(len(real)).state(truth), other.at(len(other)).state(branch.numbers[node])
        for a, b in zip(there.outputs, here.outputs, strict=True):
            assert all(same(real, getattr(a, kind), other, getattr(b, kind)) for kind in ("value", "grad", "incoming"))


def kinds(timeline):
    infos = map(timeline.info, timeline.nodes)
    return ((info.op.name, [output.value and output.value.shape for output in info.created.outputs]) for info in infos)


def test_a_changed_leaf_changes_everything_after_it():
    def program():
        x = torch.tensor(4.0, requires_grad=True)
        y = torch.tensor(1.0, requires_grad=True)
        z = x * x + torch.sin(y)
        z.backward()
        return x, y, z

    timeline, branch, other = after(program, "x = 5")
    x, y, z = (node_named(timeline, name) for name in "xyz")
    assert value(branch, other, z) == np.float32(25 + np.sin(np.float32(1)))
    assert (grad(branch, other, x), grad(branch, other, y)) == (10, np.cos(np.float32(1)))
    assert (branch.stopped, branch.unknown) == ((), frozenset())


def test_one_element_of_a_tensor():
    def program():
        w = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        y = (w * w).sum()
        y.backward()
        return w, y

    timeline, branch, other = after(program, "w[0, 1] = 0")
    w, y = node_named(timeline, "w"), node_named(timeline, "y")
    assert value(branch, other, y) == 1 + 9 + 16
    assert grad(branch, other, w).tolist() == [[2, 0], [6, 8]]


def test_the_result_of_an_operation_is_put_in_its_place_and_what_follows_is_computed():
    def program():
        x = torch.tensor(2.0, requires_grad=True)
        h = torch.exp(x)
        y = h * 3.0
        y.backward()
        return x, h, y

    timeline, branch, other = after(program, "h = 10")
    x, y = node_named(timeline, "x"), node_named(timeline, "y")
    assert value(branch, other, y) == 30
    assert grad(branch, other, x) == 30  # the rule of exp uses its result


def test_of_several_results_the_one_that_is_named_is_changed():
    def program():
        x = torch.tensor([2.0, 3.0], requires_grad=True)
        most, where = x.max(0)
        y = most * most
        y.backward()
        return x, most, where, y

    timeline, branch, other = after(program, "most = 10")
    assert value(branch, other, node_named(timeline, "y")) == 100
    assert grad(branch, other, node_named(timeline, "x")).tolist() == [0, 20]
    timeline, branch, other = after(program, "where = 0")
    assert value(branch, other, node_named(timeline, "y")) == 9
    assert value(branch, other, node_named(timeline, "most, where"), output_nr=1) == 0
    assert grad(branch, other, node_named(timeline, "x")).tolist() == [6, 0]
    with pytest.raises(GvizError, match="most, where is several tensors"):
        after(program, "most, where = 10")


def test_a_part_is_no_element():
    def program():
        x = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]], requires_grad=True)
        x0 = x * 1
        parts = x0.chunk(2)
        y = (parts[0] * 2 + parts[1] * 3).sum()
        y.backward()
        return x, x0, parts, y

    for text, result, gradient in (
        ("parts[1] = 0", 2 * 10, [2, 2, 2, 2, 3, 3, 3, 3]),
        ("parts[1][0, 1] = 0", 98 - 18, [2, 2, 2, 2, 3, 3, 3, 3]),
        ("x[1] = 0", 98 - 14, [2, 2, 2, 2, 3, 3, 3, 3]),
        ("grad parts[1] = 7", 98, [2, 2, 2, 2, 7, 7, 7, 7]),
        ("parts[1].grad[0, 1] = 7", 98, [2, 2, 2, 2, 3, 7, 3, 3]),
    ):
        timeline, branch, other = after(program, text)
        assert value(branch, other, node_named(timeline, "y")) == result
        assert grad(branch, other, node_named(timeline, "x")).ravel().tolist() == gradient
    with pytest.raises(GvizError, match=r"there is no x\[0\]"):
        after(program, "x[0][1] = 5")  # as a pattern it would mean x0


def test_a_module_of_a_sequence_is_written_as_in_the_program():
    def program():
        net = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.Linear(2, 1))
        y = net(torch.ones(1, 1)).sum()
        y.backward()
        return net, y

    timeline, branch, other = after(program, "net[0].weight[1, 0] = 5")
    weight = timeline.array(timeline.info(node_named(timeline, "0.weight")).created.outputs[0].value)
    assert value(branch, other, node_named(timeline, "0.weight")).tolist() == [weight[0].tolist(), [5]]


def test_what_a_batch_norm_remembers_changes_with_its_batch():
    def program(first=2.0):
        x = torch.tensor([[first, 5.0], [4.0, 1.0], [6.0, 3.0]])
        mean, variance = torch.zeros(2), torch.ones(2)
        y = torch.nn.functional.batch_norm(x, mean, variance, training=True)
        z = torch.nn.functional.batch_norm(x, mean, variance)
        return x, mean, variance, y, z

    timeline, branch, other = after(program, "x[0, 0] = 9")
    assert list(deviations(timeline)) == []
    *_, truth = program(9.0)
    assert value(branch, other, node_named(timeline, "z")).tolist() == truth.tolist()


def test_a_loss_of_zero_goes_backward():
    def program():
        x = torch.tensor(3.0, requires_grad=True)
        z = x * x
        z.backward()
        return x, z

    timeline, branch, other = after(program, "z = 0")
    x, z = node_named(timeline, "x"), node_named(timeline, "z")
    assert (value(branch, other, z), grad(branch, other, x)) == (0, 6)
    assert grad(*after(program, "x = 0")[1:], x) == 0


def test_an_operation_that_refuses_the_change_stops_the_branch_there():
    def program():
        i = torch.tensor([0, 1])
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = x[i].sum()
        y.backward()
        return i, x, y

    timeline, branch, _ = after(program, "i[0] = 9")
    first, second = branch.stopped
    assert first.why == "it failed: index 9 is out of bounds for axis 0 with size 2"
    assert (second.node, second.of_gradient) == (node_named(timeline, "y"), True)


def test_a_gradient_that_never_arrives_cannot_be_changed():
    def program():
        x = torch.tensor(3.0, requires_grad=True)
        c = torch.tensor(2.0)
        z = x * c
        z.backward()
        return x, c, z

    with pytest.raises(GvizError, match="no gradient arrives at c in this iteration"):
        after(program, "grad c = 1")


def test_a_changed_gradient_goes_on_backward():
    def program():
        x = torch.tensor(3.0, requires_grad=True)
        z = x * x
        loss = z * 1.0
        loss.backward()
        return x, z, loss

    timeline, branch, other = after(program, "grad z = 2")
    assert grad(branch, other, node_named(timeline, "x")) == 12
    assert value(branch, other, node_named(timeline, "loss")) == 9


def test_a_training_step_is_taken_with_the_changed_number():
    def program(start=1.0):
        w = torch.nn.Parameter(torch.tensor([1.0]))
        optimizer = torch.optim.SGD([w], lr=0.5, momentum=0.9)
        x = torch.tensor([start])
        loss = (w * x).sum()
        loss.backward()
        optimizer.step()
        return w, optimizer, x, loss

    timeline, branch, other = after(program, "x = 3")
    w = node_named(timeline, "w")
    final = other.at(len(other)).state(branch.numbers[w]).outputs[0].value
    assert other.array(final).tolist() == [1.0 - 0.5 * 3]


def test_dropped_elements_stay_the_recorded_ones():
    def program():
        torch.manual_seed(1)
        x = torch.ones(8, requires_grad=True)
        y = torch.nn.functional.dropout(x, 0.5)
        y.sum().backward()
        return x, y

    timeline, branch, other = after(program, "x = 3")
    y = node_named(timeline, "y")
    before = timeline.array(timeline.info(y).created.outputs[0].value)
    assert 0 < (before == 0).sum() < 8
    assert value(branch, other, y).tolist() == (3 * before).tolist()


def test_writes_through_views_new_views_and_missing_operands_are_run_again():
    def program():
        x = torch.ones(2, 3, requires_grad=True)
        h = x * 2
        h[0].mul_(x[1])
        torch.nn.functional.leaky_relu_(h[1])
        k = h * 1
        k.unsqueeze_(1)
        y = torch.nn.functional.linear(k, torch.ones(4, 3)).sum()
        y.backward()
        return x, h, k, y

    timeline, branch, other = after(program, "x = -1")
    x, y = node_named(timeline, "x"), node_named(timeline, "y")
    assert (branch.stopped, branch.unknown) == ((), frozenset())
    assert value(branch, other, y) == np.float32(4 * 3 * (-1 * -2 + 0.01 * -2))
    assert grad(branch, other, x)[0].tolist() == [-8, -8, -8]


def test_what_is_not_an_operation_of_the_engine_stops_the_branch_there_only():
    def program():
        x = torch.tensor(1.0, requires_grad=True)
        v = torch.tensor(1.0, requires_grad=True)
        y = Doubled.apply(x)
        z = y * v
        z.backward()
        return x, v, y, z

    timeline, branch, other = after(program, "v = 5")
    x, v, y, z = (node_named(timeline, name) for name in "xvyz")
    assert value(branch, other, z) == 10
    (stop,) = branch.stopped
    assert (stop.node, stop.of_gradient) == (y, True)
    assert "not an operation of the engine" in stop.why
    assert x in branch.unknown
    assert v not in branch.unknown

    timeline, branch, other = after(program, "x = 5")
    assert (branch.stopped[0].node, branch.stopped[0].of_gradient) == (y, False)
    assert z not in branch.numbers


def test_a_value_that_was_not_stored_is_named():
    def program():
        x = torch.ones(1000, requires_grad=True)
        return x, (x * 2).sum()

    timeline = recorded(program, limit=1024)
    branch = rerun_iteration(timeline, timeline.iterations[0], [Change(1, 5)])
    assert branch.stopped[0].node == 1
    assert "--values" in branch.stopped[0].why


def test_memory_that_was_written_to_with_what_is_not_known_is_not_known():
    def source():
        a = torch.ones(2, requires_grad=True)
        c = torch.tensor([3.0, 4.0])
        a.sum().backward()
        c[0] = 7.0  # the view belongs to the iteration before
        y = (c * a).sum()
        y.backward()
        return a, c, y

    timeline = recorded(source)
    branch = rerun_iteration(timeline, timeline.iterations[-1], [])
    known = Timeline(branch.log)
    for node, there in branch.numbers.items():
        recorded_state, state = timeline.at(len(timeline)).state(node), known.at(len(known)).state(there)
        for a, b in zip(recorded_state.outputs, state.outputs, strict=True):
            assert same(timeline, a.value, known, b.value)


def test_a_graph_that_a_pass_built_is_followed():
    def source():
        x = torch.tensor(2.0, requires_grad=True)
        y = x**3
        z = torch.autograd.grad(y, x, create_graph=True)[0] * x
        z.backward(create_graph=True)
        p = x.grad * 2
        return x, y, z, p

    _, branch, other = after(source, "x = 3")
    names = {other.info(node).name: node for node in other.nodes}
    held = {name: other.array(other.at(len(other)).state(names[name]).outputs[0].value) for name in "zp"}
    assert held == {"z": 81, "p": 162}
    assert not branch.stopped


def by_hand():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    x = torch.tensor([1.0, 2.0])
    for _ in range(3):
        loss = ((w * x).sum() - 3) ** 2
        loss.backward()
        with torch.no_grad():
            w -= 0.01 * w.grad
        w.grad.zero_()
    return w, x, loss


def test_a_loop_by_hand_run_again_is_the_loop():
    timeline = recorded(by_hand)
    assert list(deviations(timeline)) == []
    assert list(deviations(timeline, lambda *at: list(the_same_again(*at)))) == []


def test_a_gradient_that_was_let_go_is_not_the_one_that_took_its_place():
    def program():
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        (w * 2).sum().backward()
        held = w.grad + 0  # the gradient itself is met here
        g = w.grad
        for _ in range(2):
            loss = (w * w).sum() + (g * 1).sum()
            w.grad = None
            loss.backward()
        return w, held, g, loss

    timeline = recorded(program)
    assert list(deviations(timeline)) == []
    assert list(deviations(timeline, lambda *at: list(the_same_again(*at)))) == []


def test_what_a_changed_gradient_goes_into_stops_where_it_cannot_be_run():
    def program():
        x = torch.tensor(2.0, requires_grad=True)
        y = x * x
        y.backward()
        z = Doubled.apply(x.grad)
        return x, y, z

    timeline, branch, _ = after(program, "x = 5")
    z = node_named(timeline, "z")
    assert z not in branch.numbers
    assert [stop.node for stop in branch.stopped] == [z]


@pytest.mark.parametrize("change", ["x = [3, 0.5, 2]", "i = 0"])
def test_an_index_that_is_another_number_now_stops_the_branch(change):
    def program():
        x = torch.tensor([1.0, 3.0, 2.0], requires_grad=True)
        i = x.argmax()
        z = x[i] * 2
        z.backward()
        return x, i, z

    timeline, branch, _ = after(program, change)
    i, z = node_named(timeline, "i"), node_named(timeline, "z")
    assert i in branch.numbers
    assert z not in branch.numbers
    assert f"taken out of #{i}" in branch.stopped[0].why
    timeline, branch, other = after(program, "x = [1, 4, 2]")
    assert (branch.stopped, value(branch, other, z)) == ((), 8)


def test_of_a_stopped_node_the_gradient_that_arrives_is_told_and_nothing_beyond_it():
    def program():
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        v = torch.tensor([1.0, 2.0], requires_grad=True)
        y = Doubled.apply(w)
        loss = (y * v).sum()
        loss.backward()
        g = w.grad * 1
        return w, v, y, loss, g

    timeline, branch, other = after(program, "v = [5, 5]")
    w, y, g = (node_named(timeline, name) for name in "wyg")
    assert y not in branch.unknown
    assert grad(branch, other, y).tolist() == [5, 5]
    assert w in branch.unknown
    assert g not in branch.numbers


def test_what_a_hook_changed_is_not_told():
    def program():
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        w.register_hook(lambda g: g * 2)
        for _ in range(2):
            loss = (w * w).sum()
            loss.backward()
            g = w.grad * 1
        return w, loss, g

    timeline, branch, other = after(program, "loss = 1")
    w, loss, g = (node_named(timeline, name) for name in ("w", "loss", "g"))
    assert value(branch, other, loss) == 1
    assert w in branch.unknown
    assert g not in branch.numbers


def test_a_gradient_that_was_assigned_is_not_known_in_a_branch():
    def program():
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        loss = (w * w).sum()
        loss.backward()
        w.grad = w.grad * 0.5
        with torch.no_grad():
            w -= 0.1 * w.grad

    _, branch, other = after(program, "loss = 7")
    assert any("assigned to its .grad" in stopped.why for stopped in branch.stopped)
    assert branch.unknown == {1}
    assert other.at(len(other)).state(branch.numbers[1]).outputs[0].grad.is_known is False


def test_a_view_of_an_earlier_iteration_is_used_where_its_memory_is_written_to_no_more():
    def program():
        a = torch.ones(2, requires_grad=True)
        c = torch.tensor([3.0, 4.0])
        v = c[0]
        c[0] = 7.0
        a.sum().backward()
        y = (v * a).sum()
        y.backward()
        return a, c, v, y

    timeline, branch, other = after(program, "a = [1, 2]")
    assert branch.stopped == ()
    assert value(branch, other, node_named(timeline, "y")) == 21


def trained_with_momentum(last):
    """Three steps, the last of them on `last`; the weights, and the gradient that they end with."""
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    x = torch.tensor([3.0, 4.0])
    optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)
    for number in range(3):
        if number == 2:
            x = torch.tensor(last)
        loss = ((w * x).sum() - 1) ** 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return w, loss


def test_momentum_of_earlier_iterations_goes_on_with_another_gradient():
    timeline, branch, other = after(lambda: trained_with_momentum([3.0, 4.0]), "x = [1, 1]")
    w, _ = trained_with_momentum([1.0, 1.0])
    node = node_named(timeline, "w")
    state = other.at(len(other)).state(branch.numbers[node]).outputs[0]
    assert branch.stopped == ()
    np.testing.assert_array_equal(other.array(state.value), w.detach().numpy())
    np.testing.assert_array_equal(other.array(state.grad), w.grad.numpy())


def test_a_view_of_an_earlier_iteration_is_not_told_where_its_memory_is_also_used_by_another():
    def program():
        a = torch.ones(2, requires_grad=True)
        c = torch.tensor([3.0, 4.0])
        v = c.detach()
        a.sum().backward()
        b = c * a
        v += 1
        y = (c * b).sum()
        return a, c, v, y

    timeline, branch, _ = after(program, "a = [1, 2]")
    assert ["as a view of memory that is written to here" in stopped.why for stopped in branch.stopped] == [True]
    assert branch.forgotten == {timeline.info(node_named(timeline, "c")).created.outputs[0].storage}
