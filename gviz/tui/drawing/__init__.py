"""What the panels show, as lines of styled text: pure functions without widgets, for screen and line mode.

Read first: ``gviz/tui/styled_lines.py`` (what a line is), ``tape.py`` (one row per node), ``node_details.py``
(everything about one node).

The path of a number: `gviz.explain.node_facts` returns what is known about a node at a moment, as facts.
``node_details.py`` turns each fact into a line of spans, ``("-6", "grad@12")``: a text, and a style that links to event
12. The screen colours the style by the theme and makes the text a link; line mode prints the text.
"""
