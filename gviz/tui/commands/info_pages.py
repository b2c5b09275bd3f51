"""``info WORD``: what the session and the recording contain, counted and listed."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from gviz.errors import GvizError, did_you_mean
from gviz.explain.display_names import label
from gviz.explain.value_computation import saved_names
from gviz.system.cooperative_work import WorkProgress, collected, parts
from gviz.trace.backward_order import planned
from gviz.trace.graph_state import BAD, NodeState
from gviz.tui.commands import breakpoint_commands as breaks
from gviz.tui.commands import expressions
from gviz.tui.language.other_debuggers import INFO_INSTEAD
from gviz.tui.session import Session
from gviz.values.plain_text import clipped, shown
from gviz.values.value_text import kind_text, short

ROWS = 200


def info(session: Session, text: str) -> Iterator[str | WorkProgress]:
    """Run one of `PAGES`; without a word, the breakpoints."""
    word, _, rest = text.strip().partition(" ")
    if word.isdigit() or word == ".":
        return _breaks(session, text)
    return PAGES[_page(_ALSO.get(word, word) or "break")](session, rest)


def _page(word: str) -> str:
    """Return the page whose name begins with a word. Raises GvizError for no page, or several."""
    pages = [word] if word in PAGES else [page for page in PAGES if page.startswith(word)]
    if len(pages) > 1:
        raise GvizError(f"info {word} is ambiguous", hint=f"it may mean {', '.join(pages)}", exit_code=2)
    if not pages:
        hint = INFO_INSTEAD.get(word) or did_you_mean(word, PAGES, ", ".join(PAGES))
        raise GvizError(f"there is no info {clipped(word, 20)}", hint=hint, exit_code=2)
    return pages[0]


def _breaks(session: Session, text: str) -> Iterator[str]:
    cursor = session.cursor
    return breaks.listed(cursor.breakpoints, text, cursor.selected, cursor.position)


def _watched(session: Session, _: str) -> Iterator[str]:
    return expressions.watch(session.cursor.asker, "", session.cursor.position)


def _locals(session: Session, _: str) -> Iterator[str | WorkProgress]:
    """Yield what each name of the program holds here, the newest first: only tensors are recorded."""
    names, n = session.cursor.asker.names, session.cursor.position
    rows: list[str] = []
    for part in parts(names.names_by(n), "looking at name"):
        if isinstance(part, WorkProgress):
            yield part
        else:
            rows += (f"  {shown(name)} = {_value_text(session, names.last(name, n), name)}" for name in part)
    yield f"{len(rows)} name{'s' * (len(rows) != 1)} of tensors" if rows else "no tensor has a name yet"
    yield from _rows(rows)


def _value_text(session: Session, node: int, name: str) -> str:
    """Return the value that a name holds, as the output of a node, and the node."""
    state, at = session.moment.state(node), session.timeline.info(node).output_called(name)
    output = state.outputs[at] if state is not None and at < len(state.outputs) else None
    return f"{short(output.value if output is not None else None)}  #{node}"


def _marks(session: Session, _: str) -> Iterator[str]:
    marks = [*((name, n, "set by the program") for n, name in session.timeline.marks)]
    marks += [(name, n, "set by you") for name, n in session.cursor.bookmarks.items()]
    if not marks:
        yield "there are no marks; mark NAME sets one here"
    for name, n, whose in sorted(marks, key=lambda mark: mark[1]):
        yield f"'{shown(name)}  event {n}  ({whose})"


def _existing_nodes(session: Session) -> Sequence[int]:
    """Return the nodes made by now, in order of creation."""
    nodes = session.timeline.nodes
    return nodes[: bisect_right(nodes, session.cursor.position, key=nodes.born)]


def _graph(session: Session, _: str) -> Iterator[str | WorkProgress]:
    timeline, n = session.timeline, session.cursor.position
    kinds, ops, edges = Counter[str](), Counter[int](), 0
    for part in parts(_existing_nodes(session), "counting: node"):
        if isinstance(part, WorkProgress):
            yield part
            continue
        for _node, created in timeline.nodes.all_created(part):
            kinds[created.kind] += 1
            edges += sum(1 for source, _ in created.inputs if source)
            if created.kind == "op":
                ops[created.op] += 1
    named = Counter[str]()
    for op, count in ops.items():
        named[timeline.op(op).name] += count
    yield f"{kinds.total()} of {len(timeline.nodes)} nodes made, {edges} edges, at event {n} of {len(timeline)}"
    yield ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()) or "no nodes yet"
    for name, count in named.most_common(20):
        yield f"  {count:>6}  {name}"


def _saved(session: Session, _: str) -> Iterator[str | WorkProgress]:
    nodes = session.timeline.nodes
    left, freed = nodes.with_saved(session.moment.n)
    holders: list[int] = []
    for part in parts(left, "looking at node"):
        if isinstance(part, WorkProgress):
            yield part
        else:
            holders += [
                node for node, created in nodes.all_created(part) if created.kind == "op" and not created.untracked
            ]
    yield f"{len(holders)} nodes have saved tensors, {freed} have released theirs"
    yield from _rows([f"  {label(session.timeline, node)}: {_what(session, node)}" for node in holders])


def _states(session: Session, nodes: Sequence[int]) -> Iterator[NodeState | WorkProgress]:
    """Yield the states of the nodes that exist at this moment, and the progress."""
    for part in parts(nodes, "looking at node"):
        if isinstance(part, WorkProgress):
            yield part
        else:
            yield from (state for state in session.moment.states(list(part)) if state is not None)


def _what(session: Session, node: int) -> str:
    return ", ".join(saved_names(session.timeline, node)) or "something"


def _leaks(session: Session, _: str) -> Iterator[str | WorkProgress]:
    timeline, moment = session.timeline, session.moment
    start = timeline.iteration_at(moment.n).start if timeline.iterations else 0
    freed, born = timeline.nodes.freed(moment.n), timeline.nodes.born
    old = [node for node in _existing_nodes(session) if born(node) < start and node not in freed]
    states = yield from collected(_states(session, old))
    holders = (state.node for state in states if state.saved == "held" and not state.freed)
    alive = [node for node in holders if timeline.info(node).created.kind == "op"]
    if not alive:
        yield "no node of an earlier iteration still has saved tensors"
        return
    yield f"{len(alive)} nodes of earlier iterations still have saved tensors: something keeps their graph alive"
    yield from _rows([f"  {label(timeline, node)}, iteration {timeline.iteration_of(node).number}" for node in alive])


def _params(session: Session, _: str) -> Iterator[str | WorkProgress]:
    timeline = session.timeline
    nodes: list[int] = []
    for part in parts(_existing_nodes(session), "looking at node"):
        if isinstance(part, WorkProgress):
            yield part
        else:
            created = timeline.nodes.all_created(part)
            nodes += [node for node, creation in created if creation.kind in ("parameter", "leaf")]
    rows = []
    for state in (yield from collected(_states(session, nodes))):
        output = state.outputs[0] if state.outputs else None
        if output is not None and output.value is not None and state.requires_grad:
            rows.append(f"  {label(timeline, state.node)}: {kind_text(output.value)}, .grad {short(output.grad)}")
    yield f"{len(rows)} leaves that require a gradient"
    yield from _rows(rows)


def _planned(session: Session, _: str) -> Iterator[str]:
    timeline, n = session.timeline, session.cursor.position
    coming = planned(timeline, n, _MOST_PLANNED)
    if not coming.nodes and not coming.ends_early:
        yield "no backward pass has nodes left to run here"
    for place, node in enumerate(coming.nodes, 1):
        yield f"  {place:>3}  {label(timeline, node)}"
    if coming.ends_early:
        yield "  the order of the others is unknown: they were made before the recording, or unseen inside a call"
    elif len(coming.nodes) == _MOST_PLANNED:
        yield "  and so on"


def _stats(session: Session, _: str) -> Iterator[str | WorkProgress]:
    timeline = session.timeline
    yield from timeline.error_index.looking_for_bad()
    passes = sum(phase.kind == "backward" for phase in timeline.phases)
    yield f"{len(timeline)} events, {len(timeline.nodes)} nodes, {len(timeline.iterations)} iterations, {passes} passes"
    yield f"failed at event {timeline.failures[0]}" if timeline.failures else "no failure"
    if timeline.missing:
        yield timeline.missing
    firsts = {bad: timeline.error_index.first(bad) for bad in BAD}
    events = sorted((seq, bad) for bad, seq in firsts.items() if seq)
    yield ", ".join(f"first {bad} at event {seq}" for seq, bad in events) or "no nan or inf"


def _rows(rows: list[str]) -> Iterator[str]:
    yield from rows[:ROWS]
    if len(rows) > ROWS:
        yield f"  and {len(rows) - ROWS} more"


_ALSO = {
    **dict.fromkeys(("breaks", "breakpoints", "b"), "break"),
    **dict.fromkeys(("watches", "display"), "watch"),
    **dict.fromkeys(("args", "variables", "names"), "locals"),
}
_MOST_PLANNED = 20
PAGES: dict[str, Callable[[Session, str], Iterator[str | WorkProgress]]] = {
    "break": _breaks,
    "watch": _watched,
    "locals": _locals,
    "marks": _marks,
    "graph": _graph,
    "saved": _saved,
    "params": _params,
    "stats": _stats,
    "next": _planned,
    "leaks": _leaks,
}
