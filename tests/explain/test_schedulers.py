"""Schedulers that start again in a resumed training, or that act on the optimizer of another model."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
RESUMED = """
import copy
import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR, StepLR
F = nn.functional
torch.manual_seed(0)
x, y = torch.randn(16, 4), torch.randn(16, 1)

def load(path, model, opt):
    model.load_state_dict(path["model"])
    opt.load_state_dict(path["opt"])
    return path["epoch"] + 1

def train(ckpt=None, end=6):
    net, first = nn.Linear(4, 1), 0
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    LOAD
    for epoch in range(first, end):
        loss = F.mse_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        ckpt = {"epoch": epoch, "model": copy.deepcopy(net.state_dict()), "opt": copy.deepcopy(opt.state_dict()),
                "sched": sched.state_dict()}
    return ckpt

last = train(end=3)
train(AGAIN)
"""
LOAD = """if ckpt:
        net.load_state_dict(ckpt["model"])
        opt.load_state_dict(ckpt["opt"])
        first = ckpt["epoch"] + 1"""
FACTOR = "lambda n: 0.8 ** n"


def resumed(load, again="last"):
    return RESUMED.replace("LOAD", load).replace("AGAIN", again)


RESTARTED = {
    "in one function": (resumed(f"{LOAD}\n    sched = LambdaLR(opt, {FACTOR})  #!"), True),
    "with a function that loads": (
        resumed(f"if ckpt:\n        first = load(ckpt, net, opt=opt)\n    sched = LambdaLR(opt, {FACTOR})  #!"), True),
    "with a number that comes too late": (
        resumed(f"{LOAD}\n    sched = LambdaLR(opt, {FACTOR})  #!\n    sched.last_epoch = first"), True),
}  # fmt: skip
TRAINER = """
import copy
import torch
from torch import nn
torch.manual_seed(0)
class Trainer:
    def __init__(self):
        self.net = nn.Linear(4, 1)
        self.opt = torch.optim.Adam(self.net.parameters(), lr=0.1)
    def load(self, state):
        self.net.load_state_dict(state["net"])
        self.opt.load_state_dict(state["opt"])
    def fit(self, epochs):
        self.sched = torch.optim.lr_scheduler.LambdaLR(self.opt, lambda n: 1 / (1 + n))  #!
        for epoch in range(epochs):
            loss = self.net(torch.randn(8, 4)).pow(2).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.sched.step()
        return copy.deepcopy({"net": self.net.state_dict(), "opt": self.opt.state_dict()})
state = Trainer().fit(4)
other = Trainer()
other.load(state)
other.fit(3)
"""
RESTARTED["in a class"] = TRAINER, False
CONTINUED = {
    "the last epoch": resumed(f"{LOAD}\n    sched = LambdaLR(opt, {FACTOR}, last_epoch=first - 1)"),
    "the state of the scheduler": resumed(
        f"{LOAD}\n    sched = LambdaLR(opt, {FACTOR})\n    if ckpt:\n        sched.load_state_dict(ckpt['sched'])\n"
        "        for group, rate in zip(opt.param_groups, sched.get_last_lr()):\n            group['lr'] = rate"),
    "the state of the scheduler only": resumed(
        f"{LOAD}\n    sched = LambdaLR(opt, {FACTOR})\n    if ckpt:\n        sched.load_state_dict(ckpt['sched'])"),
    "another layer first": resumed(f"{LOAD}\n    sched = LambdaLR(opt, {FACTOR})", "None").replace(
        "net, first = nn.Linear(4, 1), 0", "net, first = deep, 0").replace(
        "SGD(net.parameters()", "SGD(list(net.parameters())[2 if end == 3 else 0:]").replace(
        "\ndef load", "\ndeep = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))\n\ndef load"),
    "made before the state is loaded": resumed(f"sched = LambdaLR(opt, {FACTOR})\n    {LOAD}"),
    "a schedule that keeps the rate": resumed(f"{LOAD}\n    sched = StepLR(opt, 1, 0.8)"),
    "another training from the start": resumed(f"{LOAD}\n    sched = LambdaLR(opt, {FACTOR})", "None"),
    "fine-tuning without the state of the optimizer": resumed(
        f"if ckpt:\n        net.load_state_dict(ckpt['model'])\n    sched = LambdaLR(opt, {FACTOR})"),
}  # fmt: skip
PAIR = """
import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, MultiStepLR, StepLR
F = nn.functional
torch.manual_seed(0)
gen, disc = nn.Linear(3, 4), nn.Linear(4, 1)
opt_g = torch.optim.SGD(gen.parameters(), lr=0.1)
opt_d = torch.optim.Adam(disc.parameters(), lr=0.01)
SCHEDULES
for epoch in range(6):
    fake, real = gen(torch.randn(8, 3)), torch.randn(8, 4)
    loss_d = F.softplus(-disc(real)).mean() + F.softplus(disc(fake.detach())).mean()
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()
    loss_g = F.softplus(-disc(fake)).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    STEP
"""


def pair(schedules, step="sched_g.step(); sched_d.step()"):
    return PAIR.replace("SCHEDULES", schedules).replace("STEP", step)


DOUBLED = {
    "the discriminator's on the generator": (
        pair("sched_g = StepLR(opt_g, 2, 0.5)\nsched_d = StepLR(opt_g, 2, 0.5)  #!"), "warning", "StepLR(opt_d, 2"),
    "the generator's on the discriminator": (
        pair("sched_g = MultiStepLR(opt_d, milestones=[2], gamma=0.5)  #!\n"
             "sched_d = MultiStepLR(opt_d, milestones=[2], gamma=0.5)"), "warning", "MultiStepLR(opt_g, m"),
    "in a function": (
        pair("def schedulers(first, second):\n    one = StepLR(first, step_size=2)\n"
             "    two = StepLR(first, step_size=2)  #!\n    return one, two\n"
             "sched_g, sched_d = schedulers(opt_g, second=opt_d)"), "warning", "two = StepLR(second, "),
    "of other numbers": (
        pair("sched_g = StepLR(optimizer=opt_g, step_size=2)\nsched_d = StepLR(optimizer=opt_g, step_size=3)  #!"),
        "note", "optimizer=opt_d"),
}  # fmt: skip
OF_EACH = {
    "one of each": pair("sched_g = StepLR(opt_g, 2, 0.5)\nsched_d = StepLR(opt_d, 2, 0.5)"),
    "only one": pair("sched_g = StepLR(opt_g, 2, 0.5)", "sched_g.step()"),
    "a warm-up and a decay": pair(
        "warm = LinearLR(opt_g, 0.1, total_iters=2)\ncosine = CosineAnnealingLR(opt_g, 6)",
        "warm.step(); cosine.step()"),
    "two factors": pair("slow = StepLR(opt_g, 3, 0.5)\nfast = StepLR(opt_g, 1, 0.9)", "slow.step(); fast.step()"),
    "both change": pair(
        "sched_g = StepLR(opt_g, 2, 0.5)\nsched_d = StepLR(opt_g, 2, 0.5)",
        "sched_g.step(); sched_d.step(); opt_d.param_groups[0]['lr'] *= 0.9"),
    "equal schedulers that no epoch steps": pair(
        "sched_g = StepLR(opt_g, 2, 0.5)\nsched_d = StepLR(opt_g, 2, 0.5)", "pass"),
    "for two functions": pair(
        "def first(opt):\n    one = StepLR(opt, 2, 0.5)\n    return one\n"
        "def second(opt):\n    two = StepLR(opt, 2, 0.5)\n    return two\nsched_g = first(opt_g)", "sched_g.step()"),
    "a constant scheduler of another class": pair(
        "sched_g = StepLR(opt_g, 2)\nsched_d = MultiStepLR(opt_g, [2])"),
    "one variable for two phases": pair(
        "sched = StepLR(opt_g, 2, 0.5)\nsched = StepLR(opt_g, 2, 0.5)", "sched.step()"),
}  # fmt: skip


def of_kind(text, engine, checks, kind):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == kind]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", RESTARTED)
def test_a_resumed_training_that_starts_again_at_the_first_rate_is_found(name, engine, checks):
    text, has_edit = RESTARTED[name]
    (one,) = of_kind(text, engine, checks, "restarted-schedule")
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert one.level == "warning"
    assert "is made after the state of its optimizer was loaded at" in said
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert (one.finding.edit is not None) is has_edit
    if has_edit:
        assert "last_epoch=first - 1" in one.finding.edit.new
        assert of_kind(one.finding.edit.applied(text), engine, checks, "restarted-schedule") == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", CONTINUED)
def test_a_training_that_continues_or_begins_is_not_reported(name, engine, checks):
    assert of_kind(CONTINUED[name], engine, checks, "restarted-schedule") == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", DOUBLED)
def test_two_schedulers_of_one_optimizer_are_found(name, engine, checks):
    text, level, mended = DOUBLED[name]
    (one,) = of_kind(text, engine, checks, "doubled-schedule")
    assert one.level == level
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert mended in one.finding.edit.new
    assert of_kind(one.finding.edit.applied(text), engine, checks, "doubled-schedule") == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", OF_EACH)
def test_schedulers_of_each_optimizer_or_in_a_chain_are_not_reported(name, engine, checks):
    assert of_kind(OF_EACH[name], engine, checks, "doubled-schedule") == []
