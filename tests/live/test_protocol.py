"""What the two sides of a program under control say to each other."""

import socket
import threading

import pytest

from gviz.live.protocol import LARGEST_MESSAGE, Connection, Go, ResumeRequest


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, Connection(theirs)


def test_many_breakpoints_arrive(ends):
    end, other = ends
    go = Go(ResumeRequest("continue", stops=tuple(f"train.py:{line} if value.max() > 10" for line in range(40_000))), 3)
    sending = threading.Thread(target=Connection(end).send, args=(go,))
    sending.start()
    assert other.receive() == go
    sending.join()


@pytest.mark.parametrize("said", [(LARGEST_MESSAGE + 1).to_bytes(4, "big"), bytes(4), b"\0\0\0\2no"])
def test_what_is_no_message_is_the_end_of_the_other_side(ends, said):
    end, other = ends
    end.sendall(said)
    assert other.receive() is None
