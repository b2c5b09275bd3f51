"""A ``graphviz.Digraph`` that gviz's own Graphviz draws, so that no ``dot`` needs to be installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args

import graphviz

from gviz.errors import GvizError
from gviz.render.graphviz.process import Picture, Program, draw
from gviz.render.graphviz.svg_output import in_a_cell


class Digraph(graphviz.Digraph):  # type: ignore[misc]  # the package has no types
    """A ``Digraph`` that gviz draws. Options that choose another program have no effect.

    `program` is ``nop2`` if all boxes and lines have their positions. A graph in columns is `tangled` if the lines
    between them cross too often, or cannot be drawn.
    """

    program: Program = "dot"
    tangled: bool = False

    def pipe(self, format: str | None = None, *_: Any, encoding: str | None = None, **__: Any) -> bytes | str:
        """Return the picture as bytes or, with an encoding, as text. Notebooks use this to show a graph."""
        data = draw(self.source, _picture(format or self.format))
        return data.decode(encoding) if encoding else data

    def _repr_mimebundle_(self, include: object = None, exclude: object = None, **_: Any) -> dict[str, str]:
        """Return the notebook output: the picture, and a sentence about its size."""
        lines = sum(" -> " in line for line in self.body)
        return {
            "image/svg+xml": in_a_cell(self._drawn),
            "text/plain": f"graph of {len(self.body) - lines} boxes and {lines} lines",
        }

    def _drawn(self, direction: Literal["auto", "TB"]) -> str:
        """Return the picture in its own direction, or from top to bottom."""
        turned = self.copy()
        turned.graph_attr |= {} if direction == "auto" else {"rankdir": direction}
        return draw(turned.source, "svg").decode("utf-8")

    def render(
        self,
        filename: str | None = None,
        directory: str | None = None,
        view: bool = False,
        cleanup: bool = False,
        format: str | None = None,
        **_: Any,
    ) -> str:
        """Write the DOT text and, next to it, the picture; return the path of the picture."""
        kind = _picture(format or self.format)
        source = Path(self.save(filename, directory=directory))
        picture = source.with_name(f"{source.name}.{kind}")
        picture.write_bytes(draw(self.source, kind))
        if cleanup:
            source.unlink()
        if view:
            self._view(str(picture), format=kind, quiet=True)
        return str(picture)


def _picture(name: str) -> Picture:
    for known in get_args(Picture):
        if name == known:
            return known  # type: ignore[no-any-return]
    raise GvizError(f"gviz cannot draw {name!r}", hint=f"formats: {', '.join(get_args(Picture))}", exit_code=2)
