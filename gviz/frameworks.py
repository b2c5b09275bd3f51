"""Which framework a recording listens to: gviz's own engine always, PyTorch where a program imports it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from gviz.adapters.on_import import when_imported
from gviz.errors import GvizError
from gviz.plain_text import shown
from gviz.trace import record as recording
from gviz.trace.record import Recording
from gviz.trace.window import ALL, Window
from gviz.values import INLINE_BYTES, Keep

if TYPE_CHECKING:
    import torch

NO_TORCH = GvizError(
    "PyTorch is not installed", hint="pip install 'gviz[torch]', or --engine builtin for gviz's own engine", exit_code=4
)


def record(
    path: str | os.PathLike[str] | None = None,
    *,
    model: torch.nn.Module | None = None,
    limit: int = INLINE_BYTES,
    keep: Keep = "whole",
    source: bool = True,
    overwrite: bool = False,
    window: Window = ALL,
    framework: str = "",
    compiled: str = "opaque",
    last: int | str | None = None,
    max_size: int | str | None = None,
) -> Recording:
    """Record what happens in a ``with`` block to a trace; without a path, to one in the user's cache folder.

    Arrays are kept whole up to `limit` bytes, larger ones as statistics; `keep` asks for less. `source` keeps the text
    of the program's files in the trace. An existing file is refused with GvizError unless `overwrite`. Where PyTorch is
    imported, before or within the block, its operations are recorded; `model` gives its parameters their names from the
    start.
    Of a long run only the `last` iterations (``3``) or marks (``"3 marks"``) are kept, and no more than `max_size`
    bytes (``"500M"``) of the newest.
    """
    uses_torch = "torch" in sys.modules and sys.modules["torch"].__name__ == "torch"
    made = recording.record(
        path, limit=limit, source=source, overwrite=overwrite, keep=keep, window=window,
        last=last, max_size=max_size, framework=framework or ("torch" if uses_torch else "gviz.engine"),
    )  # fmt: skip
    if uses_torch or model is not None:
        made.along_with(lambda began: _attached(began, model, compiled))
    elif "torch" not in sys.modules:
        made.along_with(lambda began: _when_torch_is_imported(began, compiled))
    return made


def attach(
    model: torch.nn.Module | None = None, path: str | os.PathLike[str] | None = None, **options: Any
) -> Recording:
    """Record from here to the end of the program, or to ``close()`` of what this returns; options as for `record`."""
    return record(path, model=model, **options).__enter__()


def follow_torch(began: Recording, compiled: str = "opaque") -> None:
    """From the moment the program imports PyTorch, record that too; a program without it pays nothing."""
    began.join(_when_torch_is_imported(began, compiled))


def _when_torch_is_imported(began: Recording, compiled: str) -> AbstractContextManager[None]:
    def join() -> None:
        if not began.is_open:
            return
        try:
            began.tell("framework", "torch")
            began.join(_attached(began, None, compiled))
        except Exception as trouble:  # whatever it is, the program goes on
            text = f"gviz: warning: PyTorch's operations cannot be recorded: {type(trouble).__name__}: {trouble}"
            if sys.__stderr__ is not None:
                with suppress(OSError):
                    print(shown(text), file=sys.__stderr__, flush=True)

    return when_imported("torch", join)


@contextmanager
def _attached(began: Recording, model: torch.nn.Module | None, compiled: str) -> Iterator[object]:
    from gviz.adapters.pytorch.attach import Attached

    attached: AbstractContextManager[Any] = Attached(began.channel, model, compiled=compiled)
    with attached as it:
        yield it
