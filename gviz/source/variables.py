"""Which variable of the running program holds an object: looked at, never evaluated.

No code of the program runs for that, and nothing lives longer. Names are looked for rarely: it takes some microseconds
for each frame of a stack.
"""

from __future__ import annotations

import dis
import inspect
import sys
import sysconfig
import weakref
from collections import UserDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import groupby
from types import CodeType, FrameType, GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any, TypeVar, cast

from gviz.source.site import is_hidden

_Kind = TypeVar("_Kind")
_Names = Mapping[Any, object]

_LIBRARIES = tuple({f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_COPYING = frozenset(("locals", "vars"))
"""What gives a function its own variables in a dictionary, which looking at them would bring up to date."""

_PYTEST = "@py_builtins"
"""What an ``assert`` that pytest has written anew asks for variables by, and keeps none."""

_MOST_ITEMS = 100
"""Of a list or dictionary that holds more, nothing is called an item."""

_NO_NAMES = frozenset(("self", "_"))

_SPACE, _ORDER = type.__dict__["__dict__"].__get__, type.__dict__["__mro__"].__get__
"""The ``__dict__`` and the ``__mro__`` of a class, read without its metaclass."""
_OF_PYTHON = (GetSetDescriptorType, MemberDescriptorType)
"""How Python itself keeps the ``__dict__`` of an object."""


def global_name(thing: object) -> str:
    """The global variable of the running user's module that holds an object; local variables are not copied.

    Variables of loops do not count: they hold another object in the next iteration.
    """
    frame = next(_users_frames(), None)
    if frame is None:
        return ""
    held = [name for name, one in _copy(frame.f_globals) if one is thing]
    outside = (other.f_code for other in _users_frames() if held and other.f_globals is frame.f_globals)
    passing = {name for code in outside if not code.co_flags & inspect.CO_OPTIMIZED for name in _passing(code)}
    return next((name for name in held if name not in passing), "")


def first_name(thing: object, *, lasting: bool = False) -> str:
    """The running program's name for an object: the first that it had, empty if it has none.

    A name in the program comes before one in a library, and a variable before an item or attribute of one: ``x``,
    ``batch[0]``, ``batch['x']``, ``data.x``. Variables and items are searched from the outermost frame inwards, which
    is the way an object takes through calls; attributes from the innermost frame outwards: ``self.policy``. With
    `lasting`, a variable that holds another object in each call or iteration of a loop comes last. An item of an
    attribute comes before it: ``self.layers[0]``.
    """
    by_library = groupby(_outside_in(_users_frames()), lambda frame: _is_of_library(frame.f_code.co_filename))
    for _, group in by_library:
        frames = [*group]
        names = [*map(variables, frames)]
        own = [*map(_staying, frames, names)] if lasting else names
        inside_out = names[::-1]
        ways = (
            (_name_of, own), (_item_of, names), (_attribute_of, inside_out),
            (_item_of_attribute, inside_out if lasting else ()), (_name_of, names if lasting else ()),
        )  # fmt: skip
        found = next(filter(None, (way(held, thing) for way, each in ways for held in each)), "")
        if found:
            return found
    return ""


def running_method_of(kind: type[_Kind], is_it: Callable[[_Kind], bool]) -> _Kind | None:
    """The object of this kind whose method the outermost frame runs, and for which `is_it` is true."""
    for frame in _outside_in(_users_frames()):
        code = frame.f_code
        own = variables(frame).get(code.co_varnames[0]) if code.co_argcount else None
        if issubclass(type(own), kind) and is_it(cast("_Kind", own)):
            return cast("_Kind", own)
    return None


def held_by_the_program(kind: type[_Kind], is_it: Callable[[_Kind], bool]) -> _Kind | None:
    """The object of this kind for which `is_it` is true and that a variable of the program holds, or an item of one.

    It is the one in the outermost frame, and the last of several there: an object that is made of others comes later.
    """
    for frame in _outside_in(_users_frames()):
        found: list[_Kind] = []
        for _, held in _copy(variables(frame)):
            found += [cast("_Kind", one) for one in (held, *_items(held)) if issubclass(type(one), kind)]
        if (it := next(filter(is_it, reversed(found)), None)) is not None:
            return it
    return None


def holders(is_wanted: Callable[[type], bool]) -> Iterator[tuple[str, str, object, bool]]:
    """The things of wanted classes that the running program holds: name, function, thing, and whether it is passing.

    A name is a variable, an item of one, an attribute, or an item of that: ``net``, ``nets[0]``, ``self.actor``,
    ``self.nets[0]``. The variables of the innermost frame come first, those of the main module last. Passing ones are
    arguments, and variables to which each turn of a loop gives another object.
    """
    spaces = [
        (variables(frame), frame.f_code) for frame in _users_frames() if not _is_of_library(frame.f_code.co_filename)
    ]
    for names, code in spaces:
        passing = _passing(code)
        for name, thing in _holding(names, is_wanted):
            yield name, code.co_name, thing, name in passing
    main = sys.modules.get("__main__", ModuleType(""))
    for names, code in spaces:
        if names is vars(main):
            _code_of[main] = code
            return
    passing = _passing(_code_of[main]) if main in _code_of else frozenset()
    yield from ((name, "<module>", thing, name in passing) for name, thing in _holding(vars(main), is_wanted))


_code_of: weakref.WeakKeyDictionary[ModuleType, CodeType] = weakref.WeakKeyDictionary()
"""The code of the main module, from when it ran: at the end of a program its frame is gone."""


def _holding(names: _Names, is_wanted: Callable[[type], bool]) -> Iterator[tuple[str, object]]:
    for name, held in _copy(names):
        if not isinstance(name, str) or not name.isidentifier() or name.startswith("_") or issubclass(type(held), type):
            continue
        if is_wanted(type(held)):
            yield name, held
            continue
        yield from ((f"{name}{key}", item) for key, item in _all_items(held) if is_wanted(type(item)))
        for members in _members(held):
            for key, member in _copy(members):
                if not isinstance(key, str) or key.startswith("_"):
                    continue
                if is_wanted(type(member)):
                    yield f"{name}.{key}", member
                    continue
                items = _all_items(member)
                yield from ((f"{name}.{key}{place}", item) for place, item in items if is_wanted(type(item)))


def _all_items(held: object) -> Iterator[tuple[str, object]]:
    """The items of a list, tuple or dictionary that is not too long, each with its index as it is written."""
    if issubclass(type(held), dict):
        items = cast("dict[Any, object]", held)
        pairs = list(dict.items(items)) if dict.__len__(items) <= _MOST_ITEMS else []
        yield from ((f"[{key!r}]", item) for key, item in pairs if type(key) in (str, int))
    else:
        yield from ((f"[{place}]", item) for place, item in enumerate(_items(held)))


def variables(frame: FrameType) -> _Names:
    """The variables of a frame that runs; none of a function that may itself hold a dictionary of them.

    Before Python 3.13 a function's frame keeps the dictionary that it is asked for, and with it what was in a variable
    then. So the dictionary is emptied again, unless something else holds it, or may hold it.
    """
    used = frame.f_code.co_names
    names: Any = frame.f_locals if _COPYING.isdisjoint(used) or _PYTEST in used else {}
    if not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        return cast("_Names", names)  # a module's own
    found = dict(names)
    if type(names) is dict and sys.getrefcount(names) <= _OF_THE_FRAME and sys.gettrace() is None:
        names.clear()
    return found


_OF_THE_FRAME = 3
"""References to the dictionary of a frame's variables while it is looked at: the frame's, and two of the looking."""


def _users_frames() -> Iterator[FrameType]:
    """The frames of the running program, innermost first, without gviz's and the framework's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_hidden(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def _outside_in(frames: Iterable[FrameType]) -> list[FrameType]:
    """Frames as they were called, the outermost first, those of libraries after all others."""
    outside_in = [*frames][::-1]
    return sorted(outside_in, key=lambda frame: _is_of_library(frame.f_code.co_filename))


@cache
def _is_of_library(path: str) -> bool:
    return path.startswith(_LIBRARIES)


def _staying(frame: FrameType, names: _Names) -> _Names:
    """The variables of a frame that keep their object while it runs, as far as its code shows."""
    passing = _passing(frame.f_code)
    return {name: held for name, held in _copy(names) if name not in passing}


@cache
def _passing(code: CodeType) -> frozenset[str]:
    """The variables of a function that hold another object in each call or iteration of a loop."""
    found = {*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]}
    waiting = 0
    for instruction in dis.get_instructions(code):
        if instruction.opname == "FOR_ITER":
            waiting = 1
        elif instruction.opname == "UNPACK_SEQUENCE" and waiting:
            waiting += (instruction.arg or 0) - 1
        elif instruction.opname.startswith("STORE_") and waiting:
            stored = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
            found.update(stored[:waiting])  # from Python 3.13 on one instruction may store two, or load one after that
            waiting = max(waiting - len(stored), 0)
        elif instruction.opname != "EXTENDED_ARG":
            waiting = 0
    return frozenset(found)


def _name_of(names: _Names, thing: object) -> str:
    return next((name for name, held in _copy(names) if held is thing and _is_name(name)), "")


def _is_name(name: object) -> bool:
    return isinstance(name, str) and name.isidentifier() and name not in _NO_NAMES


def _item_of(names: _Names, thing: object) -> str:
    """``batch[0]``, ``batch['x']``: an item of a list, tuple or dictionary that a variable holds."""
    for name, held in _copy(names):
        if _is_name(name) and (place := _place_in(held, thing) or _key_in(held, thing)):
            return f"{name}{place}"
    return ""


def _attribute_of(names: _Names, thing: object) -> str:
    """``self.mask``, ``data.x``: what an object has that a variable holds."""
    for name, held in _copy(names):
        key = next(filter(None, (_key_of(members, thing) for members in _members(held))), "")
        if key and isinstance(name, str) and not name.startswith("_"):
            return f"{name}.{key}"
    return ""


def _item_of_attribute(names: _Names, thing: object) -> str:
    """``self.layers[0]``: an item of a list, tuple or dictionary that is an attribute of what a variable holds."""
    for name, held in _copy(names):
        for members in _members(held) if isinstance(name, str) and not name.startswith("_") else ():
            own = {key: one for key, one in _copy(members) if isinstance(key, str) and not key.startswith("_")}
            if item := _item_of(own, thing):
                return f"{name}.{item}"
    return ""


def _place_in(held: object, thing: object) -> str:
    return next((f"[{place}]" for place, item in enumerate(_items(held)) if item is thing), "")


def _items(held: object) -> Iterable[object]:
    """What is in a list or tuple that is not too long."""
    kind: Any = next((kind for kind in (list, tuple) if issubclass(type(held), kind)), None)
    return () if kind is None or kind.__len__(held) > _MOST_ITEMS else kind.__iter__(held)


def _key_in(held: object, thing: object) -> str:
    if issubclass(type(held), UserDict):
        held = object.__getattribute__(held, "__dict__").get("data")
    if not issubclass(type(held), dict) or dict.__len__(items := cast("dict[Any, object]", held)) > _MOST_ITEMS:
        return ""
    found = next((key for key, item in list(dict.items(items)) if item is thing), None)
    return f"[{found!r}]" if type(found) in (str, int) else ""


def _members(held: object) -> Iterator[_Names]:
    """What an object has in it, a model's modules too; no code of the program runs for that.

    A library's module is left out: its members are many, and not the program's.
    """
    if type(held) is ModuleType or not _has_own_attributes(type(held)):
        return
    attributes = object.__getattribute__(held, "__dict__")
    for members in (attributes, attributes.get("_modules")):
        if isinstance(members, Mapping):
            yield members


def _has_own_attributes(kind: type) -> bool:
    """Whether objects of a class keep their attributes where Python puts them: a class may say something else."""
    for space in map(_SPACE, _ORDER(kind)):  # a loop: this runs for every variable
        if "__dict__" in space:
            return type(space["__dict__"]) in _OF_PYTHON
    return False


def _key_of(names: _Names, thing: object) -> str:
    return next((name for name, held in _copy(names) if held is thing and isinstance(name, str)), "")


def _copy(names: _Names) -> list[tuple[Any, object]]:
    return list(names.items())  # another thread may add to it
