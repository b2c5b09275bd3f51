"""``gviz gradcheck``: compares the backward of a program's own functions with finite differences."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from gviz.cli import recording_input
from gviz.cli.options import at_option
from gviz.cli.program_run import SCRIPT_CONTEXT, Program, takes_program
from gviz.cli.progress import with_progress
from gviz.cli.recording_input import recorded
from gviz.errors import GvizError
from gviz.system.cooperative_work import LongWork, WorkProgress
from gviz.values.plain_text import shown

if TYPE_CHECKING:
    from gviz.explain.gradcheck_report import NodeCheck, Verdict
    from gviz.rerun.finite_differences import GradientCheck
    from gviz.trace.timeline import Timeline

_DIFFERS, _INTERRUPTED = 1, 130

_DID: dict[Verdict, str] = {
    "not tried": "could not be tried", "wrong": "differed", "deliberate": "differed on purpose", "agrees": "agreed",
}  # fmt: skip
_ORDER: tuple[Verdict, ...] = ("wrong", "deliberate", "not tried", "agrees")
"""Verdicts, the most important first. The row of a function shows its first call with the most important one."""


@click.command("gradcheck", context_settings=SCRIPT_CONTEXT)
@click.option("--node", "places", metavar="PLACE", multiple=True,
              help="Check this node instead; for a leaf, all nodes that use it. Repeatable.")  # fmt: skip
@click.option("--allow", metavar="FUNCTION", multiple=True,
              help="Accept that this function differs. Repeatable.")  # fmt: skip
@at_option("Use the last pass up to this moment")
@click.option("--format", type=click.Choice(["text", "json"]), default="text", help="Output format.")
@takes_program
def command(program: Program, places: tuple[str, ...], allow: tuple[str, ...], at: str | None, format: str) -> int:
    """Compare gradients with finite differences.

    It checks the backward of each torch.autograd.Function that the script defines. For the first three calls of
    each function, it changes every input element slightly and runs the forward again in float64. The exit code is 1
    if a gradient differs, else 0.

    A difference that looks like a straight-through estimator or a gradient reversal is reported as deliberate;
    --allow accepts it. Second derivatives are not computed. A backward that must give wrong ones counts as a
    difference in a backward pass with create_graph. The output of the program goes to standard error. Options of
    gviz come before SCRIPT.
    """
    checks: list[tuple[str, NodeCheck]] = []

    def tried(timeline: Timeline) -> list[NodeCheck]:
        of_this = with_progress(_trying(timeline, places, at))
        checks.extend((timeline.info(one.node).op.name, one) for one in of_this)
        return of_this

    with recorded(program) as inputs:
        recording_input.print_answers(
            inputs,
            format,
            lambda timeline: _rows(timeline, tried(timeline), None if places else allow),
            lambda timeline: {"rules": [_as_data(timeline, one, allow) for one in tried(timeline)]},
        )
    _require_tried(allow, dict(checks))
    return _code(checks, allow)


def _code(checks: Sequence[tuple[str, NodeCheck]], allow: Sequence[str]) -> int:
    """Return the exit code; `GvizError` if no rule could be tried."""
    if any(one.is_interrupted for _, one in checks):
        return _INTERRUPTED
    if all(one.verdict == "not tried" for _, one in checks):
        raise GvizError("no call could be tried", hint="the rows above show why", exit_code=2)
    return _DIFFERS if any(one.differs for name, one in checks if name not in allow) else 0


def _require_tried(allow: Iterable[str], names: Iterable[str]) -> None:
    """Raise `GvizError` for an allowed function without a tried call."""
    for name in allow:
        if name not in names:
            hint = f"tried: {', '.join(map(shown, names))}"
            raise GvizError(f"--allow {shown(name)}: no function of this name was tried", hint=hint, exit_code=2)


def _trying(timeline: Timeline, places: Iterable[str], at: str | None) -> LongWork[list[NodeCheck]]:
    """Try each rule; those that Ctrl+C prevents count as not tried. `GvizError` if there is no rule to try."""
    from gviz.api.moment_argument import moment_of
    from gviz.explain.gradcheck_report import check_node, interrupted_check

    n = moment_of(timeline, at) if at else len(timeline)
    nodes = _nodes_at(timeline, places, n) if places else _own(timeline)
    checks: list[NodeCheck] = []
    try:
        for number, node in enumerate(nodes):
            yield WorkProgress("running again: node", number, len(nodes))
            checks.append(check_node(timeline, node, n))
    except KeyboardInterrupt:
        checks += map(interrupted_check, nodes[len(checks) :])
    return checks


def _nodes_at(timeline: Timeline, places: Iterable[str], n: int) -> list[int]:
    from gviz.explain.gradcheck_report import checkable_nodes
    from gviz.query.nodes import NamedNodes, last

    names = NamedNodes(timeline)
    return list(dict.fromkeys(node for place in places for node in checkable_nodes(timeline, last(names, place, n))))


def _own(timeline: Timeline) -> list[int]:
    from gviz.explain.findings.custom_functions.custom_backward_rule import first_calls

    nodes = [event.node for calls in first_calls(timeline).values() for _, event in calls]
    if not nodes:
        what = "the program called no torch.autograd.Function of its own on a tensor that requires a gradient"
        raise GvizError(what, hint="--node PLACE checks the backward rule of any operation", exit_code=2)
    return nodes


def _rows(timeline: Timeline, checks: Iterable[NodeCheck], allow: Sequence[str] | None) -> Iterator[str]:
    """Return one row for each function, with the allowed ones marked; one for each node if nodes were asked about."""
    return _text(timeline, checks) if allow is None else _by_function(timeline, checks, allow)


def _text(timeline: Timeline, checks: Iterable[NodeCheck]) -> Iterator[str]:
    from gviz.explain.gradcheck_report import check_rows

    for one in checks:
        yield from check_rows(timeline, one)


def _by_function(timeline: Timeline, checks: Iterable[NodeCheck], allow: Sequence[str]) -> Iterator[str]:
    """Return for each function the results of its calls and the call to show."""
    from gviz.explain.source_frames import at_text

    calls: defaultdict[int, list[NodeCheck]] = defaultdict(list)
    for one in checks:
        calls[timeline.info(one.node).created.op].append(one)
    for op, its in calls.items():
        name = timeline.op(op).name
        telling = min(its, key=lambda one: _ORDER.index(one.verdict))
        yield f"{shown(name)}{at_text(timeline.info(telling.node).frames)}: {_count(its)}"
        yield from (f"  {row}" for row in _text(timeline, [telling]))
        if telling.differs and name in allow:
            yield f"  it is allowed to differ (--allow {shown(name)})"
        elif telling.verdict == "deliberate":
            yield f"  --allow {shown(name)} accepts it, if this is intended"


def _count(calls: Sequence[NodeCheck]) -> str:
    """Return how many calls of one function agree, differ, or could not be tried."""
    counts = Counter(_DID[one.verdict] for one in calls)
    text = ", ".join(f"{counts[did]} {did}" for did in reversed(_DID.values()) if counts[did])
    return f"{len(calls)} call{'s' if len(calls) > 1 else ''} tried: {text}"


def _as_data(timeline: Timeline, one: NodeCheck, allow: Sequence[str]) -> dict[str, Any]:
    info = timeline.info(one.node)
    return {
        "node": one.node,
        "name": info.name,
        "op": info.op.name,
        "line": info.frames[0] if info.frames else None,
        "verdict": one.verdict,
        "kind": one.kind or None,
        "allowed": info.op.name in allow,
        "second_derivatives": None if one.second is None else {"verdict": one.second.verdict, "why": one.second.why},
        "inputs": [_input(each) for each in one.checks],
        "not_tried": one.why_not or None,
    }


def _input(one: GradientCheck) -> dict[str, Any]:
    from gviz.rerun.finite_differences import mismatch_patterns

    tried = zip(one.indices, one.numbers, one.recorded, one.differences, one.differs, strict=True)
    return {
        "input": one.slot,
        "node": one.node,
        "together": one.together,
        "shape": one.shape,
        "tried": len(one.places),
        "differ": int(one.differs.sum()),
        "at_kinks": int(one.at_kink.sum()),
        "largest_difference": one.largest,
        "patterns": list(mismatch_patterns(one)) if one.differs.any() else [],
        "elements": [
            {"index": index, "value": float(value), "sent": float(sent), "by_differences": float(slope)}
            for index, value, sent, slope, differs in tried
            if differs
        ],
    }
