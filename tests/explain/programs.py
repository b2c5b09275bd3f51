"""Runs a program from a file under the engine (or real PyTorch) while it is recorded, as a user's script runs."""

import fcntl
import pickle
import runpy
import sys
import warnings
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha1
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import gviz.engine
from gviz.events import Failed
from gviz.explain.check import check
from gviz.program.torch_alias import BuiltinTorch
from gviz.source.call_stack import hide
from gviz.trace import load
from gviz.trace.recording.record import Kept, record

HERE = Path(__file__).parent
for _package in ("_pytest", "pluggy", "xdist", "execnet"):  # else each check reads the sources of all callers, too
    if (_found := find_spec(_package)) is not None:
        hide(str(Path(_found.origin).parent))
hide(__file__)


def line_of(path, marker="# cause"):
    """The line of a program that carries a marker."""
    rows = path.read_text().splitlines()
    return next(number for number, row in enumerate(rows, 1) if row.endswith(marker))


@cache
def recorded(folder, name, engine="builtin"):
    """The timeline of ``tests/explain/FOLDER/NAME.py``; what it prints and raises is in it."""
    path = str(HERE / folder / f"{name}.py")
    kept = None  # what the program holds stays alive until the recording ends
    with TemporaryDirectory() as temporary, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trace = Path(temporary) / "program.gviz"
        with (
            suppress(RuntimeError, TypeError, AttributeError, ValueError),
            record(trace, Kept(limit=1 << 16), framework=FRAMEWORKS[engine]) as recording,
            ENGINES[engine](recording),
        ):
            kept = runpy.run_path(path)
        del kept
        return load(trace)


def recorded_text(text, folder, engine="builtin"):
    """The timeline of a program given as text, which runs as ``__main__``: its variables live until the end."""
    path = folder / "program.py"
    path.write_text(text)
    main = ModuleType("__main__")
    main.__file__ = str(path)
    trace = folder / f"{engine}.gviz"
    trace.unlink(missing_ok=True)
    before, arguments = sys.modules["__main__"], sys.argv
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = lambda *_, **__: None  # they are recorded, and not printed
        sys.modules["__main__"], sys.argv = main, [str(path)]
        try:
            with (
                suppress(RuntimeError, TypeError, AttributeError, ValueError, IndexError, ImportError, AssertionError),
                record(trace, Kept(limit=1 << 16), framework=FRAMEWORKS[engine]) as recording,
                ENGINES[engine](recording),
            ):
                exec(compile(text, str(path), "exec"), main.__dict__)
        finally:
            sys.modules["__main__"], sys.argv = before, arguments
            _reset_modes()
        return load(trace)


@dataclass(frozen=True)
class Outcome:
    """What a check found in a program at a path, the errors that ended it or a pass, and the texts of its files."""

    path: str
    found: list
    errors: list
    sources: dict

    def source(self, path):
        return self.sources.get(path)


class Checks:
    """Outcomes of programs, in files of a folder: an engine runs each program once, for all tests that look at it."""

    def __init__(self, folder):
        self.folder = folder
        self.known = {}

    def of_text(self, text, engine):
        folder = self.folder / f"{sha1(text.encode()).hexdigest()}-{engine}"
        return self._outcome(folder, str(folder / "program.py"), lambda: recorded_text(text, folder, engine))

    def of_file(self, folder, name, engine):
        path = str(HERE / folder / f"{name}.py")
        return self._outcome(self.folder / f"{folder}-{name}-{engine}", path, lambda: recorded(folder, name, engine))

    def _outcome(self, folder, path, record):
        if folder not in self.known:
            folder.mkdir(parents=True, exist_ok=True)
            kept = folder / "outcome"
            with (folder / "lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)  # another worker may be at the same program
                if not kept.exists():
                    timeline = record()
                    errors = [event.error for _, event in timeline.select((Failed,))]
                    sources = {name: timeline.source(name) for name in timeline.sources}
                    kept.write_bytes(pickle.dumps(Outcome(path, check(timeline), errors, sources)))
            self.known[folder] = pickle.loads(kept.read_bytes())
        return self.known[folder]


def _reset_modes():
    """A program may leave modes of autograd behind, for the tests that follow."""
    for torch in filter(None, (gviz.engine, sys.modules.get("torch"))):
        torch.set_grad_enabled(True)
        torch.autograd.set_detect_anomaly(False)
        torch.set_default_dtype(torch.float32)


@contextmanager
def builtin(recording):
    """``import torch`` means the engine."""
    saved = _taken_out()
    finder = BuiltinTorch()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        _taken_out()  # with what the program imported of it: PyTorch, imported later, would find those
        sys.modules.update(saved)


def _taken_out():
    return {name: sys.modules.pop(name) for name in tuple(sys.modules) if name.partition(".")[0] == "torch"}


def pytorch(recording):
    """Real PyTorch, listened to."""
    from gviz.adapters.pytorch.attachment import Attachment

    return Attachment(recording.channel)


FRAMEWORKS = {"builtin": "gviz.engine", "torch": "torch"}
ENGINES = {"builtin": builtin, "torch": pytorch}
