"""Results that are computed and dropped: the statement does nothing.

Idea. An operation that is not in place returns a new tensor. If it is a statement of its own, nothing gets the result.
The recording shows the operation and that nothing used its result; the text shows that nothing could. What the
operation would have changed shows how sure the mistake is: a gradient or a parameter that goes on as it was, an
activation that is used afterwards, or a function of the program whose backward never runs.

Example. ``p.grad.data.clamp(-1, 1)`` before a step: the gradients are not clipped, ``clamp_`` does that.

Limits. Loops that measure time, statements that shall raise an error and what a notebook shows look alike. They are
left out where their text shows it. Functions with an effect of their own, as one that writes to its input, are left
out, too, and so are random draws.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gviz.events import OptimizerStepped, ScopeEntered
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.node_question import Question
from gviz.explain.operation_sets import DROPOUTS
from gviz.explain.program_text import classes_named, methods_of
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Edit, statement_instead
from gviz.explain.statements_without_effect import (
    APPLY,
    Discarded,
    DroppedCall,
    discarded,
    dropped_call,
    forward_has_effects,
)
from gviz.explain.tracking import ancestors
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import clipped, shown

_TWINS = frozenset(
    {"clamp", "clamp_min", "clamp_max", "add", "sub", "mul", "div", "neg", "abs", "exp", "log", "sqrt", "pow", "relu",
     "sigmoid", "tanh", "masked_fill", "masked_scatter", "scatter", "scatter_add", "index_add", "index_copy",
     "index_fill", "lerp", "addcmul", "addcdiv", "round", "floor", "ceil", "nan_to_num", "tril", "triu", "square"}
)  # fmt: skip
"""Operations that also exist in place, with an underscore after the name."""

_ACTIVATIONS = frozenset({"leaky_relu", "elu", "gelu", "silu", "selu", "softplus", "mish", "hardtanh"})
_OTHERS = frozenset(
    {"softmax", "log_softmax", "normalize", "layer_norm", "view", "reshape", "flatten", "squeeze", "unsqueeze",
     "transpose", "permute", "t", "expand", "flip", "roll"}
) | DROPOUTS  # fmt: skip
"""Operations whose result is most likely meant to be kept, if what they are applied to is used afterwards."""

_OF_ONE_TENSOR = re.compile(
    r"\w*Norm\w*|\w*Linear|\w*Conv\w*|\w*Embedding|PReLU|ReLU|GELU|SiLU|Tanh|Dropout|Sequential"
)
"""The classes of modules that return one tensor."""

_MOST_CALLS = 20
"""The most calls of a module that are compared."""

_WITHOUT_EDIT = frozenset({"mul", "div", "add", "sub", "neg", "pow", "abs", "exp", "log", "sqrt", "square"})
"""Arithmetic: the text does not show what its result was meant for."""


@dataclass(slots=True)
class _Use:
    """A statement that drops its result, with the nodes of its result, the first first."""

    statement: Discarded
    results: list[NodeRecord] = field(default_factory=list)


def dropped_results(survey: Survey) -> Iterator[Finding | None]:
    """Yield the statements that only compute a result: each line once."""
    timeline, known = survey.timeline, dict[int, Discarded | None]()
    uses: dict[tuple[str, int, int], _Use] = {}
    for record in survey.nodes.values():
        created = record.created
        if created.kind != "op" or not created.inputs or timeline.nodes.users(record.node):
            continue
        op = timeline.op(created.op)
        if op.name.endswith("_"):
            continue
        if created.stack not in known:
            yield None
            frames = timeline.stack(created.stack)
            at = survey.at(record)
            known[created.stack] = discarded(timeline, at) if frames and at == frames[0] else None
        statement = known[created.stack]
        if statement is None or not _is_of(survey, record, statement):
            continue
        at = survey.at(record)
        if at is not None:
            uses.setdefault((at.path, at.line, at.column), _Use(statement)).results.append(record)
    if not uses:
        return
    owners = _owners(survey)
    for use in uses.values():
        yield _finding(survey, use, owners)


def dropped_module_call(question: Question, users: Sequence[int]) -> Finding | None:
    """Return the finding about a parameter that is used in a call of a module only whose result is dropped.

    Example. In a block, ``self.norm(x)`` on a line of its own normalizes nothing, and its weight gets no gradient.
    """
    timeline = question.timeline
    calls = [dropped_call(timeline, timeline.info(user).frames) for user in users[:_MOST_CALLS]]
    call = calls[0] if calls else None
    if call is None or any(one is None or one.at != call.at for one in calls):
        return None
    whole = clipped(call.whole, 30).replace("{", "{{").replace("}", "}}")
    text = titled(f"{{}} got no gradient: the result of {whole} is dropped", label(timeline, question.node))
    last = users[0]
    while followed := timeline.nodes.users(last):
        last = followed[-1]
    part = Finding("dropped", f"nothing uses {label_at(timeline, last)}", timeline.nodes.born(last), last, at=call.at)
    if (taken := _taken_inside(timeline, last)) is not None:
        node, user = taken
        text = titled(
            f"{{}} got no gradient: only what comes before it in {whole} is used", label(timeline, question.node)
        )
        used = f"{label_at(timeline, user)} uses {label_at(timeline, node)}, which was taken inside the call"
        parts = (Finding("used", used, timeline.nodes.born(user), user), part)
        fix = "leave its layer out, if only these are wanted; or use the result of the call, too"
        return Finding("not-reached", text, 0, question.node, parts, fix, call.at, suspected=True)
    fix, edit = "keep its result, or leave the call out", None
    is_like = call.variable and _replaces(question, last, call.variable)
    if is_like and all(_returns_a_tensor(timeline, kind) for kind in _modules_called(timeline, last, call)):
        assigned = f"{call.variable} = {call.whole}"
        fix, edit = f"keep its result: {clipped(assigned, 80)}", statement_instead(timeline, call.at, assigned)
    return Finding("not-reached", text, 0, question.node, (part,), fix, call.at, edit=edit)


def _taken_inside(timeline: Timeline, result: int) -> tuple[int, int] | None:
    """Return what an operation outside of a call of a module uses from inside of it, as a hook takes it, and this one.

    The call made a result that nothing uses.
    """
    scopes = {event.scope: event for _, event in timeline.select((ScopeEntered,))}
    own = _outermost(scopes, timeline.info(result).created.scope)
    for node in ancestors(timeline, result) if own else ():
        if _outermost(scopes, timeline.info(node).created.scope) != own:
            continue
        for user in timeline.nodes.users(node):
            if _outermost(scopes, timeline.info(user).created.scope) != own:
                return node, user
    return None


def _outermost(scopes: Mapping[int, ScopeEntered], scope: int) -> int:
    """Return the outermost module call around a module call; 0 outside of modules."""
    while scope in scopes and scopes[scope].parent in scopes:
        scope = scopes[scope].parent
    return scope if scope in scopes else 0


def _replaces(question: Question, result: int, variable: str) -> bool:
    """Return whether a result has the shape of what it is made from, and an optimizer has the parameter."""
    timeline = question.timeline
    step = next((event for _, event in timeline.select((OptimizerStepped,))), None)
    if step is None or question.node not in (*step.parameters, *step.skipped):
        return False
    made = timeline.info(result).created.first_value
    for node in ancestors(timeline, result):
        info = timeline.info(node)
        if variable in info.names:
            given = info.created.first_value
            return given is not None and made is not None and (given.shape, given.dtype) == (made.shape, made.dtype)
    return False


def _modules_called(timeline: Timeline, node: int, call: DroppedCall) -> Iterator[str]:
    """Yield the classes of the modules that a call ran to make a node, the innermost first."""
    scopes = {event.scope: event for _, event in timeline.select((ScopeEntered,))}
    scope = timeline.info(node).created.scope
    while scope in scopes and scopes[scope].kind != call.owner:
        yield scopes[scope].kind
        scope = scopes[scope].parent


def _returns_a_tensor(timeline: Timeline, kind: str) -> bool:
    """Return whether a module surely gives one tensor: a recurrent one gives its state, too."""
    if _OF_ONE_TENSOR.fullmatch(kind):
        return True
    forward = next((methods_of(owner).get("forward") for _, owner in classes_named(timeline, kind)), None)
    returned = [part.value for part in ast.walk(forward) if isinstance(part, ast.Return)] if forward else []
    return bool(returned) and all(isinstance(one, ast.Name | ast.Call | ast.BinOp) for one in returned)


def _is_of(survey: Survey, record: NodeRecord, statement: Discarded) -> bool:
    """Return whether a node is the result of the statement's own operation, and not of a module with its name."""
    op = survey.timeline.op(record.created.op)
    if statement.called == APPLY:
        return op.is_of_program
    if statement.name not in (op.base_name, op.call):
        # of a function of several operations, as `normalize`, the built-in engine does not record the name
        return statement.name == "normalize" and op.base_name == "div"
    scope = survey.scopes.get(record.created.scope)
    is_module = scope is not None and scope.name.rpartition(".")[2] == statement.called
    return not is_module and (
        statement.operator != "" or statement.name in _TWINS | _ACTIVATIONS | _OTHERS | {"detach"}
    )


def _owners(survey: Survey) -> dict[int, NodeRecord]:
    """Return the parameter or gradient in each memory."""
    owners: dict[int, NodeRecord] = {}
    for record in survey.nodes.values():
        created, attrs = record.created, dict(record.created.attrs)
        is_leaf = created.kind == "parameter" or (created.kind == "leaf" and created.requires_grad)
        if is_leaf or attrs.get("grad_of"):
            for output in created.outputs:
                owners.setdefault(output.storage, record)
    return owners


def _finding(survey: Survey, use: _Use, owners: dict[int, NodeRecord]) -> Finding | None:
    record, statement = use.results[0], use.statement
    source = _operand(survey, record, statement)
    if source is None:
        return None
    if statement.called == APPLY:
        return _of_function(survey, use, source)
    if (
        record.created.during[0]
        and statement.is_argument
        and not statement.returns
        and not record.created.requires_grad
    ):
        return _of_hook(survey, use, source)
    outputs = source.created.outputs
    owner = owners.get(outputs[0].storage) if outputs and source.shape == record.shape else None
    if owner is not None and statement.name in _TWINS:
        return _of_owner(survey, use, source, owner)
    if statement.is_shown:
        return None
    if not any(_is_used_after(survey, one, statement) for one in use.results):
        return None
    if statement.name == "detach" and not source.created.requires_grad:
        return None
    return _of_activation(survey, use, source)


def _operand(survey: Survey, record: NodeRecord, statement: Discarded) -> NodeRecord | None:
    """Return the tensor to which the operation of a statement was applied."""
    slots = survey.timeline.op(record.created.op).slots
    if statement.name in ("addmm", "baddbmm") or (slots and slots[0] == "condition"):
        return None
    sources = [survey.nodes.get(node) for node, _ in record.created.inputs]
    source = sources[0]
    if source is None or "number" in dict(source.created.attrs):
        return None
    return source


def _is_used_after(survey: Survey, record: NodeRecord, statement: Discarded) -> bool:
    """Return whether the program uses what the operation was applied to afterwards."""
    source = _operand(survey, record, statement)
    if source is None:
        return False
    users = (survey.nodes.get(user) for user in survey.timeline.nodes.users(source.node))
    if any(user is not None and user.seq > record.seq and user.created.stack != record.created.stack for user in users):
        return True
    return any(seq > record.seq and any(node == source.node for node, _ in event.roots) for seq, event in survey.passes)


def _often(use: _Use) -> str:
    return f", in {len(use.results)} calls" if len(use.results) > 1 else ""


def _of_function(survey: Survey, use: _Use, source: NodeRecord) -> Finding | None:
    """Return the finding of a function of the program whose backward never runs."""
    record, timeline = use.results[0], survey.timeline
    name = timeline.op(record.created.op).name
    has_effects = forward_has_effects(timeline, name)
    if not record.created.requires_grad or has_effects or not survey.passes:
        return None
    at, statement = survey.at(record), use.statement
    tracked = [one for one in survey.sources(record) if one.created.requires_grad]
    others = [one for one in tracked if one is not source]
    sends = f", and sends no gradient to {label(timeline, others[0].node)}" if others else ""
    text = titled("the result of {} is dropped, so its backward never runs", shown(name))
    part = Finding("dropped", f"nothing uses {label_at(timeline, record.node)}{sends}{_often(use)}", record.seq,
                   record.node, at=at)  # fmt: skip
    is_like = source.shape == record.shape and bool(statement.operand)
    fix = "use its result where the first argument was used"
    edit = None
    if is_like:
        fix = f"keep the result: {clipped(statement.assigned, 80)}"
        is_read = _is_used_after(survey, record, statement)
        edit = statement_instead(timeline, at, statement.assigned) if is_read and has_effects is False else None
    suspected = has_effects is None or statement.is_shown or not is_like
    return Finding("dropped-result", text, record.seq, record.node, (part,), fix, at, (), suspected, edit)


def _of_owner(survey: Survey, use: _Use, source: NodeRecord, owner: NodeRecord) -> Finding:
    """Return the finding of a gradient or a parameter that stays as it was."""
    record, statement, timeline, at = use.results[0], use.statement, survey.timeline, survey.at(use.results[0])
    text = titled(f"the result of {_title(statement)} is dropped: {{}} stays as it was", label(timeline, owner.node))
    part = Finding("dropped", f"nothing uses {label_at(timeline, record.node)}, a new tensor{_often(use)}", record.seq,
                   record.node, at=at)  # fmt: skip
    fix, edit = "write in place", None
    if statement.in_place:
        off = record.created.switched_off or not record.created.requires_grad
        fix = f"write in place: {clipped(statement.in_place, 60)}{'' if off else ' under torch.no_grad()'}"
        edit = statement_instead(timeline, at, statement.in_place) if off else None
    suspected = statement.is_shown
    return Finding("dropped-result", text, record.seq, owner.node, (part,), fix, at, (), suspected, edit)


def _of_hook(survey: Survey, use: _Use, source: NodeRecord) -> Finding:
    """Return the finding of a hook that computes another gradient and returns nothing."""
    record, statement, timeline, at = use.results[0], use.statement, survey.timeline, survey.at(use.results[0])
    text = titled(f"the result of {_title(statement)} is dropped: {{}} stays as it was", label(timeline, source.node))
    why = f"a hook that returns nothing keeps the gradient; nothing uses {label_at(timeline, record.node)}"
    part = Finding("dropped", why, record.seq, record.node, at=at)
    whole = f"return {statement.whole}"
    edit = statement_instead(timeline, at, whole) if statement.is_last else None
    return Finding(
        "dropped-result", text, record.seq, record.node, (part,), f"return it: {clipped(whole, 60)}", at, edit=edit
    )


def _of_activation(survey: Survey, use: _Use, source: NodeRecord) -> Finding:
    """Return the finding of a tensor that the program uses afterwards as it was."""
    record, statement, timeline, at = use.results[0], use.statement, survey.timeline, survey.at(use.results[0])
    text = titled(f"the result of {_title(statement)} is dropped: {{}} stays as it was", label(timeline, source.node))
    users = [survey.nodes[one] for one in timeline.nodes.users(source.node) if one in survey.nodes]
    later = next((one for one in users if one.seq > record.seq and one.created.stack != record.created.stack), None)
    then = f"; {label_at(timeline, later.node)} uses {label(timeline, source.node)}" if later is not None else ""
    part = Finding("dropped", f"nothing uses {label_at(timeline, record.node)}{_often(use)}{then}", record.seq,
                   record.node, at=at)  # fmt: skip
    fix, edit = "keep the result, or leave the line out", None
    if statement.assigned:
        fix = f"keep the result: {clipped(statement.assigned, 80)}"
        edit = _assigned(survey, use, at)
        if statement.name == "detach":  # where it is used in the loss, nothing is trained then
            fix = f"{fix}, where no gradient should flow"
    suspected = statement.name in _OTHERS
    return Finding("dropped-result", text, record.seq, record.node, (part,), fix, at, (), suspected, edit)


def _assigned(survey: Survey, use: _Use, at: Frame | None) -> Edit | None:
    """Return the edit that keeps the result, if the line does nothing else than to change its operand."""
    statement = use.statement
    if statement.name == "detach" or (statement.name in _OTHERS | _WITHOUT_EDIT and statement.operator != "/"):
        return None
    return statement_instead(survey.timeline, at, statement.assigned)


def _title(statement: Discarded) -> str:
    return statement.operator or statement.called
