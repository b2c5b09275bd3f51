"""A buffer that was to be learned: it begins with random numbers as a weight does, and keeps them.

Idea. A buffer is saved with the model, but ``parameters()`` leaves it out. Two uses show that it was meant as a
parameter. ``nn.init`` has filled it, and the model adds it to its activations or joins it with them, as a position or a
token. Or it is the mean or the logarithm of the scale of a sample, ``mu + log_sigma.exp() * noise``.

Example. ``self.register_buffer("slots_mu", nn.init.xavier_uniform_(torch.zeros(1, 1, d)))``.

Limits. A buffer that anything writes to later, such as a running mean, is left out, and so is one with a single number
in all elements. Random projections and random features multiply by a buffer or take a sine; they are fixed on purpose.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gviz.events import DataSet, Named, StorageWritten
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.operation_sets import SAME_NUMBERS
from gviz.explain.program_text import (
    ProgramText,
    Statement,
    called_function,
    called_name,
    frame_of,
    imported_names,
    names_set,
    program_text,
)
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Edit, node_replaced
from gviz.explain.source_frames import innermost, own_frame
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import file_line, shown


def unlearned_buffers(survey: Survey) -> Iterator[Finding | None]:
    """Yield the buffers of a trained model that are used as only parameters are, and that nothing has written to."""
    buffers = _buffers(survey)
    for buffer in buffers.values():
        yield None
        used = _use_in_sample(survey, buffer, buffers) or _use_of_initialized(survey, buffer)
        if used is not None and _module_of(survey, used.by) in _trained_modules(survey):
            yield _finding(survey.timeline, buffer, used)


@dataclass(frozen=True, slots=True)
class _Use:
    """How a model uses a buffer, in words, by which operation, and the line that has initialized it, if it is known."""

    words: str
    by: NodeRecord
    initialized: Frame | None = None


def _trained_modules(survey: Survey) -> set[int]:
    """Return the outermost module calls in which the first operations use parameters of optimizers."""
    timeline = survey.timeline
    users = (user for node in survey.optimized for user in timeline.nodes.users(node)[:_FIRST])
    return {_module_of(survey, survey.nodes[user]) for user in users if user in survey.nodes}


def _module_of(survey: Survey, record: NodeRecord) -> int:
    """Return the outermost module call in which an operation was made; 0 outside of modules."""
    return survey.outermost(record.created.scope) if record.created.scope in survey.scopes else 0


_FIRST = 8
"""The operations with a parameter that are examined."""


@dataclass(frozen=True, slots=True)
class _Buffer:
    """A buffer, and the operations that use it after the last write to it."""

    record: NodeRecord
    users: tuple[NodeRecord, ...]


def _buffers(survey: Survey) -> dict[int, _Buffer]:
    """Return the buffers of trained modules that are used in several iterations with the random numbers they got."""
    timeline, found = survey.timeline, dict[int, _Buffer]()
    names = {event.node: event.name for _, event in timeline.select((Named,))}
    trained = {names[node].rpartition(".")[0] for node in survey.optimized if node in names}
    candidates: dict[int, NodeRecord] = {}
    for node, name in names.items():
        record, owner = survey.nodes.get(node), name.rpartition(".")[0]
        if record is None or record.created.kind != "constant" or not record.created.outputs:
            continue
        if not owner or any(one == owner or one.startswith(f"{owner}.") for one in trained):
            candidates[node] = record
    storages = {record.created.outputs[0].storage: node for node, record in candidates.items()}
    written: dict[int, int] = {}
    for seq, event in survey.select(StorageWritten, DataSet):
        node = storages.get(event.storage, 0) if isinstance(event, StorageWritten) else getattr(event, "node", 0)
        written[node] = seq
    trained_from = survey.passes[0][0] if survey.passes else 0
    for node, record in candidates.items():
        last = written.get(node, 0)
        users = [survey.nodes[user] for user in timeline.nodes.users(node) if user in survey.nodes]
        users = [user for user in users if user.seq > last]
        value = timeline.memory_value(node, 0, survey.end) if len(users) > 1 and last < trained_from else None
        stats = value.statistics() if value is not None and value.dtype.startswith(("f", "b")) else None
        if stats is None or not stats.min < stats.max:
            continue
        if timeline.iteration_at(users[0].seq).index != timeline.iteration_at(users[-1].seq).index:
            found[node] = _Buffer(record, tuple(users))
    return found


# The mean or the logarithm of the scale of a sample

_SCALES = {"exp", "exp2", "softplus"}
_NOISE = {"randn", "randn_like", "normal", "normal_", "_standard_normal"}
_BEFORE_SCALE = SAME_NUMBERS | {"mul", "div", "clamp", "add", "sqrt"}
_MOST = 40


def _use_in_sample(survey: Survey, buffer: _Buffer, buffers: dict[int, _Buffer]) -> _Use | None:
    """Return the use of a buffer as the mean of a sample, or as the logarithm of its scale."""
    for one in _after(survey, buffer, SAME_NUMBERS):
        if one.op == "add" and any(_is_noise(survey, other) for other in survey.sources(one) if other.op == "mul"):
            scales = [_logarithm(survey, other) for other in survey.sources(one) if other.op == "mul"]
            if any(scale is not None and scale.node in buffers for scale in scales) and _is_trained_after(survey, one):
                return _Use("the mean of a sample", one)
    for one in _after(survey, buffer, _BEFORE_SCALE | _SCALES):
        is_scaled = one.op == "mul" and _is_noise(survey, one) and _logarithm(survey, one) is buffer.record
        if is_scaled and _is_trained_after(survey, one):
            return _Use("the logarithm of the scale of a sample", one)
    return None


def _after(survey: Survey, buffer: _Buffer, through: frozenset[str] | set[str]) -> Iterator[NodeRecord]:
    """Yield the first operation that uses a buffer, and what follows it through operations of some names."""
    waiting, seen = [*buffer.users[:1]], set[int]()
    while waiting and len(seen) < _MOST:
        one = waiting.pop()
        if one.node in seen:
            continue
        seen.add(one.node)
        yield one
        if one.op in through and not one.created.requires_grad:
            waiting += [survey.nodes[user] for user in survey.timeline.nodes.users(one.node) if user in survey.nodes]


def _is_noise(survey: Survey, product: NodeRecord) -> bool:
    """Return whether one factor of a product is normal noise."""
    for factor in survey.sources(product):
        frames = survey.timeline.stack(factor.created.stack) if factor.created.kind == "constant" else ()
        if factor.op in _NOISE:
            return True
        if factor.shape and any(called_function(survey.timeline, frame) in _NOISE for frame in frames[:3]):
            return True
    return False


def _logarithm(survey: Survey, product: NodeRecord) -> NodeRecord | None:
    """Return the constant whose exponential is a factor of a product."""
    for factor in survey.sources(product):
        one, is_scale = factor, False
        for _ in range(_MOST):
            if one.created.kind != "op":
                break
            is_scale = is_scale or one.op in _SCALES
            sources = [source for source in survey.sources(one) if source.shape]
            if len(sources) != 1 or one.op not in _BEFORE_SCALE | _SCALES:
                break
            one = sources[0]
        if is_scale and one.created.kind == "constant":
            return one
    return None


# What nn.init has filled

_INITIALIZERS = {
    "xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_", "trunc_normal_", "orthogonal_",
    "sparse_",
}  # fmt: skip
_OF_INIT = _INITIALIZERS | {"normal_", "uniform_"}
_AS_PARAMETER = {"add", "cat", "stack", "embedding"}
_WAVES = {"sin", "cos"}
_VIEWS = SAME_NUMBERS | {"expand", "repeat", "expand_as", "broadcast_to", "unsqueeze"}


def _use_of_initialized(survey: Survey, buffer: _Buffer) -> _Use | None:
    """Return the use of a buffer that ``nn.init`` has filled, as a position, a token or a table."""
    frame = _initialized_at(survey.timeline, buffer.record)
    if frame is None:
        return None
    for one in _after(survey, buffer, _VIEWS):
        if one.op in _AS_PARAMETER and _is_trained_after(survey, one):
            words = {"add": "a term of the activations", "embedding": "a table of embeddings"}.get(
                one.op, "a part of the input"
            )
            return _Use(words, one, frame)
        if one.op not in _VIEWS:
            return None
    return None


def _initialized_at(timeline: Timeline, record: NodeRecord) -> Frame | None:
    """Return the line of the program that fills a tensor by a function of ``nn.init``, as it is first seen there."""
    frames = timeline.stack(record.created.stack)
    at = own_frame(frames)
    text = program_text(timeline, at)
    name = timeline.info(record.node).name.rpartition(".")[2]
    if text is None or at is None or not name:
        return None
    here = text.at(at.line, at.column)
    owner = next((one for one in reversed(here.around) if isinstance(one, ast.ClassDef)), None) if here else None
    local = names_set(here.node) if here is not None else set()
    for one in text.statements:
        if one is not here and (owner is None or owner not in one.around):
            continue
        for call in one.parts(ast.Call):
            if _initializes(call) and (one is here or _fills(call, name, local)):
                return frame_of(at, one.first, text)
    return None


def _initializes(call: ast.Call) -> bool:
    match call.func:
        case ast.Attribute(value=ast.Attribute(attr="init") | ast.Name(id="init"), attr=attr):
            return attr in _OF_INIT
        case ast.Attribute(attr=attr) | ast.Name(id=attr):
            return attr in _INITIALIZERS
    return False


def _fills(call: ast.Call, name: str, local: set[str]) -> bool:
    """Return whether a function of ``nn.init`` gets an attribute, or one of some local variables."""
    match call.args:
        case [ast.Attribute(attr=attr), *_]:
            return attr == name
        case [ast.Name(id=variable), *_]:
            return variable in local
    return False


def _is_trained_after(survey: Survey, record: NodeRecord) -> bool:
    """Return whether an operation, or one soon after it, is tracked, and the next is no wave of random features."""
    waiting, seen = [record], set[int]()
    while waiting and len(seen) < _MOST:
        one = waiting.pop(0)
        if one.op in _WAVES and len(seen) < 4:
            return False
        if one.created.requires_grad:
            return not any(
                survey.nodes[user].op in _WAVES
                for user in survey.timeline.nodes.users(one.node)
                if user in survey.nodes
            )
        if one.created.untracked not in ("", "inputs"):
            return False
        seen.add(one.node)
        users = (survey.nodes[user] for user in survey.timeline.nodes.users(one.node) if user in survey.nodes)
        waiting += [user for user in users if user.node not in seen]
    return False


def _finding(timeline: Timeline, buffer: _Buffer, used: _Use) -> Finding:
    record, count = buffer.record, len(buffer.users)
    text = titled("{} is a buffer: it keeps the random numbers that it began with", label(timeline, record.node))
    use = f"it is {used.words} in {label_at(timeline, used.by.node)}, and nothing has written to it"
    parts = [Finding("used", f"{use} in {count} uses", used.by.seq, used.by.node)]
    if used.initialized is not None:
        place = file_line(used.initialized.path, used.initialized.line)
        parts.append(
            Finding("beside", f"nn.init has filled it at {place}, as it fills weights", record.seq, at=used.initialized)
        )
    name = timeline.info(record.node).name.rpartition(".")[2]
    registered = _registration(timeline, record, name)
    at, edit = innermost(timeline.info(record.node)), None
    if registered is not None:
        at, edit = registered.at, registered.edit
    fix = f"self.{shown(name)} = nn.Parameter(...), if it is to be learned"
    numbers = (Number("uses", count),)
    return Finding(
        "unlearned-buffer", text, used.by.seq, record.node, tuple(parts), fix, at, numbers, suspected=True, edit=edit
    )


# What the program's source code shows


@dataclass(frozen=True, slots=True)
class _Registration:
    """The line that registers a buffer, and the edit that makes a parameter of it."""

    at: Frame
    edit: Edit | None


def _registration(timeline: Timeline, record: NodeRecord, name: str) -> _Registration | None:
    """Return the only line of the program that registers a buffer of a name."""
    like = own_frame(timeline.stack(record.created.stack))
    text = program_text(timeline, like)
    if text is None or like is None:
        return None
    found = [(one, call) for one in text.statements for call in one.parts(ast.Call) if _registers(call, name)]
    if len(found) != 1:
        return None
    one, call = found[0]
    return _Registration(frame_of(like, one.first, text), _as_parameter(text, one, call, name))


def _registers(call: ast.Call, name: str) -> bool:
    match call:
        case ast.Call(args=[ast.Constant(value=value), *_]) if called_name(call) == "register_buffer":
            return value == name
    return False


def _as_parameter(text: ProgramText, one: Statement, call: ast.Call, name: str) -> Edit | None:
    """Replace ``self.register_buffer("mu", x)`` with ``self.mu = nn.Parameter(x)``, if the program has that name."""
    match one.node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner), args=[_, value], keywords=[])) if (
            one.node.value is call and name.isidentifier()
        ):
            names, known = imported_names(text), ("nn.Parameter", "torch.nn.Parameter")
            parameter = next((each for each in known if each.partition(".")[0] in names), "")
            new = f"{text.segment(owner)}.{name} = {parameter}({text.segment(value)})"
            return node_replaced(text, one.node, new) if parameter else None
    return None
