"""What PyTorch has no kernel for is refused as it refuses it: booleans, integers, derivatives."""

import pytest
from expressions import attempted, split
from twin import compare

OPERANDS = """
import torch
b, w = torch.eye(2).bool(), torch.ones(2, requires_grad=True)
n, i = torch.ones(2, 2, dtype=torch.long), torch.tensor([0, 1])
e, f = torch.zeros(2, 0).bool(), torch.zeros(2).bool()
"""
PRODUCTS = split("""
b @ b | b.mv(b[0]) | b[0].dot(b[0]) | b[0].vdot(b[0]) | torch.inner(b, b) | torch.addmm(b, b, b) | torch.addmv(b[0], b, b[0])
torch.chain_matmul(b, b, b) | torch.linalg.multi_dot([b, b, b]) | torch.tensordot(b, b, 1) | torch.einsum("ij,jk->ik", b, b)
torch.bmm(b[None], b[None]) | torch.baddbmm(b[None], b[None], b[None]) | torch.addbmm(b, b[None], b[None]) | e @ e.t()
torch.outer(b[0], b[0]) | torch.kron(b, b)
""")
OTHERS = split("""
b.trace() | torch.isin(b, b) | torch.isin(1, b) | torch.addcmul(b, b, b) | f.scatter_reduce(0, i, b[0], "mean")
f.scatter_reduce(0, i, b[0], "amax", include_self=False) | f.scatter_reduce(0, i, b[0], "amin", include_self=False)
torch.multinomial(b[0], 1) | torch.multinomial(torch.tensor([1, 2], dtype=torch.uint8), 1) | torch.multinomial(i, 1)
torch.addr(n, i, i, beta=.5) | torch.addr(n, i, i, alpha=.5) | torch.addr(b, b[0], b[0], beta=2)
torch.tensor([1, 2], dtype=torch.uint8) ** -1 | i ** -1 | b ** -1 | torch.ones(3).index_select(-1, torch.tensor([0, -1]))
torch.take_along_dim(torch.ones(2, 3), torch.zeros(3, 1, dtype=torch.long), 1) | torch.zeros(0, 3).view(torch.uint8)
torch.zeros(0, 4).view(torch.float64) | torch.tensor(3.).unfold(0, 0, 1) | torch.tensor(3.).mT | torch.tensor(3.).mH
w.sum(dtype=torch.int32) | w.sum(0, dtype=torch.int64) | w.prod(dtype=torch.int32) | w.cumsum(0, dtype=torch.int32)
w.nansum(dtype=torch.int32) | w.detach().sum(dtype=torch.int32) | (w * 0).bernoulli(0.).sum().backward()
torch.optim.SGD([w], lr=float("nan")).defaults["lr"] | torch.optim.Adam([w], lr=float("nan")) | torch.optim.SGD([w], lr=-1.)
""")
HALVES = split("""
h.round(decimals=1) | h.round(decimals=-2) | h.sinc() | torch.autograd.grad(h.atan2(h).sum(), h)
torch.autograd.grad(h.hypot(h * .5).sum(), h)
""")
SECOND = split("""
0 ** z | z ** .5 | torch.zeros(4) ** z
""")


@pytest.mark.torch
def test_products_of_booleans_are_refused():
    compare(OPERANDS + attempted(PRODUCTS))


@pytest.mark.torch
def test_other_refusals_are_those_of_pytorch():
    compare(OPERANDS + attempted(OTHERS))


@pytest.mark.torch
def test_halves_near_their_limits():
    compare(
        "import torch\nh = torch.tensor([60000., 1.25, -60000.], dtype=torch.float16).requires_grad_()\n"
        + attempted(HALVES)
    )


@pytest.mark.torch
@pytest.mark.parametrize("expression", SECOND)
def test_second_derivatives_at_zero(expression):
    compare(f"""
import torch
z = torch.tensor([0., -0., 2., -1.], requires_grad=True)
first, = torch.autograd.grad(({expression}).sum(), z, create_graph=True)
attempt(lambda: torch.autograd.grad(first.sum(), z)[0])
""")
