"""What an optimizer was set to at a step, in words: ``lr=0.15 (was 0.5), momentum=0.9``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gviz.events import OptimizerStarted
from gviz.events.options import Option, option_text, options_in
from gviz.plain_text import shown

_GROUPS = 3
"""So many groups of parameters are told of in a sentence."""


_UNTOLD = "decoupled_weight_decay"
"""What the name of an optimizer says already."""


def options_text(options: Mapping[str, Option], before: Mapping[str, Option] | None = None) -> str:
    """Options that are on, and those that have changed with what they were; empty if none is."""
    return ", ".join(_told(options, before or {}))


def all_options(event: OptimizerStarted) -> str:
    """The options of the first groups, of further ones where they differ: ``lr=0.5; group 1: lr=0.05``."""
    parts = [options_text(options_in(event.options, 0), options_in(event.before, 0))]
    told = 0
    for at, differing in list(enumerate(event.options))[1:]:
        before = dict(event.before[at]) if at < len(event.before) else {}
        if not (differing or before):
            continue
        told += 1
        if told < _GROUPS:
            here = {**dict(differing), **{name: options_in(event.options, at)[name] for name in before}}
            parts.append(f"group {at}: {options_text(here, before) or 'nothing else'}")
    if told >= _GROUPS:
        parts.append(f"{told - _GROUPS + 1} more group{'s' * (told > _GROUPS)} with others")
    return "; ".join(filter(None, parts))


def _told(options: Mapping[str, Option], before: Mapping[str, Option]) -> Iterator[str]:
    for name, value in options.items():
        if name in before:
            yield f"{shown(name)}={option_text(value)} (was {option_text(before[name])})"
        elif name == "lr" or (value not in (0, None, "", ()) and name != _UNTOLD):  # False is 0, too
            yield f"{shown(name)}={option_text(value)}"
