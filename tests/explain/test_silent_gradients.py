"""Gradients that are wrong in silence: random draws, padding rows, masked means, left-out parameters, unused nan."""

import pytest
from recording import timeline_of

import gviz.engine as torch
from gviz.explain.formula import rule_text

HEAD = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
"""
ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]


@pytest.fixture
def kinds(checks):
    def of(text, engine="builtin"):
        return {one.finding.kind: one.finding for one in checks.of_text(HEAD + text, engine).found}

    return of


def texts(finding):
    return " | ".join([finding.text, *(part.text for part in finding.parts), finding.fix])


AUTOENCODER = """
enc, dec = nn.Linear(6, 4), nn.Linear(2, 6)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=1e-2)
data = torch.randn(8, 6)
for epoch in range(2):
    mu, logvar = enc(data).chunk(2, -1)
    std = (0.5 * logvar).exp()
    z = DRAW
    loss = (dec(z) - data).pow(2).mean() + TERM
    opt.zero_grad(); loss.backward(); opt.step()
"""
KL = "(mu.pow(2) + logvar.exp() - logvar).mean()"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_draw_from_what_the_loss_trains_otherwise_is_found_with_its_edit(engine, kinds):
    found = kinds(AUTOENCODER.replace("DRAW", "torch.normal(mu, std)").replace("TERM", KL), engine)["drawn"]
    assert "drawn from" in texts(found)
    assert "mu" in texts(found)
    assert "rest of the loss only" in texts(found)
    assert found.edit is not None
    assert "(mu + std * torch.randn_like(mu))" in str(found.edit)


@pytest.mark.parametrize(
    ("draw", "edit"),
    [
        ("torch.normal(mu, 0.1)", "(mu + 0.1 * torch.randn_like(mu))"),
        ("torch.normal(mu, std + 1)", "(mu + (std + 1) * torch.randn_like(mu))"),
        ("torch.normal(mu if epoch else 2 * mu, std)", None),
        ("torch.normal(mu[0], std)", None),
    ],
)
def test_the_edit_of_a_draw_keeps_its_shape_and_computes_no_mean_twice(draw, edit, kinds):
    found = kinds(AUTOENCODER.replace("DRAW", draw).replace("TERM", KL))["drawn"]
    assert found.edit is None if edit is None else edit in str(found.edit)


CUTS = ["torch.normal(mu.detach(), 1.0)", "torch.normal(mu.detach(), std.detach())"]


@pytest.mark.parametrize("draw", CUTS)
def test_a_cut_before_a_draw_is_deliberate(draw, kinds):
    assert "drawn" not in kinds(AUTOENCODER.replace("DRAW", draw).replace("TERM", KL))


def test_a_draw_in_a_block_without_gradients_is_deliberate(kinds):
    block = "torch.zeros(8, 2)\n    with torch.no_grad():\n        z = torch.normal(mu, std)"
    assert "drawn" not in kinds(AUTOENCODER.replace("DRAW", block).replace("TERM", KL))


def test_a_draw_while_gradients_are_switched_off_is_deliberate(kinds):
    block = "0\n    torch.set_grad_enabled(False)\n    z = torch.normal(mu, std)\n    torch.set_grad_enabled(True)"
    assert "drawn" not in kinds(AUTOENCODER.replace("DRAW", block).replace("TERM", KL))


@pytest.mark.torch
def test_a_sample_is_found_but_not_in_a_block_of_the_program(kinds):
    pytest.importorskip("torch")
    sample = "torch.distributions.Normal(mu, std).sample()"
    found = kinds(AUTOENCODER.replace("DRAW", sample).replace("TERM", KL), "torch")["drawn"]
    assert "rsample()" in str(found.edit)
    block = f"0\n    with torch.no_grad():\n        z = {sample}"
    assert "drawn" not in kinds(AUTOENCODER.replace("DRAW", block).replace("TERM", KL), "torch")


@pytest.mark.parametrize("draw", ["mu + std * torch.randn_like(std)", "mu", "torch.normal(0.0, 1.0, (8, 2))"])
def test_noise_and_draws_from_fixed_distributions_are_not(draw, kinds):
    assert "drawn" not in kinds(AUTOENCODER.replace("DRAW", draw).replace("TERM", KL))


def test_a_parameter_on_both_sides_of_a_draw_makes_no_probability(kinds):
    tied = AUTOENCODER.replace("(dec(z) - data)", "(z @ enc.weight[:2] - data)").replace("TERM", KL)
    assert "drawn" in kinds(tied.replace("DRAW", "torch.normal(mu, std)"))


def test_a_draw_from_data_with_many_paths_is_found_at_once(kinds):
    """Sixty additions of a tensor to itself have 2 ** 60 paths."""
    doubled = "torch.full((8, 2), 1e-20)\n    for _ in range(60):\n        std = std + std\n"
    program = AUTOENCODER.replace("(0.5 * logvar).exp()\n", doubled)
    assert "drawn" in kinds(program.replace("DRAW", "torch.normal(mu, std)").replace("TERM", KL))


def test_a_draw_whose_probability_is_in_the_loss_is_deliberate(kinds):
    score = "((z - mu) / std).pow(2).mean()"
    assert "drawn" not in kinds(AUTOENCODER.replace("DRAW", "torch.normal(mu, std)").replace("TERM", score))


def test_a_draw_whose_probability_uses_what_the_mean_was_made_from_is_deliberate(kinds):
    program = AUTOENCODER.replace("DRAW", "torch.normal(torch.sigmoid(mu), std)")
    assert "drawn" in kinds(program.replace("TERM", KL))
    assert "drawn" not in kinds(program.replace("TERM", "(z - mu).pow(2).mean()"))


def test_a_draw_from_what_this_loss_does_not_train_is_deliberate(kinds):
    program = AUTOENCODER.replace("DRAW", "torch.normal(mu, std).detach()").replace("TERM", "0")
    assert "drawn" not in kinds(program)


EMBEDDING = """
ids = torch.tensor(IDS)
emb, fc = nn.Embedding(6, 3, padding_idx=PADDING), nn.Linear(3, 6)
opt = torch.optim.SGD([*emb.parameters(), *fc.parameters()], lr=0.1)
for epoch in range(2):
    loss = F.cross_entropy(fc(emb(ids)).reshape(-1, 6), TARGETS)
    opt.zero_grad(); loss.backward(); opt.step()
"""
PADDED = "[[1, 2, 0, 0], [3, 0, 0, 0], [4, 5, 1, 2]]"
BETWEEN = "[[1, 0, 2, 3], [3, 1, 0, 4], [4, 5, 1, 2]]"


def embedding(ids, targets, padding="0"):
    return EMBEDDING.replace("IDS", ids).replace("TARGETS", targets).replace("PADDING", padding)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_padding_row_between_tokens_is_a_token(engine, kinds):
    found = kinds(embedding(BETWEEN, "torch.full((12,), 3)"), engine)["padding-used"]
    assert "index 0 is between other tokens twice" in texts(found)
    assert "ignore_index" not in texts(found)


def test_a_padding_row_among_the_targets_is_a_token_or_to_be_ignored(kinds):
    found = kinds(embedding(PADDED, "ids.reshape(-1)"))["padding-used"]
    assert "5 of the 12 targets" in texts(found)
    assert "ignore_index=0" in texts(found)
    assert "between" not in texts(found)


@pytest.mark.parametrize(("padding", "words"), [(0, "except the padding row 0, "), (None, "")])
def test_the_rule_of_an_embedding_leaves_out_its_padding_row(padding, words):
    weight = torch.ones(3, 2, requires_grad=True)
    timeline = timeline_of(
        lambda: torch.nn.functional.embedding(torch.tensor([1, 0]), weight, padding_idx=padding).sum().backward()
    )
    info = next(info for info in map(timeline.info, timeline.nodes) if info.op.name == "embedding")
    assert rule_text(info, 0) == f"g added at the rows indices, {words}0 elsewhere"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_row_that_pads_is_not(engine, kinds):
    assert "padding-used" not in kinds(embedding(PADDED, "ids.reshape(-1), ignore_index=0"), engine)
    assert "padding-used" not in kinds(embedding(PADDED, "torch.full((12,), 3)"), engine)
    assert "padding-used" not in kinds(embedding(BETWEEN, "ids.reshape(-1)", "None"), engine)


@pytest.mark.parametrize(
    "frozen", ["emb.weight.requires_grad_(False)", "opt = torch.optim.SGD(fc.parameters(), lr=0.1)"]
)
def test_the_padding_row_of_an_embedding_that_does_not_learn_is_not(frozen, kinds):
    program = embedding(BETWEEN, "ids.reshape(-1)")
    assert "padding-used" in kinds(program)
    assert "padding-used" not in kinds(program.replace("for epoch", f"{frozen}\nfor epoch"))


def test_other_classes_than_the_rows_of_the_embedding_are_no_tokens(kinds):
    classes = embedding(PADDED, "ids.reshape(-1) % 5").replace("nn.Linear(3, 6)", "nn.Linear(3, 5)")
    assert "padding-used" not in kinds(classes.replace("(-1, 6)", "(-1, 5)"))


def test_the_targets_of_another_model_are_not(kinds):
    other = (
        "for epoch in range(2):\n    F.cross_entropy(nn.Linear(2, 6)(torch.ones(12, 2)), ids.reshape(-1)).backward()"
    )
    program = embedding(PADDED, "torch.full((12,), 3)")
    assert "padding-used" not in kinds(program.replace("for epoch in range(2):", other))


@pytest.mark.parametrize(("padding", "count"), [(0, "3000 of the 9000 targets"), (1, "")])
def test_targets_of_which_only_statistics_are_kept_are_counted_if_they_are_zero(padding, count, kinds):
    ids = f"[[2, 3, {padding}]] * 3000"
    found = kinds(embedding(ids, "ids.reshape(-1)", str(padding))).get("padding-used")
    assert count in texts(found) if count else found is None


def test_sequences_may_lie_along_either_dimension_of_the_indices(kinds):
    transposed = "[list(column) for column in zip(*IDS)]"
    assert "padding-used" not in kinds(embedding(transposed.replace("IDS", PADDED), "torch.full((12,), 3)"))
    assert "padding-used" in kinds(embedding(transposed.replace("IDS", BETWEEN), "torch.full((12,), 3)"))


def test_indices_that_are_no_sequences_may_have_missing_ones(kinds):
    found = kinds(embedding("[1, 0, 2, 0, 3, 1]", "torch.full((6,), 3)"))["padding-used"]
    assert found.suspected
    assert "if id 0 is one of the data" in found.fix
    assert "padding-used" not in kinds(
        embedding("[[1, 0, 4], [2, 0, 5], [1, 3, 4], [0, 3, 5]]", "torch.full((12,), 3)")
    )


@pytest.mark.parametrize("targets", ["ids.reshape(-1), weight=torch.tensor([0., 1, 1, 1, 1, 1])", "OTHER"])
def test_a_loss_that_may_leave_padding_out_is_not(targets, kinds):
    program = embedding(PADDED, targets)
    if targets == "OTHER":
        program = program.replace("OTHER)", "ids.reshape(-1), reduction='none')").replace(
            "reduction='none')", "reduction='none').mul((ids.reshape(-1) != 0).float()).sum()"
        )
    assert "padding-used" not in kinds(program)


MASKED = """
lengths = torch.tensor([4, 2, 3])
mask = MASK
net = nn.Linear(3, 5)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(3, 4, 3), torch.randint(0, 5, (12,))
for epoch in range(2):
    losses = F.cross_entropy(net(x).reshape(12, 5), y, reduction="none").reshape(3, 4)
    loss = LOSS
    opt.zero_grad(); loss.backward(); opt.step()
"""
COMPARED = "(torch.arange(4)[None, :] < lengths[:, None]).float()"
SUFFIXES = "torch.tensor([[1., 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 0]])"
LABELS = "torch.tensor([[1., 0, 1, 1], [0, 1, 0, 1], [1, 0, 1, 0]])"


def masked(mask, loss):
    return MASKED.replace("MASK", mask).replace("LOSS", loss)


@pytest.mark.parametrize("mask", [COMPARED, SUFFIXES])
@pytest.mark.parametrize("engine", ENGINES)
def test_the_mean_of_a_masked_loss_is_found_with_its_edit(engine, mask, kinds):
    found = kinds(masked(mask, "(losses * mask).mean()"), engine)["masked-mean"]
    assert "keeps 9 of 12 elements: the loss is 0.75 of their mean" in texts(found)
    assert found.edit is not None
    assert "((losses * mask).sum() / mask.sum())" in str(found.edit)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_mask_that_is_filled_in_counts_what_it_leaves(engine, kinds):
    mask = "torch.arange(4)[None, :] >= lengths[:, None]"
    found = kinds(masked(mask, "losses.masked_fill(mask, 0.0).mean()"), engine)["masked-mean"]
    assert "keeps 9 of 12 elements" in texts(found)


@pytest.mark.parametrize(
    ("mask", "loss"),
    [
        (COMPARED, "(losses * mask).sum() / mask.sum()"),
        (LABELS, "(losses * mask).mean()"),
        (SUFFIXES.replace("0", "1"), "(losses * mask).mean()"),
        (f"{SUFFIXES} * 0.5", "(losses * mask).mean()"),
        (COMPARED, "(losses * mask).mean(1).sum()"),
        (COMPARED, "(losses * mask).mean() / mask.mean()"),
        (COMPARED, "(losses * (losses > 1).float()).mean()"),
        (COMPARED, "(losses * mask).mean() + (losses.pow(2) * (lengths[:, None] <= torch.arange(4)).float()).mean()"),
        (COMPARED, "(losses.pow(2) * torch.ones(4, 4).tril()[:3]).mean()"),
        ("torch.tensor([[1.], [0.], [1.]])", "(losses[:, :1] * mask).mean()"),
    ],
)
def test_other_means_are_not(mask, loss, kinds):
    assert "masked-mean" not in kinds(masked(mask, loss))


GROUPS = """
net = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 3))
opt = torch.optim.SGD([p for p in net.parameters() if p.dim() > 1], lr=0.1)
for step in range(3):
    loss = net(torch.ones(2, 4)).pow(2).mean()
    loss.backward()
    opt.step()
"""


def test_a_parameter_of_no_group_is_compared_with_those_that_the_optimizer_holds(kinds):
    found = kinds(GROUPS)["never-stepped"]
    held = found.parts[0]
    assert "SGD at program.py:8 holds 2 other parameters; its .grad is" in held.text.replace("  ", " ")
    assert held.text.endswith("after 3 passes")


ANEW = """
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    loss = torch.tensor(net(torch.ones(2, 3)).mean().item(), requires_grad=True) * 1
    opt.zero_grad(); loss.backward(); opt.step()
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_a_loss_that_is_made_anew_is_one_finding(engine, kinds):
    found = kinds(ANEW, engine)
    assert "not-reached" in found or "cut" in found
    assert "never-stepped" not in found


UNUSED = """
adj = torch.tensor([[0., 1, 0], [1, 0, 0], [0, 0, 0]])
layer = nn.Linear(2, 2, bias=False)
mean = adj @ torch.randn(3, 2) / adj.sum(1, keepdim=True)
F.cross_entropy(layer(mean)[:2], torch.tensor([0, 1])).backward()
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_nan_of_unused_elements_is_traced_to_its_operation(engine, kinds):
    found = kinds(UNUSED, engine)["nan-born"]
    assert "mean" in found.text
    assert "0 * nan" in texts(found)
    assert "divided" in found.fix


MISSING = """
target = torch.randn(6, 2)
target[1, 0] = float("nan")
net = nn.Linear(3, 2)
pred = net(torch.ones(6, 3))
seen = ~TEST
(pred - torch.where(seen, target, pred.detach())).pow(2).sum().backward()
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_nan_that_the_program_looks_for_is_no_finding(engine, kinds):
    assert "nan-born" not in kinds(MISSING.replace("TEST", "target.isnan()"), engine)
    assert "nan-born" not in kinds(MISSING.replace("TEST", "(target != target)"), engine)
    assert "nan-born" in kinds(MISSING.replace("TEST", "(target != 2)"), engine)
    found = kinds(MISSING.replace("TEST", "torch.arange(12).reshape(6, 2).eq(2)"), engine)
    assert "nan-born" in found


SUMMED = """
net = nn.Linear(3, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.ones(20, 3)
for step in range(2):
    opt.zero_grad(); F.mse_loss(net(x), torch.zeros(20, 2)).backward(); opt.step()
LAST
"""


def test_leaves_of_one_comprehension_are_not_made_anew(kinds):
    program = """
ws = [torch.randn(3, requires_grad=True) for _ in range(3)]
opt = torch.optim.SGD([w.detach().clone() for w in ws], lr=0.1)
for step in range(3):
    sum(w.sum() for w in ws).backward()
    opt.step()
"""
    assert "never-stepped" in kinds(program)


def test_a_sum_from_which_no_step_gets_a_gradient_is_no_finding(kinds):
    assert "summed-loss" not in kinds(SUMMED.replace("LAST", "torch.autograd.grad(net(x).sum(), net.weight)"))
    assert "summed-loss" in kinds(SUMMED.replace("LAST", "net(x).sum().backward(); opt.step()"))
    cleared = "opt.zero_grad()\nnet(x).sum().backward()\nopt.zero_grad()\nnet(x).mean().backward()\nopt.step()"
    assert "summed-loss" not in kinds(SUMMED.replace("LAST", cleared))
    assert "summed-loss" in kinds(
        SUMMED.replace("LAST", cleared.replace("opt.zero_grad()\nnet(x).mean", "net(x).mean"))
    )


def test_a_sum_over_rows_that_each_have_a_row_of_the_parameters_is_no_finding(kinds):
    program = """
goal = torch.randn(32, 3)
z = torch.zeros(ROWS, 3, requires_grad=True)
opt = torch.optim.SGD([z], lr=0.1)
for step in range(3):
    opt.zero_grad()
    (z - goal).pow(2).mean(1).sum().backward()
    opt.step()
"""
    assert "summed-loss" not in kinds(program.replace("ROWS", "32"))
    shared = (
        program.replace("ROWS", "32").replace("SGD([z]", "SGD([z, bias]").replace("(z - goal)", "(z + bias - goal)")
    )
    assert "summed-loss" in kinds(f"bias = torch.zeros(3, requires_grad=True)\n{shared}")
    assert "summed-loss" in kinds(program.replace("ROWS", "1"))


def test_a_check_of_gradients_that_restores_its_inputs_changes_nothing(kinds):
    program = """
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3
    @staticmethod
    def backward(ctx, g):
        return g * 3 * ctx.saved_tensors[0] ** 2
x = torch.randn(3, dtype=torch.float64, requires_grad=True)
torch.autograd.gradcheck(Cube.apply, (x,))
LAST
"""
    assert "changed-through-data" not in kinds(program.replace("LAST", ""))
    changed = "y = Cube.apply(x); x.data[0] = 7; y.sum().backward()"
    assert "changed-through-data" in kinds(program.replace("LAST", changed))


@pytest.mark.parametrize("engine", ENGINES)
def test_what_takes_only_a_shape_cuts_no_path(engine, kinds):
    found = kinds(
        """
net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(2):
    x = torch.rand(6, 2, requires_grad=True)
    u = net(x)
    du = torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)[0]
    opt.zero_grad(); du.pow(2).mean().backward(); opt.step()
""",
        engine,
    )
    assert "2.bias got no gradient" in found["not-reached"].text
    assert not {"cut"} & found.keys()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_head_that_the_loss_leaves_out_is_not_only_updated(engine, kinds):
    found = kinds(
        """
net, heads = nn.Linear(2, 8), nn.ModuleList(nn.Linear(8, 1) for _ in range(2))
opt = torch.optim.SGD([*net.parameters(), *heads.parameters()], lr=0.1)
for i in range(2):
    h = net(torch.rand(6, 2))
    outs = [head(h) for head in heads]
    loss = outs[0].pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
        engine,
    )["not-reached"]
    assert "is not connected to" in found.text
