"""``info WORD``: what there is, counted and listed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from gviz.errors import GvizError, did_you_mean
from gviz.explain.names import label
from gviz.plain_text import clipped, shown
from gviz.trace.plan import planned
from gviz.trace.state import BAD
from gviz.tui.commands import asking, stopping
from gviz.tui.session import Session
from gviz.value_text import kind_text, short

ROWS = 200


def info(session: Session, text: str) -> Iterator[str]:
    """One of `PAGES`; without a word the breakpoints."""
    word, _, rest = text.strip().partition(" ")
    word = _PLURALS.get(word, word)
    page = PAGES.get(word or "break")
    if page is None and (word.isdigit() or word == "."):
        return _breaks(session, text)
    if page is None:
        hint = did_you_mean(word, PAGES, ", ".join(PAGES))
        raise GvizError(f"there is no info {clipped(word, 20)}", hint=hint, exit_code=2)
    return page(session, rest)


def _breaks(session: Session, text: str) -> Iterator[str]:
    cursor = session.cursor
    return stopping.listed(cursor.breakpoints, text, cursor.selected, cursor.position)


def _watched(session: Session, _: str) -> Iterator[str]:
    return asking.watch(session.cursor.asker, "", session.cursor.position)


def _marks(session: Session, _: str) -> Iterator[str]:
    marks = [*((name, n, "of the program") for n, name in session.timeline.marks)]
    marks += [(name, n, "yours") for name, n in session.cursor.bookmarks.items()]
    if not marks:
        yield "there are no marks; mark NAME sets one here"
    for name, n, whose in sorted(marks, key=lambda mark: mark[1]):
        yield f"'{shown(name)}  event {n}  ({whose})"


def _graph(session: Session, _: str) -> Iterator[str]:
    timeline, n = session.timeline, session.cursor.position
    made = [timeline.info(node) for node in timeline.nodes if timeline.nodes.born(node) <= n]
    kinds = Counter(one.created.kind for one in made)
    edges = sum(1 for one in made for source, _ in one.created.inputs if source)
    yield f"{len(made)} of {len(timeline.nodes)} nodes made, {edges} edges, at event {n} of {len(timeline)}"
    yield ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()) or "no nodes yet"
    for op, count in Counter(one.op.name for one in made if one.created.kind == "op").most_common(20):
        yield f"  {count:>6}  {op}"


def _saved(session: Session, _: str) -> Iterator[str]:
    nodes = [node for node in session.timeline.nodes if session.timeline.nodes.born(node) <= session.cursor.position]
    states = session.moment.states(nodes)
    held = [node for node, state in zip(nodes, states, strict=True) if state is not None and state.saved == "held"]
    freed = sum(state is not None and state.saved == "freed" for state in states)
    yield f"{len(held)} nodes hold what they saved for backward, {freed} have released it"
    yield from _rows([f"  {label(session.timeline, node)}: {_what(session, node)}" for node in held])


def _what(session: Session, node: int) -> str:
    return ", ".join(session.timeline.info(node).op.saved) or "something"


def _leaks(session: Session, _: str) -> Iterator[str]:
    timeline, moment = session.timeline, session.moment
    here = timeline.iteration_at(moment.n).index if timeline.iterations else 0
    old = [one for one in map(timeline.info, timeline.nodes) if one.born <= moment.n and one.iteration < here]
    states = moment.states([one.node for one in old])
    alive = [
        one.node
        for one, state in zip(old, states, strict=True)
        if one.created.kind == "op" and state is not None and state.saved == "held" and not state.freed
    ]
    if not alive:
        yield "no graph of an earlier iteration is still held"
        return
    yield f"{len(alive)} nodes of earlier iterations still hold what they saved: something keeps their graph alive"
    yield from _rows([f"  {label(timeline, node)}, iteration {timeline.info(node).iteration}" for node in alive])


def _params(session: Session, _: str) -> Iterator[str]:
    timeline, moment = session.timeline, session.moment
    nodes = [
        node
        for node in timeline.nodes
        if timeline.nodes.born(node) <= moment.n and timeline.info(node).created.kind in ("parameter", "leaf")
    ]
    rows = []
    for node, state in zip(nodes, moment.states(nodes), strict=True):
        output = state.outputs[0] if state is not None and state.outputs else None
        if output is not None and output.value is not None and state is not None and state.requires_grad:
            rows.append(f"  {label(timeline, node)}: {kind_text(output.value)}, .grad {short(output.grad)}")
    yield f"{len(rows)} leaves that require a gradient"
    yield from _rows(rows)


def _planned(session: Session, _: str) -> Iterator[str]:
    timeline, n = session.timeline, session.cursor.position
    coming = planned(timeline, n, _MOST_PLANNED)
    if not coming.nodes and not coming.ends_early:
        yield "no backward pass has anything left to run here"
    for place, node in enumerate(coming.nodes, 1):
        yield f"  {place:>3}  {label(timeline, node)}"
    if coming.ends_early:
        yield "  the rest in an order that is not known: this graph was made before the recording saw it"
    elif len(coming.nodes) == _MOST_PLANNED:
        yield "  and so on"


def _stats(session: Session, _: str) -> Iterator[str]:
    timeline = session.timeline
    passes = sum(phase.kind == "backward" for phase in timeline.phases)
    yield f"{len(timeline)} events, {len(timeline.nodes)} nodes, {len(timeline.iterations)} iterations, {passes} passes"
    yield f"failed at event {timeline.failures[0]}" if timeline.failures else "it did not fail"
    if timeline.dropped.events:
        yield timeline.dropped.words
    firsts = {bad: timeline.first(bad) for bad in BAD}
    found = sorted((seq, bad) for bad, seq in firsts.items() if seq)
    yield ", ".join(f"first {bad} at event {seq}" for seq, bad in found) or "no nan or inf"


def _rows(rows: list[str]) -> Iterator[str]:
    yield from rows[:ROWS]
    if len(rows) > ROWS:
        yield f"  and {len(rows) - ROWS} more"


_PLURALS = {"breaks": "break", "breakpoints": "break", "watches": "watch", "mark": "marks"}
_MOST_PLANNED = 20
PAGES: dict[str, Callable[[Session, str], Iterator[str]]] = {
    "break": _breaks,
    "watch": _watched,
    "marks": _marks,
    "graph": _graph,
    "saved": _saved,
    "params": _params,
    "stats": _stats,
    "next": _planned,
    "leaks": _leaks,
}
