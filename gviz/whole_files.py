"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from gviz.errors import GvizError
from gviz.plain_text import shown


def write_whole(files: Sequence[tuple[Path, bytes]]) -> None:
    """Write every file beside where it goes, then put all in their places, over what may be there.

    A link stays: what it names is written. Raises GvizError, which names the file that cannot be written.
    """
    from tempfile import TemporaryDirectory

    with ExitStack() as temporary:
        finished: list[tuple[Path, Path]] = []
        for path, data in files:
            with naming(path):
                target = path.resolve()
                beside = temporary.enter_context(TemporaryDirectory(prefix=".gviz-", dir=target.parent))
                finished.append((Path(beside) / target.name, target))
                finished[-1][0].write_bytes(data)
        for (path, _), (written, target) in zip(files, finished, strict=True):
            with naming(path):
                os.replace(written, target)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """What the system refuses in here it refuses of this path: GvizError."""
    try:
        yield
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise GvizError(f"cannot write {shown(str(path))}", why=why) from error
