"""Training in evaluation mode, and evaluation in training mode."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from gviz.events import DataSet, NodeCreated, OptimizerStepped, ScopeEntered, StorageWritten
from gviz.explain.display_names import innermost, label, label_at, titled
from gviz.explain.edit import method_self, pairing_loop, with_keyword
from gviz.explain.finding import Finding, Number
from gviz.explain.operation_sets import DROPOUTS
from gviz.explain.recording_overview import Made, Survey
from gviz.explain.tracking import ancestors
from gviz.values.plain_text import shown
from gviz.values.value import Value

_FEWEST = 2
"""The fewest steps that count as training if nothing was in training mode before."""

_NAMED = 3


@dataclass(slots=True)
class _ModelCall:
    """A call of a model: the parameters in its graph, and by name which of its modules were in training mode.

    `dropouts` are its dropout modules. They count as in training mode if they made a node; one with p = 0 makes none.
    """

    first: Made | None = None
    parameters: set[int] = field(default_factory=set)
    trains: dict[str, bool] = field(default_factory=dict)
    dropouts: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Training:
    """The results of the optimizer steps so far; `active` is the last step of each module in training mode."""

    active: dict[str, int] = field(default_factory=dict)
    steps: int = 0
    first: tuple[int, Made] | None = None
    names: list[str] = field(default_factory=list)


def trained_in_eval(survey: Survey) -> Iterator[Finding | None]:
    """Yield the first step that trains a model while none of its dropout and batch norm modules is in training mode."""
    calls: dict[int, _ModelCall] = {}
    seen = _Training()
    for seq, event in survey.select(ScopeEntered, NodeCreated, OptimizerStepped):
        yield None
        match event:
            case ScopeEntered(kind=kind, name=name) if "Dropout" in kind:
                call = calls.setdefault(survey.outermost(event.scope), _ModelCall())
                call.trains.setdefault(name, False)
                call.dropouts.add(name)
            case NodeCreated(kind="op", scope=scope, during=(0, _)) if scope in survey.scopes:
                call = calls.setdefault(survey.outermost(scope), _ModelCall())
                _made(survey, call, survey.nodes[event.node])
            case OptimizerStepped(parameters=stepped):
                trained = [call for call in calls.values() if not call.parameters.isdisjoint(stepped)]
                _stepped(seen, seq, trained)
                calls.clear()
    if seen.first is not None and (seen.active or seen.steps >= _FEWEST):
        yield _eval_finding(survey, seen, *seen.first)


def _made(survey: Survey, call: _ModelCall, made: Made) -> None:
    """Record the model call that made a node."""
    scope, attrs = survey.scopes[made.created.scope], dict(made.created.attrs)
    if not made.created.requires_grad:
        return  # an evaluation, or a part that is not trained
    own = {node for node, _ in made.created.inputs if node in survey.optimized}
    call.first = call.first or made
    call.parameters |= own
    if scope.name in call.dropouts:
        call.trains[scope.name] = True
    elif made.op.endswith("batch_norm") and "training" in attrs and own:
        call.trains[scope.name] = bool(attrs["training"])


def _stepped(seen: _Training, seq: int, trained: list[_ModelCall]) -> None:
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


def _eval_finding(survey: Survey, seen: _Training, seq: int, made: Made) -> Finding:
    times = f"{seen.steps} steps" if seen.steps > 1 else "a step"
    named = ", ".join(map(shown, seen.names[:_NAMED])) + ", …" * (len(seen.names) > _NAMED)
    text = f"{times} of the optimizer trained a model in evaluation mode"
    last = max((n for n in seen.active.values() if n < seq), default=0)
    before = "up to this step it was in training mode" if last else "it was never in training mode"
    parts = (Finding("since", f"{named} worked as after eval(); {before}", last),)
    fix = "model.train() before training, and again after each evaluation (leave it if statistics are to stay frozen)"
    at, numbers = innermost(survey.timeline.info(made.node)), (Number("steps", seen.steps),)
    return Finding("trained-in-eval", text, seq, made.node, parts, fix, at, numbers, suspected=True)


# Dropout that is active under no_grad: most likely an evaluation without eval()

_DROPPING = (*DROPOUTS, "mul")  # a dropout of the program's own may be a mul


def dropout_in_evaluation(survey: Survey) -> Iterator[Finding]:
    """Yield dropout that drops elements under no_grad: of a dropout module in training mode, or of a function.

    ``eval()`` turns off the module, but not the function: `F.dropout` drops unless it gets ``training=False``.
    """
    timeline, repeated, without_grad = survey.timeline, _made_again(survey), _calls_without_grad(survey)
    for made in survey.ops(*_DROPPING):
        scope, attrs = survey.scopes.get(made.created.scope), dict(made.created.attrs)
        is_module = scope is not None and "Dropout" in scope.kind
        is_function = not is_module and made.op in DROPOUTS and attrs.get("training", True) and attrs.get("p")
        if scope is None or made.created.requires_grad or scope.name in repeated or not (is_module or is_function):
            continue
        if made.created.switched_off or _under_no_grad(survey, made) or survey.outermost(scope.scope) in without_grad:
            text = titled("dropout is active at {} in a forward under no_grad", label(timeline, made.node))
            fix = "model.eval() before evaluating, model.train() after (leave it if the randomness is wanted)"
            if is_function:
                fix = "dropout(x, p, training=self.training), which eval() turns off, or an nn.Dropout module"
            at, edit = innermost(timeline.info(made.node)), None
            if is_function and (own := method_self(timeline, at)):
                edit = with_keyword(timeline, at, made.op, "training", f"{own}.training")
            yield Finding("dropout-in-evaluation", text, made.seq, made.node, (), fix, at, suspected=True, edit=edit)


def _calls_without_grad(survey: Survey) -> set[int]:
    """Return the outermost calls of models that ran under no_grad: nothing in them is tracked."""
    found: dict[int, bool] = {}
    for made in survey.nodes.values():
        if made.created.kind == "op" and made.created.scope in survey.scopes:
            call = survey.outermost(made.created.scope)
            if made.created.requires_grad:
                found[call] = False
            elif made.created.switched_off:
                found.setdefault(call, True)
    return {call for call, is_off in found.items() if is_off}


def _made_again(survey: Survey) -> set[str]:
    """Return modules that ran in backward, too: those of a checkpoint, whose forward has no graph."""
    scopes = (survey.scopes.get(made.created.scope) for made in survey.ops(*_DROPPING) if made.created.during[0])
    return {scope.name for scope in scopes if scope is not None}


def _under_no_grad(survey: Survey, made: Made) -> bool:
    """Return whether it follows operations under no_grad, and its result is not used for training."""
    timeline = survey.timeline
    earlier = (survey.nodes.get(node) for node in ancestors(timeline, made.node))
    beneath = any(one is not None and one.created.switched_off for one in earlier)
    users = (timeline.info(node) for node in timeline.nodes.users(made.node))
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
    for made in survey.ops(*_NORMS):
        yield None
        names = {timeline.info(node).name: node for node, _ in made.created.inputs if node}
        mean = next((name for name in names if name.endswith("running_mean")), "")
        variance = next((name for name in names if name.endswith("running_var")), "")
        if not mean or not variance or mean in seen or dict(made.created.attrs).get("training", True):
            continue
        others = [node for name, node in names.items() if name not in (mean, variance)]
        own = [node for node in others if timeline.info(node).created.kind == "parameter"]
        if not (_is_all(survey, names[mean], made.seq, 0) and _is_all(survey, names[variance], made.seq, 1)):
            continue
        varied = next((node for node in own if not _is_uniform(timeline.memory_value(node, 0, made.seq))), 0)
        if varied and survey.optimized.isdisjoint(own) and _follows_training(survey, varied, made.seq):
            seen.add(mean)
            yield _initial_finding(survey, made, names[mean], varied)


def _follows_training(survey: Survey, node: int, end: int) -> bool:
    """Return whether a parameter is written to, or gets other data, between the first backward pass and an event.

    PyTorch's recording may meet it only after the pass, and has no earlier writes. Then it counts if a trained
    parameter has the same shape and the same place in its model.
    """
    timeline, made, start = survey.timeline, survey.nodes[node], survey.passes[0][0]
    if made.seq > start:
        trained = (survey.nodes[one] for one in survey.optimized if one in survey.nodes)
        place = timeline.info(node).name.split(".")[-2:]
        same = (one for one in trained if one.shape == made.shape)
        return any(timeline.info(one.node).name.split(".")[-2:] == place for one in same)
    storages = {output.storage for output in made.created.outputs}
    written = any(event.storage in storages for _, event in timeline.select((StorageWritten,), start, end))
    return written or any(event.node == node for _, event in timeline.select((DataSet,), start, end))


def _is_all(survey: Survey, node: int, n: int, element: float) -> bool:
    value = survey.timeline.memory_value(node, 0, n)
    stats = value.statistics() if value is not None else None
    return stats is not None and stats.min == stats.max == element


def _is_uniform(value: Value | None) -> bool:
    stats = value.statistics() if value is not None else None
    return stats is None or stats.min == stats.max


def _initial_finding(survey: Survey, made: Made, mean: int, varied: int) -> Finding:
    timeline, at = survey.timeline, innermost(survey.timeline.info(made.node))
    text = titled("{} is 0 as at the start, but {} is trained", label(timeline, mean), label(timeline, varied))
    now = f"{label_at(timeline, made.node)} normalizes with a mean of 0 and a variance of 1"
    part = Finding("used", now, made.seq, made.node, at=at)
    model = timeline.info(varied).name.split(".")[0]
    copied = pairing_loop(timeline, at, f"{model}.parameters()")
    fix = "copy the buffers, too, which parameters() leaves out: zip(copy.buffers(), net.buffers()), then a.copy_(b)"
    return Finding("initial-statistics", text, made.seq, mean, (part,), fix, copied or at)
