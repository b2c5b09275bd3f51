"""The node panel: five questions about one node at one moment, always in the same order.

What was computed, with what, which gradient came in, which gradients go out, and where in the source.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gviz.explain.arithmetic import Computation, Operand, computation
from gviz.explain.names import called, op_title, why_untracked
from gviz.explain.standing import as_at
from gviz.numbers import bytes_text, dtype_text, full, shape_text, short
from gviz.plain_text import clipped, file_name, shown
from gviz.site import Frame
from gviz.trace.moment import Moment
from gviz.trace.state import NodeInfo, NodeState, OutputState
from gviz.trace.timeline import Timeline
from gviz.tui.drawing.beside import differences, shares_beside
from gviz.tui.drawing.failure import failure_lines
from gviz.tui.drawing.gradients import gradient_in, gradients_out
from gviz.tui.glyphs import Glyphs
from gviz.tui.lines import TIED, Line, Span, columns, labelled, line, link, wrapped

if TYPE_CHECKING:
    from gviz.whatif.beside import Beside

UNKNOWN = "a tensor that is not recorded"
LIST = 8
"""Users and stack frames shown before the rest is only counted."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What the panel is about, and how it is to be drawn. `full` asks for every digit and statistic."""

    timeline: Timeline
    moment: Moment
    node: int
    width: int
    glyphs: Glyphs
    full: bool = False
    beside: Beside | None = None

    @property
    def info(self) -> NodeInfo:
        """How the node was made."""
        return self.timeline.info(self.node)

    @property
    def state(self) -> NodeState | None:
        """The node at the moment; None before it is born."""
        return self.moment.state(self.node)


def node_lines(subject: Subject) -> Iterator[Line]:
    """The whole panel."""
    yield from failure_lines(subject.timeline, subject.moment, subject.width)
    if not subject.node:
        yield from _nothing(subject)
        return
    yield _header(subject)
    state = subject.state
    if state is None:
        yield from _not_yet(subject)
        yield from _where(subject)
        return
    computed = computation(subject.timeline, subject.node)
    yield from _computed(subject, state, computed)
    yield from _what_if(subject)
    yield from _with_what(subject, state, computed)
    yield from gradient_in(subject.timeline, subject.moment, subject.node, state, subject.width)
    branch = shares_beside(subject.beside, subject.node, subject.moment.n)
    yield from gradients_out(subject.timeline, subject.moment, subject.node, subject.width, branch)
    yield from _where(subject)


def _nothing(subject: Subject) -> Iterator[Line]:
    if not subject.timeline.nodes and subject.timeline.growing:
        text = "starting: nothing yet"
    elif not subject.timeline.nodes:
        text = "this recording holds no tensors: the program made none while it was recorded"
    else:
        text = "no node is concerned here: s goes one event on, j selects a node"
    yield from wrapped(line((text, "muted")), subject.width)


def _header(subject: Subject) -> Line:
    info = as_at(subject.info, subject.state)
    if info.created.kind == "op":
        right = shown(info.op.grad_fn) if info.created.requires_grad else ""
    else:
        right = info.created.kind if info.name else ""
    left = line((clipped(called(info), 60), "title"), (f"  #{info.node}", "muted"))
    return columns(left, line((right, "muted")), subject.width, subject.glyphs.cut)


def _not_yet(subject: Subject) -> Iterator[Line]:
    born = subject.info.born
    yield from wrapped(
        line("not made yet: ", (f"event{TIED}{born}", link("key", born)), " makes it (t goes there)"), subject.width
    )


def _computed(subject: Subject, state: NodeState, computed: Computation) -> Iterator[Line]:
    if computed.text:
        yield from wrapped(line("  ", computed.text), subject.width, 4)
    for nr, output in enumerate(state.outputs):
        name = "value" if len(state.outputs) == 1 else f"out {nr}"
        yield from labelled(name, _value(subject, output), subject.width)
        if output.version > subject.info.created.outputs[nr].version:
            yield from _written(subject, output)


def _value(subject: Subject, output: OutputState) -> list[Span]:
    if output.value is None:
        return [("not stored", "muted")]
    seq = output.value_seq
    if subject.full:
        return [(full(output.value), link("value", seq)), *_elements(subject, output)]
    text = short(output.value)
    shape = shape_text(output.value.shape)
    kind = "" if text.startswith(shape) and output.value.shape else f"  {shape} {dtype_text(output.value.dtype)}"
    return [(text, link("error" if text.startswith("! ") else "value", seq)), (kind, "muted")]


def _elements(subject: Subject, output: OutputState) -> list[Span]:
    """All elements of a small array; a larger one says where they are."""
    array = subject.timeline.array(output.value) if output.value is not None else None
    if array is None:
        return [("  elements not stored", "muted")]
    if array.size <= 4:
        return []
    if array.size > 1000:
        return [(f"  {array.size} elements, the first: {array.reshape(-1)[:8].tolist()}", "muted")]
    return [("  " + str(array.tolist()), "value")]


def _written(subject: Subject, output: OutputState) -> Iterator[Line]:
    by = f" by #{output.written_by}" if output.written_by else ""
    text = f"↻{output.version} written in place{by}, "
    yield from labelled(
        "", [(text, "sum"), (f"event{TIED}{output.value_seq}", link("key", output.value_seq))], subject.width
    )


def _what_if(subject: Subject) -> Iterator[Line]:
    for at, text in enumerate(differences(subject.timeline, subject.beside, subject.node, subject.moment.n)):
        yield from labelled("" if at else "what if", [(text, "sum")], subject.width, 8)


def _with_what(subject: Subject, state: NodeState, computed: Computation) -> Iterator[Line]:
    for at, operand in enumerate(computed.operands):
        yield from labelled("with" if at == 0 else "", list(_operand(subject, operand)), subject.width)
    if computed.attributes and subject.info.created.kind == "op":
        text = ", ".join(f"{name} {value}" for name, value in computed.attributes)
        yield from labelled("args", [(clipped(text, 400), "")], subject.width)
    kind = _kind(as_at(subject.info, state), state)
    if kind:
        yield from labelled("kind", [(kind, "")], subject.width)
    saved = _saved(subject, state, computed)
    if saved:
        yield from labelled("saved", saved, subject.width)
    yield from labelled("used by", list(_users(subject)), subject.width, 8)


def _operand(subject: Subject, operand: Operand) -> Iterator[Span]:
    if not operand.node:
        yield UNKNOWN, "muted"
        return
    name = f" {operand.name}" if operand.name and not operand.name.startswith("#") else ""
    yield f"#{operand.node}{name}", link("key", operand.born)
    if operand.output_nr:
        yield f" output {operand.output_nr}", "muted"
    yield f"  {short(operand.value) if operand.value is not None else 'not stored'}", "value"
    if operand.parameter and operand.parameter not in ("self", "other", "input"):
        yield f"  ({shown(operand.parameter)})", "muted"


def _kind(info: NodeInfo, state: NodeState) -> str:
    """What is special about the node; nothing for a tracked operation, whose grad_fn stands above."""
    created = info.created
    if created.kind != "op":
        return f"{created.kind}, {'requires grad' if state.requires_grad else 'no grad'}"
    if created.untracked:
        return f"not tracked: {why_untracked(created)}"
    view = next((output.view_of for output in created.outputs if output.view_of), 0)
    return f"a view of #{view}: shares its memory" if view else ""


def _saved(subject: Subject, state: NodeState, computed: Computation) -> list[Span]:
    if state.saved == "freed":
        return [("released, ", "muted"), (f"event{TIED}{state.saved_freed}", link("key", state.saved_freed))]
    if state.saved == "nothing":
        return []
    names = {operand.parameter: operand for operand in computed.operands}
    kept = [_saved_name(names, name, subject.node) for name in subject.info.op.saved]
    values = [names[name].value if name in names else computed.result for name in subject.info.op.saved]
    size = sum(value.nbytes for value in values if value is not None)
    return [(", ".join(kept) or "yes", ""), (f"  ({bytes_text(size)})" if size else "", "muted")]


def _saved_name(names: dict[str, Operand], name: str, node: int) -> str:
    operand = names.get(name)
    if operand is not None and not operand.node:
        return UNKNOWN
    if operand is None:
        return f"{shown(name)} #{node}" if name == "result" else shown(name)
    return f"#{operand.node}" if operand.name.startswith("#") else f"{operand.name} #{operand.node}".lstrip()


def _users(subject: Subject) -> Iterator[Span]:
    users = [
        user for user in subject.timeline.users(subject.node) if subject.timeline.info(user).born <= subject.moment.n
    ]
    if not users:
        yield "nothing yet", "muted"
    for at, user in enumerate(users[:LIST]):
        info = subject.timeline.info(user)
        yield f"{', ' if at else ''}#{user} {clipped(info.name or op_title(info), 30)}", link("key", info.born)
    if len(users) > LIST:
        yield f" and {len(users) - LIST} more", "muted"


def _where(subject: Subject) -> Iterator[Line]:
    """The place in the source, the event, and the callers."""
    info = subject.info
    made: list[Span] = [("  ", ""), (f"event{TIED}{info.born}", link("key", info.born))]
    if not info.frames:
        yield from labelled("at", [("an unknown place", "muted"), *made], subject.width, 3)
        return
    first, *callers = info.frames
    yield from labelled("at", [(frame_text(first, subject.width - 3), "title"), *made], subject.width, 3)
    for frame in callers[:LIST]:
        yield from labelled("", [("from ", "muted"), (frame_text(frame, subject.width - 8), "")], subject.width, 3)
    if len(callers) > LIST:
        yield from labelled("", [(f"and {len(callers) - LIST} more", "muted")], subject.width, 3)
    if info.scope:
        yield from labelled("in module", [(clipped(info.scope, 200), "")], subject.width, 10)


def frame_text(frame: Frame, width: int = 60) -> str:
    """A frame in one line: ``demo.py:4 in train``; a long file name loses its beginning, never the line."""
    function = "" if frame.function == "<module>" else f" in {clipped(frame.function, 60)}"
    name, line = file_name(frame.path), f":{frame.line}"
    room = max(width - len(line), 8)
    short_name = name if len(name) <= room else "…" + name[1 - room :]
    return f"{short_name}{line}{function}"
