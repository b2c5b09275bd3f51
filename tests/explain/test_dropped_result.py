"""Operations on a line of their own whose result nothing gets, and lines that only look like them."""

import pytest

HEAD = """import time
import torch
from torch import nn
from torch.nn.functional import relu
F = nn.functional
torch.manual_seed(0)


class Sends(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, extra):
        ctx.save_for_backward(extra)
        return x

    @staticmethod
    def backward(ctx, g):
        extra, = ctx.saved_tensors
        return g, torch.ones_like(extra)


class Writes(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, extra):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, g):
        return g, None


class Counts(torch.autograd.Function):
    @staticmethod
    def forward(ctx, n):
        return torch.ones(n)

    @staticmethod
    def backward(ctx, g):
        return None


def sink(g):
    BODY


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.relu, self.norm = nn.Linear(3, 4), nn.ReLU(), nn.BatchNorm1d(4)

    def forward(self, x):
        x = self.fc(x)
        mask = x.detach() > 1
        INSIDE
        return x


net = Net()
HOOK
opt = torch.optim.SGD(net.parameters(), lr=0.01)
seen = set()
for i in range(3):
    x = net(torch.randn(5, 3))
    loss = x.pow(2).mean()
    opt.zero_grad()
    BEFORE
    loss.backward()
    AFTER
    opt.step()
"""
ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]


def program(place, line, **others):
    lines = {
        "BODY": "return None",
        "INSIDE": "pass",
        "HOOK": "",
        "BEFORE": "pass",
        "AFTER": "pass",
        place: line,
        **others,
    }
    text = HEAD
    for name, new in lines.items():
        indent = next(row for row in text.splitlines() if row.strip() == name).partition(name)[0]
        text = text.replace(name, new.replace("\n", f"\n{indent}"), 1)
    return text


def found(text, checks, engine):
    return [one for one in checks.of_text(text, engine).found if one.finding.kind == "dropped-result"]


EACH = "for p in net.parameters():\n    "
DROPPED = {
    "clipped gradients": ("AFTER", EACH + "p.grad.data.clamp(-1, 1)", "warning", "clamp_(-1, 1)"),
    "clipped by a function": ("AFTER", EACH + "torch.clamp(p.grad, -1, 1)", "warning", "p.grad.clamp_"),
    "divided gradients": ("AFTER", EACH + "p.grad / 2", "warning", "p.grad /= 2"),
    "decayed parameters": ("AFTER", EACH + "p.data.mul(0.9)", "warning", "p.data.mul_(0.9)"),
    "an update": ("AFTER", f"with torch.no_grad():\n    {EACH}    p.sub(0.1 * p.grad)", "warning",
                  "p.sub_("),
    "a function of the program": ("INSIDE", "Sends.apply(x, x.sum())", "warning", "x = Sends.apply(x, x.sum())"),
    "a mask": ("INSIDE", "x.masked_fill(mask, 0.0)", "warning", "x = x.masked_fill(mask, 0.0)"),
    "an activation": ("INSIDE", "F.relu(x)", "warning", "x = F.relu(x)"),
    "an imported function": ("INSIDE", "relu(x)", "warning", "x = relu(x)"),
    "a loss": ("BEFORE", "loss / 4", "warning", "loss = loss / 4"),
    "a state": ("INSIDE", "x.detach()", "warning", ""),
    "a shape": ("INSIDE", "x.unsqueeze(1)", "note", ""),
    "a dropout": ("INSIDE", "F.dropout(x, 0.5)", "note", ""),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", DROPPED)
def test_a_line_that_drops_its_result_does_nothing(name, engine, checks):
    place, line, level, new = DROPPED[name]
    text = program(place, line)
    (one,) = found(text, checks, engine)
    assert one.level == level
    assert text.splitlines()[one.finding.at.line - 1].strip() == line.splitlines()[-1].strip()
    assert "dropped" in one.finding.text
    assert len(one.finding.text) <= 80
    assert (one.finding.edit is not None) is bool(new)
    if new:
        mended = one.finding.edit.applied(text)
        assert new in mended
        assert found(mended, checks, engine) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_hook_that_drops_its_result_leaves_the_gradient(engine, checks):
    text = program("HOOK", "net.fc.bias.register_hook(sink)", BODY="g.clamp(-1, 1)")
    (one,) = found(text, checks, engine)
    assert (one.level, one.finding.fix) == ("warning", "return it: return g.clamp(-1, 1)")
    assert found(one.finding.edit.applied(text), checks, engine) == []


MEANT = {
    "in place": ("AFTER", EACH + "p.grad.data.clamp_(-1, 1)"),
    "in place by an argument": ("INSIDE", "F.relu(x, True)"),
    "in place by an option": ("INSIDE", "F.relu(x, inplace=True)"),
    "a module with the name of an operation": ("INSIDE", "self.relu(x)"),
    "a module with statistics": ("INSIDE", "self.norm(x)"),
    "a function that writes to its input": ("BEFORE", "with torch.no_grad():\n    Writes.apply(x, x)"),
    "a function under no_grad": ("INSIDE", "with torch.no_grad():\n    Sends.apply(x, x.sum())\n    self.norm(x)"),
    "an output": ("BEFORE", "torch.mul(x.detach(), 2, out=torch.empty(5, 4))"),
    "a set": ("BEFORE", "seen.add(i)"),
    "a measured loop": (
        "BEFORE",
        "start = time.perf_counter()\nfor _ in range(3):\n    torch.relu(x)\nseconds = time.perf_counter() - start",
    ),
    "a measured line": ("BEFORE", "start = time.perf_counter()\ntorch.relu(x)\nseconds = time.perf_counter() - start"),
    "an expected error": ("INSIDE", "try:\n    x.view(4, 5)\nexcept RuntimeError:\n    pass"),
    "a model that warms up": ("BEFORE", "torch.relu(net(torch.randn(5, 3)))"),
    "a kept result": ("INSIDE", "y = x.masked_fill(mask, 0.0)\ny.sum()"),
    "a function without tensors": ("INSIDE", "Counts.apply(3)"),
    "a detached tensor that is detached again": ("INSIDE", "y = x.detach()\ny.detach()\nx = x + y"),
    "a draw": ("BEFORE", "torch.rand_like(x)"),
    "a tensor that nothing uses afterwards": ("AFTER", "(x * 2).relu()"),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", MEANT)
def test_a_line_with_an_effect_or_another_purpose_is_left_out(name, engine, checks):
    assert [str(one.finding) for one in found(program(*MEANT[name]), checks, engine)] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("last", ["w.grad.clamp(-1, 1)", "w.grad.clamp(-1, 1)\n# %%\nw.sum()"])
def test_a_notebook_shows_the_last_result_of_a_cell(last, engine, checks):
    text = f"import torch\nw = torch.ones(3, requires_grad=True)\nw.sum().backward()\n{last}\n"
    assert found(text, checks, engine) == []


MODULES = """import torch
from torch import nn
torch.manual_seed(0)


class Mix(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.scale = nn.Linear(4, 4), nn.Parameter(torch.ones(4))

    def forward(self, x):
        x = self.inner(x)
        return x * self.scale


class Both(Mix):
    def forward(self, x):
        return super().forward(x), x.mean()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.out, self.norm, self.mix = nn.Linear(3, 4), nn.Linear(4, 2), nn.LayerNorm(4), Mix()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.narrow, self.rnn, self.both = nn.Linear(4, 1), nn.GRU(4, 4), Both()
        self.block = nn.Sequential(nn.Linear(4, 4), nn.Tanh())

    def forward(self, x):
        x = self.fc(x)
        INSIDE
        return self.out(x)


net = Net()
opt = torch.optim.SGD(USED, lr=0.01)
for i in range(3):
    loss = net(torch.randn(5, 3)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
CALLED = {
    "a norm": ("self.norm(x)  #!", "norm", "self.norm(x)", "x = self.norm(x)"),
    "a module of the program": ("self.mix(x)  #!", "mix", "self.mix(x)", "x = self.mix(x)"),
    "a loop over layers": ("for layer in self.layers:\n            layer(x)  #!", "layers", "layer(x)", "x = layer(x)"),
    "a layer of a list": ("self.layers[0](x)  #!", "layers[0]", "self.layers[0](x)", "x = self.layers[0](x)"),
    "another shape": ("self.narrow(x)  #!", "narrow", "self.narrow(x)", ""),
    "a block": ("self.block(x)  #!", "block", "self.block(x)", "x = self.block(x)"),
    "a tuple of results": ("self.both(x)  #!", "both", "self.both(x)", ""),
    "two results": ("self.rnn(x)  #!", "rnn", "self.rnn(x)", ""),
    "the result of another call": ("self.norm(x * 2)  #!", "norm", "self.norm(x * 2)", ""),
    "a variable that is set again": ("y = x * 2\n        self.norm(y)  #!\n        y = 0", "norm", "self.norm(y)", ""),
    "two statements on a line": (
        "y = x * 1; self.norm(y); x = y  #!",
        "norm",
        "self.norm(y)",
        "y = self.norm(y); x = y",
    ),
}


def not_reached(inside, used, checks, engine):
    used = f"[*net.fc.parameters(), *net.out.parameters(), *net.{used}.parameters()]" if used else "net.parameters()"
    text = MODULES.replace("INSIDE", inside).replace("USED", used)
    return text, [one for one in checks.of_text(text, engine).found if one.finding.kind == "not-reached"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", CALLED)
def test_a_module_whose_result_is_dropped_is_named_with_the_call(name, engine, checks):
    inside, used, call, new = CALLED[name]
    text, ones = not_reached(inside, used, checks, engine)
    (one,) = ones
    assert one.level == "warning"
    assert f"the result of {call} is dropped" in one.finding.text
    assert len(one.finding.text) <= 80
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert (one.finding.edit is not None) is bool(new)
    if new:
        assert new in one.finding.edit.new
        mended = checks.of_text(one.finding.edit.applied(text), engine)
        assert [str(each) for each in mended.found if each.finding.kind in ("not-reached", "dropped-result")] == []


OTHERWISE = {
    "a kept result that nothing reads": "y = self.norm(x)",
    "a call in an argument": "print(self.norm(x).shape)",
    "a call that may raise": "try:\n            self.norm(x)\n        except ValueError:\n            pass",
    "two calls": "self.norm(x)\n        y = self.norm(x)",
    "a list of results": "[layer(x) for layer in self.layers]",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", OTHERWISE)
def test_other_parameters_without_a_path_are_named_without_a_dropped_call(name, engine, checks):
    _, ones = not_reached(OTHERWISE[name], "", checks, engine)
    assert "is dropped" not in "".join(one.finding.text for one in ones)
    assert all(one.finding.edit is None for one in ones)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_call_of_a_module_that_no_optimizer_has_gets_no_edit(engine, checks):
    _, (one,) = not_reached("self.norm(x)", "mix", checks, engine)
    assert (one.level, one.finding.edit) == ("note", None)
    assert "is dropped" in one.finding.text
