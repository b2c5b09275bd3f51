"""A laid-out graph drawn with characters: a plain object that answers lines of ``(text, style name)`` runs."""

from gviz.render.cells.canvas import Canvas
from gviz.render.cells.look import EDGE_STATES, Appearance, Face

__all__ = ["EDGE_STATES", "Appearance", "Canvas", "Face"]
