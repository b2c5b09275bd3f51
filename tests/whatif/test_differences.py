"""``gradcheck`` of a recorded node: what it sent to its inputs, beside central differences."""

import numpy as np
import pytest
from recording import timeline_of

import gviz.engine as torch
from gviz.errors import GvizError
from gviz.whatif.differences import MOST_ELEMENTS, checked


def recorded(program):
    return timeline_of(program, limit=1 << 30)


def node_of(timeline, op):
    return next(node for node in timeline.nodes if timeline.info(node).op.name.lower() == op)


def test_every_rule_of_a_network_agrees():
    def program():
        torch.manual_seed(0)
        x = torch.randn(4, 3)
        net = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))
        loss = torch.nn.functional.cross_entropy(net(x), torch.tensor([0, 1, 1, 0]))
        (loss + (net[0].weight ** 2).mean()).backward()

    timeline = recorded(program)
    inputs = 0
    for node in timeline.nodes:
        made = timeline.info(node).created
        if made.kind == "op" and made.requires_grad:
            found = checked(timeline, node, len(timeline))
            inputs += len(found)
            assert all(one.agrees.all() for one in found), timeline.info(node).op
    assert inputs > 8


def test_a_gradient_that_a_hook_changed_does_not_agree():
    def program():
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = x * 3
        y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 2, None))
        y.sum().backward()

    timeline = recorded(program)
    (one,) = checked(timeline, node_of(timeline, "mul"), len(timeline))
    assert (one.slot, one.recorded.tolist()) == ("self", [6.0, 6.0])
    np.testing.assert_allclose(one.differences, [3.0, 3.0], atol=1e-6)
    assert not one.agrees.any()


def test_of_many_elements_some_are_tried():
    def program():
        torch.ones(1000, requires_grad=True).exp().sum().backward()

    timeline = recorded(program)
    (one,) = checked(timeline, node_of(timeline, "exp"), len(timeline))
    assert (len(one.places), one.size, one.places[0], one.places[-1]) == (MOST_ELEMENTS, 1000, 0, 999)
    assert one.agrees.all()


def test_the_pass_up_to_the_moment_counts():
    def program():
        x = torch.tensor(3.0, requires_grad=True)
        y = x * x
        y.backward(torch.tensor(2.0), retain_graph=True)
        y.backward(torch.tensor(5.0))

    timeline = recorded(program)
    node, ends = node_of(timeline, "mul"), [end for one in timeline.iterations for end in timeline.pass_ends(one)]
    assert [checked(timeline, node, n)[0].recorded.item() for n in (0, *ends)] == [6.0, 6.0, 15.0]


class Scaled(torch.autograd.Function):
    """``x**2 * w``; the rule of its first input forgets a factor 2."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * x * w, g * x * x


def test_a_function_of_the_program_is_checked_by_what_its_forward_ran():
    def program():
        x = torch.tensor([1.0, -2.0], requires_grad=True)
        w = torch.tensor([3.0, 4.0], requires_grad=True)
        Scaled.apply(x.sin(), w).sum().backward()

    timeline = recorded(program)
    x, w = checked(timeline, node_of(timeline, "scaled"), len(timeline))
    assert w.agrees.all()
    assert not x.agrees.any()
    np.testing.assert_allclose(x.differences, 2 * x.recorded, rtol=1e-5)


class Through(torch.autograd.Function):
    """Computes with numpy, of which nothing is recorded."""

    @staticmethod
    def forward(ctx, x):
        return torch.tensor(x.detach().numpy() ** 3)

    @staticmethod
    def backward(ctx, g):
        return 3 * g


def test_what_cannot_be_checked_says_why():
    def program():
        x = torch.tensor(2.0, requires_grad=True)
        Through.apply(x).backward()
        x * 2

    timeline = recorded(program)
    with pytest.raises(GvizError, match="no rule"):
        checked(timeline, timeline.nodes[0], 1)
    with pytest.raises(GvizError, match="on its own") as refused:
        checked(timeline, node_of(timeline, "through"), 1)
    assert "no operation was recorded" in refused.value.why
    unused = max(n for n in timeline.nodes if timeline.info(n).op.name == "mul")
    with pytest.raises(GvizError, match="no backward pass"):
        checked(timeline, unused, 1)


def test_a_function_that_was_given_a_tensor_twice_is_refused():
    def program():
        x = torch.tensor(2.0, requires_grad=True)
        Scaled.apply(x, x).backward()

    timeline = recorded(program)
    with pytest.raises(GvizError, match="on its own") as refused:
        checked(timeline, node_of(timeline, "scaled"), len(timeline))
    assert "one tensor twice" in refused.value.why
