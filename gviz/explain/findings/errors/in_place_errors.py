"""Errors of writes in place: to a tensor that backward needs, a leaf that requires a gradient, one of several views."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from gviz.events import BackwardStarted, DataSet, Edge, NodeCreated, OptimizerStepped, RequiresGradSet, StorageWritten
from gviz.explain.display_names import label, label_at, output_label, titled
from gviz.explain.finding import Finding
from gviz.explain.findings.errors.second_backward import carried_over_step
from gviz.explain.operation_sets import ACTIVATIONS
from gviz.explain.parameter_updates import Write, step_of, writer_of
from gviz.explain.program_errors import Failure
from gviz.explain.program_text import statement_at
from gviz.explain.source_edit import Edit, in_block, lines_replaced, without_in_place, without_option
from gviz.explain.source_frames import at_text, innermost
from gviz.explain.tracking import ancestors
from gviz.source.call_stack import Frame, source_lines
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import shown

_CHANGED = r"modified by an inplace operation"


_NAMED_SHAPE = re.compile(r"Tensor (\[[\d, ]*\])")
_NAMED_VERSION = re.compile(r"expected version (\d+)")


def explain_saved(failure: Failure) -> Finding | None:
    """Explain the write between saving and backward: by an operation, or by the step of an optimizer."""
    if not failure.says(_CHANGED):
        return None
    timeline = failure.timeline
    saved_write = _write_of(timeline, failure) if failure.node else None
    if saved_write is None:
        text = "a tensor that backward needs was changed in place after it had been saved"
        return Finding("changed-in-place", text, failure.seq, failure.node, fix=_FIX, at=failure.at)
    (holder, version), seq, write = saved_write
    saver = timeline.info(failure.node)
    saved = f"saved by {saver.op.grad_fn or label(timeline, saver.node)}{at_text(saver.frames)} at version {version}"
    saved_part = Finding("saved", saved, saver.born, saver.node, at=innermost(saver))
    by_node = writer_of(write)
    owner = _owner(timeline, (holder, 0))
    step = step_of(timeline, owner, seq)
    needs = "but its rule still needs it as it was" if holder == saver.node else "but {} still needs it as it was"
    names = () if holder == saver.node else (label(timeline, saver.node),)
    if step is not None:
        frames = timeline.stack(step.stack)
        text = titled(
            "a step of {} updated {}, " + needs.removesuffix(" as it was"),
            shown(step.kind),
            label(timeline, owner),
            *names,
        )
        wrote = f"updated by the step{at_text(frames)} to version {write.version}"
        at = frames[0] if frames else failure.at
        updated = Finding("write", wrote, seq, owner, at=at)
        of_state = replace(updated, text=f"{label(timeline, owner)} of that graph was {wrote}")
        if (carried := carried_over_step(failure, of_state)) is not None:
            return carried
        parts = (saved_part, updated)
        anew, edit = _made_anew(failure, seq, at)
        fix = f"compute the loss anew after it: {'; '.join(anew)}" if edit is not None else _STEP_FIX
        return Finding("changed-in-place", text, seq, owner, parts, fix, at, edit=edit)
    writer = timeline.info(by_node) if by_node in timeline.nodes else None
    text = titled("{} was changed in place, " + needs, label(timeline, holder), *names)
    wrote = f"changed by {label_at(timeline, by_node)} to version {write.version}" if writer else "changed"
    parts = (saved_part, Finding("write", wrote, seq, by_node, at=innermost(writer) if writer else None))
    at = innermost(writer) if writer else failure.at
    edit = without_in_place(timeline, at) or without_option(timeline, at, "inplace")
    return Finding("changed-in-place", text, seq, holder, parts, _fix(writer), at, edit=edit)


def _made_anew(failure: Failure, seq: int, at: Frame | None) -> tuple[list[str], Edit | None]:
    """Return the assignments between the parameters that a step updated and the loss, and the edit that repeats these.

    These are what the failed pass needs with the new parameters, as ``pred = D(fake)`` and ``loss = bce(pred, ones)``.
    """
    timeline = failure.timeline
    step = next((timeline.event(one.end) for one in timeline.contexts.steps_at(seq) if one.end), None)
    begun = next(reversed([event for _, event in timeline.select((BackwardStarted,), seq, failure.seq)]), None)
    if not isinstance(step, OptimizerStepped) or begun is None or at is None or len(begun.roots) != 1:
        return [], None
    root, _ = begun.roots[0]
    behind = {root, *ancestors(timeline, root)}
    uses = set(step.parameters)
    for node in sorted(behind):  # inputs are older than what uses them
        uses |= {node} if uses.intersection(timeline.nodes.inputs_by_node.get(node, ())) else set()
    made = (timeline.info(node) for node in sorted(uses & behind) if timeline.nodes.born(node) < seq)
    stacks = (info.frames for info in made if info.created.kind == "op")
    of_function = (
        next((one for one in frames if (one.path, one.function) == (at.path, at.function)), None) for frames in stacks
    )
    frames = list(of_function)
    known = [one for one in dict.fromkeys(frames) if one is not None]
    texts, edit = repeated_after(timeline, at, known) if known and None not in frames else ([], None)
    is_short = len(texts) <= _MOST_REPEATED and all(len(text) <= _LONGEST_REPEATED for text in texts)
    return (texts, edit) if is_short else ([], None)


_MOST_REPEATED, _LONGEST_REPEATED = 3, 80


def _owner(timeline: Timeline, output: Edge) -> int:
    """Return the node that owns an output's memory: for a view, the tensor that it is a view of."""
    node, nr = output
    while True:
        outputs = timeline.info(node).created.outputs
        base = outputs[nr].view_of if nr < len(outputs) else 0
        if not base or base >= node or base not in timeline.nodes:
            return node
        node, nr = base, 0


_STEP_FIX = "compute the loss anew after it; or run this backward pass before the step, which then uses both gradients"


def _write_of(timeline: Timeline, failure: Failure) -> tuple[Edge, int, Write] | None:
    """Return the write to a tensor that the rule had saved; of several tensors, the one that the error describes.

    The message has the shape of the saved tensor and the expected version. An operation may not have saved the first of
    its inputs: a step changes ``b`` and ``w`` of ``addmm(b, x, w.t())``, but only ``w.t()`` is saved.
    """
    shape, version = (pattern.search(failure.message) for pattern in (_NAMED_SHAPE, _NAMED_VERSION))
    born = timeline.at(timeline.info(failure.node).born)

    def mismatch(saved_write: tuple[Edge, int, Write]) -> tuple[bool, bool]:
        (holder, at_version), _, _ = saved_write
        state = born.state(holder)
        values = [output.value for output in state.outputs if output.value is not None] if state is not None else []
        shapes = [str(list(value.shape)) for value in values]
        return shape is not None and shape[1] not in shapes, version is not None and version[1] != str(at_version)

    return min(_writes(timeline, failure), key=mismatch, default=None)


_ASSIGNING = ("copy", "setitem")  # recorded operations of an assignment ``s[1] = v``
_FIX = "use the operation that makes a new tensor, or clone() before the change"


def _fix(writer: NodeInfo | None) -> str:
    plain = writer.op.base_name if writer is not None else ""
    if plain in _ASSIGNING:
        return "assign before it is used, write to a clone(), or make the whole of its parts with stack or cat"
    if writer is None or not writer.op.name.endswith("_"):
        return _FIX
    cause = "an activation with inplace=True" if plain in ACTIVATIONS else "an operator like +="
    return f"use {plain}, which makes a new tensor, instead of {plain}_ (or of {cause}); or clone() before"


def _writes(timeline: Timeline, failure: Failure) -> Iterator[tuple[Edge, int, Write]]:
    """Yield the first write to each tensor that the node had saved: ``((node, version), event, write)``."""
    info = timeline.info(failure.node)
    before = timeline.at(info.born)
    for holder, output_nr in [*((info.node, nr) for nr in range(len(info.created.outputs))), *info.created.inputs]:
        state = before.state(holder) if holder else None
        if state is None or output_nr >= len(state.outputs):
            continue
        for seq in timeline.events_of(holder):
            event = timeline.event(seq)
            if not (info.born < seq < failure.seq and isinstance(event, StorageWritten | DataSet)):
                continue
            if writer_of(event) != info.node:
                yield (holder, state.outputs[output_nr].version), seq, event
                break


# A leaf that requires a gradient

_RULE = "such a leaf may be changed in place only under no_grad"
_OF_A_LEAF = "a leaf that requires a gradient"
_ALSO = re.compile(r"\s*(\w+)\s*=\s*(\w+)\s*;?\s*(?:#.*)?")
_LEAF = r"leaf [Vv]ariable that requires grad .*in-place"


def explain_leaf(failure: Failure) -> Finding | None:
    """Return the name of the leaf, if the source line shows it."""
    if not failure.says(_LEAF):
        return None
    timeline, names = failure.timeline, _names(failure)
    leaves = map(timeline.info, _leaves(timeline))
    leaf = next((info for info in leaves if info.name in names), None)
    view = "a view of " if failure.says("a view of") else ""
    what = label(timeline, leaf.node) if leaf else "a leaf"
    text = titled(f"{view}{{}} was to be changed in place while autograd records", what)
    which = f"{label_at(timeline, leaf.node)} is a leaf that requires a gradient" if leaf else f"it is {_OF_A_LEAF}"
    parts = (Finding("leaf", f"{which}; {_RULE}", leaf.born if leaf else 0, leaf.node if leaf else 0),)
    fix = "update it inside with torch.no_grad():, let an optimizer do it, or change a clone()"
    edit = in_block(timeline, failure.at, "with torch.no_grad():")
    return Finding("leaf-in-place", text, failure.seq, leaf.node if leaf else 0, parts, fix, failure.at, edit=edit)


def _leaves(timeline: Timeline) -> Iterator[int]:
    """Yield leaves, the latest first, including tensors that began to require a gradient later."""
    created, later = timeline.select([NodeCreated]), timeline.select([RequiresGradSet])
    leaves = [(n, event.node) for n, event in created if event.kind != "op" and event.requires_grad]
    switched = [(n, event.node) for n, event in later if event.requires_grad]
    return (node for _, node in sorted([*leaves, *switched], reverse=True))


def _names(failure: Failure) -> set[str]:
    """Return the names on the line that raised it, and their aliases: after ``y = x`` also ``x``."""
    names = set(failure.names_on_its_line())
    text = failure.timeline.source(failure.at.path) if failure.at else None
    above = source_lines(text or "")[: failure.at.line] if failure.at else []
    for row in reversed(above):
        also = _ALSO.fullmatch(row)
        if also is not None and also[1] in names:
            names.add(also[2])
    return names


# What the program's source code shows


def repeated_after(timeline: Timeline, at: Frame | None, earlier: Sequence[Frame]) -> tuple[list[str], Edit | None]:
    """Return assignments before a statement of the same block as texts, and the edit that repeats these after it.

    Nothing is repeated if one of the places is in another block, or in no assignment. Neither is an assignment that
    would read another number the second time, as ``h = cell(x, h)`` does.
    """
    source = statement_at(timeline, at)
    if source is None or getattr(source[1].node, "body", None):
        return [], None
    text, one = source
    found = [text.at(frame.line, frame.column) for frame in earlier if frame.path == text.path]
    statements = {id(each.node): each for each in found if each is not None}
    repeated = sorted(statements.values(), key=lambda each: each.first)
    in_block = {id(node) for node in one.block}
    if len(found) < len(earlier) or None in found or not text.is_alone(one):
        return [], None
    if any(id(each.node) not in in_block or not isinstance(each.node, ast.Assign) for each in repeated):
        return [], None
    if not repeated or repeated[-1].first >= one.first or _reads_what_follows([each.node for each in repeated]):
        return [], None
    texts = [text.segment(each.node) for each in repeated]
    rows = "".join(f"{row}\n" for row in text.rows[one.first - 1 : one.last])
    new = "".join(f"{text.indent(one)}{each}\n" for each in texts)
    return texts, lines_replaced(text, one.first, one.last, rows + new)


def _reads_what_follows(statements: Sequence[ast.stmt]) -> bool:
    """Return whether one of the assignments reads a name that it, or a later one, assigns."""
    assigned: set[str] = set()
    for statement in reversed(statements):
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        for target in (part for one in targets for part in _changed_by(one)):
            assigned.add(ast.unparse(target))
        parts = [part for part in ast.walk(statement) if isinstance(part, ast.Name | ast.Attribute | ast.Subscript)]
        if any(ast.unparse(part) in assigned for part in parts if isinstance(part.ctx, ast.Load)):
            return True
    return False


def _changed_by(target: ast.expr) -> Iterator[ast.expr]:
    """Yield what an assignment changes: each name of a tuple, and of ``h[0]`` also ``h``."""
    match target:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _changed_by(part)
        case ast.Starred(value=value):
            yield from _changed_by(value)
        case ast.Subscript(value=value):
            yield from (target, value)
        case _:
            yield target


SEVERAL_VIEWS = r"is a view and is being modified inplace. This view is the output of a function that returns"


def of_several_views(failure: Failure) -> Finding:
    """Return the finding about a write to one of the views that `unbind`, `split` or `chunk` returned."""
    names, match = failure.names_on_its_line(), re.search(r"Output (\d+) of", failure.message)
    nr = int(match[1]) if match is not None else 0
    several = [info for info in failure.earlier_nodes() if _has_several_views(info, nr)]
    info = next((one for one in several if one.output_name(nr) in names), next(iter(several), None))
    what = f", {output_label(failure.timeline, info.node, nr)}," if info is not None else ""
    text = titled("one of several views{} cannot be changed in place", what)
    fix = "use the operation that returns a new tensor, or clone() the view first"
    edit = without_in_place(failure.timeline, failure.at)
    return Finding("failed", text, failure.seq, info.node if info else 0, (), fix, failure.at, edit=edit)


def _has_several_views(info: NodeInfo, nr: int) -> bool:
    """Return whether a node has several views as its outputs, and one of number `nr`."""
    outputs = info.created.outputs
    return nr < len(outputs) and len(outputs) > 1 and all(one.view_of for one in outputs)
