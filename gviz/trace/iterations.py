"""Reads the events of a recording in order and divides them into iterations.

Definition
----------
A *graph* is what a program builds for one backward pass (*pass* below). It starts with the first event that prepares
it: a number, a batch of data, a computation on nothing but that batch, or a module call. A computation that autograd
does not track, such as the targets of a teacher, prepares the graph if the graph uses it. The graph lasts until the
next one starts, so it includes its pass, the optimizer step and everything that follows. A pass with ``create_graph``
does not end its graph: the program uses the gradients of that pass in further operations of the same graph.

An *iteration* is one run of the body of the program's loop: consecutive graphs, each with its pass called from another
line. The graph whose pass is called from one of these lines again starts the next iteration. A line is identified by
its whole call stack (its *call site*).

Five programs, with one letter for each line that calls ``backward()``:

=============================================  ===========  ===========================================================
program                                        passes       iterations
=============================================  ===========  ===========================================================
a plain loop                                   a a a        ``a | a | a``: each batch is one
gradient accumulation: a step after 2 passes   a a a a      ``a | a | a | a``: each pass is one; the step belongs to
                                                            the second, the fourth ...
a GAN with two losses                          d g d g      ``d g | d g``: both passes of one iteration
validation without ``no_grad``                 a (v) a (v)  ``a v | a v``: ``v`` is a forward without a backward pass;
                                                            it belongs to the iteration before it
two loops, one after the other                 a a b b      ``a | a | b | b``
=============================================  ===========  ===========================================================

Limits: ``a a b a a b`` counts as six iterations, because the lines do not show whether the inner loop lies within one
iteration. Until a loop has come to the same line again, each of its graphs counts as an iteration; then they are
joined. A program without any pass is divided by module calls, see `EvaluationLoop`.

States
------
`Iterations` is in one of these states::

    EVALUATING          autograd has tracked no operation yet
    OPEN                a graph has started and has no operation yet
    FORWARD             the graph has an operation; almost every event arrives in this state and changes nothing
    UNCERTAIN           an operation ran that may be validation: on its line, no earlier graph with a pass had its first
                        operation
    BACKWARD            a pass is running
    AFTER_PASS          the pass has ended; the next graph may be in preparation
    AFTER_CREATE_GRAPH  a pass with ``create_graph`` has ended; the next tracked node continues the graph, unless
                        memory is written before it

The table `_TRANSITION_ROWS` shows the next state for each event. A plain loop::

    w = torch.ones(2, requires_grad=True)      EVALUATING (a leaf is not an operation)
    for x in data:                             2nd iteration: AFTER_PASS, and x prepares the next graph
        loss = (w * x).sum()                   FORWARD; in the 2nd iteration the graph starts where x was made
        loss.backward()                        BACKWARD, then AFTER_PASS
        optimizer.step()                       AFTER_PASS: a step prepares no graph
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Mapping
from enum import IntEnum, auto
from itertools import islice

from gviz import events as e
from gviz.trace.optimizer_steps import OptimizerSteps

IterationPattern = tuple[int, ...]
"""The call sites of the passes of one loop iteration: that of its first pass, then the others."""


def is_tracked(created: e.NodeCreated) -> bool:
    """Return whether autograd tracks a new node."""
    return created.requires_grad and not created.untracked


_WEIGHTS = ("leaf", "parameter")


class State(IntEnum):
    """What the program is doing; see the module docstring."""

    EVALUATING = auto()
    OPEN = auto()
    FORWARD = auto()
    UNCERTAIN = auto()
    BACKWARD = auto()
    AFTER_PASS = auto()
    AFTER_CREATE_GRAPH = auto()


class _EventRole(IntEnum):
    """What an event outside of passes means for the state. Events without a role do not change it."""

    LEAF = auto()
    """A tracked leaf or parameter appears."""
    OPERATION = auto()
    """A tracked operation on a line where an earlier graph with a pass had its first operation. While no such line is
    known, any tracked operation.
    """
    UNFAMILIAR_OPERATION = auto()
    """A tracked operation on any other line, or on a line where validation was seen."""
    WRITE = auto()
    """Memory is written, or an optimizer steps."""


_EVALUATING, _OPEN, _FORWARD, _UNCERTAIN, _BACKWARD, _AFTER_PASS, _AFTER_CREATE_GRAPH = State

_TRANSITION_ROWS = {
    # after               LEAF         OPERATION   UNFAMILIAR_OPERATION  WRITE
    _EVALUATING:         (_EVALUATING, _FORWARD,   _UNCERTAIN,           _EVALUATING),
    _OPEN:               (_OPEN,       _FORWARD,   _UNCERTAIN,           _OPEN),
    _FORWARD:            (_FORWARD,    _FORWARD,   _FORWARD,             _FORWARD),
    _UNCERTAIN:          (_UNCERTAIN,  _UNCERTAIN, _UNCERTAIN,           _UNCERTAIN),
    _AFTER_PASS:         (_OPEN,       _FORWARD,   _UNCERTAIN,           _AFTER_PASS),
    _AFTER_CREATE_GRAPH: (_FORWARD,    _FORWARD,   _FORWARD,             _AFTER_PASS),
}  # fmt: skip
_NEXT_STATE = {
    (state, role): next_state
    for state, row in _TRANSITION_ROWS.items()
    for role, next_state in zip(_EventRole, row, strict=True)
}
"""The next state, by current state and role of the event, outside of passes.

The start of a pass leads from any state to BACKWARD, its end to AFTER_PASS. The end of a pass with ``create_graph``
leads to AFTER_CREATE_GRAPH, or to OPEN if the graph has no operation. UNCERTAIN becomes FORWARD when `Validation` finds
that the operations belong to a graph.
"""

_WRITES = (e.OptimizerStarted, e.OptimizerStepped, e.StorageWritten, e.DataSet)


class Iterations:
    """Reads events in order, divides them into graphs, and groups the graphs into iterations.

    `patterns` are loop iterations found in earlier events, which the recording has since dropped.
    """

    def __init__(self, patterns: Iterable[IterationPattern] = ()) -> None:
        self.loop = Loop(patterns)
        self.steps = OptimizerSteps()
        self.running_passes: list[int] = []
        """The running passes, in the order in which they began."""
        self.state = _OPEN if self.loop.patterns else _EVALUATING
        self._leaves: set[int] = set()
        self._first_operation = 0  # the node of the last graph's first operation
        self._preparation = Preparation(self.steps, self._leaves, 0)
        self._starts_by_result: Mapping[int, int] = {}  # of the open graph: see `Preparation.starts_by_result`
        self._evaluation = EvaluationLoop()
        self._validation: Validation | None = None  # while UNCERTAIN
        self._validation_sites: set[int] = set()  # the call sites of first operations that turned out to be validation
        self._has_operation = False
        self._creates_graph = False  # of the last pass

    def process(self, seq: int, event: e.Event) -> int:
        """Process the next event. If it shows that a graph has started, return the event at which the graph starts.

        In a program that only evaluates, return the event at which an iteration starts instead. Otherwise return 0. The
        start may be an earlier event than this one: the first event that prepares the graph.
        """
        if event.__class__ is e.NodeCreated and event.kind in _WEIGHTS:
            self._leaves.add(event.node)
        if self.state is _FORWARD and event.__class__ is e.NodeCreated:
            return self._move_to_used_results(event) if self._starts_by_result else 0  # almost every event
        self.steps.process(seq, event)
        match event:
            case e.BackwardStarted():
                self._begin_pass(event)
            case e.BackwardFinished(pass_nr=pass_nr):
                self._end_pass(pass_nr)
            case e.NodeCreated() if not self.running_passes and is_tracked(event):
                return self._process_tracked(seq, event)
            case _ if not self.running_passes:
                return self._process_untracked(seq, event)
        return 0

    @property
    def starts(self) -> list[int]:
        """The events at which iterations start."""
        return self._evaluation.starts if self.state is _EVALUATING else self.loop.starts

    @property
    def provisional(self) -> int:
        """How many of the last starts may turn out not to start an iteration.

        While `evaluates` is true, the program may still begin to train. Then all starts found so far are discarded.
        """
        return 1 if self.state is _EVALUATING else self.loop.provisional

    @property
    def evaluates(self) -> bool:
        """Whether the program has only evaluated so far."""
        return self.state is _EVALUATING

    @property
    def start_without_pass(self) -> int:
        """The event at which the last iteration starts if it has no pass yet, otherwise 0.

        It is 0 in a program that only evaluates.
        """
        return 0 if self.state is _EVALUATING else self.loop.start_without_pass

    @property
    def awaits_results(self) -> bool:
        """Whether the graph may still turn out to use a result that was computed before it, and so to start there."""
        return bool(self._starts_by_result)

    @property
    def result_start(self) -> int:
        """The event at which the next graph would start if it used the newest result; 0 if it cannot start there."""
        return self._preparation.newest_start if self.state in (_AFTER_PASS, _UNCERTAIN) else 0

    @property
    def prepared_from(self) -> int:
        """The event at which the next graph would start if the next event were its first operation; 0 if no event has
        prepared it.
        """
        if self.state is _EVALUATING:
            return self._evaluation.start
        if self._validation is not None:
            return self._validation.prepared_from
        return self._preparation.start if self.state in (_AFTER_PASS, _AFTER_CREATE_GRAPH) else 0

    def forget(self, seq: int) -> None:
        """Drop the iterations that start before event `seq`, except those that may still be joined or undone."""
        self.loop.forget(seq)
        self.steps.forget()
        self._evaluation.forget(seq)

    def _begin_pass(self, started: e.BackwardStarted) -> None:
        if not self.running_passes:
            if self._validation is not None and self._validation.begin_pass(started.roots):
                self._validation_sites.add(self._validation.site)
            self._validation, self._evaluation = None, EvaluationLoop()  # an empty one: the old one may be large
            self._starts_by_result = {}
            self.loop.begin_pass(started.stack)
            self.state, self._creates_graph = _BACKWARD, started.create_graph
        self.running_passes.append(started.pass_nr)

    def _end_pass(self, pass_nr: int) -> None:
        if pass_nr in self.running_passes:
            self.running_passes.remove(pass_nr)
        if not self.running_passes:
            state_after = _AFTER_CREATE_GRAPH if self._has_operation else _OPEN
            self.state = state_after if self._creates_graph else _AFTER_PASS
            self._preparation = Preparation(self.steps, self._leaves, self._first_operation)

    def _process_tracked(self, seq: int, created: e.NodeCreated) -> int:
        """Process a tracked node outside of passes. Returns what `process` returns."""
        previous_state, is_operation, start = self.state, created.kind == "op", 0
        is_validation = is_operation and previous_state is _AFTER_PASS and self._is_validation_site(created.stack)
        self.state = _NEXT_STATE[previous_state, self._role_of(created, is_validation)]
        if previous_state is _AFTER_PASS and not is_validation:
            self._has_operation, start = False, self._preparation.start or seq
            self.loop.begin_graph(start)
            self._starts_by_result = self._preparation.starts_by_result
        if is_operation and previous_state in (_EVALUATING, _OPEN, _AFTER_PASS):
            self._has_operation, self._evaluation = True, EvaluationLoop()
            self._process_first_operation(seq, created, is_validation)
        if is_operation and self._validation is not None:
            start = self._validation.process_operation(seq, created) or start
            if self._validation.is_part_of_graph:
                self._validation, self.state = None, _FORWARD
        if self._starts_by_result:
            start = self._move_to_used_results(created) or start
        if self.state is _EVALUATING:
            start = self._evaluation.process(seq, created)
        return start

    def _move_to_used_results(self, created: e.NodeCreated) -> int:
        """Move the start of the open graph to where the results that a node uses were prepared, if that is earlier.

        Return the new start, 0 if it stays.
        """
        starts = [self._starts_by_result[node] for node, _ in created.inputs if node in self._starts_by_result]
        start = min(starts, default=0)
        if not 0 < start < self.loop.open_graph_start:
            return 0
        self.loop.move_graph(start)
        return start

    def _process_first_operation(self, seq: int, created: e.NodeCreated, is_validation: bool) -> None:
        """Process the first operation of a graph or of validation."""
        start = self._preparation.start or seq if is_validation else self.loop.open_graph_start
        if not is_validation:
            self._first_operation = created.node
            self.loop.begin_forward(created.stack)
        if self.state is _UNCERTAIN:
            self._validation = Validation(self.loop, self._preparation, created.stack, start, is_certain=is_validation)

    def _process_untracked(self, seq: int, event: e.Event) -> int:
        """Process an event outside of passes that is no tracked node."""
        if isinstance(event, _WRITES):
            self.state = _NEXT_STATE[self.state, _EventRole.WRITE]
        if self.state is _EVALUATING:
            return self._evaluation.process(seq, event)
        if self.state in (_AFTER_PASS, _AFTER_CREATE_GRAPH):
            self._preparation.process(seq, event)
        elif self._validation is not None:
            self._validation.process(seq, event)
        return 0

    def _role_of(self, created: e.NodeCreated, is_validation: bool) -> _EventRole:
        if created.kind != "op":
            return _EventRole.LEAF
        loop = self.loop
        is_familiar = not (created.stack and loop.has_graph_sites) or loop.is_graph_site(created.stack)
        return _EventRole.OPERATION if is_familiar and not is_validation else _EventRole.UNFAMILIAR_OPERATION

    def _is_validation_site(self, site: int) -> bool:
        return site in self._validation_sites and not self.loop.is_graph_site(site)


class Loop:
    """Groups consecutive graphs into loop iterations by the call site of their first ``backward()``.

    A *pass site* is the call site of a graph's first pass. A *graph site* is the call site of the first operation of a
    graph that had a pass.

    When the program comes back to a pass site for the first time, the first run of a loop has ended. From then on the
    loop's iteration is *known*: it starts with the graph of that pass site, and it includes the graphs of the pass
    sites in between. During the first run, each graph counts as an iteration of its own. A graph's first operation may
    show, before its pass begins, that the program has come back: when it runs at a graph site.

    `patterns` are iterations that are known from the start.
    """

    def __init__(self, patterns: Iterable[IterationPattern] = ()) -> None:
        self.starts: list[int] = [1]
        """The events at which iterations start."""
        self.open_graph_start = 1
        """The event at which a graph started that has no pass yet; 0 if the last graph has one."""
        # the known iterations: the first pass site of each, and its other pass sites
        self._other_pass_sites = {first: frozenset(others) for first, *others in patterns}
        # the pass sites of this iteration so far; in a first run, those of all its graphs
        self._pass_sites: list[int] = []
        self._previous_pass_sites: list[int] = []  # those of the previous iteration
        self._first_operation_site = 0  # the call site of the open graph's first operation, 0 if it has none yet
        self._pass_site_of: dict[int, int] = {}  # by graph site

    def begin_graph(self, start: int) -> None:
        """Start the next graph at an event.

        It starts a new iteration, provisionally until its pass. It does not if the previous iteration began with the
        same passes as this one and had more of them: then it continues this iteration.
        """
        self.open_graph_start, self._first_operation_site = start, 0
        if (
            self._pass_sites == self._previous_pass_sites
            or self._pass_sites != self._previous_pass_sites[: len(self._pass_sites)]
        ):
            self.starts.append(start)

    def is_graph_site(self, site: int) -> bool:
        """Return whether the first operation of a graph that had a pass ran at this call site."""
        return site in self._pass_site_of

    @property
    def has_graph_sites(self) -> bool:
        """Whether any graph site is known."""
        return bool(self._pass_site_of)

    def move_graph(self, start: int) -> None:
        """Move the start of the graph that has no pass yet to another event."""
        if self.start_without_pass:
            self.starts[-1] = start
        self.open_graph_start = start

    def begin_forward(self, site: int) -> None:
        """Process the call site of a graph's first operation, 0 if unknown."""
        self._first_operation_site = site
        pass_site = self._pass_site_of.get(site)
        if self.open_graph_start and self._is_first_run and pass_site is not None and pass_site in self._pass_sites:
            self._drop_provisional_start()
            self._close_first_run(pass_site)
            self.starts.append(self.open_graph_start)

    def begin_pass(self, site: int) -> None:
        """Process a pass that is called at a call site. If a graph has several passes, only the first is used."""
        if not self.open_graph_start:
            return
        self._drop_provisional_start()
        start, self.open_graph_start = self.open_graph_start, 0
        if self._first_operation_site:
            self._pass_site_of.setdefault(self._first_operation_site, site)
        is_first_run = self._is_first_run
        if not is_first_run and site in self._other_pass_sites[self._pass_sites[0]] and site not in self._pass_sites:
            self._pass_sites.append(site)
            return
        if is_first_run and site in self._pass_sites:
            self._close_first_run(site)
        if is_first_run and site not in self._other_pass_sites:
            self._pass_sites.append(site)
        else:
            self._previous_pass_sites, self._pass_sites = self._pass_sites, [site]
        self.starts.append(start)

    @property
    def patterns(self) -> tuple[IterationPattern, ...]:
        """The known iterations: for each, the pass site that starts it, then the others."""
        return tuple((first, *sorted(others)) for first, others in self._other_pass_sites.items())

    @property
    def start_without_pass(self) -> int:
        """The event at which the last iteration starts if it has no pass yet, otherwise 0."""
        return self.open_graph_start if self.starts[-1:] == [self.open_graph_start] else 0

    @property
    def provisional(self) -> int:
        """How many of the last starts may turn out not to start an iteration."""
        return (self.start_without_pass > 0) + (max(len(self._pass_sites) - 1, 0) if self._is_first_run else 0)

    def forget(self, seq: int) -> None:
        """Drop the iterations that start before event `seq`, except those that may still be joined."""
        settled = len(self.starts) - 1 - len(self._pass_sites)
        del self.starts[: max(min(bisect_left(self.starts, seq), settled), 0)]

    @property
    def _is_first_run(self) -> bool:
        """Whether the current iteration is not known yet, so that each of its graphs counts as an iteration."""
        return not self._pass_sites or self._pass_sites[0] not in self._other_pass_sites

    def _drop_provisional_start(self) -> None:
        """Remove the start of an iteration at the graph that has no pass yet."""
        if self.start_without_pass:
            self.starts.pop()

    def _close_first_run(self, site: int) -> None:
        """End the first run of a loop, which began at this pass site: join its graphs into one iteration."""
        _, *others = self._pass_sites = self._pass_sites[self._pass_sites.index(site) :]
        self._other_pass_sites[site] = frozenset(others)
        del self.starts[len(self.starts) - len(others) :]


GRADIENT_ATTRIBUTES = {"grad_of", "gradient", "grad_outputs"}
"""Attributes that only gradients have. ``grad_outputs`` marks an argument of ``autograd.grad``."""


class Preparation:
    """Finds where the preparation of the next graph starts, between a pass and the next forward.

    Example: ``optimizer.step(); losses.append(loss.item()); x = next(data) / 255; loss = model(x)``. The preparation
    starts with the data: the step writes memory, and the loss value is a result.

    A *result* is a node that was computed since the pass: from the last graph, from gradients or from other results,
    by an optimizer step, or while autograd is off. An event that writes memory or computes a result belongs to the
    optimizer or to a measurement. The preparation starts after the last such event. Clearing a gradient has no effect.
    After one optimizer step has ended, the start of another counts as preparation, because its closure may run the
    forward.

    A result that does not depend on the last graph or on gradients may belong to the next graph, as the targets of a
    teacher do: ``with no_grad(): y = teacher(x)``. It does if the graph uses it; `Iterations` then moves the start of
    the graph. An optimizer step, or a write to a weight, ends the time in which such results are computed. `leaves` are
    the weights of the program, `first_operation` is the first node of the last graph.
    """

    def __init__(self, steps: OptimizerSteps, leaves: Container[int], first_operation: int) -> None:
        self._steps, self._leaves, self._first_operation = steps, leaves, first_operation
        self.start = 0
        """The event at which the preparation starts, 0 if there is none so far."""
        self.starts_by_result: dict[int, int] = {}
        """By result that the next graph may use: the event at which the graph starts if it does."""
        self.newest_start = 0
        """That event if the last event was such a result, otherwise 0."""
        self._step_has_ended = False
        self._data: set[int] = set()
        self._results: set[int] = set()
        self._aliases: set[int] = set()  # nodes whose first input is a weight or an alias of one

    def includes_result(self, nodes: Iterable[int]) -> bool:
        """Return whether one of these nodes is a result."""
        return not self._results.isdisjoint(nodes)

    def process(self, seq: int, event: e.Event) -> None:
        """Process the next event between a pass and a forward."""
        if isinstance(event, e.GradSet):
            return
        before, is_preparation, self.newest_start = self.start, self._is_preparation(event), 0
        self.start = (before or seq) if is_preparation else 0
        self._step_has_ended = self._step_has_ended or isinstance(event, e.OptimizerStepped)
        if isinstance(event, e.NodeCreated):
            if is_preparation:
                self._data.add(event.node)
            else:
                self._process_result(seq, event, before)
        elif self._changes_weights(event):
            self.starts_by_result.clear()

    def _process_result(self, seq: int, created: e.NodeCreated, before: int) -> None:
        """Remember where the next graph starts if it uses a result; `before` is where the preparation had started."""
        inputs = [node for node, _ in created.inputs]
        on_weights = [node in self._leaves or node in self._aliases for node in inputs]
        if on_weights[:1] == [True]:
            self._aliases.add(created.node)
        attrs = {name for name, _ in created.attrs}
        if is_tracked(created) or self._steps.computes(created) or attrs & GRADIENT_ATTRIBUTES:
            return
        if not all(map(self._is_independent, inputs)):
            return
        starts = [self.starts_by_result[node] for node in inputs if node in self.starts_by_result]
        start = min([*starts, *([before] if before else [])], default=0 if all(on_weights) else seq)
        if start:
            self.starts_by_result[created.node] = self.newest_start = start
        if len(self.starts_by_result) > _MOST_REMEMBERED:  # a long evaluation
            for node in list(islice(self.starts_by_result, _MOST_REMEMBERED // 2)):
                del self.starts_by_result[node]

    def _is_independent(self, node: int) -> bool:
        """Return whether an input is a weight, data, or a result that does not depend on the last graph."""
        is_older = node < self._first_operation
        return is_older or node in self._leaves or node in self._data or node in self.starts_by_result

    def _changes_weights(self, event: e.Event) -> bool:
        match event:
            case e.OptimizerStarted() | e.OptimizerStepped():
                return True
            case e.StorageWritten(node=node):
                return node in self._aliases
            case e.DataSet(node=node):
                return node in self._leaves
        return False

    def _is_preparation(self, event: e.Event) -> bool:
        match event:
            case e.NodeCreated():
                return self._is_prepared_node(event)
            case e.OptimizerStarted():
                return self._step_has_ended
        return isinstance(event, e.ScopeEntered)

    def _is_prepared_node(self, created: e.NodeCreated) -> bool:
        is_measurement = created.switched_off or self._steps.computes(created)
        attrs = {name for name, _ in created.attrs}
        is_plain = not attrs or "number" in attrs
        is_data = is_plain if created.kind == "constant" else created.untracked in ("inputs", "numbers")
        uses_result = self.includes_result(node for node, _ in created.inputs)
        if is_data and not (is_measurement or uses_result or attrs & GRADIENT_ATTRIBUTES):
            return True
        self._results.add(created.node)
        return False


class Validation:
    """Decides whether tracked operations are part of the next graph, or validation without a backward pass.

    The first of these *uncertain operations* runs at a call site `site` that is no graph site (see `Loop`). Example: a
    training loop that runs ``model(validation_data)`` without ``no_grad`` after each step.

    The uncertain operations end where an operation runs at a graph site, provided that it uses no result (see
    `Preparation`); it may use prepared data. The graph starts there, or at the events that prepare it. The uncertain
    operations are then validation and belong to the previous iteration. But if the graph later uses one of their
    results, for example as a penalty added to the loss, the graph includes them. It also includes them if a pass begins
    before any operation at a graph site.

    If validation was seen at `site` before, the operations count as validation until decided (`is_certain`). Otherwise
    they count as a graph until decided.
    """

    def __init__(self, loop: Loop, preparation: Preparation, site: int, start: int, *, is_certain: bool) -> None:
        self.site = site
        self.is_part_of_graph = False
        """Whether the uncertain operations have turned out to be part of the graph."""
        self._loop = loop
        self._preparation = preparation
        self._start = start
        self._loop_has_graph = not is_certain  # `loop` has a graph that starts at the uncertain operations or later
        self._graph_started_later = False  # the graph started after the uncertain operations

    @property
    def prepared_from(self) -> int:
        """The event at which the graph would start if the next event were its first operation; 0 if no event has
        prepared it, or if the graph has started.
        """
        return 0 if self._graph_started_later else self._preparation.start

    def process(self, seq: int, event: e.Event) -> None:
        """Process the next event that is no tracked node."""
        if not self._graph_started_later:
            self._preparation.process(seq, event)

    def process_operation(self, seq: int, created: e.NodeCreated) -> int:
        """Process the next tracked operation. If a graph starts with it, return the event at which the graph starts,
        otherwise 0.
        """
        uses_result = self._preparation.includes_result(node for node, _ in created.inputs)
        if self._graph_started_later:
            if uses_result:
                self._join()
        elif not uses_result and self._loop.is_graph_site(created.stack):
            start = self._preparation.start or seq
            self._begin_graph(start, created.stack)
            self._graph_started_later = True
            return start
        else:
            self._preparation.process(seq, created)
        return 0

    def begin_pass(self, roots: Iterable[e.Edge]) -> bool:
        """Process the start of a pass from these roots. Return whether the uncertain operations were validation."""
        if not self._graph_started_later or self._preparation.includes_result(node for node, _ in roots):
            self._join()
        return not self.is_part_of_graph

    def _join(self) -> None:
        """Make the uncertain operations part of the graph."""
        if self._graph_started_later or not self._loop_has_graph:
            self._begin_graph(self._start, self.site)
        self.is_part_of_graph = True

    def _begin_graph(self, start: int, site: int) -> None:
        if self._loop_has_graph:
            self._loop.move_graph(start)
        else:
            self._loop.begin_graph(start)
            self._loop_has_graph = True
        self._loop.begin_forward(site)


WeightUse = tuple[int, int]
"""The first use of a weight in a module call: the call stack of the operation, and the weight's node."""

_RESULT, _CHOICE = -1, -2
_CHOICE_DTYPES = ("int", "uint", "bool")
_MOST_REMEMBERED = 1 << 16
"""How many outputs of an iteration are remembered with their kinds.

The older ones can be forgotten: a node that uses one of them almost always uses a newer one, too.
"""


class EvaluationLoop:
    """Divides a program that only evaluates: autograd tracks no operation, so there are no passes to divide it by.

    Example: a loop that generates text, ``logits = model(token); token = logits.argmax()``. Each iteration starts with
    a module call at a call site where a module was called before. The inputs of that call do not depend on the previous
    iteration (a batch of data), or only through a choice such as the next token. Their preparation belongs to the
    iteration.

    Each value is of one of these kinds:

    - data, or computed from data only
    - computed from weights only
    - a *result*: a floating point value computed from weights together with other inputs, or from a result
    - a *choice*: an integer or boolean value computed in that way, or any value computed from choices, or from choices
      and data

    Only outermost module calls that use weights count. They are identified by their first use of a weight together with
    other inputs (`WeightUse`). Such a call starts an iteration if an earlier call with the same weight use started one,
    or ran in this iteration. It does not if it uses results of this iteration: then it is the next layer, cell or head.
    If it turns out later in the call that it uses results of the previous iteration, as a recurrent cell does, then
    neither this call nor any later call with the same weight use starts an iteration.
    """

    def __init__(self) -> None:
        self.starts: list[int] = [1]
        """The events at which iterations start."""
        self.start = 0
        """If the current or the next module call starts an iteration, the event at which that iteration starts; 0 if no
        event has prepared it.
        """
        self._weights: set[int] = set()
        # by output, in this iteration: `_RESULT`, `_CHOICE`, or, if it was computed from weights only, the node of the
        # newest of these weights
        self._kinds: dict[e.Edge, int] = {}
        # the same of the previous iteration, while the call that started this one runs
        self._previous_kinds: dict[e.Edge, int] = {}
        self._starting_uses: set[WeightUse] = set()  # of calls that started an iteration
        self._uses_in_iteration: set[WeightUse] = set()  # of the calls in this iteration
        self._recurrent_uses: set[WeightUse] = set()  # of calls that use results of the previous iteration
        self._last_starting_use: WeightUse = 0, 0
        self._calls: set[int] = set()  # the current outermost call and those within it
        # the current call has used no result so far, and no weight together with other inputs
        self._may_start_iteration = False
        self._has_used_choice = False  # the current call

    def process(self, seq: int, event: e.Event) -> int:
        """Process the next event. If it shows that an iteration has started, return the event at which the iteration
        starts, otherwise 0.
        """
        if isinstance(event, e.NodeCreated):
            if event.kind in _WEIGHTS:
                self._weights.add(event.node)
                return 0
            return self._process_node(seq, event)
        match event:
            case e.ScopeEntered(scope=scope, parent=parent):
                if not parent:
                    self._enter(seq, scope)
                elif parent in self._calls:
                    self._calls.add(scope)
            case e.StorageWritten() | e.DataSet() if self._may_start_iteration:
                pass  # an in-place write to the iteration's data
            case e.StorageWritten() | e.DataSet() | e.OptimizerStarted() | e.OptimizerStepped() | e.Failed():
                self._close()
                self.start = 0
        return 0

    def forget(self, seq: int) -> None:
        """Drop the iterations that start before event `seq`, except the last one."""
        self.starts = [start for start in self.starts[:-1] if start >= seq] + self.starts[-1:]

    def _enter(self, seq: int, scope: int) -> None:
        self._close()
        self._calls, self._previous_kinds = {scope}, {}
        self._may_start_iteration, self._has_used_choice = True, False
        self._prepare(seq)

    def _close(self) -> None:
        """End the current call. If it used a choice and no weight, it was a measurement and prepared nothing."""
        if self._may_start_iteration and self._has_used_choice:
            self.start = 0
        self._may_start_iteration = False

    def _prepare(self, seq: int) -> None:
        if self._starting_uses:
            self.start = self.start or seq

    def _process_node(self, seq: int, created: e.NodeCreated) -> int:
        """Process an operation or data. Returns what `process` returns."""
        kinds, weights = self._kinds, self._weights
        input_kinds = [kinds.get(edge) or (edge[0] if edge[0] in weights else 0) for edge in created.inputs]
        start = 0
        if created.scope not in self._calls:
            self._close()
            if any(input_kinds):
                self.start = 0
            else:
                self._prepare(seq)
        elif self._may_start_iteration:
            start = self._process_node_in_call(created, input_kinds)
        elif self._previous_kinds:
            self._check_recurrence(created)
        if any(input_kinds):
            self._remember_kinds(created, input_kinds)
        return start

    def _remember_kinds(self, created: e.NodeCreated, input_kinds: list[int]) -> None:
        """Remember the kinds of the outputs of a new node that depends on more than data."""
        weight = max(input_kinds) if min(input_kinds) > 0 else 0
        kind = weight or (_RESULT if max(input_kinds) > 0 or _RESULT in input_kinds else _CHOICE)
        for nr, output in enumerate(created.outputs):
            is_choice = kind == _RESULT and output.value is not None and output.value.dtype.startswith(_CHOICE_DTYPES)
            self._kinds[created.node, nr] = _CHOICE if is_choice else kind
        if len(self._kinds) > _MOST_REMEMBERED:
            self._kinds = dict(islice(self._kinds.items(), _MOST_REMEMBERED // 2, None))

    def _process_node_in_call(self, created: e.NodeCreated, input_kinds: list[int]) -> int:
        """Process a node in a call that may still start an iteration. Returns what `process` returns."""
        self._has_used_choice = self._has_used_choice or _CHOICE in input_kinds
        if _RESULT in input_kinds:
            self._may_start_iteration, self.start = False, 0
        elif min(input_kinds, default=0) <= 0 < max(input_kinds, default=0):
            self._may_start_iteration = False
            return self._use_weight((created.stack, max(input_kinds)))
        return 0

    def _use_weight(self, use: WeightUse) -> int:
        """Process the first use of a weight in a call that may start an iteration. Returns what `process` returns."""
        start, self.start = self.start, 0
        is_first = not self._starting_uses
        comes_back = use in self._starting_uses or use in self._uses_in_iteration
        if is_first or (comes_back and use not in self._recurrent_uses):
            self._starting_uses.add(use)
        if not comes_back or use in self._recurrent_uses:
            self._uses_in_iteration.add(use)
            return 0
        self._previous_kinds, self._kinds = {} if self._has_used_choice else self._kinds, {}
        self._uses_in_iteration, self._last_starting_use = {use}, use
        self.starts.append(start)
        return start

    def _check_recurrence(self, created: e.NodeCreated) -> None:
        """Undo the start of this iteration if the call that started it uses a result of the previous iteration."""
        previous_kinds = {self._previous_kinds.get(edge) for edge in created.inputs}
        if _RESULT in previous_kinds:
            del self.starts[max(len(self.starts) - 1, 1) :]
            self._recurrent_uses.add(self._last_starting_use)
            self._kinds, self._previous_kinds = self._previous_kinds | self._kinds, {}
        elif _CHOICE in previous_kinds:
            self._previous_kinds = {}
