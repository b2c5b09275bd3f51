"""One line of text as a command: its parser, its completions, its possible answers, and where lines come from.

Read first: ``command.py`` (a command, its declaration, its answers), ``parser.py`` (one line; then the `Reader`, which
keeps the lines of scripts and breakpoints), ``completion.py``.

The path of ``n- 3``: `Reader.typed` takes the line. `Reader.next` passes it to `parse`, which finds ``next`` in
``gviz/tui/commands/command_table.py``, reverses it because of the minus, and returns ``Command("reverse-next", 3)``.
"""
