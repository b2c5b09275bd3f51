"""Terms of a loss that compare a tensor with itself, and terms that are small or 0 for other reasons."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
HEAD = """
import copy
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
x, y = torch.randn(12, 5), torch.arange(12) % 3
teacher = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))
student, drop = nn.Linear(5, 3), nn.Dropout(0.3)
average = copy.deepcopy(student)
opt = torch.optim.SGD(student.parameters(), lr=0.1)
DEF
for step in range(3):
    with torch.no_grad():
        goal = teacher(x)
    out = student(x)
    LOSS
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def program(loss, functions=""):
    return HEAD.replace("LOSS", loss.replace("\n", "\n    ")).replace("DEF", functions)


CE = "loss = F.cross_entropy(out, y) + "
DISTILL = """
class Distill(nn.Module):
    def __init__(self, T=2.0):
        super().__init__()
        self.T, self.kl = T, nn.KLDivLoss(reduction="batchmean")

    def forward(self, student_logits, teacher_logits, labels):
        p = F.softmax(teacher_logits / self.T, 1)
        q = F.log_softmax(teacher_logits / self.T, 1)  #!
        return F.cross_entropy(student_logits, labels) + self.T ** 2 * self.kl(q, p)


distill = Distill()
"""
BY_HAND = """
def divergence(one, other):
    p = one.softmax(-1)
    return (p * (p.log() - other.log_softmax(-1))).sum(-1).mean()  #!
"""
MISTAKES = {
    "a teacher and itself in a module": (program("loss = distill(out, goal, y)", DISTILL), "warning", "goal", ""),
    "a teacher and itself": (
        program("soft = F.log_softmax(goal / 4, dim=-1)  #!\n" + CE +
                "16 * F.kl_div(soft, F.softmax(goal / 4, dim=-1), reduction='batchmean')"),
        "warning", "goal", "F.log_softmax(out / 4, dim=-1)"),
    "logarithms of both": (
        program("kl = F.kl_div(F.log_softmax(goal, 1), F.log_softmax(goal, 1), reduction='sum', log_target=True)  #!\n"
                + CE + "kl"),
        "warning", "goal", ""),
    "a divergence by hand": (program(CE + "divergence(goal, goal)", BY_HAND), "warning", "goal", ""),
    "a mean of squares": (program("hint = F.mse_loss(goal, goal)  #!\n" + CE + "0.5 * hint"), "warning", "goal", ""),
    "squares by hand": (
        program("hint = ((goal - goal.clone()) ** 2).sum(1).mean()  #!\n" + CE + "hint"), "warning", "goal", ""),
    "a model that is called twice": (
        program("with torch.no_grad():\n    again = teacher(x)  #!\n" + CE + "F.l1_loss(again, goal)"),
        "warning", "the same computation", ""),
    "an output and its copy": (
        program("same = F.smooth_l1_loss(out, out.detach())  #!\n" + CE + "same"), "note", "out", ""),
    "an anchor as its own positive": (
        program("away = F.triplet_margin_loss(out, out, out.roll(1, 0), margin=2.0)  #!\n" + CE + "away"),
        "warning", "anchor and positive are", ""),
    "a module of triplets": (
        program("away = triplets(out, out, out.roll(1, 0))  #!\n" + CE + "0.5 * away",
                "triplets = nn.TripletMarginLoss(margin=2.0)"), "warning", "anchor and positive are", ""),
    "a contrastive loss of one view": (
        program("d = (out - out).norm(dim=1)  #!\nfar = (out - out.roll(1, 0)).norm(dim=1)\n" + CE +
                "(d.pow(2) + F.relu(3 - far).pow(2)).mean()"),
        "note", "both operands are", ""),
    "a hinge by hand": (
        program("near = (out - out).pow(2).sum(1)  #!\nfar = (out - out.roll(1, 0)).pow(2).sum(1)\n" + CE +
                "torch.clamp(near - far + 9.0, min=0).mean()"),
        "note", "both operands are", ""),
    "a follower that is the model itself": (
        program("with torch.no_grad():\n    slow = follower(x)  #!\n" + CE + "F.mse_loss(out, slow)",
                "follower = student"),
        "note", "the same computation", ""),
}  # fmt: skip
KL = "F.kl_div(F.log_softmax(out, 1), F.softmax(goal, 1), reduction='batchmean')"
HEALTHY = {
    "a triplet of another sample": program(
        CE + "F.triplet_margin_loss(out, out.roll(3, 0), out.roll(1, 0), margin=2.0)"),
    "a class of one sample that is its own positive": program(
        "at = torch.tensor([3, 4, 5, 0, 1, 2, 9, 10, 8, 6, 7, 11])\n" + CE
        + "F.triplet_margin_loss(out, out[at], out.roll(1, 0), margin=2.0)"),
    "triplets of rows of which one is its own positive": program(
        CE + "sum(F.triplet_margin_loss(out[a], out[p], out[n], margin=2.0) for a, p, n in ((0, 0, 1), (1, 4, 0)))"),
    "triplets of lists of which one has the anchor": program(
        "rows = [out[:4], out[4:8], out[8:]]\n" + CE +
        "sum(F.triplet_margin_loss(rows[0], each, rows[2], margin=2.0) for each in rows[:2])"),
    "two draws of a dropout in triplets": program(
        CE + "F.triplet_margin_loss(drop(out), drop(out), out.roll(1, 0), margin=2.0)"),
    "a straight-through gradient in a norm": program(CE + "(goal - (out - (out - out.round()).detach())).norm()"),
    "a distance of every pair": program(CE + "F.relu(1 - (out[:, None] - out[None]).norm(dim=2)).mean()"),
    "a student and a teacher": program(CE + KL),
    "a follower that begins as a copy": program(
        "with torch.no_grad():\n    slow = average(x)\n" + CE + "F.mse_loss(out, slow)"),
    "two draws of a dropout": program(CE + "F.mse_loss(drop(out), drop(out))"),
    "a weight of 0": program(CE + f"0.0 * {KL}"),
    "a gradient that passes straight through": program("out = out + (out.round() - out).detach()\n" + CE + "0"),
    "a ratio of 1 to the old probabilities": program(
        "log = F.log_softmax(out, 1)\n" + CE + "-((log - log.detach()).exp() * goal).mean()"),
    "a difference with a gradient": program("loss = ((out - out.detach()) * goal).mean()"),
    "neighbours in a row": program(CE + "(out[:, 1:] - out[:, :-1]).pow(2).mean()"),
    "every pair of rows": program(CE + "(out[:, None] - out[None]).abs().mean()"),
    "a matrix and its transpose": program(CE + "(out.T @ out - (out.T @ out).T).pow(2).sum() * 0.1"),
    "a divergence that is only read": program(
        "read = F.kl_div(F.log_softmax(goal, 1), F.softmax(goal, 1), reduction='batchmean')\n"
        "loss = F.cross_entropy(out, y)"),
    "predictions before and after a step": program(
        "with torch.no_grad():\n    old = student(x)\nF.cross_entropy(student(x), y).backward()\nopt.step()\n"
        "loss = F.mse_loss(student(x), old)").replace("lr=0.1", "lr=0.00001"),
    "a number minus itself": program(CE + "(out.sum() - out.sum())"),
    "two temperatures": program(
        CE + "F.kl_div(F.log_softmax(goal / 2, 1), F.softmax(goal, 1), reduction='batchmean')"),
    "an entropy": program(CE + "0.1 * (F.softmax(out, 1) * F.log_softmax(out, 1)).sum(1).mean()"),
}  # fmt: skip


def found(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == "self-comparison"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", MISTAKES)
def test_a_comparison_with_itself_is_found(name, engine, checks):
    text, level, words, mended = MISTAKES[name]
    (one,) = found(text, engine, checks)
    assert one.level == level
    assert words in "\n".join(row for _, row, _ in lines(one.finding))
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    edit = one.finding.edit
    assert (edit is not None) is bool(mended)
    assert mended in (edit.new if edit is not None else "")
    assert edit is None or found(edit.applied(text), engine, checks) == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", HEALTHY)
def test_a_term_that_compares_two_tensors_is_not_found(name, engine, checks):
    assert [str(one) for one in found(HEALTHY[name], engine, checks)] == []


MEMORY = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
kept = {}
class Diff(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {"lr": 0.1})
    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                grad, state = p.grad.data, self.state[p]
                if len(state) == 0:
                    state["old"] = torch.zeros_like(p)
                friction = torch.sigmoid((state["old"] - grad).abs())
                state["old"] = KEPT
                p.data.add_(friction * grad, alpha=-0.1)
mine = Diff(net.parameters())
def train():
    opt.zero_grad(set_to_none=False)
    F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
for i in range(4):
    BODY
"""
STEP = "train()\nopt.step()\n"
SHARED = {
    "the state of an optimizer": ("train()\nmine.step()", "grad"),
    "the gradient itself": (
        "train()\nif kept:\n    print((net[0].weight.grad - kept['g']).norm())\n"
        "kept['g'] = net[0].weight.grad\nopt.step()",
        "grad.clone()",
    ),
    "weights from before a step": (
        "old = net[0].weight.data\n" + STEP + "print((net[0].weight.data - old).abs().max())",
        "grad.clone()",
    ),
    "a state dict": (
        "old = net.state_dict()\n" + STEP + "print(sum((net.state_dict()[k] - v).norm() for k, v in old.items()))",
        "grad.clone()",
    ),
    "parameters in a list": (
        "old = [p.detach() for p in net.parameters()]\n"
        + STEP
        + "with torch.no_grad():\n    print([(p - q).norm() for p, q in zip(net.parameters(), old)])",
        "grad.clone()",
    ),
}
COPIED = {
    "a copy of the gradient": ("train()\nmine.step()", "grad.clone()"),
    "a copy of the weights": (
        "old = net[0].weight.data.clone()\n" + STEP + "print((net[0].weight.data - old).abs().max())",
        "grad.clone()",
    ),
    "a straight-through estimate": (
        STEP + "y = net(torch.randn(8, 4))\nloss = (y.round().detach() + y - y.detach()).mean()\nprint(loss)",
        "grad.clone()",
    ),
    "a frozen weight": (
        "net[0].requires_grad_(False)\nold = net[0].weight.data\n" + STEP + "print((net[0].weight.data - old).norm())",
        "grad.clone()",
    ),
    "zeros of a tensor": ("x = torch.randn(3)\nx.mul_(2)\nzeros = x - x\n" + STEP, "grad.clone()"),
    "two halves of one tensor": (
        "x = torch.zeros(2, 3)\na = x[0]\nx.add_(1)\nprint(x[1] - a)\n" + STEP,
        "grad.clone()",
    ),
    "gradients of two iterations": (
        "opt.zero_grad()\ntrain()\ng = net[0].weight.grad.clone()\nif kept:\n    print((g - kept['g']).norm())\n"
        "kept['g'] = g\nopt.step()",
        "grad.clone()",
    ),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", SHARED)
def test_an_old_and_a_new_value_in_one_memory_are_found(name, engine, checks):
    body, kept = SHARED[name]
    text = MEMORY.replace("BODY", body.strip().replace("\n", "\n    ")).replace("KEPT", kept)
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    (one,) = [each for each in outcome.found if each.finding.kind == "self-comparison"]
    assert one.level == "warning"
    assert "both operands are one memory" in one.finding.parts[0].text
    assert ".clone()" in one.finding.fix
    if name == "the state of an optimizer":
        assert one.finding.edit.new.strip() == 'state["old"] = grad.clone()'
    if one.finding.edit is not None:
        after = checks.of_text(one.finding.edit.applied(text), engine)
        assert [str(each) for each in after.found if each.finding.kind == "self-comparison"] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", COPIED)
def test_copies_and_equal_numbers_elsewhere_are_left_out(name, engine, checks):
    body, kept = COPIED[name]
    text = MEMORY.replace("BODY", body.strip().replace("\n", "\n    ")).replace("KEPT", kept)
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    assert [str(each) for each in outcome.found if each.finding.kind == "self-comparison"] == []


TIED = """import torch
from torch import nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.out = nn.Embedding(6, 4), nn.Linear(4, 6, bias=False)
        self.out.weight = self.emb.weight
    def forward(self, x):
        return self.out(self.emb(x))
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    x = torch.randint(0, 6, (8,))
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), (x + 1) % 6).backward()
    opt.step()
    gap = (net.emb.weight - net.out.weight).abs().max()
"""


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
def test_a_test_whether_weights_are_tied_is_no_comparison_with_itself(engine, checks):
    assert "self-comparison" not in {each.finding.kind for each in checks.of_text(TIED, engine).found}


STEPS_FROM_DIFFERENCES = """
import torch
torch.manual_seed(0)
class Own(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, dict(lr=lr))
    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state, lr = self.state[p], group["lr"]
                if "old" in state:
                    s = p - state["old"]
                    lr = min(lr, float((s * s).sum()) + 0.001)
                state["old"] = KEPT  #!
                p.add_(p.grad, alpha=-lr)
w = torch.ones(3, requires_grad=True)
opt = Own([w], lr=0.1)
for step in range(4):
    opt.zero_grad()
    loss = ((w - torch.arange(3.0)) ** 2).sum()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kept", ["p.detach()", "p.data", "p[:]"])
def test_an_optimizer_that_keeps_its_parameter_itself_gets_a_copy(kept, engine, checks):
    text = STEPS_FROM_DIFFERENCES.replace("KEPT", kept)
    (one,) = [each for each in checks.of_text(text, engine).found if each.finding.kind == "self-comparison"]
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert one.finding.edit.new.strip().startswith(f'state["old"] = {kept}.clone()')
    after = checks.of_text(one.finding.edit.applied(text), engine)
    assert [str(each) for each in after.found if each.finding.kind == "self-comparison"] == []
