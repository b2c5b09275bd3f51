"""A laid-out graph drawn with characters: a plain object that returns lines of ``(text, style name)`` runs."""

from gviz.render.cells.box import EDGE_STATES, Appearance, Face
from gviz.render.cells.canvas import Canvas

__all__ = ["EDGE_STATES", "Appearance", "Canvas", "Face"]
