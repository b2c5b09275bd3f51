"""Scenes as diagrams: Graphviz source, layout and drawing.

Read first:

1. `dot.py`: `digraph` writes a scene in Graphviz's language, and `box_label.py` one box of it.
2. `process.py`: runs Graphviz in a process with a time limit. gviz brings its own Graphviz.
3. `scene_drawing.py`: `drawn` returns the bytes of a picture, with the coordinates of gviz's own layout if Graphviz is
   too slow (`placement.py`).

`digraph.py` is what ``gviz.make_dot`` returns, and `svg_output.py` makes Graphviz's SVG smaller.
"""
