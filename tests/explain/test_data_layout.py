"""Layers for sequences that take the samples for time steps, and layers that read what the program means."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
HEAD = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
x = torch.randn(16, 6, 5)
ids = torch.randint(0, 9, (16, 6))
y = torch.randint(0, 3, (16,))
emb, fc = nn.Embedding(9, 8), nn.Linear(8, 3)
LAYER
opt = torch.optim.SGD([*rnn.parameters(), *fc.parameters(), *emb.parameters()], lr=0.01)
for epoch in range(2):
    STEPS
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LOSS = "loss = F.cross_entropy(fc(last), y)"


def net(layer, steps):
    return HEAD.replace("LAYER", layer).replace("STEPS", steps.replace("\n", "\n    "))


SICK = {
    "the last step of an lstm": net("rnn = nn.LSTM(5, 8)  #!", f"out, _ = rnn(x)\nlast = out[:, -1]\n{LOSS}"),
    "the mean of a gru over an embedding": net(
        "rnn = nn.GRU(8, 8)  #!", f"out, _ = rnn(emb(ids))\nlast = torch.relu(out.mean(dim=1))\n{LOSS}"
    ),
    "the largest step of a layer in two directions": net(
        "rnn = nn.RNN(5, 4, bidirectional=True)  #!", f"out, _ = rnn(x)\nlast = out.max(1)[0]\n{LOSS}"
    ),
    "attention": net(
        "rnn = nn.MultiheadAttention(8, 2)  #!",
        f"h = emb(ids)\nout, _ = rnn(h, h, h)\nlast = F.layer_norm(h + out, (8,)).mean(1)\n{LOSS}",
    ),
    "a layer of a transformer": net(
        "rnn = nn.TransformerEncoderLayer(8, 2, 16)  #!", f"last = rnn(emb(ids))[:, 0]\n{LOSS}"
    ),
    "an error that the program writes out": net(
        "rnn = nn.LSTM(5, 8)  #!", "out, _ = rnn(x)\nloss = ((fc(out[:, -1])[:, 0] - y) ** 2).mean()"
    ),
    "tokens one step later": net(
        "rnn = nn.LSTM(8, 8)  #!",
        "out, _ = rnn(emb(ids[:, :-1]))\nloss = F.cross_entropy(fc(out).reshape(-1, 9), ids[:, 1:].reshape(-1))",
    ).replace("nn.Linear(8, 3)", "nn.Linear(8, 9)"),
}  # fmt: skip
OVER_THE_BATCH = {
    "the mean of a gru over an embedding", "the largest step of a layer in two directions", "attention",
}  # fmt: skip
HEALTHY = {
    "batch first": net("rnn = nn.LSTM(5, 8, batch_first=True)", f"out, _ = rnn(x)\nlast = out[:, -1]\n{LOSS}"),
    "attention with the batch first": net(
        "rnn = nn.MultiheadAttention(8, 2, batch_first=True)", f"h = emb(ids)\nlast = rnn(h, h, h)[0].mean(1)\n{LOSS}"
    ),
    "a transformer with the batch first": net(
        "rnn = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)", f"last = rnn(emb(ids)).mean(1)\n{LOSS}"
    ),
    "time first": net("rnn = nn.LSTM(5, 8)", f"out, _ = rnn(x.transpose(0, 1))\nlast = out[-1]\n{LOSS}"),
    "time first in a transformer": net(
        "rnn = nn.TransformerEncoderLayer(8, 2, 16)", f"last = rnn(emb(ids.T)).mean(0)\n{LOSS}"
    ),
    "the state of time first": net("rnn = nn.GRU(5, 8)", f"_, h = rnn(x.permute(1, 0, 2))\nlast = h[-1]\n{LOSS}"),
    "turned back before the last step": net(
        "rnn = nn.LSTM(5, 8)", f"out, _ = rnn(x.transpose(0, 1))\nlast = out.transpose(0, 1)[:, -1]\n{LOSS}"
    ),
    "one sequence, a value for each step": net(
        "rnn = nn.LSTM(5, 8)", "out, _ = rnn(x[:, :1])\nloss = F.mse_loss(fc(out[:, 0])[:, 0], y.float())"
    ),
    "a sequence without a batch": net(
        "rnn = nn.LSTM(5, 8)", "out, _ = rnn(x[:, 0])\nloss = F.mse_loss(fc(out)[:, 0], y.float())"
    ),
    "a label for each step, time first": net(
        "rnn = nn.LSTM(8, 8)", "out, _ = rnn(emb(ids))\nloss = F.cross_entropy(fc(out).view(-1, 3), (ids % 3).view(-1))"
    ),
    "a value for each step and sequence": net(
        "rnn = nn.LSTM(8, 8)", "out, _ = rnn(emb(ids))\nloss = F.mse_loss(fc(out)[..., 0], ids.float())"
    ),
    "tokens that are one later in both dimensions": net(
        "rnn = nn.LSTM(8, 8)\nids = (torch.arange(16)[:, None] + torch.arange(6)) % 9",
        "out, _ = rnn(emb(ids[:-1]))\nloss = F.cross_entropy(fc(out).reshape(-1, 9), ids[1:].reshape(-1))",
    ).replace("nn.Linear(8, 3)", "nn.Linear(8, 9)"),
    "tokens one step later, time first": net(
        "rnn = nn.LSTM(8, 8)",
        "out, _ = rnn(emb(ids[:-1]))\nloss = F.cross_entropy(fc(out).reshape(-1, 9), ids[1:].reshape(-1))",
    ).replace("nn.Linear(8, 3)", "nn.Linear(8, 9)"),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", SICK)
def test_a_layer_that_takes_the_samples_for_steps_is_reported_where_it_is_made(name, engine, checks):
    text = SICK[name]
    found = [one.finding for one in checks.of_text(text, engine).found if one.finding.kind == "batch-first"]
    assert len(found) == 1, [one.finding.text for one in checks.of_text(text, engine).found]
    assert found[0].at is not None
    assert text.splitlines()[found[0].at.line - 1].endswith("#!")
    assert found[0].edit is not None
    assert "batch_first=True)" in found[0].edit.new
    said = "\n".join(row for _, row, _ in lines(found[0]))
    level = "note" if name in OVER_THE_BATCH else "warning"
    assert [one.level for one in checks.of_text(text, engine).found if one.finding.kind == "batch-first"] == [level]
    assert "16 steps of 6 sequences" in said or "16 steps of 5 sequences" in said


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", HEALTHY)
def test_a_layer_that_reads_what_the_program_means_is_no_finding(name, engine, checks):
    assert "batch-first" not in [one.finding.kind for one in checks.of_text(HEALTHY[name], engine).found]


MISTAKEN = """
data, y2 = x, torch.randn(16, 1)
rnn, head = nn.LSTM(5, 8), nn.Linear(8, 1)
out, _ = rnn(data.transpose(0, 1))
loss = F.mse_loss(head(out.mean(1)), y2)
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_an_error_after_a_layer_that_reads_time_first_does_not_name_the_layer(engine, checks):
    text = HEAD.partition("LAYER")[0] + MISTAKEN
    (found,) = [one.finding for one in checks.of_text(text, engine).found if one.finding.kind == "mismatch"]
    assert "batch first" not in found.text


FAILING = {
    "a state of the batch": "rnn = nn.LSTM(5, 8)  #!\nout, (h, c) = rnn(x)\nloss = F.cross_entropy(fc(h[-1]), y)",
    "an error of pairs": "rnn = nn.GRU(5, 8)  #!\nloss = F.mse_loss(fc(rnn(x)[1][-1]), y[:, None].float())",
    "a mask": (
        "rnn = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 1)  #!\n"
        "rnn(emb(ids), mask=nn.Transformer.generate_square_subsequent_mask(6))"
    ),
    "padding": "rnn = nn.MultiheadAttention(8, 2)  #!\nh = emb(ids)\nrnn(h, h, h, key_padding_mask=ids == 0)",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", FAILING)
def test_an_error_of_samples_and_steps_names_the_layer(name, engine, checks):
    text = HEAD.partition("LAYER")[0] + FAILING[name] + "\n"
    (found,) = [one.finding for one in checks.of_text(text, engine).found if one.finding.kind == "mismatch"]
    assert "as (time, batch, …), but it is batch first" in found.text
    assert found.edit is not None
    assert "batch_first=True)" in found.edit.new
    assert text.splitlines()[found.edit.line - 1].endswith("#!")


VIEWS = """
import torch
from torch import nn
torch.manual_seed(0)
w = torch.ones(8, requires_grad=True)
def given(*shape):
    return torch.randn(*shape) * w[0]
y = VIEW
(y * y).mean().backward()
"""
MIXED = {
    "heads joined without a transpose": ("given(2, 4, 6, 4).reshape(2, 6, 16)", "transpose(1, 2).reshape(2, 6, 16)"),
    "channels last as channels first": ("given(5, 7, 7, 3).view(-1, 3, 7, 7)", "permute(0, 3, 1, 2).reshape(-1, 3"),
    "channels first as channels last": ("given(5, 3, 7, 7).view(5, 7, 7, 3)", "permute(0, 2, 3, 1).reshape(5, 7"),
    "one image": ("given(7, 9, 3).reshape(3, 7, 9)", "permute(2, 0, 1).reshape(3, 7, 9)"),
    "layers and samples of equal width": ("given(2, 8, 8).view(8, 16)", "transpose(0, 1).reshape(8, 16)"),
    "steps joined with the wrong dimension": ("given(4, 6, 5).view(6, -1)", "transpose(0, 1).reshape(6, -1)"),
}  # fmt: skip
KEPT = {
    "heads after a transpose": "given(2, 4, 6, 4).transpose(1, 2).reshape(2, 6, 16)",
    "flat images": "given(5, 3, 7, 7).view(5, -1)",
    "steps and samples joined": "given(6, 4, 5).reshape(24, 5)",
    "split heads": "given(2, 6, 16).view(2, 6, 4, 4)",
    "equal sizes": "given(4, 4, 5).view(4, 20)",
    "groups of channels": "given(2, 6, 5, 5).view(2, 2, 3, 5, 5)",
    "one channel": "given(5, 7, 7, 1).view(5, 1, 7, 7)",
    "pixels to the end": "given(5, 7, 7, 3).view(5, 49, 3)",
    "all rows": "given(5, 7, 3).view(-1, 21)",
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", MIXED)
def test_a_view_with_the_sizes_of_a_transposed_tensor_is_a_note_with_the_transpose(name, engine, checks):
    view, mended = MIXED[name]
    text = VIEWS.replace("VIEW", view)
    (one,) = [each for each in checks.of_text(text, engine).found if each.finding.kind == "mixed-rows"]
    assert one.level == "note"
    assert mended in one.finding.edit.new
    after = checks.of_text(one.finding.edit.applied(text), engine)
    assert (after.errors, [str(each) for each in after.found]) == ([], [])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", KEPT)
def test_a_view_that_keeps_its_rows_is_no_finding(name, engine, checks):
    outcome = checks.of_text(VIEWS.replace("VIEW", KEPT[name]), engine)
    assert (outcome.errors, [str(each) for each in outcome.found]) == ([], [])


CLASSES = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
conv = nn.Sequential(nn.Conv1d(4, 6, 3, padding=1), nn.ReLU(), nn.Conv1d(6, 3, 1))
flat, head = nn.Conv2d(4, 3, 1), nn.Linear(4, 3)
opt = torch.optim.SGD([*conv.parameters(), *flat.parameters(), *head.parameters()], lr=0.01)
x, images = torch.randn(5, 4, 12), torch.randn(5, 4, 6, 7)
y, pixels = torch.randint(0, 3, (5, 12)), torch.randint(0, 3, (5, 6, 7))
labels = torch.randint(0, 3, (60,))
for step in range(2):
    LOSS
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def scores(loss):
    return CLASSES.replace("LOSS", loss.replace("\n", "\n    "))


MIXED_CLASSES = {
    "log-probabilities": (
        "p = torch.log_softmax(conv(x), dim=1).reshape(-1, 3)  #!\nloss = F.nll_loss(p, y.reshape(-1))",
        "dim=1).transpose(1, 2).reshape(-1, 3)",
    ),
    "scores": ("s = conv(x).view(-1, 3)  #!\nloss = F.cross_entropy(s, labels)", "conv(x).transpose(1, 2).reshape("),
    "pixels": (
        "loss = F.cross_entropy(flat(images).view(-1, 3), pixels.view(-1))  #!",
        "flat(images).permute(0, 2, 3, 1).reshape(-1, 3)",
    ),
    "pixels, larger": (
        "s = F.interpolate(flat(images), scale_factor=2)\ns = s.contiguous().view(-1, 3)  #!\n"
        "loss = F.cross_entropy(s, torch.randint(0, 3, (840,)))",
        "permute(0, 2, 3, 1).reshape(-1, 3)",
    ),
    "flat pixels": (
        "s = flat(images).flatten(2)\nloss = F.cross_entropy(torch.reshape(s, (-1, 3)), pixels.flatten())  #!",
        "torch.reshape(s.transpose(1, 2), (-1, 3))",
    ),
    "a layer of rows and labels of steps": (
        "s = head(x.transpose(1, 2)).transpose(1, 2)\ns = s.reshape(-1, 3)  #!\nloss = F.cross_entropy(s, y.flatten())",
        "s.transpose(1, 2).reshape(-1, 3)",
    ),
    "steps and samples apart": (
        "s = flat(images).view(5, -1, 3)  #!\nloss = -torch.log_softmax(s, -1).mean()",
        "permute(0, 2, 3, 1).reshape(5, -1, 3)",
    ),
    "labels that are only some": (
        "s = conv(x).reshape(-1, 3)  #!\nkept = labels > 0\nloss = F.cross_entropy(s[kept], labels[kept])",
        "conv(x).transpose(1, 2).reshape(-1, 3)",
    ),
    "a choice by label": (
        "p = F.log_softmax(conv(x), dim=1).view(-1, 3)  #!\nloss = -p.gather(1, y.view(-1, 1)).mean()",
        "transpose(1, 2).reshape(-1, 3)",
    ),
}  # fmt: skip
ORDERED_CLASSES = {
    "transposed": "loss = F.cross_entropy(conv(x).transpose(1, 2).reshape(-1, 3), y.reshape(-1))",
    "permuted": "loss = F.cross_entropy(flat(images).permute(0, 2, 3, 1).reshape(-1, 3), pixels.view(-1))",
    "moved": "loss = F.cross_entropy(flat(images).movedim(1, -1).reshape(-1, 3), pixels.view(-1))",
    "classes in dimension 1": "loss = F.cross_entropy(conv(x), y)",
    "pixels joined": "loss = F.cross_entropy(flat(images).flatten(2), pixels.flatten(1))",
    "groups of a last dimension": (
        "g = nn.Linear(4, 12)(x.transpose(1, 2)[:, :3])\nloss = F.cross_entropy(g.view(-1, 3), labels)"
    ),
    "one step": "loss = F.cross_entropy(conv(x).mean(2, keepdim=True).view(-1, 3), y[:, 0])",
    "codes of a distance": "c = conv(x).view(-1, 3)\nloss = (c - labels[:, None]).pow(2).mean()",
    "as many steps as classes": "loss = F.cross_entropy(conv(x)[:, :, :3].reshape(-1, 3), labels[:15])",
    "a softmax over pixels": (
        "a = F.softmax(flat(images).view(5, 3, -1), -1).sum(2)\nloss = F.cross_entropy(a, y[:, 0])"
    ),
    "features of a layer": "loss = F.cross_entropy(head(x[:, :3].reshape(-1, 4)), labels[:45])",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", MIXED_CLASSES)
def test_classes_that_are_not_last_before_a_view_are_reported(name, engine, checks):
    loss, mended = MIXED_CLASSES[name]
    text = scores(loss)
    (one,) = [each for each in checks.of_text(text, engine).found if each.finding.kind == "mixed-rows"]
    assert one.level == "warning"
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert mended in one.finding.edit.new
    after = checks.of_text(one.finding.edit.applied(text), engine)
    assert (after.errors, [str(each) for each in after.found if each.finding.kind == "mixed-rows"]) == ([], [])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ORDERED_CLASSES)
def test_classes_that_are_last_before_a_view_are_no_finding(name, engine, checks):
    outcome = checks.of_text(scores(ORDERED_CLASSES[name]), engine)
    assert outcome.errors == []
    assert "mixed-rows" not in [one.finding.kind for one in outcome.found]


TARGETS = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
critic = nn.Linear(5, 1)
opt = torch.optim.SGD(critic.parameters(), lr=0.01)
x, reward, logp, goal = torch.randn(8, 5), torch.randn(8, 1), torch.randn(8, 3), torch.randn(8, 1)
for step in range(2):
    q = critic(x)
    LOSS
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WIDE = {
    "a log-probability of each dimension": "target = reward - 0.2 * logp\n    loss = ((q - target) ** 2).mean()  #!",
    "a library loss": "loss = F.mse_loss(q, reward + logp)  #!",
}
FITTING = {
    "a sum over the dimensions": "loss = ((q - (reward - 0.2 * logp.sum(1, keepdim=True))) ** 2).mean()",
    "two critics with one target": "two = torch.cat([q, 2 * q], 1)\n    loss = ((two - goal) ** 2).mean()",
    "a product with weights": "loss = (q * logp).mean()",
    "quantiles": "loss = ((q.unsqueeze(1) - logp.unsqueeze(2)).abs()).mean()",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", WIDE)
def test_a_column_of_predictions_with_several_targets_each_is_a_note(name, engine, checks):
    text = TARGETS.replace("LOSS", WIDE[name])
    (one,) = [each for each in checks.of_text(text, engine).found if each.finding.kind == "broadcast"]
    assert one.level == "note"
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert "is (8,1), but its target" in said
    assert "each prediction is compared with 3 targets" in said
    assert "its 3 columns come from" in said


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", FITTING)
def test_shapes_that_are_meant_to_broadcast_are_no_finding(name, engine, checks):
    outcome = checks.of_text(TARGETS.replace("LOSS", FITTING[name]), engine)
    assert outcome.errors == []
    assert "broadcast" not in [one.finding.kind for one in outcome.found]
