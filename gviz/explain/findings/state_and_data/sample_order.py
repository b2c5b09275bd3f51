"""Inputs and targets in two different random orders: each sample has the target of another one.

Idea. A batch is often a selection by random indices. The rows of the input and those of the target belong together only
if the same draw selects both. If the target of a loss was selected by a draw that selected nothing of its prediction,
and the prediction by another one, they do not.

Example. ``x = x[torch.randperm(n)]`` and ``y = y[torch.randperm(n)]``: the loss stays at that of a guess.

In numpy, ``np.random.shuffle(x)`` before ``TensorDataset(x, y)`` does the same. The program's text shows that: it
shuffles one of two names that it uses as a pair.

Limits. Distances between distributions, or between sets without pairs, have no rows that belong together: both sides
are sorted, one is assigned to the other (``b[match]``), mixed by a transport plan (``plan @ b``), or all pairs are
compared. Orders of a data loader are not seen. If only one of both is permuted, as in a test with random labels, or
both with draws that are made equal by seeds, it may be meant.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import CLASS_LOSSES, LOSSES, SAME_NUMBERS
from gviz.explain.parameter_updates import numbers_without_shape
from gviz.explain.program_text import (
    ProgramText,
    Statement,
    assigned_parts,
    called_function,
    called_lines,
    called_name,
    frame_of,
    function_of,
    keyword_text,
    names_set,
    program_text,
)
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.tracking import ancestors
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import file_line, shown
from gviz.values.value import Value

_SELECTIONS = ("getitem", "index", "index_select")
_DRAWS = {"randperm", "randint"}
_FEWEST = 4
_MOST = 2_000


def other_samples(survey: Survey) -> Iterator[Finding | None]:
    """Yield losses whose target and prediction were selected by different draws, and shuffles of one of a pair."""
    reported = set[tuple[str, int]]()
    for finding in _in_other_orders(survey):
        yield finding
        if finding is not None:
            places = (finding.at, *(part.at for part in finding.parts))
            reported |= {(at.path, at.line) for at in places if at is not None}
    for finding in _shuffled_alone(survey):
        at = finding.at if finding is not None else None
        yield finding if at is None or (at.path, at.line) not in reported else None


def _in_other_orders(survey: Survey) -> Iterator[Finding | None]:
    """Yield losses whose target and prediction were selected by different draws."""
    draws = _draws_of_selections(survey)
    if len({*draws.values()}) < 2:
        return
    seen: set[int] = set()
    for record in survey.ops(*LOSSES, "nll_loss", "sub"):
        if record.created.stack in seen or not record.created.requires_grad:
            continue
        yield None
        pair = list(survey.sources(record))[:2]
        targets = [one for one in pair if not one.created.requires_grad and one.created.kind != "parameter"]
        tracked = [one for one in pair if one.created.requires_grad]
        if len(targets) != 1 or len(tracked) != 1 or not targets[0].shape:
            continue
        seen.add(record.created.stack)
        target, prediction = (_selections_before(survey, one, draws) for one in (targets[0], tracked[0]))
        orders = {draws[one] for one in target}
        if not orders or not prediction or orders & {draws[one] for one in prediction}:
            continue
        rows = [[survey.nodes[one] for one in each] for each in (prediction, target)]
        count = _rows_used(survey, tracked[0], rows[0][0])
        if not count or _rows_used(survey, targets[0], rows[1][0]) != count:
            continue  # a moment of the samples, and not the samples
        if _are_one_order(*(_index_of(survey, each[0]) for each in rows)):
            continue  # two draws that are equal, by their seeds
        if len(tracked[0].shape) != len(targets[0].shape) and record.op not in CLASS_LOSSES:
            continue  # all pairs of rows
        if _are_paired_by_program(survey, (tracked[0], targets[0]), [each[0] for each in rows]):
            continue
        sources = [next(survey.sources(each[0])) for each in rows]
        if sources[0].shape[:1] == sources[1].shape[:1] and sources[0].node != sources[1].node:
            yield _finding(survey, record, rows[0][0], rows[1][0])


_SORTING = {"sort", "msort", "topk", "argsort", "cummax", "kthvalue"}
_MIXING = {"mm", "matmul"}


def _are_paired_by_program(survey: Survey, operands: Sequence[NodeRecord], selections: Sequence[NodeRecord]) -> bool:
    """Return whether rows are sorted, mixed or selected again behind their draws, differently on both sides."""
    indices: list[list[Value | None]] = []
    for operand, selection in zip(operands, selections, strict=True):
        rows = selection.shape[:1]
        before = [operand.node, *islice(ancestors(survey.timeline, operand.node, up_to={selection.node}), _MOST)]
        indices.append([])
        for record in (survey.nodes[node] for node in before if node != selection.node):
            sources = list(survey.sources(record))
            if record.op in _SORTING:
                return True
            if len(sources) != 2:
                continue
            if record.op in _MIXING and sources[1].node in before and sources[1].shape[:1] == rows:
                return True
            if record.op in _SELECTIONS and sources[0].shape[:1] == rows and len(sources[1].shape) == 1:
                indices[-1].append(survey.unwrapped(sources[1]).value)
    numbers = [[one and numbers_without_shape(one) for one in each] for each in indices]
    return any(one not in numbers[1] for one in numbers[0]) or any(one not in numbers[0] for one in numbers[1])


def _rows_used(survey: Survey, record: NodeRecord, selection: NodeRecord) -> int:
    """Return how many rows of a selection a tensor is made from, all of them or those of a batch; 0 if unknown."""
    if not record.shape or not selection.shape:
        return 0
    if record.shape[0] == selection.shape[0]:
        return record.shape[0]
    before = {record.node, *islice(ancestors(survey.timeline, record.node), _MOST)}
    slices = (survey.nodes[node] for node in survey.timeline.nodes.users(selection.node) if node in before)
    sizes = [one.shape[0] for one in slices if one.shape[1:] == selection.shape[1:] and one.shape]
    return record.shape[0] if record.shape[0] in sizes else 0


def _are_one_order(one: Value | None, other: Value | None) -> bool:
    """Return whether two draws are known to have equal numbers. All orders of n rows have the same statistics."""
    has_numbers = one is not None and (one.data is not None or one.blob is not None)
    return has_numbers and numbers_without_shape(one) == numbers_without_shape(other)


def _index_of(survey: Survey, selection: NodeRecord) -> Value | None:
    """Return the indices by which rows were selected."""
    return list(survey.sources(selection))[1].value


def _draws_of_selections(survey: Survey) -> dict[int, int]:
    """Return the random draw by which each selection of rows was made."""
    draws = {}
    for record in survey.ops(*_SELECTIONS):
        sources = list(survey.sources(record))
        if len(sources) != 2 or len(sources[1].shape) != 1 or sources[1].shape[0] < _FEWEST:
            continue
        index = sources[1]
        while index.op in SAME_NUMBERS and (before := next(survey.sources(index), None)) is not None:
            index = before
        if index.created.kind == "constant" and called_function(survey.timeline, survey.at(index)) in _DRAWS:
            draws[record.node] = index.node
    return draws


def _selections_before(survey: Survey, record: NodeRecord, draws: dict[int, int]) -> list[int]:
    """Return the selections by a draw that a tensor depends on, the latest first."""
    known = [record.node, *islice(ancestors(survey.timeline, record.node), _MOST)]
    return sorted((node for node in known if node in draws), reverse=True)


def _finding(survey: Survey, loss: NodeRecord, rows: NodeRecord, target: NodeRecord) -> Finding:
    timeline = survey.timeline
    names = label(timeline, target.node), label(timeline, rows.node)
    text = titled("{} is in another random order than {}", *names)
    orders = [list(survey.sources(one))[1] for one in (target, rows)]
    by = (
        f"{label_at(timeline, orders[0].node)} selects the targets, and {label_at(timeline, orders[1].node)} the inputs"
    )
    part = Finding("drawn", by, orders[1].seq, orders[1].node, at=survey.at(rows))
    fix = "one draw for both: order = torch.randperm(n); x, y = x[order], y[order]"
    at = survey.at(target)
    suspected = _may_be_seeded(timeline, *orders)
    return Finding("other-samples", text, loss.seq, target.node, (part,), fix, at, suspected=suspected)


def _may_be_seeded(timeline: Timeline, one: NodeRecord, other: NodeRecord) -> bool:
    """Return whether a seed may be set between two draws, so that they are equal."""
    (at, *callers), (other_at, *other_callers) = (timeline.stack(each.created.stack) for each in (one, other))
    seeds = [*called_lines(timeline, at, "manual_seed", "seed", "set_state", "set_rng_state")]
    generators = {keyword_text(timeline, draw, name, "generator") for draw in (at, other_at) for name in _DRAWS}
    if len(generators - {""}) > 1 or (at.path, at.function) != (other_at.path, other_at.function):
        return len(seeds) > 1
    if callers != other_callers or at == other_at:  # one function or loop that draws twice, and may seed each time
        return bool(seeds)
    first, last = sorted((at.line, other_at.line))
    return any(first <= seed.line <= last for seed in seeds)


def _shuffled_alone(survey: Survey) -> Iterator[Finding | None]:
    """Yield the lines that shuffle one of two arrays which the program uses as a pair."""
    timeline = survey.timeline
    for at in survey.loss_frames():
        yield None
        for shuffle in _shuffles_of_one(timeline, at):
            kinds = [_kind_of(shuffle.name), _kind_of(shuffle.other)]
            if sorted(kinds) != ["input", "target"]:
                continue  # names that say nothing may be two sets without pairs
            name, other = shown(shuffle.name), shown(shuffle.other)
            text = titled("{} is shuffled, but {} stays in its order", name, other)
            if shuffle.both:
                text = titled("{} and {} are shuffled, each by a draw of its own", name, other)
            pair = f"they are used as a pair at {file_line(at.path, shuffle.pair.line)}"
            part = Finding("beside", pair, 0, at=shuffle.pair)
            fix = f"one order for both: order = {shown(shuffle.draw)}; {name}[order], {other}[order]"
            yield Finding("other-samples", text, survey.end, 0, (part,), fix, shuffle.at, suspected=True)


_INPUTS = re.compile(r"(?:^|_)(?:x|inputs?|data|images?|features?|feats|samples?)(?:$|_)", re.IGNORECASE)
_TARGETS = re.compile(r"(?:^|_)(?:y|t|labels?|targets?|classes)(?:$|_)", re.IGNORECASE)


def _kind_of(name: str) -> str:
    """Return whether the name of a variable says ``input`` or ``target``; empty if it says neither."""
    return "target" if _TARGETS.search(name) else "input" if _INPUTS.search(name) else ""


# What the program's source code shows


# Pairs of arrays, one of them shuffled


@dataclass(frozen=True, slots=True)
class _Shuffle:
    """A line that shuffles an array, the other array of a pair, and a line that uses them as one.

    `draw` is a call that draws an order of the array. `both` is whether another line shuffles the other array, too, by
    a draw of its own.
    """

    at: Frame
    name: str
    draw: str
    other: str
    pair: Frame
    both: bool


_PERMUTING = ("permutation", "randperm")
_MOST_SHUFFLES = 20
_PAIRING = ("TensorDataset", "zip", "train_test_split")
_AS_COPIES = ("copy", "clone", "deepcopy", "list", "sorted", "array", "tuple")


def _shuffles_of_one(timeline: Timeline, at: Frame) -> Iterator[_Shuffle]:
    """Yield the shuffles of one of two names that the same function uses as a pair afterwards.

    A pair has one index, ``x[idx], y[idx]``, or is given to ``TensorDataset(x, y)``, ``zip`` or ``train_test_split``.
    Neither may be changed between the shuffle and the pair, as ``y = f(x)`` does. A copy is shuffled on purpose. What
    runs under a condition is left out.
    """
    text = program_text(timeline, at)
    if text is None:
        return
    shuffled: dict[str, Statement] = {}
    draws: dict[str, str] = {}
    for one in text.statements:
        if (found := _shuffled_by(one.node)) is not None:
            shuffled[found[0]] = one
            draws[found[0]] = found[1]
    if not shuffled or _are_made_equal(text, shuffled.values()):
        return
    for name, one in islice(shuffled.items(), _MOST_SHUFFLES):
        of_function = text.by_function.get(function_of(one), ())
        if any(isinstance(part, ast.If) for part in one.around):
            continue
        made = [other for other in of_function if other.first < one.first and name in names_set(other.node)]
        if made and any(called_name(call) in _AS_COPIES for call in made[-1].parts(ast.Call)):
            continue
        changed: set[str] = set()
        for other in of_function:
            if other.first <= one.last:
                continue
            partners = {*_partners(text, other, name)} - changed
            if len(partners) == 1 and name not in changed:
                (partner,) = partners
                if partner not in shuffled or shuffled[partner].first > one.first:
                    pair = frame_of(at, other.first, text)
                    at_shuffle = frame_of(at, one.first, text)
                    yield _Shuffle(at_shuffle, name, draws[name], partner, pair, partner in shuffled)
                break
            changed |= {*_changed(other.node)} if _shuffled_by(other.node) is None else set()


def _changed(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement sets, or whose elements it writes to."""
    for target in assigned_parts(node):
        while isinstance(target, ast.Subscript | ast.Attribute):
            target = target.value
        if isinstance(target, ast.Name):
            yield target.id
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            yield name
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from names


def _are_made_equal(text: ProgramText, shuffles: Iterable[Statement]) -> bool:
    """Return whether the program sets one seed or state of the numbers that it shuffles by more than once."""
    of_torch = any(called_name(call) == "randperm" for one in shuffles for call in one.parts(ast.Call))
    seeds = ("seed", "default_rng", "RandomState", "Random", *(("manual_seed",) if of_torch else ()))
    calls = [call for one in text.statements for call in one.parts(ast.Call)]
    seeding = [ast.unparse(call.func) for call in calls if called_name(call) in seeds]
    restores = any(called_name(call) in ("set_state", "setstate") for call in calls)
    return restores or len(seeding) > len({*seeding})


def _shuffled_by(node: ast.stmt) -> tuple[str, str] | None:
    """Return the name that a statement shuffles, and a call that draws an order.

    It is ``np.random.shuffle(x)`` or ``x = x[np.random.permutation(n)]``.
    """
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="shuffle"), args=[ast.Name(id=name), *_])):
            return name, f"np.random.permutation(len({name}))"
        case ast.Assign(
            targets=[ast.Name(id=name)],
            value=ast.Subscript(value=ast.Name(id=read), slice=ast.Call() as call),
        ) if name == read and called_name(call) in _PERMUTING:
            return name, ast.unparse(call)
    return None


def _partners(text: ProgramText, one: Statement, name: str) -> Iterator[str]:
    """Yield the names that a statement reads as a pair with a name."""
    indices: dict[str, str] = {}
    for part in one.parts(ast.Subscript):
        if isinstance(part.value, ast.Name) and isinstance(part.ctx, ast.Load):
            indices.setdefault(part.value.id, text.segment(part.slice))
    if name in indices:
        yield from (other for other, index in indices.items() if other != name and index == indices[name])
    for call in one.parts(ast.Call):
        names = [arg.id for arg in call.args if isinstance(arg, ast.Name)]
        if called_name(call) in _PAIRING and name in names:
            yield from (other for other in names if other != name)
