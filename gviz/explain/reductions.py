"""How the formula and rules of a loss read for its reduction, and with or without weights."""

from __future__ import annotations

import re
from collections.abc import Mapping

_BY_NUMBER = {"0": "none", "1": "mean", "2": "sum"}
"""Reductions as PyTorch's nodes keep them."""

_OF_ELEMENTS = {
    "mse_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
}  # fmt: skip
"""Losses whose mean is that of all elements."""

_OF_CLASSES = "at the class target"
_MEAN = re.compile(r"(-?)mean of ")
_ENTROPY = "binary cross entropy of "
_WEIGHT, _MEAN_OF_WEIGHTS = " * weight", " / sum of weights"
_INCOMING = re.compile(r"\bg\b")


def loss_formula(formula: str, given: Mapping[str, str], *, weighted: bool) -> str:
    """The formula of a loss, as its reduction and weights make it; any other as it is."""
    reduction = _reduction(given)
    if not reduction:
        return formula
    weights = ", weighted by weight" * weighted
    if formula.startswith(_ENTROPY):
        return {"mean": "mean ", "sum": "sum of the "}.get(reduction, "") + formula + weights
    found = {"mean": r"\1mean of ", "sum": r"\1sum of "}.get(reduction, r"\1")
    return _MEAN.sub(found, formula, count=1) + weights


def loss_rule(rule: str, op: str, given: Mapping[str, str], *, weighted: bool) -> str:
    """A rule of the loss `op`, as its reduction and weights make it; that of any other operation as it is."""
    reduction = _reduction(given)
    if _OF_CLASSES in rule and reduction:
        rule = rule if reduction == "mean" else rule.replace(_MEAN_OF_WEIGHTS, "")
        return rule if weighted else rule.replace(_WEIGHT, "").replace(_MEAN_OF_WEIGHTS, " / number of targets")
    if op in _OF_ELEMENTS and reduction == "mean":
        return _INCOMING.sub("g / number of elements", rule)
    return rule


def _reduction(given: Mapping[str, str]) -> str:
    """What an operation was told to make of its losses, empty if it was told nothing."""
    told = given.get("reduction", "").strip("'")
    return _BY_NUMBER.get(told, told)
