"""What `trace` gives: a static graph that is called as the function was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gviz import emit
from gviz.engine import watching
from gviz.engine.jit.executor import Executor, is_planned
from gviz.engine.jit.graph import StaticGraph
from gviz.engine.jit.interpreter import interpret
from gviz.engine.jit.recorder import form_of
from gviz.engine.jit.structure import Structure, flat, mapped, rebuilt
from gviz.engine.jit.text import kind
from gviz.engine.modes import no_grad, thread
from gviz.engine.nn.module import Module
from gviz.engine.tensor import Tensor


class TracedFunction:
    """The recorded operations of a function, on new inputs and without the function.

    They run on planned buffers where only values are wanted. Where a gradient may be wanted, somebody listens, or the
    inputs are not of the recorded shapes, dtypes and layouts, they run as ordinary operations. `takes` and `gives` are
    the structures of arguments and result. One that is not `tracked` gives values only, whoever wants gradients.
    `module_kind` is the class of the module it was, if it was one.
    """

    def __init__(
        self, graph: StaticGraph, takes: Structure, gives: Structure, *, tracked: bool = True, module_kind: str = ""
    ) -> None:
        self.graph, self.tracked, self.module_kind = graph, tracked, module_kind
        self.takes, self.gives = takes, gives
        self.__name__ = self.__qualname__ = graph.name
        self._forms = [node.outputs[0] for node in graph.inputs]
        shared = [node for node in graph.nodes if node.kind == "parameter"]
        self._shared = [node.tensor for node in shared if node.tensor is not None]
        self._shared_forms = [node.outputs[0] for node in shared]
        self._executor = Executor(graph) if is_planned(graph) else None

    def __call__(self, *args: Any) -> Any:
        tensors = self._tensors(args)
        outputs = (
            self._executor.run(tensors) if self._executor and self._is_plain(tensors) else self._interpret(tensors)
        )
        return rebuilt(self.gives, outputs)

    @property
    def code(self) -> str:
        """The operations as readable text."""
        return str(self.graph)

    def save(self, f: Any) -> None:
        """Write the graph to a path or an open file, with its parameters and constants."""
        from gviz.engine.jit.files import save  # which makes such functions

        save(self, f)

    def __repr__(self) -> str:
        operations = sum(1 for _ in self.graph.operations())
        return f"<traced function {self.graph.name}: {operations} operations>"

    def _is_plain(self, tensors: Sequence[Tensor]) -> bool:
        """Whether these inputs can take the way over planned buffers."""
        if emit.channel is not None or (watching.watchers and watching.recorder() is not None):
            return False
        if self.tracked and thread.grad_enabled and _want_gradients(tensors, self._shared):
            return False
        return all(map(form_of, tensors, self._forms)) and all(map(form_of, self._shared, self._shared_forms))

    def _interpret(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        try:
            if self.tracked:
                return interpret(self.graph, tensors)
            with no_grad():
                return interpret(self.graph, tensors)
        except (RuntimeError, IndexError, ValueError) as error:
            other = self._difference(tensors)
            if not other:
                raise
            raise RuntimeError(f"{other}; its operations cannot be run on that: {error}") from None

    def _difference(self, tensors: Sequence[Tensor]) -> str:
        """In which input a call differs from the recorded run; empty if in none."""
        for node, tensor in zip(self.graph.inputs, tensors, strict=True):
            form, array = node.outputs[0], tensor._array
            if (array.shape, array.dtype) != (form.shape, form.dtype):
                got = f"{array.dtype.name}{list(array.shape)}"
                return f"{self.graph.name} was traced with {node.name} of {kind(form)} and is called with {got}"
        return ""

    def _tensors(self, args: tuple[Any, ...]) -> list[Tensor]:
        """The tensors of a call. RuntimeError where there are too many, too few, or others than tensors."""
        if len(args) == 1 == len(self._forms) and isinstance(args[0], Tensor) and self.takes == (0,):
            return [args[0]]
        name, wanted = self.graph.name, arranged(self.takes)
        if len(args) != len(self.takes):
            raise RuntimeError(f"{name}() was traced with {_count(self.takes)} {wanted} and is called with {len(args)}")
        try:
            tensors, takes = flat(args)
        except RuntimeError:
            kinds = ", ".join(type(arg).__name__ for arg in args)
            raise RuntimeError(f"{name}() takes tensors, as it was traced with: {wanted}, not ({kinds})") from None
        if takes != self.takes:
            raise RuntimeError(f"{name}() was traced with {wanted} and is called with {arranged(takes)}")
        return tensors


def _want_gradients(tensors: Sequence[Tensor], shared: Sequence[Tensor]) -> bool:
    return any(t.requires_grad for t in tensors) or any(t._requires_grad for t in shared)


def arranged(takes: Structure) -> str:
    """The arrangement of arguments as text: ``(tensor, [tensor, tensor])``."""
    text = repr(mapped(takes, lambda _: _Word()))
    return text.replace(",)", ")")


class _Word:
    def __repr__(self) -> str:
        return "tensor"


def _count(takes: Structure) -> str:
    return "1 argument" if len(takes) == 1 else f"{len(takes)} arguments"


class TracedModule(Module):
    """A traced module: the parameters, buffers and modules of the original, and its recorded operations."""

    def __init__(self, function: TracedFunction, of: Module) -> None:
        super().__init__()
        for shared in ("_parameters", "_buffers", "_modules"):
            object.__setattr__(self, shared, getattr(of, shared))
        object.__setattr__(self, "training", of.training)
        object.__setattr__(self, "original_name", function.module_kind)
        object.__setattr__(self, "function", function)

    function: TracedFunction
    original_name: str

    @property
    def graph(self) -> StaticGraph:
        """The recorded operations."""
        return self.function.graph

    @property
    def code(self) -> str:
        """The operations as readable text."""
        return self.function.code

    def save(self, f: Any) -> None:
        """Write the graph to a path or an open file, with its parameters and constants."""
        self.function.save(f)

    def forward(self, *args: Any) -> Any:
        """Run the recorded operations."""
        return self.function(*args)

    def extra_repr(self) -> str:
        return f"original_name={self.original_name}"


Traced = TracedFunction | TracedModule
