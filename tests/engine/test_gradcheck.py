"""``gradcheck`` and ``gradgradcheck``: what passes, and the words for what does not, against PyTorch."""

import pytest
from recording import events_of
from twin import compare

import gviz.engine as torch

SETUP = """
from torch.autograd import Function, gradcheck, gradgradcheck
from torch.autograd.gradcheck import GradcheckError
x = torch.tensor([[1., 2.], [3., 0.5]], dtype=torch.float64, requires_grad=True); y = torch.tensor([0.5, -1.], dtype=torch.float64, requires_grad=True)
s = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
def made(forward, backward):
    return type("F", (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})
Wrong = made(lambda ctx, a: a * 2, lambda ctx, g: g * 3)
"""

PROGRAMS = {
    "what passes": """
for function, inputs in ((torch.sin, x), (lambda a: a ** 3, (x,)), (lambda a, b: (a * b, (a @ b).exp()), (x, y)), (lambda a, n: a * n, (x, 3)), (torch.exp, s)):
    see(gradcheck(function, inputs), gradgradcheck(function, inputs))
see(gradcheck(lambda a: a.detach() * 0 + 1, x), gradcheck(lambda a: (a * 2, a.detach()), x), gradcheck(lambda a: a.t() * 2, x.t().detach().requires_grad_()))
see(gradcheck(lambda a: a.expand(3, 2), y), gradgradcheck(lambda a: a ** 3, y, torch.ones(2, dtype=torch.float64, requires_grad=True)), x.grad, x)
see(gradcheck(made(lambda ctx, a: (a * 2, a * 3), lambda ctx, g, h: g * 2 + h * 3).apply, x))
""",
    "a wrong gradient": """
attempt(lambda: gradcheck(Wrong.apply, x)); see(gradcheck(Wrong.apply, x, raise_exception=False)); attempt(lambda: gradcheck(lambda a, b: (b * 2, Wrong.apply(a)), (x, y)))
attempt(lambda: gradcheck(lambda a: a.detach() * 2, x)); see(issubclass(GradcheckError, RuntimeError)); attempt(lambda: gradgradcheck(lambda a: Wrong.apply(a) ** 2, y, torch.ones(2, dtype=torch.float64, requires_grad=True)))
attempt(lambda: gradcheck(torch.abs, torch.zeros(2, dtype=torch.float64, requires_grad=True) + 0.5, eps=0.6)); see(gradcheck(Wrong.apply, x, atol=2.), gradcheck(Wrong.apply, x, rtol=0.6))
""",
    "other failures": """
attempt(lambda: gradcheck(made(lambda ctx, a: a * 2, lambda ctx, g: g * 0 + 2).apply, x))
attempt(lambda: gradcheck(made(lambda ctx, a: a * 2, lambda ctx, g: g * 2 + (g.sum() == 0)).apply, x))
attempt(lambda: gradcheck(made(lambda ctx, a: (a * 2, a * 3), lambda ctx, g, h: (ctx.set_materialize_grads, g * 2 + h * 3)[1]).apply, x))
def forward(ctx, a):
    ctx.set_materialize_grads(False); return a * 2, a * 3
def backward(ctx, g, h):
    if g is None or h is None: raise RuntimeError("no")
    return g * 2 + h * 3
attempt(lambda: gradcheck(made(forward, backward).apply, x)); attempt(lambda: gradcheck(made(forward, backward).apply, x, check_undefined_grad=False))
def backward(ctx, g, h):
    return torch.ones(2, 2).double() if g is None and h is None else (0 if g is None else g * 2) + (0 if h is None else h * 3)
attempt(lambda: gradcheck(made(forward, backward).apply, x))
calls = []
def backward(ctx, g):
    calls.append(1); return g * 2 + len(calls) * g
attempt(lambda: gradcheck(made(lambda ctx, a: a * 2, backward).apply, x))
""",
    "what is refused": """
attempt(lambda: gradcheck(torch.sin, x.detach())); attempt(lambda: gradcheck(torch.sin, x.detach().clone()[:1].expand(2, 2).requires_grad_()))
attempt(lambda: gradcheck(torch.sin, x, check_backward_ad=False)); attempt(lambda: gradcheck(torch.sin, x, check_backward_ad=False, check_forward_ad=True, check_batched_grad=True))
attempt(lambda: gradgradcheck(torch.sin, x, check_rev_over_rev=False)); attempt(lambda: gradcheck(torch.sin, x, check_batched_forward_grad=True))
attempt(lambda: gradcheck(torch.sin, x.float().detach().requires_grad_(), raise_exception=False))
""",
}


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    compare(SETUP + PROGRAMS[name])


def test_single_precision_is_warned_of():
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="^Input #0 requires gradient and is not a double precision"):
        assert not torch.autograd.gradcheck(torch.exp, x, raise_exception=False)


@pytest.mark.filterwarnings("error")
def test_infinite_results_do_not_warn():
    x = torch.tensor([0.5, -1.0], dtype=torch.float64, requires_grad=True)
    assert not torch.autograd.gradcheck(lambda t: t * float("inf"), x, raise_exception=False)


@pytest.mark.parametrize("mode", ["check_forward_ad", "check_batched_grad"])
def test_modes_that_are_not_there_say_so(mode):
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(NotImplementedError, match=f"leave {mode} out"):
        torch.autograd.gradcheck(torch.exp, x, **{mode: True})


def test_a_recorded_gradcheck_ends_as_it_does_otherwise():
    results = []
    x = torch.tensor([1.0], dtype=torch.float64, requires_grad=True)
    assert events_of(lambda: results.append(torch.autograd.gradcheck(torch.sin, (x,))))
    assert results == [True]
