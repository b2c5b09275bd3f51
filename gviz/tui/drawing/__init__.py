"""What the panels show, as lines of styled text: pure functions that know no widget, for screen and line mode.

Read first: ``gviz/tui/lines.py`` (what a line is), ``tape.py`` (one row per node), ``node_details.py`` (everything
about one node).

The walk of a number: `gviz.explain.panel` gives what is known of a node at a moment, as facts. ``node_details.py``
writes each fact as a line of spans, ``("-6", "grad@12")``: a text, and a style that leads to the event 12. The screen
gives the style a colour of the theme and makes the text a link; line mode prints the text.
"""
