"""The panel of one node at one moment, as rows of text: value, operands, gradient, contributions, rules, source."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from gviz.events import GradFlowed, NodeCreated, StepStarted
from gviz.explain.accumulation import accumulation
from gviz.explain.arithmetic import Operand, Share, computation, shares
from gviz.explain.contributions import contribution
from gviz.explain.names import label, why_untracked
from gviz.explain.standing import as_at
from gviz.numbers import FEW, SOME, bad_text, bytes_text, full, grad, share, short
from gviz.plain_text import clipped, file_line, shown
from gviz.site import Frame
from gviz.trace.moment import Moment
from gviz.trace.state import Contribution, NodeInfo, NodeState, OutputState
from gviz.trace.timeline import Timeline
from gviz.values import Value

RowKey = tuple[int, int, int]
"""Where a row stands in its panel: the question it answers (in the order of `Panels.rows`), which output, input or
frame it is about, and which contribution."""

LIST = 8
"""Users, callers and contributions beyond so many are counted."""

Row = tuple[RowKey, str]

UNBORN: RowKey = (0, 0, 0)
ALL = frozenset(range(13))
"""All questions: 0 not made yet, 1 how computed, 2 value, 3 with what, 4 arguments, 5 kind, 6 saved, 7 used by,
8 gradient in, 9 ``.grad``, 10 gradients out, 11 where, 12 module."""


def row(style: str, name: str, text: str) -> str:
    """A row as one text: its style, its label, and what it says."""
    return f"{style}\t{name}\t{text}"


def _differences(before: NodeState, now: NodeState) -> Iterator[int]:
    """The questions whose answers may read differently, as the state is not what it was."""
    pairs = list(zip(before.outputs, now.outputs, strict=True))
    if any((old.value_seq, old.version) != (new.value_seq, new.version) for old, new in pairs):
        yield 2
    if before.requires_grad != now.requires_grad:
        yield from (5, 8, 9)
    if (before.saved, before.saved_freed) != (now.saved, now.saved_freed):
        yield 6
    if before.pass_nr != now.pass_nr or any(_arrivals(old) != _arrivals(new) for old, new in pairs):
        yield 8
    if any(old.grad_seq != new.grad_seq for old, new in pairs):
        yield 9
    if (before.pass_nr, before.step) != (now.pass_nr, now.step):
        yield 10


def _arrivals(output: OutputState) -> tuple[Value | None, int, int]:
    return output.incoming, len(output.parts), output.expected


class PanelRows:
    """Panels of many nodes, moment after moment; rows that cannot have changed are not worked out again."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._known: dict[int, set[RowKey]] = {}
        self._seen: dict[int, NodeState] = {}
        self._rules: dict[int, list[Row]] = {}
        self._contributions: dict[int, str] = {}

    def rows(self, moment: Moment, node: int, state: NodeState | None) -> Iterator[Row]:
        """The rows that may have changed since the node was asked for last, those that are gone as empty texts.

        Keys sort in the order of the panel.
        """
        asked = self._asked(moment, node, state)
        if not asked:
            return
        known = self._known.setdefault(node, set())
        found = dict(self._answers(moment, node, state, asked))
        before = {key for key in known if key[0] in asked}
        yield from ((key, "") for key in before - found.keys())
        known -= before
        known.update(found)
        if state is not None:
            self._seen[node] = state
        yield from found.items()

    def forget(self) -> None:
        """Inputs need a gradient now, or no longer: the rules read differently."""
        self._seen.clear()
        self._rules.clear()

    def _asked(self, moment: Moment, node: int, state: NodeState | None) -> Collection[int]:
        """The questions that are answered anew."""
        before = self._seen.get(node)
        if state is None or before is None:
            return ALL
        asked = set(_differences(before, state)) if state is not before else set()
        if isinstance(moment.event, NodeCreated):
            asked.add(7)
        if isinstance(moment.event, GradFlowed | StepStarted) and moment.actor == node:
            asked.add(10)
        return asked

    def _answers(self, moment: Moment, node: int, state: NodeState | None, asked: Collection[int]) -> Iterator[Row]:
        """All rows that answer the questions."""
        info = self._timeline.info(node)
        if state is None:
            yield UNBORN, row("muted", "", f"not made yet: event {info.born} makes it")
            return
        if 1 in asked:
            yield from _fixed(self._timeline, node)
        if 2 in asked:
            yield from _values(info, state)
        if 5 in asked or 6 in asked:
            yield from (row for row in _about(info, state) if row[0][0] in asked)
        if 7 in asked:
            yield from _users(self._timeline, node, moment.n)
        if 8 in asked or 9 in asked:
            yield from (row for row in self._gradient(node, state) if row[0][0] in asked)
        if 10 in asked:
            yield from self._sent(moment, node, state)

    def _gradient(self, node: int, state: NodeState) -> Iterator[Row]:
        if state.requires_grad:
            for number, output in enumerate(state.outputs):
                yield from self._arrived(node, number, state, output)

    def _sent(self, moment: Moment, node: int, state: NodeState) -> Iterable[Row]:
        """The rule for every input; before it has run without numbers, which never changes."""
        created = self._timeline.info(node).created
        if created.kind != "op" or created.untracked:
            return ()
        if state.step in ("running", "done"):
            return _rules(self._timeline, moment, node)
        if node not in self._rules:
            self._rules[node] = list(_rules(self._timeline, moment, node))
        return self._rules[node]

    def _arrived(self, node: int, number: int, state: NodeState, output: OutputState) -> Iterator[Row]:
        """What has come in, contribution by contribution, and ``.grad``."""
        suffix = f" {number}" if len(state.outputs) > 1 else ""
        count = f" ({len(output.parts)} of {output.expected})" if output.expected > 1 else ""
        came = output.incoming is not None
        yield (8, number, 0), row(_style(output.incoming, "grad"), f"grad in{suffix}",
                                  _gradient(output.incoming) + count if came else "none yet")  # fmt: skip
        for at, part in enumerate(output.parts[:LIST]):
            yield (8, number, at + 1), row("text", "", self._contribution(part))
        if len(output.parts) > LIST:
            yield (8, number, LIST + 1), row("muted", "", f"and {len(output.parts) - LIST} more contributions")
        if self._timeline.info(node).created.kind != "op" or output.grad is not None:
            yield (9, number, 0), row(_style(output.grad, "grad"), f".grad{suffix}", self._held(node, output))

    def _contribution(self, part: Contribution) -> str:
        """The rule that made a contribution, with its numbers."""
        if part.seq not in self._contributions or not part.source:
            self._contributions[part.seq] = f"{contribution(self._timeline, part).text}, event {part.seq}"
        return self._contributions[part.seq]

    def _held(self, node: int, output: OutputState) -> str:
        if output.grad is None:
            return "None"
        added = accumulation(self._timeline, node, output)
        before = f"{share(added.before)} += {share(added.part)} -> " if added is not None else ""
        return f"{before}{_told(output.grad)}, event {output.grad_seq}"


def _fixed(timeline: Timeline, node: int) -> Iterator[Row]:
    """How the node was made, and where in the source."""
    info, computed = timeline.info(node), computation(timeline, node)
    if computed.text:
        yield (1, 0, 0), row("text", "formula", computed.text)
    for operand in computed.operands:
        yield (3, operand.slot, 0), row("value", "with" if operand.slot == 0 else "", _operand(operand))
    if computed.attributes and info.created.kind == "op":
        text = ", ".join(f"{name} {value}" for name, value in computed.attributes)
        yield (4, 0, 0), row("text", "args", clipped(text, 400))
    for depth, frame in enumerate(info.frames[:LIST]):
        made = f", event {info.born}" if depth == 0 else ""
        yield (11, depth, 0), row("text", "from" if depth else "at", frame_text(frame) + made)
    if len(info.frames) > LIST:
        yield (11, LIST, 0), row("muted", "", f"and {len(info.frames) - LIST} more callers")
    if info.scope:
        yield (12, 0, 0), row("text", "module", clipped(info.scope, 200))


def frame_text(frame: Frame) -> str:
    """A frame in one line: ``demo.py:4 in train``."""
    function = "" if frame.function == "<module>" else f" in {clipped(frame.function, 60)}"
    return f"{file_line(frame.path, frame.line)}{function}"


def _operand(operand: Operand) -> str:
    if not operand.node:
        return "a tensor that is not recorded"
    name = f" {operand.name}" if operand.name and not operand.name.startswith("#") else ""
    which = f" output {operand.output_nr}" if operand.output_nr else ""
    return f"#{operand.node}{name}{which}: {short(operand.value) if operand.value is not None else 'not stored'}"


def _values(info: NodeInfo, state: NodeState) -> Iterator[Row]:
    for number, output in enumerate(state.outputs):
        name = "value" if len(state.outputs) == 1 else f"value {number}"
        text = _told(output.value) if output.value is not None else "not stored"
        yield (2, number, 0), row(_style(output.value, "value"), name, text)
        if output.version > info.created.outputs[number].version:
            by = f" by #{output.written_by}" if output.written_by else ""
            written = f"written in place{by}, version {output.version}, event {output.value_seq}"
            yield (2, number, 1), row("sum", "", written)


def _told(value: Value) -> str:
    """A few elements exactly; of more what matters, as the numbers of many would make the page large."""
    if value.size <= SOME:
        return full(value)
    return f"{short(value)}, {value.dtype}, {bytes_text(value.nbytes)}"


def _gradient(value: Value | None) -> str:
    """A matrix of some elements by its elements, of more its length."""
    return full(value) if value is not None and FEW < value.size <= SOME else grad(value)


def _style(value: Value | None, style: str) -> str:
    return "muted" if value is None else "bad" if bad_text(value) else style


def _about(info: NodeInfo, state: NodeState) -> Iterator[Row]:
    kind = _kind(as_at(info, state), state)
    if kind:
        yield (5, 0, 0), row("text", "kind", kind)
    if state.saved != "nothing":
        yield (6, 0, 0), row("muted" if state.saved == "freed" else "text", "saved", _saved(info, state))


def _kind(info: NodeInfo, state: NodeState) -> str:
    """What is special about the node; nothing for a tracked operation."""
    if info.created.kind != "op":
        return f"{info.created.kind}, {'requires grad' if state.requires_grad else 'no grad'}"
    if info.created.untracked:
        return f"not tracked: {why_untracked(info.created)}"
    view = next((output.view_of for output in info.created.outputs if output.view_of), 0)
    return f"a view of #{view}: shares its memory" if view else ""


def _saved(info: NodeInfo, state: NodeState) -> str:
    if state.saved == "freed":
        return f"released, event {state.saved_freed}"
    return ", ".join(map(shown, info.op.saved)) or "yes"


def _users(timeline: Timeline, node: int, n: int) -> Iterator[Row]:
    users = [user for user in timeline.users(node) if timeline.info(user).born <= n]
    more = f" and {len(users) - LIST} more" if len(users) > LIST else ""
    if users:
        text = ", ".join(clipped(label(timeline, user), 40) for user in users[:LIST])
        yield (7, 0, 0), row("text", "used by", text + more)


def _rules(timeline: Timeline, moment: Moment, node: int) -> Iterator[Row]:
    for sent in shares(timeline, moment, node):
        yield (10, sent.operand.slot, 0), row("text" if sent.event else "muted", *_sent(sent))


def _sent(sent: Share) -> tuple[str, str]:
    """The rule for one input; once it has run with its numbers, and the sum it was added to."""
    operand = sent.operand
    name = f" {operand.name}" if operand.name and not operand.name.startswith("#") else ""
    to = f"to #{operand.node}{name}" if operand.node else "to ?"
    if sent.missing:
        return to, sent.missing
    words = [sent.rule, "" if sent.reduced else sent.numbers]
    if sent.part is not None:
        words.append(share(sent.part))
    summed = f", summed over {sent.reduced}" if sent.reduced else ""
    text = " = ".join(dict.fromkeys(filter(None, words))) + summed
    if sent.part is None or sent.expected < 2:
        return to, text
    old = share(sent.before) if sent.before is not None else "0"
    new = share(sent.after) if sent.after is not None else ""
    return to, f"{text}; incoming {old} += {share(sent.part)} -> {new} ({sent.nth} of {sent.expected})"
