"""State that is copied onto itself: saved without a copy, or read from the model that it is loaded into.

Idea. ``self.target = self.policy`` makes a second name, not a second model. What copies one to the other, or averages
both, reads and writes the same memory. Copies and averages are known by their operations: each operand is a multiple of
the memory that is written to. ``load_state_dict(copy.deepcopy(net.state_dict()))`` is no operation, but each of its
writes leaves the numbers that the parameter had, though steps have changed them since the last one.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, takewhile

from gviz.events import (
    Event,
    NodeCreated,
    NodeFreed,
    StorageWritten,
)
from gviz.explain.display_names import label, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.parameter_updates import numbers_without_shape, written_tensor
from gviz.explain.program_text import (
    ProgramText,
    Statement,
    called_name,
    frame_of,
    function_of,
    method_class,
    parameters_of,
    passed_arguments,
    program_text,
    receiver,
    statement_at,
)
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Change, Edit, imported_modules, node_replaced, rewritten
from gviz.explain.source_frames import innermost
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import file_line, shown

# Copies onto their own memory: of a state that was saved by reference and restored later, or of a model onto itself


@dataclass(frozen=True, slots=True)
class _CopyOntoItself:
    """A copy whose source and destination are the same memory, and how often other operations wrote to it since.

    Writes to the source itself, ``state[key].mul_(0.9)``, do not count: the program knows what they change.
    """

    record: NodeRecord
    source: NodeRecord
    writes: int


def restored_onto_itself(survey: Survey) -> Iterator[Finding | None]:
    """Yield saved states that share the memory of what they are copied back to, and so have changed with it.

    ``best = net.state_dict()`` has no copies. If nothing was written to the state since, restoring it changes
    nothing either, but nothing is lost: that is not reported.
    """
    timeline, saved = survey.timeline, dict[int, list[_CopyOntoItself]]()
    for record, one in _copies(survey):
        yield None
        if one is not None and one.writes and len(set(record.created.inputs)) > 1:
            saved.setdefault(one.source.created.stack, []).append(one)
    for copies in saved.values():
        record, source, writes = copies[0].record, copies[0].source, copies[0].writes
        at, owner = innermost(timeline.info(source.node)), record.created.inputs[0][0]
        text = titled("the state saved here is the memory of {} itself, not a copy", label(timeline, owner))
        times = f"{writes} later write{'s' * (writes != 1)} changed it, too"
        part = Finding("write", f"{times}; {_place_of(survey, record)} copies it onto itself", record.seq, owner,
                       at=survey.at(record))  # fmt: skip
        count = len({one.record.created.inputs[0][0] for one in copies})
        others = (Finding("more", f"so it is for {count} tensors of this state", record.seq),) * (count > 1)
        model = receiver(timeline, at, "state_dict")
        fix = f"copy.deepcopy({model}.state_dict())" if model else "copy.deepcopy() of the state"
        fix = f"{fix}, or a clone() of each tensor"
        edit = _copied_state(timeline, at)
        yield Finding("saved-by-reference", text, record.seq, owner, (part, *others), fix, at, edit=edit)


def copied_onto_itself(survey: Survey) -> Iterator[Finding | None]:
    """Yield calls that only copy tensors onto themselves, in several iterations: a target network never follows.

    A call that also copies something else, as a state with a few new entries, does not count. Neither does a single
    iteration: a program may load the state that it has just saved.
    """
    timeline, calls = survey.timeline, defaultdict[int, list[_CopyOntoItself | None]](list)
    for record, one in _copies_and_averages(survey):
        yield None
        calls[record.created.stack].append(one if one is not None and not one.writes else None)
    is_found = False
    for stack, copies in calls.items():
        vain = [one.record for one in copies if one is not None]
        seqs: defaultdict[int, list[int]] = defaultdict(list)
        for record in vain:
            seqs[timeline.iteration_at(record.seq).index].append(record.seq)
        if not stack or len(vain) < len(copies) or len(seqs) < _FEWEST_VAIN:
            continue
        if not any(_is_written_otherwise(survey, each[0], each[-1]) for each in seqs.values()):
            finding = _in_vain_finding(survey, vain, len(seqs))
            is_found |= finding is not None
            yield finding
    if not is_found:
        yield from _loaded_in_vain(survey)


def _is_written_otherwise(survey: Survey, first: int, last: int) -> bool:
    """Return whether a call that copies from one event to another also writes numbers of an unknown origin.

    Copies from tensors that are no part of the graph are recorded as writes of the parameter itself.
    """
    events: list[Event] = [survey.timeline.event(seq) for seq in range(first, last)]
    for seqs in (range(first - 1, 0, -1), range(last + 1, survey.end + 1)):
        following = (survey.timeline.event(seq) for seq in seqs)
        events += takewhile(lambda event: isinstance(event, NodeCreated | NodeFreed | StorageWritten), following)
    writers = (survey.nodes.get(event.node) for event in events if isinstance(event, StorageWritten))
    return any(writer is not None and writer.created.kind != "op" for writer in writers)


_FEWEST_VAIN = 2
"""The fewest iterations in which a call copies tensors onto themselves."""


def _copies(survey: Survey) -> Iterator[tuple[NodeRecord, _CopyOntoItself | None]]:
    """Yield each copy of a tensor to another, with what is known of it if both are the same memory."""
    # By storage and line: versions that copies made there. Parameters that share memory are restored several times.
    copied: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
    for record in survey.ops("copy"):
        output = record.created.outputs[0]
        versions = copied[output.storage, _place_of(survey, record)]
        versions.append(output.version)
        pair = [survey.nodes.get(node) for node, _ in record.created.inputs]
        if len(pair) != 2 or pair[0] is None or pair[1] is None:
            yield record, None
            continue
        target, source = pair[0], pair[1]
        if _memory_of(target) is None or _memory_of(target) != _memory_of(source):
            yield record, None
            continue
        made = dict(source.created.attrs).get("made_at_version", source.created.outputs[0].version)
        if source is target:
            made = output.version - 1
        if isinstance(made, int):
            writes = output.version - 1 - made - sum(made < one < output.version for one in versions)
            is_known = writes > 0 and _is_written_through(survey, source, record)
            yield record, None if is_known else _CopyOntoItself(record, source, max(writes, 0))


def _is_written_through(survey: Survey, source: NodeRecord, record: NodeRecord) -> bool:
    """Return whether an operation before a copy wrote to the memory of its source through the source itself."""
    users = (survey.nodes[user] for user in survey.timeline.nodes.users(source.node) if user in survey.nodes)
    memory = source.created.outputs[0].storage
    return any(
        user.created.inputs[0][0] == source.node
        and user.created.outputs[0].storage == memory
        and user.created.outputs[0].version > source.created.outputs[0].version
        for user in users
        if user.seq < record.seq and user.created.outputs
    )


# Averages of a tensor with itself


def _copies_and_averages(survey: Survey) -> Iterator[tuple[NodeRecord, _CopyOntoItself | None]]:
    """Yield each copy of a tensor to another, and each write in place that may average one with another."""
    written: defaultdict[int, list[int]] = defaultdict(list)
    for seq, event in survey.select(StorageWritten):
        written[event.storage].append(seq)
    for record, one in _copies(survey):
        yield record, one or _averaged_with_itself(survey, record, None, written)
    scaled: dict[tuple[int, int], NodeRecord] = {}  # by storage and version
    for record in survey.ops("lerp", "add", "mul"):
        if record.created.requires_grad or not survey.timeline.op(record.created.op).name.endswith("_"):
            continue
        output = record.created.outputs[0]
        if record.op == "mul":
            scaled[output.storage, output.version] = record
        else:
            before = scaled.get((output.storage, output.version - 1))
            yield record, _averaged_with_itself(survey, record, before, written)


def _averaged_with_itself(
    survey: Survey, record: NodeRecord, scaled: NodeRecord | None, written: Mapping[int, list[int]]
) -> _CopyOntoItself | None:
    """Return a write of an average of which each part is the memory that it writes to; None for any other write.

    It is ``p.copy_(0.9 * p + 0.1 * q)``, ``p.lerp_(q, 0.1)`` or ``p.mul_(0.9).add_(0.1 * q)``, where q is p. `scaled`
    is the product that was written to the same memory just before.
    """
    sources = list(survey.sources(record))
    memory = _memory_of(sources[0]) if len(sources) > 1 else None
    if memory is None:
        return None
    writes = written[memory[0]]
    before = bisect_left(writes, record.seq)
    part = _multiple(survey, sources[1], memory, writes[before - 1] if before else 0, {})
    if part is None or (record.op == "copy" and _memory_of(sources[1]) == memory):
        return None
    if record.op == "add":
        alpha = dict(record.created.attrs).get("alpha", 1)
        factors = (_plain_number(one) for one in survey.sources(scaled)) if scaled is not None else iter(())
        kept = next((factor for factor in factors if factor is not None), None)
        if kept is None or not isinstance(alpha, int | float) or not _is_of_one_line(survey, record, scaled):
            return None
        part = kept + alpha * part
    return _CopyOntoItself(record, sources[1], 0) if abs(part - 1) < _NEAR else None


_NEAR = 1e-6


def _is_of_one_line(survey: Survey, record: NodeRecord, other: NodeRecord | None) -> bool:
    return other is not None and _place_of(survey, record) == _place_of(survey, other)


def _plain_number(record: NodeRecord) -> float | None:
    return record.number if record.created.kind == "constant" and not record.shape else None


def _multiple(
    survey: Survey, record: NodeRecord, memory: _Memory, since: int, known: dict[int, float | None]
) -> float | None:
    """Return the factor of a memory in a tensor that is computed only from it and numbers; None for any other.

    It must have been read after `since`, the last event that wrote to the memory. `known` has the factors of the nodes
    that were visited.
    """
    if record.node not in known:
        known[record.node] = None  # until it is known, and for the rest if there are too many
        if len(known) < _MOST_TERMS:
            known[record.node] = _factor(survey, record, memory, since, known)
    return known[record.node]


def _factor(
    survey: Survey, record: NodeRecord, memory: _Memory, since: int, known: dict[int, float | None]
) -> float | None:
    if _memory_of(record) == memory:
        return 1.0
    sources = list(survey.sources(record))
    is_made_here = record.created.kind == "op" and record.seq > since and not record.created.requires_grad
    if not is_made_here or not 1 <= len(sources) <= _MOST_OPERANDS:
        return None
    if record.op in _COPIES:
        return _multiple(survey, sources[0], memory, since, known)
    factors = [_multiple(survey, one, memory, since, known) for one in sources]
    numbers = [_plain_number(one) for one in sources]
    other = dict(record.created.attrs).get("other")
    match record.op, factors, numbers:
        case "mul", [None, float() as factor], [float() as times, _]:
            return factor * times
        case "mul" | "div", [float() as factor, *_], [None, float() as times] if times:
            return factor * times if record.op == "mul" else factor / times
        case "mul", [float() as factor], _ if isinstance(other, int | float):
            return factor * other
        case "add" | "sub", [float() as one, float() as two], _ if dict(record.created.attrs).get("alpha", 1) == 1:
            return one + two if record.op == "add" else one - two
    return None


_MOST_OPERANDS, _MOST_TERMS = 2, 24
_COPIES = ("data", "detach", "clone", "to")


# Loads that leave every number as it was


def _loaded_in_vain(survey: Survey) -> Iterator[Finding | None]:
    """Yield the loads of a state whose every write leaves the numbers that a trained parameter had already.

    A load is no recorded operation, so it has no line: it must be the only call that loads a ``state_dict()``.
    """
    timeline, unchanged = survey.timeline, defaultdict[int, list[int]](list)
    changed, known = set[int](), dict[int, tuple[object, ...] | None]()
    for seq, event in survey.select(StorageWritten):
        owner = written_tensor(timeline, event)
        if owner not in survey.optimized:
            continue
        numbers = numbers_without_shape(event.value)
        if timeline.contexts.steps_at(seq):
            known[owner] = numbers
            continue
        if owner in changed or known.get(owner) is None:
            continue
        yield None
        if known[owner] == numbers:
            unchanged[owner].append(seq)
            known[owner] = None  # until the next step
        else:
            changed.add(owner)
    owners = [owner for owner in unchanged if owner not in changed]
    iterations = {timeline.iteration_at(seq).index for owner in owners for seq in unchanged[owner]}
    if len(iterations) < _FEWEST_VAIN or len(owners) < len(unchanged):
        return
    load = _only_load(survey)
    alias = None
    if load is not None:
        names = load.target, load.source
        alias = _second_name(timeline, load.at, *names) or _one_origin(timeline, load.at, *names)
    if alias is not None:
        yield _load_finding(survey, alias, owners, min(unchanged[owners[0]]), len(iterations))


@dataclass(frozen=True, slots=True)
class _Load:
    """``target.load_state_dict(copy.deepcopy(net.state_dict()))``: the line, and the names of both models."""

    at: Frame
    target: str
    source: str


def _only_load(survey: Survey) -> _Load | None:
    """Return the only call of the program that loads the state of another model; None if there are more."""
    found = []
    for at in survey.loss_frames():
        text = program_text(survey.timeline, at)
        calls = [(one, call) for one in text.statements for call in one.parts(ast.Call)] if text is not None else []
        for one, call in calls:
            match call:
                case ast.Call(func=ast.Attribute(value=target, attr="load_state_dict"), args=[state, *_]):
                    parts = (part for part in ast.walk(state) if isinstance(part, ast.Attribute))
                    source = next((part.value for part in parts if part.attr == "state_dict"), None)
                    if text is not None and source is not None:
                        line = frame_of(at, one.first, text)
                        found.append(_Load(line, text.segment(target), text.segment(source)))
    return found[0] if len({*found}) == 1 else None


def _load_finding(survey: Survey, alias: _Alias, owners: Sequence[int], first: int, iterations: int) -> Finding:
    more = f" and {len(owners) - 1} more are loaded onto themselves" if len(owners) > 1 else " is loaded onto itself"
    text = titled(f"{{}}{more} in {iterations} iterations", label(survey.timeline, owners[0]))
    part = Finding("write", "each load leaves the numbers that the last step has written", first, owners[0])
    numbers = (Number("iterations", iterations),)
    fix = f"{shown(alias.target)} and {shown(alias.source)} are one model: {_COPY_ONE}"
    return Finding("copied-onto-itself", text, first, owners[0], (part,), fix, alias.at, numbers, edit=alias.edit)


# Two names of one model


@dataclass(frozen=True, slots=True)
class _Alias:
    """``target = source``: the line that gives a model a second name, and the edit that copies it."""

    at: Frame
    target: str
    source: str
    edit: Edit | None


def _alias(timeline: Timeline, at: Frame) -> _Alias | None:
    """Return the line that makes two models of a statement one: of a state and what loads it, or of two arguments."""
    target, source = receiver(timeline, at, "load_state_dict"), receiver(timeline, at, "state_dict")
    pairs = [(target, source), _paired_models(timeline, at) or ("", "")]
    if (source_at := statement_at(timeline, at)) is not None:
        text, statement = source_at
        for call in statement.parts(ast.Call):
            names = [text.segment(arg) for arg in call.args if isinstance(arg, ast.Name | ast.Attribute)]
            pairs += combinations(names[:_MOST_ARGUMENTS], 2)
    named = next((one for names in pairs if (one := _second_name(timeline, at, *names)) is not None), None)
    return named or next((one for names in pairs if (one := _one_origin(timeline, at, *names)) is not None), None)


_MOST_ARGUMENTS = 6


def _paired_models(timeline: Timeline, at: Frame) -> tuple[str, str] | None:
    """Return the models whose parameters a loop around a line pairs: ``zip(a.parameters(), b.parameters())``.

    The one that the line writes to comes first.
    """
    source = statement_at(timeline, at)
    if source is None:
        return None
    text, one = source
    loops = [other for other in text.statements if isinstance(other.node, ast.For) and other.node in one.around]
    for statement in (one, *reversed(loops)):
        for call in statement.parts(ast.Call):
            match call:
                case ast.Call(
                    func=ast.Name(id="zip"),
                    args=[
                        ast.Call(func=ast.Attribute(value=first)),
                        ast.Call(func=ast.Attribute(value=second)),
                        *_,
                    ],
                ):
                    names = text.segment(first), text.segment(second)
                    return names[::-1] if _is_written_second(statement, one) else names
    owners = [
        text.segment(call.func.value)
        for statement in (*loops, one)
        for call in statement.parts(ast.Call)
        if isinstance(call.func, ast.Attribute) and call.func.attr in _PARTS_OF_MODEL
    ]
    first_two = [*dict.fromkeys(owners)]
    return (first_two[0], first_two[1]) if len(first_two) == _MOST_OPERANDS else None


_PARTS_OF_MODEL = ("parameters", "named_parameters", "state_dict", "buffers")


def _is_written_second(loop: Statement, one: Statement) -> bool:
    """Return whether a statement writes to the second variable of a loop, ``for s, t in zip(…): t.data.copy_(s)``."""
    match loop.node, one.node:
        case ast.For(target=ast.Tuple(elts=[_, ast.Name(id=second), *_])), ast.Expr(value=value):
            while isinstance(value, ast.Call | ast.Attribute):
                value = value.func if isinstance(value, ast.Call) else value.value
            return isinstance(value, ast.Name) and value.id == second
    return False


def _second_name(timeline: Timeline, at: Frame, target: str, source: str) -> _Alias | None:
    """Return the only line that makes one of two names refer to the model of the other."""
    text = program_text(timeline, at)
    lines = []
    for one in text.statements if text is not None and target and source else ():
        match one.node:
            case ast.Assign(targets=[name], value=ast.Name() | ast.Attribute() as value) if text is not None:
                if {text.segment(name), text.segment(value)} == {target, source}:
                    lines.append((one, value))
    if len(lines) != 1 or text is None:
        return None
    one, value = lines[0]
    is_imported = "copy" in imported_modules(text)
    edit = node_replaced(text, value, f"copy.deepcopy({text.segment(value)})") if is_imported else None
    return _Alias(frame_of(at, one.first, text), target, source, edit)


# Two names of one origin
#
# ``self.student = student`` and ``self.teacher = student`` in a constructor, or ``MeanTeacher(net, net)``. From each of
# the two names, the text is followed back: from an attribute to the line that sets it, from a parameter to the
# argument of the call, from a variable to what it was set to. Where both meet, the names are of one model.


@dataclass(frozen=True, slots=True)
class _Origin:
    """A name in a function (None: the program), or the value of a statement, and the expression that leads there."""

    place: tuple[str, ast.AST | None]
    via: ast.expr | None = None
    is_assigned: bool = False


_MOST_ORIGINS = 6


def _one_origin(timeline: Timeline, at: Frame, target: str, source: str) -> _Alias | None:
    """Return the line from which two names are of one model; None if no text shows that they are."""
    here = statement_at(timeline, at)
    if here is None or not target or not source or target == source:
        return None
    text, function = here[0], function_of(here[1])
    chains = [_origins(text, function, name) for name in (target, source)]
    places = [one.place for one in chains[1]]
    met = next((nr for nr, one in enumerate(chains[0]) if one.place in places), 0)
    if not met:
        return None
    passed = chains[0][1 : met + 1]
    other = chains[1][places.index(passed[-1].place)].via
    origin = next((one for one in passed if one.is_assigned), None)
    if origin is None or (
        other is not None
        and passed[-1].via is not None
        and not passed[-1].is_assigned
        and other.lineno == passed[-1].via.lineno
    ):  # one call gets the model twice
        origin = next((one for one in reversed(passed) if one.via is not None), None)
    if origin is None or origin.via is None:
        return None
    model = origin.via.args[0] if isinstance(origin.via, ast.Call) and _is_shallow_copy(origin.via) else origin.via
    is_imported = "copy" in imported_modules(text) and isinstance(model, ast.Name | ast.Attribute)
    edit = node_replaced(text, origin.via, f"copy.deepcopy({text.segment(model)})") if is_imported else None
    return _Alias(frame_of(at, origin.via.lineno, text), target, source, edit)


def _origins(text: ProgramText, function: ast.AST | None, name: str) -> list[_Origin]:
    """Return a name and where its object comes from, as far as the text has only one answer."""
    chain = [_Origin((name, function))]
    while len(chain) < _MOST_ORIGINS and (before := _origin_before(text, *chain[-1].place)) is not None:
        chain.append(before)
    return chain


def _origin_before(text: ProgramText, name: str, function: ast.AST | None) -> _Origin | None:
    owner, _, attribute = name.partition(".")
    if attribute:
        scope = next((one for one in text.statements if one.node is function), None)
        own = [one for one in text.statements if scope is not None and method_class(one) == method_class(scope)]
        own = own if owner == "self" else []
    else:
        own = list(text.by_function.get(function, ()))
    values = [pair for one in own for pair in _values_of(one, name)]
    if len(values) == 1:
        one, value = values[0]
        model = value.args[0] if isinstance(value, ast.Call) and _is_shallow_copy(value) else value
        if isinstance(model, ast.Name | ast.Attribute):
            return _Origin((ast.unparse(model), function_of(one)), value, True)
        return _Origin((f"{value.lineno}:{value.col_offset}", one.node), value, True)
    if not values and not attribute and function is not None and name not in parameters_of(function):
        return _Origin((name, None))
    if values or not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    arguments = _arguments_of(text, function, name)
    if len({ast.unparse(argument) for _, argument in arguments}) != 1:
        return None
    call, argument = arguments[0]
    return _Origin((ast.unparse(argument), function_of(call)), argument)


def _is_shallow_copy(value: ast.expr) -> bool:
    """Return whether an expression is ``copy.copy(model)``, whose result has the parameters of the model."""
    return isinstance(value, ast.Call) and ast.unparse(value.func) == "copy.copy" and len(value.args) == 1


def _values_of(one: Statement, name: str) -> Iterator[tuple[Statement, ast.expr]]:
    """Yield what a statement sets a name to: the same value for each name of a chain, or the part of a tuple."""
    match one.node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                if ast.unparse(target) == name:
                    yield one, value
                elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                    pairs = zip(target.elts, value.elts, strict=False)
                    yield from ((one, part) for place, part in pairs if ast.unparse(place) == name)
        case ast.AnnAssign(target=target, value=ast.expr() as value) if ast.unparse(target) == name:
            yield one, value


def _arguments_of(
    text: ProgramText, function: ast.FunctionDef | ast.AsyncFunctionDef, name: str
) -> list[tuple[Statement, ast.Name | ast.Attribute]]:
    """Return the variables that the calls of a function, or of its class, pass as a parameter."""
    own = next((one for one in text.statements if one.node is function), None)
    owner = method_class(own) if own is not None else ""
    called = owner if function.name == "__init__" else function.name
    found = []
    for one in text.statements:
        for call in one.parts(ast.Call):
            if called_name(call) != called:
                continue
            argument = passed_arguments(call, function).get(name)
            if not isinstance(argument, ast.Name | ast.Attribute):
                return []
            found.append((one, argument))
    return found


# What is reported


def _in_vain_finding(survey: Survey, copies: Sequence[NodeRecord], iterations: int) -> Finding | None:
    """Return the finding about copies onto the same memory; None for averages without a second name of a model.

    Numbers that are averaged with themselves may be meant, ``w.copy_((w + w.flip(0)) / 2)``, and so may be a single
    worker whose weights are averaged.
    """
    timeline, first = survey.timeline, copies[0]
    owners = list(dict.fromkeys(_owner_of(survey, record) for record in copies))
    one, other = [*survey.sources(first)][:2]
    is_average = first.op != "copy" or _memory_of(one) != _memory_of(other)
    how = "averaged with" if is_average else "copied onto"
    more = f" and {len(owners) - 1} more are {how} themselves" if len(owners) > 1 else f" is {how} itself"
    text = titled(f"{{}}{more} in {iterations} iterations", label(timeline, owners[0]))
    what = "averages are of one memory only" if is_average else "copies changed nothing"
    part = Finding("write", f"source and destination are the same memory: {len(copies):,} {what}", first.seq, owners[0])
    frames = timeline.stack(first.created.stack)
    pair = next((twice for frame in frames if (twice := _model_twice(timeline, frame)) is not None), None)
    alias = next((named for frame in frames if (named := _alias(timeline, frame)) is not None), None)
    numbers = (Number("copies", len(copies)), Number("iterations", iterations))
    edit: Edit | None = None
    at, fix = survey.at(first), "make one of the two models a copy: copy.deepcopy(model)"
    if pair is not None:
        source, at = _other_model(survey, owners, pair.name), pair.at
        edit = pair.replaced(source) if source else None
        fix = f"copy the model that is trained, and not {pair.name} itself"
        fix = edit.new.splitlines()[pair.at.line - edit.line].strip() if edit is not None else fix
    elif alias is not None:
        at, edit = alias.at, alias.edit
        fix = f"{shown(alias.target)} and {shown(alias.source)} are one model: {_COPY_ONE}"
    elif is_average:
        return None
    return Finding("copied-onto-itself", text, first.seq, owners[0], (part,), fix, at, numbers, edit=edit)


_COPY_ONE = "make one of them a copy.deepcopy() of the other"


def _owner_of(survey: Survey, record: NodeRecord) -> int:
    """Return the tensor whose memory a copy writes to, not a view of it."""
    node = record.created.inputs[0][0]
    while (one := survey.nodes.get(node)) is not None and one.op in ("data", "detach") and one.created.inputs:
        node = one.created.inputs[0][0]
    return node


def _other_model(survey: Survey, owners: Sequence[int], name: str) -> str:
    """Return the only trained model whose parameters have the names and shapes of others, as the program calls it.

    `name` is what the program calls the model of the others: ``self.target``. Both must be attributes of one object.
    """
    timeline = survey.timeline
    paths, last = [timeline.info(node).name for node in owners], name.rpartition(".")[2]
    before = name.removesuffix(last)
    prefixes = {path[: place + len(last)] for path in paths if (place := f".{path}.".find(f".{last}.")) >= 0}
    if len(prefixes) != 1 or not all(path.startswith(f"{next(iter(prefixes))}.") for path in paths):
        return ""
    (prefix,) = prefixes
    outer = prefix.removesuffix(last)
    shapes = {(path.removeprefix(prefix), survey.nodes[node].shape) for path, node in zip(paths, owners, strict=True)}
    others: defaultdict[str, set[tuple[str, tuple[int, ...]]]] = defaultdict(set)
    for node in survey.optimized - {*owners}:
        path = timeline.info(node).name
        if path.startswith(outer):
            model = path.removeprefix(outer).partition(".")[0]
            others[model].add((path.removeprefix(outer + model), survey.nodes[node].shape))
    alike = [model for model, parameters in others.items() if parameters and parameters <= shapes]
    return f"{before}{alike[0]}" if len(alike) == 1 and alike[0].isidentifier() else ""


def _place_of(survey: Survey, record: NodeRecord) -> str:
    at = survey.at(record)
    return file_line(at.path, at.line) if at is not None else "the program"


_Memory = tuple[int, int, tuple[int, ...]]


def _memory_of(record: NodeRecord) -> _Memory | None:
    """Return the storage, the offset and the shape of a tensor."""
    output = next(iter(record.created.outputs), None)
    return (output.storage, output.offset, record.shape) if output is not None and output.storage else None


# What the program's source code shows


def _copied_state(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Replace ``net.state_dict()`` with a dictionary of copies, and ``p.detach()`` or ``p.data`` with a copy."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            match part:
                case ast.Call(func=ast.Attribute(attr="state_dict")):
                    return f"{{key: value.clone() for key, value in {text.segment(part)}.items()}}"
                case ast.Call(func=ast.Attribute(attr="detach")) | ast.Attribute(attr="data"):
                    return f"{text.segment(part)}.clone()"
            return None

        return known

    return rewritten(timeline, at, change)


@dataclass(frozen=True, slots=True)
class _ModelTwice:
    """A line that copies a model onto itself: ``net.load_state_dict(net.state_dict())``, and the model's `name`."""

    at: Frame
    name: str
    text: ProgramText
    second: ast.expr

    def replaced(self, name: str) -> Edit | None:
        """Return the edit that reads another model in the second place."""
        return node_replaced(self.text, self.second, name)


def _model_twice(timeline: Timeline, at: Frame | None) -> _ModelTwice | None:
    """Return the model that a line reads as source and as destination of a copy; None if there is none.

    The line may load a state, pair parameters in the head of a loop around a frame, or give a function one model twice.
    """
    source = statement_at(timeline, at)
    if source is None or at is None:
        return None
    text, one = source
    loops = [other for other in text.statements if isinstance(other.node, ast.For) and other.node in one.around]
    for statement in (one, *reversed(loops)):
        for call in statement.parts(ast.Call):
            pair = _same_model(text, call)
            if pair is not None:
                return _ModelTwice(frame_of(at, call.lineno, text), text.segment(pair), text, pair)
    return None


def _same_model(text: ProgramText, call: ast.Call) -> ast.expr | None:
    """Return the second place of a model in a call that gets it twice."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name() | ast.Attribute() as model, attr="load_state_dict")):
            parts = (part for argument in call.args for part in ast.walk(argument))
            methods = [part for part in parts if isinstance(part, ast.Attribute) and part.attr == "state_dict"]
            return next((one.value for one in methods if text.segment(one.value) == text.segment(model)), None)
        case ast.Call(args=[first, second, *_]) if text.segment(first) == text.segment(second):
            while isinstance(second, ast.Call) and isinstance(second.func, ast.Attribute):
                second = second.func.value
            return second if isinstance(second, ast.Name | ast.Attribute) else None
    return None
