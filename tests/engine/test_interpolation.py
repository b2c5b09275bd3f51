"""Other sizes, blocks, and channels as pixels, beside PyTorch."""

import pytest
from twin import compare

pytestmark = pytest.mark.torch

BEGIN = """
import numpy as np
import torch.nn.functional as F
def data(*shape):
    numbers = np.random.default_rng(len(shape) + sum(shape)).standard_normal(shape)
    return torch.from_numpy(numbers).requires_grad_()
x, line, volume = data(2, 4, 6, 6), data(2, 4, 6), data(1, 2, 3, 4, 3)
def tried(f, x):
    y = f(x)
    see(y)
    y.backward((torch.arange(y.numel()).to(y.dtype) * .7).cos().reshape(y.shape))
    numbers(x.grad)
"""
CALLS = {
    "line": ["F.interpolate(x, scale_factor=2)", "F.interpolate(x, size=4)", "F.interpolate(x, size=9, mode='linear')",
             "F.interpolate(x, scale_factor=1.7, mode='linear', align_corners=True)", "F.interpolate(x, 5, mode='area')"],
    "x": ["F.interpolate(x, scale_factor=2)", "F.interpolate(x, scale_factor=(1.6, .7))", "F.interpolate(x, size=(4, 9))",
          "F.interpolate(x, size=7, mode='nearest-exact')", "F.interpolate(x, size=(9, 4), mode='bilinear')",
          "F.interpolate(x, size=(9, 1), mode='bilinear', align_corners=True)",
          "F.interpolate(x, scale_factor=1.7, mode='bilinear')",
          "F.interpolate(x, scale_factor=1.7, mode='bilinear', recompute_scale_factor=True)",
          "F.interpolate(x, size=4, mode='area')", "F.upsample(x, scale_factor=2)",
          "F.unfold(x, 2)", "F.unfold(x, (2, 3), (2, 1), (1, 0), (1, 2))", "F.unfold(x[0], 3)",
          "F.fold(F.unfold(x, 3, stride=2), (6, 6), 3, stride=2)", "F.fold(F.unfold(x[0], 2), (6, 6), 2)",
          "F.pixel_shuffle(x, 2)", "F.pixel_unshuffle(x, 3)", "F.pixel_shuffle(x[0], 2)"],
    "volume": ["F.interpolate(x, scale_factor=2)", "F.interpolate(x, size=(2, 5, 4), mode='trilinear')",
               "F.interpolate(x, size=2, mode='nearest-exact')", "F.interpolate(x, size=2, mode='area')"],
}  # fmt: skip


@pytest.mark.parametrize(("name", "call"), [(name, call) for name, calls in CALLS.items() for call in calls])
def test_values_and_graphs(name, call):
    compare(f"{BEGIN}\ntried(lambda x: {call}, {name})", rtol=1e-6, atol=1e-9)


REFUSED = """F.unfold(x,7)
F.fold(z(1,12,5),(3,3),2)
F.fold(z(1,13,4),(3,3),2)
F.pixel_shuffle(x,3)
F.pixel_shuffle(z(2,2),1)
F.pixel_unshuffle(x,4)
F.interpolate(x,size=3,scale_factor=2)
F.interpolate(x)
F.interpolate(x,size=(3,3,3))
F.interpolate(x,scale_factor=(2,))
F.interpolate(x,size=3,mode='linear')
F.interpolate(x,size=3,mode='x')
F.interpolate(x,size=3,align_corners=True)
F.interpolate(x[0,0],size=3)
F.interpolate(x,size=0)
F.interpolate(x,scale_factor=0.1)
F.interpolate(x.long(),size=3,mode='bilinear')""".splitlines()


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_refused(call):
    compare(f"import torch.nn.functional as F\nz = torch.zeros\nx = z(2, 4, 6, 6)\nattempt(lambda: {call})")
