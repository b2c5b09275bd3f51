"""The statements of a script, each carried out as it is written: leaves, operations, passes, what is compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gviz import events as e
from gviz.engine.identify import attributes_of
from gviz.errors import GvizError
from gviz.plain_text import clipped, file_line
from gviz.trace.state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values import Value
from gviz.whatif.agreement import agrees
from gviz.whatif.functions import ENGINE, operation_of
from gviz.whatif.literals import Literals
from gviz.whatif.tried import Tried
from gviz.whatif.wording import wordings


class Pass(NamedTuple):
    """A backward pass, the event it began with, and its last event, 0 if it is not over."""

    n: int
    event: e.BackwardStarted
    end: int


@dataclass(slots=True)
class Draft:
    """A script in progress: what its nodes are called, and how each of their results is written once it is there."""

    timeline: Timeline
    names: dict[int, str]
    literals: Literals
    tried: Tried = field(default_factory=Tried)
    results: dict[int, list[str]] = field(default_factory=dict)

    @property
    def exactly(self) -> bool:
        """Whether it must give the recorded bits: what recorded them is what runs it."""
        return self.timeline.framework == ENGINE

    def made(self, info: NodeInfo) -> None:
        """A node's statement has been carried out."""
        name = self.names[info.node]
        given = self.tried[name]
        several = isinstance(given, tuple | list)
        self.results[info.node] = [f"{name}[{nr}]" for nr in range(len(given))] if several else [name]


def add_leaf(draft: Draft, info: NodeInfo, n: int) -> None:
    """A leaf, a constant, or what autograd did not follow, as it was at moment `n`."""
    values = [draft.timeline.held(info.node, nr, n) for nr in range(len(info.created.outputs))]
    if dict(info.created.attrs).get("number"):
        draft.results[info.node] = [draft.literals.number(values[0], _called(info))]
        return
    grad = _has_gradient(info)
    written = [draft.literals.tensor(value, _called(info), requires_grad=grad) for value in values]
    text = written[0] if len(written) == 1 else f"({', '.join(written)})"
    draft.tried.assign(draft.names[info.node], text, _place(info))
    draft.made(info)


def add_operation(draft: Draft, info: NodeInfo) -> None:
    """An operation, in the first wording that gives what was recorded."""
    _require_recorded_operands(info)
    if info.created.during[0]:
        raise refusal(info, "a backward pass made it")
    found = operation_of(draft.timeline, info)
    if found is None:
        raise refusal(info, f"{info.op.name} is no operation of gviz's engine that runs on its own")
    op, created = found
    if any(nr >= len(draft.results[node]) for node, nr in created.inputs):
        raise refusal(info, "it uses a result that PyTorch gives to nobody")
    operands = [draft.results[node][nr] for node, nr in created.inputs]
    recorded = [None if one.value is None else draft.timeline.array(one.value) for one in created.outputs]
    for text in wordings(op, attributes_of(op, created.attrs), operands):
        made = draft.tried.result_or_none(text)
        if made is not None and agrees(made, recorded, exactly=draft.exactly):
            draft.tried.bind(draft.names[info.node], text, made, _place(info))
            draft.made(info)
            return
    raise refusal(info, f"there is no line of PyTorch for {info.op.name} that gives what was recorded")


def add_pass(draft: Draft, one: Pass, leaves: Iterable[NodeInfo]) -> None:
    """A pass, from the gradients that there were."""
    event = one.event
    if event.inputs or len(event.roots) != 1:
        info = draft.timeline.info(event.roots[0][0])
        raise refusal(info, "a pass was asked for some gradients, or began twice")
    draft.tried.lines.append("")
    for info in leaves:
        _set_gradient(draft, info, one.n)
    (root, nr), (seed,), of_what = event.roots[0], event.seeds, "a seed"
    given = [] if draft.literals.is_one(seed, of_what) else [draft.literals.tensor(seed, of_what)]
    given += ["create_graph=True"] if event.create_graph else ["retain_graph=True"] if event.retain_graph else []
    draft.tried.do(f"{draft.results[root][nr]}.backward({', '.join(given)})")


def add_comparison(draft: Draft, info: NodeInfo, passes: Sequence[Pass]) -> None:
    """Hold what a node gave, and the gradients after the last of the passes, against what was recorded."""
    results = draft.results[info.node] if is_run(info) else ()
    recorded = [(name, info, out.value) for name, out in zip(results, info.created.outputs, strict=False)]
    if passes and passes[-1].end:
        leaves = [*map(draft.timeline.info, draft.results)]
        grads = [(leaf, _gradient(draft.timeline, leaf, passes[-1].end)) for leaf in leaves]
        recorded += [(f"{draft.names[leaf.node]}.grad", leaf, grad) for leaf, grad in grads if grad is not None]
    said = [f'    same("{name}", {name}, {draft.literals.tensor(value, _called(of))}),' for name, of, value in recorded]
    draft.tried.lines.append("")
    draft.tried.do("\n".join(["results = [", *said, "]"]))
    for line, fits in zip(draft.tried.said, draft.tried["results"], strict=True):
        rounded = draft.exactly and not line.endswith(" is as recorded")  # here 0 but for rounding is rounded the same
        if not fits or rounded:
            raise refusal(info, f"run again, {clipped(line, 200)}")


def is_run(info: NodeInfo) -> bool:
    """Whether it is an operation that matters to a gradient; all else is taken as the number it was."""
    return info.created.kind == "op" and info.created.requires_grad and not info.created.untracked


def refusal(info: NodeInfo, why: str) -> GvizError:
    """The error for a node that cannot be written so that it gives the same."""
    return GvizError(f"no script gives {_called(info)} again", why=why, exit_code=2)


def _require_recorded_operands(info: NodeInfo) -> None:
    """Raise GvizError for an operand of which the recording says nothing."""
    for nr, (source, _) in enumerate(info.created.inputs):
        if not source:
            which = info.op.slots[nr] if nr < len(info.op.slots) else nr
            why = f"its operand {which} was not recorded: it was made inside of an operation, or is a number"
            raise refusal(info, why)


def _set_gradient(draft: Draft, leaf: NodeInfo, n: int) -> None:
    """Let a leaf have the gradient that it had at that moment."""
    grad, name = _gradient(draft.timeline, leaf, n), draft.names[leaf.node]
    if grad is not None:
        draft.tried.do(f"{name}.grad = {draft.literals.tensor(grad, _called(leaf))}")
    elif leaf.created.requires_grad and draft.tried[name].grad is not None:
        draft.tried.do(f"{name}.grad = None")


def _gradient(timeline: Timeline, leaf: NodeInfo, n: int) -> Value | None:
    """The ``.grad`` of a leaf at a moment."""
    state = timeline.at(n).state(leaf.node)
    return state.outputs[0].grad if state is not None and _has_gradient(leaf) else None


def _has_gradient(info: NodeInfo) -> bool:
    return info.created.kind != "op" and info.created.requires_grad


def _called(info: NodeInfo) -> str:
    return f"#{info.node} {clipped(info.title, 40)}"


def _place(info: NodeInfo) -> str:
    return file_line(info.frames[0].path, info.frames[0].line) if info.frames else ""
