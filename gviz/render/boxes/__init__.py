"""The boxes and lines of a graph, which do not depend on the moment, and their text at one moment.

Read first:

1. `graph_structure.py`: `structure`, the boxes and lines of one iteration, made once.
2. `folding.py`: `fold`, which nodes share a box because a module is collapsed or a block repeats.
   `collapse_choice.py` chooses the modules that a picture starts with collapsed.
3. `box_text.py`: the lines of text in the box of a node at one moment.

The walk of one node, ``y = relu(x)`` in a module that is expanded: `drawn_nodes` decides that the picture shows it.
`function_calls` finds the call in the source that created it, so its box can be called ``relu``, and `repeats` finds
blocks that repeat. `folding` gives the node a box of its own, `box_size` gives the box its size in characters, and
`edges` gives it its lines. At each moment, `box_content` says what the box shows: `box_text` writes its value and
gradient, `full_detail_rows` the rest, `node_states` the word for its state and a remark, and `collapsed_box` does the
same for collapsed modules. `edge_content` says what each line shows, and `gviz.render.scene` puts all of it together.
"""
