"""Gradients that explode through the time steps of a recurrence, and that no line of the program clips.

Idea. A weight that is used in each of many time steps gets the sum of their gradients, and each step multiplies the
gradient by the weight once more. If the loss then grows until it is inf, a limit for the norm of the gradient is the
usual remedy: a smaller learning rate alone only delays it.

Example. A recurrent network with ReLU over 60 time steps, whose gradient has norm 260 in the first pass.

Limits. The weight must be used in ten time steps or more. A program that clips gradients somewhere is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from gviz.events import GradAccumulated, OptimizerStepped
from gviz.explain.backward_passes import row_text
from gviz.explain.display_names import label
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import MATRIX_PRODUCTS
from gviz.explain.program_text import arguments, called_lines, receiver
from gviz.explain.source_edit import before
from gviz.explain.source_frames import at_text, own_frame
from gviz.explain.tracking import ancestors
from gviz.trace.timeline import Timeline
from gviz.values.value_text import norm

CLIP = "torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)"
"""How the fix begins."""

_FEWEST_USES = 10
"""The uses of a weight in one graph from which on it is that of a recurrence."""

_LARGE = 100.0
"""The norm of a gradient from which on it is a reason."""

_VIEWS = frozenset({"t", "transpose", "permute"})


def exploding_recurrence(timeline: Timeline, node: int, n: int) -> Finding | None:
    """Return the fact that the gradient of a recurrent weight was large before event `n`, with the fix.

    `node` is the result that is too large. Its place is the step that uses the gradient.
    """
    behind = {node, *ancestors(timeline, node)}
    for leaf in sorted(behind):
        info = timeline.info(leaf)
        if info.created.kind == "op" or not info.created.requires_grad:
            continue
        uses = sum(1 for _ in _products(timeline, leaf, behind))
        if uses < _FEWEST_USES:
            continue
        events = [event for _, event in timeline.select((GradAccumulated,), 1, n) if event.node == leaf]
        norms = [size for event in events if (size := norm(event.part))]
        steps = [event for _, event in timeline.select((OptimizerStepped,), 1, n) if leaf in event.parameters]
        if not norms or not steps or max(norms) < _LARGE:
            continue
        frames = timeline.stack(steps[-1].stack)
        files = {frame.path: frame for frame in frames}.values()
        if any(True for file in files for _ in called_lines(timeline, file, "clip_grad_norm_", "clip_grad_value_")):
            return None
        at = own_frame(frames)
        step = f"the step{at_text(frames)} uses it unclipped"
        grew = f"the gradient of {label(timeline, leaf)} comes from {uses} time steps; {step}"
        optimizer = receiver(timeline, at, "step")
        fix = f"{CLIP} before {optimizer or 'optimizer'}.step(); else a smaller learning rate"
        parameters = f"[p for group in {optimizer}.param_groups for p in group['params']]"
        clip = f"torch.nn.utils.clip_grad_norm_({parameters}, max_norm=1.0)"
        edit = before(timeline, at, clip) if optimizer and not arguments(timeline, at, "step") else None
        return Finding("recurrence", f"{grew}: |g| {row_text(norms)}", n, leaf, fix=fix, at=at, edit=edit)
    return None


def _products(timeline: Timeline, leaf: int, behind: Collection[int]) -> Iterator[int]:
    """Yield the products with a weight, or with a view of it, among the nodes behind a result."""
    for user in timeline.nodes.users(leaf):
        op = timeline.info(user).op.base_name
        if user in behind and op in _VIEWS:
            yield from _products(timeline, user, behind)
        elif user in behind and op in MATRIX_PRODUCTS:
            yield user
