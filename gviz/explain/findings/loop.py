"""Mistakes in loops: graphs that stay alive, losses without a backward, and partly detached states."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite, sqrt
from statistics import fmean

from gviz.events import BackwardStarted, GradAccumulated, GradSet, NodeCreated, OptimizerStepped
from gviz.events.optimizer_options import option_text
from gviz.explain.backward_passes import loss_at, losses_of
from gviz.explain.display_names import at_text, innermost, label, label_at, titled
from gviz.explain.edit import kept_by, removed, without_method, wrapped
from gviz.explain.finding import Finding, Number
from gviz.explain.parameter_updates import options_of
from gviz.explain.program_source import is_read_once, line_text, zero_start
from gviz.explain.recording_overview import NodeRecord, Survey
from gviz.explain.tracking import ancestors
from gviz.source.site import Frame
from gviz.trace.timeline import Moment, Timeline
from gviz.values.number_text import bytes_text, number
from gviz.values.plain_text import file_line, shown
from gviz.values.value_text import norm

# Graphs of many iterations that are alive at once, because a result of each is kept

MOST_ALIVE = 3
"""Graphs of one line that may be alive at once: the one in use, the last one, and one being replaced."""


def kept_graphs(survey: Survey) -> Iterator[Finding]:
    """Yield lines with tracked results from more than `MOST_ALIVE` iterations that are alive at the end."""
    if len(survey.timeline.iterations) <= MOST_ALIVE or any(_running_sums(survey)):
        return
    last_pass = max((seq for seq, _ in survey.passes), default=survey.end)  # after it the program frees everything
    in_use = _in_use(survey)
    tracked = (
        record for record in survey.alive(last_pass) if record.created.kind == "op" and record.created.requires_grad
    )
    alive = [record for record in tracked if record.node not in in_use and not _is_of_gradcheck(survey, record)]
    by_line: defaultdict[int, dict[int, NodeRecord]] = defaultdict(dict)
    for record in alive:
        by_line[record.created.stack][survey.timeline.iteration_at(record.seq).index] = record
    last = max(
        (one for one in by_line.values() if len(one) > MOST_ALIVE),
        key=lambda line: max(record.seq for record in line.values()),
        default=None,
    )
    if last is not None:
        yield _kept_finding(survey, list(last.values()), alive)


_GRADCHECK = re.compile(r"\bgrad(grad)?check\(")


def _is_of_gradcheck(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a line that calls `gradcheck` made a node: it keeps its graphs until it returns."""
    frames = survey.timeline.stack(record.created.stack)
    return any(_GRADCHECK.search(line_text(survey.timeline, frame)) for frame in frames)


def _in_use(survey: Survey) -> set[int]:
    """Return the nodes that only the last pass goes through: they are kept for it, as adapted weights are.

    Passes with ``create_graph`` do not count: a loss of the gradients needs the same graph again.
    """
    if not survey.passes:
        return set()
    start, last = survey.passes[-1]
    before = {0, *(event.pass_nr for _, event in survey.passes if event.create_graph)}
    reached = list(ancestors(survey.timeline, *(node for node, _ in last.roots)))
    states = survey.timeline.at(start - 1).states(reached)
    return {node for node, state in zip(reached, states, strict=True) if state is not None and state.pass_nr in before}


def _kept_finding(survey: Survey, roots: list[NodeRecord], alive: list[NodeRecord]) -> Finding:
    timeline = survey.timeline
    first, last = roots[0], roots[-1]
    states = timeline.at(last.seq).states([record.node for record in alive])
    saved = [state for state in states if state is not None and state.saved == "held"]
    size = sum(record.value.nbytes for record in alive if record.value is not None)
    info = timeline.info(last.node)
    text = titled(f"{len(roots)} graphs are alive at once: results as {{}} are kept", label(timeline, last.node))
    memory = f"{len(alive)} nodes with results of {bytes_text(size)}"
    memory += f"; {len(saved)} of them keep saved tensors" if saved else "; their saved tensors are released"
    parts = (
        Finding("alive", memory, last.seq, last.node),
        Finding(
            "since", f"the oldest is {label_at(timeline, first.node)}, of event {first.seq}", first.seq, first.node
        ),
    )
    fix = "keep the number, not the tensor: losses.append(loss.item()), total += loss.item(), or loss.detach()"
    numbers = (Number("graphs alive", len(roots), last.seq), Number("nodes alive", len(alive), last.seq))
    kept = kept_by(
        timeline, innermost(info), [info.name for info in map(timeline.info, (record.node for record in alive))]
    )
    if not any(state is not None and state.pass_nr for state in states):
        fix = f"with torch.no_grad(): around it, as no backward goes through it; or {fix}"
    at, edit = kept if kept is not None else (_chained_at(survey, roots) or innermost(info), None)
    if kept is None and roots[-2].node in ancestors(timeline, last.node):  # a state that goes on: h = cell(x, h)
        at, fix = innermost(info), "detach() the result of the iteration before, so that backward ends there"
        edit = wrapped(timeline, at, info.name, ".detach()") if is_read_once(timeline, at, info.name) else None
    return Finding("graphs-kept", text, last.seq, last.node, parts, fix, at, numbers, edit=edit)


def _chained_at(survey: Survey, roots: list[NodeRecord]) -> Frame | None:
    """Return the line that adds each loss to a running result: ``self.value = 0.9 * self.value + 0.1 * new``.

    That result needs all losses before it.
    """
    lines: set[int] = set()
    for root in roots[-_FEWEST_CHAINED:]:
        users = (survey.nodes[node] for node in survey.timeline.nodes.users(root.node) if node in survey.nodes)
        tracked = {user.created.stack for user in users if user.created.requires_grad and not user.created.during[0]}
        lines = tracked if not lines else lines & tracked
    users = (survey.nodes[node] for node in survey.timeline.nodes.users(roots[-1].node) if node in survey.nodes)
    return next((survey.at(user) for user in users if user.created.stack in lines), None)


_FEWEST_CHAINED = 3


# A running sum of losses on which backward is called in each iteration: earlier losses are counted again


def counted_again(survey: Survey) -> Iterator[Finding]:
    """Yield losses whose gradient counts more than once: of a running sum, or of a pass of their own and of a sum."""
    yield from _running_sums(survey)
    yield from _counted_alone_and_in_a_sum(survey)


def _running_sums(survey: Survey) -> Iterator[Finding]:
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


def _counted_alone_and_in_a_sum(survey: Survey) -> Iterator[Finding]:
    """Yield calls of backward on a loss that another pass goes through, too, as a term of its sum.

    The sum may come before or after the term alone. It is a mistake only if one step then uses both gradients of a
    parameter. A program that wants the length of one gradient clears it before the next pass, or calls `autograd.grad`.
    """
    pairs, reported = _alone_and_in_a_sum(survey), set[int]()
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


def _alone_and_in_a_sum(survey: Survey) -> dict[int, tuple[BackwardStarted, BackwardStarted]]:
    """Return the later pass of a term alone and of a sum with it, by its number: both passes, the earlier one first."""
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
    roots = {node for _, event in survey.passes for node, _ in event.roots}
    for first in (records[0] for records in unused.values() if not roots & {one.node for one in records}):
        yield None
        info = timeline.info(first.node)
        lines = ((frame, zero_start(timeline, frame, info.name)) for frame in info.frames if info.name.isidentifier())
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


# The graphs that are alive at a moment, and the results that keep them alive

MOST_GRAPHS = 20


def alive_graphs(timeline: Timeline, moment: Moment) -> Finding:
    """Return the tracked results that are not freed, by the iteration that made them."""
    graphs: defaultdict[int, list[NodeCreated]] = defaultdict(list)
    freed = timeline.nodes.freed(moment.n)
    for node, created in timeline.nodes.all_created([node for node in timeline.nodes if node not in freed]):
        if created.kind == "op" and created.requires_grad and timeline.nodes.born(node) <= moment.n:
            graphs[timeline.iteration_at(timeline.nodes.born(node)).index].append(created)
    parts = [_graph(timeline, moment, index, nodes) for index, nodes in sorted(graphs.items())]
    count = len(parts)
    text = (
        f"{count} graph{'s are' if count != 1 else ' is'} alive at event {moment.n}" if parts else "no graph is alive"
    )
    rest = (Finding("more", f"and {count - MOST_GRAPHS} more graphs"),) if count > MOST_GRAPHS else ()
    return Finding("alive", text, moment.n, parts=(*parts[:MOST_GRAPHS], *rest))


def _graph(timeline: Timeline, moment: Moment, index: int, nodes: list[NodeCreated]) -> Finding:
    """Return one iteration's nodes, with the last result that no living node uses: it keeps the others alive."""
    here = {created.node for created in nodes}
    roots = [created for created in nodes if not here & set(timeline.nodes.users_by_node.get(created.node, ()))]
    root = roots[-1] if roots else nodes[-1]
    states = moment.states([created.node for created in nodes])
    count = sum(state is not None and state.saved == "held" for state in states)
    size = sum(created.first_value.nbytes for created in nodes if created.first_value is not None)
    born = timeline.nodes.born(root.node)
    number = timeline.iterations[index].number
    text = (
        f"iteration {number}: {len(nodes)} nodes, results of {bytes_text(size)}, saved tensors of {count} held, "
        f"since event {timeline.nodes.born(nodes[0].node)}; held by {label_at(timeline, root.node)}"
    )
    numbers = (Number("nodes", len(nodes), born), Number("bytes", size, born), Number("saved", count, born))
    return Finding("graph", text, born, root.node, at=innermost(timeline.info(root.node)), numbers=numbers)


# A line makes many losses, but backward runs for only a few: it is probably outside the loop

_FEWEST = 8
"""The fewest losses of one line that show a loop; fewer may be a line search."""

_TIMES = 10
"""At least this many unused losses for each backward are reported. A program may choose among fewer losses."""

_LOOKED_AT = 4
"""The number of unused losses whose ancestors are searched."""


def unused_losses(survey: Survey) -> Iterator[Finding]:
    """Yield lines that make losses, if no pass goes through most of these losses."""
    if survey.timeline.cut_off:  # the next event may have been a backward
        return
    roots = {node for _, event in survey.passes for node, _ in event.roots if node in survey.nodes}
    lines = [losses for losses in _by_line(survey, roots) if len(losses) > _FEWEST]
    used_nodes = {*ancestors(survey.timeline, *roots), *roots} if lines else set()
    for losses in lines:
        used = [record for record in losses if record.node in used_nodes]
        unused = [record for record in losses if record.node not in used_nodes]
        fewest = max(_FEWEST, _TIMES * (len(used) - 1))
        if len(unused) >= fewest and not _are_choices(survey, unused, used_nodes):
            yield _unused_finding(survey, unused, used)


def _by_line(survey: Survey, roots: set[int]) -> Iterable[list[NodeRecord]]:
    """Return, for each line that made the root of a pass, the scalars that the line made."""
    lines: defaultdict[int, list[NodeRecord]] = defaultdict(list)
    stacks = {survey.nodes[root].created.stack for root in roots} - {0}
    for record in survey.nodes.values():
        if record.created.stack in stacks and _may_be_a_loss(record):
            lines[record.created.stack].append(record)
    return lines.values()


def _are_choices(survey: Survey, unused: list[NodeRecord], used_nodes: set[int]) -> bool:
    """Return whether the losses share operations with one that was used: the program has chosen among them."""
    shared = (node for record in unused[-_LOOKED_AT:] for node in ancestors(survey.timeline, record.node))
    return any(node in used_nodes and survey.nodes[node].created.kind == "op" for node in shared)


def _may_be_a_loss(record: NodeRecord) -> bool:
    return (
        record.created.kind == "op"
        and record.created.requires_grad
        and record.value is not None
        and record.value.size == 1
    )


def _unused_finding(survey: Survey, unused: list[NodeRecord], used: list[NodeRecord]) -> Finding:
    timeline, first, last = survey.timeline, unused[0], max(used, key=lambda record: record.node)
    info, count = timeline.info(last.node), len(unused) + len(used)
    text = f"backward goes through {len(used)} of {count} losses"
    others = f"{label(timeline, first.node)} and {len(unused) - 1} others have brought no gradient to anything"
    parts = (Finding("beside", others, first.seq, first.node),)
    numbers = (Number("losses", count), Number("gone through", len(used)))
    fix = "call backward() and the step in the loop, after each loss (or no_grad() where none is meant)"
    at = innermost(info)
    return Finding("unused-losses", text, last.seq, last.node, parts, fix, at, numbers, suspected=True)


# A loop detaches a state only at some steps: backward stops at the last of them

_CUTS = ("detach", "data")


@dataclass(frozen=True, slots=True)
class _Use:
    """A use of `state` by `user`, through `cut` if that detached it."""

    state: NodeRecord
    cut: NodeRecord | None
    user: NodeRecord


def partly_detached(survey: Survey) -> Iterator[Finding | None]:
    """Yield the first state of each line that is detached at some steps before a pass, and attached at others.

    Then also lines that detach it at every step.
    """
    starts = [seq for seq, _ in survey.passes]
    reported: set[tuple[Frame, ...]] = set()
    partly: set[int] = set()
    for cut in _cuts(survey):
        before = bisect_left(starts, cut.seq)
        line = survey.timeline.stack(cut.created.stack)
        if line in reported or before == len(starts):
            continue
        window = range(starts[before - 1] if before else 0, starts[before])
        for state in survey.sources(cut):
            reported.add(line)
            for one in _of_line(survey, state, window):
                partly.add(survey.nodes[one.node].created.stack)
                yield one
    yield from _detached_each_step(survey, partly)


def _cuts(survey: Survey) -> Iterator[NodeRecord]:
    """Yield the operations that detach a result."""
    for record in survey.nodes.values():
        if record.created.untracked in _CUTS and any(_is_state(source) for source in survey.sources(record)):
            yield record


def _is_state(record: NodeRecord) -> bool:
    return record.created.kind == "op" and record.created.requires_grad and not record.created.during[0]


def _of_line(survey: Survey, state: NodeRecord, window: range) -> Iterator[Finding]:
    line = state.created.stack, state.created.op
    same = [record for record in survey.ops(state.op) if (record.created.stack, record.created.op) == line]
    uses = [one for record in same if record.seq in window for one in _state_uses(survey, record, window)]
    for cut in reversed([one for one in uses if one.cut is not None]):
        same_uses = [one for one in uses if _place(one) == _place(cut)]
        attached = [one for one in same_uses if one.cut is None]
        if attached:
            yield _detached_finding(survey, cut, attached[-1], len(same_uses) - len(attached), len(same_uses))
            return


def _state_uses(survey: Survey, state: NodeRecord, window: range) -> Iterator[_Use]:
    """Yield the users of a state in a window, directly or after one cut."""
    for user in _users(survey, state, window):
        if user.created.untracked in _CUTS:
            yield from (_Use(state, user, after) for after in _users(survey, user, window))
        else:
            yield _Use(state, None, user)


def _users(survey: Survey, record: NodeRecord, window: range) -> Iterator[NodeRecord]:
    users = (
        survey.nodes[user] for user in survey.timeline.nodes.users_by_node.get(record.node, ()) if user in survey.nodes
    )
    return (user for user in users if user.seq in window)


def _place(use: _Use) -> tuple[int, int, int]:
    """Return the operation, its line, and the number of the input."""
    input_node = use.state if use.cut is None else use.cut
    slots = [node for node, _ in use.user.created.inputs]
    return use.user.created.stack, use.user.created.op, slots.index(input_node.node)


def _detached_finding(survey: Survey, last: _Use, other: _Use, detached: int, count: int) -> Finding:
    assert last.cut is not None
    timeline, cut = survey.timeline, last.cut
    names = label(timeline, last.user.node), label(timeline, last.state.node)
    text = titled(f"at {detached} of {count} steps {{}} takes {{}} detached", *names)
    stops = f"detached at {label_at(timeline, cut.node)}: no gradient goes back past these steps"
    parts = (
        Finding("cut", stops, cut.seq, cut.node),
        Finding(
            "elsewhere", f"with its history by {label(timeline, other.user.node)}", other.user.seq, other.user.node
        ),
    )
    fix = "detach after backward(), not between the steps that one backward is to go through (leave it if meant so)"
    at = innermost(timeline.info(cut.node))
    return Finding("partly-detached", text, cut.seq, cut.node, parts, fix, at, suspected=True)


# A state that a loop detaches at every step between two passes: no gradient goes through time


def _detached_each_step(survey: Survey, partly: set[int]) -> Iterator[Finding | None]:
    """Yield lines that detach a state several times before one pass, each time the result of the one before.

    Lines at the call stacks `partly` detach it at some steps only.
    """
    timeline, starts = survey.timeline, [seq for seq, _ in survey.passes]
    lines: defaultdict[tuple[int, int], list[NodeRecord]] = defaultdict(list)
    for cut in _cuts(survey):
        lines[cut.created.stack, bisect_left(starts, cut.seq)].append(cut)
    reported = {*partly}
    for (stack, before), cuts in lines.items():
        if len(cuts) < _FEWEST_DETACHED or before == len(starts) or stack in reported:
            continue
        yield None
        reported.add(stack)
        states = [next(survey.sources(cut)) for cut in cuts]
        following = zip(cuts, states[1:], strict=False)
        is_chain = all(one.node in ancestors(timeline, state.node) for one, state in following)
        until = starts[before]
        is_only_use = all(
            {user for user in timeline.nodes.users(state.node) if timeline.nodes.born(user) < until} == {cut.node}
            for state, cut in zip(states, cuts, strict=True)
        )
        if is_chain and is_only_use:
            yield _each_step_finding(survey, cuts, states)


_FEWEST_DETACHED = 2


def _each_step_finding(survey: Survey, cuts: list[NodeRecord], states: list[NodeRecord]) -> Finding:
    timeline, last = survey.timeline, cuts[-1]
    at = innermost(timeline.info(last.node))
    text = titled(f"{{}} is detached at each of {len(cuts)} steps before backward", label(timeline, states[-1].node))
    stops = f"{label_at(timeline, last.node)} is the last of them: no gradient goes back past it to earlier steps"
    fix = "pass the state on with its history, and detach it after backward()"
    edit = without_method(timeline, at, "detach")
    part = Finding("cut", stops, last.seq, last.node)
    return Finding("partly-detached", text, last.seq, states[-1].node, (part,), fix, at, suspected=True, edit=edit)


# A loss that does not fall, in a program with one loss and one optimizer: what is known of its gradients is reported

_FEWEST_LOSSES = 24
"""The fewest passes after which a loss that is not smaller is no accident of single batches."""

_FALLEN = 0.98

_DEVIATIONS = 2.0
"""The standard deviations by which a loss must be above what counts as fallen."""


def not_falling(survey: Survey) -> Iterator[Finding | None]:
    """Yield the loss of a training loop if its last quarter is no smaller than its first, with what is sure about it.

    Programs with several losses or optimizers are left out: theirs may balance each other, as those of a GAN do. So
    are losses that reach 0 or less, such as those of a policy, and those whose target a model makes: it moves, as the
    values of Q-learning do. So are losses that differ so much from pass to pass that the means of two quarters do not
    show whether they fall.
    """
    timeline = survey.timeline
    steps = {event.stack for _, event in survey.select(OptimizerStepped) if event.parameters}
    calls = {event.stack for _, event in survey.passes}
    if len(steps) != 1 or len(calls) != 1 or len(survey.passes) < _FEWEST_LOSSES or timeline.failures:
        return
    yield None
    known = [one for seq, _ in survey.passes if (one := loss_at(timeline, seq)) is not None]
    values = [value for _, value in known]
    if len(values) < len(survey.passes) or not all(isfinite(value) and value > 0 for value in values):
        return
    quarter = len(values) // 4
    first, last = (fmean(part) for part in (values[:quarter], values[-quarter:]))
    # the spread from one pass to the next; a steady rise or fall adds little to it
    spread = sqrt(fmean((one - other) ** 2 for one, other in pairwise(values)) / 2)
    noise = _DEVIATIONS * spread * sqrt(2 / quarter)
    if last - noise > _FALLEN * first and not _has_made_target(survey, known[-1][0]):
        yield _not_falling_finding(survey, known[-1][0], first, last, len(values))


def _has_made_target(survey: Survey, root: int) -> bool:
    """Return whether a loss compares with the untracked result of a module that has parameters."""
    waiting, seen, given = [root], {root}, list[int]()
    while waiting:
        record = survey.nodes.get(waiting.pop())
        if record is None or record.created.scope in survey.scopes:
            continue  # within the model
        for source in survey.sources(record):
            if not source.created.requires_grad and source.created.kind == "op":
                given.append(source.node)
            elif source.node not in seen:
                seen.add(source.node)
                waiting.append(source.node)
    made = (survey.nodes[node] for node in (*given, *ancestors(survey.timeline, *given)) if node in survey.nodes)
    in_modules = (one for one in made if one.created.kind == "op" and one.created.scope in survey.scopes)
    return any(source.created.kind == "parameter" for one in in_modules for source in survey.sources(one))


def _not_falling_finding(survey: Survey, root: int, first: float, last: float, count: int) -> Finding:
    timeline, numbers = survey.timeline, (number(first), number(last))
    verb = "grows" if last > first / _FALLEN else "does not fall"
    text = titled(f"{{}} {verb} in {count} passes: from {numbers[0]} to {numbers[1]}", label(timeline, root))
    latest = {event.node: (seq, event) for seq, event in survey.accumulated if event.node in survey.optimized}
    sizes = {node: size for node, (_, event) in latest.items() if (size := norm(event.part)) is not None}
    sure = f"{len(latest)} of {len(survey.optimized)} parameters of the optimizer get a gradient"
    if sizes:
        most, least = max(sizes, key=sizes.__getitem__), min(sizes, key=sizes.__getitem__)
        ends = (f"|g| {number(sizes[node])} at {label(timeline, node)}" for node in (most, least))
        sure += f": {', '.join(ends)}"
    seq = next(reversed([seq for seq, _ in survey.select(OptimizerStepped)]))
    rates = {options_of(timeline, node, seq).get("lr") for node in list(latest)[:1]} - {None}
    sure += f"; lr is {option_text(rates.pop())}" if rates else ""
    part = Finding("share", sure, survey.passes[-1][0], root)
    fix = "a smaller learning rate" if verb == "grows" else "fit one batch first: if that fails, look at data and loss"
    row = (Number("first quarter", first), Number("last quarter", last))
    at = innermost(timeline.info(root))
    return Finding("not-falling", text, survey.passes[-1][0], root, (part,), fix, at, row, suspected=True)
