"""Averages of models that begin with the average of the last round, so that the weights grow in every round.

Idea. An average is a sum of tensors with factors that add up to 1. If the sum of the next round goes on from it, the
factors add up to 2, and so on. Between two rounds the program trains, and it writes the sum into parameters.

Example. ``self.total[k] = self.total[k] + w[k] * share`` for each client, without ``self.total = None`` in each round.

Limits. The factors must be numbers. A running average multiplies the old value by a factor, too, so it is none.
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
from gviz.explain.survey import NodeRecord, Survey

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
        if record.op != "add":
            if is_in_place and memory in open_sums:
                done.append(open_sums.pop(memory))
            continue
        sources = list(survey.sources(record))
        alpha = dict(created.attrs).get("alpha", 1)
        passes = bisect_left(starts, record.seq)
        for old, new in (sources[:2], sources[:2][::-1]) if len(sources) > 1 else ():
            factor = _factor(survey, new)
            if factor is None and isinstance(alpha, float) and new is sources[1]:
                factor = 1.0
            if factor is None or not isinstance(alpha, int | float) or not old.created.outputs:
                continue
            sum_of = open_sums.pop(old.created.outputs[0].storage, None)
            if sum_of is None and (start := _start(survey, old, passes)) is not None:
                sum_of = start
            if sum_of is not None:
                sum_of.append(_Addition(record, factor * (alpha if new is sources[1] else 1), passes))
                open_sums[memory] = sum_of
                break
    return [*done, *open_sums.values()]


def _factor(survey: Survey, record: NodeRecord) -> float | None:
    """Return the number that a tensor is multiplied with or divided by; None for any other tensor."""
    if record.op not in ("mul", "div") or record.created.requires_grad:
        return None
    sources = list(survey.sources(record))
    attribute = dict(record.created.attrs).get("other")
    numbers = [attribute] if isinstance(attribute, int | float) else []
    for one in sources:
        stats = one.value.statistics() if one.value is not None and one.value.size == 1 and not one.shape else None
        numbers += [stats.mean] if stats is not None else []
    if len(numbers) != 1 or not numbers[0]:
        return None
    return float(numbers[0]) if record.op == "mul" else 1 / float(numbers[0])


def _start(survey: Survey, old: NodeRecord, passes: int) -> list[_Addition] | None:
    """Return a new sum that begins with zeros or with a multiple; None for any other start."""
    stats = old.stats
    if stats is not None and old.value is not None and stats.zero == old.value.size:
        return []
    factor = _factor(survey, old)
    return [_Addition(old, factor, passes)] if factor is not None else None


def _is_loaded(survey: Survey, last: NodeRecord, following: NodeRecord) -> bool:
    """Return whether the program writes the result of a round into a parameter before the next round."""
    result = numbers_without_shape(survey.timeline.memory_value(last.node, 0, following.seq - 1))
    own = last.created.outputs[0].storage
    for seq, event in survey.select(StorageWritten, DataSet):
        is_between = last.seq < seq < following.seq and result is not None
        is_other = isinstance(event, DataSet) or (isinstance(event, StorageWritten) and event.storage != own)
        if is_between and is_other and numbers_without_shape(getattr(event, "value", None)) == result:
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
