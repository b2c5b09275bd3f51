"""A second backward: which call released the graph, which edge leads to it again, and where to detach.

Idea. Walk the path of the failed pass from its root down to the node whose saved tensors are released. If an edge of it
leads from a node made after the first pass to one made before, a result of the old graph is used in a new one: detach
it there. Without such an edge the same graph is used twice: keep it with ``retain_graph=True``.

Example. ``h = cell(x, h)`` in a loop with a backward per step: the edge from ``cell`` of step 2 to ``h`` of step 1
crosses, and ``h = h.detach()`` before the use is the fix. A tensor made once before the loop crosses, too, but must be
made again in each step instead.

With ``retain_graph=True`` the old graph is still there. If an optimizer has updated a parameter since, the pass fails
at the first rule that had saved it: `carried_over_step` explains this error by the same edge.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile

import numpy as np

from gviz.events import BackwardStarted, OptimizerStepped
from gviz.explain.backward_passes import pass_started, start_of_pass
from gviz.explain.display_names import label, label_at, symbol, titled
from gviz.explain.finding import Finding
from gviz.explain.findings.missing_gradient.no_gradient import PARAMETER_LAST, nameless_leaf
from gviz.explain.program_errors import Failure
from gviz.explain.program_text import (
    BLOCKS,
    FUNCTION_NODES,
    ProgramText,
    Statement,
    Store,
    called_name,
    frame_of,
    function_of,
    has_parameter,
    innermost_loop,
    line_text,
    names_read,
    names_set,
    parsed_program,
    places_read,
    places_set,
    statement_at,
    stores_of,
)
from gviz.explain.source_edit import (
    Edit,
    assigned_to_itself,
    before,
    moved,
    parameter_last,
    places_in,
    with_keyword,
    wrapped,
)
from gviz.explain.source_frames import at_text, innermost, own_frame, own_frames
from gviz.explain.tracking import ancestors
from gviz.source.call_stack import Frame
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Moment, Timeline
from gviz.values.plain_text import clipped, file_line

PATTERN = r"backward through the graph a second time"
_UPDATING = frozenset(("add", "sub", "mul", "div", "lerp", "copy", "addcmul", "addcdiv"))
"""Operations that programs use for updates in place outside the loss, such as a running average."""


def explain(failure: Failure) -> Finding | None:
    """Explain which call released the saved tensors, and where the new graph uses the old one."""
    if not failure.says(PATTERN):
        return None
    timeline, node = failure.timeline, failure.node
    state = timeline.at(failure.seq).state(node) if node else None
    what = label(timeline, node) if node in timeline.nodes else "this graph"
    text = titled("an earlier backward() released what {} had saved for its rule", what)
    if state is None or not state.saved_freed:
        return Finding("second-backward", text, failure.seq, node, fix=_KEEP, at=failure.at)
    freed = state.saved_freed
    released = Finding("freed", _released_by(timeline, freed), freed, node)
    path = _path_down(timeline, failure.seq, node)
    first_pass = start_of_pass(timeline, timeline.at(freed).pass_nr)
    crossing = next((edge for edge in pairwise(path) if _crosses(timeline, edge, first_pass)), None)
    first = pass_started(timeline, timeline.at(freed).pass_nr)
    is_sibling = crossing is not None and first is not None and _is_sibling(failure, first, crossing[1])
    if crossing is None or is_sibling:
        call = next(iter(timeline.stack(first.stack)), None) if first is not None else None
        if first is not None and path and (again := _same_call(failure, released, first, path[0])) is not None:
            return again
        edit = with_keyword(timeline, call, "backward", "retain_graph", "True")
        if is_sibling and first is not None and path:
            fix = f"{_KEEP_IN.format(_call(timeline, freed))}, or one backward() of the sum of both losses"
            losses = [label(timeline, _named_loss(timeline, one)) for one in (first.roots[0][0], path[0])]
            text = titled("the backward() of {} releases the graph that {} shares with it", *losses)
            return Finding("second-backward", text, failure.seq, node, (released,), fix, call or failure.at, edit=edit)
        fix = f"{_KEEP_IN.format(_call(timeline, freed))}, or build the graph again"
        return Finding("second-backward", text, failure.seq, node, (released,), fix, failure.at, edit=edit)
    return _carried(failure, released, *crossing)


_LOOKED_AT = 2000
"""The number of nodes that are searched for a loop."""

_KEEP_IN = "retain_graph=True in {}"

_KEEP = "retain_graph=True in that backward(), or build the graph again"


def _carried(failure: Failure, released: Finding, user: int, old: int) -> Finding:
    """Return the finding about operations that use a result of the released graph, of the same step
    or the one before.
    """
    timeline = failure.timeline
    source, used = timeline.info(old), timeline.info(user)
    is_again = _is_used_again(timeline, used, old)
    is_kept = is_again or _is_made_once(timeline, source)
    store = next(stores_of(timeline, own_frames(source.frames), source.names, used.frames), None) if is_kept else None
    if is_again or store is not None:
        return _single_result(failure, released, used, source, store)
    first = _other_use(timeline, used, old)
    kind, what = ("carried-state", "carried over") if first is None else ("second-backward", "which both use")
    text = titled(f"backward reaches an earlier graph through {{}}, {what}", label(timeline, old))
    crossed = f"the edge that crosses: {label_at(timeline, user)} uses {label_at(timeline, old)}"
    edge = Finding("crossing", crossed, used.born, user, at=innermost(used))
    name = symbol(timeline, old)
    edit, at = None, _where_carried(timeline, used, name) or innermost(source)
    fix = _where_to_detach(name, source, used, first, at)
    is_update = used.op.name.endswith("_") and used.op.base_name in _UPDATING
    if first is None and not is_update and (kept := _kept_its_graph(failure, used, source)) is not None:
        part, fix, edit = kept
        return Finding(kind, text, failure.seq, old, (part, edge, released), fix, part.at, edit=edit)
    if first is None and not is_update and (stored := _stored_state(timeline, used, source)) is not None:
        part, fix, edit = stored
        return Finding(kind, text, failure.seq, old, (part, edge, released), fix, part.at, edit=edit)
    if first is not None and not is_update:
        own = _own_frames(first, source)
        at = own[0] if own else at
        if not _learns_otherwise(timeline, released, old):
            fix = f"make {name} anew for the second backward(); or {_KEEP_IN.format(_call(timeline, released.event))}"
            return Finding(kind, text, failure.seq, old, (edge, released), fix, at)
        edit = wrapped(timeline, at, name, ".detach()") if name.isidentifier() else None
    elif name.isidentifier() and not used.op.name.endswith("_") and _reads(timeline, at, name):
        edit = before(timeline, at, f"{name} = {name}.detach()")
    return Finding(kind, text, failure.seq, old, (edge, released), fix, at, edit=edit)


def _stored_state(timeline: Timeline, used: NodeInfo, source: NodeInfo) -> tuple[Finding, str, Edit | None] | None:
    """Return the line that keeps a state for the next step in an attribute or element: ``self.h = h``, with the fix.

    Detached there, the steps within one call remain connected. That is so if nothing reads the attribute after it.
    """
    for store in stores_of(timeline, own_frames(source.frames), source.names, used.frames):
        statement = statement_at(timeline, store.at)
        match statement[1].node if statement is not None else None:
            case ast.Assign(
                targets=[ast.Attribute() | ast.Subscript() as place], value=ast.Name() | ast.Tuple() as kept
            ):
                read = place.value if isinstance(place, ast.Subscript) else place
            case _:
                continue
        if statement is None or _is_read_after(*statement, ast.unparse(read)):
            continue
        text = f"{ast.unparse(place)} keeps {label(timeline, source.node)} with its graph for the next step"
        detached = ast.unparse(kept)
        if isinstance(kept, ast.Name):
            edit, detached = wrapped(timeline, store.at, kept.id, ".detach()"), f"{kept.id}.detach()"
        else:
            edit = None
            parts = kept.elts if isinstance(kept, ast.Tuple) else []
            detached = f"({', '.join(f'{ast.unparse(part)}.detach()' for part in parts)})"
        part = Finding("held", text, source.born, source.node, at=store.at)
        return part, f"keep it without its graph: {ast.unparse(place)} = {detached}", edit
    return None


def _is_read_after(text: ProgramText, one: Statement, place: str) -> bool:
    """Return whether the function around a statement reads an attribute after it, or in a loop around both."""
    loop = innermost_loop(one)
    others = (other for other in text.by_function.get(function_of(one), ()) if other.node is not one.node)
    later = [other for other in others if other.first > one.last or (loop is not None and loop in other.around)]
    return any(place in places_read(part) for other in later for part in _heads(other))


def _heads(one: Statement) -> list[ast.AST]:
    """Return the parts of a statement that are not in its blocks."""
    return [part for part in ast.iter_child_nodes(one.node) if not isinstance(part, BLOCKS)]


def carried_over_step(failure: Failure, updated: Finding) -> Finding | None:
    """Explain a pass that reaches a graph from before the last step, since the loop carries a result over: `updated`
    is the fact that the step has changed what this graph needs. With ``retain_graph=True`` nothing else fails.
    """
    timeline, again = failure.timeline, _last_pass(failure)
    passes = timeline.select((BackwardStarted,), 1, failure.seq)
    starts = [seq for seq, event in passes if again is not None and event.stack == again.stack]
    if len(starts) < 2 or starts[-2] > updated.event:
        return None
    path = _path_down(timeline, failure.seq, failure.node)
    crossing = next((edge for edge in pairwise(path) if _crosses(timeline, edge, starts[-2])), None)
    if crossing is None:
        return None
    finding = _carried(failure, updated, *crossing)
    if finding.kind != "carried-state":
        return None
    call = own_frame(timeline.stack(again.stack)) if again is not None else None
    first = timeline.event(starts[-2])
    if isinstance(first, BackwardStarted) and crossing[1] in [node for node, _ in first.roots]:
        return replace(finding, fix=_OF_ONE_STEP, at=innermost(timeline.info(crossing[0])), edit=None)
    is_kept = _RETAINED in line_text(timeline, call)
    return replace(finding, fix=f"{finding.fix}; then without {_RETAINED}" if is_kept else finding.fix)


_OF_ONE_STEP = "backward() only of this step's loss, and a running sum of numbers: total += loss.item()"

_RETAINED = "retain_graph=True"


def _where_carried(timeline: Timeline, used: NodeInfo, name: str) -> Frame | None:
    """Return the line that takes a carried result out of its variable: the line of the loop, not that of the model.

    ``out, state = model(x, state)`` carries `state`; in `forward` it is a parameter, which begins anew in each call.
    The result may be a part of it: ``state[0]``.
    """
    at, variable = innermost(used), re.split(r"[.\[]", name)[0]
    for caller in own_frames(used.frames)[1:]:
        if not has_parameter(timeline, at, variable) or not _reads(timeline, caller, variable):
            break
        at = caller
    return at


def _is_sibling(failure: Failure, first: BackwardStarted, old: int) -> bool:
    """Return whether an earlier pass of the same iteration did not go through a result, but shares a graph with it.

    The loss of the second pass is then only scaled or reduced after the first pass, and nothing is carried over.
    """
    timeline, again = failure.timeline, _last_pass(failure)
    if again is None or again.stack == first.stack:
        return False
    if any(timeline.select((OptimizerStepped,), timeline.nodes.born(old), failure.seq)):
        return False
    roots = [node for node, _ in first.roots if node]
    return bool(roots) and old not in roots and old not in set(ancestors(timeline, *roots))


def _last_pass(failure: Failure) -> BackwardStarted | None:
    """Return the pass that failed."""
    phases = failure.timeline.phases
    starts = [phase.start for phase in phases if phase.kind == "backward" and phase.start < failure.seq]
    again = failure.timeline.event(starts[-1]) if starts else None
    return again if isinstance(again, BackwardStarted) else None


def _named_loss(timeline: Timeline, root: int) -> int:
    """Return the loss that a nameless root of a pass is a multiple or a mean of; the root itself if it has a name."""
    inputs = [node for node in timeline.nodes.inputs_by_node.get(root, ()) if node and timeline.info(node).name]
    return inputs[0] if inputs and not timeline.info(root).name else root


def _learns_otherwise(timeline: Timeline, released: Finding, old: int) -> bool:
    """Return whether the pass that released a graph has leaves that it also reaches without going through a result."""
    first = pass_started(timeline, timeline.at(released.event).pass_nr)
    roots = [node for node, _ in first.roots if node] if first is not None else []
    reached = ancestors(timeline, *roots, up_to={old})
    return any(info.created.requires_grad and info.created.kind != "op" for info in map(timeline.info, reached))


def _reads(timeline: Timeline, at: Frame | None, name: str) -> bool:
    """Return whether the statement at a frame reads a variable."""
    source = statement_at(timeline, at)
    return source is not None and name in names_read(source[1].node)


def _kept_its_graph(failure: Failure, used: NodeInfo, old: NodeInfo) -> tuple[Finding, str, Edit | None] | None:
    """Return the line that was to detach what is carried over and did not, with the fix.

    It makes a detached copy that nothing uses, or it calls a function that returns a tuple as it is.
    """
    timeline, names = failure.timeline, {re.split(r"[.\[]", name)[0] for name in old.names if name}
    copies = (timeline.info(user) for user in timeline.nodes.users(old.node, used.born - 1))
    for copy in copies:
        at = innermost(copy)
        is_idle = copy.created.untracked in ("detach", "data") and not timeline.nodes.users(copy.node)
        if is_idle and _drops_result(timeline, at):
            text = f"{label_at(timeline, copy.node)} is a detached copy that nothing uses: detach() changes no variable"
            fix = f"assign what detach() returns{_of_elements(old.name)}"
            return Finding("copied", text, copy.born, copy.node, at=at), fix, assigned_to_itself(timeline, at)
    called = _detaching_call(timeline, used.frames, names)
    if called is None:
        return None
    state, place = called.state, file_line(called.inside.path, called.inside.line)
    text = f"{called.function}(){at_text((called.at,))} returned {state} as it was, with its graph"
    if called.condition:
        text = f"{text}: {clipped(called.condition, 60)} did not hold at {place}"
    is_tuple = "[" in old.name or any(name.startswith(f"{state}[") for name in old.names)
    last = state.rpartition(".")[2]
    fix = f"detach what it is given at {place}"
    if is_tuple:
        fix = f"detach each element there: {last} = {_each_detached(last)}"
    return Finding("held", text, old.born, old.node, at=called.inside), fix, None


def _each_detached(name: str) -> str:
    each = "h" if name != "h" else "each"
    return f"tuple({each}.detach() for {each} in {name})"


def _of_elements(name: str) -> str:
    """Return how to assign the detached elements of a tuple, if a name is that of an element: ``h[0]``."""
    whole, _, index = name.partition("[")
    return f": {whole} = {_each_detached(whole)}" if index.count("[") == 0 and index else ""


def _same_call(failure: Failure, released: Finding, first: BackwardStarted, root: int) -> Finding | None:
    """Return the finding about a line that calls backward again on one result, in a loop or in a closure."""
    timeline, again = failure.timeline, _last_pass(failure)
    if again is None or again.roots != first.roots or again.stack != first.stack:
        return None
    info, frames = timeline.info(root), timeline.stack(first.stack)
    if info.created.kind != "op" or not frames:
        return None
    at, edit, where = _made_outside(timeline, info, frames)
    what = label(timeline, root)
    text = titled("backward runs again on {}, which is made only once", what)
    called = f"it is called again{at_text(frames)}, and {label_at(timeline, root)} is not computed again"
    part = Finding("crossing", called, failure.seq, root, at=frames[0])
    fix = f"compute {_variable_at(timeline, at, info) or symbol(timeline, root)} anew {where}"
    return Finding("second-backward", text, failure.seq, root, (part, released), fix, at, edit=edit)


def _made_outside(
    timeline: Timeline, source: NodeInfo, using: Sequence[Frame]
) -> tuple[Frame | None, Edit | None, str]:
    """Return the line that makes a result once for a loop or function that uses it again and again.

    With it come the edit that moves this line to where it is used, and in words where that is. The line is that of the
    outermost call that the use is not part of, if a variable takes the result there: the call of a model rather than
    the last line of its forward.
    """
    own, inner = _unshared(source.frames, using), _unshared(using, source.frames)
    places = [frame for frame in own if _names_result(timeline, frame, source)]
    at = next(iter(places or own[-1:]), innermost(source))
    user = inner[0] if inner else None
    name = inner[1].function.rpartition(".")[2] if len(inner) > 1 else ""
    if name and _passes_function(timeline, user, name):
        edit = _into_function(timeline, at, name) if own and at == own[0] else None
        return at, edit, f"in each call of {name}()"
    edit = into_loop(timeline, at, user) if user is not None else None
    statement = statement_at(timeline, user)
    is_in_loop = edit is not None or (statement is not None and innermost_loop(statement[1]) is not None)
    return at, edit, "in each step, inside the loop" if is_in_loop else "in each step"


def _names_result(timeline: Timeline, at: Frame, info: NodeInfo) -> bool:
    """Return whether the statement at a frame assigns a result to one of its names."""
    return bool(_variable_at(timeline, at, info))


def _variable_at(timeline: Timeline, at: Frame | None, info: NodeInfo) -> str:
    """Return the variable to which the statement at a frame assigns a result; empty if there is none."""
    source = statement_at(timeline, at)
    assigned = names_set(source[1].node) if source is not None else set()
    return next((name for name in info.names if name in assigned), "")


def _is_used_again(timeline: Timeline, used: NodeInfo, old: int) -> bool:
    """Return whether the same call has used a result before: it was made once, and not again in each step."""
    uses = map(timeline.info, timeline.nodes.users(old, used.born - 1))
    return any(_calls(info) == _calls(used) and info.op.name == used.op.name for info in uses)


def _is_made_once(timeline: Timeline, source: NodeInfo) -> bool:
    """Return whether the line that made a result has not run again in a later iteration."""
    nodes, end, place = timeline.nodes, timeline.iteration_of(source.node).end, timeline.nodes.place_of(source.node)
    again = place + np.flatnonzero(nodes.origins.stack[place:] == source.created.stack)
    return nodes.born(nodes[int(again[-1])]) <= end


def _single_result(
    failure: Failure, released: Finding, used: NodeInfo, source: NodeInfo, store: Store | None
) -> Finding:
    """Return the finding about a result that was made before a loop, or that is stored: every step goes back through
    its one graph.
    """
    timeline, name = failure.timeline, symbol(failure.timeline, source.node)
    what = label(timeline, source.node)
    text = titled("backward reaches an earlier graph through {}, made only once", what)
    again = f"{label_at(timeline, used.node)} uses it again: {label_at(timeline, source.node)}"
    edge = Finding("crossing", again, used.born, used.node, at=innermost(used))
    cached = _weight_cache(timeline, source.frames)
    if cached is not None:
        block = f"it is kept by the block at {file_line(cached.path, cached.line)}"
        kept = Finding("held", block, source.born, source.node, at=cached)
        return Finding("second-backward", text, failure.seq, source.node, (edge, kept), _SHORT_CACHE, cached)
    leaf = nameless_leaf(timeline, source)
    learned = f"to learn {name}, make it the leaf itself: requires_grad last, {name} = (...).requires_grad_()"
    at, edit, where = _made_outside(timeline, source, used.frames)
    anew = _variable_at(timeline, at, source) or what
    fix = f"make {anew} anew {where}; or detach() it, if it is data or a target"
    if leaf is not None and name.isidentifier():
        fix, edit, at = learned, None, innermost(source)
    if leaf is not None and leaf.created.kind == "parameter":
        fix, edit, at = PARAMETER_LAST, parameter_last(timeline, innermost(source)), innermost(source)
    elif leaf is None and store is not None:
        text = titled("backward reaches an earlier graph through {}, kept by {}", what, store.place)
        how = store.how or (f"store {name}.detach()" if name.isidentifier() else "detach() what is stored")
        fix = f"{how}, if nothing learns through it; or make it anew in each step"
        return Finding("second-backward", text, failure.seq, source.node, (edge, released), fix, store.at)
    return Finding("second-backward", text, failure.seq, source.node, (edge, released), fix, at, edit=edit)


def _weight_cache(timeline: Timeline, frames: Sequence[Frame]) -> Frame | None:
    """Return the line ``with parametrize.cached():`` around a call stack; the program may have another ``cached``."""
    at = _block_around(timeline, frames, "cached")
    if at is None:
        return None
    is_imported = _CACHE_IMPORT.search(timeline.source(at.path) or "") is not None
    return at if "parametrize.cached" in line_text(timeline, at) or is_imported else None


_CACHE_IMPORT = re.compile(r"^\s*from torch\.nn\.utils\.parametrize import .*\bcached\b", re.MULTILINE)

_SHORT_CACHE = "enter cached() in each step, around the forward only: it keeps the weight, and its graph, to its end"


def _where_to_detach(name: str, source: NodeInfo, used: NodeInfo, first: NodeInfo | None, at: Frame | None) -> str:
    if used.op.name.endswith("_") and used.op.base_name in _UPDATING:
        return f"with torch.no_grad(): around what is written in place{at_text(used.frames)}, if that is only an update"
    known = name.isidentifier()
    if first is None:
        whole = _of_elements(name).removeprefix(": ")
        if not known and at is not None and _ATTRIBUTE.fullmatch(name):
            return f"{name} = {name}.detach() at the start of {at.function.rpartition('.')[2]}()"
        what = f"{name} = {name}.detach()" if known else whole or "detach() what is carried over"
        return f"{what} before it is used{at_text((at,) if at is not None else ())}"
    what = f"{name}.detach()" if known else "detach() it"
    where = at_text(_own_frames(first, source))
    return f"{what}{where}, if the first backward() need not go behind it; else retain_graph=True there"


_ATTRIBUTE = re.compile(r"self(\.\w+)+")


def _other_use(timeline: Timeline, used: NodeInfo, old: int) -> NodeInfo | None:
    """Return the first use of `old` by other lines than the `used` one, if these lines are not in a loop.

    In a loop these lines have also made part of the released graph.
    """
    here, place = _calls(used), timeline.nodes.place_of(old)
    before = timeline.nodes[max(place - _LOOKED_AT, 0) : place + 1]
    if any(_calls(timeline.info(node)) == here for node in before):
        return None
    uses = map(timeline.info, timeline.nodes.users(old, used.born - 1))
    return next((info for info in uses if _calls(info) != here), None)


def _calls(info: NodeInfo) -> list[tuple[str, int]]:
    """Return the call stack as lines: a model may be called from several."""
    return [(frame.path, frame.line) for frame in info.frames]


def _own_frames(one: NodeInfo, other: NodeInfo) -> tuple[Frame, ...]:
    """Return the frames of one from the first that it does not share with the other, outwards."""
    own = _unshared(one.frames, other.frames)
    return one.frames[len(own) - 1 :]


def _unshared(one: Sequence[Frame], other: Sequence[Frame]) -> tuple[Frame, ...]:
    """Return the frames of a call stack below the last frame that it shares with another, the outermost first.

    Of equal stacks this is the innermost frame.
    """
    pairs = zip(reversed(one), reversed(other), strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    outermost_first = tuple(reversed(one))
    return outermost_first[min(shared, len(one) - 1) :]


def _released_by(timeline: Timeline, seq: int) -> str:
    """Return the pass that released the saved tensors, and its call."""
    number, at = timeline.at(seq).pass_nr, _called_at(timeline, seq)
    if at is None:
        return "released"
    which = "the first backward()" if number == 1 else f"backward pass {number}"
    return f"released by {which}{at}"


def _call(timeline: Timeline, seq: int) -> str:
    """Return the call whose pass released the saved tensors: ``the backward() at demo.py:7``."""
    at = _called_at(timeline, seq)
    return f"the backward(){at}" if at else "that backward()"


def _called_at(timeline: Timeline, seq: int) -> str | None:
    """Return in words where the pass that ran at an event was called; None if no pass ran."""
    started = pass_started(timeline, timeline.at(seq).pass_nr)
    return at_text(timeline.stack(started.stack)) if started is not None else None


def _path_down(timeline: Timeline, seq: int, node: int) -> list[int]:
    """Return the path of the pass from its root to the node, along the first contribution to each."""
    moment, path = timeline.at(seq - 1), {node: None}  # ordered like a list, searched like a set
    while True:
        sources = [source for source in _sources_of(moment, node) if source not in path]
        if not sources:
            return [*reversed(path)]
        # the cells of a recurrent layer have twins, at which no contribution arrives
        node = next((source for source in sources if _sources_of(moment, source)), sources[0])
        path[node] = None


def _sources_of(moment: Moment, node: int) -> list[int]:
    """Return the nodes whose contributions have arrived at a node."""
    state = moment.state(node)
    parts = [part for output in state.outputs for part in output.parts] if state is not None else []
    return [part.source for part in parts if part.source]


def _crosses(timeline: Timeline, edge: tuple[int, int], first_pass: int) -> bool:
    """Return whether a node made since the first pass uses one that was there before."""
    user, source = edge
    return timeline.nodes.born(source) < first_pass < timeline.nodes.born(user)


# What the program's source code shows


def into_loop(timeline: Timeline, at: Frame | None, used: Frame | None) -> Edit | None:
    """Move a statement from before a loop to the start of its body; the line `used` is in the loop."""
    source, inner = statement_at(timeline, at), statement_at(timeline, used)
    if source is None or inner is None or source[0] is not inner[0]:
        return None
    text, one = source
    loops = [part for part in inner[1].around if isinstance(part, ast.For | ast.While) and part.lineno > one.last]
    if not loops or getattr(one.node, "body", None) or loops[0].body[0].lineno == loops[0].lineno:
        return None
    if function_of(one) is not function_of(inner[1]) or names_set(one.node) & _stored_names(loops[0]):
        return None  # a line of another function, or a state that the loop carries on
    first = loops[0].body[0]
    return moved(timeline, at, Frame(text.path, "", first.lineno, first.lineno, -1, -1), ahead=True, across=True)


def _into_function(timeline: Timeline, at: Frame | None, function: str) -> Edit | None:
    """Move an assignment into the function that follows it in its block, if only that function reads its variables.

    It moves before the first statement that reads one of them, such as the loss in the closure of LBFGS.
    """
    source = statement_at(timeline, at)
    if source is None or not isinstance(source[1].node, ast.Assign) or not source[0].is_alone(source[1]):
        return None
    text, one = source
    named = [part for part in one.block if isinstance(part, ast.FunctionDef) and part.name == function]
    targets = names_set(one.node)
    if len(named) != 1 or named[0].lineno < one.last or _stored_places(one.node) != targets:
        return None
    body = named[0].body
    inside, scope = {*ast.walk(named[0])}, function_of(one) or text.tree
    others = (part for part in ast.walk(scope) if isinstance(part, ast.Name) and part.id in targets)
    assigned = {*ast.walk(one.node)}
    if any(part not in inside and part not in assigned for part in others):
        return None  # another statement reads or assigns it, too
    own = _stored_names(named[0]) | {part.arg for part in ast.walk(named[0].args) if isinstance(part, ast.arg)}
    declared = {name for part in inside if isinstance(part, ast.Global | ast.Nonlocal) for name in part.names}
    if (targets | names_read(one.node)) & (own | declared):
        return None
    first = next((part for part in body if names_read(part) & targets), None)
    if first is None or first.lineno == named[0].lineno:
        return None
    return moved(
        timeline, at, frame_of(Frame(text.path, "", 0, 0, -1, -1), first.lineno, text), ahead=True, across=True
    )


def _stored_names(part: ast.AST) -> set[str]:
    """Return the names that a part of a program assigns."""
    return {one.id for one in ast.walk(part) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}


def _stored_places(part: ast.AST) -> set[str]:
    """Return the names, attributes and elements that a part of a program assigns, as text."""
    return places_in(part, ast.Store)


# What the program's source code shows


def _block_around(timeline: Timeline, frames: Sequence[Frame], function: str) -> Frame | None:
    """Return the line of the innermost ``with`` block around a call stack that a function of this name opens."""
    for frame in frames:
        source = statement_at(timeline, frame)
        for outer in reversed(source[1].around) if source is not None else ():
            if isinstance(outer, ast.With):
                calls = [item.context_expr for item in outer.items if isinstance(item.context_expr, ast.Call)]
                if any(called_name(call) == function for call in calls):
                    return frame_of(frame, outer.lineno, source[0]) if source is not None else None
    return None


# A state that a loop carries on, and the function that is to detach it


@dataclass(frozen=True, slots=True)
class _DetachingCall:
    """A call that is to detach a state of a loop: ``h = repackage(h)``.

    `at` is the line of the call, `state` is ``h``, `function` is ``repackage``, and `inside` is the line of the
    function that detaches, or that of the condition around it. `condition` is the text of that condition.
    """

    at: Frame
    state: str
    function: str
    inside: Frame
    condition: str


def _detaching_call(timeline: Timeline, frames: Sequence[Frame], names: Container[str]) -> _DetachingCall | None:
    """Return the call in a loop that gets the state which a call stack carries on, and that is to detach it.

    The loop must set the state from itself at a frame, and without a condition to the result of the call. If there are
    several such states, it is one of these `names`. The attribute of a module has another path in the loop:
    ``net.state`` is ``self.state`` in the method that sets it.
    """
    attributes: set[str] = set()
    for frame in frames:
        source = statement_at(timeline, frame)
        if source is None:
            continue
        text, one = source
        carried = {name for name in places_set(one.node) if name in places_read(one.node)}
        variables = {name for name in carried if name.isidentifier()}
        variables = {name for name in variables if name in names} or (variables if len(carried) == 1 else set())
        attributes |= {name.rpartition(".")[2] for name in carried - variables}
        loop = innermost_loop(one)
        for other in text.statements if loop is not None else ():
            if other.around[-1] is not loop and other.around[-1] is not one.around[-1]:
                continue
            match other.node:
                case ast.Assign(targets=[target], value=ast.Call(args=[*_, argument]) as call):
                    state = ast.unparse(target)
                    is_known = state in variables or (isinstance(target, ast.Attribute) and target.attr in attributes)
                    if not is_known or state != ast.unparse(argument) or other.node is one.node:
                        continue
                    if (inside := _detaches(timeline, frame, called_name(call))) is not None:
                        at = frame_of(frame, other.first, text)
                        return _DetachingCall(at, state, called_name(call), *inside)
    return None


def _passes_function(timeline: Timeline, at: Frame | None, name: str) -> bool:
    """Return whether a call on a line gets a function as an argument, as ``opt.step(closure)`` does."""
    source = statement_at(timeline, at)
    calls = (part for part in ast.walk(source[1].node) if isinstance(part, ast.Call)) if source is not None else ()
    given = (one for call in calls for one in (*call.args, *(keyword.value for keyword in call.keywords)))
    return any(isinstance(one, ast.Name | ast.Attribute) and ast.unparse(one).split(".")[-1] == name for one in given)


def _drops_result(timeline: Timeline, at: Frame | None) -> bool:
    """Return whether no variable holds what a line computes, or only that of the loop around it.

    Such lines are ``h.detach()``, ``[h.detach() for h in state]`` and ``for h in state: h = h.detach()``.
    """
    source = statement_at(timeline, at)
    if source is None:
        return False
    outer = source[1].around[-1]
    match source[1].node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="detach" | "clone"))):
            return True
        case ast.Expr(value=ast.ListComp() | ast.Tuple() | ast.Attribute()):
            return True
        case ast.Assign(targets=[ast.Name(id=name)]) if isinstance(outer, ast.For):
            later = {read for part in outer.body[outer.body.index(source[1].node) + 1 :] for read in names_read(part)}
            variables = {part.id for part in ast.walk(outer.target) if isinstance(part, ast.Name)}
            return name in variables and name not in later
    return False


def _detaches(timeline: Timeline, at: Frame, function: str) -> tuple[Frame, str] | None:
    """Return the line of a program's function that detaches, or of the condition around it, with its text."""
    for path in dict.fromkeys((at.path, *timeline.sources)):
        text = parsed_program(path, timeline.source(path) or "")
        for one in text.statements if text is not None else ():
            owner = function_of(one)
            if not isinstance(owner, FUNCTION_NODES) or owner.name != function or text is None:
                continue
            if not any(_is_detaching(part) for part in one.parts(ast.expr)):
                continue
            tests = [outer for outer in one.around if isinstance(outer, ast.If) and outer in {*ast.walk(owner)}]
            line, condition = (tests[-1].lineno, text.segment(tests[-1].test)) if tests else (one.first, "")
            return Frame(path, function, line, line, -1, -1), condition
    return None


def _is_detaching(part: ast.expr) -> bool:
    return isinstance(part, ast.Attribute) and part.attr in ("detach", "detach_", "data")
