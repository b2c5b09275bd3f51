"""Traces: a recording as an ordered list of events in one file, and the state of the graph at any moment of it.

Where to start reading:

1. `gviz.events` is the vocabulary. One event is one fact: a node was created, a contribution arrived.
2. `timeline.py` is the main interface. ``Timeline.at(n)`` is the state after the first `n` events.
3. `index/search_index.py` shows how ``at(n)`` avoids a replay: it stores what each event changes in sorted columns.

The path of one event, the ``NodeCreated`` of ``y = x * x``: the engine sends it to a `gviz.emit.Channel`. The recording
(`recording/record.py`) passes it to the writer (`file/writer.py`), which packs it with other events into a row of the
SQLite file. A reader (`file/reader.py`) fetches the row, `codec.py` decodes and checks it, and the index adds it to its
columns. A front end then asks the timeline for the node's value, gradient and state in the backward pass.

`iterations.py` and `phases.py` divide a recording into stretches of time, and `iteration_and_phase_ends.py` has the
moments of them that pictures show. `naming/` finds the variable names of results. `stepping.py` has the moves of step,
next, finish and continue, `breakpoint_hits.py` the events at which a breakpoint stops, and `place_matches.py` the nodes
that a place refers to.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gviz.trace.timeline import Timeline


def load(path: str | os.PathLike[str]) -> Timeline:
    """Open a trace file and return its `Timeline`.

    Raises GvizError if the file cannot be read. The file stays open as long as the timeline is in use.
    """
    from gviz.trace.file.reader import open_trace
    from gviz.trace.timeline import Timeline

    return Timeline(open_trace(path))
