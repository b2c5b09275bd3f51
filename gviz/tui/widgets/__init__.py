"""The panels and rows of the screen. They hold state, size and clicks; `gviz.tui.drawing` produces their text.

Read first: ``text_panel.py`` (how lines become cells, and which rows are painted), ``tape_panel.py`` (a panel of rows),
``graph_canvas.py`` (the panel that does not consist of lines).

The path of a new moment, in the tape: `SessionScreen` sets ``moment``, which is bound to ``Tape.moment``. Its watcher
requests a new frame. For each visible row `PaintedRows` calls ``paint``, which calls ``row``, and that
``gviz.tui.drawing.tape.row``; the line becomes a strip of cells. Only rows with a new strip are sent to the terminal. A
click goes the other way: the panel posts one of ``panel_messages.py``, and the screen acts.
"""
