"""Lookups and dropout: beside PyTorch where nothing is drawn, by their statistics where something is."""

import pytest
from twin import compare

import gviz.engine as torch

F = torch.nn.functional

BEGIN = """
import torch.nn.functional as F
w = (torch.arange(12.).view(4, 3) - 5).double().requires_grad_()
x = torch.arange(8.).view(2, 4).requires_grad_()
def tried(y):
    see(y)
    y.backward((torch.arange(y.numel()).to(y.dtype) * .7 + .1).cos().reshape(y.shape))
    see(w)
"""
PROGRAMS = [
    "tried(F.embedding(torch.tensor([[1, 2], [2, 0]]), w))",
    "tried(F.embedding(torch.tensor([1, 2, 2]), w, padding_idx=1))",
    "tried(F.embedding(torch.tensor([1, 2, 3]), w, padding_idx=-1))",
    "tried(F.embedding(torch.tensor([1, 2, 2]), w, scale_grad_by_freq=True))",
    "tried(F.embedding(torch.tensor([1, 2, 2]), w, max_norm=2.))",
    "tried(F.embedding(torch.tensor(1), w))",
    "tried(torch.embedding(w, torch.zeros(0, 2).long()))",
    "tried(F.embedding(torch.tensor([1, 2]).int(), w))",
    *[
        f"attempt(lambda: {call})"
        for call in (
            "F.embedding(torch.tensor([1, 9]), w)",
            "F.embedding(torch.tensor([-1]), w)",
            "F.embedding(torch.tensor([1.]), w)",
            "F.embedding(torch.tensor([True]), w)",
            "F.embedding(torch.tensor([1]), w[0])",
            "F.embedding(torch.tensor([1., 2.]), w, max_norm=1.)",
            "F.embedding(torch.tensor([True]), w, max_norm=1.)",
            "F.embedding(torch.tensor([1, 9]), w, max_norm=1.)",
            "F.embedding(torch.tensor([1]), w[0], max_norm=1.)",
            "F.embedding(torch.tensor([1]), w.detach().long(), max_norm=1.)",
            "F.embedding(torch.tensor([1]), w, padding_idx=7)",
            "F.one_hot(torch.tensor([[1, 2]])).tolist()",
            "F.one_hot(torch.tensor([1, 2]), 2)",
            "F.one_hot(torch.tensor([-1, 2]))",
            "F.one_hot(torch.tensor([1.]))",
            "F.one_hot(torch.tensor(2), 4).tolist()",
            "F.one_hot(torch.zeros(0).long())",
            "F.one_hot(torch.zeros(0).long(), 3)",
            "F.dropout(x, 1.5)",
            "torch.dropout(x, 1.5, True)",
            "F.dropout(x, 1.)",
            "F.dropout(x, 0.)",
            "F.dropout(x, .5, False)",
            "F.dropout(x.long(), .5)",
            "F.dropout1d(torch.ones(3, 2, 2, 2))",
            "F.dropout2d(torch.ones(3))",
            "F.alpha_dropout(x, 2.)",
            "F.alpha_dropout(x, 1., True)",
            "F.alpha_dropout(x, .5)",
        )
    ],
]


@pytest.mark.torch
@pytest.mark.parametrize("program", PROGRAMS)
def test_as_pytorch_does_it(program):
    compare(BEGIN + program)


@pytest.mark.parametrize("name", ["dropout", "alpha_dropout"])
def test_dropout_keeps_the_mean(name):
    torch.manual_seed(5)
    y = getattr(F, name)(torch.randn(200, 200) + 1, 0.3, True)
    assert y.mean().item() == pytest.approx(
        1 if name == "dropout" else 1 * (1 / ((1.758**2 * 0.3 + 1) * 0.7) ** 0.5) * 0.7, abs=0.05
    )


def test_dropped_elements_have_no_gradient_and_others_a_larger_one():
    torch.manual_seed(6)
    x = torch.ones(1000, requires_grad=True)
    y = F.dropout(x, 0.2)
    y.sum().backward()
    assert y.grad_fn.name() == "MulBackward0"
    assert sorted(set(x.grad.tolist())) == [0, 1.25]
    assert x.grad.tolist() == y.tolist()
    assert 150 < (y == 0).sum().item() < 250


@pytest.mark.parametrize(("name", "shape"), [("dropout1d", (50, 4, 3)), ("dropout2d", (50, 4, 3, 2)), ("dropout3d", (50, 4, 3, 2, 2)), ("dropout1d", (50, 3))])  # fmt: skip
def test_channels_are_dropped_whole(name, shape):
    torch.manual_seed(7)
    channels = getattr(F, name)(torch.ones(*shape), 0.5).flatten(-len(shape) + (2 if len(shape) > 2 else 1))
    kinds = {tuple(sorted(set(row))) for row in channels.reshape(-1, channels.shape[-1]).tolist()}
    assert kinds == {(0.0,), (2.0,)}


def test_equal_seeds_drop_the_same():
    torch.manual_seed(8)
    first = F.dropout(torch.ones(50))
    torch.manual_seed(8)
    assert first.tolist() == F.dropout(torch.ones(50)).tolist()


def test_dropout_in_place_writes_to_its_input():
    x = torch.ones(50)
    assert F.dropout(x, inplace=True) is x
    assert x._version == 1
