"""Traces: a recording as an ordered list of events in one file, and the state of the graph at any moment of it.

Read first, in this order:

1. `gviz.events`: the vocabulary. One event is one fact: a node was made, a contribution arrived.
2. `timeline.py`: the question to ask of a trace. ``Timeline.at(n)`` is the state after the first `n` events.
3. `index/columns.py`: how ``at(n)`` is answered without replaying: what each event changes, as sorted columns.

The walk of one event, ``NodeCreated`` of ``y = x * x``: the engine gives it to a `gviz.emit.Channel`; the recording
(`recording/record.py`) passes it to the writer (`file/writer.py`), which packs it with others into a row of the SQLite
file. A reader (`file/reader.py`) finds the row again, `codec.py` unpacks and checks it, the index adds it to its
columns, and a front end asks the timeline for the node: its value then, its gradient, its state in the backward pass.

Besides: `iterations.py` and `phases.py` divide a recording in time; `naming/` finds what the program calls its results;
`navigation.py`, `stops.py`, `places.py` serve those who move through it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gviz.trace.timeline import Timeline


def load(path: str | os.PathLike[str]) -> Timeline:
    """Open a trace, to be asked about any moment of it.

    Raises GvizError if it cannot be read. The file stays open as long as the timeline is used.
    """
    from gviz.trace.file.reader import open_trace
    from gviz.trace.timeline import Timeline

    return Timeline(open_trace(path))
