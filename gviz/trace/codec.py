"""How an event becomes a row of a trace file and back; everything here derives from the fields of the event classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np

from gviz.events import (
    DEFINITIONS,
    KINDS,
    BackwardStarted,
    Event,
    NodeCreated,
    OptimizerStepped,
    Output,
    Returned,
    ScopeEntered,
    StackSeen,
)
from gviz.values.value import ITEM_SIZES, Value

KIND_NUMBERS: dict[type[Event], int] = {kind: number for number, kind in enumerate(KINDS)}
DEFINITION_KINDS = frozenset(KIND_NUMBERS[kind] for kind in DEFINITIONS)

Subject = tuple[int, int, int]
"""``(node, output_nr, pass_nr)``: what an event concerns, 0 where it says nothing about it."""


_decoders = tuple(msgspec.msgpack.Decoder(kind) for kind in KINDS)


def encode(event: Event) -> bytes:
    """The body of an event, as its row keeps it; what no file can hold is kept as text."""
    try:
        return _encoder.encode(event)
    except (OverflowError, UnicodeEncodeError):
        return _encoder.encode(_encodable(event))


def decode(kind: int, body: bytes) -> Event:
    """The event of a row; ValueError if the body is not such an event, or says what no recording can."""
    event: Event = _decoders[kind].decode(body)
    contradiction = next(_contradictions(event), "")
    if contradiction:
        raise ValueError(contradiction)
    return event


def _contradictions(event: Event) -> Iterator[str]:
    """What in an event cannot be, whatever else is in its trace: everybody above relies on that it is not so.

    What it refers to is the business of `gviz.trace.index.references`.
    """
    match event:
        case NodeCreated(given=given, inputs=inputs) if len(given) > len(inputs):
            yield f"{len(given)} inputs were given to an operation of {len(inputs)}"
        case ScopeEntered(scope=scope, parent=parent) if parent >= scope:  # who goes outwards comes to an end
            yield f"module call {scope} lies in {parent}, which begins after it"
        case StackSeen(stack=stack, base=base, shared=shared) if base >= stack > 0 or (shared and not base):
            yield f"call stack {stack} shares {shared} frames with {base}, which is not before it"
        case BackwardStarted(roots=roots, seeds=seeds) if len(roots) != len(seeds):
            yield f"a pass begins at {len(roots)} outputs with {len(seeds)} gradients"
        case OptimizerStepped(parameters=parameters, per_group=counts) if counts and sum(counts) < len(parameters):
            yield f"groups of {sum(counts)} parameters have {len(parameters)}"
        case Returned(path=path):
            for place, count, _ in path:
                if 0 < count <= place:
                    yield f"part {place + 1} of {count} was returned"
    for value in values(event):
        if value.data is not None and prod(value.shape) * ITEM_SIZES.get(value.dtype, -1) != len(value.data):
            yield f"{len(value.data)} bytes do not make an array of shape {str(value.shape)[:60]}"
        if value.stats is not None:
            counts = value.stats.nan, value.stats.inf, value.stats.zero
            if min(counts) < 0 or sum(counts) > value.size:
                yield f"statistics of {value.size} elements count others"


def kind_rows() -> Iterator[tuple[int, str, str]]:
    """``(number, class, names of its fields)`` of every kind, as a trace file describes itself."""
    for number, kind in enumerate(KINDS):
        yield number, kind.__name__, " ".join(kind.__struct_fields__)


def subject(event: Event) -> Subject:
    """What the event concerns; a pass concerns its first root."""
    return KINDS_AND_SUBJECTS[type(event)][1](event)


def values(event: Event) -> list[Value]:
    """Every value an event holds, in the order of its fields."""
    held = HELD_VALUES.get(event.__class__)
    return [value for value in held(event) if value is not None] if held is not None else []


def values_of(events: Iterable[Event]) -> list[Value]:
    """Every value that many events hold."""
    found: list[Value | None] = []
    for event in events:
        held = HELD_VALUES.get(event.__class__)
        if held is not None:
            found += held(event)
    return [value for value in found if value is not None]


def with_values(event: Any, change: Callable[[Value], Value]) -> Any:
    """The event with every value it holds replaced by ``change(value)``."""
    if isinstance(event, Value):
        return change(event)
    if isinstance(event, tuple):
        return tuple(with_values(item, change) for item in event)
    if isinstance(event, Event | Output):
        fields = {name: with_values(getattr(event, name), change) for name in _VALUE_FIELDS[type(event)]}
        return msgspec.structs.replace(event, **fields)
    return event


def _foreign(thing: object) -> object:
    """A non-tensor argument of a type that the vocabulary does not know: a number of numpy, or some object."""
    return thing.item() if isinstance(thing, np.generic) else repr(thing)


def _encodable(thing: Any) -> Any:
    """The same with numbers of more than 64 bits, and text that is not Unicode, written out."""
    match thing:
        case str():
            return thing.encode("utf-8", "backslashreplace").decode()
        case int() if not -(1 << 63) <= thing < 1 << 64:
            return str(thing)
        case tuple() | list():
            return tuple(map(_encodable, thing))
        case msgspec.Struct():
            fields = {name: _encodable(getattr(thing, name)) for name in thing.__struct_fields__}
            return msgspec.structs.replace(thing, **fields)
    return thing


_encoder = msgspec.msgpack.Encoder(enc_hook=_foreign)


def _subject_reader(kind: type[Event]) -> Callable[[Any], Subject]:
    if kind is BackwardStarted:
        return lambda event: (event.roots[0][0] if event.roots else 0, 0, event.pass_nr)
    match [name in kind.__struct_fields__ for name in ("node", "output_nr", "pass_nr")]:
        case [True, True, True]:
            return attrgetter("node", "output_nr", "pass_nr")
        case [True, True, False]:
            return lambda event: (event.node, event.output_nr, 0)
        case [True, False, True]:
            return lambda event: (event.node, 0, event.pass_nr)
        case [True, False, False]:
            return lambda event: (event.node, 0, 0)
        case [False, _, True]:
            return lambda event: (0, 0, event.pass_nr)
    return lambda event: (0, 0, 0)


def _value_reader(kind: type[Event]) -> Callable[[Any], Sequence[Value | None]] | None:
    match [(field.name, field.type) for field in msgspec.structs.fields(kind) if _mentions_values(field.type)]:
        case []:
            return None
        case [(name, annotation)] if not _is_series(annotation):
            one = attrgetter(name)
            return lambda event: (one(event),)
        case [("outputs", _), ("given", _)]:
            return lambda event: [*event.given, *[output.value for output in event.outputs]]
        case fields:
            return attrgetter(*(name for name, _ in fields))


def _is_series(annotation: object) -> bool:
    return getattr(annotation, "__origin__", None) is tuple


def _value_fields(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    return tuple(field.name for field in msgspec.structs.fields(kind) if _mentions_values(field.type))


def _mentions_values(annotation: object) -> bool:
    if annotation is Value or annotation is Output:
        return True
    return any(_mentions_values(part) for part in getattr(annotation, "__args__", ()))


HELD_VALUES = {kind: reader for kind in KINDS if (reader := _value_reader(kind))}
"""What reads the values, or None in their places, out of an event, by its class; those without any are not in it."""

KINDS_AND_SUBJECTS = {kind: (number, _subject_reader(kind)) for kind, number in KIND_NUMBERS.items()}
"""The number of an event's class, and what reads its subject, by its class."""

_STRUCTS: tuple[type[msgspec.Struct], ...] = (*KINDS, Output)
_VALUE_FIELDS: dict[type, tuple[str, ...]] = {kind: _value_fields(kind) for kind in _STRUCTS}
