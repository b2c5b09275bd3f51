"""Running sums: losses whose gradient counts again, sums that keep their last term, corrections that are repeated."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from gviz.events import BackwardStarted, GradAccumulated, GradSet, OptimizerStepped
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.loss_terms import losses_of
from gviz.explain.program_text import called_name, frame_of, names_read, names_set, scope_of, statement_at
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import removed
from gviz.explain.source_frames import at_text
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import file_line, shown

# A running sum of losses on which backward is called in each iteration: earlier losses are counted again


def counted_again(survey: Survey) -> Iterator[Finding]:
    """Yield losses whose gradient counts more than once: of a running sum, or of a pass of their own and of a sum."""
    yield from running_sums(survey)
    yield from _counted_twice(survey)


def running_sums(survey: Survey) -> Iterator[Finding]:
    """Yield calls of backward whose loss contains the loss of an earlier pass of the same call.

    It is reported only if both passes add to the same ``.grad``. A program that clears it in between asks for the
    gradient of the sum.
    """
    timeline = survey.timeline
    added = {event.pass_nr for _, event in survey.accumulated if event.value is not None}
    calls: defaultdict[int, list[tuple[int, BackwardStarted]]] = defaultdict(list)
    for seq, event in survey.passes:
        if not event.create_graph and len(event.roots) == 1:
            calls[event.stack].append((seq, event))
    for call, passes in calls.items():
        pairs = [
            (earlier, seq, event)
            for (_, earlier), (seq, event) in pairwise(passes)
            if event.pass_nr in added and _contains(timeline, event, earlier)
        ]
        if pairs:
            yield _again_finding(timeline, call, pairs, len(passes))


def _contains(timeline: Timeline, event: BackwardStarted, earlier: BackwardStarted) -> bool:
    """Return whether the root of a pass is the root of an earlier one and something added to it."""
    (root, _), (before, _) = event.roots[0], earlier.roots[0]
    info = timeline.info(root) if root in timeline.nodes else None
    if not before or info is None or info.op.base_name != "add":
        return False
    return before in {node for node, _ in info.created.inputs}


def _again_finding(
    timeline: Timeline, call: int, pairs: list[tuple[BackwardStarted, int, BackwardStarted]], count: int
) -> Finding:
    earlier, seq, event = pairs[0]
    (root, _), (before, _) = event.roots[0], earlier.roots[0]
    text = titled(f"{len(pairs)} of {count} passes go through earlier losses again: {{}}", label(timeline, root))
    has = f"it contains {label_at(timeline, before)}, whose gradient backward pass {earlier.pass_nr} has added already"
    fix = "call backward() on each loss itself and keep total += loss.item(); or call it once, after the loop"
    part, at = Finding("root", has, seq, before), next(iter(timeline.stack(call)), None)
    numbers = (Number("passes", len(pairs)),)
    return Finding("counted-again", text, seq, root, (part,), fix, at, numbers)


# A loss with a backward pass of its own that is also a term of the loss of the next pass: its gradient counts twice


def _counted_twice(survey: Survey) -> Iterator[Finding]:
    """Yield calls of backward on a loss that another pass goes through, too, as a term of its sum.

    The sum may come before or after the single term. It is a mistake only if one step then uses both gradients of a
    parameter. A program that wants the length of one gradient clears it before the next pass, or calls `autograd.grad`.
    """
    pairs, reported = _single_terms_in_sums(survey), set[int]()
    passes_of: defaultdict[int, set[int]] = defaultdict(set)  # parameter -> the passes whose gradients its .grad has
    for seq, event in survey.select(GradAccumulated, GradSet, OptimizerStepped) if pairs else ():
        match event:
            case GradAccumulated(node=node, pass_nr=nr) if node in survey.optimized:
                passes_of[node].add(nr)
                first, second = pairs.get(nr, (None, None))
                if first is None or second is None or first.pass_nr not in passes_of[node] or first.stack in reported:
                    continue
                reported.add(first.stack)
                yield _twice_finding(survey.timeline, first, seq, second, node)
            case GradSet(node=node):
                passes_of.pop(node, None)
            case OptimizerStepped(parameters=parameters):
                for node in parameters:
                    passes_of.pop(node, None)


def _single_terms_in_sums(survey: Survey) -> dict[int, tuple[BackwardStarted, BackwardStarted]]:
    """Return the passes of a single term and of a sum with it, the earlier first, by the number of the later."""
    own: dict[int, BackwardStarted] = {}
    of_sum: dict[int, BackwardStarted] = {}  # by a term of the sum
    pairs: dict[int, tuple[BackwardStarted, BackwardStarted]] = {}
    for _, event in survey.passes:
        if event.create_graph or event.inputs or len(event.roots) != 1:
            continue
        root, _ = event.roots[0]
        if root not in survey.nodes:
            continue
        losses = losses_of(survey.timeline, [root])
        terms = losses.uses if losses is not None else {}
        before = next((own[loss] for loss in terms if loss in own), None) or of_sum.get(root)
        if before is not None:
            pairs[event.pass_nr] = before, event
        own[root] = event
        of_sum |= dict.fromkeys(terms, event)
    return pairs


def _twice_finding(timeline: Timeline, first: BackwardStarted, seq: int, second: BackwardStarted, leaf: int) -> Finding:
    (loss, _), (root, _) = first.roots[0], second.roots[0]
    again, at = timeline.stack(second.stack), next(iter(timeline.stack(first.stack)), None)
    fix = "zero_grad() before the second backward(), or autograd.grad() if the first gradient is only looked at"
    edit = None
    if (losses := losses_of(timeline, [loss])) is not None and root in losses.uses:
        loss, root, at = root, loss, again[0] if again else at  # the sum came first: the pass of the term is too much
        fix, edit = "leave out this backward(): the sum already has this gradient", removed(timeline, at)
    text = titled("{} counts twice: alone, and as a term of {}", label(timeline, loss), label(timeline, root))
    both = f"{label(timeline, leaf)} has both gradients: backward{at_text(again)} adds to that of the first"
    part = Finding("root", both, seq, leaf, at=again[0] if again else None)
    return Finding("counted-again", text, seq, loss, (part,), fix, at, edit=edit)


# A sum that starts with zeros before a loop, and that each turn replaces instead of adding to it


def last_term(survey: Survey) -> Iterator[Finding | None]:
    """Yield names that start with zeros and that each turn of a loop replaces, if only the last result is used."""
    timeline = survey.timeline
    unused: defaultdict[int, list[NodeRecord]] = defaultdict(list)
    for record in survey.nodes.values():
        created = record.created
        is_result = created.kind == "op" and created.requires_grad and not created.during[0]
        if is_result and not timeline.nodes.users(record.node):
            unused[created.stack].append(record)
    for first in (records[0] for records in unused.values() if survey.roots.isdisjoint(one.node for one in records)):
        yield None
        info = timeline.info(first.node)
        lines = ((frame, _zero_start(timeline, frame, info.name)) for frame in info.frames if info.name.isidentifier())
        at, start = next(((frame, start) for frame, start in lines if start is not None), (None, None))
        used = _used_in_its_place(survey, first, info.name) if start is not None else None
        if start is not None and used is not None:
            yield _last_finding(survey, first, used, at, start)


def _used_in_its_place(survey: Survey, first: NodeRecord, name: str) -> NodeRecord | None:
    """Return the later result of the same call and name that something uses."""
    timeline = survey.timeline
    later = (record for record in survey.ops(first.op) if first.seq < record.seq)
    used = (
        record for record in later if record.created.stack == first.created.stack and timeline.nodes.users(record.node)
    )
    return next((record for record in used if timeline.info(record.node).name == name), None)


def _last_finding(survey: Survey, first: NodeRecord, used: NodeRecord, at: Frame | None, start: Frame) -> Finding:
    timeline, name = survey.timeline, shown(survey.timeline.info(first.node).name)
    text = titled(f"only the last {name} of a loop is used: {{}} is not", label(timeline, first.node))
    begins = f"{name} starts with zeros at {file_line(start.path, start.line)}, and each turn replaces it"
    part = Finding("dropped", f"{begins}; {label_at(timeline, used.node)} is used", used.seq, used.node, at=start)
    fix = f"add to it, if it is a sum: {name} = {name} + ..., or {name}.append(...) and torch.stack after the loop"
    return Finding("last-term", text, first.seq, first.node, (part,), fix, at, suspected=True)


# A correction that each turn of a loop over samples adds to the same value: sample i gets it i times

_FEWEST_TURNS = 3


def repeated_correction(survey: Survey) -> Iterator[Finding | None]:
    """Yield sums to which each turn of a loop over samples adds the same tensor, and whose steps each turn uses.

    A sum that starts with zeros is a ramp, and a state that goes from turn to turn is a simulation: both are meant.
    """
    timeline, starts = survey.timeline, [seq for seq, _ in survey.passes]
    chains: defaultdict[tuple[int, int], list[tuple[NodeRecord, NodeRecord]]] = defaultdict(list)  # by place and pass
    for record in survey.ops("add", "sub"):
        pair = list(survey.sources(record))
        if len(pair) == 2 and record.shape and record.created.requires_grad and pair[0].shape == record.shape:
            chains[record.created.stack, bisect_left(starts, record.seq)].append((record, pair[1]))
    seen = set[int]()
    for (stack, _), turns in chains.items():
        if len(turns) < _FEWEST_TURNS or stack in seen:
            continue
        yield None
        records, added = [record for record, _ in turns], {one.node for _, one in turns}
        first = next(survey.sources(records[0]))
        is_chain = all(later.created.inputs[0][0] == one.node for one, later in pairwise(records))
        if len(added) != 1 or not is_chain or not _is_given(first) or not _are_apart(survey, records):
            continue
        at = survey.at(records[0])
        if (loop := _loop_over_samples(timeline, at, records[0], timeline.info(records[0].node).name)) is not None:
            seen.add(stack)
            yield _repeated_finding(survey, records, turns[0][1], first, loop)


def _is_given(first: NodeRecord) -> bool:
    """Return whether the start of a sum has numbers other than zero."""
    stats = first.stats
    return stats is not None and first.value is not None and stats.zero < first.value.size


def _are_apart(survey: Survey, records: list[NodeRecord]) -> bool:
    """Return whether each turn uses its sum, and gives nothing to the next turn but the sum and terms of a loss."""
    users, sums = survey.timeline.nodes.users, {record.node for record in records}
    for record, following in pairwise(records):
        waiting, seen = [node for node in users(record.node) if node not in sums], set[int]()
        if not waiting:
            return False
        while waiting:
            node = waiting.pop()
            if node in seen or node not in survey.nodes:
                continue
            seen.add(node)
            later = [user for user in users(node) if user in survey.nodes and survey.nodes[user].seq > following.seq]
            if later and (len(later) > 1 or survey.nodes[later[0]].op not in ("add", "sub", "rsub", "stack", "cat")):
                return False
            waiting += [user for user in users(node) if user not in later]
            if later and len(users(node)) > 1:
                return False  # a state: it is used now and in the next turn
    return True


def _repeated_finding(
    survey: Survey, records: list[NodeRecord], added: NodeRecord, first: NodeRecord, loop: Frame
) -> Finding:
    timeline, count = survey.timeline, len(records)
    names = label(timeline, added.node), label(timeline, first.node)
    text = titled(f"each turn of a loop adds {{}} to {{}} again: {count} times", *names)
    place = file_line(loop.path, loop.line)
    last = f"the last sample of the loop at {place} uses {label_at(timeline, records[-1].node)}"
    part = Finding("sum", f"{last}, with {count} times the correction", records[-1].seq, records[-1].node, at=loop)
    at = survey.at(records[0])
    fix = "add it once, before the loop, if each sample is to get the same correction"
    numbers = (Number("additions", count, records[-1].seq),)
    return Finding(
        "repeated-correction", text, records[0].seq, records[0].node, (part,), fix, at, numbers, suspected=True
    )


# What the program's source code shows


_ZEROS = ("zeros", "new_zeros", "zeros_like", "tensor")


def _zero_start(timeline: Timeline, at: Frame | None, name: str) -> Frame | None:
    """Return the line that starts a name with zeros before the loop around a line that only replaces it.

    None if the loop reads the name anywhere, or if nothing after the loop reads it.
    """
    source = statement_at(timeline, at)
    loops = (
        [outer for outer in source[1].around if isinstance(outer, ast.For | ast.While)] if source is not None else []
    )
    if source is None or not loops or name not in names_set(source[1].node):
        return None
    text, loop = source[0], loops[-1]
    if name in names_read(loop) or isinstance(source[1].node, ast.AugAssign):
        return None
    scope = scope_of(text, source[1], name)
    of_name = [one for one in text.statements if scope_of(text, one, name) is scope]
    if not any(one.first > (loop.end_lineno or loop.lineno) and name in names_read(one.node) for one in of_name):
        return None
    starts = [one for one in of_name if one.first < loop.lineno and name in names_set(one.node)]
    value = getattr(starts[-1].node, "value", None) if starts else None
    is_zero = isinstance(value, ast.Constant) and type(value.value) in (int, float) and not value.value
    if isinstance(value, ast.Call) and called_name(value) in _ZEROS:
        number = value.args[0] if called_name(value) == "tensor" and value.args else ast.Constant(0)
        is_zero = isinstance(number, ast.Constant) and not number.value
    return frame_of(at, starts[-1].first, text) if is_zero and at is not None else None


def _loop_over_samples(timeline: Timeline, at: Frame | None, record: NodeRecord, name: str) -> Frame | None:
    """Return the loop around a line, if its variable is an element of data or the index of one that the loop reads.

    The line must be ``name = name + other``, and no other line of the loop may assign to the name.
    """
    source = statement_at(timeline, at)
    loops = [outer for outer in source[1].around if isinstance(outer, ast.For)] if source is not None else []
    if source is None or at is None or not loops or name not in names_set(source[1].node):
        return None
    text, one, loop = source[0], source[1], loops[-1]
    if name not in names_read(one.node) and not isinstance(one.node, ast.AugAssign):
        return None
    inside = [other for other in text.statements if loop in other.around]
    if sum(name in names_set(other.node) for other in inside) != 1:
        return None
    variables = {part.id for part in ast.walk(loop.target) if isinstance(part, ast.Name)}
    subscripts = [part for other in inside for part in other.parts(ast.Subscript)]
    is_index = any(variables & names_read(part.slice) and isinstance(part.ctx, ast.Load) for part in subscripts)
    is_element = isinstance(loop.iter, ast.Call) and called_name(loop.iter) in ("zip", "enumerate", "unbind", "split")
    return frame_of(at, loop.lineno, text) if is_index or (is_element and record.shape) else None
