"""Averages of models that begin with the average of the last round, so that the weights grow in every round.

Idea. An average is a sum of tensors with factors that add up to 1. If the sum of the next round goes on from it, the
factors add up to 2, and so on. Between two rounds the program trains, and it writes the sum into parameters.

Example. ``self.total[k] = self.total[k] + w[k] * share`` for each client, without ``self.total = None`` in each round.

Limits. The factors must be numbers. A running average also multiplies the old value by a factor, so it is not reported.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from gviz.events import DataSet, StorageWritten
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.parameter_updates import numbers_without_shape
from gviz.explain.recording_survey import NodeRecord, Survey

_ROUNDING = 1e-3


@dataclass(frozen=True, slots=True)
class _Addition:
    """One term of a sum: the operation that added it, the factor of the term, and the passes that ran before."""

    record: NodeRecord
    factor: float
    passes: int


def carried_average(survey: Survey) -> Iterator[Finding | None]:
    """Yield sums that are a whole average in each round and go on in the next one: each line once."""
    seen = set[int]()
    for additions in _sums(survey):
        yield None
        rounds = [list(group) for _, group in groupby(additions, key=lambda one: one.passes)]
        is_average = all(abs(sum(one.factor for one in each) - 1) < _ROUNDING for each in rounds)
        stack = additions[-1].record.created.stack
        if len(rounds) < 2 or not is_average or stack in seen or len(rounds[1]) < 2:
            continue
        if _is_loaded(survey, rounds[0][-1].record, rounds[1][0].record):
            seen.add(stack)
            yield _finding(survey, rounds)


def _sums(survey: Survey) -> list[list[_Addition]]:
    """Return the sums of untracked multiples, each as its additions; new memory or the same may hold the result."""
    starts, open_sums, done = [seq for seq, _ in survey.passes], dict[int, list[_Addition]](), list[list[_Addition]]()
    if len(starts) < 2:
        return []
    for record in survey.nodes.values():
        created = record.created
        if created.kind != "op" or created.requires_grad or not record.shape or not created.outputs:
            continue
        memory, is_in_place = created.outputs[0].storage, survey.timeline.op(created.op).name.endswith("_")
        sources = list(survey.sources(record))
        if record.op != "add" or len(sources) != 2:
            if is_in_place and memory in open_sums:
                done.append(open_sums.pop(memory))
            continue
        alpha = dict(created.attrs).get("alpha", 1)
        passes = bisect_left(starts, record.seq)
        for old, new in (sources, sources[::-1]):
            factor = _factor(survey, new)
            if factor is None and isinstance(alpha, float) and new is sources[1]:
                factor = 1.0
            if factor is None or not isinstance(alpha, int | float) or not old.created.outputs:
                continue
            sum_of = open_sums.pop(old.created.outputs[0].storage, None) or _start(survey, old, passes)
            if sum_of is not None:
                sum_of.append(_Addition(record, factor * (alpha if new is sources[1] else 1), passes))
                open_sums[memory] = sum_of
                break
    return [*done, *open_sums.values()]


def _factor(survey: Survey, record: NodeRecord) -> float | None:
    """Return the number that a tensor is multiplied with or divided by; None for any other tensor."""
    if record.op not in ("mul", "div") or record.created.requires_grad:
        return None
    numbers = [one.number for one in survey.sources(record) if not one.shape]
    if len(numbers) != 1 or not numbers[0]:
        return None
    return numbers[0] if record.op == "mul" else 1 / numbers[0]


def _start(survey: Survey, old: NodeRecord, passes: int) -> list[_Addition] | None:
    """Return a new sum that begins with zeros or with a multiple; None for any other start."""
    if old.value is not None and old.stats is not None and old.stats.zero == old.value.size:
        return []
    factor = _factor(survey, old)
    return [_Addition(old, factor, passes)] if factor is not None else None


def _is_loaded(survey: Survey, last: NodeRecord, following: NodeRecord) -> bool:
    """Return whether the program writes the result of a round into a parameter before the next round."""
    result = numbers_without_shape(survey.timeline.memory_value(last.node, 0, following.seq - 1))
    own = last.created.outputs[0].storage
    for seq, event in survey.select(StorageWritten, DataSet):
        is_other = isinstance(event, DataSet) or (isinstance(event, StorageWritten) and event.storage != own)
        value = event.value if isinstance(event, DataSet | StorageWritten) and is_other else None
        if value is not None and last.seq < seq < following.seq and numbers_without_shape(value) == result:
            return True
    return False


def _finding(survey: Survey, rounds: Sequence[Sequence[_Addition]]) -> Finding:
    timeline, first, again = survey.timeline, rounds[0][-1].record, rounds[1][0].record
    text = titled("{} goes on from the average of the last round", label(timeline, again.node))
    total = f"the factors add up to 1 in each round, and to {len(rounds)} after {len(rounds)} rounds"
    part = Finding("sum", f"{total}: it adds to {label_at(timeline, first.node)}", again.seq, first.node)
    fix = "begin each round with None or zeros: the result of the last round is in the model already"
    numbers = (Number("rounds", len(rounds), again.seq),)
    return Finding("carried-average", text, again.seq, again.node, (part,), fix, survey.at(again), numbers)
