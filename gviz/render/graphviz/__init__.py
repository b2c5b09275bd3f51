"""Scenes as diagrams: in the language of Graphviz, laid out and painted by it."""
