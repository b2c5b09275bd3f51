"""``torch.einsum``: sums of products, composed of the views, products and sums that PyTorch records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from gviz.engine.argument_parser import all_tensors
from gviz.engine.functions_and_methods import front
from gviz.engine.ops.diagonals import diagonal
from gviz.engine.ops.matrix_products import bmm_front
from gviz.engine.ops.shape import movedim, permute_front, reshape, unsqueeze, view
from gviz.engine.tensor import Tensor

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
ELLIPSIS = "..."
Labels = list[str]


@dataclass(frozen=True, slots=True)
class Plan:
    """The dimension of each label after operands are permuted: first those of the output, then those to sum."""

    places: dict[str, int]
    ellipsis: int
    """The number of dimensions that an ellipsis covers."""
    output: int
    """The number of dimensions of the result."""
    total: int


@front("einsum", method=False)
def einsum(equation: Any, *operands: Any) -> Tensor:
    """The sums of products that `equation` describes: ``einsum("ij,jk->ik", a, b)`` is a matrix product."""
    if isinstance(equation, Tensor):
        equation, operands = _from_lists((equation, *operands))
    if not isinstance(equation, str):
        kind = type(equation).__name__
        raise TypeError(f"einsum(): argument 'equation' (position 1) must be str, not {kind}")
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    all_tensors(operands, 1)
    if not operands:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
            "subscripts list"
        )
    inputs, output = _parsed(equation, len(operands))
    plan = _planned(inputs, output, operands)
    aligned = [
        _aligned(tensor, labels, plan, i) for i, (tensor, labels) in enumerate(zip(operands, inputs, strict=True))
    ]
    _check_sizes(inputs, operands, plan, aligned)
    return _summed(aligned, plan)


def _from_lists(arguments: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """Convert operands that alternate with lists of numbers to an equation and operands."""

    def text(labels: Sequence[Any]) -> str:
        return "".join(ELLIPSIS if label is ... else LETTERS[label] for label in labels)

    equation = ",".join(text(labels) for labels in arguments[1::2][: len(arguments) // 2])
    if len(arguments) % 2:
        return equation + "->" + text(arguments[-1]), arguments[:-1:2]
    return equation, arguments[::2]


def _parsed(equation: str, count: int) -> tuple[list[Labels], Labels | None]:
    """Return the labels of each operand and of the result. Raises RuntimeError, with PyTorch's text, for
    invalid ones.
    """
    left, arrow, right = equation.partition("->")
    parts = left.split(",")
    if len(parts) != count:
        few = "fewer" if count < len(parts) else "more"
        raise RuntimeError(f"einsum(): {few} operands were provided than specified in the equation")
    start, inputs = 0, []
    for i, part in enumerate(parts):
        inputs.append(_labels(part, start, f"for operand {i} "))
        start += len(part) + 1
    return inputs, _labels(right, len(left) + 2, "for the output ") if arrow else None


def _labels(text: str, start: int, whose: str) -> Labels:
    labels: Labels = []
    position = 0
    while position < len(text):
        letter = text[position]
        if letter == ".":
            if text[position : position + 3] != ELLIPSIS:
                raise RuntimeError(f"einsum(): found '.' {whose}that is not part of any ellipsis")
            if ELLIPSIS in labels:
                raise RuntimeError(f"einsum(): found '.' {whose}for which an ellipsis was already found")
            labels.append(ELLIPSIS)
            position += 2
        elif letter in LETTERS:
            labels.append(letter)
        elif letter != " ":
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {start + position} in the equation string, subscripts "
                "must be in [a-zA-Z]"
            )
        position += 1
    return labels


def _planned(inputs: list[Labels], output: Labels | None, operands: Sequence[Tensor]) -> Plan:
    ellipsis = 0
    for i, (labels, tensor) in enumerate(zip(inputs, operands, strict=True)):
        named = len(labels) - (ELLIPSIS in labels)
        if named > tensor.ndim or (named < tensor.ndim and ELLIPSIS not in labels):
            more = "is more than" if ELLIPSIS in labels else "does not match"
            rest = "" if ELLIPSIS in labels else " and no ellipsis was given"
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({named}) {more} the number of dimensions "
                f"({tensor.ndim}) for operand {i}{rest}"
            )
        ellipsis = max(ellipsis, tensor.ndim - named)
    known = [label for labels in inputs for label in labels]
    if output is None:
        single = sorted(label for label in set(known) if known.count(label) == 1 and label != ELLIPSIS)
        output = [ELLIPSIS, *single] if ELLIPSIS in known else single
    _check_output(output, known)
    places: dict[str, int] = {}
    total = 0
    for label in output:
        places[label] = total
        total += ellipsis if label == ELLIPSIS else 1
    result = total
    for label in (*LETTERS, ELLIPSIS):
        if label in known and label not in places:
            places[label] = total
            total += ellipsis if label == ELLIPSIS else 1
    return Plan(places, ellipsis, result, total)


def _check_output(output: Labels, known: Labels) -> None:
    for label in output:
        if label != ELLIPSIS and output.count(label) > 1:
            raise RuntimeError(f"einsum(): output subscript {label} appears more than once in the output")
        if label != ELLIPSIS and label not in known:
            raise RuntimeError(
                f"einsum(): output subscript {label} does not appear in the equation for any input operand"
            )


def _aligned(tensor: Tensor, labels: Labels, plan: Plan, number: int) -> Tensor:
    """Return an operand with every label's dimension in its place, of size 1 where it has none."""
    order: list[int | None] = [None] * plan.total
    covered = tensor.ndim - (len(labels) - 1)
    axis = 0
    for label in labels:
        place = plan.places[label]
        if label == ELLIPSIS:
            for _ in range(plan.ellipsis - covered):
                tensor = unsqueeze(tensor, axis)
            for offset in range(plan.ellipsis):
                order[place + offset] = axis
                axis += 1
            continue
        first = order[place]
        if first is None:
            order[place] = axis
            axis += 1
            continue
        if tensor.shape[first] != tensor.shape[axis]:
            raise RuntimeError(
                f"einsum(): subscript {label} is repeated for operand {number} but the sizes don't match, "
                f"{tensor.shape[axis]} != {tensor.shape[first]}"
            )
        tensor = movedim(diagonal(tensor, 0, first, axis), -1, first)
    for place, known in enumerate(order):
        if known is None:
            tensor = unsqueeze(tensor, -1)
            order[place] = axis
            axis += 1
    return permute_front(tensor, *order)


def _check_sizes(inputs: list[Labels], operands: Sequence[Tensor], plan: Plan, aligned: Sequence[Tensor]) -> None:
    """Raise RuntimeError, with PyTorch's text, for a label with two sizes."""
    names = {place: label for label, place in plan.places.items()}
    for place in range(plan.total):
        seen = 1
        for number, tensor in enumerate(aligned):
            size = tensor.shape[place]
            if size not in (1, seen) and seen != 1:
                label = names.get(place, ELLIPSIS)
                raise RuntimeError(
                    f"einsum(): subscript {label} has size {size} for operand {number} which does not broadcast with "
                    f"previously seen size {seen}"
                )
            seen = size if size != 1 else seen


def _summed(operands: list[Tensor], plan: Plan) -> Tensor:
    """Return the product of the operands from left to right; each dimension is summed once no other operand has it."""
    result, *others = operands
    if not others:
        return result.sum(tuple(range(plan.output, plan.total))) if plan.total > plan.output else result
    counts = [sum(tensor.shape[place] != 1 for tensor in operands) for place in range(plan.total)]
    for other in others:
        result = _pair(result, other, counts, plan)
    return view(result, result.shape[: plan.output]) if plan.total > plan.output else result


def _pair(a: Tensor, b: Tensor, counts: list[int], plan: Plan) -> Tensor:
    both, only_a, only_b = list[int](), list[int](), list[int]()
    for place in range(plan.output, plan.total):
        in_a, in_b = a.shape[place] != 1, b.shape[place] != 1
        if in_a and in_b:
            counts[place] -= 1
            if counts[place] == 1:
                both.append(place)
                counts[place] = 0
        elif counts[place] == 1 and (in_a or in_b):
            (only_a if in_a else only_b).append(place)
            counts[place] = 0
    if only_a:
        a = a.sum(tuple(only_a), keepdim=True)
    if only_b:
        b = b.sum(tuple(only_b), keepdim=True)
    product: Tensor = _sum_of_products(a, b, both) if both else a * b
    return product


def _sum_of_products(a: Tensor, b: Tensor, summed: list[int]) -> Tensor:
    """``(a * b).sum(summed, keepdim=True)`` as one matrix product for each index of the common dimensions."""
    rest = [place for place in range(a.ndim) if place not in summed]
    shared = [p for p in rest if a.shape[p] != 1 and b.shape[p] != 1]
    left = [p for p in rest if a.shape[p] != 1 and p not in shared]
    right = [p for p in rest if p not in shared and p not in left]
    batch, rows = prod(a.shape[p] for p in shared), prod(a.shape[p] for p in left)
    inner, columns = prod(a.shape[p] for p in summed), prod(b.shape[p] for p in right)
    one = reshape(permute_front(a, *shared, *left, *summed, *right), batch, rows, inner)
    other = reshape(permute_front(b, *shared, *summed, *right, *left), batch, inner, columns)
    order = [*shared, *left, *summed, *right]
    sizes = [a.shape[p] for p in (*shared, *left)] + [1] * len(summed) + [b.shape[p] for p in right]
    product = view(bmm_front(one, other), tuple(sizes))
    return permute_front(product, *[order.index(place) for place in range(a.ndim)])
