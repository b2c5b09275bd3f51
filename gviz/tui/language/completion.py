"""Completions of a line of the command language: commands, names, operations, modules, events, files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from gviz.errors import GvizError
from gviz.explain.display_names import own_name, public_name
from gviz.query_syntax.moment import MOMENT_WORDS
from gviz.query_syntax.stop_condition import EVENTS
from gviz.tui.commands.command_table import SPECS, find
from gviz.tui.commands.export_copy import OF_NODE
from gviz.tui.commands.info_pages import PAGES
from gviz.tui.config import SETTINGS
from gviz.tui.graph_view import AUTOMATIC, GRAPH_LEVELS
from gviz.tui.language.command_input import WORD_ENDS
from gviz.tui.session import Session

MOST = 500
"""How many completions are returned at most, and how many files of a folder are read."""

MOST_NODES = 20_000
"""How many of the newest nodes are completed by name."""


def completions(session: Session, text: str) -> list[str]:
    """Return whole lines that begin with `text`, the likeliest first; only the last word is completed."""
    if " " not in text:
        return [spec.name for spec in SPECS if spec.name.startswith(text) and spec.name != text]
    word, _, rest = text.partition(" ")
    try:
        spec = find(word)
    except GvizError:
        return []
    head, last = _split(rest)
    known = _source(spec.name, spec.takes, head)(session, last)
    begin = text[: len(text) - len(last)]
    return [begin + one for one in _first(one for one in known if one.startswith(last) and one != last)]


def _split(rest: str) -> tuple[str, str]:
    """Return the text before the last word, and the word: names end at blanks and brackets."""
    at = max(rest.rfind(sign) for sign in WORD_ENDS) + 1
    return rest[:at], rest[at:]


_T = TypeVar("_T")
_Source = Callable[[Session, str], Iterable[str]]


def _findings() -> list[str]:
    from gviz.explain.finding_kinds import findable  # imports every kind of finding: only on demand

    return [kind.name for kind in findable()]


def _source(name: str, takes: str, head: str) -> _Source:
    words = head.split()
    if name in ("break", "tbreak", "until") and not words:
        return lambda session, _: (*_places(session), "on", "change", "finding")
    if words[:1] == ["on"] and len(words) == 1:
        return lambda *_: EVENTS
    if words == ["finding"]:
        return lambda *_: _findings()
    if name == "set" and words:
        return lambda session, _: _values(session, words[0])
    if name == "theme":
        return lambda session, _: _values(session, "theme")
    if "FILE" in takes:
        return lambda _, last: _files(last)
    fixed: dict[str, Iterable[str]] = {
        "info": PAGES,
        "set": [one.name for one in SETTINGS],
        "show": [one.name for one in SETTINGS],
        "help": ["words", *(spec.name for spec in SPECS)],
        "goto": MOMENT_WORDS,
        "level": (*GRAPH_LEVELS, AUTOMATIC),
        "play": ("2x", "4x", "8x", "stop"),
    }
    if name == "copy":
        return lambda session, _: (*OF_NODE, *_places(session))
    if name in fixed:
        places = name == "goto"
        return lambda session, _: (*fixed[name], *(_places(session) if places else ()))
    wants_place = any(word in takes for word in ("PLACE", "EXPR", "TEXT", "MODULE"))
    return (lambda session, _: _places(session)) if wants_place else lambda *_: ()


def _places(session: Session) -> Iterator[str]:
    """Yield names first, then modules, then operations: by their recorded names, and after ``op:`` by all names."""
    infos = [session.timeline.info(node) for node in session.timeline.nodes[-MOST_NODES:]]
    names = dict.fromkeys(info.name for info in reversed(infos) if info.name)
    yield from names
    yield from (f"{name}.grad" for name in names)
    yield from dict.fromkeys(info.scope for info in infos if info.scope)
    operations = [info for info in infos if info.created.kind == "op"]
    recorded = dict.fromkeys(info.op.name for info in operations)
    yield from recorded
    shown = (name for info in operations for name in (public_name(info), own_name(info)))
    yield from (f"op:{name}" for name in dict.fromkeys((*shown, *recorded)))


def _values(session: Session, name: str) -> Iterable[str]:
    if name == "theme":
        from gviz.tui.themes import SHORT  # Textual is only needed here

        return SHORT
    return next((one.values for one in SETTINGS if one.name == name), ())


def _files(last: str) -> Iterator[str]:
    folder, slash, _ = last.rpartition("/")
    try:
        paths = sorted(_first(Path(folder + slash or ".").expanduser().iterdir()))
    except (OSError, RuntimeError, ValueError):
        return
    for path in paths:
        if not path.name.startswith(".") and path.name.isprintable():
            yield f"{folder}{slash}{path.name}{'/' if path.is_dir() else ''}"


def _first(items: Iterable[_T]) -> list[_T]:
    return [item for _, item in zip(range(MOST), items, strict=False)]
