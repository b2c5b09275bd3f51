"""Divides a recording into iterations, in order of its events.

Definition
----------
A *graph* is what a program builds for one backward pass. It starts with the first event that prepares it: a number, a
batch of data, a computation on nothing but that batch, or a module call. It lasts until the next graph starts, so it
includes its backward pass, the optimizer step and everything that follows. A pass with ``create_graph`` does not end a
graph: the program builds on it.

An *iteration* is one run of the body of the program's loop: the graphs whose passes start from different lines. It
ends where the program starts a pass from the same line again. Lines are identified by their whole call stack.

Five programs, with one letter for each line that calls ``backward()``:

=============================================  ===========  ===========================================================
program                                        passes       iterations
=============================================  ===========  ===========================================================
a plain loop                                   a a a        ``a | a | a``: each batch is one
gradient accumulation: a step after 2 passes   a a a a      ``a | a | a | a``: each pass is one; the step belongs to
                                                            the second, the fourth ...
a GAN with two losses                          d g d g      ``d g | d g``: both passes of one iteration
validation without ``no_grad``                 a (v) a (v)  ``a v | a v``: a forward without a backward pass belongs to
                                                            the iteration before it
two loops, one after the other                 a a b b      ``a | a | b | b``
=============================================  ===========  ===========================================================

Limits: ``a a b a a b`` counts as six iterations, because the lines do not show whether the inner loop lies within one
iteration. Until the first iteration has ended, each graph is an iteration of its own; then its graphs are joined. A
program without any pass is divided by module calls, see `EvaluationLoop`.

States
------
`Iterations` is in one of these states::

    EVALUATING   autograd has tracked no operation yet
    OPEN         a graph has started and has no operation yet
    FORWARD      the graph has an operation; almost every event arrives here and changes nothing
    UNCERTAIN    an operation ran on a line where no graph that had a pass has started: it may be validation
    BACKWARD     a pass runs
    PASSED       the pass has ended; the next graph may be in preparation
    CONTINUED    the same after ``create_graph``: the graph continues, unless memory is written first

The table `_THEN` has the transitions. A plain loop::

    w = torch.ones(2, requires_grad=True)      EVALUATING (a leaf is not an operation)
    for x in data:                             2nd iteration: PASSED, and x is prepared
        loss = (w * x).sum()                   FORWARD; in the 2nd iteration the graph starts where x was made
        loss.backward()                        BACKWARD, PASSED: the iteration ends if this line had a pass before
        optimizer.step()                       PASSED: it prepares nothing
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from enum import IntEnum, auto
from itertools import islice

from gviz import events as e
from gviz.trace.optimizer_steps import OptimizerSteps

IterationPattern = tuple[int, ...]
"""The call sites of the passes of one loop iteration: the one that starts it, then the others."""


def is_tracked(created: e.NodeCreated) -> bool:
    """Return whether autograd tracks a new node."""
    return created.requires_grad and not created.untracked


class State(IntEnum):
    """What the program is doing; see the module docstring."""

    EVALUATING = auto()
    OPEN = auto()
    FORWARD = auto()
    UNCERTAIN = auto()
    BACKWARD = auto()
    PASSED = auto()
    CONTINUED = auto()


class _Sign(IntEnum):
    """How an event outside of a pass changes the state. Events without a sign do not change it."""

    LEAF = auto()
    """A tracked leaf or parameter appears."""
    OPERATION = auto()
    """A tracked operation from a line where a graph that had a pass has started, or from any line if none is known."""
    UNFAMILIAR = auto()
    """A tracked operation from any other line."""
    WRITE = auto()
    """Memory is written, or an optimizer steps."""


_EVALUATING, _OPEN, _FORWARD, _UNCERTAIN, _BACKWARD, _PASSED, _CONTINUED = State

_THEN = {
    # after       LEAF         OPERATION   UNFAMILIAR  WRITE
    _EVALUATING: (_EVALUATING, _FORWARD,   _UNCERTAIN, _EVALUATING),
    _OPEN:       (_OPEN,       _FORWARD,   _UNCERTAIN, _OPEN),
    _FORWARD:    (_FORWARD,    _FORWARD,   _FORWARD,   _FORWARD),
    _UNCERTAIN:  (_UNCERTAIN,  _UNCERTAIN, _UNCERTAIN, _UNCERTAIN),
    _PASSED:     (_OPEN,       _FORWARD,   _UNCERTAIN, _PASSED),
    _CONTINUED:  (_FORWARD,    _FORWARD,   _FORWARD,   _PASSED),
}  # fmt: skip
_NEXT = {(state, sign): then for state, row in _THEN.items() for sign, then in zip(_Sign, row, strict=True)}
"""The transitions outside of passes.

The start of a pass leads from any state to BACKWARD, its end to PASSED. After ``create_graph`` its end leads to
CONTINUED, or to OPEN if the graph has no operation. UNCERTAIN becomes FORWARD when `Validation` has found that it is a
graph.
"""

_UPDATES = (e.OptimizerStarted, e.OptimizerStepped, e.StorageWritten, e.DataSet)


class Iterations:
    """Divides a log into graphs, in order of its events, and groups them into iterations.

    `patterns` are loop iterations known from the dropped part of a recording.
    """

    def __init__(self, patterns: Iterable[IterationPattern] = ()) -> None:
        self.loop = Loop(patterns)
        self.steps = OptimizerSteps()
        self.running: list[int] = []
        """The passes in progress."""
        self.state = _OPEN if self.loop.patterns else _EVALUATING
        self._preparation = Preparation(self.steps)
        self._evaluation = EvaluationLoop()
        self._validation: Validation | None = None  # while UNCERTAIN
        self._validation_sites: set[int] = set()  # the call sites of first operations that turned out to be validation
        self._has_operation = False
        self._creates_graph = False  # of the last pass

    def process(self, seq: int, event: e.Event) -> int:
        """Process the next event. Returns the start of the graph whose first tracked node this is, otherwise 0.

        In a program that only evaluates: returns the start of the iteration that the event reveals.
        """
        if self.state is _FORWARD and event.__class__ is e.NodeCreated:
            return 0  # almost every event
        self.steps.process(seq, event)
        match event:
            case e.BackwardStarted():
                self._begin_pass(event)
            case e.BackwardFinished(pass_nr=pass_nr):
                self._end_pass(pass_nr)
            case e.NodeCreated() if not self.running and is_tracked(event):
                return self._track(seq, event)
            case _ if not self.running:
                return self._process_untracked(seq, event)
        return 0

    @property
    def starts(self) -> list[int]:
        """The events at which iterations start."""
        return self._evaluation.starts if self.state is _EVALUATING else self.loop.starts

    @property
    def provisional(self) -> int:
        """The number of last starts that may turn out not to start an iteration. If the program starts to train, all
        starts of `evaluates` do.
        """
        return 1 if self.state is _EVALUATING else self.loop.provisional

    @property
    def evaluates(self) -> bool:
        """Whether the program has only evaluated so far."""
        return self.state is _EVALUATING

    @property
    def begun(self) -> int:
        """The first event of an iteration that has no pass yet but will have one, otherwise 0."""
        return 0 if self.state is _EVALUATING else self.loop.begun

    @property
    def prepared_from(self) -> int:
        """The event at which the next graph starts if it starts now; 0 if nothing is prepared."""
        if self.state is _EVALUATING:
            return self._evaluation.start
        if self._validation is not None:
            return self._validation.prepared_from
        return self._preparation.start if self.state in (_PASSED, _CONTINUED) else 0

    def forget(self, before: int) -> None:
        """Drop the iterations that start before an event, except those that may still continue."""
        self.loop.forget(before)
        self.steps.forget()
        self._evaluation.forget(before)

    def _begin_pass(self, started: e.BackwardStarted) -> None:
        if not self.running:
            if self._validation is not None and self._validation.begin_pass(started.roots):
                self._validation_sites.add(self._validation.place)
            self._validation, self._evaluation = None, EvaluationLoop()  # frees what it remembers
            self.loop.begin_pass(started.stack)
            self.state, self._creates_graph = _BACKWARD, started.create_graph
        self.running.append(started.pass_nr)

    def _end_pass(self, pass_nr: int) -> None:
        if pass_nr in self.running:
            self.running.remove(pass_nr)
        if not self.running:
            continued = _CONTINUED if self._has_operation else _OPEN
            self.state = continued if self._creates_graph else _PASSED
            self._preparation = Preparation(self.steps)

    def _track(self, seq: int, created: e.NodeCreated) -> int:
        """Process a tracked node outside of passes. Returns the start of the graph that begins with it, otherwise 0."""
        before, is_operation, start = self.state, created.kind == "op", 0
        aside = is_operation and before is _PASSED and self._is_validation_site(created.stack)
        self.state = _NEXT[before, self._sign(created, aside)]
        if before is _PASSED and not aside:
            self._has_operation, start = False, self._preparation.start or seq
            self.loop.begin(start)
        if is_operation and before in (_EVALUATING, _OPEN, _PASSED):
            self._has_operation, self._evaluation = True, EvaluationLoop()
            self._begin_operations(seq, created, aside)
        if is_operation and self._validation is not None:
            start = self._validation.compute(seq, created) or start
            if self._validation.is_over:
                self._validation, self.state = None, _FORWARD
        if self.state is _EVALUATING:
            start = self._evaluation.process(seq, created)
        return start

    def _begin_operations(self, seq: int, created: e.NodeCreated, aside: bool) -> None:
        """Record the first operation of the graph or of a validation."""
        start = self._preparation.start or seq if aside else self.loop.open
        if not aside:
            self.loop.begin_forward(created.stack)
        if self.state is _UNCERTAIN:
            self._validation = Validation(self.loop, self._preparation, created.stack, start, aside=aside)

    def _process_untracked(self, seq: int, event: e.Event) -> int:
        """Process an event outside of passes that autograd does not track."""
        if isinstance(event, _UPDATES):
            self.state = _NEXT[self.state, _Sign.WRITE]
        if self.state is _EVALUATING:
            return self._evaluation.process(seq, event)
        if self.state in (_PASSED, _CONTINUED):
            self._preparation.process(seq, event)
        elif self._validation is not None:
            self._validation.process(seq, event)
        return 0

    def _sign(self, created: e.NodeCreated, aside: bool) -> _Sign:
        if created.kind != "op":
            return _Sign.LEAF
        loop = self.loop
        familiar = not (created.stack and loop.knows_any) or loop.knows(created.stack)
        return _Sign.OPERATION if familiar and not aside else _Sign.UNFAMILIAR

    def _is_validation_site(self, place: int) -> bool:
        return place in self._validation_sites and not self.loop.knows(place)


class Loop:
    """Groups consecutive graphs into loop iterations by the call site of their first ``backward()``.

    When the program returns to a call site for the first time, an iteration has ended. From then on, passes from the
    call sites in between belong to the iteration that starts at that call site. Until then each graph is an iteration
    of its own, unless its iteration is known. The call site of a graph's first operation can reveal this before the
    pass begins.
    """

    def __init__(self, patterns: Iterable[IterationPattern] = ()) -> None:
        self.starts: list[int] = [1]
        """The events at which iterations start."""
        self.open = 1
        """The event at which a graph started that has no pass yet; 0 if the last graph has one."""
        self._parts = {first: frozenset(others) for first, *others in patterns}
        self._row: list[int] = []  # the call sites of this iteration; in a first iteration, each of them is one
        self._before: list[int] = []  # those of the previous iteration
        self._forward = 0  # the call site of the open graph's first operation, 0 if it has none yet
        self._passes: dict[int, int] = {}  # the call site of the pass, by the call site of the graph's first operation

    def begin(self, start: int) -> None:
        """Start the next graph at an event.

        It starts a new iteration, unless the iteration so far is only the beginning of the previous one.
        """
        self.open, self._forward = start, 0
        if self._row == self._before or self._row != self._before[: len(self._row)]:
            self.starts.append(start)

    def knows(self, place: int) -> bool:
        """Return whether a graph that had a pass started with an operation at this call site."""
        return place in self._passes

    @property
    def knows_any(self) -> bool:
        """Whether any call site of a graph's first operation is known."""
        return bool(self._passes)

    def move(self, start: int) -> None:
        """Move the start of the graph that has no pass yet to another event."""
        if self.begun:
            self.starts[-1] = start
        self.open = start

    def begin_forward(self, place: int) -> None:
        """Record the call site of a graph's first operation, 0 if unknown."""
        self._forward = place
        passed = self._passes.get(place)
        if self.open and self._is_first_iteration and passed is not None and passed in self._row:
            self._drop_provisional_start()
            self._close_first_iteration(passed)
            self.starts.append(self.open)

    def begin_pass(self, place: int) -> None:
        """Record a pass that starts at a call site. If a graph has several passes, only the first counts."""
        if not self.open:
            return
        self._drop_provisional_start()
        start, self.open = self.open, 0
        if self._forward:
            self._passes.setdefault(self._forward, place)
        first_iteration = self._is_first_iteration
        if not first_iteration and place in self._parts[self._row[0]] and place not in self._row:
            self._row.append(place)
            return
        if first_iteration and place in self._row:
            self._close_first_iteration(place)
        if first_iteration and place not in self._parts:
            self._row.append(place)
        else:
            self._before, self._row = self._row, [place]
        self.starts.append(start)

    @property
    def patterns(self) -> tuple[IterationPattern, ...]:
        """The iterations that the program has returned to."""
        return tuple((first, *sorted(others)) for first, others in self._parts.items())

    @property
    def begun(self) -> int:
        """The first event of an iteration that has no pass yet, 0 if the last iteration has one."""
        return self.open if self.starts[-1:] == [self.open] else 0

    @property
    def provisional(self) -> int:
        """The number of last starts that may turn out not to start an iteration."""
        return (self.begun > 0) + (max(len(self._row) - 1, 0) if self._is_first_iteration else 0)

    def forget(self, before: int) -> None:
        """Drop the iterations that start before an event, except those that may still become one iteration."""
        over = len(self.starts) - 1 - len(self._row)
        del self.starts[: max(min(bisect_left(self.starts, before), over), 0)]

    @property
    def _is_first_iteration(self) -> bool:
        return not self._row or self._row[0] not in self._parts

    def _drop_provisional_start(self) -> None:
        """Remove the provisional iteration of the graph that has no pass yet."""
        if self.begun:
            self.starts.pop()

    def _close_first_iteration(self, place: int) -> None:
        """End the first iteration, which started at this call site: it becomes one iteration."""
        _, *others = self._row = self._row[self._row.index(place) :]
        self._parts[place] = frozenset(others)
        del self.starts[len(self.starts) - len(others) :]


GRADIENTS = {"grad_of", "gradient", "grad_outputs"}
"""Attributes that only gradients have. The last one is an argument of ``autograd.grad``."""


class Preparation:
    """Finds where the preparation of the next graph started, between a pass and the next forward.

    Example: ``optimizer.step(); losses.append(loss.item()); x = next(data) / 255; loss = model(x)``. The preparation
    starts with the data: the step writes memory, and the loss value is computed from a result.

    An event belongs to the optimizer or to a measurement if it writes memory, uses gradients or results, or runs while
    autograd is off. The preparation starts after it. Clearing a gradient does not matter. After one optimizer step has
    ended, the start of another counts as preparation, because its closure may run the forward.
    """

    def __init__(self, steps: OptimizerSteps) -> None:
        self._steps = steps
        self.start = 0
        """The event at which the preparation started, 0 if nothing is prepared."""
        self._stepped = False  # a step has ended
        self._results: set[int] = set()  # nodes computed from gradients or results, or while autograd is off

    def includes_result(self, nodes: Iterable[int]) -> bool:
        """Return whether one of these nodes was computed since the pass and prepares nothing."""
        return not self._results.isdisjoint(nodes)

    def process(self, seq: int, event: e.Event) -> None:
        """Process the next event between a pass and a forward."""
        if isinstance(event, e.GradSet):
            return
        self.start = (self.start or seq) if self._prepares(event) else 0
        self._stepped = self._stepped or isinstance(event, e.OptimizerStepped)

    def _prepares(self, event: e.Event) -> bool:
        match event:
            case e.NodeCreated():
                return self._is_prepared(event)
            case e.OptimizerStarted():
                return self._stepped
        return isinstance(event, e.ScopeEntered)

    def _is_prepared(self, created: e.NodeCreated) -> bool:
        measures = created.switched_off or self._steps.computes(created)
        attrs = {name for name, _ in created.attrs}
        new = not attrs or "number" in attrs
        of_data = new if created.kind == "constant" else created.untracked in ("inputs", "numbers")
        of_results = self.includes_result(node for node, _ in created.inputs)
        if of_data and not (measures or of_results or attrs & GRADIENTS):
            return True
        self._results.add(created.node)
        return False


class Validation:
    """Decides whether tracked computation is the next graph, or validation without a backward pass.

    It starts with an operation at a call site `place` where no graph with a pass has started. Example: a training loop
    that runs ``model(validation_data)`` without ``no_grad`` after each step.

    The graph starts at a later operation if an earlier graph started there, and if it uses none of the results computed
    since the last pass; prepared data may be used. The preparation before it belongs to the graph. The operations
    before are validation and belong to the previous iteration. If the graph later uses a result of them, such as a
    penalty added to the loss, the graph includes them.

    A place where validation was seen before counts as validation from the start (`aside`). Any other place counts as a
    graph until decided.
    """

    def __init__(self, loop: Loop, preparation: Preparation, place: int, start: int, *, aside: bool) -> None:
        self.place = place
        self.is_over = False
        """Whether it turned out to be part of the graph."""
        self._loop = loop
        self._preparation = preparation
        self._start = start
        self._has_graph = not aside
        self._is_left = False  # the graph started after it

    @property
    def prepared_from(self) -> int:
        """The event at which the graph starts if it starts now; 0 if nothing is prepared, or the graph has started."""
        return 0 if self._is_left else self._preparation.start

    def process(self, seq: int, event: e.Event) -> None:
        """Process the next event that autograd does not track."""
        if not self._is_left:
            self._preparation.process(seq, event)

    def compute(self, seq: int, created: e.NodeCreated) -> int:
        """Process the next tracked operation. Returns the start of the graph if it starts here, otherwise 0."""
        uses = self._preparation.includes_result(node for node, _ in created.inputs)
        if self._is_left:
            if uses:
                self._join()
        elif not uses and self._loop.knows(created.stack):
            start = self._preparation.start or seq
            self._begin(start, created.stack)
            self._is_left = True
            return start
        else:
            self._preparation.process(seq, created)
        return 0

    def begin_pass(self, roots: Iterable[e.Edge]) -> bool:
        """Process the start of a pass from these roots. Returns whether all this was validation."""
        if not self._is_left or self._preparation.includes_result(node for node, _ in roots):
            self._join()
        return not self.is_over

    def _join(self) -> None:
        """Make this part of the graph."""
        if self._is_left or not self._has_graph:
            self._begin(self._start, self.place)
        self.is_over = True

    def _begin(self, start: int, place: int) -> None:
        if self._has_graph:
            self._loop.move(start)
        else:
            self._loop.begin(start)
            self._has_graph = True
        self._loop.begin_forward(place)


Place = tuple[int, int]
"""Where a call first uses a weight: the call stack, and the weight's node."""

_RESULT, _CHOICE = -1, -2
_CHOICES = ("int", "uint", "bool")
_WEIGHTS = ("leaf", "parameter")
_REMEMBERED = 1 << 16
"""The number of results of an iteration that are remembered. What uses older ones also uses newer ones."""


class EvaluationLoop:
    """Divides a program that only evaluates: autograd tracks no operation, so there are no passes to divide it by.

    Example: a loop that generates text, ``logits = model(token); token = logits.argmax()``. Each iteration starts with
    a module call at a call site that was used before. Before it come inputs that do not depend on the previous
    iteration (a batch of data), or a choice such as the next token.

    Only outermost module calls that use weights count. Such a call starts an iteration if its call site started one
    before, or already ran in this one. It does not if its inputs are results of this iteration: then it is the next
    layer, cell or head. Results have floating point dtypes; integers computed from them are choices. If a call later
    uses results of the previous iteration, as a recurrent cell does, it did not start an iteration, and neither do
    later calls there.
    """

    def __init__(self) -> None:
        self.starts: list[int] = [1]
        """The events at which iterations start."""
        self.start = 0
        """The event at which the next iteration starts, if the current or the next call starts it; 0: not prepared."""
        self._weights: set[int] = set()
        # in this iteration: results, choices, and what was computed from weights only (maps to the last of them)
        self._made: dict[e.Edge, int] = {}
        # the same of the previous iteration, while the call that started this one runs
        self._before: dict[e.Edge, int] = {}
        self._beginnings: set[Place] = set()
        self._in_iteration: set[Place] = set()
        self._recurrent_places: set[Place] = set()  # places where calls use results of the previous iteration
        self._place: Place = 0, 0
        self._calls: set[int] = set()  # the current outermost call and those within it
        self._is_open = False  # the call has used no result so far, and no weight together with other inputs
        self._chosen = False  # the call has used a choice

    def process(self, seq: int, event: e.Event) -> int:
        """Process the next event. Returns the start of the iteration that it reveals, otherwise 0."""
        if isinstance(event, e.NodeCreated):
            if event.kind in _WEIGHTS:
                self._weights.add(event.node)
                return 0
            return self._see(seq, event)
        match event:
            case e.ScopeEntered(scope=scope, parent=parent):
                if not parent:
                    self._enter(seq, scope)
                elif parent in self._calls:
                    self._calls.add(scope)
            case e.StorageWritten() | e.DataSet() if self._is_open:
                pass  # an in-place write to the iteration's data
            case e.StorageWritten() | e.DataSet() | e.OptimizerStarted() | e.OptimizerStepped() | e.Failed():
                self._close()
                self.start = 0
        return 0

    def forget(self, before: int) -> None:
        """Drop the iterations that start before an event, except the last one."""
        self.starts = [start for start in self.starts[:-1] if start >= before] + self.starts[-1:]

    def _enter(self, seq: int, scope: int) -> None:
        self._close()
        self._calls, self._before = {scope}, {}
        self._is_open, self._chosen = True, False
        self._prepare(seq)

    def _close(self) -> None:
        """End a call that used no weight. If it used a choice, it was a measurement and prepared nothing."""
        if self._is_open and self._chosen:
            self.start = 0
        self._is_open = False

    def _prepare(self, seq: int) -> None:
        if self._beginnings:
            self.start = self.start or seq

    def _see(self, seq: int, created: e.NodeCreated) -> int:
        """Process an operation or data. Returns the start of the iteration that it reveals, otherwise 0."""
        known, weights = self._made, self._weights
        used = [known.get(edge) or (edge[0] if edge[0] in weights else 0) for edge in created.inputs]
        begun = 0
        if created.scope not in self._calls:
            self._close()
            if any(used):
                self.start = 0
            else:
                self._prepare(seq)
        elif self._is_open:
            begun = self._see_in_call(created, used)
        elif self._before:
            self._look_back(created)
        if any(used):
            self._remember(created, used)
        return begun

    def _remember(self, created: e.NodeCreated, used: list[int]) -> None:
        """Remember the kind of value of a new node that depends on more than data."""
        weight = max(used) if min(used) > 0 else 0
        known = weight or (_RESULT if max(used) > 0 or _RESULT in used else _CHOICE)
        for nr, output in enumerate(created.outputs):
            chosen = known == _RESULT and output.value is not None and output.value.dtype.startswith(_CHOICES)
            self._made[created.node, nr] = _CHOICE if chosen else known
        if len(self._made) > _REMEMBERED:
            self._made = dict(islice(self._made.items(), _REMEMBERED // 2, None))

    def _see_in_call(self, created: e.NodeCreated, used: list[int]) -> int:
        """Process a node in a call that has used no weight yet. Returns the start of the iteration that it starts,
        otherwise 0.
        """
        self._chosen = self._chosen or _CHOICE in used
        if _RESULT in used:
            self._is_open, self.start = False, 0
        elif min(used, default=0) <= 0 < max(used, default=0):
            self._is_open = False
            return self._use_weight((created.stack, max(used)))
        return 0

    def _use_weight(self, place: Place) -> int:
        """Process the first use of a weight in a call without results as inputs; returns the start of the iteration,
        else 0.
        """
        start, self.start = self.start, 0
        is_first = not self._beginnings
        comes_back = place in self._beginnings or place in self._in_iteration
        if is_first or (comes_back and place not in self._recurrent_places):
            self._beginnings.add(place)
        if not comes_back or place in self._recurrent_places:
            self._in_iteration.add(place)
            return 0
        self._before, self._made = {} if self._chosen else self._made, {}
        self._in_iteration, self._place = {place}, place
        self.starts.append(start)
        return start

    def _look_back(self, created: e.NodeCreated) -> None:
        """Undo the iteration if the call that started it uses a result of the previous iteration."""
        taken = {self._before.get(edge) for edge in created.inputs}
        if _RESULT in taken:
            del self.starts[max(len(self.starts) - 1, 1) :]
            self._recurrent_places.add(self._place)
            self._made, self._before = self._before | self._made, {}
        elif _CHOICE in taken:
            self._before = {}
