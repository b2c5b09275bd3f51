"""Runs and records a program in a process of its own, as ``python`` would run it.

Where to start reading:

1. `recording_request.py`: what the recording process is asked to do, and how it is started.
2. `recording_process.py`: that process, from the first line of the program to the end of the interpreter.
3. `rank_recording.py`: the processes that the program starts itself.

How ``gviz record train.py`` works: the command line starts Python as it would without gviz (`recording_request.start`).
`start/sitecustomize.py` is the first thing that Python imports there, and calls `recording_process.begin`. It checks
the program's file (`target.py`), lets ``import torch`` mean the engine if needed (`torch_alias.py`), and starts a
recording. The interpreter then runs the program, without any frame of gviz below it (`traceback_without_gviz.py`).
`interpreter_exit.py` closes the trace.
"""
