"""Zero gradients of many leaves with one cause."""

import pytest
from explain.programs import recorded_text
from recording import timeline_of

import gviz.engine as torch
from gviz.explain.check import check
from gviz.explain.findings.gradient_values import zero_gradient
from gviz.explain.typed_question import answer
from gviz.query.nodes import NamedNodes


def dead_at_its_end(layers):
    def program():
        h = torch.ones(2)
        weights = [torch.tensor([0.5, 0.2], requires_grad=True) for _ in range(layers)]
        for weight in weights:
            h = torch.cos(h * weight)
        (torch.relu(h - 10.0).sum() - 1.0).pow(2).backward()

    return timeline_of(program)


def test_a_way_that_many_leaves_share_is_gone_back_once(monkeypatch):
    asked = []
    arrived = zero_gradient.arriving_gradient
    monkeypatch.setattr(zero_gradient, "arriving_gradient", lambda *given: asked.append(1) or arrived(*given))
    timeline = dead_at_its_end(30)
    (found,) = check(timeline)
    assert (found.finding.kind, found.more) == ("dead-units", 29)
    assert len(asked) < len(timeline.nodes)


def test_a_number_that_is_zero_may_be_an_input():
    def program():
        x1, x2 = torch.tensor(2.0, requires_grad=True), torch.tensor(0.0, requires_grad=True)
        w1, w2 = torch.tensor(-3.0, requires_grad=True), torch.tensor(1.0, requires_grad=True)
        (x1 * w1 + x2 * w2 + 6.9).tanh().backward()

    (found,) = check(timeline_of(program))
    assert (found.level, found.finding.kind, found.finding.fix) == ("note", "masked", "")


def test_a_result_that_became_a_leaf_is_asked_about():
    def program():
        w = (torch.ones(3) * 2).requires_grad_()
        (w * torch.zeros(3)).sum().backward()

    (found,) = check(timeline_of(program))
    assert found.finding.kind == "masked"


def test_a_mask_in_half_precision_is_no_underflow():
    def program():
        w = torch.ones(4, requires_grad=True)
        (w.half() * torch.zeros(4, dtype=torch.float16)).sum().backward()

    (found,) = check(timeline_of(program))
    assert found.finding.kind == "masked"


MET = """
import torch
F = torch.nn.functional
w = torch.tensor([3.0, -2.0], requires_grad=True)
b = torch.tensor(0.0, requires_grad=True)
y = torch.tensor([1.0, -1.0])
s = torch.tensor([[1.0, 0.0], [0.0, 1.0]]) @ w + b
(LOSS).backward()
"""


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize(
    "loss",
    [
        "torch.relu(1 - y * s).mean()",
        "torch.clamp(1 - y * s, min=0).mean()",
        "torch.maximum(torch.zeros(2), 1 - y * s).sum()",
        "(torch.relu(1 - y * s) ** 2).mean()",
        "0.5 * torch.relu(1 - y * s).mean() / 2 + 0.01 * w.pow(2).sum()",
        "torch.stack([F.relu(1 - y[i] * s[i]) for i in range(2)]).mean()",
        "F.relu(1 - y[0] * s[0]) + F.relu(1 - y[1] * s[1])",
        "F.margin_ranking_loss(s[:1], s[1:], torch.ones(1), margin=0.5)",
        "F.triplet_margin_loss(s[None, :1], s[None, :1] + 0.1, s[None, 1:])",
        "F.multi_margin_loss(torch.stack([s, s - 5], 1), torch.tensor([0, 0]))",
        "F.hinge_embedding_loss(s.abs(), -torch.ones(2), margin=0.5)",
        "F.mse_loss(s, s.detach().clone())",
    ],
)
def test_a_loss_whose_margins_are_all_met_is_healthy(loss, engine, tmp_path):
    timeline = recorded_text(MET.replace("LOSS", loss), tmp_path, engine)
    assert check(timeline) == []
    found = answer(NamedNodes(timeline), "b.grad", len(timeline))
    assert found.kind == "spent-loss"
    assert "has nothing left to learn" in found.parts[0].text


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize(
    ("loss", "kind"),
    [
        ("(torch.relu(s - 100).sum() - 1).pow(2)", "dead-units"),
        ("-torch.relu(s - 100).mean()", "dead-units"),
        ("(torch.relu(s - 100) * torch.tensor([2.0, 3.0], requires_grad=True)).sum()", "dead-units"),
        ("(s * torch.zeros(2)).sum()", "masked"),
        ("s.clamp(-1, 1).sum()", "clamped"),
    ],
)
def test_units_that_are_off_are_no_margins_that_are_met(loss, kind, engine, tmp_path):
    timeline = recorded_text(MET.replace("LOSS", loss), tmp_path, engine)
    assert kind in {one.finding.kind for one in check(timeline)}


ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PRODUCT = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(4, 4)
        INIT
    def forward(self, x):
        return self.base(x) + (FORWARD)
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    loss = (net(torch.randn(2, 5, 4)) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
PAIR = "self.a = nn.Parameter(A(4, 2))\nself.b = nn.Parameter(B(2, 4))"
PRODUCTS = {
    "factors of data": (PAIR, "x @ self.a @ self.b * 2", 10, 11),
    "a product added to a weight": (PAIR, "F.linear(x, (self.a @ self.b).t())", 10, 11),
    "layers": (
        "self.a, self.b = nn.Linear(4, 2, bias=False), nn.Linear(2, 4, bias=False)\n"
        "nn.init.constant_(self.a.weight, A(1).item())\nnn.init.constant_(self.b.weight, B(1).item())",
        "self.b(self.a(x))",
        11,
        12,
    ),
    "a gate of a layer": (
        "self.gate = nn.Parameter(A(1))\nself.fc = nn.Linear(4, 4, bias=False)\nself.fc.weight.data.fill_(B(1).item())",
        "self.gate * self.fc(x)",
        10,
        12,
    ),
}


def product(name, a, b):
    init, forward, *lines = PRODUCTS[name]
    for letter, start in (("A", a), ("B", b)):
        init = init.replace(f"{letter}(", f"torch.{start}(")
    return PRODUCT.replace("INIT", init.replace("\n", "\n        ")).replace("FORWARD", forward), lines


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", PRODUCTS)
def test_two_factors_of_zeros_are_one_finding_with_both_lines(name, engine, checks):
    text, lines = product(name, "zeros", "zeros")
    (one,) = checks.of_text(text, engine).found
    assert (one.level, one.finding.kind, one.more) == ("warning", "masked", 0)
    assert "are both zero, so neither gets a gradient" in one.finding.text
    assert "one of the two factors with random numbers" in one.finding.fix
    places = [one.finding.at.line, *[part.at.line for part in one.finding.parts if part.kind == "operand"]]
    assert sorted({*places}) == lines


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("starts", [("zeros", "ones"), ("ones", "zeros")])
def test_one_factor_of_zeros_begins(name, starts, engine, checks):
    text, _ = product(name, *starts)
    assert [str(one) for one in checks.of_text(text, engine).found if one.level != "note"] == []


OVERLAP = """
import torch
torch.manual_seed(0)
near = torch.rand(6, 1, requires_grad=True)
far = torch.rand(6, 1) + 10
both = (near + 1 - far).clamp(min=0)  # cause
share = both / (near + far - both)
loss = (1 - share).mean()
loss.backward()
"""


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
def test_a_quotient_of_zeros_is_followed_to_what_made_them_zero(engine, checks):
    found = {one.finding.kind: one.finding for one in checks.of_text(OVERLAP, engine).found}
    at = found["masked"].at
    assert OVERLAP.splitlines()[at.line - 1].endswith("# cause")
    assert "clamp is zero everywhere" in found["masked"].text


CANCELLED = """
import torch
import torch.nn as nn

torch.manual_seed(0)
first, second = nn.Linear(2, 4), LAYER
h = torch.relu(first(torch.randn(4, 2)))RESHAPED * torch.tensor([1.0, 1.0, 0.0, 0.0]).reshape(SHAPE)
(second(h) * torch.tensor([1.0, -1.0, 0.0, 0.0]).reshape(SHAPE)).sum().backward()
"""


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize(
    ("layer", "reshaped", "shape"),
    [("nn.Linear(4, 2)", "", "4, 1"), ("nn.Conv1d(4, 2, 1)", "[:, :, None]", "4, 1, 1")],
)
def test_the_gradients_of_samples_cancel_at_a_bias_whatever_the_data_is(layer, reshaped, shape, engine, tmp_path):
    text = CANCELLED.replace("LAYER", layer).replace("RESHAPED", reshaped).replace("SHAPE", shape)
    timeline = recorded_text(text, tmp_path, engine)
    assert "masked" not in {one.finding.kind for one in check(timeline)}
    assert "adds up what arrives to zero" in answer(NamedNodes(timeline), "second.bias.grad", len(timeline)).text


ZERO_DATA = CANCELLED.replace("[1.0, 1.0, 0.0, 0.0]", "[0.0, 0.0, 0.0, 0.0]")


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
def test_a_weight_and_no_bias_gets_zero_since_the_data_is_zero(engine, tmp_path):
    text = ZERO_DATA.replace("LAYER", "nn.Linear(4, 2)").replace("RESHAPED", "").replace("SHAPE", "4, 1")
    timeline = recorded_text(text, tmp_path, engine)
    names = NamedNodes(timeline)
    bias, weight = (answer(names, f"second.{name}.grad", len(timeline)).text for name in ("bias", "weight"))
    assert "adds up what arrives to zero" in bias
    assert "is zero everywhere" in weight
