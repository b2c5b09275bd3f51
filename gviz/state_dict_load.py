"""How much of a module `load_state_dict` has loaded, and how the keys that it ignored differ from the names it wants.

With ``strict=False`` a load ignores keys for which the module has no tensor, and leaves tensors without a key as they
are. If all keys begin with ``module.``, it loads nothing, without a word. A recording then has a warning of the
category `INCOMPATIBLE`, whose message is the `text` of a `LoadedKeys`, and a check reads it with `loaded_keys`. So has
a later load that makes up for it.
"""

from __future__ import annotations

import re
import weakref
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from gviz.emit import Channel
from gviz.events import Warned

INCOMPATIBLE = "IncompatibleKeys"
"""The category of the warnings."""

_MOST_KEYS = 2000
_MOST_ALIKE = 50
"""The most names with one ending that a key is compared with: in a large model very many end with ``weight``."""

_TEXT = re.compile(
    r"load_state_dict of (?P<kind>\w+): (?P<loaded>\d+) of (?P<wanted>\d+) names loaded, "
    r"(?P<ignored>\d+) of (?P<given>\d+) keys ignored(?P<own>, all tensors were its own)?"
    r"(?:; (?P<fitting>\d+) fit(?: in '(?P<within>[^']*)')? with '(?P<added>[^']*)' for '(?P<removed>[^']*)', "
    r"as '(?P<key>[^']*)' for '(?P<name>[^']*)')?"
)


@dataclass(frozen=True, slots=True)
class LoadedKeys:
    """A load into a module of class `kind`: the numbers of names and of keys.

    `fitting` of the ignored keys have a name and a shape that the module wants if `added` replaces their beginning
    `removed`, and if they are taken from the dict `within` the state; a lazy module takes any shape. `key` and `name`
    are an example; if none fits, they are the first key and name. `is_own` is whether all tensors given were those of
    the module itself.
    """

    kind: str
    loaded: int
    wanted: int
    ignored: int
    given: int
    is_own: bool = False
    fitting: int = 0
    within: str = ""
    removed: str = ""
    added: str = ""
    key: str = ""
    name: str = ""

    @property
    def is_little(self) -> bool:
        """Whether less than half of the names, and less than half of the keys, were loaded."""
        return self.wanted > 0 and 2 * self.loaded < self.wanted and (2 * self.loaded < self.given or not self.given)

    def text(self) -> str:
        """Return it as the message of a warning."""
        within = f" in '{self.within}'" if self.within else ""
        change = f"with '{self.added}' for '{self.removed}', as '{self.key}' for '{self.name}'"
        return (
            f"load_state_dict of {self.kind}: {self.loaded} of {self.wanted} names loaded, "
            f"{self.ignored} of {self.given} keys ignored{', all tensors were its own' * self.is_own}"
            f"{f'; {self.fitting} fit{within} {change}' if self.key and self.name else ''}"
        )


def loaded_keys(message: str) -> LoadedKeys | None:
    """Return what the message of a warning says; None for any other text."""
    match = _TEXT.fullmatch(message)
    if match is None:
        return None
    loaded, wanted, ignored, given, fitting = (
        int((match[name] or "0")[:9]) for name in ("loaded", "wanted", "ignored", "given", "fitting")
    )
    within, removed, added, key, name = (match[name] or "" for name in ("within", "removed", "added", "key", "name"))
    is_own = match["own"] is not None
    return LoadedKeys(match["kind"], loaded, wanted, ignored, given, is_own, fitting, within, removed, added, key, name)


@dataclass(slots=True)
class _Loads:
    """The classes and call stacks whose loads were reported, and the call stacks of loads that loaded something."""

    reported: set[str | int] = field(default_factory=set)
    successful: set[int] = field(default_factory=set)


_loads: weakref.WeakKeyDictionary[Channel, _Loads] = weakref.WeakKeyDictionary()


def report(
    channel: Channel,
    module: Any,
    state: Mapping[str, Any],
    missing: Sequence[str],
    unexpected: Sequence[str],
    *,
    is_own: bool,
) -> None:
    """Record a load that left more than half of a module as it was, or one that makes up for it.

    An empty state counts only if no load at the same place had any keys: a loop over modules may have none for some.
    """
    loads, kind, stack = _loads.setdefault(channel, _Loads()), type(module).__name__, channel.stack()
    ignored = {key: state[key] for key in unexpected if key in state}
    loaded = len(state) - len(ignored)
    load = LoadedKeys(kind, loaded, loaded + len(missing), len(ignored), len(state), is_own and loaded > 0)
    if load.is_little and not (not state and stack in loads.successful):
        load = _with_change(load, ignored, {name: _shape(member(module, name)) for name in missing[:_MOST_KEYS]})
    elif not load.is_own:
        loads.successful.add(stack)
        if loads.reported.isdisjoint((kind, stack)):
            return
    loads.reported |= {kind, stack}
    channel.emit(Warned(INCOMPATIBLE, load.text(), stack))


def _with_change(load: LoadedKeys, ignored: Mapping[str, Any], wanted: Mapping[str, Any]) -> LoadedKeys:
    """Return a load with the change of ignored keys that makes most of them fit, the shortest one of several."""
    by_end: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for name in wanted:
        for beginning, end in _splits(name):
            by_end[end].append((beginning, name))
    dicts = {"": ignored, **{key: inner for key, inner in ignored.items() if isinstance(inner, Mapping)}}
    best = replace(load, key=str(next(iter(ignored), "")), name=next(iter(wanted), ""))
    for within, keys in dicts.items():
        fitting: defaultdict[tuple[str, str], dict[str, str]] = defaultdict(dict)
        for key in islice(keys, _MOST_KEYS):
            for removed, end in _splits(key) if isinstance(key, str) else ():
                alike = by_end.get(end, ())
                for added, name in alike if len(alike) <= _MOST_ALIKE else ():
                    if (shape := _shape(keys[key])) is not None and wanted[name] in (None, shape):
                        fitting[removed, added].setdefault(name, key)
        for (removed, added), pairs in fitting.items():
            if (len(pairs), -len(removed + added)) > (best.fitting, -len(best.removed + best.added)):
                name, key = next(iter(pairs.items()))
                best = replace(
                    load, fitting=len(pairs), within=within, removed=removed, added=added, key=key, name=name
                )
    return best


def _splits(name: str) -> Iterator[tuple[str, str]]:
    """Yield a name in two parts, for each dot in it: ``("", "a.b")`` and ``("a.", "b")`` for ``a.b``."""
    words = name.split(".")
    for place in range(len(words)):
        yield "".join(f"{word}." for word in words[:place]), ".".join(words[place:])


def member(module: Any, name: str) -> Any:
    """Return the parameter or buffer of this path, without a call of the module's methods; None without one."""
    *path, last = name.split(".")
    for word in path:
        module = getattr(module, "_modules", {}).get(word)
    parameter = getattr(module, "_parameters", {}).get(last)
    return parameter if parameter is not None else getattr(module, "_buffers", {}).get(last)


def _shape(value: Any) -> tuple[int, ...] | None:
    """Return the shape of a tensor; None if it has none, as a parameter of a lazy module before its first call."""
    try:
        return tuple(value.shape)
    except Exception:  # PyTorch raises a RuntimeError for such a parameter; a state may have objects of any class
        return None
