"""A copy of an object that holds a tensor with its graph: the line that stored the tensor there."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.program_errors import Failure
from gviz.explain.program_text import (
    ProgramText,
    Store,
    called_lines,
    called_name,
    frame_of,
    function_of,
    line_text,
    method_class,
    place_of_store,
    places_read,
    positional_parameters,
    statement_at,
    stores_of,
)
from gviz.explain.source_edit import Change, Edit, nodes_replaced, rewritten
from gviz.explain.source_frames import at_text, own_frame, own_frames
from gviz.source.call_stack import Frame
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline

_DEEPCOPY = r"Only Tensors created explicitly by the user"
COPIED = rf"{_DEEPCOPY}|Cowardly refusing to serialize non-leaf tensor"
_NORMS = ("weight_norm", "spectral_norm")
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class _Stored:
    """A result with a graph that an attribute or a container holds; node None if only the text of a hook shows it.

    `is_used` says that another function uses it, as a part of the loss.
    """

    info: NodeInfo | None
    store: Store
    is_used: bool


def of_copied_graph(failure: Failure) -> Finding:
    """Return the finding about a copy, or a transfer, of what holds a tensor with its graph."""
    timeline, at = failure.timeline, own_frame(failure.frames)
    verb = "copied" if failure.says(_DEEPCOPY) else "sent to a process"
    copied = _copied_object(timeline, at)
    alive = [info for info in failure.earlier_nodes() if _has_graph(info, failure)]
    itself = next((info for info in alive if copied and info.means(copied)), None)
    if itself is not None:
        text = titled(f"{{}} has a graph, so it cannot be {verb}", label(timeline, itself.node))
        part = Finding("held", f"made by {label_at(timeline, itself.node)}", itself.born, itself.node)
        fix = f"use {copied}.detach().clone(): a copy has no part in the graph"
        edit = _detached_copy(timeline, at, copied)
        return Finding("failed", text, failure.seq, itself.node, (part,), fix, at, edit=edit)
    stored = list(_stored_results(failure, at, alive, copied)) or list(_stored_by_hooks(timeline))
    if not stored:
        return _of_old_norm(failure, at, verb)
    first, *others = stored
    info, place = first.info, first.store.place
    text = titled(f"{{}} keeps a graph, so {{}} cannot be {verb}", place, copied or "it")
    held = label_at(timeline, info.node) if info is not None else "what the hook gets"
    part = Finding("held", f"{place} holds {held}, with its graph", failure.seq, info.node if info is not None else 0)
    more = [_so_does(failure, one.store) for one in others[:_MOST_NAMED]]
    name = info.name if info is not None else ""
    fix = first.store.how or (f"store {name}.detach()" if name.isidentifier() else "detach() what is stored")
    edit = _stored_detached(timeline, stored)
    if info is None:
        fix, edit = f"{fix}; or set {place} to None before the copy, if a loss needs its graph", None
    elif any(one.is_used for one in stored):
        fix, edit = f"set {place} to None before the copy: the loss needs its graph until then", None
    node = info.node if info is not None else 0
    return Finding("failed", text, failure.seq, node, (part, *more), fix, first.store.at, edit=edit)


def _so_does(failure: Failure, store: Store) -> Finding:
    return Finding("more", f"so does {store.place}{at_text((store.at,))}", failure.seq, at=store.at)


def _has_graph(info: NodeInfo, failure: Failure) -> bool:
    """Return whether a node is a tracked result that the program still holds."""
    is_tracked = info.created.kind == "op" and info.created.requires_grad
    return is_tracked and info.node not in failure.timeline.nodes.freed(failure.seq)


def _stored_results(failure: Failure, at: Frame | None, alive: Sequence[NodeInfo], copied: str) -> Iterator[_Stored]:
    """Yield the results that a line stored in an attribute or a container, in order of the lines; each line once.

    An attribute next to the copied one, as ``self.loss`` next to ``self.model``, is no part of it.
    """
    timeline = failure.timeline
    found: dict[tuple[str, int], _Stored] = {}
    here = _class_at(timeline, at)
    running = {(frame.path, frame.line) for frame in failure.frames if at is None or frame.line != at.line}
    every = (
        (info, store) for info in alive for store in stores_of(timeline, _finished(info.frames, running), info.names)
    )
    for info, store in every:
        if (store.at.path, store.at.line) in found:
            continue
        is_next_to_it = bool(here) and "." in copied and _class_at(timeline, store.at) == here
        is_variable = "." not in store.place and bool(copied)
        if (is_next_to_it or is_variable) and not _is_part(store.place, copied):
            continue
        found[store.at.path, store.at.line] = _Stored(info, store, _is_used_from(timeline, info, store))
    yield from sorted(found.values(), key=lambda one: (one.store.at.path, one.store.at.line))


def _finished(frames: Sequence[Frame], running: Container[tuple[str, int]]) -> list[Frame]:
    """Return the frames of the program whose statements have ended: ``self.result = train(net)`` has stored nothing yet
    while `train` runs.
    """
    return [frame for frame in own_frames(frames) if (frame.path, frame.line) not in running]


def _is_used_from(timeline: Timeline, info: NodeInfo, store: Store) -> bool:
    """Return whether a stored result is used from its place: in another function, or in the one that stores it."""
    users = [timeline.info(user) for user in timeline.nodes.users(info.node)]
    source = statement_at(timeline, store.at)
    function = function_of(source[1]) if source is not None else None
    if source is None or function is None:
        return bool(users)
    inside = (store.at.path, store.at.function)
    is_read = any(store.place in places_read(one.node) for one in source[0].by_function[function])
    return is_read or any(inside not in {(frame.path, frame.function) for frame in user.frames} for user in users)


def _is_part(place: str, whole: str) -> bool:
    """Return whether a place is a part of an object: ``net.h`` and ``outs[0]`` of ``net`` and ``outs``."""
    return place == whole or place.startswith((f"{whole}.", f"{whole}["))


def _class_at(timeline: Timeline, at: Frame | None) -> str:
    source = statement_at(timeline, at)
    return method_class(source[1]) if source is not None else ""


def _stored_by_hooks(timeline: Timeline) -> Iterator[_Stored]:
    """Yield what forward hooks of the program store of what they get: ``module.activation = output``."""
    for path in timeline.sources:
        for at in called_lines(timeline, Frame(path, "", 1, 1, -1, -1), *_HOOKS):
            source = statement_at(timeline, at)
            calls = source[1].parts(ast.Call) if source is not None else ()
            given = {ast.unparse(one).split(".")[-1] for call in calls for one in call.args}
            for one in source[0].statements if source is not None else ():
                function = function_of(one)
                if not isinstance(function, ast.FunctionDef) or function.name not in given or source is None:
                    continue
                place = place_of_store(one, positional_parameters(function))
                if place:
                    store = Store(frame_of(at, one.first, source[0]), place)
                    yield _Stored(None, store, is_used=False)


_HOOKS = ("register_forward_hook", "register_module_forward_hook")


def _copied_object(timeline: Timeline, at: Frame | None) -> str:
    """Return what a line copies: ``net`` for ``copy.deepcopy(net)``; empty if that is no name."""
    source = statement_at(timeline, at)
    for call in source[1].parts(ast.Call) if source is not None else ():
        if called_name(call) == "deepcopy" and call.args and isinstance(call.args[0], ast.Name | ast.Attribute):
            return ast.unparse(call.args[0])
    return ""


def _of_old_norm(failure: Failure, at: Frame | None, verb: str) -> Finding:
    """Return the finding if no line stores a graph: a parametrization of an older kind may keep one in a layer."""
    timeline = failure.timeline
    text = f"a tensor in it has a graph, so it cannot be {verb}"
    starts = (Frame(path, "", 1, 1, -1, -1) for path in timeline.sources)
    calls = (line for start in starts for line in called_lines(timeline, start, *_NORMS))
    older = next((line for line in calls if "parametrizations" not in line_text(timeline, line)), None)
    parts = (Finding("message", f"{failure.ended} with {failure.quoted}", failure.seq),)
    fix = "store X.detach() where a tensor X is kept; of a model, state_dict() can always be copied"
    if older is not None:
        fix = "use torch.nn.utils.parametrizations for this norm: the older one keeps a computed weight in the layer"
    return Finding("failed", text, failure.seq, 0, parts, fix, older or at)


def _detached_copy(timeline: Timeline, at: Frame | None, name: str) -> Edit | None:
    """Replace ``copy.deepcopy(z)`` with ``z.detach().clone()``."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            match part:
                case ast.Call(args=[argument]) if called_name(part) == "deepcopy" and text.segment(argument) == name:
                    return f"{name}.detach().clone()"
            return None

        return known

    return rewritten(timeline, at, change)


def _stored_detached(timeline: Timeline, stored: Sequence[_Stored]) -> Edit | None:
    """Replace ``self.h = h`` with ``self.h = h.detach()`` at all lines of one file, if all are such."""
    changes = list[tuple[ast.expr, str]]()
    texts = list[ProgramText]()
    for one in stored:
        source = statement_at(timeline, one.store.at)
        match source[1].node if source is not None else None:
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript()], value=ast.Name() as value) if source:
                changes.append((value, f"{value.id}.detach()"))
                texts.append(source[0])
            case _:
                return None
    return nodes_replaced(texts[0], changes) if all(text is texts[0] for text in texts) else None
