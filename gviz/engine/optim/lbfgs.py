"""L-BFGS (Liu and Nocedal, 1989): steps by an estimate of the curvature from the last gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gviz.engine.modes import enable_grad, no_grad
from gviz.engine.ops.joining import cat
from gviz.engine.optim.line_search import strong_wolfe
from gviz.engine.optim.optimizer import Memory, Optimizer, Parameters
from gviz.engine.optim.options import check_lr, scalar
from gviz.engine.tensor import Tensor


class LBFGS(Optimizer):
    """Several steps at a time, each by asking the closure for the loss and its gradient again."""

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_lr(lr)
        evaluations = max_iter * 5 // 4 if max_eval is None else max_eval
        options = {"lr": lr, "max_iter": max_iter, "max_eval": evaluations, "tolerance_grad": tolerance_grad}
        more = {"tolerance_change": tolerance_change, "history_size": history_size, "line_search_fn": line_search_fn}
        super().__init__(params, {**options, **more})
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params: list[Tensor] = self.param_groups[0]["params"]

    def step(self, closure: Callable[[], Any]) -> Any:
        """Go down for up to `max_iter` steps; the loss before the first."""
        group = self.param_groups[0]
        with no_grad():
            loss = self._asked(closure)
            memory = self.state[self._params[0]]
            memory.setdefault("func_evals", 0)
            memory.setdefault("n_iter", 0)
            memory["func_evals"] += 1
            grad = self._flat_grad()
            if not bool(grad.abs().max() <= group["tolerance_grad"]):
                self._descend(closure, group, memory, float(loss), grad)
        return loss

    def _asked(self, closure: Callable[[], Any]) -> Any:
        with enable_grad():
            return closure()

    def _descend(
        self, closure: Callable[[], Any], group: dict[str, Any], memory: Memory, loss: float, grad: Tensor
    ) -> None:
        direction, size = memory.get("d"), memory.get("t")
        lr, evaluations, steps = scalar(group["lr"]), 1, 0
        while steps < group["max_iter"]:
            steps += 1
            memory["n_iter"] += 1
            direction = self._direction(memory, grad, direction, size, group["history_size"])
            before = loss
            _remember(memory, "prev_flat_grad", grad)
            memory["prev_loss"] = loss
            first = memory["n_iter"] == 1
            size = min(1.0, 1.0 / float(grad.abs().sum())) * lr if first else lr
            slope = float(grad.dot(direction))
            if slope > -group["tolerance_change"]:
                break
            is_last, asked = steps == group["max_iter"], 0
            if group["line_search_fn"] is not None:
                start = (loss, grad, slope)
                loss, grad, size, asked = self._search(closure, group, direction, size, start, evaluations)
                self._move(size, direction)
            else:
                self._move(size, direction)
                if not is_last:
                    loss, asked = float(self._asked(closure)), 1
                    grad = self._flat_grad()
            evaluations += asked
            memory["func_evals"] += asked
            memory["d"], memory["t"] = direction, size
            if (
                is_last
                or evaluations >= group["max_eval"]
                or self._is_over(group, grad, direction, size, loss - before)
            ):
                break
        memory["d"], memory["t"] = direction, size

    def _is_over(self, group: dict[str, Any], grad: Tensor, direction: Tensor, size: float, change: float) -> bool:
        tolerance = group["tolerance_change"]
        if bool(grad.abs().max() <= group["tolerance_grad"]):
            return True
        return bool(direction.mul(size).abs().max() <= tolerance) or abs(change) < tolerance

    def _direction(self, memory: Memory, grad: Tensor, last: Tensor | None, size: Any, history: int) -> Tensor:
        """Where to go: against the gradient, corrected by what is known of the curvature."""
        if memory["n_iter"] == 1 or last is None:
            memory.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return grad.neg()
        change = grad.sub(memory["prev_flat_grad"])
        step = last.mul(size)
        product = change.dot(step)
        if bool(product > 1e-10):
            _add_to_history(memory, change, step, product, history)
        changes, steps, ro = memory["old_dirs"], memory["old_stps"], memory["ro"]
        weights = memory.setdefault("al", [None] * history)
        direction: Tensor = grad.neg()
        for i in reversed(range(len(changes))):
            weights[i] = steps[i].dot(direction) * ro[i]
            direction.add_(changes[i], alpha=-float(weights[i]))
        direction = direction * memory["H_diag"]
        for i in range(len(changes)):
            back = changes[i].dot(direction) * ro[i]
            direction.add_(steps[i], alpha=float(weights[i] - back))
        return direction

    def _search(
        self,
        closure: Callable[[], Any],
        group: dict[str, Any],
        direction: Tensor,
        size: float,
        start: tuple[float, Tensor, float],
        evaluations: int,
    ) -> tuple[float, Tensor, float, int]:
        if group["line_search_fn"] != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        origin = [p.clone() for p in self._params]

        def look(distance: float) -> tuple[float, Tensor, float]:
            self._move(distance, direction)
            loss, grad = float(self._asked(closure)), self._flat_grad()
            for parameter, value in zip(self._params, origin, strict=True):
                parameter.copy_(value)
            return loss, grad, float(grad.dot(direction))

        widest = float(direction.abs().max())
        return strong_wolfe(look, size, widest, start, max_ls=group["max_eval"] - evaluations)

    def _flat_grad(self) -> Tensor:
        parts = [p.new_zeros(p.numel()) if p.grad is None else p.grad.reshape(-1) for p in self._params]
        flat = cat(parts, 0)
        return flat

    def _move(self, size: float, direction: Tensor) -> None:
        start = 0
        for parameter in self._params:
            end = start + parameter.numel()
            parameter.add_(direction[start:end].view_as(parameter), alpha=size)
            start = end


def _remember(memory: Memory, name: str, value: Tensor) -> None:
    if name in memory:
        memory[name].copy_(value)
    else:
        memory[name] = value.clone()


def _add_to_history(memory: Memory, change: Tensor, step: Tensor, product: Tensor, limit: int) -> None:
    if len(memory["old_dirs"]) == limit:
        for name in ("old_dirs", "old_stps", "ro"):
            memory[name].pop(0)
    memory["old_dirs"].append(change)
    memory["old_stps"].append(step)
    memory["ro"].append(1.0 / product)
    memory["H_diag"] = product / change.dot(change)
