"""How tensors print, against PyTorch."""

import importlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from twin import compare

import gviz.engine as engine

PROGRAMS = {
    "numbers": """
for data in (1., 0., -2.5, 1e-5, 1e10, 123456789., float("nan"), float("inf"), 3, True, [1., 2.], [1.5, -2.25], [1e-5, 1.],
             [1e5, 1.5], [1e8, 1.], [1., float("nan")], [float("inf"), 1.5], [float("-inf"), 2.], [1, 20, -300], [True, False],
             [0.1, 1000.25], [0.001, 999.], [12345.678, 1.], [[1., 2.], [3., 4.]], [[1.5], [22.25]], [], [[]], [0., 0.],
             [1e-10, 2e-10], [99999999., 1.], [100000000., 1.], [-1., 10.], [0.00012, 0.5], [0.00001, 0.5], [1/3, 2/3]):
    print(torch.tensor(data))
    print(torch.tensor(data, dtype=torch.float64) * 1)
""",
    "notes": """
x = torch.tensor([1., 2.], requires_grad=True)
print(x, x * 2, (x * 2).sum(), x.detach(), x.double(), x.half(), x > 1, x.int(), x.long(), x[0], (x * 2)[1:], x.unbind())
print(torch.nn.Parameter(torch.ones(2))); print(torch.ones(2, dtype=torch.float64, requires_grad=True))
y = torch.zeros(2); y[0] = x[0]; print(y); z = x * 2; z.add_(1); print(z)
print(x.shape, x.size(), x.size(0), x.dtype, torch.Size([1, 2]), x.shape.numel(), torch.float64, torch.bool)
print(f"{x[0]:.2f} {x[1].item():.3f}", str(x), [x], {"x": x})
""",
    "where lines end": """
for n in range(1, 40):
    for scale in (1, 10, 1000):
        print((torch.arange(float(n)) * scale).requires_grad_() * 1, torch.arange(float(n) * 2).view(2, n).requires_grad_())
        print(torch.arange(n, dtype=torch.float64) * scale, torch.arange(n, dtype=torch.int32), torch.arange(n) > scale)
""",
    "a view cut off from its base": """
x = torch.ones(2, requires_grad=True); y = x * 2; a, b = y.unbind(); y.mul_(2); print(a)
""",
    "many": """
print(torch.arange(30.)); print(torch.arange(30)); print(torch.arange(40.).view(4, 10)); print(torch.arange(24.).view(2, 3, 4))
print(torch.arange(1001.)); print(torch.arange(2000.).view(100, 20)); print(torch.arange(60.) / 7)
print((torch.arange(60.) / 7).requires_grad_()); print(torch.zeros(2, 0, 3)); print(torch.arange(48.).view(2, 2, 3, 4) * 100)
print(torch.zeros(3, 50)); print(torch.zeros(30, 40, 2)); print(torch.arange(12).view(3, 4) * 1000)
""",
    "options": """
numbers = [torch.arange(30.) / 7, torch.arange(1200), torch.tensor([1e-5, 1.]), torch.tensor([1., 2.]), torch.ones(20, 20) / 3]
numbers += [torch.tensor(0.123456789), torch.tensor([]), torch.tensor([1e10, 3.]), torch.tensor([True, False])]
try:
    for options in (dict(precision=2), dict(threshold=5), dict(edgeitems=1), dict(linewidth=40), dict(sci_mode=True),
                    dict(sci_mode=False), dict(profile="short"), dict(profile="full"), dict(precision=8, linewidth=120),
                    dict(edgeitems=0, threshold=3), dict(profile="default", precision=1), dict(threshold=10, edgeitems=2)):
        torch.set_printoptions(**options)
        for x in numbers[: 1 if options.get("profile") == "full" else None]: print(options, x, x.requires_grad_() * 1 if x.is_floating_point() else 0)
        torch.set_printoptions(profile="default")
finally:
    torch.set_printoptions(profile="default")
""",
    "nothing in it": """
for shape in ((0,), (0, 3), (2, 0), (1, 0, 2), ()):
    for kind in (torch.float32, torch.float64, torch.int64, torch.int32, torch.bool, torch.float16):
        print(torch.zeros(shape, dtype=kind), repr(torch.zeros(shape, dtype=kind)), [torch.zeros(shape, dtype=kind)])
print(torch.zeros(0, 3, requires_grad=True), torch.zeros(0, 3, requires_grad=True) * 2, torch.nn.Parameter(torch.zeros(0)))
print(torch.Size([]), torch.Size([0]), torch.ones(2, 3).size(), torch.zeros(0).shape)
""",
}


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    compare(PROGRAMS[name])


SHAPES = arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=9)
WHOLE = st.sampled_from([np.int64, np.int32, np.int16, np.int8, np.uint8, np.bool_])
SIZES = st.sampled_from([1e-12, 1e-4, 1e-2, 1.0, 10.0, 1e3, 1e6, 1e9])


@st.composite
def floats(draw):
    """Numbers of sizes near one another or far apart, whole or not, some of them 0, nan or infinite."""
    kind, shape = draw(st.sampled_from([np.float32, np.float64, np.float16])), draw(SHAPES)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    array = rng.standard_normal(shape) * rng.choice(draw(st.lists(SIZES, min_size=1, max_size=3)), shape)
    if draw(st.booleans()):
        array = np.round(array)
    special = draw(st.lists(st.sampled_from([np.nan, np.inf, -np.inf, 0.0, -0.0]), max_size=2))
    for value in special:
        array = np.where(rng.random(shape) < 0.2, value, array)
    with np.errstate(over="ignore"):
        return np.asarray(array, kind)


@pytest.mark.torch
@settings(max_examples=300, deadline=None, derandomize=True)
@given(floats() | WHOLE.flatmap(lambda kind: arrays.arrays(kind, SHAPES)), st.booleans(), st.booleans())
def test_any_array_prints_as_in_pytorch(array, requires_grad, result):
    def text(torch):
        tensor = torch.from_numpy(array.copy())
        if requires_grad and tensor.is_floating_point():
            tensor = tensor.requires_grad_() * 1 if result else tensor.requires_grad_()
        return str(tensor), repr([tensor])

    assert text(engine) == text(importlib.import_module("torch"))
