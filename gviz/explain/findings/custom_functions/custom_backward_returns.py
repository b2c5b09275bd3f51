"""A custom backward that returns the wrong gradients: too few or too many gradients, wrong shapes, None for an input.

PyTorch's message names the class and two numbers, at the line that calls ``backward()``. The mistake is in the
``return`` of the function: the finding names that line, the inputs of ``forward``, and the input without a gradient.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from gviz.events import StepStarted
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.program_errors import Failure
from gviz.explain.program_text import (
    ProgramText,
    classes_named,
    frame_of_part,
    methods_of,
    names_read,
    positional_parameters,
)
from gviz.explain.source_edit import Edit, is_none, node_replaced, returned_values
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.number_text import shape_text
from gviz.values.plain_text import file_line, shown

COUNT = r"function (\w+)Backward returned an incorrect number of gradients \(expected (\d+), got (\d+)\)"
SHAPE = (
    r"[Ff]unction (\w+)Backward returned an invalid gradient at index (\d+) - got \[([\d, ]*)\] "
    r"but expected shape compatible with \[([\d, ]*)\]"
)
NO_TENSOR = r"function (\w+)Backward returned a gradient different than None at position (\d+)"


def of_count(failure: Failure) -> Finding | None:
    """Return the finding about a backward that returns another number of gradients than forward has inputs."""
    match = re.search(COUNT, failure.message)
    code = _backward_text(failure.timeline, match[1]) if match is not None else None
    if match is None or code is None:
        return None
    expected, got = int(match[2]), int(match[3])
    returned = code.returned(got)
    names = _input_names(code, expected)
    listed = f" ({', '.join(names)})" if names else ""
    given = f"forward gets {_count(expected, 'input')}{listed}"
    text = titled("{} returns {} for {}", f"{match[1]}.backward", _count(got, "gradient"), _count(expected, "input"))
    needed = _needed(failure, code, expected)
    lacks = ", ".join(names[got:expected])
    part = f"{given}, and backward returns {_count(got, 'gradient')}"
    fix, edit = "return one gradient for each input, in their order; None for an input that needs none", None
    if got < expected and lacks:
        part = f"{part}: none for {lacks}"
    if got < expected and needed is not None and returned is not None:
        edit = code.with_none(returned, needed)
        if edit is not None:
            without = [name for name, need in zip(names, needed, strict=True) if not need]
            fix = f"return None for {', '.join(without)}, which needs no gradient"
            fix = fix.replace("needs", "need") if len(without) > 1 else fix
    elif got > expected:
        part = f"{given}, and backward returns {_count(got, 'gradient')}: {got - expected} too many"
    at = code.frame(returned) if returned is not None else code.frame(code.returns[-1]) if code.returns else failure.at
    return _failed(failure, text, part, fix, at, edit=edit)


def of_shape(failure: Failure) -> Finding | None:
    """Return the finding about a gradient that has another shape than its input."""
    match = re.search(SHAPE, failure.message)
    code = _backward_text(failure.timeline, match[1]) if match is not None else None
    if match is None or code is None:
        return None
    index, got, expected = int(match[2]), _sizes(match[3]), _sizes(match[4])
    name = _name_at(code, index)
    shapes = shape_text(got), shape_text(expected)
    text = titled("{} returns a gradient of shape {} for {}", f"{match[1]}.backward", shapes[0], name)
    part = f"{name}, input {index + 1} of forward, has the shape {shapes[1]}: its gradient needs it, too"
    fix = f"the gradient of {name} in the shape {shapes[1]}"
    if len(got) == 2 and got == expected[::-1]:
        fix = f"transpose it, or swap its factors: g.t() @ x is the transpose of x.t() @ g; {fix}"
    elif len(got) > len(expected) and got[len(got) - len(expected) :] != expected:
        fix = f"sum over the dimensions that forward expands {name} in; {fix}"
    return _failed(failure, text, part, fix, _value_place(code, index) or failure.at)


def of_no_tensor(failure: Failure) -> Finding | None:
    """Return the finding about a gradient for an input that is no tensor; often the order is wrong."""
    match = re.search(NO_TENSOR, failure.message)
    code = _backward_text(failure.timeline, match[1]) if match is not None else None
    if match is None or code is None:
        return None
    index = int(match[2]) - 1
    name = _name_at(code, index)
    text = titled("{} returns a gradient for {}, which is no tensor", f"{match[1]}.backward", name)
    order = ", ".join(code.inputs)
    part = f"forward gets {order}: the gradients must have this order, and {name} gets None"
    return _failed(failure, text, part, f"return None for {name}", _value_place(code, index) or failure.at)


def _failed(failure: Failure, text: str, part: str, fix: str, at: Frame | None, *, edit: Edit | None = None) -> Finding:
    node = failure.node
    parts = [Finding("message", part, failure.seq, node)]
    if node and failure.at is not None:
        called = f"{label_at(failure.timeline, node)}; {file_line(failure.at.path, failure.at.line)} called backward"
        parts.append(Finding("at", f"in the backward of {called}", failure.seq, node, at=failure.at))
    return Finding("failed", text, failure.seq, node, tuple(parts), fix, at, edit=edit)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(size) for size in re.findall(r"\d+", text))


def _input_names(code: _BackwardText, count: int) -> Sequence[str]:
    """Return the names of the inputs that a call gave; none if the forward gets them as ``*args``."""
    return code.inputs[:count] if len(code.inputs) >= count else ()


def _name_at(code: _BackwardText, index: int) -> str:
    return code.inputs[index] if index < len(code.inputs) else f"input {index + 1}"


def _value_place(code: _BackwardText, index: int) -> Frame | None:
    """Return the expression that is returned for an input, or else the line that returns."""
    if len(code.returns) != 1:
        return code.frame(code.returns[-1]) if code.returns else None
    value = code.returns[0].value
    values = getattr(value, "elts", [value])
    return code.frame(values[index]) if index < len(values) and len(values) > 1 else code.frame(code.returns[0])


def _needed(failure: Failure, code: _BackwardText, count: int) -> list[bool] | None:
    """Return for each input of a call whether it is a tensor with a gradient; None if that is unknown."""
    names = _input_names(code, count)
    if not names or not failure.node:
        return None
    info, timeline = failure.timeline.info(failure.node), failure.timeline
    slots = info.op.slots
    if len(slots) != len(info.created.inputs) or not set(slots) <= set(names):
        return None
    tracked = {
        name
        for name, (node, _) in zip(slots, info.created.inputs, strict=True)
        if not node or timeline.info(node).created.requires_grad
    }
    return [name in tracked for name in names]


# None for an input that needs a gradient


def none_for_input(timeline: Timeline, started: int, node: int) -> Finding | None:
    """Return the finding about a function whose backward ran in a pass, and returned None for the path to a node."""
    waiting, seen = [node], {node}
    while waiting and len(seen) < _MOST:
        one = waiting.pop()
        for user in timeline.nodes.users(one):
            info = timeline.info(user)
            if user in seen or not info.created.requires_grad:
                continue
            seen.add(user)
            if not _has_arrived(timeline, started, user):
                waiting.append(user)
            elif info.op.is_of_program:
                return _none_finding(timeline, node, one, user)
    return None


def _has_arrived(timeline: Timeline, started: int, node: int) -> bool:
    """Return whether a gradient has arrived at a node since an event; PyTorch also runs rules on none."""
    events = (timeline.event(seq) for seq in timeline.events_of(node) if seq > started)
    return any(isinstance(event, StepStarted) and any(one is not None for one in event.grads) for event in events)


_MOST = 2000
"""The most results of a leaf that are followed."""


def _none_finding(timeline: Timeline, node: int, source: int, function: int) -> Finding | None:
    info = timeline.info(function)
    code = _backward_text(timeline, info.op.name)
    slot = next(slot for slot, (one, _) in enumerate(info.created.inputs) if one == source)
    name = info.op.slots[slot] if slot < len(info.op.slots) else ""
    if code is None or name not in code.inputs:
        return None
    text = titled("{} got no gradient: {} returns None for it", label(timeline, node), f"{info.op.name}.backward")
    part = f"{label_at(timeline, function)} gets {label(timeline, source)} as {shown(name)}, and sent nothing to it"
    at = _value_place(code, code.inputs.index(name))
    fix = f"return the gradient of {name}, if it is to learn: input {code.inputs.index(name) + 1} of forward"
    return Finding("not-reached", text, info.born, node, (Finding("elsewhere", part, info.born, function),), fix, at)


# What the program's source code shows


@dataclass(frozen=True, slots=True)
class _BackwardText:
    """The class of a program's function: the inputs of its `forward`, and the lines with which `backward` returns."""

    text: ProgramText
    inputs: tuple[str, ...]
    backward: ast.FunctionDef
    returns: tuple[ast.Return, ...]

    def returned(self, count: int) -> ast.Return | None:
        """Return the line that returns `count` gradients; None if several do, or none surely does."""
        if len(self.returns) == 1:
            return self.returns[0]
        fitting = [one for one in self.returns if isinstance(one.value, ast.Tuple) or count == 1]
        fitting = [one for one in fitting if len(returned_values(one)) == count]
        return fitting[0] if len(fitting) == 1 else None

    def frame(self, part: ast.stmt | ast.expr) -> Frame:
        """Return the place of a statement or expression of ``backward``."""
        return frame_of_part(self.text, part, self.backward.name)

    def with_none(self, one: ast.Return, needed: Sequence[bool]) -> Edit | None:
        """Add None for each input that needs no gradient, by position.

        The gradients that are returned are those of the first inputs, or those of all inputs that need one, in order.
        """
        values = returned_values(one)
        texts = [self.text.segment(value) for value in values]
        if len(self.returns) != 1 or not all(self._is_one_gradient(value) for value in values):
            return None
        rest = needed[len(values) :]
        known = [need or is_none(value) for need, value in zip(needed, values, strict=False)]
        if all(known) and not any(rest):
            new = [*texts, *["None"] * len(rest)]
        elif sum(needed) == len(values) and not any(map(is_none, values)):
            left = iter(texts)
            new = [next(left) if need else "None" for need in needed]
        else:
            return None
        return node_replaced(self.text, one, f"return {', '.join(new)}") if one.value is not None else None

    def _is_one_gradient(self, value: ast.expr) -> bool:
        """Return whether an expression surely is one tensor or None, and no tuple of several."""
        match value:
            case ast.Constant(value=None):
                return True
            case ast.BinOp(left=left, right=right):
                return any(self._is_one_gradient(part) and not is_none(part) for part in (left, right))
            case ast.UnaryOp(operand=operand):
                return not isinstance(value.op, ast.Not) and self._is_one_gradient(operand)
            case ast.Call(func=ast.Attribute(attr=name)):
                return name in _GIVING_ONE
            case ast.Name(id=name):
                return self._is_gradient_name(name)
        return False

    def _is_gradient_name(self, name: str) -> bool:
        """Return whether a variable is the gradient that arrives, or is only assigned tensors."""
        if name in positional_parameters(self.backward)[1:]:
            return True
        values = [
            part.value
            for part in ast.walk(self.backward)
            if isinstance(part, ast.Assign) and any(isinstance(to, ast.Name) and to.id == name for to in part.targets)
        ]
        own = [value for value in values if name not in names_read(value)]
        return bool(values) and all(is_none(value) or self._is_one_gradient(value) for value in own)


_GIVING_ONE = frozenset({
    "clone", "neg", "mul", "add", "sub", "div", "matmul", "mm", "bmm", "sum", "mean", "view", "reshape", "t",
    "contiguous", "transpose", "permute", "expand", "expand_as", "clamp", "sign", "masked_fill", "to", "type", "float",
    "half", "unsqueeze", "squeeze", "zeros_like", "ones_like", "where", "exp", "sigmoid", "tanh", "einsum", "mul_",
    "neg_", "clamp_", "masked_fill_", "view_as", "reshape_as", "type_as", "flatten",
})  # fmt: skip
"""Methods and functions whose result is one tensor."""


def _backward_text(timeline: Timeline, function: str) -> _BackwardText | None:
    """Return the class of a function of the program; None if there is none, or several of its name."""
    found = []
    for text, owner in classes_named(timeline, function):
        methods = methods_of(owner)
        forward, backward = methods.get("forward"), methods.get("backward")
        if forward is not None and backward is not None:
            has_context = "setup_context" not in methods
            names = positional_parameters(forward)[has_context:]
            own = [one.node for one in text.by_function.get(backward, ())]
            returns = tuple(part for part in own if isinstance(part, ast.Return) and part.value is not None)
            found.append(_BackwardText(text, tuple(names), backward, returns))
    return found[0] if len(found) == 1 else None
