"""The result of `trace`: a static graph that is called like the function."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from gviz import emit
from gviz.engine import dtypes, operation_watchers, serialization
from gviz.engine.instrumentation import plain_attrs
from gviz.engine.jit.execution_plan import Executor, is_planned
from gviz.engine.jit.graph_tracer import form_of
from gviz.engine.jit.nested_tensors import Structure, flat, mapped, rebuilt
from gviz.engine.jit.static_graph import Form, Node, Ref, StaticGraph, kind
from gviz.engine.jit.tensor_interpreter import interpret
from gviz.engine.modes import no_grad, thread
from gviz.engine.nn.module import Module
from gviz.engine.nn.parameter import Parameter
from gviz.engine.operation_lookup import attributes_of, named, operation
from gviz.engine.tensor import Tensor, WrappedNumber, new_tensor
from gviz.errors import GvizError
from gviz.values.plain_text import clipped, shown


class TracedFunction:
    """The recorded operations of a function, run on new inputs and without the function.

    They run on planned buffers if only values are needed. They run as ordinary operations if a gradient may be needed,
    during a recording, and for inputs whose shape, dtype or layout differs from the recorded one. `takes` and `gives`
    are the structures of arguments and result. A function that is not `tracked` never has gradients. `module_kind` is
    the class of the traced module, if it was one.
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
        """Writes the graph to a path or an open file, with its parameters and constants."""
        save(self, f)

    def __repr__(self) -> str:
        operations = sum(1 for _ in self.graph.operations())
        return f"<traced function {self.graph.name}: {operations} operations>"

    def _is_plain(self, tensors: Sequence[Tensor]) -> bool:
        """Return whether these inputs can run on planned buffers."""
        if emit.channel is not None or (operation_watchers.watchers and operation_watchers.recorder() is not None):
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
        """Return how an input of a call differs from the recorded run; empty if none does."""
        for node, tensor in zip(self.graph.inputs, tensors, strict=True):
            form, array = node.outputs[0], tensor._array
            if (array.shape, array.dtype) != (form.shape, form.dtype):
                got = f"{array.dtype.name}{list(array.shape)}"
                return f"{self.graph.name} was traced with {node.name} of {kind(form)} and is called with {got}"
        return ""

    def _tensors(self, args: tuple[Any, ...]) -> list[Tensor]:
        """Return the tensors of a call. Raises RuntimeError for too many, too few, or anything but tensors."""
        if len(args) == 1 == len(self._forms) and isinstance(args[0], Tensor) and self.takes == (0,):
            return [args[0]]
        name, expected = self.graph.name, arranged(self.takes)
        if len(args) != len(self.takes):
            raise RuntimeError(
                f"{name}() was traced with {_count(self.takes)} {expected} and is called with {len(args)}"
            )
        try:
            tensors, takes = flat(args)
        except RuntimeError:
            kinds = ", ".join(type(arg).__name__ for arg in args)
            raise RuntimeError(f"{name}() takes tensors, as it was traced with: {expected}, not ({kinds})") from None
        if takes != self.takes:
            raise RuntimeError(f"{name}() was traced with {expected} and is called with {arranged(takes)}")
        return tensors


def _want_gradients(tensors: Sequence[Tensor], shared: Sequence[Tensor]) -> bool:
    return any(t.requires_grad for t in tensors) or any(t._requires_grad for t in shared)


def arranged(takes: Structure) -> str:
    """The structure of arguments as text: ``(tensor, [tensor, tensor])``."""
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
        """Writes the graph to a path or an open file, with its parameters and constants."""
        self.function.save(f)

    def forward(self, *args: Any) -> Any:
        """Runs the recorded operations."""
        return self.function(*args)

    def extra_repr(self) -> str:
        return f"original_name={self.original_name}"


Traced = TracedFunction | TracedModule


# ----------------------------------------------------------------------------------------------------------------------
# Traced functions in files, stored like tensors in `torch.save`: plain JSON and raw bytes, no code.
#
# A file is the result of `torch.save` for a dictionary: the nodes as lists of names and numbers, the parameters and
# constants as tensors. Loading looks every operation up by name among the engine's own, and validates everything: a
# node may only refer to earlier ones, and running a graph can do no more than its operations can.


FORMAT = 1
KEY = "gviz static graph"
_DAMAGED = (
    ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, RuntimeError, StopIteration, TypeError,
    ValueError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
_UNRUNNABLE = (ArithmeticError, AttributeError, KeyError, MemoryError, TypeError)
"""Errors of an operation for arguments that no trace contains; wrong inputs raise other errors."""
_DEEPEST = 100
"""The deepest nesting of modules."""
_EFFECTS = ("new", "write", "become")
_KINDS = ("input", "parameter", "constant", "op")


def save(traced: TracedFunction | TracedModule, f: Any) -> None:
    """Writes a traced function or module to a path or an open file. Raises TypeError for anything else."""
    function = traced.function if isinstance(traced, TracedModule) else traced
    if not isinstance(function, TracedFunction):
        raise TypeError(f"jit.save() writes what jit.trace() gives, not {type(traced).__name__}")
    graph = function.graph
    tensors = [node.tensor for node in graph.nodes if node.tensor is not None]
    content = {
        KEY: FORMAT,
        "name": graph.name,
        "nodes": [_plain(node) for node in graph.nodes],
        "outputs": [tuple(ref) for ref in graph.outputs],
        "takes": function.takes,
        "gives": _without_names(function.gives),
        "tensors": tensors,
        "module": function.module_kind,
    }
    serialization.save(content, f)


def load(f: Any, map_location: Any = None, **_: Any) -> TracedFunction | TracedModule:
    """Reads what `save` wrote. Raises GvizError for anything else."""
    try:
        content = serialization.load(f, map_location)
        if not isinstance(content, dict) or KEY not in content:
            raise ValueError("it holds no traced function")
        if content[KEY] != FORMAT:
            raise ValueError(f"it has format {content[KEY]}; this version of gviz reads {FORMAT}")
        return _function(content)
    except OSError as error:
        raise GvizError(f"cannot read {f}: {error.strerror or error}", exit_code=3) from None
    except _DAMAGED as error:
        text = str(error) or type(error).__name__
        why = clipped(f"it has no {text}" if isinstance(error, KeyError) else text, 300)
        raise GvizError("this is no traced function that gviz saved, or it is damaged", why=why, exit_code=3) from None


class LoadedFunction(TracedFunction):
    """A traced function from a file. If the file is damaged, the operation that fails raises an error."""

    def __call__(self, *args: Any) -> Any:
        try:
            return super().__call__(*args)
        except _UNRUNNABLE as error:
            why = clipped(str(error) or type(error).__name__, 300)
            raise GvizError(f"the saved graph {shown(self.graph.name)} cannot be run", why=why, exit_code=3) from None


def _plain(node: Node) -> dict[str, Any]:
    forms = [(form.shape, form.dtype.name, form.strides, form.storage) for form in node.outputs]
    plain: dict[str, Any] = {"kind": node.kind, "name": node.name, "outputs": forms}
    if node.op is None:
        return plain | {"fresh": node.fresh, "number": node.attrs.get("number"), "is_number": "number" in node.attrs}
    return plain | {
        "op": named(node.op),
        "attrs": dict(plain_attrs(node.attrs, _refused)),
        "inputs": [tuple(ref) for ref in node.inputs],
        "effect": node.effect,
        "after": node.after,
        "untracked": node.untracked,
    }


def _refused(value: object) -> NoReturn:
    raise TypeError(f"an argument of type {type(value).__name__} cannot be kept in a file")


def _without_names(structure: Any) -> Any:
    """Return a structure with named tuples replaced by plain ones."""
    if isinstance(structure, tuple):
        return tuple([_without_names(part) for part in structure])
    if isinstance(structure, list):
        return [_without_names(part) for part in structure]
    if isinstance(structure, dict):
        return {key: _without_names(part) for key, part in structure.items()}
    return structure


def _function(content: dict[str, Any]) -> TracedFunction | TracedModule:
    tensors = iter(content["tensors"])
    nodes: list[Node] = []
    for plain in content["nodes"]:
        nodes.append(_node(plain, nodes, tensors))
    outputs = tuple([_ref(ref, nodes) for ref in content["outputs"]])
    graph = StaticGraph(_text(content["name"]), tuple(nodes), outputs)
    takes, gives = content["takes"], content["gives"]
    _check_structure(takes, len(graph.inputs))
    _check_structure(gives, len(outputs))
    if not isinstance(takes, tuple):
        raise ValueError("its arguments are no tuple")
    function = LoadedFunction(graph, takes, gives, module_kind=_text(content["module"]))
    return TracedModule(function, _modules(graph)) if function.module_kind else function


def _node(plain: Any, earlier: list[Node], tensors: Any) -> Node:
    kind, effect = plain["kind"], plain.get("effect", "new")
    if kind not in _KINDS or effect not in _EFFECTS:
        raise ValueError(f"there are no {kind!r} nodes of effect {effect!r}")
    outputs = tuple([_form(*form) for form in plain["outputs"]])
    name = _text(plain["name"])
    if kind == "input":
        if any(node.kind != "input" for node in earlier):
            raise ValueError("an input comes after an operation")
        return Node("input", outputs, name)
    if kind != "op":
        tensor = next(tensors, None)
        if not isinstance(tensor, Tensor):
            raise ValueError("a constant is missing")
        return _outside(plain, outputs, name, tensor)
    op = operation(plain["op"])
    inputs = tuple([_ref(ref, earlier) for ref in plain["inputs"]])
    if not inputs or (not op.takes_list and len(inputs) != len(op.slots)):
        raise ValueError(f"{op.name} takes {len(op.slots)} tensors, not {len(inputs)}")
    after = tuple([int(n) for n in plain["after"] if 0 <= int(n) < len(earlier)])
    attrs = attributes_of(op, plain["attrs"])
    untracked = bool(plain["untracked"])
    return Node("op", outputs, name, None, False, op, attrs, inputs, effect, after, untracked)


def _outside(plain: Any, outputs: tuple[Form, ...], name: str, tensor: Tensor) -> Node:
    attrs = {}
    if plain["is_number"]:
        attrs = {"number": plain["number"]}
        if not isinstance(plain["number"], (bool, int, float)):
            raise ValueError("a number is none")
        tensor = new_tensor(tensor._array, WrappedNumber)
    if (tensor._array.shape, tensor._array.dtype) != (outputs[0].shape, outputs[0].dtype):
        raise ValueError(f"the constant {name!r} is of another shape or dtype than its node")
    return Node(plain["kind"], outputs, name, tensor, bool(plain["fresh"]), attrs=attrs)


def _form(shape: Any, dtype: str, strides: Any, storage: Any) -> Form:
    kind = dtypes.named(dtype).numpy
    sizes, steps = tuple([int(n) for n in shape]), tuple([int(n) for n in strides])
    if len(sizes) != len(steps) or any(n < 0 for n in sizes):
        raise ValueError("a shape and its strides do not fit")
    return Form(sizes, np.dtype(kind), steps, int(storage))


def _ref(plain: Any, nodes: list[Node]) -> Ref:
    node, output_nr = (int(n) for n in plain)
    if not 0 <= node < len(nodes) or not 0 <= output_nr < len(nodes[node].outputs):
        raise ValueError(f"there is no output {output_nr} of a node {node} before it is used")
    return Ref(node, output_nr)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a name is no text")
    return value


def _check_structure(structure: Any, count: int) -> None:
    places: list[Any] = []
    mapped(structure, places.append)
    if places != list(range(count)):
        raise ValueError(f"there are {len(places)} places for {count} tensors")


def _modules(graph: StaticGraph) -> Module:
    """Modules that hold a graph's parameters under their paths."""
    root = Module()
    for node in graph.nodes:
        if node.tensor is None or not node.name:
            continue
        *path, last = node.name.split(".")
        if len(path) > _DEEPEST:
            raise ValueError(f"its modules lie {len(path)} deep")
        owner = root
        for part in path:
            if part not in owner._modules:
                owner.add_module(part, Module())
            inner = owner._modules[part]
            assert inner is not None
            owner = inner
        if isinstance(node.tensor, Parameter):
            owner.register_parameter(last, node.tensor)
        else:
            owner.register_buffer(last, node.tensor)
    return root
