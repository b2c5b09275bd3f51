"""Graphs of many iterations that are alive at once, because the program keeps a result of each."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence, Set

from gviz.events import NodeCreated
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.training_loop.running_sum import running_sums
from gviz.explain.program_text import line_text, statement_at, target_of
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Edit, node_replaced, wrapped
from gviz.explain.source_frames import innermost, own_frames
from gviz.explain.tracking import ancestors
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Moment, Timeline
from gviz.values.number_text import bytes_text

# Graphs of many iterations that are alive at once, because a result of each is kept

MOST_ALIVE = 3
"""Graphs of one line that may be alive at once: the one in use, the last one, and one being replaced."""

_FEWEST_UNUSED = 2


def kept_graphs(survey: Survey) -> Iterator[Finding]:
    """Yield lines with tracked results from more than `MOST_ALIVE` iterations that are alive at the end.

    Where no pass goes through the graphs, as in a validation after each epoch, `_FEWEST_UNUSED` iterations are enough.
    """
    if len(survey.timeline.iterations) <= MOST_ALIVE or any(running_sums(survey)):
        return
    last_pass = max((seq for seq, _ in survey.passes), default=survey.end)  # after it the program frees everything
    in_use = _in_use(survey)
    tracked = (
        record for record in survey.alive(last_pass) if record.created.kind == "op" and record.created.requires_grad
    )
    alive = [record for record in tracked if record.node not in in_use and not _is_of_gradcheck(survey, record)]
    by_line: defaultdict[int, list[NodeRecord]] = defaultdict(list)
    for record in alive:
        by_line[record.created.stack].append(record)
    nodes = {record.node for record in alive}
    kept = (one for records in by_line.values() if (one := _kept_results(survey, records, nodes, last_pass)))
    last = max(kept, key=lambda records: records[-1].seq, default=None)
    if last is not None:
        yield _kept_finding(survey, last, alive, last_pass)


def _kept_results(survey: Survey, records: Sequence[NodeRecord], alive: Set[int], last_pass: int) -> list[NodeRecord]:
    """Return a result of each graph that a line keeps: the last one of each iteration, or all that no pass has used.

    Results that one pass goes through together were kept for it, for example by an actor that learns less often than
    its critic. A state that goes on from iteration to iteration is no such result.
    """
    by_iteration = {survey.timeline.iteration_at(record.seq).index: record for record in records}
    if len(by_iteration) < _FEWEST_UNUSED:
        return []
    states = survey.timeline.at(last_pass).states([record.node for record in records])
    passes = Counter(state.pass_nr for state in states if state is not None and state.pass_nr)
    *_, before, last = by_iteration.values()
    if max(passes.values(), default=0) > 1 and before.node not in ancestors(survey.timeline, last.node):
        return []
    if len(by_iteration) > MOST_ALIVE:
        return list(by_iteration.values())
    results = [record for record in records if alive.isdisjoint(survey.timeline.nodes.users(record.node))]
    return results if len(results) > MOST_ALIVE and not passes else []


_GRADCHECK = re.compile(r"\bgrad(grad)?check\(")


def _is_of_gradcheck(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a line that calls `gradcheck` made a node: it keeps its graphs until it returns."""
    frames = survey.timeline.stack(record.created.stack)
    return any(_GRADCHECK.search(line_text(survey.timeline, frame)) for frame in frames)


def _in_use(survey: Survey) -> set[int]:
    """Return the nodes that only the last pass goes through: they are kept for it, as adapted weights are.

    Passes with ``create_graph`` do not count: a loss of the gradients needs the same graph again. Neither do the inner
    passes of ``autograd.grad`` since the line of the last pass ran before: each adapts weights for the next one, and
    the graphs of all of them are freed together after the last pass.
    """
    if not survey.passes:
        return set()
    start, last = survey.passes[-1]
    alike = [seq for seq, event in survey.passes[:-1] if event.stack == last.stack]
    inner = [event.pass_nr for seq, event in survey.passes[:-1] if event.inputs and seq > max(alike, default=0)]
    before = {0, *inner, *(event.pass_nr for _, event in survey.passes if event.create_graph)}
    reached = list(ancestors(survey.timeline, *(node for node, _ in last.roots)))
    states = survey.timeline.at(start - 1).states(reached)
    return {node for node, state in zip(reached, states, strict=True) if state is not None and state.pass_nr in before}


def _kept_finding(survey: Survey, roots: list[NodeRecord], alive: list[NodeRecord], last_pass: int) -> Finding:
    timeline = survey.timeline
    first, last = roots[0], roots[-1]
    states = timeline.at(last.seq).states([record.node for record in alive])
    used_later = timeline.at(last_pass).states([record.node for record in roots])
    saved = [state for state in states if state is not None and state.saved == "held"]
    size = sum(record.value.nbytes for record in alive if record.value is not None)
    info = timeline.info(last.node)
    text = titled(f"{len(roots)} graphs are alive at once: results as {{}} are kept", label(timeline, last.node))
    memory = f"{len(alive)} nodes with results of {bytes_text(size)}"
    memory += f"; {len(saved)} of them keep saved tensors" if saved else "; their saved tensors are released"
    parts = (
        Finding("alive", memory, last.seq, last.node),
        Finding(
            "since", f"the oldest is {label_at(timeline, first.node)}, of event {first.seq}", first.seq, first.node
        ),
    )
    are_numbers = all(record.value is None or record.value.size == 1 for record in roots)
    fix = "keep the number, not the tensor: losses.append(loss.item()), total += loss.item(), or loss.detach()"
    if not are_numbers:
        fix = "keep the numbers without their graph: results.append(result.detach())"
    numbers = (Number("graphs alive", len(roots), last.seq), Number("nodes alive", len(alive), last.seq))
    kept = kept_by(
        timeline,
        innermost(info),
        [info.name for info in map(timeline.info, (record.node for record in alive))],
        are_numbers=are_numbers,
    )
    if not any(state is not None and state.pass_nr for state in (*states, *used_later)):
        fix = f"with torch.no_grad(): around it, as no backward goes through it; or {fix}"
    at, edit = kept or _chained_by(survey, roots, are_numbers=are_numbers) or (innermost(info), None)
    if kept is None and roots[-2].node in ancestors(timeline, last.node):  # a state that goes on: h = cell(x, h)
        at, fix = innermost(info), "detach() the result of the iteration before, so that backward ends there"
        edit = wrapped(timeline, at, info.name, ".detach()") if _is_read_once(timeline, at, info.name) else None
    return Finding("graphs-kept", text, last.seq, last.node, parts, fix, at, numbers, edit=edit)


def _chained_by(
    survey: Survey, roots: list[NodeRecord], *, are_numbers: bool
) -> tuple[Frame | None, Edit | None] | None:
    """Return the line that adds each loss to a running result, which needs all losses before it, and an edit.

    It is ``self.value = 0.9 * self.value + 0.1 * new``; or ``meter.update(loss)``, if the function that made the loss
    passes it to one that adds.
    """
    timeline, lines = survey.timeline, set[int]()
    for root in roots[-_FEWEST_CHAINED:]:
        users = (survey.nodes[node] for node in timeline.nodes.users(root.node) if node in survey.nodes)
        tracked = {user.created.stack for user in users if user.created.requires_grad and not user.created.during[0]}
        lines = tracked if not lines else lines & tracked
    users = (survey.nodes[node] for node in timeline.nodes.users(roots[-1].node) if node in survey.nodes)
    adding = next((user for user in users if user.created.stack in lines), None)
    if adding is None:
        return None
    made, frames = survey.at(roots[-1]), own_frames(timeline.stack(adding.created.stack))
    inner, outer = next(iter(frames), None), frames[1:]
    call = next((one for one in outer if made and (one.path, one.function) == (made.path, made.function)), None)
    source = statement_at(timeline, call)
    if inner is None or call is None or source is None or (inner.path, inner.function) == (call.path, call.function):
        return inner, None
    text, one = source
    names = {name for name in (timeline.info(roots[-1].node).name,) if name}
    passed = [
        part
        for made_by in one.parts(ast.Call)
        for part in made_by.args
        if isinstance(part, ast.Name) and part.id in names
    ]
    if len(passed) != 1:
        return inner, None
    return call, node_replaced(text, passed[0], f"{passed[0].id}.{'item' if are_numbers else 'detach'}()")


_FEWEST_CHAINED = 3


# The graphs that are alive at a moment, and the results that keep them alive

MOST_GRAPHS = 20


def alive_graphs(timeline: Timeline, moment: Moment) -> Finding:
    """Return the tracked results that are not freed, by the iteration that made them."""
    graphs: defaultdict[int, list[NodeCreated]] = defaultdict(list)
    freed = timeline.nodes.freed(moment.n)
    for node, created in timeline.nodes.all_created([node for node in timeline.nodes if node not in freed]):
        if created.kind == "op" and created.requires_grad and timeline.nodes.born(node) <= moment.n:
            graphs[timeline.iteration_at(timeline.nodes.born(node)).index].append(created)
    parts = [_graph(timeline, moment, index, nodes) for index, nodes in sorted(graphs.items())]
    count = len(parts)
    text = (
        f"{count} graph{'s are' if count != 1 else ' is'} alive at event {moment.n}" if parts else "no graph is alive"
    )
    rest = (Finding("more", f"and {count - MOST_GRAPHS} more graphs"),) if count > MOST_GRAPHS else ()
    return Finding("alive", text, moment.n, parts=(*parts[:MOST_GRAPHS], *rest))


def _graph(timeline: Timeline, moment: Moment, index: int, nodes: list[NodeCreated]) -> Finding:
    """Return one iteration's nodes, with the last result that no living node uses: it keeps the others alive."""
    here = {created.node for created in nodes}
    roots = [created for created in nodes if not here & set(timeline.nodes.users_by_node.get(created.node, ()))]
    root = roots[-1] if roots else nodes[-1]
    states = moment.states([created.node for created in nodes])
    count = sum(state is not None and state.saved == "held" for state in states)
    size = sum(created.first_value.nbytes for created in nodes if created.first_value is not None)
    born = timeline.nodes.born(root.node)
    number = timeline.iterations[index].number
    text = (
        f"iteration {number}: {len(nodes)} nodes, results of {bytes_text(size)}, saved tensors of {count} held, "
        f"since event {timeline.nodes.born(nodes[0].node)}; held by {label_at(timeline, root.node)}"
    )
    numbers = (Number("nodes", len(nodes), born), Number("bytes", size, born), Number("saved", count, born))
    return Finding("graph", text, born, root.node, at=innermost(timeline.info(root.node)), numbers=numbers)


# What the program's source code shows


def kept_by(
    timeline: Timeline, at: Frame | None, names: Sequence[str], *, are_numbers: bool = True
) -> tuple[Frame, Edit | None] | None:
    """Return the line that keeps one of these tensors, ``history.append(loss)`` or ``total += loss``, and an edit.

    The line is in the loop of the line that made them, or else in its function, which a loop calls. The edit adds
    ``.item()``, or ``.detach()`` to tensors of several numbers.
    """
    source = statement_at(timeline, at)
    if source is None:
        return None
    text, one = source
    within = [part for part in one.around if isinstance(part, ast.For | ast.While | ast.FunctionDef)]
    for other in text.statements if within else ():
        if within[-1] not in other.around:
            continue
        match other.node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="append" | "add" | "extend"), args=[value])):
                pass
            case ast.AugAssign(op=ast.Add(), value=value):
                pass
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.BinOp(left=ast.Name(id=left), op=ast.Add(), right=value)
            ) if name == left:
                pass
            case _:
                continue
        is_kept = isinstance(value, ast.Name) and value.id in names
        if is_kept or other.node is one.node:
            simple = isinstance(value, ast.Name | ast.Call | ast.Attribute | ast.Subscript)
            old = text.segment(value)
            number = "item" if are_numbers else "detach"
            edit = node_replaced(text, value, f"{old if simple else f'({old})'}.{number}()")
            return Frame(text.path, "", other.first, other.last, -1, -1), edit
    return None


# What the program's source code shows


def _is_read_once(timeline: Timeline, at: Frame | None, name: str) -> bool:
    """Return whether a line sets only this name, and reads it in one place: ``h = cell(x, h)``."""
    source = statement_at(timeline, at)
    if source is None or target_of(timeline, at) != name:
        return False
    reads = [part for part in source[1].parts(ast.Name) if part.id == name and isinstance(part.ctx, ast.Load)]
    return len(reads) == 1
