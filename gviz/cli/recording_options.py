"""Options of a recording: ``--values``, ``--last``, ``--max-size``, ``--keep``, ``--phase``"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gviz.program.recording_request import WHOLE, Keeping
from gviz.values.number_text import typed_count

if TYPE_CHECKING:
    from gviz.values.value import Keep


_EVERYTHING = 1 << 30
_NAMED: dict[str, tuple[Keep, int | None]] = {
    "none": ("none", None), "stats": ("stats", None), "small": ("whole", None), "all": ("whole", _EVERYTHING),
}  # fmt: skip

ALL_VALUES = Keeping(*_NAMED["all"])
"""What ``--values all`` keeps."""

_OPTION_OF = {
    "first": "--from", "last": "--to", "compiled": "--compiled", "phase": "--phase", "module": "--module",
    "newest": "--last", "max_size": "--max-size", "older": "--keep", "budget": "--budget",
    "from_iteration": "--from-iteration",
}  # fmt: skip
"""The option that sets each field of `Keeping`."""


class _Values(click.ParamType["tuple[Keep, int | None]"]):
    name = "values"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Keep, int | None]:
        if isinstance(value, tuple):
            return value
        if value in _NAMED:
            return _NAMED[value]
        size = typed_count(str(value))
        if size is None:
            self.fail(f"{value!r} is neither {', '.join(_NAMED)} nor a number of bytes", param, ctx)
        return "whole", size


def _bound(ctx: click.Context, param: click.Parameter, text: str) -> str:
    """Refuse text that is not a bound."""
    if text:
        from gviz.trace.file.retention_policy import bounds

        bounds(**{"last" if param.name == "newest" else str(param.name): text})
    return text


def _scope(ctx: click.Context, param: click.Parameter, text: str) -> str:
    """Refuse text that does not describe a part of a PyTorch program."""
    if text:
        from gviz.program.recording_request import refuse_scope

        refuse_scope(**{str(param.name): text})
    return text


OPTIONS = (
    click.option("--values", type=_Values(), default="small", metavar="none|stats|small|all|BYTES",
                 help="What is kept of each tensor: nothing, statistics, also the values of small ones (up to 1024 "
                 "bytes), all values, or the values up to this size (default: small)."),
    click.option("--from", "first", default="", metavar="MARK",
                 help="Start recording at this gviz.mark."),
    click.option("--to", "last", default="", metavar="MARK",
                 help="Stop recording at this gviz.mark, until --from is reached again."),
    click.option("--last", "newest", default="", callback=_bound, metavar="N", help="Keep only the last N iterations, "
                 "or marks ('3 marks'), like a flight recorder."),
    click.option("--max-size", default="", callback=_bound, metavar="SIZE",
                 help="Drop the oldest iterations so that the file stays under this size (500M)."),
    click.option("--keep", "older", default="", callback=_bound, metavar="WHICH", help="Of the iterations before the "
                 "last ones (--last, else 3), keep those listed: first, findings (around a nan, an error or an alarm), "
                 "'every 100', thinned (fewer with age; with --max-size, as many as fit)."),
    click.option("--budget", default="", callback=_scope, metavar="SHARE", help="Record whole iterations "
                 "now and then, so that recording takes at most this share of the run time (5%); watch loss and "
                 "gradients between (PyTorch only)."),
    click.option("--from-iteration", default="", callback=_scope, metavar="N", help="Start recording at this "
                 "iteration; each ends with an optimizer step (PyTorch only)."),
    click.option("--phase", type=click.Choice(["all", "backward"]), default="all",
                 help="Record everything, or only backward passes, which costs far less (PyTorch only)."),
    click.option("--module", default="", metavar="GLOB", help="Record only calls of these modules: "
                 "a path or a class, such as encoder.* or Conv2d (PyTorch only)."),
    click.option("--compiled", type=click.Choice(["opaque", "eager"]), default="opaque",
                 help="Show each torch.compile region as one node (opaque), or run it uncompiled (eager)."),
)  # fmt: skip


def taken_from(options: dict[str, Any]) -> Keeping:
    """Take the values of these options out of those of a command."""
    keep, limit = options.pop("values")
    return Keeping(keep, limit, **{name: options.pop(name) for name in _OPTION_OF})


def as_typed(keeping: Keeping) -> list[str]:
    """Return the options that would give this `Keeping`, as typed."""
    values = (keeping.keep, keeping.limit)
    name = next((name for name, meant in _NAMED.items() if meant == values), str(keeping.limit))
    words = [] if values == (WHOLE.keep, WHOLE.limit) else ["--values", name]
    for field, option in _OPTION_OF.items():
        if (value := getattr(keeping, field)) != getattr(WHOLE, field):
            words += [option, value]
    return words
