"""What prepares a forward after a pass: numbers, a batch of the data and what is made of it, the call of a module."""

from __future__ import annotations

from gviz import events as e
from gviz.trace.steps import OptimizerSteps

_GRADIENTS = {"grad_of", "gradient"}


class Preparation:
    """Says where the preparation of the next forward began, while what happens between a pass and a forward goes by.

    Whatever memory is written with, or is computed of gradients or results, or while autograd is off, is the
    optimizer's, or measures something: what was made up to there prepares nothing. That a gradient is cleared changes
    nothing.
    """

    def __init__(self, steps: OptimizerSteps) -> None:
        self._steps = steps
        self.start = 0
        """The event with which it began, 0 if nothing is prepared."""
        self._results: set[int] = set()  # nodes computed of gradients, of results, or while autograd is off

    def happen(self, seq: int, event: e.Event) -> None:
        """Take notice of the next event between a pass and a forward."""
        if isinstance(event, e.GradSet):
            return
        prepares = self._prepares(event) if isinstance(event, e.NodeCreated) else isinstance(event, e.ScopeEntered)
        self.start = (self.start or seq) if prepares else 0

    def _prepares(self, made: e.NodeCreated) -> bool:
        measures = made.untracked == "no_grad" or self._steps.computes(made)
        attrs = {name for name, _ in made.attrs}
        new = not attrs or "number" in attrs
        of_data = new if made.kind == "constant" else made.untracked in ("inputs", "numbers")
        of_results = not self._results.isdisjoint(node for node, _ in made.inputs)
        if of_data and not (measures or of_results or attrs & _GRADIENTS):
            return True
        self._results.add(made.node)
        return False
