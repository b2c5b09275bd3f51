"""``torch.utils``: checkpoints, data loaders, handles of hooks."""

from __future__ import annotations

import sys

from gviz.engine.unsupported_names import lookup_in
from gviz.engine.utils import checkpoint as checkpoint
from gviz.engine.utils import data as data
from gviz.engine.utils import hooks as hooks

sys.modules[f"{__name__}.recomputation"] = checkpoint  # where pickles of older versions find the classes

__getattr__ = lookup_in(__name__)
