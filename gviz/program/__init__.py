"""A program, run and recorded in a process of its own, as ``python`` would run it.

Read first, in this order:

1. `order.py`: what the recording process is asked to do, and how it is started.
2. `child.py`: that process, from the first line of the program to the end of the interpreter.
3. `ranks.py`: the processes that the program starts itself.

The walk of ``gviz record train.py``: the command line starts Python as the program would be (`order.start`);
`start/sitecustomize.py` is the first thing that Python imports there, and calls `child.begin`. The program's file is
looked at (`target.py`), ``import torch`` may come to mean the engine (`torch_alias.py`), and a recording begins. The
interpreter runs the program, with no frame of gviz beneath it (`hidden_frames.py`); `program_end.py` closes the trace.
"""
