"""The errors of a recording: the one that ended the program, and those of passes that it caught."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from gviz.events import (
    BackwardFinished,
    Failed,
    NodeCreated,
)
from gviz.explain.backward_passes import pass_started
from gviz.explain.finding import Finding
from gviz.explain.program_text import (
    Statement,
    called_name,
    line_text,
    statement_at,
)
from gviz.source.call_stack import Frame, source_lines
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.number_text import shape_text
from gviz.values.plain_text import clipped, file_line, shown

_LOOKED_AT = 1000
_MOST_ROWS = 40
MOST_READ = 10_000
"""The characters of a message that are read."""
"""The number of nodes before an error that are searched."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One error at event `seq`: its class and message, its node (0: none), and the stack where it was raised.

    It ended the program, or else a backward pass.
    """

    timeline: Timeline
    seq: int
    error: str
    message: str
    node: int
    frames: tuple[Frame, ...]

    @property
    def ended(self) -> str:
        """Return in words what it ended."""
        return "the program failed" if isinstance(self.timeline.event(self.seq), Failed) else "a backward pass ended"

    @property
    def at(self) -> Frame | None:
        """Return the line that raised it."""
        return self.frames[0] if self.frames else None

    def says(self, pattern: str) -> bool:
        """Return whether its message matches a regular expression."""
        return re.search(pattern, self.message[:MOST_READ], re.DOTALL) is not None

    @property
    def quoted(self) -> str:
        """Return its class and message in one line, to the end: there PyTorch often says what to do."""
        return f"{shown(self.error)}: {clipped(shown(' '.join(self.message[:MOST_READ].split())), 400)}"

    @property
    def line(self) -> str:
        """Return the text of the line that raised it, without its comment; empty if it is unknown."""
        return line_text(self.timeline, self.at).split("#")[0]

    def earlier_nodes(self) -> Iterator[NodeInfo]:
        """Yield the last nodes that were made before it, the latest first. Usually the error is about one of them."""
        born = self.timeline.nodes.born
        before = (node for node in reversed(self.timeline.nodes) if born(node) < self.seq)
        return map(self.timeline.info, islice(before, _LOOKED_AT))

    def names_on_its_line(self) -> tuple[str, ...]:
        """Return the names on the line that raised it, in its order; of a call over several lines those of all."""
        text = self.timeline.source(self.at.path) if self.at is not None else None
        if text is None or self.at is None or self.at.end_line <= self.at.line:
            return tuple(re.findall(r"[A-Za-z_]\w*", self.line))
        rows = source_lines(text)[self.at.line - 1 : min(self.at.end_line, self.at.line + _MOST_ROWS)]
        return tuple(re.findall(r"[A-Za-z_]\w*", "\n".join(row.split("#")[0] for row in rows)))


def failure_at(timeline: Timeline, seq: int) -> Failure | None:
    """Return the error at an event; None for any other event, and for moment 0."""
    if not seq:
        return None
    event = timeline.event(seq)
    if isinstance(event, Failed):
        frames = timeline.stack(event.stack)
        return Failure(timeline, seq, event.error, event.message, event.node, frames)
    if isinstance(event, BackwardFinished) and event.error:
        return _failure_of_pass(timeline, seq, event)
    return None


def all_failures(timeline: Timeline) -> Iterator[Failure]:
    """Yield all errors: those that ended a pass and were caught, and those that ended the program."""
    failures = (failure_at(timeline, seq) for seq in timeline.errors)
    return (failure for failure in failures if failure is not None)


_EXPECTING = {"raises", "assertRaises", "assertRaisesRegex", "suppress"}
"""Functions that expect an error of a block or of a call: those of pytest, unittest and contextlib."""

_ENDING = {"exit", "_exit", "quit", "abort", "post_mortem"}
_MOST_GENERAL = {"Exception", "BaseException"}


def is_expected(failure: Failure) -> bool:
    """Return whether the program expects an error, as a test or a lesson does, and continues.

    The ``try`` is around the call itself, or the program computes something after the error.
    """
    timeline = failure.timeline
    if isinstance(timeline.event(failure.seq), Failed):
        return False
    ends = (failure_at(timeline, seq) for seq in timeline.error_index.failures() if seq > failure.seq)
    if any(one is not None and one.message == failure.message for one in ends):
        return False
    goes_on = next(iter(timeline.select((NodeCreated,), failure.seq + 1)), None) is not None
    for number, frame in enumerate(failure.frames):
        source = statement_at(timeline, frame)
        if source is None:
            continue
        one = source[1]
        blocks = [part for part in one.around if isinstance(part, ast.With | ast.AsyncWith)]
        calls = [item.context_expr for block in blocks for item in block.items]
        calls += [part for part in one.parts(ast.Call) if number == 0]
        if any(isinstance(call, ast.Call) and called_name(call) in _EXPECTING for call in calls):
            return True
        if (number == 0 or goes_on) and _is_caught(one, failure.error):
            return True
    return False


def _is_caught(one: Statement, error: str) -> bool:
    """Return whether a ``try`` around a statement catches an error and neither raises it again nor ends the program."""
    inner: ast.AST = one.node
    for part in reversed(one.around):
        if isinstance(part, ast.Try) and inner in part.body:
            for handler in part.handlers:
                names = {getattr(name, "id", getattr(name, "attr", "")) for name in ast.walk(handler.type or handler)}
                if handler.type is None or not names.isdisjoint({error.rpartition(".")[2], *_MOST_GENERAL}):
                    parts = [each for statement in handler.body for each in ast.walk(statement)]
                    ends = (isinstance(each, ast.Call) and called_name(each) in _ENDING for each in parts)
                    return not any(ends) and not any(isinstance(each, ast.Raise) for each in parts)
        inner = part
    return False


def program_end(timeline: Timeline, n: int, after: int = 0) -> Failure | None:
    """Return the error that ended the program by event `n`, and after another event; None if there is none."""
    ends = [seq for seq in timeline.error_index.failures() if after < seq <= n]
    return failure_at(timeline, ends[-1]) if ends else None


def ended_first(failure: Failure, what: str, node: int = 0) -> Finding:
    """Return the finding that an error ended the program before something happened: ``a backward pass``."""
    at = f" at {file_line(failure.at.path, failure.at.line)}" if failure.at is not None else ""
    text = f"the program ended with {shown(failure.error)}{at} before {what}"
    message = Finding("message", failure.quoted, failure.seq)
    fix = "mend the error first: why error, or gviz check, shows its cause"
    return Finding("no-pass", text, failure.seq, node, (message,), fix, failure.at)


def _failure_of_pass(timeline: Timeline, seq: int, event: BackwardFinished) -> Failure:
    started = pass_started(timeline, event.pass_nr)
    frames = timeline.stack(started.stack) if started is not None else ()
    return Failure(timeline, seq, event.raised or "an error", event.error, timeline.at(seq).node, frames)


def shape_in(text: str) -> str:
    """Return the shape that a part of a message has, such as ``torch.Size([2, 3])``."""
    return shape_text(tuple(int(size) for size in re.findall(r"\d+", text)))
