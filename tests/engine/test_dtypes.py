"""Dtypes: what comes of two, what converts to what, what is refused; against PyTorch."""

import pytest
from twin import compare

import gviz.engine as torch
from gviz.engine import dtypes

KINDS = "kinds = [torch.float16, torch.float32, torch.float64, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool]\n"

PROGRAMS = {
    "every pair": """
for a in kinds:
    for b in kinds:
        see(torch.promote_types(a, b), torch.can_cast(a, b), a == b, torch.ones(2, dtype=a).to(b))
for a in kinds:
    for b in (torch.complex64, torch.complex128, torch.bfloat16):
        see(torch.can_cast(a, b), torch.can_cast(b, a))
""",
    "every pair of tensors, 0-d tensors and numbers": """
def forms(kind):
    return torch.ones(2, dtype=kind), torch.ones((), dtype=kind)
for a in kinds:
    for b in [*kinds, None]:
        for x in forms(a):
            for y in forms(b) if b else (True, 2, 2.5):
                see(torch.result_type(x, y), torch.result_type(y, x), (x * y).dtype, (y * x).dtype, (x == y).dtype)
                see((x / y).dtype)
for x in (True, 2, 2.5):
    for y in (True, 2, 2.5):
        see(torch.result_type(x, y))
attempt(lambda: torch.result_type("a", 2)); attempt(lambda: torch.result_type(torch.ones(1), "a"))
attempt(lambda: torch.promote_types(3, torch.uint8)); attempt(lambda: torch.can_cast(3, torch.int32))
attempt(lambda: torch.can_cast(torch.int32, 3)); see(torch.promote_types(int, torch.uint8))
""",
    "in-place results keep the dtype or are refused": """
for a in kinds:
    for b in kinds:
        attempt(lambda: torch.ones(2, dtype=a).mul_(torch.ones(2, dtype=b)))
        attempt(lambda: torch.ones(2, dtype=a).copy_(torch.ones(2, dtype=b)))
    for number in (True, 2, 2.5):
        attempt(lambda: torch.ones(2, dtype=a).mul_(number))
""",
    "what a dtype tells": """
for d in [*kinds, torch.bfloat16, torch.complex64, torch.complex128, torch.uint16, torch.uint32, torch.uint64]:
    see(d, d.itemsize, d.is_floating_point, d.is_complex, d.is_signed, str(d), d == str(d))
see(torch.float is torch.float32, torch.double is torch.float64, torch.half is torch.float16, torch.long is torch.int64)
see(torch.int is torch.int32, torch.short is torch.int16, torch.cfloat is torch.complex64, torch.cdouble is torch.complex128)
see(torch.dtype, isinstance(torch.float32, torch.dtype), type(torch.float32), torch.float32.to_complex(), torch.complex64.to_real())
import copy, pickle
see(copy.deepcopy(torch.bool) is torch.bool, hash(torch.float) == hash(torch.float32), {torch.float: 1}[torch.float32])
attempt(lambda: torch.float32.foo); see(torch.float64.to_real(), torch.float16.to_complex())
""",
    "limits": """
for d in (torch.float16, torch.float32, torch.float64):
    f = torch.finfo(d)
    see(f, f.eps, f.max, f.min, f.tiny, f.bits, f.smallest_normal, f.resolution, f.dtype, f == torch.finfo(d))
for d in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
    i = torch.iinfo(d)
    see(i, i.min, i.max, i.bits, i.dtype, i == torch.iinfo(d))
see(torch.finfo())
for wrong in (torch.int32, "float32", torch.bool, 3): attempt(lambda: torch.finfo(wrong))
for wrong in (torch.float32, torch.bool, 3): attempt(lambda: torch.iinfo(wrong))
attempt(lambda: torch.finfo(torch.int32).eps)
""",
    "the default dtype": """
try:
    for kind in (torch.float64, torch.float16, torch.float32):
        torch.set_default_dtype(kind)
        see(torch.get_default_dtype(), torch.tensor(1.), torch.tensor([1, 2.5]), torch.ones(2), torch.arange(3.), torch.eye(2))
        see(torch.arange(3), torch.full((2,), 1.5), torch.ones(2).int() / 2, torch.ones(2).int() * 2.5, torch.tensor([]))
        see(torch.Tensor([1, 2]), torch.result_type(1, 2.), torch.finfo(), torch.ones(2, dtype=torch.float32) * 2.5)
        see(torch.linspace(0, 1, 3), torch.zeros(2, dtype=torch.float64), torch.scalar_tensor(2), torch.empty(0))
        print(torch.tensor([1.5, 2]), torch.ones(2, dtype=torch.float32), torch.ones(1, dtype=torch.float64), torch.tensor([]))
    for wrong in (torch.int32, torch.bool, "a", 3, float): attempt(lambda: torch.set_default_dtype(wrong))
    attempt(lambda: torch.set_default_dtype(torch.complex64)); see(torch.get_default_dtype())
finally:
    torch.set_default_dtype(torch.float32)
""",
}


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    compare(KINDS + PROGRAMS[name])


REFUSED = sorted({*dtypes._by_name.values()} - {*dtypes.ALL}, key=lambda d: d.name)


@pytest.mark.parametrize("kind", REFUSED, ids=str)
def test_a_dtype_without_tensors_is_refused_by_name(kind):
    ones = torch.ones(2)
    for make in (
        lambda: torch.ones(2, dtype=kind),
        lambda: torch.tensor([1, 2], dtype=kind),
        lambda: torch.arange(3, dtype=kind),
        lambda: torch.full((2,), 1, dtype=kind),
        lambda: torch.zeros_like(ones, dtype=kind),
        lambda: ones.new_zeros(2, dtype=kind),
        lambda: ones.to(kind),
        lambda: ones.type(kind),
        lambda: torch.promote_types(kind, torch.float32),
    ):
        with pytest.raises(TypeError, match=rf"engine has no tensors of dtype torch\.{kind.name}; it has float16, "):
            make()
