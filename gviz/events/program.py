"""Events about the program around the graph: its modules, optimizers, source, output and failure."""

from __future__ import annotations

from typing import Literal

from gviz.events.event import Count, Event
from gviz.events.optimizer_options import Groups
from gviz.source.call_stack import Frame


class ScopeEntered(Event, frozen=True):
    """A module's forward starts: `name` is its path in the model (``net.fc1``), `kind` its class.

    `plain_flags` are the attributes ``requires_grad`` that the program has set on the module and on modules in it, by
    path. A module has no such property, so autograd does not read them. Only an outermost call has them. They are empty
    in older traces.
    """

    scope: Count
    parent: Count
    name: str
    kind: str
    plain_flags: tuple[tuple[str, bool], ...] = ()


class ScopeLeft(Event, frozen=True):
    """A module's forward ended."""

    scope: Count


class OptimizerStarted(Event, frozen=True):
    """A step of an optimizer of class `kind` starts, called at `stack`.

    Nodes created at the same `stack` before the `OptimizerStepped` are the optimizer's own arithmetic. What a closure
    does in between belongs to the program, including passes. `options` are the options of each parameter group;
    `before` are the old values of those that have changed since its last step. Both are empty in older traces.
    """

    kind: str
    stack: Count
    options: Groups = ()
    before: Groups = ()


class OptimizerStepped(Event, frozen=True):
    """An optimizer has updated `parameters`; the new values came before it as `StorageWritten`.

    `skipped` are its other recorded parameters, which had no gradient. The event ends the step that `OptimizerStarted`
    began at the same `stack`. If an exception ended the step, `raised` is its class, and `parameters` are those changed
    by then; in older traces such a step has no end. With several parameter groups, `per_group` is the number of
    `parameters` in each of them, in order.
    """

    kind: str
    parameters: tuple[Count, ...]
    stack: Count
    skipped: tuple[Count, ...] = ()
    raised: str = ""
    per_group: tuple[Count, ...] = ()


class Marked(Event, frozen=True):
    """The program named this moment: ``gviz.mark("epoch 3")``."""

    name: str


class StackSeen(Event, frozen=True):
    """A call stack of the user's program, innermost frame first, recorded once before something refers to it.

    Its `shared` outermost frames are those of an earlier stack, its `base`; `frames` are the others.
    `gviz.trace.stack_tree` combines them. In older traces no stack has a base (0), and `frames` are all frames.
    """

    stack: Count
    frames: tuple[Frame, ...]
    base: Count = 0
    shared: Count = 0


class SourceSeen(Event, frozen=True):
    """The text of a source file as it was when the program ran; None if it could not or should not be kept."""

    path: str
    text: str | None


class Printed(Event, frozen=True):
    """The program wrote to ``stdout`` or ``stderr``."""

    stream: str
    text: str


NOT_SEEN = "NotSeen"
"""The category of warnings by gviz itself: the program does something that events cannot show. Once per kind."""

Unseen = Literal[
    "composite", "transform", "compiled", "forward", "modules", "processes", "branch", "version", "replay", "between",
]  # fmt: skip
"""What events cannot show: values within a call or rule of several operations; tensors within a function transform;
what a compiled region computes; what runs between backward passes; what runs outside the calls of some modules; other
processes; what follows where a rerun branch stops; what this PyTorch lacks; what a captured CUDA graph computes;
what happens between iterations that are recorded whole.
"""


class Warned(Event, frozen=True):
    """The program warned, or gviz did (category `NOT_SEEN`, of the kind `unseen`, which older traces lack)."""

    category: str
    message: str
    stack: Count
    unseen: Unseen | Literal[""] = ""


class Failed(Event, frozen=True):
    """The program raised an exception and did not catch it, or was passed to ``post_mortem``.

    Holds the exception's class and message, the node at fault (0: none), and the printed traceback.
    """

    error: str
    message: str
    node: Count
    stack: Count
    traceback: str
