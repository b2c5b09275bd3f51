"""A ``.grad`` in the middle of a later pass, after one that failed, after one that adds to none: never a false sum."""

import pytest
from explain.programs import recorded

from gviz.events import BackwardFinished, BackwardStarted, GradAccumulated, GradFlowed
from gviz.explain.why import why

pytestmark = pytest.mark.parametrize("engine", ["builtin", "torch"])


def passes(timeline):
    return [seq for seq, _ in timeline.select((BackwardStarted,))]


def at(timeline, n):
    return why(timeline, timeline.at(n), timeline.nodes[0], "grad")


def test_what_has_arrived_is_no_part_of_the_sum_yet(engine):
    timeline = recorded("updates", "twice", engine)
    begun = passes(timeline)[1]
    arrived = next(seq for seq, event in timeline.select((GradFlowed,), begun) if event.node == timeline.nodes[0])
    before, during = at(timeline, begun), at(timeline, arrived)
    assert before.text == during.text == "#1 x: .grad is 6"
    assert "backward pass 2 of #4" in before.parts[0].text
    assert before.parts[0].text.endswith("has not come to it yet")
    assert during.parts[0].text.startswith("2 has arrived in backward pass 2")
    assert during.parts[0].text.endswith("and is not added yet")
    assert [part.event for part in during.parts[0].parts] == [arrived]
    assert [part.text[:7] for part in during.parts[1:]] == ["+= 3 fr", "+= 3 fr"]


def test_once_it_is_added_it_is_a_part(engine):
    timeline = recorded("updates", "twice", engine)
    second = [seq for seq, _ in timeline.select((GradAccumulated,))][1]
    found = at(timeline, second)
    assert (found.kind, found.text) == ("gradient", "#1 x: .grad is 8")


def test_a_pass_that_adds_to_no_gradient(engine):
    timeline = recorded("updates", "twice", engine)
    ended = [seq for seq, _ in timeline.select((BackwardFinished,))][2]
    found = at(timeline, ended)
    assert found.text == "#1 x: .grad is 8"
    assert found.parts[0].text.startswith("5 has arrived in backward pass 3")
    assert "was not added" in found.parts[0].text


def test_after_a_pass_that_failed_the_shares_are_those_that_are_there(engine):
    timeline = recorded("updates", "twice", engine)
    ended = next(seq for seq, event in timeline.select((BackwardFinished,)) if event.error)
    found = at(timeline, ended)
    assert found.text == "#1 x: .grad is 14"
    assert found.parts[0].text.endswith("has brought nothing to it: it ended with an error")
    assert found.parts[1].text.startswith("passes of 2 losses add up in it")
    assert [part.text.split()[0] for part in found.parts[2:4]] == ["6", "2"]


def test_what_the_program_sets_is_no_sum(engine):
    timeline = recorded("updates", "twice", engine)
    found = at(timeline, len(timeline))
    assert found.text == "#1 x: .grad is 0: backward made it 14, and then it was set to zero at twice.py:14"
    assert [part.text for part in found.parts] == ["x.grad.zero_()", "before that it was 14, from backward"]


def test_how_far_two_numbers_agree_is_said_in_numbers_alone(engine):
    timeline = recorded("updates", "a_plain_step", engine)
    found = at(timeline, len(timeline))
    assert "cosine" not in str(found)
    assert all("cosine to the sum" in {number.name for number in part.numbers} for part in found.parts)
