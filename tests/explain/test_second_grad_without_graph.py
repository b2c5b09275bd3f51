"""A derivative of a derivative that was taken without ``create_graph=True``: the line of the first one is named."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
START = """
import torch
torch.manual_seed(0)
x = torch.rand(8, 1, requires_grad=True)
w = torch.rand(1, 1, requires_grad=True)
u = torch.tanh(x @ w)
"""
HELPER = """
def derivative(y, x):
    return torch.autograd.grad(y, x, grad_outputs=torch.ones_like(y), retain_graph=True)[0]  #!
"""
SICK = {
    "a helper called twice": f"{HELPER}u_x = derivative(u, x)\nu_xx = derivative(u_x, x)\n",
    "a sum of the slope": (
        "u_x = torch.autograd.grad(u.sum(), x)[0]  #!\nu_xx = torch.autograd.grad(u_x.sum(), x, create_graph=True)[0]\n"
    ),
    "unpacked, under another name": (
        "(slope,) = torch.autograd.grad(u.sum(), [x])  #!\ntotal = (slope * 2.0).sum()\n"
        "(curve,) = torch.autograd.grad(total, [x], create_graph=True)\n"
    ),
    "backward of the slope": "u_x = torch.autograd.grad(u.sum(), x)[0]  #!\n(u_x - 1.0).pow(2).mean().backward()\n",
}
RIGHT = {
    "with a graph": SICK["a helper called twice"].replace("retain_graph", "create_graph").replace("  #!", "")
    + "(u_xx - 1.0).pow(2).mean().backward()\nprint(w.grad)\n",
    "one derivative": "u_x = torch.autograd.grad(u.sum(), x)[0]\nprint(u_x)\n",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", SICK)
def test_the_first_grad_is_named(name, engine, checks):
    text = START + SICK[name]
    (one,) = [each for each in checks.of_text(text, engine).found if each.level == "error"]
    assert one.finding.kind == "untracked-loss"
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    words = "\n".join(row for _, row, _ in lines(one.finding))
    assert "create_graph=True" in words
    assert ("backward was called" if "backward" in name else "autograd.grad was called") in words
    (edit,) = {each.edit for each in (one.finding, *one.finding.parts)} - {None}
    mended = checks.of_text(edit.applied(text), engine)
    assert (mended.errors, [each for each in mended.found if each.level == "error"]) == ([], [])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", RIGHT)
def test_derivatives_that_may_be_taken_have_no_finding(name, engine, checks):
    right = checks.of_text(START + RIGHT[name], engine)
    assert (right.errors, [each for each in right.found if each.level == "error"]) == ([], [])
