"""Looks at the arguments of a call as PyTorch's parser does, before an operation does, and refuses them in its words.

PyTorch knows the signatures of each function. It takes the first that the arguments fit. Where there is one, or one for
so many arguments, its error names the argument; otherwise it lists what was given.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from operator import index
from typing import Any

import numpy as np

from gviz.engine.arguments import typename
from gviz.engine.dtypes import dtype as DType
from gviz.engine.signatures import FUNCTIONS, INNER, INNER_CALLS, METHODS
from gviz.engine.tensor import Tensor

Arguments = tuple[Any, ...]
Named = Mapping[str, Any]


class Parser:
    """The signatures of one function or method; what has passed once passes quickly."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self._text = text
        self.accepted = dict[Any, tuple[int, ...]]()
        """Types of arguments that fit whatever the values are, with the places of lists that begin with an integer."""

    def refusal(self, args: Arguments, given: Named) -> TypeError | None:
        """The error for arguments that fit no signature; None for others. A method's `args` are without its tensor."""
        types: Any = tuple(map(type, args))
        if given:
            types = types, tuple(given), tuple(map(type, given.values()))
        places = self.accepted.get(types)
        if places is not None:
            for place in places:
                first = (args[place] if place < len(args) else [*given.values()][place - len(args)])[:1]
                if first and type(first[0]) is not int:
                    break
            else:
                return None
        signatures = _signatures(self.name, self._text)
        for signature in signatures:
            if signature.refusal(args, given) is None:
                lists = signature.lists_by_type(args, given)
                if lists is not None:
                    self.accepted[types] = lists
                return signature.refused_elements(args, given)
        count = len(args) + len(given)
        plausible = [s for s in signatures if s.least <= count <= s.most and not s.hidden]
        if len(signatures) == 1 or len(plausible) == 1:
            return (plausible or list(signatures))[0].refusal(args, given)
        got = [typename(value) for value in args] + [f"{name}={typename(value)}" for name, value in given.items()]
        shown = [f"({signature.listed})" for signature in signatures if not signature.hidden]
        ways = shown[0] if len(shown) == 1 else "one of:\n" + "".join([f" * {way}\n" for way in shown])
        what = f"received an invalid combination of arguments - got ({', '.join(got)}), but expected {ways}"
        return TypeError(f"{self.name}() {what}")


class InnerParser(Parser):
    """That of the function that one written in Python calls, with the places of its own parameters there."""

    def __init__(self, function: Callable[..., Any], name: str, text: str, order: Sequence[str]) -> None:
        super().__init__(name, text)
        self._function = inspect.unwrap(function)
        self._order = order

    def refusal(self, args: Arguments, given: Named) -> TypeError | None:
        try:
            bound = _signature_of(self._function).bind(*args, **given)
        except TypeError:
            return None  # Python's own error, as in PyTorch
        bound.apply_defaults()
        return super().refusal(tuple([bound.arguments.get(name, SKIPPED) for name in self._order]), {})


class Skipped:
    """In the place of an argument that is not looked at."""


SKIPPED = Skipped()


def parser_of(name: str, *, method: bool = False) -> Parser | None:
    """The parser of ``torch.<name>`` or ``Tensor.<name>``. None where PyTorch has none, as it is written in Python,
    and for methods without arguments.
    """
    text = METHODS.get(name) if method else FUNCTIONS.get(name, INNER.get(name))
    return Parser(name, text) if text else None


def inner_parser(function: Callable[..., Any], name: str) -> Parser | None:
    """The parser of ``nn.functional.<name>``, or of what that calls. None where nothing is known of it."""
    if name not in INNER_CALLS:
        return None
    called, *order = INNER_CALLS[name].split()
    text = INNER.get(called) or FUNCTIONS[called]
    return InnerParser(function, called, text, order) if order else Parser(called, text)


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
        self.fits = _CHECKS[self.kind]
        self.names = (self.name, *_NUMPY_NAMES.get(self.name, ()))


class Signature:
    """One way to call a function."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.hidden = text.startswith("~")
        self.parameters: list[Parameter] = []
        positional = True
        for part in text.lstrip("~").split(", "):
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

    def refusal(self, args: Arguments, given: Named) -> TypeError | None:
        """Why arguments do not fit; None if they do."""
        if len(args) > self.positional and not self.one_by_one:
            return self._too_many(len(args))
        place, used = 0, 0
        for number, parameter in enumerate(self.parameters):
            if place < len(args):
                if parameter.keyword_only:
                    return self._too_many(len(args))
                value, by_name = args[place], False
            else:
                named = [name for name in parameter.names if name in given]
                if not named:
                    if parameter.optional:
                        continue
                    return self._missing(number)
                value, by_name = given[named[0]], True
            if not (parameter.fits(value) or (value is None and parameter.takes_none)):
                whole = self.one_by_one and not place and not by_name
                if not (whole and _is_ints(args)):
                    return self._unfit(parameter, value, args, -1 if by_name else place, whole)
                place = len(args)
            if by_name:
                used += 1
            else:
                place += 1
        return self._not_known(given, len(args)) if used < len(given) else None

    def lists_by_type(self, args: Arguments, given: Named) -> tuple[int, ...] | None:
        """The places of lists of integers, if other arguments of the same types fit as well; None if they may not."""
        places = []
        for place, (value, parameter) in enumerate(self._pairs(args, given)):
            if isinstance(value, Tensor):
                if parameter.kind not in ("Tensor", "Tensor|Number", "any"):
                    return None
            elif isinstance(value, (tuple, list)):
                if parameter.kind.startswith("ints"):
                    places.append(place)
            elif type(value) not in _PLAIN:
                return None
        return tuple(places)

    def refused_elements(self, args: Arguments, given: Named) -> TypeError | None:
        """The error for a size, after the first of several, that is no integer."""
        for value, parameter in self._pairs(args, given):
            numbers = value if isinstance(value, (tuple, list)) else args if self.one_by_one and args else ()
            if parameter.kind.startswith("ints") and len(numbers) > 1:
                for place, number in enumerate(numbers):
                    if not hasattr(number, "__index__") or (isinstance(number, Tensor) and not _is_int(number)):
                        return TypeError(
                            f"{self.name}(): argument '{parameter.name}' failed to unpack the object at pos "
                            f'{place + 1} with error "type must be tuple of ints,but got {typename(number)}"'
                        )
        return None

    def _pairs(self, args: Arguments, given: Named) -> list[tuple[Any, Parameter]]:
        by_name = {name: parameter for parameter in self.parameters for name in parameter.names}
        return [*zip(args, self.parameters, strict=False), *((v, by_name[n]) for n, v in given.items() if n in by_name)]

    def _too_many(self, count: int) -> TypeError:
        if self.least != self.positional:
            most = f"takes from {self.least} to {self.positional} positional arguments but {count} were given"
        else:
            plural, verb = "" if self.positional == 1 else "s", "was" if count == 1 else "were"
            most = f"takes {self.positional} positional argument{plural} but {count} {verb} given"
        return TypeError(f"{self.name}() {most}")

    def _missing(self, first: int) -> TypeError:
        names = [f'"{p.name}"' for p in self.parameters[first:] if not p.optional]
        plural = "s" if len(names) == 1 else ""  # as PyTorch has it
        return TypeError(f"{self.name}() missing {len(names)} required positional argument{plural}: {', '.join(names)}")

    def _unfit(self, parameter: Parameter, value: Any, args: Arguments, place: int, whole: bool) -> TypeError:
        what = f"{self.name}(): argument '{parameter.name}'"
        if place < 0:
            return TypeError(f"{what} must be {parameter.type}, not {typename(value)}")
        what += f" (position {place + 1}) must be {parameter.type}"
        listed = isinstance(value, (tuple, list))
        if parameter.kind.startswith("ints") and (listed or (whole and len(args) > 1)):
            found = typename((value if listed else args)[0])
            return TypeError(f"{what}, but found element of type {found} at pos 0")
        return TypeError(f"{what}, not {typename(value)}")

    def _not_known(self, given: Named, positional: int) -> TypeError:
        places = {name: i for i, parameter in enumerate(self.parameters) for name in parameter.names}
        for name in given:
            if name not in places:
                return TypeError(f"{self.name}() got an unexpected keyword argument '{name}'")
            if places[name] < positional and name == self.parameters[places[name]].name:
                return TypeError(f"{self.name}() got multiple values for argument '{name}'")
        return TypeError(f"{self.name}() got an unexpected keyword argument '{[*given][-1]}'")


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


def _is_ints(value: Any) -> bool:
    """Whether it is a list of integers, by its first."""
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
    "ints": _is_ints,
    "ints+": lambda value: _is_ints(value) or (_is_int(value) and not isinstance(value, Tensor)),
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
_PLAIN = frozenset([bool, int, float, str, type(None), DType, Skipped])
