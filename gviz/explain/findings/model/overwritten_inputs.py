"""An activation in place that overwrites its input, although the program reads it again."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence

from gviz.explain.display_names import label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import ACTIVATIONS
from gviz.explain.program_text import (
    called_name,
    frame_of_part,
    function_of,
    is_at,
    names_set,
    statement_at,
)
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Edit, without_keyword
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number
from gviz.values.plain_text import shown

_SAME_AGAIN = ("relu", "hardtanh", "threshold")
"""Activations that change nothing when they are applied again."""

_MOST_WRITES = 20
"""The writes of one line that are looked at: its input may have nothing to change at first."""


def overwritten_inputs(survey: Survey) -> Iterator[Finding | None]:
    """Yield activations in place of a tensor from outside that the program reads again as if it were unchanged.

    ``out = conv(relu_(x)); out += x`` adds ``relu(x)``. The activation is found by its name, the later use in the
    graph, and the variable in the text: ``x = relu_(x)`` is meant so. A tensor that the activation left as it was, such
    as the result of another relu, does not count.
    """
    timeline = survey.timeline
    left: defaultdict[int, int] = defaultdict(lambda: _MOST_WRITES)
    for record in survey.ops(*ACTIVATIONS):
        name = timeline.op(record.created.op).name
        if not name.endswith("_") or name.endswith("__") or not left[record.created.stack]:
            continue
        yield None
        left[record.created.stack] -= 1
        source = next(survey.sources(record), None)
        if source is None or source.created.kind != "op" or not _changes(source, record):
            continue
        for user in timeline.nodes.users(record.node):
            use = survey.nodes.get(user)
            is_same = use is not None and use.op == record.op and use.op in _SAME_AGAIN
            variable = _read_again(survey, source, record, use) if use is not None and not is_same else None
            if use is not None and variable is not None:
                left[record.created.stack] = 0
                yield _overwritten_finding(survey, source, record, use, *variable)
                break


def _changes(source: NodeRecord, record: NodeRecord) -> bool:
    """Return whether a write in place has changed a tensor."""
    before, after = (one.value.statistics() if one.value is not None else None for one in (source, record))
    return before is not None and after is not None and (before.min, before.max) != (after.min, after.max)


def _read_again(
    survey: Survey, source: NodeRecord, record: NodeRecord, use: NodeRecord
) -> tuple[str, Frame, Frame] | None:
    """Return the variable with the overwritten tensor, the call that got it, and the expression that reads it again."""
    if use.created.kind != "op" or use.created.switched_off or _is_of_part(survey, source, record, use):
        return None
    calls, uses, earlier = ([*reversed(survey.timeline.stack(one.created.stack))] for one in (record, use, source))
    place = next((n for n, (call, used) in enumerate(zip(calls, uses, strict=False)) if call != used), None)
    if place is None or (earlier[: place + 1] == calls[: place + 1] and not survey.scopes.get(record.created.scope)):
        return None
    name = _argument_read_later(survey.timeline, calls[place], uses[place])
    return (name, calls[place], uses[place]) if name else None


def _is_of_part(survey: Survey, source: NodeRecord, record: NodeRecord, use: NodeRecord) -> bool:
    """Return whether the part of a model that makes the write has made the tensor, too: then it may return it."""
    around = set(_calls_around(survey, use))
    inside = [scope for scope in _calls_around(survey, record) if scope not in around]
    return bool(inside) and inside[-1] in _calls_around(survey, source)


def _calls_around(survey: Survey, record: NodeRecord) -> list[int]:
    """Return the module calls around a node, from the inside out."""
    scope, calls = record.created.scope, list[int]()
    while scope in survey.scopes:
        calls.append(scope)
        scope = survey.scopes[scope].parent
    return calls


def _overwritten_finding(
    survey: Survey, source: NodeRecord, record: NodeRecord, use: NodeRecord, name: str, call: Frame, again: Frame
) -> Finding:
    timeline, scope = survey.timeline, survey.scopes.get(record.created.scope)
    text = titled("{} in place overwrites {}, which is read again", record.op, shown(name))
    stats = source.value.statistics() if source.value is not None else None
    was = f"; its least element was {number(stats.min)}" if stats is not None else ""
    then = f"{label_at(timeline, use.node)} gets the result of {record.op}{was}"
    part = Finding("used", then, use.seq, use.node, at=again)
    at, edit, fix = call, None, f"{record.op} without inplace=True, or of {shown(name)}.clone()"
    if scope is not None and record.created.scope not in _calls_around(survey, use):
        around = set(_calls_around(survey, use))
        part_call = [one for one in _calls_around(survey, record) if one not in around][-1]
        path = scope.name.removeprefix(survey.scopes[part_call].name).strip(".")
        fix = f"make the {shown(scope.kind)} {shown(scope.name)} without inplace=True"
        made = _made_in_place(timeline, call, path.split(".") if path else [], scope.kind)
        if made is not None:
            at, edit = made
    else:
        edit = without_keyword(timeline, call, record.op, "inplace")
    return Finding("overwritten-input", text, record.seq, record.node, (part,), fix, at, suspected=True, edit=edit)


def _made_in_place(timeline: Timeline, call: Frame, path: Sequence[str], kind: str) -> tuple[Frame, Edit | None] | None:
    """Return where a class makes a module with ``inplace=True``, and the edit that leaves it out.

    The class is the one whose method makes the call ``self.conv(x)``, and the module has the `path` in ``self.conv``.
    """
    source = statement_at(timeline, call)
    if source is None:
        return None
    text, one = source
    owner = next((outer for outer in reversed(one.around) if isinstance(outer, ast.ClassDef)), None)
    calls = [part for part in one.parts(ast.Call) if isinstance(part.func, ast.Attribute)]
    attributes = {part.func.attr for part in calls if isinstance(part.func, ast.Attribute)}
    assigned = (part for part in (ast.walk(owner) if owner is not None else ()) if isinstance(part, ast.Assign))
    pairs = (pair for part in assigned for target in part.targets for pair in _paired(target, part.value))
    made = [value for target, value in pairs if isinstance(target, ast.Attribute) and target.attr in attributes]
    if len(made) != 1 or len(attributes) != 1:
        return None
    module: ast.expr = made[0]
    for word in path:
        items = module.args if isinstance(module, ast.Call) and called_name(module) == "Sequential" else []
        if not word.isdecimal() or int(word) >= len(items) or any(isinstance(one, ast.Starred) for one in items):
            break
        module = items[int(word)]
    known = [
        part
        for part in ast.walk(module)
        if isinstance(part, ast.Call) and called_name(part) == kind and (part.args or part.keywords)
    ]
    if len(known) != 1:
        return None
    at = frame_of_part(text, known[0], call.function)
    return at, without_keyword(timeline, at, kind, "inplace")


def _paired(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """Return the target and the value of an assignment, one by one if both are tuples."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]


def _argument_read_later(timeline: Timeline, call: Frame, use: Frame) -> str:
    """Return the variable that is an argument of a call and that a later expression of the function reads; else empty.

    ``skip = x`` is another name of it. A result without a name, as of ``relu(x)`` on a line of its own, is that of a
    call for its effect, and so does not count. Neither does a variable that is set again in between.
    """
    called, used = statement_at(timeline, call), statement_at(timeline, use)
    if called is None or used is None or function_of(called[1]) is not function_of(used[1]):
        return ""
    text, one = called
    calls = list(one.parts(ast.Call))
    calls = [part for part in calls if is_at(part, call)] or calls
    if len(calls) != 1 or isinstance(one.node, ast.Expr) or used[1].first < one.first:
        return ""
    running = calls[0]
    values = [*running.args, *(keyword.value for keyword in running.keywords)]
    given = {part.id for part in values if isinstance(part, ast.Name)}
    own = [part for part in text.statements if function_of(part) is function_of(one)]
    for part in own:
        if given and part.first < one.first and isinstance(part.node, ast.Assign):
            value = part.node.value
            others = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
            is_alias = any(isinstance(other, ast.Name) and other.id in given for other in others)
            given = given | names_set(part.node) if is_alias else given - names_set(part.node)
    if used[1].node is one.node:
        inside = {id(part) for part in ast.walk(running)}
        read = {part.id for part in one.parts(ast.Name) if id(part) not in inside and isinstance(part.ctx, ast.Load)}
        return next(iter(sorted(given & read)), "")
    for part in own:
        if one.first <= part.first < used[1].first:
            given -= names_set(part.node)
    read = {part.id for part in used[1].parts(ast.Name) if isinstance(part.ctx, ast.Load)}
    return next(iter(sorted(given & read)), "")
