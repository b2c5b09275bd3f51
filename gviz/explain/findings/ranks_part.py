"""Ranks of one training run that are none any more; it takes the recordings of two to find it."""

from __future__ import annotations

from gviz.explain.kind import Kind

RANKS_PART = Kind(
    "ranks-part",
    "warning",
    "a rank in a folder of them that stops agreeing in parameters, gradients used, buffers, graph, or what it ran",
)
