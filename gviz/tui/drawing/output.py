"""What the program has printed, as lines."""

from __future__ import annotations

from collections.abc import Iterator

from gviz.plain_text import shown
from gviz.trace.timeline import Timeline
from gviz.tui.lines import Line, line, link, wrapped

LAST = 500
"""So many printed pieces are shown at most; the earlier ones are counted."""


def output_lines(timeline: Timeline, n: int, width: int) -> Iterator[Line]:
    """stdout as it is, stderr in the style of errors; each piece leads to the event that printed it."""
    printed = timeline.printed(n)
    if not printed:
        yield line(("nothing printed yet", "muted"))
    if len(printed) > LAST:
        yield line((f"({len(printed) - LAST} earlier pieces are left out)", "muted"))
    spans: list[tuple[str, str]] = []
    for seq, event in printed[-LAST:]:
        style = link("error" if event.stream == "stderr" else "", seq)
        rows = event.text.replace("\r\n", "\n").split("\n")
        for at, text in enumerate(rows):
            if at:
                yield from wrapped(tuple(spans), width)
                spans = []
            if text:
                spans.append((shown(text), style))
    if spans:
        yield from wrapped(tuple(spans), width)
