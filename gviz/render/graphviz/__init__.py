"""Scenes as diagrams: Graphviz source, layout and drawing."""
