"""Ranks of one training run: what they should share is told from what each has of its own."""

import pytest
from recording import timeline_of

import gviz.engine as torch
from gviz.compare.ranks import Rank, divergence, rank_differences


def rank(
    number, *, weight=0.5, averaged=True, average=0.25, steps=2, skips=False, stops=False, logs=False, dropout=0.0
):
    """A rank of a training run by its recording: each has other data."""

    def program():
        torch.manual_seed(number)
        w = torch.nn.Parameter(torch.tensor([weight, weight]))
        v = torch.nn.Parameter(torch.tensor([1.0, 1.0]))
        optimizer = torch.optim.SGD([w, v], lr=0.1)
        for _ in range(steps):
            optimizer.zero_grad()
            h = torch.randn(2) * w
            if not skips:
                h = h * v
            if dropout:
                h = torch.nn.functional.dropout(h, dropout)
            if logs:
                h.abs().mean()
            if stops:
                return
            h.sum().backward()
            for parameter in (w, v):
                if averaged:
                    parameter.grad = torch.tensor([average, 0.5])
            optimizer.step()

    timeline = timeline_of(program)
    return killed(timeline) if stops else Rank(timeline)


def killed(timeline):
    """A rank whose recording nobody has closed."""
    timeline._log.finished = False
    return Rank(timeline)


def parts(a, b, iteration=1):
    return {part for part, _ in rank_differences(a.timeline, b.timeline, iteration).parts}


def test_data_results_masks_and_gradients_before_they_are_averaged_are_each_ranks_own():
    a, b = rank(0, dropout=0.5), rank(3, dropout=0.5)
    assert divergence(a, b) is None
    assert {"data", "random", "result", "own gradient"} <= parts(a, b)


@pytest.mark.parametrize(
    ("other", "what", "iteration"),
    [
        ({"weight": 0.75}, "parameter", 1),
        ({"averaged": False}, "gradient", 1),
        ({"skips": True}, "graph", 1),
        ({"steps": 3}, "iterations", 3),
        ({"stops": True}, "end", 1),
        ({"stops": True, "weight": 0.75}, "parameter", 1),
    ],
)
def test_what_breaks_data_parallel_training(other, what, iteration):
    found = divergence(rank(0), rank(1, **other))
    assert (found.what, found.iteration) == (what, iteration)


def test_what_one_rank_computes_for_its_log_is_its_own():
    assert divergence(rank(0, logs=True), rank(1)) is None
    assert "own work" in parts(rank(0, logs=True), rank(1))
    assert divergence(rank(0, logs=True), rank(1, averaged=False)).what == "gradient"


def test_a_gradient_that_no_optimizer_used_is_each_ranks_own():
    """As of a pass under ``no_sync``, whose gradients are averaged with those of the next."""

    def program(factor):
        def run():
            w = torch.nn.Parameter(torch.tensor([1.0]))
            (w * torch.tensor([factor])).sum().backward()

        return run

    a, b = Rank(timeline_of(program(1.0))), Rank(timeline_of(program(2.0)))
    assert divergence(a, b) is None
    assert "own gradient" in parts(a, b)


def test_where_objects_lie_in_memory_is_no_difference():
    from gviz.compare.recording_comparison import without_addresses

    mine, other = [(("of", f"<weakref at {at}; to 'Net' at {at}>"),) for at in ("0x7fc847511cb0", "0x7fc84fb26f90")]
    assert without_addresses(mine) == without_addresses(other)
    assert without_addresses((("dim", 1),)) != without_addresses((("dim", 2),))


def test_of_two_ranks_that_were_killed_the_one_that_came_less_far_parts_from_the_other():
    """As where one waits for the other, which never comes: both are ended from outside."""
    waiting, late = killed(rank(0, steps=1).timeline), rank(1, stops=True)
    found = divergence(waiting, late)
    assert found.what == "end"
    assert found.counts[0] > found.counts[1] > 0
    assert divergence(late, rank(2, stops=True)) is None


@pytest.mark.parametrize(("other", "what"), [({}, None), ({"average": 0.75}, "gradient"), ({"skips": True}, "end")])
def test_ranks_that_break_off_alike_are_compared_as_far_as_they_came(other, what):
    """As where something stops all of them at once: that they end alike says nothing of what came before."""
    a, b = killed(rank(0, steps=1).timeline), killed(rank(1, steps=1, **other).timeline)
    found = divergence(a, b)
    assert (found and found.what) == what
