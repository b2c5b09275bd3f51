"""``torch.utils.checkpoint``: saves less in forward, and recomputes it in backward.

Normally ``y = f(x)`` saves every tensor that the backward rules of `f` need. A checkpoint saves only `x`, and runs `f`
again when the backward pass arrives. There are two variants:

* **Reentrant** (`CheckpointFunction`). The whole call is one node. Its backward rule runs `f` with gradients enabled,
  and starts a backward pass of its own through the result.
* **Not reentrant** (`_Frame`). Every operation has its node, but the pack hook of saved tensors stores an empty
  `_Holder` instead of each tensor. The first holder that a pass unpacks makes the frame run `f` again. The n-th tensor
  that this run saves fills the n-th holder. Count and metadata are compared with those of the first run.

Several backward passes may run through a retained graph. Each of them fills the holders again, which is one `_Round`,
and takes each tensor out once. Random numbers are replayed from the state before the first run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any
from weakref import WeakKeyDictionary, ref

from gviz.engine import messages, operation_watchers
from gviz.engine.autograd.function import Function
from gviz.engine.autograd.grad import backward
from gviz.engine.autograd.graph import saved_tensors_hooks
from gviz.engine.backward import Pass, running
from gviz.engine.modes import enable_grad, no_grad, thread
from gviz.engine.node import Node, pack_saved_tensors
from gviz.engine.random import fork_rng, get_rng_state, set_rng_state
from gviz.engine.tensor import UNCOUNTED, Tensor
from gviz.engine.unsupported_names import lookup_in
from gviz.source.call_stack import warn

Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]
Form = Callable[[Tensor], Any]
"""Returns the metadata of a tensor that must be the same after recomputation."""


def noop_context_fn() -> Contexts:
    """Contexts for forward and recomputation that do nothing."""
    return nullcontext(), nullcontext()


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], Contexts] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """Runs `function` without saving what its backward needs; backward recomputes it.

    With `use_reentrant` the whole call is one node, and its backward rule starts a pass of its own. Without it every
    operation has its node, and saved tensors are recomputed when the first of them is needed. `debug` is accepted and
    has no effect.
    """
    if use_reentrant is None:
        warn(_REENTRANT_UNSET)
        use_reentrant = True
    if not use_reentrant:
        again = _Again(function, kwargs, context_fn, preserve_rng_state)
        if determinism_check not in _DETERMINISM_CHECKS:
            raise ValueError(
                f"determinism_check should be one of {list(_DETERMINISM_CHECKS)}, but got {determinism_check}"
            )
        if not thread.grad_enabled:
            return function(*args, **kwargs)
        frame = _Frame(again, args, _DETERMINISM_CHECKS[determinism_check], early_stop)
        with saved_tensors_hooks(frame.hold, frame.give), again.forward_context:
            result = function(*args, **kwargs)
        frame.is_complete = True
        return result
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if context_fn is not noop_context_fn or debug:
        raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    return CheckpointFunction.apply(function, preserve_rng_state, *args)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Runs `functions` in order, in `segments` parts; each part except the last is a checkpoint."""
    if use_reentrant is None:
        warn(_SEQUENTIAL_REENTRANT_UNSET)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    steps = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size, end = len(steps) // segments, 0
    for start in range(0, size * (segments - 1), size):
        end = start + size
        part = _one_after_the_other(steps[start:end])
        input = checkpoint(part, input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return _one_after_the_other(steps[end:])(input)


def _one_after_the_other(steps: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def run(input: Any) -> Any:
        for step in steps:
            input = step(input)
        return input

    return run


class CheckpointFunction(Function):
    """The reentrant variant: forward saves only the inputs; backward runs the function again, and a pass through it."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.random_state = get_rng_state() if preserve_rng_state else None
        ctx.others = [None if isinstance(arg, Tensor) else arg for arg in args]
        ctx.tensor_places = [place for place, arg in enumerate(args) if isinstance(arg, Tensor)]
        ctx.save_for_backward(*[arg for arg in args if isinstance(arg, Tensor)])
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if running.innermost is not None and running.innermost.targets is not None:
            raise RuntimeError(_IN_LIMITED_PASS)
        args = list(ctx.others)
        for place, tensor in zip(ctx.tensor_places, ctx.saved_tensors, strict=True):
            args[place] = tensor
        inputs = detach_variable(tuple(args))
        with fork_rng(enabled=ctx.random_state is not None), enable_grad():
            if ctx.random_state is not None:
                set_rng_state(ctx.random_state)
            outputs = ctx.run_function(*inputs)
        listed = (outputs,) if isinstance(outputs, Tensor) else outputs
        pairs = [(o, g) for o, g in zip(listed, grads, strict=True) if isinstance(o, Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([output for output, _ in pairs], [grad for _, grad in pairs])
        return (None, None, *[x.grad if isinstance(x, Tensor) else None for x in inputs])


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Detaches the tensors among the inputs; the new leaves require grad like the originals."""
    if not isinstance(inputs, tuple):
        raise RuntimeError("Only tuple of tensors is supported. Got Unsupported input type: ", type(inputs).__name__)
    return tuple([x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs])


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warns if no input can get a gradient."""
    if not any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        warn("None of the inputs have requires_grad=True. Gradients will be None")


class _Again:
    """Repeats a checkpointed function with the same keyword arguments, contexts and random numbers."""

    def __init__(
        self, function: Callable[..., Any], kwargs: dict[str, Any], context_fn: Callable[[], Contexts], preserve: bool
    ) -> None:
        self.function, self.kwargs = function, kwargs
        self.forward_context, self._recompute_context = context_fn()
        self._random_state = get_rng_state() if preserve else None

    def __call__(self, *args: Any) -> None:
        with fork_rng(enabled=self._random_state is not None), self._recompute_context:
            if self._random_state is not None:
                set_rng_state(self._random_state)
            self.function(*args, **self.kwargs)


class CheckpointError(RuntimeError):
    """Raised if recomputation saves other tensors than forward did."""


def _default_form(tensor: Tensor) -> dict[str, Any]:
    """Return the metadata that is compared by default."""
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


class _StopRecomputation(Exception):
    """Raised to stop once all tensors that forward saved have been recomputed."""


_stops_early: list[bool] = []


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Sets whether checkpoints in the block stop recomputing once all saved tensors exist."""
    _stops_early.append(enable)
    try:
        yield
    finally:
        _stops_early.pop()


class _Round:
    """One recomputation, for one backward pass; `count` is the number of tensors saved so far."""

    __slots__ = ("__weakref__", "count")

    def __init__(self) -> None:
        self.count = 0


class _Holder:
    """Replaces one saved tensor. Has the tensor of each round, and None after it was returned."""

    __slots__ = ("__weakref__", "tensors")

    def __init__(self) -> None:
        self.tensors: WeakKeyDictionary[_Round, Tensor | None] = WeakKeyDictionary()


class _Inputs(Node):
    """Holds the input tensors of a checkpoint like a node's saved tensors, so that an outer checkpoint packs them."""

    __slots__ = ()

    def __init__(self, tensors: Sequence[Tensor | None]) -> None:
        super().__init__()
        self.saved, self.versions = tensors, [0 if t is None else t._counter[0] for t in tensors]
        if UNCOUNTED in self.versions:
            raise RuntimeError(messages.INFERENCE_SAVED)
        if operation_watchers.watchers:
            pack_saved_tensors(self)

    @property
    def saved_outputs(self) -> dict[int, int]:
        return {}


class _Frame:
    """One checkpointed call: `again` repeats it, and `is_complete` is set when its forward has ended."""

    def __init__(self, again: Callable[..., None], args: Sequence[Any], form: Form | None, early_stop: bool) -> None:
        self._again = again
        self._others = [None if isinstance(arg, Tensor) else arg for arg in args]
        self._inputs = _Inputs([arg if isinstance(arg, Tensor) else None for arg in args])
        self._form = form
        self._early_stop = _stops_early[-1] if _stops_early else early_stop
        self._holders: list[ref[_Holder]] = []
        self._forms: list[Any] = []
        self._rounds: WeakKeyDictionary[Pass, _Round] = WeakKeyDictionary()
        self._ignores_mismatch = False
        self.is_complete = False

    def hold(self, tensor: Tensor) -> _Holder:
        """The pack hook in forward: drops the tensor and stores its metadata."""
        holder = _Holder()
        self._holders.append(ref(holder))
        self._forms.append(None if self._form is None else self._form(tensor))
        return holder

    def give(self, holder: _Holder) -> Tensor:
        """The unpack hook: the tensor of a holder, after a recomputation if this pass has none yet."""
        current = running.innermost
        current_round = None if current is None else self._rounds.get(current)
        if current_round is None:
            current_round = _Round()
            if current is not None:
                self._rounds[current] = current_round
            self._compute(current_round)
        tensor = holder.tensors.get(current_round)
        if tensor is None:
            raise CheckpointError(_UNPACKED_TWICE)
        holder.tensors[current_round] = None
        return tensor

    def _compute(self, current: _Round) -> None:
        hooks = saved_tensors_hooks(lambda tensor: self._keep(current, tensor), lambda tensor: tensor)
        with suppress(_StopRecomputation), hooks, enable_grad():
            self._again(*self._args())
        if not self._ignores_mismatch:
            self._check(current)

    def _args(self) -> list[Any]:
        tensors = [self._inputs.saved_tensor(place) for place in range(len(self._others))]
        return [other if tensor is None else tensor for tensor, other in zip(tensors, self._others, strict=True)]

    def _keep(self, current: _Round, tensor: Tensor) -> Tensor:
        """Return the pack hook of a recomputation: stores the tensor in the next holder."""
        detached = tensor.detach() if tensor.requires_grad else tensor
        index, current.count = current.count, current.count + 1
        if index >= len(self._holders):
            if self.is_complete:
                raise CheckpointError(_SAVES_MORE + _TIP)
            self._ignores_mismatch = True
            return detached
        holder = self._holders[index]()
        if holder is not None:
            holder.tensors[current] = detached
        if self._early_stop and current.count == len(self._holders):
            raise _StopRecomputation
        return detached

    def _check(self, current: _Round) -> None:
        if len(self._holders) != current.count:
            counts = {"forward": len(self._holders), "again": current.count}
            raise CheckpointError(_COUNT.format(**counts) + _TIP)
        if self._form is None:
            return
        different = ""
        for index, (reference, form) in enumerate(zip(self._holders, self._forms, strict=True)):
            holder = reference()
            tensor = None if holder is None else holder.tensors.get(current)
            if tensor is not None and self._form(tensor) != form:
                different += (
                    f"tensor at position {index}:\nsaved metadata: {form}\nrecomputed metadata: {self._form(tensor)}\n"
                )
        if different:
            text = _FORMS.format(different=different)
            raise CheckpointError(text + _TIP)


_DETERMINISM_CHECKS: dict[str, Form | None] = {"default": _default_form, "none": None}

_REENTRANT_UNSET = (
    "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, calling "
    "checkpoint without use_reentrant will raise an exception. use_reentrant=False is recommended, but if you need to "
    "preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for more details on the "
    "differences between the two variants."
)
_SEQUENTIAL_REENTRANT_UNSET = (
    "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly. In version "
    "2.9 we will raise an exception if use_reentrant is not passed. use_reentrant=False is recommended, but if you "
    "need to preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for more details on "
    "the differences between the two variants."
)
_IN_LIMITED_PASS = (
    "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter to "
    ".backward(). To resolve this error, you can either set use_reentrant=False, or call .backward() without passing "
    "the `inputs` argument."
)
_UNPACKED_TWICE = (
    "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. If you are calling "
    "ctx.saved_tensors in backward, make sure to do so only once. Otherwise please open an issue with details on your "
    "use case."
)
_SAVES_MORE = (
    "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original forward pass.\n"
)
_COUNT = (
    "torch.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation.\n"
    "Number of tensors saved during forward: {forward}\n"
    "Number of tensors saved during recomputation: {again}.\n"
)
_FORMS = (
    "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the "
    "forward pass.\n{different}.\n"
)
_TIP = """
Tip: To see a more detailed error message, either pass `debug=True` to
`torch.utils.checkpoint.checkpoint(...)` or wrap the code block
with `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to
enable checkpoint\u2011debug mode globally.

If this error occurs under torch.compile with automatic_dynamic_shapes enabled,
it may be because the recomputation selected a different compiled graph than the
forward pass (e.g., a dynamic graph instead of the original static graph).
To fix this, either:
  - Use torch._dynamo.mark_dynamic() to explicitly mark varying dimensions as
    dynamic upfront, avoiding the static-to-dynamic transition.
  - Call torch._C._dynamo.eval_frame._set_lru_cache(False) to disable LRU cache
    reordering, which can change which graph is checked first between forward
    and recompute.
See https://github.com/pytorch/pytorch/issues/166926 for more details and
workaround examples.
"""

__getattr__ = lookup_in(__name__)
