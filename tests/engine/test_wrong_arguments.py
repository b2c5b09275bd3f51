"""Wrong arguments, masks of bytes and of other shapes, layers whose options change: what is refused, as PyTorch does."""

import pytest
from expressions import attempted, split
from twin import compare

import gviz.engine as torch
from gviz.engine import messages

SETUP = """
import torch, warnings
import numpy as np
from torch import nn
x, rows, image = torch.arange(3.), torch.arange(6.).reshape(2, 3), torch.ones(1, 4, 2, 2)
some = torch.tensor([1, 0, 1], dtype=torch.uint8)
short, masks = torch.tensor([1, 0], dtype=torch.uint8), torch.tensor([[1, 0, 1], [0, 0, 1]], dtype=torch.uint8)
some_b, masks_b = some > 0, masks > 0
def warned(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call()
        except Exception as error:
            result = type(error).__name__, str(error)
    return result, [(w.category.__name__, str(w.message).split(" (Triggered")[0]) for w in caught]
def put(t, key, value):
    t = t.clone()
    t[key] = value
    return t
"""
REFUSED = split("""
nn.functional.softmax(rows, (1,)) | nn.functional.softmax(rows, 1.5) | nn.functional.softmax(rows, "a") | nn.functional.softmax(rows, torch.tensor(1)) | nn.functional.softmax(rows, True) | nn.functional.log_softmax(rows, (1,)) | nn.functional.log_softmax(rows, 1.5) | nn.functional.softmin(rows, 1.5)
x[["a"]] | x.flip() | torch.flip(x) | x.flip(()) | x.flip(1) | x.flip("a") | x.flip(None) | x.flip(.5) | x.flip(0, 0) | torch.flip(x, (0, 0))
nn.PixelShuffle(0)(image) | nn.PixelShuffle(-1)(image) | nn.PixelShuffle(1.5)(image) | nn.PixelShuffle("a")(image)
nn.PixelShuffle(None)(image) | nn.PixelShuffle(3)(image) | nn.PixelUnshuffle(0)(image) | nn.PixelUnshuffle(-1)(image)
nn.PixelUnshuffle(1.5)(image) | nn.PixelUnshuffle(3)(image) | nn.ChannelShuffle(0)(image) | nn.ChannelShuffle(3)(image)
torch.tensor_split(x, 1.1) | torch.tensor_split(x, "a") | torch.tensor_split(x, (1.5,)) | torch.tensor_split(x) | torch.tensor_split(x, 0)
torch.tensor_split(x, -1) | torch.tensor_split(x, torch.tensor([2., 3.])) | torch.tensor_split(x, torch.ones(1, 1, dtype=torch.long))
torch.tensor_split(x, 2, 5) | torch.tensor_split(x[0], 2) | torch.chunk(x, 0) | torch.chunk(x, 1.5) | torch.chunk(x, -1)
torch.split(x, 0) | torch.split(x, -1) | torch.split(x, 1.5) | torch.split(x, "a") | torch.split(x, [2, 5]) | torch.split(x, [-2, 5])
torch.split(x, [1.5, 1.5]) | torch.split(x, None) | x.unbind(2) | torch.hsplit(x, 0) | torch.hsplit(x, 2) | torch.vsplit(x, 2)
""")
COUNTED = split("""
x.roll() | x.repeat() | x.expand() | x.permute() | x.tile() | x.unfold() | x.gather(0) | x.allclose() | x.index_select() | x.clamp() | x.add()
x.addmm(x) | x.addcmul(x) | x.bmm() | x.clamp(foo=1) | x.clamp(1, 2, 3, foo=4) | torch.sum(x, foo=1, bar=2.) | torch.sum(foo=1, bar=2.)
x.add(x, foo=1, alpha=2) | x.add(x, out=x) | x.add(x, x, x, x) | x.index_fill(0) | torch.full((2,)) | torch.full() | torch.zeros() | torch.arange()
F.mse_loss(1) | F.mse_loss(x) | F.mse_loss() | F.mse_loss(1, 2) | F.mse_loss(1, foo=2) | F.binary_cross_entropy(1) | F.adaptive_avg_pool2d(1)
F.cross_entropy(1) | F.nll_loss(x) | F.interpolate() | F.pad(x) | torch.tensordot(1) | torch.addmm(x) | torch.addbmm() | torch.addr(foo=1)
""")
DEPRECATED = split("""
x.clone().add_(-.1, x) | x.add(2, x) | x.add(2, 3) | torch.sub(x, 2, 3) | torch.add(x, 2, x) | x.sub(2, other=x) | x.addcmul(2, x, x) | x.clone().addcdiv_(-.1, x, x + 1)
torch.addcmul(x, tensor1=x, tensor2=x, value=2) | torch.addmm(2, rows.T, 3, rows.T, rows[:, :2]) | rows.T.addmm(2, rows.T, rows[:, :2]) | torch.addmm(2, rows, 3, rows[:, :2], rows, out=rows.clone())
x.addmv(2, rows.T, x[:2]) | torch.addr(2, rows, x[:2], x) | rows.clone().addr_(2, 3, x[:2], x) | x.add(torch.tensor(2), x) | x.add(2, "a")
torch.subtract(x, 2, 3) | x.subtract(2, 3) | x.clone().subtract_(2, 3) | torch.rsub(x, 2, 3)
x.add("a", x) | x.add(2, x, alpha=3) | rows[None].baddbmm(2, 3, rows[None, :, :2], rows[None])
""")
OUTDATED = split("""
nn.init.constant(x.clone(), 3.) | nn.init.eye(torch.ones(2, 2)) | nn.init.constant() | nn.utils.clip_grad_norm([x], 1.)
nn.functional.upsample(image, scale_factor=2) | torch.range(0, 2) | torch.range("a", 2) | torch.range(0, -3) | x.new_tensor(x) | torch.tensor(x)
torch.cov(torch.ones(1, 1)) | nn.functional.mse_loss(x, x + 1, reduction="elementwise_mean") | rows[short, some] | put(rows, (short, some), 1)
""")
EVERY_TIME = split("""
torch.as_tensor(array) | torch.as_tensor(array, dtype=torch.float32) | torch.asarray(array) | torch.asarray(array, copy=True) | torch.asarray(array, dtype=torch.float32)
torch.Tensor(array) | torch.DoubleTensor(array) | x.new(array) | torch.tensor(array) | x.new_tensor(array) | torch.as_tensor(array[:0]) | torch.asarray(array.tolist())
x[np.broadcast_to(np.array([1, 2]), (2,))] | x[np.broadcast_to(np.array(True), (3,))] | x[np.broadcast_to(np.array(1), ())] | put(x, np.broadcast_to(np.array([1]), (2,)), 5) | rows[np.array([1]), np.broadcast_to(np.array([1]), (2,))]
torch.chain_matmul(rows, 1) | torch.chain_matmul(x) | torch.chain_matmul() | nn.functional.embedding(some.long()[:0], rows.long(), max_norm=1.) | nn.functional.embedding(some.long(), rows.long(), max_norm=1.)
""")
SELECTED = split("""
x[some] | rows[masks] | rows[:, some] | x[short] | x[some_b[:2]] | x[some_b[None]] | rows[some_b] | rows[torch.ones(2, 3, 1) > 0]
x[np.array([1, 0, 1], dtype=np.uint8)] | x[np.bool_(True)] | x[np.float64(1)] | x[[[0, 1], [1, 2]]] | rows[[[0, 1], [1, 2]]]
put(x, some, 5) | put(x, some, torch.tensor(5.)) | put(x, some, torch.tensor([5.])) | put(x, some, torch.tensor([5., 6.]))
put(x, some, torch.tensor([5., 6., 7.])) | put(rows, short, 5) | put(rows, short, torch.zeros(3)) | put(rows, (short, 1), 5)
put(rows, (slice(None), some), 5) | put(rows, (0, some), 5) | put(rows, masks, 5) | put(rows, masks, torch.tensor(5)) | put(x, short, 1)
put(x, short, torch.ones(1)) | put(x, some_b, torch.ones(3)) | put(x, some_b, torch.ones(2, 1)) | put(x, some_b, torch.ones(1, 2))
put(x, some_b, torch.tensor(1)) | put(x, some_b, torch.tensor([1, 2])) | put(x, some_b[:2], 1) | put(rows, some_b, 1) | put(rows, masks_b, 1)
put(x, np.array([1, 0, 1], dtype=np.uint8), 5) | x.index_put((some,), torch.tensor(5.)) | x.index_put((some,), torch.tensor([5., 6.]))
x.index_put((some,), torch.tensor(5.), accumulate=True) | x.masked_fill(some, 1) | x.masked_select(some)
""")
CHANGED = split("""
nn.BatchNorm1d(3) | nn.BatchNorm1d(3, momentum=None) | nn.BatchNorm1d(3, affine=False) | nn.BatchNorm1d(3, track_running_stats=False)
nn.InstanceNorm1d(3, track_running_stats=True)
""")
CHANGES = split("""
m.track_running_stats = False | m.track_running_stats = True | m.momentum = None | m.momentum = 0.5 | m.eps = 1. | m.training = False
m.affine = False | m.running_mean = None | m.num_batches_tracked = None | m.weight = None | m.bias = None | m.num_features = 5
m.running_mean = m.running_var = None
""")


@pytest.mark.torch
@pytest.mark.parametrize("expression", REFUSED)
def test_refused_as_pytorch_does(expression):
    compare(SETUP + attempted([expression]))


@pytest.mark.torch
@pytest.mark.parametrize("expression", COUNTED)
def test_missing_and_unknown_arguments(expression):
    compare(f"{SETUP}from torch.nn import functional as F\n" + attempted([expression]))


@pytest.mark.torch
@pytest.mark.parametrize("expression", DEPRECATED)
def test_a_deprecated_order_of_arguments_works_with_a_warning(expression):
    # PyTorch reads the arguments twice, and warns twice, while a default device or another function mode is set
    program = (
        "x = x.double(); rows = rows.double() / 4; torch.set_warn_always(True)\n"
        f"result, caught = warned(lambda: {expression})\nsee(result, list(dict.fromkeys(caught)))\n"
    )
    compare(SETUP + program + "torch.set_warn_always(False)")


@pytest.mark.torch
@pytest.mark.parametrize("expression", OUTDATED)
def test_what_is_outdated_warns_as_often_as_in_pytorch(expression):
    shown = f"shown, caught = warned(lambda: [{expression} for _ in range(2)][0])\n"
    compare(f"{SETUP}{shown}see(shown if isinstance(shown, (tuple, torch.Tensor)) else None, caught)")


@pytest.mark.torch
@pytest.mark.parametrize("expression", EVERY_TIME)
def test_what_is_mentioned_once_per_process(expression):
    """Here every time, so that no test depends on those before it."""
    array = "array = np.arange(3.); array.flags.writeable = False\n"
    program = f"{array}torch.set_warn_always(True)\nsee(warned(lambda: {expression}))\ntorch.set_warn_always(False)"
    compare(SETUP + program)


def test_one_deprecated_overload_is_mentioned(monkeypatch):
    monkeypatch.setattr(messages, "_warned", set())
    monkeypatch.setattr(messages, "always", False)
    x = torch.ones(2)
    with pytest.warns(UserWarning, match="This overload of add_ is deprecated"):
        x.add_(2, x)
    x.addcmul(2, x, x)  # pytest would make an error of a second warning


@pytest.mark.torch
@pytest.mark.parametrize("expression", SELECTED)
def test_masks_as_pytorch(expression):
    compare(f"{SETUP}see(warned(lambda: {expression}))")


@pytest.mark.torch
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("layer", CHANGED)
def test_an_option_of_a_norm_may_change_after_it_was_made(layer, change):
    compare(f"""{SETUP}
m, batch = {layer}, torch.linspace(-1, 2, 12).reshape(4, 3)
m.train()
{change}
x = batch if "Batch" in type(m).__name__ else batch.reshape(1, 3, 4)
for training in (m.training, False):
    m.training = training
    attempt(lambda: m(x).detach())
    see(dict(m.state_dict()), repr(m))
attempt(lambda: m.reset_running_stats())
see(dict(m.state_dict()))
""")
