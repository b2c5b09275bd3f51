"""Inputs and targets that are shuffled apart, and those that keep together or are shuffled on purpose."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
x = torch.randn(40, 4)
y = (x.sum(1) > 0).long()
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
ONCE
for step in range(4):
    BATCH
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WHOLE = "loss = F.cross_entropy(net(x), y)"
OF_BATCH = "loss = F.cross_entropy(net(xb), yb)"


def program(once="", batch=WHOLE):
    return PROGRAM.replace("ONCE", once).replace("BATCH", batch.replace("\n", "\n    "))


APART = {
    "the whole data": program("x = x[torch.randperm(40)]\ny = y[torch.randperm(40)]  #!"),
    "each batch": program(
        batch=f"xb = x[torch.randperm(40)[:8]]\nyb = y[torch.randperm(40)[:8]]  #!\n{OF_BATCH}"),
    "drawn with replacement": program(
        batch=f"xb = x[torch.randint(0, 40, (8,))]\nyb = y[torch.randint(0, 40, (8,))]  #!\n{OF_BATCH}"),
    "batches of a shuffled order": program(
        "x = x[torch.randperm(40)]\ny = y[torch.randperm(40)]  #!", f"xb, yb = x[8:16], y[8:16]\n{OF_BATCH}"),
    "more rows than are kept": program(
        "x, y = x.repeat(250, 1), y.repeat(250)\nx = x[torch.randperm(10_000)]\ny = y[torch.randperm(10_000)]  #!"),
    "a generator of the program": program(
        "g = torch.Generator().manual_seed(1)\nx = x[torch.randperm(40, generator=g)]\n"
        "y = y[torch.randperm(40, generator=g)]  #!"),
    "rows that are then selected together": program(
        "x = x[torch.randperm(40)]\ny = y[torch.randperm(40)]  #!",
        f"rows = torch.tensor([7, 2, 11, 30, 5])\nxb, yb = x[rows], y[rows]\n{OF_BATCH}"),
    "an error of pairs": program(
        batch="i, j = torch.randperm(40), torch.randperm(40)\nout = net(x.index_select(0, i))[:, 0]\n"
              "want = y[j].float()  #!\nloss = ((out - want) ** 2).mean()"),
}  # fmt: skip
TOGETHER = {
    "one order": program("order = torch.randperm(40)\nx, y = x[order], y[order]"),
    "one order for each batch": program(batch=f"i = torch.randperm(40)[:8]\nxb, yb = x[i], y[i]\n{OF_BATCH}"),
    "an order, then batches": program(
        "order = torch.randperm(40)\nx, y = x[order], y[order]",
        f"i = torch.randint(0, 40, (8,))\nxb, yb = x[i], y[i]\n{OF_BATCH}"),
    "mixtures": program(
        batch="i = torch.randperm(40)\nmixed = 0.7 * x + 0.3 * x[i]\nout = net(mixed)\n"
              "loss = 0.7 * F.cross_entropy(out, y) + 0.3 * F.cross_entropy(out, y[i])"),
    "one order, then slices": program(
        "order = torch.randperm(40)\nx, y = x[order], y[order]", f"xb, yb = x[8:16], y[8:16]\n{OF_BATCH}"),
    "random labels": program("y = y[torch.randperm(40)]"),
    "moments of batches that are not paired": program(
        batch="a, b = net(x[torch.randperm(40)[:8]]), (x + 0)[torch.randperm(40)[:8]][:, :2]\n"
              "loss = (a.mean(0) - b.mean(0)).pow(2).sum()"),
    "sorted projections of two sets": program(
        batch="i, j = torch.randperm(40)[:8], torch.randperm(40)[:8]\na, b = net(x[i]), (x + 0)[j][:, :2]\n"
              "loss = F.mse_loss(torch.sort(a, dim=0)[0], torch.sort(b, dim=0)[0])"),
    "rows that are assigned to each other": program(
        batch="i, j = torch.randperm(40)[:8], torch.randperm(40)[:8]\na, b = net(x[i]), (x + 0)[j][:, :2]\n"
              "match = torch.tensor([3, 1, 0, 2, 7, 6, 4, 5])\nloss = F.mse_loss(a, b[match])"),
    "rows that a transport plan mixes": program(
        batch="i, j = torch.randperm(40)[:8], torch.randperm(40)[:8]\na, b = net(x[i]), (x + 0)[j][:, :2]\n"
              "plan = torch.full((8, 8), 0.125)\nloss = F.mse_loss(a, plan @ b)"),
    "all pairs of two sets": program(
        batch="i, j = torch.randperm(40)[:8], torch.randperm(40)[:8]\na, b = net(x[i]), (x + 0)[j][:, :2]\n"
              "loss = (a[:, None] - b).pow(2).sum(2).min(1)[0].mean()"),
    "a second batch of the same data": program(
        batch="a, b = net(x[torch.randperm(40)]), x[torch.randperm(40)][:, :2]\nloss = ((a - b) ** 2).mean()"),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", APART)
def test_a_target_in_another_order_is_found_at_its_selection(name, engine, checks):
    text = APART[name]
    (one,) = [each for each in checks.of_text(text, engine).found if each.finding.kind == "other-samples"]
    assert one.level == "warning"
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert "in another random order than" in said
    assert "selects the targets" in said


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", TOGETHER)
def test_samples_that_keep_their_targets_are_no_finding(name, engine, checks):
    outcome = checks.of_text(TOGETHER[name], engine)
    assert outcome.errors == []
    assert "other-samples" not in [one.finding.kind for one in outcome.found]


@pytest.mark.parametrize("engine", ENGINES)
def test_two_draws_that_seeds_make_equal_are_no_finding(engine, checks):
    text = program("torch.manual_seed(1)\nx = x[torch.randperm(40)]\ntorch.manual_seed(1)\ny = y[torch.randperm(40)]")
    assert [each for each in checks.of_text(text, engine).found if each.finding.kind == "other-samples"] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "once",
    [
        "torch.manual_seed(1)\nx = x[torch.randperm(10_000)]\ntorch.manual_seed(1)\ny = y[torch.randperm(10_000)]",
        "def mixed(a):\n    torch.manual_seed(1)\n    return a[torch.randperm(10_000)]\nx = mixed(x)\ny = mixed(y)",
        "g, h = torch.Generator().manual_seed(1), torch.Generator().manual_seed(1)\n"
        "x = x[torch.randperm(10_000, generator=g)]\ny = y[torch.randperm(10_000, generator=h)]",
    ],
)
def test_two_draws_that_seeds_may_make_equal_are_a_question(once, engine, checks):
    text = program(f"x, y = x.repeat(250, 1), y.repeat(250)\n{once}")
    levels = [one.level for one in checks.of_text(text, engine).found if one.finding.kind == "other-samples"]
    assert levels == ["note"]


IN_NUMPY = """
import numpy as np
import torch
from torch import nn
torch.manual_seed(0)
np.random.seed(0)
x = np.random.randn(40, 4).astype(np.float32)
y = (x.sum(1) > 0).astype(np.int64)
SHUFFLE
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
rows = np.arange(40)
for step in range(4):
    xb, yb = torch.from_numpy(x[rows]), torch.from_numpy(y[rows])
    loss = nn.functional.cross_entropy(net(xb), yb)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def in_numpy(shuffle, engine, checks, text=IN_NUMPY):
    program = text.replace("SHUFFLE", shuffle)
    outcome = checks.of_text(program, engine)
    assert outcome.errors == []
    return program, [one for one in outcome.found if one.finding.kind == "other-samples"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("shuffle", "says"),
    [
        ("np.random.shuffle(x)  #!", "x is shuffled, but y stays in its order"),
        ("x = x[np.random.permutation(40)]  #!", "x is shuffled, but y stays in its order"),
        ("np.random.shuffle(y)  #!", "y is shuffled, but x stays in its order"),
        ("np.random.shuffle(x)  #!\nnp.random.shuffle(y)", "each by a draw of its own"),
        ("x = x[np.random.permutation(40)]  #!\ny = y[np.random.permutation(40)]", "each by a draw of its own"),
    ],
)
def test_a_shuffle_of_one_of_a_pair_is_found(shuffle, says, engine, checks):
    text, (one,) = in_numpy(shuffle, engine, checks)
    assert one.level == "note"
    assert says in one.finding.text
    assert "[order]" in one.finding.fix
    assert "np.random.permutation(" in one.finding.fix
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "shuffle",
    [
        "order = np.random.permutation(40)\nx, y = x[order], y[order]",
        "rows = np.arange(40)\nnp.random.shuffle(rows)",
        "np.random.shuffle(x)\ny = (x.sum(1) > 0).astype(np.int64)",
        "np.random.shuffle(x)\ny[:] = x.sum(1) > 0",
        "if len(x) > 100:\n    np.random.shuffle(x)",
        "kept = x.copy()\nx = kept.copy()\nnp.random.shuffle(x)",
        "np.random.seed(1)\nnp.random.shuffle(x)\nnp.random.seed(1)\nnp.random.shuffle(y)",
    ],
)
def test_a_shuffle_of_a_pair_or_of_something_else_is_no_finding(shuffle, engine, checks):
    assert in_numpy(shuffle, engine, checks)[1] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_two_sets_without_pairs_are_no_finding(engine, checks):
    text = IN_NUMPY.replace("x[rows]), torch.from_numpy(y[rows])", "horses[rows]), torch.from_numpy(zebras[rows])")
    text = text.replace("SHUFFLE", "horses, zebras = x, y\nnp.random.shuffle(horses)")
    assert in_numpy("", engine, checks, text)[1] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_shuffle_in_another_function_is_of_another_array(engine, checks):
    text = IN_NUMPY.replace("rows = np.arange", "def mix(x):\n    np.random.shuffle(x)\n    return x\nrows = np.arange")
    assert in_numpy("", engine, checks, text)[1] == []
