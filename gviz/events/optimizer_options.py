"""What an optimizer is set to when it steps: learning rate, momentum, betas … of each of its groups of parameters."""

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
"""The longest text, tuple, list of options and of groups that are told, whatever a program puts there."""

Text = Annotated[str, msgspec.Meta(max_length=_LETTERS)]
Number = bool | int | float
Option = Number | Text | None | Annotated[tuple[Number | None, ...], msgspec.Meta(max_length=_NUMBERS)]
Group = Annotated[tuple[tuple[Text, Option], ...], msgspec.Meta(max_length=_NAMES)]
Groups = Annotated[tuple[Group, ...], msgspec.Meta(max_length=GROUPS)]
"""The options of the first group by their names, and of every other one those that differ from the first's."""

_NOT_TOLD = frozenset({"params", "param_names", "initial_lr", "foreach", "fused", "capturable", "differentiable"})
"""What says nothing of the numbers that a step makes: of which parameters, by which kernels, where a schedule began."""

_UNKNOWN = object()


def options_of(groups: Iterable[Mapping[str, Any]], number_in: Callable[[object], object]) -> Groups:
    """The options of an optimizer's ``param_groups``, as far as they are numbers, short texts, None or a few of them.

    `number_in` is what anything else stands for: the number in a tensor of one, else what it was given.
    """
    told = [_told(group, number_in) for group in islice(groups, GROUPS)]
    first = dict(told[0]) if told else {}
    others = [tuple([one for one in group if not _same(one[1], first.get(one[0], _UNKNOWN))]) for group in told[1:]]
    return (*told[:1], *others)


def options_in(groups: Sequence[Group], group: int) -> dict[str, Option]:
    """All options of one group; empty for one that is not told of."""
    return {**dict(groups[0]), **dict(groups[group])} if 0 <= group < len(groups) else {}


def per_group(groups: Sequence[Mapping[str, Any]], updated: Iterable[object]) -> tuple[int, ...]:
    """How many of the updated parameters each group has; empty where there is one group."""
    if len(groups) < 2:
        return ()
    among = {id(parameter) for parameter in updated}
    return tuple([sum(id(parameter) in among for parameter in group["params"]) for group in groups])


def option_text(value: Option) -> str:
    """One option: ``0.15``, ``(0.9, 0.999)``, ``True``, a text in quotes."""
    if isinstance(value, tuple | list):
        return f"({', '.join(map(option_text, value))})"
    return f"'{shown(value)}'" if isinstance(value, str) else str(value) if value is None else number(value, 6)


class Earlier:
    """What each optimizer was set to when it last began a step."""

    def __init__(self) -> None:
        self._said: dict[int, tuple[weakref.ref[Any], Groups]] = {}

    def replaced(self, optimizer: object, now: Groups) -> Groups:
        """What the options that have changed since were before, by group; empty where none has. `now` is kept."""
        key = id(optimizer)
        known, before = self._said.get(key, (None, ()))
        if known is None or known() is not optimizer:
            known, before = weakref.ref(optimizer, lambda gone: self._forget(key, gone)), ()
        elif before == now:
            return ()
        self._said[key] = known, now
        pairs = [(options_in(before, at), options_in(now, at)) for at in range(min(len(before), len(now)))]
        changed = [tuple([one for one in old.items() if _differs(one, new)]) for old, new in pairs]
        return tuple(changed) if any(changed) else ()

    def _forget(self, key: int, gone: object) -> None:
        """An optimizer is no more: another one may have its place already."""
        if self._said.get(key, (None,))[0] is gone:
            del self._said[key]


def _differs(old: tuple[str, Option], new: Mapping[str, Option]) -> bool:
    return old[0] in new and not _same(old[1], new[old[0]])


def _same(one: object, other: object) -> bool:
    """Whether two options are the same, nan as nan."""
    return one == other or (one != one and other != other)


def _told(group: Mapping[str, Any], number_in: Callable[[object], object]) -> Group:
    """The options of one group that an event can hold."""
    told = []
    for name, value in group.items():
        if name not in _NOT_TOLD:
            option = _option(value, number_in)
            if option is not _UNKNOWN and type(name) is str:
                told.append((_short(name), option))
    return tuple(told[:_NAMES])


def _option(value: object, number_in: Callable[[object], object]) -> Any:
    """A value as an event can hold it, else `_UNKNOWN`."""
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
    held = value.item() if isinstance(value, np.generic) else number_in(value)
    return _option(held, number_in) if type(held) in (bool, int, float) else _UNKNOWN


def _short(text: str) -> str:
    """The beginning of a text, in characters that a file can hold."""
    return text[:_LETTERS].encode("utf-8", "backslashreplace").decode()[:_LETTERS]
