"""Normalization beside PyTorch: values, graphs, saved statistics, running statistics, and what is refused."""

import pytest
from twin import compare

pytestmark = pytest.mark.torch

BEGIN = """
import numpy as np
import torch.nn.functional as F
def data(*shape, kind=torch.float64, grad=True):
    numbers = np.random.default_rng(len(shape) + sum(shape)).standard_normal(shape) + .3
    return torch.from_numpy(numbers).to(kind).requires_grad_(grad)
def tried(f, *tensors):
    y = f(*tensors)
    see(y)
    y.backward((torch.arange(y.numel()).to(y.dtype) * .7).cos().reshape(y.shape))
    numbers(*[t.grad for t in tensors])
    for name in ("result1", "result2", "eps", "normalized_shape", "N", "C", "HxW", "group", "training"):
        if hasattr(y.grad_fn, "_saved_" + name):
            see(getattr(y.grad_fn, "_saved_" + name))
"""
PROGRAMS = {
    "layer": "tried(lambda x, w, b: F.layer_norm(x, (4,), w, b), data(2, 3, 4), data(4), data(4))",
    "layer, float32": "tried(lambda x, w, b: F.layer_norm(x, (4,), w, b), *[data(*s, kind=torch.float32) for s in ((2, 3, 4), (4,), (4,))])",
    "layer over two": "tried(lambda x, w: F.layer_norm(x, (3, 4), w, eps=.1), data(2, 3, 4), data(3, 4))",
    "layer without parameters": "tried(lambda x: F.layer_norm(x, [4]), data(2, 3, 4))",
    "layer, bias alone": "tried(lambda x, b: F.layer_norm(x, [4], None, b), data(2, 3, 4), data(4))",
    "layer, only the bias learns": "x, w, b = data(2, 4, grad=False), data(4, grad=False), data(4)\ny = F.layer_norm(x, (4,), w, b); y.sum().backward(); see(y, b)",
    "layer of torch": "tried(lambda x, w, b: torch.layer_norm(x, (4,), w, b, .1, False), data(2, 3, 4), data(4), data(4))",
    "layer, from elsewhere in memory": "tried(lambda x: F.layer_norm(x.transpose(0, 1), (2,)), data(2, 3))",
    "layer of constants": "tried(lambda x: F.layer_norm(x * 0 + 2, (4,)), data(2, 4))",
    "rms": "tried(lambda x, w: F.rms_norm(x, (4,), w), data(2, 3, 4), data(4))",
    "rms without weight": "tried(lambda x: F.rms_norm(x, (3, 4), eps=.1), data(2, 3, 4))",
    "group": "tried(lambda x, w, b: F.group_norm(x, 2, w, b), data(3, 4, 5), data(4), data(4))",
    "group of images": "tried(lambda x, w: F.group_norm(x, 4, w, eps=.1), data(2, 4, 3, 2), data(4))",
    "group without parameters": "tried(lambda x: torch.group_norm(x, 1), data(2, 4))",
    "batch": "tried(lambda x, w, b: F.batch_norm(x, None, None, w, b, True), data(3, 4, 5), data(4), data(4))",
    "batch of images": "tried(lambda x, w, b: F.batch_norm(x, None, None, w, b, True, eps=.1), data(3, 2, 4, 5), data(2), data(2))",
    "equal elements without eps": "tried(lambda x, w: F.instance_norm(x * 0 + 2, weight=w, eps=0), data(2, 3, 4), data(3))",
    "equal elements and others without eps": "x = data(1, 2, 3); y = torch.where(torch.tensor([[[1.], [0.]]]) > 0, x, 2.); m, v = torch.zeros(2).double(), torch.ones(2).double()\nsee(F.instance_norm(y, m, v, eps=0.), m, v, F.layer_norm(y, (3,), eps=0.))",
    "equal elements without eps, of a mean that is rounded": "x = torch.full((1, 3, 7), .1)\nsee(F.instance_norm(x, eps=0.), F.layer_norm(x, (7,), eps=0.), F.group_norm(x, 3, eps=0.))",
    "batch of an infinite variance": "m, v = torch.zeros(1), torch.ones(1)\nF.batch_norm(torch.tensor([[1e30], [-1e30]]), m, v, training=True); see(m, v)",
    "batch of rows": "tried(lambda x: F.batch_norm(x, None, None, training=True), data(3, 4))",
    "batch, evaluated": "m, v = data(4, grad=False), data(4, grad=False).exp()\ntried(lambda x, w, b: F.batch_norm(x, m, v, w, b), data(3, 4, 5), data(4), data(4))\nsee(m, v)",
    "batch, remembered": "m, v = torch.zeros(4).double(), torch.ones(4).double()\nfor momentum in (.1, .3): tried(lambda x: F.batch_norm(x, m, v, training=True, momentum=momentum), data(3, 4, 5)); see(m, v)",
    "batch, trained after evaluated": "m, v = torch.zeros(4), torch.ones(4)\nx = data(3, 4, kind=torch.float32)\ny = F.batch_norm(x, m, v)\nF.batch_norm(x, m, v, training=True)\ny.sum().backward()",
    "batch of nothing": "see(F.batch_norm(torch.zeros(0, 4), torch.zeros(4), torch.ones(4), training=True))",
    "instance": "tried(lambda x, w, b: F.instance_norm(x, weight=w, bias=b), data(3, 2, 5), data(2), data(2))",
    "instance of images": "tried(lambda x: F.instance_norm(x, eps=.1), data(3, 2, 5, 2))",
    "instance, remembered": "m, v = torch.zeros(4).double(), torch.ones(4).double()\ntried(lambda x: F.instance_norm(x, m, v), data(3, 4, 5)); see(m, v)",
    "instance, evaluated": "m, v = torch.zeros(4).double(), torch.ones(4).double()\ntried(lambda x: F.instance_norm(x, m, v, use_input_stats=False), data(3, 4, 5)); see(m, v)",
    "local response": "tried(lambda x: F.local_response_norm(x, 3, .5, .6, 2.), data(2, 5, 4))",
    "local response of images": "tried(lambda x: F.local_response_norm(x, 2), data(2, 5, 4, 3))",
    "normalize": "tried(lambda x: F.normalize(x), data(3, 4))",
    "normalize by cubes": "tried(lambda x: F.normalize(x, 3., 0), data(3, 4))",
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_values_and_graphs(program):
    close = {"rtol": 1e-4, "atol": 1e-5} if "float32" in program else {"rtol": 1e-7, "atol": 1e-9}
    compare(BEGIN + program, **close)


REFUSED = [
    "F.layer_norm(x, (5,))",
    "F.layer_norm(x, (6,), z(5))",
    "F.layer_norm(x, (6,), z(6), z(5))",
    "F.layer_norm(x, ())",
    "F.layer_norm(x, 6)",
    "F.layer_norm(x.long(), (6,))",
    "F.layer_norm(x, (6,), z(6).double())",
    "F.layer_norm(z(0, 3), (3,))",
    "F.layer_norm(z(3, 0), (0,))",
    "F.rms_norm(x, (5,))",
    "F.rms_norm(x, (6,), z(5))",
    "F.group_norm(x, 3)",
    "F.group_norm(x, 2, z(3))",
    "F.group_norm(z(1, 2), 2)",
    "F.group_norm(z(1, 2), 1)",
    "F.batch_norm(x, z(3), z(4))",
    "F.batch_norm(x, z(4), z(3))",
    "F.batch_norm(x, None, None)",
    "F.batch_norm(x, z(4), z(4), z(3))",
    "F.batch_norm(x, z(4), z(4), None, z(3))",
    "F.batch_norm(z(1, 4), z(4), z(4), training=True)",
    "F.batch_norm(z(1, 4), None, None, training=True, eps=0)",
    "F.batch_norm(x, None, None, training=True, eps=0)",
    "F.batch_norm(x, None, None, training=True, eps=-1.)",
    "F.batch_norm(x, z(4), z(4), eps=-1)",
    "F.batch_norm(x, z(4), z(4) + 1, eps=0)",
    "F.batch_norm(x, None, z(4), training=True)",
    "F.batch_norm(x.long(), z(4), z(4))",
    "F.batch_norm(x.double(), z(4), z(4), training=True)",
    "F.instance_norm(z(2, 3))",
    "F.instance_norm(z(2, 3, 1))",
    "F.instance_norm(x, use_input_stats=False)",
    "F.local_response_norm(z(3, 3), 2)",
]


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_refused(call):
    compare(
        f"import torch.nn.functional as F\nz = torch.zeros\nx = torch.arange(288.).view(2, 4, 6, 6)\nattempt(lambda: {call})"
    )
