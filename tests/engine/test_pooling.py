"""Pooling beside PyTorch: windows of every geometry, ties, nan, indices, and what is refused."""

import pytest
from twin import compare

pytestmark = pytest.mark.torch

BEGIN = """
import numpy as np
import torch.nn.functional as F
def data(*shape, kind=torch.float64, levels=0):
    numbers = np.random.default_rng(len(shape) + sum(shape)).standard_normal(shape)
    numbers = np.round(numbers * levels) if levels else numbers
    return torch.from_numpy(numbers).to(kind).requires_grad_(kind.is_floating_point)
def tried(f, x):
    found = f(x)
    y, *others = found if isinstance(found, tuple) else (found,)
    see(y, *others)
    if y.requires_grad:
        y.backward((torch.arange(y.numel()).to(y.dtype) * .7).cos().reshape(y.shape))
    see(x)
"""
CALLS = [
    "F.max_pool1d(x, 2)",
    "F.max_pool1d(x, 3, 1, 1, return_indices=True)",
    "F.max_pool1d(x, (2,), (3,), ceil_mode=True)",
    "F.max_pool1d(x[0], 2)",
    "F.avg_pool1d(x, 2)",
    "F.avg_pool1d(x, 3, 2, 1, True, False)",
    "F.avg_pool1d(x[0], 2)",
    "F.lp_pool1d(x, 2, 3)",
    "F.adaptive_avg_pool1d(x, 3)",
    "F.adaptive_avg_pool1d(x[0], 1)",
    "F.adaptive_max_pool1d(x, 3, return_indices=True)",
]
PLANE = [
    "F.max_pool2d(x, 2)",
    "F.max_pool2d(x, 2, return_indices=True)",
    "F.max_pool2d(x, 3, 2, 1, return_indices=True)",
    "F.max_pool2d(x, 3, 2, 1, ceil_mode=True, return_indices=True)",
    "F.max_pool2d(x, (2, 3), (1, 2), (1, 0), dilation=(2, 1), return_indices=True)",
    "F.max_pool2d(x[0], 2)",
    "torch.max_pool2d(x.transpose(2, 3), 2, stride=1)",
    "F.max_pool2d(x, 2, stride=[])",
    "F.avg_pool2d(x, 2)",
    "F.avg_pool2d(x, 3, 2, 1)",
    "F.avg_pool2d(x, 3, 2, 1, True)",
    "F.avg_pool2d(x, 3, 2, 1, True, False)",
    "F.avg_pool2d(x, (2, 3), (1, 2), (1, 0), True, True, 5)",
    "F.avg_pool2d(x[0], 2)",
    "F.lp_pool2d(x, 2, 2)",
    "F.lp_pool2d(x, 3, (2, 3), 1, ceil_mode=True)",
    "F.adaptive_avg_pool2d(x, 3)",
    "F.adaptive_avg_pool2d(x, 1)",
    "F.adaptive_avg_pool2d(x, (7, None))",
    "F.adaptive_avg_pool2d(x[0], (2, 3))",
    "F.adaptive_avg_pool2d(x, 0)",
    "F.adaptive_max_pool2d(x, (2, 3), return_indices=True)",
    "F.adaptive_max_pool2d(x, 1)",
    "F.adaptive_max_pool2d(x[0], (None, 8))",
    "F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)",
    "F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2, output_size=(2, 3, 5, 6))",
]
VOLUME = [
    "F.max_pool3d(x, 2, return_indices=True)",
    "F.max_pool3d(x, (1, 2, 3), 1, (0, 1, 1), ceil_mode=True, return_indices=True)",
    "F.avg_pool3d(x, 2)",
    "F.avg_pool3d(x, (1, 2, 3), 2, (0, 1, 1), True, False)",
    "F.avg_pool3d(x[0], 2)",
    "F.lp_pool3d(x, 2, 2)",
    "F.adaptive_avg_pool3d(x, (2, 3, 1))",
    "F.adaptive_avg_pool3d(x, 1)",
    "F.adaptive_max_pool3d(x, 2, return_indices=True)",
    "F.max_unpool3d(*F.max_pool3d(x, 2, return_indices=True), 2, output_size=(1, 2, 4, 3, 5))",
]


@pytest.mark.parametrize(
    ("call", "shape"), [(c, s) for calls, s in ((CALLS, (2, 3, 7)), (PLANE, (2, 3, 5, 6)), (VOLUME, (1, 2, 4, 3, 5))) for c in calls]
)  # fmt: skip
def test_windows(call, shape):
    compare(f"{BEGIN}\ntried(lambda x: {call}, data(*{shape}))", rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("call", ["F.max_pool2d(x, 3, 1, 1, return_indices=True)", "F.adaptive_max_pool2d(x, 3, True)"])
def test_the_first_of_equals_and_any_nan_win(call):
    compare(f"{BEGIN}\ntried(lambda x: {call}, data(2, 3, 5, 6, levels=1))")
    compare(f"{BEGIN}\nx = data(1, 1, 4, 4); x.data[0, 0, 1, 2] = float('nan'); tried(lambda x: {call}, x)")


def test_other_dtypes():
    compare(f"{BEGIN}\ntried(lambda x: F.max_pool2d(x, 2), data(1, 2, 4, 5, kind=torch.float32))")
    compare(f"{BEGIN}\nx = torch.arange(24).view(1, 1, 4, 6)\nsee(F.max_pool2d(x, 2), F.avg_pool2d(x, 2))")


REFUSED = [
    "F.max_pool2d(x, 7)",
    "F.max_pool2d(x, 2, padding=2)",
    "F.max_pool2d(x[0, 0], 2)",
    "F.max_pool2d(x, 0)",
    "F.max_pool2d(x, 2, 0)",
    "F.max_pool2d(x, 2, dilation=0)",
    "F.max_pool2d(x, (2, 2, 2))",
    "F.max_pool2d(x, 2, stride=(1, 1, 1))",
    "F.max_pool1d(x, 2)",
    "F.max_pool1d(x[0], 7)",
    "F.max_pool1d(x[0], 2, padding=2)",
    "F.max_pool1d(x[0].long(), 2)",
    "F.max_pool3d(torch.zeros(1, 1, 3, 3, 3), 4)",
    "F.max_pool2d(torch.zeros(0, 4, 6, 6), 2)",
    "F.max_pool2d(torch.zeros(2, 4, 0, 6), 2)",
    "F.max_pool2d(torch.zeros(2, 0, 6, 6), 2)",
    "F.avg_pool2d(x, 7)",
    "F.avg_pool2d(x, 2, padding=2)",
    "F.avg_pool2d(x, 2, divisor_override=0)",
    "F.avg_pool1d(x, 2)",
    "F.avg_pool1d(x[0], 9)",
    "F.avg_pool3d(x[0], 2)",
    "F.avg_pool2d(torch.zeros(0, 4, 6, 6), 2)",
    "F.avg_pool2d(torch.zeros(2, 0, 6, 6), 2)",
    "F.adaptive_avg_pool2d(x[0, 0], 3)",
    "F.adaptive_avg_pool2d(x, (3, 3, 3))",
    "F.adaptive_avg_pool2d(x, -1)",
    "F.adaptive_avg_pool2d(torch.zeros(2, 4, 0, 6), 3)",
    "F.adaptive_max_pool2d(x[0, 0], 3)",
    "F.max_unpool2d(torch.zeros(1, 1, 2, 2), torch.full((1, 1, 2, 2), 99), 2)",
    "F.max_unpool2d(torch.zeros(1, 1, 2, 2), torch.zeros(1, 1, 2, 2).long(), 2, output_size=(9, 9))",
    "F.max_unpool2d(torch.zeros(1, 1, 2, 2), torch.zeros(1, 1, 2, 3).long(), 2)",
]


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_refused(call):
    compare(f"import torch.nn.functional as F\nx = torch.ones(2, 4, 6, 6)\nattempt(lambda: {call})")
