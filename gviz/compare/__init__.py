"""Compares two recordings, or two iterations of one: what is equal, and what differs first.

Read `compared_iteration` first (an iteration of a recording with its nodes, values and gradients), then `alignment`
(which node of one side corresponds to which of the other), then `recording_comparison` (all differences, in order of
time). `ranks` compares the processes of one data-parallel run, `source_changes` the program texts. `tolerance` decides
when two numbers are equal.

Example: ``gviz diff a.gviz b.gviz`` makes a `Side` of the last iteration of each recording. `align` pairs their nodes:
``mul`` with ``mul``, and its second input ``w`` with ``w``. `compare` then yields what differs for each pair: a missing
node, its inputs, arguments, dtype, shape and value, and finally the gradients. `gviz.render.comparison_table` turns
that into text.
"""
