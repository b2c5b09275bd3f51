"""Updates that assign to the variable of a loop and change no parameter, and loops that keep what they compute."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import copy
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
x, y = torch.randn(24, 4), torch.randn(24, 1)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
ema = copy.deepcopy(net)
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.5)
SETUP
for epoch in range(5):
    loss = F.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    BEFORE
    opt.step()
    AFTER
print(F.mse_loss(ema(x), y).item())
"""
PAIRS = "for e, p in zip(ema.parameters(), net.parameters()):\n"
OFF = "with torch.no_grad():\n    "


def program(after="pass", setup="", before="pass"):
    words = {"AFTER": after, "BEFORE": before}
    text = PROGRAM.replace("SETUP", setup)
    for word, value in words.items():
        text = text.replace(word, value.replace("\n", "\n    "))
    return text


LOST = {
    "an average": (program(f"{OFF}{PAIRS}        e = 0.9 * e + 0.1 * p  #!"), "e.copy_(0.9 * e + 0.1 * p)"),
    "an average in a function": (
        program("update(ema, net, 0.9)",
                "@torch.no_grad()\ndef update(slow, fast, decay):\n"
                "    for s, f in zip(slow.parameters(), fast.parameters()):\n"
                "        s = s * decay + f * (1 - decay)  #!"),
        "s.copy_(s * decay + f * (1 - decay))",
    ),
    "an average of frozen parameters": (
        program(f"{PAIRS}    e = e + 0.1 * (p.detach() - e)  #!", "ema.requires_grad_(False)"),
        "e += 0.1 * (p.detach() - e)",
    ),
    "an average by data": (
        program(f"{PAIRS}    e = 0.9 * e.data + 0.1 * p.data  #!"), "e.copy_(0.9 * e.data + 0.1 * p.data)"),
    "an average of states": (
        program("for t, s in zip(ema.state_dict().values(), net.state_dict().values()):\n"
                "    t = 0.9 * t + 0.1 * s  #!"),
        "t.copy_(0.9 * t + 0.1 * s)",
    ),
    "a copy": (program(f"{PAIRS}    e = p.detach().clone()  #!"), "e.copy_(p.detach().clone())"),
    "parameters with names": (
        program(f"{OFF}for name, p in net.named_parameters():\n        if 'weight' in name:\n"
                "            p = p.clamp(-1, 1)  #!"),
        "p.copy_(p.clamp(-1, 1))",
    ),
    "items of a dictionary": (
        program("for name, w in ws.items():\n    w = w * 0.99  #!", "ws = dict(net.named_parameters())"),
        "w.copy_(w * 0.99)",
    ),
    "a numbered list": (
        program("for i, w in enumerate(ws):\n    w = w - 0.01 * w  #!\nfor w in ws:\n    w.grad = None",
                "ws = list(net.parameters())"),
        "w -= 0.01 * w",
    ),
    "gradients": (
        program(before="grads = [p.grad for p in net.parameters()]\nfor g in grads:\n    g = g / 2  #!"),
        "g.copy_(g / 2)",
    ),
    "a gradient that is cleared": (
        program(f"{OFF}for p in ema.parameters():\n        p = p * 0.9  #!\n        p.grad = None"),
        "p.copy_(p * 0.9)",
    ),
    "on several lines": (
        program(f"{OFF}{PAIRS}        e = (0.9 * e  #!\n             + 0.1 * p)"), "e.copy_(0.9 * e + 0.1 * p)"),
}  # fmt: skip
KEPT = {
    "in place": program(f"{OFF}{PAIRS}        e.mul_(0.9).add_(0.1 * p)"),
    "an operator in place": program(f"{OFF}for p in net.parameters():\n        p *= 0.99"),
    "a method in place that is assigned": program(f"{OFF}{PAIRS}        e = e.mul_(0.9).add_(0.1 * p)"),
    "written through data": program(f"{PAIRS}    e.data = 0.9 * e.data + 0.1 * p.data"),
    "appended": program(f"new = []\n{PAIRS}    e = 0.9 * e + 0.1 * p\n    new.append(e)"),
    "read later": program(f"{OFF}{PAIRS}        p = 0.1 * p\n        e.mul_(0.9).add_(p)"),
    "an item of the list": program(
        "for i, w in enumerate(ws):\n    w = 0.9 * w\n    ws[i] = w", "ws = [p.detach() for p in net.parameters()]"),
    "yielded": program(
        "ws = [*scaled()]", "def scaled():\n    for p in net.parameters():\n        p = p * 2\n        yield p"),
    "returned": program(
        "first()", "def first():\n    for p in net.parameters():\n        p = p * 2\n        break\n    return p"),
    "another variable": program("for p in net.parameters():\n    q = p * 2"),
    "a loss of inputs": program("for row in x:\n    row = net(row)"),
    "fast weights": program(
        "fast = [p * 1 for p in net.parameters()]\nfast = [w - 0.1 * p.grad for w, p in zip(fast, net.parameters())]"),
    "in a closure": program(
        f"calls = []\n{PAIRS}    show = lambda: e.sum()\n    e = 0.9 * e + 0.1 * p\n    calls.append(show())"),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", LOST)
def test_an_update_of_a_loop_variable_is_found_and_written_in_place(name, engine, checks):
    text, mended = LOST[name]
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    (one,) = [each for each in outcome.found if each.level != "note"]
    assert (one.finding.kind, one.level) == ("lost-update", "warning")
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert "is lost: it only assigns to the variable of the loop" in said
    assert "and nothing uses it" in said
    assert mended in one.finding.edit.new
    assert one.finding.edit.new.count("no_grad") == ("with torch.no_grad" not in text and "@torch.no_grad" not in text)
    after = checks.of_text(one.finding.edit.applied(text), engine)
    assert after.errors == []
    assert [str(each) for each in after.found if each.level != "note"] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", KEPT)
def test_an_update_that_is_kept_is_not_reported(name, engine, checks):
    outcome = checks.of_text(KEPT[name], engine)
    assert outcome.errors == []
    assert [str(one) for one in outcome.found if one.level != "note"] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_step_by_hand_is_reported_once(engine, checks):
    text = """
import torch
torch.manual_seed(0)
x, y = torch.randn(24, 4), torch.randn(24, 1)
ws = [torch.randn(4, 8, requires_grad=True), torch.randn(8, 1, requires_grad=True)]
for epoch in range(5):
    loss = ((torch.tanh(x @ ws[0]) @ ws[1] - y) ** 2).mean()
    loss.backward()
    for w in ws:
        w = w - 0.1 * w.grad  #!
    for w in ws:
        w.grad = None
"""
    (one,) = checks.of_text(text, engine).found
    assert one.finding.kind == "never-stepped"  # it names the tensors that stay as they were
    assert "with torch.no_grad()" in one.finding.edit.new
    assert checks.of_text(one.finding.edit.applied(text), engine).found == []
