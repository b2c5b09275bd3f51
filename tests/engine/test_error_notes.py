"""What an error says beyond PyTorch's words while somebody records, or in anomaly mode."""

import warnings

import pytest
from recording import events_of

import gviz.engine as torch
from gviz.engine import messages


def notes_of(program, *, recorded=True):
    """The notes of the error that a program ends with, and its text."""
    caught = []

    def run():
        with pytest.raises(RuntimeError) as error:
            program()
        caught.append(error.value)

    events_of(run) if recorded else run()
    return getattr(caught[0], "__notes__", []), str(caught[0])


def anomaly(program):
    def run():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with torch.autograd.detect_anomaly():
                program()

    return run


def modified():
    x = torch.ones(2, requires_grad=True)
    y = x * 1
    z = y.sin()  # saves
    y.add_(1)
    y.detach().mul_(2)  # writes
    z.sum().backward()


def freed():
    x = torch.ones(2, requires_grad=True)
    y = (x.exp() * 2).sum()  # makes
    y.backward()  # frees
    y.backward()


def freed_view():
    x = torch.ones(2, requires_grad=True)
    y = x * 1
    y[0].mul_(x[0])  # makes
    y.sum().backward()  # frees
    y.sum().backward()


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2 + 0 * ctx.saved_tensors[0]


def freed_function():
    x = torch.ones(2, requires_grad=True)
    y = Twice.apply(x)  # makes
    y.sum().backward()  # frees
    y.sum().backward()


def line(comment):
    """The line of this file that ends with a comment."""
    with open(__file__) as lines:
        return [text.strip() for text in lines if text.endswith(f"# {comment}\n")]


def test_a_modified_tensor_tells_who_saved_and_who_wrote():
    (saved, written), text = notes_of(modified)
    assert text.startswith("one of the variables needed for gradient computation has been modified by an inplace")
    assert saved.startswith(f'SinBackward0 saved it in File "{__file__}", line ')
    assert saved.endswith(f", in modified\n    {line('saves')[0]}")
    assert written.startswith("it was last written in File ")
    assert written.endswith(f", in modified\n    {line('writes')[0]}")


@pytest.mark.parametrize(
    ("program", "node"),
    [
        (freed, "MulBackward0"),
        (freed_view, "torch::autograd::CopySlices"),
        (freed_function, "TwiceBackward"),
    ],
)
def test_a_freed_node_tells_who_made_and_who_freed_it(program, node):
    (made, by), text = notes_of(program)
    assert text == messages.SECOND_BACKWARD
    assert made.startswith(f'{node} is of File "{__file__}", line ')
    assert made.splitlines()[1].strip() in line("makes")
    assert by.startswith(f'what it saved was freed by the backward pass of File "{__file__}", line ')
    assert by.splitlines()[1].strip() in line("frees")


def test_anomaly_mode_knows_it_without_a_recording():
    (saved, written), _ = notes_of(anomaly(modified), recorded=False)
    assert saved.startswith("SinBackward0 saved it in File ")
    assert saved.endswith(line("saves")[0])
    assert written.endswith(line("writes")[0])
    (made,), _ = notes_of(anomaly(freed), recorded=False)
    assert made.startswith("MulBackward0 is of File ")


def test_saved_attributes_say_it_too():
    def program():
        y = torch.ones(2, requires_grad=True).sin()  # makes
        y.sum().backward()
        return y.grad_fn._saved_self

    (made, _), _ = notes_of(program)
    assert made.endswith(line("makes")[-1])


@pytest.mark.parametrize("program", [modified, freed, freed_view, freed_function])
def test_nobody_listening_nothing_is_said(program):
    assert notes_of(program, recorded=False)[0] == []


def test_counters_stay_one_number_while_nobody_listens():
    x = torch.ones(2)
    x.add_(1)
    assert x._counter == [1]
