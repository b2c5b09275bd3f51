"""PyTorch and the engine stay the same after every line of random programs; ``make fuzz N=10000`` tries more."""

from pathlib import Path

import numpy as np
import pytest
from fuzz import NAMED as COUNTED_APART
from fuzz import first_difference, named
from hypothesis import HealthCheck, given, note, reject, settings
from hypothesis import strategies as st
from random_programs import lines, program
from random_scripts import Writer, recorded
from reference import Crashed, reference
from twin import assert_all_same, run

NAMED = {
    119: "`.data` of another shape, assigned to a leaf of a graph",
    193: "the error of `backward` through `floor_divide_`",
    225: "the error message for `linalg.pinv` of a vector",
}
"""The scripts below that differ, with the row of docs/differences.md that says how."""
INFERENCE = "with torch.inference_mode():\n    a = data(2, 3)\n"
LED_TO = {
    "a second pass where nothing was saved": "c = data(3, k=3).requires_grad_()\nr = c.scatter_add(0, torch.tensor([0]), data(3))\nr.sum().backward()\nr.sum().backward()\nsee(r.grad_fn._saved_index)",
    "what a released node never saved": "b = data(3).requires_grad_()\ne = b * 2\ne.sum().backward()\nsee(e.grad_fn._saved_self)\nsee(e.grad_fn._saved_other)",
    "hooks for what a released node never saved": "b = data(3).requires_grad_()\ne = b * 2\ne.sum().backward()\ne.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)",
    "a function writes to a tensor with a .grad": "c = data(2).requires_grad_()\nw = c * 1\nw.sum().backward(inputs=[w])\np = Doubled.apply(w)\nsee(w.grad)\np.sum().backward()",
    "hinge_embedding_loss of integers": "b = torch.tensor([[3]])\nw = F.hinge_embedding_loss(b, -b.sign(), margin=5.9, reduction='none')",
    "threshold of truth values": "b = torch.tensor([True, False])\nc = F.threshold(b, 0, 0)",
    "cross_entropy of numbers": "b = data()\ns = F.cross_entropy(b, b, reduction='none')",
    "take_along_dim counts round": "a = data(2, 3).requires_grad_()\nb = a.take_along_dim(torch.tensor([[0, 5, -3]]), 0)\nb.sum().backward()",
    "take_along_dim of nothing": "a = data(0).take_along_dim(torch.tensor([1]), 0)",
    "take_along_dim of a number": "a = data().take_along_dim(torch.tensor(0), 0)",
    "index of no elements": "a = torch.tensor([])\na[[0]] += 1",
    "too many indices": "a = data()\na.index_put_((torch.tensor([0]),), data())",
    "a shape that does not fit, of memory that meets": "a = data(2, 3)\na[::2, [2, 0], None] = a[:, 2]",
    "index_copy of a number": "a = data()\na.index_copy_(0, torch.tensor([0, 1]), data())",
    "xlogy of 0 below an infinite gradient": "a = data(2, 3).requires_grad_()\na.xlogy(data(2, 3, k=5)).reciprocal().sum().backward()",
    "steps lie as their operand": "a = data(4).unfold(-1, 3, 1)\nb = a.round()\nc = -a\nd = F.elu(a)\ne = F.celu(a)\nf = a.isposinf()\ng = a.frac()\nh = a.isreal()",
    "repeat lies in a row": "a = data(3, 2).t().repeat(1, 1)",
    "a view of what lies elsewhere since": "a = data(6)\nb = a[1:]\na.set_(a[2])\nc = b.storage_offset()",
    "cat of nothing along any dimension": "a = data(0).requires_grad_()\nb = torch.cat([a, a], -3)\nb.sum().backward()",
    "meshgrid of a matrix": "a = torch.meshgrid(data(2, 2, 3), indexing='ij')",
    "meshgrid of dtypes": "a = torch.meshgrid(data(2), whole(2), indexing='ij')",
    "cumulative_trapezoid of a number": "a = torch.cumulative_trapezoid(data())",
    "trapezoid at a number": "a = torch.trapezoid(data(2), data())",
    "quantile of a number": "a = data(k=10).requires_grad_()\nb = a.quantile(0.0, dim=-1)\nb.backward()",
    "to the type of a number": "a = data(2, dtype=torch.float32)\nb = a.to(0.5)\nc = a.to(True)",
    "poisson_nll_loss in full": "a = data(k=6).requires_grad_()\nb = F.poisson_nll_loss(a, a.abs(), log_input=False, full=True)\nb.backward()",
    "huber_loss of dtypes": "a = F.huber_loss(data(2, dtype=torch.float32), data(2, k=2))",
    "logits of booleans": "a = F.binary_cross_entropy_with_logits(data(2) > 0, data(2).sigmoid())",
    "logits to classes": "a = F.binary_cross_entropy_with_logits(data(2), whole(2))",
    "logits to booleans": "a = F.binary_cross_entropy_with_logits(data(2), data(2) > 0)",
    "logits to a narrower dtype": "a = F.binary_cross_entropy_with_logits(data(2, dtype=torch.float32), data(2, dtype=torch.float16).sigmoid())",
    "probabilities beyond 1": "a = F.binary_cross_entropy(data(2).sigmoid(), whole(2, k=2).double())",
    "probabilities that are no numbers": "a = F.binary_cross_entropy(data(2) * math.nan, data(2).sigmoid())",
    "probabilities of dtypes": "a = F.binary_cross_entropy(data(2, dtype=torch.float32).sigmoid(), data(2).sigmoid())",
    "a write of what requires grad to integers": "a = whole(2, 3)\nb = data(3).requires_grad_()\na[0] = b\na.copy_(b)",
    "no gradient at several outputs": "a = data(2, 3).requires_grad_()\nb = Nothing.apply(a.max(0)[0])\nb.sum().backward()",
    "out= in another shape of the same memory": "a = data()\ntorch.add(a, 1, out=a.expand(1))",
    "out= of another shape": "a = data(2, 3).std(0)\ntorch.sum(data(2, 3, 4), -1, out=a)",
    "copies in inference mode": "with torch.inference_mode():\n    a = copy.copy(data(2))\n    b = copy.deepcopy(data(2))\n    c = copy.deepcopy(nn.Parameter(data(2)))",
    "a function that is a method": "a = torch.contiguous(data(2))",
    "the logarithm of no elements of integers": "a = whole(2, 0)\nb = a.log_softmax(-2)\nc = a.softmax(0)\nd = whole(2, 3).softmax(0)",
    "the sizes that expand was given": "a = data(2, 1, 3)\nb = a.expand(1, -1, 2, 5)",
    "squeeze of several": "a = data(1, 3, 1)\nb = a.squeeze(0, 2)\na.squeeze_(0, 2)\nc = torch.squeeze(a, 0, 2)",
    "logsumexp of nothing over nothing": "a = data(2, 0)\nb = a.logsumexp(())\nc = data(2).logsumexp(())",
    "logsumexp lies in a row": "a = data(2, 2, 3).swapaxes(-1, 1)\nb = a.logsumexp(0)\nc = a.logsumexp(0, keepdim=True)",
    "out= of an operand keeps its shape": "a = data(2, 1)\ntorch.mul(a, data(2, 3), out=a)\ntorch.add(a, data(0), out=a)\ntorch.bitwise_and(whole(2, 1), whole(2, 3), out=a)\ntorch.ldexp(data(2, 3), a, out=a)",
    "out= of elements that share memory": "a = torch.zeros(1).double().expand(7)\ntorch.exp(data(2, 3), out=a)\ntorch.sin(whole(2), out=a)\ntorch.amax(data(2, 3), 0, out=a)\nb = torch.zeros(1).double().expand(7)\ntorch.max(data(2, 3), 0, out=(b, torch.empty(0, dtype=torch.long)))\nc = torch.zeros(1).double().expand(7)\ntorch.cat([data(1), data(1)], out=c)",
    "out= of a smaller shape stays in its memory": "a = data(3, 3)\nb = a.view(9)\ntorch.sum(data(3, 3, k=2), -1, out=a)\nc = data(2, 3)\nd = c[0]\ntorch.exp(data(2), out=d)",
    "out= of integers sums integers": "a = whole(3)\ntorch.sum(data(3, 3, k=7), -1, out=a)\nb = whole(3, 3)\ntorch.cumsum(data(3, 3, k=7), -1, out=b)\ntorch.cumsum(data(3, 3), -1, out=b > 0)",
    "out= of what is not boolean": "torch.all(data(2), out=data())\ntorch.signbit(data(2), out=data(2))\ntorch.isposinf(data(2), out=data(2))\ntorch.isin(data(2), data(2), out=data(2))",
    "t_ of a leaf": "a = data(2, 3, 4).requires_grad_()\na.t_()",
    "bits of a leaf": "a = data(2, 3).requires_grad_()\na.bitwise_and_(1)\na.bitwise_not_()\na.bitwise_left_shift_(a)",
    "a checkpoint of inference tensors": "with torch.inference_mode():\n    a = data(2)\nb = checkpoint(torch.sin, a, use_reentrant=False)\nwith torch.no_grad():\n    c = checkpoint(torch.sin, a, use_reentrant=False)",
    "entries of a dimension of size 0": "a = data(2, 0)\na.index_fill_(0, torch.tensor([0]), 1)\na.index_fill_(1, torch.tensor([0]), 1)\nb = a.expand(2, 2, 0)\nb.index_copy_(0, torch.tensor([0]), b[:1])\ndata(0, 2).index_fill_(0, torch.tensor([0]), 1)",
    "probabilities of 0 as targets": "a = (data(3) > 0).double().requires_grad_()\nF.binary_cross_entropy(a, a, reduction='none').sum().backward()",
    "a difference that is no number": "a = data(3).requires_grad_()\nb = a * math.nan\nc = torch.autograd.grad(F.smooth_l1_loss(b, a), b, retain_graph=True)[0]\nd = torch.autograd.grad(F.huber_loss(b, a), b)[0]",
    "cumulative_trapezoid of booleans": "a = torch.cumulative_trapezoid(data(3, 3) > 0)",
    "inv of a matrix that is singular but for rounding": "a = data(3, 3, k=10)\nb = torch.linalg.inv(a)",
    "index_put_ of another shape and dtype": "a = data(2, 1)\na[[0]] = data(1, 3, dtype=torch.float32)\na[[0]] = data(1, dtype=torch.float32)",
    "baddbmm expands before it multiplies": "a = torch.baddbmm(data(2, 3, 3), data(2, 3, 4), data(2, 3, 2))\nb = torch.addbmm(data(2, 2), data(2, 3), data(2, 3))\nc = torch.addmm(data(2, 3), data(2), whole(3))",
    "scatter_ counts dimensions before it reads reduce": "a = data(3)\na.scatter_(-2, whole(1), -1, reduce='sum')\ndata(1, 3).expand(2, 3).scatter_(0, whole(1, 3, below=1), -1, reduce='sum')\na.scatter_reduce_(-2, whole(1), a, 'most')\na.put_(data(2), data(3))",
    "scatter_reduce of more than the index": "a = data(2, 3).requires_grad_()\nb = data(2, 3, k=7).requires_grad_()\nc = torch.scatter_reduce(a, -1, whole(1, 3, below=1), b, reduce='prod')\nc.sum().backward()",
    "a slice of nothing is a view": "a = data(2, 0).t().requires_grad_()\nb = a[1:1, :1]\nc = a[0:0]\nd = data(3).requires_grad_()[0:3]",
    "weights of another dtype": "a = F.multi_margin_loss(data(2, 3, dtype=torch.float32), whole(2), weight=data(3))\nb = F.binary_cross_entropy(data(2, dtype=torch.float32).sigmoid(), data(2, dtype=torch.float32).sigmoid(), weight=data(2).abs())\nc = F.soft_margin_loss(data(2, dtype=torch.float32), data(2).sign())\nd = F.rms_norm(data(2, 3, dtype=torch.float32), (3,), data(3))",
    "losses of what is no number": "a = F.mse_loss(data(2) > 0, data(2) > 0)\nb = F.smooth_l1_loss(data(2) > 0, data(2) > 0)\nc = F.multilabel_margin_loss(data(2, 3) > 0, whole(2, 3))\nd = F.nll_loss(whole(2, 3), whole(2))\ne = F.rms_norm(whole(2, 3), (3,))\nf = F.prelu(whole(2, 3), whole(1))",
    "rows of batched gradients lie as they are": "a = data(2, 3, 4).requires_grad_()\nb = a.permute(1, 0, 2)\nc = torch.autograd.grad(b, a, torch.stack([torch.ones_like(b), torch.ones_like(b) * 2]), is_grads_batched=True)[0]",
    "an inference tensor that requires grad": "with torch.inference_mode():\n    a = torch.tensor([1.0, 2.0], requires_grad=True)\nb = a.exp()\nc = a[0]\nd = 1e-3 / a\ne = a * 2\nf = a + data(2)\ng = a * a\nh = a ** 2",
    "a source that is written while it is read": "a = whole(2, 3, 4, k=8)\nb = a.expand(2, 3, -1)\nb.masked_scatter_(b > 0, a)\na.flip(0).masked_scatter_(a > 1, a)\na.masked_scatter_(a.transpose(0, 1).reshape(2, 3, 4) > 0, a)",
    "rows that share memory": "a = data(6, k=5)\nb = a.unfold(-1, 3, 1)\nb.add_(1)\nb.mul_(data(4, 3))\nb.clamp_(0, 2)\nc = data(4).as_strided((2, 2), (1, 1))\nc.add_(data(2, 2, dtype=torch.float32))\nc.to(torch.float32).as_strided((2, 2), (1, 1)).add_(data(2, 2))",
    "a dimension that is no number": "a = data(2, 3)\nb = a.cumsum(torch.tensor([1]))\nc = a.unsqueeze(torch.tensor([1]))\nd = a.transpose(torch.tensor(0), 1)\ne = a.select(0, torch.tensor([1]))\nf = a.topk(torch.tensor([1]))",
    "cumsum_ of booleans": "a = data(3) > 0\na.cumsum_(0)\na.cumprod_(0)\nb = data(3).cumsum(0, dtype=torch.bool)\nc = (whole(300) + 2).to(torch.int8)\nc.cumsum_(0)",
    "limits of another dtype": "a = whole(3)\na.clamp_(0.5)\na.clamp_(max=0.5)\n(a > 0).clamp_(0, 1)\na.clamp_(0, 1)",
    "lerp of dtypes": "a = whole(3)\na.lerp_(data(3) > 0, 1)\ndata(1, 3).expand(2, 3).lerp_(whole(3), 0.5)",
    "masks of another shape": "a = data(2, 3)\na.masked_fill_(data(4, 5) > 0, 1)\na.masked_fill_(data(4, 5), 1)\nb = a.masked_fill(data(4, 5) > 0, 1)\na.masked_scatter_(data(4, 5) > 0, data(3))\na.masked_scatter_(data(2, 2, 3) > 0, data(12))",
    "no integers divided by 0": "a = whole(0, 3)\na.floor_divide_(0)\na.remainder_(whole(1))\nb = a // 0\nc = whole(2) % 0",
    "a factor of 0 for what is no number": "a = data(2, 2) * math.nan\nb = torch.addmm(data(2, 2), a, a, alpha=0)\nc = torch.addmm(data(2, 2), a, a, beta=0, alpha=0)\nd = torch.addbmm(data(2, 2), a[None], a[None], alpha=0)\ne = torch.addmv(data(2), a, data(2), alpha=0)",
    "repeat_interleave of a number along a dimension": "a = data()\nb = a.repeat_interleave(2, dim=0)\nc = a.repeat_interleave(2)",
    "the gradient of index_select lies in a row": "a = data(3, 2, k=8).requires_grad_()\nb = torch.autograd.grad(a.index_select(1, torch.tensor([0, 0])).sum(), a)[0]",
    "expand counts from the last dimension": "a = data(3)\nb = a.expand(2, -1, 4)\nc = a.expand(2, -1, 3)\nd = a.expand(-1, -1, 3)",
    "scatter_ of a leaf warns of nothing": "a = data(k=5).requires_grad_()\na.scatter_(0, whole(below=1), a, reduce='add')",
    "gradients of what is not differentiable do not arrive at a node": "a = data(2, 3).requires_grad_()\nb = a.min(-1).values\nb.grad_fn.register_hook(called('node'))\nb.grad_fn.register_prehook(called('before'))\nc = a.sort(-1)[0]\nc.grad_fn.register_hook(called('sort'))\n(b.sum() + c.sum()).backward()",
    "a tensordot over every dimension": "a = data(2, 3).requires_grad_()\nb = data(3, 2).requires_grad_()\nc = torch.tensordot(a, b.t(), dims=2)\nd = torch.tensordot(a, b, dims=([0, 1], [1, 0]))\ne = torch.tensordot(a, a, dims=2)\nf = torch.tensordot(a, b.t(), dims=([1, 0], [1, 0]))\n(c + d + e + f).backward()\ng = torch.inner(a[:, 0], a[:, 1])\ng.backward()",
    "multi_margin_loss checks the target before weights": "a = F.multi_margin_loss(data(1, 1), whole(2), weight=data(3))\nb = F.multi_margin_loss(data(2, 3), whole(2), weight=data(4))\nc = F.multi_margin_loss(data(2, 3, 2), whole(2))\nd = F.multilabel_margin_loss(data(2, 3, 2), whole(2))\ne = F.multi_margin_loss(data(2, 0), whole(2))\nf = F.multi_margin_loss(data(0), whole(0))",
    "classes of one example": "a = F.cross_entropy(data(1), whole(2))\nb = F.nll_loss(data(2), whole(0))\nc = F.nll_loss(data(2), whole(1))\nd = F.nll_loss(data(2, 3, 2, 2), whole(2))\ne = F.nll_loss(data(2, 3, 2, 2), whole(2, 2, 3))",
    "take_along_dim of a number counts its dimension": "a = data().take_along_dim(whole(), -1)\nb = data().take_along_dim(whole(), 1)\nc = data().take_along_dim(whole(), -2)",
    "addcdiv of integers": "a = (data(2) > 0).expand(2)\nb = torch.addcdiv(a, data(2), a, value=-1.5)\nc = torch.addcdiv(data(2), whole(2) + 1, a)\ndata(2).addcdiv_(a, a)\ndata(2).addcdiv_(a, data(2))\nd = torch.addcdiv(whole(2), data(2), whole(2))\nwhole(2).addcdiv_(data(2), whole(2))",
    "the dtype of three operands": "a = torch.addcmul(data(2, dtype=torch.float32), whole(2), data(2, dtype=torch.float32))\nb = torch.addcdiv(whole(2), data(2, dtype=torch.float32), whole(2) + 1)\nc = torch.addcmul(whole(2), data(2), whole(2), value=2)",
    "a lost view is compared, and not used": "a = data(2, 3).requires_grad_()\nwith torch.no_grad():\n    b = a.view(-1)\nb = b.reshape(-1)\nwith torch.no_grad():\n    a.sigmoid_()\nc = torch.where(a > b, a, b)\nd = a + b",
    "a hook of several tensors in a copy": "a = data(1).requires_grad_()\ntorch.autograd.graph.register_multi_grad_hook([a, a], called('all'))\nb = copy.copy(a)",
    "eye_ of an expanded tensor": "a = data(3, 1).expand(3, 3)\nnn.init.eye_(a)\nb = data(1, 3).expand(2, 3)\nnn.init.eye_(b)\nc = data(1, 1).expand(2, 3)\nnn.init.eye_(c)",
    "zeros lie as the gradient": "a = data(3, 2).t().requires_grad_()\nb = torch.sign(a)\nc = torch.autograd.grad(b, a, torch.ones_like(b))[0]",
    "a factor of 1 is none": "a = data(3).requires_grad_()\nb = torch.addmv(a, data(3, 3), data(3))\nc = torch.autograd.grad(b.sum(), a)[0]",
    "index_select of no elements": "a = data(2, 0)\nb = a.index_select(1, whole(1))\nc = data(0, 2).index_select(0, whole(1))\nd = a.index_select(0, whole(1) + 5)\ne = a.index_select(0, whole(2))\nf = (a > 0).index_select(1, whole(0))\ng = data(0).index_select(0, whole(1))",
    "tensordot of a number": "a = torch.tensordot(data(), data(3, 3), dims=([1], [1]))\nb = torch.tensordot(data(3, 3), data(), dims=([1], [-1]))\nc = torch.tensordot(data(3, 1), data(), dims=([1], [0]))\nd = torch.tensordot(data(3, 1), data(), dims=([5], [0]))\ne = torch.tensordot(data(), data(), dims=0)",
    "scatter_ of a number counts the index": "a = data()\na.scatter_(0, whole(2, below=1), a, reduce='sum')\na.scatter_(0, whole(2, below=1), a, reduce='add')\na.scatter_(0, whole(2, below=1), 2.0, reduce='sum')\na.scatter_(0, whole(1, below=1), data(k=2))",
    "rms_norm of float16": "a = torch.tensor([[1.0, 2.0, 3.0], [300.0, 400.0, 500.0]], dtype=torch.float16, requires_grad=True)\nb = F.rms_norm(a, (3,))\nc = F.rms_norm(a, (3,), torch.ones(3, dtype=torch.float16))\nd = F.rms_norm(a, (3,), torch.ones(3))\nb.sum().backward()\ne = F.rms_norm(torch.tensor([[1e-4, 2e-4, 3e-5]], dtype=torch.float16), (3,))",
    "nansum of a gradient that is no number": "a = (data(2, 3) * torch.tensor([1.0, math.nan, 1.0])).requires_grad_()\n(a.nansum(0) * math.nan).sum().backward()\nb = a.detach().requires_grad_()\n(b.nanmean() * math.inf).backward()",
    "a written constant has a gradient of zeros without a graph": "a = data(2).requires_grad_()\nb = a * 1\nb.fill_(2)\n(b ** 2).sum().backward(create_graph=True)\nc = data(2).requires_grad_()\nd = c * 1\nd.zero_()\n(d.exp() * math.inf).sum().backward(create_graph=True)\ne = data(2).requires_grad_()\nf = e * 1\nf.copy_(data(2))\n(f ** 2).sum().backward(create_graph=True)",
    "results are saved whatever requires grad": "a = data(2).abs().requires_grad_()\nb = a.pow(data(2))\nb.clamp_(0, 1)\nb.sum().backward()\nc = torch.hypot(a, data(2))\nc.add_(1)\nc.sum().backward()\nd = data(2) ** a\nd.add_(1)\nd.sum().backward()\ne = torch.logaddexp(a, data(2))\ne.add_(1)\ne.sum().backward()\nf = torch.atan2(a, data(2))\nf.add_(1)\nf.sum().backward()\ng = a / data(2)\ng.add_(1)\ng.sum().backward()",
    "variance over no dimensions": "a = data(2, 3).requires_grad_()\nb = a.var(())\nb.backward()\nc = a.detach().requires_grad_()\nd = c.std((), keepdim=True, correction=0)\nd.sum().backward()\ne = c.detach().requires_grad_()\nf = torch.var_mean(e, (), correction=2)\n(f[0] + f[1]).backward()\ng = data(k=3).requires_grad_()\nh = g.var((), unbiased=False)\nh.backward()\ni = torch.std_mean(data(2, 3), [])",
    "weights of a loss are for its input as it was": "a = F.mse_loss(data(), data(2), weight=data())\nb = F.l1_loss(data(), data(2), weight=data(), reduction='sum')\nc = F.mse_loss(data(1), data(2), weight=data(2))\nd = F.l1_loss(data(2), data(2, 2), weight=data(2).abs() + 1)\ne = F.mse_loss(data(2), data(2, 2), weight=data(2, 2))",
    "nll_loss looks at the dtype of classes before it counts them": "a = F.nll_loss(data(3), data(3))\nb = F.nll_loss(data(3), whole(3))",
    "index_add of a number": "a = data().index_add(0, whole(2, below=1), data())\nb = data(2).index_add(0, whole(2), data())\nc = data().index_reduce(0, whole(2, below=1), data(), 'mean')\nd = data().index_add(0, whole(1, below=1), data())",
    "cosine_similarity of whole numbers": "a = F.cosine_similarity(whole(3), data(3), 0)\nb = F.cosine_similarity(data(3), data(3) > 0, dim=-1)\nc = F.cosine_similarity(whole(3), whole(3), 0)\nd = F.cosine_similarity(data(2, 3, dtype=torch.float32), data(3), 1)\ne = F.cosine_similarity(data(3) > 0, whole(3), 0)",
    "scatter_ looks for overlap before it looks at the reduction": "a = data(2, 3)\na.scatter_(1, whole(2, 3), a, reduce='sum')\na.scatter_reduce_(1, whole(2, 3), a, 'nothing')\na.scatter_(1, whole(2, 3), data(2, 3), reduce='sum')\nb = data(3).expand(2, 3)\nb.scatter_reduce_(1, whole(2, 3), data(2, 3), 'nothing')\nb.scatter_(1, whole(2, 3), 2.0, reduce='sum')\nc = b.scatter(1, whole(2, 3), b, reduce='sum')\nd = b.scatter_reduce(1, whole(2, 3), b, 'nothing')",
    "writes to entries of a dimension of size 0": "a = data(0, 2)\na.index_fill_(0, whole(2), 1.0)\na.index_copy_(0, whole(3), data(3, 2))\na.index_add_(0, whole(3), data(3, 2))\na.index_reduce_(0, whole(3), data(3, 2), 'amax')\nb = data(2, 2, 0)\nb.index_fill_(2, whole(3), 1.0)\nb.index_add_(2, whole(3), data(2, 2, 3))\nc = data(0)\nc.index_add_(0, whole(1), data(1))\nc.index_reduce_(0, whole(1), data(1), 'amax')\nc.take(whole(1))\nc.put_(whole(1), data(1))\nd = c.take(whole(0))\nc.index_fill_(0, whole(2), 1.0)",
    "the numbers of an index into no elements": "a = data(2, 0)\ni = whole(2, below=9, k=7)\na.index_fill_(0, i, 1.0)\na.index_copy_(0, i, a)\na.index_add_(0, i, a)\nb = a[i]\nc = a[i, :]\na[i] = 1.0\na[i] = data(2)\na.index_put_((i,), data(), accumulate=True)\nd = data(0, 2)[:, i]\ne = data(0)[i]\nf = data(0)\nf[i] = 1.0\nf[i] = data(2)\ng = data(2, 0).requires_grad_()\ng[i].sum().backward()",
    "index_add of a vector out of bounds": "a = data(3)\nb = a.index_add(0, whole(2) + 3, data(2))\na.index_add_(0, whole(2) - 3, data(2))\nb = data().index_add(0, whole(1) + 3, data(1))\nb = data(3, 2).index_add(0, whole(2) + 3, data(2, 2))",
    "values that do not fit are refused before an index out of bounds": "a = data(2, 3)\na[whole(1) + 5] = data(2)\na[whole(1) + 5] = data(3)\na[:, whole(2) + 5] = data(5)",
    "bool tensors have their own name where they do not expand": "a = data(2, 3) > 0\na[0] = a\nb = a.expand(3)\nc = a.half().expand(3)\nd = data(3).masked_scatter_(a, data(6))\ne = data(3).masked_scatter_(a.half(), data(6))",
    "the dimension of a cumulative extreme of a number": "a = data().cummin(2)\nb = data().cummax(-2)\nc = data().cummax(-1)\nd = data(2).cummin(2)",
    "logaddexp2 rounds once": "a = data(3, 4)\nb = 1 / torch.logaddexp2(a, a)\nc = 1 / torch.logaddexp2(a.float(), a.float())\nd = torch.logaddexp2(a.half(), a.half())\ne = torch.logaddexp2(torch.tensor([math.inf, -math.inf, math.nan, math.inf, 1.0]), torch.tensor([math.inf, -math.inf, 1.0, -math.inf, -math.inf]))\nf = torch.logaddexp2(a, data(3, 4, k=2))",
    "a loss lies as its input or its target": "a = data(2, 3).sigmoid()\nb = data(3, 2).sigmoid().t()\nc = F.binary_cross_entropy(b, a, reduction='none')\nd = F.binary_cross_entropy(b, a, weight=a, reduction='none')\np = F.binary_cross_entropy_with_logits(a, b, reduction='none')\nq = F.binary_cross_entropy_with_logits(b, a, weight=b, reduction='none')\nr = F.binary_cross_entropy_with_logits(a, b, pos_weight=a, reduction='none')\ns = F.soft_margin_loss(b, a, reduction='none')\nt = F.soft_margin_loss(data(3), a, reduction='sum')\nu = F.soft_margin_loss(a, data(3))",
    "binary_cross_entropy looks at the dtype before it looks at the numbers": "a = F.binary_cross_entropy(data(2) * 5, data(2, dtype=torch.float32))\nb = F.binary_cross_entropy(data(2) * 5, whole(2))\nc = F.binary_cross_entropy(data(2) * 5, data(2))",
    "statistics of an instance in another dtype": "m = nn.InstanceNorm2d(2, track_running_stats=True)\na = m(data(2, 2, 3, 3))\nb = m.eval()(data(2, 2, 3, 3))\nc = F.instance_norm(data(2, 2, 3), whole(2), whole(2) + 1)\nd = F.instance_norm(data(2, 2, 3), None, None, torch.ones(2))",
    "linear of a number": "a = F.linear(data(), data(2, 3))\nb = F.linear(data(3), data())\nc = data() @ data(3)\nd = F.linear(data(), data(), data())",
    "a parameter of another dtype has a new accumulator": "a = nn.Parameter(data(2, dtype=torch.float32))\nb = a * 2\na.data = data(2)\nsee(a.grad_fn, b.grad_fn.next_functions[0][0] is (a * 2).grad_fn.next_functions[0][0])\n(a * 3).sum().backward()\na.data = data(2, k=2)\nc = a * 2\na.data = data(2, k=3)\nsee(c.grad_fn.next_functions[0][0] is (a * 2).grad_fn.next_functions[0][0])\nm = filled(nn.Linear(2, 2))\np = m(data(1, 2, dtype=torch.float32))\nm.double()\nm(data(1, 2)).sum().backward()",
    "True in an index is a whole number": "a = data(1)\na[True, None] = a.expand(2)[0]\nb = data(1).expand(2)\nb[True, None] = 0.5\nb[None, True] = 2.0\nb[torch.tensor([True, False])] = 3.0\nc = data(2)[True]\nd = data(2)[False]\np = data(2).requires_grad_()[None, True]\nsee(p.grad_fn._saved_indices[1].dtype)\na[False] = 2.0\na[True, True] = 3.0",
    "modules of inference mode": "with torch.inference_mode():\n    m = filled(nn.Linear(2, 2))\n    n = nn.BatchNorm1d(2)\nwith torch.inference_mode():\n    e = filled(nn.Embedding(3, 2, padding_idx=0))\n    c = copy.deepcopy(nn.PReLU())\na = m(data(2, 2, dtype=torch.float32))\nm.weight.tanh_()\nm.weight.add_(1)\nb = nn.Parameter(data(2))",
    "the dimension of an empty extreme as it was written": "a = data(2, 0).amax((-1,))\nb = data(2, 0).amin((0, -1))\nc = data(2, 0).amax(-1)\nd = data(2, 0).amax(1)",
    "decompositions of nan": "a = data(2, 2) / 0\nb = torch.linalg.pinv(a)\nc = torch.linalg.svdvals(a)",
    "writes out of place lie as their input or in C order": "a = data(3, 3).t()\nb = a.index_copy(0, whole(1, below=1), a[:1])\nc = a.index_put((whole(1),), a[:1])\nd = a.index_put((whole(1),), a[:1], accumulate=True)\np = a.put(whole(1), a[0, :1])\nq = a.index_put((whole(3), whole(3)), data(3))\nr = data(2, 3).expand(2, 2, 3).index_put((whole(1, below=2),), data(3))",
    "cholesky of nan": "a = torch.linalg.cholesky(data(2, 2) / 0)\nb = torch.linalg.cholesky(torch.tensor([[1.0, 0.0], [0.0, math.nan]]))\nc = torch.linalg.cholesky(torch.stack([torch.eye(2), torch.eye(2) * math.nan]))",
    "index_reduce fills before it looks": "a = data(2, 1)\na.index_reduce_(1, whole(1) + 3, data(2, 1), 'amax', include_self=False)\na.index_reduce_(1, whole(1) - 9, data(2, 1), 'amax', include_self=False)\na.index_reduce_(1, whole(1) + 3, data(2, 1), 'amax')\nb = data(0)\nb.index_reduce_(0, whole(1), data(1), 'amax')",
    "resize_ of an inference tensor to its own size": "with torch.inference_mode():\n    a = data(4)\na.resize_(4)\na.resize_(2, 2)",
    "max_pool1d without a gradient is no view": "a = F.max_pool1d(data(1, 2, 4), 2)\nb = F.max_pool1d(data(1, 2, 4).requires_grad_(), 2)\nc, d = F.max_pool1d(data(1, 2, 4), 2, return_indices=True)\nwith torch.no_grad():\n    p = F.max_pool1d(data(2, 4).requires_grad_(), 2)\np.add_(1)\nm = nn.MaxPool1d(2)\nq = m(data(1, 2, 4))",
    "the statistics of a module without weights are reset": "m = nn.BatchNorm1d(2, affine=False)\nm.reset_parameters()\nm.reset_running_stats()\nn = nn.InstanceNorm1d(2, track_running_stats=True).double()\nn.reset_parameters()\no = nn.BatchNorm1d(2)\no.reset_parameters()",
    "scatter_ of a number that does not fit": "a = whole(2, 3)\na.scatter_(1, whole(2, 3), math.inf)\na.scatter_(1, whole(2, 3), math.nan, reduce='multiply')\na.scatter_(1, whole(2, 3), 1e30, reduce='add')\na.scatter_(1, whole(2, 3), 2.7)\na.to(torch.uint8).scatter_(1, whole(2, 3), 300)\nb = a.half().scatter(1, whole(2, 3), 1e30)\n(a > 0).scatter_(1, whole(2, 3), math.inf)",
    "the sign of 0 in pointwise functions": "z = torch.tensor([-0.0, 0.0], dtype=torch.float64)\na = 1 / z.relu()\nb = 1 / F.elu(z)\nc = 1 / F.celu(z, 0.5)\nd = 1 / F.selu(z)\ne = 1 / F.softshrink(torch.tensor([-0.0, -0.25, 0.25]))\np = 1 / z.erfinv()\nq = 1 / z.clamp(0, 1)\nr = 1 / z.clamp(max=-z)\ns = 1 / F.hardtanh(z, 0.0, 1.0)\nt = 1 / torch.fmax(z, -z)\nu = 1 / torch.fmin(z, -z)\nv = 1 / z.clone().relu_()\nw = 1 / z.clone().clamp_(min=0)",
    "the sign of 0 in sums": "z = torch.tensor([-0.0, 0.0], dtype=torch.float64)\na = 1 / z[:1].cumsum(0)\nb = 1 / z[:1].dot(z[1:])\nc = 1 / z.add(z, alpha=0.0)\nd = 1 / z.sub(z, alpha=0)\ne = 1 / torch.tensor(-0.0).cumsum(0)\np = 1 / torch.tensor([math.nan]).nan_to_num(nan=-0.0)\nq = 1 / torch.rsub(z, z, alpha=0)\nr = 1 / torch.vdot(z[:1], z[1:])",
    "the sign of a remainder of 0": "a = torch.tensor([-4.0, -2.0, 0.0, -0.0, 2.0, 3.0, -3.0, math.inf, -math.inf, math.nan])\nb = 1 / (a % 2)\nc = 1 / (a % -2)\nd = a % math.inf\ne = a % -math.inf\np = 1 / (a.double() % 2)\nq = torch.tensor([5, -5, 4, -4]) % torch.tensor([3, 3, -2, -2])\nr = 1 / (a.half() % 2)\ns = 7 % a\nt = a % 0\nu = torch.tensor([200, 7], dtype=torch.uint8) % 6\nv = torch.tensor([3, 7, -8], dtype=torch.int8) % torch.tensor([-5, 5, 3], dtype=torch.int8)\na.remainder_(2)\nw = a ** -1",
    "result types have their whole name in Python's errors": "a = data(2, 3)\nb = a.sort(0)\nc = 1 - b\nc = b ** a\nc = a ** b\na += b\nb.nothing\nb + 1\nb < 3\nmath.sin(b)\nc = torch.add(b, a)\nc = a.view(b)\nfloat(b)\nsee(type(b).__name__, type(b).__qualname__, type(b).__module__, repr(type(b)), str(b), str(copy.deepcopy(b)))",
    **{f"what is no operand of {sign}": "a = data(2, 3)\n" + "\n".join(f"{line}" for wrong in ("'x'", "None", "[1, 2]", "(a, a)") for line in (f"a {sign}= {wrong}", f"b = a {sign} {wrong}", f"b = {wrong} {sign} a")) for sign in (
        "+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>", "@",
    )},
    "what is no tensor lacks the attribute that a function in Python reads first": "a = data(2, 3)\nb = data(2, 3).max(0)\n" + "\n".join(f"c = F.{call}" for wrong in ("b", "2", "(a,)", "None") for call in (
        f"mse_loss(a, {wrong})", f"mse_loss({wrong}, a)", f"l1_loss({wrong}, {wrong})", f"smooth_l1_loss(a, {wrong}, reduction='none')", f"huber_loss(a, target={wrong})", f"binary_cross_entropy({wrong}, a)", f"binary_cross_entropy_with_logits(a, {wrong})",
        f"glu({wrong}, 0)", f"dropout1d({wrong})", f"group_norm({wrong}, 1)", f"local_response_norm({wrong}, 2)", f"interpolate({wrong}, scale_factor=2)", f"instance_norm({wrong})", f"gaussian_nll_loss({wrong}, a, a * a)", f"tanh({wrong})", f"tanhshrink({wrong})",
        f"sigmoid({wrong})", f"softmax({wrong}, 0)", f"log_softmax({wrong}, 0)", f"softsign({wrong})", f"normalize({wrong})", f"lp_pool1d({wrong}, 2, 2)", f"margin_ranking_loss({wrong}, a, a)", f"margin_ranking_loss(a, {wrong}, a)", f"triplet_margin_with_distance_loss({wrong}, a, a)",
        f"mse_loss(a, a, weight={wrong})" if wrong != "None" else "relu(None)", f"softmax(a, {wrong})" if wrong == "(a,)" else "tanh()", f"cross_entropy({wrong}, a)",
    )),
    "the strides of no elements": "a = data(0)\nb = data(2, 0).t().requires_grad_()\nc = data(0).requires_grad_()\nsee(a.stride(), b.stride(), a.clone().stride(), a.float().stride(), (a * 1).stride(), a[:].stride(), a[1:1].stride(), a.detach().stride(), torch.zeros_like(a).stride(), torch.ones_like(b).stride(), copy.deepcopy(a).stride(), b.data.stride(), a.flip(0).stride(), a.is_contiguous(), b.abs().stride(), b.to(torch.int64).stride(), torch.full_like(b, 2).stride(), torch.from_numpy(numpy.zeros(0)).stride(), torch.zeros(2, 0).stride())\n(c * c).sum().backward()\nsee(c.grad.stride())\nsee(c.grad)\n(c * c).sum().backward()\n(c * c).sum().backward(create_graph=True)\n(b * b).sum().backward(create_graph=True)\n(b * b).sum().backward(create_graph=True)",
    "a .grad in another order than its leaf": "x = data(3, 2).t().requires_grad_()\nx.grad = torch.ones(2, 3, dtype=torch.float64)\n(x * x).sum().backward()",
    "a .grad in another order than its leaf, in a graph": "x = data(3, 2).t().requires_grad_()\nx.grad = torch.ones(2, 3, dtype=torch.float64)\n(x * x).sum().backward(create_graph=True)",
    "a .grad in the order of its leaf": "x = data(3, 2).t().requires_grad_()\n(x * x).sum().backward()\n(x * x).sum().backward(create_graph=True)\n(x * 2).sum().backward()\nx.grad = None\nx.t().sum().backward()\nx.t().sum().backward()\n(x.t() * data(3, 2)).sum().backward(create_graph=True)",
    "a .grad of an expanded leaf": "x = data(3, 1).expand(3, 2).requires_grad_()\n(x * x).sum().backward()\n(x * x).sum().backward(create_graph=True)\nx.grad = torch.ones(2, 3).double().t()\n(x * x).sum().backward()",
    "a .grad of no elements": "c = data(0).requires_grad_()\nc.sum().backward()\nsee(c.grad)\nc.sum().backward()\nsee(c.grad, c.grad.stride())\nc.grad = None\n(c * 2).sum().backward()\nsee(c.grad, c.grad.stride())\nc.grad = torch.zeros(0).double()\nc.sum().backward()",
    "index_fill lies as its input": "b = data(3, 2, k=6).t().requires_grad_()\nq = b.index_fill(-2, torch.tensor([0, 0]), 2.0)\nr = b.index_fill(1, torch.tensor([0]), torch.tensor(2.0).double())\ns = data(2, 3, 4).permute(2, 0, 1)[::2].index_fill(1, torch.tensor([0]), 2.0)\nt = data(2, 3).expand(2, 2, 3).index_fill(0, torch.tensor([0]), 2.0)",
    "a write to the weight of prelu before its gradient": "m = nn.PReLU(3)\nw = m(data(2, 3, dtype=torch.float32))\nwith torch.no_grad(): m.weight.mul_(2)\nw.sum().backward()\na = data(2, 3).requires_grad_()\nb = data(1)\nc = F.prelu(a, b)\nb.mul_(2)\nc.sum().backward()",
    "normalization of what lies in another order": "b = data(3, 3, k=5).t()\na = F.batch_norm(b, torch.zeros(3).double(), torch.ones(3).double())\nc = F.batch_norm(b, None, None, training=True)\nd = F.batch_norm(data(2, 4, 3).transpose(1, 2), None, None, training=True)\ne = F.batch_norm(data(2, 3, 2, 4).permute(0, 3, 1, 2), None, None, training=True)\np = F.layer_norm(b, (3,))\nq = F.group_norm(b, 3)\nr = F.instance_norm(data(2, 4, 3).transpose(1, 2))\ns = F.rms_norm(b, (3,))\nt = F.batch_norm(b.requires_grad_(), None, None, training=True)\nu = torch.autograd.grad(t.sum(), b)[0]\nw = F.batch_norm(data(2, 3, 2, 4).permute(3, 0, 1, 2), None, None, training=True)",
    "rms_norm ends in C order": "b = data(3, 3, k=5).t()\ns = F.rms_norm(b, (3,))\nt = F.rms_norm(b, (3,), torch.ones(3).double())\nu = F.rms_norm(b.requires_grad_(), (3,))\nv = F.rms_norm(data(2, 3, 4).permute(2, 0, 1), (3,))\nw = torch.autograd.grad(u.sum(), b)[0]",
    "a deep copy of a view made under no_grad": "c = data(4, k=3).requires_grad_()\nwith torch.no_grad(): s = c.squeeze()\nt = copy.deepcopy(s)\nsee(t.requires_grad, t.is_leaf)\nu = copy.copy(s)\nc.requires_grad_(False)\nv = copy.deepcopy(s)",
    "writes to some elements of memory that rows share": "v = data(6)\nr = v.as_strided((2, 2), (1, 1), 0)\nr.index_put_((torch.tensor([0, 0]),), torch.ones((), dtype=torch.float64))\nr[0] = 7.0\nr.masked_fill_(r > 6, 2.5)\nr.index_fill_(0, torch.tensor([1]), 4.0)\nu = data(6).unfold(0, 3, 1)\nu[0] = 5.0\nu.fill_(1.0)\nu.copy_(data(4, 3))\nu.scatter_(0, whole(1, 3, below=1), 3.0)\nu.zero_()\nu[1:] = data(3)\nu.index_copy_(0, torch.tensor([0]), data(1, 3))\nu.index_add_(0, torch.tensor([0]), data(1, 3))\nu.masked_scatter_(u > 0, data(12))\nu.put_(torch.tensor([0]), data(1))\nu.fill_diagonal_(3.0)",
    "the Kronecker product of what lies in another order": "a = data(3, 2).t()\nb = data(2, 3)\nc = torch.kron(a, b)\nc = torch.kron(b, a)\nc = torch.kron(a, a)\nc = torch.kron(b, b)\nc = torch.kron(a.requires_grad_(), data(2))\nc = torch.kron(data(2, 2, 3), a)",
    **{f"the Kronecker product of {name}": f"a, b = {one}, {other}\nc = torch.kron(a, b)\nsee(c.stride())\nc = torch.kron(a.requires_grad_(), b)\nc.sum().backward()" for name, one, other in (
        ("what .t() turned", "data(3, 2).t()", "data(2, 3).t()"), ("expanded rows", "data(3).expand(2, 3)", "data(2)[:, None].expand(2, 3)"), ("what has gaps", "data(4, 6)[::2, ::2]", "data(6)[::2]"),
        ("turned and expanded", "data(3, 2).t()", "data().expand(2, 2)"), ("expanded and turned", "data(2).expand(3, 2).t()", "data(3, 2).t()"), ("gaps, turned, in three dimensions", "data(6, 2)[::2].t()", "data(2, 3, 2).permute(2, 0, 1)"),
        ("turned and a column from .t()", "data(3, 2).t()", "data(1, 3).t()"), ("gaps, turned, and a column from .t()", "data(6, 2)[::2].t()", "data(3, 2).t()[:, :1]"), ("no elements", "data(2, 0)", "data(3, 2).t()"), ("a number and what is turned", "data()", "data(3, 2).t()"),
    )},
    "a gradient with a graph for a root that has another shape since": "a = data(2, 3).requires_grad_()\nd = a * 1\nwith torch.no_grad(): d.t_()\nd.backward(torch.ones_like(d), create_graph=True)\ntorch.autograd.grad(d, a, torch.ones_like(d), create_graph=True)\ntorch.autograd.backward([a.sum(), d], [None, torch.ones_like(d)], create_graph=True)\ne = a * 1\nwith torch.no_grad(): e.unsqueeze_(0)\nsee(torch.autograd.grad(e, a, torch.ones_like(e), create_graph=True))",
    "a gradient through a write to an expanded view of no elements": "b = data(2, 0, k=7).requires_grad_()\nr = b / b\nw = r.expand(1, -1, -1)\nw.add_(1)\nr.exp().sum().backward()\nc = data(2, 0, k=7).requires_grad_()\n(c * 2).sum().backward()\nsee(c.grad)",
    "masked_scatter_ looks for overlap before it looks at the dtype": "b = data(k=9) > 0\nw = b.expand(2)\nw.masked_scatter_(w > 0, data(k=3))\nb.masked_scatter_(b, data(k=3))",
    "a gradient for a root that has another shape since": "a = data(2, 3).requires_grad_()\nd = a * 1\nwith torch.no_grad(): d.t_()\nd.backward(torch.ones_like(d))\ne = a * 1\nwith torch.no_grad(): e.unsqueeze_(0)\ne.backward(torch.ones_like(e))\nsee(a.grad)\ntorch.autograd.grad(d, a, torch.ones_like(d))\nf = a * 1\ntorch.autograd.backward([f, d], [torch.ones_like(f), torch.ones_like(d)])",
    "no gradient reaches a node, which looks at what it saved": "c = data(1, 3, k=2).requires_grad_()\nw = c.log_softmax(-1)\nv = Nothing.apply(w)\nw.mul_(2)\nv.sum().backward()\nx = c.exp()\ny = Nothing.apply(x)\ny.sum().backward(retain_graph=True)\ny.sum().backward()\ny.sum().backward()",
    "ldexp of more than its input warns": "a = torch.ldexp(data(1), whole(3))\nb = torch.ldexp(data(3), whole(1))\nc = torch.ldexp(data(1), data(3))\nd = torch.ldexp(whole(1), whole(3))\ne = torch.ldexp(data(1, 3), whole(2, 1))\np = torch.ldexp(data(), whole(3))\nq = torch.ldexp(data(1, dtype=torch.float32), whole(3))\nr = torch.ldexp(data(1), whole(3).int())\ns = torch.ldexp(data(1), whole(0))\nt = torch.ldexp(data(0), whole(1))\nu = torch.ldexp(data(1).requires_grad_(), whole(3))\nv = data(1).ldexp(whole(3))\nw = torch.ldexp(data(1), whole(3).to(torch.uint8))\nw = torch.ldexp(data(1), whole(3).to(torch.int16))\nw = torch.ldexp(data(3, 1).requires_grad_(), whole(3, 2))\nw = torch.ldexp(data(1).half(), whole(3))",
    "an index into no elements is refused before a dtype": "c = data(2, 0, dtype=torch.float32)\nc[torch.tensor([True, False]), [0, 0]] = whole(2, 0)\nc = data(2, 3, dtype=torch.float32)\nc[[5]] = whole(3)\nc[[0]] = whole(3)\nc[[5]] = data(3)\nc[[5]] = data(2)\nc[5] = whole(3)\nc[[0], [7]] = whole(1)\nc[torch.tensor([True, False]), [0, 7]] = whole(2)\nc[torch.tensor([True, False]), [0]] = whole(1)\nd = data(2, 0, dtype=torch.float32)\nd[[0], [0]] = whole(1)\nd[[0], [0]] = data(1)\nd[[0], [0]] = data(1, dtype=torch.float32)\nd[[0]] = whole(2, 0)",
    "negative floating numbers do not fit into bytes": "a = torch.as_tensor([-1.5, 0], dtype=torch.uint8)\na = torch.as_tensor([-0.5, 0], dtype=torch.uint8)\na = torch.tensor([-1.5], dtype=torch.uint8)\na = torch.tensor([-1], dtype=torch.uint8)\na = torch.tensor([256.5], dtype=torch.uint8)\na = torch.tensor([255.5], dtype=torch.uint8)\na = torch.tensor([300], dtype=torch.int8)\na = torch.tensor([1e30], dtype=torch.int64)\na = torch.tensor([-129.0], dtype=torch.int8)\na = torch.tensor([math.nan], dtype=torch.int8)\na = torch.tensor(-1.5, dtype=torch.uint8)\na = torch.tensor([True, -1.5], dtype=torch.uint8)\na = torch.tensor([-256.0], dtype=torch.uint8)\na = torch.tensor([-254.5], dtype=torch.uint8)\na = torch.tensor([-255.5], dtype=torch.uint8)\na = torch.tensor([1e10], dtype=torch.float16)\na = torch.tensor([1e50], dtype=torch.float32)\na = torch.tensor([-1.0], dtype=torch.uint8)",
    "fills of bytes with negative numbers": "a = torch.full((2,), -1.5, dtype=torch.uint8)\na = torch.full((2,), -1, dtype=torch.uint8)\na = torch.zeros(2, dtype=torch.uint8).fill_(-1.5)\na = torch.zeros(2, dtype=torch.uint8)\na[0] = -1.5\na = torch.zeros(2, dtype=torch.uint8)\na.add_(-1.5)\na = torch.full_like(torch.zeros(2, dtype=torch.uint8), -1.5)\na = torch.scalar_tensor(-1.5, dtype=torch.uint8)\na = torch.zeros(2, dtype=torch.uint8).masked_fill(torch.tensor([True, False]), -1.5)\na = torch.zeros(2, dtype=torch.uint8).index_fill(0, torch.tensor([0]), -1.5)\na = torch.tensor([0.5, 1.5], dtype=torch.uint8)\na = torch.zeros(2, dtype=torch.uint8).new_tensor([-1.5])\na = torch.tensor([-0.0], dtype=torch.uint8)",
    "corrcoef has its own name in an error": "a = torch.corrcoef(data(2, 2, 3))\na = torch.cov(data(2, 2, 3))\na = torch.corrcoef(data(2, 3) > 0)",
    "the median of no truth values": "a = (data(0) > 0).median()\nb = (data(0) > 0).nanmedian()\nc = (data(2) > 0).median()\nd = whole(0).median()",
    "cumulative extremes of no elements along any dimension": "a = data(0, k=4).requires_grad_()\nt = a.cummax(1)\nt = a.cummin(5)\nt = data(2, 0).cummax(7)\nt = data(0).cummax(-3)\nt = data(0).cumsum(1)\nt = data(2).cummax(1)",
    "an array as operand": "a = data(2, 3)\nb = numpy.ones((2, 3)) ** a\nb = a @ numpy.ones((2, 3))\nb = a @ 2\nb = a @ 'x'",
    "writes to inference tensors that require grad": "with torch.inference_mode():\n    r = torch.tensor([0.5, 0.5], requires_grad=True)\n    s = torch.tensor([0.5, 0.5])\n" + "\n".join((
        "r.add_(r, alpha=-1.5)", "r.add_(1)", "r.add_(s)", "r.add_(data(2))", "s.add_(r)", "r.mul_(2)", "r.relu_()", "r[0] = 1", "r[0] = r[1]", "r.copy_(r)", "r.copy_(data(2))", "r.fill_(2)", "r.clamp_(0, 1)", "r.zero_()", "r += 1",
        "r.pow_(2)", "r.logical_not_()", "r.t_()", "r.unsqueeze_(0)", "r.index_fill_(0, torch.tensor([0]), 1.0)", "r.masked_fill_(r > 0, 1.0)", "r.scatter_(0, whole(1), 1.0)", "r.set_(s)", "r.resize_(1)", "r.detach_()", "F.relu(r, inplace=True)",
    )),
    "detach_ of inference tensors": "with torch.inference_mode():\n    r = torch.tensor([0.5, 0.5], requires_grad=True)\n    r.detach_()\nsee(r.requires_grad)\nr.detach_()\nr[0].detach_()",
    "trapezoid of no samples has their dtype": "a = torch.trapezoid(data(2, 0) > 0)\nb = torch.trapezoid(data(2, 0) > 0, data(2, 0), dim=0)\nc = torch.trapezoid(data(0) > 0, data(0))\nd = torch.trapezoid(whole(0, 2).int(), dim=0)\ne = torch.trapezoid(data(2) > 0, data(2))\na = torch.cumulative_trapezoid(data(2, 0) > 0, data(2, 0))\na = torch.cumulative_trapezoid(data(2, 3), data(2, 3) > 0)\na = torch.trapezoid(data(2, 3), data(2, 3) > 0)",
    "a hook of any of several tensors in a copy": "a = data(1).requires_grad_()\ntorch.autograd.graph.register_multi_grad_hook([a, a], called('any'), mode='any')\nb = copy.copy(a)",
    **{f"the gradient through {write} of an expanded tensor": f"a = data(3).requires_grad_()\nb = (a * 1).expand(2, 3)\nb.{write}\n(b ** 2).sum().backward()" for write in (
        "zero_()", "fill_(2.0)", "copy_(b)", "index_put_((torch.tensor([0]),), torch.ones((), dtype=torch.float64))", "masked_fill_(b > 0, 2.0)", "index_fill_(0, torch.tensor([0]), 2.0)", "__setitem__([0], 0.0)", "__setitem__(0, 0.0)", "clamp_(0, 1)", "t_()",
    )},
    **{f"the second derivative of {call}": f"a = data(3, 6, k=5).requires_grad_()\nb = {call}\nc = torch.autograd.grad(b.sum(), a, create_graph=True)[0]\nd = torch.autograd.grad(c.sum(), a, allow_unused=True, create_graph=True)[0]\ne = torch.autograd.grad({call}.square().sum(), a, create_graph=True)[0]\nf = torch.autograd.grad(e.sum(), a)[0]" for call in (
        "F.relu(a)", "F.leaky_relu(a, 0.3)", "F.leaky_relu(a * 1, 0.3, inplace=True)", "F.rrelu(a)", "F.rrelu(a * 1, inplace=True)", "F.threshold(a, 0.1, 2.0)", "F.threshold(a * 1, 0.1, 2.0, inplace=True)",
        "F.hardtanh(a)", "F.relu6(a)", "F.hardshrink(a)", "F.softshrink(a)", "F.prelu(a, data(1))", "F.max_pool1d(a, 2)", "F.max_pool2d(a[None], 2)", "F.max_pool3d(a[None, None], (1, 2, 2))", "F.avg_pool1d(a, 2)",
        "F.avg_pool2d(a[None], 2)", "F.avg_pool3d(a[None, None], (1, 2, 2))", "F.adaptive_avg_pool1d(a, 2)", "F.adaptive_avg_pool2d(a[None], 2)", "F.adaptive_avg_pool3d(a[None, None], (1, 2, 2))", "F.adaptive_max_pool1d(a, 2)",
        "F.adaptive_max_pool2d(a[None], 2)", "F.adaptive_max_pool3d(a[None, None], (1, 2, 2))", "F.nll_loss(a, whole(3))", "F.nll_loss(a, whole(3), weight=data(6).abs() + 1, reduction='sum')", "F.nll_loss(a[None, :, :, None], whole(1, 6, 1), reduction='none')",
    )},
    **{f"a write between {call} and its gradient": f"a = data(3, 6).requires_grad_()\nb = a * 1\nc = {call}\nb.add_(1)\nc.sum().backward()" for call in (
        "F.max_pool1d(b, 2)", "F.max_pool2d(b[None], 2)", "F.avg_pool1d(b, 2)", "F.avg_pool2d(b[None], 2)", "F.avg_pool3d(b[None, None], (1, 2, 2))", "F.adaptive_avg_pool2d(b[None], 2)", "F.adaptive_max_pool2d(b[None], 2)", "F.nll_loss(b, whole(3))",
        "F.cross_entropy(b, whole(3))", "F.lp_pool1d(b, 2, 2)", "F.adaptive_avg_pool2d(b[None], 1)", "F.fold(b, (4, 4), (2, 2))", "F.interpolate(b[None], scale_factor=2)",
    )},
    **{f"{line} of an inference tensor": INFERENCE + line for line in (
        "a.relu_()", "a[0] = 1", "a += data(2, 3).requires_grad_()", "a.copy_(data(2, 3).requires_grad_())", "a.t_()", "a.set_(data(2))", "a.resize_(2)", "torch.add(data(2, 3), 1, out=a)",
    )},
}  # fmt: skip
"""What random scripts led to, as short as it can be shown."""
OF_PYTORCH = (
    "RuntimeError", "IndexError", "TypeError", "ValueError", "NotImplementedError", "_LinAlgError", "AttributeError", "KeyError", "NameError", "AssertionError", "UnboundLocalError",
)  # fmt: skip
"""What a line may raise. An error of numpy's own, or of arithmetic, would be a crash of the engine."""
SCRIPTS = [seed for seed in range(240) if seed not in NAMED]


@pytest.mark.torch
@settings(
    max_examples=150,
    derandomize=True,
    deadline=None,
    print_blob=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(st.lists(lines(), min_size=1, max_size=10))
def test_as_pytorch(written):
    text = program(written)
    note("\n".join(written))
    try:
        expected = reference().run(text)
    except Crashed:
        run(text, "gviz.engine")  # which must survive what PyTorch does not
        reject()
    assert_all_same(expected, run(text, "gviz.engine"), rtol=1e-9, atol=1e-12)


@pytest.mark.torch
@pytest.mark.parametrize(
    "seeds", [SCRIPTS[i : i + 40] for i in range(0, len(SCRIPTS), 40)], ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}"
)
def test_scripts_of_everything(seeds):
    for seed in seeds:
        reference().ask("script", seed)
        try:
            lines, expected = reference().answer()
        except Crashed:
            assert_survives(seed)
            continue
        found = first_difference(lines, expected, recorded(lines, "gviz.engine"))
        assert found is None, "\n".join([f"seed {seed}", *lines[: found[0] + 1], *map(str, found[1:])])


@pytest.mark.torch
@pytest.mark.parametrize("script", LED_TO.values(), ids=LED_TO)
def test_what_scripts_led_to(script):
    lines = script.replace("\n    ", "\v    ").split("\n")  # a block is one statement
    lines = [line.replace("\v", "\n") for line in lines]
    reference().ask("lines", lines)
    found = first_difference(lines, reference().answer(), recorded(lines, "gviz.engine"))
    assert found is None, "\n".join([*lines[: found[0] + 1], *map(str, found[1:])])


def assert_survives(seed):
    """The engine writes the script in which PyTorch crashed, and runs each of its lines."""
    records = recorded(Writer(seed, "gviz.engine").script(), "gviz.engine")
    errors = [record["error"] for record in records if record["error"] is not None]
    assert all(name in OF_PYTORCH for name, _ in errors), f"seed {seed}: {errors}"


@pytest.mark.parametrize("seed", [1, 2])
def test_a_script_runs_where_pytorch_crashed(seed):
    assert_survives(seed)


@pytest.mark.parametrize("row", [*NAMED.values(), *COUNTED_APART])
def test_what_differs_is_named(row):
    assert f"| {row}" in (Path(__file__).parents[2] / "docs" / "differences.md").read_text(encoding="utf-8")


def test_a_difference_is_found():
    lines = ["a = data(3)", "b = a * 2"]
    real, ours = (recorded(text, "gviz.engine") for text in (lines, [lines[0], "b = a * 2.5"]))
    assert first_difference(lines, real, real) is None
    number, path, *_ = first_difference(lines, real, ours)
    assert (number, path) == (1, ("variables", "b", "array"))


BATCHED = "b = torch.autograd.grad(a, c, d, is_grads_batched=True)"
NO_BATCH = ("RuntimeError", "Batching rule not implemented for aten::detach; the fallback path doesn't work")
NO_SIZE = ("AttributeError", "'int' object has no attribute 'size'")
NO_TENSOR = ("TypeError", "binary_cross_entropy(): argument 'target' (position 2) must be Tensor, not int")
NO_INFERENCE = ("RuntimeError", "Inplace update to inference tensor outside InferenceMode is not allowed.You can")
OUTSIDE = ("IndexError", "index 5 is out of bounds for dimension 0 with size 2")


OUT_OF_RANGE = ("RuntimeError", "index out of range in self")
OVERLAPPING = (
    "RuntimeError",
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to",
)
WRITTEN_TWICE = (
    "RuntimeError",
    "unsupported operation: more than one element of the written-to tensor refers to a single",
)
NO_OUTPUT = ("RuntimeError", "out != nullptr INTERNAL ASSERT FAILED")
SINGULAR = ("_LinAlgError", "linalg.inv: the input matrix is singular.")
NO_DERIVATIVE = ("RuntimeError", "derivative for aten::floor_divide_ is not implemented")
FREED = ("RuntimeError", "Trying to backward through the graph a second time")
GRAD = "torch.autograd.grad"
BEFORE = f"""g = {GRAD}(a, b)[0]
a = data(2)
d.register_hook(lambda t: t.mul_(2))
s = torch.from_numpy(a.detach().numpy())
e.retain_grad()
h = {GRAD}(a, b, create_graph=True)[0]
j = h.t()
m = torch.mm(a, d.T)"""
"""What the line after it may refer to."""


def after(error=None, shown=(), **arrays):
    """What a line showed, without what the test does not need."""
    variables = {name: {"array": np.array(array)} for name, array in arrays.items()}
    return {"error": error, "shown": [*shown, ""], "modes": (), "variables": variables}


def having(name, **state):
    """What a line showed of one variable."""
    return after() | {"variables": {name: state}}


def tainted(shown, version):
    """What a line showed of the version of a part of `b`, whose own version is `version`."""
    return after(shown=[{"version": shown}]) | {"variables": {"b": {"version": version, "inference": False}}}


def graded(grad):
    """A tensor `d` of one element, and what a line showed of the gradient of `x`."""
    array = np.array([1.0])
    return after() | {"variables": {"d": {"array": array}, "x": {"array": array, "grad": {"array": np.array(grad)}}}}


def matrix(name, stride):
    """What a line showed of a matrix of 2 rows and 3 columns."""
    return having(name, array=np.zeros((2, 3)), stride=stride)


def expanded(shown, stride=(0,), array=(1.0, 1.0)):
    """What a line showed of `g` and `a`, both with this stride."""
    state = {"array": np.array(array), "stride": stride and list(stride)}
    return after(shown=shown) | {"variables": {"g": state, "a": state}}


def with_turned(name, stride, turned=(1, 3)):
    """The stride of a variable after a line, and that of `a`, which does not lie in C order."""
    own = turned and list(turned)
    return after() | {"variables": {"a": {"stride": own}, name: {"stride": stride}}}


@pytest.mark.parametrize(
    ("line", "real", "ours", "number"),
    [
        (BATCHED, after(NO_BATCH), after(), 0),
        (BATCHED, after(NO_BATCH), after(("RuntimeError", "freed")), 0),
        (BATCHED, after(("RuntimeError", "other")), after(), None),
        (BATCHED, after(), after(NO_BATCH), None),
        (BATCHED.replace("True", "False"), after(NO_BATCH), after(), None),
        (BATCHED, after(shown=["hook", 1]), after(shown=["hook", 1, "hook", 1]), 0),
        (BATCHED, after(shown=["hook", 1]), after(shown=["hook", 1, "hook", 2]), None),
        (BATCHED, after(shown=["hook", 1]), after(shown=["hook", 2]), None),
        (BATCHED, after(shown=[]), after(shown=["hook"]), None),
        (BATCHED, after(shown=["hook", 1, "see"]), after(shown=["hook", 1, "hook", 1, "see"]), 0),
        (BATCHED, after(shown=["hook", 1, "see"]), after(shown=["hook", 1, "see", "hook", 1]), None),
        (BATCHED, after(shown=["hook", 1, "see"]), after(shown=["hook", 1, 1, 1, "see"]), 0),
        (BATCHED, after(b=[1.0]), after(b=[2.0]), None),
        (BATCHED, having("b", stride=[3]), having("b", stride=[1]), 0),
        (BATCHED, having("a", stride=[3]), having("a", stride=[1]), None),
        (BATCHED.replace("True", "False"), having("b", stride=[3]), having("b", stride=[1]), None),
        ("torch.sum(a, 0, out=a)", after(a=[0.0]), after(a=[3.0]), 4),
        ("torch.matmul(a, a.t(), out=a)", after(a=[0.0]), after(a=[3.0]), 4),
        ("torch.matmul(n, n.t(), out=a)", after(a=[0.0]), after(a=[3.0]), None),
        ("torch.add(a, 1, out=a)", after(a=[0.0]), after(a=[3.0]), None),
        ("torch.sum(a, 0, out=a)", after(n=[0.0]), after(n=[3.0]), None),
        ("q = g.reshape(2)", having("q", version=1, view=True), having("q", version=0, view=True), 5),
        ("q = g.exp()", having("q", version=1, view=False), having("q", version=0, view=False), None),
        ("q = g.reshape(2)", having("q", version=0, view=True), having("q", version=1, view=True), None),
        ("q = a.reshape(2)", having("q", version=1, view=True), having("q", version=0, view=True), None),
        ("for part in g: see(part)", after(shown=[{"version": 1}]), after(shown=[{"version": 0}]), 5),
        ("for part in a: see(part)", after(shown=[{"version": 1}]), after(shown=[{"version": 0}]), None),
        ("q = torch.detach(g)", having("q", version=1, view=True), having("q", version=0, view=True), 5),
        ("a.data.add_(1)", after(), after(NO_INFERENCE), 6),
        ("a.add_(1)", after(), after(NO_INFERENCE), None),
        ("a.data.add_(1)", after(), after(("RuntimeError", "other")), None),
        ("a.data.add_(1)", after(NO_INFERENCE), after(), None),
        ("see(g)", after(shown=[{"version": 1}]), after(shown=[{"version": 0}]), None),
        ("b = F.binary_cross_entropy(a, 1)", after(NO_SIZE), after(NO_TENSOR), 1),
        ("b = F.binary_cross_entropy(a, 1)", after(NO_SIZE), after(), None),
        ("b = F.binary_cross_entropy(a, 1)", after(NO_TENSOR), after(NO_SIZE), None),
        ("b = F.binary_cross_entropy(a, 1)", after(NO_SIZE), after((NO_TENSOR[0], NO_TENSOR[1][:-3] + "float")), None),
        ("b = torch.dot(a, 1)", after(NO_SIZE), after(NO_TENSOR), None),
        ("a.index_copy_(0, b, c)", after(OUTSIDE, a=[5.0, 2.0]), after(OUTSIDE, a=[1.0, 2.0]), 2),
        ("a.index_copy_(0, b, c)", after(OUTSIDE, a=[5.0, 2.0]), after(OUTSIDE, a=[1.0, 3.0]), None),
        ("a.index_copy_(0, b, c)", after(OUTSIDE, a=[5.0, 2.0]), after(a=[1.0, 2.0]), None),
        ("a.index_copy_(0, b, c)", after(a=[5.0, 2.0]), after(a=[1.0, 2.0]), None),
        ("a.index_copy_(0, b, c)", after(OUTSIDE, a=[1.0, 2.0], b=[1.0]), after(OUTSIDE, a=[1.0, 2.0], b=[2.0]), None),
        ("a.index_add_(0, b, c)", after(OUT_OF_RANGE, a=[5.0, 2.0]), after(OUT_OF_RANGE, a=[1.0, 2.0]), 2),
        ("b = n.signbit()", after(b=[True, False]), after(b=[False, False]), 3),
        ("b = torch.signbit(n)", after(b=[True, False]), after(b=[False, False]), 3),
        ("b = n.signbit()", after(b=[True, False]), after(b=[True, True]), None),
        ("b = n.signbit()", after(b=[True, False]), after(b=[True]), None),
        ("b = a.signbit()", after(b=[True, False]), after(b=[False, False]), None),
        ("b = n.sign()", after(b=[True, False]), after(b=[False, False]), None),
        ("torch.max(a, 0, out=(a, b))", after(a=[0.0]), after(a=[3.0]), 4),
        ("b = Seen.apply(g)", having("b", version=1, view=True), having("b", version=0, view=True), 5),
        ("b = torch.detach(g)", having("b", version=1, view=False), having("b", version=0, view=False), 5),
        (f"b = {GRAD}({GRAD}(a, c)[0], c)[0]", having("b", stride=[3]), having("b", stride=[1]), 7),
        (f"a = {GRAD}({GRAD}(a, c)[0], c)[0]", having("b", stride=[3]), having("b", stride=[1]), None),
        (f"b = {GRAD}({GRAD}(a, c)[0], c)[0]", having("b", version=3), having("b", version=1), None),
        (f"b, c = {GRAD}(a, d)", with_turned("c", [3, 1]), with_turned("c", [1, 2]), 8),
        (f"b, c = {GRAD}(d, e)", with_turned("c", [3, 1]), with_turned("c", [1, 2]), None),
        (f"b, c = {GRAD}(a, d)", with_turned("c", [3, 1], None), with_turned("c", [1, 2], None), None),
        (f"b, c = {GRAD}(a, d)", with_turned("c", [3, 1], (3, 1)), with_turned("c", [1, 2], (3, 1)), None),
        (f"b = {GRAD}(a, d)", having("b", stride=[3, 1]), having("b", stride=[1, 2]), None),
        ("b = a.t() * d", with_turned("b", [3, 1]), with_turned("b", [1, 2]), None),
        ("c.backward()", graded([4.0]), graded([2.0]), 9),
        ("c.backward()", graded([3.0]), graded([2.0]), None),
        ("a -= a[0]", after(a=[0.0, 2.0]), after(a=[0.0, 1.0]), 10),
        ("a.add_(a[:1])", after(a=[2.0, 4.0]), after(a=[2.0, 3.0]), 10),
        ("a -= a[0]", after(a=[0.0, 1.0]), after(a=[0.0, 2.0]), None),
        ("a -= a[0]", after(a=[0.0, 2.5]), after(a=[0.0, 1.0]), None),
        ("a -= a[0]", after(a=[0.0, 2 + 1e-9]), after(a=[0.0, 1.0]), None),
        ("a -= a[0]", after(a=[0.0, 2.0]), after(a=[0.0, 1 + 1e-9]), None),
        ("a -= n[1]", after(a=[1.0, 1.0], n=[np.nan, 1.0]), after(a=[0.0, 1.0], n=[np.nan, 1.0]), None),
        ("torch.add(b, b, out=a)", after(a=[2.0] * 4, n=[5.0, 5.0]), after(a=[2.0] * 4, n=[np.nan, 1.0]), 11),
        ("torch.add(b, b, out=a)", after(a=[2.0] * 4, n=[5.0, 5.0]), after(a=[2.0] * 4, n=[4.0, 1.0]), None),
        ("torch.add(b, b, out=a)", after(a=[2.0] * 2, n=[5.0, 5.0]), after(a=[2.0] * 2, n=[np.nan, 1.0]), None),
        ("a.resize_(3)", after(a=[1.0, 2.0, 9e99]), after(a=[1.0, 2.0, 0.0]), 12),
        ("a.resize_(3)", after(a=[1.0, 2.5, 9e99]), after(a=[1.0, 2.0, 0.0]), None),
        ("a.resize_(3)", after(a=[1.0, 2.0, 9e99]), after(a=[1.0, 2.0, 7.0]), None),
        ("a.exp_()", after(a=[1.0, 2.0, 9e99]), after(a=[1.0, 2.0, 0.0]), None),
        ("b = torch.heaviside(k, a)", after(b=[1.0]), after(b=[0.0]), 18),
        ("b = torch.heaviside(a, i)", after(b=[2.0, 1.0]), after(b=[1.0, 1.0]), None),
        ("b = torch.heaviside(i, a)", after(b=[1.0, 1.0]), after(b=[0.0, 1.0]), None),
        ("b = torch.exp(i)", after(b=[1.0, 1.0]), after(b=[0.0, 1.0]), None),
        ("b = a // k", after(b=[1.0]), after(b=[np.nan]), 18),
        ("b = a // n", after(b=[1.0]), after(b=[np.nan]), None),
        ("b = a // k", after(n=[1.0]), after(n=[2.0]), None),
        ("b = i.long()", after(n=[6.0, 1.0]), after(n=[5.0, 1.0]), None),
        ("see(j)", after(shown=[{"next": ["A"]}]), after(shown=[{"next": ["B"]}]), 24),
        ("b = torch.addmm(a, c, d, alpha=float('inf'))", after(b=[np.nan, 1.0]), after(b=[np.inf, 1.0]), 13),
        ("b = torch.addmm(a, c, d, alpha=float('inf'))", after(b=[np.inf, 1.0]), after(b=[np.nan, 1.0]), None),
        ("b = torch.addmm(a, c, d, alpha=2.0)", after(b=[np.nan, 1.0]), after(b=[np.inf, 1.0]), None),
        ("e.floor_()", after(NO_OUTPUT), after(), 14),
        ("e.floor_()", after(("RuntimeError", "INTERNAL ASSERT FAILED")), after(), None),
        ("see(list(b)[0])", tainted(1, None), tainted(0, None), 15),
        ("see(list(b)[0])", tainted(1, 3), tainted(0, 3), None),
        ("see(b)", tainted(1, None), tainted(0, None), None),
        (
            f"with torch.inference_mode(): b = {GRAD}(a, a)[0]",
            having("b", inference=True),
            having("b", inference=False),
            16,
        ),
        ("with torch.inference_mode(): b = a * 2", having("b", inference=True), having("b", inference=False), None),
        (
            f"with torch.inference_mode(): b = {GRAD}(a, a)[0]",
            having("b", inference=False),
            having("b", inference=True),
            None,
        ),
        (
            "see(a.grad_fn._saved_self)",
            after(shown=[{"grad_fn": "CloneBackward0"}]),
            after(shown=[{"grad_fn": "Mul"}]),
            17,
        ),
        ("see(a.grad_fn._saved_self)", after(shown=[{"grad_fn": "Mul"}]), after(shown=[{"grad_fn": "Sin"}]), None),
        ("see(a)", after(shown=[{"grad_fn": "CloneBackward0"}]), after(shown=[{"grad_fn": "Mul"}]), None),
        ("b = i.long()", after(b=[6, 1]), after(b=[5, 1]), 18),
        ("b = i.long()", after(b=[6, 1]), after(b=[6, 0]), None),
        ("b = i * 2", after(b=[6, 1]), after(b=[5, 1]), None),
        ("s.add_(a)", after(), after(OVERLAPPING), 19),
        ("s.add_(n)", after(), after(OVERLAPPING), None),
        ("s.add_(a)", after(), after(("RuntimeError", "other")), None),
        ("b = torch.inverse(a)", after(b=[[1e15]]), after(SINGULAR), 20),
        ("b = torch.linalg.solve(a, c)", after(b=[[1e15]]), after(b=[[2e15]]), 20),
        ("b = torch.inverse(a)", after(a=[1.0], b=[2.0]), after(SINGULAR), None),
        ("b = torch.linalg.solve(a, c)", after(b=[[1e15]]), after(b=[[2.0]]), None),
        ("b = torch.inverse(a)", after(a=[1.0], b=[1e15]), after(("_LinAlgError", "other")), None),
        ("b = torch.inverse(n)", after(n=[np.nan], b=[np.nan]), after(SINGULAR, n=[np.nan]), 21),
        ("b = torch.inverse(a)", after(a=[1.0], b=[1.0]), after(SINGULAR, a=[1.0]), None),
        ("a.backward()", after(NO_DERIVATIVE), after((NO_DERIVATIVE[0], NO_DERIVATIVE[1].replace("e_ ", "e "))), 22),
        ("a.backward()", after(NO_DERIVATIVE), after(("RuntimeError", "other")), None),
        ("a.tril_()", after(WRITTEN_TWICE), after(), 23),
        ("a.add_(1)", after(WRITTEN_TWICE), after(), None),
        ("h.sum().backward()", after(FREED), after(), 24),
        ("h.sum().backward()", after(), after(FREED), None),
        ("j.sum().backward()", after(FREED), after(), 24),
        ("a.sum().backward()", after(FREED), after(), None),
        ("a.sum().backward(h)", after(FREED), after(), None),
        (f"b = {GRAD}(h.sum(), a)", after(FREED), after(), 24),
        (f"b = {GRAD}(a.sum(), h, create_graph=True)", after(FREED), after(), None),
        (f"b = {GRAD}({GRAD}(a.sum(), d, create_graph=True)[0], d)", after(FREED), after(), 24),
        ("see(h)", after(shown=[{"next": ["A"]}]), after(shown=[{"next": ["B"]}]), 24),
        ("see(a)", after(shown=[{"next": ["A"]}]), after(shown=[{"next": ["B"]}]), None),
        ("see(h)", after(shown=[{"version": 2}]), after(shown=[{"version": 3}]), None),
        ("a[:] = a[::-1]", after(a=[2.0, 2.0]), after(a=[2.0, 1.0]), 25),
        ("a[:] = a[0]", after(a=[1.0, 2.0]), after(a=[1.0, 1.0]), None),
        ("a[:] = a[::-1]", after(a=[3.0, 3.0]), after(a=[2.0, 1.0]), None),
        ("a[:] = a[::-1]", after(a=[2.0, np.nan]), after(a=[2.0, 1.0]), None),
        ("a[:] = a[::-1]", after(a=[2.0, 3.0]), after(a=[2.0, 1.0]), None),
        ("a[:] = a[::-1]", after(a=[2.0, 2.0]), after(a=[1.0, 2.0]), None),
        ("a[:] = a[::-1]", after(OUTSIDE, a=[2.0, 2.0]), after(OUTSIDE, a=[2.0, 1.0]), None),
        ("a[:] = a[:]", after(a=[2.0, 2.0]), after(a=[1.0, 2.0]), None),
        ("a[0] = a[1]", after(a=[7.0, 2.0]), after(a=[2.0, 2.0]), None),
        ("u[:2] = u[2:]", after(u=[4.0, 3.0, 3.0, 4.0]), after(u=[3.0, 4.0, 3.0, 4.0]), None),
        ("w[1:] = w[2:0:-1]", after(w=[np.nan, 2.0, 2.0]), after(w=[np.nan, 2.0, 1.0]), 25),
        ("a[:1] = a[1:]", after(a=[1.0, 2.0]), after(a=[2.0, 2.0]), None),
        ("a[:] = a[0] + n[1]", after(a=[2.0, 1.0]), after(a=[2.0, 2.0]), None),
        ("a[:] = a[k]", after(a=[2.0, 1.0]), after(a=[1.0, 1.0]), None),
        ("a[k] = a[:]", after(a=[2.0, 1.0]), after(a=[1.0, 1.0]), None),
        ("n[:] = n[::-1]", after(n=[1.0, 1.0]), after(n=[1.0, np.nan]), 25),
        ("n[:] = n[::-1]", after(n=[np.nan, np.nan]), after(n=[1.0, np.nan]), 25),
        ("a[:] = k[:]", after(a=[1.0, 2.0]), after(a=[1.0, 1.0]), None),
        (f"b = {GRAD}(m.sum(), d, retain_graph=True)", matrix("b", [3, 1]), matrix("b", [1, 2]), 26),
        (f"c, b = {GRAD}(m.sum(), [a, d], allow_unused=True)", matrix("b", [3, 1]), matrix("b", [1, 2]), 26),
        (f"b, c = {GRAD}(m.sum(), [a, d], allow_unused=True)", matrix("b", [3, 1]), matrix("b", [1, 2]), None),
        (f"b = {GRAD}(m.sum(), d, retain_graph=True)", matrix("b", [1, 2]), matrix("b", [3, 1]), None),
        ("b = d * 2", matrix("b", [3, 1]), matrix("b", [1, 2]), None),
        (f"b = {GRAD}((a @ d.T).sum(), d, retain_graph=True)", matrix("b", [3, 1]), matrix("b", [1, 2]), 26),
        (f"b = {GRAD}(a.sum(), d, m)", matrix("b", [3, 1]), matrix("b", [1, 2]), None),
        ("see(g.stride(), g._is_view())", expanded([(), True]), expanded([(), False]), 27),
        ("see(g.size(0, 1), g._is_view(), a)", expanded([0, True, 1]), expanded([0, False, 1]), 27),
        ("see(g._is_view())", expanded([True], [1]), expanded([False], [1]), None),
        ("see(g._is_view())", expanded([True], None), expanded([False], None), None),
        ("see(g._is_view())", expanded([True], [], [1.0]), expanded([False], [], [1.0]), 27),
        ("see(g.is_leaf, g._is_view())", expanded([True, True]), expanded([False, True]), None),
        ("see(g._is_view(), g.is_leaf)", expanded([True, True]), expanded([True, False]), None),
        ("see(g.stride(), g._is_view())", expanded([(), False]), expanded([(), True]), None),
        ("see(a.stride(), a._is_view())", expanded([(), True]), expanded([(), False]), None),
        ("see(g.is_leaf)", after(shown=[True]), after(shown=[False]), None),
    ],
)
def test_only_what_a_row_names_is_counted_apart(line, real, ours, number):
    start = after(
        a=[1.0, 2.0],
        n=[np.nan, 1.0],
        i=[6 - 1e-15, 1.5],
        k=[1e-17],
        u=[1.0, 2.0, 3.0, 4.0],
        w=[np.nan, 1.0, 2.0],
    )
    before = BEFORE.splitlines()
    lines, real, ours = [*before, line], [start] * len(before) + [real], [start] * len(before) + [ours]
    row = named(lines, first_difference(lines, real, ours), real, ours)
    assert row == (None if number is None else [*COUNTED_APART][number])


@pytest.mark.parametrize(
    ("lines", "turned", "row"),
    [
        (["a = data(3, 2).t()", "c = a * 2"], 0, 8),
        (["a = data(3, 2).t()", "c = a * 2", "a = data(2)"], 0, 8),
        (["a = data(3, 2).t()", "c = data(2)"], 0, None),
        (["c = data(2)", "a = data(2)", "c = a * 2", "a = data(3, 2).t()"], 3, None),
        (["a = data(3, 2).t()", "c = torch.zeros(2)", "c.add_(a)"], 0, 8),
        (["a = data(3, 2).t()", "c = a * 2", "c = data(2)"], 0, None),
    ],
)
def test_a_gradient_has_the_order_of_what_it_was_computed_from(lines, turned, row):
    def state(at):
        is_turned = at >= turned and not any(line.startswith("a =") for line in lines[turned + 1 : at + 1])
        return after() | {"variables": {"a": {"stride": [1, 2] if is_turned else [1]}, "c": {"stride": [2, 1]}}}

    before = [state(at) for at in range(len(lines))]
    last = [after() | {"variables": before[-1]["variables"] | {"b": {"stride": stride}}} for stride in ([2, 1], [1, 2])]
    lines, real, ours = [*lines, f"b = {GRAD}(c.sum(), d)[0]"], [*before, last[0]], [*before, last[1]]
    assert named(lines, first_difference(lines, real, ours), real, ours) == (row and [*COUNTED_APART][row])


@pytest.mark.parametrize(
    ("lines", "row"),
    [
        (["m = torch.mm(a, d.T)"], 26),
        (["m = torch.mm(a, d.T)", "c = m * 2", "m = c.exp()"], 26),
        (["m = torch.mm(a, d.T)", "d = data(2, 3)"], None),
        (["m = torch.mm(a, d.T)", "m = torch.mm(a, d)"], None),
        (["c = torch.mm(a, d.T)", "m = d * 2"], None),
    ],
)
def test_a_turned_factor_is_one_of_what_the_root_was_computed_from(lines, row):
    before = [after()] * len(lines)
    lines = [*lines, f"b = {GRAD}(m.sum(), d, retain_graph=True)"]
    real, ours = [*before, matrix("b", [3, 1])], [*before, matrix("b", [1, 2])]
    assert named(lines, first_difference(lines, real, ours), real, ours) == (row and [*COUNTED_APART][row])


@pytest.mark.parametrize(
    ("real", "ours", "same"),
    [
        ("TensorBase.abs() takes no arguments (1 given)", "Tensor.abs() takes 1 positional argument but 2", True),
        ("mul() missing 1 required positional arguments", "Tensor.mul() missing 1 required", True),
        ("mul() missing 1 required positional arguments", "Tensor.add() missing 1 required", False),
        ("roll() missing 1 required positional arguments", "roll() missing 1 required positional argument", False),
        ("mul(): argument 'other' must be Tensor, not str", "Tensor.mul() missing 1 required", False),
        ("mul() missing 1 required positional arguments", "mul(): argument 'other' must be Tensor, not str", False),
    ],
)
def test_only_pointwise_functions_count_arguments_in_their_own_words(real, ours, same):
    real, ours = (after(("TypeError", text)) for text in (real, ours))
    assert (first_difference(["x"], [real], [ours]) is None) == same


@pytest.mark.parametrize(
    ("lines", "row"),
    [
        (["(a ** 2).sum().backward(create_graph=True)", "a.grad.sum().backward()"], 24),
        (["(a ** 2).sum().backward(create_graph=True)", "c = a.grad * 2", "c.sum().backward()"], 24),
        (["(a ** 2).sum().backward(create_graph=True)", "c = a * 2", "c.sum().backward()"], None),
        (["(a ** 2).sum().backward()", "a.grad.sum().backward()"], None),
        ([f"c = {GRAD}(a.sum(), a, create_graph=True)", "c = a * 2", "c.sum().backward()"], None),
    ],
)
def test_a_freed_graph_is_that_of_a_gradient(lines, row):
    before = [after()] * (len(lines) - 1)
    real, ours = [*before, after(FREED)], [*before, after()]
    assert named(lines, first_difference(lines, real, ours), real, ours) == (row and [*COUNTED_APART][row])


SUM = "sum() received an invalid combination of arguments"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (("RuntimeError", "a\nb"), ("RuntimeError", "a\nc"), True),
        (("RuntimeError", "a"), ("RuntimeError", "b"), False),
        (("RuntimeError", "a"), ("ValueError", "a"), False),
        (("RuntimeError", "a"), None, False),
        (("TypeError", SUM), ("TypeError", "Tensor.sum() takes 1 positional argument but 2 were given"), True),
        (("TypeError", SUM), ("TypeError", "Tensor.mean() takes 1 positional argument but 2 were given"), False),
        (("TypeError", SUM), ("TypeError", "other words"), False),
    ],
)
def test_errors_are_compared(one, other, same):
    record = {"shown": [], "modes": (), "variables": {}}
    found = first_difference(["x"], [{"error": one} | record], [{"error": other} | record])
    assert (found is None) is same
