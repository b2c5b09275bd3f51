"""Small programs, each with one of the classic mistakes: the check names the line and the cause, in a few lines."""

import pytest
from explain.programs import HERE, line_of, recorded

from gviz.explain.check import check
from gviz.explain.finding import lines, whole
from gviz.explain.findings.training_loop.kept_graphs import alive_graphs
from gviz.explain.recording_survey import Survey
from gviz.explain.typed_question import answers
from gviz.explain.why import why

ANSWERS = {
    "optimizer_of_a_result": ("error", "failed", ["#2 image = clone", "is not a leaf", "image = (...).detach()"]),
    "late_leaf_in_place": ("error", "leaf-in-place", ["image", "was to be changed in place", "torch.no_grad()"]),
    "in_place_saved": ("error", "changed-in-place", ["saved by SigmoidBackward0", ":6 at version 0", "to version 1"]),
    "given_gradient": ("error", "given-gradient", ["of shape (2,) for a tensor of shape (3,)"]),
    "second_backward": ("error", "second-backward", ["released by the first backward() at second_backward.py:7"]),
    "clipped_too_early": ("warning", "clipped-early", ["has nothing to clip", "between backward() and the update"]),
    "critic_not_detached": ("error", "second-backward", ["fake = tanh, which both use", "fake.detach()", "py:14, if"]),
    "carried_state": ("error", "carried-state", ["the edge that crosses", "h = h.detach()", ":14"]),
    "averaged_with_its_graph": ("error", "second-backward", ["with torch.no_grad(): around", ":12, if that is"]),
    "not_a_leaf": ("warning", "not-a-leaf", ["only leaves keep", "its gradient was [1 1]", "retain_grad()"]),
    "lost_leaf": ("warning", "rebound", ["the name w referred to the leaf #1 w at lost_leaf.py:5"]),
    "cut_by_numpy": ("warning", "cut", ["got no gradient: every path from", "with no autograd history", "numpy"]),
    "unused_parameter": ("warning", "unused", ["extra.weight", "was not used", "of the same shape, was used in"]),
    "lost_by_argmax": ("error", "untracked-loss", ["lost first at", "argmax", "indices have no gradient"]),
    "lost_in_no_grad": ("error", "untracked-loss", ["lost first at", "inside no_grad", "out of the no_grad block"]),
    "lost_in_inference_mode": ("error", "untracked-loss", ["lost first at", "out of the inference_mode block"]),
    "leaf_by_another_name": ("error", "leaf-in-place", ["#1 w was to be changed in place"]),
    "step_between_losses": (
        "error",
        "changed-in-place",
        [
            "a step of Adam updated #",
            "2.weight, but",
            "score = linear still needs it",
            "compute the loss anew after it: score = judge(net(torch.randn(8, 2)))",
        ],
    ),
    "half_underflow": (
        "warning",
        "underflow",
        ["underflows float16", "least number of float16 is 6e-08", "Scaler"],
    ),
    "part_assigned": ("error", "changed-in-place", ["write to a clone()", "with stack or cat"]),
    "leaf_in_place": ("error", "leaf-in-place", ["#1 w was to be changed in place", "torch.no_grad()"]),
    "nan_in_backward": ("error", "nan-born-backward", ["backward rule of #2 root = sqrt", "[0 2]", "before where()"]),
    "inf_only": ("error", "nan-born", ["the first inf appears in #2 e = exp", "[inf 2.718]", "spread through"]),
    "nan_healed": ("note", "nan-born", ["the first nan appears in #3 ratio = div", "reached no loss and no .grad"]),
    "vanishing": ("warning", "vanishing", ["dies out", "sigmoid", "30 times"]),
    "exploding": ("warning", "exploding", ["blows up", "25 times"]),
    "dead_relu": ("warning", "dead-units", ["is off everywhere", "100% of its result is zero"]),
    "never_cleared": (
        "error",
        "not-cleared",
        ["still held the gradient from backward pass 1", "[4 4] was there", "zero_grad()"],
    ),
    "graph_kept": ("warning", "graphs-kept", ["4 graphs are alive at once", "losses.append(loss.item())"]),
    "loss_function_broadcast": ("warning", "broadcast", ["(5,1) with (5,) becomes (5,5)", "squeeze(-1)"]),
    "clipped_never_cleared": ("error", "not-cleared", ["still held the gradient from backward pass 1", "zero_grad()"]),
    "numbers_of_losses": ("error", "untracked-loss", ["backward was called on", "torch.stack(...)"]),
    "slope_without_graph": ("error", "untracked-loss", ["autograd.grad was called on", "slope", "create_graph=True"]),
    "masked_row": (
        "error",
        "nan-born",
        ["masked_fill", "it became nan in", "softmax", "leave one element of each row"],
    ),
    "zero_start": ("warning", "masked", ["the gradient of #1 w is zero", "out at", "small random numbers"]),
    "leaf_without_a_name": (
        "warning",
        "not-a-leaf",
        ["no name holds it", "its gradient was [2 4]", "requires_grad last"],
    ),
    "item_on_the_way": (
        "warning",
        "not-reached",
        ["#1 w got no gradient", "is a new tensor with no autograd history", ".item()"],
    ),
    "made_of_items": ("warning", "not-reached", ["is a new tensor with no autograd history", "carry only the numbers"]),
    "plain_tensor": ("note", "never-stepped", ["no optimizer has updated it", "make it an nn.Parameter"]),
    "wrong_rule": (
        "warning",
        "wrong-rule",
        [
            "the backward of #5 Cube sends 0.667 times the gradient to h",
            "what is sent is 0.667 times what differences say",
            "gradcheck #5",
        ],
    ),
    "never_stepped": ("warning", "never-stepped", ["got gradients in 3 passes, and nothing", "optimizer.step()"]),
    "never_backward": ("warning", "empty-step", ["no backward pass has run", "call backward()"]),
    "backward_not_called": (
        "warning",
        "empty-step",
        ["loss.backward() at", ".py:12, which names it"],
    ),
    "all_frozen": ("warning", "empty-step", ["all of its 2 parameters are frozen", "requires_grad_(True)"]),
    "updated_a_copy": ("warning", "never-stepped", ["makes a new tensor", "with torch.no_grad(): p -= 0.1 * p.grad"]),
    "batch_broadcast": ("warning", "broadcast", ["(5,1) with (5,) becomes (5,5)", "squeeze(-1)"]),
    "actor_under_no_grad": ("warning", "cut", ["inside no_grad", "move this line out of the no_grad block"]),
    "summand_cut": ("note", "cut-summand", ["is a part of #", "but brings no gradient", "leave detach() out"]),
    "detached_twice": ("warning", "cut", ["every path from", "detach cuts the graph here"]),
    "first_order_by_mistake": ("warning", "cut", ["from #", "meta = add is cut", "leave detach() out"]),
    "loss_broadcast": ("warning", "broadcast", ["(5,1) with (5,) becomes (5,5)", "squeeze(-1)"]),
}
"""By program: how grave, which kind of finding, and what its words must say."""


ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
on_both_engines = pytest.mark.parametrize("engine", ENGINES)


def told(finding):
    return "\n".join(text for _, text, _ in lines(finding))


def checked(name, engine="builtin"):
    return check(recorded("bugs", name, engine))


@on_both_engines
@pytest.mark.parametrize("name", ANSWERS)
def test_the_cause_is_found(name, engine):
    level, kind, words = ANSWERS[name]
    (found,) = checked(name, engine)
    assert found.finding.kind == kind
    assert found.level == level
    for word in words:
        assert word in told(found.finding)


@on_both_engines
@pytest.mark.parametrize("name", ANSWERS)
def test_the_line_of_the_cause_is_named(name, engine):
    path = HERE / "bugs" / f"{name}.py"
    (found,) = [one.finding for one in checked(name, engine)]
    cause = f"{name}.py:{line_of(path)}"
    assert cause == found.where or any(cause in part.text for part in found.parts)


@pytest.mark.parametrize("name", ANSWERS)
def test_a_finding_stands_at_its_cause(name):
    path = HERE / "bugs" / f"{name}.py"
    (found,) = [one.finding for one in checked(name)]
    later = name == "second_backward"  # at what fails; what released the graph is a part
    assert found.at is not None
    assert (found.at.line, found.at.path.endswith(path.name)) == (line_of(path) + later, True)


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_short_and_rests_on_events(name):
    (one,) = checked(name)
    assert len(list(lines(one.finding))) <= 6
    for fact in whole(one.finding):
        assert 0 <= fact.event <= len(recorded("bugs", name))
        assert all(number.event for number in fact.numbers)


@on_both_engines
@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("never_stepped", "optimizer.step()"),
        ("updated_a_copy", "with torch.no_grad(): p -= 0.1 * p.grad"),
        ("never_cleared", "zero_grad() before each backward"),
    ],
)
def test_a_gradient_that_nothing_uses_is_said_to_be_one(name, advice, engine):
    (found,) = answers(recorded("bugs", name, engine), "w.grad" if name == "never_cleared" else "weight.grad")
    assert advice in found.fix


@on_both_engines
def test_who_contributed_to_tied_weights(engine):
    timeline = recorded("bugs", "tied_weights", engine)
    assert checked("tied_weights", engine) == []
    table = next(node for node in timeline.nodes if timeline.info(node).created.kind == "parameter")
    found = why(timeline, timeline.at(len(timeline)), table, "grad")
    assert [part.kind for part in found.parts] == ["contribution", "contribution"]
    total = timeline.at(len(timeline)).state(table).outputs[0].grad.array()
    parts = timeline.at(len(timeline)).state(table).outputs[0].parts
    assert (sum(part.value.array() for part in parts) == total).all()
    assert all({"norm", "cosine to the sum", "same signs"} == {n.name for n in part.numbers} for part in found.parts)


def test_every_program_has_an_answer():
    programs = {path.stem for path in (HERE / "bugs").glob("*.py")}
    assert programs == {*ANSWERS, "tied_weights"}


def test_which_graphs_are_alive():
    timeline = recorded("bugs", "graph_kept")
    last_pass = Survey(timeline).passes[-1][0]
    found = alive_graphs(timeline, timeline.at(last_pass))
    assert found.text == f"4 graphs are alive at event {last_pass}"
    assert [part.numbers[0].value for part in found.parts] == [2, 2, 2, 2]
    assert [part.numbers[2].value for part in found.parts] == [0, 0, 0, 1]  # only the last was not gone through
    assert "held by #9 loss = sum at graph_kept.py:8" in found.parts[-1].text
    assert alive_graphs(timeline, timeline.at(0)).text == "no graph is alive"
