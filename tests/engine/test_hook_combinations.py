"""Hooks of all kinds, retained gradients and multi-gradient hooks in whole and limited passes, against PyTorch.

Random programs hang hooks on a small graph, walk it in several ways, and note who ran, in which order, with what.
"""

import os
import random

import pytest
from twin import assert_all_same, run

START = """
import torch
from torch.autograd.graph import get_gradient_edge, register_multi_grad_hook
u = torch.tensor([3., 1.], requires_grad=True)
x = torch.tensor([1., 2.], requires_grad=True)
y = x * 2
z = y * y
w = z + u
s, t = torch.stack([z, w]).unbind(0)
c = torch.ones(2)
handles = []
ones = torch.ones(2)
def noted(name, factor=None):
    def hook(*grads):
        see(name)
        for grad in grads: numbers(*(grad if isinstance(grad, (tuple, list)) else [grad]))
        return None if factor is None else grads[0] * factor
    return hook
def grow():
    global y, z, w, s, t
    y = x * 2; z = y * y; w = z + u; s, t = torch.stack([z, w]).unbind(0)
"""
TENSORS = ["x", "u", "y", "z", "w", "s", "t"]
LOOK = "numbers(*[one.grad for one in (x, u, y, z, w, s, t)])\n"
MORE = int(os.environ.get("GVIZ_FUZZ", "0"))


def hung(chosen):
    """A hook of any kind on any tensor."""
    one = chosen.choice(TENSORS)
    several = ", ".join(chosen.choices(TENSORS, k=chosen.randint(1, 3)))
    return chosen.choice(
        [
            f"{one}.register_hook(noted('tensor {one}'))",
            f"{one}.register_hook(noted('tensor {one}', 2))",
            f"{one}.retain_grad()",
            f"{one}.retain_grad()",
            f"{one}.grad_fn.register_prehook(noted('pre {one}'))",
            f"{one}.grad_fn.register_hook(noted('post {one}'))",
            f"get_gradient_edge({one}).node.register_prehook(noted('pre {one}'))",
            f"{one}.register_post_accumulate_grad_hook(lambda leaf: noted('accumulated {one}')(leaf.grad))",
            f"handles.append(register_multi_grad_hook([{several}], noted('all {several}')))",
            f"handles.append(register_multi_grad_hook(({several},), noted('any {several}'), mode='any'))",
            f"register_multi_grad_hook([{several}], noted('gone {several}')).remove()",
            f"register_multi_grad_hook([{several}, c], noted('any {several}, c'), mode='any')",
            f"register_multi_grad_hook([{several}, c], noted('all {several}, c'))",
        ]
    )


def walked(chosen):
    """A pass of any kind, from any root, limited to any tensors."""
    root, other, wanted = (chosen.choice(TENSORS) for _ in range(3))
    more = ", ".join(chosen.sample(TENSORS, k=chosen.randint(1, 3)))
    return chosen.choice(
        [
            f"{root}.backward(ones, retain_graph=True)",
            f"{root}.backward(ones, inputs=[{wanted}], retain_graph=True)",
            f"{root}.backward(ones, inputs=[{more}], retain_graph=True)",
            f"{root}.backward(ones, inputs=[{wanted}], create_graph=True)",
            f"torch.autograd.backward([{root}, {other}], [ones, ones], retain_graph=True)",
            f"torch.autograd.backward([{root}, {other}], [ones, ones], inputs=[{wanted}], retain_graph=True)",
            f"numbers(*torch.autograd.grad({root}, [{wanted}], ones, retain_graph=True))",
            f"numbers(*torch.autograd.grad({root}, [{more}], ones, retain_graph=True, allow_unused=True))",
            f"numbers(*torch.autograd.grad([{root}, {other}], [{more}], [ones, ones], retain_graph=True, allow_unused=True))",
            f"numbers(*torch.autograd.grad({root}, [{more}], ones, create_graph=True, allow_unused=True))",
            f"numbers(*torch.autograd.grad({root}, [get_gradient_edge({wanted})], ones, retain_graph=True, allow_unused=True))",
            f"{root}.backward(ones)",
        ]
    )


def written(chosen):
    lines = ["del y, z, w, s, t; y = z = w = s = t = c"] if chosen.random() < 0.3 else []
    lines += [hung(chosen) for _ in range(chosen.randint(1, 5))]
    if lines[0].startswith("del"):
        lines.append("grow()")  # the hooks of the leaves came before any graph
    for _ in range(chosen.randint(1, 3)):
        lines.append(walked(chosen))
        if chosen.random() < 0.3:
            lines.append(chosen.choice(["grow()", "handles and handles.pop().remove()", hung(chosen)]))
    tried = "".join(f"try:\n    {line}\nexcept Exception as e: see(type(e).__name__, str(e))\n{LOOK}" for line in lines)
    return START + tried


@pytest.mark.torch
@pytest.mark.parametrize("number", range(10))
def test_as_pytorch(number):
    chosen = random.Random(None if MORE else f"hooks {number}")
    for _ in range(MORE or 30):
        text = written(chosen)
        try:
            assert_all_same(run(text, "torch"), run(text, "gviz.engine"), rtol=1e-6, atol=1e-6)
        except AssertionError as difference:
            raise AssertionError(f"{difference}\n{text.removeprefix(START)}") from None


@pytest.mark.parametrize("mode", ["all", "any"])
def test_a_multi_grad_hook_on_leaves_that_nothing_has_used(mode):
    program = f"""
import torch
a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
h = torch.autograd.graph.register_multi_grad_hook((a, b), lambda g: see('called'), mode='{mode}')
for _ in range(2): (a * b).sum().backward()
(a * 2).sum().backward()
h.remove()
(a * b).sum().backward()
"""
    assert run(program, "gviz.engine")[:-1] == ["called"] * 3


@pytest.mark.parametrize(
    "walk", ["y.backward(torch.ones(2), inputs=[u])", "torch.autograd.grad(y, u, torch.ones(2), allow_unused=True)"]
)
def test_a_root_keeps_its_gradient_also_where_nothing_is_wanted_of_it(walk):
    program = f"""
import torch
x, u = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
y = x * 2
y.retain_grad()
y.register_hook(lambda g: see('called'))
{walk}
see(y.grad.tolist(), x.grad, u.grad)
"""
    assert run(program, "gviz.engine")[:-1] == ["called", [1.0, 1.0], None, None]
