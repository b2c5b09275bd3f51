"""Running averages of the weights whose factors do not add up to an average, so that they run away from the weights.

Idea. A running average is ``s = a * s + b * p`` with a copy `s` of the weights `p`. It follows them if `a` and `b` are
positive and add up to 1. The arithmetic between two backward passes shows both factors. With `a` above 1, the distance
grows in each update. With `a` below 1 and a `b` that is too large, `s` tends to ``b / (1 - a)`` times the weights.

Example. ``s.add_((s - p) * (1 - decay))`` has the factors ``2 - decay`` and ``decay - 1``: the sign is wrong.
``s = decay * s + p`` lacks the factor ``1 - decay``.

Limits. The factors must be numbers, and nothing else may enter. A sum with the factor 1 for what was there before is
most likely divided later; it is reported only if it adds a small part of the weights again and again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isclose, prod

from gviz.events import StorageWritten
from gviz.explain.display_names import label, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.operation_sets import SAME_NUMBERS
from gviz.explain.parameter_updates import nodes_with_numbers, rms
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.values.number_text import number

_FEWEST = 3
"""The fewest updates of a running average."""
_EXACT = 1e-6
_TOO_LARGE = 1.5
"""An average that tends to more than this times the weights does not follow them."""
_SMALL_PART = 0.5
_GROWN = 3.0
_BETWEEN = 2_000
"""Nodes after which other work may run."""

_Form = Mapping[int, float]
"""A tensor as a sum of what some memories held before an update, each with its factor."""

_COPIES = SAME_NUMBERS | {"detach", "data", "copy", "numpy", "from_numpy", "_to_copy"}


@dataclass(frozen=True, slots=True)
class _Version:
    """A tensor after an update ``old * copy + new * parameter``.

    `record` is the operation that added the parameter. The copy was in the memory `origin` before event `since`.
    `before` is the version that the update began with, None if that is no result of an update; `count` counts them.
    """

    record: NodeRecord
    parameter: NodeRecord
    old: float
    new: float
    origin: int
    since: int
    before: _Version | None
    count: int

    def updates(self) -> Iterator[_Version]:
        """Yield this update and the earlier ones, the last one first."""
        version: _Version | None = self
        while version is not None:
            yield version
            version = version.before


def running_averages(survey: Survey) -> Iterator[Finding | None]:
    """Yield running averages that run away from the weights: each line once, where the average is largest."""
    if len(survey.passes) < _FEWEST:
        return
    worst: dict[int, tuple[float, Finding]] = {}
    for last in (yield from _last_versions(survey)):
        yield None
        mistake = _mistake(last)
        sizes = _sizes(survey, last) if mistake else None
        if sizes is None or (mistake == "sum" and sizes.last < _GROWN * sizes.weights):
            continue
        stack, share = last.record.created.stack, sizes.last / sizes.weights
        if stack not in worst or share > worst[stack][0]:
            worst[stack] = share, _finding(survey, last, mistake, sizes)
    yield from (finding for _, finding in worst.values())


def _mistake(last: _Version) -> str:
    """Return what is wrong with all updates of a copy: the ``sign``, the ``factor``, or it may be a ``sum``; or ""."""
    if last.count < _FEWEST:
        return ""
    line = last.record.op, last.record.created.stack
    if any((one.record.op, one.record.created.stack) != line for one in last.updates()):
        return ""  # a part of the next update, such as the distance of a copy
    factors = [(one.old, one.new) for one in last.updates()]
    if all(old > 0 > new for old, new in factors):
        return "sign"
    if all(_EXACT < old < 1 - _EXACT and new > _TOO_LARGE * (1 - old) for old, new in factors):
        return "factor"
    if all(isclose(old, 1, abs_tol=_EXACT) and 0 < new < _SMALL_PART for old, new in factors):
        return "sum"
    return ""


# The updates of copies


def _last_versions(survey: Survey) -> Generator[None, None, list[_Version]]:
    """Return the versions that no later update begins with: the last ones of copies, and results between."""
    trained = {
        _storage(survey.nodes[node]): survey.nodes[node]
        for node in (*survey.optimized, *(event.node for _, event in survey.accumulated))
        if node in survey.nodes
    }
    passes = [seq for seq, _ in survey.passes]
    memory, versions, ended, period = _Memory(survey, trained), dict[int, _Version](), list[_Version](), 0
    for count, record in enumerate(survey.nodes.values()):
        if count % _BETWEEN == 0:
            yield None
        if record.created.kind != "op" or record.created.requires_grad or not record.shape:
            continue
        now = bisect_left(passes, record.seq)
        if now != period and memory.forms:
            _end_update(memory, versions, ended)
        period = now
        memory.run(record)
    _end_update(memory, versions, ended)
    return [*ended, *versions.values()]


def _end_update(memory: _Memory, versions: dict[int, _Version], ended: list[_Version]) -> None:
    """Make a version of each tensor that is a copy and a parameter times numbers, and begin the next update."""
    new, continued = dict[int, _Version](), set[int]()
    for storage, form in memory.forms.items():
        parts = {at: factor for at, factor in (form or {}).items() if factor}
        weights = [at for at in parts if at in memory.trained]
        if len(parts) != 2 or len(weights) != 1 or storage not in memory.adding:
            continue
        (old,) = parts.keys() - {*weights}
        parameter, before = memory.trained[weights[0]], versions.get(old)
        before = before if before is not None and before.parameter is parameter else None
        count = before.count + 1 if before is not None else 1
        record, since = memory.adding[storage], memory.touched[storage]
        new[storage] = _Version(record, parameter, parts[old], parts[weights[0]], old, since, before, count)
        continued.add(old)
    for storage in memory.forms:  # it holds something else now
        version = versions.pop(storage, None)
        if version is not None and storage not in continued:
            ended.append(version)
    versions |= new
    memory.begin()


class _Memory:
    """What each memory holds, as a sum of what memories held when the last backward pass began, each with a factor.

    `touched` has the first event since then that wrote to a memory, `adding` the last operation that brought a trained
    parameter into it. Parameters count as what they are at any time.
    """

    def __init__(self, survey: Survey, trained: Mapping[int, NodeRecord]) -> None:
        self.survey = survey
        self.trained = trained
        self.begin()

    def begin(self) -> None:
        """Let each memory hold what it holds now."""
        self.forms: dict[int, _Form | None] = {}
        self.touched: dict[int, int] = {}
        self.adding: dict[int, NodeRecord] = {}

    def run(self, record: NodeRecord) -> None:
        """Follow one operation that autograd does not track."""
        storage, sources = _storage(record), list(self.survey.sources(record))
        is_in_place = self.survey.timeline.op(record.created.op).name.endswith("_")
        is_own = bool(sources) and _storage(sources[0]) == storage
        is_view = not is_in_place and (is_own or bool(record.created.outputs and record.created.outputs[0].view_of))
        if storage in self.trained or not storage or is_view:
            return
        is_known = len(sources) == len(record.created.inputs) and not (is_own and self._is_part(sources[0]))
        brought = {at for one in sources if _storage(one) != storage for at in self._of(one) or ()}
        self.forms[storage] = self._combined(record, sources) if is_known else None
        self.touched.setdefault(storage, record.seq)
        if brought & self.trained.keys():
            self.adding[storage] = record

    def _is_part(self, view: NodeRecord) -> bool:
        """Return whether a tensor is only a part of its memory."""
        base = self.survey.nodes.get(view.created.outputs[0].view_of)
        return base is not None and base.shape != view.shape

    def _of(self, record: NodeRecord) -> _Form | None:
        storage = _storage(record)
        return self.forms.get(storage, {storage: 1.0}) if storage else None

    def _combined(self, record: NodeRecord, sources: Sequence[NodeRecord]) -> _Form | None:
        """Return the result of an operation in terms of its operands; None if it is no sum of multiples."""
        attributes = dict(record.created.attrs)
        forms = [self._of(one) for one in sources if one.shape]
        numbers = [one.number for one in sources if not one.shape]
        match record.op, len(forms), len(numbers):
            case ("add" | "sub" | "rsub", 2, 0):
                alpha = attributes.get("alpha", 1)
                weight = float(alpha) if isinstance(alpha, int | float) else None
                signs = {"add": (1.0, weight), "sub": (1.0, weight and -weight), "rsub": (weight and -weight, 1.0)}
                return _sum(forms, signs[record.op])
            case ("mul", 1, 1):
                return _sum(forms, numbers)
            case ("div", 1, 1) if sources[0].shape and numbers[0]:
                return _sum(forms, [1 / numbers[0]])
            case ("neg", 1, 0):
                return _sum(forms, [-1.0])
            case ("lerp", 2, 0 | 1):
                weight = numbers[0] if numbers else attributes.get("weight")
                return _sum(forms, [1 - weight, float(weight)]) if isinstance(weight, int | float) else None
            case ("copy", 2, 0):
                return forms[1]
            case (op, 1, 0) if op in _COPIES:
                is_whole = record.value is not None and record.value.size == prod(sources[0].shape)
                return forms[0] if is_whole else None
        return None


def _sum(forms: Sequence[_Form | None], factors: Sequence[float | None]) -> _Form | None:
    total = defaultdict[int, float](float)
    for form, factor in zip(forms, factors, strict=True):
        if form is None or factor is None:
            return None
        for storage, own in form.items():
            total[storage] += factor * own
    return total


def _storage(record: NodeRecord) -> int:
    return record.created.outputs[0].storage if record.created.outputs else 0


# The sizes of a copy and of the weights


@dataclass(frozen=True, slots=True)
class _Sizes:
    """The rms of a copy before its updates and at the end, and the largest one of the weights."""

    first: float
    last: float
    weights: float


def _sizes(survey: Survey, last: _Version) -> _Sizes | None:
    """Return the sizes of a copy that had the numbers of the parameter before its first update; None for another one.

    A buffer that begins with zeros is no copy. Writes that no operation has made would have further factors.
    """
    timeline = survey.timeline
    first = [*last.updates()][-1]
    memories = {first.origin, *(_storage(one.record) for one in last.updates())}
    weights = [first.parameter.value]
    for seq, event in survey.select(StorageWritten):
        writer = survey.nodes.get(event.node)
        is_operation = writer is not None and timeline.op(writer.created.op).name.endswith("_")
        if event.storage in memories and not is_operation:
            return None
        if event.storage == _storage(first.parameter) and seq < last.record.seq:
            weights.append(event.value)
    origin = next(one for one in survey.nodes.values() if _storage(one) == first.origin)
    copy = timeline.memory_value(origin.node, 0, first.since - 1)
    if copy is None or first.parameter.node not in nodes_with_numbers(timeline, copy, first.since):
        return None
    end = timeline.memory_value(last.record.node, 0, survey.end)
    before, after, largest = rms(copy), rms(end), max(rms(value) or 0.0 for value in weights)
    return _Sizes(before, after, largest) if before and after and largest else None


_WHAT = {
    "sign": "the weights are subtracted",
    "factor": "the weights lack a factor",
    "sum": "what it held before lacks a factor",
}


def _finding(survey: Survey, last: _Version, mistake: str, sizes: _Sizes) -> Finding:
    timeline, record = survey.timeline, last.record
    weights = label(timeline, last.parameter.node)
    text = titled("{} does not average {}: it runs away", label(timeline, record.node), weights)
    each = f"each update takes {number(last.old)} times the copy and {number(last.new)} times the weights"
    grew = f"its rms went from {number(sizes.first, 3)} to {number(sizes.last, 3)} in {last.count} updates"
    factors = Finding("factor", f"{_WHAT[mistake]}: {each}", record.seq, record.node)
    size = Finding(
        "grew", f"{grew}, that of the weights was at most {number(sizes.weights, 3)}", record.seq, record.node
    )
    fix = "copy.lerp_(weights, 1 - decay), or copy.mul_(decay).add_(weights, alpha=1 - decay)"
    numbers = (
        Number("factor of the copy", last.old, record.seq),
        Number("factor of the weights", last.new, record.seq),
    )
    return Finding("runaway-average", text, record.seq, record.node, (factors, size), fix, survey.at(record), numbers)
