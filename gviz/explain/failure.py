"""Why the program failed and what to try: who, where and the remedy beside PyTorch's own words."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gviz.events import BackwardStarted, Failed, NodeCreated, StorageWritten
from gviz.explain.names import made_at
from gviz.plain_text import shown
from gviz.trace.moment import Moment
from gviz.trace.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One failure. `cause` and `remedy` are empty for an error that is not about the graph.

    `related` are facts with the event at which they happened: ``("written by #7 at train.py:6", 13)``.
    """

    event: int
    error: str
    message: str
    node: int
    cause: str
    remedy: str
    related: tuple[tuple[str, int], ...]


_KNOWN: tuple[tuple[str, str, str], ...] = (
    (
        r"backward through the graph a second time",
        "an earlier backward() released what this graph had saved",
        "retain_graph=True in that backward(), or build the graph again",
    ),
    (
        r"modified by an inplace operation",
        "a tensor that backward needs was changed in place after it had been saved",
        "use the operation that makes a new tensor, or clone() before the change",
    ),
    (
        r"does not require grad and does not have a grad_fn",
        "backward was asked of a tensor that no tracked operation made",
        "requires_grad=True on an input; look for detach, no_grad, .data on the way",
    ),
    (
        r"implicitly created only for scalar outputs",
        "backward of a tensor with several elements needs a gradient to start from",
        "reduce it first (sum or mean), or pass gradient=",
    ),
    (
        r"leaf [Vv]ariable that requires grad .*in-place",
        "a leaf's own value would be lost to its gradient",
        "change it under torch.no_grad(), or work on a clone()",
    ),
    (
        r"a view of a leaf [Vv]ariable that requires grad .*in-place",
        "the leaf would change through its view",
        "take the view of a clone(), or change it under torch.no_grad()",
    ),
    (
        r"returned nan values",
        "a gradient became nan in this node's backward rule",
        "look at the values that went into the forward: a zero under a root or a division",
    ),
    (
        r"appears to not have been used in the graph|should be used in the graph",
        "there is no path from the output to this input",
        "check that it is used, or pass allow_unused=True",
    ),
    (
        r"must match the size of tensor|shapes? .*cannot be multiplied|[Mm]ismatch in shape|could not broadcast",
        "the shapes do not fit together",
        "compare the shapes of the inputs",
    ),
)


def diagnosis(timeline: Timeline, moment: Moment) -> Diagnosis | None:
    """The failure the moment stands at, or None."""
    if not isinstance(moment.event, Failed):
        return None
    failed = moment.event
    for pattern, cause, remedy in _KNOWN:
        if re.search(pattern, failed.message, re.DOTALL):
            return _diagnosis(moment.n, failed, cause, remedy, tuple(_related(timeline, moment, failed)))
    return _diagnosis(moment.n, failed, "", "", ())


def _diagnosis(n: int, failed: Failed, cause: str, remedy: str, related: tuple[tuple[str, int], ...]) -> Diagnosis:
    return Diagnosis(n, shown(failed.error), shown(failed.message, lines=True), failed.node, cause, remedy, related)


def _related(timeline: Timeline, moment: Moment, failed: Failed) -> list[tuple[str, int]]:
    """Earlier events that explain it: when the saved tensors were released, when the memory was written."""
    if not failed.node:
        return []
    found: list[tuple[str, int]] = []
    state = moment.state(failed.node)
    if state is not None and state.saved_freed:
        found.append((_released(timeline, state.saved_freed), state.saved_freed))
    if "inplace" in failed.message:
        info = timeline.info(failed.node)
        found += [(f"saved by #{info.node}{made_at(info.frames)}", info.born), *_writes(timeline, moment, failed.node)]
    return found


def _released(timeline: Timeline, seq: int) -> str:
    """Whose pass let the saved tensors go, and where that was called."""
    number = timeline.at(seq).pass_nr
    started = next(
        (timeline.event(phase.start) for phase in timeline.phases if number and phase.pass_nr == number), None
    )
    if not isinstance(started, BackwardStarted):
        return "released"
    which = "the first backward()" if number == 1 else f"backward pass {number}"
    return f"released by {which}{made_at(timeline.stack(started.stack))}"


def _writes(timeline: Timeline, moment: Moment, node: int) -> list[tuple[str, int]]:
    """The in-place writes to the node's inputs and output since it was made."""
    info = timeline.info(node)
    storages = {output.storage for output in info.created.outputs} | {
        timeline.info(source).created.outputs[output_nr].storage for source, output_nr in info.created.inputs if source
    }
    written = []
    for seq in range(info.born + 1, moment.n):
        event = timeline.event(seq)
        if isinstance(event, StorageWritten) and event.storage in storages:
            written.append((_written(timeline, event), seq))
        if len(written) >= 3 or (isinstance(event, NodeCreated) and seq - info.born > 100_000):
            break
    return written


def _written(timeline: Timeline, event: StorageWritten) -> str:
    return f"written by #{event.node}{made_at(timeline.info(event.node).frames)}" if event.node else "written"
