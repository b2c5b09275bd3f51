"""Training in evaluation mode, and evaluation in training mode."""

from __future__ import annotations

import ast
from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from gviz.events import DataSet, NodeCreated, OptimizerStepped, RequiresGradSet, ScopeEntered, StorageWritten
from gviz.explain.display_names import at_text, innermost, label, label_at, own_frame, titled
from gviz.explain.edit import after, keyword_if_training, with_keyword
from gviz.explain.finding import Finding, Number
from gviz.explain.operation_sets import DROPOUTS
from gviz.explain.program_text import (
    called_lines,
    called_name,
    calls_in,
    frame_of,
    function_of,
    line_text,
    method_self,
    program_text,
    receiver,
    statement_at,
)
from gviz.explain.recording_overview import NodeRecord, Survey
from gviz.explain.tracking import ancestors
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import shown
from gviz.values.value import Value

_FEWEST = 2
"""The fewest steps that count as training if nothing was in training mode before."""

_FEWEST_SINCE = 5
"""The fewest steps of others in which a part that was trained before counts as frozen for good."""

_NAMED = 3


@dataclass(slots=True)
class _ModelCall:
    """A call of a model: the parameters in its graph, and by name which of its modules were in training mode.

    `dropouts` are its dropout modules. They count as in training mode if they made a node; one with p = 0 makes none.
    `inner` are the parameters of its submodules, trained or not.
    """

    first: NodeRecord | None = None
    parameters: set[int] = field(default_factory=set)
    trains: dict[str, bool] = field(default_factory=dict)
    dropouts: set[str] = field(default_factory=set)
    inner: set[int] = field(default_factory=set)

    def is_trained(self, stepped: Sequence[int]) -> bool:
        """Return whether a step trains the model, and not only a tensor that it is given, such as a prompt."""
        is_frozen = bool(self.inner) and self.inner.isdisjoint(stepped)
        return not is_frozen and not self.parameters.isdisjoint(stepped)


@dataclass(slots=True)
class _StepResults:
    """The results of the optimizer steps so far; `active` is the last step of each module in training mode.

    `first` is the first step in evaluation mode, and `last_before` the last one in training mode before it.
    """

    active: dict[str, int] = field(default_factory=dict)
    last_before: int = 0
    steps: int = 0
    first: tuple[int, NodeRecord] | None = None
    names: list[str] = field(default_factory=list)


def trained_in_eval(survey: Survey) -> Iterator[Finding | None]:
    """Yield the first step that trains a model while none of its dropout and batch norm modules is in training mode."""
    calls: dict[int, _ModelCall] = {}
    seen = _StepResults()
    for seq, event in survey.select(ScopeEntered, NodeCreated, OptimizerStepped):
        yield None
        match event:
            case ScopeEntered(kind=kind, name=name) if "Dropout" in kind:
                call = calls.setdefault(survey.outermost(event.scope), _ModelCall())
                call.trains.setdefault(name, False)
                call.dropouts.add(name)
            case NodeCreated(kind="op", scope=scope, during=(0, _)) if scope in survey.scopes:
                call = calls.setdefault(survey.outermost(scope), _ModelCall())
                _note_call(survey, call, survey.nodes[event.node])
            case OptimizerStepped(parameters=stepped):
                trained = [call for call in calls.values() if call.is_trained(stepped)]
                _stepped(seen, seq, trained)
                calls.clear()
    if seen.first is not None and (seen.active or seen.steps >= _FEWEST):
        yield _eval_finding(survey, seen, *seen.first)


def _note_call(survey: Survey, call: _ModelCall, record: NodeRecord) -> None:
    """Record the model call that made a node."""
    scope, attrs = survey.scopes[record.created.scope], dict(record.created.attrs)
    if scope.name in call.dropouts:
        call.trains[scope.name] = True  # also if it drops features of a frozen part, which require no gradient
    if not record.created.requires_grad:
        return  # an evaluation, or a part that is not trained
    own = {node for node, _ in record.created.inputs if node in survey.optimized}
    call.first = call.first or record
    call.parameters |= own
    if scope.parent in survey.scopes:
        call.inner |= {source.node for source in survey.sources(record) if source.created.kind == "parameter"}
    if record.op.endswith("batch_norm") and "training" in attrs and own:
        call.trains[scope.name] = bool(attrs["training"])


def _stepped(seen: _StepResults, seq: int, trained: list[_ModelCall]) -> None:
    """Record the mode of the calls that a step trains. One module in training mode makes all of them deliberate."""
    trains = {name: mode for call in trained for name, mode in call.trains.items()}
    dropouts = {name for call in trained for name in call.dropouts}
    if any(trains.values()):
        seen.active |= {name: seq for name, mode in trains.items() if mode}
        return
    telling = [name for name in trains if name in seen.active or (not seen.active and name not in dropouts)]
    first = next((call.first for call in trained if call.first is not None), None)
    if telling and first is not None:
        seen.steps += 1
        if seen.first is None:
            seen.first, seen.names = (seq, first), telling
            seen.last_before = max(seen.active.values(), default=0)


def _eval_finding(survey: Survey, seen: _StepResults, seq: int, record: NodeRecord) -> Finding:
    times = f"{seen.steps} steps" if seen.steps > 1 else "a step"
    named = ", ".join(map(shown, seen.names[:_NAMED])) + ", …" * (len(seen.names) > _NAMED)
    text = f"{times} of the optimizer trained a model in evaluation mode"
    before = "up to this step it was in training mode" if seen.last_before else "it was never in training mode"
    parts: tuple[Finding, ...] = (Finding("since", f"{named} worked as after eval(); {before}", seen.last_before),)
    fix = "model.train() before training, and again after each evaluation (leave it if statistics are to stay frozen)"
    at, numbers = innermost(survey.timeline.info(record.node)), (Number("steps", seen.steps),)
    switched = list(islice(called_lines(survey.timeline, at, "eval"), 2))
    if len(switched) == 1 and seen.last_before:
        trained = Finding("used", f"the model is trained{at_text((at,) if at else ())}", seq, record.node, at=at)
        parts, at = (*parts, trained), switched[0]
    return Finding("trained-in-eval", text, seq, record.node, parts, fix, at, numbers, suspected=True)


# Dropout that is active under no_grad: most likely an evaluation without eval()

_DROPPING = (*DROPOUTS, "mul")  # a dropout of the program's own may be a mul
_ATTENTION = "scaled_dot_product_attention"


def dropout_in_evaluation(survey: Survey) -> Iterator[Finding]:
    """Yield dropout that drops elements under no_grad: of a dropout module in training mode, or of a function.

    ``eval()`` turns off the module, but not the function: `F.dropout` drops unless it gets ``training=False``.
    """
    timeline, repeated, without_grad = survey.timeline, _rerun_modules(survey), _calls_without_grad(survey)
    for record in survey.ops(*_DROPPING, _ATTENTION):
        scope, attrs = survey.scopes.get(record.created.scope), dict(record.created.attrs)
        is_module = scope is not None and "Dropout" in scope.kind
        is_attention = record.op == _ATTENTION or survey.timeline.info(record.node).op.call == _ATTENTION
        is_function = not is_module and record.op in DROPOUTS and attrs.get("training", True) and attrs.get("p")
        is_function = is_function or (record.op == _ATTENTION and attrs.get("dropout_p"))
        if scope is None or record.created.requires_grad or scope.name in repeated or not (is_module or is_function):
            continue
        if is_function and "training=True" in line_text(timeline, innermost(timeline.info(record.node))).replace(
            " ", ""
        ):
            continue  # written out: samples of a prediction
        if (
            record.created.switched_off
            or _under_no_grad(survey, record)
            or survey.outermost(scope.scope) in without_grad
        ):
            text = titled("dropout is active at {} in a forward under no_grad", label(timeline, record.node))
            fix = "model.eval() before evaluating, model.train() after (leave it if the randomness is wanted)"
            if is_function:
                fix = "dropout(x, p, training=self.training), which eval() turns off, or an nn.Dropout module"
            at, edit = innermost(timeline.info(record.node)), None
            if is_attention:
                fix = "dropout_p=p if self.training else 0.0: eval() does not turn off the dropout of this function"
                edit = keyword_if_training(timeline, at, _ATTENTION, "dropout_p", "0.0")
            elif is_function and (own := method_self(timeline, at)):
                edit = with_keyword(timeline, at, record.op, "training", f"{own}.training")
            yield Finding(
                "dropout-in-evaluation", text, record.seq, record.node, (), fix, at, suspected=True, edit=edit
            )


def _calls_without_grad(survey: Survey) -> set[int]:
    """Return the outermost calls of models that ran under no_grad: nothing in them is tracked."""
    calls: dict[int, bool] = {}
    for record in survey.nodes.values():
        if record.created.kind == "op" and record.created.scope in survey.scopes:
            call = survey.outermost(record.created.scope)
            if record.created.requires_grad:
                calls[call] = False
            elif record.created.switched_off:
                calls.setdefault(call, True)
    return {call for call, is_off in calls.items() if is_off}


def _rerun_modules(survey: Survey) -> set[str]:
    """Return modules that ran in backward, too: those of a checkpoint, whose forward has no graph."""
    scopes = (survey.scopes.get(record.created.scope) for record in survey.ops(*_DROPPING) if record.created.during[0])
    return {scope.name for scope in scopes if scope is not None}


def _under_no_grad(survey: Survey, record: NodeRecord) -> bool:
    """Return whether it follows operations under no_grad, and its result is not used for training."""
    timeline = survey.timeline
    earlier = (survey.nodes.get(node) for node in ancestors(timeline, record.node))
    beneath = any(one is not None and one.created.switched_off for one in earlier)
    users = (timeline.info(node) for node in timeline.nodes.users(record.node))
    return beneath and not any(user.created.requires_grad for user in users)


# A batch norm in evaluation mode with the statistics that it was made with: a copy of which only the parameters follow

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

    PyTorch's recording may meet it only after the pass, and has no earlier writes. Then it counts if a trained
    parameter has the same shape and the same place in its model.
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
    copied = pairing_loop(timeline, at, f"{model}.parameters()") or _copying_loop(survey, varied)
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
            return loop_over(timeline, at, "parameters", "named_parameters") or at
    return copying_loop(timeline, survey.at(record))  # PyTorch's recording has no writes to what it has not met yet


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
    """Return by node where the program set ``requires_grad``, and to what."""
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
    line = called_before(timeline, frames, "train") or next(called_lines(timeline, at, "train"), None)
    if line is not None:
        at = line
        if len(children) == 1 and (model := receiver(timeline, line, "train")):
            edit = after(timeline, line, f"{model}.{children.pop()}.eval()")
    fix = "eval() for the frozen part after each train() of the model"
    return Finding("frozen-statistics", text, record.seq, record.node, (part,), fix, at, suspected=True, edit=edit)


# What the text of the program says


def pairing_loop(timeline: Timeline, at: Frame | None, read: str) -> Frame | None:
    """Return the first loop whose head makes pairs with an expression: ``zip(copy.parameters(), net.parameters())``."""
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


def loop_over(timeline: Timeline, at: Frame | None, *names: str) -> Frame | None:
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


def copying_loop(timeline: Timeline, at: Frame | None) -> Frame | None:
    """Return the only loop over ``parameters()`` of the program that writes numbers to tensors, as an average does."""
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


def called_before(timeline: Timeline, frames: Sequence[Frame], *names: str) -> Frame | None:
    """Return the line that calls one of these functions last before a call stack, in a function of the stack.

    The innermost function that has such a line counts.
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
