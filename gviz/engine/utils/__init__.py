"""``torch.utils``: checkpoints, data loaders, hook handles."""

from __future__ import annotations

import sys

from gviz.engine.unsupported_names import lookup_in
from gviz.engine.utils import checkpoint as checkpoint
from gviz.engine.utils import data as data
from gviz.engine.utils import hooks as hooks

sys.modules[f"{__name__}.recomputation"] = checkpoint  # pickles of older versions look for the classes there

__getattr__ = lookup_in(__name__)
