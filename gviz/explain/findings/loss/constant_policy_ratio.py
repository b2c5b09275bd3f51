"""A ratio of a new policy and an old one that is always 1, because the old one is computed again before each step.

Idea. PPO takes several steps on the same data, and ``exp(logp - logp_old)`` says how far the policy is from the one
that acted. If `logp_old` comes from the parameters of this very step, both are the same numbers in every pass.

Example. ``with torch.no_grad(): logp_old = policy.log_prob(obs, act)`` inside of the loop over epochs, not before it.
The ratio is then 1, no clipping acts, and the policy goes as far as ten steps of REINFORCE on old data take it.

Limits. ``logp - logp.detach()`` is 0 on purpose. So is a difference whose operands share a tracked tensor. With one
step for each batch of actions, old and new are equal in a right program, too: at least two passes in a row, with a step
between them, must take the same observations and actions (by their tensors, over indexing; without a write to their
memory), and weights that were not computed anew from the policy. Minibatches count if they are more than the data
once. Data that each pass makes anew from arrays, and single actions, are left out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from gviz.events import DataSet, StorageWritten
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.operation_sets import CLAMPS, LISTS, SAME_NUMBERS
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_frames import own_frames
from gviz.explain.tracking import ancestors
from gviz.source.call_stack import Frame

_FEWEST = 3
_MOST_PASSES, _MOST_NODES, _MOST_VIEWS, _MOST_USERS = 100, 5_000, 20, 50
_ROUNDING = 2e-6
"""The relative difference of two equal sums: tracked and untracked layers may add up in another order."""

_SELECTING = frozenset({"getitem", "index", "index_select", "select", "slice", "narrow"})
_BEFORE_EXP = SAME_NUMBERS | CLAMPS | {"sum", "mean"}
_BEFORE_WEIGHT = SAME_NUMBERS | CLAMPS | {"neg"}

_MORE_THAN_ONCE = 1.01
"""How often several passes must take all rows of the data: once is one epoch, in which no row is old."""


@dataclass(frozen=True, slots=True)
class _Ratio:
    """A difference or quotient of two results, one of them untracked, and the ratio that a loss uses."""

    compared: NodeRecord
    ratio: NodeRecord
    new: NodeRecord
    old: NodeRecord


@dataclass(frozen=True, slots=True)
class _Data:
    """What two computations were both made of: the share of each tensor's rows that they took, and the new constants.

    `constants` are those of the old computation alone, such as an ``arange``, by their numbers.
    """

    rows: dict[int, float]
    constants: frozenset[object]


def constant_ratios(survey: Survey) -> Iterator[Finding | None]:
    """Yield the ratios that are 1 in all passes although the parameters change: each line once."""
    by_line: defaultdict[object, list[NodeRecord]] = defaultdict(list)
    for record in survey.ops("sub", "div"):
        yield None
        if record.value is not None and record.value.size > 1 and len(record.created.inputs) == 2:
            by_line[record.op, survey.at(record)].append(record)
    written = _Writes(survey) if by_line else None
    for records in by_line.values():
        yield None
        if len(records) < _FEWEST or written is None or not all(_is_of_equals(survey, record) for record in records):
            continue
        tracked = [record for record in records if record.created.requires_grad]
        ratios = [one for record in tracked if (one := _ratio(survey, record)) is not None]
        if len(ratios) < max(_FEWEST, len(tracked)):
            continue
        again = _computed_again(survey, ratios, written)
        yield None
        if again is not None and _is_in_loss(survey, again):
            yield _finding(survey, again, len(ratios))


def _is_of_equals(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a difference consists of zeros, or a quotient of ones, but for rounding."""
    stats, first = record.stats, next(survey.sources(record), None)
    operand = first.stats if first is not None else None
    if stats is None or stats.nan or stats.inf or operand is None:
        return False
    center, size = (0.0, max(-operand.min, operand.max)) if record.op == "sub" else (1.0, 1.0)
    return max(abs(stats.min - center), abs(stats.max - center)) <= _ROUNDING * (1 + size)


def _ratio(survey: Survey, compared: NodeRecord) -> _Ratio | None:
    """Return the ratio that is made of a difference of a tracked and an untracked result; None without one."""
    new, old, *_ = [*survey.sources(compared), None, None]
    if new is None or old is None or not new.created.requires_grad or old.created.requires_grad:
        return None
    stats = new.stats
    if old.created.kind != "op" or new.shape != old.shape or stats is None or not stats.min < stats.max:
        return None
    ratio = compared if compared.op == "div" else _user(survey, compared, _BEFORE_EXP, "exp")
    return _Ratio(compared, ratio, new, old) if ratio is not None else None


def _user(survey: Survey, record: NodeRecord, over: frozenset[str], op: str) -> NodeRecord | None:
    """Return the first tracked operation of a name that uses a tensor, directly or over others."""
    return next((user for user, _ in _users(survey, record, over) if user.op == op), None)


def _users(survey: Survey, record: NodeRecord, over: frozenset[str]) -> Iterator[tuple[NodeRecord, int]]:
    """Yield the tracked operations that use a tensor, directly or over others, each with the node that it uses."""
    waiting, seen = [record.node], {record.node}
    while waiting and len(seen) < _MOST_USERS:
        node = waiting.pop(0)
        for user in survey.timeline.nodes.users(node):
            one = survey.nodes.get(user)
            if one is None or user in seen or not one.created.requires_grad:
                continue
            seen.add(user)
            yield one, node
            if one.op in over:
                waiting.append(user)


# Passes on the same data


class _Writes:
    """When tensors were written to: by the memory of a node, or through its ``.data``."""

    def __init__(self, survey: Survey) -> None:
        self._of_storage: defaultdict[int, list[int]] = defaultdict(list)
        self._of_node: defaultdict[int, list[int]] = defaultdict(list)
        for seq, write in survey.select(StorageWritten):
            self._of_storage[write.storage].append(seq)
        for seq, assigned in survey.select(DataSet):
            self._of_node[assigned.node].append(seq)

    def any_to(self, record: NodeRecord, start: int, end: int) -> bool:
        """Return whether a tensor was written to between two events."""
        storages = [out.storage for out in record.created.outputs[:1] if out.storage]
        known = [self._of_node.get(record.node, []), *(self._of_storage.get(one, []) for one in storages)]
        return any(bisect_right(seqs, end) > bisect_right(seqs, start) for seqs in known)


def _computed_again(survey: Survey, ratios: list[_Ratio], written: _Writes) -> _Ratio | None:
    """Return a ratio whose old operand was computed for the same data as in the pass before, after a step."""
    before: tuple[_Ratio, _Data, list[NodeRecord]] | None = None
    times = 0.0
    for one in ratios[:_MOST_PASSES]:
        made_of = _made_of(survey, one)
        if made_of is None:
            return None  # they share a tracked result: the ratio is 1 on purpose
        data, leaves = made_of
        taken = min(data.rows.values(), default=0.0)
        is_again = before is not None and _is_again(survey, before, (one, data, leaves), written)
        times = times + taken if is_again else taken
        if is_again and times > _MORE_THAN_ONCE:
            return one
        before = one, data, leaves
    return None


def _is_again(
    survey: Survey,
    before: tuple[_Ratio, _Data, list[NodeRecord]],
    after: tuple[_Ratio, _Data, list[NodeRecord]],
    written: _Writes,
) -> bool:
    """Return whether two passes take the same data with other parameters."""
    (first, data, leaves), (second, other_data, _) = before, after
    start, end = first.old.seq, second.old.seq
    if not data.rows or data.rows.keys() != other_data.rows.keys() or data.constants != other_data.constants:
        return False
    if any(written.any_to(survey.nodes[node], start, end) for node in data.rows):
        return False
    if not any(written.any_to(leaf, first.compared.seq, end) for leaf in leaves):
        return False
    if min(data.rows.values()) == 1 and first.new.stats == second.new.stats:
        return False  # no step has changed the policy
    weight = _weight(survey, second)
    return weight is not None and not _is_of_new_policy(survey, weight, start, leaves, written)


def _made_of(survey: Survey, one: _Ratio) -> tuple[_Data, list[NodeRecord]] | None:
    """Return the data of both operands, and the trained leaves of the new one; None if they share a tracked result."""
    shared = set(islice(ancestors(survey.timeline, one.new.node), _MOST_NODES))
    if len(shared) == _MOST_NODES:
        return None
    shared.add(one.new.node)
    rows, constants, seen, waiting = dict[int, float](), set[object](), {one.old.node}, [one.old]
    while waiting:
        record = waiting.pop()
        sources = list(survey.sources(record))
        if record.node in shared or not sources:
            if record.created.kind == "op" and record.created.requires_grad:
                return None
            if record.value is None or record.value.size < 2 or _is_trained(record):
                continue
            if record.node in shared:
                _add_rows(rows, _rows_of(survey, record))
            elif record.created.kind != "op":
                constants.add((record.shape, record.stats))
            continue
        first = sources[0]
        if record.op in _SELECTING and first.node in shared and not first.created.requires_grad:
            _add_rows(rows, _rows_of(survey, record))
            continue
        waiting += [source for source in sources if source.node not in seen]
        seen.update(source.node for source in sources)
    nodes = (survey.nodes[node] for node in survey.history(one.new.node))
    leaves = [record for record in nodes if record.created.kind != "op" and record.created.requires_grad]
    return _Data(rows, frozenset(constants)), leaves


def _is_trained(record: NodeRecord) -> bool:
    return record.created.kind == "parameter" or record.created.requires_grad


def _add_rows(rows: dict[int, float], more: dict[int, float]) -> None:
    for node, part in more.items():
        rows[node] = max(rows.get(node, 0.0), part)


def _rows_of(survey: Survey, record: NodeRecord, views: int = 0) -> dict[int, float]:
    """Return the tensors of which an index, a view or a list of rows took its numbers, and which part of each."""
    sources = list(survey.sources(record))
    if record.created.kind != "op" or not sources or views > _MOST_VIEWS:
        return {record.node: 1.0}
    if record.op in _SELECTING or record.op in SAME_NUMBERS or record.op == "detach":
        size, whole = (one.value.size if one.value is not None else 0 for one in (record, sources[0]))
        part = min(1.0, size / whole) if whole else 1.0
        return {node: part * rows for node, rows in _rows_of(survey, sources[0], views + 1).items()}
    if record.op in LISTS:
        total: defaultdict[int, float] = defaultdict(float)
        for source in sources:
            for node, rows in _rows_of(survey, source, views + 1).items():
                total[node] = min(1.0, total[node] + rows)
        return dict(total)
    return {record.node: 1.0}


def _weight(survey: Survey, one: _Ratio) -> NodeRecord | None:
    """Return the untracked tensor by which a loss multiplies a ratio: the advantages."""
    for user, used in _users(survey, one.ratio, _BEFORE_WEIGHT):
        others = [source for source in survey.sources(user) if source.node != used]
        is_product = user.op == "mul" and len(others) == 1 and not others[0].created.requires_grad
        if is_product and others[0].value is not None and others[0].value.size > 1:
            return others[0]
    return None


def _is_of_new_policy(
    survey: Survey, weight: NodeRecord, start: int, leaves: list[NodeRecord], written: _Writes
) -> bool:
    """Return whether weights were computed since an event from the policy or from new data: they belong to it then."""
    trained, seen, waiting = {leaf.node for leaf in leaves}, {weight.node}, [weight]
    while waiting:
        record = waiting.pop()
        if record.node in trained or len(seen) > _MOST_NODES:
            return True
        if record.seq <= start:
            if not _is_trained(record) and written.any_to(record, start, weight.seq):
                return True
            continue
        sources = list(survey.sources(record))
        if not sources and record.value is not None and record.value.size > 1 and not _is_trained(record):
            return True
        sources = sources[:1] if record.op in _SELECTING else sources
        waiting += [source for source in sources if source.node not in seen]
        seen.update(source.node for source in sources)
    return False


def _is_in_loss(survey: Survey, one: _Ratio) -> bool:
    """Return whether a loss is computed from a ratio."""
    roots = (node for seq, event in survey.passes if seq > one.ratio.seq for node, _ in event.roots)
    root = next(roots, None)
    return root is not None and one.ratio.node in islice(survey.history(root), _MOST_NODES)


# What is reported


def _finding(survey: Survey, one: _Ratio, passes: int) -> Finding:
    timeline, at = survey.timeline, _line_of_old(survey, one)
    ratio, old = label(timeline, one.ratio.node), label(timeline, one.old.node)
    text = titled(f"{{}} is 1 in all {passes:,} passes: {{}} is never older", ratio, old)
    fact = f"it is computed for the same data again after each step, so it equals {label_at(timeline, one.new.node)}"
    part = Finding(
        "operand", f"{fact}: no ratio is limited", one.compared.seq, one.old.node, at=survey.at(one.compared)
    )
    fix = "compute the old log-probabilities once, before the loop over epochs, or keep those of the rollout"
    numbers = (Number("passes", passes),)
    return Finding("constant-ratio", text, one.compared.seq, one.ratio.node, (part,), fix, at, numbers)


def _line_of_old(survey: Survey, one: _Ratio) -> Frame | None:
    """Return the line that made the old operand and not the new one: the call, if both ran the same function."""
    frames, new = (own_frames(survey.timeline.stack(each.created.stack)) for each in (one.old, one.new))
    lines = {(frame.path, frame.line) for frame in new}
    return next((frame for frame in frames if (frame.path, frame.line) not in lines), survey.at(one.compared))
