"""What the backward of a program's function returns: the number, the shapes and the order of its gradients."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
torch.manual_seed(0)
class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, INPUTS):
        ctx.save_for_backward(x, w)
        return x @ w.t() * k
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        k = 2.0
        RETURN
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.w = nn.Linear(3, 4), nn.Parameter(torch.randn(2, 4))
    def forward(self, x):
        x, w, k = self.body(x), self.w, 2.0
        return Scaled.apply(INPUTS)
net = Net()
net(torch.randn(5, 3)).sum().backward()
"""
X_W_K = "x, w, k"


def checked(checks, engine, inputs, returned):
    text = PROGRAM.replace("INPUTS", inputs).replace("RETURN", returned)
    found = [one.finding for one in checks.of_text(text, engine).found if one.level != "note"]
    return text, found


def row(text, one):
    return text.splitlines()[one.at.line - 1].strip()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("inputs", "returned", "lacks", "edited"),
    [
        (X_W_K, "return g @ w * k, g.t() @ x * k", "none for k", "return g @ w * k, g.t() @ x * k, None"),
        ("k, x, w", "return g @ w * k, g.t() @ x * k", "none for w", "return None, g @ w * k, g.t() @ x * k"),
        (X_W_K, "return (g @ w * k, g.t() @ x * k)", "none for k", "return g @ w * k, g.t() @ x * k, None"),
        (X_W_K, "return g @ w * k", "none for w, k", ""),
        (X_W_K, "sent = g @ w * k, g.t() @ x * k\n        return sent", "none for k", ""),
        (X_W_K, "return [one for one in (g @ w, g.t() @ x)]", "", ""),
        (X_W_K, "return g @ w * k, g.t() @ x * k, None, g", "1 too many", ""),
    ],
    ids=["last", "first", "in brackets", "an input that needs one", "a tuple", "a list", "too many"],
)
def test_the_return_is_named_with_the_input_that_lacks_a_gradient(inputs, returned, lacks, edited, engine, checks):
    text, found = checked(checks, engine, inputs, returned)
    if not found and "[" in returned:
        pytest.skip("PyTorch takes a list as one gradient")
    (one,) = found
    assert one.kind == "failed"
    if "[" not in returned:
        assert lacks in "\n".join(row for _, row, _ in lines(one))
        assert row(text, one) == returned.splitlines()[-1].strip()
    assert (one.edit.new.strip() if one.edit else "") == edited
    if edited:
        assert checks.of_text(one.edit.applied(text), engine).found == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_tensor_variable_gets_none_behind_it(engine, checks):
    returned = "grad = g * k\n        grad = grad @ w\n        return grad"
    text = PROGRAM.replace("self.w, 2.0", "self.w.detach(), 2.0").replace("INPUTS", X_W_K).replace("RETURN", returned)
    one = next(one.finding for one in checks.of_text(text, engine).found if one.level == "error")
    assert one.edit.diff() == ["-        return grad", "+        return grad, None, None"]
    assert "None for w, k, which need no gradient" in one.fix


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("returned", "says", "fix"),
    [
        ("return g @ w * k, x.t() @ g * k, None", "returns a gradient of shape (4,2) for w", "transpose it"),
        ("return g @ w * k, g, None", "returns a gradient of shape (5,2) for w", "in the shape (2,4)"),
    ],
)
def test_a_gradient_of_another_shape_is_named_at_its_expression(returned, says, fix, engine, checks):
    text, found = checked(checks, engine, X_W_K, returned)
    (one,) = found
    assert says in one.text
    assert fix in one.fix
    assert row(text, one) == returned
    expression = text.splitlines()[one.at.line - 1][one.at.column : one.at.end_column]
    assert expression == returned.removeprefix("return ").split(", ")[1]


@pytest.mark.parametrize("engine", ENGINES)
def test_of_several_returns_the_last_is_named(engine, checks):
    returned = "if k > 5:\n            return g, g, None\n        return g @ w, g, None"
    text, (one,) = checked(checks, engine, X_W_K, returned)
    assert "returns a gradient of shape (5,2) for w" in one.text
    assert row(text, one) == "return g @ w, g, None"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("returned", ["return g @ w", "return g @ w, g, None", "return g @ w, None, g.t() @ x"])
def test_two_functions_of_one_name_leave_the_message_as_it_is(returned, engine, checks):
    other = "def other():\n    class Scaled:\n        def forward(ctx): ...\n        def backward(ctx): ...\n"
    text = other + PROGRAM.replace("INPUTS", X_W_K).replace("RETURN", returned)
    (one,) = (one.finding for one in checks.of_text(text, engine).found if one.level == "error")
    assert "ScaledBackward returned" in one.text
    assert row(text, one) == "net(torch.randn(5, 3)).sum().backward()"


@pytest.mark.parametrize("engine", ENGINES)
def test_gradients_in_another_order_than_the_inputs_are_named(engine, checks):
    text, found = checked(checks, engine, X_W_K, "return g @ w, None, g.t() @ x")
    (one,) = found
    assert one.text == "Scaled.backward returns a gradient for k, which is no tensor"
    assert row(text, one) == "return g @ w, None, g.t() @ x"


@pytest.mark.parametrize("engine", ENGINES)
def test_none_for_an_input_that_is_trained_is_named(engine, checks):
    text, found = checked(checks, engine, "x, w, k", "return g @ w * k, None, None")
    one = next(one for one in found if one.kind == "not-reached")
    assert one.text.endswith("w got no gradient: Scaled.backward returns None for it")
    assert row(text, one) == "return g @ w * k, None, None"
    text, found = checked(checks, engine, "x, w, k", "return None, g.t() @ x * k, None")
    one = next(one for one in found if one.kind == "not-reached")
    assert "body.weight got no gradient" in one.text
    assert row(text, one) == "return None, g.t() @ x * k, None"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "returned", ["return g @ w * k, g.t() @ x * k, None", "return g @ w * k, g.t() @ x * k, None, None"]
)
def test_as_many_gradients_as_inputs_and_further_nones_are_right(returned, engine, checks):
    assert checked(checks, engine, X_W_K, returned)[1] == []
