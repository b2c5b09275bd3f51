"""``python -m benchmarks.answers [torch|builtin] [NAME...]``: what a check answers for each program."""

import sys

from benchmarks.answers import main

main(sys.argv[1:])
