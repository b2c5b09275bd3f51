"""Why a program cannot become a static graph, and what to write instead.

Read `break_recorder` first (what is recorded while the program runs), then `breaks` (the places in the recording, each
once), then `rewrite` (what to write instead). `construct` finds the ``if``, loop or index at a place in the source,
`conversions` gives advice for values that leave the graph as Python objects, `tensor_code` writes expressions as tensor
code.

Example: ``if x.sum() > 0: y = a`` converts a tensor to a bool, so `BreakRecorder.read` records a warning with the call
stack. `breaks` finds it in the trace, `construct` finds the ``if`` around the expression in the recorded source, and
`advice` writes ``y = torch.where(x.sum() > 0, a, y)``. The source is read as a syntax tree and never run.
"""
