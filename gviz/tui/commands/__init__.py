"""Every command of the debugger, declared in one table; each group of commands has a file with its functions.

Read first: ``command_table.py`` (every command), ``gviz/tui/language/command.py`` (the possible answers of a command),
``inspection.py`` (a typical group).

The path of ``last x.grad``: the parser finds the `Spec` of ``last`` in ``command_table.py``, whose ``run`` is
`Cursor.last_change`. The front end calls it with the session. It may be slow, so it yields its progress, and at the end
returns a `CursorStop`. The front end shows that: ``screens/controller.py`` in the panels, ``line_mode.py`` as a
sentence.
"""
