"""``torch.promote_types``, ``result_type``, ``can_cast``: the common dtype of several."""

from __future__ import annotations

from gviz.engine import dtypes
from gviz.engine.dtypes import dtype as DType
from gviz.engine.tensor import Tensor

__all__ = ["can_cast", "promote_types", "result_type"]

_RESULT_TYPE = """result_type() received an invalid combination of arguments - got ({got}), but expected one of:
 * (Tensor tensor, Tensor other)
      didn't match because some of the arguments have invalid types: ({tensor_tensor})
 * (Number scalar, Tensor tensor)
      didn't match because some of the arguments have invalid types: ({number_tensor})
 * (Tensor tensor, Number other)
      didn't match because some of the arguments have invalid types: ({tensor_number})
 * (Number scalar1, Number scalar2)
      didn't match because some of the arguments have invalid types: ({number_number})
"""


def promote_types(type1: DType, type2: DType) -> DType:
    """The smallest dtype that can hold both."""
    first, second = (_checked("promote_types", t, f"type{i}", i) for i, t in enumerate((type1, type2), 1))
    common = dtypes.join([first.numpy, second.numpy])
    assert common is not None
    return dtypes.of_numpy(common)


def can_cast(from_: DType, to: DType) -> bool:
    """Whether a result of dtype `from_` may be written to a tensor of dtype `to`."""
    source, target = _checked("can_cast", from_, "from_", 1), _checked("can_cast", to, "to", 2)
    return _rank(source) <= _rank(target) or (_rank(source) == 1 and _rank(target) > 0)


def _rank(kind: DType) -> int:
    """Return the rank of a dtype's category; a write must not lower it: complex, floating, integers, bool."""
    return 3 if kind.is_complex else 2 if kind.is_floating_point else int(kind is not dtypes.bool_)


def result_type(tensor1: Tensor | float, tensor2: Tensor | float) -> DType:
    """The dtype of arithmetic with these two tensors or numbers."""
    pair = (tensor1, tensor2)
    if not all(isinstance(operand, (Tensor, bool, int, float)) for operand in pair):
        raise TypeError(_no_result_type(pair))
    tensors = [t._array for t in pair if isinstance(t, Tensor)]
    numbers = [n for n in pair if not isinstance(n, Tensor)]
    if not tensors:
        kinds = [dtypes.scalar_dtype(n, dtypes.bool_.numpy) for n in numbers]
        common = dtypes.join(kinds)
    else:
        common = dtypes.promote(tensors)
        for number in numbers:
            common = dtypes.scalar_dtype(number, common)
    assert common is not None
    return dtypes.of_numpy(common)


def _no_result_type(pair: tuple[object, object]) -> str:
    def message(*expected: str) -> str:
        kinds = ["Tensor" if isinstance(o, Tensor) else "Number" if isinstance(o, (int, float)) else "" for o in pair]
        names = [type(o).__name__ for o in pair]
        fit = kinds[0] == expected[0], kinds == list(expected)  # the text after a wrong one is marked too
        return ", ".join(n if ok else f"!{n}!" for n, ok in zip(names, fit, strict=True))

    return _RESULT_TYPE.format(
        got=", ".join(type(o).__name__ for o in pair),
        tensor_tensor=message("Tensor", "Tensor"),
        number_tensor=message("Number", "Tensor"),
        tensor_number=message("Tensor", "Number"),
        number_number=message("Number", "Number"),
    )


def _checked(function: str, value: object, name: str, position: int) -> DType:
    result = dtypes.from_argument(value)
    if result is None:
        kind = type(value).__name__
        raise TypeError(f"{function}(): argument '{name}' (position {position}) must be torch.dtype, not {kind}")
    return result
