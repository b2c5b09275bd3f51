"""One parameter that several modules use, and weights that begin as one parameter and are trained apart."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import takewhile

from msgspec.structs import replace

from gviz.explain.display_names import label, titled
from gviz.explain.finding import Finding
from gviz.explain.parameter_initialization import InitialWrite, initial_write, names_parameter
from gviz.explain.parameter_updates import numbers_without_shape
from gviz.explain.program_text import (
    ProgramText,
    assigned_parts,
    binds_name,
    frame_of_part,
    line_text,
    names_set,
    program_text,
)
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Change, Edit, rewritten
from gviz.explain.source_frames import innermost
from gviz.source.call_stack import Frame
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.number_text import times_text
from gviz.values.plain_text import shown
from gviz.values.value import Value


def shared(survey: Survey) -> Iterator[Finding | None]:
    """Yield parameters that two modules of one kind use in one call of a model.

    They may be tied on purpose, or because a reference was copied. A module that the program also calls directly, not
    through the model, has another path there. A module that a list contains several times, as in ``[layer] * 3``, is
    found by the paths of its parameters.
    """
    timeline = survey.timeline
    repeated: defaultdict[tuple[str, ...], list[NodeRecord]] = defaultdict(list)
    for record in survey.nodes.values():
        if record.created.kind != "parameter":
            continue
        yield None
        info = timeline.info(record.node)
        if names := _sharing(survey, record.node):
            text = titled(f"{{}} is one parameter in {len(names)} modules", label(timeline, record.node))
            part = Finding("modules", f"they share it: {_listed(names)}", record.seq, record.node)
            yield Finding("shared", text, record.seq, record.node, (part,), _ANEW, innermost(info), suspected=True)
        elif names := _places((info.name, *info.also)):
            repeated[tuple(names)].append(record)
    for places, parameters in repeated.items():
        yield _repeated_finding(survey, places, parameters)


_ANEW = "if they should differ, create each module separately, or use copy.deepcopy(layer)"


def _repeated_finding(survey: Survey, names: Sequence[str], parameters: Sequence[NodeRecord]) -> Finding:
    """Return the finding about a module that a list contains several times, at the line that created the module."""
    timeline, first = survey.timeline, parameters[0]
    which = "{} belongs" if len(parameters) == 1 else f"{{}} and {len(parameters) - 1} more belong"
    where = f"its places: {_listed(names)}"
    part = Finding("modules", where, first.seq, first.node)
    kind = next((scope.kind for scope in survey.scopes.values() if f".{scope.name}".endswith(f".{names[0]}")), "")
    frames = _common_frames([timeline.info(record.node).frames for record in parameters])
    inside = [place for place, frame in enumerate(frames) if kind and frame.function == f"{kind}.__init__"]
    at = next(iter(frames[max(inside, default=-1) + 1 :]), innermost(timeline.info(first.node)))
    text = titled(f"{which} to one module that a list contains {times_text(len(names))}", label(timeline, first.node))
    attribute = next((word for word in reversed(names[0].split(".")) if not word.isdecimal()), "")
    repeated = _repeated_list(timeline, at, attribute)
    edit = _made_separately(timeline, repeated) if repeated is not None else None
    return Finding("shared", text, first.seq, first.node, (part,), _ANEW, repeated or at, suspected=True, edit=edit)


def _common_frames(stacks: Sequence[tuple[Frame, ...]]) -> list[Frame]:
    """Return the outermost frames that all call stacks share, the innermost of them first."""
    common = takewhile(lambda frames: len({*frames}) == 1, zip(*map(reversed, stacks), strict=False))
    return [frames[0] for frames in common][::-1]


def _sharing(survey: Survey, parameter: int) -> list[str]:
    """Return the modules of one kind that use a parameter in one call of a model; empty if there is only one."""
    users = [
        survey.nodes[node] for node in survey.timeline.nodes.users_by_node.get(parameter, ()) if node in survey.nodes
    ]
    places: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
    for user in users:
        scope = survey.scopes.get(user.created.scope)
        if scope is not None:
            places[scope.kind, survey.outermost(scope.scope)].add(scope.name)
    return next((sorted(names) for names in places.values() if len(names) > 1), [])


def _places(paths: Sequence[str]) -> list[str]:
    """Return the modules of a list that have a parameter with these paths, if the paths differ in only one index."""
    first, *others = (path.split(".") for path in paths)
    for at, part in enumerate(first):
        if part.isdecimal():
            same = [other for other in others if [*other[:at], part, *other[at + 1 :]] == first]
            indices = [other[at] for other in same if other[at].isdecimal()]
            if indices:
                return [".".join([*first[:at], index]) for index in (part, *indices)]
    return []


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(shown, names[:4]))


# Two parameters that begin as one: an embedding and the layer over its words, no longer tied

_FEWEST = 8
"""Two parameters with at least this number of equal elements are not equal by accident."""


def untied(survey: Survey) -> Iterator[Finding | None]:
    """Yield weights that begin as a copy of an embedding's weight, but are trained separately.

    They were tied once: ``load_state_dict(assign=True)``, ``deepcopy`` of one of two modules and ``.to()`` of a copy
    break the tie.
    """
    timeline = survey.timeline
    added = {event.node for _, event in survey.accumulated}
    words = {
        next(survey.sources(record)).node for record in survey.ops("embedding") if record.created.inputs[0][0] in added
    }
    starts = {node: _value_at_start(survey, node) for node in words}
    for record in map(survey.nodes.get, added & survey.optimized if words else ()):
        yield None
        if record is None or record.created.kind != "parameter" or record.node in words:
            continue
        start = _value_at_start(survey, record.node)
        if not _is_varied(start):
            continue
        numbers = numbers_without_shape(start)
        twin = next((node for node in words if numbers_without_shape(starts[node]) == numbers), 0)
        same = twin and survey.nodes[twin].shape == record.shape and twin in survey.optimized
        if not same:
            continue
        names = label(timeline, record.node), label(timeline, twin)
        text = titled("{} begins as a copy of {}, but is trained separately", *names)
        size = f"all of its {record.value.size if record.value is not None else 0:,} elements are equal at the start"
        part = Finding("first", size, record.seq, record.node)
        fix = "tie them again after the copy: output.weight = embedding.weight, before you create the optimizer"
        places = [innermost(timeline.info(node)) for node in (record.node, twin)]
        at = max((one for one in places if one is not None), key=lambda one: one.line, default=None)  # the copy
        suspected = False
        if (write := _copying_write(timeline, record.node, twin)) is not None:
            at, suspected = write.at, write.how == "copy_" and not _is_for_a_tie(timeline, write.at)
        yield Finding("untied", text, record.seq, record.node, (part,), fix, at, suspected=suspected)


def _copying_write(timeline: Timeline, node: int, twin: int) -> InitialWrite | None:
    """Return the line that copies one weight into the other: ``out.weight.data.copy_(emb.weight)``.

    ``out.weight = emb.weight`` is no copy, but the tie that something has broken since.
    """
    infos = timeline.info(node), timeline.info(twin)
    for written, read in (infos, infos[::-1]):

        def copies(write: InitialWrite, other: NodeInfo = read) -> bool:
            is_tie = write.how == "=" and all(isinstance(value, ast.Attribute | ast.Name) for value in write.values)
            is_copy = not is_tie and write.how in ("copy_", "=", "set_", "load_state_dict")
            return is_copy and any(names_parameter(part, other) for value in write.values for part in ast.walk(value))

        if (found := initial_write(timeline, written, copies)) is not None:
            return found
    return None


def _is_for_a_tie(timeline: Timeline, at: Frame) -> bool:
    """Return whether the program calls a line, or the function around it, a tie of weights: then no start is meant."""
    words = f"{at.function} {line_text(timeline, at)} {line_text(timeline, replace(at, line=at.line - 1))}"
    return _TIE.search(words) is not None


_TIE = re.compile(r"(?<![a-z])(tie[sd]?|tying|shared?|sharing)(?![a-z])", re.IGNORECASE)


def _value_at_start(survey: Survey, node: int) -> Value | None:
    """Return the numbers of a parameter when it is first used in a graph: before that, they may be copied into it."""
    users = (survey.nodes[user] for user in survey.timeline.nodes.users(node) if user in survey.nodes)
    first = next((user for user in users if user.created.requires_grad), None)
    return survey.timeline.memory_value(node, 0, first.seq - 1) if first is not None else survey.nodes[node].value


def _is_varied(value: Value | None) -> bool:
    """Return whether a value has enough different elements that another one is not equal to it by accident."""
    stats = value.statistics() if value is not None else None
    return value is not None and value.size >= _FEWEST and stats is not None and stats.min < stats.max


# What the program's source code shows


def _made_separately(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Replace ``[Layer(4)] * 3``, which is one layer three times, with ``[Layer(4) for _ in range(3)]``."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            match part:
                case ast.BinOp(op=ast.Mult(), left=ast.List(elts=[ast.Call() as one]), right=times):
                    return f"[{text.segment(one)} for _ in range({text.segment(times)})]"
                case ast.BinOp(op=ast.Mult(), left=times, right=ast.List(elts=[ast.Call() as one])):
                    return f"[{text.segment(one)} for _ in range({text.segment(times)})]"
            return None

        return known

    return rewritten(timeline, at, change)


# What the program's source code shows


def _repeated_list(timeline: Timeline, at: Frame | None, name: str) -> Frame | None:
    """Return the only ``[module] * n`` of the program in an assignment to an attribute or a variable of this name.

    ``[module for _ in range(n)]`` is the same. If a repeated list is inside another, it is the outer one.
    """
    text = program_text(timeline, at)
    if text is None or at is None:
        return None
    lists: list[ast.expr] = []
    for one in text.statements:
        attributes = {target.attr for target in assigned_parts(one.node) if isinstance(target, ast.Attribute)}
        if name in attributes | names_set(one.node):
            lists += [part for part in one.parts(ast.expr) if _repeats(part)][:1]
    return frame_of_part(text, lists[0], at.function) if len(lists) == 1 else None


def _repeats(part: ast.expr) -> bool:
    match part:
        case ast.BinOp(op=ast.Mult(), left=left, right=right):
            return any(isinstance(side, ast.List | ast.Tuple) for side in (left, right))
        case (
            ast.ListComp(elt=ast.Name(id=name), generators=parts)
            | ast.GeneratorExp(elt=ast.Name(id=name), generators=parts)
        ):
            return not any(binds_name(each.target, name) for each in parts)
    return False
