"""gviz: an interactive computation-graph visualizer and debugger."""

__version__ = "0.1.0"
