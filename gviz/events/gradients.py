"""Events about gradients: backward passes, what flows and is added in them, what is done to a ``.grad``."""

from __future__ import annotations

from gviz.events.event import Count, Edge, Event
from gviz.values.value import Value


class BackwardStarted(Event, frozen=True):
    """A backward pass begins at `roots` with the gradients `seeds`; `inputs` as given to ``backward`` or ``grad``."""

    changes = ("progress",)

    pass_nr: Count
    roots: tuple[Edge, ...]
    seeds: tuple[Value, ...]
    retain_graph: bool
    create_graph: bool
    inputs: tuple[Edge, ...]
    stack: Count


class BackwardFinished(Event, frozen=True):
    """The pass is over; `error` is the message of the exception that ended it, else empty, and `raised` its class."""

    changes = ("progress",)

    pass_nr: Count
    error: str = ""
    raised: str = ""


class StepStarted(Event, frozen=True):
    """A node's incoming gradient is complete, one entry per output (None: nothing arrived), and its rule runs now."""

    changes = ("progress",)

    pass_nr: Count
    node: Count
    grads: tuple[Value | None, ...]


class GradFlowed(Event, frozen=True):
    """One contribution went over one edge: from input `slot` of `source` to an output of `node`.

    `total` is the sum at its target so far; None when this is the first contribution, so that the total is `part`.
    """

    changes = ("incoming",)

    pass_nr: Count
    source: Count
    slot: Count
    node: Count
    output_nr: Count
    part: Value
    total: Value | None = None


class StepFinished(Event, frozen=True):
    """The node's rule has run and all its contributions (the `GradFlowed` since `StepStarted`) have arrived."""

    changes = ("progress",)

    pass_nr: Count
    node: Count


class GradAccumulated(Event, frozen=True):
    """`part` was added to a leaf's ``.grad``, which is now `value` (None: there was none before, so it is `part`)."""

    changes = ("grad", "progress")

    pass_nr: Count
    node: Count
    part: Value
    value: Value | None = None


class GradRetained(Event, frozen=True):
    """A non-leaf that asked for it (``retain_grad``) has its ``.grad`` now."""

    changes = ("grad",)

    pass_nr: Count
    node: Count
    output_nr: Count
    value: Value


class GradCaptured(Event, frozen=True):
    """``autograd.grad`` took this gradient as a result instead of accumulating it."""

    changes = ("progress",)

    pass_nr: Count
    node: Count
    output_nr: Count
    value: Value


class GradSet(Event, frozen=True):
    """A ``.grad`` was changed outside a pass: `how` is ``none``, ``zero``, ``assigned`` or ``in place``.

    `stack` is where the program did it; 0 for one that was there before it was recorded.
    """

    changes = ("grad",)

    node: Count
    output_nr: Count
    how: str
    value: Value | None
    stack: Count = 0


class HookRan(Event, frozen=True):
    """A hook ran at a node; `value` is what it gave, or None.

    `when` is ``tensor`` for a tensor's hook, ``pre`` and ``post`` for a node's before and after its rule, ``post
    accumulate`` for a leaf's. What a ``tensor`` or ``pre`` hook gives replaces the gradient that has arrived; what a
    ``post`` hook gives goes on, and `output_nr` then counts the inputs that can have a gradient.
    """

    changes = ("progress",)

    pass_nr: Count
    node: Count
    output_nr: Count
    when: str
    name: str
    value: Value | None


def grad_left(event: Event) -> Value | None:
    """The ``.grad`` that an event leaves behind; None where it takes it away, or changes none."""
    if "grad" not in event.changes:
        return None
    value: Value | None = getattr(event, "value", None)
    return getattr(event, "part", None) if value is None else value
