"""Reads the command language: one line of text in, one `Command` out; and its help."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gviz.errors import GvizError, did_you_mean
from gviz.plain_text import clipped, shown
from gviz.query.moments import is_stretch
from gviz.query.vocabulary import MOMENT_WORDS
from gviz.tui.commands.table import BY_NAME, GROUPS, SPECS
from gviz.tui.drawing.help import about, words_like, words_page
from gviz.tui.language.command import Command, Look, Said, Spec
from gviz.tui.language.habits import INSTEAD
from gviz.tui.lines import Line, line, wrapped

_CAPITALS = {
    alias.upper(): f"reverse-{spec.name}"
    for spec in SPECS
    for alias in spec.aliases
    if len(alias) == 1 and f"reverse-{spec.name}" in BY_NAME
}
"""The keys of the screen work as commands too: a capital runs backwards."""

_LINE = re.compile(r"([A-Za-z]++(?:-[A-Za-z]++)*+-?+(?![._\[])|[/@?=!])\s*(.*)", re.DOTALL)
"""A command and the rest; ``x.grad``, ``zero_grad`` and ``w[0]`` are no commands, whatever they begin with."""
_VALUE = re.compile(r"#?\w[\w.\[\], :]*")
"""What looks like a value that somebody wants to see, as pdb would show it."""
_ALIKE = 0.7
"""From how much likeness on a word is taken for a slip of the fingers: ``loss`` is not for close."""
_NUMBER = re.compile(r"[-+]?\d{1,12}$")
LARGEST_COUNT = 10**9


def parse(text: str) -> Command:
    """Read one line, or raise GvizError that says what was expected.

    ``12`` and ``@12`` mean ``goto 12``; a trailing minus (``n- 3``) or a capital (``N 3``) runs a time command
    backwards.
    """
    text = text.strip().removeprefix(":").strip()
    if re.fullmatch(r"\d+", text):
        return Command("goto", argument=text)
    match = _LINE.match(text)
    if match is None:
        raise _unknown(text)
    word, rest = match.group(1), match.group(2).strip()
    spec = find(_CAPITALS.get(word) or ("goto" if word == "@" else word.lower()), rest)
    return _counted(spec, rest) if spec.counted else _checked(spec, rest)


def spec_of(command: Command) -> Spec:
    """The declaration of a command that was read."""
    return BY_NAME[command.name]


def help_for(word: str) -> Look | Said:
    """All commands, the one asked for, or a word of the screen as it stands there; ``words``: all of them."""
    if word == "words":
        return Look("Words", words_page)
    if word not in BY_NAME and (seen := words_like(word) if word else ()):
        return Look(f"Words: {shown(word)}", about(seen))
    if word:
        spec = find(word)
        return Said((f"{written(spec)}: {spec.told()}",))
    return Look("Commands", _page)


def _page(width: int) -> Iterator[Line]:
    for title, specs in GROUPS.items():
        yield line((title, "title"))
        for spec in specs:
            yield from wrapped(line((f"  {written(spec)}".ljust(30) + "  ", "key"), spec.told()), width, 6)


def written(spec: Spec) -> str:
    """Its name, its short forms, and what follows."""
    return f"{', '.join((spec.name, *spec.aliases))} {spec.takes}".rstrip()


def find(word: str, rest: str = "") -> Spec:
    """The command of a name, a short form or the beginning of one; GvizError where that is none, or several.

    What stands behind it, as the number of `iteration 3`, may tell what was meant.
    """
    if word in BY_NAME:
        return BY_NAME[word]
    if word.endswith("-") and len(word) > 1:
        return _reversed(find(word[:-1]))
    found = [spec for spec in SPECS if spec.name.startswith(word)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(spec.name for spec in found)
        raise GvizError(f"{word!r} is ambiguous", hint=f"it may mean {names}", exit_code=2)
    raise _unknown(word, rest)


def _unknown(word: str, rest: str = "") -> GvizError:
    value = f"print {clipped(word, 30)} shows a value, " if _VALUE.fullmatch(word) else ""
    hint = INSTEAD.get(word.lower()) or _going(f"{word} {rest}".strip())
    hint = hint or did_you_mean(word, BY_NAME, f"{value}help lists the commands", _ALIKE)
    return GvizError(f"there is no command {clipped(repr(word), 40)}", hint=hint, exit_code=2)


def _going(moment: str) -> str:
    """How to go to a moment that stands alone, if it is one."""
    return f"goto {clipped(moment, 40)} goes there" if moment in MOMENT_WORDS or is_stretch(moment) else ""


def _counted(spec: Spec, rest: str) -> Command:
    if not rest:
        return Command(spec.name)
    if not _NUMBER.match(rest):
        hint = f"until {clipped(rest, 40)} goes on to a node" if spec.name == "continue" else ""
        raise GvizError(f"{spec.name} takes a count, not {clipped(repr(rest), 40)}", hint=hint, exit_code=2)
    count = max(-LARGEST_COUNT, min(int(rest), LARGEST_COUNT))
    return Command(_reversed(spec).name if count < 0 else spec.name, abs(count))


_OPPOSITES = {"up": "down", "down": "up"}


def _reversed(spec: Spec) -> Spec:
    """The command that goes the other way; GvizError for one that has none."""
    other = _OPPOSITES.get(spec.name) or spec.name.removeprefix("reverse-")
    backward = BY_NAME.get(other if other != spec.name else f"reverse-{other}")
    if backward is None:
        raise GvizError(f"{spec.name} cannot run backwards", exit_code=2)
    return backward


def _checked(spec: Spec, rest: str) -> Command:
    if spec.takes and not spec.takes.startswith("[") and not rest:
        raise GvizError(f"{spec.name} needs {spec.takes}", hint=spec.told(), exit_code=2)
    if not spec.takes and rest:
        raise GvizError(f"{spec.name} takes nothing behind it", exit_code=2)
    word = spec.takes.strip("[]")
    if rest and word == word.lower() != rest:
        what = f"{spec.name} takes {word}, or nothing, not {clipped(rest, 30)}"
        raise GvizError(what, hint=spec.told(), exit_code=2)
    return Command(spec.name, argument=rest)
