"""The gradients that a node sent, compared with finite differences: a verdict, and rows of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from gviz.errors import GvizError
from gviz.explain.display_names import label
from gviz.rerun.finite_differences import GradientCheck, check_gradients, mismatch_patterns
from gviz.rerun.second_order import FIRST_ORDER_DIFFERS, SecondOrder, second_order
from gviz.rerun.surrogate_gradients import SURROGATES, surrogate_kind
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number
from gviz.values.plain_text import shown

Verdict = Literal["wrong", "deliberate", "not tried", "agrees"]
"""The verdict about a rule. A deliberate one differs as a surrogate gradient does (`deliberate.KINDS`)."""

_SHOWN = 6
"""The most elements that are listed for an input with a different gradient."""


def checkable_nodes(timeline: Timeline, node: int) -> list[int]:
    """Return the node itself, or the users of a leaf that send gradients to it.

    Raises `GvizError`, with what to check instead, if there is none.
    """
    if timeline.info(node).created.kind == "op":
        return [node]
    name, users = shown(label(timeline, node)), timeline.nodes.users(node)
    if not timeline.info(node).created.requires_grad:
        hint = "gradcheck PLACE of what was computed checks its rule"
        raise GvizError(f"{name} requires no gradient: none was sent to it", hint=hint, exit_code=2)
    if not users:
        raise GvizError(f"nothing uses {name}", hint="check says which leaves get no gradient", exit_code=2)
    return list(dict.fromkeys(user for user in users if timeline.info(user).created.requires_grad)) or [users[0]]


@dataclass(frozen=True, slots=True)
class NodeCheck:
    """A node, and the result for each input to which its rule sent a gradient, or why that could not be tested.

    If it differs, `kind` is the key in `deliberate.KINDS` of its most likely purpose, else empty. Second derivatives
    are tested only for functions of the program.
    """

    node: int
    checks: Sequence[GradientCheck] = ()
    kind: str = ""
    second: SecondOrder | None = None
    refusal: GvizError | None = None

    @property
    def differs(self) -> bool:
        """Whether its gradients differ from finite differences, or its second derivatives are wrong."""
        return any(one.differs.any() for one in self.checks) or self.is_wrong_in_second

    @property
    def is_wrong_in_second(self) -> bool:
        """Whether its second derivatives are wrong."""
        return self.second is not None and self.second.verdict == "wrong"

    @property
    def why_not(self) -> str:
        """Why nothing of it could be tested; empty if something was."""
        if self.refusal is not None:
            return ": ".join(filter(None, [self.refusal.what, self.refusal.why]))
        if not self.checks:
            return "it sent no gradient to any input"
        some = any(len(one.places) or not one.size for one in self.checks)
        return "" if some else "small changes of its inputs give no numbers"

    @property
    def is_interrupted(self) -> bool:
        """Whether it was not tested because the user interrupted."""
        return self.refusal is _INTERRUPTED

    @property
    def verdict(self) -> Verdict:
        """The result in a word."""
        if self.why_not:
            return "not tried"
        if not self.differs:
            return "agrees"
        return "deliberate" if self.kind and not self.is_wrong_in_second else "wrong"


def check_node(timeline: Timeline, node: int, n: int) -> NodeCheck:
    """Return the check of a node's rule as it ran in the last pass up to moment `n`, or else in the first later one."""
    try:
        checks = check_gradients(timeline, node, n)
        return NodeCheck(
            node, checks, surrogate_kind(timeline, node, n, checks), _second_order_of(timeline, node, checks)
        )
    except GvizError as refusal:
        return NodeCheck(node, refusal=refusal)


def _second_order_of(timeline: Timeline, node: int, checks: Sequence[GradientCheck]) -> SecondOrder | None:
    if not timeline.info(node).op.is_of_program:
        return None
    return FIRST_ORDER_DIFFERS if any(one.differs.any() for one in checks) else second_order(timeline, node)


_INTERRUPTED = GvizError("not tried: interrupted")


def interrupted_check(node: int) -> NodeCheck:
    """Return the check of a node that was not tested because the user interrupted."""
    return NodeCheck(node, refusal=_INTERRUPTED)


def check_rows(timeline: Timeline, tried: NodeCheck) -> Iterator[str]:
    """Yield the results as rows. Details are indented."""
    name = label(timeline, tried.node)
    if tried.why_not and not tried.checks:
        hint = tried.refusal.hint if tried.refusal is not None and not tried.refusal.why else ""
        yield f"{name}: {tried.why_not}" + (f" ({hint})" if hint else "")
        return
    yield f"{name}: what it sent to each input, and by central differences in float64"
    for one in tried.checks:
        count = "" if len(one.places) == one.size else f" ({len(one.places)} of {one.size:,} elements)"
        yield f"  {one.slot} = {label(timeline, one.node)}{count}: {_agreement_words(one)}"
        if not one.agrees.all():
            yield from (f"    {row}" for row in _elements(one))
        if one.differs.any():
            yield from (f"    {sentence}" for sentence in mismatch_patterns(one))
    for one in tried.checks:
        if one.together:
            yield f"  {one.slot} are one tensor: {_shared_input_words(tried.checks, one)}"
    if any(one.differs.any() for one in tried.checks):
        yield f"  {tried.kind}: {SURROGATES[tried.kind]}" if tried.kind else f"  {_WRONG}"
    if tried.second is not None:
        verdict = "are wrong" if tried.is_wrong_in_second else "were not tried"
        yield f"  second derivatives {verdict}: {tried.second.why}"


_WRONG = "the rule is wrong, or is meant to send something else in a way that is not known"


def _shared_input_words(checks: Sequence[GradientCheck], both: GradientCheck) -> str:
    """Return how the inputs of `both` were distinguished."""
    if any(one.node == both.node and not one.together for one in checks):
        return "which of them an operation used is not recorded, and taken as it fits best"
    return "each alone is not tried, as which of them an operation used is not recorded"


def _agreement_words(one: GradientCheck) -> str:
    if one.size and not len(one.places):
        return "small changes of it give no numbers"
    if one.agrees.all():
        return f"agrees, the largest difference is {number(one.largest)}"
    if not one.differs.any():
        return "agrees, but for kinks"
    return f"{one.differs.sum()} of {len(one.places)} differ, by up to {number(one.largest)}"


def _elements(one: GradientCheck) -> Iterator[str]:
    """Yield the first elements that differ, and then elements at kinks."""
    order = [*one.differs.nonzero()[0].tolist(), *one.at_kink.nonzero()[0].tolist()]
    for at in order[:_SHOWN]:
        sent, expected = number(one.recorded[at]), number(one.differences[at])
        kink = ": a kink, where both are right" if one.at_kink[at] else ""
        yield f"{element(one, at)}: sent {sent}, by differences {expected}{kink}"
    if len(order) > _SHOWN:
        yield f"and {len(order) - _SHOWN} more"


def element(one: GradientCheck, at: int) -> str:
    """Return an element that was tested, by its index, and its value: ``[3, 9] = 2.31``."""
    index = ", ".join(map(str, one.indices[at]))
    return f"[{index}] = {number(one.numbers[at])}" if one.shape else f"at {number(one.numbers[at])}"
