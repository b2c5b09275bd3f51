"""What prepares a forward after a pass: numbers, a batch of the data and what is made of it, the call of a module."""

from __future__ import annotations

from collections.abc import Iterable

from gviz import events as e
from gviz.trace.steps import OptimizerSteps

_GRADIENTS = {"grad_of", "gradient", "grad_outputs"}
"""What tells of a node that it is a gradient: the last is an argument of ``autograd.grad``."""


class Gradients:
    """Knows which nodes are the ``.grad`` of leaves, as far as they have been used, and what was made of them."""

    def __init__(self) -> None:
        self._by_leaf: dict[int, int] = {}
        self._known: set[int] = set()
        self._made: set[int] = set()  # of them since the last pass
        self._kept: set[int] = set()  # after a pass before, as a momentum is

    def are_used(self, made: e.NodeCreated) -> bool:
        """Whether a new node is a gradient, or made of the gradient of a leaf."""
        attrs = dict(made.attrs)
        leaf = attrs.get("grad_of")
        if isinstance(leaf, int):
            self._known.discard(self._by_leaf.get(leaf, 0))  # a leaf has one ``.grad``
            self._by_leaf[leaf] = made.node
            self._known.add(made.node)
            return True
        used = not _GRADIENTS.isdisjoint(attrs) or any(node in self._known for node, _ in made.inputs)
        if used or any(node in self._made for node, _ in made.inputs):
            self._made.add(made.node)
            if made.untracked == "inputs" and any(output.version for output in made.outputs):
                self._made.update(node for node, _ in made.inputs[:1])  # in whose memory it was written: no leaf's
        return used

    def are_kept(self, made: e.NodeCreated) -> bool:
        """Whether a new node is made of what gradients of earlier passes came to: of the momentum of the last step."""
        return any(node in self._kept for node, _ in made.inputs)

    def pass_over(self) -> None:
        """A pass is over: what was made of gradients before it has been kept."""
        if self._made:
            self._kept, self._made = self._made, set()


class Preparation:
    """Says where the preparation of the next forward began, while what happens between a pass and a forward goes by.

    Whatever memory is written with, or is computed of gradients or results, or while autograd is off, is the
    optimizer's, or measures something: what was made up to there prepares nothing. That a gradient is cleared changes
    nothing. After the step of an optimizer the start of another one may be that of a closure, which makes the forward.
    """

    def __init__(self, steps: OptimizerSteps) -> None:
        self._steps = steps
        self.start = 0
        """The event with which it began, 0 if nothing is prepared."""
        self._stepped = False  # a step is over
        self._results: set[int] = set()  # nodes computed of gradients, of results, or while autograd is off

    def has_made(self, nodes: Iterable[int]) -> bool:
        """Whether one of these nodes prepares nothing, but was computed since the pass."""
        return not self._results.isdisjoint(nodes)

    def happen(self, seq: int, event: e.Event) -> None:
        """Take notice of the next event between a pass and a forward."""
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

    def _is_prepared(self, made: e.NodeCreated) -> bool:
        measures = made.switched_off or self._steps.computes(made)
        attrs = {name for name, _ in made.attrs}
        new = not attrs or "number" in attrs
        of_data = new if made.kind == "constant" else made.untracked in ("inputs", "numbers")
        of_results = self.has_made(node for node, _ in made.inputs)
        if of_data and not (measures or of_results or attrs & _GRADIENTS):
            return True
        self._results.add(made.node)
        return False
