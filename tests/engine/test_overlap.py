"""Which writes are refused because places in memory meet, against PyTorch.

A target and a source are two views of the same twelve numbers; each function writes to the one and reads the other.
PyTorch's rules differ between element-wise functions, copies, writes at indices, fills and products of matrices.
"""

import os
import random

import pytest
from reference import Crashed, reference
from twin import run

VIEWS = [
    "m", "m[:]", "m.view(12)", "m[:6]", "m[6:]", "m[3:9]", "m[1:7]", "m[::2]", "m[1::2]", "m[:1]", "m[0]", "m[2:3]", "m[0:0]",
    "m.view(3, 4)", "m.view(4, 3).t()", "m.view(1, 12)", "m.view(12, 1)", "m.unsqueeze(0)", "m.view(2, 6)[0]", "m.view(2, 6)[:1]",
    "m.view(2, 6)[1:]", "m.view(6, 2)[:, 0]", "m.view(6, 2)[:, 1]", "m.view(6, 2)[:, :1]", "m.view(2, 2, 3)", "m.view(3, 4)[:, 1:3]",
    "m.view(3, 4)[:2]", "m.view(3, 4)[1:]", "m.view(3, 4)[0]", "m.view(3, 4)[0:1]", "m.view(2, 6).t()", "m.view(3, 4).flatten()",
    "m[:4].expand(3, 4)", "m[:1].expand(12)", "m[0].expand(3, 4)", "m[:4].expand(1, 4)", "m[:4].expand(2, 4)[1:]", "m[:4].expand(2, 4)[0]",
    "m[:3].expand(2, 1, 3)", "m[:3].expand(2, 1, 3)[1:]", "m.unfold(0, 3, 1)", "m.unfold(0, 3, 3)", "m.as_strided((3, 4), (2, 1))",
    "m.as_strided((3, 4), (1, 3))", "m.detach()", "m.data[:4]", "m.clone()", "m[:4].clone()", "torch.ones_like(m)", "torch.ones(3, 4)",
    "m.view(3, 4).diagonal()", "m.narrow(0, 2, 4)", "m.view(3, 4).select(1, 0)", "m[:4].reshape(2, 2)", "m[4:8].reshape(2, 2)",
    "m[:4].reshape(2, 2).t()",
]  # fmt: skip
WRITES = [
    "t.add_(s)", "t.mul_(s)", "t.sub_(s, alpha=2)", "t.div_(s)", "t.copy_(s)", "t[...] = s", "t[:] = s", "t[0:] = s", "t[1:] = s",
    "t[0] = s", "t[:, 0] = s", "t += s", "t.pow_(s)", "t.atan2_(s)", "t.fmod_(s)", "t.remainder_(s)", "t.clamp_(min=s)",
    "t.lerp_(s, 0.5)", "t.lerp_(s, s)", "t.addcmul_(s, s)", "t.addcdiv_(s, s)", "t.fill_(s)", "t.fill_(1.)", "t.zero_()", "t.sin_()",
    "t.add_(1)", "t.clamp_(0, 1)", "t.relu_()", "t.neg_()", "t.masked_fill_(s > 3, 1.)", "t.masked_fill_(t > 3, s)", "t[t > 3] = 1.",
    "t[t > 3] = s", "t[[0]] = s", "t[[0]] = 1.", "t[torch.tensor([0, 0])] = s", "t.index_put_((torch.tensor([0]),), s)",
    "t.index_put_((torch.tensor([0]),), s, accumulate=True)", "t.index_add_(0, torch.tensor([0]), s)",
    "t.index_copy_(0, torch.tensor([0]), s)", "t.index_fill_(0, torch.tensor([0]), 1.)", "t.index_fill_(0, torch.tensor([0]), s)",
    "t.scatter_(0, torch.zeros(s.shape, dtype=torch.long), s)", "t.scatter_(0, torch.zeros(t.shape, dtype=torch.long), 1.)",
    "t.scatter_add_(0, torch.zeros(s.shape, dtype=torch.long), s)", "t.scatter_reduce_(0, torch.zeros(s.shape, dtype=torch.long), s, 'sum')",
    "t.masked_scatter_(t > 3, s)", "t.put_(torch.tensor([0]), s[:1])", "t.tril_()", "t.triu_(1)", "t.fill_diagonal_(1.)", "t.cumsum_(0)",
    "t.cumprod_(0)", "t.addmm_(s, s)", "t.addmm_(torch.ones(2, 2), s)", "t.addmv_(torch.ones(4, 4), s)", "t.addr_(s, s)", "t.baddbmm_(s, s)",
    "t.eq_(s)", "t.gt_(s)", "t.logical_and_(s)", "t.copysign_(s)", "t.hypot_(s)", "t.normal_()", "t.uniform_()", "t.bernoulli_()",
    "t.exp_()", "t.sigmoid_()", "t.nan_to_num_()", "t.floor_()", "t.round_()", "t.sqrt_()", "torch.nn.init.ones_(t)",
    "torch.nn.functional.elu(t, inplace=True)", "torch.nn.functional.dropout(t, 0.5, inplace=True)", "t.xlogy_(s)", "t.ldexp_(s)",
    "torch.nn.functional.threshold(t, 0., 1., inplace=True)", "torch.nn.functional.hardtanh(t, inplace=True)",
    "torch.nn.functional.leaky_relu(t, inplace=True)", "t.abs_()",
    "t.requires_grad_(False).add_(s)", "t.swapdims_(0, 0)", "t.sign_()",
]  # fmt: skip
OUTS = [
    "torch.add(s, 1, out=t)", "torch.mul(s, s, out=t)", "torch.sin(s, out=t)", "torch.clamp(s, 0, 1, out=t)", "torch.neg(s, out=t)",
    "torch.where(s > 3, s, s, out=t)", "torch.cumsum(s, 0, out=t)", "torch.cumprod(s, 0, out=t)", "torch.sum(s, 0, out=t)",
    "torch.sum(s, 0, keepdim=True, out=t)", "torch.mean(s, 0, out=t)", "torch.amax(s, 0, out=t)", "torch.prod(s, 0, out=t)",
    "torch.std(s, 0, out=t)", "torch.logsumexp(s, 0, out=t)", "torch.norm(s, 2, 0, out=t)", "torch.mm(s, s, out=t)",
    "torch.matmul(s, s, out=t)", "torch.bmm(s, s, out=t)", "torch.mv(torch.ones(4, 4), s, out=t)", "torch.dot(s, s, out=t)",
    "torch.addmm(s, s, s, out=t)", "torch.cat([s], out=t)", "torch.cat([s, s], out=t)", "torch.stack([s], out=t)",
    "torch.gather(s, 0, torch.zeros(s.shape, dtype=torch.long), out=t)", "torch.index_select(s, 0, torch.arange(s.shape[0]), out=t)",
    "torch.take(s, torch.arange(s.numel()), out=t)", "torch.tril(s, out=t)", "torch.triu(s, out=t)", "torch.softmax(s, 0, out=t)",
    "torch.masked_select(s, s > 0, out=t)", "torch.diag(s, out=t)", "torch.outer(s, s, out=t)", "torch.lerp(s, s, 0.5, out=t)",
    "torch.addcmul(s, s, s, out=t)", "torch.maximum(s, s, out=t)", "torch.pow(s, 2, out=t)", "torch.sigmoid(s, out=t)",
    "torch.logit(s, 0.1, out=t)", "torch.nan_to_num(s, out=t)", "torch.round(s, out=t)", "torch.square(s, out=t)",
    "torch.abs(s, out=t)", "torch.reciprocal(s, out=t)", "torch.sqrt(s, out=t)", "torch.quantile(s, 0.5, 0, out=t)",
    "torch.scatter(s, 0, torch.zeros(s.shape, dtype=torch.long), s, out=t)", "torch.index_add(s, 0, torch.tensor([0]), s[:1], out=t)",
]  # fmt: skip
WHOLE = [
    "t[s] = 1", "t[s] = s", "t.index_put_((s,), t[:1])", "t.index_add_(0, s, s)", "t.index_copy_(0, s, s)", "t.index_fill_(0, s, 1)",
    "t.scatter_(0, s, 1)", "t.scatter_(0, s, s)", "t.scatter_add_(0, s, s)", "t.put_(s, s)", "torch.gather(t, 0, s, out=t)",
    "torch.index_select(t, 0, s, out=t)", "torch.take(t, s, out=s)", "t.scatter_add_(0, s, torch.ones_like(s))",
    "t.masked_fill_(s.bool(), 1)", "t.index_add_(0, s, torch.ones_like(s))", "t.index_copy_(0, s, torch.ones_like(s))",
    "torch.gather(torch.arange(12), 0, s, out=t)", "t.add_(s)", "t.copy_(s)", "torch.take(torch.arange(12), s, out=t)",
]  # fmt: skip
MORE = int(os.environ.get("GVIZ_FUZZ", "0"))
OVERLAP = "unsupported operation:"


def outcome(shown):
    """Which of the two complaints about memory a program met; all other errors are another matter."""
    errors = [one for one in shown if isinstance(one, tuple) and OVERLAP in one[1]]
    others = [one for one in shown if isinstance(one, tuple) and OVERLAP not in one[1]]
    return errors or ("another error" if others else "works")


def program(memory, target, source, write):
    call, is_out, _ = write.rpartition(", out=")
    fits = f"{call}).shape == {write[-2]}.shape" if is_out else "True"  # tensors of another shape get new memory here
    return f"""
import torch
m = {memory}
t, s = {target}, {source}
try:
    if {fits}: {write}
except Exception as error: see(0); attempt(lambda: (_ for _ in ()).throw(error))
"""


FLOATS = "torch.arange(1., 13.)"
INTEGERS = "torch.zeros(12, dtype=torch.long)"


def texts(write, memory, chosen, count):
    for _ in range(count):
        target, source = chosen.choice(VIEWS), chosen.choice(VIEWS)
        yield program(memory, target, source if chosen.random() < 0.9 else "t", write)


@pytest.mark.torch
@pytest.mark.parametrize("write", [*WRITES, *OUTS, *(f"integer: {write}" for write in WHOLE)])
def test_as_pytorch(write):
    chosen = random.Random(None if MORE else f"overlap {write}")
    rest = write.removeprefix("integer: ")
    memory = INTEGERS if "integer" in write else FLOATS
    for text in texts(rest, memory, chosen, MORE or 60):
        try:
            expected = outcome(reference().run(text))
        except Crashed:
            continue
        got = outcome(run(text, "gviz.engine"))
        if "another error" not in (expected, got):  # which of two errors comes first is not compared here
            assert got == expected, text
