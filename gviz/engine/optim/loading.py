"""An optimizer's state with numbers in place of parameters, and brought back from it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from gviz.engine.tensor import Tensor


def packed(groups: list[dict[str, Any]], state: Mapping[Any, Any]) -> dict[str, Any]:
    """Options and memory, with parameters as numbers in the order they were given."""
    numbers: dict[int, int] = {}
    start, plain = 0, []
    for group in groups:
        for position, parameter in enumerate(group["params"], start):
            numbers.setdefault(id(parameter), position)
        start += len(group["params"])
        options = {name: value for name, value in group.items() if name != "params"}
        plain.append({**options, "params": [numbers[id(p)] for p in group["params"]]})
    memory = {numbers[id(key)] if isinstance(key, Tensor) else key: value for key, value in state.items()}
    return {"state": memory, "param_groups": plain}


def adapted(state: Mapping[Any, Any], parameters: Mapping[Any, Tensor]) -> defaultdict[Any, Any]:
    """Memory with `parameters` in place of numbers, its tensors in the dtypes of these."""
    loaded: defaultdict[Any, Any] = defaultdict(dict)
    for key, value in state.items():
        if key in parameters:
            loaded[parameters[key]] = _cast(parameters[key], value)
        else:
            loaded[key] = value
    return loaded


def _cast(parameter: Tensor, value: Any, key: str = "") -> Any:
    if isinstance(value, Tensor):
        keep = key == "step" or not parameter.dtype.is_floating_point
        return value if keep else value.to(parameter.dtype)
    if isinstance(value, dict):
        return {name: _cast(parameter, item, name) for name, item in value.items()}
    if isinstance(value, Iterable):
        return type(value)(_cast(parameter, item) for item in value)  # type: ignore[call-arg]  # a list or a tuple
    return value
