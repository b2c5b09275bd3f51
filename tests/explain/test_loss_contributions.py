"""One backward of a sum of losses: what each has brought is what a backward of it alone brings."""

import re
import runpy

import numpy as np
import pytest
from explain.programs import ENGINES, HERE, recorded
from recording import timeline_of

import gviz
import gviz.engine as torch
from gviz.explain import loss_terms
from gviz.explain.typed_question import answers
from gviz.explain.why import why

on_both_engines = pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])


def brought(answer):
    """By the name of the loss: the length of what it brought, its cosine to the sum."""
    parts = [part for part in answer.parts if part.kind == "by-loss"]
    names = (re.split("the (?:loss|term) ", part.text)[-1].split()[1] for part in parts)
    return {name: {n.name: n.value for n in part.numbers} for name, part in zip(names, parts, strict=True)}


def alone(engine):
    """The gradients of the trunk's weight by each loss, by a backward of its own."""
    with ENGINES[engine](None) if engine == "builtin" else pytest.MonkeyPatch.context():
        names = runpy.run_path(str(HERE / "loops" / "two_losses_one_pass.py"), {"alone": True})
    return {name: np.array(gradient.tolist()) for name, gradient in names["each"].items()}


@on_both_engines
def test_each_share_is_what_a_backward_of_its_loss_brings(engine):
    timeline = recorded("loops", "two_losses_one_pass", engine)
    infos = (timeline.info(node) for node in timeline.nodes)
    weight = next(info.node for info in infos if info.created.kind == "parameter")
    (answer,) = answers(timeline, f"#{weight}.grad")
    truth = alone(engine)
    found = brought(answer)
    assert list(found) == ["first", "second"]
    total = sum(truth.values())
    for name, gradient in truth.items():
        assert found[name]["norm"] == pytest.approx(np.linalg.norm(gradient), rel=1e-4)
        cosine = (gradient * total).sum() / np.linalg.norm(gradient) / np.linalg.norm(total)
        assert found[name]["cosine to the sum"] == pytest.approx(cosine, abs=1e-4)


ON_THE_WAY = {
    "squeeze": "h.unsqueeze(1).squeeze(1)",
    "view": "h.view(2, 8)",
    "transpose": "h.t().contiguous()",
    "index": "h[1]",
    "index of tensors": "h[torch.tensor([0, 2])]",
    "mask": "h[h > 0]",
    "where": "torch.where(h > 0, h, h * 0.1)",
    "masked fill": "h.masked_fill(h < 0, 0.0)",
    "sum": "h.sum(1)",
    "mean": "h.mean(0, keepdim=True)",
    "variance": "h.var(1)",
    "maximum": "h.max(1).values",
    "norm": "h.norm(dim=1)",
    "logsumexp": "h.logsumexp(1)",
    "cat": "torch.cat([h, h * 2], 1)",
    "stack": "torch.stack([h, h * 2])",
    "split": "h.split([1, 3], 1)[1]",
    "sort": "h.sort(1).values",
    "topk": "h.topk(2, 1).values",
    "roll": "h.roll(1, 0)",
    "layer norm": "F.layer_norm(h, (4,))",
    "group norm": "F.group_norm(h.view(1, 4, 4), 2)",
    "batch norm": "torch.nn.BatchNorm1d(4)(h)",
    "rms norm": "F.rms_norm(h, (4,))",
    "max pooling": "F.max_pool2d(h[None], 2)",
    "max pooling with a stride": "F.max_pool2d(h[None], (3, 2), 1, padding=1)",
    "silu": "F.silu(h)",
    "normalize": "F.normalize(h)",
    "softmax": "h.softmax(1)",
    "attention": "F.scaled_dot_product_attention(h[None], h[None], h[None])",
    "attention module": "heads(h[None], h[None], h[None], need_weights=False)[0]",
}
"""By name: an operation between the leaf and two losses, as PyTorch runs it."""


@pytest.mark.torch
@pytest.mark.parametrize("name", ON_THE_WAY)
def test_under_pytorch_each_share_is_what_its_loss_brings_alone(name, tmp_path):
    real = pytest.importorskip("torch")
    real.manual_seed(0)
    with gviz.record(tmp_path / "t.gviz", limit=1 << 16):
        w = real.randn(4, 4, requires_grad=True)
        h, heads = real.tanh(w * 0.7), real.nn.MultiheadAttention(4, 2, batch_first=True)
        z = eval(ON_THE_WAY[name], {"torch": real, "F": real.nn.functional, "h": h, "heads": heads})
        losses = [z.exp().sum(), z.pow(3).mean()]
        (losses[0] + losses[1]).backward(retain_graph=True)
    truth = [real.autograd.grad(loss, w, retain_graph=True)[0] for loss in losses]
    timeline = gviz.load(tmp_path / "t.gviz")
    node = next(node for node in timeline.nodes if timeline.info(node).created.kind == "leaf")
    found = [part for part in why(timeline, timeline.at(len(timeline)), node, "grad").parts if part.kind == "by-loss"]
    norms = [next(number.value for number in part.numbers if number.name == "norm") for part in found]
    assert norms == pytest.approx([float(gradient.norm()) for gradient in truth], rel=1e-3)


@pytest.mark.torch
def test_where_a_rule_cannot_run_again_an_approximation_by_perturbation_is_offered(tmp_path):
    real = pytest.importorskip("torch")
    with gviz.record(tmp_path / "t.gviz", limit=1 << 16):
        w = real.randn(4, 4, requires_grad=True)
        z = real.nn.LSTM(4, 4)(w * 2)[0]
        first, second = z.exp().sum(), z.pow(2).mean()
        (first + second).backward()
    timeline = gviz.load(tmp_path / "t.gviz")
    node = next(node for node in timeline.nodes if timeline.info(node).created.kind == "leaf")
    (found,) = [
        part for part in why(timeline, timeline.at(len(timeline)), node, "grad").parts if part.kind == "by-loss"
    ]
    assert "is not known: " in found.text
    assert found.fix.startswith("an approximation by perturbation: multiply #")
    assert "second = mean" in found.fix


@pytest.mark.torch
def test_losses_that_cancel_at_an_element_are_not_split_there(tmp_path):
    """A recording of `rms_norm` does not have the small number that it adds, so the rule cannot run again."""
    real = pytest.importorskip("torch")
    with gviz.record(tmp_path / "t.gviz", limit=1 << 16):
        w = real.randn(4, 4, requires_grad=True)
        z = real.nn.functional.rms_norm(w * 2, (4,))
        first, second = z.exp().sum(), -z[0].exp().sum()
        (first + second).backward()
    timeline = gviz.load(tmp_path / "t.gviz")
    node = next(node for node in timeline.nodes if timeline.info(node).created.kind == "leaf")
    (found,) = [
        part for part in why(timeline, timeline.at(len(timeline)), node, "grad").parts if part.kind == "by-loss"
    ]
    assert "cannot be split by element" in found.text


def recorded_now(program):
    torch.manual_seed(0)
    return timeline_of(program, limit=1 << 16)


def shares(program, node=1):
    timeline = recorded_now(program)
    return [part for part in why(timeline, timeline.at(len(timeline)), node, "grad").parts if part.kind == "by-loss"]


def mixed(total):
    """Two losses that meet in ``h``, added up in some way."""

    def program():
        w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        h = torch.exp(w * 0.5) * w
        total(h.sum(), h.pow(2).mean())
        return w

    return program


def product_and_sine(sum_of):
    def program():
        x, y = torch.tensor(4.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
        return sum_of(x * x, torch.sin(2 * y))

    return program


def test_a_term_of_a_sum_with_a_name_is_no_loss():
    def named(one, two):
        z = one + two
        z.backward()
        return z

    (found,) = shares(product_and_sine(named), node=2)
    assert " because of the term #" in found.text
    assert " sin at " in found.text
    assert found.text.endswith(" of #7 z = add")
    (found,) = shares(product_and_sine(lambda one, two: (one + two).backward()), node=2)
    assert found.text.endswith(" of #7 add")  # numbers, and no tensor that a loss reduces

    def root():
        w, v = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        (w.mean().sqrt() + (v * v).mean()).backward()
        return w, v

    (found,) = shares(root, node=2)
    assert "because of the loss #" in found.text


@pytest.mark.parametrize(
    "total",
    [
        lambda one, two: (one + two).backward(),
        lambda one, two: (one - 3 * two).backward(),
        lambda one, two: ((one + two) / 2).backward(),
        lambda one, two: sum([one, two]).backward(),
        lambda one, two: torch.stack([one, two]).sum().backward(),
        lambda one, two: torch.autograd.backward([one, two]),
    ],
    ids=["sum", "difference", "half", "python's sum", "stack", "two roots"],
)
def test_losses_are_told_apart_however_they_are_added_up(total):
    found = shares(mixed(total))
    assert len(found) == 2
    assert all(
        {"norm", "cosine to the sum", "same signs"} == {number.name for number in part.numbers} for part in found
    )


def test_an_entry_of_a_list_that_is_summed_is_called_a_summand_and_no_loss():
    found = shares(mixed(lambda one, two: torch.stack([one, two]).sum().backward()))
    assert all("because of #" in part.text and ", a summand of #" in part.text for part in found)
    (of_two, *_) = shares(mixed(lambda one, two: (one + two).backward()))
    assert "because of the loss #" in of_two.text


def test_a_gradient_of_one_loss_alone_says_so():
    def program():
        w, v = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        h = w * 2
        (h.pow(2).sum() + (h * (v * v)).mean()).backward()
        return w, v

    (found,) = shares(program, node=2)
    assert found.text.startswith("all of it because of the loss #")


@pytest.mark.parametrize(
    "total",
    [
        lambda one, two: one.backward(),
        lambda one, two: (one * two).backward(),
        lambda one, two: torch.exp(one).backward(),
    ],
)
def test_one_loss_is_not_taken_apart(total):
    assert shares(mixed(total)) == []


def test_a_contribution_that_comes_from_its_loss_at_once_says_so_itself():
    def program():
        x, y = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
        (x * y + torch.sin(x)).backward()
        return x, y

    assert shares(program) == []


def test_what_a_hook_has_changed_is_not_told_apart():
    def program():
        w = torch.ones(3, requires_grad=True)
        h = torch.exp(w)
        h.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 2,))
        (h.sum() + h.pow(2).mean()).backward()
        return w

    (found,) = shares(program)
    assert "not known" in found.text
    assert "a hook" in found.text


def test_a_sum_that_is_used_elsewhere_too_is_not_told_apart():
    def program():
        w = torch.ones(3, requires_grad=True)
        h = torch.exp(w)
        both = h.sum() + h.mean()
        (both + torch.exp(both)).backward()
        return w

    (found,) = shares(program)
    assert "not known: their sum is used elsewhere" in found.text


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ([0.5] * 8, ""),
        ([0.0] * 8, ""),
        ([-0.5] * 8, "this part points away from the sum (cosine -1)"),
        ([0.5, -0.5] * 4, "this part hardly points along the sum (cosine 0.16)"),
        ([4.0] + [0.0] * 7, "this part points only partly along the sum (cosine 0.66)"),
    ],
)
def test_of_a_part_is_said_where_it_does_not_pull_the_way_of_the_sum(other, said):
    def program():
        w = torch.ones(8, requires_grad=True)
        (w * torch.full((8,), 3.0)).sum().add((w * torch.tensor(other)).sum()).backward()

    timeline = recorded_now(program)
    found = why(timeline, timeline.at(len(timeline)), 1, "grad")
    told = [part.text.partition("; ")[2] for part in found.parts if part.kind == "contribution"]
    assert sorted(filter(None, told)) == [said] * bool(said)


def test_a_sum_that_each_step_uses_twice_is_looked_through_once(monkeypatch):
    def program():
        w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        total = (w * w).sum() + w.exp().sum()
        for _ in range(12):
            total = total + total * 0.5
        total.backward()

    looked_at = []
    summands = loss_terms._summands
    monkeypatch.setattr(loss_terms, "_summands", lambda *given: looked_at.append(1) or summands(*given))
    assert len(shares(program)) == 2
    assert len(looked_at) < 50
