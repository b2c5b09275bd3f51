"""Two recordings, or two iterations of one, next to each other: what is equal, and what differs first.

Read `side` first (an iteration of a recording with its nodes, values and gradients), then `alignment` (which node of
one side is which of the other), then `comparison` (all differences, in order of time). `ranks` compares the processes
of one data-parallel run, `source_changes` the program texts; `tolerance` says when two numbers count as the same.

A walk: ``gviz diff a.gviz b.gviz`` makes a `Side` of the last iteration of each recording. `align` pairs their nodes:
``mul`` with ``mul``, and its second input ``w`` with ``w``. `compare` then yields for each pair what differs: that one
side lacks it, its inputs, arguments, dtype, shape and value, and at last the gradients.
`gviz.render.comparison_text` puts that into words.
"""
