"""Every command of the debugger, declared in one table; each group of commands has a file with what they answer.

Read first: ``table.py`` (every command), ``gviz/tui/language/command.py`` (what a command may answer),
``inspection.py`` (a typical group).

The walk of ``last x.grad``: the parser finds the `Spec` of ``last`` in ``table.py``, whose ``run`` is
`Cursor.last_change`. The front end calls it with the session. It may take long, so it yields how far it is, and at the
end returns an `Arrival`. The front end shows that: ``screens/controller.py`` in the panels, ``line_mode.py`` as a
sentence.
"""
