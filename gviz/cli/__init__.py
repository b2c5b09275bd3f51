"""The command line. `commands/` has one file for each command of ``gviz``.

Read first, in this order:

1. `main.py`: finds the command, runs it, and turns whatever ends it into lines and an exit code.
2. `program.py`: what a command does with SCRIPT and its arguments.
3. `recording_process.py`: the program in a process of its own, and the signals that it gets (`signals.py`).

The walk of ``gviz check train.py``: `main.py` imports `commands/check.py` alone, for start-up. Its options come from
`options.py` and `recording_options.py`, SCRIPT from `program.py`; `argument_order.py` knows whose each argument is.
`captured_run.py` runs the program with its output on stderr and opens the trace (`recordings.py`, which may be those of
several ranks). `findings.py` prints what was found, as text, `json_form.py` or `sarif.py`.

What writes to the terminal goes through `streams.py`: closed streams, broken pipes, progress that is renewed.
"""
