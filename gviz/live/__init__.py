"""A program under the debugger's control: paused between two of its events, and run on by steps.

Read first, in this order:

1. `protocol.py`: the messages between the debugger's process and the program's.
2. `gate.py`: decides in the program, event by event, whether it is held.
3. `program_control.py`: the debugger's end, with the states of the program.

The walk of a step: the debugger sends `Go` with a `Wish` (`ControlledProgram.go`); `debuggee.py` receives it in the
program and lets the gate open. Events pass the gate on their way to the trace until one fulfils the wish. Then the gate
holds all threads, the debuggee flushes the trace and sends `Held`, and the debugger reads on in the same file.

Breakpoints are looked at twice: `breakpoint_prefilter.py` says in the program, from `node_cache.py`, that an event
cannot be one; the debugger answers exactly, from the timeline. The program runs in the pty of `pseudo_terminal.py`.
"""
