"""Random scripts of everything that a learner writes: most of their lines run, some fail on purpose.

A script is a list of statements. `Writer` draws each statement for the shapes that the variables have at that line, so it
needs PyTorch to run what it has written so far; the same seed gives the same script. The tables hold patterns: ``{x}`` is any
variable, and the methods of `Writer` named ``draw_...`` say what may stand for the other names in braces.
"""

import importlib
import random
import re

from random_programs import BEGINNING, EXPRESSIONS, OTHERS, WRITES
from random_programs import NAMES as OLD_NAMES
from twin import Session, readable

START = '''
import copy
import math
import numpy
import torch
from torch import nn
import torch.nn.functional as F
from torch.autograd import Function
from torch.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

def data(*shape, k=1, dtype=torch.float64):
    """Halves between -2.5 and 2.5, some of them equal, some of them 0: few operations have to round them."""
    numbers = [((7 * i * k + 3 * k) % 11 - 5) / 2 for i in range(math.prod(shape))]
    return torch.tensor(numpy.array(numbers).reshape(shape), dtype=dtype)

def whole(*shape, k=1, below=3):
    numbers = [(5 * i + i // 3 + k) % below for i in range(math.prod(shape))]
    return torch.tensor(numpy.array(numbers, dtype="int64").reshape(shape))

def filled(module):
    """The module with weights that do not depend on random numbers."""
    with torch.no_grad():
        for k, tensor in enumerate(module.parameters(), 1):
            tensor.copy_(data(*tensor.shape, k=k) * 0.4 + 0.1)
    return module

def noted(name, factor=None):
    def hook(grad):
        see(name)
        numbers(grad)
        return None if factor is None else grad * factor
    return hook

def called(name):
    def hook(*arguments):
        see(name, len(arguments))
        for argument in arguments:
            if isinstance(argument, torch.Tensor):
                numbers(argument)
            elif isinstance(argument, tuple):
                numbers(*(a for a in argument if a is None or isinstance(a, torch.Tensor)))
    return hook

class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        see("Square", ctx.needs_input_grad)
        numbers(grad)
        return 2 * x * grad

class Product(Function):
    @staticmethod
    def forward(x, y, factor):
        return x * y * factor, x + y
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs[:2])
        ctx.factor = inputs[2]
    @staticmethod
    def backward(ctx, first, second):
        x, y = ctx.saved_tensors
        see(ctx.needs_input_grad)
        left = right = None
        if ctx.needs_input_grad[0]:
            left = (first * y * ctx.factor + second).sum_to_size(x.shape)
        if ctx.needs_input_grad[1]:
            right = (first * x * ctx.factor + second).sum_to_size(y.shape)
        return left, right, None

class Doubled(Function):
    """Writes its input."""
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x
    @staticmethod
    def backward(ctx, grad):
        return grad * 2

class Ranked(Function):
    @staticmethod
    def forward(ctx, x):
        values, places = x.reshape(-1).sort(stable=True)
        ctx.mark_non_differentiable(places)
        ctx.save_for_backward(places)
        ctx.shape = x.shape
        return values, places
    @staticmethod
    def backward(ctx, grad, _):
        places, = ctx.saved_tensors
        see(_ is None or bool((_ == 0).all()))
        return torch.zeros_like(grad).index_copy(0, places, grad).reshape(ctx.shape)

class Lazy(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3
    @staticmethod
    def backward(ctx, first, second):
        see(first is None, second is None)
        total = None
        for grad, factor in ((first, 2), (second, 3)):
            if grad is not None:
                total = grad * factor if total is None else total + grad * factor
        return total

class Once(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.result = x.exp()
        return ctx.result.clone()
    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        see(grad.requires_grad, torch.is_grad_enabled())
        return grad * ctx.result

class Passed(Function):
    """Gives its input back."""
    @staticmethod
    def forward(ctx, x):
        return x
    @staticmethod
    def backward(ctx, grad):
        return grad * 10

class Seen(Function):
    """A view of its input."""
    @staticmethod
    def forward(ctx, x):
        return x.view(-1)
    @staticmethod
    def backward(ctx, grad):
        see(tuple(grad.shape))
        return grad.sum()

class Wrong(Function):
    """As many gradients as its argument says, of a shape that does not fit."""
    @staticmethod
    def forward(ctx, x, count):
        ctx.count = count
        return x.clone()
    @staticmethod
    def backward(ctx, grad):
        return (grad.reshape(-1)[:1],) + (None,) * (ctx.count - 1)

class Nothing(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1
    @staticmethod
    def backward(ctx, grad):
        return None

class Forgotten(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

class Net(nn.Module):
    def __init__(self, size=3, hidden=4):
        super().__init__()
        self.first = nn.Linear(size, hidden)
        self.second = nn.Linear(hidden, size)
        self.scale = nn.Parameter(torch.ones(size))
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))
    def forward(self, x):
        self.calls += 1
        return x + self.second(torch.relu(self.first(x))) * self.scale

class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.into = nn.Linear(3, 3, bias=False)
        self.out = nn.Linear(3, 3)
        self.out.weight = self.into.weight
    def forward(self, x, twice=False):
        x = torch.tanh(self.into(x))
        return self.out(self.into(x) if twice else x)
'''
"""What every script begins with; no line of it is compared."""

SHAPES = [
    (), (1,), (3,), (4,), (2, 3), (2, 3), (3, 2), (3, 3), (1, 3), (2, 1), (2, 2, 3), (2, 3, 4), (0,), (2, 0), (1, 1),
]  # fmt: skip
LEAVES = "abcd"
NAMES = "pqrstuvw"

POINTWISE = """
abs neg exp log sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid relu square
reciprocal log2 log10 log1p expm1 exp2 erf erfc erfinv floor ceil round trunc frac sign sgn logit lgamma digamma
sinc deg2rad rad2deg nan_to_num positive isnan isinf isfinite logical_not signbit clone contiguous detach t
"""
ACTIVATIONS = """
relu leaky_relu elu selu celu gelu silu mish softplus softsign hardtanh hardsigmoid hardswish hardshrink softshrink
tanhshrink logsigmoid relu6 sigmoid tanh
"""
BINARY = """
add sub mul div maximum minimum fmax fmin pow atan2 hypot remainder fmod floor_divide logaddexp logaddexp2 eq ne lt
le gt ge logical_and logical_or logical_xor true_divide copysign ldexp xlogy
"""
REDUCTIONS = """
sum mean prod max min amax amin std var logsumexp argmax argmin any all norm median nansum nanmean nanmedian mode
cumsum cumprod cummax cummin logcumsumexp softmax log_softmax sort argsort aminmax count_nonzero
"""
IN_PLACE = """
abs_ neg_ exp_ sqrt_ sin_ cos_ tanh_ sigmoid_ relu_ square_ reciprocal_ floor_ round_ sign_ trunc_ erf_ expm1_
zero_ log_ asin_ atan_
"""

VALUES = [
    "{x} + {y}", "{x} - {y}", "{x} * {y}", "{x} / {y}", "{x} ** {y}", "{x} % {y}", "{x} // {y}", "{x} * {num}", "{num} - {x}", "{num} / {x}",
    "{num} ** {x}", "{x} ** {int}", "-{x}", "{x} > {y}", "{x} == {y}", "~({x} > {num})", "({x} > {num}) & ({x} < {num})", "{x} @ {y}",
    "{x}.add({y}, alpha={num})", "{x}.sub({y}, alpha={int})", "{x}.div({y}, rounding_mode={rounding})", "torch.rsub({x}, {y})",
    "{x}.clamp({low}, {high})", "{x}.clamp(min={low})", "{x}.clamp(max={y})", "{x}.clip({low}, {high})", "torch.where({mask}, {x}, {y})",
    "torch.where({mask}, {x}, {num})", "torch.where({mask})", "{x}.masked_fill({mask}, {num})", "{x}[{mask}]", "{x}.masked_select({mask})",
    "torch.lerp({f}, {same}, {unit})", "torch.addcmul({f}, {same}, {same}, value={num})", "torch.addcdiv({f}, {same}, {same}, value={num})",
    "{x}.nonzero()", "torch.isclose({f}, {same})", "torch.allclose({f}, {same})", "torch.equal({x}, {y})", "{x}.where({mask}, {y})",
    "{x}.maximum({y})", "{x}.float()", "{x}.double()", "{x}.long()", "{x}.int()", "{x}.bool()", "{x}.half()", "{x}.to({dtype})",
    "{x}.to({y})", "{x}.type_as({y})", "{x}.type({dtype})", "{x}.to({dtype}, copy=True)", "torch.heaviside({f}, {same})", "{f}.heaviside({same})",
    "F.threshold({f}, {num}, {num})", "F.glu({f}, {d})", "F.prelu({f}, data(1))", "F.hardtanh({f}, {low}, {high})", "F.elu({f}, {unit})",
    "F.leaky_relu({f}, {unit})", "F.softplus({f}, {pos})", "F.celu({f}, {unit})", "F.gelu({f}, approximate='tanh')", "F.rrelu({f}, training=False)",
    "F.normalize({f}, dim={d})", "F.dropout({f}, 0.5, training=False)", "F.dropout({f}, 0.0)", "F.one_hot(whole(3), {pos})", "F.softmin({f}, {d})",
    "F.cosine_similarity({f}, {same}, dim={d})", "F.pairwise_distance({f}, {same})", "torch.dist({f}, {same})", "F.layer_norm({f}, {f}.shape[-1:])",
]  # fmt: skip
"""Element by element, and what chooses among elements."""

VIEWS = [
    "{x}[{index}]", "{x}[{index}]", "{x}[{index}]", "{x}[{index}]", "{x}[{index}]", "{x}[{mask}]", "{x}.view({shape})", "{x}.reshape({shape})",
    "{x}.reshape(-1)", "{x}.view(-1)", "{x}.flatten()", "{x}.flatten({d}, {e})", "{x}.ravel()", "{x}.unflatten({d}, ({size}, 1))", "{x}.squeeze()",
    "{x}.squeeze({d})", "{x}.unsqueeze({d})", "{x}.T", "{x}.mT", "{x}.t()", "{x}.transpose({d}, {e})", "{x}.swapaxes({d}, {e})", "{x}.permute({order})",
    "{x}.movedim({d}, {e})", "{x}.narrow({d}, 0, 1)", "{x}.select({d}, {i})", "{x}.diagonal()", "torch.diagonal({x}, {int})", "{x}.diag()",
    "{x}.expand({wide})", "{x}.expand_as({y})", "{x}.broadcast_to({wide})", "{x}.repeat({times})", "{x}.tile({pos})", "{x}.repeat_interleave({pos}, dim={d})",
    "{x}.unbind({d})", "{x}.unbind({d})[0]", "{x}.split({pos}, {d})", "{x}.split({pos}, {d})[0]", "{x}.chunk({pos}, {d})", "{x}.chunk({pos}, {d})[-1]",
    "{x}.tensor_split({pos}, {d})", "torch.cat([{x}, {x}], {d})", "torch.cat([{x}, {same}], {d})", "torch.cat([{x}, {y}])", "torch.stack([{x}, {same}], {d})",
    "torch.hstack([{x}, {same}])", "torch.vstack([{x}, {same}])", "torch.dstack([{x}, {same}])", "torch.column_stack([{x}, {same}])",
    "{x}.flip({d})", "{x}.flip({dims})", "{x}.fliplr()", "{x}.roll({int}, {d})", "{x}.roll({int})", "{x}.rot90()", "{x}.as_strided((2,), (1,))",
    "{x}.as_strided((2, 2), (1, 1), 0)", "{x}.unfold({d}, {pos}, 1)", "{x}.detach()", "{x}.data", "{x}.clone()", "{x}.contiguous()", "{x}", "{x}.real",
    "torch.atleast_2d({x})", "torch.broadcast_tensors({x}, {y})", "torch.meshgrid({x}, {y}, indexing='ij')", "torch.tril({x})", "torch.triu({x}, {int})",
    "{x}.view_as({same})", "{x}.reshape_as({same})", "torch.block_diag({x}, {y})", "F.pad({x}, (1, {pos}))", "F.pad({f}, (1, 1), value={num})",
    "{x}.new_zeros({size})", "{x}.new_tensor([1, 2])", "torch.zeros_like({x})", "torch.ones_like({x}, requires_grad=True)", "torch.full_like({x}, {num})",
    "torch.empty_like({x}).fill_({num})", "{x}.new_full((2,), {num})", "torch.movedim({x}, {d}, {e})", "{x}.gather({d}, {gather})", "{x}.take(whole(3, below=2))",
    "{x}.take_along_dim({gather}, {d})", "{x}.index_select({d}, {entries})", "torch.diag_embed({x})", "{x}.diff(dim={d})", "{x}.hsplit({pos})",
]  # fmt: skip
"""Views and copies of parts."""

SUMS = [
    "{x}.sum()", "{x}.sum({d})", "{x}.sum({dims}, keepdim={bool})", "{f}.mean()", "{f}.mean({d}, keepdim={bool})", "{f}.mean({dims})", "{x}.prod()",
    "{x}.prod({d})", "{x}.max()", "{x}.max({d})", "{x}.min({d}).values", "{x}.max({d}, keepdim={bool})[0]", "{x}.amax({dims})", "{x}.amin({d})",
    "{f}.std()", "{f}.std({d})", "{f}.var({dims}, keepdim={bool})", "{f}.var(correction=0)", "{f}.var({d}, unbiased={bool})", "{f}.norm()",
    "{f}.norm({pos})", "{f}.norm(dim={d})", "torch.linalg.vector_norm({f}, {pos}, dim={d})", "{f}.logsumexp({d})", "{f}.logsumexp({dims})",
    "{x}.cumsum({d})", "{x}.cumprod({d})", "{f}.cummax({d})", "{f}.logcumsumexp({d})", "{f}.softmax({d})", "{f}.log_softmax({d})", "{x}.sort({d})",
    "{x}.sort(dim={d}, descending={bool}, stable=True)", "{x}.sort().values", "{x}.argsort({d}, stable=True)", "{x}.argmax({d})", "{x}.argmax()",
    "{x}.topk(1, {d})", "{x}.kthvalue(1, {d})", "{f}.median()", "{f}.median({d})", "{f}.quantile({unit})", "{f}.quantile({unit}, dim={d})", "{x}.any()",
    "{x}.all({d})", "{x}.count_nonzero()", "torch.std_mean({f})", "torch.var_mean({f}, {d})", "{x}.unique()", "torch.unique({x}, return_counts=True)",
    "torch.bincount(whole(5))", "{f}.nansum()", "{f}.nanmean({d})", "torch.trapezoid({f})", "{x}.trace()", "torch.histc({f}, 4, -2, 2)", "{x}.aminmax()",
    "torch.searchsorted(torch.tensor([-1., 0., 1.]).double(), {f})", "torch.bucketize({f}, torch.tensor([-1., 0., 1.]))", "{x}.sum(dtype={dtype})",
    "torch.sum({x}, {d})", "torch.max({x}, {same})", "sum([{x}, {same}])", "torch.cumulative_trapezoid({f})",
]  # fmt: skip

MATRICES = [
    "{m} @ {m}.t()", "{m} @ {m}", "torch.mm({m}, {m}.T)", "torch.matmul({f}, {f})", "{f}.matmul({y})", "torch.mv({m}, {v})", "torch.dot({v}, {v})", "torch.outer({v}, {v})",
    "torch.einsum('ij,kj->ik', {m}, {m})", "torch.einsum('ij->j', {m})", "torch.einsum('i,j->ij', {v}, {v})", "torch.einsum('...i->...', {f})",
    "torch.einsum('ij,ij->', {m}, {m})", "torch.einsum('ii->i', {sq})", "torch.einsum('bij,bjk->bik', data(2, 2, 3), data(2, 3, 2))",
    "torch.bmm({b}, {b}.transpose(1, 2))", "torch.baddbmm({b} @ {b}.mT, {b}, {b}.mT)", "torch.addmm({sq}, {sq}, {sq}, beta={num}, alpha={num})",
    "torch.addmv({v}, data(3, 3), data(3))", "torch.tensordot({m}, {m}, dims=([1], [1]))", "torch.tensordot({f}, {same}, dims=1)", "torch.kron({m}, {m})",
    "torch.linalg.inv({sq})", "torch.inverse({sq})", "torch.det({sq})", "torch.linalg.slogdet({sq})", "torch.linalg.solve({sq}, {sq})", "torch.linalg.cholesky({spd})",
    "torch.linalg.eigvalsh({spd})", "torch.linalg.svdvals({m})", "torch.linalg.norm({m})", "torch.linalg.matrix_norm({m})", "torch.linalg.matrix_power({sq}, {int})",
    "torch.trace({sq})", "torch.cross(data(2, 3), data(2, 3, k=2), dim=1)", "torch.linalg.matrix_exp({sq} * 0.1)", "torch.cov({m})", "torch.corrcoef({m})",
    "torch.chain_matmul({sq}, {sq})", "torch.linalg.multi_dot([{sq}, {sq}, {sq}])", "torch.inner({f}, {same})", "torch.vdot({v}, {v})", "torch.logdet({spd})",
    "torch.linalg.pinv({m})", "torch.linalg.lstsq({sq}, {sq}).solution", "torch.linalg.vecdot({f}, {same})", "F.linear({f}, data(2, 3))", "F.linear(data(2, 3), {sq}, {v})",
    "F.bilinear(data(2, 3), data(2, 2), data(1, 3, 2))", "torch.linalg.qr({sq}).R", "torch.linalg.diagonal({m})",
]  # fmt: skip

WRITTEN = [
    "{x}.add_({y})", "{x}.sub_({y})", "{x}.mul_({y})", "{x}.div_({y})", "{x}.mul_({num})", "{x}.add_({y}, alpha={num})", "{x}.pow_({int})", "{x}.clamp_({low}, {high})",
    "{x}.fill_({num})", "{x}.zero_()", "{x}.copy_({y})", "{x} += {y}", "{x} -= {num} * {y}", "{x} *= {y}", "{x} /= {num}", "{x} **= 2", "{x}[{index}] = {num}", "{x}[{index}] = {num}",
    "{x}[{index}] = {y}", "{x}[{index}] += {num}", "{x}[{index}] *= {y}", "{x}[{index}] = {x}[{index}]", "{x}[{mask}] = {num}", "{x}[{mask}] += 1", "{x}[{index}].add_({num})",
    "{x}[{index}].mul_({y})", "{x}[{index}].zero_()", "{x}.view(-1)[0] = {num}", "{x}.t().mul_(2)", "{x}.T[0] = {num}", "{x}.diagonal().fill_({num})", "{x}.select({d}, {i}).copy_({y})",
    "{x}.unbind({d})[0].zero_()", "{x}.split({pos}, {d})[0].mul_(2)", "{x}.detach().mul_(2)", "{x}.data.add_(1)", "{x}.data = {same}.data", "{x}.data = {y}.data", "{x}.masked_fill_({mask}, {num})",
    "{x}.index_fill_({d}, {entries}, {num})", "{x}.index_add_({d}, {entries}, {x}.index_select({d}, {entries}))", "{x}.index_copy_({d}, {entries}, {x}.index_select({d}, {entries}) * 2)",
    "{x}.scatter_({d}, {gather}, {num})", "{x}.scatter_({d}, {gather}, {same})", "{x}.scatter_add_({d}, {gather}, {same})", "{x}.scatter_reduce_({d}, {gather}, {same}, 'sum')",
    "{x}.masked_scatter_({mask}, {same}.clone())", "{x}.index_put_((whole(2, below=1),), {tensor0})", "{x}.unsqueeze_({d})", "{x}.squeeze_()", "{x}.t_()", "{x}.transpose_({d}, {e})",
    "{x}.detach_()", "{x}.resize_({size})", "{x}.addcmul_({same}, {same})", "{x}.lerp_({same}, {unit})", "{x}.sort()[0].zero_()", "{x}.fill_diagonal_({num})", "{x}.tril_()",
    "torch.add({x}, {y}, out={z})", "torch.mul({x}, {y}, out={x})", "torch.sum({x}, {d}, out={z})", "torch.exp({f}, out={z})", "torch.matmul({m}, {m}.t(), out={z})",
    "torch.cat([{x}, {x}], out={z})", "torch.max({x}, {d}, out=({z}, torch.empty(0, dtype=torch.long)))", "torch.relu_({x})", "F.relu({x}, inplace=True)", "F.leaky_relu({x}, {unit}, inplace=True)",
    "F.elu({x}, inplace=True)", "F.dropout({x}, 0.0, inplace=True)", "{x}.expand({wide}).add_(1)", "{x}.narrow({d}, 0, 1).mul_({num})", "{x}.swapaxes_({d}, {e})",
    "{x}.requires_grad_().add_(1)", "{x}[{index}][{first}] = {num}", "{x}.view({shape}).mul_({num})", "{x}.squeeze().add_({num})", "{x}.flatten().zero_()",
    "nn.init.constant_({x}, {num})", "nn.init.eye_({m0})", "{x}.put_(whole(1), {x}.view(-1)[:1])", "{x}.logical_not_()", "{x}.floor_divide_({y})", "{x}.remainder_({num})",
]  # fmt: skip

WRITTEN += [
    "{x}.set_({same})", "{x}.set_({y})", "{x}.set_()", "{x}.detach().set_({same})", "{x}.set_({x}[{index}])", "{x}.data.set_({same})", "{z} = {x}.clone().set_({x})", "{x}.grad.set_({same})",
    "{x}.scatter_reduce_({d}, {gather}, {same}, {reduce}, include_self={bool})", "{x}.scatter_({d}, {gather}, {same}, reduce={scattered})", "{x}.scatter_({d}, {gather}, {num}, reduce={scattered})",
    "{x}.index_reduce_({d}, {entries}, {x}.index_select({d}, {entries}), {reduce}, include_self={bool})", "{x}.index_add_({d}, {entries}, {same}, alpha={int})", "{x}.index_put_(({entries},), {tensor0}, accumulate={bool})",
    "{z} = {x}.expand({wide}); {z}[{index}] = {num}", "{z} = {x}.expand({wide}); {z}.fill_({num})", "{z} = {x}.expand({wide}); {z}.copy_({y})", "{z} = {x}.expand({wide}); {z}.add_({y})", "{z} = {x}.expand({wide}); {z}.zero_()",
    "{z} = {x}.expand({wide}); {z}.masked_fill_({z} > 0, {num})", "{z} = {x}.expand({wide}); {z}.index_fill_(0, torch.tensor([0]), {num})", "{z} = {x}.expand({wide}); {z}[{z} > 0] = {num}", "{z} = {x}.expand({wide}); {z}[0] = {num}",
    "{z} = {x}.expand({wide}); {z}[..., [0]] = {num}", "{z} = {x}.expand({wide}); {z}.scatter_(0, torch.zeros_like({z}, dtype=torch.long), {num})", "{z} = {x}.expand({wide}); {z}.index_add_(0, torch.tensor([0]), {z}[:1])",
    "{z} = {x}.expand({wide}); {z}.index_copy_(0, torch.tensor([0]), {z}[:1])", "{z} = {x}.expand({wide}); {z}.sin_()", "{z} = {x}.expand({wide}); {z}.masked_scatter_({z} > 0, {same})", "{z} = {x}.expand({wide}); {z}.clamp_(0, 1)",
    "{z} = {x}.expand({wide}); {z}.index_put_((torch.tensor([0]),), {tensor0})", "{z} = {x}.expand({wide}); {z}.tril_()", "{z} = {x}.expand({wide}); {z}.fill_diagonal_({num})", "{z} = {x}.expand({wide}).contiguous().add_(1)",
    "{x}[None].expand(2, *{x}.shape)[0].mul_({num})", "{x}[None].expand(2, *{x}.shape).mul_({num})", "{x}.broadcast_to({wide})[{first}].add_(1)", "torch.add({x}, 1, out={x}.expand({wide}))", "{x}[{index}] = {x}.expand({wide})[{first}]",
]  # fmt: skip
"""Storage, reductions into places, and writes to tensors whose elements share memory."""

VALUES += [
    "{x}.scatter_reduce({d}, {gather}, {same}, {reduce}, include_self={bool})", "torch.scatter_reduce({f}, {d}, {gather}, {same}, reduce={reduce})", "{x}.index_reduce({d}, {entries}, {x}.index_select({d}, {entries}), {reduce}, include_self={bool})",
    "torch.index_reduce({f}, {d}, {entries}, {f}.index_select({d}, {entries}), {reduce})", "{x}.scatter_add({d}, {gather}, {same})", "{x}.scatter({d}, {gather}, {same})", "{x}.scatter({d}, {gather}, {num}, reduce={scattered})",
    "{x}.index_add({d}, {entries}, {same})", "{x}.index_copy({d}, {entries}, {x}.index_select({d}, {entries}))", "{x}.index_fill({d}, {entries}, {num})",
]  # fmt: skip

SWITCHES = [
    "{x}.requires_grad_()", "{x}.requires_grad_(False)", "{x}.requires_grad = True", "{x}.requires_grad = False", "{x}.detach_()", "{n}.retain_grad()", "{x}.retain_grad()", "{x}.grad = None",
    "{x}.grad = {same}", "{x}.grad = {same}.detach()", "{x}.grad.zero_()", "{l}.grad = torch.ones_like({l})", "{x} = {x}.detach().requires_grad_()", "{x} = {x}.clone().detach().requires_grad_(True)",
    "{x} = nn.Parameter({f})", "{x} = nn.Parameter({f}.detach().clone())", "{x} = copy.deepcopy({y})", "{x} = copy.copy({y})", "{x} = torch.tensor({l}.tolist(), requires_grad=True)",
    "{x} = torch.as_tensor({y})", "{x} = {y}", "{x} = torch.from_numpy({l}.detach().numpy())", "{x} = torch.asarray({y})", "del {x}", "torch.set_grad_enabled(False)", "torch.set_grad_enabled(True)",
    "{x}.numpy()[...] = 1", "{x}.grad.data.zero_()", "{l}.grad.mul_(2)", "{x} = {l}.grad", "{x} = {l}.grad.clone()",
]  # fmt: skip

PASSES = [
    "{n}.sum().backward()", "{n}.sum().backward()", "{n}.backward({ones})", "{n}.backward({ones}, retain_graph=True)", "{n}.sum().backward(retain_graph=True)", "{x}.backward()", "({n} * {y}).sum().backward()",
    "{n}.mean().backward()", "({n} ** 2).sum().backward(create_graph=True)", "{n}.sum().backward(inputs=[{g}])", "{n}.sum().backward(inputs=[{g}, {l}], retain_graph=True)",
    "{n}.sum().backward(inputs={l})", "torch.autograd.backward([{n}.sum(), {g}.sum()])", "torch.autograd.backward([{n}, {n}], [{ones}, {ones}])", "{n}.backward(gradient={ones} * {num})",
    "{z} = torch.autograd.grad({n}.sum(), {l})[0]", "{z} = torch.autograd.grad({n}.sum(), {g}, retain_graph=True)[0]", "{z}, {p} = torch.autograd.grad({n}.sum(), [{g}, {l}], allow_unused=True)",
    "{z} = torch.autograd.grad({n}.sum(), {l}, create_graph=True)[0]", "{z} = torch.autograd.grad(({n} ** 3).sum(), {l}, create_graph=True, allow_unused=True)[0]",
    "{z} = torch.autograd.grad({n}, {g}, {ones}, allow_unused=True)[0]", "{z} = torch.autograd.grad({n}.sum(), {g}, materialize_grads=True)[0]", "{z} = torch.autograd.grad({n}.sum(), {x}, allow_unused=True)[0]",
    "{z} = torch.autograd.grad({n}, {l}, torch.stack([{ones}, {ones} * 2]), is_grads_batched=True)[0]", "{z} = torch.autograd.grad([{n}.sum(), {n}.sum()], [{l}], retain_graph=True)[0]",
    "{z} = torch.autograd.grad(torch.autograd.grad(({n} ** 2).sum(), {l}, create_graph=True)[0].sum(), {l}, allow_unused=True)[0]", "{n}.backward(torch.ones(7))", "torch.autograd.grad({n}.sum(), {l}, {num})",
    "{g}.sum().backward()", "{g}.pow(2).sum().backward()", "({g} * {g}).sum().backward()",
    "({g}.sin() * {y}).sum().backward()", "({n}.exp().sum() + {g}.sum()).backward()", "({n} * {g}.detach()).sum().backward()",
    "numbers(jacobian(lambda t: t.sin() * t, {l}))", "numbers(jacobian(lambda t: t.sum(-1), {f}))", "numbers(hessian(lambda t: (t ** 3).sum(), {f}))", "numbers(*vjp(lambda t: t * t, {f}, {ones_of_f}))",
    "numbers(*jvp(lambda t: t.exp(), {f}, {ones_of_f}))", "numbers(*hvp(lambda t: (t ** 3).sum(), {f}, {ones_of_f}))", "numbers(*vhp(lambda t: (t * t).sum(), {f}, {ones_of_f}))",
    "see(torch.autograd.gradcheck(lambda t: t * t, ({l},), raise_exception=False))", "numbers(*jacobian(lambda s, t: s * t, ({f}, {same})))", "{z} = jacobian(lambda t: t ** 2, {f}, create_graph=True)",
]  # fmt: skip

HOOKS = [
    "{g}.register_hook(noted('{g}'))", "{n}.register_hook(noted('{n}', 2))", "{g}.register_hook(noted('{g}', 0.5)).remove()", "{l}.register_hook(lambda t: t * 3)", "{n}.register_hook(lambda t: t.mul_(2))",
    "{l}.register_post_accumulate_grad_hook(lambda t: numbers(t.grad))", "{l}.register_post_accumulate_grad_hook(called('after'))", "{n}.grad_fn.register_prehook(called('before'))", "{n}.grad_fn.register_hook(called('node'))",
    "{n}.grad_fn.register_prehook(lambda g: tuple(None if t is None else t * 2 for t in g))", "{n}.grad_fn.register_hook(lambda i, o: tuple(None if t is None else t * 2 for t in i))",
    "torch.autograd.graph.register_multi_grad_hook([{g}, {n}], called('all'))", "torch.autograd.graph.register_multi_grad_hook([{g}, {l}], called('any'), mode='any')", "{x}.register_hook(lambda t: None)",
    "{n}.register_hook(lambda t: t.sum())", "{n}.register_hook(lambda t: 3)", "h = {g}.register_hook(noted('h'))", "h.remove()", "h = {n}.register_hook(noted('h', -1))",
    "{l}.register_hook(lambda t: see(tuple(t.shape), t.requires_grad, torch.is_grad_enabled()))", "{n}.register_hook(lambda t: (_ for _ in ()).throw(ValueError('from a hook')))",
]  # fmt: skip

FUNCTIONS = [
    "{z} = Square.apply({f})", "{z} = Square.apply({g})", "{z}, {p} = Product.apply({f}, {same}, {num})", "{z}, {p} = Product.apply({g}, {num_tensor}, {num})", "{z} = Doubled.apply({f})", "{z} = Doubled.apply({n})",
    "{z}, {p} = Ranked.apply({f})", "{z}, {p} = Lazy.apply({g})", "{z} = Lazy.apply({g})[{first}]", "{z} = Once.apply({f})", "{z} = Passed.apply({g})", "{z} = Passed.apply({x})", "{z} = Seen.apply({f})",
    "{z} = Wrong.apply({g}, {pos})", "{z} = Nothing.apply({g})", "{z} = Forgotten.apply({g})", "{z} = Square.apply({f}[{index_of_f}])", "{z} = Square.apply(Square.apply({g}))", "{z} = checkpoint(torch.sin, {g}, use_reentrant=False)",
    "{z} = checkpoint(lambda t: t.exp() * t, {g}, use_reentrant={bool})", "{z} = checkpoint(Square.apply, {g}, use_reentrant=False)", "{z} = checkpoint(lambda s, t: s * t, {g}, {y}, use_reentrant=False)",
    "{z} = Square.apply({x}, {x})", "{z} = Square()({x})", "{z} = checkpoint_sequential([torch.sin, torch.cos], 2, {g}, use_reentrant=False)",
]  # fmt: skip

LOOKS = [
    "see({x}.tolist())", "see({x}.item())", "see(float({x}))", "see(int({x}))", "see(bool({x}))", "see(len({x}))", "print({x})", "print({x}.shape, {x}.dtype)", "see(repr({x}))",
    "see({n}.grad_fn.name())", "see([None if f is None else f.name() for f, i in {n}.grad_fn.next_functions])", "see({x}.is_contiguous(), {x}.stride(), {x}._is_view(), {x}.storage_offset())", "see({x}.size(), {x}.dim(), {x}.numel())",
    "see({x}._base is None)", "see({x}.data_ptr() == {y}.data_ptr())", "see({x} is {y})", "see({x}.is_floating_point(), {x}.element_size(), {x}.nbytes)", "for part in {x}: see(part)", "see({d} in {x})", "see(list({x})[0])",
    "numbers({x}.numpy())", "see({x}.detach().numpy().sum() is not None)", "see(torch.is_tensor({x}), torch.numel({x}))", "see({x}.is_leaf, {x}.requires_grad, {x}.retains_grad)", "see({x}.output_nr)", "see({x}.__class__.__name__)",
    "assert {x} is not None", "see(torch.is_grad_enabled(), torch.is_inference_mode_enabled())", "see({x}.is_inference())", "see({n}.grad_fn._saved_self)", "see({n}.grad_fn._saved_result)", "see({n}.grad_fn._saved_other)",
    "if {x}: see('yes')", "see(max({x}))", "see(range({x}))", "see([1, 2, 3][{x}])", "see({x}.get_device())", "see({x}.is_same_size({y}))", "see(f'{{{x}}}')", "see(torch.result_type({x}, {y}))",
    "see({x}.T.is_contiguous())", "see({x}.ndim, {x}.itemsize, {x}.layout)", "see(torch.finfo({f}.dtype).eps)", "see({x}.ne({x}).any())",
]  # fmt: skip

REGIONS = [
    "with torch.no_grad():", "with torch.no_grad():", "with torch.enable_grad():", "with torch.set_grad_enabled(False):", "with torch.set_grad_enabled(True):", "with torch.inference_mode():",
    "with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):", "with torch.autograd.graph.save_on_cpu():", "with torch.autograd.set_detect_anomaly(True):",
    "with torch.autograd.graph.disable_saved_tensors_hooks('no hooks here'):", "for _ in range(2):", "if True:", "with torch.inference_mode(False):",
]  # fmt: skip

LAYERS = """
nn.Linear(3, 2) | 2, 3
nn.Linear(3, 3, bias=False) | 3
nn.Bilinear(3, 2, 2) | 2, 3 | 2, 2
nn.Identity() | 2, 3
nn.Flatten() | 2, 2, 3
nn.Unflatten(1, (3, 1)) | 2, 3
nn.Conv1d(2, 3, 2) | 1, 2, 4
nn.Conv1d(2, 4, 3, stride=2, padding=1, groups=2) | 2, 2, 5
nn.Conv2d(1, 2, 2) | 1, 1, 3, 4
nn.Conv2d(2, 2, 3, padding='same', dilation=2) | 1, 2, 4, 4
nn.Conv2d(2, 4, 2, padding_mode='circular', padding=1, bias=False) | 1, 2, 3, 3
nn.Conv3d(1, 1, 2) | 1, 1, 2, 3, 2
nn.ConvTranspose1d(2, 1, 2, stride=2) | 1, 2, 3
nn.ConvTranspose2d(1, 2, 2, output_padding=1, stride=2) | 1, 1, 2, 2
nn.MaxPool1d(2) | 1, 2, 5
nn.MaxPool2d(2, ceil_mode=True) | 1, 1, 3, 5
nn.MaxPool2d(2, return_indices=True) | 1, 1, 4, 4
nn.AvgPool1d(2, 1) | 2, 4
nn.AvgPool2d(2, padding=1, count_include_pad=False) | 1, 2, 3, 3
nn.AdaptiveAvgPool2d((2, 1)) | 1, 2, 3, 3
nn.AdaptiveMaxPool1d(2) | 1, 2, 5
nn.LPPool1d(2, 2) | 1, 2, 4
nn.BatchNorm1d(3) | 4, 3
nn.BatchNorm1d(2, affine=False) | 2, 2, 3
nn.BatchNorm1d(3, track_running_stats=False) | 4, 3
nn.BatchNorm1d(3, momentum=None) | 2, 3
nn.BatchNorm2d(2, eps=1e-3) | 2, 2, 2, 2
nn.LayerNorm(3) | 2, 3
nn.LayerNorm((2, 3), elementwise_affine=False) | 2, 2, 3
nn.GroupNorm(2, 4) | 2, 4, 3
nn.InstanceNorm1d(2, affine=True) | 2, 2, 4
nn.InstanceNorm2d(2, track_running_stats=True) | 1, 2, 3, 3
nn.RMSNorm(3) | 2, 3
nn.LocalResponseNorm(2) | 1, 3, 4
nn.Dropout(0.0) | 2, 3
nn.Dropout(1.0) | 2, 3
nn.Dropout2d(0.0) | 1, 2, 2, 2
nn.ReLU() | 2, 3
nn.ReLU(inplace=True) | 2, 3
nn.LeakyReLU(0.1) | 2, 3
nn.PReLU(3) | 2, 3
nn.ELU(inplace=True) | 2, 3
nn.SELU() | 3
nn.CELU(0.5) | 2, 3
nn.GELU() | 2, 3
nn.SiLU(inplace=True) | 3, 2
nn.Mish() | 3
nn.Softplus(2) | 3
nn.Softmax(-1) | 2, 3
nn.LogSoftmax(1) | 2, 3
nn.Softmax2d() | 1, 2, 2, 2
nn.Tanh() | 2, 3
nn.Sigmoid() | ()
nn.Hardtanh() | 2, 3
nn.Hardswish() | 2, 3
nn.Threshold(0.1, 2.0) | 2, 3
nn.GLU() | 2, 4
nn.Softshrink() | 2, 3
nn.Tanhshrink() | 3
nn.Upsample(scale_factor=2) | 1, 1, 3
nn.Upsample(scale_factor=2, mode='bilinear') | 1, 1, 2, 2
nn.PixelShuffle(2) | 1, 4, 2, 2
nn.ZeroPad2d(1) | 1, 1, 2, 2
nn.ReflectionPad1d(1) | 1, 2, 3
nn.ReplicationPad2d(1) | 1, 1, 2, 2
nn.ConstantPad1d((1, 2), 0.5) | 1, 3
nn.CircularPad1d(1) | 1, 2, 3
nn.CosineSimilarity() | 2, 3 | 2, 3
nn.PairwiseDistance() | 2, 3 | 2, 3
nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3)) | 2, 3
nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh()) | 2, 3
nn.Sequential(nn.Conv2d(1, 2, 2), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(2, 2)) | 2, 1, 3, 4
nn.RNN(3, 2) | 2, 1, 3
nn.RNN(3, 2, nonlinearity='relu', num_layers=2) | 2, 3
nn.GRU(3, 2, bidirectional=True) | 2, 1, 3
nn.LSTM(3, 2) | 2, 2, 3
nn.RNNCell(3, 2) | 2, 3
nn.GRUCell(3, 2) | 2, 3
nn.LSTMCell(3, 2) | 2, 3
nn.MultiheadAttention(4, 2) | 3, 1, 4 | 3, 1, 4 | 3, 1, 4
nn.TransformerEncoderLayer(4, 2, 4, dropout=0.0) | 3, 1, 4
nn.Unfold(2) | 1, 1, 3, 3
nn.Fold((3, 3), 2) | 1, 4, 4
Net() | 2, 3
Net() | 3
Tied() | 2, 3
nn.Sequential(Net(), Tied()) | 2, 3
"""
"""Layers, each with the shapes of its inputs."""

EMBEDDINGS = [
    "nn.Embedding(4, 3)",
    "nn.Embedding(4, 2, padding_idx=0)",
    "nn.Embedding(4, 3, max_norm=1.0)",
    "nn.Embedding(4, 3, scale_grad_by_freq=True)",
]

MODULE_LINES = [
    "{z} = m({inputs})", "{z} = m({inputs})", "{z} = m({inputs})", "{z} = m({inputs}); {z} = {z}[0] if isinstance({z}, tuple) else {z}", "m.train()", "m.eval()", "m.zero_grad()", "m.zero_grad(set_to_none=False)",
    "m.requires_grad_(False)", "m.requires_grad_()", "m.double()", "m.float()", "m.half()", "m = copy.deepcopy(m)", "m.load_state_dict(m.state_dict())", "see(m.state_dict())", "see(list(m.state_dict()))", "print(m)", "see([n for n, _ in m.named_parameters()])",
    "see([n for n, _ in m.named_modules()])", "m.register_forward_hook(called('forward'))", "m.register_forward_pre_hook(called('before'))", "m.register_full_backward_hook(called('backward'))", "m.register_full_backward_pre_hook(called('pre'))",
    "m.register_forward_hook(lambda m, i, o: o * 2)", "m.register_forward_pre_hook(lambda m, i: (i[0] * 2, *i[1:]))", "m.register_full_backward_hook(lambda m, i, o: tuple(None if t is None else t * 2 for t in i))", "next(m.parameters()).requires_grad_(False)",
    "nn.utils.clip_grad_norm_(m.parameters(), {unit})", "nn.utils.clip_grad_value_(m.parameters(), {unit})", "{z} = nn.utils.parameters_to_vector(m.parameters())", "m.apply(lambda t: see(type(t).__name__))", "{z} = next(m.parameters())",
    "{z} = checkpoint(m, {inputs}, use_reentrant=False)", "see(sum(p.numel() for p in m.parameters()))", "see(m.training)", "{z} = m({f})", "m.load_state_dict({{k: v * 2 for k, v in m.state_dict().items()}})", "m.load_state_dict({{}})", "m({inputs}).sum().backward()",
    "m({inputs}).pow(2).mean().backward()", "m.weight.data.mul_({num})", "m.weight.grad", "m.bias = None", "m.weight = nn.Parameter(m.weight.detach() * 2)", "m.add_module('extra', filled(nn.Linear(1, 1)))",
    "del m.weight", "m.weight = torch.zeros(2)", "m.register_buffer('extra', torch.zeros(2))", "m.extra_value = {x}", "see(m.extra_repr())", "m.bias.register_hook(noted('bias'))", "m.weight.register_hook(noted('weight', 2))", "with torch.no_grad(): m.weight.mul_({num})",
    "m.eps = {unit}", "m.inplace = {bool}", "m.bias = nn.Parameter(torch.ones(2).double())", "m.stride = {pos}", "m.dim = {int}", "m.momentum = {unit}", "m.track_running_stats = {bool}", "m.p = {unit}", "m.batch_first = {bool}", "m.dropout = 0.0",
    "m.norm_first = {bool}", "m.bidirectional = {bool}", "m.num_layers = {pos}", "m.nonlinearity = 'relu'", "m.num_heads = {pos}", "m.head_dim = {pos}", "m.hidden_size = {pos}", "see([tuple(w.shape) for w in m._flat_weights])",
    "see([len(w) for w in m.all_weights])", "m.flatten_parameters()", "m.reset_parameters(); filled(m)", "m.padding = {pos}", "m.kernel_size = {pos}", "m.training = {bool}", "m.activation = F.gelu", "m.padding_idx = {int}",
    "[p.grad.zero_() for p in m.parameters()]", "m.to({dtype})", "see(m.get_parameter('weight').shape)", "m.get_submodule('nothing')", "m[0].requires_grad_(False)", "see(len(m))",
]  # fmt: skip

LOSSES = [
    "F.mse_loss({f}, {same})", "F.mse_loss({f}, {same}, reduction={reduction})", "F.l1_loss({f}, {same}, reduction={reduction})", "F.smooth_l1_loss({f}, {same}, beta={unit})", "F.huber_loss({f}, {same}, delta={unit}, reduction={reduction})",
    "F.cross_entropy({m}, {classes})", "F.cross_entropy({m}, {classes}, reduction={reduction})", "F.cross_entropy({m}, {classes}, weight={weights}, label_smoothing={unit})", "F.cross_entropy({m}, {classes}, ignore_index=0)",
    "F.cross_entropy({m}, {m}.softmax(1))", "F.nll_loss({m}.log_softmax(1), {classes}, reduction={reduction})", "F.nll_loss({m}, {classes}, weight={weights})", "F.binary_cross_entropy({f}.sigmoid(), {same}.sigmoid(), reduction={reduction})",
    "F.binary_cross_entropy_with_logits({f}, {same}.sigmoid())", "F.binary_cross_entropy_with_logits({f}, {same}.sigmoid(), pos_weight=torch.tensor(2.0).double(), reduction={reduction})", "F.kl_div({f}.log_softmax(-1), {same}.softmax(-1), reduction='batchmean')",
    "F.kl_div({f}, {same}, log_target=True, reduction={reduction})", "F.soft_margin_loss({f}, {same}.sign())", "F.hinge_embedding_loss({f}, {same}.sign(), reduction={reduction})", "F.poisson_nll_loss({f}, {same}.abs())", "F.gaussian_nll_loss({f}, {same}, {same}.abs() + 1)",
    "F.margin_ranking_loss({f}, {same}, torch.ones_like({f}))", "F.cosine_embedding_loss(data(2, 3), {m}, torch.ones(2))", "F.triplet_margin_loss({f}, {same}, {same} * 2)", "F.multi_margin_loss({m}, {classes})", "F.multilabel_soft_margin_loss({m}, {m}.sigmoid().round())",
    "nn.MSELoss()({f}, {same})", "nn.CrossEntropyLoss({weights})({m}, {classes})", "nn.BCEWithLogitsLoss(reduction={reduction})({f}, {same}.sigmoid())", "nn.L1Loss(reduction={reduction})({f}, {same})", "nn.NLLLoss()({m}.log_softmax(-1), {classes})", "nn.KLDivLoss(reduction={reduction})({f}, {same}.softmax(-1))",
    "F.mse_loss({f}, {y})", "F.cross_entropy({f}, {classes})", "F.cross_entropy({v}, torch.tensor(1))", "F.scaled_dot_product_attention({b}, {b}, {b})", "F.scaled_dot_product_attention({b}, {b}, {b}, is_causal=True)",
]  # fmt: skip

LOSSES += [
    f"F.{call}, reduction={{reduction}})"
    for call in (
        "mse_loss({f}, {same}", "mse_loss({f}, {same}, weight={same}.abs()", "l1_loss({f}, {same}", "l1_loss({f}, {f}[:1]", "smooth_l1_loss({f}, {same}, beta={unit}",
        "huber_loss({f}, {same}, delta={unit}", "huber_loss({f}, {same}, weight={same}.abs()", "cross_entropy({m}, {classes}, weight={weights}", "cross_entropy({m}, {classes}, ignore_index=1",
        "cross_entropy({m}, {classes}, label_smoothing={unit}", "cross_entropy({m}, {m}.softmax(1)", "cross_entropy({b}, whole(2, 3, below=2)", "cross_entropy(data(2, 3, 2, 2), whole(2, 2, 2), weight={weights}",
        "nll_loss({m}, {classes}", "nll_loss({m}, {classes}, weight={weights}, ignore_index=0", "nll_loss({b}, whole(2, 3, below=2)", "binary_cross_entropy({f}.sigmoid(), {same}.sigmoid(), weight={same}.abs()",
        "binary_cross_entropy({f}, {same}", "binary_cross_entropy_with_logits({f}, {same}.sigmoid(), weight={same}.abs()", "binary_cross_entropy_with_logits({f}, {same}", "kl_div({f}, {same}.softmax(-1)",
        "kl_div({f}, {same}, log_target={bool}", "soft_margin_loss({f}, {same}.sign()", "hinge_embedding_loss({f}, {same}.sign(), margin={unit}", "poisson_nll_loss({f}, {same}.abs(), log_input={bool}, full={bool}",
        "gaussian_nll_loss({f}, {same}, {same}.abs() + 1, full={bool}", "gaussian_nll_loss({f}, {same}, {same}", "gaussian_nll_loss({m}, {m}, {m}.abs()[:, :1] + 1", "margin_ranking_loss({f}, {same}, {same}.sign(), margin={unit}",
        "cosine_embedding_loss({m}, {m}, torch.ones({m}.shape[0]), margin={unit}", "triplet_margin_loss({f}, {same}, {same}, p={pos}, swap={bool}", "triplet_margin_with_distance_loss({f}, {same}, {same}",
        "multi_margin_loss({m}, {classes}, p={pos}, margin={unit}", "multi_margin_loss({m}, {classes}, weight={weights}", "multilabel_margin_loss({m}, torch.zeros_like({m}, dtype=torch.long)",
        "multilabel_soft_margin_loss({m}, {m}.sigmoid().round(), weight={weights}", "mse_loss({x}, {y}", "cross_entropy({x}, {y}", "nll_loss({x}, {y}", "binary_cross_entropy({x}, {y}", "smooth_l1_loss({x}, {y}", "kl_div({x}, {y}",
    )
]  # fmt: skip
"""Every loss with every reduction, of what fits and of what does not."""

OPTIMIZERS = """
SGD(ps, lr=0.1)
SGD(ps, lr=0.1, momentum=0.9)
SGD(ps, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)
SGD(ps, lr=0.1, maximize=True)
Adam(ps, lr=0.1)
Adam(ps, lr=0.1, amsgrad=True, weight_decay=0.1)
AdamW(ps, lr=0.01)
RMSprop(ps, lr=0.01, momentum=0.5, centered=True)
RMSprop(ps)
Adagrad(ps, lr=0.1, lr_decay=0.1)
Adadelta(ps)
Adamax(ps)
NAdam(ps)
RAdam(ps)
LBFGS(ps, lr=0.1, max_iter=3)
SGD([{'params': ps[:1], 'lr': 0.5}, {'params': ps[1:]}], lr=0.1)
SGD(ps, lr=-1)
Adam([])
""".strip().splitlines()  # fmt: skip

SCHEDULERS = """
StepLR(o, 2)
StepLR(o, 1, gamma=0.5)
MultiStepLR(o, [1, 3])
ExponentialLR(o, 0.9)
CosineAnnealingLR(o, 3)
LambdaLR(o, lambda n: 1 / (n + 1))
LinearLR(o, total_iters=3)
ConstantLR(o)
ReduceLROnPlateau(o, patience=0)
OneCycleLR(o, 0.5, total_steps=4)
CyclicLR(o, 0.01, 0.1, step_size_up=2, cycle_momentum=False)
PolynomialLR(o, 3)
CosineAnnealingWarmRestarts(o, 2)
""".strip().splitlines()

TRAINING = [
    "o.step()", "o.step()", "o.step()", "o.zero_grad()", "o.zero_grad(set_to_none=False)", "see(o.state_dict())", "o.load_state_dict(o.state_dict())", "sc.step()", "sc.step()", "see(sc.get_last_lr())", "o.step(lambda: {g}.sum())", "sc.step({num})",
    "o.step(lambda: (o.zero_grad(), (ps[0] ** 2).sum().backward(), (ps[0] ** 2).sum())[2])", "o.param_groups[0]['lr'] *= 0.5", "o.add_param_group({{'params': [{l}]}})", "print(o)", "(ps[0] * ps[-1]).sum().backward()", "(ps[0] ** 2).sum().backward()",
    "for t in ps: t.grad = torch.ones_like(t)", "o = copy.deepcopy(o)", "see(len(o.state))", "see(sc.state_dict())", "o.register_step_post_hook(called('stepped'))", "o.register_step_pre_hook(called('to step'))", "nn.utils.clip_grad_norm_(ps, {unit})",
]  # fmt: skip

CREATED = [
    "torch.zeros({sizes})", "torch.ones({sizes}, requires_grad=True)", "torch.full(({sizes},), {num})", "torch.arange({pos})", "torch.arange({low}, {high}, 0.5)", "torch.linspace({low}, {high}, {pos})", "torch.eye({pos}, requires_grad=True)", "torch.tensor({num})", "torch.tensor([{num}, {num}])",
    "torch.tensor([{num}, {num}], requires_grad=True)", "torch.tensor([[1, 2], [3, 4]], dtype={dtype})", "torch.tensor([True, False])", "data({sizes}, k={pos})", "data({sizes}, k={pos}).requires_grad_()", "data({sizes}, dtype={dtype})", "whole({sizes})", "torch.empty({sizes}).fill_(1)",
    "torch.tensor([])", "torch.logspace(0, 1, {pos})", "torch.zeros(0, 3, requires_grad=True)", "torch.tensor([1, 2], requires_grad=True)", "torch.tensor([[1, 2], [3]])", "torch.zeros({sizes}, dtype={dtype})", "torch.tril_indices({pos}, {pos})", "torch.combinations({v})",
    "torch.cartesian_prod({v}, {v})", "torch.as_tensor([{num}, {num}], dtype={dtype})", "torch.scalar_tensor({num})", "torch.zeros(({sizes},), requires_grad=True).double()",
]  # fmt: skip

PARTS = {
    "values": (["{z} = " + pattern for pattern in VALUES], 3),
    "pointwise": (
        ["{z} = {f}." + n + "()" for n in POINTWISE.split()]
        + ["{z} = torch." + n + "({x})" for n in POINTWISE.split()],
        2,
    ),
    "activations": (["{z} = F." + n + "({f})" for n in ACTIVATIONS.split()], 1),
    "binary": (
        ["{z} = torch." + n + "({x}, {y})" for n in BINARY.split()]
        + ["{z} = {x}." + n + "({same})" for n in BINARY.split()],
        2,
    ),
    "views": (["{z} = " + pattern for pattern in VIEWS], 5),
    "sums": (["{z} = " + pattern for pattern in SUMS], 2),
    "reductions": (
        ["{z} = {x}." + n + "({d})" for n in REDUCTIONS.split()]
        + ["{z} = torch." + n + "({f}, {d})" for n in REDUCTIONS.split()],
        1,
    ),
    "matrices": (["{z} = " + pattern for pattern in MATRICES], 2),
    "created": (["{z} = " + pattern for pattern in CREATED], 1),
    "written": (WRITTEN, 5),
    "in place": (["{x}." + n + "()" for n in IN_PLACE.split()], 1),
    "switches": (SWITCHES, 2),
    "passes": (PASSES, 5),
    "hooks": (HOOKS, 2),
    "functions": (FUNCTIONS, 2),
    "looks": (LOOKS, 1),
    "losses": (["{z} = " + pattern for pattern in LOSSES], 1),
    "module": (MODULE_LINES, 0),
    "training": (TRAINING, 0),
    "old": (["{z} = " + pattern for pattern in EXPRESSIONS] + WRITES + OTHERS, 1),
}
"""Every kind of statement, with how often it comes in a script without a theme."""

THEMES = [
    {}, {}, {}, {"views": 15, "written": 15}, {"passes": 12, "hooks": 8, "functions": 4}, {"functions": 15, "passes": 8}, {"values": 8, "sums": 8, "matrices": 8}, {"module": 20, "passes": 3, "losses": 3},
    {"module": 12, "training": 12, "losses": 2}, {"training": 15, "passes": 5}, {"losses": 12, "passes": 6}, {"switches": 10, "written": 10, "passes": 8}, {"old": 60},
]  # fmt: skip


def written(seed):
    """The lines of a seed's script, and what PyTorch showed after each."""
    lines = Writer(seed).script()
    return lines, recorded(lines, "torch")


def recorded(lines, package):
    """What each line showed."""
    _reset(package)
    session = Session(START, package)
    try:
        return [session.record(line) for line in lines]
    finally:
        _reset(package, always=False)


def _reset(package, always=True):
    module = importlib.import_module(package)
    module.set_grad_enabled(True)
    module.manual_seed(0)
    module.set_warn_always(always)  # what PyTorch mentions once in a process, it says in each script


class Writer:
    """Draws scripts, one a seed; PyTorch runs each line as it is written."""

    def __init__(self, seed, package="torch"):
        self.random = random.Random(seed)
        self.package = package
        self.session = Session(START, package)
        self.torch = self.session.module
        self.inputs = []

    def script(self):
        """The statements: tensors to begin with, then 4 to 14 lines of one theme.

        One script in 6 is of the narrower kind, whose lines are drawn blindly: a third of them fail.
        """
        _reset(self.package)
        if self.random.random() < 1 / 6:
            return [*BEGINNING, *[self._blind() for _ in range(self.random.randint(1, 10))]]
        lines = []
        for statement in self._beginning():
            self.session.run(statement)
            lines.append(statement)
        theme = self.random.choice(THEMES)
        weights = {name: theme.get(name, weight) for name, (_, weight) in PARTS.items()}
        if weights["module"] or weights["training"]:
            for statement in self._model(weights):
                self.session.run(statement)
                lines.append(statement)
        lines += [self._statement(weights) for _ in range(self.random.randint(4, 14))]
        return lines

    def _blind(self):
        x, y = self.random.choice(OLD_NAMES), self.random.choice(OLD_NAMES)
        kind = self.random.randrange(4)
        pattern = self.random.choice((EXPRESSIONS, EXPRESSIONS, WRITES, OTHERS)[kind])
        line = (f"{self.random.choice(OLD_NAMES[2:])} = " if kind < 2 else "") + pattern.format(x=x, y=y)
        return self.random.choice(["", "", "", "with torch.no_grad(): ", "with torch.enable_grad(): "]) + line

    def _beginning(self):
        for name in self.random.sample(LEAVES, self.random.randint(2, 4)):
            yield f"{name} = {self._leaf()}"

    def _leaf(self):
        shape = ", ".join(map(str, self.random.choice(SHAPES)))
        kind = self.random.random()
        number = self.random.randint(1, 10)
        if kind < 0.55:
            turned = ".t()" if shape.count(",") == 1 and self.random.random() < 0.15 else ""
            return f"data({shape}{', ' * bool(shape)}k={number}){turned}.requires_grad_()"
        if kind < 0.75:
            return f"data({shape}{', ' * bool(shape)}k={number})"
        if kind < 0.87:
            tracked = self.random.choice(["", ".requires_grad_()"])
            return f"data({shape}{', ' * bool(shape)}k={number}, dtype=torch.float32){tracked}"
        if kind < 0.95:
            return f"whole({shape}{', ' * bool(shape)}k={number})"
        return f"data({shape}{', ' * bool(shape)}k={number}) > 0"

    def _model(self, weights):
        if weights["module"]:
            if self.random.random() < 0.1:
                layer, self.inputs = self.random.choice(EMBEDDINGS), None
            else:
                layer, *shapes = (part.strip() for part in self.random.choice(LAYERS.strip().splitlines()).split(" | "))
                self.inputs = [() if shape == "()" else eval(f"({shape},)") for shape in shapes]
            yield f"m = filled({layer}){self.random.choice(['', '.double()', '.double()'])}"
        if weights["training"]:
            parameters = (
                "list(m.parameters())" if weights["module"] else f"[{', '.join(self._names(self._tracked_leaf))}]"
            )
            yield f"ps = {parameters}"
            yield f"o = torch.optim.{self.random.choice(OPTIMIZERS)}"
            yield f"sc = torch.optim.lr_scheduler.{self.random.choice(SCHEDULERS)}"

    def _statement(self, weights):
        for attempt in range(8):
            part = self.random.choices(list(weights), list(weights.values()))[0]
            text = self._drawn(self.random.choice(PARTS[part][0]))
            if self.random.random() < 0.12:
                text = f"{self.random.choice(REGIONS)}\n    {text}"
                if self.random.random() < 0.4:
                    part = self.random.choices(list(weights), list(weights.values()))[0]
                    text += f"\n    {self._drawn(self.random.choice(PARTS[part][0]))}"
            worked = self.session.run(text)
            if worked or attempt == 7 or self.random.random() < 0.12:
                return text
        raise AssertionError

    def _drawn(self, pattern):
        """A pattern with something for each name in braces."""
        known = {}

        def part(match):
            name = match[1]
            if name not in known:
                value = getattr(self, f"draw_{name}")(known)
                if name not in ("x", "f", "g", "l", "n", "z", "p"):
                    return value
                known[name] = value
            return known[name]

        text = re.sub(r"(?<!\{)\{(\w+)\}", part, pattern)
        return text.replace("{{", "{").replace("}}", "}")

    # What variables there are

    def _value(self, name):
        return self.session.space.get(name)

    def _names(self, wanted=lambda t: True):
        names = [n for n in LEAVES + NAMES if self._is_tensor(n)]
        return [n for n in names if wanted(self._value(n))]

    def _is_tensor(self, name):
        value = self._value(name)
        return isinstance(value, self.torch.Tensor) and readable(value)

    def _tracked_leaf(self, tensor):
        return tensor.is_leaf and tensor.requires_grad

    def _pick(self, *wishes):
        """A variable that fits the first wish that any of them fits; now and then any variable."""
        if self.random.random() > 0.03:
            for wish in wishes:
                names = self._names(wish)
                if names:
                    return self.random.choice(names[-4:] if self.random.random() < 0.6 else names)
        return self.random.choice(self._names() or ["a"])

    def _of(self, known):
        """The tensor that the pattern is about."""
        name = known.get("x") or known.get("f") or known.get("g") or known.get("n") or known.get("l")
        value = self._value(name) if name else None
        return value if isinstance(value, self.torch.Tensor) else self.torch.zeros(2, 3)

    # What stands for the names in braces

    def draw_x(self, known):
        return (
            self._pick(lambda t: t.is_floating_point() and t.numel(), lambda t: True)
            if self.random.random() < 0.7
            else self._pick()
        )

    def draw_f(self, known):
        return self._pick(lambda t: t.is_floating_point())

    def draw_g(self, known):
        return self._pick(lambda t: t.requires_grad)

    def draw_l(self, known):
        return self._pick(self._tracked_leaf, lambda t: t.requires_grad)

    def draw_n(self, known):
        return self._pick(lambda t: t.grad_fn is not None, lambda t: t.requires_grad)

    def draw_z(self, known):
        return self.random.choice(NAMES)

    draw_p = draw_z

    def draw_y(self, known):
        shape = self._of(known).shape

        def fits(t):
            return all(
                1 in pair or pair[0] == pair[1] for pair in zip(reversed(t.shape), reversed(shape), strict=False)
            ) and t.ndim <= len(shape)

        return self._pick(fits) if self.random.random() < 0.9 else self.draw_num(known)

    def draw_same(self, known):
        of = self._of(known)
        if self.random.random() < 0.6:
            names = self._names(lambda t: t.shape == of.shape and t.dtype == of.dtype)
            if names:
                return self.random.choice(names)
        return f"data({self._listed(of.shape, k=self.random.randint(1, 9))}{', dtype=torch.float32' if of.dtype == self.torch.float32 else ''})"

    def draw_ones(self, known):
        return f"torch.ones_like({known['n']})" if "n" in known else "torch.ones(2, 3)"

    def draw_ones_of_f(self, known):
        return f"torch.ones_like({known['f']})"

    def draw_tensor0(self, known):
        return f"torch.ones((), dtype={self._of(known).dtype})"

    def draw_num_tensor(self, known):
        return f"torch.tensor({self.draw_num(known)})"

    def _matrix(self, dims, fallback, square=False):
        names = self._names(
            lambda t: (
                t.ndim == dims and t.is_floating_point() and t.numel() and (not square or t.shape[-1] == t.shape[-2])
            )
        )
        return self.random.choice(names) if names and self.random.random() < 0.8 else fallback

    def draw_m(self, known):
        return self._matrix(2, f"data(2, 3, k={self.random.randint(1, 9)})")

    def draw_m0(self, known):
        return self._matrix(2, "torch.zeros(2, 3)")

    def draw_sq(self, known):
        return self._matrix(2, f"(data(3, 3, k={self.random.randint(1, 9)}) + 3 * torch.eye(3))", square=True)

    def draw_spd(self, known):
        matrix = self.draw_m(known)
        return f"({matrix} @ {matrix}.mT + 2 * torch.eye({matrix}.shape[0], dtype={matrix}.dtype))"

    def draw_v(self, known):
        return self._matrix(1, f"data(3, k={self.random.randint(1, 9)})")

    def draw_b(self, known):
        return self._matrix(3, f"data(2, 2, 3, k={self.random.randint(1, 9)})")

    def draw_d(self, known):
        dims = self._of(known).ndim
        bound = max(dims, 1) + (self.random.random() < 0.02)
        return str(self.random.randint(-bound, bound - 1))

    draw_e = draw_d

    def draw_dims(self, known):
        dims = self._of(known).ndim
        chosen = self.random.sample(range(dims), self.random.randint(0, dims)) if dims else []
        return str(tuple(d - dims if self.random.random() < 0.3 else d for d in chosen))

    def draw_order(self, known):
        dims = self._of(known).ndim
        return ", ".join(map(str, self.random.sample(range(dims), dims))) or "()"

    def draw_i(self, known):
        return str(self.random.choice([0, 0, 1, -1]))

    draw_first = draw_i

    def draw_num(self, known):
        return self.random.choice(
            ["0", "1", "2", "-1", "3", "0.5", "-1.5", "2.0", "0.0", "1e-3", "True", "float('inf')", "float('nan')"][
                : 13 if self.random.random() < 0.15 else 10
            ]
        )

    def draw_int(self, known):
        return str(self.random.choice([0, 1, 2, 2, 3, -1]))

    def draw_pos(self, known):
        return str(self.random.choice([1, 2, 2, 3]))

    def draw_unit(self, known):
        return self.random.choice(["0.1", "0.25", "0.5", "1.0", "0.0"])

    def draw_low(self, known):
        return self.random.choice(["-1", "-0.5", "0", "0.0"])

    def draw_high(self, known):
        return self.random.choice(["1", "0.5", "2", "1.0"])

    def draw_bool(self, known):
        return self.random.choice(["True", "False"])

    def draw_rounding(self, known):
        return self.random.choice(["'floor'", "'trunc'", "None"])

    def draw_reduction(self, known):
        return self.random.choice(
            ["'mean'", "'sum'", "'none'", "'none'", "'nothing'"][: 5 if self.random.random() < 0.1 else 4]
        )

    def draw_reduce(self, known):
        return self.random.choice(
            ["'sum'", "'prod'", "'mean'", "'amax'", "'amin'", "'most'"][: 6 if self.random.random() < 0.1 else 5]
        )

    def draw_scattered(self, known):
        return self.random.choice(["'add'", "'multiply'", "'sum'"])

    def draw_dtype(self, known):
        return "torch." + self.random.choice(
            ["float64", "float32", "int64", "int32", "bool", "float16", "uint8", "int16", "int8"]
        )

    def draw_mask(self, known):
        of, name = self._of(known), known.get("x") or known.get("f")
        masks = self._names(lambda t: t.dtype == self.torch.bool and t.shape == of.shape)
        if name is None or (masks and self.random.random() < 0.4):
            return self.random.choice(masks or ["data(2, 3) > 0"])
        return self.random.choice(
            [
                f"{name} > {self.draw_low(known)}",
                f"{name} < {self.draw_high(known)}",
                f"{name} == {name}",
                f"{name} != 0",
                f"{name}.isnan()",
            ]
        )

    def draw_size(self, known):
        of = self._of(known)
        return str(self.random.choice(of.shape or [1]))

    def draw_sizes(self, known):
        return self._listed(self.random.choice([s for s in SHAPES if s]))

    def draw_shape(self, known):
        count = self._of(known).numel()
        shapes = (
            [(-1,), (count,), (1, -1), (-1, 1), (count, 1)]
            + [(n, count // n) for n in (2, 3) if count and count % n == 0]
            + [(2, -1), (3, -1)]
        )
        return self._listed(self.random.choice(shapes))

    def draw_wide(self, known):
        shape = [
            self.random.choice([n, -1]) if n != 1 else self.random.choice([1, 2, 3, -1]) for n in self._of(known).shape
        ]
        return self._listed([*self.random.choice([[], [], [2], [1]]), *shape]) or "2"

    def draw_times(self, known):
        return self._listed([self.random.choice([1, 2, 1, 0]) for _ in self._of(known).shape]) or "2"

    def draw_entries(self, known):
        return f"torch.tensor({self.random.choice(['[0]', '[0, 0]', '[1, 0]', '[0, 1]'])})"

    def draw_gather(self, known):
        shape = [min(n, 1) if self.random.random() < 0.5 else n for n in self._of(known).shape]
        return f"whole({self._listed(shape, below=self.random.choice([1, 1, 2]))})"

    def draw_classes(self, known):
        return f"whole(2, k={self.random.randint(0, 3)}, below={self.random.choice([2, 2, 3])})"

    def draw_weights(self, known):
        return "torch.tensor([1.0, 2.0, 0.5]).double()"

    def draw_index(self, known):
        return self._index(self._of(known))

    def draw_index_of_f(self, known):
        return self._index(self._of(known))

    def draw_inputs(self, known):
        if self.inputs is None:
            return self.random.choice(["whole(3, below=4)", "whole(2, 2)", "whole(1, k=3, below=4)"])
        return ", ".join(self._input(shape) for shape in self.inputs)

    def _input(self, shape):
        module = self._value("m")
        dtype = (
            next(iter(p.dtype for p in module.parameters()), self.torch.float64)
            if module is not None
            else self.torch.float64
        )
        names = self._names(lambda t: tuple(t.shape) == shape and t.dtype == dtype)
        if names and self.random.random() < 0.6:
            return self.random.choice(names)
        dtype = "" if dtype == self.torch.float64 or self.random.random() < 0.03 else f", dtype={dtype}"
        made = f"data({self._listed(shape, k=self.random.randint(1, 9))}{dtype})"
        return made + self.random.choice(["", ".requires_grad_()"])

    def _index(self, of):
        """What stands between the brackets: numbers, slices, None, an ellipsis, lists, masks and tensors."""
        parts = []
        for size in of.shape[: self.random.randint(1, max(of.ndim, 1))]:
            last = max(size - 1, 0)
            at = self.random.randint(0, last)
            parts.append(self.random.choice([
                str(at), str(at), str(-1 - (last - at)), ":", ":", f"{at}:", f":{at + 1}", "::2", f"{at}:{at + 2}", "-1:", "1:1", "None, :", f"[{at}, 0]", f"[{at}]", f"torch.tensor([0, {at}])",
                f"torch.tensor({at})", f"torch.tensor({[i % 2 == 0 for i in range(size)]})", str(size + 1) if self.random.random() < 0.05 else "0",
            ]))  # fmt: skip
        if not parts:
            parts = [self.random.choice(["()", "None", "...", "True", "0"])]
        if self.random.random() < 0.15:
            parts.insert(self.random.choice([0, len(parts)]), self.random.choice(["...", "None"]))
        return ", ".join(parts)

    def _listed(self, shape, **options):
        return ", ".join([*map(str, shape), *(f"{name}={value}" for name, value in options.items())])
