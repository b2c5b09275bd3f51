"""Modules in the wrong mode: trained in evaluation mode, or dropout that is active in an evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from gviz.events import NodeCreated, OptimizerStepped, ScopeEntered
from gviz.explain.display_names import label, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.operation_sets import DROPOUTS
from gviz.explain.program_text import (
    called_lines,
    line_text,
    method_self,
)
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import keyword_if_training, with_keyword
from gviz.explain.source_frames import at_text, innermost
from gviz.explain.tracking import ancestors
from gviz.values.plain_text import shown

_FEWEST = 2
"""The fewest steps that count as training if nothing was in training mode before."""

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
        if scope is None or record.created.requires_grad or scope.name in repeated:
            continue
        is_module = "Dropout" in scope.kind
        is_attention = record.op == _ATTENTION or timeline.op(record.created.op).call == _ATTENTION
        is_function = not is_module and record.op in DROPOUTS and attrs.get("training", True) and attrs.get("p")
        is_function = is_function or (record.op == _ATTENTION and attrs.get("dropout_p"))
        if not (is_module or is_function):
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
