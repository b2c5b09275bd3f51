"""``inference_mode``: what it makes, and what refuses it afterwards, against PyTorch; and views made under ``no_grad``."""

import threading

import pytest
from twin import compare

import gviz.engine as torch

SETUP = "x = torch.ones(3, requires_grad=True); c = torch.ones(3); y = x * 1\n"

PROGRAMS = {
    "inside": """
with torch.inference_mode():
    a = x * 2; b = torch.ones(3); v = c[1:]; w = y[1:]; d = c.detach()
    see(torch.is_grad_enabled(), torch.is_inference_mode_enabled(), a.requires_grad, [t.is_inference() for t in (a, b, v, w, d, x)])
    see([t.is_inference() for t in (b[1:], b.clone(), torch.zeros_like(c), c.new_ones(2), torch.arange(3), torch.as_tensor(c), torch.tensor(1.), c.expand(2, 3))])
    c.add_(1); a.add_(1); b[0] = 2; y.add_(1); x.add_(1); attempt(lambda: a._version); numbers(a, b); see(c, y, x)
    with torch.inference_mode(False):
        z = x * 2; see(torch.is_grad_enabled(), torch.is_inference_mode_enabled(), z.requires_grad, z.is_inference()); attempt(lambda: x * a)
    with torch.enable_grad():
        z = x * 2; see(z.requires_grad, z.is_inference())
see(torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_inference(a), torch.is_inference(x))
""",
    "outside": """
with torch.inference_mode(): a = torch.ones(3); b = a[1:]
attempt(lambda: a._version); attempt(lambda: a.add_(1)); attempt(lambda: b.add_(1)); attempt(lambda: x * a); attempt(lambda: F.apply(x, a)); attempt(lambda: (x * 1).mul_(a))
attempt(lambda: a.requires_grad_()); attempt(lambda: setattr(a, "requires_grad", True)); see([t.is_inference() for t in (a.clone(), a * 2, a[1:], a.detach(), a.view(3, 1))])
with torch.inference_mode(): a = torch.ones(3)
numbers((x + a).detach(), a.clone(), a * 2); see((x + a).grad_fn is not None, (x * 1).copy_(a), c.copy_(a), torch.cat([x, a])); (x + a).sum().backward(); see(x)
with torch.no_grad(): numbers(x * a); attempt(lambda: a.add_(1))
""",
    "views of ordinary tensors": """
with torch.inference_mode(): v = c[1:]; w = y[1:]; t = y.view(3, 1)
see(v.add_(1)); attempt(lambda: v.mul_(x[1:])); attempt(lambda: w.add_(1)); see(w.requires_grad); see(t * 2)
y.add_(1); attempt(lambda: w.grad_fn); attempt(lambda: t * 2); see(w.requires_grad)
""",
    "as a decorator": """
@torch.inference_mode()
def f(q): return q * 2
@torch.inference_mode
def g(q): return q * 2
@torch.inference_mode(False)
def h(q): return q * 2
see([(k(x).is_inference(), k(x).requires_grad) for k in (f, g, h)])
@torch.inference_mode()
def gen():
    yield torch.is_inference_mode_enabled()
    yield torch.ones(1).is_inference()
see(list(gen()), torch.is_inference_mode_enabled())
with torch.no_grad():
    with torch.inference_mode(False): see(torch.is_grad_enabled())
    with torch.inference_mode(): pass
    see(torch.is_grad_enabled())
""",
    "views made under no_grad": """
with torch.no_grad(): v = c[1:]
attempt(lambda: v.add_(x[1:])); see(v.add_(1))
with torch.no_grad(): v = x[1:]
see(v.requires_grad, v.grad_fn, v.is_leaf); attempt(lambda: v.add_(1)); attempt(lambda: v[:1].add_(1))
z = v * 2; see(z, v + x[1:], (v * v).sum(), torch.cat([v, x])); z.sum().backward(); see(v, x); (torch.cat([v, x]) * 2).sum().backward(); see(v, x)
with torch.no_grad(): i = c[1:]
c.requires_grad_(); see(i, i * 2); (i * c[1:]).sum().backward(); see(c, i); v.requires_grad_(); see(v * 2); (v * 2).sum().backward(); see(v)
with torch.no_grad(): v = x[1:]
(g,) = torch.autograd.grad((v * x[1:]).sum(), x, create_graph=True); see(g.requires_grad); attempt(lambda: torch.autograd.grad(v.sum(), x)); attempt(lambda: v.backward(torch.ones(2))); see(v)
c = torch.ones(3)
with torch.no_grad(): v = y[1:]
attempt(lambda: v.add_(1)); y.mul_(2); attempt(lambda: v.grad_fn); attempt(lambda: v * 2); see(v.requires_grad)
u = (x * 1)[1:]
with torch.no_grad(): w = u[:1]; p = (x * 1).unbind()[0]
attempt(lambda: w.mul_(2)); attempt(lambda: p.mul_(2))
with torch.no_grad(): v = (x * 1)[1:]; v.mul_(3)
attempt(lambda: v.grad_fn)
""",
}
FUNCTION = """
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, r):
        ctx.save_for_backward(r); return q * 1
    @staticmethod
    def backward(ctx, g): return g, None
"""


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    compare(SETUP + FUNCTION + PROGRAMS[name])


def test_other_threads_stay_as_they_are():
    made = []
    with torch.inference_mode():
        thread = threading.Thread(target=lambda: made.append(torch.ones(2)))
        thread.start()
        thread.join()
        assert torch.ones(2).is_inference()
    assert not made[0].is_inference()
    assert made[0]._version == 0
