"""``python -m gviz`` and the command ``gviz``."""

import signal
import sys


def main() -> None:
    """Import and run the command line. Ctrl+C during the import ends the process without a traceback."""
    interrupts = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interrupts:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from gviz.cli.main import main as run

    if interrupts:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # the current folder: a numpy.py there is not a module of gviz
    main()
