"""The command line. `commands/` has one file for each command of ``gviz``.

Read first, in this order:

1. `main.py`: finds the command, runs it, and turns whatever ends it into lines and an exit code.
2. `program_run.py`: SCRIPT and its arguments become a recorded run in a process of its own, and its trace.
3. `recording_input.py`: the traces that a command reads, one or those of all ranks.

The walk of ``gviz check train.py``: `main.py` imports only `commands/check.py`, for start-up. Its options come from
`options.py` and `recording_options.py`; `argument_order.py` splits gviz's arguments from the script's. `program_run.py`
runs the program and passes the signals on (`signals.py`); `recording_input.py` keeps its output on stderr, opens
the trace, and refuses one that has nothing to report. `findings.py` prints the findings, as text, `json_form.py` or
`sarif.py`. What ``gviz show`` prints is in `recording_pages.py`.

What writes to the terminal goes through `streams.py`: closed streams, broken pipes, progress that is renewed.
"""
