"""How a loss reads: what it makes of its elements, and what each of them sends back."""

import pytest
from recording import timeline_of

import gviz.engine as torch
from gviz.explain.outgoing_gradients import outgoing_gradients
from gviz.explain.value_computation import computation

F = torch.nn.functional


def read(loss, **options):
    """Formula and rule of a loss of five rows of three, of which one is left out where it is of classes."""

    def program():
        x = torch.rand(5, 3).requires_grad_()
        y = torch.tensor([0, 1, 2, -100, 1]) if loss is F.nll_loss else torch.rand(5, 3)
        loss(x, y, **options).sum().backward()

    timeline = timeline_of(program)
    node = next(node for node in timeline.nodes if timeline.info(node).op.name == loss.__name__)
    first = outgoing_gradients(timeline, timeline.at(len(timeline)), node)[0]
    return computation(timeline, node).formula, first.rule, first.numbers


@pytest.mark.parametrize(("loss", "options", "formula", "rule"), [
    (F.mse_loss, {}, "mean of (", "g / number of elements * 2 * ("),
    (F.mse_loss, {"reduction": "sum"}, "sum of (", "g * 2 * ("),
    (F.mse_loss, {"reduction": "none"}, "(x - y)**2", "g * 2 * ("),
    (F.binary_cross_entropy, {"reduction": "sum"}, "-sum of ", "g * ("),
    (F.binary_cross_entropy_with_logits, {}, "mean binary cross entropy of ", "g / number of elements * (sigmoid("),
    (F.binary_cross_entropy, {"reduction": "none"}, "-(y * log(", "g * ("),
    (F.binary_cross_entropy, {"weight": torch.ones(3)}, "-mean of ", "g * #5 / number of elements * ("),
    (F.nll_loss, {}, "-mean of ", "-g / number of targets at the class"),
    (F.nll_loss, {"reduction": "sum"}, "-sum of ", "-g at the class"),
    (F.nll_loss, {"weight": torch.ones(3)}, "-mean of ", "-g * options['weight'] / sum of weights at the class"),
])  # fmt: skip
def test_a_loss_says_what_its_reduction_and_weights_make_of_it(loss, options, formula, rule):
    torch.manual_seed(0)
    said, sent, _ = read(loss, **options)
    assert said.startswith(formula)
    assert sent.startswith(rule)
    assert (", weighted by " in said) == ("weight" in options)


def test_elements_and_targets_are_counted():
    torch.manual_seed(0)
    assert " / 15 * 2 * (" in read(F.mse_loss)[2]
    assert " / 4 at the class" in read(F.nll_loss)[2]


LIMITS = {
    "both": (lambda x: x.clamp(torch.tensor(0.5), torch.tensor(1.0)), "at least 0.5, at most 1"),
    "below": (lambda x: x.clamp(min=torch.tensor(0.5)), "at least 0.5"),
    "above": (lambda x: x.clamp(max=torch.tensor(0.5)), "at most 0.5"),
    "a number": (lambda x: x.clamp(max=0.5), "at most 0.5"),
}


@pytest.mark.parametrize(("limited", "said"), LIMITS.values(), ids=LIMITS)
def test_a_limit_that_was_not_given_is_not_told(limited, said):
    def program():
        x = torch.zeros(2, requires_grad=True)
        return x, limited(x)

    timeline = timeline_of(program)
    assert computation(timeline, timeline.nodes[-1]).formula == f"[0 0] (x), {said}"


def test_a_write_through_a_view_reads_as_it_was_told():
    def program():
        x = torch.zeros(3) + torch.zeros(3, requires_grad=True)
        x[1:].clamp_(max=0.5)
        return x

    timeline = timeline_of(program)
    written = next(node for node in timeline.nodes if timeline.info(node).op.grad_fn == "CopySlices")
    assert computation(timeline, written).formula.endswith("its part now [0 0 0] (x), at most 0.5")


def test_classes_are_counted():
    torch.manual_seed(0)

    def program():
        x = torch.rand(5, 3).requires_grad_()
        F.multi_margin_loss(x, torch.tensor([0, 1, 2, 0, 1]), reduction="sum").backward()

    timeline = timeline_of(program)
    node = next(node for node in timeline.nodes if timeline.info(node).op.name == "multi_margin_loss")
    sent = outgoing_gradients(timeline, timeline.at(len(timeline)), node)[0]
    assert sent.rule.startswith("g / number of classes at the classes too near")
    assert sent.numbers.startswith("1 / 3 at the classes too near")
