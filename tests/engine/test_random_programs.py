"""Random programs over views, writes, grad modes and passes: PyTorch and the engine stay the same after every line."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from twin import compare

START = """
import torch
a = torch.tensor([[1., 2., 3.], [4., 5., 6.]], dtype=torch.float64, requires_grad=True)
b = torch.tensor([0.5, -1., 2.], dtype=torch.float64, requires_grad=True)
c = torch.tensor([[3., 1., 2.], [0., -2., 0.5]], dtype=torch.float64)
d = a * 1
e = b * 2
"""
NAMES = "abcde"
EXPRESSIONS = [
    "{x} + {y}", "{x} - {y}", "{x} * {y}", "{x} * 0.5", "2 - {x}", "{x}.sin()", "{x}.tanh()", "{x}.sigmoid()", "{x}.relu()",
    "{x}[0]", "{x}[1:]", "{x}[..., 0]", "{x}[:, 1:]", "{x}.t()", "{x}.view(-1)", "{x}.reshape(-1)", "{x}.unsqueeze(0)",
    "{x}.expand(2, 2, 3)", "{x}.expand(2, 3)", "{x}.detach()", "{x}.clone()", "{x}.data", "{x}.sum(0)", "{x}.mean()", "{x} ** 2",
    "torch.cat([{x}, {y}])", "torch.stack([{x}, {y}])", "{x}.unbind(0)[0]", "{x}.split(1)[0]", "{x}.squeeze()", "{x}",
    "{x}.max(0)[0]", "torch.where({x} > {y}, {x}, {y})", "{x} @ {y}", "{x}.clamp(-1, 1)", "{x}[[0, 0]]", "{x}.contiguous()",
    "torch.ones(2, 3).double().requires_grad_()",
]  # fmt: skip
WRITES = [
    "{x}.add_({y})", "{x}.mul_({y})", "{x}.mul_(0.5)", "{x}.sub_(1)", "{x}.zero_()", "{x}.fill_(2)", "{x}.sin_()", "{x}.tanh_()",
    "{x}[0] = {y}", "{x}[0] = 1.5", "{x}[...] = {y}", "{x}[:] = 0.25", "{x}[..., 0] = 3.", "{x}.copy_({y})", "{x}.relu_()",
    "{x}[0].add_(1)", "{x}.detach().mul_(2)", "{x} += {y}", "{x} *= 2",
]  # fmt: skip
OTHERS = [
    "{x}.retain_grad()", "{x}.grad = None", "{x}.sum().backward()",
    "{x}.sum().backward(retain_graph=True)", "({x} * {y}).sum().backward()", "{x}.backward(torch.ones_like({x}))",
    "numbers(*torch.autograd.grad({x}.sum(), [{y}], allow_unused=True, retain_graph=True))",
    "numbers(*torch.autograd.grad(({x} * {y}).sum(), [{y}]))", "{x}.sum().backward(inputs=[{y}])",
]  # fmt: skip


@st.composite
def lines(draw):
    kind = draw(st.sampled_from(["expression", "expression", "write", "other", "no_grad"]))
    names = {"x": draw(st.sampled_from(NAMES)), "y": draw(st.sampled_from(NAMES))}
    if kind == "other":
        return draw(st.sampled_from(OTHERS)).format(**names)
    if kind == "write":
        return draw(st.sampled_from(WRITES)).format(**names)
    line = f"{draw(st.sampled_from(NAMES[2:]))} = {draw(st.sampled_from(EXPRESSIONS))}".format(**names)
    if kind == "expression":
        return line
    copied = line + " + 0"  # not a view: of one made in no_grad, PyTorch records graphs that end nowhere
    return "with torch.no_grad(): " + draw(st.sampled_from([copied, draw(st.sampled_from(WRITES)).format(**names)]))


def program(written):
    """Each line may fail; after it, everything that can be seen of every variable is looked at."""
    body = "".join(
        f"try:\n    {line}\nexcept Exception as error: see((type(error).__name__, str(error)))\n"
        + "".join(f"attempt(lambda: {name})\n" for name in NAMES)
        for line in written
    )
    return START + body


@pytest.mark.torch
@settings(max_examples=120, derandomize=True, deadline=None)
@given(st.lists(lines(), min_size=1, max_size=8))
def test_as_pytorch(written):
    compare(program(written), rtol=1e-9, atol=1e-12)
