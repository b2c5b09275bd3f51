"""``torch.nn``: modules with parameters."""

from gviz.engine.nn import functional as functional
