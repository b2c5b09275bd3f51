"""PyTorch in a process of its own: a random program may crash it (release 2.13 does crash on some)."""

import multiprocessing
from functools import cache


class Crashed(Exception):
    """PyTorch's process ended while it ran a program."""


class Reference:
    """Runs programs under PyTorch; starts anew after a crash."""

    def __init__(self):
        self._process = self._connection = None

    def run(self, program):
        """What the program showed, see `twin.run`. Crashed if PyTorch did not survive it."""
        if self._process is None or not self._process.is_alive():
            self._start()
        try:
            self._connection.send(program)
            return self._connection.recv()
        except (EOFError, ConnectionError, BrokenPipeError) as end:
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
    from twin import run

    torch.set_num_threads(1)
    while True:
        connection.send(run(connection.recv(), "torch"))
