"""A variable that a program has for a purpose, and that nothing reads: ``done``, ``lengths``.

Idea. Such a name says what it is for: an episode that has ended has no next value, and padding must not count.
If the function that computes with the other variables never reads it, most likely that was forgotten. The recording
shows which functions made tracked tensors, and the text of these functions which names are read.

Example. ``def forward(self, x, lengths): return self.fc(self.lstm(x)[0][:, -1])`` reads padding.

Limits. Only names with such a meaning are looked at, next to a discount or a recurrent layer: other parts of a batch
may be unused for many reasons. A parameter with a default may be there for callers of another kind.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from gviz.explain.display_names import titled
from gviz.explain.finding import Finding
from gviz.explain.program_text import frame_of, function_of, names_read, names_set, program_text
from gviz.explain.recording_survey import Survey
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import shown


@dataclass(frozen=True, slots=True)
class _Purpose:
    """The names of variables with a purpose, what happens without them, and what to write.

    `needs` is a name that the function reads where the purpose matters; `is_assigned` is whether a variable that the
    function sets itself counts, and not only what it is given.
    """

    names: re.Pattern[str]
    means: str
    fix: str
    needs: re.Pattern[str]
    is_assigned: bool = False


_PURPOSES = (
    _Purpose(
        re.compile(
            r"^(?:is_|b_|batch_)?(?:done|dones|terminal|terminals|terminated|not_done)(?:_batch|s_v|_v|_t|_mask)?$"
        ),
        "the value of the next state counts even where the episode has ended",
        "target = reward + gamma * next_value * (1 - done)",
        re.compile(r"gamma|discount", re.IGNORECASE),
        is_assigned=True,
    ),
    _Purpose(
        re.compile(r"^(?:\w+_)?(?:lengths|lens|seq_len|seq_lens|seq_lengths|x_len|src_len)$"),
        "the steps after the end of a shorter sequence count like its own",
        "read the step at lengths - 1, mask the others, or pack_padded_sequence",
        re.compile(r"lstm|gru|rnn", re.IGNORECASE),
    ),
)


def unread_variables(survey: Survey) -> Iterator[Finding | None]:
    """Yield variables with a purpose that no statement of their function reads: each function once for each purpose.

    If a function of the same name reads it, as the ``forward`` of another layer does, both have the parameters that
    their caller gives.
    """
    timeline = survey.timeline
    stacks = {record.created.stack for record in survey.nodes.values() if record.created.requires_grad}
    frames = {(frame.path, frame.function): frame for stack in stacks for frame in timeline.stack(stack)}
    names: dict[tuple[str, str], _NamesOfFunction] = {}
    read: defaultdict[str, set[str]] = defaultdict(set)
    for place, frame in frames.items():
        yield None
        names[place] = _unread_names(timeline, frame)
        read[_last(place[1])] |= names[place].read
    for (_, function), known in names.items():
        yield None
        for purpose in _PURPOSES:
            if any(purpose.names.match(name) for name in read[_last(function)]):
                continue
            unread = (one for one in known.unread if purpose.names.match(one.name))
            one = next((one for one in unread if one.is_given or purpose.is_assigned), None)
            if one is not None and any(map(purpose.needs.search, known.read)):
                text = titled("{} is never read in {}", shown(one.name), shown(function))
                if function == "<module>":
                    text = titled("{} is never read", shown(one.name))
                part = Finding("beside", purpose.means, 0)
                yield Finding("unread", text, survey.end, 0, (part,), purpose.fix, one.at, suspected=True)


def _last(function: str) -> str:
    return function.rpartition(".")[2]


# What the program's source code shows


# The names of a function that nothing reads


@dataclass(frozen=True, slots=True)
class _UnreadName:
    """A name that a function or a program sets and none of its statements reads, and the line that sets it first.

    `is_given` is whether a caller or the head of a loop gives it, and not a statement of its own.
    """

    name: str
    at: Frame
    is_given: bool


@dataclass(frozen=True, slots=True)
class _NamesOfFunction:
    """The names that a function reads, and those of its own that it does not."""

    read: frozenset[str] = frozenset()
    unread: tuple[_UnreadName, ...] = ()


def _unread_names(timeline: Timeline, at: Frame) -> _NamesOfFunction:
    """Return the names of the function in which a frame is, or of the program outside of functions.

    A parameter with a default may be for other callers.
    """
    text = program_text(timeline, at)
    one = text.at(at.line, at.column) if text is not None else None
    if text is None or one is None:
        return _NamesOfFunction()
    outer = function_of(one)
    function = outer if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef) else None
    body = (function or text.tree).body
    read = frozenset(name for part in body for name in (*names_read(part), *_named(part)))
    given, own = list[_UnreadName](), list[_UnreadName]()
    if function is not None:
        args = [*function.args.posonlyargs, *function.args.args]
        required = args[: len(args) - len(function.args.defaults)]
        given = [_UnreadName(arg.arg, frame_of(at, function.lineno, text), True) for arg in required]
    for statement in text.by_function.get(outer, ()):
        line = frame_of(at, statement.first, text)
        if isinstance(statement.around[-1], ast.ClassDef):
            continue  # fields of a class
        if isinstance(statement.node, ast.For):
            bound = {part.id for part in ast.walk(statement.node.target) if isinstance(part, ast.Name)}
            given += [_UnreadName(name, line, True) for name in sorted(bound)]
        own += [_UnreadName(name, line, False) for name in sorted(names_set(statement.node))]
    return _NamesOfFunction(read, tuple(each for each in (*given, *own) if each.name not in read))


def _named(part: ast.AST) -> Iterator[str]:
    """Yield the attributes that a part of a program reads, and the names that it deletes."""
    for one in ast.walk(part):
        if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Load):
            yield one.attr
        elif isinstance(one, ast.Name) and isinstance(one.ctx, ast.Del):
            yield one.id
