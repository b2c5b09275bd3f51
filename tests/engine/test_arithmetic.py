"""Operations on numbers and shapes, against PyTorch: results, types, names of nodes, words of errors."""

import warnings

import numpy as np
import pytest
from twin import compare

import gviz.engine as torch

PROGRAMS = {
    "products": """
def ones(*shape): return torch.ones(shape, requires_grad=True) * 2
for a, b in (((3,), (3,)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((2, 2, 3), (3,)), ((2, 2, 3), (3, 2)),
             ((2, 2, 3), (2, 3, 2)), ((5, 1, 2, 3), (4, 3, 2)), ((3,), (4, 3, 2))):
    see(torch.matmul(ones(*a), ones(*b)), ones(*a) @ ones(*b))
see(ones(2, 3).mm(ones(3, 2)), ones(2, 3).mv(ones(3)), ones(3).dot(ones(3)), torch.addmm(ones(2), ones(2, 3), ones(3, 2)))
see(ones(2, 2, 3).bmm(ones(2, 3, 1)), torch.linspace(0, 1, 5), torch.eye(2, 3), torch.full((2, 2), 7.), torch.full((2,), 7))
attempt(lambda: ones(2, 3) @ ones(2, 3)); attempt(lambda: ones(2, 3).mm(ones(3))); attempt(lambda: ones(2).dot(ones(3)))
attempt(lambda: ones(2, 3).mv(ones(2))); attempt(lambda: ones(2, 3) @ ones(2)); attempt(lambda: ones(1)[0] @ ones(2))
attempt(lambda: ones(2, 3) @ torch.ones(3, 2).double()); attempt(lambda: ones(2, 2).dot(ones(2)))
""",
    "operators and numbers": """
x = torch.tensor([1., 2., -3.], requires_grad=True)
see(x + 1, 1 + x, x - 1, 1 - x, x * 2, 2 * x, x / 2, 2 / x, x ** 2, 2 ** x, x ** 0.5, x ** x, -x, +x, abs(x), x % 2); numbers(x // 2, 7 // x)
attempt(lambda: (x // 2).sum().backward()); see(type((x // 2).grad_fn).__name__)
see(x.add(1, alpha=2), x.sub(x, alpha=3), torch.add(x, x, alpha=0.5), torch.rsub(x, 1), torch.rsub(x, x), x.pow(3), x.square(), x.reciprocal())
see(torch.mul(x, 3), torch.add(2, x) if False else x, x.clamp(-1, 1), x.clamp(min=0), x.clamp(max=1), torch.clamp(x, 0, 1))
for name in ("exp", "log", "sqrt", "sin", "cos", "tan", "tanh", "sigmoid", "relu", "abs", "neg", "reciprocal", "sign"):
    see(getattr(torch, name)(x), getattr(x, name)(), getattr(torch, name)(x.detach().double()))
see(torch.maximum(x, -x), x.minimum(-x), torch.max(x, -x), x.min(-x), torch.max(x, other=x * 2), x == 1, x != 1, x < 1, x <= 1, x > 1, x >= 1, x == x, (x > 0) & (x < 2), ~(x > 0), (x > 0) | (x < 2))
attempt(lambda: x + "a"); attempt(lambda: "a" + x); attempt(lambda: x + None); attempt(lambda: x + torch.ones(2)); attempt(lambda: torch.ones(2, 3) * torch.ones(4, 1, 2))
i = torch.tensor([1, 2, 3]); see(i + 1, i * 1.5, i / 2, i ** 2, 2 ** i, i.exp(), i.sin(), i.sum(), i.float().mean(), -i, abs(i), i.sqrt(), 1 / i, i.sigmoid(), i.clamp(1, 2))
attempt(lambda: i.mean()); attempt(lambda: i ** -1); see(i.max(), i.min(), i.argmax())
z = torch.tensor(0., requires_grad=True); (z ** 0 + z ** 1 + abs(z) + z.relu()).backward(); see(z)
z = torch.tensor(0., requires_grad=True); z.sqrt().backward(); see(z); see(torch.tensor(1.) / z, torch.log(z), z / z)
a = torch.tensor([0., 2.], requires_grad=True); b = torch.tensor([0., 3.], requires_grad=True); (a ** b).sum().backward(); see(a, b)
""",
    "reductions": """
x = torch.arange(6., requires_grad=True).view(2, 3)
see(x.sum(), x.sum(0), x.sum(-1), x.sum((0, 1)), x.sum(1, keepdim=True), x.mean(), x.mean(0), x.mean(1, keepdim=True), x.mean((0, 1)))
see(x.max(), x.min(), x.max(1)[0], x.max(1)[1], x.min(0)[0], x.max(0, keepdim=True)[0], x.argmax(), x.argmax(1), torch.sum(x, 0), torch.mean(x))
values, indices = x.max(1); see(values, indices); see(x.max(dim=1).values, x.max(dim=1).indices)
attempt(lambda: x.sum(2)); attempt(lambda: x.mean(-3)); see(torch.ones(0).sum(), torch.ones(0).mean(), torch.ones(0, 3).sum(0))
nan = float("nan"); a = torch.tensor([1., 2., nan, 3., 5.], requires_grad=True); b = torch.tensor([2., 2., 1., nan, 4.], requires_grad=True)
for larger in (torch.max, torch.min): (larger(a, b) * torch.arange(5.)).sum().backward(); see(a, b)
t = torch.tensor([2., 2., 1.], requires_grad=True); t.max().backward(); see(t); t.grad = None; t.max(0)[0].backward(); see(t)
for data in ([float("nan"), 1., 2.], [float("nan"), 1., float("nan")]):
    for name in ("max", "min"):
        n = torch.tensor(data, requires_grad=True); getattr(n, name)().backward(create_graph=True); numbers(n.grad)
numbers(x.sum(dtype=torch.float64)); see(torch.ones(3, dtype=torch.int32).sum(), torch.ones(3, dtype=torch.bool).sum())
see(x.any(), (x > 2).all(), (x > 2).any(), torch.equal(x, x), torch.allclose(x, x + 1e-9), torch.is_tensor(x), torch.is_tensor(1))
""",
    "joining": """
x = torch.arange(6., requires_grad=True).view(2, 3)
see(torch.cat([x, x]), torch.cat([x, x * 2], 1), torch.cat((x, x), dim=-1), torch.stack([x, x]), torch.stack([x, x], dim=-1))
see(torch.cat([x, torch.ones(1, 3)]), torch.cat([x, torch.ones(1, 3).double()]), torch.stack([x, torch.ones(2, 3)]))
(torch.cat([x, x * 3]) * torch.arange(12.).view(4, 3)).sum().backward()
attempt(lambda: torch.cat([x, torch.ones(2, 2)])); attempt(lambda: torch.cat([])); attempt(lambda: torch.stack([x, x[0]])); attempt(lambda: torch.stack([]))
attempt(lambda: torch.cat([x, x[0]])); see(x.chunk(2), x.chunk(2, 1), x.split(2, dim=1), x.narrow(1, 1, 2)); attempt(lambda: x.split([1, 1], 1))
see(torch.where(x > 2, x, x * 2), torch.where(x > 2, x, torch.zeros(3)), torch.where(x > 2, 1., x), torch.where(x > 2, x, 0.))
""",
    "making tensors": """
see(torch.tensor(1), torch.tensor(1.), torch.tensor(True), torch.tensor([1, 2.5]), torch.tensor([[1], [2]]), torch.tensor([]), torch.Tensor([1, 2]))
import numpy as np
see(torch.tensor(np.ones(2)), torch.tensor(np.float32(1)), torch.from_numpy(np.arange(3)), torch.tensor([torch.tensor(1.), torch.tensor(2.)]))
see(torch.zeros(2, 3), torch.zeros((2, 3)), torch.ones([2]), torch.zeros(2, dtype=torch.int32), torch.arange(5), torch.arange(1, 2, 0.25), torch.arange(3.))
x = torch.ones(2, 3, requires_grad=True)
see(torch.zeros_like(x), torch.ones_like(x, dtype=torch.float64), torch.full((2,), 3, dtype=torch.float32), x.new_zeros(2), x.new_ones((1, 2)), x.new_tensor([1, 2]), x.new_full((2,), 5))
see(x.type(), x.is_floating_point(), x.nelement(), x.numel(), x.element_size(), x.dim(), x.ndim, len(x), x.size(), x.size(-1), x.tolist())
a = np.ones(2); t = torch.from_numpy(a); t.add_(1); see(a, t, torch.as_tensor(a)); a[0] = 9; see(t)
attempt(lambda: torch.tensor([[1], [2, 3]])); attempt(lambda: torch.tensor("a")); attempt(lambda: len(torch.tensor(1.))); attempt(lambda: x.item())
attempt(lambda: bool(x)); attempt(lambda: bool(torch.ones(0))); attempt(lambda: float(x)); see(float(x[0, 0]), int(x[0, 0]), bool(x[0, 0]), x[0, 0].item())
attempt(lambda: [0, 1][torch.tensor(1)]); attempt(lambda: iter(torch.tensor(1.))); see(torch.get_default_dtype() is torch.float32)
for size in ((), (2, 3), (5,), ([1, 2],), ((2, 3),), (torch.Size([2, 3]),), ([[1, 2], [3, 4]],), (x.detach(),)):
    see(torch.Tensor(*size).shape, torch.Tensor(*size).dtype)
attempt(lambda: torch.Tensor(2.5)); attempt(lambda: torch.Tensor(True)); see(torch.Tensor([[1, 2], [3, 4]]))
def refused(call):
    try: call()
    except TypeError: return True
see(refused(lambda: torch.Tensor([1.], requires_grad=True)), refused(lambda: torch.nn.Parameter(torch.ones(1), requires_gard=False)))
attempt(lambda: x.nothing); attempt(lambda: torch.exp(1.));
""",
    "choosing": """
def node_names(t):
    names, node = [], t.grad_fn
    while node is not None:
        names.append(type(node).__name__); node = node.next_functions[0][0] if node.next_functions else None
    return names
x = torch.arange(12., requires_grad=True).view(3, 4) * 1
for i in ([0, 2], torch.tensor([2, 0]), torch.tensor([[0, 1], [1, 0]]), torch.tensor([True, False, True]), x > 5):
    see(x[i].shape, x[i].detach(), x[i].grad_fn is not None); (g,) = torch.autograd.grad((x[i] * x[i]).sum(), x, retain_graph=True); numbers(g)
see(x[[0, 1], [1, 2]].detach(), x[:, [0, 2]].detach(), x[1, [0, 2]].detach(), x[[0, 0]].detach(), x[torch.tensor(1)], x[-1, -1])
(g,) = torch.autograd.grad(x[[0, 0, 0]].sum(), x, retain_graph=True); numbers(g)
y = torch.arange(24., requires_grad=True).view(2, 3, 4) * 1; one = torch.tensor(1); yes = torch.tensor(True)
every = slice(None); tops = y[0] > 3; three = torch.tensor([True, False, True])
for key in ((0, every, [0, 1]), (0, [0, 1]), True, (True, 1), False, (every, [0, 1], 1), (one, [0, 1]), (None, [0, 1]), ([0, 1], None, [0, 1]),
            ([0, 1], every, [0, 1]), (..., [0, 1]), (y > 3,), (slice(1, None), [0, 1]), (0, True), yes, (every, tops), (0, tops), (0, three),
            ([0, 1], 1, [2, 3]), (0, ..., [1, 1]), ([[0], [1]], every, 2), (1, None, three, None, 0)):
    see(node_names(y[key]), y[key].shape); numbers(y[key], torch.autograd.grad((y[key] * y[key]).sum(), y, retain_graph=True)[0])
    w = y * 1; w[key] = 7.; see(node_names(w)); numbers(w, torch.autograd.grad((w * w).sum(), y, retain_graph=True)[0])
attempt(lambda: y[1, [5]]); attempt(lambda: y[1, :, [7]]); attempt(lambda: y[9, [0]]); attempt(lambda: y[0, 0, 0, [0]])
attempt(lambda: torch.tensor(1.)[[0]]); attempt(lambda: torch.tensor(1.)[0]); attempt(lambda: torch.tensor(1.)[:]); numbers(torch.tensor(1.)[True])
k = x * 1; i = torch.tensor([0, 1]); z = k[0, i]; i[0] = 1; attempt(lambda: z.sum().backward())
attempt(lambda: x[5]); attempt(lambda: x[0, 9]); attempt(lambda: x[0, 0, 0]); attempt(lambda: x[::-1]); attempt(lambda: x[torch.tensor([7])]); attempt(lambda: x["a"]); attempt(lambda: x[1.5])
""",
}


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    compare(PROGRAMS[name])


def test_numbers_that_are_none_are_made_in_silence():
    x = torch.tensor([0.0, -1.0], requires_grad=True)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        y = (x / x + x.log() + x.sqrt() * 1e300) ** 2
        y.sum().backward(create_graph=True)
        y.sum().backward()
        made = torch.tensor([1e300]), torch.tensor(1e300) * 1e300
        made[0].add_(torch.ones(1, dtype=torch.float64) * 1e300).div_(0)
        assert repr([x, y, *made, torch.zeros(0).mean(), x.detach().log().int()])
        assert np.geterr()["divide"] == "raise"
    assert y.isnan().all()
