"""``python -m gviz``, and the command ``gviz``."""

import signal
import sys


def main() -> None:
    """Import the command line, and run it; Ctrl+C meanwhile ends this process without a traceback of the imports."""
    interrupts = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interrupts:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from gviz.cli.main import main as run

    if interrupts:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # the folder it is called in: a numpy.py there is no module of gviz's
    main()
