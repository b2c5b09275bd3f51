"""``python -m gviz``."""

from gviz.cli.main import main

if __name__ == "__main__":
    main()
