"""The vector-Jacobian products of an operation, and how one is made ready to run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from gviz.engine.apply import Attrs

SIZES = "_sym_sizes"
"""What a rule's parameter ends with that asks for the shape of an input."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The gradient of one input: `text` for people, `vjp` for both kinds of pass.

    In `text`, `g` is the incoming gradient and every other name an input, an output or an attribute; ``number of
    elements``, ``size of dim``, ``number of targets`` and ``number of classes`` are counted for a reader. Where inputs
    share work, `slot` names them all (``"input, weight"``), `text` has a part for each (``"...; ..."``), `vjp` gives a
    tuple.
    """

    slot: str
    text: str
    vjp: Callable[..., Any]

    @property
    def slots(self) -> tuple[str, ...]:
        """The inputs it is for."""
        return tuple(self.slot.split(", "))

    @property
    def names(self) -> tuple[str, ...]:
        """What `vjp` asks for besides the incoming gradient."""
        signature = getattr(self.vjp, "__signature__", None)
        if signature is not None:
            return tuple(signature.parameters)[1:]
        code = self.vjp.__code__  # quicker than to ask for the signature: there are hundreds of rules
        return code.co_varnames[1 : code.co_argcount]


@dataclass(frozen=True, slots=True)
class Example:
    """Arguments to try an op with: arrays for its tensors, and its attributes."""

    tensors: tuple[Any, ...]
    attrs: Attrs


class Call:
    """A rule made ready to run: which saved tensors and which attributes its parameters are.

    A joint rule is called once in a step and gives a tuple, in the order of its `slots`.
    """

    __slots__ = ("attrs", "is_joint", "names", "needs", "pick", "texts", "vjp")

    def __init__(self, rule: Rule, saved_names: tuple[str, ...]) -> None:
        self.names = names = rule.names
        self.vjp = rule.vjp
        self.is_joint = len(rule.slots) > 1
        texts = rule.text.split("; ") if self.is_joint else [rule.text]
        self.texts = dict(zip(rule.slots, texts, strict=True))
        self.needs = frozenset(name for name in names if name in saved_names)
        self.attrs = tuple(name for name in names if name not in saved_names)
        self.pick = picker([saved_names.index(name) for name in names if name in saved_names])

    def __call__(self, g: Any, saved: Sequence[Any], attrs: Attrs) -> Any:
        return self.vjp(g, *self.pick(saved), **{name: attrs[name] for name in self.attrs})


def picker(positions: list[int]) -> Callable[[Sequence[Any]], Any]:
    """A getter of these positions that always gives a tuple, so that one kind of call serves every rule."""
    if len(positions) > 1:
        return itemgetter(*positions)
    return itemgetter(slice(positions[0], positions[0] + 1) if positions else slice(0))
