"""What one iteration of the program does with its gradients, line by line, and what each of its losses is made from.

It judges nothing. It is for the mistakes that no kind of finding knows: a reader sees in one place what was cleared,
called, tracked, passed back and written, and compares that with what was meant.

Example. A student is trained on the outputs of a teacher:

    opt.zero_grad()                    clears 4 gradients
    soft = teacher(x).softmax(-1)      calls teacher (Net), not tracked: no_grad
    out = net(x)                       calls net (Net)
    loss = mse_loss(out, soft)         computes loss
    loss.backward()                    backward from loss = 0.5: enc 2 of 2, head 2 of 2, aux 0 of 2
    opt.step()                         Adam changes 4 parameters, 2 have no gradient

    loss is made from
    with a gradient        enc, head
    as numbers only        teacher (line 2)
    data                   x (16,4), y (16,)

Limits. Writes are those to tensors that existed before the iteration. Behind a tensor of an earlier iteration, and
behind an operation that cuts the graph, the walk from a loss ends.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from textwrap import wrap
from typing import Literal

from gviz import events as e
from gviz.explain.backward_passes import leaves_of_pass, loss_at, passes_by_loss, roots_of_pass
from gviz.explain.display_names import called, mode_of, op_title
from gviz.explain.grad_history import CLEARED
from gviz.explain.loss_terms import losses_of
from gviz.explain.parameter_updates import written_tensor
from gviz.explain.program_text import line_text
from gviz.explain.source_frames import own_frame
from gviz.explain.tracking import ancestors, loses_tracking, why_cut
from gviz.explain.training import module_of, trained_leaves
from gviz.source.call_stack import Frame
from gviz.trace.graph_state import Iteration, Phase
from gviz.trace.timeline import Timeline
from gviz.values.number_text import counted, number, shape_text
from gviz.values.plain_text import clipped, file_line, shown

_MOST_ACTIONS = 40
"""Lines of a program that are listed; an iteration with an inner loop repeats the same ones."""
_MOST_COMPUTED = 12
"""The most lines outside of modules that are listed with what they compute: the last ones before the pass."""
_MOST_NAMES = 8
_MOST_HEADS = 4
_LONGEST_LINE = 80
_WHY = {"detach": "detach", "no_grad": "no_grad", "inference": "inference_mode", "data": ".data"}
_FEW = 3
"""Up to this many leaves are named one by one; more are counted by module."""


@dataclass(frozen=True, slots=True)
class Action:
    """Something that a line of the program did, first at event `start`, `times` times in the iteration."""

    at: Frame | None
    source: str
    start: int
    text: str
    times: int = 1


@dataclass(frozen=True, slots=True)
class LossOrigins:
    """What a loss was made from: the `title` of the loss, and groups of names."""

    title: str
    start: int
    terms: tuple[str, ...]
    trained: tuple[str, ...]
    numbers_only: tuple[str, ...]
    earlier: tuple[str, ...]
    fixed: tuple[str, ...]
    data: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IterationSummary:
    """The actions of an iteration in order, its losses, the leaves without a gradient, and unused results.

    `elsewhere` has the losses whose passes are in other iterations, as in the training of a GAN, each with its last
    iteration.
    """

    number: int
    count: int
    start: int
    end: int
    actions: tuple[Action, ...]
    losses: tuple[LossOrigins, ...]
    without_gradient: tuple[str, ...]
    unused: tuple[str, ...]
    elsewhere: tuple[tuple[str, int], ...]


def iteration_summary(timeline: Timeline, n: int) -> IterationSummary:
    """Return the summary of the iteration of the last backward pass by moment `n`; without one, of that of `n`."""
    return _Reader(timeline, _iteration(timeline, n)).summary()


def _iteration(timeline: Timeline, n: int) -> Iteration:
    starts = [phase.start for phase in timeline.phases if phase.kind == "backward" and phase.start <= n]
    return timeline.iteration_at(starts[-1] if starts else n)


class _Reader:
    """Reads one iteration."""

    def __init__(self, timeline: Timeline, iteration: Iteration) -> None:
        self.timeline, self.iteration = timeline, iteration
        self.since = self._end_before() + 1
        self.window = self.since, iteration.end + 1

    def summary(self) -> IterationSummary:
        one = self.iteration
        reached = {node for phase in self.passes for node in leaves_of_pass(self.timeline, phase)}
        leaves = trained_leaves(self.timeline, self.passes[-1].end) if self.passes else ()
        lacking = [node for node in leaves if node not in reached]
        losses = tuple(self._origins(phase) for phase in self._losses())
        return IterationSummary(
            one.number, self.timeline.iteration_count, one.start, one.end, self._actions(), losses,
            self._names(lacking), tuple(self._unused()), tuple(self._elsewhere()),
        )  # fmt: skip

    def _end_before(self) -> int:
        """Return the event of the last pass or step before the iteration.

        An iteration of the timeline begins with its graph. What a loop does first, such as clearing gradients, comes
        before that, and often right after the step of the iteration before.
        """
        events: Iterator[tuple[int, e.Event]] = self.timeline.select(
            (e.BackwardFinished, e.OptimizerStepped), self._start_before(), self.iteration.start
        )
        return max((seq for seq, _ in events), default=self.iteration.start - 1)

    def _start_before(self) -> int:
        before = [one.start for one in self.timeline.iterations if one.start < self.iteration.start]
        return before[-1] if before else 1

    @cached_property
    def passes(self) -> list[Phase]:
        return self.timeline.phases_in(self.iteration, "backward")

    @cached_property
    def made(self) -> list[e.NodeCreated]:
        """The nodes of the iteration, in order."""
        return [created for _, created in self.timeline.select((e.NodeCreated,), *self.window)]

    def _elsewhere(self) -> Iterator[tuple[str, int]]:
        for one in passes_by_loss(self.timeline, self.iteration.end):
            if one.name and not any(self.iteration.start <= phase.start for phase in one.phases):
                yield shown(one.name), self.timeline.iteration_at(one.phases[-1].start).number

    # In order

    def _actions(self) -> tuple[Action, ...]:
        kinds = (
            self._calls,
            self._computations,
            self._gradient_writes,
            self._passes,
            self._steps,
            self._writes,
            self._failures,
        )
        grouped: dict[tuple[object, ...], list[Action]] = defaultdict(list)
        for one in self._of_this_turn([action for kind in kinds for action in kind()]):
            grouped[one.at and (one.at.path, one.at.line), one.text].append(one)
        actions = []
        for group in grouped.values():
            first = min(group, key=lambda one: one.start)
            actions.append(Action(first.at, first.source, first.start, first.text, len(group)))
        return tuple(sorted(actions, key=lambda one: one.start))

    def _of_this_turn(self, actions: Sequence[Action]) -> Iterator[Action]:
        """Yield the actions without those of the turns before and after, which the lines of the loop show."""
        inside = [one for one in actions if one.start >= self.iteration.start and one.at is not None]
        first = min(inside, key=lambda one: one.start).at if inside else None
        for one in actions:
            is_above = _is_above(one.at, first)
            if {"before": is_above, "graph": True, "after": not is_above}[self._part(one.start)]:
                yield one

    def _part(self, seq: int) -> Literal["before", "graph", "after"]:
        """Return whether an event is before the graph of the iteration, or after its last pass."""
        if seq < self.iteration.start:
            return "before"
        return "after" if self.passes and seq > self.passes[-1].end else "graph"

    def _action(self, at: Frame | None, start: int, text: str) -> Action:
        return Action(at, self._source(at), start, text)

    def _source(self, at: Frame | None) -> str:
        return shown(clipped(line_text(self.timeline, at).strip(), _LONGEST_LINE))

    def _stack_action(self, stack: int, start: int, text: str) -> Action:
        return self._action(own_frame(self.timeline.stack(stack)), start, text)

    def _calls(self) -> Iterator[Action]:
        """Yield the outermost module calls of the program."""
        for scope, (seq, entered) in self.outermost.items():
            inside = self.inside.get(scope, [])
            if not inside:
                continue  # it has just begun
            modes = Counter(mode for created in inside if (mode := mode_of(self.timeline.info(created.node))))
            how = [f"{mode} mode" for mode, _ in modes.most_common()]
            if why := self._why_untracked(inside):
                how.append(f"not tracked: {why}")
            name = entered.name if entered.name == entered.kind else f"{entered.name} ({entered.kind})"
            at = self._caller(inside[0].stack)
            yield self._action(at, seq, ", ".join([f"calls {shown(name)}", *how]))

    def _computations(self) -> Iterator[Action]:
        """Yield the lines of the program that compute something with a gradient, outside of modules."""
        called_at = {one.at and (one.at.path, one.at.line) for one in self._calls()}
        last = dict[tuple[str, int], e.NodeCreated]()
        first = dict[tuple[str, int], Action]()
        for created in self.made:
            at = own_frame(self.timeline.stack(created.stack))
            is_of_forward = (
                created.kind == "op" and created.requires_grad and not created.scope and not any(created.during)
            )
            if at is None or not is_of_forward or (at.path, at.line) in called_at:
                continue
            line = at.path, at.line
            first.setdefault(line, self._action(at, self.timeline.nodes.born(created.node), ""))
            last[line] = created
        for line in [*first][-_MOST_COMPUTED:]:
            yield replace(first[line], text=f"computes {self._with_shape(last[line].node)}")

    def _with_shape(self, node: int) -> str:
        """Return a node's name or operation, and its shape if it is no single number."""
        info = self.timeline.info(node)
        value = info.created.first_value
        shape = shape_text(value.shape) if value is not None and value.shape else ""
        return f"{shown(info.name or op_title(info))} {shape}".rstrip()

    @cached_property
    def outermost(self) -> dict[int, tuple[int, e.ScopeEntered]]:
        """The module calls that are in no other one, by number; not those that a backward pass makes again."""
        events = self.timeline.select((e.ScopeEntered,), *self.window)
        return {
            event.scope: (seq, event) for seq, event in events
            if not event.parent and not any(phase.start < seq < phase.end for phase in self.passes)
        }  # fmt: skip

    @cached_property
    def inside(self) -> dict[int, list[e.NodeCreated]]:
        """The nodes made within each outermost module call."""
        parents = {event.scope: event.parent for _, event in self.timeline.select((e.ScopeEntered,), *self.window)}
        inside: dict[int, list[e.NodeCreated]] = defaultdict(list)
        for created in self.made:
            scope = created.scope
            while parents.get(scope):
                scope = parents[scope]
            if scope:
                inside[scope].append(created)
        return inside

    @cached_property
    def scope_of(self) -> dict[int, int]:
        """The outermost module call that made a node."""
        return {created.node: scope for scope, nodes in self.inside.items() for created in nodes}

    def _why_untracked(self, inside: Iterable[e.NodeCreated]) -> str:
        """Return why nothing in a module call is tracked; empty if something is."""
        ops = [created for created in inside if created.kind == "op"]
        if not ops or any(created.requires_grad for created in ops):
            return ""
        off = next((created.untracked for created in ops if created.switched_off), "")
        return off or "nothing in it requires a gradient"

    def _caller(self, stack: int) -> Frame | None:
        """Return the line that called a model: the frame around the outermost ``forward``."""
        frames = self.timeline.stack(stack)
        for depth in range(len(frames) - 1, 0, -1):
            if frames[depth - 1].function.rpartition(".")[2] == "forward":
                return frames[depth]
        return own_frame(frames)

    def _gradient_writes(self) -> Iterator[Action]:
        written: dict[tuple[int, str, str], list[tuple[int, int]]] = defaultdict(list)
        for seq, event in self.timeline.select((e.GradSet,), *self.window):
            if event.stack:
                how = "clear" if event.how in CLEARED else event.how
                written[event.stack, self._part(seq), how].append((seq, event.node))
        for (stack, _, how), events in written.items():
            count = counted(len({node for _, node in events}), "gradient")
            text = {"clear": f"clears {count}", "in place": f"changes {count} in place"}.get(how, f"assigns {count}")
            yield self._stack_action(stack, events[0][0], text)

    def _passes(self) -> Iterator[Action]:
        for phase in self.passes:
            started = self.timeline.event(phase.start)
            if not isinstance(started, e.BackwardStarted):
                continue
            captured = [event for _, event in self.timeline.select((e.GradCaptured,), phase.start, phase.end + 1)]
            if captured:
                names = [called(self.timeline.info(node)) for node in dict.fromkeys(one.node for one in captured)]
                text = f"autograd.grad of {self._loss_title(phase)} for {_listed(names)}"
            else:
                text = f"backward from {self._loss_title(phase)}: {self._reach(phase)}"
            yield self._stack_action(started.stack, phase.start, text)

    def _reach(self, phase: Phase) -> str:
        """Return how many of the parameters a pass gave a gradient, by the first part of their names."""
        reached = {*leaves_of_pass(self.timeline, phase)}
        every = dict.fromkeys([*trained_leaves(self.timeline, phase.end), *sorted(reached)])
        if not every:
            return "nothing requires a gradient"
        heads: dict[str, list[bool]] = defaultdict(list)
        for node in every:
            heads[self._head(node)].append(node in reached)
        if 1 < len(heads) <= _MOST_HEADS and len(heads) == len(every):  # as for w and b
            got, lacking = ([shown(head) for head, one in heads.items() if one[0] == which] for which in (True, False))
            gets = "gets" if len(got or lacking) == 1 else "get"
            none = f", {_listed(lacking)} none" if got and lacking else ""
            return f"{_listed(got)} {gets} a gradient{none}" if got else f"{_listed(lacking)} {gets} no gradient"
        if 1 < len(heads) <= _MOST_HEADS:
            return ", ".join(f"{shown(head)} {sum(got)} of {len(got)}" for head, got in heads.items())
        return f"{len(reached)} of {len(every)} {'gets' if len(reached) == 1 else 'get'} a gradient"

    def _head(self, node: int) -> str:
        """Return the first part of a parameter's name: its model, or a part of the only model."""
        return self.timeline.info(node).name.removeprefix("self.").partition(".")[0] or f"#{node}"

    def _loss_title(self, phase: Phase) -> str:
        loss = loss_at(self.timeline, phase.start)
        if loss is not None:
            info = self.timeline.info(loss[0])
            return f"{shown(info.title)} = {number(loss[1])}"
        roots = roots_of_pass(self.timeline, phase.pass_nr)
        return _listed([called(self.timeline.info(node)) for node in roots]) or "?"

    def _steps(self) -> Iterator[Action]:
        for seq, step in self.timeline.select((e.OptimizerStepped,), *self.window):
            text = f"{shown(step.kind)} changes {counted(len(step.parameters), 'parameter')}"
            if step.skipped:
                text += f", {len(step.skipped)} {'has' if len(step.skipped) == 1 else 'have'} no gradient"
            yield self._stack_action(step.stack, seq, text)

    def _writes(self) -> Iterator[Action]:
        """Yield the writes in place by the program, outside of models and optimizers, to older leaves."""
        nodes, steps_at = self.timeline.nodes, self.timeline.contexts.steps_at
        # the first event that wrote to each leaf, by stack and part of the iteration
        written: dict[tuple[int, str], dict[int, int]] = defaultdict(dict)
        for seq, assigned in self.timeline.select((e.DataSet,), *self.window):
            if not steps_at(seq):
                written[assigned.stack, self._part(seq)].setdefault(assigned.node, seq)
        for seq, write in self.timeline.select((e.StorageWritten,), *self.window):
            if write.node not in nodes or (writer := nodes.created(write.node)).kind != "op" or writer.scope:
                continue
            target = written_tensor(self.timeline, write)
            if self._is_lasting(target) and not self._is_grad(target) and not steps_at(seq):
                written[writer.stack, self._part(seq)].setdefault(target, seq)
        for (stack, _), leaves in written.items():
            if stack:
                text = f"writes to {_listed(self._names([*leaves]))}"
                yield self._stack_action(stack, min(leaves.values()), text)

    def _is_lasting(self, node: int) -> bool:
        """Return whether a tensor is a leaf from before the iteration, or one that is trained, as in the first."""
        created = self.timeline.nodes.created(node)
        return created.kind != "op" and (self.timeline.nodes.born(node) < self.iteration.start or created.requires_grad)

    def _is_grad(self, node: int) -> bool:
        """Return whether a tensor is the ``.grad`` of a leaf, whose writes are listed as those of a gradient."""
        nodes = self.timeline.nodes
        return bool(nodes.origins.gradient_of.item(nodes.place_of(node)))

    def _is_data(self, node: int) -> bool:
        """Return whether a result was made before all training, and from nothing that is trained or a parameter."""
        return self.timeline.nodes.born(node) <= self._first_tracked and self._is_from_data(node)

    def _is_from_data(self, node: int) -> bool:
        """Return whether a result was made from nothing that is trained or a parameter."""
        sources = (self.timeline.nodes.created(one) for one in (node, *ancestors(self.timeline, node)))
        return not any(one.requires_grad or one.kind == "parameter" for one in sources)

    def _is_prepared(self, node: int) -> bool:
        """Return whether a result was made from data alone, and from no result of an earlier iteration."""
        sources = [one for one in ancestors(self.timeline, node) if self.timeline.nodes.created(one).kind == "op"]
        is_new = all(self.timeline.nodes.born(one) >= self.since or self._is_data(one) for one in sources)
        return is_new and self._is_from_data(node)

    @cached_property
    def _first_tracked(self) -> int:
        """The event that made the first result with a gradient."""
        events = self.timeline.select((e.NodeCreated,))
        tracked = (seq for seq, created in events if created.kind == "op" and created.requires_grad)
        return next(tracked, len(self.timeline))

    def _failures(self) -> Iterator[Action]:
        for seq, failed in self.timeline.select((e.Failed,), *self.window):
            yield self._stack_action(failed.stack, seq, f"fails: {shown(failed.error)}: {clipped(failed.message, 80)}")

    # What losses are made from

    def _losses(self) -> list[Phase]:
        """Return the last pass of each loss of the iteration, in order."""
        by_title: dict[tuple[int, str], Phase] = {}
        for phase in self.passes:
            started = self.timeline.event(phase.start)
            if isinstance(started, e.BackwardStarted):
                by_title[started.stack, self._loss_title(phase).partition(" = ")[0]] = phase
        return [*by_title.values()]

    def _origins(self, phase: Phase) -> LossOrigins:
        timeline, moment = self.timeline, self.timeline.at(phase.start)
        inputs = timeline.nodes.inputs_by_node
        trained, fixed, data = list[int](), list[int](), list[int]()
        cuts: dict[str, None] = {}
        earlier: dict[int, None] = {}
        roots = roots_of_pass(self.timeline, phase.pass_nr)
        seen, waiting = set[int](), [*roots]
        while waiting:
            node = waiting.pop()
            if node in seen or not node:
                continue
            seen.add(node)
            created = timeline.nodes.created(node)
            if created.kind != "op":
                state = moment.state(node)
                is_trained = state.requires_grad if state is not None else created.requires_grad
                (trained if is_trained else fixed if created.kind == "parameter" else data).append(node)
            elif timeline.nodes.born(node) < self.since and node not in roots:
                if self._is_data(node):
                    data.append(node)
                else:
                    earlier[node] = None
            elif created.untracked and loses_tracking(timeline, node):
                cuts[self._cut(node)] = None
            elif created.untracked and timeline.info(node).name and self._is_prepared(node):
                data.append(node)  # real = torch.randn(16, 4) + 3: what it was made from has no name
            else:
                waiting += inputs.get(node, ())
        reached = {*leaves_of_pass(timeline, phase)} if self._has_ended(phase) else {*trained}
        return LossOrigins(
            self._loss_title(phase),
            phase.start,
            tuple(self._terms(phase)),
            self._by_module([node for node in sorted(trained) if node in reached]),
            tuple(cuts),
            tuple(dict.fromkeys(shown(timeline.info(node).title) for node in sorted(earlier))),
            self._names(sorted(fixed)),
            tuple(self._data_words(sorted(data))),
        )

    def _has_ended(self, phase: Phase) -> bool:
        """Return whether a pass has ended: a recording may go on, or have broken off."""
        events = self.timeline.select((e.BackwardFinished,), phase.start, phase.end + 1)
        return any(event.pass_nr == phase.pass_nr for _, event in events)

    def _terms(self, phase: Phase) -> Iterator[str]:
        """Yield the losses whose sum a pass began at, with their numbers."""
        losses = losses_of(self.timeline, roots_of_pass(self.timeline, phase.pass_nr))
        for node in losses.uses if losses is not None else ():
            info = self.timeline.info(node)
            value = info.created.first_value
            array = self.timeline.array(value) if value is not None and value.size == 1 else None
            yield shown(op_title(info) if not info.name else info.name) + (
                f" = {number(float(array.reshape(())))}" if array is not None else ""
            )

    def _cut(self, node: int) -> str:
        """Return where a loss takes numbers without their history: the call of a model, or a line."""
        info = self.timeline.info(node)
        scope = self.scope_of.get(node, 0)
        if scope in self.outermost and (why := self._why_untracked(self.inside[scope])):
            at, why = self._caller(info.created.stack), f"results of {shown(self.outermost[scope][1].name)}, {why}"
        else:
            at, why = own_frame(info.frames), _WHY.get(info.created.untracked) or why_cut(info)
        return "  ".join(filter(None, [_place(at), self._source(at), f"({why})"]))

    def _by_module(self, nodes: Sequence[int]) -> tuple[str, ...]:
        counts = Counter(module_of(self.timeline, node) for node in nodes)
        return tuple(shown(name) for name in counts)

    def _data_words(self, nodes: Iterable[int]) -> Iterator[str]:
        for node in nodes:
            info = self.timeline.info(node)
            value = info.created.first_value
            if info.name:
                yield f"{shown(info.name)} {shape_text(value.shape) if value is not None else ''}".rstrip()

    def _names(self, nodes: Sequence[int]) -> tuple[str, ...]:
        """Return the names of leaves; many are grouped by their modules, and those by the first part of their paths."""
        infos = [self.timeline.info(node) for node in nodes]
        if len(nodes) <= _FEW:
            return tuple(shown(info.name) or f"#{info.node}" for info in infos)
        groups = Counter(module_of(self.timeline, node) for node in nodes)
        if len(groups) > _MOST_NAMES:
            groups = Counter(map(self._head, nodes))
        return tuple(f"{shown(name)} ({count})" if count > 1 else shown(name) for name, count in groups.items())

    def _unused(self) -> Iterator[str]:
        """Yield the tracked results with a name that nothing uses, and that no pass begins at."""
        roots = {node for phase in self.passes for node in roots_of_pass(self.timeline, phase.pass_nr)}
        if not self.passes:
            return
        for created in self.made:
            if created.kind != "op" or not created.requires_grad or created.node in roots:
                continue
            if not self.timeline.nodes.users(created.node) and (name := self.timeline.nodes.name(created.node)):
                at = own_frame(self.timeline.stack(created.stack))
                yield f"{shown(name)} ({_place(at)})" if at is not None else shown(name)


def _is_above(one: Frame | None, other: Frame | None) -> bool:
    """Return whether a line is above another one of the same function."""
    if one is None or other is None:
        return False
    return (one.path, one.function) == (other.path, other.function) and one.line < other.line


def _place(at: Frame | None) -> str:
    return file_line(at.path, at.line) if at is not None else ""


def _listed(names: Sequence[str], most: int = _MOST_NAMES) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


# As text

_SOURCE = 36
"""Columns for a line of the program."""
_TITLE = 20


def summary_text(timeline: Timeline, n: int, width: int) -> Iterator[str]:
    """Yield the summary as lines of text."""
    one = iteration_summary(timeline, n)
    heading = f"iteration {one.number:,} of {one.count:,} ({_events(one)}), in order:"
    yield from wrap(heading, max(width, 24), subsequent_indent="  ")
    yield from _table([(_row_title(action), _row_text(action)) for action in one.actions[:_MOST_ACTIONS]], width)
    if len(one.actions) > _MOST_ACTIONS:
        yield f"  … and {len(one.actions) - _MOST_ACTIONS} more lines"
    if not one.losses:
        yield ""
        yield "no backward pass in this iteration"
    for loss in one.losses:
        yield ""
        yield f"{loss.title} is made from:"
        rows = [
            ("terms", _listed(loss.terms)),
            ("with a gradient", _listed(loss.trained) or "nothing"),
            *(("as numbers only", cut) for cut in loss.numbers_only[:_MOST_NAMES]),
            ("made earlier", _listed(loss.earlier)),
            ("frozen parameters", _listed(loss.fixed)),
            ("data and buffers", _listed(loss.data)),
        ]
        yield from _table([row for row in rows if row[1]], width, _TITLE)
    rest = [("no gradient", _listed(one.without_gradient)), ("used by no loss", _listed(one.unused))]
    rest += [(name, f"has its passes in other iterations: --at 'iteration {last}'") for name, last in one.elsewhere]
    if any(text for _, text in rest):
        yield ""
        yield "also:"
        yield from _table([row for row in rest if row[1]], width, _TITLE)


def _events(one: IterationSummary) -> str:
    """Return the events of an iteration, and where its first line ran if that was before its first input.

    Elsewhere the events between them, such as a clearing of gradients, are in the iteration before.
    """
    events = f"events {one.start:,} to {one.end:,}"
    if not one.actions or (first := one.actions[0]).at is None or first.start >= one.start:
        return events
    return f"{events}, after line {first.at.line} at event {first.start:,}"


def _row_title(action: Action) -> str:
    return f"{action.at.line if action.at else '?':>4}  {action.source}"


def _row_text(action: Action) -> str:
    return f"{action.text} (×{action.times})" if action.times > 1 else action.text


def _table(rows: Sequence[tuple[str, str]], width: int, most: int = _SOURCE) -> Iterator[str]:
    """Yield rows of two columns; the first is clipped to `most` columns, the second wrapped."""
    left = min(max((len(title) for title, _ in rows), default=0), most)
    for title, text in rows:
        lines = wrap(text, max(width - left - 4, 24), break_on_hyphens=False) or [""]
        yield f"  {clipped(title, left):<{left}}  {lines[0]}"
        yield from (" " * (left + 4) + line for line in lines[1:])
