"""Module calls as people name them: ``encoder.*`` by path, ``Linear`` by class, ``cell:5`` the fifth call alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache

from gviz import notice
from gviz.errors import GvizError
from gviz.plain_text import shown
from gviz.render.boxes.fold import CallGraph, ModuleCall, calls_of, modules

NUMBERED = re.compile(r"(.+):(\d+)")
SOME = 6
"""So many modules are named to somebody who has named none that is there."""


def fitting_calls(graph: CallGraph, patterns: Sequence[str], *, within: bool = False) -> frozenset[int]:
    """The scopes of the calls that fit one of the patterns; ``block.*`` is also what was made `within` the block."""
    fitting = (call for call in calls_of(graph) if any(_fits(call, one, within=within) for one in patterns))
    return frozenset(call.scope for call in fitting)


def named_calls(graph: CallGraph, patterns: Sequence[str], *, within: bool = False) -> frozenset[int]:
    """The same; where none fits, capital letters do not count; `GvizError` where there are patterns, and none fits.

    A model goes by its class, and many a variable is called so but for these: ``head = Head(8)``.
    """
    found = fitting_calls(graph, patterns, within=within)
    if patterns and not found:
        found = _in_other_letters(graph, patterns, within=within)
    if patterns and not found:
        what = f"no module fits {shown(' '.join(patterns))}"
        raise GvizError(what, hint=_hint(graph, calls_of(graph), patterns), exit_code=2)
    return found


def _in_other_letters(graph: CallGraph, patterns: Sequence[str], *, within: bool) -> frozenset[int]:
    """The calls that fit a pattern but for capital letters; what is drawn for it is said."""
    small = [pattern.lower() for pattern in patterns]
    calls = [replace(call, path=call.path.lower(), kind=call.kind.lower()) for call in calls_of(graph)]
    found = frozenset(call.scope for call in calls if any(_fits(call, one, within=within) for one in small))
    meant = dict.fromkeys(call.path for call in calls_of(graph) if call.scope in found)
    if found:
        _note(f"gviz: note: no module is called {' '.join(patterns)}: {_some(meant)} is drawn for it")
    return found


@cache
def _note(text: str) -> None:
    """Say it once, however often a picture is made until it fits."""
    notice.say(text)


def _fits(call: ModuleCall, pattern: str, *, within: bool) -> bool:
    """Whether a call is one of a module whose class fits, or its path, with or without what all paths begin with."""
    numbered = NUMBERED.fullmatch(pattern)
    name, nr = (numbered[1], int(numbered[2])) if numbered else (pattern, call.nr)
    names = [call.path, call.path.partition(".")[2], call.kind]
    names += [f"{path}." for path in names[:2] if within]
    return nr == call.nr and any(fnmatchcase(one, name) for one in names)


def _hint(graph: CallGraph, every: Sequence[ModuleCall], patterns: Sequence[str]) -> str:
    """How often a module was called of which too late a call was asked for, else the modules that there are."""
    numbered = [found[1] for pattern in patterns if (found := NUMBERED.fullmatch(pattern))]
    often = next((call for name in numbered for call in every if _fits(call, name, within=False)), None)
    if often is not None:
        return f"{shown(often.path)} was called {often.of} time{'s' * (often.of != 1)}, counted from 1"
    known = modules(graph)
    if not known:
        return "nothing here was made in a module"
    kinds = dict.fromkeys(filter(None, known.values()))
    return f"modules: {_some(known)}" + (f"; classes: {_some(kinds)}" if kinds else "")


def _some(names: dict[str, str] | dict[str, None]) -> str:
    more = f" and {len(names) - SOME} more" if len(names) > SOME else ""
    return ", ".join(map(shown, list(names)[:SOME])) + more
