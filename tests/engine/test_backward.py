"""Backward passes, against PyTorch: what accumulates, what is freed, what hooks see, what raises."""

import pytest
from twin import compare

PROGRAMS = {
    "roots and seeds": """
x = torch.tensor([1., 2.], requires_grad=True)
y = x * x
y.backward(torch.tensor([1., 10.])); see(x, y)
attempt(lambda: (x * x).backward())
attempt(lambda: (x * x).backward(torch.ones(3)))
attempt(lambda: torch.ones(2).sum().backward())
attempt(lambda: torch.ones(2).backward())
(x * 3).sum().reshape(1, 1).backward(); see(x)
torch.autograd.backward([x.sum(), (x * x).sum()]); see(x)
torch.autograd.backward([x * 2, x.sum()], [torch.ones(2), None]); see(x)
attempt(lambda: torch.autograd.backward([x.sum(), x.sum()], [torch.tensor(1.)]))
z = x.sum(); torch.autograd.backward([z, z]); see(x)
x.backward(torch.ones(2)); see(x)
""",
    "accumulation keeps the object": """
x = torch.tensor([1., 2.], requires_grad=True)
(x * 2).sum().backward()
first = x.grad
(x * 3).sum().backward()
see(first is x.grad, first, x)
y = (x * x).sum(); y.backward(create_graph=True)
see(first is x.grad, x.grad)
""",
    "what is freed": """
x = torch.tensor([1., 2.], requires_grad=True)
for make in (lambda: x + x, lambda: x - 2, lambda: -x, lambda: x.view(2, 1), lambda: x.expand(2, 2), lambda: x.mean(),
             lambda: torch.cat([x, x]), lambda: x.clone(), lambda: x[0], lambda: x[0:1], lambda: x * 2, lambda: x / 2,
             lambda: x ** 2, lambda: x.exp(), lambda: 2 - x, lambda: x.sum(), lambda: x.t(), lambda: x.relu(),
             lambda: torch.stack([x, x]), lambda: x.dot(x), lambda: x.abs(), lambda: x.clamp(0, 1)):
    loss = make().sum()
    loss.backward()
    attempt(lambda: loss.backward())
    x.grad = None
y = x.exp(); loss = (y + x * 2).sum()
loss.backward()
attempt(lambda: loss.backward()); see(x)
attempt(lambda: y.grad_fn._saved_result)
""",
    "retained graph": """
a = torch.tensor([[1., 2., 3., 4.]], requires_grad=True)
b = a ** 2; c = b * 2; d = c.mean(); e = c.sum()
d.backward(retain_graph=True); see(a)
e.backward(retain_graph=True); see(a)
d.backward(); see(a)
attempt(lambda: e.backward()); see(a)
""",
    "grad": """
x = torch.tensor([1., 2.], requires_grad=True)
w = torch.tensor([3., 4.], requires_grad=True)
y = x * w; z = y.sum()
see(torch.autograd.grad(z, [x, w], retain_graph=True), torch.autograd.grad(z, [y], retain_graph=True))
see(torch.autograd.grad(z, [y, x], retain_graph=True), torch.autograd.grad(z, [x, y, y], retain_graph=True))
see(torch.autograd.grad(z, z, retain_graph=True), torch.autograd.grad([z, y], x, [None, torch.ones(2)], retain_graph=True))
see(x.grad, w.grad)
other = torch.ones(1, requires_grad=True)
attempt(lambda: torch.autograd.grad(z, [x, other], retain_graph=True))
attempt(lambda: torch.autograd.grad(z, [x, other], retain_graph=True, allow_unused=True))
attempt(lambda: torch.autograd.grad(z, [x, other], retain_graph=True, materialize_grads=True))
attempt(lambda: torch.autograd.grad(z, [x, other], allow_unused=False, materialize_grads=True))
attempt(lambda: torch.autograd.grad(z, [torch.ones(1)]))
attempt(lambda: torch.autograd.grad(z, []))
attempt(lambda: torch.autograd.grad(y, [x]))
attempt(lambda: torch.autograd.grad(z, [x]))
attempt(lambda: torch.autograd.grad(z, [x]))
""",
    "inputs": """
x = torch.tensor([1., 2.], requires_grad=True)
w = torch.tensor([3., 4.], requires_grad=True)
y = x * w; z = (y * y).sum()
z.backward(inputs=[x], retain_graph=True); see(x, w)
z.backward(inputs=w, retain_graph=True); see(x, w)
z.backward(inputs=[y], retain_graph=True); see(y, y.retains_grad)
z.backward(inputs=[y]); see(y)
attempt(lambda: (y * 2).sum().backward())
attempt(lambda: z.backward(inputs=[]))
attempt(lambda: z.backward(inputs=[torch.ones(2)]))
""",
    "gradients of gradients": """
x = torch.tensor([0.5, 2.], requires_grad=True)
y = (x ** 3 + torch.sin(x) * x.exp()).sum()
(g,) = torch.autograd.grad(y, x, create_graph=True)
numbers(g)
(h,) = torch.autograd.grad(g.sum(), x, create_graph=True)
numbers(h)
(k,) = torch.autograd.grad(h.sum(), x)
numbers(k)
x = torch.tensor([0.5, 2.], requires_grad=True)
(x ** 3).sum().backward(create_graph=True)
numbers(x.grad)
x.grad.sum().backward()
numbers(x.grad); see(x.grad.requires_grad)
""",
    "retain_grad": """
x = torch.tensor([1., 2.], requires_grad=True)
y = x * 2; y.retain_grad(); y.retain_grad(); z = y * y; z.retain_grad()
z.sum().backward(retain_graph=True); see(x, y, z)
z.sum().backward(); see(x, y, z)
x.retain_grad(); see(x.retains_grad)
attempt(lambda: torch.ones(1).retain_grad())
y = x * 2; y.retain_grad(); y.mul_(3); see(y.retains_grad); y.sum().backward(); see(y, x)
see((x * 2).grad)
""",
    "hooks": """
x = torch.tensor([1., 2.], requires_grad=True)
y = x * 2
order = []
y.register_hook(lambda g: order.append(("a", g.tolist())))
y.register_hook(lambda g: g * 10)
handle = y.register_hook(lambda g: order.append(("gone", 1)))
handle.remove(); handle.remove()
y.register_hook(lambda g: order.append(("b", g.tolist())))
y.retain_grad()
x.register_hook(lambda g: order.append(("x", g.tolist())))
x.register_hook(lambda g: g + 1)
(y * y).sum().backward(); see(order, x, y)
(y + x).sum().backward(); see(order, x)
attempt(lambda: torch.ones(1).register_hook(print))
z = x * 2
z.register_hook(lambda g: g[:1])
attempt(lambda: z.sum().backward())
z = x * 2
z.register_hook(lambda g: "no")
attempt(lambda: z.sum().backward())
z = x * 2
with z.register_hook(lambda g: g * 0):
    pass
z.sum().backward(); see(x)
""",
    "one hook registered twice": """
x = torch.tensor([1., 2.], requires_grad=True); seen = []
def note(g): seen.append(g.tolist())
first, second = x.register_hook(note), x.register_hook(note)
first.remove(); first.remove(); (x * 2).sum().backward(); see(seen)
second.remove(); (x * 2).sum().backward(); see(seen)
""",
    "hooks and grad": """
x = torch.tensor([1., 2.], requires_grad=True)
y = x * 2; y.register_hook(lambda g: g * 10); z = (y * y).sum()
numbers(*torch.autograd.grad(z, [y], retain_graph=True), *torch.autograd.grad(z, [y, x], retain_graph=True))
x.register_hook(lambda g: g + 1)
numbers(*torch.autograd.grad(z, [x], retain_graph=True))
y = x * 2; y.register_hook(lambda g: g * 10); y.mul_(3); y.register_hook(lambda g: g + 1)
y.retain_grad(); y.sum().backward(); see(y, x)
""",
    "a limited pass looks at nothing beside its way": """
x = torch.tensor([1., 2.], requires_grad=True); w = torch.tensor([3., 4.], requires_grad=True)
y = x * 2; y.retain_grad(); seen = []; y.register_hook(lambda g: seen.append(1)); x.register_hook(lambda g: seen.append(2))
numbers(*torch.autograd.grad((y * w).sum(), [w])); see(y, seen)
numbers(*torch.autograd.grad((y * w).sum(), [y])); see(y, seen)
(y * w).sum().backward(inputs=[w]); see(y, w, seen)
""",
    "a hook that fails leaves what ran": """
x = torch.tensor([1., 2.], requires_grad=True)
w = torch.tensor([3., 4.], requires_grad=True)
y = x * x
def fail(g): raise ValueError("no")
y.register_hook(fail)
z = (y + w * w).sum()
attempt(lambda: z.backward()); see(x, w)
attempt(lambda: z.backward()); see(x, w)
""",
    "backward in no_grad": """
x = torch.tensor([1., 2.], requires_grad=True)
z = (x * x).sum()
with torch.no_grad():
    z.backward(); see(x)
seen = []
y = x * x; y.register_hook(lambda g: seen.append((torch.is_grad_enabled(), g.requires_grad)))
y.sum().backward(retain_graph=True); y.sum().backward(create_graph=True); see(seen)
""",
    "the grad attribute": """
x = torch.tensor([1., 2.], requires_grad=True)
x.grad = torch.ones(2); (x * 2).sum().backward(); see(x)
def assign(value): x.grad = value
attempt(lambda: assign(torch.ones(3)))
attempt(lambda: assign(1.0))
attempt(lambda: assign(x))
attempt(lambda: assign(torch.ones(2, dtype=torch.float64)))
x.grad = None; see(x)
del x.grad; see(x.grad)
""",
    "requires_grad": """
x = torch.ones(2)
x.requires_grad = True; see(x)
x.requires_grad_(False); see(x)
x.requires_grad_(); y = x * 2
def flag(t, value): t.requires_grad = value
attempt(lambda: flag(y, False)); attempt(lambda: flag(y, True))
attempt(lambda: y.requires_grad_(False)); attempt(lambda: y.requires_grad_())
i = torch.ones(2, dtype=torch.int64)
attempt(lambda: flag(i, True)); attempt(lambda: i.requires_grad_()); attempt(lambda: torch.tensor([1], requires_grad=True))
see(i.requires_grad_(False))
base = torch.ones(3); v = base[1:]; base.requires_grad_(); see(v)
""",
    "grad modes": """
x = torch.ones(2, requires_grad=True)
with torch.no_grad():
    see(x * 2, torch.is_grad_enabled())
    with torch.enable_grad(): see(x * 2)
    with torch.set_grad_enabled(True): see(x * 2)
    see(torch.is_grad_enabled())
torch.set_grad_enabled(False); see(x * 2); torch.set_grad_enabled(True); see(x * 2)
@torch.no_grad()
def f(): return x * 2
@torch.no_grad
def g(): return x * 2
@torch.enable_grad()
def h(): return x * 2
@torch.set_grad_enabled(False)
def k(): return x * 2
see(f(), g(), k(), torch.is_grad_enabled())
with torch.no_grad(): see(h())
@torch.no_grad()
def generator():
    yield torch.is_grad_enabled()
    yield torch.is_grad_enabled()
see([(value, torch.is_grad_enabled()) for value in generator()])
try:
    with torch.no_grad(): raise ValueError
except ValueError: see(torch.is_grad_enabled())
""",
    "saved tensors": """
x = torch.tensor([1., 2.], requires_grad=True)
y = x.exp(); z = x * y
see(z.grad_fn._saved_self is x, z.grad_fn._saved_other is y, y.grad_fn._saved_result.grad_fn is y.grad_fn)
attempt(lambda: z.grad_fn._saved_nothing)
see((x ** 2).grad_fn._saved_exponent, x.sum(0, keepdim=True).grad_fn._saved_keepdim)
see((x * 2).grad_fn._saved_other is None or True)
constant = torch.ones(2)
see((x * constant).grad_fn._saved_self is None)
see(type(z.grad_fn).__name__, z.grad_fn.name(), x.expand_as(x).grad_fn.next_functions[0][0].name())
accumulator = x.expand_as(x).grad_fn.next_functions[0][0]
see(accumulator is z.grad_fn.next_functions[0][0], accumulator.variable is x)
""",
    "wide fan-out": """
x = torch.tensor(1.5, requires_grad=True)
y = x
for _ in range(20): y = y * x + y
y.backward(); see(x)
""",
    "broadcasting": """
a = torch.ones(3, 1, requires_grad=True); b = torch.ones(2, 1, 4, requires_grad=True); s = torch.tensor(2., requires_grad=True)
((a * b + s) / 3).sum().backward(); see(a, b, s)
""",
    "mixed dtypes": """
a = torch.tensor([1., 2.], requires_grad=True); b = torch.tensor([1., 2.], dtype=torch.float64, requires_grad=True)
c = a * b; see(c); c.sum().backward(); see(a, b)
d = a.double(); see(d); d.sum().backward(); see(a)
see(a.to(torch.float64), a.to(torch.float32) is a, a.half(), a.int(), a.long(), a.bool())
i = torch.tensor([1, 2]); see(i * 2, i * 2.5, i / 2, i + a, torch.tensor(3) * a, torch.tensor(2.5, dtype=torch.float64) * a)
see(i.sum(), i > 1, (i > 1).sum(), i // 2, i % 2, -i, i ** 2, torch.tensor([True]) + 1, torch.tensor([True]) + torch.tensor([True]))
""",
}


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    compare(PROGRAMS[name])
