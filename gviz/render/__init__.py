"""Renderers: from one moment of a trace to a picture that a person sees.

Read first, in this order:

1. `scene`: the drawable form of a moment: boxes, lines and words without colours or coordinates.
2. `boxes.box_content`: what a box says at a moment.
3. `file_formats`: the table of formats. Each format has a file in `forms`, which draws one or more scenes.

The walk of one node, from the trace to an SVG:

* `picture_request` reads which moments, and which part of the graph, the user wants to see.
* `boxes` decides which nodes get a box of their own: it folds repeats, collapses modules and leaves out the parts that
  the user did not request (`boxes.folding`, `boxes.collapse_choice`, `boxes.drawn_nodes`). The boxes depend on the
  iteration, not on the moment, so a box does not move from step to step.
* `scene` dresses that structure for one moment: the node's value and gradient become rows, its state becomes a style
  (`boxes.box_content`, `boxes.edge_content`).
* `graphviz.dot` writes the scene in Graphviz's language, and `graphviz.scene_drawing` runs Graphviz. A graph that
  Graphviz cannot lay out in time gets the coordinates of `layout` (`graphviz.coordinates`).
* `forms.svg` makes the file; `theme` and `styles` give each style its colours.

The terminal draws the same scene differently: `layout` places the boxes on a grid of characters, and `cells` paints
them. `page` writes an HTML page that steps through the moments of a recording.
"""
