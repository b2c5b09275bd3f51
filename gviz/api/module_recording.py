"""One call of a module, recorded to be drawn: ``gviz.export(net, "net.svg", inputs=x)``.

The call runs on a copy. The module, its ``.grad`` and buffers, the inputs and their graphs stay as they are, and so do
the random number generators. Inputs have the names of the parameters of ``forward``. An attribute that cannot be
copied, such as a lock, is shared with the copy."""

from __future__ import annotations

import copy
import inspect
import random
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from gviz import emit, frameworks
from gviz.errors import GvizError
from gviz.result_tensors import tensors_in
from gviz.trace.recording.record import NestedRecording, Recording

NO_INPUTS: Any = object()
"""Stands for inputs that were not given."""


_LIBRARIES = ("torch", "gviz.engine")
_WRITE_TO_LEAF = "leaf Variable that requires grad is being used in an in-place operation"
_REGISTRIES = ("_parameters", "_buffers", "_modules")


def is_module(thing: object) -> bool:
    """Whether an object is a module of PyTorch or of the built-in engine."""
    return _library_of(thing) is not None


def _library_of(thing: object) -> Any:
    """Return the library, PyTorch or the built-in engine, whose module an object is; None for anything else."""
    for name in _LIBRARIES:
        library = sys.modules.get(name)
        kind = getattr(getattr(library, "nn", None), "Module", None)
        if isinstance(kind, type) and isinstance(thing, kind):
            return library
    return None


def recorded_call(
    module: Any, inputs: Any, named: list[tuple[str, Any]], *, backward: bool
) -> tuple[Recording | NestedRecording, dict[int, str]]:
    """Record one forward of a copy of a module, and with `backward` the backward pass from the sum of its results.

    Returns the recording, and the names of the nodes of the inputs and of the tensors in `named`.
    """
    args, keywords = _arguments(inputs)
    try:
        bound = inspect.signature(module.forward).bind(*args, **keywords)
    except TypeError as error:
        what = f"the inputs do not fit {type(module).__name__}.forward: {error}"
        raise GvizError(what, hint="inputs=(x, mask) or inputs={'x': x, 'mask': mask}", exit_code=2) from error
    library = _library_of(module)
    if backward and not library.is_grad_enabled():
        _refuse_backward(library)
    try:
        return _recorded(module, bound, named, _Copies(library), backward=backward)
    except RuntimeError as error:
        results = any(tensor.grad_fn is not None for tensor, _ in tensors_in(bound.arguments))
        if not results or _WRITE_TO_LEAF not in str(error):
            raise
        return _recorded(module, bound, named, _Copies(library, writable=True), backward=backward)


def _recorded(
    original: Any, bound: inspect.BoundArguments, named: list[tuple[str, Any]], copies: _Copies, *, backward: bool
) -> tuple[Recording | NestedRecording, dict[int, str]]:
    bound = copy.copy(bound)
    with emit.detour(None):  # under ``gviz run`` the program is recorded, and the copying is not part of it
        module = copies.of_module(original)
        bound.arguments = {name: copies.of_input(name, value) for name, value in bound.arguments.items()}
    inputs = [(name, tensor) for name, value in bound.arguments.items() for tensor, _ in tensors_in(value)]
    with _same_state(original, copies.library), frameworks.record() as recording:
        for _, tensor in inputs:
            _announce_external(recording, tensor)
        result = module(*bound.args, **bound.kwargs)
        tensors = [tensor for tensor, _ in tensors_in(result)]
        if backward:
            _backward(module, tensors)
    names = {recording.node_of(tensor): name for name, tensor in inputs}
    names |= {recording.node_of(copies.of_tensor(tensor)): name for name, tensor in named}
    return recording, {node: name for node, name in names.items() if node}


class _Copies:
    """Copies of a module and of its inputs, in which a tensor that occurs twice has one copy.

    The copy of an operation's result is a leaf. If `writable`, it is a result, because a leaf that requires a gradient
    refuses in-place operations.
    """

    def __init__(self, library: Any, *, writable: bool = False) -> None:
        self.library = library
        self._writable = writable
        self._copied: dict[int, Any] = {}
        """The copies by the ids of the originals, as `copy.deepcopy` keeps them."""

    def of_module(self, module: Any) -> Any:
        """Return a copy of a module. Raises GvizError if it has none."""
        for part in module.modules():
            for tensor, _ in tensors_in(vars(part)):
                if tensor.grad_fn is not None:  # such as a stored result, which deepcopy refuses
                    self._detach(tensor)
        try:
            return self._deepcopy(module)
        except Exception:
            self._share_attributes(module)
        try:
            return self._deepcopy(module)
        except Exception as error:
            raise _cannot_be_copied(type(module).__name__, error) from error

    def of_input(self, name: str, value: Any) -> Any:
        """Return a copy of an input without its graph. Raises GvizError for tensors in something without a copy."""
        tensors = [tensor for tensor, _ in tensors_in(value)]
        for tensor in tensors:
            if not isinstance(tensor, self.library.nn.Parameter):
                self._detach(tensor)
        try:
            return self._deepcopy(value)
        except Exception as error:
            if tensors:
                raise _cannot_be_copied(f"the input {name}", error) from error
            return value

    def of_tensor(self, tensor: Any) -> Any:
        """Return the copy of a tensor, or the tensor itself if it was not copied."""
        return self._copied.get(id(tensor), tensor)

    def _detach(self, tensor: Any) -> None:
        """Copy a tensor without its graph."""
        if id(tensor) in self._copied:
            return
        copied = tensor.detach().clone().requires_grad_(tensor.requires_grad)
        self._copied[id(tensor)] = copied.clone() if self._writable and tensor.grad_fn is not None else copied

    def _share_attributes(self, module: Any) -> None:
        """Let the copy have those attributes of the original that cannot be copied."""
        for part in module.modules():
            for name, value in vars(part).items():
                if name in _REGISTRIES:
                    continue
                try:
                    copy.deepcopy(value, dict(self._copied))
                except Exception:
                    self._copied[id(value)] = value

    def _deepcopy(self, thing: Any) -> Any:
        """Copy a thing. A failed attempt leaves no half copies behind."""
        copied = dict(self._copied)
        result = copy.deepcopy(thing, copied)
        self._copied = copied
        return result


def _cannot_be_copied(what: str, error: Exception) -> GvizError:
    return GvizError(
        f"{what} cannot be copied: {type(error).__name__}: {error}",
        why="a picture comes from a copy, so that the module and its inputs stay as they are",
        hint="record the call with gviz.record() as run, then gviz.export(run, ...)",
        exit_code=2,
    )


def _announce_external(recording: Recording | NestedRecording, tensor: Any) -> None:
    """Announce an input outside of the module: at its first use it would belong to an inner one."""
    if hasattr(tensor, "_seen"):  # of the built-in engine
        from gviz.engine import instrumentation

        instrumentation.seen(recording.channel, tensor)
    else:
        recording.announce(tensor)


def _arguments(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return positional and named arguments for ``forward``."""
    if isinstance(inputs, Mapping) and all(isinstance(name, str) for name in inputs):
        return (), dict(inputs)
    return (tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)), {}


def _refuse_backward(library: Any) -> None:
    mode = "inference_mode" if library.is_inference_mode_enabled() else "no_grad"
    hint = f"draw the module outside of {mode}, or without backward=True"
    raise GvizError(f"autograd is off here: {mode}", hint=hint, exit_code=2)


def _backward(module: Any, tensors: list[Any]) -> None:
    floating = [tensor for tensor in tensors if tensor.requires_grad]
    if not floating:
        raise GvizError(f"no result of {type(module).__name__} requires a gradient", hint="backward=False", exit_code=2)
    total = _sum(floating[0])
    for tensor in floating[1:]:
        total = total + _sum(tensor)
    total.backward()


def _sum(tensor: Any) -> Any:
    """Return the sum of a tensor, of its real parts if it is complex."""
    return (tensor.real if tensor.dtype.is_complex else tensor).sum()


@contextmanager
def _same_state(module: Any, library: Any) -> Iterator[None]:
    """Restore the random number generators, whether autograd is on, and the `.grad` of the module's parameters.

    A scripted module's copy computes from the parameters of the original.
    """
    with ExitStack() as restored, library.set_grad_enabled(library.is_grad_enabled()):
        for parameter in module.parameters():
            restored.callback(setattr, parameter, "grad", parameter.grad)
            parameter.grad = None
        restored.callback(random.setstate, random.getstate())
        if (numpy := sys.modules.get("numpy")) is not None:
            restored.callback(numpy.random.set_state, numpy.random.get_state())
        for one in {id(one): one for name in _LIBRARIES if (one := sys.modules.get(name)) is not None}.values():
            if hasattr(one, "get_rng_state"):
                restored.callback(one.set_rng_state, one.get_rng_state())
        cuda: Any = getattr(library, "cuda", None)
        if hasattr(cuda, "get_rng_state_all") and cuda.is_initialized():
            restored.callback(cuda.set_rng_state_all, cuda.get_rng_state_all())
        yield
