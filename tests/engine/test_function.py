"""Custom Functions, against PyTorch, and how they stand in a trace."""

import pytest
from recording import events_of
from twin import compare

import gviz.engine as torch
from gviz.events import NodeCreated, OpSeen, StackSeen

CUBE = """
from torch.autograd import Function
from torch.autograd.function import once_differentiable
def made(forward, backward, name="F"):
    return type(name, (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})
class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x); ctx.power = 3
        return x ** 3
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * ctx.power * x ** 2
x = torch.tensor([1., 2.], requires_grad=True); c = torch.ones(2)
"""

PROGRAMS = {
    "value, gradient, and gradients of it": """
y = Cube.apply(x); see(y, y.grad_fn.name(), y.grad_fn.next_functions[0][1], y.grad_fn.power, y.grad_fn.saved_tensors[0] is x)
y.sum().backward(); see(x)
(g,) = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True); numbers(g); see(g.requires_grad)
(h,) = torch.autograd.grad(g.sum(), x, create_graph=True); numbers(h); numbers(*torch.autograd.grad(h.sum(), x))
with torch.no_grad(): see(Cube.apply(x))
see(Cube.apply(c), Cube.apply(torch.tensor(2., requires_grad=True)))
z = Cube.apply(Cube.apply(x) * 2); see(z); z.sum().backward(); see(x)
""",
    "what is saved is freed and checked": """
y = Cube.apply(x); y.sum().backward(retain_graph=True); y.sum().backward(); see(x)
attempt(lambda: y.sum().backward()); attempt(lambda: y.grad_fn.saved_tensors); attempt(lambda: y.grad_fn.power)
y = x * 1; z = Cube.apply(y); y.add_(1); attempt(lambda: z.sum().backward())
def forward(ctx, a):
    r = a.exp(); ctx.save_for_backward(r, None, a); return r
F = made(forward, lambda ctx, g: (see(ctx.saved_tensors[1], ctx.saved_tensors[0].grad_fn is not None), g * ctx.saved_tensors[0])[1])
z = F.apply(x); z.mul_(2); attempt(lambda: z.sum().backward())
z = F.apply(x); see(z.grad_fn.saved_tensors[0].grad_fn is z.grad_fn, z.grad_fn.saved_tensors[0] is z, z.grad_fn.saved_tensors[2] is x)
(g,) = torch.autograd.grad(z.sum(), x, create_graph=True); numbers(g, *torch.autograd.grad(g.sum(), x))
F = made(lambda ctx, a: (ctx.save_for_backward(3), a * 1)[1], lambda ctx, g: g)
attempt(lambda: F.apply(x)); attempt(lambda: F.apply(c))
F = made(lambda ctx, a: a * 1, lambda ctx, g: (see(len(ctx.saved_tensors)), g)[1])
y = F.apply(x); y.sum().backward(); attempt(lambda: y.sum().backward()); attempt(lambda: y.grad_fn.saved_tensors)
F = made(lambda ctx, a: a * 1, lambda ctx, g: g); y = F.apply(x); y.sum().backward(); attempt(lambda: y.sum().backward())
""",
    "what backward returns": """
two = lambda ctx, a, b: a * b
for returned in (lambda ctx, g: g, lambda ctx, g: (g, 3), lambda ctx, g: (g, None), lambda ctx, g: (g, None, None), lambda ctx, g: (g, g, g), lambda ctx, g: (g, g)):
    attempt(lambda: made(two, returned).apply(x, c).sum().backward())
    attempt(lambda: made(two, returned).apply(x, 2).sum().backward())
one = lambda ctx, a: a * 2
for returned in (lambda ctx, g: "x", lambda ctx, g: [g], lambda ctx, g: torch.ones(5), lambda ctx, g: g.double(), lambda ctx, g: torch.ones(3, 2), lambda ctx, g: None, lambda ctx, g: torch.ones(1, 2)):
    x.grad = None
    attempt(lambda: made(one, returned).apply(x).sum().backward()); see(x)
""",
    "what is missing": """
class N(Function):
    @staticmethod
    def forward(ctx, a): return a * 1
attempt(lambda: N.apply(x).sum().backward())
class M(Function): pass
attempt(lambda: M.apply(x)); attempt(lambda: M()(x))
class B(N):
    @staticmethod
    def backward(ctx, g): return g
    @staticmethod
    def vjp(ctx, g): return g
attempt(lambda: B.apply(x).sum().backward())
class V(N):
    @staticmethod
    def vjp(ctx, g): return g * 7
attempt(lambda: V.apply(x).sum().backward()); see(x)
""",
    "setup_context": """
class S(Function):
    @staticmethod
    def forward(a, k=2): return a * k
    @staticmethod
    def setup_context(ctx, inputs, output):
        see(inputs, output, torch.is_grad_enabled()); ctx.k = inputs[1]; ctx.save_for_backward(inputs[0], output)
    @staticmethod
    def backward(ctx, g): return g * ctx.k, None
S.apply(x).sum().backward(); see(x); S.apply(x, k=5).sum().backward(); see(x); S.apply(x, 7).sum().backward(); see(x)
attempt(lambda: S.apply()); attempt(lambda: S.apply(x, b=3))
""",
    "several outputs": """
def forward(ctx, a):
    b = a * 2; i = a.long(); ctx.mark_non_differentiable(b); return a * 3, b, i, None, "s"
F = made(forward, lambda ctx, *g: (see(g), g[0])[1])
out = F.apply(x); see(out); out[0].sum().backward(); see(x)
def forward(ctx, a):
    ctx.set_materialize_grads(False); return a * 3, a * 2
F = made(forward, lambda ctx, *g: (see(g), g[1])[1])
p, q = F.apply(x); q.sum().backward(); see(x, p.output_nr, q.output_nr)
p, q = made(lambda ctx, a: (a * 3, a * 2), lambda ctx, g, h: (see(g, h), g)[1]).apply(x); q.sum().backward(); see(x)
see(made(lambda ctx, a: [a * 2], lambda ctx, g: g).apply(x), made(lambda ctx, a: 3, lambda ctx, g: g).apply(x))
""",
    "arguments": """
F = made(lambda ctx, *a: (see(ctx.needs_input_grad), a[0] * 1)[1], lambda ctx, g: (see(ctx.needs_input_grad), (g, None, None, None))[1])
y = F.apply(x, c, 3, "s"); see(y); y.sum().backward(); see(x)
with torch.no_grad(): F.apply(x, c, 3, "s")
y = F.apply(c, x); see(y)
""",
    "written inputs": """
F = made(lambda ctx, a: (ctx.mark_dirty(a), a.mul_(2))[1], lambda ctx, g: g * 2)
y = x * 1; z = F.apply(y); see(z is y, y); y.sum().backward(); see(x)
y = x * 1; v = y[1:]; z = F.apply(v); see(z is v, y, v); y.sum().backward(); see(x)
z = F.apply(c); see(z is c, c); attempt(lambda: F.apply(torch.ones(2, requires_grad=True)))
with torch.no_grad(): see(F.apply(x * 1))
F = made(lambda ctx, a: (ctx.mark_dirty(3), a * 1)[1], lambda ctx, g: g); attempt(lambda: F.apply(x))
F = made(lambda ctx, a: (ctx.mark_non_differentiable(3), a * 1)[1], lambda ctx, g: g); attempt(lambda: F.apply(x))
F = made(lambda ctx, a: (ctx.mark_dirty(a), a * 1)[1], lambda ctx, g: g); attempt(lambda: F.apply(x * 1))
F = made(lambda ctx, a: (ctx.mark_dirty(a), (a.mul_(2), a * 1))[1], lambda ctx, g, h: g); attempt(lambda: F.apply((x * 1)[1:]))
F = made(lambda ctx, a: (ctx.mark_dirty(a), (a * 1, a.mul_(2)))[1], lambda ctx, g, h: h * 2 + g)
y = x * 1; p, q = F.apply(y); see(q is y, p, q); (p + q).sum().backward(); see(x)
""",
    "inputs returned as they are, and views": """
F = made(lambda ctx, a: a, lambda ctx, g: g * 5)
y = F.apply(x); see(y is x, y._base is x, y); attempt(lambda: y.add_(1)); y.sum().backward(); see(x)
y = x * 1; z = F.apply(y); attempt(lambda: z.add_(1)); z = F.apply(y); y.mul_(2); attempt(lambda: z.grad_fn)
y = F.apply(c); see(y is c, y._base is c, y)
with torch.no_grad(): see(F.apply(x))
V = made(lambda ctx, a: a[1:], lambda ctx, g: torch.cat([g * 0, g]), "V")
y = V.apply(x * 1); see(y); attempt(lambda: y.add_(1)); y.sum().backward(); see(x)
V = made(lambda ctx, a: (a[1:], a[:1]), lambda ctx, g, h: torch.cat([h, g]), "V")
y, w = V.apply(x * 1); see(y, w); attempt(lambda: y.add_(1)); (y * 2 + w).sum().backward(); see(x)
F = made(lambda ctx, a: (ctx.mark_non_differentiable(a), a)[1], lambda ctx, g: g); see(F.apply(x))
""",
    "once differentiable": """
class O(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a); return a * a
    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        see(torch.is_grad_enabled()); return 2 * ctx.saved_tensors[0] * g
O.apply(x).sum().backward(); see(x)
(g,) = torch.autograd.grad(O.apply(x).sum(), x, create_graph=True); see(g.requires_grad)
s = torch.ones(2, requires_grad=True)
(g,) = torch.autograd.grad(O.apply(x), x, s, create_graph=True); see(g, g.grad_fn.name())
attempt(lambda: torch.autograd.grad(g.sum(), x)); attempt(lambda: g.sum().backward())
""",
    "backward within": """
class W(Function):
    @staticmethod
    def forward(ctx, a):
        with torch.enable_grad():
            ctx.inner = a.detach().requires_grad_(); ctx.result = (ctx.inner ** 2).sum()
        return ctx.result.detach()
    @staticmethod
    def backward(ctx, g):
        ctx.result.backward(); return ctx.inner.grad * g
(W.apply(x) * 3).backward(); see(x)
""",
}


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    compare(CUBE + PROGRAMS[name])


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, power):
        ctx.save_for_backward(x)
        ctx.power = power
        return x**power

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.power * x ** (ctx.power - 1), None


def recorded():
    def program():
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = Cube.apply(x, 3)
        y.sum().backward()
        return x, y

    return events_of(program)


def test_a_function_is_a_node_of_its_own():
    log = recorded()
    (op,) = [event for event in log if isinstance(event, OpSeen) and event.name == "Cube"]
    assert (op.grad_fn, op.slots, op.rules) == ("CubeBackward", ("x",), ("Cube.backward(ctx, g)",))
    (node,) = [event for event in log if isinstance(event, NodeCreated) and event.op == op.op]
    leaf = next(event for event in log if isinstance(event, NodeCreated))
    assert node.inputs == ((leaf.node, 0),)
    assert node.attrs == (("power", 3),)
    assert node.requires_grad
    assert node.outputs[0].value.array().tolist() == [1.0, 8.0]
    (stack,) = [event for event in log if isinstance(event, StackSeen) and event.stack == node.stack]
    assert stack.frames[0].function == "recorded.<locals>.program"


def test_what_runs_inside_is_seen_as_such():
    log = recorded()
    (cube,) = [event.op for event in log if isinstance(event, OpSeen) and event.name == "Cube"]
    (node,) = [event for event in log if isinstance(event, NodeCreated) and event.op == cube]
    inner = [event for event in log if isinstance(event, NodeCreated) and event.kind == "op" and event.untracked]
    forward = [event for event in inner if event.node < node.node]
    backward = [event for event in inner if event.node > node.node]
    assert len(forward) == 1
    assert forward[0].during == (0, 0)
    assert len(backward) == 3
    assert {event.during for event in backward} == {(1, node.node)}


@pytest.mark.torch
def test_arguments_may_have_names():
    compare("""
import torch
from torch.autograd import Function
x, w = torch.tensor([1., 2.], requires_grad=True), torch.tensor([3., 4.], requires_grad=True)
class Scaled(Function):
    @staticmethod
    def forward(ctx, input, by=2):
        ctx.by = by
        return input * by
    @staticmethod
    def backward(ctx, grad):
        see(ctx.needs_input_grad)
        return (grad * ctx.by,) + (None,) * (len(ctx.needs_input_grad) - 1)
attempt(lambda: Scaled.apply(x)); attempt(lambda: Scaled.apply(x, by=3)); attempt(lambda: Scaled.apply(input=x, by=w))
Scaled.apply(x, by=3).sum().backward(); see(x.grad)
attempt(lambda: Scaled.apply(x, to=3)); attempt(lambda: Scaled.apply(x, input=x)); see(type(Scaled(x)).__name__)
""")
