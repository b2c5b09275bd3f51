"""A laid-out graph drawn with characters: a plain object that answers lines of ``(text, style name)`` runs."""

from gviz.render.cells.box import clipped
from gviz.render.cells.canvas import Canvas
from gviz.render.cells.look import EDGE_STATES, EDGE_STYLES, EdgeState, Face, Line, Look, Run

__all__ = ["EDGE_STATES", "EDGE_STYLES", "Canvas", "EdgeState", "Face", "Line", "Look", "Run", "clipped"]
