"""``gviz gradcheck``: whether the backward of a program's own functions is the derivative of their forward."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from gviz.cli import recordings
from gviz.cli.moment import at_option
from gviz.cli.program import SCRIPT_CONTEXT, Program, takes_program
from gviz.cli.progress import told
from gviz.cli.quietly import recorded
from gviz.driven import Driven, Far
from gviz.errors import GvizError

if TYPE_CHECKING:
    from gviz.consequences.gradchecking import Tried
    from gviz.trace.timeline import Timeline
    from gviz.whatif.differences import Checked

_DIFFERS = 1


@click.command("gradcheck", context_settings=SCRIPT_CONTEXT)
@click.option("--node", "places", metavar="PLACE", multiple=True,
              help="Try this node's rule instead, of a leaf those of all that use it. May be repeated.")  # fmt: skip
@at_option("The pass that counts is the last one up to")
@click.option("--format", "kind", type=click.Choice(["text", "json"]), default="text", help="How to print it.")
@takes_program
def command(program: Program, places: tuple[str, ...], at: str | None, kind: str) -> int:
    """Compare gradients that were sent with small changes of what was computed: gviz gradcheck train.py.

    The rules of the program's own functions (torch.autograd.Function) are tried, the first three calls of each, on the
    numbers they had: each element is moved, and the forward run again in float64. Exit code 1 if something else was
    sent than that says, 0 if not. What the program prints goes to standard error. Options of gviz stand before SCRIPT.
    """
    wrong: list[bool] = []

    def tried(timeline: Timeline) -> list[Tried]:
        found = told(_trying(timeline, places, at))
        wrong.extend(one.differs for one in found)
        return found

    with recorded(program) as given:
        recordings.say(
            given,
            kind,
            lambda timeline: (_text if places else _by_function)(timeline, tried(timeline)),
            lambda timeline: {"rules": [_as_data(timeline, one) for one in tried(timeline)]},
        )
    return _DIFFERS if any(wrong) else 0


def _trying(timeline: Timeline, places: Iterable[str], at: str | None) -> Driven[list[Tried]]:
    """Each rule that is asked about. GvizError where there is none, or none of them can be tried."""
    from gviz.api.moments import moment_of
    from gviz.consequences.gradchecking import tried

    n = moment_of(timeline, at) if at else len(timeline)
    nodes = _asked(timeline, places, n) if places else _own(timeline)
    found = []
    for done, node in enumerate(nodes):
        yield Far("running again: node", done, len(nodes))
        found.append(tried(timeline, node, n))
    refusals = [one.refusal for one in found if one.refusal is not None]
    if refusals and len(refusals) == len(found):
        raise refusals[0]
    return found


def _asked(timeline: Timeline, places: Iterable[str], n: int) -> list[int]:
    from gviz.consequences.gradchecking import checkable
    from gviz.words.names import NamedNodes
    from gviz.words.nodes import last

    names = NamedNodes(timeline)
    return list(dict.fromkeys(node for place in places for node in checkable(timeline, last(names, place, n))))


def _own(timeline: Timeline) -> list[int]:
    from gviz.explain.findings.wrong_rule import first_calls

    nodes = [event.node for calls in first_calls(timeline).values() for _, event in calls]
    if not nodes:
        hint = "--node PLACE tries the rule of any operation"
        raise GvizError("the program has no function of its own (torch.autograd.Function)", hint=hint, exit_code=2)
    return nodes


def _text(timeline: Timeline, found: Iterable[Tried]) -> Iterator[str]:
    from gviz.consequences.gradchecking import rows

    for one in found:
        yield from rows(timeline, one)


def _by_function(timeline: Timeline, found: Iterable[Tried]) -> Iterator[str]:
    """Of each function how its calls did, and the first call that says most."""
    from gviz.explain.names import made_at
    from gviz.plain_text import shown

    calls: defaultdict[int, list[Tried]] = defaultdict(list)
    for one in found:
        calls[timeline.info(one.node).created.op].append(one)
    for op, its in calls.items():
        wrong = [one for one in its if one.differs]
        untried = [one for one in its if one.refusal is not None]
        telling = (wrong or untried or its)[0]
        yield f"{shown(timeline.op(op).name)}{made_at(timeline.info(telling.node).frames)}: {_count(its)}"
        yield from (f"  {row}" for row in _text(timeline, [telling]))


def _count(calls: Sequence[Tried]) -> str:
    """How many of the calls of one function agree, differ, or could not be tried."""
    untried, wrong = (
        sum(kept) for kept in zip(*((one.refusal is not None, one.differs) for one in calls), strict=True)
    )
    counts = ((len(calls) - untried - wrong, "agreed"), (wrong, "differed"), (untried, "could not be tried"))
    said = ", ".join(f"{count} {did}" for count, did in counts if count)
    return f"{len(calls)} call{'s' if len(calls) > 1 else ''} tried: {said}"


def _as_data(timeline: Timeline, one: Tried) -> dict[str, Any]:
    info = timeline.info(one.node)
    return {
        "node": one.node,
        "name": info.name,
        "op": info.op.name,
        "line": info.frames[0] if info.frames else None,
        "inputs": [_input(each) for each in one.found],
        "not_tried": None if one.refusal is None else one.refusal.what,
    }


def _input(one: Checked) -> dict[str, Any]:
    from gviz.whatif.pattern import patterns

    tried = zip(one.indices, one.numbers, one.recorded, one.differences, one.differs, strict=True)
    return {
        "input": one.slot,
        "node": one.node,
        "shape": one.shape,
        "tried": len(one.places),
        "differ": int(one.differs.sum()),
        "at_kinks": int(one.at_kink.sum()),
        "largest_difference": one.largest,
        "patterns": list(patterns(one)) if one.differs.any() else [],
        "elements": [
            {"index": index, "value": float(value), "sent": float(sent), "by_differences": float(slope)}
            for index, value, sent, slope, differs in tried
            if differs
        ],
    }
