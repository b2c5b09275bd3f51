"""Dropout, which PyTorch computes as a product with a mask that nobody sees, and other draws of a call itself."""

import pytest

from gviz.explain.display_names import called, title
from gviz.explain.value_computation import computation, dropout_effect
from gviz.explain.why import why
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline
from tests.adapters.recorded import events_of

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def recorded(program):
    return Timeline(MemoryLog(events_of(program)))


def of_op(timeline, name):
    return next(timeline.info(node) for node in timeline.nodes if timeline.info(node).op.name == name)


@pytest.mark.parametrize(("name", "shape", "inplace", "what"), [
    ("dropout", (20, 5), False, "elements"), ("dropout", (20, 5), True, "elements"),
    ("dropout2d", (10, 8, 2, 2), False, "channels"),
])  # fmt: skip
def test_a_dropout_has_its_name_its_mask_and_what_it_did(name, shape, inplace, what):
    torch.manual_seed(0)

    def program():
        x = torch.ones(shape, requires_grad=True) * 2
        y = getattr(torch.nn.functional, name)(x, 0.25, inplace=inplace)
        y.sum().backward()
        return y

    timeline = recorded(program)
    info = of_op(timeline, name + "_" * inplace)
    assert info.op.grad_fn == "MulBackward0"
    (_, mask) = (timeline.info(node) for node, _ in info.created.inputs)
    assert (called(mask), title(mask)) == ("mask", f"mask #{mask.node}")
    drawn = timeline.array(mask.created.first_value)
    assert {f"{one:.4g}" for one in drawn.ravel()} == {"0", "1.333"}
    told = f"{(drawn == 0).sum()} of {drawn.size} {what} became 0, the others times 1/(1 - p) = 1.333"
    assert dropout_effect(timeline, info.node) == told
    assert told in str(why(timeline, timeline.at(info.born), info.node))


def test_nothing_is_said_of_a_product_or_of_a_dropout_that_does_nothing():
    def program():
        x = torch.ones(3, requires_grad=True) * torch.ones(3)
        return torch.nn.functional.dropout(x, 0.5, training=False).sum()

    timeline = recorded(program)
    assert not any(dropout_effect(timeline, node) for node in timeline.nodes)
    assert all(timeline.info(node).op.name != "dropout" for node in timeline.nodes)


@pytest.mark.parametrize("tracked", [False, True])
def test_numbers_that_a_call_draws_itself_are_told_as_that_call(tracked):
    mean, spread = torch.tensor([1.0, 2.0], requires_grad=tracked), torch.tensor([0.5, 0.25])
    timeline = recorded(lambda: torch.normal(mean, spread))
    formula = computation(timeline, of_op(timeline, "normal").node).formula
    assert formula.startswith("normal([1 2]")
    assert "[0.5 0.25]" in formula
