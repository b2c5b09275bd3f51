"""Thin widgets: reactives, size and clicks; what they show is made in `gviz.tui.drawing`."""
