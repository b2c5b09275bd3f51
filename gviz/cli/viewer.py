"""The command line beside a program that waits for it: its end is this one's, also where somebody kills it."""

from __future__ import annotations

import sys

from gviz.cli import main as command_line
from gviz.system import processes


def main() -> None:
    """Run the command line for the process that is named before its arguments."""
    processes.end_with(int(sys.argv.pop(1)))
    command_line.main()
