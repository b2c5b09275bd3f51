"""From a moment to something a person can see: scene, layout, and the renderers.

Read first, in this order:

1. `scene`: a moment made drawable, as boxes, lines and words without colours or coordinates.
2. `boxes.node_rows`: what stands in the box of a node.
3. `exporters`: the table of formats; each one draws a scene, or several, in a file of `forms`.

The walk of one node, from the trace to an SVG:

* `request` reads which moments, and which part of the graph, the user wants to see.
* `boxes` decides which nodes get a box of their own: it folds repeats, collapses modules and leaves out what was not
  asked for (`boxes.fold`, `boxes.modules`, `boxes.selection`). It depends on the iteration, not on the moment, so a box
  does not move from step to step.
* `scene` dresses that structure for one moment: the node's value and gradient become rows, its state a style.
* `graphviz.dot` writes the scene in Graphviz's language, and `graphviz.picture` has it drawn. A graph that Graphviz
  cannot lay out in time gets the coordinates of `layout` (`graphviz.placement`).
* `forms.svg` makes the file; `theme` and `styles` have given each style its colours.

A terminal takes another way from the same scene: `layout` places the boxes on a grid of characters, and `cells` paints
them. `page` writes an HTML page that steps through the moments of a recording.
"""
