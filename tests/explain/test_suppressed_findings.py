"""Which findings a check leaves out next to another one: those that follow from it, and no others."""

from gviz.explain.finding import Checked, Finding, Number
from gviz.explain.findings.training_loop.rising_rate import RATE_THAT_WORKED
from gviz.explain.suppressed_findings import without_consequences


def kinds(*found):
    return [one.finding.kind for one in without_consequences(None, found)]


def one(kind, level="warning", event=9, numbers=()):
    return Checked(Finding(kind, kind, event, numbers=numbers), level)


def test_first_weights_that_are_surely_too_large_are_the_reason_of_what_grows():
    assert kinds(one("large-start"), one("diverging"), one("large-steps")) == ["large-start"]
    assert kinds(one("large-start", "note"), one("diverging")) == ["large-start", "diverging"]


def test_a_nan_before_the_rate_rose_too_far_is_not_of_the_rate():
    rate = one("rising-rate", numbers=(Number(RATE_THAT_WORKED, 0.1, 5),))
    assert kinds(rate, one("nan-born", event=8)) == ["rising-rate"]
    assert kinds(rate, one("nan-born", event=3)) == ["rising-rate", "nan-born"]
