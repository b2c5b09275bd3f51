"""``gradcheck`` of a recorded node: what it sent to its inputs, beside central differences."""

import contextlib

import numpy as np
import pytest
from recording import timeline_of

import gviz
import gviz.engine as torch
from gviz.errors import GvizError
from gviz.rerun.finite_differences import MOST_ELEMENTS, check_gradients


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
            found = check_gradients(timeline, node, len(timeline))
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
    (one,) = check_gradients(timeline, node_of(timeline, "mul"), len(timeline))
    assert (one.slot, one.recorded.tolist()) == ("self", [6.0, 6.0])
    np.testing.assert_allclose(one.differences, [3.0, 3.0], atol=1e-6)
    assert not one.agrees.any()


def test_of_many_elements_some_are_tried():
    def program():
        torch.ones(1000, requires_grad=True).exp().sum().backward()

    timeline = recorded(program)
    (one,) = check_gradients(timeline, node_of(timeline, "exp"), len(timeline))
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
    assert [check_gradients(timeline, node, n)[0].recorded.item() for n in (0, *ends)] == [6.0, 6.0, 15.0]


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
    x, w = check_gradients(timeline, node_of(timeline, "scaled"), len(timeline))
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
        check_gradients(timeline, timeline.nodes[0], 1)
    with pytest.raises(GvizError, match="on its own") as refused:
        check_gradients(timeline, node_of(timeline, "through"), 1)
    assert "no operation of its forward was recorded" in refused.value.why
    unused = max(n for n in timeline.nodes if timeline.info(n).op.name == "mul")
    with pytest.raises(GvizError, match="no backward pass"):
        check_gradients(timeline, unused, 1)


class Weighted(torch.autograd.Function):
    """``x**2 * w``; its rules are right times `factors`, which stand in the class."""

    factors = 1.0, 1.0

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        of_x, of_w = Weighted.factors
        return 2 * g * x * w * of_x, g * x * x * of_w


@pytest.mark.parametrize(
    ("factors", "agree"),
    [((1.0, 1.0), [True, True, True]), ((0.5, 1.0), [False, False, True]), ((1.1, 0.8), [True, False, False])],
)
def test_a_tensor_that_was_given_twice_is_tried_together_and_in_each_place(monkeypatch, factors, agree):
    def program():
        x = torch.tensor([2.0, -3.0], requires_grad=True)
        Weighted.apply(x, x).sum().backward()

    monkeypatch.setattr(Weighted, "factors", factors)
    timeline = recorded(program)
    found = check_gradients(timeline, node_of(timeline, "weighted"), len(timeline))
    assert [(one.slot, one.together) for one in found] == [("x + w", True), ("x", False), ("w", False)]
    assert [one.agrees.all() for one in found] == agree


def test_where_a_tensor_that_was_given_twice_is_used_often_only_the_sum_is_tried():
    class Often(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            return sum((x * n for n in range(8)), w)

        @staticmethod
        def backward(ctx, g):
            return g * 28, g

    def program():
        x = torch.tensor([2.0, -3.0], requires_grad=True)
        Often.apply(x, x).sum().backward()

    timeline = recorded(program)
    (one,) = check_gradients(timeline, node_of(timeline, "often"), len(timeline))
    assert (one.slot, bool(one.agrees.all())) == ("x + w", True)


class Forgetful(torch.autograd.Function):
    """``x**2 + 3 * y``, which sends nothing to `y`."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x)
        return x * x + 3 * y

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0], None


def test_what_was_sent_nothing_that_requires_a_gradient_was_sent_0():
    def program(y):
        x = torch.tensor([1.0, -2.0], requires_grad=True)
        Forgetful.apply(x, y).sum().backward()

    timeline = recorded(lambda: program(torch.tensor([3.0, 4.0], requires_grad=True)))
    x, y = check_gradients(timeline, node_of(timeline, "forgetful"), len(timeline))
    assert x.agrees.all()
    assert (y.slot, y.recorded.tolist(), y.agrees.any()) == ("y", [0.0, 0.0], False)
    timeline = recorded(lambda: program(torch.tensor([3.0, 4.0])))
    assert [one.slot for one in check_gradients(timeline, node_of(timeline, "forgetful"), len(timeline))] == ["x"]


def test_a_pass_that_asks_for_some_inputs_sends_nothing_to_the_others():
    def program():
        x, y = torch.tensor([1.0], requires_grad=True), torch.tensor([2.0], requires_grad=True)
        torch.autograd.grad(Forgetful.apply(x, y).sum(), [x])

    timeline = recorded(program)
    assert [one.slot for one in check_gradients(timeline, node_of(timeline, "forgetful"), len(timeline))] == ["x"]


class Broken(torch.autograd.Function):
    """A backward that raises."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        raise ValueError("no such thing")


def test_a_rule_that_did_not_end_is_refused():
    def program():
        x = torch.tensor([1.0], requires_grad=True)
        with contextlib.suppress(ValueError):
            Broken.apply(x).sum().backward()

    timeline = recorded(program)
    with pytest.raises(GvizError, match="did not end") as refused:
        check_gradients(timeline, node_of(timeline, "broken"), len(timeline))
    assert refused.value.why == "no such thing"


@pytest.mark.torch
def test_under_autocast_only_so_many_digits_are_asked_for(tmp_path):
    torch = pytest.importorskip("torch")

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x @ y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return (g @ y.t().to(g.dtype)).float(), (x.t().to(g.dtype) @ g).float()

    with gviz.record(tmp_path / "t.gviz"):
        torch.manual_seed(0)
        x, y = torch.randn(4, 3, requires_grad=True), torch.randn(3, 2, requires_grad=True)
        with torch.autocast("cpu"):
            made = Product.apply(x, y)
        made.float().sum().backward()
    timeline = gviz.load(tmp_path / "t.gviz")
    found = check_gradients(timeline, node_of(timeline, "product"), len(timeline))
    assert all(one.agrees.all() and one.largest > 1e-4 for one in found)
