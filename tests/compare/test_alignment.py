"""Two sequences laid beside each other: all of both is there, and as much as can be stands beside its equal."""

from difflib import SequenceMatcher
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recording import timeline_of

import gviz.engine as torch
from gviz.compare import alignment
from gviz.compare.alignment import Stretch, align, stretches
from gviz.compare.compared_iteration import Side

few = st.text("abc", max_size=12)


def most(a, b):
    """By the definition: how many entries can stand beside an equal one."""

    @cache
    def left(i, k):
        if i == len(a) or k == len(b):
            return 0
        return max(left(i + 1, k), left(i, k + 1), left(i + 1, k + 1) + 1 if a[i] == b[k] else 0)

    return left(0, 0)


@given(few, few)
def test_as_many_as_can_be_stand_beside_their_equal(a, b):
    found = stretches(a, b)
    assert sum(one.high_a - one.low_a for one in found if one.equal) == most(a, b)
    for one in found:
        assert one.equal == (a[one.low_a : one.high_a] == b[one.low_b : one.high_b])
    assert all(one.equal != other.equal for one, other in pairwise(found))


@given(few, few)
def test_all_of_both_is_there_in_order(a, b):
    found = stretches(a, b)
    assert "".join(a[one.low_a : one.high_a] for one in found) == a
    assert "".join(b[one.low_b : one.high_b] for one in found) == b


def test_what_is_left_out_of_a_loop_now_and_then_is_all_that_differs():
    a, b = "mt" * 80, "r" + "mt" * 27 + "r" + "mt" + "r" + "mt" * 52 + "r"
    assert [b[one.low_b : one.high_b] for one in stretches(a, b) if not one.equal] == ["r"] * 4
    blocks = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()  # looks for long ones first
    assert sum(block.size for block in blocks) < len(a)


def test_of_several_choices_the_first():
    assert stretches("a", "aa") == [Stretch(True, 0, 1, 0, 1), Stretch(False, 1, 1, 1, 2)]
    assert stretches("ab", "ba")[0] == Stretch(False, 0, 1, 0, 0)


def test_what_is_left_over_stands_at_the_end():
    inserted, both, left = Stretch(False, 0, 0, 0, 1), Stretch(True, 0, 2, 1, 3), Stretch(False, 2, 6, 3, 3)
    assert stretches("mtmtmt", "rmt") == [inserted, both, left]
    assert [one.equal for one in stretches("xab", "abab")] == [False, True, False]


@given(few, few)
def test_no_more_is_left_out_before_the_last_pair_than_has_to_be(a, b):
    pairs = [one for one in stretches(a, b) if one.equal]
    end = (pairs[-1].high_a, pairs[-1].high_b) if pairs else (0, 0)
    ends = [(i, k) for i in range(len(a) + 1) for k in range(len(b) + 1) if most(a[:i], b[:k]) == most(a, b)]
    assert sum(end) == min(map(sum, ends))


@pytest.mark.parametrize("window", [1, 2, 5])
@given(a=few, b=few)
def test_window_after_window_all_of_both_is_there(window, a, b):
    left, right = [[(letter, "") for letter in text] for text in (a, b)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment, "WINDOW", window)
        found = list(alignment._stretches(left, right))
    assert "".join(a[low:high] for low, high, _, _ in found) == a
    assert "".join(b[low:high] for _, _, low, high in found) == b
    for low_a, high_a, low_b, high_b in found:
        assert low_a == high_a or low_b == high_b or a[low_a:high_a] == b[low_b:high_b]


def test_leaves_are_among_the_operations_where_the_program_made_them():
    def program(scale):
        def run():
            x = torch.ones(2, requires_grad=True)
            y = x.exp()
            w = torch.full((2,), scale, requires_grad=True)
            return y * w

        return run

    timelines = [timeline_of(program(scale)) for scale in (1.0, 2.0)]
    assert align(*[Side(timeline, 1) for timeline in timelines]) == ((1, 1), (2, 2), (3, 3), (4, 4))
