"""A moment of a recording as a script of its own: the leaves as they were, the operations, the passes, what they gave.

Run alone it does the arithmetic of the recording again and says whether each number is the recorded one. What cannot be
said so, a function of the program's or a hook that changed a gradient, is refused: no script is almost true.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gviz import events as e
from gviz.trace.state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.whatif.literals import Literals
from gviz.whatif.naming import names_of
from gviz.whatif.statements import Draft, Pass, add_comparison, add_leaf, add_operation, add_pass, is_run, refusal
from gviz.whatif.tried import IMPORTS, SAME, trying

_TITLE = "What a recorded program computed for {}, again: written by gviz, for PyTorch or gviz alone."


def script(timeline: Timeline, n: int, node: int) -> str:
    """What made a node, and the passes that went through it up to moment `n`, as a script.

    GvizError where that cannot be written so that it gives the same.
    """
    passes = _passes(timeline, n, node)
    roots = [root for one in passes for root, _ in one.event.roots]
    infos = _made_from(timeline, [node, *roots])
    if not is_run(timeline.info(node)) and not any(one.end for one in passes):
        raise refusal(timeline.info(node), "nothing was computed for it up to here: its number is all there is")
    first = min((info.born for info in infos if is_run(info)), default=n + 1)
    last = max([one.end or n for one in passes] + [infos[-1].born])
    _refuse_writes(timeline, infos, first, last)
    draft = Draft(timeline, names_of(infos), Literals(timeline))
    with trying():
        for info in infos:
            add_operation(draft, info) if is_run(info) else add_leaf(draft, info, max(first - 1, info.born))
        for one in passes:
            add_pass(draft, one, [info for info in infos if not is_run(info)])
        add_comparison(draft, timeline.info(node), passes)
    title = f'"""{_TITLE.format(draft.names[node])}"""'
    return "\n".join([title, "", IMPORTS, "", SAME, "", *draft.tried.lines, "raise SystemExit(not all(results))", ""])


def _made_from(timeline: Timeline, nodes: Iterable[int]) -> list[NodeInfo]:
    """The nodes and all that they were made from, in the order in which they were made."""
    found: dict[int, NodeInfo] = {}
    todo = [*nodes]
    while todo:
        if (node := todo.pop()) not in found:
            info = found[node] = timeline.info(node)
            todo += [source for source, _ in info.created.inputs if source] if is_run(info) else []
    return sorted(found.values(), key=lambda info: (info.born, info.node))


def _passes(timeline: Timeline, n: int, node: int) -> list[Pass]:
    """The passes of the moment's iteration that began by then at something made from the node."""
    iteration, found = timeline.iteration_at(n), []
    kinds = (e.BackwardStarted, e.BackwardFinished)
    said = list(timeline.select(kinds, iteration.start, iteration.end + 1))
    ends = {event.pass_nr: seq for seq, event in said if isinstance(event, e.BackwardFinished)}
    for seq, event in said:
        if isinstance(event, e.BackwardStarted) and seq <= n:
            reached = _made_from(timeline, [root for root, _ in event.roots])
            if node in {info.node for info in reached}:
                found.append(Pass(seq, event, ends.get(event.pass_nr, 0)))
    return found


def _refuse_writes(timeline: Timeline, infos: Sequence[NodeInfo], first: int, last: int) -> None:
    """Raise GvizError for what the program did to these nodes besides operations and passes."""
    storages = {output.storage: info for info in infos for output in info.created.outputs}
    nodes = {info.node for info in infos}
    for seq, event in timeline.select((e.StorageWritten, e.DataSet, e.HookRan), first, last + 1):
        if isinstance(event, e.StorageWritten) and event.storage in storages:
            raise refusal(storages[event.storage], f"it was written in place at event {seq}")
        if isinstance(event, e.DataSet) and event.node in nodes:
            raise refusal(timeline.info(event.node), f"it was given other data at event {seq}")
        if isinstance(event, e.HookRan) and event.node in nodes and event.value is not None:
            raise refusal(timeline.info(event.node), f"a hook changed its gradient at event {seq}")
