"""A program under the debugger's control: paused between two of its events, and run in steps.

Where to start reading:

1. `protocol.py`: the messages between the debugger's process and the program's.
2. `gate.py`: decides in the program, event by event, whether to pause it.
3. `debuggee.py` is the program's side of a session, `debugger_side.py` the debugger's, with the states of the program.

How a step works: the debugger sends `Go` with a `ResumeRequest` (`ControlledProgram.go`). `debuggee.py` receives it in
the program and opens the gate. Events pass through the gate to the trace until one fulfils the request. Then the gate
stops all threads, the debuggee flushes the trace and sends `Paused`, and the debugger continues to read the same file.

Breakpoints are checked twice: `breakpoint_prefilter.py` rules out events in the program, using `node_cache.py`; the
debugger then decides exactly, using the timeline. The program runs in the pty of `pseudo_terminal.py`.
"""
