"""The command language of both front ends: one line of text in, one `Command` out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from gviz.errors import GvizError
from gviz.plain_text import clipped


@dataclass(frozen=True, slots=True)
class Command:
    """A command with its count (1 unless given) and the rest of the line."""

    name: str
    count: int = 1
    argument: str = ""


@dataclass(frozen=True, slots=True)
class Spec:
    """How a command is written: its full name, its short forms (which always win), what follows, and what it does."""

    name: str
    aliases: tuple[str, ...]
    takes: str
    help: str

    def told(self) -> str:
        """What it does, with the formats of pictures where it names them."""
        if "{suffixes}" not in self.help:
            return self.help
        from gviz.render.exporters import all_suffixes  # Graphviz is only needed here

        return self.help.format(suffixes=all_suffixes())


SPECS = (
    Spec("step", ("s",), "[N]", "one event forward: a node made, a gradient added, a buffer freed"),
    Spec("reverse-step", ("rs",), "[N]", "one event back"),
    Spec("next", ("n",), "[N]", "one whole node forward: its backward with all its additions"),
    Spec("reverse-next", ("rn",), "[N]", "one whole node back"),
    Spec("finish", ("f", "return", "r"), "[N]", "to the end of the current module call, else of the current pass"),
    Spec("reverse-finish", ("rf",), "[N]", "to the start of the current module call, else of the current pass"),
    Spec(
        "continue",
        ("c", "cont"),
        "[N]",
        "to the next stop: a breakpoint, an error, the first nan, a mark, else the end",
    ),
    Spec("reverse-continue", ("rc",), "[N]", "to the stop before"),
    Spec("phase", (), "[N]", "to the next phase (forward, backward, optimizer, next iteration); phase -1 goes back"),
    Spec("reverse-phase", ("rp",), "[N]", "to the phase before"),
    Spec("to", ("t", "until"), "[PLACE]", "to the next event of a node, of the selected one without PLACE"),
    Spec("reverse-to", ("rt",), "[PLACE]", "to the event before of a node"),
    Spec(
        "goto", ("jump", "@"), "PLACE", "move the time cursor: @12 or 12, start, end, fwd, bwd, nan, error, #4, x, 'm"
    ),
    Spec("back", (), "", "back in the list of positions jumped from"),
    Spec("mark", (), "NAME", "remember this position; goto 'NAME comes back"),
    Spec("find", ("/",), "TEXT", "select the next node that fits: text, #4, @12, op:Mul, nan"),
    Spec("select", (), "PLACE", "look at a node; the time does not move"),
    Spec("print", ("p", "node"), "[PLACE]", "the selected node in full: value, gradient, where it was made"),
    Spec("eval", ("=",), "EXPR", "an expression over the tensors of this moment: x.grad * 2, norm(#4)"),
    Spec("explain", ("why", "e"), "[PLACE[.grad]]", "why it has this value, this gradient, or none; with the lines"),
    Spec("whatis", (), "EXPR", "its shape and dtype"),
    Spec("watch", ("display",), "[EXPR]", "show an expression at every stop; without EXPR list what is watched"),
    Spec("unwatch", ("undisplay",), "[NUMBER]", "no longer show it"),
    Spec("last", (), "PLACE[.grad]", "back to where a value or gradient changed last: last x.grad"),
    Spec("first", (), "PLACE[.grad]", "to where it changed first"),
    Spec("diff", (), "@A [@B]", "which values and gradients differ between two events"),
    Spec("tape", (), "", "all nodes of this iteration, one row each"),
    Spec("list", ("l",), "", "the source around the current line"),
    Spec("where", ("w", "bt"), "", "the call stack of the selected node"),
    Spec("output", (), "", "what the program has printed up to now"),
    Spec("lesson", (), "", "what the program says about itself at its top"),
    Spec(
        "break",
        ("b",),
        "[PLACE]",
        "stop at a place (x, #4, demo.py:4, Mul, net.*), on EVENT [PLACE], or at change x.grad; each: if COND",
    ),
    Spec("tbreak", ("tb",), "[PLACE]", "break that stops once"),
    Spec("log", (), 'PLACE "TEXT"', "say TEXT with {value}, {grad}, {name} … filled in, and do not stop"),
    Spec("condition", (), "N [COND]", "let breakpoint N stop only if COND holds: value > 3 and name == 'x'"),
    Spec("ignore", (), "N COUNT", "pass by the first COUNT stops of breakpoint N"),
    Spec("enable", (), "[N ...]", "switch breakpoints on"),
    Spec("disable", (), "[N ...]", "switch breakpoints off"),
    Spec("delete", ("clear",), "[N ...]", "take breakpoints away"),
    Spec("info", ("i",), "[break]", "the breakpoints, and how often each stops in this recording"),
    Spec("export", (), "FILE", "write this moment as a picture: {suffixes}"),
    Spec("theme", (), "NAME", "gviz-dark, gviz-light, gviz-contrast, gviz-ansi, or any theme of Textual"),
    Spec("help", ("h", "?"), "[WORD]", "this list, or one command"),
    Spec("quit", ("q", "exit"), "", "leave"),
)

_BY_NAME = {name: spec for spec in SPECS for name in (spec.name, *spec.aliases)}
_CAPITALS = {letter.upper(): f"r{letter}" for letter in "snfct"}
"""The keys of the screen work as commands too: a capital runs backwards."""

_LINE = re.compile(r"([A-Za-z]+(?:-[A-Za-z]+)*-?|[/@?=])\s*(.*)", re.DOTALL)
_NUMBER = re.compile(r"[-+]?\d{1,12}$")
_COUNTED = tuple(spec.name for spec in SPECS if spec.takes == "[N]")
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
    spec = _spec(_CAPITALS.get(word) or ("goto" if word == "@" else word.lower()))
    return _counted(spec, rest) if spec.name in _COUNTED else _checked(spec, rest)


def help_lines(word: str = "") -> Iterator[str]:
    """All commands, or the one asked for."""
    specs = [_spec(word)] if word else SPECS
    for spec in specs:
        names = ", ".join((spec.name, *spec.aliases))
        yield f"{names} {spec.takes}".rstrip().ljust(32) + spec.told()


def _spec(word: str) -> Spec:
    if word in _BY_NAME:
        return _BY_NAME[word]
    if word.endswith("-") and len(word) > 1:
        forward = _spec(word[:-1])
        backward = _BY_NAME.get(f"reverse-{forward.name}")
        if backward is None:
            raise GvizError(f"{forward.name} cannot run backwards", exit_code=2)
        return backward
    found = [spec for spec in SPECS if spec.name.startswith(word)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(spec.name for spec in found)
        raise GvizError(f"{word!r} is ambiguous", hint=f"it may mean {names}", exit_code=2)
    raise _unknown(word)


def _unknown(word: str) -> GvizError:
    near = get_close_matches(word, _BY_NAME, 1)
    hint = f"did you mean {near[0]}?" if near else "help lists the commands"
    return GvizError(f"there is no command {clipped(repr(word), 40)}", hint=hint, exit_code=2)


def _counted(spec: Spec, rest: str) -> Command:
    if not rest:
        return Command(spec.name)
    if not _NUMBER.match(rest):
        raise GvizError(f"{spec.name} takes a count, not {clipped(repr(rest), 40)}", exit_code=2)
    count = max(-LARGEST_COUNT, min(int(rest), LARGEST_COUNT))
    return Command(_reversed(spec.name) if count < 0 else spec.name, abs(count))


def _reversed(name: str) -> str:
    return name.removeprefix("reverse-") if name.startswith("reverse-") else f"reverse-{name}"


def _checked(spec: Spec, rest: str) -> Command:
    if spec.takes and not spec.takes.startswith("[") and not rest:
        raise GvizError(f"{spec.name} needs {spec.takes}", hint=spec.told(), exit_code=2)
    if not spec.takes and rest:
        raise GvizError(f"{spec.name} takes nothing behind it", exit_code=2)
    return Command(spec.name, argument=rest)
