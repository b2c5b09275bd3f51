"""What a debugger is opened on, as its user calls it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath


@dataclass(frozen=True, slots=True)
class Title:
    """A program and its arguments, or the file of a trace; blanks in a path divide nothing."""

    path: str = ""
    arguments: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """The file without its folders: ``train.py``."""
        return PurePath(self.path).name

    @property
    def brief(self) -> str:
        """The command line without the folders: ``train.py --lr 0.1``."""
        return " ".join((self.file, *self.arguments))

    @property
    def whole(self) -> str:
        """The command line: ``/home/me/train.py --lr 0.1``."""
        return " ".join((self.path, *self.arguments))


UNTITLED = Title()
