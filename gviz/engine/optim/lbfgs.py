"""L-BFGS (Liu and Nocedal, 1989): steps that use an estimate of the curvature from the last gradients.

`LBFGS.step` makes several moves, and calls the closure for the loss and its gradient each time. All parameters are
treated as one vector. The direction of a move is the negative gradient times an estimate of the inverse Hessian. The
two loops in `_direction` apply that estimate; it comes from the last `history_size` pairs of a step and its change of
the gradient. The length of a move is the learning rate, or the result of `strong_wolfe`: a line search for a point
where the loss has decreased enough and the slope is flat enough (Nocedal and Wright, Numerical Optimization, 3.5).

The order of operations is PyTorch's, and so are the limits: several parameter groups raise an error, and a pair with
almost no curvature is left out of the history.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any

from gviz.engine.modes import enable_grad, no_grad
from gviz.engine.ops.joining import cat
from gviz.engine.optim.algorithms import check_lr, scalar
from gviz.engine.optim.optimizer import Memory, Optimizer, Parameters
from gviz.engine.tensor import Tensor


class LBFGS(Optimizer):
    """Makes several moves per step, each with another call of the closure for the loss and its gradient."""

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
        """Makes up to `max_iter` moves. Returns the loss before the first."""
        group = self.param_groups[0]
        with no_grad():
            loss = self._evaluated(closure)
            memory = self.state[self._params[0]]
            memory.setdefault("func_evals", 0)
            memory.setdefault("n_iter", 0)
            memory["func_evals"] += 1
            grad = self._flat_grad()
            if not bool(grad.abs().max() <= group["tolerance_grad"]):
                self._descend(closure, group, memory, float(loss), grad)
        return loss

    def _evaluated(self, closure: Callable[[], Any]) -> Any:
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
            if "prev_flat_grad" in memory:
                memory["prev_flat_grad"].copy_(grad)
            else:
                memory["prev_flat_grad"] = grad.clone()
            memory["prev_loss"] = loss
            first = memory["n_iter"] == 1
            size = min(1.0, 1.0 / float(grad.abs().sum())) * lr if first else lr
            slope = float(grad.dot(direction))
            if slope > -group["tolerance_change"]:
                break
            is_last, calls = steps == group["max_iter"], 0
            if group["line_search_fn"] is not None:
                start = (loss, grad, slope)
                loss, grad, size, calls = self._search(closure, group, direction, size, start, evaluations)
                self._move(size, direction)
            else:
                self._move(size, direction)
                if not is_last:
                    loss, calls = float(self._evaluated(closure)), 1
                    grad = self._flat_grad()
            evaluations += calls
            memory["func_evals"] += calls
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
        """Return the direction of descent: the negative gradient times the estimate of the inverse Hessian."""
        if memory["n_iter"] == 1 or last is None:
            memory.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return grad.neg()
        change = grad.sub(memory["prev_flat_grad"])
        step = last.mul(size)
        product = change.dot(step)
        if bool(product > 1e-10):
            if len(memory["old_dirs"]) == history:
                for name in ("old_dirs", "old_stps", "ro"):
                    memory[name].pop(0)
            memory["old_dirs"].append(change)
            memory["old_stps"].append(step)
            memory["ro"].append(1.0 / product)
            memory["H_diag"] = product / change.dot(change)
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
            loss, grad = float(self._evaluated(closure)), self._flat_grad()
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


ENOUGH = 1e-4
"""A step must decrease the loss by at least this fraction of what the first slope predicts."""
FLAT = 0.9
"""At the end, the slope must be at most this fraction of the first one."""
NARROW = 1e-9
"""The search stops when the bracket, times the largest element of the direction, is narrower than this."""


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a line search: its distance, and the loss, gradient and slope there."""

    at: float
    loss: float
    grad: Tensor
    slope: float


Look = Callable[[float], tuple[float, Tensor, float]]


def strong_wolfe(
    look: Look, size: float, widest: float, start: tuple[float, Tensor, float], max_ls: int
) -> tuple[float, Tensor, float, int]:
    """Returns the loss and gradient at a good distance, that distance, and the number of calls of `look`.

    It first brackets a good point, stepping further until the loss or the slope shows that one has been passed. It then
    narrows the bracket with cubic interpolation. `start` has loss, gradient and slope at 0; `widest` is the largest
    element of the direction.
    """
    origin = Point(0, start[0], start[1].clone(), start[2])
    bracket, is_good, looks = _bracketed(look, size, origin, max_ls)
    best, looks = _zoomed(look, bracket, widest, origin, is_good, looks, max_ls)
    return best.loss, best.grad, best.at, looks


def _point(look: Look, at: float) -> Point:
    loss, grad, slope = look(at)
    return Point(at, loss, grad.clone(), slope)


def _bracketed(look: Look, size: float, origin: Point, max_ls: int) -> tuple[list[Point], bool, int]:
    """Return one good point or two that enclose one; whether it is already good; and the number of calls."""
    before, now = origin, _point(look, size)
    tries = 0
    while tries < max_ls:
        if _too_high(now, origin) or (tries > 1 and now.loss >= before.loss):
            return [before, now], False, tries + 1
        if abs(now.slope) <= -FLAT * origin.slope:
            return [now], True, tries + 1
        if now.slope >= 0:
            return [before, now], False, tries + 1
        bounds = now.at + 0.01 * (now.at - before.at), now.at * 10
        before, now = now, _point(look, _lowest(before, now, bounds))
        tries += 1
    return [origin, now], False, tries + 1


def _zoomed(
    look: Look, bracket: list[Point], widest: float, origin: Point, is_good: bool, looks: int, max_ls: int
) -> tuple[Point, int]:
    """Return the good point in a bracket, and the number of calls so far."""
    low, high = sorted((bracket[0], bracket[-1]), key=lambda point: point.loss)
    stuck = False
    while not is_good and looks - 1 < max_ls and abs(high.at - low.at) * widest >= NARROW:
        at, stuck = _inside(low, high, stuck)
        now = _point(look, at)
        looks += 1
        if _too_high(now, origin) or now.loss >= low.loss:
            low, high = sorted((low, now), key=lambda point: point.loss)
            continue
        if abs(now.slope) <= -FLAT * origin.slope:
            is_good = True
        elif now.slope * (high.at - low.at) >= 0:
            high = low
        low = now
    return low, looks


def _too_high(point: Point, origin: Point) -> bool:
    return point.loss > origin.loss + ENOUGH * point.at * origin.slope


def _inside(low: Point, high: Point, stuck: bool) -> tuple[float, bool]:
    """Return the next distance to evaluate, not too close to an end twice in a row; and whether it is close to one."""
    first, last = sorted((low.at, high.at))
    at = _lowest(low, high, (first, last))
    margin = 0.1 * (last - first)
    if min(last - at, at - first) >= margin:
        return at, False
    if not (stuck or at >= last or at <= first):
        return at, True
    return (last - margin if abs(at - last) < abs(at - first) else first + margin), False


def _lowest(a: Point, b: Point, bounds: tuple[float, float]) -> float:
    """Return the minimum of the cubic through two points with their slopes, within bounds."""
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.at - b.at)
    square = d1**2 - a.slope * b.slope
    if square < 0:
        return (bounds[0] + bounds[1]) / 2.0
    d2 = sqrt(square)
    left, right = (a, b) if a.at <= b.at else (b, a)
    part = (right.slope + d2 - d1) / (right.slope - left.slope + 2 * d2)
    return min(max(right.at - (right.at - left.at) * part, bounds[0]), bounds[1])
