"""A model that is trained in evaluation mode; tests/explain/healthy has those that are meant so."""

import pytest
from explain.programs import HERE, line_of, recorded

from gviz.explain.check import check

on_both_engines = pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])


@on_both_engines
@pytest.mark.parametrize(
    ("name", "steps", "before"),
    [
        ("eval_left_on", "4 steps", "up to this step it was in training mode"),
        ("eval_for_one_step", "a step", "up to this step it was in training mode"),
        ("never_in_training_mode", "3 steps", "it was never in training mode"),
    ],
)
def test_training_in_evaluation_mode_is_suspected(name, steps, before, engine):
    (found,) = check(recorded("loops", name, engine))
    assert (found.level, found.finding.kind) == ("note", "trained-in-eval")
    assert found.finding.text == f"{steps} of the optimizer trained a model in evaluation mode"
    assert found.finding.where == f"{name}.py:{line_of(HERE / 'loops' / f'{name}.py')}"
    assert found.finding.parts[0].text.partition("; ")[2] == before
    assert "model.train()" in found.finding.fix


HEAD = """
import torch
from torch import nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6))
        self.drop, self.head = nn.Dropout(0.2), nn.Linear(6, 2)
    def forward(self, x):
        return self.head(self.drop(self.body(x)))
net, loss_fn = Net(), nn.CrossEntropyLoss()
x, y = torch.randn(16, 4), torch.randint(0, 2, (16,))
def train(opt, steps):
    for _ in range(steps):
        opt.zero_grad()
        loss_fn(net(x), y).backward()
        opt.step()
train(torch.optim.Adam(net.parameters()), 3)
"""
FROZEN = "net.body.requires_grad_(False)\nopt = torch.optim.Adam(net.head.parameters())\n"
FINE_TUNED = {
    "frozen after a training": (f"{FROZEN}train(opt, 6)", ["frozen-statistics"]),
    "put back by train": (f"{FROZEN}net.body.eval()\nnet.train()\ntrain(opt, 6)", ["frozen-statistics"]),
    "frozen for a few steps": (f"{FROZEN}train(opt, 3)", []),
    "its statistics are frozen, too": (f"{FROZEN}net.body.eval()\ntrain(opt, 6)", []),
    "trained again later": (
        f"{FROZEN}train(opt, 6)\nnet.requires_grad_(True)\ntrain(torch.optim.Adam(net.parameters()), 2)", []),
}  # fmt: skip


@on_both_engines
@pytest.mark.parametrize("name", FINE_TUNED)
def test_a_batch_norm_that_is_frozen_after_a_training_follows_the_data_or_not(name, engine, checks):
    text, kinds = FINE_TUNED[name]
    outcome = checks.of_text(HEAD + text, engine)
    assert outcome.errors == []
    assert [one.finding.kind for one in outcome.found] == kinds


TRAIN_TWICE = """
net.train()
train(torch.optim.Adam(net.parameters()), 2)
net.body.requires_grad_(False)
opt = torch.optim.Adam(net.head.parameters())
for epoch in range(3):
    net.train()
    for _ in range(2):
        opt.zero_grad()
        loss_fn(net(x), y).backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        net(x)
"""


@on_both_engines
def test_frozen_statistics_name_the_switch_that_was_in_effect(engine, checks):
    text = HEAD + TRAIN_TWICE
    (one,) = checks.of_text(text, engine).found
    assert one.finding.kind == "frozen-statistics"
    assert one.finding.at.line == text.splitlines().index("    net.train()") + 1
    assert one.finding.edit is not None
    assert one.finding.edit.diff()[1] == "+    net.body.eval()"


AVERAGE = """
import copy
class Average:
    def __init__(self, model):
        self.module = copy.deepcopy(model)
        self.module.requires_grad_(False)
    @torch.no_grad()
    def update(self, model):
        UPDATE
average = Average(net)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(4):
    net.train()
    train(opt, 1)
    average.update(net)
average.module.eval()
with torch.no_grad():
    print(loss_fn(average.module(x), y).item())
"""
UPDATES = [
    "for a, p in zip(self.module.parameters(), model.parameters()):  #!\n    a.mul_(0.9).add_(p, alpha=0.1)",
    "for a, (name, p) in zip(self.module.parameters(), model.named_parameters()):  #!\n    a.lerp_(p, 0.1)",
    "ours = dict(self.module.named_parameters())\n"
    "for name, p in model.named_parameters():  #!\n    ours[name].copy_(0.9 * ours[name] + 0.1 * p)",
    "for a, p in zip(self.module.parameters(), model.parameters()):  #!\n    a.data = 0.9 * a.data + 0.1 * p.data",
    "ours = dict(self.module.named_parameters())\n"
    "for name, p in list(model.named_parameters()):  #!\n    ours[name].data.mul_(0.9).add_(0.1 * p.data)",
]


@on_both_engines
@pytest.mark.parametrize("update", UPDATES)
def test_statistics_that_an_average_lacks_name_the_loop_over_its_parameters(update, engine, checks):
    text = HEAD.replace("train(torch.optim.Adam(net.parameters()), 3)\n", "")
    text += AVERAGE.replace("UPDATE", update.replace("\n", "\n        "))
    (one,) = checks.of_text(text, engine).found
    assert one.finding.kind == "initial-statistics"
    assert one.finding.at.line == next(n for n, row in enumerate(text.splitlines(), 1) if row.endswith("#!"))
    assert "buffers" in one.finding.fix
