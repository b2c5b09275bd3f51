"""Every kind of finding, in the order in which a question goes through them; a new one is a file and an entry."""

from __future__ import annotations

from gviz.explain.findings import (
    along,
    attached_target,
    bad_number,
    broadcast_loss,
    changed_in_place,
    cut,
    dropout_on,
    failed,
    given_gradient,
    gradient,
    kept_graphs,
    leaf_in_place,
    lifetimes,
    never_stepped,
    not_cleared,
    not_kept,
    passes,
    second_backward,
    shared,
    softmax_twice,
    tracked,
    untracked_loss,
    value,
    zero,
)
from gviz.explain.kind import Kind

KINDS: tuple[Kind, ...] = (
    changed_in_place.CHANGED_IN_PLACE,
    second_backward.SECOND_BACKWARD,
    second_backward.CARRIED_STATE,
    leaf_in_place.LEAF_IN_PLACE,
    untracked_loss.UNTRACKED_LOSS,
    given_gradient.GIVEN_GRADIENT,
    failed.FAILED,
    bad_number.BORN,
    bad_number.BORN_BACKWARD,
    bad_number.SEED,
    not_cleared.NOT_CLEARED,
    tracked.REQUIRES_NONE,
    tracked.NO_INPUT_REQUIRES,
    passes.CLEARED,
    not_kept.NOT_A_LEAF,
    not_kept.REBOUND,
    passes.NO_PASS,
    passes.PENDING,
    passes.NOT_ASKED_FOR,
    passes.NOTHING_ARRIVED,
    cut.CUT,
    cut.UNUSED,
    cut.NOT_REACHED,
    zero.DEAD_UNITS,
    zero.SATURATED,
    zero.CLAMPED,
    zero.CANCELLED,
    zero.MASKED,
    along.VANISHING,
    along.EXPLODING,
    broadcast_loss.BROADCAST,
    softmax_twice.SOFTMAX_TWICE,
    attached_target.ATTACHED_TARGET,
    dropout_on.DROPOUT_IN_EVALUATION,
    kept_graphs.GRAPHS_KEPT,
    shared.SHARED,
    never_stepped.NEVER_STEPPED,
    gradient.SENT,
    gradient.ASSIGNED,
    gradient.INCOMING,
    gradient.GRADIENT,
    lifetimes.ALIVE,
    value.UNBORN,
    value.COMPUTED,
    value.WRITTEN,
)

BY_NAME = {kind.name: kind for kind in KINDS}


def findable() -> list[Kind]:
    """The kinds that a check may report: all that are more than a fact."""
    return [kind for kind in KINDS if kind.severity != "fact"]
