"""The first lines of the recording process: run as a file, so that every frame above the program's is gviz's own."""

import os.path
import sys

if not sys.flags.safe_path:
    del sys.path[0]  # this folder; the program's own comes in its place
root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, root)

import gviz.program  # noqa: E402, F401  # this one, also where another one stands earlier on the path

del sys.path[0]
if root not in sys.path:
    sys.path.append(root)

from gviz.program.child import main  # noqa: E402  # only now can it be found

main()
