"""Encodes events as rows of a trace file and decodes them. Everything derives from the fields of the event classes."""

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
"""``(node, output_nr, pass_nr)``: what an event is about, 0 where it does not say."""


_decoders = tuple(msgspec.msgpack.Decoder(kind) for kind in KINDS)


NOT_PLAIN = OverflowError, UnicodeEncodeError


def encode(event: Event) -> bytes:
    """Return the msgpack body of an event. Numbers and text that msgpack cannot hold are stored as text."""
    try:
        return encode_plain(event)
    except NOT_PLAIN:
        return encode_plain(_encodable(event))


def decode(kind: int, body: bytes) -> Event:
    """Return the event of a row. Raises ValueError if the body is not such an event or contradicts itself."""
    event: Event = _decoders[kind].decode(body)
    contradiction = next(_contradictions(event), "")
    if contradiction:
        raise ValueError(contradiction)
    return event


def _contradictions(event: Event) -> Iterator[str]:
    """Yield what is impossible in an event regardless of the rest of the trace. All code above relies on these checks.

    `gviz.trace.index.reference_checks` checks what the event refers to.
    """
    match event:
        case NodeCreated(given=input_values, inputs=inputs) if len(input_values) > len(inputs):
            yield f"{len(input_values)} inputs were given to an operation of {len(inputs)}"
        # otherwise a walk to the outer calls would not end
        case ScopeEntered(scope=scope, parent=parent) if parent >= scope:
            yield f"module call {scope} is inside {parent}, which begins after it"
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
            if min(counts) < 0 or sum(counts) > value.size or not -1 <= value.stats.minus <= value.stats.inf:
                yield f"statistics of {value.size} elements count others"


def kind_rows() -> Iterator[tuple[int, str, str]]:
    """Yield ``(number, class, field names)`` for every event kind, as a trace file describes itself."""
    for number, kind in enumerate(KINDS):
        yield number, kind.__name__, " ".join(kind.__struct_fields__)


def subject(event: Event) -> Subject:
    """Return what the event is about. A pass is about its first root."""
    return KINDS_AND_SUBJECTS[type(event)][1](event)


def values(event: Event) -> list[Value]:
    """Return every value in an event, in field order."""
    reader = VALUE_READERS.get(event.__class__)
    return [value for value in reader(event) if value is not None] if reader is not None else []


def values_of(events: Iterable[Event]) -> list[Value]:
    """Return every value in several events."""
    values: list[Value | None] = []
    for event in events:
        reader = VALUE_READERS.get(event.__class__)
        if reader is not None:
            values += reader(event)
    return [value for value in values if value is not None]


def with_values(event: Any, change: Callable[[Value], Value]) -> Any:
    """Return the event with every value replaced by ``change(value)``."""
    if isinstance(event, Value):
        return change(event)
    if isinstance(event, tuple):
        return tuple(with_values(item, change) for item in event)
    if isinstance(event, Event | Output):
        fields = {name: with_values(getattr(event, name), change) for name in _VALUE_FIELDS[type(event)]}
        return msgspec.structs.replace(event, **fields)
    return event


def _foreign(thing: object) -> object:
    """Encode an argument of a type outside the vocabulary: a numpy number as a number, anything else as its `repr`."""
    return thing.item() if isinstance(thing, np.generic) else repr(thing)


def _encodable(thing: Any) -> Any:
    """Return a copy that msgpack can encode: integers over 64 bits and invalid Unicode become text."""
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
encode_plain = _encoder.encode
"""Encodes an event, as `encode` does. Raises an error of `NOT_PLAIN` for what msgpack cannot hold."""


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


VALUE_READERS = {kind: reader for kind in KINDS if (reader := _value_reader(kind))}
"""By event class: a function that returns the values of an event (None where absent). Has only classes with values."""

KINDS_AND_SUBJECTS = {kind: (number, _subject_reader(kind)) for kind, number in KIND_NUMBERS.items()}
"""By event class: its number, and a function that returns its subject."""

_STRUCTS: tuple[type[msgspec.Struct], ...] = (*KINDS, Output)
_VALUE_FIELDS: dict[type, tuple[str, ...]] = {kind: _value_fields(kind) for kind in _STRUCTS}
