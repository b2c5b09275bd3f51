"""``torch.nn.functional``."""

# ruff: noqa: F403  # the namespace is what the modules declare in `__all__`

from __future__ import annotations

from gviz.engine.missing import lookup_in
from gviz.engine.nn.functional.activation import *
from gviz.engine.ops.loss import mse_loss as mse_loss
from gviz.engine.ops.matrix import linear as linear

__getattr__ = lookup_in(__name__)
