"""A separate program that draws graphs.

It reads DOT texts from standard input, with a NUL between them. It writes the pictures to standard output, each after a
line with its number of bytes. Graphviz's messages go to standard error.

It is started by path and imports nothing of gviz. Graphviz cannot be interrupted, so its caller needs a process to
kill.
"""

from __future__ import annotations

import sys

from pygraphviz import AGraph


def main(program: str, picture: str) -> None:
    """Draw with a layout program of Graphviz (``dot``, or ``nop2`` if the boxes have positions) in a format."""
    for text in sys.stdin.buffer.read().split(b"\0"):
        drawn = AGraph(string=text.decode("utf-8")).draw(format=picture, prog=program)
        sys.stdout.buffer.write(b"%d\n" % len(drawn) + drawn)


if __name__ == "__main__":
    main(*sys.argv[1:])
