"""``python -m gviz``."""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # the folder it is called in: a numpy.py there is no module of gviz's
    from gviz.cli.main import main

    main()
