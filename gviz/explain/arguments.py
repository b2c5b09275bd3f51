"""How an op's formula and rules read with the arguments that are no tensors, and without those that were not given."""

from __future__ import annotations

_LEFT_OUT = {"dim": "all dims", "dims": "all dims", "correction": "1", "weight": "1", "bias": "0"}
"""What these arguments stand for where the program gave none, and None was recorded."""


def attribute_words(attributes: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """The word for each argument of an op in its formula and rules."""
    return {name: _attribute(name, value) for name, value in attributes}


def _attribute(name: str, value: str) -> str:
    """A dimension by its number, as ``dim 1``: it is no factor. Dtypes and devices are no texts."""
    if name in ("dtype", "device", "source"):
        return value.strip("'")
    if value == "None":
        return _LEFT_OUT.get(name, value)
    if name in ("dim", "dims"):
        dims = value.strip("()").removesuffix(",")
        return f"dim{'s' * (',' in dims)} {dims}" if dims else _LEFT_OUT[name]
    return value
