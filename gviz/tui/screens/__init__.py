"""The screens: the debugger, the pages over its panels, and what its keys do.

Every file builds on those before it; all know `SessionScreen`, and only `DebuggerScreen` knows all.

    session_screen.py       what panels follow, the size, and what one part of the screen may ask of another
    panels.py               all panels, and which of them are in front
    prompts.py              the prompt, questions, and keys that are typed ahead
    key_actions.py          keys that are no command: views, breakpoints at a node or line, rows of lists
    pages.py                pages over the panels: texts, inspector, menu, list of iterations
    comparison_screen.py    the page that compares two graphs
    controller.py           the queue of commands, the background task, playing, and what an answer leads to
    graph_reading.py        the graph of a large iteration, read while keys act
    palette.py              the command palette
    debugger_screen.py      the screen that has these parts: actions of keys, prompt and mouse
    live_screen.py          the same over a program that runs; tutor_screen.py with a lesson above it

Read first: ``session_screen.py``, ``controller.py``, ``debugger_screen.py``. The walk of a key is in `gviz.tui`.
"""
