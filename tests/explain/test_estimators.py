"""Advice for straight-through estimators and score functions, whose gradient does not get where it should."""

import pytest

from gviz.explain.finding import edit_of, lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
TORCH = [pytest.param("torch", marks=pytest.mark.torch)]
CODES = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
x = torch.randn(16, 6)
enc, dec, book = nn.Linear(6, 3), nn.Linear(3, 6), nn.Embedding(8, 3)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters(), *book.parameters()], lr=0.01)
for epoch in range(3):
    z = enc(x)
    q = book((z.detach()[:, None] - book.weight.detach()).pow(2).sum(2).argmin(1))
    QUANTIZE
    loss = F.mse_loss(dec(q), x) + vq_loss
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
POLICY = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
net = nn.Linear(2, 1)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for step in range(3):
    mean = net(torch.randn(32, 2))
    DRAW
    reward = -(a.detach() - 2).pow(2).squeeze(1)
    loss = -(logp.squeeze(1) * (reward - reward.mean())).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def codes(rows):
    return CODES.replace("QUANTIZE", rows.replace("\n", "\n    "))


def policy(rows, head=""):
    return head + POLICY.replace("DRAW", rows.replace("\n", "\n    "))


CUT = {
    "lines that are swapped": (
        codes("q = z + (q - z).detach()\nvq_loss = F.mse_loss(q, z.detach()) + 0.2 * F.mse_loss(z, q.detach())"), True),
    "a loss over two lines": (
        codes("q = z + (q - z).detach()\nvq_loss = F.mse_loss(\n    q, z.detach())\nvq_loss = vq_loss * 1.0"), True),
    "another variable": (
        codes("s = z + (q - z).detach()\nvq_loss = F.mse_loss(s, z.detach())\nq = s"), False),
    "lines apart": (
        codes("q = z + (q - z).detach()\nscale = 0.25\nvq_loss = scale * F.mse_loss(q, z.detach())"), False),
}  # fmt: skip
BY_HAND = "noise = torch.randn(32, 1)\na = mean + 0.5 * noise\nlogp = -(a - mean).pow(2) / 0.5"
NORMAL = "from torch.distributions import Normal\n"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", CUT)
def test_a_straight_through_estimator_keeps_its_detach(name, engine, checks):
    text, is_swapped = CUT[name]
    (one,) = [each for each in checks.of_text(text, engine).found if each.finding.kind == "cut"]
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert "book.weight" in said or "weight" in said
    assert "take q before this line" in said
    assert "leave detach() out" not in said
    edit = edit_of(one.finding)
    assert (edit is not None) == is_swapped
    if edit is not None:
        after = checks.of_text(edit.applied(text), engine)
        assert after.errors == []
        assert [str(other) for other in after.found if other.level != "note"] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_codebook_with_its_loss_before_the_estimator_is_right(engine, checks):
    rows = "vq_loss = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())\nq = z + (q - z).detach()"
    assert [str(one) for one in checks.of_text(codes(rows), engine).found if one.level != "note"] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_an_ordinary_detach_keeps_its_advice(engine, checks):
    text = codes("vq_loss = F.mse_loss(z, q.detach())\nq = (z + q).detach()")
    found = [each for each in checks.of_text(text, engine).found if each.finding.kind == "cut"]
    said = "\n".join(row for one in found for _, row, _ in lines(one.finding))
    assert "leave detach() out" in said


DRAWN = {
    "rsample": (
        policy("dist = Normal(mean, 0.5)\na = dist.rsample()  #!\nlogp = dist.log_prob(a)", NORMAL), ".sample()"),
    "rsample of a class": (
        policy("dist = torch.distributions.Normal(mean, torch.full((32, 1), 0.3))\na = dist.rsample()  #!\n"
               "logp = dist.log_prob(a)"), ".sample()"),
}  # fmt: skip


def cancelled(text, engine, checks):
    return [each for each in checks.of_text(text, engine).found if each.finding.kind == "cancelled"]


def assert_mended(text, words, engine, checks):
    (one,) = cancelled(text, engine, checks)
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert "comes through the draw" in said
    assert words in one.finding.edit.new
    after = checks.of_text(one.finding.edit.applied(text), engine)
    assert after.errors == []
    assert [str(other) for other in after.found if other.finding.kind == "cancelled"] == []


@pytest.mark.parametrize("engine", TORCH)
@pytest.mark.parametrize("name", DRAWN)
def test_a_score_function_of_rsample_gets_sample(name, engine, checks):
    text, words = DRAWN[name]
    assert text.splitlines()[cancelled(text, engine, checks)[0].finding.at.line - 1].endswith("#!")
    assert_mended(text, words, engine, checks)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_score_function_by_hand_gets_a_detached_draw(engine, checks):
    assert_mended(policy(BY_HAND), "(a.detach() - mean)", engine, checks)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "rows",
    [
        BY_HAND.replace("(a - mean)", "(a.detach() - mean)"),
        f"{BY_HAND}\nlogp = logp + a",
        BY_HAND.replace("a = mean + 0.5 * noise", "a = (mean + 0.5 * noise).detach()"),
        BY_HAND.replace("(a - mean)", "(a - 2 * mean)"),
    ],
)
def test_a_draw_that_trains_is_not_reported(rows, engine, checks):
    assert cancelled(policy(rows), engine, checks) == []


ROUNDED = """
import torch
from torch import nn
torch.manual_seed(0)
one, two = nn.Linear(4, 8), nn.Linear(8, 1)
x, y = torch.randn(32, 4), torch.randn(32, 1)
opt = torch.optim.SGD([*one.parameters(), *two.parameters()], lr=0.01)
def quantized(w):
    scale = w.detach().abs().max() / 7
    q = torch.round(w / scale).clamp(-7, 7) * scale
    return ESTIMATE  #!
for step in range(3):
    h = nn.functional.linear(x, quantized(one.weight), one.bias)
    loss = (nn.functional.linear(torch.tanh(h), quantized(two.weight), two.bias) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("estimate", ["w + (q - w)", "(q - w) + w"])
def test_a_straight_through_estimator_without_detach_gets_it(estimate, engine, checks):
    text = ROUNDED.replace("ESTIMATE", estimate)
    found = [each for each in checks.of_text(text, engine).found if each.level != "note"]
    assert {each.finding.kind for each in found} == {"masked"}
    finding = found[0].finding
    assert "sends it twice, with both signs" in finding.text
    assert "and rounding sends 0" in finding.parts[0].text
    assert text.splitlines()[finding.at.line - 1].endswith("#!")
    assert "(q - w).detach()" in finding.edit.new
    after = checks.of_text(finding.edit.applied(text), engine)
    assert [str(other) for other in after.found if other.level != "note"] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_selected_code_without_detach_gets_it(engine, checks):
    text = codes("q = z + (q - z)  #!\nvq_loss = 0.0 * book.weight.sum()")
    found = [each for each in checks.of_text(text, engine).found if "with both signs" in each.finding.text]
    assert len(found) == 1
    assert text.splitlines()[found[0].finding.at.line - 1].endswith("#!")
    assert "rounding" not in str(found[0])
    assert "z + (q - z).detach()" in found[0].finding.edit.new


@pytest.mark.parametrize("engine", ENGINES)
def test_rounding_with_an_error_that_has_a_gradient_is_another_zero(engine, checks):
    text = ROUNDED.replace("ESTIMATE", "q - w + 2 * w - w")
    assert "with both signs" not in "".join(str(each) for each in checks.of_text(text, engine).found)
