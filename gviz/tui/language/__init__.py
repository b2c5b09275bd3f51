"""One line of text as a command: how it is read and completed, what it may answer, and where lines come from.

Read first: ``command.py`` (a command, its declaration, its answers), ``parser.py`` (one line; then the `Reader`, which
keeps the lines of scripts and breakpoints), ``completion.py``.

The walk of ``n- 3``: `Reader.typed` takes the line, `Reader.next` gives it to `parse`, which finds ``next`` in
``gviz/tui/commands/table.py``, turns it round because of the minus, and gives ``Command("reverse-next", 3)``.
"""
