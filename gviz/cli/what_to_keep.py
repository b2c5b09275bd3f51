"""How much of a program is recorded: the options, and the settings they make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from gviz.values import Keep


_EVERYTHING = 1 << 30
_NAMED: dict[str, tuple[Keep, int]] = {
    "none": ("none", 0), "stats": ("stats", 0), "small": ("whole", 0), "all": ("whole", _EVERYTHING),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Keeping:
    """What is kept of arrays (whole up to `limit` bytes, 0: the recorder's own), between which marks."""

    keep: Keep = "whole"
    limit: int = 0
    first: str = ""
    last: str = ""
    compiled: str = "opaque"


WHOLE = Keeping()


class _Values(click.ParamType["tuple[Keep, int]"]):
    name = "values"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Keep, int]:
        if isinstance(value, tuple):
            return value
        if value in _NAMED:
            return _NAMED[value]
        if not str(value).isdecimal():
            self.fail(f"{value!r} is neither {', '.join(_NAMED)} nor a number of bytes", param, ctx)
        return "whole", int(value)


OPTIONS = (
    click.option("--values", type=_Values(), default="small", metavar="none|stats|small|all|BYTES",
                 help="Keep nothing of arrays, their statistics, whole small ones (up to 1024 bytes), all of them, or "
                 "whole ones up to this size."),
    click.option("--from", "first", default="", metavar="MARK", help="Record from this gviz.mark on."),
    click.option("--to", "last", default="", metavar="MARK", help="Record up to this gviz.mark."),
    click.option("--compiled", type=click.Choice(["opaque", "eager"]), default="opaque",
                 help="What PyTorch has compiled stays so and is one node (opaque), or runs as written (eager)."),
)  # fmt: skip


def taken_from(options: dict[str, Any]) -> Keeping:
    """Take the values of these options out of those of a command."""
    keep, limit = options.pop("values")
    return Keeping(keep, limit, options.pop("first"), options.pop("last"), options.pop("compiled"))
