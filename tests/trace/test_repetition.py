"""The smallest period of a sequence, by its definition."""

from hypothesis import given
from hypothesis import strategies as st

from gviz.trace.sequence_period import smallest_period

SEQUENCES = st.lists(st.sampled_from("ab"), max_size=12)


def repeated(sequence, length, of):
    return [sequence[at % length] for at in range(of)] if length else []


@given(SEQUENCES)
def test_the_smallest_period_writes_the_whole_sequence(sequence):
    length = len(sequence)
    periods = [p for p in range(length + 1) if repeated(sequence, p, length) == sequence and (not p or not length % p)]
    assert smallest_period(sequence) == periods[0]


@given(SEQUENCES)
def test_where_the_last_repetition_may_break_off(sequence):
    length = len(sequence)
    periods = [p for p in range(length + 1) if repeated(sequence, p, length) == sequence]
    assert smallest_period(sequence, cut=True) == periods[0]


def test_a_repetition_that_breaks_off_is_none_unless_it_may():
    assert (smallest_period([1, 2, 1]), smallest_period([1, 2, 1], cut=True)) == (3, 2)
