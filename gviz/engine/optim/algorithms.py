"""The algorithms of ``torch.optim`` as update rules: each changes one parameter from its gradient and its state.

`Optimizer.step` calls ``update(parameter, grad, group)`` for every parameter with a gradient. For example, with
momentum 0.9, a learning rate of 0.1 and gradients of 1, the velocities of `SGD` are 1, 1.9, 2.71 …, and the parameter
decreases by a tenth of each.

A rule does PyTorch's operations in PyTorch's order, so that the numbers agree to the last bit. It keeps its state in
tensors of the parameter's dtype, and its step count in a one-element tensor. Invalid options raise PyTorch's errors.
`foreach` and `fused` give the same numbers and have no effect; `capturable` and `differentiable` raise an error.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from typing import Any

from gviz.engine import dtypes
from gviz.engine.creation import full, zeros_like
from gviz.engine.ops.arithmetic import absolute, add, add_scaled, addcmul, div, neg
from gviz.engine.ops.comparison import maximum
from gviz.engine.ops.elementary_functions import sqrt
from gviz.engine.optim.optimizer import Group, Memory, Optimizer, Parameters
from gviz.engine.tensor import Tensor

Betas = tuple[float, float]


class SGD(Optimizer):
    """Stochastic gradient descent with momentum.

    Weight decay is added to the gradient, and the gradient to the decayed velocity. The parameter moves by the
    velocity; with `nesterov`, by the gradient plus the decayed velocity. The first velocity is the gradient.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        if not (isinstance(lr, float) and isnan(lr)):  # PyTorch accepts nan, but only here
            check_lr(lr)
        check(momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        check_kind(foreach, fused, False, differentiable)
        options = {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay}
        modes = {"maximize": maximize, "foreach": foreach, "differentiable": differentiable, "fused": fused}
        super().__init__(params, {**options, "nesterov": nesterov, **modes})

    def update(self, parameter: Tensor, grad: Tensor, group: Group) -> None:
        """Updates one parameter."""
        grad = decayed(parameter, grad, group, self._workspace)
        if group["momentum"] != 0:
            memory = self.state[parameter]
            velocity: Tensor | None = memory.get("momentum_buffer")
            if velocity is None:
                velocity = memory["momentum_buffer"] = grad.clone().detach()
            else:
                velocity.mul_(group["momentum"]).add_(grad, alpha=1 - group["dampening"])
            ahead = group["nesterov"]
            grad = self._workspace(add_scaled, grad, velocity, alpha=group["momentum"]) if ahead else velocity
        parameter.add_(grad, alpha=-scalar(group["lr"]))


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2014): steps along the mean of the gradient, divided by the root of its mean square."""

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_adaptive(lr, betas, eps, weight_decay=weight_decay)
        if not all(isinstance(beta, float) for beta in betas) and not all(isinstance(beta, Tensor) for beta in betas):
            raise ValueError("betas must be either both floats or both Tensors")
        check_kind(foreach, fused, capturable, differentiable)
        options = {"lr": lr, "betas": tuple(map(scalar, betas)), "eps": eps, "weight_decay": weight_decay}
        modes = {"foreach": foreach, "capturable": capturable, "differentiable": differentiable, "fused": fused}
        kind = {"amsgrad": amsgrad, "maximize": maximize}
        super().__init__(params, {**options, **kind, **modes, "decoupled_weight_decay": decoupled_weight_decay})

    def update(self, parameter: Tensor, grad: Tensor, group: Group) -> None:
        """Updates one parameter."""
        largest = ("max_exp_avg_sq",) if group["amsgrad"] else ()
        memory = counted(self.state[parameter], parameter, "exp_avg", "exp_avg_sq", *largest)
        (beta1, beta2), steps = group["betas"], memory["step"].item()
        grad = decayed(parameter, grad, group, self._workspace)
        memory["exp_avg"].lerp_(grad, 1 - beta1)
        memory["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        size = scalar(group["lr"]) / (1 - beta1**steps)
        square: Tensor = memory["exp_avg_sq"]
        if group["amsgrad"]:
            square = memory["max_exp_avg_sq"].copy_(self._workspace(maximum, memory["max_exp_avg_sq"], square))
        scale = self._workspace(sqrt, square).div_((1 - beta2**steps) ** 0.5).add_(group["eps"])
        parameter.addcdiv_(memory["exp_avg"], scale, value=-size)


class AdamW(Adam):
    """`Adam` with decoupled weight decay (Loshchilov and Hutter, 2017), applied to the parameter itself."""

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )


class Adamax(Optimizer):
    """Adamax (Kingma and Ba, 2014): `Adam` with a decaying maximum of the gradient instead of the mean square."""

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 2e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_adaptive(lr, betas, eps, weight_decay=weight_decay)
        check_kind(foreach, None, capturable, differentiable)
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach}
        modes = {"maximize": maximize, "differentiable": differentiable, "capturable": capturable}
        super().__init__(params, {**options, **modes})

    def update(self, parameter: Tensor, grad: Tensor, group: Group) -> None:
        """Updates one parameter."""
        memory = counted(self.state[parameter], parameter, "exp_avg", "exp_inf")
        (beta1, beta2), steps = group["betas"], memory["step"].item()
        grad = decayed(parameter, grad, group, self._workspace)
        memory["exp_avg"].lerp_(grad, 1 - beta1)
        largest: Tensor = memory["exp_inf"].mul_(beta2)
        largest.copy_(self._workspace(maximum, largest, self._workspace(absolute, grad).add_(group["eps"])))
        size = scalar(group["lr"]) / (1 - beta1**steps)
        parameter.addcdiv_(memory["exp_avg"], largest, value=-size)


class NAdam(Optimizer):
    """NAdam (Dozat, 2016): `Adam` with Nesterov momentum, which looks one step ahead."""

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 2e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_adaptive(lr, betas, eps, weight_decay=weight_decay, momentum_decay=momentum_decay)
        check_kind(foreach, None, capturable, differentiable)
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        kind = {"momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay}
        modes = {"foreach": foreach, "capturable": capturable, "differentiable": differentiable}
        super().__init__(params, {**options, **kind, "maximize": maximize, **modes})

    def update(self, parameter: Tensor, grad: Tensor, group: Group) -> None:
        """Updates one parameter."""
        memory = self.state[parameter]
        if not memory:
            memory.update(step=counter(), mu_product=counter(1.0))
            memory.update(exp_avg=zeros_like(parameter), exp_avg_sq=zeros_like(parameter))
        memory["step"] += 1
        beta1, beta2 = group["betas"]
        lr, steps = scalar(group["lr"]), memory["step"].item()
        grad = decayed(parameter, grad, group, self._workspace)
        now, ahead = (beta1 * (1.0 - 0.5 * 0.96 ** (n * group["momentum_decay"])) for n in (steps, steps + 1))
        memory["mu_product"] *= now
        memory["exp_avg"].lerp_(grad, 1 - beta1)
        square = memory["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        scale = self._workspace(div, square, 1 - beta2**steps).sqrt_().add_(group["eps"])
        product = memory["mu_product"].item()
        parameter.addcdiv_(grad, scale, value=-lr * (1.0 - now) / (1.0 - product))
        parameter.addcdiv_(memory["exp_avg"], scale, value=-lr * ahead / (1.0 - product * ahead))


class RAdam(Optimizer):
    """RAdam (Liu and others, 2019): `Adam` that scales its steps only once its mean square covers enough of them."""

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_adaptive(lr, betas, eps, weight_decay=weight_decay)
        check_kind(foreach, None, capturable, differentiable)
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        modes = {"foreach": foreach, "capturable": capturable, "decoupled_weight_decay": decoupled_weight_decay}
        super().__init__(params, {**options, **modes, "differentiable": differentiable})

    def update(self, parameter: Tensor, grad: Tensor, group: Group) -> None:
        """Updates one parameter."""
        memory = counted(self.state[parameter], parameter, "exp_avg", "exp_avg_sq")
        (beta1, beta2), steps = group["betas"], memory["step"].item()
        grad = decayed(parameter, grad, group, self._workspace)
        memory["exp_avg"].lerp_(grad, 1 - beta1)
        square = memory["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        change = self._workspace(div, memory["exp_avg"], 1 - beta1**steps).mul_(scalar(group["lr"]))
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * steps * beta2**steps / (1 - beta2**steps)
        if length > 5.0:
            scale = self._workspace(sqrt, square).add_(group["eps"]).reciprocal_().mul_((1 - beta2**steps) ** 0.5)
            rect = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
            change.mul_(scale).mul_(rect**0.5)
        parameter.add_(change, alpha=-1.0)


class RMSprop(Optimizer):
    """RMSprop (Hinton): steps divided by the root of the running mean of squared gradients."""

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check(eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        check_kind(foreach, None, capturable, differentiable)
        options = {"lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered}
        modes = {"capturable": capturable, "foreach": foreach, "maximize": maximize, "differentiable": differentiable}
        super().__init__(params, {**options, "weight_decay": weight_decay, **modes})

    def update(self, parameter: Tensor, grad: Tensor, group: Group) -> None:
        """Updates one parameter."""
        velocity = ("momentum_buffer",) if group["momentum"] > 0 else ()
        mean = ("grad_avg",) if group["centered"] else ()
        memory = counted(self.state[parameter], parameter, "square_avg", *velocity, *mean)
        alpha = group["alpha"]
        grad = decayed(parameter, grad, group, self._workspace)
        square: Tensor = memory["square_avg"].mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            average = memory["grad_avg"].lerp_(grad, 1 - alpha)
            scale = self._workspace(addcmul, square, average, average, value=-1).sqrt_()
        else:
            scale = self._workspace(sqrt, square)
        scale.add_(group["eps"])
        if group["momentum"] > 0:
            step = memory["momentum_buffer"].mul_(group["momentum"]).addcdiv_(grad, scale)
            parameter.add_(step, alpha=-scalar(group["lr"]))
        else:
            parameter.addcdiv_(grad, scale, value=-scalar(group["lr"]))


class Adagrad(Optimizer):
    """Adagrad (Duchi and others, 2011): steps divided by the root of the sum of all squared gradients.

    Its state is created with the optimizer, as in PyTorch; that of the others is created at their first step.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        check(lr_decay=lr_decay, weight_decay=weight_decay, initial_accumulator_value=initial_accumulator_value)
        check(eps=eps)
        check_kind(foreach, fused, False, differentiable)
        options = {"lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay}
        modes = {"foreach": foreach, "maximize": maximize, "differentiable": differentiable, "fused": fused}
        super().__init__(params, {**options, "initial_accumulator_value": initial_accumulator_value, **modes})
        for group in self.param_groups:
            for parameter in group["params"]:
                self._begin(parameter, group["initial_accumulator_value"])

    def _begin(self, parameter: Tensor, first: float) -> None:
        total = full(tuple(parameter.shape), first, dtype=parameter.dtype)
        self.state[parameter].update(step=counter(), sum=total)

    def share_memory(self) -> None:
        """Raises RuntimeError: the engine's tensors exist in one process."""
        raise RuntimeError("the built-in engine's tensors live in one process; share_memory() needs PyTorch")

    def update(self, parameter: Tensor, grad: Tensor, group: Group) -> None:
        """Updates one parameter."""
        if not self.state[parameter]:
            self._begin(parameter, self.defaults["initial_accumulator_value"])
        memory = self.state[parameter]
        memory["step"] += 1
        grad = decayed(parameter, grad, group, self._workspace)
        lr = scalar(group["lr"]) / (1 + (memory["step"].item() - 1) * group["lr_decay"])
        total = memory["sum"].addcmul_(grad, grad, value=1)
        parameter.addcdiv_(grad, self._workspace(sqrt, total).add_(group["eps"]), value=-lr)


class Adadelta(Optimizer):
    """Adadelta (Zeiler, 2012): steps scaled by the running means of squared steps over those of squared gradients."""

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check(eps=eps, weight_decay=weight_decay)
        check_kind(foreach, None, capturable, differentiable)
        options = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(
            params, {**options, "capturable": capturable, "foreach": foreach, "differentiable": differentiable}
        )

    def update(self, parameter: Tensor, grad: Tensor, group: Group) -> None:
        """Updates one parameter."""
        memory = counted(self.state[parameter], parameter, "square_avg", "acc_delta")
        rho, eps = group["rho"], group["eps"]
        grad = decayed(parameter, grad, group, self._workspace)
        square = memory["square_avg"].mul_(rho).addcmul_(grad, grad, value=1 - rho)
        scale = self._workspace(add, square, eps).sqrt_()
        change = self._workspace(add, memory["acc_delta"], eps).sqrt_().div_(scale).mul_(grad)
        memory["acc_delta"].mul_(rho).addcmul_(change, change, value=1 - rho)
        parameter.add_(change, alpha=-scalar(group["lr"]))


def check(**values: Any) -> None:
    """Raises ValueError, with PyTorch's text, for a negative option."""
    for name, value in values.items():
        if not value >= 0.0:
            title = {"lr": "learning rate", "eps": "epsilon value"}.get(name, f"{name} value")
            raise ValueError(f"Invalid {title}: {value}")


def check_lr(lr: float | Tensor) -> None:
    """Raises ValueError for a negative learning rate, or a tensor with several elements."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    check(lr=lr)


def check_adaptive(lr: float | Tensor, betas: Betas, eps: float, **others: float) -> None:
    """Raises ValueError for an option of an Adam variant outside its range; `others` must not be negative."""
    check_lr(lr)
    check(eps=eps)
    for position, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {position}: {beta}")
    check(**others)


def check_kind(foreach: bool | None, fused: bool | None, capturable: bool, differentiable: bool) -> None:
    """Raises RuntimeError for an implementation that the engine lacks."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    for name, is_set in (("differentiable", differentiable), ("capturable", capturable)):
        if is_set:
            raise RuntimeError(f"gviz's built-in engine has no {name}=True optimizers; leave it out")


def scalar(value: Any) -> Any:
    """An option as a number; it may be a one-element tensor."""
    return value.item() if isinstance(value, Tensor) else value


def counter(value: float = 0.0) -> Tensor:
    """A number of a state as a tensor: float64 if that is the default dtype, else float32."""
    double = dtypes.get_default_dtype() is dtypes.float64
    steps: Tensor = full((), value, dtype=dtypes.float64 if double else dtypes.float32)
    return steps


def counted(memory: Memory, parameter: Tensor, *names: str) -> Memory:
    """The state of a parameter with its ``step`` increased; at the first step, with zeros for each of `names`."""
    if not memory:
        memory["step"] = counter()
        for name in names:
            memory[name] = zeros_like(parameter)
    memory["step"] += 1
    return memory


def decayed(parameter: Tensor, grad: Tensor, group: Group, workspace: Callable[..., Tensor]) -> Tensor:
    """The gradient to descend: negated with `maximize`, with the weight decay added."""
    if group["maximize"]:
        grad = workspace(neg, grad)
    if group["weight_decay"] == 0:
        return grad
    if group.get("decoupled_weight_decay"):
        parameter.mul_(1 - scalar(group["lr"]) * group["weight_decay"])
        return grad
    return workspace(add_scaled, grad, parameter, alpha=group["weight_decay"])
