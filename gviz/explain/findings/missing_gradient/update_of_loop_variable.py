"""An update that only replaces the variable of a loop, so that no parameter changes."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from gviz.events import StorageWritten
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import ELEMENTWISE, SAME_NUMBERS
from gviz.explain.program_text import (
    FUNCTION_NODES,
    binds_name,
    called_name,
    calls_in,
    frame_of,
    names_read,
    scope_of,
    statement_at,
)
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import switch_of, written_to_variable
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline

_UPDATES = ELEMENTWISE | {"lerp", "where", "masked_fill", "addcmul", "addcdiv", "rsub", "maximum", "minimum"}
"""The operations that an update of a parameter ends with."""


def lost_updates(survey: Survey) -> Iterator[Finding | None]:
    """Yield assignments to the variable of a loop that compute a parameter's next value, and that nothing reads.

    Idea. The text shows that a line only replaces the variable of its loop, and that nothing reads it afterwards. The
    recording shows that the line computed tensors from parameters or gradients, that they have the same shape, and
    that no operation of another line used them.

    Example. ``for ema_p, p in zip(ema.parameters(), net.parameters()): ema_p = 0.9 * ema_p + 0.1 * p``

    Limits. Lines that also write in place are left out, and so are results in a list or a dictionary.
    """
    of_statements: defaultdict[_LostAssignment, list[NodeRecord]] = defaultdict(list)
    known: dict[int, _LostAssignment | None] = {}
    for record in survey.nodes.values():
        created = record.created
        if created.kind != "op" or created.during[0]:
            continue
        if created.stack not in known:
            yield None
            known[created.stack] = _lost_assignment(survey.timeline, survey.at(record))
        if (statement := known[created.stack]) is not None:
            of_statements[statement].append(record)
    owners = _owners(survey) if of_statements else {}
    for statement, records in of_statements.items():
        yield _lost_update(survey, statement, records, owners)


def _lost_update(
    survey: Survey, statement: _LostAssignment, records: list[NodeRecord], owners: dict[int, NodeRecord]
) -> Finding | None:
    timeline, ours = survey.timeline, {record.node: record for record in records}
    users = {node: timeline.nodes.users(node) for node in ours}
    if any(user not in ours for each in users.values() for user in each):
        return None
    if any(event.node in ours for _, event in survey.select(StorageWritten)):
        return None
    updates = _UPDATES if statement.reads_itself else _UPDATES | SAME_NUMBERS
    results = [record for record in records if not users[record.node] and record.op in updates]
    lost = [(record, source) for record in results if (source := _source(survey, record, ours, owners)) is not None]
    if not lost:
        return None
    record, source = lost[-1]
    text = titled("the update of {} is lost: it only assigns to the variable of the loop", statement.name)
    fact = f"{label_at(timeline, record.node)} is computed from {label(timeline, source.node)}, and nothing uses it"
    more = f"; nor the other {len(lost) - 1} results of this line" if len(lost) > 1 else ""
    part = Finding("recomputed", f"{fact}{more}", record.seq, record.node)
    name, stack = statement.name, timeline.stack(record.created.stack)
    off = any(one.created.switched_off for one in records) or switch_of(timeline, stack) is not None
    edit = written_to_variable(timeline, statement.at, name, statement.value, off=off)
    fix = f"write to its tensor in place: {name}.copy_(...){'' if off else ' under torch.no_grad()'}"
    return Finding("lost-update", text, record.seq, record.node, (part,), fix, survey.at(record), edit=edit)


def _owners(survey: Survey) -> dict[int, NodeRecord]:
    """Return the parameter, leaf or gradient of each memory."""
    owners: dict[int, NodeRecord] = {}
    for record in survey.nodes.values():
        created, attrs = record.created, dict(record.created.attrs)
        is_leaf = created.kind == "parameter" or (created.kind == "leaf" and created.requires_grad)
        if is_leaf or attrs.get("grad_of") or attrs.get("gradient"):
            for output in created.outputs:
                owners.setdefault(output.storage, record)
    return owners


def _source(
    survey: Survey, record: NodeRecord, ours: dict[int, NodeRecord], owners: dict[int, NodeRecord]
) -> NodeRecord | None:
    """Return the parameter or gradient of the same shape from which a line computed a result in new memory.

    Prefers one that no optimizer has.
    """
    within, memories = [record], set[int]()
    for one in within:
        sources = ((survey.nodes.get(node), nr) for node, nr in one.created.inputs)
        memories |= {source.created.outputs[nr].storage for source, nr in sources if source is not None}
        within += [ours[node] for node, _ in one.created.inputs if node in ours]
    if not memories.isdisjoint(output.storage for output in record.created.outputs):
        return None
    found = (owners[memory] for memory in sorted(memories) if memory in owners)
    alike = [one for one in found if one.shape == record.shape]
    return min(alike, key=lambda one: (one.node in survey.optimized, one.created.kind == "constant"), default=None)


# What the program's source code shows


# An assignment to the variable of a loop that nothing reads: what the loop goes through stays as it was


@dataclass(frozen=True, slots=True)
class _LostAssignment:
    """An assignment to the variable of a loop that nothing reads afterwards, and whether its value reads the variable.

    `at` is its first line, and `value` the text of the value on one line.
    """

    at: Frame
    name: str
    value: str
    reads_itself: bool


_OF_MODELS = ("parameters", "named_parameters", "buffers", "named_buffers", "state_dict")

_IN_VAIN = ("requires_grad_", "retain_grad", "detach_", "zero_")
"""Methods that only change the tensor, or the ``.grad`` of the tensor, that is lost."""


def _lost_assignment(timeline: Timeline, at: Frame | None) -> _LostAssignment | None:
    """Return the assignment on a line that only replaces the variable of the loop around it: ``p = p - lr * p.grad``.

    Its value reads the variable, or the loop goes through the parameters of a model.
    """
    source = statement_at(timeline, at)
    match source[1].node if source is not None else None:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) as node:
            pass
        case _:
            return None
    if source is None or at is None:
        return None
    text, one = source
    loops = [outer for outer in one.around if isinstance(outer, (ast.For, ast.While, *FUNCTION_NODES))]
    loop = loops[-1] if loops else None
    if (
        not isinstance(loop, ast.For)
        or not binds_name(loop.target, name)
        or not any(node is part for body in loop.body for part in ast.walk(body))
    ):
        return None
    reads_itself = name in names_read(value)
    if not reads_itself and not any(called_name(call) in _OF_MODELS for call in calls_in(loop.iter)):
        return None
    if any(called_name(call).endswith("_") for call in calls_in(value)):
        return None  # a method in place has written before the assignment
    end, scope = (node.end_lineno or node.lineno, node.end_col_offset or 0), scope_of(text, one, name)
    if any(place > end for part in loop.body for place in _reads(part, name)):
        return None
    is_repeated = any(not isinstance(outer, FUNCTION_NODES) for outer in loops[:-1])
    outside = (place for part in ast.iter_child_nodes(scope) for place in _reads(part, name, without=loop))
    if any(is_repeated or place > end for place in outside):
        return None
    is_short = value.lineno == value.end_lineno
    written = text.segment(value) if is_short else ast.unparse(value)
    return _LostAssignment(frame_of(at, one.first, text), name, written, reads_itself)


_Position = tuple[float, int]

_LATER: _Position = (float("inf"), 0)
"""The position of a read in a function that may run at any time."""


def _reads(node: ast.AST, name: str, without: ast.AST | None = None) -> Iterator[_Position]:
    """Yield where a part of the syntax tree reads a variable, without the loops and functions whose own variable it is.

    What only changes a lost tensor is left out: ``p.grad = None``, ``p.grad.zero_()``, ``p.requires_grad_()``.
    """
    parts = list(ast.iter_child_nodes(node))
    match node:
        case ast.Name(id=other, ctx=ast.Load()) if other == name:
            yield node.lineno, node.col_offset
        case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=other))], value=value) if other == name:
            parts = [value]
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=tensor, attr=attr), args=arguments)) if (
            attr in _IN_VAIN and ast.unparse(tensor) in (name, f"{name}.grad")
        ):
            parts = list(arguments)
        case ast.For(target=target, iter=items) if node is not without and binds_name(target, name):
            parts = [items]
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            if any(binds_name(one.target, name) for one in node.generators):
                parts = [node.generators[0].iter]
        case ast.Lambda() | ast.FunctionDef() | ast.AsyncFunctionDef():
            stores = (
                part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
            )
            is_own = name in stores or any(part.arg == name for part in ast.walk(node) if isinstance(part, ast.arg))
            if not is_own and name in names_read(node):
                yield _LATER
            parts = []
    if node is not without:
        for part in parts:
            yield from _reads(part, name, without)
