"""How the formula and rules of a loss read for its reduction, and with or without weights."""

from __future__ import annotations

import msgspec

from gviz.engine.op import Reading


def by_reduction(
    mean: str, total: str, each: str, *, share: str = "g / number of elements", part: str = "g"
) -> tuple[Reading, ...]:
    """The formulas of a loss. Its rules speak of one element, to which a mean sends the `share`, else the `part`."""
    return (
        Reading((("reduction", "mean"),), mean, (("g", share),)),
        Reading((("reduction", "sum"),), total, (("g", part),)),
        Reading((("reduction", "none"),), each, (("g", part),)),
    )


def with_weights(readings: tuple[Reading, ...], *, share: str = "") -> tuple[Reading, ...]:
    """The same for a loss that may be given weights, with them and without.

    A mean then sends the `share` to each element, if it is no other's times the weight.
    """
    return *[_weighted(it, share) for it in readings], *readings


def _weighted(reading: Reading, share: str) -> Reading:
    [(g, part)] = reading.words
    is_mean = ("reduction", "mean") in reading.given
    weighted = share if share and is_mean else part.replace(g, f"{g} * weight", 1)
    formula = f"{reading.formula}, weighted by weight"
    return msgspec.structs.replace(reading, formula=formula, words=((g, weighted),), beside=("weight",))
