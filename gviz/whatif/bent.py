"""Whether a recorded node has second derivatives: what its rule is to send changes with its inputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gviz import emit
from gviz.trace.timeline import Timeline
from gviz.whatif.differences import moved_at

_FAR, _STEP = 0.1, 1e-6
_MOST = 16
"""Elements of each input that are looked at."""

_CLOSE = 1e-3


def is_bent(timeline: Timeline, node: int) -> bool:
    """Whether the gradients of the inputs that require one are others where those hold other numbers.

    GvizError for a node that no pass went through, whose numbers were not stored, or that cannot be run on its own.
    """
    operation, _ = moved_at(timeline, node, len(timeline))
    edges, arrays = operation.info.created.inputs, list(operation.arrays)
    slots = [slot for slot, edge in enumerate(edges) if edge[0] and timeline.info(edge[0]).created.requires_grad]
    slots = [slot for slot in slots if arrays[slot].dtype.kind == "f" and np.isfinite(arrays[slot]).all()]
    for slot in slots:
        arrays[slot] = arrays[slot] + _FAR * (1 + np.abs(arrays[slot]))
    elsewhere = replace(operation, arrays=arrays)
    with emit.silence():
        for slot in slots:
            places = range(min(arrays[slot].size, _MOST))
            here, there = (each.slopes([slot], places, _STEP).mean(axis=1) for each in (operation, elsewhere))
            size = max(np.abs(here).max(initial=0.0), np.abs(there).max(initial=0.0))
            if not np.allclose(here, there, rtol=0, atol=_CLOSE * size, equal_nan=True):
                return True
    return False
