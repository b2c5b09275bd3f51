"""A laid-out graph drawn with characters: a plain object that answers lines of ``(text, style name)`` runs."""

from gviz.render.cells.box import clipped
from gviz.render.cells.canvas import Canvas
from gviz.render.cells.look import EDGE_STATES, EDGE_STYLES, Appearance, EdgeState, Face, Line, Run

__all__ = ["EDGE_STATES", "EDGE_STYLES", "Appearance", "Canvas", "EdgeState", "Face", "Line", "Run", "clipped"]
