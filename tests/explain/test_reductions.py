"""How a loss reads: what it makes of its elements, and what each of them sends back."""

import pytest
from recording import timeline_of

import gviz.engine as torch
from gviz.explain.computation import computation
from gviz.explain.shares import shares

F = torch.nn.functional


def read(loss, **options):
    """Formula and rule of a loss of five rows of three, of which one is left out where it is of classes."""

    def program():
        x = torch.rand(5, 3).requires_grad_()
        target = torch.tensor([0, 1, 2, -100, 1]) if loss is F.nll_loss else torch.rand(5, 3)
        loss(x, target, **options).sum().backward()

    timeline = timeline_of(program)
    node = next(node for node in timeline.nodes if timeline.info(node).op.name == loss.__name__)
    first = shares(timeline, timeline.at(len(timeline)), node)[0]
    return computation(timeline, node).formula, first.rule, first.numbers


@pytest.mark.parametrize(("loss", "options", "formula", "rule"), [
    (F.mse_loss, {}, "mean of (", "g / number of elements * 2 * ("),
    (F.mse_loss, {"reduction": "sum"}, "sum of (", "g * 2 * ("),
    (F.mse_loss, {"reduction": "none"}, "(x - target)**2", "g * 2 * ("),
    (F.binary_cross_entropy, {"reduction": "sum"}, "-sum of ", "g * ("),
    (F.binary_cross_entropy_with_logits, {}, "mean binary cross entropy of ", "g / number of elements * (sigmoid("),
    (F.nll_loss, {}, "-mean of ", "-g / number of targets at the class"),
    (F.nll_loss, {"reduction": "sum"}, "-sum of ", "-g at the class"),
    (F.nll_loss, {"weight": torch.ones(3)}, "-mean of ", "-g * [1 1 1] / sum of weights at the class"),
])  # fmt: skip
def test_a_loss_says_what_its_reduction_and_weights_make_of_it(loss, options, formula, rule):
    torch.manual_seed(0)
    said, sent, _ = read(loss, **options)
    assert said.startswith(formula)
    assert sent.startswith(rule)
    assert said.endswith(", weighted by [1 1 1]") == ("weight" in options)


def test_elements_and_targets_are_counted():
    torch.manual_seed(0)
    assert " / 15 * 2 * (" in read(F.mse_loss)[2]
    assert " / 4 at the class" in read(F.nll_loss)[2]
