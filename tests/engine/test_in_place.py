"""Writes in place and views, with PyTorch's results written down: they hold where PyTorch is not installed, too."""

from importlib import import_module

import pytest

PROGRAMS = [
    ("w=leaf([1.,2.,3.]); y=w*1; y[0]=5.; (y*y).sum().backward(); see(w.grad)", [[0.0, 4.0, 6.0]]),
    (
        "w=leaf([1.,2.,3.]); y=w*1; y[1:]*=2; (y*y).sum().backward(); see(y, w.grad)",
        [[1.0, 4.0, 6.0], [2.0, 16.0, 24.0]],
    ),
    (
        "w=leaf([[1.,2.],[3.,4.]]); y=w*1; y.t()[0]=9.; y.sum().backward(); see(y, w.grad)",
        [[[9.0, 2.0], [9.0, 4.0]], [[0.0, 1.0], [0.0, 1.0]]],
    ),
    ("w=leaf([1.,2.]); y=w*2; v=y[0]; y.mul_(3); v.backward(); see(v, w.grad)", [6.0, [6.0, 0.0]]),
    ("w=leaf([1.,2.]); y=w*2; v=y[0]; v.mul_(3); y.sum().backward(); see(y, w.grad)", [[6.0, 4.0], [6.0, 2.0]]),
    (
        "w=leaf([1.,2.]); y=w.exp(); y.add_(1); y.sum().backward()",
        ["RuntimeError: one of the variables needed for gradient computation has been modified"],
    ),
    ("w=leaf([1.,2.]); y=w.clone(); y.square_(); y.sum().backward(); see(w.grad)", [[2.0, 4.0]]),
    (
        "w=leaf([1.,2.]); w.add_(1)",
        ["RuntimeError: a leaf Variable that requires grad is being used in an in-place operat"],
    ),
    (
        "w=leaf([1.,2.]); w[0]=3.",
        ["RuntimeError: a view of a leaf Variable that requires grad is being used in an in-pl"],
    ),
    (
        "w=leaf([1.,2.,3.,4.]).reshape(2,2); w.retain_grad(); w.relu_().sum().backward(); see(w.grad)",
        ["RuntimeError: a view of a leaf Variable that requires grad is being used in an in-pl"],
    ),
    ("x=torch.zeros(2,2); x[0].add_(1); x[:,1].mul_(5); see(x, x._version)", [[[1.0, 5.0], [0.0, 0.0]], 2]),
    ("x=torch.arange(4.); x.view(2,2).t().fill_(7.); see(x, x._version)", [[7.0, 7.0, 7.0, 7.0], 1]),
    (
        "w=leaf([1.,2.]); x=torch.zeros(2); x.copy_(w); x.sum().backward(); see(w.grad, x.requires_grad)",
        [[1.0, 1.0], True],
    ),
    ("w=leaf([1.,2.]); x=torch.zeros(3); x[1:]=w*w; x.sum().backward(); see(x, w.grad)", [[0.0, 1.0, 4.0], [2.0, 4.0]]),
    (
        "w=leaf([3.,1.]); y=w*1; y.masked_fill_(torch.tensor([True, False]), 0.); y.sum().backward(); see(y, w.grad)",
        [[0.0, 1.0], [0.0, 1.0]],
    ),
    ("w=leaf([3.,1.]); y=w*w; y.detach().zero_(); y.sum().backward(); see(y, w.grad)", [[0.0, 0.0], [6.0, 2.0]]),
    (
        "w=leaf([3.,1.]); y=w*w; z=y*y; y.detach().zero_(); z.sum().backward()",
        ["RuntimeError: one of the variables needed for gradient computation has been modified"],
    ),
    (
        "w=leaf([1.,2.]); y=w*1; a,b=y.unbind(); a.mul_(2)",
        ["RuntimeError: Output 0 of Unbind is a view and is being modified inplace. This view "],
    ),
    (
        "w=leaf([1.,2.]); y=w.expand(2,2); y.mul_(2)",
        ["RuntimeError: a view of a leaf Variable that requires grad is being used in an in-pl"],
    ),
    (
        "w=leaf([1.,2.]); y=w*3; y.requires_grad_(False)",
        ["RuntimeError: you can only change requires_grad flags of leaf variables. If you want"],
    ),
]


def seen(package, program):
    """What a program shows under ``torch`` or the engine, and the beginning of the error that ends it."""
    torch, shown = import_module(package), []

    def see(*values):
        shown.extend(value.tolist() if hasattr(value, "tolist") else value for value in values)

    try:
        exec(program, {"torch": torch, "see": see, "leaf": lambda numbers: torch.tensor(numbers, requires_grad=True)})
    except RuntimeError as error:
        shown.append("RuntimeError: " + str(error).split("\n")[0][:70])
    return shown


@pytest.mark.parametrize("package", ["gviz.engine", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize(("program", "shown"), PROGRAMS)
def test_writes_in_place(program, shown, package):
    assert seen(package, program) == shown
