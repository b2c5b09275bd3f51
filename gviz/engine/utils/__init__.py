"""``torch.utils``."""

from __future__ import annotations

from gviz.engine.missing import lookup_in
from gviz.engine.utils import checkpoint as checkpoint
from gviz.engine.utils import data as data
from gviz.engine.utils import hooks as hooks

__getattr__ = lookup_in(__name__)
