"""Says of an argument that should be a tensor, and is none, what PyTorch says.

Before a call only the first argument is looked at: another that is no tensor sooner or later fails, be it only at
the shape of the first, and is named then. What has nothing to do with operands is told as it is.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any, TypeVar

from gviz.engine.arguments import typename
from gviz.engine.parser import Parser, inner_parser, parser_of
from gviz.engine.returned import telling_parts
from gviz.engine.tensor import Tensor
from gviz.site import forwards

F = TypeVar("F", bound=Callable[..., Any])


def wanting_tensors(function: F, called: str, parser: Parser | None = None, *, method: bool = False) -> F:
    """`function`, which refuses arguments in PyTorch's words: as its `parser` does, or those that should be a tensor or
    an integer; itself without a parser and such parameters.

    Errors say it is `called` so. The first argument of a `method` is a tensor, and not counted.
    """
    if parser is not None:
        return parser.wrap(function)
    first = 1 if method else 0
    wanted, whole = _parameters(function, first, "Tensor"), _parameters(function, first, "int")
    if not (wanted or whole):
        return function

    leads = bool(wanted) and wanted[0][0] == 0

    @forwards
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if leads and args and not isinstance(args[0], Tensor):
            raise _refusal(called, *wanted[0], args[0])
        try:
            return function(*args, **kwargs)
        except _OF_OPERANDS as error:
            for position, name in wanted:
                given = args[position] if position < len(args) else kwargs.get(name, _NOT_GIVEN)
                if given is not _NOT_GIVEN and not isinstance(given, Tensor):
                    raise _refusal(called, position - method, name, given) from error
            for position, name in whole:
                given = args[position] if position < len(args) else kwargs.get(name, 0)
                if not hasattr(given, "__index__"):
                    what = f"{called}(): argument '{name}' (position {position + 1 - method}) must be int"
                    raise TypeError(f"{what}, not {typename(given)}") from error
            raise

    return wrapper  # type: ignore[return-value]  # the same signature


def several(given: tuple[Any, ...]) -> Sequence[Tensor]:
    """The tensors given one by one, or as one list. TypeError for what is none."""
    listed: Sequence[Tensor] = given[0] if len(given) == 1 and isinstance(given[0], (tuple, list)) else given
    all_tensors(listed)
    return listed


def all_tensors(given: Iterable[object], argument: int = 0) -> None:
    """Raises TypeError for the first of those given, as an argument at this place, that is no tensor."""
    for place, one in enumerate(given):
        if not isinstance(one, Tensor):
            raise TypeError(f"expected Tensor as element {place} in argument {argument}, but got {typename(one)}")


_NOT_GIVEN = object()
_OF_OPERANDS = (AttributeError, TypeError, RuntimeError, ValueError, IndexError, ArithmeticError, KeyError)
"""What operations raise of what they are given. PyTorch looks at the types of all arguments before at anything else."""
_OURS = __name__.rpartition(".")[0]


def want_tensors(namespace: dict[str, Any], prefix: str = "") -> None:
    """Let every public function of a module refuse arguments in PyTorch's words; `prefix` stands before its name."""
    for name, thing in list(namespace.items()):
        if not name.startswith("_") and isinstance(thing, FunctionType) and thing.__module__.startswith(_OURS):
            parser = parser_of(prefix + name) if prefix else inner_parser(thing, name)
            wrapped = wanting_tensors(telling_parts(thing), prefix + name, parser)
            if wrapped is not thing:  # pickled by its names, it comes back as itself
                wrapped.__module__, wrapped.__qualname__ = namespace["__name__"], name
            namespace[name] = wrapped


def _parameters(function: Callable[..., Any], first: int, kind: str) -> list[tuple[int, str]]:
    """The parameters, from place `first` on, that are annotated as of a kind."""
    function = inspect.unwrap(function)
    signature = getattr(function, "__signature__", None)
    if signature is not None:
        annotations = {name: parameter.annotation for name, parameter in signature.parameters.items()}
        names = tuple(annotations)
    else:  # quicker than to ask for the signature: there are hundreds of functions
        annotations, code = function.__annotations__, function.__code__
        names = code.co_varnames[: code.co_argcount]
    return [(i, name) for i, name in enumerate(names) if i >= first and annotations.get(name) == kind]


def _refusal(called: str, position: int, name: str, given: object) -> TypeError:
    name = "input" if name == "self" else name
    what = f"{called}(): argument '{name}' (position {position + 1}) must be Tensor"
    return TypeError(f"{what}, not {typename(given)}")
