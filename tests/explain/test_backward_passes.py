"""The losses that the passes of a recording began at, as the program calls them."""

import pytest
from recording import timeline_of

import gviz.engine as torch
from gviz.explain.backward_passes import loss_values, loss_values_by_name
from gviz.tui.drawing.iterations_and_passes import plain_passes


def scaled(loss):
    (loss * torch.tensor(1024.0)).backward()


def divided(loss):
    (loss / 4).backward()


def of_two(loss):
    (loss * loss.exp()).backward()


def turned(loss):
    (-loss).backward()


@pytest.mark.parametrize(
    ("backward", "told"),
    [
        (scaled, [4.0, 9.0]),
        (divided, [4.0, 9.0]),
        (of_two, pytest.approx([218.3926, 72927.755], rel=1e-4)),
        (turned, [-4.0, -9.0]),
    ],
)
def test_the_loss_is_what_has_a_name_below_a_factor(backward, told):
    def program():
        for number in (2.0, 3.0):
            x = torch.tensor(number, requires_grad=True)
            loss = x * x
            backward(loss)

    timeline = timeline_of(program)
    assert [*loss_values(timeline)] == told
    named = backward in (scaled, divided)
    assert any("loss 9" in line for line in plain_passes(timeline)) == named
    assert [*loss_values_by_name(timeline)] == [""]
