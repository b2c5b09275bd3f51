"""What a check finds on several ranks: told once, with those that have it."""

from gviz.explain.check import check_ranks
from gviz.explain.finding import Checked, Finding
from gviz.source.call_stack import Frame


def found(kind, text, level="warning", line=0, event=0):
    at = Frame("train.py", "f", line, line, 0, 1) if line else None
    return Checked(Finding(kind, text, event, at=at), level)


def test_a_line_that_all_ranks_find_is_told_once_as_the_first_has_it():
    (one,) = check_ranks([[found("nan-born", "is 1", line=4, event=9)], [found("nan-born", "is 2", line=4, event=7)]])
    assert (one.checked.finding.text, one.ranks, one.is_alike) == ("is 1", (0, 1), False)


def test_findings_of_other_kinds_lines_or_without_a_line_stay_apart():
    ranks = [
        [found("nan-born", "a", line=4), found("cut", "a", line=4), found("ranks-part", "a")],
        [found("nan-born", "a", line=5), found("cut", "a", "note", line=4), found("ranks-part", "b")],
    ]
    assert [one.ranks for one in check_ranks(ranks)] == [(0,), (0,), (0,), (1,), (1,), (1,)]


def test_the_gravest_comes_first_then_what_most_ranks_have():
    ranks = [
        [found("cut", "one", line=1, event=1), found("unused", "two", line=2, event=2)],
        [found("unused", "two", line=2, event=2), found("failed", "three", "error", line=3, event=3)],
    ]
    assert [one.checked.finding.text for one in check_ranks(ranks)] == ["three", "two", "one"]
