"""PyTorch's parser: it checks the arguments of a call before the operation does, and raises PyTorch's errors.

PyTorch knows the signatures of each function and takes the first that the arguments match. If none matches and a single
signature has this number of arguments, the error names the wrong argument. Otherwise the error lists the arguments
passed.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from operator import index
from types import FunctionType
from typing import Any

import numpy as np

from gviz.engine.arguments import F, missing_arguments, typename
from gviz.engine.dtypes import dtype as DType
from gviz.engine.instrumentation import emitting_parts
from gviz.engine.messages import warn_once
from gviz.engine.signatures import FUNCTIONS, INNER, INNER_CALLS, METHODS
from gviz.engine.tensor import Tensor
from gviz.source.call_stack import forwards

Arguments = tuple[Any, ...]
Named = Mapping[str, Any]
Reads = Sequence[tuple[str, str]]
"""Pairs of a parameter and the attribute of it that a function reads first."""


class Parser:
    """The signatures of one function or method. Types that matched once are not checked again."""

    def __init__(self, name: str, text: str, *, method: bool = False) -> None:
        self.name = name
        self._text = text
        self._first = int(method)
        """The number of arguments before those of the signatures: the tensor of a method."""
        self.accepted = dict[Any, tuple[int | str, ...]]()
        """Types of arguments that match for all values, see `_types`, with the places of lists of integers."""
        self.before: Callable[..., None] | None = None
        """Called with the arguments of a call that failed; it raises the error that PyTorch would raise first."""

    def wrap(self, function: F) -> F:
        """Wraps `function` so that the parser checks its arguments first. Numbers may be passed as one-element tensors.

        Raises TypeError with PyTorch's text if no signature matches.
        """
        accepted, read = self.accepted, self.read

        @forwards
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            # `_types` inlined for the most common cases: each function of the engine goes through here.
            count = len(args)
            if kwargs:
                if count == 1 == len(kwargs):
                    for name in kwargs:
                        types: Any = (args[0].__class__, name, kwargs[name].__class__)
                else:
                    types = _types(args, kwargs)
            elif count == 1:
                types = args[0].__class__
            elif count == 2:
                types = (args[0].__class__, args[1].__class__)
            elif count == 3:
                types = (args[0].__class__, args[1].__class__, args[2].__class__)
            else:
                types = tuple(map(type, args))
            lists = accepted.get(types)
            if lists is None or (lists and not _begin_with_ints(lists, args, kwargs)):
                args, kwargs = read(args, kwargs)
            try:
                return function(*args, **kwargs)
            except (RuntimeError, IndexError, ValueError):
                if self.before is None:
                    raise
                earlier = _raised(self.before, args, kwargs)
                if earlier is None:
                    raise
            raise earlier

        return wrapper  # type: ignore[return-value]  # the same signature

    def read(self, args: Arguments, kwargs: dict[str, Any]) -> tuple[Arguments, dict[str, Any]]:
        """The arguments as the function takes them. Raises TypeError if no signature matches."""
        if self._first and args and not isinstance(args[0], Tensor):
            whole = f"descriptor '{self.name}' for 'torch._C.TensorBase' objects"
            raise TypeError(f"{whole} doesn't apply to a '{typename(args[0])}' object")
        signature = self.fitting(args[self._first :], kwargs)
        if signature.deprecated:
            self._warn_of(signature)
            taken, named = signature.by_name(args[self._first :], kwargs)
            return (*args[: self._first], *taken), named
        lists = signature.lists_by_type(args[self._first :], kwargs)
        if lists is not None:
            self.accepted[_types(args, kwargs)] = tuple([p if isinstance(p, str) else p + self._first for p in lists])
            return args, kwargs
        taken, named = signature.numbers(args[self._first :], kwargs)
        return (*args[: self._first], *taken), named

    def fitting(self, args: Arguments, kwargs: Named) -> Signature:
        """The first signature that matches. Raises TypeError if none does."""
        signatures = _signatures(self.name, self._text)
        for signature in signatures:
            if signature.refusal(args, kwargs) is None:
                refused = signature.refused_elements(args, kwargs)
                if refused is not None:
                    raise refused
                return signature
        count = len(args) + len(kwargs)
        shown = [signature for signature in signatures if not signature.hidden]
        plausible = [signature for signature in shown if signature.least <= count <= signature.most]
        if len(signatures) == 1 or len(plausible) == 1:
            refused = (plausible or list(signatures))[0].refusal(args, kwargs)
            assert refused is not None, "it was refused before"
            raise refused
        mismatch = _mismatch(shown, args, kwargs)
        raise TypeError(f"{self.name}() received an invalid combination of arguments - {mismatch}")

    def _warn_of(self, deprecated: Signature) -> None:
        signatures = [f"\n\t{self.name}({one.listed})" for one in _signatures(self.name, self._text) if not one.hidden]
        warn_once(
            f"This overload of {self.name} is deprecated:\n\t{self.name}({deprecated.listed})\n"
            f"Consider using one of the following signatures instead:{''.join(signatures)}",
            "an overload that is deprecated",
        )


class InnerParser(Parser):
    """The parser of an inner function that a Python function calls, with the positions of the outer parameters."""

    def __init__(
        self, function: Callable[..., Any], name: str, text: str, order: Sequence[str], reads: Reads = ()
    ) -> None:
        super().__init__(name, text)
        self._reads = reads
        self._function = inspect.unwrap(function)
        self._order = order

    def read(self, args: Arguments, kwargs: dict[str, Any]) -> tuple[Arguments, dict[str, Any]]:
        try:
            bound = _signature_of(self._function).bind(*args, **kwargs)
        except TypeError:
            return args, kwargs  # Python raises its own error, as in PyTorch
        outer = {*bound.arguments}
        bound.apply_defaults()
        inner = tuple([bound.arguments.get(name, SKIPPED) for name in self._order])
        try:
            signature = self.fitting(inner, {})
        except TypeError:
            _read_attributes(self._reads, bound.arguments)
            raise
        lists = signature.lists_by_type(inner, {})
        if lists is not None:
            names = [self._order[place] for place in lists if isinstance(place, int)]
            places = {
                name: place for place, name in enumerate([*_signature_of(self._function).parameters][: len(args)])
            }
            self.accepted[_types(args, kwargs)] = tuple([places.get(name, name) for name in names if name in outer])
            return args, kwargs
        taken, _ = signature.numbers(inner, {})
        for name, value in zip(self._order, taken, strict=True):
            if name in outer:
                bound.arguments[name] = value
        return bound.args, bound.kwargs


def _raised(call: Callable[..., None], args: Arguments, kwargs: Named) -> RuntimeError | None:
    try:
        call(*args, **kwargs)
    except RuntimeError as error:
        return error
    return None


def _types(args: Arguments, kwargs: Named) -> Any:
    """Return the types of arguments: a single one bare, several as a tuple; each keyword argument is preceded by its
    name.
    """
    if not kwargs:
        return args[0].__class__ if len(args) == 1 else tuple(map(type, args))
    return (*map(type, args), *[part for name, value in kwargs.items() for part in (name, value.__class__)])


def _begin_with_ints(lists: Sequence[int | str], args: Arguments, kwargs: Named) -> bool:
    """Return whether the lists at these positions or names are empty or start with an integer."""
    for place in lists:
        value = args[place] if place.__class__ is int else kwargs[place]  # type: ignore[index]  # an int or a name
        if value and value[0].__class__ is not int:
            return False
    return True


class UncheckedArgument:
    """Stands for an argument that is not checked."""


SKIPPED = UncheckedArgument()


def parser_of(name: str, *, method: bool = False) -> Parser | None:
    """The parser of ``torch.<name>`` or ``Tensor.<name>``.

    None for functions that are written in Python in PyTorch, and for methods without arguments.
    """
    text = METHODS.get(name) if method else FUNCTIONS.get(name, INNER.get(name))
    return Parser(name, text, method=method) if text else None


def inner_parser(function: Callable[..., Any], name: str, reads: Reads = ()) -> Parser | None:
    """The parser of ``nn.functional.<name>``, or of the function it calls; None if unknown."""
    if name not in INNER_CALLS:
        return None
    called, *order = INNER_CALLS[name].split()
    text = INNER.get(called) or FUNCTIONS[called]
    return InnerParser(function, called, text, order, reads) if order else Parser(called, text)


def _mismatch(signatures: Sequence[Signature], args: Arguments, kwargs: Named) -> str:
    """The arguments passed and the signatures, in PyTorch's words: it has the keyword arguments in reverse order."""
    named = [*kwargs][::-1]
    if len(signatures) == 1:
        required = {parameter.name for parameter in signatures[0].parameters if not parameter.optional}
        unknown = [name for name in named if name not in required]  # PyTorch finds no name that has a default
        if unknown:
            return f"got unrecognized keyword arguments: {', '.join(unknown)}"
        expected = f"({signatures[0].listed})"
    else:
        expected = "one of:\n" + "".join([f" * ({signature.listed})\n" for signature in signatures])
    got = ", ".join([typename(value) for value in args] + [f"{name}={typename(kwargs[name])}" for name in named])
    return f"got ({got}{', ' if named and not args else ''}), but expected {expected}"


class Parameter:
    """One parameter of a signature: ``kind? name=default``."""

    def __init__(self, text: str, keyword_only: bool) -> None:
        declared, _, default = text.partition("=")
        kind, self.name = declared.split()
        self.takes_none = kind.endswith("?") or default in ("None", "()")
        self.kind = kind.rstrip("?")
        self.optional = bool(default)
        self.keyword_only = keyword_only
        self.type = _TYPE_NAMES.get(self.kind, self.kind)
        self.listed = f"{self.type} {self.name}" + (f" = {default}" if default else "")
        self.fits = _CHECKS["dim" if self.kind == "int" and self.name in _DIMS else self.kind]
        self.names = (self.name, *_NUMPY_NAMES.get(self.name, ()))


class Signature:
    """One signature of a function."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.deprecated = text.startswith("!")
        self.hidden = self.deprecated or text.startswith("~")
        self.parameters: list[Parameter] = []
        positional = True
        for part in text.lstrip("~!").split(", "):
            if part == "*":
                positional = False
            elif part:
                self.parameters.append(Parameter(part, not positional))
        self.positional = sum(not p.keyword_only for p in self.parameters)
        self.least = sum(not p.optional for p in self.parameters)
        self.most = len(self.parameters)
        self.one_by_one = self.positional == 1 and self.parameters[0].kind in ("ints", "ints+")
        parts = [p.listed for p in self.parameters]
        if self.most > self.positional:
            parts.insert(self.positional, "*")
        self.listed = ", ".join(parts)

    def refusal(self, args: Arguments, kwargs: Named) -> TypeError | None:
        """The error for arguments that do not match; None if they do."""
        if len(args) > self.positional and not self.one_by_one:
            return self._too_many(len(args))
        place, used = 0, 0
        for number, parameter in enumerate(self.parameters):
            if place < len(args):
                if parameter.keyword_only:
                    return self._too_many(len(args))
                value, by_name = args[place], False
            else:
                named = [name for name in parameter.names if name in kwargs]
                if not named:
                    if parameter.optional:
                        continue
                    return self._missing(number)
                value, by_name = kwargs[named[0]], True
            if not (parameter.fits(value) or (value is None and parameter.takes_none)):
                whole = self.one_by_one and not place and not by_name
                if not (whole and _is_ints(args)):
                    return self._unfit(parameter, value, args, -1 if by_name else place, whole)
                place = len(args)
            if by_name:
                used += 1
            else:
                place += 1
        return self._not_known(kwargs, len(args)) if used < len(kwargs) else None

    def lists_by_type(self, args: Arguments, kwargs: Named) -> tuple[int | str, ...] | None:
        """The places of lists of integers, if matching depends on types only; None if other values may not match."""
        places: list[int | str] = []
        for place, value, parameter in self._pairs(args, kwargs):
            if isinstance(value, Tensor):
                if parameter.kind not in ("Tensor", "Tensor|Number", "any"):
                    return None
            elif isinstance(value, (tuple, list)):
                if parameter.kind.startswith("ints"):
                    places.append(place)
            elif type(value) not in _PLAIN:
                return None
        return tuple(places)

    def numbers(self, args: Arguments, kwargs: Named) -> tuple[Arguments, dict[str, Any]]:
        """The matching arguments, with one-element tensors converted to numbers where numbers are expected."""
        taken, named = list(args), dict(kwargs)
        for place, value, parameter in self._pairs(args, kwargs):
            if isinstance(value, Tensor) and parameter.kind in _NUMBERS:
                number = value.item()
                if isinstance(place, int):
                    taken[place] = number
                else:
                    named[place] = number
        return tuple(taken), named

    def by_name(self, args: Arguments, kwargs: Named) -> tuple[Arguments, dict[str, Any]]:
        """The matching arguments of a deprecated signature, with its numbers as the keyword arguments of today."""
        taken, named = self.numbers(args, kwargs)
        pairs = list(zip(self.parameters, taken, strict=False))
        numbers = {parameter.name: value for parameter, value in pairs if parameter.kind == "Number"}
        return tuple([value for parameter, value in pairs if parameter.name not in numbers]), numbers | named

    def refused_elements(self, args: Arguments, kwargs: Named) -> TypeError | None:
        """The error for a size after the first that is not an integer, or None."""
        for _, value, parameter in self._pairs(args, kwargs):
            numbers = value if isinstance(value, (tuple, list)) else args if self.one_by_one and args else ()
            if parameter.kind.startswith("ints") and len(numbers) > 1:
                for place, number in enumerate(numbers):
                    if not hasattr(number, "__index__") or (isinstance(number, Tensor) and not _is_int(number)):
                        return TypeError(
                            f"{self.name}(): argument '{parameter.name}' failed to unpack the object at pos "
                            f'{place + 1} with error "type must be tuple of ints,but got {typename(number)}"'
                        )
        return None

    def _pairs(self, args: Arguments, kwargs: Named) -> list[tuple[int | str, Any, Parameter]]:
        """Return each argument with its position or name, and its parameter."""
        by_name = {name: parameter for parameter in self.parameters for name in parameter.names}
        placed: list[tuple[int | str, Any, Parameter]] = [
            (place, *pair) for place, pair in enumerate(zip(args, self.parameters, strict=False))
        ]
        return placed + [(name, value, by_name[name]) for name, value in kwargs.items() if name in by_name]

    def _too_many(self, count: int) -> TypeError:
        if self.least != self.positional:
            most = f"takes from {self.least} to {self.positional} positional arguments but {count} were given"
        else:
            plural, verb = "" if self.positional == 1 else "s", "was" if count == 1 else "were"
            most = f"takes {self.positional} positional argument{plural} but {count} {verb} given"
        return TypeError(f"{self.name}() {most}")

    def _missing(self, first: int) -> TypeError:
        return missing_arguments(self.name, [p.name for p in self.parameters[first:] if not p.optional])

    def _unfit(self, parameter: Parameter, value: Any, args: Arguments, place: int, whole: bool) -> TypeError:
        what = f"{self.name}(): argument '{parameter.name}'"
        if place < 0:
            return TypeError(f"{what} must be {parameter.type}, not {typename(value)}")
        what += f" (position {place + 1}) must be {parameter.type}"
        listed = isinstance(value, (tuple, list))
        if parameter.kind.startswith("ints") and (listed or (whole and len(args) > 1)):
            kind = typename((value if listed else args)[0])
            return TypeError(f"{what}, but found element of type {kind} at pos 0")
        return TypeError(f"{what}, not {typename(value)}")

    def _not_known(self, kwargs: Named, positional: int) -> TypeError:
        places = {name: i for i, parameter in enumerate(self.parameters) for name in parameter.names}
        for name in kwargs:
            if name not in places:
                return TypeError(f"{self.name}() got an unexpected keyword argument '{name}'")
            if places[name] < positional and name == self.parameters[places[name]].name:
                return TypeError(f"{self.name}() got multiple values for argument '{name}'")
        return TypeError(f"{self.name}() got an unexpected keyword argument '{[*kwargs][-1]}'")


@cache
def _signatures(name: str, text: str) -> tuple[Signature, ...]:
    return tuple([Signature(name, one) for one in text.split(" | ")])


_signature_of = cache(inspect.signature)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


def _is_float(value: Any) -> bool:
    if isinstance(value, Tensor):
        return not value.ndim and not value.requires_grad
    return isinstance(value, (int, float, np.number, np.bool_))


def _is_number(value: Any) -> bool:
    return _is_float(value) or isinstance(value, complex)


def _is_int(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.numel() == 1 and value.dtype.numpy.kind in "iu" and not value.requires_grad
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_dim(value: Any) -> bool:
    return _is_int(value) and not (isinstance(value, Tensor) and value.ndim)


_DIMS = frozenset((
    "axis0", "axis1", "chunks", "dim", "dim0", "dim1", "dimension", "end_dim", "n", "num_classes", "offset",
    "start_dim",
))  # fmt: skip
"""The parameters that take no tensor but a 0-dimensional one. Other integers may be any tensor of one element."""


def _is_ints(value: Any) -> bool:
    """Return whether `value` is a list of integers, judged by its first element."""
    if not isinstance(value, (tuple, list)):
        return False
    if not value or type(value[0]) is int:
        return True
    if isinstance(value[0], (bool, np.bool_)) or not hasattr(value[0], "__index__"):
        return False
    try:
        index(value[0])
    except (TypeError, ValueError, RuntimeError):
        return False
    return True


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "any": lambda value: True,
    "Tensor": _is_tensor,
    "Tensor|Number": lambda value: isinstance(value, Tensor) or _is_number(value),
    "Tensors": lambda value: isinstance(value, (tuple, list)),
    "Number": _is_number,
    "float": _is_float,
    "int": _is_int,
    "dim": _is_dim,
    "ints": _is_ints,
    "ints+": lambda value: _is_ints(value) or _is_int(value),
    "bool": lambda value: isinstance(value, (bool, np.bool_)),
    "str": lambda value: isinstance(value, str),
    "dtype": lambda value: isinstance(value, DType) or value in (bool, int, float, complex),
    "Generator": lambda value: hasattr(value, "initial_seed"),
}
_CHECKS |= {
    kind: lambda value, check=check: value is SKIPPED or check(value)  # type: ignore[misc]
    for kind, check in _CHECKS.items()
}

_TYPE_NAMES = {
    "Tensor|Number": "Tensor",
    "Tensors": "tuple of Tensors",
    "ints": "tuple of ints",
    "ints+": "tuple of ints",
    "dtype": "torch.dtype",
    "Generator": "torch.Generator",
}
_NUMPY_NAMES = {"dim": ("axis",), "keepdim": ("keepdims",), "input": ("x", "a", "x1"), "other": ("x2",)}
_NUMBERS = frozenset(["Number", "float", "int", "ints+"])
_PLAIN = frozenset([bool, int, float, str, type(None), DType, UncheckedArgument])


# ----------------------------------------------------------------------------------------------------------------------
# PyTorch's error for an argument that should be a tensor.
#
# Only the first argument is checked before a call. A later one that is not a tensor makes the function fail, and its
# error is replaced then. Other errors stay as they are.


def wanting_tensors(
    function: F, called: str, parser: Parser | None = None, *, method: bool = False, reads: Reads = ()
) -> F:
    """Wraps `function` so that wrong arguments raise PyTorch's errors: by its `parser`, or by its annotations.

    Without a parser it checks the parameters annotated as tensors or integers; without any, it returns `function`
    itself. Errors use the name `called`. The first argument of a `method` is a tensor, and is not counted. An argument
    that is no tensor and lacks an attribute in `reads` raises AttributeError instead.
    """
    if parser is not None:
        return parser.wrap(function)
    first = 1 if method else 0
    tensors, whole = _parameters(function, first, "Tensor"), _parameters(function, first, "int")
    if not (tensors or whole):
        return function

    leads = bool(tensors) and tensors[0][0] == 0

    def refused(args: Arguments, kwargs: Named, position: int, name: str, value: object) -> TypeError:
        try:
            _signature_of(function).bind(*args, **kwargs)
        except TypeError:
            function(*args, **kwargs)  # Python raises its own error, as in PyTorch
        if reads:
            _read_attributes(reads, {**dict(zip([name for _, name in tensors], args, strict=False)), **kwargs})
        return _refusal(called, position, name, value)

    @forwards
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if leads and args and not isinstance(args[0], Tensor):
            raise refused(args, kwargs, *tensors[0], args[0])
        try:
            return function(*args, **kwargs)
        except _OF_OPERANDS as error:
            for position, name in tensors:
                argument = args[position] if position < len(args) else kwargs.get(name, _UNSET)
                if argument is not _UNSET and not isinstance(argument, Tensor):
                    raise refused(args, kwargs, position - method, name, argument) from error
            for position, name in whole:
                argument = args[position] if position < len(args) else kwargs.get(name, 0)
                if not hasattr(argument, "__index__"):
                    what = f"{called}(): argument '{name}' (position {position + 1 - method}) must be int"
                    raise TypeError(f"{what}, not {typename(argument)}") from error
            raise

    return wrapper  # type: ignore[return-value]  # the same signature


def several(tensors: tuple[Any, ...]) -> Sequence[Tensor]:
    """The tensors passed separately or as one list. Raises TypeError for anything that is not a tensor."""
    listed: Sequence[Tensor] = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    all_tensors(listed)
    return listed


def all_tensors(values: Iterable[object], argument: int = 0) -> None:
    """Raises TypeError for the first item that is not a tensor; `argument` is the position in the error."""
    for place, one in enumerate(values):
        if not isinstance(one, Tensor):
            raise TypeError(f"expected Tensor as element {place} in argument {argument}, but got {typename(one)}")


_UNSET = object()
_OF_OPERANDS = (AttributeError, TypeError, RuntimeError, ValueError, IndexError, ArithmeticError, KeyError)
"""Errors that operations raise for their arguments. PyTorch checks the types of all arguments before anything else."""
_OURS = __name__.rpartition(".")[0]


def want_tensors(namespace: dict[str, Any], prefix: str = "", reads: Reads = ()) -> None:
    """Wraps every public function of a module so that it raises PyTorch's errors; `prefix` precedes the name.

    `reads` are the attributes of arguments that the functions read first.
    """
    for name, thing in list(namespace.items()):
        if not name.startswith("_") and isinstance(thing, FunctionType) and thing.__module__.startswith(_OURS):
            parser = parser_of(prefix + name) if prefix else inner_parser(thing, name, reads)
            wrapped = wanting_tensors(emitting_parts(thing), prefix + name, parser, reads=reads)
            if wrapped is not thing:  # pickle finds the wrapper by these names
                wrapped.__module__, wrapped.__qualname__ = namespace["__name__"], name
            namespace[name] = wrapped


def _parameters(function: Callable[..., Any], first: int, kind: str) -> list[tuple[int, str]]:
    """Return the parameters from position `first` on that are annotated with `kind`."""
    function = inspect.unwrap(function)
    signature = getattr(function, "__signature__", None)
    if signature is not None:
        annotations = {name: parameter.annotation for name, parameter in signature.parameters.items()}
        names = tuple(annotations)
    else:  # faster than inspect.signature: there are hundreds of functions
        annotations, code = function.__annotations__, function.__code__
        names = code.co_varnames[: code.co_argcount]
    return [(i, name) for i, name in enumerate(names) if i >= first and annotations.get(name) == kind]


def _read_attributes(reads: Reads, arguments: Named) -> None:
    """Read attributes of arguments that are no tensors; Python raises AttributeError for the first that is missing."""
    for name, attribute in reads:
        if name in arguments and not isinstance(arguments[name], Tensor):
            getattr(arguments[name], attribute)


def _refusal(called: str, position: int, name: str, value: object) -> TypeError:
    name = "input" if name == "self" else name
    what = f"{called}(): argument '{name}' (position {position + 1}) must be Tensor"
    return TypeError(f"{what}, not {typename(value)}")
