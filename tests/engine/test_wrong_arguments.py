"""Wrong arguments, masks of bytes and of other shapes, layers whose options change: what is refused, as PyTorch does."""

import pytest
from expressions import attempted, split
from twin import compare

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
