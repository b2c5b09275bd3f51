"""Python imports this before it runs a program: gviz starts to listen here and leaves no frame below the program.

The interpreter then runs the program, not gviz. `gviz.program.recording_request` puts this folder on the path for this
one import. Path, environment and modules are restored before other code sees them.
"""

from __future__ import annotations

# ruff: noqa: E402
import _signal  # type: ignore[import-not-found]  # built in: nothing has to be imported before

_interrupts = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler
if _interrupts:  # a KeyboardInterrupt here would be a fatal error of Python, with exit code 1
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

import json
import os
import sys
import traceback
from importlib import import_module
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(_HERE)))


def _restored_request() -> dict[str, Any]:
    """Undo what was changed to get here. Returns the order."""
    request: dict[str, Any] = json.loads(os.environ.pop("GVIZ_PROGRAM"))
    for name, text in request["environment"].items():
        if text is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = text
    sys.path.remove(_HERE)
    sys.path_importer_cache.pop(_HERE, None)
    del sys.modules["sitecustomize"]
    return request


def _is_the_program(argv: list[str]) -> bool:
    """Return whether this is the Python that runs the program: a ``.pth`` file may have started another one before."""
    return sys.orig_argv[-len(argv) :] == argv


def _begin(request: dict[str, Any]) -> None:
    """Start recording or end this process: Python would only print an error and run the program unrecorded."""
    interrupts = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler
    if interrupts:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    try:
        sys.path.insert(0, _ROOT)
        import_module("gviz.system.processes").keep_to_this()
        import_module("gviz.program.recording_process").begin(request["order"], request["argv"][0])
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    if interrupts:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)


_request = _restored_request()
if _interrupts:
    _signal.signal(_signal.SIGINT, _signal.default_int_handler)
try:
    import sitecustomize  # type: ignore[import-not-found]  # noqa: F401  # the one that this hides, if there is one
finally:
    if _is_the_program(_request["argv"]):
        _begin(_request)
