"""A module's state brought back, and its gradients cleared."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gviz.engine.modes import no_grad
from gviz.engine.tensor import Tensor

if TYPE_CHECKING:
    from gviz.engine.nn.module import Module


class IncompatibleKeys(NamedTuple):
    """What a state lacked for a module, and what it had beyond it."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


def load(module: Module, state: dict[str, Tensor], *, strict: bool) -> IncompatibleKeys:
    """Copy `state` into the module's tensors. RuntimeError, in PyTorch's words, for what does not fit."""
    own = module.state_dict()
    keys = IncompatibleKeys([k for k in own if k not in state], [k for k in state if k not in own])
    problems = _unfit_names(keys) if strict else []
    for name, target in own.items():
        if name not in state:
            continue
        if state[name].shape != target.shape:
            problems.append(
                f"size mismatch for {name}: copying a param with shape {state[name].shape} from checkpoint, the shape "
                f"in current model is {target.shape}."
            )
            continue
        with no_grad():
            target.copy_(state[name])
    if problems:
        listed = "\n\t".join(problems)
        raise RuntimeError(f"Error(s) in loading state_dict for {type(module).__name__}:\n\t{listed}")
    return keys


def _unfit_names(keys: IncompatibleKeys) -> list[str]:
    return [
        f"{what} key(s) in state_dict: {', '.join(repr_names(names))}. "
        for what, names in (("Unexpected", keys.unexpected_keys), ("Missing", keys.missing_keys))
        if names
    ]


def repr_names(names: list[str]) -> list[str]:
    """Names in double quotes."""
    return [f'"{name}"' for name in names]


def clear_grad(tensor: Tensor, set_to_none: bool) -> None:
    """Forget a tensor's gradient, or set it to zero where it lies."""
    grad = tensor.grad
    if grad is None:
        return
    if set_to_none:
        tensor.grad = None
        return
    if grad.grad_fn is not None:
        tensor.grad = grad.detach()
        grad = tensor.grad
    with no_grad():
        grad.zero_()
