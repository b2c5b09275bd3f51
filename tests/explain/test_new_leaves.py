"""Leaves that a loss makes from the output of a model: they end the path to it, although they require a gradient."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
TORCH = [pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(30, 40), nn.Linear(40, 20)
    def forward(self, x):
        return self.b(torch.tanh(self.a(x)))
def thresholded(p):
    return NEW  #!
class Loss(nn.Module):
    def forward(self, out, y):
        p = thresholded(out)
        return (p - y).pow(2).mean()
net, loss_fn = Net(), Loss()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    x, y = torch.randn(16, 30), torch.rand(16, 20)
    opt.zero_grad()
    pred = net(x)
    loss = loss_fn(pred, y)
    loss.backward()
    opt.step()
"""
CASES = [
    ("torch.tensor((p > 0.5).type(p.dtype), requires_grad=True)", "not through indices, comparisons", TORCH),
    ("torch.tensor((p > 0.5).float().tolist(), requires_grad=True)", "not through indices, comparisons", ENGINES),
    ("torch.tensor(p.tolist(), requires_grad=True)", "compute the loss with tensors throughout", ENGINES),
    ("torch.tensor(p.round().detach().numpy(), requires_grad=True)", "", ENGINES),
    ("torch.tensor(p, requires_grad=True)", "compute the loss with tensors throughout", TORCH),
    ("torch.autograd.Variable(p.data, requires_grad=True)", "", TORCH),
    ("torch.from_numpy(p.detach().cpu().numpy()).requires_grad_()", "", TORCH),
    ("p.detach().clone().requires_grad_()", "", ENGINES),
]


@pytest.mark.parametrize(
    ("new", "fix", "engine"),
    [pytest.param(new, fix, *getattr(engine, "values", [engine]), marks=getattr(engine, "marks", ()))
     for new, fix, engines in CASES for engine in engines],
)  # fmt: skip
def test_the_line_that_makes_the_leaf_is_named(new, fix, engine, checks):
    text = PROGRAM.replace("NEW", new)
    (one,) = checks.of_text(text, engine).found
    assert (one.level, one.finding.kind in ("cut", "not-reached")) == ("warning", True)
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert fix in str(one)
    assert all("y at" not in row for row in str(one).splitlines())


@pytest.mark.parametrize("engine", ENGINES)
def test_the_line_is_named_although_a_copy_of_the_model_gets_gradients(engine, checks):
    text = PROGRAM.replace("NEW", "torch.tensor(p.tolist(), requires_grad=True)")
    text = text.replace("import torch\n", "import copy\nimport torch\n", 1)
    text = text.replace("net, loss_fn = Net(), Loss()", "net, loss_fn = Net(), Loss()\ntwin = copy.deepcopy(net)")
    text = text.replace("net.parameters()", "[*net.parameters(), *twin.parameters()]")
    text = text.replace("loss_fn(pred, y)", "loss_fn(pred, y) + (twin(x) - y).pow(2).mean()")
    (one,) = checks.of_text(text, engine).found
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert "as a copy does" not in str(one)


@pytest.mark.torch
def test_a_variable_of_data_is_replaced_as_a_whole(checks):
    text = PROGRAM.replace("NEW", "torch.autograd.Variable(p.data, requires_grad=True)")
    (one,) = checks.of_text(text, "torch").found
    edit = one.finding.edit or one.finding.parts[0].edit
    assert edit.diff()[1].strip("+ ") == "return p  #!"
    assert checks.of_text(edit.applied(text), "torch").found == []


HEALTHY = {
    "a gradient by a leaf that is sent on to the model": """
    leaf = pred.detach().clone().requires_grad_()
    (leaf - y).pow(2).mean().backward()
    pred.backward(leaf.grad)
    opt.step()
""",
    "a measure of thresholded numbers": """
    score = (torch.tensor((pred > 0.5).float().tolist()) == y).float().mean().item()
    loss = (pred - y).pow(2).mean()
    loss.backward()
    opt.step()
""",
    "an attack on data, which is a leaf with the numbers of its batch": """
    adv = torch.tensor(x.tolist(), requires_grad=True)
    (net(adv) - y).pow(2).mean().backward()
    opt.step()
""",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", HEALTHY)
def test_leaves_that_are_right_are_left_alone(name, engine, checks):
    text = PROGRAM.replace("NEW", "p").partition("    pred = net(x)\n")[0] + "    pred = net(x)" + HEALTHY[name]
    assert [str(one) for one in checks.of_text(text, engine).found] == []
