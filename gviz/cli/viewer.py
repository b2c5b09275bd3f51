"""The command line in a process of its own, for a program that waits for it: it ends when that program ends."""

from __future__ import annotations

import sys

from gviz.cli import main as command_line
from gviz.system import processes


def main() -> None:
    """Run the command line for the process whose id comes before its arguments."""
    processes.end_with(int(sys.argv.pop(1)))
    command_line.main()
