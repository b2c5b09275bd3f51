"""A term of a loss that was made from parameters, but has no path to them: its value counts, its gradient is lost."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from gviz.events import GradAccumulated, GradCaptured, GradSet, OptimizerStepped
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.findings.errors.untracked_loss import gradients_taken
from gviz.explain.grad_history import CLEARED
from gviz.explain.operation_sets import CARRYING_ONE_TERM, JOINING_TERMS, RESHAPING
from gviz.explain.parameter_updates import options_of
from gviz.explain.program_text import (
    assignment,
    called_at,
    called_function,
    classes_named,
    line_text,
    names_read,
    names_set,
    numbers_read,
    statement_at,
)
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Edit, lines_replaced, switch_of, with_keyword
from gviz.explain.source_frames import innermost
from gviz.explain.tracking import CREATE_GRAPH, ancestors, loses_tracking, mend, why_cut
from gviz.source.call_stack import Frame
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import shown
from gviz.values.value import Value

# A term of a loss that sends no gradient, because its path to the parameters is cut

_MOST_SUMMANDS = 200
"""The most terms of one loss that are examined."""

_MOST_BEHIND = 2_000
"""The most results behind a term that are examined for another model."""


def cut_summand(survey: Survey) -> Iterator[Finding | None]:
    """Yield, for each line that makes the root of a pass, the terms that were made from parameters and are cut."""
    yield from _terms_of_other_part(survey)
    roots = [survey.nodes[node] for _, event in survey.passes for node, _ in event.roots if node in survey.nodes]
    for root in {record.created.stack: record for record in roots}.values():
        yield None
        for record, others in _untracked_summands(survey, root):
            lost = _cut_of_term(survey, record, others)
            finding = _summand_finding(survey, root, record, lost) if lost else None
            if finding is not None and finding.suspected and _has_score_term(survey, root, lost):
                finding = None
            if finding is not None and finding.suspected:
                is_old = any(_is_of_same_function(survey, record, one) for one in others)
                finding = None if is_old or _is_in_straight_through(survey, record) else finding
            yield finding
        for record, lost in _derivatives_in_residuals(survey, root):
            yield _summand_finding(survey, root, record, lost)


def _untracked_summands(survey: Survey, root: NodeRecord) -> Iterator[tuple[NodeRecord, list[NodeRecord]]]:
    """Yield the untracked terms of a loss, each with the tracked ones next to it.

    A term inside one call is no part of the program's sum: the ``kl_div`` of the built-in engine adds one that depends
    on the target only.
    """
    waiting, seen = [root], {root.node}
    while waiting and len(seen) < _MOST_SUMMANDS:
        record = waiting.pop()
        sources = list(survey.sources(record))
        tracked = [source for source in sources if source.created.requires_grad]
        if record.op in JOINING_TERMS:
            results = (one for one in sources if tracked and _is_result(one))
            yield from ((one, tracked) for one in results if one.created.stack != record.created.stack)
        elif record.op not in CARRYING_ONE_TERM or len(tracked) != 1:
            continue
        waiting += [source for source in tracked if source.node not in seen]
        seen.update(source.node for source in tracked)


_OF_RESIDUALS = CARRYING_ONE_TERM | JOINING_TERMS | {"pow", "square", "abs", "mse_loss", "l1_loss", "smooth_l1_loss"}
"""Operations between the terms of a residual, as of a differential equation, and its loss."""

_JOINING_RESIDUALS = frozenset({"add", "sub", "mse_loss", "l1_loss", "smooth_l1_loss"})


def _derivatives_in_residuals(survey: Survey, root: NodeRecord) -> Iterator[tuple[NodeRecord, int]]:
    """Yield the terms of residuals that are derivatives of a trained model by its inputs, without a graph.

    ``du + k * u`` with ``du = autograd.grad(u, t)[0]`` trains u, and takes du for a number. Each is yielded with the
    node of the derivative. A step along it, ``x - rate * du``, is a new input and no residual: there the tensor next to
    it is the one by which the program has differentiated.
    """
    waiting, seen = [root], {root.node}
    while waiting and len(seen) < _MOST_SUMMANDS:
        record = waiting.pop()
        if record.op not in _OF_RESIDUALS:
            continue
        sources = list(survey.sources(record))
        tracked = [source for source in sources if source.created.requires_grad]
        for term in sources if record.op in _JOINING_RESIDUALS and tracked else ():
            derivative = _derivative_behind(survey, term) if not term.created.requires_grad else None
            if derivative is None or any(survey.unwrapped(one).node == derivative.by for one in tracked):
                continue
            if any(not survey.optimized.isdisjoint(survey.history(one.node)) for one in tracked):
                yield term, derivative.node
                return
        waiting += [source for source in tracked if source.node not in seen]
        seen.update(source.node for source in tracked)


_MOST_FACTORS = 6
_OF_DERIVATIVES = RESHAPING | {"mul", "div", "neg", "index", "select", "slice", "getitem", "sum"}
"""Operations that make multiples and columns of a derivative."""


class _Derivative(NamedTuple):
    """A result of ``autograd.grad``, and the tensor `by` which the program has differentiated."""

    node: int
    by: int


def _derivative_behind(survey: Survey, term: NodeRecord) -> _Derivative | None:
    """Return the derivative that a term is a multiple or a column of: of a trained model's result by its input."""
    timeline = survey.timeline
    for _ in range(_MOST_FACTORS):
        if term.op == "grad" or _is_taken_gradient(timeline, term.node):
            break
        sources = survey.sources(term) if term.op in _OF_DERIVATIVES else iter(())
        made = [one for one in sources if one.created.kind == "op" or _is_taken_gradient(timeline, one.node)]
        if len(made) != 1:
            return None
        (term,) = made
    seq = timeline.once(_gradients_taken, 0).get(term.value, 0) if term.value is not None else 0
    captured = timeline.event(seq) if seq else None
    by = survey.nodes.get(captured.node) if isinstance(captured, GradCaptured) else None
    if by is None or not isinstance(captured, GradCaptured) or by.created.kind == "parameter":
        return None
    started = next((event for _, event in survey.passes if event.pass_nr == captured.pass_nr), None)
    if by.node in survey.optimized or started is None:
        return None
    is_trained = not survey.optimized.isdisjoint(survey.history(*(root for root, _ in started.roots)))
    return _Derivative(term.node, by.node) if is_trained else None


def _is_result(record: NodeRecord) -> bool:
    return record.created.kind == "op" and not record.created.requires_grad


def _cut_of_term(survey: Survey, record: NodeRecord, others: list[NodeRecord]) -> int:
    """Return where the path from the parameters to a term is cut.

    It is 0 if there is no cut, or if the term was made from the other terms. Such a term may be deliberate:
    ``x + (y - x).detach()``, ``x - x.max().detach()``.
    """
    timeline = survey.timeline
    before = [record.node, *ancestors(timeline, record.node)]
    if any(one.node in before for one in others):
        return 0
    lost = (node for node in before if loses_tracking(timeline, node))
    cut = next((node for node in lost if not survey.optimized.isdisjoint(ancestors(timeline, node))), 0)
    cut = cut or next((node for node in before if _is_taken_gradient(timeline, node)), 0)
    return cut or next((node for node in before if _has_trained_numbers(survey, node)), 0)


def _has_score_term(survey: Survey, root: NodeRecord, lost: int) -> bool:
    """Return whether a loss has the log-probability of a draw times what the draw led to: its score function.

    This term is the gradient of the expected loss, so others may use the draw without one.
    """
    timeline = survey.timeline
    for node in islice(survey.history(root.node), _MOST_BEHIND):
        record = survey.nodes[node]
        sources = list(survey.sources(record)) if record.op == "mul" else []
        tracked = [one for one in sources if one.created.requires_grad]
        weights = [one for one in sources if one.created.kind == "op" and not one.created.requires_grad]
        if len(tracked) == len(weights) == 1 and all(
            lost in islice(ancestors(timeline, one.node), _MOST_BEHIND) for one in (*tracked, *weights)
        ):
            return True
    return False


def _is_of_same_function(survey: Survey, record: NodeRecord, other: NodeRecord) -> bool:
    """Return whether several numbers are the difference of a tracked term to one made like it, from one parameter.

    It is the reference that a new result is compared with, such as the log-probabilities of the old policy.
    """
    if record.shape != other.shape or record.value is None or record.value.size < 2:
        return False
    users = (survey.nodes.get(node) for node in survey.timeline.nodes.users(record.node))
    if not any(one is not None and one.op == "sub" and other in survey.sources(one) for one in users):
        return False
    alike = [survey.unwrapped(one) for one in (record, other)]
    while alike[0].op == "detach" and (source := next(survey.sources(alike[0]), None)) is not None:
        alike[0] = survey.unwrapped(source)
    ops = [{"addmm": "linear", "log_sigmoid": "logsigmoid"}.get(one.op, one.op) for one in alike]
    trained = (survey.optimized.intersection(ancestors(survey.timeline, one.node)) for one in alike)
    return ops[0] == ops[1] and not next(trained).isdisjoint(next(trained))


def _is_in_straight_through(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a sum has a tensor and also the tensor without its gradient, with the opposite sign.

    Then the gradient is that of the tensor, and the number of the sum is that of the others: ``x.detach() + (y -
    y.detach())``, in any order.
    """
    top = record
    for _ in range(_MOST_SUMMANDS):
        users = (survey.nodes.get(node) for node in survey.timeline.nodes.users(top.node))
        user = next((one for one in users if one is not None and _is_sum(survey, one)), None)
        if user is None:
            break
        top = user
    signs: dict[int, int] = {}
    waiting, seen = [(top, 1)], 0
    while waiting and seen < _MOST_SUMMANDS:
        one, sign = waiting.pop()
        seen += 1
        source = next(survey.sources(one), None)
        if one.op == "detach" and not one.created.requires_grad and source is not None:
            if signs.get(source.node) == -sign:
                return True
            signs[-source.node] = sign
        else:
            if signs.get(-one.node) == -sign:
                return True
            signs[one.node] = sign
        if _is_sum(survey, one):
            sources = list(survey.sources(one))
            is_minus = {"sub": -1, "rsub": -1, "neg": -1}.get(one.op, 1)
            factors = [1, is_minus] if one.op == "sub" else [is_minus, 1]
            waiting += [(each, sign * factors[min(nr, 1)]) for nr, each in enumerate(sources)]
    return False


def _is_sum(survey: Survey, record: NodeRecord) -> bool:
    """Return whether an operation adds tensors, or is a multiple of one."""
    sources = list(survey.sources(record))
    shaped = [one for one in sources if "number" not in dict(one.created.attrs)]
    return record.op in ("add", "sub", "rsub") or (record.op in ("mul", "div", "neg") and len(shaped) == 1)


_FROM_ARRAYS = {"from_numpy", "tensor", "as_tensor", "FloatTensor", "Tensor"}
_DETACHED = re.compile(r"([A-Za-z_]\w*)\.detach\(")


@dataclass(frozen=True, slots=True)
class _Array:
    """An array with the numbers of trained results: its name, the line that detached it, and one that made data of it.

    `source` is the name of the result.
    """

    name: str
    detached: Frame
    made: Frame
    source: str


def _array_of_results(timeline: Timeline, node: int) -> _Array | None:
    """Return the array from which data of several numbers was made, if a line had detached the array from a result.

    Data is recorded when it is first used: the line that made it is that of its variable.
    """
    info = timeline.info(node)
    value, at = info.created.first_value, innermost(info)
    if info.created.kind != "constant" or value is None or value.size < 2:
        return None
    made = assignment(timeline, at, info.name) or at
    if made is None or not called_at(timeline, made, *_FROM_ARRAYS):
        return None
    read = next(numbers_read(timeline, made), None)
    match = _DETACHED.search(line_text(timeline, read[1])) if read is not None else None
    return _Array(read[0], read[1], made, match[1]) if read is not None and match is not None else None


def _has_trained_numbers(survey: Survey, node: int) -> bool:
    """Return whether data has the numbers of a result that the trained parameters made."""
    array = _array_of_results(survey.timeline, node)
    if array is None:
        return False
    for record in survey.ops("detach"):
        at, source = survey.at(record), next(survey.sources(record), None)
        if at is None or source is None or (at.path, at.line) != (array.detached.path, array.detached.line):
            continue
        return not survey.optimized.isdisjoint({source.node, *ancestors(survey.timeline, source.node)})
    return False


def _is_taken_gradient(timeline: Timeline, node: int) -> bool:
    """Return whether a node is a result of ``autograd.grad``, which the built-in engine records as new data."""
    created = timeline.info(node).created
    if created.kind != "constant" or created.first_value is None or dict(created.attrs).get("grad_of"):
        return False
    born = timeline.nodes.born(node)
    return timeline.once(_gradients_taken, 0).get(created.first_value, born) < born


def _gradients_taken(timeline: Timeline, _: int) -> dict[Value, int]:
    return gradients_taken(timeline)


def _summand_finding(survey: Survey, root: NodeRecord, record: NodeRecord, lost: int) -> Finding:
    timeline = survey.timeline
    cut = timeline.info(lost)
    names = label(timeline, record.node), label(timeline, root.node)
    text = titled("{} is a part of {}, but brings no gradient", *names)
    part = Finding("cut", f"cut at {label_at(timeline, lost)}: {why_cut(cut)}", cut.born, lost, at=innermost(cut))
    how = mend(timeline, cut)
    fix, edit = how.fix, how.edit
    array = _array_of_results(timeline, lost)
    if array is not None:
        name = array.name
        of = f"the numbers of {shown(array.source)}, without its history"
        numbers = f"{label_at(timeline, lost)} is made of {shown(name)}: {of}"
        part, edit = Finding("copied", numbers, cut.born, lost, at=array.detached), None
        fix = f"index the tensor itself, and not {shown(name)}: tensor[rows] keeps the path to the parameters"
    elif cut.created.kind == "constant":
        text_taken = f"{label_at(timeline, lost)} has no history: it is what autograd.grad gave"
        part, fix = Finding("copied", text_taken, cut.born, lost, at=innermost(cut)), CREATE_GRAPH
        edit = with_keyword(timeline, innermost(cut), "grad", "create_graph", "True")
    at = array.made if array is not None else how.at or innermost(cut)
    suspected = not _is_cut_by_mistake(survey, record, lost)
    call = _call_in_block(survey, cut)
    if call is not None:
        model = survey.scopes[survey.outermost(cut.created.scope)].kind
        why = f"{part.text}, in a call of {model}, which the optimizer trains"
        part, at, edit = (
            Finding("cut", why, cut.born, lost, at=innermost(cut)),
            call,
            _call_behind_block(timeline, call),
        )
        fix = "move this call out of the no_grad block, which only the other model needs"
        if not _has_other_model(survey, record, call):
            fix, edit = "move this call out of the no_grad block", edit or how.edit
        elif switch_of(timeline, timeline.stack(_comparison(survey, record).created.stack)) is None:
            suspected = False
    return Finding("cut-summand", text, record.seq, record.node, (part,), fix, at, suspected=suspected, edit=edit)


def _call_in_block(survey: Survey, cut: NodeInfo) -> Frame | None:
    """Return the line in a block without gradients that calls the model in which a result was cut; None for others."""
    if not cut.created.switched_off or cut.created.scope not in survey.scopes:
        return None
    for frame in cut.frames:
        switch = switch_of(survey.timeline, [frame])
        if switch is not None:
            kind = survey.scopes[cut.created.scope].kind
            is_call = frame != innermost(cut) or next(classes_named(survey.timeline, kind), None) is None
            return frame if switch.how == "with" and is_call else None
    return None


def _comparison(survey: Survey, record: NodeRecord) -> NodeRecord:
    """Return the operation behind a term that combines two results; a multiple or a mean has only one."""
    for _ in range(_MOST_SUMMANDS):
        results = [one for one in survey.sources(record) if one.created.kind == "op"]
        if len(results) != 1:
            break
        record = results[0]
    return record


def _has_other_model(survey: Survey, record: NodeRecord, call: Frame) -> bool:
    """Return whether the block of a call also runs a model for a term whose parameters no optimizer has.

    The block is for that model then, for example a teacher or an old copy.
    """
    timeline, block = survey.timeline, switch_of(survey.timeline, [call])
    for node in islice(ancestors(timeline, record.node), _MOST_BEHIND):
        one = survey.nodes.get(node)
        if one is None or not one.created.switched_off or one.created.scope not in survey.scopes:
            continue
        leaves = [each for each in survey.sources(one) if each.created.kind == "parameter"]
        if leaves and not any(each.node in survey.optimized for each in leaves):
            switch = switch_of(timeline, timeline.stack(one.created.stack))
            if switch is not None and block is not None and switch.at == block.at:
                return True
    return False


def _is_cut_by_mistake(survey: Survey, record: NodeRecord, lost: int) -> bool:
    """Return whether a term is most likely meant to train: it has ``.data`` of a parameter, or ``autograd.grad``.

    A program that only adds it to the number of the loss says so by `detach` or `no_grad`. The optimizer may also be
    what adds the gradient of the term, with ``weight_decay``.
    """
    timeline = survey.timeline
    if _array_of_results(timeline, lost) is not None:
        return "loss" in called_function(timeline, survey.at(record)).lower()
    between = [timeline.info(node) for node in (record.node, *ancestors(timeline, record.node, up_to={lost}))]
    if any(info.op.base_name == "detach" or info.created.switched_off for info in between):
        return False
    if any(switch_of(timeline, frames) is not None for frames in dict.fromkeys(info.frames for info in between)):
        return False
    cut, sources = timeline.info(lost), timeline.nodes.inputs_by_node.get(lost, ())
    if cut.created.untracked == "data":
        parameters = [node for node in sources if node in survey.optimized]
        return bool(parameters) and not any(_is_decayed(survey, node) for node in parameters)
    return cut.op.name == "grad" or (cut.created.kind == "constant" and _is_of_trained(survey, lost))


def _is_decayed(survey: Survey, node: int) -> bool:
    """Return whether a step has a weight decay for a parameter. AdamW does not count, since it has one by default."""
    steps = survey.select(OptimizerStepped)
    seq, step = next(((seq, step) for seq, step in steps if node in step.parameters), (0, None))
    if step is None or step.kind == "AdamW":
        return False
    return bool(options_of(survey.timeline, node, seq).get("weight_decay"))


def _is_of_trained(survey: Survey, node: int) -> bool:
    """Return whether a result of ``autograd.grad`` depends on trained parameters."""
    timeline = survey.timeline
    value = timeline.info(node).created.first_value
    seq = timeline.once(_gradients_taken, 0).get(value, 0) if value is not None else 0
    captured = timeline.event(seq) if seq else None
    pass_nr = captured.pass_nr if isinstance(captured, GradCaptured) else 0
    roots = [root for _, event in survey.passes if event.pass_nr == pass_nr for root, _ in event.roots]
    return not survey.optimized.isdisjoint(ancestors(timeline, *roots))


# A term that sends its gradient only to a part that this pass does not train, as ``D(fake.detach())`` for a generator

_MOST_PASSES = 24
"""The most passes of one call that are examined."""

_MOST_NODES, _MOST_IN_ALL = 20_000, 400_000
"""The most nodes of one term that are examined, and of all terms."""


@dataclass(frozen=True, slots=True)
class _Reach:
    """What a term of a loss reaches in its pass: the leaves of its graph, and where that graph is cut.

    `cuts` are the parameters behind each cut. `judge` are the leaves that the term reaches last before a cut: those of
    the last layer of a discriminator.
    """

    root: NodeRecord
    term: NodeRecord
    pass_nr: int
    leaves: frozenset[int]
    cuts: Mapping[int, frozenset[int]]
    judge: frozenset[int]


def _terms_of_other_part(survey: Survey) -> Iterator[Finding | None]:
    """Yield the terms of a loss that train nothing, although the parameters behind a cut of them are trained.

    They reach parameters of another part, whose gradients are cleared before a step uses them. A line whose term trains
    that part in another pass is for that part: it may only be computed for both.
    """
    by_line: defaultdict[int, list[_Reach]] = defaultdict(list)
    trained = _trained_by_pass(survey)
    counts, room = Counter[int](), _MOST_IN_ALL
    for _, event in survey.passes:
        yield None
        counts[event.stack] += 1
        root = survey.nodes.get(event.roots[0][0]) if len(event.roots) == 1 else None
        if root is None or event.pass_nr not in trained or counts[event.stack] > _MOST_PASSES:
            continue
        for term in {one.created.stack: one for one in _tracked_summands(survey, root)}.values():
            yield None
            if room > 0:
                reach, examined = _reach(survey, root, term, event.pass_nr)
                room -= examined
                by_line[term.created.stack] += [reach] if reach is not None else []
    updated = {node for nodes in trained.values() for node in nodes}
    for reaches in by_line.values():
        used = {leaf for reach in reaches for leaf in reach.leaves & trained[reach.pass_nr]}
        for reach in reaches:
            now = trained[reach.pass_nr]
            cut = next((node for node, behind in reach.cuts.items() if behind & now), 0)
            is_other = reach.judge and not reach.judge & used and not reach.leaves & now
            is_in_use = reach.judge <= updated or not reach.judge & survey.optimized
            if cut and is_other and is_in_use:
                yield _other_part_finding(survey, reach, cut, suspected=not reach.judge & updated)
                break


def _trained_by_pass(survey: Survey) -> dict[int, set[int]]:
    """Return, for each pass whose gradients a step has used, the parameters that it has changed with them."""
    waiting: defaultdict[int, list[int]] = defaultdict(list)
    trained: defaultdict[int, set[int]] = defaultdict(set)
    for _, event in survey.select(GradAccumulated, GradSet, OptimizerStepped):
        if isinstance(event, GradAccumulated):
            waiting[event.node].append(event.pass_nr)
        elif isinstance(event, GradSet):
            if event.how in CLEARED:
                waiting.pop(event.node, None)
        elif isinstance(event, OptimizerStepped):
            for node in event.parameters:
                for pass_nr in waiting.pop(node, ()):
                    trained[pass_nr].add(node)
    return dict(trained)


def _tracked_summands(survey: Survey, root: NodeRecord) -> Iterator[NodeRecord]:
    """Yield the tracked terms of a loss, if it has several. A sum in a module is no sum of terms."""
    waiting, seen, terms = [root], {root.node}, list[NodeRecord]()
    while waiting and len(seen) < _MOST_SUMMANDS:
        record = waiting.pop()
        tracked = [one for one in survey.sources(record) if one.created.requires_grad and one.created.kind == "op"]
        is_outside = not record.shape or record.created.scope == root.created.scope
        is_sum = record.op in JOINING_TERMS and is_outside
        is_scaled = record.op in CARRYING_ONE_TERM and len(tracked) == 1 and not record.shape
        if is_scaled and tracked[0].shape and tracked[0].op not in JOINING_TERMS:
            is_scaled = False
        if not tracked or not (is_sum or is_scaled):
            terms.append(record)
            continue
        waiting += [source for source in tracked if source.node not in seen]
        seen.update(source.node for source in tracked)
    if len(terms) > 1:
        yield from terms


def _reach(survey: Survey, root: NodeRecord, term: NodeRecord, pass_nr: int) -> tuple[_Reach | None, int]:
    """Return what a term reaches, if a cut is between it and parameters; and how many nodes were examined."""
    graph, outside = _graph(survey, term.node)
    cuts = dict[int, frozenset[int]]()
    entries = dict[int, int]()  # the untracked inputs of the graph -> a cut behind them
    for node in outside:
        for lost in _cuts_behind(survey, node):
            if lost not in cuts:
                sources = (one for one, _ in survey.nodes[lost].created.inputs if one)
                behind = {leaf for one in sources for leaf in _graph(survey, one)[0]}
                cuts[lost] = frozenset(leaf for leaf in behind if _is_leaf(survey, leaf)) & survey.optimized
            if cuts[lost]:
                entries[node] = lost
    if not entries:
        return None, len(graph)
    below = set(entries)
    last: list[int] = []
    for node in sorted(graph):
        inputs = [one for one, _ in survey.nodes[node].created.inputs if one in graph or one in entries]
        if not below.isdisjoint(inputs):
            below.add(node)
            last = [one for one in inputs if one not in below] or last
    judge = {leaf for one in last for leaf in _graph(survey, one)[0] if _is_leaf(survey, leaf)}
    leaves = frozenset(node for node in graph if _is_leaf(survey, node))
    known = {lost: cuts[lost] for lost in entries.values()}
    reach = _Reach(root, term, pass_nr, leaves, known, frozenset(judge)) if judge else None
    return reach, 2 * len(graph)


def _is_leaf(survey: Survey, node: int) -> bool:
    created = survey.nodes[node].created
    return created.kind != "op" and created.requires_grad


def _graph(survey: Survey, node: int) -> tuple[set[int], list[int]]:
    """Return a tracked node and the tracked ones that it was made from, and the untracked results among inputs."""
    if node not in survey.nodes or not survey.nodes[node].created.requires_grad:
        return set(), []
    graph, outside, waiting = {node}, dict[int, None](), [node]
    while waiting and len(graph) < _MOST_NODES:
        for source in survey.sources(survey.nodes[waiting.pop()]):
            if not source.created.requires_grad:
                if source.created.kind == "op":
                    outside[source.node] = None
            elif source.node not in graph:
                graph.add(source.node)
                waiting.append(source.node)
    return graph, list(outside)


def _cuts_behind(survey: Survey, node: int) -> Iterator[int]:
    """Yield the nodes that lose tracking behind an untracked result, nearest first."""
    seen, waiting = {node}, deque([node])
    while waiting and len(seen) < _MOST_SUMMANDS:
        here = waiting.popleft()
        if loses_tracking(survey.timeline, here):
            yield here
        for source in survey.sources(survey.nodes[here]):
            if source.created.kind == "op" and not source.created.requires_grad and source.node not in seen:
                seen.add(source.node)
                waiting.append(source.node)


def _other_part_finding(survey: Survey, reach: _Reach, lost: int, *, suspected: bool) -> Finding:
    timeline, cut = survey.timeline, survey.timeline.info(lost)
    names = label(timeline, reach.term.node), label(timeline, reach.root.node)
    text = titled("{} is a part of {}, but trains nothing", *names)
    where = f"cut at {label_at(timeline, lost)}: {why_cut(cut)}"
    part = Finding("cut", where, cut.born, lost, at=innermost(cut))
    first, more = label(timeline, min(reach.judge)), len(reach.leaves) - 1
    others = f" and {more} more" if more else ""
    only = f"its gradient reaches only {first}{others}, which no step changes with it"
    to = Finding("leaf", only, reach.term.seq, min(reach.judge), at=survey.at(reach.term))
    how, source = mend(timeline, cut), next((one for one, _ in cut.created.inputs if one), 0)
    lines = {survey.nodes[one].created.stack for one in timeline.nodes.users(lost)}
    fix, at, edit = how.fix, how.at or innermost(cut), how.edit
    if cut.created.switched_off:
        fix, at, edit = "compute it for this term again, outside of the no_grad block", survey.at(reach.term), None
    elif len(lines) > 1:
        name = timeline.info(source).name
        itself = name if name.isidentifier() else "the tensor itself"
        fix, at, edit = f"use {itself} for this term: others need the cut", survey.at(reach.term), None
    parts = part, to
    node = reach.term.node
    return Finding("cut-summand", text, reach.term.seq, node, parts, fix, at, suspected=suspected, edit=edit)


# What the program's source code shows


def _call_behind_block(timeline: Timeline, at: Frame) -> Edit | None:
    """Move an assignment behind the block in which it is, if the other statements there do not need it."""
    source = statement_at(timeline, at)
    if source is None or not source[0].is_alone(source[1]):
        return None
    text, one = source
    block, node = one.around[-1], one.node
    later = [other for other in one.block if other.lineno > one.node.lineno]
    if (
        not isinstance(node, ast.Assign)
        or not isinstance(block, ast.With)
        or len(one.block) < 2
        or block.body[0].lineno == block.lineno
    ):
        return None
    names = {part.id for target in node.targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    if any(names & names_read(other) or names_set(other) & (names | names_read(one.node)) for other in later):
        return None
    head = text.rows[block.lineno - 1]
    indent = head[: len(head) - len(head.lstrip())]
    last = block.end_lineno or block.lineno
    between = "".join(f"{row}\n" for row in text.rows[one.last : last])
    return lines_replaced(text, one.first, last, f"{between}{indent}{text.segment(one.node)}\n")
