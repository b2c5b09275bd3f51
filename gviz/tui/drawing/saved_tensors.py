"""What a node saves for its backward rule, and the versions of its tensors' memory."""

from __future__ import annotations

from collections.abc import Iterator

from gviz.events import DataSet, StorageWritten
from gviz.explain.display_names import label
from gviz.explain.parameter_updates import writer_of
from gviz.explain.value_computation import Operand, computation, saved_names
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Moment, Timeline
from gviz.tui.styled_lines import TIED, Line, Span, labelled, line, link, wrapped
from gviz.values.number_text import bytes_text
from gviz.values.plain_text import shown
from gviz.values.value import Value
from gviz.values.value_text import short

WRITES = 50
"""How many writes are listed at most, the latest ones."""


def saved_lines(timeline: Timeline, moment: Moment, node: int, width: int) -> Iterator[Line]:
    """Yield saved tensors with their versions then and now, and the writes to the node's own memory."""
    state = moment.state(node) if node else None
    if state is None:
        yield from wrapped(line(("not made yet" if node else "no node is selected", "muted")), width)
        return
    info = timeline.info(node)
    names = saved_names(timeline, node) if state.saved != "nothing" else ()
    saved_state = _saved_state(state.saved if names else "nothing", state.saved_freed)
    yield from wrapped(line((label(timeline, node), "title"), " ", *saved_state), width)
    if names:
        operands = {operand.parameter: operand for operand in computation(timeline, node).operands}
        for name in names:
            operand = operands.get(name)
            spans = (
                _operand(timeline, moment, info, operand) if operand else _result(state.outputs[0].value, node, name)
            )
            yield from labelled(f"  {shown(name)}", list(spans), width, 9)
    yield from _writes(timeline, moment, info, width)


def _saved_state(saved: str, freed: int) -> Iterator[Span]:
    if saved == "nothing":
        yield "saves nothing for backward", "muted"
    elif saved == "freed":
        yield "has released its saved tensors, ", "muted"
        yield f"event{TIED}{freed}", link("key", freed)
    else:
        yield "saved tensors:", ""


def _operand(timeline: Timeline, moment: Moment, info: NodeInfo, operand: Operand) -> Iterator[Span]:
    if not operand.node:
        yield "a tensor that is not recorded", "muted"
        return
    yield label(timeline, operand.node), link("key", operand.born)
    yield f"  {short(operand.value) if operand.value is not None else 'not stored'}", "value"
    yield from _size(operand.value)
    then, now = (timeline.at(info.born).state(operand.node), moment.state(operand.node))
    if then is None or now is None:
        return
    before, after = then.outputs[operand.output_nr].version, now.outputs[operand.output_nr].version
    if before == after:
        yield f"  version {before}", "muted"
    else:
        yield f"  ! saved at version {before}, now {after}: backward through here fails", "error"


def _result(value: Value | None, node: int, name: str) -> Iterator[Span]:
    if name != "result":
        yield "an argument of the call", "muted"
        return
    yield f"#{node} its own result", ""
    yield f"  {short(value) if value is not None else 'not stored'}", "value"
    yield from _size(value)


def _size(value: Value | None) -> Iterator[Span]:
    if value is not None and value.nbytes:
        yield f"  ({bytes_text(value.nbytes)})", "muted"


def _writes(timeline: Timeline, moment: Moment, info: NodeInfo, width: int) -> Iterator[Line]:
    state = moment.state(info.node)
    outputs = state.outputs if state is not None else ()
    for nr, output in enumerate(outputs):
        which = f" of output {nr}" if len(outputs) > 1 else ""
        yield from wrapped(line((f"memory{which}: version {output.version}", "")), width)
    events = ((seq, timeline.event(seq)) for seq in timeline.events_of(info.node) if seq <= moment.n)
    writes = [(seq, event) for seq, event in events if isinstance(event, StorageWritten | DataSet)]
    if len(writes) > WRITES:
        yield line((f"  ({len(writes) - WRITES} earlier writes are left out)", "muted"))
    for seq, write in writes[-WRITES:]:
        by = label(timeline, writer) if (writer := writer_of(write)) else "the program"
        spans: list[Span] = [
            (f"event{TIED}{seq}", link("key", seq)),
            (f" {by} wrote version {write.version}", ""),
            (f"  {short(write.value)}", "value"),
        ]
        yield from wrapped(line("  ", *spans), width, 4)
