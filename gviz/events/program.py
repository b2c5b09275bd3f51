"""Events about the program around the graph: its modules, optimizers, source, output and failure."""

from __future__ import annotations

from typing import Literal

from gviz.events.event import Count, Event
from gviz.events.optimizer_options import Groups
from gviz.source.site import Frame


class ScopeEntered(Event, frozen=True):
    """A module's forward begins: `name` is its path in the model (``net.fc1``), `kind` its class."""

    scope: Count
    parent: Count
    name: str
    kind: str


class ScopeLeft(Event, frozen=True):
    """A module's forward ended."""

    scope: Count


class OptimizerStarted(Event, frozen=True):
    """A step of an optimizer of class `kind` begins, called at `stack`.

    What is made at the same `stack` before its `OptimizerStepped` is the optimizer's own arithmetic. What a closure
    does in between is the program's, passes included. `options` are what each of its groups of parameters is set to;
    `before` are those that have changed since its last step, as they were then. Both are empty in older traces.
    """

    kind: str
    stack: Count
    options: Groups = ()
    before: Groups = ()


class OptimizerStepped(Event, frozen=True):
    """An optimizer has updated `parameters`; the new values came before it as `StorageWritten`.

    `skipped` are those it has as well that had no gradient, as far as they were announced. It ends the step that
    `OptimizerStarted` has said at the same `stack`. Where an exception ended it, `raised` is its class, and
    `parameters` are those that it had changed by then; in older traces such a step has no end. Where it has several
    groups of parameters, `per_group` says how many of `parameters` each of them has: they come in that order.
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
    """A call stack of the user's program, innermost frame first, said once before something refers to it.

    Its outermost frames are the `shared` outermost ones of an earlier stack, its `base`, and `frames` are the others;
    `gviz.trace.stacks` puts them together. In older traces no stack has a base (0), and `frames` are all.
    """

    stack: Count
    frames: tuple[Frame, ...]
    base: Count = 0
    shared: Count = 0


class SourceSeen(Event, frozen=True):
    """The text of a source file as it was when the program ran; None where it could or should not be kept."""

    path: str
    text: str | None


class Printed(Event, frozen=True):
    """The program wrote to ``stdout`` or ``stderr``."""

    stream: str
    text: str


NOT_SEEN = "NotSeen"
"""The category of a warning by gviz itself: what the program does that no event can show, said once of each kind."""

Unseen = Literal["composite", "transform", "compiled", "forward", "modules", "processes", "branch", "version", "replay"]
"""The kinds of what no event can show: values within a call or rule of several operations; tensors within a transform
of functions; what a compiled region computes; what runs between backward passes; what runs outside the calls of
some modules; other processes; what follows where a branch that is run again stops; what this PyTorch lacks;
what a captured CUDA graph computes."""


class Warned(Event, frozen=True):
    """The program warned, or gviz did (category `NOT_SEEN`) of something of the kind `unseen`; older traces lack it."""

    category: str
    message: str
    stack: Count
    unseen: Unseen | Literal[""] = ""


class Failed(Event, frozen=True):
    """The program raised and did not catch, or was shown after it (``post_mortem``): error class, message, node at
    fault (0: none), the printed traceback."""

    error: str
    message: str
    node: Count
    stack: Count
    traceback: str
