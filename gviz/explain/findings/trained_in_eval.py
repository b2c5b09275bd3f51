"""A model that is trained in evaluation mode: its dropout does nothing, its batch norm learns no statistics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from gviz.events import NodeCreated, OptimizerStepped, ScopeEntered
from gviz.explain.finding import Finding, Number
from gviz.explain.kind import Kind
from gviz.explain.names import innermost
from gviz.explain.survey import Made, Survey
from gviz.plain_text import shown

_FEWEST = 2
"""So many steps make a training where nothing was in training mode before."""

_NAMED = 3


@dataclass(slots=True)
class _Call:
    """A call of a model: the parameters that its graph has, and by name which of its modules were in training mode.

    `dropouts` are those of which that is seen by what they make: nothing is also made by one that drops nothing.
    """

    first: Made | None = None
    parameters: set[int] = field(default_factory=set)
    trains: dict[str, bool] = field(default_factory=dict)
    dropouts: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Seen:
    """What the steps of the optimizers up to now have shown; `active` says when a module was last in training mode."""

    active: dict[str, int] = field(default_factory=dict)
    steps: int = 0
    first: tuple[int, Made] | None = None
    names: list[str] = field(default_factory=list)


def found(survey: Survey) -> Iterator[Finding | None]:
    """The first step that trains a model of which no dropout and no batch norm that it steps is in training mode."""
    calls: dict[int, _Call] = {}
    seen = _Seen()
    for seq, event in survey.select(ScopeEntered, NodeCreated, OptimizerStepped):
        yield None
        match event:
            case ScopeEntered(kind=kind, name=name) if "Dropout" in kind:
                call = calls.setdefault(survey.outermost(event.scope), _Call())
                call.trains.setdefault(name, False)
                call.dropouts.add(name)
            case NodeCreated(kind="op", scope=scope, during=(0, _)) if scope in survey.scopes:
                call = calls.setdefault(survey.outermost(scope), _Call())
                _made(survey, call, survey.nodes[event.node])
            case OptimizerStepped(parameters=stepped):
                trained = [call for call in calls.values() if not call.parameters.isdisjoint(stepped)]
                _stepped(seen, seq, trained)
                calls.clear()
    if seen.first is not None and (seen.active or seen.steps >= _FEWEST):
        yield _finding(survey, seen, *seen.first)


def _made(survey: Survey, call: _Call, made: Made) -> None:
    """Note what a node says about the call that made it."""
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


def _stepped(seen: _Seen, seq: int, trained: list[_Call]) -> None:
    """Note in which mode the calls were that a step trains; one module in training mode says that all is meant so."""
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


def _finding(survey: Survey, seen: _Seen, seq: int, made: Made) -> Finding:
    times = f"{seen.steps} steps" if seen.steps > 1 else "a step"
    named = ", ".join(map(shown, seen.names[:_NAMED])) + ", …" * (len(seen.names) > _NAMED)
    text = f"{times} of the optimizer trained a model in evaluation mode: {named} worked as after eval()"
    last = max((n for n in seen.active.values() if n < seq), default=0)
    before = "up to this step it was in training mode" if last else "it was never in training mode"
    parts = (Finding("since", before, last),)
    fix = "model.train() before training, and again after each evaluation (leave it if statistics are to stay frozen)"
    at, numbers = innermost(survey.timeline.info(made.node)), (Number("steps", seen.steps),)
    return Finding("trained-in-eval", text, seq, made.node, parts, fix, at, numbers, suspected=True)


TRAINED_IN_EVAL = Kind(
    "trained-in-eval", "suspicion", "a model that is trained though all of its dropout and batch norm is in eval mode",
    find=found,
)  # fmt: skip
