"""Attention beside PyTorch: fused and written out, masks of every kind, several heads."""

import pytest
from twin import compare

import gviz.engine as torch

BEGIN = """
import numpy as np
import torch.nn.functional as F
def data(*shape, seed=0, kind=torch.float64):
    numbers = np.random.default_rng(seed + len(shape) + sum(shape)).standard_normal(shape)
    return torch.from_numpy(numbers).to(kind).requires_grad_()
def tried(y, *tensors):
    see(y)
    y.backward((torch.arange(y.numel()).to(y.dtype) * .7 + .1).cos().reshape(y.shape))
    numbers(*[t.grad for t in tensors])
q, k, v = data(2, 3, 4, 6), data(2, 3, 5, 6, seed=1), data(2, 3, 5, 6, seed=2)
seen = torch.tensor([[1, 0, 1, 1, 0], [1, 1, 1, 1, 1], [0, 1, 0, 0, 0], [1, 0, 0, 0, 1]]).bool()
"""
CALLS = [
    "F.scaled_dot_product_attention(q, k, v)",
    "F.scaled_dot_product_attention(q, k, v, is_causal=True)",
    "F.scaled_dot_product_attention(q, k, v, attn_mask=seen)",
    "F.scaled_dot_product_attention(q, k, v, attn_mask=data(4, 5).detach())",
    "F.scaled_dot_product_attention(q, k, v, attn_mask=data(2, 1, 4, 5).detach(), scale=.3)",
    "F.scaled_dot_product_attention(q, k, v, attn_mask=data(4, 5))",
    "F.scaled_dot_product_attention(q[0], k[0], v[0])",
    "F.scaled_dot_product_attention(q[0], k[0], v[0], is_causal=True)",
    "F.scaled_dot_product_attention(q[0], k[0], v[0], attn_mask=seen)",
    "F.scaled_dot_product_attention(q[0, 0], k[0, 0], v[0, 0])",
    "F.scaled_dot_product_attention(q[0, 0], k[0, 0], v[0, 0], torch.zeros(4, 5).bool())",
]


@pytest.mark.torch
@pytest.mark.parametrize("call", CALLS)
def test_scaled_dot_product(call):
    compare(f"{BEGIN}\ntried({call}, q, k, v)", rtol=1e-7, atol=1e-9)


@pytest.mark.torch
def test_groups_of_queries():
    program = "k, v = data(2, 1, 5, 6), data(2, 1, 5, 6, seed=3)\ny = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)\ny.sum().backward()\nnumbers(y, q.grad, k.grad, v.grad)"
    compare(BEGIN + program)


HEADS = """
def heads(query, key, value, **given):
    w, b, o = data(18, 6), data(18), data(6, 6)
    args = dict(bias_k=None, bias_v=None, add_zero_attn=False, dropout_p=0., out_proj_bias=data(6, seed=4)) | given
    out, shares = F.multi_head_attention_forward(query, key, value, 6, 2, w, b, out_proj_weight=o, **args)
    see(shares)
    tried(out, w, b, o, query)
x, z = data(4, 2, 6), data(5, 2, 6)
"""
USES = [
    "heads(x, x, x)",
    "heads(x, x, x, need_weights=False)",
    "heads(x, z, z)",
    "heads(x, z, data(5, 2, 6, seed=7), average_attn_weights=False)",
    "heads(x, z, z, key_padding_mask=torch.tensor([[0, 0, 1, 0, 1], [0, 0, 0, 0, 1]]).bool())",
    "heads(x, z, z, attn_mask=data(4, 5).detach())",
    "heads(x, z, z, need_weights=False, attn_mask=data(4, 5, 4).detach()[:, :, 0])",
    "heads(x, x, x, need_weights=False, is_causal=True, attn_mask=torch.zeros(4, 4).double())",
    "heads(x, x, x, add_zero_attn=True)",
    "heads(x, z, z, bias_k=data(1, 1, 6), bias_v=data(1, 1, 6, seed=5))",
    "y = data(4, 6); heads(y, y, y)",
    "attempt(lambda: F.multi_head_attention_forward(x, x, x, 6, 4, data(18, 6), None, None, None, False, 0., data(6, 6), None))",
    "attempt(lambda: F.multi_head_attention_forward(x, x, x, 5, 2, data(18, 6), None, None, None, False, 0., data(6, 6), None))",
]


@pytest.mark.torch
@pytest.mark.parametrize("use", USES)
def test_several_heads(use):
    compare(BEGIN + HEADS + use, rtol=1e-7, atol=1e-9)


REFUSED = [
    "F.scaled_dot_product_attention(q[0, 0, 0], k, v)",
    "F.scaled_dot_product_attention(q, k.float(), v)",
    "F.scaled_dot_product_attention(q.float(), k.float(), v.float(), attn_mask=torch.ones(4, 5).double())",
    "F.scaled_dot_product_attention(q, k, v, attn_mask=torch.ones(4, 5).long())",
]


MASKS = """
import torch.nn as nn
torch.manual_seed(0)
x = data(5, 3, 8).detach()
wide, narrow = (nn.Transformer.generate_square_subsequent_mask(n, dtype=torch.float64) for n in (5, 3))
late = torch.tensor([[0, 0, 0, 0, 0], [0, 0, 0, 1, 1], [0, 0, 0, 0, 1]]).bool()
def layer(**options):
    return nn.TransformerEncoderLayer(8, 2, 16, dropout=0., dtype=torch.float64, **options)
def attended(mask, padding, **options):
    net = nn.MultiheadAttention(8, 2, dtype=torch.float64, **options)
    for p in net.parameters():
        p.data = data(*p.shape).detach()
    see(*net(x, x, x, attn_mask=mask, key_padding_mask=padding))
def stacked(mask, decoder=False, **options):
    whole = nn.TransformerEncoder(layer(**options), 1)
    if decoder:
        one = nn.TransformerDecoderLayer(8, 2, 16, dropout=0., dtype=torch.float64, **options)
        whole = nn.TransformerDecoder(one, 1)
    for p in whole.parameters():
        p.data = data(*p.shape).detach()
    see(whole(x, x, tgt_mask=mask) if decoder else whole(x, mask=mask))
"""
MASKED = [
    "attended(wide, late)",
    "attended(wide, late, add_bias_kv=True)",
    "attended(wide, late, add_zero_attn=True)",
    "attended(wide, late, add_bias_kv=True, add_zero_attn=True)",
    "attended(narrow, None)",
    "attended(wide, late.T)",
    "attended(wide[:, :4], None, add_zero_attn=True)",
    "stacked(wide)",
    "stacked(narrow, batch_first=True)",
    "stacked(narrow)",
    "stacked(wide, batch_first=True)",
    "stacked(wide, decoder=True)",
    "stacked(narrow, decoder=True)",
]


@pytest.mark.torch
@pytest.mark.parametrize("use", MASKED)
def test_masks_of_the_size_of_the_sequence_only(use):
    compare(f"{BEGIN}{MASKS}attempt(lambda: {use})", rtol=1e-7, atol=1e-9)


@pytest.mark.torch
@pytest.mark.parametrize("call", REFUSED)
def test_what_is_refused(call):
    compare(f"{BEGIN}\nattempt(lambda: {call})")


def test_dropped_shares_are_drawn():
    torch.manual_seed(2)
    x = torch.zeros(1, 1, 4, 1000)
    result = torch.nn.functional.scaled_dot_product_attention(x, x, torch.ones(1, 1, 4, 1000), dropout_p=0.5)
    assert set(result[0, 0, :, 0].tolist()) <= {0.0, 0.5, 1.0, 1.5, 2.0}
