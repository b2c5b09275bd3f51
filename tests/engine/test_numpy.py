"""Tensors among Python's and numpy's own: conversions, numpy's functions, copies, pickles; against PyTorch."""

import copy
import functools
import pickle
import types
import warnings

import numpy as np
import pytest
from expressions import attempted, split
from twin import compare

import gviz.engine as torch
from gviz.engine import messages

EXPRESSIONS = {
    "numpy's functions": r"""
np.add(torch.ones(2), np.ones(2))
np.add(np.ones(2), torch.ones(2))
np.ones(2) * torch.ones(2)
torch.ones(2) * np.ones(2)
np.ones(2) - torch.ones(2)
np.ones(2) / torch.ones(2)
np.float64(2.) * torch.ones(2)
torch.ones(2) * np.float64(2.)
np.float32(2.) * torch.ones(2)
torch.ones(2) * np.int64(2)
np.int64(2) + torch.ones(2, dtype=torch.int32)
np.float64(2) - torch.ones(2, dtype=torch.int32)
np.float64(2) * torch.tensor(2., requires_grad=True)
np.bool_(True) * torch.ones(2)
np.sin(torch.ones(2))
np.greater(torch.ones(2), 0)
np.exp(torch.ones(2, requires_grad=True))
np.add(torch.ones(2, requires_grad=True), 1)
np.ones(2) * torch.ones(2, requires_grad=True)
torch.ones(2, requires_grad=True) * np.ones(2)
np.array(torch.ones(2))
np.array(torch.ones(2), dtype=np.float64)
np.array(torch.ones(2, requires_grad=True))
np.array([torch.ones(2), torch.ones(2)])
np.stack([torch.ones(2), torch.ones(2)])
np.concatenate([torch.ones(2), torch.ones(2)])
np.allclose(torch.ones(2), np.ones(2))
np.isnan(torch.ones(2))
np.maximum(torch.ones(2), 2)
np.zeros(3)[torch.tensor([0, 1])]
np.arange(torch.tensor(3))
np.zeros((torch.tensor(3), 2)).shape
np.clip(torch.tensor([1., 5.]), 0, 2)
np.where(torch.tensor([True, False]), 1, 2)
np.linalg.norm(torch.ones(4))
np.argmax(torch.tensor([1., 3., 2.]))
torch.ones(2) == np.ones(2)
np.ones(2) == torch.ones(2)
torch.ones(2) != np.array([1., 2.])
torch.ones(2) < np.ones(2)
""",
    "arrays": r"""
torch.ones(2).numpy()
torch.ones(2, requires_grad=True).numpy()
torch.ones(2, requires_grad=True).numpy(force=True)
torch.ones(2).numpy(force=3)
torch.ones(2).__array__(np.float64)
torch.ones(2, requires_grad=True).__array__()
torch.tensor(3.).numpy()
torch.ones(2).half().numpy().dtype
torch.tensor([True]).numpy().dtype
""",
    "Python's numbers": r"""
torch.ones(2).item()
torch.ones(0).item()
torch.ones(1).item(), torch.ones(1, 1).item(), torch.tensor(3).item(), torch.tensor(True).item()
torch.tensor(3.).tolist(), torch.ones(2).tolist(), torch.ones(2, 2).tolist(), torch.ones(0).tolist()
len(torch.ones(3)), len(torch.ones(3, 2))
len(torch.tensor(3))
list(torch.tensor(2))
[x for x in torch.ones(2, 2)]
2. in torch.ones(2)
1. in torch.ones(2)
torch.tensor(1.) in torch.ones(2)
"a" in torch.ones(2)
None in torch.ones(2)
bool(torch.ones(2))
bool(torch.ones(0))
bool(torch.ones(1)), bool(torch.zeros(1)), bool(torch.tensor(2)), bool(torch.tensor([[0.]]))
int(torch.tensor(2.7)), float(torch.tensor(2)), int(torch.tensor([3])), complex(torch.tensor(2.)).real
int(torch.ones(2))
float(torch.ones(2))
complex(torch.ones(2))
int(torch.tensor(float("nan")))
int(torch.tensor(float("inf")))
torch.ones(2).__index__()
torch.tensor(2.).__index__()
torch.tensor([2]).__index__()
[1, 2, 3][torch.tensor(1)], list(range(torch.tensor(3)))
abs(torch.tensor(-2.)), -torch.tensor(2.), +torch.tensor(2.), ~torch.tensor(True), ~torch.tensor(5)
list(reversed(torch.tensor([1., 2.])))
sorted(torch.tensor([3., 1., 2.]))
sum(torch.ones(2)), max(torch.tensor([1, 2]))
""",
    "texts": r"""
f"{torch.tensor(2.5)}", f"{torch.tensor(2.5):.2f}", f"{torch.tensor(3):d}", f"{torch.tensor(3):5d}", f"{torch.tensor(True)}"
f"{torch.ones(2)}", f"{torch.ones(1)}"
f"{torch.ones(2):.2f}"
f"{torch.ones(1):.2f}"
f"{torch.tensor(2.5):d}"
"%.2f" % torch.tensor(2.5), "%d" % torch.tensor(2), "%s" % torch.tensor(2)
"{:.3f}".format(torch.tensor(2., requires_grad=True))
type(torch.ones(2)), torch.Tensor, torch.Size, type(torch.ones(2).shape), torch.device, torch.dtype
""",
    "what is no operand": r"""
torch.ones(2) == None
torch.ones(2) == "a"
torch.ones(2) != None
torch.ones(2) < None
torch.ones(2) == [1., 1.]
torch.ones(2) + None
torch.ones(2) + "a"
torch.ones(2) + [1, 2]
"a" + torch.ones(2)
[1, 2] + torch.ones(2)
""",
    "sizes": r"""
torch.Size([2, 3]) + (4,), torch.Size([2, 3]) + torch.Size([1]), torch.Size([2, 3])[0], torch.Size([2, 3])[:1]
(4,) + torch.Size([2, 3]), list(torch.Size([2, 3])), torch.Size([2, 3]) == (2, 3), torch.Size([]), torch.Size(), torch.Size([2]) * 2
torch.Size([2.5])
torch.Size(["a"])
torch.Size([torch.tensor(3)]), torch.Size((2, 3)).numel(), hash(torch.Size([2])) == hash((2,))
torch.ones(2, 3).shape + (1,), torch.ones(2, 3).shape[1:], isinstance(torch.ones(2).shape, tuple)
""",
    "copies": r"""
copy.copy(torch.ones(2, requires_grad=True))
copy.copy(torch.ones(2, requires_grad=True) * 2)
copy.deepcopy(torch.ones(2, requires_grad=True))
copy.deepcopy(torch.ones(2, requires_grad=True) * 2)
copy.deepcopy(torch.nn.Parameter(torch.ones(2)))
[a is b for a, b in [copy.deepcopy([torch.ones(2)] * 2)]]
""",
}


@pytest.mark.torch
@pytest.mark.parametrize("group", EXPRESSIONS)
def test_as_pytorch(group):
    calls = [f"attempt(lambda: {line})" for line in EXPRESSIONS[group].split("\n") if line]
    compare("\n".join(["import copy", "import numpy as np", *calls]))


@pytest.mark.torch
def test_arrays_without_elements_have_strides_that_other_libraries_read():
    import torch as real

    made = torch.from_numpy(np.empty((0, 3), np.float32))
    for tensor in (made, made.clone(), made.t(), torch.tensor([1.0, 2.0]).repeat(0), torch.zeros_like(made)):
        assert not any(step % 4 for step in tensor.numpy().strides)
        assert real.from_numpy(tensor.numpy()).shape == tensor.shape
    compare("""
import numpy as np
z = torch.from_numpy(np.empty((0, 3)))
see(z.stride(), z.t().stride(), z.clone().stride(), z[:, 1:].stride(), (z + 1).stride(), torch.zeros_like(z).stride())
x = torch.tensor(1.).expand(0, 3); see(x.stride(), x.t().stride(), x.reshape(3, 0).stride(), x.clone().stride())
""")


@pytest.mark.torch
def test_memory_is_shared():
    compare("""
import copy
import numpy as np
t = torch.zeros(3); a = t.numpy(); a[0] = 4.; see(t, t._version); t[1] = 5.; see(a)
b = np.asarray(t); b[2] = 6.; see(t); c = np.array(t); c[0] = 0.; see(t)
d = copy.copy(t); d[0] = 1.; see(t, d); e = copy.deepcopy(t); e[0] = 2.; see(t, e)
s = torch.arange(6.).view(2, 3).t(); see(s.numpy().strides, torch.from_numpy(s.numpy()).stride())
v = np.zeros(2); v.flags.writeable = False
import warnings
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always"); torch.set_warn_always(True); torch.from_numpy(v); torch.set_warn_always(False)
see([str(w.message)[:60] for w in said])
""")


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles(protocol):
    for tensor in (
        torch.ones(2, requires_grad=True),
        torch.arange(6).view(2, 3).t(),
        torch.ones(2, requires_grad=True) * 2,
    ):
        again = pickle.loads(pickle.dumps(tensor, protocol))
        np.testing.assert_array_equal(again.detach(), tensor.detach())
        assert (again.requires_grad, again.is_leaf, again.stride()) == (tensor.requires_grad, True, tensor.stride())
    assert pickle.loads(pickle.dumps(torch.Size([2]), protocol)) == torch.Size([2])
    assert pickle.loads(pickle.dumps(torch.float32, protocol)) is torch.float32
    assert pickle.loads(pickle.dumps(torch.device("cuda:1"), protocol)) == torch.device("cuda:1")
    assert pickle.loads(pickle.dumps(torch.strided, protocol)) is torch.strided


def test_a_subclass_stays_one():
    class Named(torch.Tensor):
        pass

    named = Named([1.0, 2.0])
    assert type(copy.deepcopy(named)) is type(copy.copy(named)) is Named


READ = """
import torch, math, copy, pickle, warnings
import numpy as np
from torch import nn
leaf = torch.ones(2, requires_grad=True)
def off(call):
    with torch.no_grad():
        return call()
def inference(call):
    with torch.inference_mode():
        return call()
def deleted(t, key): del t[key]
def assigned(t, name, value):
    setattr(t, name, value)
    return t
def again(value): return pickle.loads(pickle.dumps(value))
def warned(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [(w.category.__name__, str(w.message).split(" (Triggered")[0]) for w in caught]
def marked(t):
    t.mark = [1]
    return t
def together(make):
    x = torch.arange(4.)
    a, b = make([x, x[1:]])
    a[1] = 9
    return b
"""
CONVERTED = """
off(lambda: leaf.numpy()) | off(lambda: (leaf * 2).numpy()) | off(lambda: np.asarray(leaf)) | off(lambda: leaf.__array__(np.float64))
inference(lambda: leaf.numpy()) | off(lambda: np.array([leaf, leaf])) | off(lambda: nn.Parameter(torch.ones(2)).numpy())
off(lambda: np.sin(leaf)) | leaf.numpy() | np.asarray(leaf) | leaf.numpy(force=True) | leaf.data.numpy() | leaf.tolist()
leaf.__array__() | np.sin(leaf) | leaf.__dlpack__() | np.from_dlpack(torch.ones(2)) | tuple(torch.ones(2).__dlpack_device__())
deleted(torch.ones(2), 0) | deleted(torch.ones(()), 0) | deleted(torch.ones(2), "a") | torch.ones(2).adjoint() | torch.ones(2).name
assigned(torch.ones(2), "shape", (1, 2)) | assigned(torch.ones(2), "dtype", torch.float64) | assigned(torch.ones(2), "T", 1)
assigned(torch.ones(2), "grad_fn", None) | assigned(torch.ones(2), "is_leaf", True) | assigned(torch.ones(2), "device", "cpu")
assigned(torch.ones(2), "_version", 1) | assigned(torch.ones(2), "is_cuda", True) | assigned(torch.ones(2), "real", torch.zeros(2))
assigned(torch.ones(2), "imag", torch.zeros(2)) | delattr(torch.ones(2), "shape") | delattr(torch.ones(2), "data")
delattr(torch.ones(2), "requires_grad")
"""
COPIED = """
copy.deepcopy(marked(torch.ones(2))).mark | copy.copy(marked(torch.ones(2))).mark | again(marked(torch.ones(2))).mark
again(marked(nn.Parameter(torch.ones(2)))).mark | hasattr(copy.deepcopy(marked(nn.Parameter(torch.ones(2)))), "mark")
copy.deepcopy(torch.arange(6.).reshape(2, 3).t()).stride() | again(torch.arange(6.)[::2]).stride() | again(torch.arange(6.)[::2])
copy.deepcopy(torch.ones(1, 3).expand(2, 3)).stride() | again(torch.ones(1, 3).expand(2, 3)).stride() | together(copy.deepcopy)
together(again) | again(torch.arange(6.).reshape(2, 3).t()[:, 1:]) | again(torch.finfo(torch.float32)) | copy.copy(torch.iinfo(torch.int8))
copy.copy((leaf * 2).grad_fn) | copy.deepcopy((leaf * 2).grad_fn) | again((leaf * 2).grad_fn) | again(torch.arange(3.).max(0))
again(torch.arange(3.).max(0)).indices | again(torch.ones(2).add)(1) | again(torch.FloatTensor) is torch.FloatTensor
"""
FUNCTIONS_AS_THEY_ARE = """
torch.sin torch.add torch.cat torch.zeros torch.randn torch.save torch.no_grad torch.tensor torch.nn.functional.softsign torch.nn.functional.relu
torch.nn.functional.linear torch.nn.functional.pad torch.nn.functional.cross_entropy torch.Tensor.add torch.Tensor.add_ torch.Tensor.item
torch.Tensor.backward torch.Tensor.__getitem__ torch.nn.Module.train torch.nn.Module.register_forward_hook torch.nn.init.ones_
torch.nn.utils.clip_grad_norm_ torch.linalg.norm torch.autograd.grad torch.optim.SGD torch.nn.Linear torch.float32 torch.strided
torch.channels_last torch.clamp torch.clip torch.where torch.addmm torch.Tensor.conj torch.nn.functional.max_pool2d
"""
ONCE = split(
    """
float(leaf[0]) | complex(leaf[0]) | torch.ones(2, 3, 4).T | torch.ones(()).T | torch.ones(()).H | torch.ones(()).mT | torch.ones(()).adjoint()
"""
)


@pytest.mark.torch
@pytest.mark.parametrize("expression", split(CONVERTED))
def test_reading_and_assigning_as_pytorch(expression):
    compare(READ + attempted([expression]))


@pytest.mark.torch
@pytest.mark.parametrize("expression", split(COPIED))
def test_copies_keep_memory_and_attributes(expression):
    compare(READ + attempted([expression]))


@pytest.mark.parametrize("path", FUNCTIONS_AS_THEY_ARE.split())
def test_what_is_public_is_pickled_by_name(path):
    found = functools.reduce(getattr, path.split(".")[1:], torch)
    assert pickle.loads(pickle.dumps(found)) is found
    assert copy.deepcopy(found) is found


def test_every_public_function_comes_back_from_its_pickle():
    spaces = [torch, torch.nn, torch.nn.functional, torch.linalg, torch.optim, torch.nn.init, torch.Tensor]
    functions = {f for space in spaces for f in vars(space).values() if isinstance(f, types.FunctionType)}
    public = [f for f in functions if not f.__name__.startswith("_")]
    assert len(public) > 500
    assert not [f for f in public if pickle.loads(pickle.dumps(f)) is not f]


@pytest.mark.parametrize("expression", ONCE)
def test_what_pytorch_mentions_once_is_warned_of_once(expression, monkeypatch):
    monkeypatch.setattr(messages, "_warned", set())
    monkeypatch.setattr(messages, "always", False)
    leaf = torch.ones(2, requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            eval(expression, {"torch": torch, "leaf": leaf})
    (warning,) = caught
    assert warning.category is UserWarning
    assert warning.filename == "<string>"


@pytest.mark.torch
def test_a_hook_that_is_not_pickled_is_warned_of():
    compare(
        READ
        + """
h = leaf.register_hook(len)
see(warned(lambda: pickle.dumps(leaf)))
"""
    )


def test_an_array_that_is_not_writable_is_warned_of_once():
    array = np.broadcast_to(np.ones(1), (2,))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.set_warn_always(True)
        torch.from_numpy(array)
        torch.set_warn_always(False)
        torch.from_numpy(array)
    assert [str(warning.message)[:43] for warning in caught] == ["The given NumPy array is not writable, and "]
