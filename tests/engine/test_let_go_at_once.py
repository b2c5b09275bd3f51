"""Two threads that say at once what was let go."""

from collections import deque

import gviz.engine as torch
from gviz import emit
from gviz.events import Marked


class TakenByAnother(deque):
    """A queue of which another thread takes the only entry between the look into it and the taking."""

    def popleft(self):
        super().popleft()
        return super().popleft()


def test_what_another_thread_has_said_meanwhile_ends_no_program():
    said = []
    channel = emit.Channel(said.append)
    with emit.listening(channel):
        x = torch.ones(2, requires_grad=True)
        x * x  # let go at once
        assert len(channel._freed) == 1
        channel._freed = TakenByAnother(channel._freed)
        channel.emit(Marked("on"))
    assert isinstance(said[-1], Marked)
