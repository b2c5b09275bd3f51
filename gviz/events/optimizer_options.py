"""The options of an optimizer when it steps (learning rate, momentum, betas …), for each parameter group."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Annotated, Any

import msgspec
import numpy as np

from gviz.values.number_text import number
from gviz.values.plain_text import shown

_LETTERS, _NUMBERS, _NAMES, GROUPS = 40, 8, 32, 64
"""The longest text, tuple, option list and group list that is recorded, whatever a program uses."""

Text = Annotated[str, msgspec.Meta(max_length=_LETTERS)]
Number = bool | int | float
Option = Number | Text | None | Annotated[tuple[Number | None, ...], msgspec.Meta(max_length=_NUMBERS)]
Group = Annotated[tuple[tuple[Text, Option], ...], msgspec.Meta(max_length=_NAMES)]
Groups = Annotated[tuple[Group, ...], msgspec.Meta(max_length=GROUPS)]
"""All options of the first group by name, and for every other group those that differ."""

_LEFT_OUT = frozenset({"params", "param_names", "foreach", "fused", "capturable", "differentiable"})
"""Options that do not affect the numbers of a step: parameter names, kernel choice."""

_UNKNOWN = object()


def options_of(groups: Iterable[Mapping[str, Any]], number_in: Callable[[object], object]) -> Groups:
    """Return the options in an optimizer's ``param_groups`` that are numbers, short texts, None, or a few of these.

    `number_in` returns the number in a one-element tensor, and any other object unchanged.
    """
    options = [_options_of_group(group, number_in) for group in islice(groups, GROUPS)]
    first = dict(options[0]) if options else {}
    others = [tuple([one for one in group if not _same(one[1], first.get(one[0], _UNKNOWN))]) for group in options[1:]]
    return (*options[:1], *others)


def options_in(groups: Sequence[Group], group: int) -> dict[str, Option]:
    """Return all options of one group; empty if the group is not recorded."""
    return {**dict(groups[0]), **dict(groups[group])} if 0 <= group < len(groups) else {}


def per_group(groups: Sequence[Mapping[str, Any]], updated: Iterable[object]) -> tuple[int, ...]:
    """Return the number of updated parameters in each group; empty if there is only one group."""
    if len(groups) < 2:
        return ()
    among = {id(parameter) for parameter in updated}
    return tuple([sum(id(parameter) in among for parameter in group["params"]) for group in groups])


def option_text(value: Option) -> str:
    """Format one option: ``0.15``, ``(0.9, 0.999)``, ``True``, a text in quotes."""
    if isinstance(value, tuple | list):
        return f"({', '.join(map(option_text, value))})"
    return f"'{shown(value)}'" if isinstance(value, str) else str(value) if value is None else number(value, 6)


class Earlier:
    """The options of each optimizer at its last step."""

    def __init__(self) -> None:
        self._options: dict[int, tuple[weakref.ref[Any], Groups]] = {}

    def replaced(self, optimizer: object, now: Groups) -> Groups:
        """Return the old values of the options that have changed since, by group; empty if none has. Stores `now`."""
        key = id(optimizer)
        known, before = self._options.get(key, (None, ()))
        if known is None or known() is not optimizer:
            known, before = weakref.ref(optimizer, lambda reference: self._forget(key, reference)), ()
        elif before == now:
            return ()
        self._options[key] = known, now
        pairs = [(options_in(before, at), options_in(now, at)) for at in range(min(len(before), len(now)))]
        changed = [tuple([one for one in old.items() if _differs(one, new)]) for old, new in pairs]
        return tuple(changed) if any(changed) else ()

    def _forget(self, key: int, reference: object) -> None:
        """Remove a freed optimizer, unless another one already has its id."""
        if self._options.get(key, (None,))[0] is reference:
            del self._options[key]


def _differs(old: tuple[str, Option], new: Mapping[str, Option]) -> bool:
    return old[0] in new and not _same(old[1], new[old[0]])


def _same(one: object, other: object) -> bool:
    """Return whether two options are equal; nan equals nan."""
    return one == other or (one != one and other != other)


def _options_of_group(group: Mapping[str, Any], number_in: Callable[[object], object]) -> Group:
    """Return the options of one group that an event can hold."""
    options = []
    for name, value in group.items():
        if name not in _LEFT_OUT:
            option = _option(value, number_in)
            if option is not _UNKNOWN and type(name) is str:
                options.append((_short(name), option))
    return tuple(options[:_NAMES])


def _option(value: object, number_in: Callable[[object], object]) -> Any:
    """Return a value in a form that an event can hold, otherwise `_UNKNOWN`."""
    kind = type(value)
    if value is None or kind is float or kind is bool:
        return value
    if kind is int:
        return value if -(1 << 63) <= value < 1 << 63 else _UNKNOWN  # type: ignore[operator]  # it is an int
    if kind is str:
        return _short(value)  # type: ignore[arg-type]  # it is a str
    if kind is tuple or kind is list:
        numbers = [_option(one, number_in) for one in value[:_NUMBERS]]  # type: ignore[index]  # it is a sequence
        return tuple(numbers) if all(isinstance(one, Number | None) for one in numbers) else _UNKNOWN
    number = value.item() if isinstance(value, np.generic) else number_in(value)
    return _option(number, number_in) if type(number) in (bool, int, float) else _UNKNOWN


def _short(text: str) -> str:
    """Return the beginning of a text, in characters that a file can hold."""
    return text[:_LETTERS].encode("utf-8", "backslashreplace").decode()[:_LETTERS]
