"""An operation as it is without some of its optional tensors."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from gviz.engine.rule import SIZES, Rule


def rules_without(rules: tuple[Rule, ...], absent: frozenset[str]) -> tuple[Rule, ...]:
    """The rules of the inputs that are left; what they name of the absent ones is None. Joint rules stay whole."""
    unknown = absent | {slot + SIZES for slot in absent}
    left = [rule for rule in rules if not absent.issuperset(rule.slots)]
    return tuple([Rule(rule.slot, rule.text, _with_none(rule.vjp, unknown)) for rule in left])


def forward_without(forward: Callable[..., Any], slots: tuple[str, ...], absent: frozenset[str]) -> Callable[..., Any]:
    """The forward that takes the arrays of the other `slots` only."""

    def variant(*arrays: Any, **attrs: Any) -> Any:
        given = iter(arrays)
        return forward(*[None if slot in absent else next(given) for slot in slots], **attrs)

    return variant


def _with_none(vjp: Callable[..., Any], absent: frozenset[str]) -> Callable[..., Any]:
    parameters = inspect.signature(vjp).parameters
    if absent.isdisjoint(parameters):
        return vjp
    kept = [name for name in parameters if name not in absent]

    def variant(*args: Any, **attrs: Any) -> Any:
        given = dict(zip(kept, args, strict=False)) | attrs
        return vjp(*[given.get(name) for name in parameters])

    variant.__signature__ = inspect.Signature([parameters[name] for name in kept])  # type: ignore[attr-defined]
    return variant
