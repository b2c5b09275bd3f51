"""Jacobians, Hessians and their products, against PyTorch."""

import pytest
from twin import compare

SETUP = """
from torch.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp
x = torch.tensor([[1., 2.], [3., 4.]]); y = torch.tensor([0.5, -1.])
def shown(t):
    if isinstance(t, torch.Tensor): numbers(t); see(t.requires_grad, t.shape)
    else:
        for part in t: shown(part)
def show(call):
    try: shown(call())
    except Exception as error: see(type(error).__name__, str(error))
one = lambda a: (a ** 3).sum(dim=1)
two = lambda a, b: ((a * b).exp(), a.sum() * b)
scalar = lambda a: (a ** 3).sum()
both = lambda a, b: (a ** 2 * b).sum() + (b ** 2).sum() * a.sum()
linear = lambda a: 3 * a
constant = lambda a: torch.ones(2)
"""

PROGRAMS = {
    "jacobian": """
show(lambda: jacobian(one, x)); show(lambda: jacobian(two, (x, y))); show(lambda: jacobian(one, x, create_graph=True))
show(lambda: jacobian(one, x.clone().requires_grad_(), create_graph=True)); show(lambda: jacobian(linear, y)); show(lambda: jacobian(constant, x))
show(lambda: jacobian(two, (x, y), vectorize=True)); show(lambda: jacobian(one, x, vectorize=True, strategy="forward-mode"))
z = x.clone().requires_grad_(); j = jacobian(one, z, create_graph=True); j.sum().backward(); numbers(z.grad)
""",
    "hessian": """
show(lambda: hessian(scalar, x)); show(lambda: hessian(both, (x, y))); show(lambda: hessian(scalar, x, create_graph=True))
show(lambda: hessian(lambda a: a.sum(), x)); show(lambda: hessian(one, x)); show(lambda: hessian(two, (x, y)))
z = y.clone().requires_grad_(); h = hessian(scalar, z, create_graph=True); h.sum().backward(); numbers(z.grad)
show(lambda: hessian(both, (x, y), vectorize=True))
""",
    "vjp and jvp": """
v = torch.tensor([1., 2.])
show(lambda: vjp(one, x, v)); show(lambda: vjp(two, (x, y), (x, y))); show(lambda: vjp(scalar, x)); show(lambda: vjp(constant, x, v))
show(lambda: jvp(one, x, x)); show(lambda: jvp(two, (x, y), (x, y))); show(lambda: jvp(scalar, x, x)); show(lambda: jvp(constant, x, x)); show(lambda: jvp(lambda a: a ** 2, y[0]))
show(lambda: vjp(one, x, v, create_graph=True)); show(lambda: jvp(one, x.clone().requires_grad_(), x, create_graph=True))
show(lambda: jvp(linear, y, y)); show(lambda: jvp(linear, y, y, create_graph=True))
with torch.no_grad(): show(lambda: vjp(one, x, v)); show(lambda: jvp(one, x, x))
""",
    "vhp and hvp": """
show(lambda: vhp(scalar, x, x)); show(lambda: vhp(both, (x, y), (x, y))); show(lambda: vhp(lambda a: a ** 3, y[0])); show(lambda: vhp(scalar, x))
show(lambda: hvp(scalar, x, x)); show(lambda: hvp(both, (x, y), (x, y))); show(lambda: hvp(lambda a: a ** 3, y[0])); show(lambda: hvp(scalar, x))
show(lambda: hvp(scalar, x.clone().requires_grad_(), x, create_graph=True)); show(lambda: vhp(lambda a: a.sum(), x, x)); show(lambda: hvp(lambda a: a.sum(), x, x))
""",
    "strict": """
v = torch.tensor([1., 2.])
for function in (one, linear, constant, lambda a: a.detach() + a.new_ones(2, 2)):
    show(lambda: jacobian(function, x, strict=True)); show(lambda: jacobian(function, x, strict=True, create_graph=True)); show(lambda: vjp(function, x, function(x), strict=True))
    show(lambda: vjp(function, x, function(x), strict=True, create_graph=True)); show(lambda: jvp(function, x, x, strict=True)); show(lambda: jvp(function, x, x, strict=True, create_graph=True))
for function in (scalar, lambda a: a.sum(), lambda a: (a ** 2).sum(), lambda a: torch.ones(())):
    show(lambda: hessian(function, x, strict=True)); show(lambda: vhp(function, x, x, strict=True)); show(lambda: hvp(function, x, x, strict=True))
    show(lambda: hessian(function, x, strict=True, create_graph=True)); show(lambda: vhp(function, x, x, strict=True, create_graph=True)); show(lambda: hvp(function, x, x, strict=True, create_graph=True))
show(lambda: jacobian(lambda a, b: a * 2, (x, y), strict=True)); show(lambda: vjp(lambda a, b: a * 2, (x, y), x, strict=True)); show(lambda: jvp(lambda a, b: a * 2, (x, y), (x, y), strict=True))
""",
    "what is refused": """
show(lambda: jacobian(one, 3)); show(lambda: jacobian(one, (x, 3))); show(lambda: jacobian(lambda a: 3, x)); show(lambda: jacobian(lambda a: (a, 3), x)); show(lambda: vjp(one, x, 3))
show(lambda: vjp(one, x)); show(lambda: jvp(one, x)); show(lambda: vjp(one, x, x)); show(lambda: vjp(one, x, (y, y))); show(lambda: vjp(two, (x, y), y)); show(lambda: vjp(two, (x, y), (x, x)))
show(lambda: jacobian(one, x, strategy="none")); show(lambda: jacobian(one, x, strict=True, vectorize=True)); show(lambda: jacobian(one, x, strategy="forward-mode"))
show(lambda: jacobian(one, x, strategy="forward-mode", create_graph=True, vectorize=True)); show(lambda: jacobian(one, x, strict=True, vectorize=True, strategy="forward-mode"))
show(lambda: hessian(scalar, x, outer_jacobian_strategy="none")); show(lambda: hessian(lambda a: (a.sum(),), x)); show(lambda: vhp(one, x, x)); show(lambda: hvp(one, x, x)); show(lambda: hvp(lambda a: (a.sum(),), x, x))
""",
}


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    compare(SETUP + PROGRAMS[name])
