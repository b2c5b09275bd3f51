"""One side of a comparison: an iteration of a recording."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from gviz.errors import GvizError
from gviz.events import BackwardStarted, OptimizerStepped
from gviz.source.call_stack import Frame
from gviz.source.parsing import loops
from gviz.trace.graph_state import Iteration, NodeInfo, NodeState, Phase
from gviz.trace.timeline import Timeline
from gviz.values.value import Value

Token = tuple[str, str]
"""What identifies an operation as a step of a program: the op's name and the module it ran in."""

REHEARSALS = frozenset({"tracing", "checking"})
"""Kinds of scopes in which a function runs only to be traced, or to be compared with its graph."""


@dataclass(frozen=True)
class Side:
    """An iteration of a recording (`number` from 1), with its nodes in order of creation.

    Gradients are read at the end of the iteration. With `at_step` they are read at its last optimizer step, because
    they may be cleared afterwards. With `in_loop` only the operations in the loop of its backward pass count: the first
    iteration also contains the set-up before the loop, and the last one what follows.
    """

    timeline: Timeline
    number: int
    at_step: bool = False
    in_loop: bool = False

    def __post_init__(self) -> None:
        if self.timeline.iteration_numbered(self.number) is None:
            count, recorded = len(self.timeline.iterations), self.timeline.recorded_iterations
            there = "has one iteration" if count == 1 else f"has iterations 1 to {count}"
            there = f"has iterations {recorded.numbers}" if recorded is not None else there
            raise GvizError(f"there is no iteration {self.number}", why=f"the recording {there}", exit_code=2)

    @cached_property
    def iteration(self) -> Iteration:
        """The iteration itself."""
        iteration = self.timeline.iteration_numbered(self.number)
        assert iteration is not None
        return iteration

    @cached_property
    def infos(self) -> dict[int, NodeInfo]:
        """How each node was created.

        Without what `jit.trace` ran only to trace or to check, unless there is nothing else.
        """
        infos = {node: self.timeline.info(node) for node in self.timeline.nodes.of(self.iteration)}
        proper = [info for info in infos.values() if not self._is_rehearsal(info.created.scope)]
        nodes = {info.node for info in proper} | {node for info in proper for node, _ in info.created.inputs}
        if not any(info.created.kind == "op" for info in proper):
            return infos
        return {node: info for node, info in infos.items() if node in nodes}

    def _is_rehearsal(self, scope: int) -> bool:
        while (call := self.timeline.contexts.call(scope)) is not None:
            if call.kind in REHEARSALS:
                return True
            scope = call.parent
        return False

    @cached_property
    def states(self) -> dict[int, NodeState | None]:
        """The state of each node at the end of the iteration."""
        moment = self.timeline.at(self._settled)
        return dict(zip(self.infos, moment.states(list(self.infos)), strict=True))

    @property
    def is_at_the_end(self) -> bool:
        """Whether its end is also the end of the program."""
        return self.iteration == self.timeline.iterations[-1] and not self.at_step

    @property
    def _settled(self) -> int:
        """The event at which gradients are read."""
        steps = self.steps if self.at_step else ()
        return steps[-1][0] if steps else self.iteration.end

    @cached_property
    def steps(self) -> tuple[tuple[int, OptimizerStepped], ...]:
        """The ends of optimizer steps in this iteration, with their event numbers."""
        iteration = self.iteration
        return tuple(self.timeline.select([OptimizerStepped], iteration.start, iteration.end + 1))

    @property
    def passes(self) -> int:
        """The number of backward passes of this iteration that ended."""
        return len(self.timeline.pass_ends(self.iteration))

    @cached_property
    def updated(self) -> frozenset[int]:
        """The nodes whose gradients an optimizer has used here."""
        return frozenset(node for _, step in self.steps for node in step.parameters)

    @cached_property
    def learnt(self) -> frozenset[int]:
        """The nodes that are parameters, or that an optimizer here treats as such."""
        skipped = {node for _, step in self.steps for node in step.skipped}
        return self.updated | skipped | {n for n, info in self.infos.items() if info.created.kind == "parameter"}

    @cached_property
    def buffers(self) -> frozenset[int]:
        """The buffers: constants named after a module that ran here."""
        scopes = {info.scope for info in self.infos.values()} - {""}
        return frozenset(node for node, info in self.infos.items() if _is_of_module(info, scopes))

    @cached_property
    def kept(self) -> dict[int, tuple[Value | None, int]]:
        """The ``.grad`` that nodes have when the first backward pass of the iteration starts, with its event."""
        iteration = self.iteration
        start = next((phase.start for phase in self.timeline.phases if self._is_first_pass(phase)), iteration.end)
        states = zip(self.others, self.timeline.at(start).states(self.others), strict=True)
        outputs = [(node, state.outputs[0]) for node, state in states if state is not None and state.outputs]
        return {node: (output.grad, output.grad_seq) for node, output in outputs if output.grad is not None}

    def _is_first_pass(self, phase: Phase) -> bool:
        iteration = self.iteration
        return phase.kind == "backward" and iteration.start <= phase.start <= iteration.end

    def creates(self, node: int) -> bool:
        """Return whether an operation of this iteration created the node."""
        info = self.infos[node]
        is_here = info.created.kind == "op" and info.iteration == self.iteration.index
        return is_here and (not self.in_loop or node not in self.outside)

    @cached_property
    def outside(self) -> frozenset[int]:
        """The operations of this iteration that are not in the loop of its first backward pass.

        Where the stacks of both first differ, there is no loop around both lines, but one around the pass, there or
        further in. Example: the set-up is on line 3, and line 9 calls ``train()``, which has the loop.
        """
        iteration = self.iteration
        started = next(iter(self.timeline.select([BackwardStarted], iteration.start, iteration.end + 1)), None)
        if started is None:
            return frozenset()
        stacks = {info.created.stack for info in self.infos.values() if info.iteration == self.iteration.index}
        call = self.timeline.stack(started[1].stack)[::-1]
        outside = {stack for stack in stacks if self._is_outside(self.timeline.stack(stack)[::-1], call)}
        return frozenset(
            node for node, info in self.infos.items() if info.created.kind == "op" and info.created.stack in outside
        )

    def _is_outside(self, frames: Sequence[Frame], call: Sequence[Frame]) -> bool:
        """Return whether a stack is outside the loop of a `call` of backward. Both begin with the outermost frame."""
        place = next((at for at, (one, other) in enumerate(zip(frames, call, strict=False)) if one != other), -1)
        if place < 0 or (frames[place].path, frames[place].function) != (call[place].path, call[place].function):
            return False
        line = frames[place].line
        around = [self._loops_at(frame) for frame in call[place:]]
        return any(around) and not any(line in loop for loop in around[0])

    def _loops_at(self, frame: Frame) -> list[range]:
        return [loop for loop in loops(self.timeline.source(frame.path) or "") if frame.line in loop]

    @cached_property
    def ops(self) -> list[int]:
        """The nodes that operations of this iteration created."""
        return [node for node in self.infos if self.creates(node)]

    @cached_property
    def values(self) -> dict[int, tuple[Value | None, ...]]:
        """The values of each node's outputs: of an operation when it ran, of anything else when it was first used here.

        Parameters change between iterations and when they are initialised. The value at the first tracked use is taken.
        """
        values: dict[int, tuple[Value | None, ...]] = {}
        for node, info in self.infos.items():
            values[node] = tuple([output.value for output in (self._used.get(node) or info.created).outputs])
        return values

    def value_event(self, node: int, nr: int) -> int:
        """Return the event that wrote the value that `values` has for an output."""
        used = self._used.get(node)
        return used.outputs[nr].value_seq if used is not None else self.infos[node].born

    @cached_property
    def _used(self) -> dict[int, NodeState]:
        """The states of nodes that no operation here created, when they were first used."""
        used = self._first_uses(tracked=False) | self._first_uses(tracked=True)
        states = ((node, self.timeline.at(seq).state(node)) for node, seq in used.items())
        return {node: state for node, state in states if state is not None}

    def _first_uses(self, *, tracked: bool) -> dict[int, int]:
        """Return the event of the first operation here that uses each of the `others`."""
        computed, uses = set(self.ops), dict[int, int]()
        for op in self.ops:
            created = self.infos[op].created
            if bool(created.untracked) is not tracked:
                for node, _ in created.inputs:
                    if node in self.infos and node not in computed:
                        uses.setdefault(node, self.infos[op].born)
        return uses

    @cached_property
    def others(self) -> list[int]:
        """The nodes not computed here: leaves, parameters, and the constants and earlier results used here."""
        ops = set(self.ops)
        used = {node for op in ops for node, _ in self.infos[op].created.inputs}
        learnt = ("leaf", "parameter")
        return [n for n, info in self.infos.items() if n not in ops and (n in used or info.created.kind in learnt)]

    def tokens(self) -> Sequence[Token]:
        """Return the operations as steps of the program, in order."""
        return [(self.infos[node].op.name, self.infos[node].scope) for node in self.ops]

    def is_reached(self, node: int) -> bool:
        """Return whether a backward pass reaches a node; True if that is unknown because no pass has ended yet."""
        state = self.states[node]
        return not self.passes or (state is not None and state.pass_nr > 0)

    def known_before_use(self, node: int) -> bool:
        """Return whether a node was recorded before this iteration. Batch norm writes to its statistics before that."""
        return self.infos[node].iteration != self.iteration.index


def _is_of_module(info: NodeInfo, scopes: Collection[str]) -> bool:
    module = info.name.rpartition(".")[0]
    is_buffer = info.created.kind == "constant" and bool(module)
    return is_buffer and any(f".{scope}".endswith(f".{module}") for scope in scopes)


def shared_iterations(a: Timeline, b: Timeline) -> list[int]:
    """Return the numbers of the iterations that two recordings both have, in order. Several may have one number."""
    theirs = {one.number for one in b.iterations}
    return [number for number in dict.fromkeys(one.number for one in a.iterations) if number in theirs]
