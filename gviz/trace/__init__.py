"""The ordered list of events in one file, and what it says the graph looked like at any moment."""

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
