"""``torch.optim``: parameters updated from their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gviz import emit
from gviz.engine import announce
from gviz.engine.missing import lookup_in
from gviz.engine.modes import enable_grad, no_grad
from gviz.engine.nn.gradients import clear_grad
from gviz.engine.tensor import Tensor
from gviz.events import OptimizerStepped

Group = dict[str, Any]
Parameters = Iterable[Tensor] | Iterable[Group] | Iterable[tuple[str, Tensor]]


class Optimizer:
    """Base of optimizers: groups of parameters, each with its options, and what is remembered about each parameter.

    Subclasses define `update`, which changes one parameter in place; it runs outside the graph.
    """

    def __init__(self, params: Parameters, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                f"torch.{params.dtype.tensor_type}Tensor"
            )
        self.defaults = defaults
        self.state: dict[Tensor, dict[str, Any]] = {}
        self.param_groups: list[Group] = []
        given = list(params)
        if not given:
            raise ValueError("optimizer got an empty parameter list")
        for group in given if isinstance(given[0], dict) else [{"params": given}]:
            self.add_param_group(group)  # type: ignore[arg-type]  # the first decides what all are, as in PyTorch

    def add_param_group(self, param_group: Group) -> None:
        """Take in more parameters, with options of their own."""
        params = param_group["params"]
        listed = [params] if isinstance(params, Tensor) else list(params)
        listed = [entry[1] if isinstance(entry, tuple) else entry for entry in listed]
        for parameter in listed:
            _check_parameter(parameter)
        known = {id(p) for group in self.param_groups for p in group["params"]}
        if known & {id(p) for p in listed}:
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append({**self.defaults, **param_group, "params": listed})

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zero."""
        for group in self.param_groups:
            for parameter in group["params"]:
                clear_grad(parameter, set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; `closure`, if given, computes the loss first."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        updated = []
        with no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        self.update(parameter, parameter.grad, group)
                        updated.append(parameter)
        channel = emit.channel
        if channel is not None:
            nodes = tuple([announce.seen(channel, p).node for p in updated])
            channel.say(OptimizerStepped(type(self).__name__, nodes, channel.stack()))
        return loss

    def update(self, parameter: Tensor, grad: Tensor, group: Group) -> None:
        """Change one parameter in place."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """Options and memory, with parameters as numbers in the order they were given."""
        numbers = self._numbers()
        groups = [{**g, "params": [numbers[p] for p in g["params"]]} for g in self.param_groups]
        return {"state": {numbers[p]: dict(s) for p, s in self.state.items()}, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over options and memory, which is not copied. ValueError if the groups do not match."""
        groups = state_dict["param_groups"]
        if len(groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(groups, self.param_groups, strict=True)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        for own, loaded in zip(self.param_groups, groups, strict=True):
            own.update({name: value for name, value in loaded.items() if name != "params"})
        parameters = {number: p for p, number in self._numbers().items()}
        self.state = {parameters[n]: dict(memory) for n, memory in state_dict["state"].items()}

    def _numbers(self) -> dict[Tensor, int]:
        return {p: i for i, p in enumerate(p for group in self.param_groups for p in group["params"])}

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join([*lines, ")"])


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum.

    The order of operations is PyTorch's: weight decay is added to the gradient, the gradient to the decayed velocity,
    the velocity (with `nesterov`, once more to the gradient) to the parameter. The first velocity is the gradient.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        for what, value in (("learning rate", lr), ("momentum value", momentum), ("weight_decay value", weight_decay)):
            if value < 0.0:
                raise ValueError(f"Invalid {what}: {value}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        options = {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay}
        super().__init__(params, {**options, "nesterov": nesterov, "maximize": maximize})

    def update(self, parameter: Tensor, grad: Tensor, group: Group) -> None:
        """One step down (or up) the gradient."""
        if group["maximize"]:
            grad = -grad
        if group["weight_decay"] != 0:
            grad = grad.add(parameter, alpha=group["weight_decay"])
        if group["momentum"] != 0:
            velocity = self._velocity(parameter, grad, group)
            grad = grad.add(velocity, alpha=group["momentum"]) if group["nesterov"] else velocity
        parameter.add_(grad, alpha=-group["lr"])

    def _velocity(self, parameter: Tensor, grad: Tensor, group: Group) -> Tensor:
        memory = self.state.setdefault(parameter, {"momentum_buffer": None})
        velocity: Tensor | None = memory["momentum_buffer"]
        if velocity is None:
            velocity = memory["momentum_buffer"] = grad.clone().detach()
        else:
            velocity.mul_(group["momentum"]).add_(grad, alpha=1 - group["dampening"])
        return velocity


def _check_parameter(parameter: Any) -> None:
    if not isinstance(parameter, Tensor):
        raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(parameter).__name__}")
    if not (parameter.is_leaf or parameter.retains_grad):
        raise ValueError("can't optimize a non-leaf Tensor")


__getattr__ = lookup_in(__name__)
