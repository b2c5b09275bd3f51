"""What a function cannot take: an array, a list, None for a tensor, and sizes that do not go together."""

import sys

import pytest
from expressions import attempted, split
from twin import compare

import gviz.engine as torch
from gviz.engine.argument_parser import wanting_tensors

OPERANDS = """
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
t, image, kernel = torch.arange(6.).reshape(2, 3), torch.zeros(1, 2, 5, 5), torch.zeros(3, 2, 2, 2)
array, pair = np.ones((2, 3), "float32"), (t, t)
"""
TO_MODULES = split("""
nn.Linear(3, 2)(array) | nn.Linear(3, 2)(pair) | nn.Linear(3, 2)(None) | nn.Linear(3, 2)("x") | nn.ReLU()(pair)
nn.Sequential(nn.Linear(3, 3), nn.ReLU())([1., 2.]) | nn.LayerNorm(3)(array) | nn.Flatten()(array) | nn.Dropout()(pair)
""")
TO_FUNCTIONS = split("""
F.linear(t, array) | F.linear(pair, t) | F.relu(array) | F.gelu(pair) | F.layer_norm(array, (3,)) | F.alpha_dropout(array)
F.dropout("x") | torch.matmul(t, array) | torch.matmul(pair, t) | torch.tril(array) | torch.squeeze(None) | t.matmul(array)
torch.mm(t, pair) | torch.dot(t[0], None) | torch.flatten(array) | torch.gather(array, 0, t) | torch.rand_like(array)
torch.exp(array) | torch.add(array, t) | torch.linalg.det(array) | torch.allclose(array, t)
""")
READ = split("""
F.mse_loss(t, 2) | F.mse_loss(1, 2.) | F.mse_loss(input=3, target=t) | F.mse_loss(t, target=(1,)) | F.softmax(3, 0) | F.sigmoid(None)
F.softmax(input=3, dim=0) | F.softmax(array, 0) | F.glu(3) | F.glu(array) | F.group_norm((1,), 1) | F.instance_norm(3) | F.dropout1d(3)
F.interpolate(3, 2) | F.normalize((1,)) | F.lp_pool1d(3, 2, 2) | F.margin_ranking_loss(1, t, t) | F.margin_ranking_loss(t, (1,), 2)
F.margin_ranking_loss(t, t, 2.) | F.gaussian_nll_loss(1, t, t) | F.local_response_norm(3, 2) | F.softsign("a") | F.tanh(3)
""")
IN_LISTS = split("""
torch.einsum("ij->", array) | torch.einsum("ij,ij->", t, [1.]) | torch.meshgrid(t[0], array) | torch.meshgrid([t[0], 3])
torch.block_diag(t, array) | torch.atleast_2d(t, array) | torch.broadcast_tensors(t, array) | torch.cartesian_prod(t[0], 3)
torch.cat([t, array]) | torch.stack([t, None]) | torch.linalg.multi_dot([t, array])
""")


@pytest.mark.torch
@pytest.mark.parametrize("calls", [TO_MODULES, TO_FUNCTIONS, IN_LISTS], ids=["modules", "functions", "lists"])
def test_it_is_named_in_the_same_words(calls):
    compare(OPERANDS + attempted(calls))


@pytest.mark.torch
def test_an_attribute_is_named_that_pytorch_reads_first():
    compare(OPERANDS + attempted(READ))


def test_a_healthy_call_pays_nothing_for_the_errors():
    files = []
    value = torch.zeros(3)
    sys.setprofile(lambda frame, event, _: files.append(frame.f_code.co_filename) if event == "call" else None)
    try:
        torch.nn.functional.mse_loss(value, value)
        torch.nn.functional.softmax(value, 0)
        torch.nn.functional.glu(value[:2])
    finally:
        sys.setprofile(None)
    assert files
    assert not [file for file in files if file == torch.nn.functional.__file__]


@pytest.mark.torch
def test_it_is_named_although_another_argument_is_at_fault_too():
    compare(OPERANDS + attempted(["torch.bmm(t, array)", "torch.index_select(t, 2, array)"]))


def test_what_was_raised_is_its_cause():
    def function(input: torch.Tensor, other: torch.Tensor):
        raise RuntimeError("other must be a 3D tensor")

    function.__annotations__ = {"input": "Tensor", "other": "Tensor"}
    with pytest.raises(TypeError, match="must be Tensor, not list") as refused:
        wanting_tensors(function, "function")(torch.zeros(2, 3), [1.0])
    assert str(refused.value.__cause__) == "other must be a 3D tensor"


@pytest.mark.parametrize("error", [KeyError, OSError, AssertionError, MemoryError, Exception])
def test_what_has_nothing_to_do_with_operands_is_raised_as_it_is(error):
    def function(input: torch.Tensor, other: torch.Tensor):
        raise error("another reason")

    with pytest.raises(error, match="another reason"):
        wanting_tensors(function, "function")(torch.zeros(1), None)


@pytest.mark.torch
def test_what_lies_in_the_same_places_may_be_copied_there():
    compare("""
import torch
wide = torch.arange(3.).expand(2, 3)
see(wide.copy_(wide), wide.copy_(wide.view(2, 3)))
attempt(lambda: wide.copy_(wide.flip(0))); attempt(lambda: wide.copy_(torch.zeros(2, 3)))
attempt(lambda: wide.zero_()); attempt(lambda: wide.fill_(2.)); attempt(lambda: wide.fill_(torch.tensor(3.)))
""")


SIZES = split("""
torch.zeros(-1) | torch.zeros((2, -1)) | torch.ones(-1) | t.new_zeros(-1) | nn.Linear(-1, 2) | nn.Linear(2, -1)
nn.Embedding(-1, 2) | F.conv2d(image, kernel, groups=2) | F.conv2d(image, kernel[:2], groups=2)
F.fold(t, (5, 5), 2) | F.fold(torch.zeros(4, 3), (5, 5), 2) | F.fold(t[0], (5, 5), 2)
""")


@pytest.mark.torch
def test_sizes_that_cannot_be_are_refused_in_the_same_words():
    compare(OPERANDS + attempted(SIZES))
