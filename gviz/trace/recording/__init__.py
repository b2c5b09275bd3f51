"""Records a program from within: what is recorded, from when to when, and what else is written to the trace.

`record.py` is the heart: `Recording` is the ``with`` block, `Kept` has its options, and `Window` limits it to a part of
the program. The block opens a writer (`gviz.trace.file.writer`) and an `emit.Channel` that passes events to it.
`output_capture.py` adds the program's output and warnings, and `source_text.py` the text of its files. `Recording`
reads the error that ends the block. At the end of the block the writer closes the file, with its index.
"""
