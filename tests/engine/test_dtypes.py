"""Dtypes: what comes of two, what converts to what, what is refused; against PyTorch."""

import importlib

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


EXPRESSIONS = {
    "devices and conversions": r"""
torch.device("cpu")
torch.device("cuda")
torch.device("cuda:1")
torch.device("cuda", 1)
torch.device("cpu", 0)
torch.device("cpu:0")
torch.device("cpu:1")
torch.device("foo")
torch.device("")
torch.device("cuda:")
torch.device("cuda:x")
torch.device("cuda:-1")
torch.device("cuda:01")
torch.device("cuda:1", 1)
torch.device(type="cpu")
torch.device(type="cpu", index=0)
torch.device(None)
torch.device(1.5)
torch.device()
torch.device(torch.device("cpu"))
torch.device(torch.device("cuda:1"))
str(torch.device("cpu")), str(torch.device("cuda:1"))
torch.device("cpu") == torch.device("cpu:0")
torch.device("cpu") == "cpu"
torch.device("cpu").type, torch.device("cpu").index
torch.ones(1).device
torch.ones(1).device == torch.device("cpu")
torch.ones(1).device == "cpu"
str(torch.ones(1).device)
torch.ones(1).is_cuda
torch.ones(1).is_cpu
torch.ones(1).is_mps
torch.ones(1).is_meta
torch.ones(1).is_sparse
torch.ones(1).is_xpu
torch.ones(1).is_nested
torch.ones(1).layout
torch.ones(1).get_device()
torch.ones(1).cpu()
torch.ones(1).cuda()
torch.ones(1).cuda(0)
torch.ones(1).to("cuda")
torch.ones(1).to("foo")
torch.ones(1).to("cpu")
torch.ones(1).to("cpu:0").device
torch.ones(1).to(torch.device("cpu"), torch.float64)
torch.ones(1).to("cpu", torch.float64)
torch.ones(1).to("cpu", dtype=torch.float64)
torch.ones(1).to(device="cpu", dtype=torch.float64)
torch.ones(1).to(dtype=torch.float64)
torch.ones(1).to(torch.float64, copy=True)
torch.ones(1).to(torch.float64, non_blocking=True)
torch.ones(1).to(torch.float64, True, True)
torch.ones(1).to(torch.ones(2,dtype=torch.float64))
torch.ones(1).to(float)
torch.ones(1).to(int)
torch.ones(1).to(bool)
torch.ones(1).to(None)
torch.ones(1).to()
torch.ones(1).to(3)
torch.ones(1).to("float64")
torch.ones(1).to(torch.float32, memory_format=torch.preserve_format)
torch.ones(1).to(memory_format=torch.contiguous_format)
torch.ones(1,requires_grad=True).to(torch.float64)
torch.ones(1,requires_grad=True).to(torch.float32, copy=True)
torch.ones(1,requires_grad=True).to(torch.int64)
torch.ones(1,requires_grad=True).int()
torch.ones(1).type()
torch.ones(1).type(torch.float64)
torch.ones(1).type("torch.DoubleTensor")
torch.ones(1).type(torch.DoubleTensor)
torch.ones(1).type("float64")
torch.ones(1).type(float)
torch.ones(1).type(3)
torch.ones(1).type_as(torch.ones(1,dtype=torch.int32))
torch.ones(1).type_as(3)
torch.ones(1).double(), torch.ones(1).half(), torch.ones(1).short(), torch.ones(1).byte(), torch.ones(1).char(), torch.ones(1).bool(), torch.ones(1).int(), torch.ones(1).long(), torch.ones(1).float()
torch.tensor([1.7,-1.7,300.,-1.]).byte()
torch.tensor([1.7,-1.7,300.,-1.]).char()
torch.tensor([float("nan"),float("inf"),-float("inf"),1e20]).int()
torch.tensor([float("nan"),float("inf"),-float("inf"),1e20]).long()
torch.tensor([float("nan"),0.,.5]).bool()
torch.finfo(torch.float32)
torch.finfo(torch.float64)
torch.finfo(torch.float16)
torch.finfo()
torch.finfo(torch.int32)
torch.finfo("float32")
torch.finfo(torch.float32).eps, torch.finfo(torch.float32).max, torch.finfo(torch.float32).tiny,torch.finfo(torch.float32).bits,torch.finfo(torch.float32).smallest_normal,torch.finfo(torch.float32).resolution,torch.finfo(torch.float32).dtype
torch.iinfo(torch.int32)
torch.iinfo(torch.uint8)
torch.iinfo(torch.int64).max, torch.iinfo(torch.int64).bits, torch.iinfo(torch.int64).min, torch.iinfo(torch.int64).dtype
torch.iinfo(torch.float32)
torch.iinfo(torch.bool)
torch.iinfo(3)
torch.iinfo(torch.int32)==torch.iinfo(torch.int32)
torch.is_floating_point(torch.ones(1))
torch.is_floating_point(3)
torch.is_tensor(3), torch.is_tensor(torch.ones(1))
torch.is_nonzero(torch.ones(1))
torch.is_storage(3)
torch.numel(torch.ones(3))
torch.promote_types(torch.int8, torch.uint8)
torch.promote_types(3, torch.uint8)
torch.promote_types(int, torch.uint8)
torch.result_type(1, 2)
torch.result_type(1, 2.)
torch.result_type(True, 2)
torch.result_type(torch.ones(1), 2)
torch.result_type("a", 2)
torch.result_type(torch.ones(1), "a")
torch.can_cast(torch.float32, torch.int32)
torch.can_cast(3, torch.int32)
torch.float32.to_real()
torch.dtype
torch.float32 == "float32"
torch.float is torch.float32, torch.double is torch.float64, torch.half is torch.float16
type(torch.float32)
torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.is_initialized()
torch.cuda.current_device()
torch.cuda.synchronize()
torch.cuda.get_device_name()
torch.cuda.get_device_name(0)
torch.cuda.empty_cache()
torch.cuda.manual_seed(3)
torch.cuda.manual_seed_all(3)
torch.cuda.memory_allocated()
torch.cuda.max_memory_allocated()
torch.cuda.get_device_properties(0)
torch.cuda.init()
torch.backends.cudnn.benchmark
torch.backends.cudnn.enabled
torch.backends.cudnn.is_available()
torch.backends.cudnn.version()
torch.backends.mps.is_available()
torch.backends.mps.is_built()
torch.backends.cuda.matmul.allow_tf32
torch.backends.cuda.is_built()
torch.mps.is_available()
torch.xpu.is_available()
torch.accelerator.is_available()
torch.accelerator.current_accelerator()
torch.accelerator.device_count()
torch.strided
torch.preserve_format
torch.contiguous_format
torch.channels_last
torch.sparse_coo
torch.get_device(torch.ones(1))
torch.is_inference_mode_enabled()
torch.pi, torch.e, torch.inf, torch.nan, torch.newaxis
torch.ones(1,requires_grad=True,dtype=torch.int32)
torch.ones(1,dtype=torch.int32).requires_grad_()
torch.ones(1,dtype=torch.bool).requires_grad_()
torch.nn.Parameter(torch.ones(1,dtype=torch.int32))
torch.ones(1).real
torch.ones(1).imag
torch.real(torch.ones(1))
torch.imag(torch.ones(1))
torch.ones(1).conj()
torch.ones(1).is_conj()
torch.sqrt(torch.tensor(-1.))
torch.ones(2).nbytes, torch.ones(2).itemsize, torch.ones(2).element_size()
torch.ones(2).storage_offset()
torch.ones(2).H
torch.ones(2,2).mT
torch.ones(2).is_pinned()
torch.ones(2).is_shared()
torch.ones(2).is_inference()
torch.ones(2).dim(), torch.ones(2).nelement(), torch.ones(2).ndimension(), torch.ones(2).numel()
torch.ones(2).size(1)
torch.ones(2).size("a")
torch.ones(2,3).size(dim=1)
""",
    "settings": r"""
torch.get_default_dtype()
torch.set_default_dtype(torch.int32)
torch.set_default_dtype("a")
torch.set_default_dtype(3)
torch.set_default_dtype(float)
torch.get_default_dtype()
torch.set_default_tensor_type(torch.FloatTensor)
torch.set_default_tensor_type("torch.DoubleTensor")
torch.get_default_dtype()
torch.set_default_tensor_type(torch.IntTensor)
torch.set_default_dtype(torch.float32)
torch.get_num_threads() > 0
torch.set_num_threads(0)
torch.set_num_threads(-1)
torch.set_num_threads("a")
torch.set_num_threads(1.5)
torch.set_num_interop_threads(2)
torch.get_num_interop_threads() > 0
torch.backends.cudnn.deterministic
torch.get_float32_matmul_precision()
torch.set_float32_matmul_precision("high")
torch.set_float32_matmul_precision("foo")
torch.use_deterministic_algorithms(True)
torch.are_deterministic_algorithms_enabled()
torch.is_deterministic_algorithms_warn_only_enabled()
torch.use_deterministic_algorithms(False)
torch.set_float32_matmul_precision("highest")
torch.set_default_device("cpu")
torch.set_default_device("cpu")
torch.typename(torch.ones(1))
torch.typename(3)
torch.set_warn_always(False)
torch.is_warn_always_enabled()
""",
}


@pytest.mark.torch
@pytest.mark.parametrize("group", EXPRESSIONS)
def test_expressions_as_pytorch(group):
    compare("\n".join(f"attempt(lambda: {line})" for line in EXPRESSIONS[group].split("\n") if line))


@pytest.mark.torch
def test_a_number_alone_is_a_gpu():
    with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is available"):
        torch.device(0)
    if importlib.import_module("torch").version.cuda is None:  # else it is one whether it is there or not
        compare("attempt(lambda: torch.device(0))")


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
