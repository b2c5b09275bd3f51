"""The screens: the debugger, the pages over its panels, and what its keys do.

Every file builds on those before it. All of them know `SessionScreen`; only `DebuggerScreen` knows all of them.

    screen_layout.py        lays out the whole screen, twice if panels ask for it, before it paints
    session_screen.py       what panels follow, and what one part of the screen may request from another
    panel_stack.py          all panels, and which of them are in front
    prompt_control.py       the prompt, pasted text, questions, and keys that are typed ahead
    key_and_row_actions.py  keys that are not commands: views, breakpoints at a node or line, rows of lists
    overlay_pages.py        pages over the panels: texts, inspector, menu, list of iterations
    comparison_screen.py    the page that compares two graphs
    controller.py           the queue of commands, the background task, playing, and how answers are shown
    palette.py              the command palette
    debugger_screen.py      the screen with these parts: actions of keys, prompt and mouse
    live_screen.py          the same over a running program; tutor_screen.py with a lesson above it

Read first: ``session_screen.py``, ``controller.py``, ``debugger_screen.py``. The path of a key is in `gviz.tui`.
"""
