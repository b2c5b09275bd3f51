"""A program of its own that draws one graph: DOT on standard input, the picture on standard output.

Started by path, with nothing of gviz imported, because Graphviz cannot be interrupted: whoever waits for it needs a
process to kill. What Graphviz has to say goes to standard error.
"""

from __future__ import annotations

import sys

from pygraphviz import AGraph


def main(program: str, picture: str) -> None:
    """Draw with a layout program of Graphviz (``dot``, or ``nop2`` where the boxes have positions) in a format."""
    graph = AGraph(string=sys.stdin.buffer.read().decode("utf-8"))
    sys.stdout.buffer.write(graph.draw(format=picture, prog=program))


if __name__ == "__main__":
    main(*sys.argv[1:])
