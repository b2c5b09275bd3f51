"""PyTorch in a process of its own: a random program may crash it (release 2.13 does crash on some)."""

import contextlib
import multiprocessing
import pickle
from functools import cache

LONGEST = 60
"""Seconds after which a program that does not end counts as a crash."""


class Crashed(Exception):
    """PyTorch's process ended while it ran a program."""


class Reference:
    """Runs programs under PyTorch; starts anew after a crash."""

    def __init__(self):
        self._process = self._connection = None

    def run(self, program):
        """What the program showed, see `twin.run`. Crashed if PyTorch did not survive it."""
        self.ask("program", program)
        return self.answer()

    def ask(self, what, argument):
        """Begin with a "program" (its text), a "script" (the seed to write it from), or the "lines" of a script."""
        if self._process is None or not self._process.is_alive():
            self._start()
        self._connection.send((what, argument))

    def answer(self):
        """What `run`, `random_scripts.written` or `random_scripts.recorded` gives for what was asked."""
        try:
            if not self._connection.poll(LONGEST):
                self._process.kill()
            return self._connection.recv()
        except (EOFError, OSError, MemoryError, pickle.UnpicklingError) as end:  # it wrote over its own memory, too
            self._process.kill()
            self._process.join()
            raise Crashed(f"PyTorch's process ended with {self._process.exitcode}") from end

    def _start(self):
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()


@cache
def reference():
    """The one of this test process."""
    return Reference()


def _serve(connection):
    import torch
    from random_scripts import recorded, written
    from twin import run

    torch.set_num_threads(1)
    answers = {
        "program": lambda text: run(text, "torch"),
        "script": written,
        "lines": lambda lines: recorded(lines, "torch"),
    }
    with contextlib.suppress(EOFError):  # who asked has ended
        while True:
            what, argument = connection.recv()
            connection.send(answers[what](argument))
