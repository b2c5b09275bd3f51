"""Scenes as diagrams: Graphviz source, layout and drawing.

Read first:

1. `dot.py`: `digraph` writes a scene in Graphviz's language, and `box_label.py` one box of it.
2. `process.py`: runs Graphviz in a process with a time limit. gviz brings its own Graphviz.
3. `scene_drawing.py`: `drawn` returns the bytes of a picture, with the coordinates of gviz's own layout if Graphviz is
   too slow (`coordinates.py`).

`parallel_lines.py` keeps the arrows of data and of its gradient next to each other, and `frame_titles.py` the titles
of frames away from them; `_worker.py` calls both, in the process of Graphviz. `direction_and_spacing.py` fits a diagram
to a screen or slide, and `spine.py` has its straight lines.
`figure_detail.py` finds out with how much detail the text of a figure can be read (`figure_size.py`). A long or
narrow graph is folded into columns: `column_choice.py` decides whether and into how many, `column_division.py` divides
the boxes by their levels, `column_layout.py` places them, and `column_lines.py` routes the lines
between them, whose points are in `spline.py`. `digraph.py` is what ``gviz.make_dot`` returns, and `svg_output.py` makes
Graphviz's SVG smaller.
"""
