"""The single rows of the screen: the status at the top, the timeline as a bar below it, the keys at the bottom."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from gviz.events import Failed, NodeFreed
from gviz.explain.display_names import label
from gviz.explain.iteration_words import iteration_called, phase_words
from gviz.trace.timeline import Moment, Timeline
from gviz.tui.drawing.training_summary import SEARCHED
from gviz.tui.glyphs import Glyphs
from gviz.tui.keymaps import Keys, first, keys_of
from gviz.tui.stop_reason import CursorStop, Kind
from gviz.tui.styled_lines import Line, Span, cells, columns, line
from gviz.values.plain_text import clipped

ROOMY = 100
"""From this width in cells, rows need no short forms."""

_BRIEF: dict[Kind, str] = {"end": "the end", "start": "the start", "live end": "live end"}


class StatusContents(NamedTuple):
    """What a status row shows about the program, and the reason for the last stop.

    `time` is REPLAY, or LIVE or RUNNING over a program that is still running. `changed` names the numbers that a
    what-if has changed.
    """

    title: str
    stop: CursorStop
    time: str = "REPLAY"
    changed: str = ""


def status(timeline: Timeline, moment: Moment, contents: StatusContents, width: int, glyphs: Glyphs) -> Line:
    """Return one row of `width` cells.

    In a short row the node is dropped, then iteration and title; a long reason is cut.

    The other parts do not depend on the node's name, so that words do not come and go at a step. A narrow row drops the
    brand if iterations are counted, and uses short forms for the ends.
    """
    parts = _parts(timeline, moment, clipped(contents.title, 40 if width > ROOMY else 24), contents.time)
    reason = _reason(contents.stop, glyphs, brief=width < ROOMY)
    if width < ROOMY and "iteration" in parts:
        del parts["brand"]
    stays = sum(cells(part) for name, part in parts.items() if name not in ("iteration", "title"))
    right = line(f"{glyphs.clipped(reason, max(width - stays - 2, width // 3))} ")
    if contents.changed:
        parts["changed"] = line("  ", (clipped(contents.changed, 40), "now"))
    room = width - cells(right) - 1
    for dropped in ("iteration", "title"):
        if sum(map(cells, parts.values())) <= room:
            break
        parts.pop(dropped, None)
    node = _node(timeline, moment, room - sum(map(cells, parts.values())))
    return columns(tuple(span for spans in (*parts.values(), node) for span in spans), right, width, glyphs.cut)


def phase_name(timeline: Timeline, moment: Moment, *, at_end: bool = False) -> str:
    """Return the phase as the status row writes it."""
    if isinstance(moment.event, Failed):
        return "ERROR"
    if moment.phase is None:
        return "START" if moment.n == 0 else "END" if at_end else "PROGRAM"
    return phase_words(timeline, moment).replace(" pass", "").upper()


def _parts(timeline: Timeline, moment: Moment, title: str, time: str) -> dict[str, Line]:
    style = "error" if isinstance(moment.event, Failed) else "phase"
    at_end = time == "REPLAY" and moment.n == len(timeline)
    parts: dict[str, Line] = {
        "brand": line((" gviz ", "brand")),
        "title": line(f" {title} "),
        "time": line((f" {time}", "muted" if time == "REPLAY" else "now")),
        "phase": line(" ", (phase_name(timeline, moment, at_end=at_end), style)),
        "event": line(f"  event {moment.n}"),
    }
    if max(len(timeline.iterations), timeline.iteration_count) > 1:
        current = timeline.iteration_at(moment.n).number
        parts["iteration"] = line(f"  {iteration_called(timeline)} {current}/{timeline.iteration_count}")
    return parts


def _node(timeline: Timeline, moment: Moment, room: int) -> Line:
    """Return the node of the event, if it fits into the rest of the row, and if its graph is not an earlier one."""
    is_freed = isinstance(moment.event, NodeFreed)
    is_here = not is_freed or moment.actor in timeline.nodes.of(timeline.iteration_at(moment.n))
    named = line("  ", (clipped(label(timeline, moment.actor), 32), "title")) if moment.actor and is_here else ()
    return named if cells(named) <= room else ()


def _reason(stop: CursorStop, glyphs: Glyphs, *, brief: bool) -> str:
    why = stop.reason
    if stop.backward and why.kind not in ("start", "error"):
        return f"{glyphs.back} back to {stop.position}"
    if why.kind in ("error", "nonfinite"):
        return f"stopped: {why.words}"
    if why.kind == "command" and stop.position > stop.start:
        return f"{why.words} {glyphs.now}"
    return _BRIEF.get(why.kind, why.words) if brief else why.words


CROWDED = 6
"""Boundaries closer than this many cells on average are unreadable and left out."""

WIDEST = 4096
"""No bar has more cells, so more boundaries than fit into it are never shown."""


@dataclass(frozen=True, slots=True)
class Landmarks:
    """The marks on the bar at any position, as event numbers."""

    length: int
    boundaries: tuple[tuple[int, ...], ...]
    """The starts of phases, and of iterations for narrower bars; empty if there are too many for any bar."""
    marks: tuple[int, ...]
    bad: tuple[int, ...]


def landmarks(timeline: Timeline) -> Landmarks:
    """Return the landmarks of a recording."""
    first_bad = timeline.error_index.first_bad() if len(timeline) <= SEARCHED else 0
    return Landmarks(
        len(timeline),
        tuple(
            tuple(span.start for span in spans[1:])
            for spans in (timeline.phases, timeline.iterations)
            if _is_uncrowded(len(spans) - 1, WIDEST)  # a long recording has thousands, and each step draws the bar
        ),
        tuple(seq for seq, _ in timeline.marks),
        (*timeline.errors, *([first_bad] if first_bad else [])),
    )


def bar(known: Landmarks, position: int, width: int, glyphs: Glyphs) -> Line:
    """Return the bar, with the position as numbers at its right end."""
    label = f" {position}/{known.length} "
    room = bar_width(known, width)
    row = [glyphs.past if at <= column(known, position, room) else glyphs.future for at in range(room)]
    _set(row, known, _boundaries(known, room), glyphs.boundary)
    _set(row, known, known.marks, glyphs.mark)
    bad = _set(row, known, known.bad, glyphs.bad)
    now = column(known, position, room)
    if row:
        row[now] = glyphs.cursor
    return line(" ", *((text, _style(at, now, bad)) for at, text in enumerate(row)), f"{label:>{_label_width(known)}}")


def bar_width(known: Landmarks, width: int) -> int:
    """Return the cells of the bar itself in a row of `width` cells; it begins in the second one."""
    return max(width - 1 - _label_width(known), 0)


def column(known: Landmarks, position: int, room: int) -> int:
    """Return the cell of the bar that shows a position."""
    if room <= 1 or not known.length:
        return 0
    return min(round(position * (room - 1) / known.length), room - 1)


def position_at(known: Landmarks, at: int, room: int) -> int:
    """Return the position of a cell of the bar."""
    if room <= 1:
        return 0
    return max(0, min(round(at * known.length / (room - 1)), known.length))


def _label_width(known: Landmarks) -> int:
    return 2 * len(str(known.length)) + 3


def _boundaries(known: Landmarks, room: int) -> tuple[int, ...]:
    return next((starts for starts in known.boundaries if _is_uncrowded(len(starts), room)), ())


def _is_uncrowded(number: int, room: int) -> bool:
    return number * CROWDED <= room


def _set(row: list[str], known: Landmarks, positions: Iterable[int], glyph: str) -> set[int]:
    cells = {column(known, position, len(row)) for position in positions} if row else set()
    for cell in cells:
        row[cell] = glyph
    return cells


def _style(at: int, now: int, bad: set[int]) -> str:
    return "now" if at == now else "error" if at in bad else "brand" if at < now else "muted"


@dataclass(frozen=True, slots=True)
class Key:
    """Keys that belong together, their word in the bottom row, and the action of a click on it."""

    keys: str
    word: str
    action: str


_BOTTOM_KEYS = (
    (("time.step", "time.reverse-step"), "Step", "travel('step')"),
    (("time.next", "time.reverse-next"), "Node", "travel('next')"),
    (("time.phase",), "Phase", "travel('phase')"),
    (("time.continue", "time.reverse-continue"), "Run", "travel('continue')"),
    (("time.finish", "time.reverse-finish"), "Call", "travel('finish')"),
    (("time.to", "time.reverse-to"), "Here", "travel('to')"),
    (("look.explain",), "Why", "do('explain')"),
    (("look.findings",), "Findings", "do('findings')"),
    (("view.next",), "View", "view"),
    (("graph.level",), "Level", "do('level')"),
    (("find.ask",), "Find", "ask('find')"),
    (("act.command",), "Cmd", "ask('command')"),
    (("act.help",), "Help", "open('help')"),
    (("act.quit",), "Quit", "quit"),
)
_DROP_ORDER = (
    "Level",
    "Here",
    "View",
    "Find",
    "Call",
    "Cmd",
    "Findings",
    "Phase",
    "Why",
    "Run",
    "Node",
    "Step",
    "Quit",
)


def bottom_keys(keys: Keys) -> tuple[Key, ...]:
    """Return the keys of the bottom row, for a keymap."""
    return tuple(Key(first(keys, *ids), word, action) for ids, word, action in _BOTTOM_KEYS)


KEYS = bottom_keys(keys_of("default"))


def fitting_keys(width: int, kept: tuple[Key, ...] = KEYS) -> tuple[Key, ...]:
    """Return the keys that fit into a row; the least needed ones are dropped first, help never."""
    for word in _DROP_ORDER:
        if cells(keys_row(kept)) <= width:
            break
        kept = tuple(key for key in kept if key.word != word)
    return kept


def keys_row(keys: tuple[Key, ...]) -> Line:
    """Return the row itself: `` sS Step  nN Node``."""
    spans: list[Span] = []
    for key in keys:
        spans += [(" ", ""), (key.keys, "key"), (f" {key.word} ", "")]
    return tuple(spans)


def key_at(keys: tuple[Key, ...], x: int) -> Key | None:
    """Return the key whose words are in cell `x` of the row."""
    start = 0
    for key in keys:
        end = start + len(key.keys) + len(key.word) + 3
        if start <= x < end:
            return key
        start = end
    return None
