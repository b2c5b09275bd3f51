"""The last step of padded sequences and the first of the backward direction, and steps that are the right ones."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
TORCH = [pytest.param("torch", marks=pytest.mark.torch)]
HEAD = """
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
F = nn.functional
torch.manual_seed(0)
lengths = torch.tensor([3, 5, 7, 4])
ids = torch.randint(1, 9, (4, 7)) * (torch.arange(7)[None] < lengths[:, None])
rows = [torch.randn(int(n), 8) for n in lengths]
y = torch.tensor([0, 1, 0, 1])
emb, fc = nn.Embedding(9, 8, padding_idx=0), nn.Linear(6, 2)
SETUP
opt = torch.optim.Adam([*emb.parameters(), *rnn.parameters(), *fc.parameters()], lr=0.01)
for epoch in range(3):
    STEPS
    loss = F.cross_entropy(fc(last), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
GRU = "rnn = nn.GRU(8, 6, batch_first=True)"
PACK = "from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence\n"


def net(steps, setup=GRU):
    return HEAD.replace("STEPS", steps.replace("\n", "\n    ")).replace("SETUP", setup)


def packed(last, setup=GRU, given="h, lengths, batch_first=True", returned="_", options="batch_first=True"):
    steps = f"h = emb(ids)\np = pack_padded_sequence({given}, enforce_sorted=False)\nout, state = rnn(p)\n"
    return net(
        f"{steps}out, {returned} = pad_packed_sequence(out{', ' * bool(options)}{options})\n{last}", PACK + setup
    )


PACKED = {
    "the last step": (packed("last = out[:, -1]  #!"), ["3 of 4 rows are zero", "3 to 7", "lengths - 1"]),
    "all features of the last step": (packed("last = torch.tanh(out[:, -1, :])  #!"), ["3 of 4", "lengths - 1"]),
    "the lengths that are returned": (
        packed("last = out[:, -1]  #!", given="h, lengths.tolist(), batch_first=True", returned="sizes"),
        ["3 of 4", "torch.arange(len(sizes)), sizes - 1"],
    ),
    "steps first": (
        packed("last = out[-1]  #!", "rnn = nn.LSTM(8, 6)", "h.transpose(0, 1), lengths", options=""),
        ["3 of 4", "lengths - 1, torch.arange(len(lengths))"],
    ),
    "after a dropout": (
        packed("out = F.dropout(out, 0.1)\nlast = out[:, -1]  #!"), ["3 of 4", "lengths - 1"]),
}  # fmt: skip
PADDED = {
    "an embedding of padded tokens": (net("out, _ = rnn(emb(ids))\nlast = out[:, -1]  #!"), ["3 of 4 sequences of"]),
    "steps first": (
        net("out, _ = rnn(emb(ids.T))\nlast = out[-1]  #!", "rnn = nn.LSTM(8, 6)"), ["3 of 4 sequences of"]),
    "rows that are padded": (
        net("out, _ = rnn(pad_sequence(rows, batch_first=True))\nlast = out[:, -1, :]  #!").replace(
            "*emb.parameters(), ", ""),
        ["3 of 4 sequences of"],
    ),
}  # fmt: skip
HEALTHY = {
    "the step at the length": net("out, _ = rnn(emb(ids))\nlast = out[torch.arange(4), lengths - 1]"),
    "padding at the start": net("out, _ = rnn(emb(ids.flip(1)))\nlast = out[:, -1]"),
    "sequences of equal length": net("out, _ = rnn(emb(ids.clamp(min=1)))\nlast = out[:, -1]"),
    "rows of equal length": net(
        "out, _ = rnn(pad_sequence([one[:3] for one in rows], batch_first=True))\nlast = out[:, -1]"
    ).replace("*emb.parameters(), ", ""),
    "the first step": net("out, _ = rnn(emb(ids))\nlast = out[:, 0]"),
    "the mean of the steps": net(
        "out, _ = rnn(emb(ids))\nm = (ids != 0)[..., None].float()\nlast = (out * m).sum(1) / m.sum(1)"),
}  # fmt: skip
PACKED_HEALTHY = {
    "the state": packed("last = state[-1]"),
    "the state of two layers": packed("last = state[-1]", "rnn = nn.GRU(8, 6, num_layers=2, batch_first=True)"),
    "the step at the length": packed("last = out[torch.arange(4), lengths - 1]"),
    "the last valid step of a loop": packed(
        "last = torch.zeros(4, 6)\nfor t in range(out.shape[1]):\n"
        "        last = torch.where((t < lengths)[:, None], out[:, t], last)"
    ),
    "a gather by length": packed("last = out.gather(1, (lengths - 1)[:, None, None].expand(-1, 1, 6)).squeeze(1)"),
    "sequences of equal length": packed("last = out[:, -1]", given="h, torch.full((4,), 7), batch_first=True"),
}


def found_in(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == "last-of-padded"]


def assert_found(text, words, engine, checks, level):
    (one,) = found_in(text, engine, checks)
    said = "\n".join(row for _, row, _ in lines(one.finding))
    said += one.finding.edit.new if one.finding.edit is not None else ""
    assert one.level == level
    assert [word for word in words if word not in said] == []
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    return one


@pytest.mark.parametrize("engine", TORCH)
@pytest.mark.parametrize("name", PACKED)
def test_zeros_of_packed_sequences_are_found_and_replaced(name, engine, checks):
    text, words = PACKED[name]
    one = assert_found(text, words, engine, checks, "warning")
    after = checks.of_text(one.finding.edit.applied(text), engine)
    assert after.errors == []
    assert [str(other) for other in after.found if other.level != "note"] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", PADDED)
def test_a_step_of_padding_is_a_note(name, engine, checks):
    text, words = PADDED[name]
    assert_found(text, words, engine, checks, "note")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", HEALTHY)
def test_the_last_step_of_each_sequence_is_not_reported(name, engine, checks):
    assert [str(one) for one in found_in(HEALTHY[name], engine, checks)] == []


@pytest.mark.parametrize("engine", TORCH)
@pytest.mark.parametrize("name", PACKED_HEALTHY)
def test_the_last_step_of_each_packed_sequence_is_not_reported(name, engine, checks):
    assert [str(one) for one in found_in(PACKED_HEALTHY[name], engine, checks)] == []


LONG = """
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
torch.manual_seed(0)
emb, rnn, fc = nn.Embedding(9, 4, padding_idx=0), nn.GRU(4, 6, batch_first=True), nn.Linear(6, 2)
opt = torch.optim.Adam([*emb.parameters(), *rnn.parameters(), *fc.parameters()], lr=0.01)
for epoch in range(2):
    rows = [torch.randint(1, 9, (SIZE,)) for n in range(64)]
    out, _ = rnn(emb(pad_sequence(rows, batch_first=True)))
    loss = nn.functional.cross_entropy(fc(out[:, -1]), torch.arange(64) % 2)  #!
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize("engine", TORCH)  # the built-in engine writes row by row, which is not known as padding
def test_padded_tokens_are_known_without_their_numbers(engine, checks):
    assert_found(LONG.replace("SIZE", "70 - n"), ["63 of 64 sequences of"], engine, checks, "note")
    assert found_in(LONG.replace("SIZE", "70"), engine, checks) == []


BIDIRECTIONAL = """
import torch
from torch import nn
torch.manual_seed(0)
F = nn.functional
rnn = LAYER
fc = nn.Linear(WIDTH, 3)
opt = torch.optim.Adam([*rnn.parameters(), *fc.parameters()], lr=0.01)
x, y = torch.randn(12, 7, 5), torch.randint(0, 3, (12,))
for step in range(3):
    out, state = rnn(x)
    loss = nn.functional.cross_entropy(fc(LAST), y)  #!
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def bidirectional(last, layer="nn.LSTM(5, 8, batch_first=True, bidirectional=True)", width=16):
    return BIDIRECTIONAL.replace("LAYER", layer).replace("LAST", last).replace("WIDTH", str(width))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "text",
    [
        bidirectional("out[:, -1, :]"),
        bidirectional("out[:, 6]", "nn.GRU(5, 8, num_layers=2, batch_first=True, bidirectional=True)"),
        bidirectional("out.gather(1, torch.full((12, 1, 16), 6)).squeeze(1)"),
        bidirectional("out[:, -1] + first").replace(
            "    loss =", "    first = F.pad(out[:, 0, :8], (0, 8))\n    loss ="
        ),
    ],
    ids=["lstm", "two layers", "gather", "the first step of the other direction"],
)
def test_a_direction_that_is_read_where_it_starts_is_found(text, engine, checks):
    (one,) = checks.of_text(text, engine).found
    assert (one.level, one.finding.kind) == ("warning", "last-of-reverse")
    assert "torch.cat([h[-2], h[-1]], 1)" in one.finding.fix
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "text",
    [
        bidirectional("torch.cat([state[0][-2], state[0][-1]], 1)"),
        bidirectional("out.mean(1)"),
        bidirectional("torch.cat([out[:, -1, :8], out[:, 0, 8:]], 1)"),
        bidirectional("out[:, -1]", "nn.LSTM(5, 8, batch_first=True)", 8),
        bidirectional("out[:, -1]").replace("12, 7, 5", "12, 1, 5"),
        bidirectional("out.view(4, 3, 16)[:, -1].repeat(3, 1)").replace("12, 7, 5", "12, 1, 5"),
        bidirectional("out[:, -1, :8]", width=8),
    ],
    ids=[
        "final states",
        "mean",
        "each at its end",
        "one direction",
        "one step",
        "one step as several",
        "forwards only",
    ],
)
def test_both_directions_that_are_read_at_their_ends_are_no_finding(text, engine, checks):
    assert [str(one) for one in checks.of_text(text, engine).found if one.finding.kind == "last-of-reverse"] == []
