"""In what an event happens: the pass that runs, whose rule, in which module call."""

from __future__ import annotations

from gviz import events as e
from gviz.events import Edge
from gviz.trace.codec import KIND_NUMBERS

CONTEXT = (e.BackwardStarted, e.BackwardFinished, e.StepStarted, e.StepFinished, e.ScopeEntered, e.ScopeLeft)
"""The events that change it."""

_KINDS = tuple(KIND_NUMBERS[kind] for kind in CONTEXT)


class Context:
    """Which pass runs, whose rule, in which module call, how many rules within one another; after each change."""

    def __init__(self) -> None:
        self.passes: list[int] = []
        self._steps: list[Edge] = []  # (pass, node)
        self.scopes: list[int] = []

    def happen(self, kind: int, node: int, pass_nr: int, scope: int) -> tuple[int, int, int, int]:
        """Take in the next event that changes it; then: the pass, the node whose rule runs, the call, how deep."""
        started, finished, step_started, step_finished, entered, _ = _KINDS
        if kind == step_started:
            self._steps.append((pass_nr, node))
        elif kind == step_finished:
            if self._steps == [(pass_nr, node)]:
                self._steps.clear()
            else:
                self._steps = [step for step in self._steps if step != (pass_nr, node)]
        elif kind == started:
            self.passes.append(pass_nr)
        elif kind == finished:
            self.passes = [other for other in self.passes if other != pass_nr]
            self._steps = [step for step in self._steps if step[0] != pass_nr]
        elif kind == entered:
            self.scopes.append(scope)
        elif scope in self.scopes:
            del self.scopes[self.scopes.index(scope) :]
        pass_now = self.passes[-1] if self.passes else 0
        step_now = self._steps[-1][1] if self._steps and self._steps[-1][0] == pass_now else 0
        return pass_now, step_now, self.scopes[-1] if self.scopes else 0, len(self._steps)
