"""Which variable of the running program holds an object: read, never evaluated.

No code of the program runs for that, and no object lives longer. Names are looked up rarely, because it takes some
microseconds per frame of a stack.
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

from gviz.source.call_stack import is_hidden

_Kind = TypeVar("_Kind")
_Names = Mapping[Any, object]

_LIBRARIES = tuple({f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_COPYING = frozenset(("locals", "vars"))
"""Functions that return a function's own variables as a dictionary; reading the variables would update it."""

_PYTEST = "@py_builtins"
"""The name that an ``assert`` rewritten by pytest uses to read variables; it does not keep the dictionary."""

_MOST_ITEMS = 100
"""Items of a longer list or dictionary are not searched."""

_NO_NAMES = frozenset(("self", "_"))

_SPACE, _ORDER = type.__dict__["__dict__"].__get__, type.__dict__["__mro__"].__get__
"""The ``__dict__`` and the ``__mro__`` of a class, read without its metaclass."""
_OF_PYTHON = (GetSetDescriptorType, MemberDescriptorType)
"""The types with which Python itself stores an object's ``__dict__``."""


def global_name(thing: object) -> str:
    """Return the global variable of the running user's module that holds an object; local variables are not read.

    Loop variables do not count: they hold another object in the next iteration.
    """
    frame = next(_users_frames(), None)
    if frame is None:
        return ""
    names = [name for name, one in _copy(frame.f_globals) if one is thing]
    outside = (other.f_code for other in _users_frames() if names and other.f_globals is frame.f_globals)
    passing = {name for code in outside if not code.co_flags & inspect.CO_OPTIMIZED for name in _passing(code)}
    return next((name for name in names if name not in passing), "")


def first_name(thing: object, *, lasting: bool = False) -> str:
    """Return the running program's name for an object: the first that it had, empty if it has none.

    Names in the program come before those in a library, and variables before items or attributes: ``x``, ``batch[0]``,
    ``batch['x']``, ``data.x``. Variables and items are searched from the outermost frame inwards, the way an object
    passes through calls; attributes from the innermost frame outwards: ``self.policy``. With `lasting`, a variable that
    holds another object in each call or loop iteration comes last, after items of attributes: ``self.layers[0]``.
    """
    by_library = groupby(_outside_in(_users_frames()), lambda frame: is_of_library(frame.f_code.co_filename))
    for _, group in by_library:
        frames = [*group]
        names = [*map(variables, frames)]
        own = [*map(_staying, frames, names)] if lasting else names
        inside_out = names[::-1]
        searches = (
            (_name_of, own), (_item_of, names), (_attribute_of, inside_out),
            (_item_of_attribute, inside_out if lasting else ()), (_name_of, names if lasting else ()),
        )  # fmt: skip
        name = next(
            filter(None, (search(variables_of, thing) for search, each in searches for variables_of in each)), ""
        )
        if name:
            return name
    return ""


def running_method_of(kind: type[_Kind], is_it: Callable[[_Kind], bool]) -> _Kind | None:
    """Return the object of this kind whose method the outermost frame runs, and for which `is_it` is true."""
    for frame in _outside_in(_users_frames()):
        code = frame.f_code
        own = variables(frame).get(code.co_varnames[0]) if code.co_argcount else None
        if issubclass(type(own), kind) and is_it(cast("_Kind", own)):
            return cast("_Kind", own)
    return None


def program_variable(kind: type[_Kind], is_it: Callable[[_Kind], bool]) -> _Kind | None:
    """Return the object of this kind, held by a variable or an item of one, for which `is_it` is true.

    Searches the outermost frame first, and the last variable there: an object made of others is created later.
    """
    for frame in _outside_in(_users_frames()):
        values: list[_Kind] = []
        for _, value in _copy(variables(frame)):
            values += [cast("_Kind", one) for one in (value, *_items(value)) if issubclass(type(one), kind)]
        if (it := next(filter(is_it, reversed(values)), None)) is not None:
            return it
    return None


def holders(fits: Callable[[type], bool]) -> Iterator[tuple[str, str, object, bool]]:
    """Yield the objects of wanted classes held by the program: name, function, object, and whether it is passing.

    A name is a variable, an item of one, an attribute, or an item of that: ``net``, ``nets[0]``, ``self.actor``,
    ``self.nets[0]``. Variables of the innermost frame come first, those of the main module last. Arguments, and
    variables that get another object in each loop iteration, are passing.
    """
    spaces = [
        (variables(frame), frame.f_code) for frame in _users_frames() if not is_of_library(frame.f_code.co_filename)
    ]
    for names, code in spaces:
        passing = _passing(code)
        for name, thing in _holding(names, fits):
            yield name, code.co_name, thing, name in passing
    main = sys.modules.get("__main__", ModuleType(""))
    for names, code in spaces:
        if names is vars(main):
            _code_of[main] = code
            return
    passing = _passing(_code_of[main]) if main in _code_of else frozenset()
    yield from ((name, "<module>", thing, name in passing) for name, thing in _holding(vars(main), fits))


_code_of: weakref.WeakKeyDictionary[ModuleType, CodeType] = weakref.WeakKeyDictionary()
"""The code of the main module, stored while it runs: at the end of a program its frame is gone."""


_WITHOUT_PARTS = frozenset(map(id, (int, float, complex, str, bytes, bool, type(None), ModuleType)))
"""The ids of common classes whose objects hold no others."""


def _holding(names: _Names, fits: Callable[[type], bool]) -> Iterator[tuple[str, object]]:
    for name, value in _copy(names):
        if not isinstance(name, str) or not name.isidentifier() or name.startswith("_"):
            continue
        if id(type(value)) in _WITHOUT_PARTS or issubclass(type(value), type):
            continue
        if fits(type(value)):
            yield name, value
            continue
        yield from ((f"{name}{key}", item) for key, item in _all_items(value) if fits(type(item)))
        for members in _members(value):
            for key, member in _copy(members):
                if not isinstance(key, str) or key.startswith("_"):
                    continue
                if fits(type(member)):
                    yield f"{name}.{key}", member
                    continue
                items = _all_items(member)
                yield from ((f"{name}.{key}{place}", item) for place, item in items if fits(type(item)))


def _all_items(value: object) -> Iterator[tuple[str, object]]:
    """Yield the items of a list, tuple or dictionary that is not too long, each with its index as it is written."""
    if issubclass(type(value), dict):
        items = cast("dict[Any, object]", value)
        pairs = list(dict.items(items)) if dict.__len__(items) <= _MOST_ITEMS else []
        yield from ((f"[{key!r}]", item) for key, item in pairs if type(key) in (str, int))
    else:
        yield from ((f"[{place}]", item) for place, item in enumerate(_items(value)))


def variables(frame: FrameType) -> _Names:
    """Return the variables of a running frame; none if its function may itself hold a dictionary of them.

    Before Python 3.13, a function's frame keeps the dictionary it is asked for, and with it the values of that time. So
    the dictionary is emptied again, unless something else holds it, or may hold it.
    """
    used = frame.f_code.co_names
    names: Any = frame.f_locals if _COPYING.isdisjoint(used) or _PYTEST in used else {}
    if not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        return cast("_Names", names)  # a module's own
    result = dict(names)
    if type(names) is dict and sys.getrefcount(names) <= _OF_THE_FRAME and sys.gettrace() is None:
        names.clear()
    return result


_OF_THE_FRAME = 3
"""References to the dictionary of a frame's variables while it is read: one of the frame, two of the reader."""


def _users_frames() -> Iterator[FrameType]:
    """Yield the frames of the running program, innermost first, without those of gviz and the framework."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_hidden(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def _outside_in(frames: Iterable[FrameType]) -> list[FrameType]:
    """Return frames with the outermost first, those of libraries after all others."""
    outside_in = [*frames][::-1]
    return sorted(outside_in, key=lambda frame: is_of_library(frame.f_code.co_filename))


@cache
def is_of_library(path: str) -> bool:
    return path.startswith(_LIBRARIES)


def _staying(frame: FrameType, names: _Names) -> _Names:
    """Return the variables of a frame that keep their object while it runs, judged by its code."""
    passing = _passing(frame.f_code)
    return {name: value for name, value in _copy(names) if name not in passing}


@cache
def _passing(code: CodeType) -> frozenset[str]:
    """Return the variables of a function that hold another object in each call or loop iteration."""
    passing = {*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]}
    waiting = 0
    for instruction in dis.get_instructions(code):
        if instruction.opname == "FOR_ITER":
            waiting = 1
        elif instruction.opname == "UNPACK_SEQUENCE" and waiting:
            waiting += (instruction.arg or 0) - 1
        elif instruction.opname.startswith("STORE_") and waiting:
            stored = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
            passing.update(
                stored[:waiting]
            )  # from Python 3.13 on, one instruction may store two, or load one afterwards
            waiting = max(waiting - len(stored), 0)
        elif instruction.opname != "EXTENDED_ARG":
            waiting = 0
    return frozenset(passing)


def _name_of(names: _Names, thing: object) -> str:
    return next((name for name, value in _copy(names) if value is thing and _is_name(name)), "")


def _is_name(name: object) -> bool:
    return isinstance(name, str) and name.isidentifier() and name not in _NO_NAMES


def _item_of(names: _Names, thing: object) -> str:
    """Name an item of a list, tuple or dictionary that a variable holds: ``batch[0]``, ``batch['x']``."""
    for name, value in _copy(names):
        if _is_name(name) and (place := _place_in(value, thing) or _key_in(value, thing)):
            return f"{name}{place}"
    return ""


def _attribute_of(names: _Names, thing: object) -> str:
    """Name an attribute of an object that a variable holds: ``self.mask``, ``data.x``."""
    for name, value in _copy(names):
        key = next(filter(None, (_key_of(members, thing) for members in _members(value))), "")
        if key and isinstance(name, str) and not name.startswith("_"):
            return f"{name}.{key}"
    return ""


def _item_of_attribute(names: _Names, thing: object) -> str:
    """Name an item of a list, tuple or dictionary that is an attribute of a variable's object: ``self.layers[0]``."""
    for name, value in _copy(names):
        for members in _members(value) if isinstance(name, str) and not name.startswith("_") else ():
            own = {key: one for key, one in _copy(members) if isinstance(key, str) and not key.startswith("_")}
            if item := _item_of(own, thing):
                return f"{name}.{item}"
    return ""


def _place_in(value: object, thing: object) -> str:
    return next((f"[{place}]" for place, item in enumerate(_items(value)) if item is thing), "")


def _items(value: object) -> Iterable[object]:
    """Return the items of a list or tuple that is not too long."""
    kind: Any = next((kind for kind in (list, tuple) if issubclass(type(value), kind)), None)
    return () if kind is None or kind.__len__(value) > _MOST_ITEMS else kind.__iter__(value)


def _key_in(value: object, thing: object) -> str:
    if issubclass(type(value), UserDict):
        value = object.__getattribute__(value, "__dict__").get("data")
    if not issubclass(type(value), dict) or dict.__len__(items := cast("dict[Any, object]", value)) > _MOST_ITEMS:
        return ""
    matching_key = next((key for key, item in list(dict.items(items)) if item is thing), None)
    return f"[{matching_key!r}]" if type(matching_key) in (str, int) else ""


def _members(value: object) -> Iterator[_Names]:
    """Yield the attributes of an object, and a model's modules, without running code of the program.

    A library's module is left out: its many members do not belong to the program.
    """
    if type(value) is ModuleType or not _has_own_attributes(type(value)):
        return
    attributes = object.__getattribute__(value, "__dict__")
    for members in (attributes, attributes.get("_modules")):
        if isinstance(members, Mapping):
            yield members


def _has_own_attributes(kind: type) -> bool:
    """Return whether objects of a class keep their attributes in the usual place; a class can change that."""
    for space in map(_SPACE, _ORDER(kind)):  # a plain loop: this runs for every variable
        if "__dict__" in space:
            return type(space["__dict__"]) in _OF_PYTHON
    return False


def _key_of(names: _Names, thing: object) -> str:
    return next((name for name, value in _copy(names) if value is thing and isinstance(name, str)), "")


def _copy(names: _Names) -> list[tuple[Any, object]]:
    return list(names.items())  # another thread may add to it
