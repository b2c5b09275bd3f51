"""What a trace says of the program that it is a recording of."""

from __future__ import annotations

import json
import os
import platform
import sys

from gviz.trace.file.format import utc_now
from gviz.version import __version__


def about(framework: str) -> dict[str, str]:
    """What is known of this process when a recording of it begins."""
    return {
        "gviz": __version__,
        "framework": framework,
        "python": platform.python_version(),
        "argv": json.dumps(sys.argv),
        "process": str(os.getpid()),
        "started": utc_now(),
    }
