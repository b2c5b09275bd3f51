"""Events about gradients: backward passes, the contributions in them, and changes of ``.grad``."""

from __future__ import annotations

from gviz.events.event import Count, Edge, Event
from gviz.values.value import Value


class BackwardStarted(Event, frozen=True):
    """A backward pass starts at `roots` with the gradients `seeds`; `inputs` as given to ``backward`` or ``grad``."""

    pass_nr: Count
    roots: tuple[Edge, ...]
    seeds: tuple[Value, ...]
    retain_graph: bool
    create_graph: bool
    inputs: tuple[Edge, ...]
    stack: Count


class BackwardFinished(Event, frozen=True):
    """The pass has ended. If an exception ended it, `error` is its message and `raised` its class; otherwise empty."""

    pass_nr: Count
    error: str = ""
    raised: str = ""


class StepStarted(Event, frozen=True):
    """A node's incoming gradient is complete and its backward rule starts; `grads` has one per output (None: none)."""

    pass_nr: Count
    node: Count
    grads: tuple[Value | None, ...]


class GradFlowed(Event, frozen=True):
    """One contribution went over one edge: from input `slot` of `source` to an output of `node`.

    `total` is the sum at its target so far; None if this is the first contribution, so that the total is `part`.
    """

    pass_nr: Count
    source: Count
    slot: Count
    node: Count
    output_nr: Count
    part: Value
    total: Value | None = None


class StepFinished(Event, frozen=True):
    """The node's backward rule has run, and its contributions (`GradFlowed` since `StepStarted`) have arrived."""

    pass_nr: Count
    node: Count


class GradAccumulated(Event, frozen=True):
    """`part` was added to a leaf's ``.grad``, which is now `value` (None: there was no ``.grad``, so it is `part`)."""

    pass_nr: Count
    node: Count
    part: Value
    value: Value | None = None


class GradRetained(Event, frozen=True):
    """A non-leaf for which ``retain_grad`` was called now has its ``.grad``."""

    pass_nr: Count
    node: Count
    output_nr: Count
    value: Value


class GradCaptured(Event, frozen=True):
    """``autograd.grad`` took this gradient as a result instead of accumulating it."""

    pass_nr: Count
    node: Count
    output_nr: Count
    value: Value


class GradSet(Event, frozen=True):
    """A ``.grad`` was changed outside a pass: `how` is ``none``, ``zero``, ``assigned`` or ``in place``.

    `stack` is where the program did it; 0 if it existed before the recording.
    """

    node: Count
    output_nr: Count
    how: str
    value: Value | None
    stack: Count = 0


class HookRan(Event, frozen=True):
    """A hook ran at a node; `value` is what it returned, or None.

    `when` is ``tensor`` for a tensor's hook, ``pre`` and ``post`` for a node's before and after its rule, ``post
    accumulate`` for a leaf's. What a ``tensor`` or ``pre`` hook returns replaces the incoming gradient. What a ``post``
    hook returns replaces an outgoing gradient, and `output_nr` then counts the inputs that can have a gradient. `stack`
    is where the hook was registered, 0 if unknown.
    """

    pass_nr: Count
    node: Count
    output_nr: Count
    when: str
    name: str
    value: Value | None
    stack: Count = 0
