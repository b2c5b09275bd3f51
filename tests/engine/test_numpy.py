"""Tensors among Python's and numpy's own: conversions, numpy's functions, copies, pickles; against PyTorch."""

import copy
import pickle

import numpy as np
import pytest
from twin import compare

import gviz.engine as torch

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
    warnings.simplefilter("always"); torch.from_numpy(v)
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
