"""A comparison of two recordings as lines of text: a summary, and a table with both sides in columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gviz.compare.alignment import Pair
from gviz.compare.compared_iteration import Side
from gviz.compare.recording_comparison import (
    Comparison,
    Difference,
    Kind,
    RepeatedOperations,
    StepDifference,
    one_sided_runs,
    without_addresses,
)
from gviz.compare.source_changes import SourceChange
from gviz.events.event import Attr
from gviz.events.optimizer_options import option_text
from gviz.explain.display_names import label
from gviz.explain.formula import attribute_word
from gviz.trace.graph_state import NodeInfo
from gviz.values import number_text, value_text
from gviz.values.plain_text import clipped, file_line, shown

WIDTH = 92
_LEAST_NAME = 15
"""The fewest characters for a name: the name of a recording is above it."""
VALUE_WIDTH = 12
MOST_PLACES, MOST_LINES, MOST_OPTIONS = 4, 5, 3
"""The most places where programs differ, the most lines of each, and the most options of a step that are listed."""
_FEW = 4
"""The elements of a value that a sentence about it has."""
_WORDS_WIDTH = 23
"""Characters for the kinds of difference, at the right."""
_WIDEST = 36
"""The most characters of one side. In a wider table, the words at the right get the additional room."""

_WORDS: dict[Kind, str] = {
    "inputs": "computed from other nodes",
    "arguments": "other arguments",
    "tracking": "tracked on one side only",
}

VALUE_WORDS: dict[Kind, str] = {
    "dtype": "dtype",
    "shape": "shape",
    "value": "value",
    "kept": "old .grad (there before the pass)",
    "gradient": "gradient",
}


Clip = Callable[[str, int], str]
"""A function that shortens a text to a number of characters."""


def summary(comparison: Comparison) -> Iterator[str]:
    """Yield where the programs differ, and one sentence for each kind of difference."""
    several = max(len(side.timeline.iterations) for side in (comparison.a, comparison.b)) > 1
    step = comparison.step
    if not comparison.differences:
        same = "no other difference" if step is not None else "no difference"
        yield from _step(comparison)
        yield f"{same}{f' up to iteration {comparison.b.number}' * several}: {_counted(comparison)}."
        yield from _unknown(comparison)
        return
    yield from programs(comparison.programs)
    if step is not None and _is_before(step, comparison.differences[0]):
        yield from _step(comparison, ", before any number differs")
        step = None
    if several and comparison.a.number == comparison.b.number > 1:
        yield f"iteration {comparison.a.number} is the first that differs."
    if comparison.same_structure:
        yield f"the same structure: {_counted(comparison)}."
    yield from (_run(comparison, run) for run in one_sided_runs(comparison))
    yield from _others(comparison)
    if (wired := comparison.first("inputs", "arguments", "tracking")) is not None:
        others = f": {arguments}" if wired.kind == "arguments" and (arguments := _arguments(comparison, wired)) else ""
        yield f"first node made differently: {_place(comparison, wired)}, {_WORDS[wired.kind]}{others}."
    for kind in VALUE_WORDS:
        yield from _first(comparison, kind)
    if {difference.kind for difference in comparison.differences} == {"dtype"}:
        yield "no value and no gradient differs by more than the tolerance."
    if step is not None:
        yield from _step(comparison)
    yield from _unknown(comparison)


def _unknown(comparison: Comparison) -> Iterator[str]:
    """Yield a sentence if some numbers could not be compared, or some operations run only once."""
    if count := comparison.unknown:
        yield f"the numbers of {count} node{'s' * (count != 1)} were not compared: they are not known on both sides."
    if count := comparison.outside:
        yield f"{count} operation{'s' * (count != 1)} outside the loop {'were' if count != 1 else 'was'} not compared."


def _is_before(step: StepDifference, difference: Difference) -> bool:
    """Return whether a step happened before the first difference, on either side."""
    return any(own < other for own, other in zip(step.events, difference.events, strict=True))


def _step(comparison: Comparison, ending: str = "") -> Iterator[str]:
    """Yield the first optimizer step with different options on the two sides; `ending` is appended."""
    step = comparison.step
    if step is None:
        return
    others = ", ".join(
        f"{shown(one.name)} {' and '.join(map(option_text, one.values))}{f' in group {one.group}' * (one.group > 0)}"
        for one in step.options[:MOST_OPTIONS]
    )
    more = f" and {len(step.options) - MOST_OPTIONS} more" * (len(step.options) > MOST_OPTIONS)
    where = f" in iteration {step.iterations[1]}" if len(comparison.b.timeline.iterations) > 1 else ""
    frames = comparison.b.timeline.stack(step.stack)
    at = f" ({file_line(frames[0].path, frames[0].line)})" if frames else ""
    place = f"{shown(step.kind)}{where}{at}, event {step.events[1]}"
    yield f"first step with other options: {place}, {others}{more}{ending}."


def programs(changes: Sequence[SourceChange], width: int = WIDTH) -> Iterator[str]:
    """Yield where the source of the two programs differs: the first few places, and below each the lines of both."""
    for one in changes[:MOST_PLACES]:
        places = [file_line(path, line) for path, line in zip(one.files, one.lines, strict=True)]
        yield f"the programs differ at {places[0]}" + (f" and {places[1]}" if places[0] != places[1] else "")
        for mark, lines in zip("<>", one.texts, strict=True):
            yield from (f"  {mark} {clipped(line, width - 4)}" for line in lines[:MOST_LINES])
            if len(lines) > MOST_LINES:
                yield f"  {mark} and {len(lines) - MOST_LINES} more lines"
    if len(changes) > MOST_PLACES:
        yield f"and at {len(changes) - MOST_PLACES} more places"


def rows(comparison: Comparison, width: int = WIDTH, *, everything: bool = False) -> Iterator[str]:
    """Yield both sides in columns, with ``|`` where they differ, and ``<`` or ``>`` where only one side has the node.

    Only differences are listed, unless `everything` is true. Rows with many differences may be longer than `width`.
    """
    return (text for _, text in paired_rows(comparison, width, everything=everything))


def paired_rows(
    comparison: Comparison,
    width: int = WIDTH,
    *,
    everything: bool = False,
    clip: Clip = clipped,
    expected: Container[int] = (),
) -> Iterator[tuple[Pair, str]]:
    """Yield the same rows, each with its pair of nodes. `clip` shortens texts that are too long for a column.

    If a name is too long for the column of one side, each name is only written once: see `_Merged`. `expected` has the
    indices of differences that are expected. Pairs with only such ones have the sign ``:`` and the word ``own``.
    """
    column, merged = _needed_column(comparison, width), _merged(comparison, width, clip)
    by_pair: dict[Pair, list[Difference]] = defaultdict(list)
    unexpected: set[Pair] = set()
    for at, difference in enumerate(comparison.differences):
        by_pair[difference.pair].append(difference)
        if at not in expected:
            unexpected.add(difference.pair)
    for pair in comparison.pairs:
        differences = by_pair[pair]
        if everything or differences:
            own = bool(differences) and pair not in unexpected
            words = [*(["own"] if own else []), *map(_words, differences)]
            text = ", ".join(dict.fromkeys(filter(None, words)))
            mark = ":" if own and all(pair) else _mark(pair, differences)
            if merged is not None:
                yield pair, f"{merged.cells(pair, mark)} {text.replace(' by ', ' ')}".rstrip()
                continue
            left, right = [
                _cell(side, node, column, clip) for side, node in zip((comparison.a, comparison.b), pair, strict=True)
            ]
            yield pair, f"{left:<{column}} {mark} {right:<{column}} {text}".rstrip()


@dataclass(frozen=True, slots=True)
class _Merged:
    """A table in which a name and a value that both sides share are written once, because two would not fit::

    iteration 1 | iteration 2                    differ by
    #3 | #3  embedding_projection.weight  (16,8) value 0.00611, gradient 0.105
    #1 | #19 x                             (5,8) value 3.5
    """

    comparison: Comparison
    clip: Clip
    numbers: tuple[int, int]
    """The characters for the numbers of the nodes of each side."""
    node: int
    """The characters for a name and a value."""

    def cells(self, pair: Pair, mark: str) -> str:
        """Return the row of a pair without its differences."""
        (a, _, _), (b, _, _) = _both_parts(self.comparison, pair)
        name, value = _merged_texts(self.comparison, pair)
        if len(name) + 1 + len(value) > self.node:
            name, value = self.clip(name, self.node - 1), ""  # the names of two rows must stay different
        left, right = self.numbers
        return f"{a:<{left}} {mark} {b:<{right}} {name} {value:>{self.node - 1 - len(name)}}"

    def heading(self, a: str, b: str) -> str:
        """Return the heading: the names of both sides, and what the last column shows."""
        return f"{f'{a} | {b}':<{sum(self.numbers) + 3 + 1 + self.node}} differ by"


def _merged(comparison: Comparison, width: int, clip: Clip) -> _Merged | None:
    """Return the table with names that are written once; None if two columns have room for all names."""
    if _longest_name(comparison) <= column_of(width) - 1 - VALUE_WIDTH:
        return None
    rows = [_both_parts(comparison, pair) for pair in comparison.pairs]
    numbers = max(len(a[0]) for a, _ in rows), max(len(b[0]) for _, b in rows)
    node = max(len(" ".join(_merged_texts(comparison, pair))) for pair in comparison.pairs)
    room = width - sum(numbers) - 3 - 1 - 1 - _WORDS_WIDTH
    return _Merged(comparison, clip, numbers, max(min(node, room), VALUE_WIDTH))


def _merged_texts(comparison: Comparison, pair: Pair) -> tuple[str, str]:
    """Return the name and the value of a pair, both of each if they differ."""
    (_, *one), (_, *other) = _both_parts(comparison, pair)
    name, value = (" | ".join(dict.fromkeys(filter(None, both))) for both in zip(one, other, strict=True))
    return name, value


def _both_parts(comparison: Comparison, pair: Pair) -> tuple[tuple[str, str, str], tuple[str, str, str]]:
    return _parts(comparison.a, pair[0]), _parts(comparison.b, pair[1])


def _parts(side: Side, node: int) -> tuple[str, str, str]:
    """Return the number of a node, its name and its value; empty texts for no node."""
    if not node:
        return "", "", ""
    number, _, name = label(side.timeline, node).partition(" ")
    values = side.values[node]
    return number, name, value_text.short(values[0], VALUE_WIDTH) if values else ""


def heading(comparison: Comparison, a: str, b: str, width: int = WIDTH, *, clip: Clip = clipped) -> str:
    """Return the heading of the columns: the names of the two recordings."""
    column, merged = _needed_column(comparison, width), _merged(comparison, width, clip)
    left, right = titles(comparison, a, b, column, clip=clip)
    if merged is not None:
        return merged.heading(left, right)
    return f"{left:<{column}}   {right}".rstrip()


def titles(comparison: Comparison, a: str, b: str, width: int, *, clip: Clip = clipped) -> tuple[str, str]:
    """Return the names of the two recordings, each with its iteration if there are several.

    Two iterations of one recording have no name of it.
    """
    if comparison.a.timeline is comparison.b.timeline:
        return f"iteration {comparison.a.number}", f"iteration {comparison.b.number}"
    return _title(comparison.a, a, width, clip), _title(comparison.b, b, width, clip)


def column_of(width: int) -> int:
    """Return the width of one side in a table of `width` characters."""
    return max(min((width - 3 - _WORDS_WIDTH) // 2, _WIDEST), VALUE_WIDTH + 12)


def _needed_column(comparison: Comparison, width: int) -> int:
    """Return the width that one side needs in a table of `width` characters: the differences have the rest."""
    return min(column_of(width), max(_longest_name(comparison), _LEAST_NAME) + 1 + VALUE_WIDTH)


def _longest_name(comparison: Comparison) -> int:
    """Return the characters of the longest number and name of a node."""
    rows = (_both_parts(comparison, pair) for pair in comparison.pairs)
    return max((len(f"{number} {name}") for row in rows for number, name, _ in row), default=0)


def _title(side: Side, name: str, width: int, clip: Clip) -> str:
    several = f" iteration {side.number}" if len(side.timeline.iterations) > 1 else ""
    return f"{clip(name, width - len(several))}{several}"


def _counted(comparison: Comparison) -> str:
    ops = sum(1 for a, b in comparison.pairs if a in comparison.a.infos and comparison.a.infos[a].created.kind == "op")
    others = len(comparison.pairs) - ops
    return f"{ops} operation{'s' * (ops != 1)} and {others} other node{'s' * (others != 1)} on each side"


def _run(comparison: Comparison, run: RepeatedOperations) -> str:
    side = comparison.a if run.side == "a" else comparison.b
    ops = clipped(", ".join(run.period), 60)
    what = ops if run.times == 1 else f"{run.times} {'more ' * run.known}times {ops}"
    return f"only in {run.side}: {what}, from #{run.first}{_line(side.infos[run.first])} on."


def _others(comparison: Comparison) -> Iterator[str]:
    """Yield the nodes that no operation made, if only one side has them."""
    for which, name, side in ((0, "a", comparison.a), (1, "b", comparison.b)):
        only = [pair[which] for pair in comparison.pairs if pair[which] in side.others and not pair[1 - which]]
        if only:
            more = f" and {len(only) - 1} more" if len(only) > 1 else ""
            yield f"only in {name}: {label(side.timeline, only[0])}{more}, which no operation made."


def _first(comparison: Comparison, kind: Kind) -> Iterator[str]:
    differences = [difference for difference in comparison.differences if difference.kind == kind]
    if differences:
        more = f"; {len(differences) - 1} more" if len(differences) > 1 else ""
        first = differences[0]
        yield f"first {VALUE_WORDS[kind]} that differs: {_place(comparison, first)}, {_values_text(first)}{more}."


def _place(comparison: Comparison, difference: Difference) -> str:
    a, b = difference.pair
    left, right = label(comparison.a.timeline, a), label(comparison.b.timeline, b)
    event = f", event {difference.events[1]}" if difference.events[1] else ""
    where = f" output {difference.output_nr}" if difference.output_nr else ""
    is_same_name = a != b and left.partition(" ")[2] == right.partition(" ")[2] != ""
    both = left if left == right else f"#{a} and {right}" if is_same_name else f"{left} and {right}"
    return f"{both}{where}{_line(comparison.b.infos[b])}{event}"


def _arguments(comparison: Comparison, difference: Difference) -> str:
    """Return the arguments in which the two operations differ: ``dim 1 and 0``."""
    a, b = difference.pair
    creations = comparison.a.infos[a].created, comparison.b.infos[b].created
    left, right = [dict(without_addresses(each.attrs)) for each in creations]
    others = [name for name in left | right if left.get(name) != right.get(name)]
    return ", ".join(f"{shown(name)} {_argument(left, name)} and {_argument(right, name)}" for name in others)


def _argument(attributes: Mapping[str, Attr], name: str) -> str:
    return clipped(attribute_word(attributes[name]), VALUE_WIDTH * 2) if name in attributes else "none"


def _line(info: NodeInfo) -> str:
    return f" ({file_line(info.frames[0].path, info.frames[0].line)})" if info.frames else ""


def _values_text(difference: Difference) -> str:
    """Return the two values of a difference, and the distance between them; of large values only the distance."""
    x, y = difference.values
    if difference.kind == "dtype" and x and y:
        return f"{x.dtype} and {y.dtype}"
    if difference.kind == "shape" and x and y:
        return f"{number_text.shape_text(x.shape)} and {number_text.shape_text(y.shape)}"
    is_large = all(value is not None and value.size > _FEW for value in (x, y))
    if is_large and difference.distance is not None and difference.distance.largest:
        return apart(difference)
    shown_values = [value_text.short(value, VALUE_WIDTH * 2) if value is not None else "none" for value in (x, y)]
    return ", ".join(filter(None, (" and ".join(shown_values), apart(difference))))


def apart(difference: Difference) -> str:
    """Return the distance and where it is largest, ``0.1 apart at [1], 4 elements``; empty if it is unknown."""
    gap = difference.distance
    if gap is None:
        return ""
    if not gap.largest:
        return "the same numbers in other bits" if gap.elements else "other counts of nan, infinity and zero"
    at = f" at [{', '.join(map(str, gap.where))}]" if gap.where else ""
    if gap.statistic:
        return f"their {gap.statistic} {number_text.number(gap.largest)} apart: the elements were not kept"
    count = f", {gap.elements} elements" if gap.elements > 1 else ""
    return f"{number_text.number(gap.largest)} apart{at}{count}"


def _words(difference: Difference) -> str:
    """Return one to three words for a difference, for a table."""
    if difference.kind == "kept":
        return "old .grad"
    if difference.kind in ("value", "gradient"):
        gap, (x, y) = difference.distance, difference.values
        if difference.kind == "gradient" and all(value is not None and value.size == 1 for value in (x, y)):
            return f"gradient {value_text.short(x)} | {value_text.short(y)}"
        if gap is None or not gap.largest:
            return difference.kind
        statistic = f"'s {gap.statistic}" if gap.statistic else ""
        return f"{difference.kind}{statistic} by {number_text.number(gap.largest, 3)}"
    return {"missing": "", "inputs": "inputs", "arguments": "arguments"}.get(difference.kind, difference.kind)


def _mark(pair: Pair, differences: Sequence[Difference]) -> str:
    if not pair[0]:
        return ">"
    return "<" if not pair[1] else "|" if differences else " "


def _cell(side: Side, node: int, width: int, clip: Clip) -> str:
    if not node:
        return ""
    name = width - 1 - VALUE_WIDTH
    return f"{clip(label(side.timeline, node), name):<{name}} {_parts(side, node)[2]}"
