"""Which findings a check leaves out next to another one: those that follow from it, and no others."""

import pytest

from gviz.explain.finding import Checked, Finding, Number
from gviz.explain.findings.training_loop.rising_rate import RATE_THAT_WORKED
from gviz.explain.overlapping_findings import without_consequences
from gviz.source.call_stack import Frame


def kinds(*found):
    return [one.finding.kind for one in without_consequences(None, found)]


def one(kind, level="warning", event=9, numbers=(), line=0, part=""):
    at = Frame("train.py", "<module>", line, line, -1, -1) if line else None
    parts = (Finding(part, part),) if part else ()
    return Checked(Finding(kind, kind, event, 0, parts, at=at, numbers=numbers), level)


RULES = {
    "parameters that no step moves": ([one("never-stepped", line=3), one("lost-update", line=3)], 1),
    "an update on another line": ([one("never-stepped", line=3), one("lost-update", line=4)], 2),
    "a step that names the uncalled backward": (
        [one("empty-step", part="uncalled"), one("not-called", part="without-backward")], 1),
    "a step without gradients, and an uncalled step": (
        [one("empty-step", part="uncalled"), one("not-called", part="without-step")], 2),
    "an uncalled step": ([one("not-called", part="without-step"), one("never-stepped")], 1),
    "an uncalled backward": ([one("not-called", part="without-backward"), one("graphs-kept")], 1),
    "an uncalled zero_grad": ([one("not-called", part="without-zero-grad"), one("not-cleared")], 1),
    "an uncalled eval": ([one("not-called", part="without-eval"), one("dropout-in-evaluation")], 1),
    "an uncalled train": ([one("not-called", part="without-train"), one("trained-in-eval")], 1),
    "an uncalled eval, and gradients that add up": ([one("not-called", part="without-eval"), one("not-cleared")], 2),
    "steps that add up": ([one("not-cleared"), one("large-steps"), one("nan-born")], 2),
    "steps that are too large": ([one("large-steps"), one("nan-born"), one("dead-units"), one("saturated")], 1),
    "a dimension that is named elsewhere": ([one("softmax-dim", line=5), one("default-dim", line=5)], 1),
    "a loss that does not fall, and a reason": ([one("not-falling"), one("broadcast")], 1),
    "a loss that does not fall": ([one("not-falling")], 1),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_a_finding_leaves_out_what_follows_from_it(name):
    found, count = RULES[name]
    assert len(without_consequences(None, found)) == count


def test_first_weights_that_are_surely_too_large_are_the_reason_of_what_grows():
    assert kinds(one("large-start"), one("diverging"), one("large-steps")) == ["large-start"]
    assert kinds(one("large-start", "note"), one("diverging")) == ["large-start", "diverging"]


def test_a_nan_before_the_rate_rose_too_far_is_not_of_the_rate():
    rate = one("rising-rate", numbers=(Number(RATE_THAT_WORKED, 0.1, 5),))
    assert kinds(rate, one("nan-born", event=8)) == ["rising-rate"]
    assert kinds(rate, one("nan-born", event=3)) == ["rising-rate", "nan-born"]


def test_scores_that_are_no_log_probabilities_are_the_reason_of_what_grows_after_them():
    cause = one("no-log-probabilities", event=5)
    assert kinds(cause, one("exploding"), one("diverging"), one("large-steps")) == ["no-log-probabilities"]
    assert kinds(one("no-log-probabilities", "note", event=5), one("exploding")) == [cause.finding.kind, "exploding"]
    assert kinds(cause, one("nan-born")) == ["no-log-probabilities", "nan-born"]  # it has another reason


def test_a_gradient_that_dies_out_at_a_softmax_over_a_wrong_dimension_makes_its_note_sure():
    (found,) = without_consequences(None, [one("vanishing", line=3), one("softmax-dim", "note", line=3)])
    assert (found.finding.kind, found.level) == ("softmax-dim", "warning")
    (found,) = without_consequences(None, [one("vanishing", "note", line=3), one("softmax-dim", "note", line=3)])
    assert (found.finding.kind, found.level) == ("softmax-dim", "note")
    assert kinds(one("vanishing", line=4), one("softmax-dim", "note", line=3)) == ["vanishing", "softmax-dim"]
