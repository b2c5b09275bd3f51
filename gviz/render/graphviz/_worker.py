"""A program of its own that draws graphs: DOT texts on standard input with a NUL between them, the pictures on standard
output, each after a line that says how many bytes it has.

Started by path, with nothing of gviz imported, because Graphviz cannot be interrupted: whoever waits for it needs a
process to kill. What Graphviz has to say goes to standard error.
"""

from __future__ import annotations

import sys

from pygraphviz import AGraph


def main(program: str, picture: str) -> None:
    """Draw with a layout program of Graphviz (``dot``, or ``nop2`` where the boxes have positions) in a format."""
    for text in sys.stdin.buffer.read().split(b"\0"):
        drawn = AGraph(string=text.decode("utf-8")).draw(format=picture, prog=program)
        sys.stdout.buffer.write(b"%d\n" % len(drawn) + drawn)


if __name__ == "__main__":
    main(*sys.argv[1:])
