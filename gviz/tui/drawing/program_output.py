"""What the program has printed up to a moment: stdout as it is, stderr in the style of errors."""

from __future__ import annotations

from collections.abc import Iterator

from gviz.trace.timeline import Timeline
from gviz.tui.styled_lines import Line, line, link, wrapped
from gviz.values.plain_text import shown

LAST = 500
"""How many printed pieces are shown at most; the earlier ones are counted."""


def output_lines(timeline: Timeline, n: int, width: int) -> Iterator[Line]:
    """Yield stdout as it is, stderr in the style of errors; each piece links to the event that printed it."""
    printed = timeline.printed(n)
    if not printed:
        yield line(("No output yet", "muted"))
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
