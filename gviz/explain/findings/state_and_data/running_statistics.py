"""Running statistics of batch norms that keep their initial values, or that change although the layer is frozen."""

from __future__ import annotations

import ast
from bisect import bisect
from collections.abc import Iterator, Sequence

from gviz.events import DataSet, OptimizerStepped, RequiresGradSet, StorageWritten
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.program_text import (
    called_lines,
    called_name,
    calls_in,
    frame_of,
    function_of,
    program_text,
    receiver,
    statement_at,
)
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import after
from gviz.explain.source_frames import innermost, own_frame
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import shown
from gviz.values.value import Value

_FEWEST = 2
"""A frozen part is reported if it normalized at least this many batches in training mode."""

_FEWEST_SINCE = 5
"""A part that was trained before is reported if it was frozen during at least this many steps of other parts."""


# A batch norm in evaluation mode with its initial statistics: a copy of the model got the parameters, not the buffers

_NORMS = ("batch_norm", "native_batch_norm", "cudnn_batch_norm", "_batch_norm_impl_index")


def initial_statistics(survey: Survey) -> Iterator[Finding | None]:
    """Yield batch norms with trained parameters whose mean is 0 and whose variance is 1, as at the start.

    The parameters must follow a training: they are written after a backward pass. A model that is only loaded may have
    no other statistics, because they are a part of its weights.
    """
    timeline, seen = survey.timeline, set[str]()
    if not survey.passes:
        return
    for record in survey.ops(*_NORMS):
        yield None
        names = {timeline.info(node).name: node for node, _ in record.created.inputs if node}
        mean = next((name for name in names if name.endswith("running_mean")), "")
        variance = next((name for name in names if name.endswith("running_var")), "")
        if not mean or not variance or mean in seen or dict(record.created.attrs).get("training", True):
            continue
        others = [node for name, node in names.items() if name not in (mean, variance)]
        own = [node for node in others if timeline.info(node).created.kind == "parameter"]
        if not (_is_all(survey, names[mean], record.seq, 0) and _is_all(survey, names[variance], record.seq, 1)):
            continue
        varied = next((node for node in own if not _is_uniform(timeline.memory_value(node, 0, record.seq))), 0)
        if varied and survey.optimized.isdisjoint(own) and _follows_training(survey, varied, record.seq):
            seen.add(mean)
            yield _initial_finding(survey, record, names[mean], varied)


def _follows_training(survey: Survey, node: int, end: int) -> bool:
    """Return whether a parameter is written to, or gets other data, between the first backward pass and an event.

    PyTorch's recording may see it for the first time after the pass, and then has no earlier writes. In that case, it
    is enough that a trained parameter has the same shape and the same place in its model.
    """
    timeline, record, start = survey.timeline, survey.nodes[node], survey.passes[0][0]
    if record.seq > start:
        trained = (survey.nodes[one] for one in survey.optimized if one in survey.nodes)
        place = timeline.info(node).name.split(".")[-2:]
        same = (one for one in trained if one.shape == record.shape)
        return any(timeline.info(one.node).name.split(".")[-2:] == place for one in same)
    storages = {output.storage for output in record.created.outputs}
    written = any(event.storage in storages for _, event in timeline.select((StorageWritten,), start, end))
    return written or any(event.node == node for _, event in timeline.select((DataSet,), start, end))


def _is_all(survey: Survey, node: int, n: int, element: float) -> bool:
    value = survey.timeline.memory_value(node, 0, n)
    stats = value.statistics() if value is not None else None
    return stats is not None and stats.min == stats.max == element


def _is_uniform(value: Value | None) -> bool:
    stats = value.statistics() if value is not None else None
    return stats is None or stats.min == stats.max


def _initial_finding(survey: Survey, record: NodeRecord, mean: int, varied: int) -> Finding:
    timeline, at = survey.timeline, innermost(survey.timeline.info(record.node))
    text = titled("{} is 0 as at the start, but {} is trained", label(timeline, mean), label(timeline, varied))
    now = f"{label_at(timeline, record.node)} normalizes with a mean of 0 and a variance of 1"
    part = Finding("used", now, record.seq, record.node, at=at)
    model = timeline.info(varied).name.split(".")[0]
    copied = _pairing_loop(timeline, at, f"{model}.parameters()") or _copying_loop(survey, varied)
    fix = "copy the buffers, too, which parameters() leaves out: zip(copy.buffers(), net.buffers()), then a.copy_(b)"
    return Finding("initial-statistics", text, record.seq, mean, (part,), fix, copied or at)


def _copying_loop(survey: Survey, node: int) -> Frame | None:
    """Return the loop over parameters that writes to one after the first backward pass; else the line of the write."""
    timeline, record = survey.timeline, survey.nodes[node]
    storages = {output.storage for output in record.created.outputs}
    for seq, event in survey.select(StorageWritten, DataSet):
        match event:
            case StorageWritten(storage=storage, node=writer) if storage in storages and writer in survey.nodes:
                frames = timeline.info(writer).frames
            case DataSet(node=written, stack=stack) if written == node:
                frames = timeline.stack(stack)
            case _:
                continue
        if seq > survey.passes[0][0] and frames:
            at = own_frame(frames)
            return _loop_over(timeline, at, "parameters", "named_parameters") or at
    # PyTorch's recording has no writes to a tensor before it sees that for the first time
    return _loop_that_copies(timeline, survey.at(record))


# A batch norm in training mode whose parameters are frozen: its running statistics still follow the data


def frozen_statistics(survey: Survey) -> Iterator[Finding | None]:
    """Yield a frozen part of a trained model in which a batch norm updates its running statistics.

    A forward under no_grad is left out: the target network of self-supervised learning may normalize by its batch. So
    are parameters that are trained again later, such as those of a discriminator.
    """
    timeline, parts = survey.timeline, dict[str, list[NodeRecord]]()
    updated = {event.storage: seq for seq, event in survey.select(StorageWritten)}
    updated |= {
        output.storage: max(seq, updated.get(output.storage, 0))
        for seq, event in survey.select(OptimizerStepped)
        for node in event.parameters
        if node in survey.nodes
        for output in survey.nodes[node].created.outputs
    }
    steps = [seq for seq, _ in survey.select(OptimizerStepped)]
    switches, trained_calls = _switches(survey), _trained_calls(survey)
    fewest: dict[str, int] = {}
    for record in survey.ops(*_NORMS):
        yield None
        scope = survey.scopes.get(record.created.scope)
        if scope is None or not dict(record.created.attrs).get("training") or record.created.switched_off:
            continue
        own = [one for one in survey.sources(record) if one.created.kind == "parameter"]
        is_fixed = own and all(updated.get(one.created.outputs[0].storage, 0) < record.seq for one in own)
        is_frozen = is_fixed and not any(_requires_grad(switches, one, record.seq) for one in own)
        if is_frozen and survey.outermost(scope.scope) in trained_calls:
            parts.setdefault(scope.name, []).append(record)
            was_trained = any(one.created.outputs[0].storage in updated for one in own)
            fewest[scope.name] = _FEWEST_SINCE if was_trained else 1
    norms = {
        name: records
        for name, records in parts.items()
        if len(records) >= _FEWEST and len({bisect(steps, one.seq) for one in records}) >= fewest[name]
    }
    if norms:
        yield _statistics_finding(timeline, norms)


def _switches(survey: Survey) -> dict[int, list[tuple[int, bool]]]:
    """Return for each node the events that set ``requires_grad``, each with the new value."""
    switches: dict[int, list[tuple[int, bool]]] = {}
    for seq, event in survey.timeline.select((RequiresGradSet,)):
        switches.setdefault(event.node, []).append((seq, event.requires_grad))
    return switches


def _requires_grad(switches: dict[int, list[tuple[int, bool]]], parameter: NodeRecord, seq: int) -> bool:
    """Return whether a parameter requires a gradient at an event."""
    earlier = [switch for at, switch in switches.get(parameter.node, ()) if at < seq]
    return earlier[-1] if earlier else parameter.created.requires_grad


def _trained_calls(survey: Survey) -> set[int]:
    """Return the outermost calls of models in which a trained parameter is used."""
    users = {one for node in survey.optimized for one in survey.timeline.nodes.users(node) if one in survey.nodes}
    scopes = {survey.nodes[one].created.scope for one in users}
    return {survey.outermost(one) for one in scopes if one in survey.scopes}


def _statistics_finding(timeline: Timeline, norms: dict[str, list[NodeRecord]]) -> Finding:
    name, (record, *later) = next(iter(norms.items()))
    more = f" and {len(norms) - 1} more" if len(norms) > 1 else ""
    text = titled(f"the statistics of {{}}{more} still change, though frozen", shown(name))
    batches = f"in training mode it normalized {len(later) + 1} batches by their own mean and updated running_mean"
    part = Finding("since", f"{batches}: requires_grad=False does not stop that", record.seq, record.node)
    at, edit = innermost(timeline.info(record.node)), None
    children = {path.split(".")[1] for path in norms if path.count(".")}
    frames = timeline.info(record.node).frames
    line = _called_before(timeline, frames, "train") or next(called_lines(timeline, at, "train"), None)
    if line is not None:
        at = line
        if len(children) == 1 and (model := receiver(timeline, line, "train")):
            edit = after(timeline, line, f"{model}.{children.pop()}.eval()")
    fix = "eval() for the frozen part after each train() of the model"
    return Finding("frozen-statistics", text, record.seq, record.node, (part,), fix, at, suspected=True, edit=edit)


# What the program's source code shows


def _pairing_loop(timeline: Timeline, at: Frame | None, read: str) -> Frame | None:
    """Return the first loop that pairs an expression with another one: ``zip(copy.parameters(), net.parameters())``."""
    text = program_text(timeline, at)
    if text is None or at is None:
        return None
    _, dot, method = read.rpartition(".")
    for one in text.statements:
        calls = [text.segment(call) for call in one.parts(ast.Call)] if isinstance(one.node, ast.For) else []
        alike = [call for call in calls if call.endswith(dot + method)]
        if read in alike and len(alike) > 1:
            return frame_of(at, one.first, text)
    return None


def _loop_over(timeline: Timeline, at: Frame | None, *names: str) -> Frame | None:
    """Return the innermost loop around a line whose head calls one of these functions; None without one."""
    source = statement_at(timeline, at)
    if source is None or at is None:
        return None
    text, one = source
    for outer in reversed([*one.around, one.node]):
        if isinstance(outer, ast.For) and any(called_name(call) in names for call in calls_in(outer.iter)):
            return frame_of(at, outer.lineno, text)
    return None


_COPYING = ("copy_", "lerp_", "mul_", "add_")


def _loop_that_copies(timeline: Timeline, at: Frame | None) -> Frame | None:
    """Return the loop over ``parameters()`` that writes to tensors, as an average does; None if there are several."""
    text = program_text(timeline, at)
    if text is None or at is None:
        return None
    loops = [
        one.node
        for one in text.statements
        if isinstance(one.node, ast.For)
        and any(called_name(call) in ("parameters", "named_parameters") for call in calls_in(one.node.iter))
        and any(_copies(part) for inner in one.node.body for part in ast.walk(inner))
    ]
    return frame_of(at, loops[0].lineno, text) if len(loops) == 1 else None


def _copies(part: ast.AST) -> bool:
    match part:
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _COPYING
        case ast.Assign(targets=[ast.Attribute(attr="data")]):
            return True
    return False


def _called_before(timeline: Timeline, frames: Sequence[Frame], *names: str) -> Frame | None:
    """Return the last line that calls one of these functions before a line of the call stack.

    It is in the innermost function of the stack that has such a line.
    """
    for frame in frames:
        source = statement_at(timeline, frame)
        if source is None:
            continue
        text, here = source
        before = (one for one in text.by_function[function_of(here)] if one.first < here.first)
        calling = [one for one in before if any(called_name(call) in names for call in one.parts(ast.Call))]
        if calling:
            return frame_of(frame, calling[-1].first, text)
    return None
