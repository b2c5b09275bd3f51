"""The functions that a program calls: each public name of `gviz` is defined here, and nothing below imports it.

A file per function: `make_dot.py`, `export.py` with `export_options.py`, `show.py`, `questions.py` (`why`, `check`) and
`debug.py` (`breakpoint`, `post_mortem`). They share `drawable.py`, which turns what a user passes (a trace, a tensor, a
module with inputs, a script) into a timeline and a moment; `module_recording.py` calls a module for it.
"""
