"""Convolutions beside PyTorch: every geometry, batched and not, and what is refused."""

import pytest
from differences import check
from twin import compare

import gviz.engine as torch
from gviz.engine.ops._examples import normal

pytestmark = pytest.mark.torch

BEGIN = """
import numpy as np
import torch.nn.functional as F
def data(*shape, kind=torch.float64, grad=True):
    numbers = np.random.default_rng(len(shape) + sum(shape)).standard_normal(shape)
    return torch.from_numpy(numbers).to(kind).requires_grad_(grad)
def tried(f, *tensors):
    y = f(*tensors)
    see(y)
    y.backward((torch.arange(y.numel()).to(y.dtype) * .7).cos().reshape(y.shape))
    numbers(*[t.grad for t in tensors if t is not None])
    for name in ("stride", "padding", "dilation", "transposed", "output_padding", "groups"):
        if hasattr(y.grad_fn, "_saved_" + name):
            see(getattr(y.grad_fn, "_saved_" + name))
"""
GEOMETRIES = {
    "plain 1-d": "tried(F.conv1d, data(2, 3, 7), data(4, 3, 3), data(4))",
    "strided 1-d": "tried(lambda *t: F.conv1d(*t, stride=2, padding=1, dilation=2), data(2, 3, 9), data(4, 3, 3), data(4))",
    "plain": "tried(F.conv2d, data(2, 3, 6, 5), data(4, 3, 3, 2), data(4))",
    "no bias": "tried(F.conv2d, data(2, 3, 6, 5), data(4, 3, 3, 2), None)",
    "padded": "tried(lambda *t: F.conv2d(*t, padding=(2, 1)), data(2, 3, 6, 5), data(4, 3, 3, 2), data(4))",
    "dilated": "tried(lambda *t: F.conv2d(*t, padding=2, dilation=(1, 2)), data(2, 3, 6, 5), data(4, 3, 3, 2), data(4))",
    "strided": "tried(lambda *t: F.conv2d(*t, stride=(2, 3), padding=1), data(2, 3, 7, 8), data(4, 3, 3, 2), data(4))",
    "strided by a list": "tried(lambda *t: F.conv2d(*t, stride=[2, 2]), data(2, 3, 7, 8), data(4, 3, 3, 2), data(4))",
    "groups": "tried(lambda *t: F.conv2d(*t, groups=2, padding=1), data(2, 4, 5, 5), data(6, 2, 3, 3), data(6))",
    "depthwise": "tried(lambda *t: F.conv2d(*t, groups=4, stride=2), data(2, 4, 5, 5), data(4, 1, 3, 3), data(4))",
    "one by one": "tried(F.conv2d, data(2, 4, 5, 5), data(3, 4, 1, 1), data(3))",
    "one by one, strided": "tried(lambda *t: F.conv2d(*t, stride=2), data(2, 4, 5, 5), data(3, 4, 1, 1), data(3))",
    "as large as the input": "tried(F.conv2d, data(2, 4, 3, 3), data(3, 4, 3, 3), data(3))",
    "one window a row": "tried(F.conv2d, data(2, 4, 6, 3), data(3, 4, 2, 3), data(3))",
    "unbatched": "tried(F.conv2d, data(3, 6, 5), data(4, 3, 3, 2), data(4))",
    "same": "tried(lambda *t: F.conv2d(*t, padding='same'), data(2, 3, 6, 5), data(4, 3, 3, 3), data(4))",
    "same, uneven": "tried(lambda *t: F.conv2d(*t, padding='same', dilation=3), data(2, 3, 6, 5), data(4, 3, 2, 4), data(4))",
    "valid": "see(F.conv2d(data(2, 3, 6, 5), data(4, 3, 2, 2), data(4), padding='valid', stride=2))",
    "3-d": "tried(lambda *t: F.conv3d(*t, padding=1, stride=(1, 2, 1)), data(2, 2, 4, 5, 3), data(3, 2, 2, 3, 2), data(3))",
    "3-d, stride 1": "tried(lambda *t: F.conv3d(*t, padding=1), data(2, 2, 4, 5, 3), data(3, 2, 2, 3, 2), data(3))",
    "transposed 1-d": "tried(F.conv_transpose1d, data(2, 3, 5), data(3, 4, 3), data(4))",
    "transposed": "tried(F.conv_transpose2d, data(2, 3, 5, 4), data(3, 4, 3, 2), data(4))",
    "transposed, strided": "tried(lambda *t: F.conv_transpose2d(*t, stride=2, padding=1, output_padding=1), data(2, 3, 5, 4), data(3, 4, 3, 3), data(4))",
    "transposed, dilated": "tried(lambda *t: F.conv_transpose2d(*t, dilation=2, output_padding=(1, 0)), data(2, 3, 5, 4), data(3, 4, 3, 3), None)",
    "transposed, groups": "tried(lambda *t: F.conv_transpose2d(*t, groups=2, stride=(1, 2)), data(2, 4, 5, 4), data(4, 3, 3, 3), data(6))",
    "transposed 3-d": "tried(lambda *t: F.conv_transpose3d(*t, stride=2), data(2, 2, 3, 2, 2), data(2, 3, 2, 2, 3), data(3))",
    "transposed, unbatched": "tried(F.conv_transpose2d, data(3, 5, 4), data(3, 4, 3, 2), data(4))",
    "the one that all are": "tried(lambda *t: torch.convolution(*t, [2, 2], [1, 0], [1, 1], False, [0, 0], 1), data(2, 3, 5, 5), data(4, 3, 2, 2), data(4))",
    "float32": "tried(lambda *t: F.conv2d(*t, padding=1), *[data(*s, kind=torch.float32) for s in ((2, 3, 6, 5), (4, 3, 3, 2), (4,))])",
    "whole numbers": "see(F.conv2d(torch.arange(32).view(1, 2, 4, 4), torch.arange(24).view(3, 2, 2, 2)))",
    "from elsewhere in memory": "tried(lambda x, w, b: F.conv2d(x.transpose(2, 3), w.permute(0, 1, 3, 2), b), data(2, 3, 6, 5), data(4, 3, 3, 2), data(4))",
    "no batch": "tried(F.conv2d, data(0, 3, 6, 5), data(4, 3, 3, 2), data(4))",
}


@pytest.mark.parametrize("program", GEOMETRIES.values(), ids=GEOMETRIES)
def test_geometries(program):
    compare(BEGIN + program, rtol=1e-4 if "float32" in program else 1e-9, atol=1e-5 if "float32" in program else 1e-11)


REFUSED = [
    "F.conv2d(x, z(6, 3, 3, 3))",
    "F.conv2d(x[0, 0], w)",
    "F.conv1d(x, z(6, 4, 3))",
    "F.conv2d(x, z(6, 4, 3))",
    "F.conv2d(z(2, 4, 2, 2), w)",
    "F.conv2d(z(2, 4, 2, 2), w, padding=(0, 1))",
    "F.conv2d(z(2, 4, 0, 6), w)",
    "F.conv2d(x.double(), w)",
    "F.conv2d(x, w, z(5))",
    "F.conv2d(x, w, z(6).double())",
    "F.conv2d(x, w, stride=0)",
    "F.conv2d(x, w, padding=-1)",
    "F.conv2d(x, w, dilation=0)",
    "F.conv2d(x, w, groups=0)",
    "F.conv2d(x, w, groups=3)",
    "F.conv2d(x, z(5, 2, 3, 3), groups=2)",
    "F.conv2d(x, w, stride=(1, 2, 3))",
    "F.conv2d(x, w, padding=(1, 2, 3))",
    "F.conv2d(x, w, padding='same', stride=2)",
    "F.conv2d(x, w, padding='x')",
    "F.conv2d(x, z(0, 4, 3, 3))",
    "F.conv_transpose2d(x, z(3, 3, 3, 3))",
    "F.conv_transpose2d(x, z(4, 3, 3, 3), output_padding=1)",
    "F.conv_transpose2d(x, z(4, 3, 3, 3), z(4))",
    "F.conv_transpose2d(x, z(4, 3, 3, 3), groups=3)",
    "F.conv_transpose2d(x[0, 0], z(4, 3, 3, 3))",
]


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_refused(call):
    begin = "import torch.nn.functional as F\nz = torch.zeros\nx, w = z(2, 4, 6, 6), z(6, 4, 3, 3)\n"
    compare(f"{begin}attempt(lambda: {call})")


@pytest.mark.parametrize("transposed", [False, True])
def test_second_order_with_an_output_larger_than_its_windows(transposed):
    arrays = [normal(1, 2, 3, 3), normal(2, 2, 2, 2)]
    attrs = {"stride": 1, "dilation": 2, "padding": 1}
    if transposed:
        check(lambda x, w: torch.conv_transpose2d(x, w, output_padding=1, **attrs), arrays, order=2)
    else:
        check(lambda x, w: torch.conv2d(x, w, **attrs), arrays, order=2)
