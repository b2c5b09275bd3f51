"""The panels and rows of the screen: reactives, size and clicks; what they show is made in `gviz.tui.drawing`."""
