"""``torch.nn.functional``."""

from __future__ import annotations

from gviz.engine.ops.loss import mse_loss as mse_loss
from gviz.engine.ops.matrix import linear as linear
