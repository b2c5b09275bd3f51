"""The lessons: in the wheel as ``gviz/samples``, in a checkout as ``samples``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gviz.errors import GvizError, did_you_mean


@dataclass(frozen=True, slots=True)
class Lesson:
    """One lesson: ``01_product_and_sine.py`` has the number ``01`` and the name ``product_and_sine``."""

    path: Path

    @property
    def needs_pytorch(self) -> bool:
        """Whether it needs PyTorch instead of the built-in engine."""
        return self.path.parent.name == "pytorch"

    @property
    def number(self) -> str:
        """Its number among the lessons: ``02``."""
        return self.path.stem.partition("_")[0]

    @property
    def name(self) -> str:
        """Its name: ``shared_input``."""
        return self.path.stem.partition("_")[2]

    def title(self) -> str:
        """Return the first line of its docstring."""
        import ast

        docstring = ast.get_docstring(ast.parse(self.path.read_bytes())) or ""
        return docstring.partition("\n")[0]


def lessons() -> list[Lesson]:
    """Return all lessons in teaching order."""
    ours, real = sorted(folder().glob("[0-9]*_*.py")), sorted(folder().glob("pytorch/p[0-9]*_*.py"))
    return [Lesson(path) for path in (*ours, *real)]


def find(name: str | None) -> Lesson:
    """Return the lesson with this name, number or file name; the first one without a name."""
    every = lessons()
    if not every:
        raise GvizError("the lessons are missing from this installation", hint="pip install --force-reinstall gviz")
    if name is None:
        return every[0]
    for lesson in every:
        if name in (lesson.name, lesson.number, lesson.number.lstrip("0"), lesson.path.stem, lesson.path.name):
            return lesson
    hint = did_you_mean(name, [lesson.name for lesson in every], "gviz demo --list")
    raise GvizError(f"there is no lesson {name}", hint=hint, exit_code=2)


def folder() -> Path:
    """Return the folder of the lessons."""
    from gviz import __file__ as init

    package = Path(init).parent
    installed = package / "samples"
    return installed if installed.is_dir() else package.parent / "samples"
