"""An update that only replaces the variable of a loop, so that no parameter changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from gviz.events import StorageWritten
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.edit import switch_of, written_to_variable
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import ELEMENTWISE, SAME_NUMBERS
from gviz.explain.program_source import LostAssignment, lost_assignment
from gviz.explain.recording_overview import NodeRecord, Survey

_UPDATES = ELEMENTWISE | {"lerp", "where", "masked_fill", "addcmul", "addcdiv", "rsub", "maximum", "minimum"}
"""The operations that an update of a parameter ends with."""


def lost_updates(survey: Survey) -> Iterator[Finding | None]:
    """Yield assignments to the variable of a loop that compute a parameter's next value, and that nothing reads.

    Idea. The text shows that a line only replaces the variable of its loop, and that nothing reads it afterwards. The
    recording shows that the line computed tensors from parameters or gradients, that they have the same shape, and
    that no operation of another line used them.

    Example. ``for ema_p, p in zip(ema.parameters(), net.parameters()): ema_p = 0.9 * ema_p + 0.1 * p``

    Limits. Lines that also write in place are left out, and so are results in a list or a dictionary.
    """
    of_statements: defaultdict[LostAssignment, list[NodeRecord]] = defaultdict(list)
    known: dict[int, LostAssignment | None] = {}
    for record in survey.nodes.values():
        created = record.created
        if created.kind != "op" or created.during[0]:
            continue
        if created.stack not in known:
            yield None
            known[created.stack] = lost_assignment(survey.timeline, survey.at(record))
        if (statement := known[created.stack]) is not None:
            of_statements[statement].append(record)
    owners = _owners(survey) if of_statements else {}
    for statement, records in of_statements.items():
        yield _lost_update(survey, statement, records, owners)


def _lost_update(
    survey: Survey, statement: LostAssignment, records: list[NodeRecord], owners: dict[int, NodeRecord]
) -> Finding | None:
    timeline, ours = survey.timeline, {record.node: record for record in records}
    users = {node: timeline.nodes.users(node) for node in ours}
    if any(user not in ours for each in users.values() for user in each):
        return None
    if any(event.node in ours for _, event in survey.select(StorageWritten)):
        return None
    updates = _UPDATES if statement.reads_itself else _UPDATES | SAME_NUMBERS
    results = [record for record in records if not users[record.node] and record.op in updates]
    lost = [(record, source) for record in results if (source := _source(survey, record, ours, owners)) is not None]
    if not lost:
        return None
    record, source = lost[-1]
    text = titled("the update of {} is lost: it only assigns to the variable of the loop", statement.name)
    fact = f"{label_at(timeline, record.node)} is computed from {label(timeline, source.node)}, and nothing uses it"
    more = f"; nor the other {len(lost) - 1} results of this line" if len(lost) > 1 else ""
    part = Finding("recomputed", f"{fact}{more}", record.seq, record.node)
    name, stack = statement.name, timeline.stack(record.created.stack)
    off = any(one.created.switched_off for one in records) or switch_of(timeline, stack) is not None
    edit = written_to_variable(timeline, statement.at, name, statement.value, off=off)
    fix = f"write to its tensor in place: {name}.copy_(...){'' if off else ' under torch.no_grad()'}"
    return Finding("lost-update", text, record.seq, record.node, (part,), fix, survey.at(record), edit=edit)


def _owners(survey: Survey) -> dict[int, NodeRecord]:
    """Return the parameter, leaf or gradient of each memory."""
    owners: dict[int, NodeRecord] = {}
    for record in survey.nodes.values():
        created, attrs = record.created, dict(record.created.attrs)
        is_leaf = created.kind == "parameter" or (created.kind == "leaf" and created.requires_grad)
        if is_leaf or attrs.get("grad_of") or attrs.get("gradient"):
            for output in created.outputs:
                owners.setdefault(output.storage, record)
    return owners


def _source(
    survey: Survey, record: NodeRecord, ours: dict[int, NodeRecord], owners: dict[int, NodeRecord]
) -> NodeRecord | None:
    """Return the parameter or gradient of the same shape from which a line computed a result in new memory.

    Prefers one that no optimizer has.
    """
    within, memories = [record], set[int]()
    for one in within:
        sources = ((survey.nodes.get(node), nr) for node, nr in one.created.inputs)
        memories |= {source.created.outputs[nr].storage for source, nr in sources if source is not None}
        within += [ours[node] for node, _ in one.created.inputs if node in ours]
    if not memories.isdisjoint(output.storage for output in record.created.outputs):
        return None
    found = (owners[memory] for memory in sorted(memories) if memory in owners)
    alike = [one for one in found if one.shape == record.shape]
    return min(alike, key=lambda one: (one.node in survey.optimized, one.created.kind == "constant"), default=None)
