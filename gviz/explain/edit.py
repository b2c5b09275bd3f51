"""A fix as an edit: the lines of the program that it changes, and their new text.

The recorded text is parsed, never run. An edit is made only if its statement is found as the trace has it, and only if
the program is still valid Python after it. Otherwise there is no edit, and the fix is only described in words. Each
function makes one kind of change and returns the `Edit`, or None.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches, unified_diff
from typing import TypeAlias

from gviz.explain.program_source import (
    BLOCKS,
    FUNCTION_NODES,
    ProgramText,
    Statement,
    called_name,
    classes_named,
    frame_of,
    function_of,
    is_at,
    keyword_text,
    method_self,
    methods_of,
    names_read,
    names_set,
    parsed_program,
    program_text,
    scope_of,
    statement_at,
    update_in_place,
    variables_of,
)
from gviz.source import syntax
from gviz.source.site import Frame, source_lines
from gviz.trace.timeline import Timeline

Change: TypeAlias = Callable[[ast.expr], str | None]
"""The new text of an expression, or None if it stays."""


STEP = 4
"""The spaces of one more level of indentation."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A replacement of whole lines of a program from `line`: `old` and `new` are their texts, with line ends."""

    path: str
    line: int
    old: str
    new: str

    @property
    def end_line(self) -> int:
        """The last line that is replaced."""
        return self.line + self.old.count("\n") - 1

    def diff(self) -> list[str]:
        """Return the change as lines that begin with ``-``, ``+`` or, if they stay, a space."""
        rows = unified_diff(self.old.splitlines(), self.new.splitlines(), lineterm="", n=0)
        return [row for row in rows if not row.startswith(("---", "+++", "@@"))]

    def applied(self, text: str) -> str:
        """Return the text of the program after the edit. Raises ValueError if its lines have changed since."""
        rows = [f"{row}\n" for row in source_lines(text)]
        first, count = self.line - 1, self.old.count("\n")
        if "".join(rows[first : first + count]) != self.old:
            raise ValueError(f"line {self.line} has changed")
        return "".join([*rows[:first], self.new, *rows[first + count :]])


def _instead(text: ProgramText, node: ast.expr | ast.stmt, new: str) -> Edit | None:
    """Return the edit that replaces a node of the syntax tree with a text."""
    first, last = node.lineno, node.end_lineno or node.lineno
    rows = [row.encode() for row in text.rows[first - 1 : last]]
    head, tail = rows[0][: node.col_offset].decode(), rows[-1][node.end_col_offset :].decode()
    return _lines(text, first, last, f"{head}{new}{tail}\n")


def _each(text: ProgramText, changes: Sequence[tuple[ast.expr, str]]) -> Edit | None:
    """Return the edit that replaces several parts by texts; of nested parts only the outer one is replaced."""
    if not changes or any(part.lineno != part.end_lineno for part, _ in changes):
        return _instead(text, *changes[0]) if len(changes) == 1 else None
    first, last = min(part.lineno for part, _ in changes), max(part.lineno for part, _ in changes)
    rows = {line: text.rows[line - 1].encode() for line in range(first, last + 1)}
    places = [(part.lineno, part.col_offset, part.end_col_offset or 0, new) for part, new in changes]
    outer = [
        (line, start, end, new)
        for line, start, end, new in places
        if not any(line == at and a <= start and end <= b and (a, b) != (start, end) for at, a, b, _ in places)
    ]
    for line, start, end, new in sorted(outer, reverse=True):
        rows[line] = rows[line][:start] + new.encode() + rows[line][end:]
    return _lines(text, first, last, "".join(f"{row.decode()}\n" for row in rows.values()))


def _lines(text: ProgramText, first: int, last: int, new: str) -> Edit | None:
    """Return the edit that replaces lines; None if the result is the same or not a valid program."""
    old = "".join(f"{row}\n" for row in text.rows[first - 1 : last])
    edit = Edit(text.path, first, old, new)
    after = "".join(f"{row}\n" for row in text.rows[: first - 1]) + new
    try:
        syntax.program(after + "".join(f"{row}\n" for row in text.rows[last:]))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return edit if old != new else None


# Changes of an expression


def rewritten(
    timeline: Timeline, at: Frame | None, change: Callable[[ProgramText], Change], *, every: bool = False
) -> Edit | None:
    """Change the first matching expression: in the one that ran at a frame, or else in its statement.

    `change` returns the new text of an expression that matches. With `every` all matching expressions of the statement
    are changed.
    """
    source = statement_at(timeline, at)
    if source is None or at is None:
        return None
    text, one = source
    known = change(text)
    parts = [*one.parts(ast.expr)]
    if every:
        return _each(text, [(part, new) for part in parts if (new := known(part)) is not None])
    ran = [part for part in parts if is_at(part, at)]
    for part in (*ran, *(inner for outer in ran for inner in ast.walk(outer)), *parts):
        if isinstance(part, ast.expr) and (new := known(part)) is not None:
            return _instead(text, part, new)
    return None


def without_method(timeline: Timeline, at: Frame | None, *names: str) -> Edit | None:
    """Replace ``x.detach()`` with ``x``."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            match part:
                case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in names:
                    return text.segment(value)
            return None

        return known

    return rewritten(timeline, at, change)


def without_attribute(timeline: Timeline, at: Frame | None, attribute: str) -> Edit | None:
    """Replace ``x.data`` with ``x``."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            match part:
                case ast.Attribute(value=value, attr=name) if name == attribute:
                    return text.segment(value)
            return None

        return known

    return rewritten(timeline, at, change)


def without_call(timeline: Timeline, at: Frame | None, *names: str) -> Edit | None:
    """Replace ``nn.Parameter(x)`` or ``torch.sigmoid(x)`` with ``x``, the first argument of the call.

    A sum or another expression of operands keeps parentheses where it is an operand itself: ``y - (a + b)``.
    """
    source = statement_at(timeline, at)
    operands = [
        operand
        for part in (source[1].parts(ast.expr) if source is not None else ())
        for operand in ast.iter_child_nodes(part)
        if isinstance(part, ast.BinOp | ast.UnaryOp | ast.Compare | ast.Attribute | ast.Subscript)
    ]
    places = {(one.lineno, one.col_offset, one.end_col_offset) for one in operands if isinstance(one, ast.expr)}

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            if isinstance(part, ast.Call) and part.args and called_name(part) in names and not _is_method(part):
                inner = part.args[0]
                is_joined = isinstance(
                    inner, ast.BinOp | ast.UnaryOp | ast.BoolOp | ast.Compare | ast.IfExp | ast.Lambda
                )
                is_operand = (part.lineno, part.col_offset, part.end_col_offset) in places
                return f"({text.segment(inner)})" if is_joined and is_operand else text.segment(inner)
            return None

        return known

    return rewritten(timeline, at, change)


_OF_ARRAYS = ("from_numpy", "tensor", "as_tensor", "asarray", "array", "FloatTensor", "Tensor")


_TO_ARRAYS = ("numpy", "tolist", "detach", "cpu", "item")


def without_new_leaf(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Replace ``Variable(x.data, requires_grad=True)`` with ``x``: without ``.data``, it would still be a new leaf."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            match part:
                case ast.Call(func=ast.Name(id="Variable") | ast.Attribute(attr="Variable"), args=[value, *_]):
                    match value:
                        case ast.Attribute(value=inner, attr="data"):
                            return text.segment(inner)
                        case ast.Call(func=ast.Attribute(value=inner, attr="detach")):
                            return text.segment(inner)
            return None

        return known

    source = statement_at(timeline, at)
    calls = [*source[1].parts(ast.Call)] if source is not None else []
    return rewritten(timeline, at, change) if any(called_name(call) == "Variable" for call in calls) else None


def without_arrays(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Replace ``torch.from_numpy(x.detach().numpy())`` with ``x``."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            if not (isinstance(part, ast.Call) and part.args and called_name(part) in _OF_ARRAYS):
                return None
            inner, left = part.args[0], False
            while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and not inner.args:
                if inner.func.attr not in _TO_ARRAYS:
                    break
                inner, left = inner.func.value, True
            return text.segment(inner) if left else None

        return known

    return rewritten(timeline, at, change)


def renamed_call(timeline: Timeline, at: Frame | None, old: str, new: str) -> Edit | None:
    """Replace ``dist.sample()`` with ``dist.rsample()``."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            if not (isinstance(part, ast.Call) and called_name(part) == old):
                return None
            head = text.segment(part.func)
            return f"{head.removesuffix(old)}{new}{text.segment(part).removeprefix(head)}"

        return known

    return rewritten(timeline, at, change)


def with_swapped_arguments(timeline: Timeline, at: Frame | None, function: str) -> Edit | None:
    """Replace ``kl_div(p, q)`` with ``kl_div(q, p)``: the first two arguments of the call that ran."""

    def change(text: ProgramText) -> Change:
        swapped: dict[ast.expr, str] = {}
        for call in ast.walk(text.tree):
            match call:
                case ast.Call(args=[first, second, *_]) if at is not None and is_at(call, at):
                    if called_name(call) == function and not isinstance(first, ast.Starred):
                        swapped = {first: text.segment(second), second: text.segment(first)}
        return swapped.get

    return rewritten(timeline, at, change, every=True)


def with_keyword(timeline: Timeline, at: Frame | None, function: str, name: str, value: str) -> Edit | None:
    """Add a keyword to a call, or change its value: ``create_graph=True``."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            if not (isinstance(part, ast.Call) and called_name(part) == function):
                return None
            for keyword in part.keywords:
                if keyword.arg == name:
                    whole = text.segment(keyword.value)
                    return None if whole == value else _with(text, part, keyword, value)
            whole = text.segment(part)
            comma = ", " if part.args or part.keywords else ""
            return f"{whole[:-1].rstrip().rstrip(',')}{comma}{name}={value})"

        return known

    return rewritten(timeline, at, change)


def summed_rows(timeline: Timeline, at: Frame | None, function: str) -> Edit | None:
    """Replace the mean of a loss with that of the sums of rows: ``F.mse_loss(y, x, reduction="sum") / len(y)``.

    A method ``e.mean()`` becomes ``e.flatten(1).sum(1).mean()``.
    """
    source = statement_at(timeline, at)
    whole = getattr(source[1].node, "value", None) if source is not None else None

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            match part:
                case ast.Call(func=ast.Attribute(attr="mean"), args=[], keywords=[]) if function == "mean":
                    return re.sub(r"mean\(\s*\)$", "flatten(1).sum(1).mean()", text.segment(part))
                case ast.Call(args=[ast.Name(id=first), *_], keywords=keywords) if called_name(part) == function:
                    if any(one.arg in ("reduction", "size_average", "reduce", None) for one in keywords):
                        return None
                    call = text.segment(part)[:-1].rstrip().rstrip(",")
                    new = f'{call}, reduction="sum") / len({first})'
                    return new if part is whole else f"({new})"
            return None

        return known

    return rewritten(timeline, at, change) if function else None


SEQUENCE_LAYERS = (
    "RNN", "LSTM", "GRU", "MultiheadAttention", "TransformerEncoderLayer", "TransformerDecoderLayer", "Transformer",
)  # fmt: skip
"""The layers of PyTorch that read (time, batch, features), unless they are made with ``batch_first=True``."""


def with_batch_first(timeline: Timeline, at: Frame | None) -> tuple[str, Edit] | None:
    """Return the layer for sequences that a line makes without ``batch_first``, and the edit that adds it."""
    for kind in SEQUENCE_LAYERS:
        if keyword_text(timeline, at, kind, "batch_first") in ("", "False"):
            edit = with_keyword(timeline, at, kind, "batch_first", "True")
            if edit is not None:
                return kind, edit
    return None


def without_keyword(timeline: Timeline, at: Frame | None, function: str, name: str) -> Edit | None:
    """Leave out a keyword of a call: ``Embedding(9, 4)`` for ``Embedding(9, 4, padding_idx=0)``."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            if not (isinstance(part, ast.Call) and called_name(part) == function):
                return None
            kept = [one for one in part.keywords if one.arg != name]
            if len(kept) == len(part.keywords) or any(one.arg is None for one in kept):
                return None
            given = [text.segment(one) for one in part.args] + [f"{one.arg}={text.segment(one.value)}" for one in kept]
            return f"{text.segment(part.func)}({', '.join(given)})"

        return known

    return rewritten(timeline, at, change)


def with_argument(
    timeline: Timeline, at: Frame | None, function: str, number: int, name: str, value: str
) -> Edit | None:
    """Change an argument of a call, by its position or its keyword: ``GroupNorm(4, 16)`` for ``GroupNorm(16, 16)``."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            if not (isinstance(part, ast.Call) and called_name(part) == function):
                return None
            if any(isinstance(one, ast.Starred) for one in part.args) or any(one.arg is None for one in part.keywords):
                return None
            named = [one.value for one in part.keywords if one.arg == name]
            chosen = part.args[number] if number < len(part.args) else named[0] if named else None
            return text.with_part(part, chosen, value) if chosen is not None else None

        return known

    return rewritten(timeline, at, change)


def replaced_call(timeline: Timeline, at: Frame | None, name: str) -> Edit | None:
    """Replace the call that ran at a frame with a variable: ``x + torch.randn_like(x)`` with ``x + noise``."""

    def change(_: ProgramText) -> Change:
        return lambda part: name if isinstance(part, ast.Call) and at is not None and is_at(part, at) else None

    return rewritten(timeline, at, change)


def keyword_if_training(timeline: Timeline, at: Frame | None, function: str, name: str, otherwise: str) -> Edit | None:
    """Limit the value of a keyword of a call in a method to training: ``p if self.training else 0.0``."""
    own = method_self(timeline, at)

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            if isinstance(part, ast.Call) and called_name(part) == function:
                for keyword in part.keywords:
                    if keyword.arg == name and "training" not in (value := text.segment(keyword.value)):
                        return _with(text, part, keyword, f"{value} if {own}.training else {otherwise}")
            return None

        return known

    return rewritten(timeline, at, change) if own else None


def _with(text: ProgramText, call: ast.Call, keyword: ast.keyword, value: str) -> str:
    """Return the text of a call with another value of a keyword."""
    arguments = [text.segment(one) for one in call.args]
    others = [
        f"{one.arg}={value if one is keyword else text.segment(one.value)}"
        if one.arg
        else f"**{text.segment(one.value)}"
        for one in call.keywords
    ]
    return f"{text.segment(call.func)}({', '.join([*arguments, *others])})"


def wrapped(timeline: Timeline, at: Frame | None, name: str, suffix: str) -> Edit | None:
    """Replace the first ``fake`` that an expression reads with ``fake.detach()``."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            is_it = isinstance(part, ast.Name | ast.Attribute) and text.segment(part) == name
            return f"{name}{suffix}" if is_it and isinstance(getattr(part, "ctx", None), ast.Load) else None

        return known

    return rewritten(timeline, at, change)


def inverted(timeline: Timeline, at: Frame | None, name: str) -> Edit | None:
    """Replace the first ``mask`` that an expression reads with ``~mask``; without that name, ``==`` with ``!=``."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            is_it = isinstance(part, ast.Name | ast.Attribute) and text.segment(part) == name
            if is_it and isinstance(getattr(part, "ctx", None), ast.Load):
                return f"~{name}"
            match part:
                case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq() as op], comparators=[right]) if not name:
                    other = "!=" if isinstance(op, ast.Eq) else "=="
                    return f"{text.segment(left)} {other} {text.segment(right)}"
            return None

        return known

    return rewritten(timeline, at, change)


def with_other_sign(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Replace ``a + b`` with ``a - b`` or the other way round, or leave out the minus of ``-a`` or ``-2 * a``."""
    if at is None or at.column < 0:
        return None

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            if not is_at(part, at):
                return None
            match part:
                case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
                    sign = "-" if isinstance(op, ast.Add) else "+"
                    whole, first, last = text.segment(part), text.segment(left), text.segment(right)
                    between = whole[len(first) : len(whole) - len(last)]
                    is_plain = whole.startswith(first) and whole.endswith(last) and between.strip() in ("+", "-")
                    return f"{first}{re.sub('[+-]', sign, between)}{last}" if is_plain else None
                case ast.UnaryOp(op=ast.USub(), operand=operand):
                    return text.segment(operand)
                case ast.BinOp(left=ast.UnaryOp(op=ast.USub(), operand=operand) as left, op=ast.Mult() | ast.Div()):
                    return text.with_part(part, left, text.segment(operand))
            return None

        return known

    return rewritten(timeline, at, change)


def as_permuted(timeline: Timeline, at: Frame | None, order: tuple[int, ...]) -> Edit | None:
    """Replace ``h.view(n, -1)`` with ``h.transpose(0, 1).reshape(n, -1)``, for any order of dimensions.

    A function of a module, such as ``torch.reshape(h, (n, -1))``, gets another first argument.
    """
    by = permutation(order)

    def change(text: ProgramText) -> Change:
        modules = _imported(text)

        def known(part: ast.expr) -> str | None:
            match part:
                case ast.Call(func=ast.Attribute(value=value, attr="reshape"), args=[first, *_]) if (
                    text.segment(value) in modules
                ):
                    old = text.segment(first)
                    simple = isinstance(first, ast.Name | ast.Call | ast.Attribute | ast.Subscript)
                    whole, head = text.segment(part), text.segment(part.func)
                    tail = whole.removeprefix(head).replace(old, f"{old if simple else f'({old})'}.{by}", 1)
                    return f"{head}{tail}"
                case ast.Call(func=ast.Attribute(value=value, attr="view" | "reshape")):
                    inner = text.segment(part)[len(text.segment(part.func)) :]
                    return f"{text.segment(value)}.{by}.reshape{inner}"
            return None

        return known

    return rewritten(timeline, at, change)


def permutation(order: tuple[int, ...]) -> str:
    """Return ``transpose(0, 1)`` for an exchange of two dimensions, or else ``permute(1, 2, 0)``."""
    moved = [dim for dim, source in enumerate(order) if dim != source]
    return f"transpose({moved[0]}, {moved[1]})" if len(moved) == 2 else f"permute{order}"


def _imported(text: ProgramText) -> set[str]:
    """Return the names of the modules that a program imports."""
    imports = [one.node for one in text.statements if isinstance(one.node, ast.Import)]
    return {each.asname or each.name for one in imports for each in one.names}


def last_steps(timeline: Timeline, at: Frame | None, padded: Frame | None, *, batch_first: bool) -> Edit | None:
    """Replace ``out[:, -1]`` with ``out[torch.arange(len(lengths)), lengths - 1]``.

    The lengths are what `pad_packed_sequence` returns at the line `padded`, or what `pack_padded_sequence` got in the
    same function.
    """
    source, returned = statement_at(timeline, at), statement_at(timeline, padded)
    if source is None or returned is None or source[0] is not returned[0] or source[1].around != returned[1].around:
        return None
    text = source[0]
    if "torch" not in _imported(text):
        return None
    lengths = _lengths(text, returned[1])
    if not lengths:
        return None

    def change(_: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            match part:
                case ast.Subscript(value=value, slice=index) if _is_last(index, batch_first=batch_first):
                    rows, steps = f"torch.arange(len({lengths}))", f"{lengths} - 1"
                    return f"{text.segment(value)}[{f'{rows}, {steps}' if batch_first else f'{steps}, {rows}'}]"
            return None

        return known

    return rewritten(timeline, at, change)


def _lengths(text: ProgramText, returned: Statement) -> str:
    """Return the variable that has the lengths of sequences as a tensor; empty if there is none."""
    match returned.node:
        case ast.Assign(targets=[ast.Tuple(elts=[_, ast.Name(id=name)])]) if not name.startswith("_"):
            return name
    for one in text.statements:
        if one.around != returned.around or one.first > returned.first:
            continue
        for call in one.parts(ast.Call):
            if called_name(call) == "pack_padded_sequence":
                given = call.args[1] if len(call.args) > 1 else None
                given = next((each.value for each in call.keywords if each.arg == "lengths"), given)
                match given:
                    case ast.Name(id=name) | ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="cpu")):
                        return name
    return ""


def _is_last(index: ast.expr, *, batch_first: bool) -> bool:
    """Return whether an index takes the last step: ``[:, -1]``, ``[:, -1, :]``, or ``[-1]``."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    texts = [ast.unparse(part) for part in parts]
    return texts in ([":", "-1"], [":", "-1", ":"]) if batch_first else texts in (["-1"], ["-1", ":"], ["-1", ":", ":"])


def operand(timeline: Timeline, at: Frame | None, number: int, suffix: str) -> Edit | None:
    """Append a suffix to one of two operands: of the difference that ran at a frame, or of the arguments of a call."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            match part:
                case ast.BinOp(left=left, right=right) if at is not None and is_at(part, at):
                    pair = [left, right]
                case ast.Call(args=[left, right, *_]) if at is not None and is_at(part, at):
                    pair = [left, right]
                case _:
                    return None
            old = text.segment(pair[number])
            simple = isinstance(pair[number], ast.Name | ast.Call | ast.Attribute | ast.Subscript)
            return text.with_part(part, pair[number], f"{old if simple else f'({old})'}{suffix}")

        return known

    return rewritten(timeline, at, change)


def argument_suffix(timeline: Timeline, at: Frame | None, function: str, suffix: str) -> Edit | None:
    """Append a suffix to the argument of a function, or the object of a method: ``torch.log(x.clamp())``.

    Every call of the function in the statement gets it: in ``y * log(p) + (1 - y) * log(1 - p)`` either may fail next.
    """

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            if not (isinstance(part, ast.Call) and called_name(part) == function):
                return None
            inner = part.args[0] if part.args else part.func.value if isinstance(part.func, ast.Attribute) else None
            if inner is None or (_is_method(part) and part.args):
                return None
            old = text.segment(inner)
            simple = isinstance(inner, ast.Name | ast.Call | ast.Attribute | ast.Subscript)
            new = f"{old if simple else f'({old})'}{suffix}"
            whole, head = text.segment(part), text.segment(part.func)
            return f"{head}{whole.removeprefix(head).replace(old, new, 1)}" if part.args else whole.replace(old, new, 1)

        return known

    return rewritten(timeline, at, change, every=True)


def with_suffix(timeline: Timeline, at: Frame | None, name: str, suffix: str) -> Edit | None:
    """Append a suffix to a variable wherever a statement reads it: ``net(x.float())``."""

    def change(_: ProgramText) -> Change:
        return lambda part: (
            f"{name}{suffix}"
            if isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load)
            else None
        )

    return rewritten(timeline, at, change, every=True) if name else None


def renamed_variable(timeline: Timeline, at: Frame | None, old: str, new: str) -> Edit | None:
    """Read another variable wherever a statement reads one: ``log_probs * returns`` for ``mean * returns``."""

    def change(_: ProgramText) -> Change:
        return lambda part: (
            new if isinstance(part, ast.Name) and part.id == old and isinstance(part.ctx, ast.Load) else None
        )

    return rewritten(timeline, at, change, every=True) if old else None


def with_floor_division(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Replace ``n / 2`` with ``n // 2`` among the arguments of a statement."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            match part:
                case ast.BinOp(op=ast.Div(), right=right):
                    whole = text.with_part(part, right, "\0")
                    between = whole.rindex("/", 0, whole.index("\0"))
                    return f"{whole[:between]}/{whole[between:]}".replace("\0", text.segment(right))
            return None

        return known

    return rewritten(timeline, at, change)


def with_parameters(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Append ``.parameters()`` to the first argument of an optimizer."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            match part:
                case ast.Call(func=ast.Attribute(value=value), args=[ast.Name() | ast.Attribute() as model, *_]):
                    if not text.segment(value).endswith("optim"):
                        return None
                    return text.with_part(part, model, f"{text.segment(model)}.parameters()")
            return None

        return known

    return rewritten(timeline, at, change)


def with_loss_made_first(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Replace ``nn.MSELoss(x, y)``, whose arguments are options, with ``nn.MSELoss()(x, y)``."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            if not (isinstance(part, ast.Call) and called_name(part).endswith("Loss") and len(part.args) > 1):
                return None
            head = text.segment(part.func)
            return f"{head}(){text.segment(part).removeprefix(head)}"

        return known

    return rewritten(timeline, at, change)


def with_size(timeline: Timeline, at: Frame | None, kind: str, old: int, new: int) -> Edit | None:
    """Change the first argument of the call that makes a module, if it is the number `old`: ``nn.Linear(676, 10)``."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            if not (isinstance(part, ast.Call) and called_name(part) == kind):
                return None
            size = part.args[0] if part.args else next((one.value for one in part.keywords if one.arg in _SIZES), None)
            if not (isinstance(size, ast.Constant) and size.value == old):
                return None
            return text.with_part(part, size, str(new))

        return known

    return rewritten(timeline, at, change)


_SIZES = {
    "in_features", "in_channels", "num_features", "normalized_shape", "input_size", "embed_dim", "num_embeddings",
}  # fmt: skip
"""What the first argument of a layer is called."""


def with_noise(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Replace ``torch.normal(mean, std)`` with ``(mean + std * torch.randn_like(mean))``, if the mean is a name."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            match part:
                case ast.Call(
                    func=ast.Attribute(value=module), args=[ast.Name() | ast.Attribute() as mean, std], keywords=[]
                ) if called_name(part) == "normal" and text.segment(module) == "torch":
                    factor, noise = text.segment(std), f"torch.randn_like({text.segment(mean)})"
                    if not isinstance(std, ast.Name | ast.Attribute | ast.Call | ast.Constant):
                        factor = f"({factor})"
                    return f"({text.segment(mean)} + {factor} * {noise})"
            return None

        return known

    return rewritten(timeline, at, change)


def divided_by_mask(timeline: Timeline, at: Frame | None, mask: str) -> Edit | None:
    """Replace ``(loss * mask).mean()`` with ``((loss * mask).sum() / mask.sum())``."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            match part:
                case ast.Call(func=ast.Attribute(value=product, attr="mean"), args=[], keywords=[]) if (
                    mask in names_read(product)
                ):
                    whole = text.segment(part).rpartition(".")[0]
                    return f"({whole}.sum() / {mask}.sum())"
            return None

        return known

    return rewritten(timeline, at, change)


def divided(timeline: Timeline, at: Frame | None, count: int) -> Edit | None:
    """Replace ``loss.backward()`` with ``(loss / 4).backward()``."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            if not (
                isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and called_name(part) == "backward"
            ):
                return None
            whole, value = text.segment(part), text.segment(part.func.value)
            return f"({value} / {count}){whole.removeprefix(value)}"

        return known

    return rewritten(timeline, at, change)


def safe_where(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Replace ``torch.log(x)`` in ``torch.where(c, torch.log(x), y)`` with ``torch.log(torch.where(c, x, 1.0))``."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            match part:
                case ast.Call(args=[condition, one, other]) if called_name(part) == "where":
                    pass
                case _:
                    return None
            for branch, safe in ((one, "torch.where({c}, {x}, 1.0)"), (other, "torch.where({c}, 1.0, {x})")):
                if not isinstance(branch, ast.Call) or isinstance(branch.func, ast.Name):
                    continue
                inner = branch.args[0] if branch.args else getattr(branch.func, "value", None)
                if not isinstance(inner, ast.expr) or called_name(branch) in ("zeros_like", "ones_like", "full_like"):
                    continue
                old, whole, head = text.segment(inner), text.segment(branch), text.segment(branch.func)
                new = safe.format(c=text.segment(condition), x=old)
                rest = whole.removeprefix(head)
                mended = f"{head}{rest.replace(old, new, 1)}" if branch.args else whole.replace(old, new, 1)
                return text.segment(part).replace(whole, mended, 1)
            return None

        return known

    return rewritten(timeline, at, change)


_MODULES = ("torch", "nn", "F", "functional", "np", "numpy")


def _is_method(call: ast.Call) -> bool:
    """Return whether a call is of a method of a value, not of a function in a package."""
    func = call.func
    if not isinstance(func, ast.Attribute):
        return False
    root = func.value
    while isinstance(root, ast.Attribute):
        root = root.value
    return not (isinstance(root, ast.Name) and root.id in _MODULES)


# Statements: added, removed, moved, or put into a block


def before(timeline: Timeline, at: Frame | None, statement: str) -> Edit | None:
    """Add a statement on a line of its own before another, or on the same line if that one is not the first there."""
    source = statement_at(timeline, at)
    if source is None:
        return None
    text, one = source
    if not text.is_alone(one):
        return _instead(text, one.node, f"{statement}; {text.segment(one.node)}")
    rows = "".join(f"{row}\n" for row in text.rows[one.first - 1 : one.last])
    return _lines(text, one.first, one.last, f"{text.indent(one)}{statement}\n{rows}")


def after(timeline: Timeline, at: Frame | None, statement: str) -> Edit | None:
    """Add a statement on a line of its own after another."""
    source = statement_at(timeline, at)
    if source is None or getattr(source[1].node, "body", None):
        return None
    text, one = source
    if not text.is_alone(one):
        return _instead(text, one.node, f"{text.segment(one.node)}; {statement}")
    rows = "".join(f"{row}\n" for row in text.rows[one.first - 1 : one.last])
    return _lines(text, one.first, one.last, f"{rows}{text.indent(one)}{statement}\n")


def repeated_after(timeline: Timeline, at: Frame | None, earlier: Sequence[Frame]) -> tuple[list[str], Edit | None]:
    """Return assignments before a statement of the same block as texts, and the edit that repeats these after it.

    Nothing is repeated if one of the places is in another block, or in no assignment. Neither is an assignment that
    would read another number the second time, as ``h = cell(x, h)`` does.
    """
    source = statement_at(timeline, at)
    if source is None or getattr(source[1].node, "body", None):
        return [], None
    text, one = source
    found = [text.at(frame.line, frame.column) for frame in earlier if frame.path == text.path]
    statements = {id(each.node): each for each in found if each is not None}
    repeated = sorted(statements.values(), key=lambda each: each.first)
    in_block = {id(node) for node in one.block}
    if len(found) < len(earlier) or None in found or not text.is_alone(one):
        return [], None
    if any(id(each.node) not in in_block or not isinstance(each.node, ast.Assign) for each in repeated):
        return [], None
    if not repeated or repeated[-1].first >= one.first or _reads_what_follows([each.node for each in repeated]):
        return [], None
    texts = [text.segment(each.node) for each in repeated]
    rows = "".join(f"{row}\n" for row in text.rows[one.first - 1 : one.last])
    new = "".join(f"{text.indent(one)}{each}\n" for each in texts)
    return texts, _lines(text, one.first, one.last, rows + new)


def _reads_what_follows(statements: Sequence[ast.stmt]) -> bool:
    """Return whether one of the assignments reads a name that it, or a later one, assigns."""
    assigned: set[str] = set()
    for statement in reversed(statements):
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        for target in (part for one in targets for part in _changed_by(one)):
            assigned.add(ast.unparse(target))
        parts = [part for part in ast.walk(statement) if isinstance(part, ast.Name | ast.Attribute | ast.Subscript)]
        if any(ast.unparse(part) in assigned for part in parts if isinstance(part.ctx, ast.Load)):
            return True
    return False


def _changed_by(target: ast.expr) -> Iterator[ast.expr]:
    """Yield what an assignment changes: each name of a tuple, and of ``h[0]`` also ``h``."""
    match target:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _changed_by(part)
        case ast.Starred(value=value):
            yield from _changed_by(value)
        case ast.Subscript(value=value):
            yield from (target, value)
        case _:
            yield target


def copied_state(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Replace ``net.state_dict()`` with a dictionary of copies, and ``p.detach()`` or ``p.data`` with a copy."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            match part:
                case ast.Call(func=ast.Attribute(attr="state_dict")):
                    return f"{{key: value.clone() for key, value in {text.segment(part)}.items()}}"
                case ast.Call(func=ast.Attribute(attr="detach")) | ast.Attribute(attr="data"):
                    return f"{text.segment(part)}.clone()"
            return None

        return known

    return rewritten(timeline, at, change)


def removed(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Remove a statement from the program."""
    source = statement_at(timeline, at)
    if source is None or getattr(source[1].node, "body", None):
        return None
    text, one = source
    return _without(text, one)


def _without(text: ProgramText, one: Statement) -> Edit | None:
    """Remove a statement. If it was the only one of its block, `pass` replaces it."""
    if len(one.block) == 1:
        return _instead(text, one.node, "pass")
    if text.is_alone(one):
        return _lines(text, one.first, one.last, "")
    row = text.rows[one.first - 1].encode()
    head, tail = row[: one.node.col_offset].decode(), row[one.node.end_col_offset :].decode()
    if tail.lstrip().startswith(";"):
        return _lines(text, one.first, one.last, f"{head}{tail.lstrip()[1:].lstrip()}\n")
    return _lines(text, one.first, one.last, f"{head.rstrip().removesuffix(';')}{tail}\n")


def moved(timeline: Timeline, at: Frame | None, to: Frame | None, *, ahead: bool = False) -> Edit | None:
    """Move a statement behind another one of the same file, or with `ahead` before it."""
    one, other = statement_at(timeline, at), statement_at(timeline, to)
    if one is None or other is None or one[0] is not other[0] or one[1].node is other[1].node:
        return None
    text = one[0]
    if any(getattr(part.node, "body", None) for part in (one[1], other[1])):
        return None
    rows = dict(enumerate(text.rows, 1))
    statement = text.segment(one[1].node)
    first, last = min(one[1].first, other[1].first), max(one[1].last, other[1].last)
    removal = _without(text, one[1])
    if removal is None or (one[1].first <= other[1].last and other[1].first <= one[1].last):
        return None  # both are on one line
    indent = text.indent(other[1])
    there = "".join(f"{rows[number]}\n" for number in range(other[1].first, other[1].last + 1))
    there = f"{indent}{statement}\n{there}" if ahead else f"{there}{indent}{statement}\n"
    new = [f"{rows[number]}\n" for number in range(first, last + 1)]
    new[one[1].first - first : one[1].last - first + 1] = [removal.new] + [""] * (one[1].last - one[1].first)
    new[other[1].first - first : other[1].last - first + 1] = [there] + [""] * (other[1].last - other[1].first)
    return _lines(text, first, last, "".join(new))


def behind_next_loss(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Swap an assignment to a variable that it reads with the next statement, if that computes a loss of it.

    The loss then has the variable as it was before: ``z_q = z + (z_q - z).detach()``.
    """
    source = statement_at(timeline, at)
    if source is None or at is None:
        return None
    text, one = source
    number = next((nr for nr, other in enumerate(one.block) if other is one.node), len(one.block))
    names = names_set(one.node)
    if number + 1 >= len(one.block) or not names & names_read(one.node):
        return None
    following = one.block[number + 1]
    calls = {called_name(part) for part in ast.walk(following) if isinstance(part, ast.Call)}
    is_loss = isinstance(following, ast.Assign | ast.AugAssign) and any("loss" in call for call in calls)
    if not is_loss or not names & names_read(following) or names & names_set(following):
        return None
    return moved(timeline, at, frame_of(at, following.lineno, text))


def in_block(timeline: Timeline, at: Frame | None, head: str, statement: str = "", then: str = "") -> Edit | None:
    """Put a statement, or another in its place, into the block of a ``with``: ``with torch.no_grad():``."""
    source = statement_at(timeline, at)
    if source is None or getattr(source[1].node, "body", None) or not source[0].is_alone(source[1]):
        return None
    text, one = source
    indent = text.indent(one)
    inner = [statement] if statement else [row[len(indent) :] for row in text.rows[one.first - 1 : one.last]]
    rows = [f"{indent}{head}\n", *(f"{indent}{' ' * STEP}{row}\n" for row in inner)]
    return _lines(text, one.first, one.last, "".join([*rows, f"{indent}{then}\n" * bool(then)]))


def written_to_variable(timeline: Timeline, at: Frame | None, name: str, value: str, *, off: bool) -> Edit | None:
    """Replace ``p = p - lr * p.grad`` with a write in place, under ``torch.no_grad()`` unless gradients are `off`."""
    source = statement_at(timeline, at)
    if source is None:
        return None
    text, one = source
    write = update_in_place(text.segment(one.node), name) if not off else ""
    write = write or f"{name}.copy_({value})"
    if off:
        return statement_instead(timeline, at, write)
    return in_block(timeline, at, "with torch.no_grad():", write) if "torch" in _imported(text) else None


def into_loop(timeline: Timeline, at: Frame | None, used: Frame | None) -> Edit | None:
    """Move a statement from before a loop to the start of its body; the line `used` is in the loop."""
    source, inner = statement_at(timeline, at), statement_at(timeline, used)
    if source is None or inner is None or source[0] is not inner[0]:
        return None
    text, one = source
    loops = [part for part in inner[1].around if isinstance(part, ast.For | ast.While) and part.lineno > one.last]
    if not loops or getattr(one.node, "body", None) or loops[0].body[0].lineno == loops[0].lineno:
        return None
    if function_of(one) is not function_of(inner[1]) or names_set(one.node) & _stored_names(loops[0]):
        return None  # a line of another function, or a state that the loop carries on
    first = loops[0].body[0]
    return moved(timeline, at, Frame(text.path, "", first.lineno, first.lineno, -1, -1), ahead=True)


def into_function(timeline: Timeline, at: Frame | None, function: str) -> Edit | None:
    """Move an assignment into the function that follows it in its block, if only that function reads its variables.

    It moves before the first statement that reads one of them, such as the loss in the closure of LBFGS.
    """
    source = statement_at(timeline, at)
    if source is None or not isinstance(source[1].node, ast.Assign) or not source[0].is_alone(source[1]):
        return None
    text, one = source
    named = [part for part in one.block if isinstance(part, ast.FunctionDef) and part.name == function]
    targets = names_set(one.node)
    if len(named) != 1 or named[0].lineno < one.last or _stored_places(one.node) != targets:
        return None
    body = named[0].body
    inside, scope = {*ast.walk(named[0])}, function_of(one) or text.tree
    others = (part for part in ast.walk(scope) if isinstance(part, ast.Name) and part.id in targets)
    assigned = {*ast.walk(one.node)}
    if any(part not in inside and part not in assigned for part in others):
        return None  # another statement reads or assigns it, too
    own = _stored_names(named[0]) | {part.arg for part in ast.walk(named[0].args) if isinstance(part, ast.arg)}
    declared = {name for part in inside if isinstance(part, ast.Global | ast.Nonlocal) for name in part.names}
    if (targets | names_read(one.node)) & (own | declared):
        return None
    first = next((part for part in body if names_read(part) & targets), None)
    if first is None or first.lineno == named[0].lineno:
        return None
    return moved(timeline, at, frame_of(Frame(text.path, "", 0, 0, -1, -1), first.lineno, text), ahead=True)


def _stored_names(part: ast.AST) -> set[str]:
    """Return the names that a part of a program assigns."""
    return {one.id for one in ast.walk(part) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}


def _stored_places(part: ast.AST) -> set[str]:
    """Return the names, attributes and elements that a part of a program assigns, as text."""
    return _places(part, ast.Store)


def done_once(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Move a statement out of a training loop, before it, or out of a method to the end of ``__init__``.

    A ``for`` loop with only this statement moves as a whole. Nothing moves that reads what the loop or method computes.
    """
    source = statement_at(timeline, at)
    if source is None:
        return None
    (text, one), around = source, list(source[1].around)
    block: ast.stmt = one.node
    while isinstance(around[-1], ast.For) and len(around[-1].body) == 1 and not around[-1].orelse:
        block = around.pop()  # type: ignore[assignment]  # a loop is a statement
    places = [place for place, part in enumerate(around) if isinstance(part, ast.FunctionDef | ast.ClassDef)]
    scope = around[places[-1]] if places else text.tree
    loops = [part for part in around[places[-1] if places else 0 :] if isinstance(part, ast.For | ast.While)]
    reads = names_read(block) - {name for part in ast.walk(block) for name in _bound(part)}
    target: ast.stmt | None = None
    if loops and around[-1] is loops[-1]:
        target, computed = loops[0], [part for part in ast.walk(loops[0]) if part not in set(ast.walk(block))]
    elif (
        not loops
        and isinstance(scope, ast.FunctionDef)
        and len(places) > 1
        and around[-1] is scope
        and len(scope.body) > 1
    ):
        owner = around[places[-2]]
        methods = owner.body if isinstance(owner, ast.ClassDef) and owner is around[-2] else []
        inits = [each for each in methods if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
        target = inits[0].body[-1] if inits and scope is not inits[0] else None
        reads -= {scope.args.args[0].arg} if scope.args.args else set()
        computed = [part for part in ast.walk(scope) if part not in set(ast.walk(block))]
    if target is None or reads & {name for part in computed for name in _bound(part)}:
        return None
    first, last = block.lineno, block.end_lineno or block.lineno
    row = text.rows[target.lineno - 1]
    shift = len(row) - len(row.lstrip()) - block.col_offset
    moved_rows = [f"{' ' * shift}{each}" if shift > 0 else each[-shift:] for each in text.rows[first - 1 : last]]
    place = target.lineno - 1 if loops else target.end_lineno or target.lineno
    rows = dict(enumerate(text.rows, 1))
    start, end = min(place + 1, first), max(place, last)
    new = [rows[number] for number in range(start, end + 1) if not first <= number <= last]
    index = sum(1 for number in range(start, place + 1) if not first <= number <= last)
    new[index:index] = moved_rows
    return _lines(text, start, end, "".join(f"{each}\n" for each in new))


def _bound(part: ast.AST) -> Iterator[str]:
    """Yield the names that a node of the syntax tree binds: variables that are assigned, and parameters."""
    match part:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            yield name


def without_option(timeline: Timeline, at: Frame | None, option: str) -> Edit | None:
    """Remove an option that is True, ``nn.ReLU(inplace=True)``, from the only call in a file that has it."""
    text = program_text(timeline, at)
    calls = [
        (part, keyword)
        for part in (ast.walk(text.tree) if text is not None else ())
        if isinstance(part, ast.Call)
        for keyword in part.keywords
        if keyword.arg == option and isinstance(keyword.value, ast.Constant) and keyword.value.value is True
    ]
    if len(calls) != 1 or text is None:
        return None
    call, keyword = calls[0]
    arguments = [text.segment(part) for part in call.args]
    arguments += [f"{one.arg}={text.segment(one.value)}" for one in call.keywords if one.arg and one is not keyword]
    return _instead(text, call, f"{text.segment(call.func)}({', '.join(arguments)})")


def keeping_none(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Remove ``set_to_none=False`` from a call of `zero_grad`."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            if (
                not isinstance(part, ast.Call)
                or called_name(part) != "zero_grad"
                or len(part.args) + len(part.keywords) != 1
            ):
                return None
            return f"{text.segment(part.func)}()"

        return known

    return rewritten(timeline, at, change)


def indices_added(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Replace ``out[rows] += x`` with ``out.index_add_(0, rows, x)``."""
    source = statement_at(timeline, at)
    match source[1].node if source is not None else None:
        case ast.AugAssign(target=ast.Subscript(value=tensor, slice=rows), op=ast.Add() | ast.Sub() as op, value=value):
            if source is None or isinstance(rows, ast.Tuple | ast.Slice):
                return None
            tensor_text, rows_text, added = (source[0].segment(part) for part in (tensor, rows, value))
            sign = ", alpha=-1" if isinstance(op, ast.Sub) else ""
            return statement_instead(timeline, at, f"{tensor_text}.index_add_(0, {rows_text}, {added}{sign})")
    return None


def statement_instead(timeline: Timeline, at: Frame | None, statement: str) -> Edit | None:
    """Replace a statement with another."""
    source = statement_at(timeline, at)
    if source is None or getattr(source[1].node, "body", None):
        return None
    return _instead(source[0], source[1].node, statement)


_IN_PLACE = {"add_": "+", "sub_": "-", "mul_": "*", "div_": "/"}


def assigned_to_itself(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Replace ``h.detach()``, whose result is dropped, with ``h = h.detach()``."""
    source = statement_at(timeline, at)
    match source[1].node if source is not None else None:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name() | ast.Attribute() as place)) as call):
            if source is not None and ast.unparse(place).replace(".", "").isidentifier():
                return _instead(source[0], call, f"{source[0].segment(place)} = {source[0].segment(call)}")
    return None


def without_in_place(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Replace ``x.mul_(2)`` with ``x = x.mul(2)``, and ``x += y`` with ``x = x + y``.

    A ``.data`` or ``.detach()`` of the target is removed.
    """
    source = statement_at(timeline, at)
    if source is None:
        return None
    text, one = source
    match one.node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=value, attr=attr)) as call) if attr.endswith(
            "_"
        ) and not attr.startswith("_"):
            match value:
                case ast.Attribute(value=ast.Name() as variable, attr="data"):
                    value = variable
                case ast.Call(func=ast.Attribute(value=ast.Name() as variable, attr="detach")):
                    value = variable
            if not isinstance(value, ast.Name):
                return None
            whole, head = text.segment(call), text.segment(call.func)
            return _instead(text, one.node, f"{value.id} = {value.id}.{attr[:-1]}{whole.removeprefix(head)}")
        case ast.AugAssign(target=ast.Name(id=name), op=op, value=value) if type(op) in _SIGNS:
            old = text.segment(value)
            right = old if isinstance(value, ast.Name | ast.Call | ast.Constant | ast.Attribute) else f"({old})"
            return _instead(text, one.node, f"{name} = {name} {_SIGNS[type(op)]} {right}")
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name))], value=value) if name not in names_read(value):
            return before(timeline, at, f"{name} = {name}.clone()")
    return None


def made_in_place(timeline: Timeline, call: Frame, path: Sequence[str], kind: str) -> tuple[Frame, Edit | None] | None:
    """Return where a class makes a module with ``inplace=True``, and the edit that leaves it out.

    The class is the one whose method makes the call ``self.conv(x)``, and the module has the `path` in ``self.conv``.
    """
    source = statement_at(timeline, call)
    if source is None:
        return None
    text, one = source
    owner = next((outer for outer in reversed(one.around) if isinstance(outer, ast.ClassDef)), None)
    calls = [part for part in one.parts(ast.Call) if isinstance(part.func, ast.Attribute)]
    attributes = {part.func.attr for part in calls if isinstance(part.func, ast.Attribute)}
    assigned = (part for part in (ast.walk(owner) if owner is not None else ()) if isinstance(part, ast.Assign))
    pairs = (pair for part in assigned for target in part.targets for pair in _paired(target, part.value))
    made = [value for target, value in pairs if isinstance(target, ast.Attribute) and target.attr in attributes]
    if len(made) != 1 or len(attributes) != 1:
        return None
    module: ast.expr = made[0]
    for word in path:
        items = module.args if isinstance(module, ast.Call) and called_name(module) == "Sequential" else []
        if not word.isdecimal() or int(word) >= len(items) or any(isinstance(one, ast.Starred) for one in items):
            break
        module = items[int(word)]
    known = [
        part
        for part in ast.walk(module)
        if isinstance(part, ast.Call) and called_name(part) == kind and (part.args or part.keywords)
    ]
    if len(known) != 1:
        return None
    (making,) = known
    first, last = making.lineno, making.end_lineno or making.lineno
    at = Frame(text.path, call.function, first, last, making.col_offset, making.end_col_offset or -1)
    return at, without_keyword(timeline, at, kind, "inplace")


@dataclass(frozen=True, slots=True)
class LoneText:
    """A text that stands alone in a condition, as in ``if "conv" or "head" in name``, and the edit that compares it.

    It makes the operands of ``or`` at a frame true, which are the `whole` condition or a part of it. After ``and`` it
    has no effect, and neither has one after another text, as in ``("conv" or "head") in name``. `others` is whether
    there is an ``else``.
    """

    at: Frame
    word: str
    is_true: bool
    whole: bool
    others: bool
    edit: Edit | None


def lone_texts(timeline: Timeline) -> Iterator[LoneText]:
    """Yield the texts that stand alone in the conditions of a program around writes to parameters.

    A condition counts if its block calls a function such as ``zeros_`` or sets ``requires_grad`` or ``data``, or if it
    is in a loop over parameters or modules.
    """
    for path in timeline.sources:
        text = parsed_program(path, timeline.source(path) or "")
        for one in text.statements if text is not None else ():
            for test, others in _conditions(one):
                found = next(_lone(text, test), None) if text is not None else None
                if found is not None:
                    part, word, is_true, edit = found
                    first, last = part.lineno, part.end_lineno or part.lineno
                    at = Frame(path, "", first, last, part.col_offset, part.end_col_offset or -1)
                    yield LoneText(at, word, is_true, part is test, others, edit)


def _conditions(one: Statement) -> Iterator[tuple[ast.expr, bool]]:
    """Yield the conditions of a statement that are about parameters or modules, and whether each has an else."""
    is_inside = any(_is_over_members(outer.iter) for outer in one.around if isinstance(outer, ast.For))
    if isinstance(one.node, ast.If) and (is_inside or _sets_parameters(one)):
        yield one.node.test, bool(one.node.orelse)
    if is_inside:
        yield from ((part.test, True) for part in one.parts(ast.IfExp))
    for part in one.parts(ast.expr):
        for each in getattr(part, "generators", []):
            if _is_over_members(each.iter):
                yield from ((test, False) for test in each.ifs)


def _lone(text: ProgramText, test: ast.expr) -> Iterator[tuple[ast.expr, str, bool, Edit | None]]:
    """Yield operands with a lone text among them: the text, whether it makes them true, and the edit."""
    match test:
        case ast.BoolOp(op=op, values=values):
            alone = [value for value in values if _is_text(value)]
            if alone:
                yield test, text.segment(alone[0]), isinstance(op, ast.Or), _tested(text, test)
            for value in values:
                yield from _lone(text, value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from _lone(text, operand)
        case ast.Compare(left=ast.BoolOp(op=ast.Or(), values=[first, second, *more]), ops=[ast.In()]) if all(
            map(_is_text, (first, second, *more))
        ):
            place = text.segment(test.comparators[0])
            each = [f"{text.segment(value)} in {place}" for value in (first, second, *more)]
            yield test, text.segment(second), False, _instead(text, test, f"({' or '.join(each)})")


def _is_text(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, str) and bool(value.value)


def _tested(text: ProgramText, part: ast.BoolOp) -> Edit | None:
    """Return the edit that compares each lone text as its only neighbour: ``"a" in name or "b" in name``."""
    tests = [value for value in part.values if not _is_text(value)]
    match tests:
        case [ast.Compare(left=left, ops=[ast.In()], comparators=[place])] if _is_text(left):
            before, after = "", f" in {text.segment(place)}"
        case [ast.Compare(left=name, ops=[ast.Eq()], comparators=[right])] if _is_text(right):
            before, after = f"{text.segment(name)} == ", ""
        case _:
            return None
    compared = [f"{before}{text.segment(value)}{after}" if _is_text(value) else text.segment(value)
                for value in part.values]  # fmt: skip
    return _instead(text, part, (" or " if isinstance(part.op, ast.Or) else " and ").join(compared))


_MEMBERS = (
    "parameters", "named_parameters", "modules", "named_modules", "children", "named_children", "state_dict", "items",
)  # fmt: skip


def _is_over_members(part: ast.expr) -> bool:
    """Return whether an expression has the parameters or the modules of a model."""
    return any(isinstance(call, ast.Call) and called_name(call) in _MEMBERS for call in ast.walk(part))


def _sets_parameters(one: Statement) -> bool:
    """Return whether the block of a condition initializes or freezes something."""
    parts = [part for statement in getattr(one.node, "body", []) for part in ast.walk(statement)]
    calls = [called_name(part) for part in parts if isinstance(part, ast.Call)]
    targets = [part.attr for part in parts if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store)]
    is_written = any(name.endswith("_") and not name.endswith("__") for name in calls)
    return is_written or not {"requires_grad", "data"}.isdisjoint(targets)


def made_separately(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Replace ``[Layer(4)] * 3``, which is one layer three times, with ``[Layer(4) for _ in range(3)]``."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            match part:
                case ast.BinOp(op=ast.Mult(), left=ast.List(elts=[ast.Call() as one]), right=times):
                    return f"[{text.segment(one)} for _ in range({text.segment(times)})]"
                case ast.BinOp(op=ast.Mult(), left=times, right=ast.List(elts=[ast.Call() as one])):
                    return f"[{text.segment(one)} for _ in range({text.segment(times)})]"
            return None

        return known

    return rewritten(timeline, at, change)


def _paired(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """Return the target and the value of an assignment, one by one if both are tuples."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]


_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.MatMult: "@", ast.Pow: "**",
}  # fmt: skip


def straight_through(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Replace ``self.weight.data = round(self.weight.data)`` with a rounded copy that passes the gradient through.

    ``weight = self.weight + (round(self.weight) - self.weight).detach()`` is what the rest of the function reads then.
    """
    source = statement_at(timeline, at)
    match source[1].node if source is not None else None:
        case ast.Assign(targets=[ast.Attribute(value=ast.Attribute() as tensor, attr="data")], value=value):
            pass
        case _:
            return None
    if source is None or not isinstance(source[1].around[-1], ast.FunctionDef):
        return None
    (text, one), function = source, source[1].around[-1]
    name, whole, variable = text.segment(tensor), text.segment(value), tensor.attr
    later = [other for other in one.block if other.lineno > one.last]
    reads = [other for other in later if re.search(rf"(?<![\w.]){re.escape(name)}(?![\w])", text.segment(other))]
    if not reads or variable in variables_of(text, function) or f"{name}.data" not in whole:
        return None
    rounded = whole.replace(f"{name}.data", name)
    rows = [f"{text.indent(one)}{variable} = {name} + ({rounded} - {name}).detach()"]
    last = max(other.end_lineno or other.lineno for other in reads)
    rows += [re.sub(rf"(?<![\w.]){re.escape(name)}(?![\w])", variable, row) for row in text.rows[one.last : last]]
    return _lines(text, one.first, last, "".join(f"{row}\n" for row in rows)) if text.is_alone(one) else None


def leaf_last(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Replace ``w = torch.randn(4, requires_grad=True) * 0.1`` with ``w = (torch.randn(4) * 0.1).requires_grad_()``."""
    source = statement_at(timeline, at)
    value = getattr(source[1].node, "value", None) if source is not None else None
    if source is None or not isinstance(source[1].node, ast.Assign | ast.AnnAssign) or not isinstance(value, ast.expr):
        return None
    text = source[0]
    calls = [
        (call, keyword)
        for call in ast.walk(value)
        if isinstance(call, ast.Call)
        for keyword in call.keywords
        if keyword.arg == "requires_grad"
    ]
    if len(calls) != 1:
        return None
    call, keyword = calls[0]
    inner = [text.segment(part) for part in call.args]
    inner += [f"{key.arg}={text.segment(key.value)}" for key in call.keywords if key.arg and key is not keyword]
    call_text = f"{text.segment(call.func)}({', '.join(inner)})"
    whole = text.segment(value).replace(text.segment(call), call_text, 1)
    simple = isinstance(value, ast.Call | ast.Name | ast.Attribute | ast.Subscript)
    return _instead(text, value, f"{whole if simple else f'({whole})'}.requires_grad_()")


def parameter_last(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Replace ``nn.Parameter(torch.randn(4)).view(2, 2)`` with ``nn.Parameter(torch.randn(4).view(2, 2))``."""
    source = statement_at(timeline, at)
    value = getattr(source[1].node, "value", None) if source is not None else None
    if source is None or not isinstance(source[1].node, ast.Assign | ast.AnnAssign) or not isinstance(value, ast.expr):
        return None
    calls = [call for call in ast.walk(value) if isinstance(call, ast.Call) and called_name(call) == "Parameter"]
    if len(calls) != 1 or len(calls[0].args) != 1 or calls[0].keywords or calls[0] is value:
        return None
    text, (call,) = source[0], calls
    function, data = text.segment(call.func), text.segment(call.args[0])
    inner = f"({data})" if isinstance(call.args[0], ast.BinOp | ast.UnaryOp) else data
    return _instead(text, value, f"{function}({text.segment(value).replace(text.segment(call), inner, 1)})")


@dataclass(frozen=True, slots=True)
class RepeatedStatement:
    """A statement that every iteration of a loop repeats: its line, and the edit that moves it before the loop."""

    at: Frame
    edit: Edit | None


def assignment_in_loop(timeline: Timeline, at: Frame | None, name: str, function: str) -> RepeatedStatement | None:
    """Return the statement that assigns a call of a function to a name, in the innermost loop around a frame.

    A statement in a branch of the loop may run now and then only, and does not count. Neither does a call that reads
    what the loop assigns, since each iteration may need a call of its own.
    """
    source = statement_at(timeline, at)
    loops = [part for part in source[1].around if isinstance(part, ast.For | ast.While)] if source is not None else []
    if source is None or at is None or not loops:
        return None
    text, loop = source[0], loops[-1]
    for one in text.statements:
        value = getattr(one.node, "value", None)
        if not isinstance(value, ast.Call) or called_name(value) != function or name not in names_set(one.node):
            continue
        if one.around[-1] is loop and one.first < at.line:
            if (_places(value, ast.Load) - _places(value, ast.Store)) & _places(loop, ast.Store):
                return None
            rows = text.rows[loop.lineno - 1 : one.first - 1]
            head = text.rows[loop.lineno - 1]
            indent = head[: len(head) - len(head.lstrip())]
            new = "".join(f"{row}\n" for row in [f"{indent}{text.segment(one.node)}", *rows])
            edit = _lines(text, loop.lineno, one.last, new) if text.is_alone(one) else None
            return RepeatedStatement(frame_of(at, one.first, text), edit)
    return None


def _places(part: ast.AST, how: type[ast.expr_context]) -> set[str]:
    """Return the variables, attributes and elements that a node of the syntax tree reads or assigns, as text."""
    kinds = ast.Name | ast.Attribute | ast.Subscript
    return {ast.unparse(one) for one in ast.walk(part) if isinstance(one, kinds) and isinstance(one.ctx, how)}


# What a line switches off


@dataclass(frozen=True, slots=True)
class Switch:
    """Where gradients are switched off: the line of a ``with``, a decorator or a call, and the edit that fixes it."""

    at: Frame
    how: str
    edit: Edit | None
    name: str = ""


_OFF = ("no_grad", "inference_mode")


def switch_of(timeline: Timeline, frames: Sequence[Frame]) -> Switch | None:
    """Return the ``with`` block or decorator that switches gradients off, from the innermost call outwards."""
    for frame in frames:
        source = statement_at(timeline, frame)
        if source is None:
            continue
        text, one = source
        for outer in reversed((*one.around, one.node)):
            if isinstance(outer, ast.With) and any(_switches(item.context_expr) for item in outer.items):
                line = outer.lineno
                return Switch(frame_of(frame, line, text), "with", _dedented(text, outer))
            if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef):
                for decorator in outer.decorator_list:
                    if _switches(decorator):
                        edit = _lines(text, decorator.lineno, decorator.end_lineno or decorator.lineno, "")
                        line = decorator.lineno
                        return Switch(frame_of(frame, line, text), "decorator", edit, f"@{text.segment(decorator)}")
                break
    return None


def switched_off_for_good(timeline: Timeline, paths: Sequence[str]) -> Switch | None:
    """Return the first statement ``set_grad_enabled(False)``, and an edit to a block that ends with its function."""
    for path in dict.fromkeys(paths):
        text = parsed_program(path, timeline.source(path) or "")
        for one in text.statements if text is not None else ():
            match one.node:
                case ast.Expr(value=ast.Call(args=[ast.Constant(value=False)]) as call) if (
                    called_name(call) == "set_grad_enabled" and text is not None
                ):
                    frame = Frame(path, "", one.first, one.last, -1, -1)
                    is_local = any(isinstance(outer, ast.FunctionDef) for outer in one.around)
                    return Switch(frame, "call", _until_the_end(text, one) if is_local else None)
    return None


def _switches(part: ast.expr) -> bool:
    inner = part.func if isinstance(part, ast.Call) else part
    name = inner.attr if isinstance(inner, ast.Attribute) else inner.id if isinstance(inner, ast.Name) else ""
    if name == "set_grad_enabled" and isinstance(part, ast.Call):
        return any(isinstance(one, ast.Constant) and one.value is False for one in part.args)
    return name in _OFF


def _dedented(text: ProgramText, block: ast.With) -> Edit | None:
    """Return the statements of a block without its head."""
    first, last = block.lineno, block.end_lineno or block.lineno
    if len(block.items) > 1 or block.body[0].lineno == first:
        return None
    deeper = block.body[0].col_offset - block.col_offset
    rows = text.rows[block.body[0].lineno - 1 : last]
    return _lines(text, first, last, "".join(f"{row[deeper:] if not row[:deeper].strip() else row}\n" for row in rows))


def _until_the_end(text: ProgramText, one: Statement) -> Edit | None:
    """Replace a call that lasts to the end with ``with torch.no_grad():`` around the rest of its block."""
    rest = [other for other in one.block if other.lineno > one.last]
    if not rest or not text.is_alone(one):
        return None
    last = rest[-1].end_lineno or rest[-1].lineno
    rows = [f"{' ' * STEP}{row}" if row.strip() else row for row in text.rows[one.last : last]]
    head = f"{text.indent(one)}with torch.no_grad():"
    return _lines(text, one.first, last, "".join(f"{row}\n" for row in [head, *rows]))


def kept_by(timeline: Timeline, at: Frame | None, names: Sequence[str]) -> tuple[Frame, Edit | None] | None:
    """Return the line that keeps one of these tensors, ``history.append(loss)`` or ``total += loss``, and an edit.

    The line is in the loop of the line that made them. The edit adds ``.item()``.
    """
    source = statement_at(timeline, at)
    if source is None:
        return None
    text, one = source
    loops = [part for part in one.around if isinstance(part, ast.For | ast.While)]
    for other in text.statements if loops else ():
        if loops[-1] not in other.around:
            continue
        match other.node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="append" | "add" | "extend"), args=[value])):
                pass
            case ast.AugAssign(op=ast.Add(), value=value):
                pass
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.BinOp(left=ast.Name(id=left), op=ast.Add(), right=value)
            ) if name == left:
                pass
            case _:
                continue
        is_kept = isinstance(value, ast.Name) and value.id in names
        if is_kept or other.node is one.node:
            simple = isinstance(value, ast.Name | ast.Call | ast.Attribute | ast.Subscript)
            old = text.segment(value)
            edit = _instead(text, value, f"{old if simple else f'({old})'}.item()")
            return Frame(text.path, "", other.first, other.last, -1, -1), edit
    return None


def plateaus_for_maxima(timeline: Timeline, at: Frame | None) -> Iterator[tuple[Frame, str, range, Edit | None]]:
    """Yield each ``ReduceLROnPlateau(..., mode="max")`` of a file whose step gets a variable.

    It comes with the variable, and the lines of its only assignment: ``val = -val`` would be a second one.
    """
    text = program_text(timeline, at)
    for one in text.statements if text is not None and at is not None else ():
        match one.node:
            case ast.Assign(targets=[target], value=ast.Call() as call) if called_name(call) == "ReduceLROnPlateau":
                modes = [key.value for key in call.keywords if key.arg == "mode"] or call.args[1:2]
                if text is None or at is None or not modes or getattr(modes[0], "value", "") != "max":
                    continue
                schedule, edit = text.segment(target), _instead(text, modes[0], '"min"')
                for user in text.statements:
                    metric = next(
                        (part for call in user.parts(ast.Call) if (part := _metric(text, call, schedule))), ""
                    )
                    assignments = [
                        other
                        for other in text.statements
                        if metric in names_set(other.node)
                        and scope_of(text, other, metric) is scope_of(text, user, metric)
                    ]
                    if len(assignments) == 1:
                        lines = range(assignments[0].first, (assignments[0].node.end_lineno or 0) + 1)
                        yield frame_of(at, one.first, text), metric, lines, edit


def _metric(text: ProgramText, call: ast.Call, schedule: str) -> str:
    """Return the variable that the step of a schedule gets, as in ``schedule.step(loss.item())``; or else empty."""
    match call:
        case ast.Call(func=ast.Attribute(value=value, attr="step")) if text.segment(value) == schedule:
            metrics = call.args[:1] or [key.value for key in call.keywords if key.arg == "metrics"]
            name = text.segment(metrics[0]).removesuffix(".item()") if metrics else ""
            return name if name.isidentifier() else ""
    return ""


def read_as_copy(timeline: Timeline, at: Frame | None) -> tuple[Frame, Edit | None] | None:
    """Return the line that reads what a line writes to in place, and the edit that reads a copy instead.

    The variable must be assigned in the same loop or function: ``img = torch.from_numpy(a[i])`` gets ``.clone()``. A
    variable of a loop, or an argument that its function returns, is copied before the write.
    """
    source = statement_at(timeline, at)
    name = _written_in_place(source[1].node) if source is not None else ""
    if source is None or at is None or not name:
        return None
    text, here = source
    inner = next((one for one in reversed(here.around) if isinstance(one, (ast.For, ast.While, *FUNCTION_NODES))), None)
    around = [one for one in text.statements if inner is not None and inner in one.around and one.first < here.first]
    assignments = [one for one in around if name in names_set(one.node) and not isinstance(one.node, ast.AugAssign)]
    if assignments:
        read = assignments[-1]
        match read.node:
            case ast.Assign(targets=[ast.Name()], value=value):
                old = text.segment(value)
                simple = isinstance(value, ast.Name | ast.Call | ast.Attribute | ast.Subscript)
                return frame_of(at, read.first, text), _instead(text, value, f"{old if simple else f'({old})'}.clone()")
        return frame_of(at, read.first, text), before(timeline, at, f"{name} = {name}.clone()")
    is_argument = isinstance(inner, FUNCTION_NODES) and name in [one.arg for one in inner.args.args]
    returns = [one.node for one in text.statements if inner in one.around and isinstance(one.node, ast.Return)]
    is_returned = any(name in names_read(one) for one in returns)
    if (is_argument and is_returned) or (isinstance(inner, ast.For) and name in _places(inner.target, ast.Store)):
        return at, before(timeline, at, f"{name} = {name}.clone()")
    return None


def _written_in_place(node: ast.stmt) -> str:
    """Return the variable that a statement writes to in place: ``x *= 2``, ``x.mul_(2).add_(1)``, ``y = x.mul_(2)``."""
    value: ast.expr | None = None
    match node:
        case ast.AugAssign(target=ast.Name(id=name)):
            return name
        case ast.Expr(value=value) | ast.Assign(value=value) | ast.Return(value=value):
            pass
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr.endswith("_"):
        value = value.func.value
    is_written = isinstance(value, ast.Name) and not isinstance(getattr(node, "value", None), ast.Name)
    return value.id if is_written and isinstance(value, ast.Name) else ""


@dataclass(frozen=True, slots=True)
class Generator:
    """A generator that a line reads: its variable, the line that made it, the line that read it first, and an edit.

    The edit makes a list of it, which can be read again.
    """

    name: str
    at: Frame
    first: Frame | None
    edit: Edit | None


_GENERATORS = (
    "parameters", "named_parameters", "buffers", "named_buffers", "children", "named_children", "modules",
    "named_modules", "map", "filter", "zip", "iter", "chain",
)  # fmt: skip


def generator_read(timeline: Timeline, at: Frame | None) -> Generator | None:
    """Return the generator that a line reads, if the last line before it that assigns its variable made one."""
    source = statement_at(timeline, at)
    if source is None or at is None:
        return None
    text, here = source
    for name in sorted(_read_by_head(here.node)):
        scope = scope_of(text, here, name)
        of_name = [one for one in text.statements if one.first < here.first and scope_of(text, one, name) is scope]
        assignments = [one for one in of_name if name in names_set(one.node)]
        value = getattr(assignments[-1].node, "value", None) if assignments else None
        if not (
            isinstance(value, ast.GeneratorExp) or (isinstance(value, ast.Call) and called_name(value) in _GENERATORS)
        ):
            continue
        since = (one for one in of_name if assignments[-1].first < one.first)
        first = next((one for one in since if name in _read_by_head(one.node)), None)
        inner = text.segment(value)
        if isinstance(value, ast.GeneratorExp):
            inner = inner[1:-1]
        edit = _instead(text, value, f"list({inner})")
        return Generator(
            name, frame_of(at, assignments[-1].first, text), frame_of(at, first.first, text) if first else None, edit
        )
    return None


def _read_by_head(node: ast.stmt) -> set[str]:
    """Return the variables that a statement reads, without the statements in it.

    A condition such as ``p is None`` consumes no generator: of a condition only calls and comprehensions count.
    """
    parts = [part for part in ast.iter_child_nodes(node) if not isinstance(part, BLOCKS)]
    if isinstance(node, ast.If | ast.While):
        parts = [part for part in ast.walk(node.test) if isinstance(part, ast.Call | ast.comprehension)]
    return {name for part in parts for name in names_read(part)}


def misspelled(
    timeline: Timeline, at: Frame | None, name: str, attribute: str
) -> tuple[str, Frame, Edit | None] | None:
    """Return the line that sets an attribute of a variable whose name is nearly `attribute`: ``x.require_grad = True``.

    Python makes a new attribute of it, which nothing reads.
    """
    text = program_text(timeline, at)
    for one in text.statements if text is not None and at is not None else ():
        match one.node:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=other), attr=attr) as target]) if other == name:
                if attr != attribute and get_close_matches(attr, [attribute], cutoff=0.8) and text and at:
                    return attr, frame_of(at, one.first, text), _instead(text, target, f"{name}.{attribute}")
    return None


@dataclass(frozen=True, slots=True)
class IgnoredGradient:
    """A parameter of ``backward`` that its function never reads: its name, the line that returns, and an edit.

    The edit multiplies what is returned by it.
    """

    name: str
    at: Frame
    edit: Edit | None


def ignored_gradient(timeline: Timeline, function: str) -> IgnoredGradient | None:
    """Return the incoming gradient that the backward of a function's class never reads; None if it may read it.

    A backward that returns only None ignores it on purpose.
    """
    classes = [(text, methods_of(owner).get("backward")) for text, owner in classes_named(timeline, function)]
    found = [_ignored_by(text, backward) for text, backward in classes if backward is not None]
    return found[0] if len(found) == 1 else None


def _ignored_by(text: ProgramText, backward: ast.FunctionDef) -> IgnoredGradient | None:
    arguments = backward.args
    _, *names = [one.arg for one in (*arguments.posonlyargs, *arguments.args)] or [""]
    read = {name for statement in backward.body for name in names_read(statement)}
    if not names or arguments.vararg or not read.isdisjoint({*names, "locals"}):
        return None
    returns = [part for part in ast.walk(backward) if isinstance(part, ast.Return) and part.value is not None]
    values = [value for part in returns for value in _returned(part) if not _is_none(value)]
    if not values:
        return None
    changes = [(value, _times(text, names[0], value)) for value in values]
    at = Frame(text.path, backward.name, returns[-1].lineno, returns[-1].lineno, -1, -1)
    return IgnoredGradient(names[0], at, _each(text, changes) if len(returns) == len(names) == 1 else None)


@dataclass(frozen=True, slots=True)
class BackwardText:
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
        fitting = [one for one in fitting if len(_returned(one)) == count]
        return fitting[0] if len(fitting) == 1 else None

    def frame(self, part: ast.stmt | ast.expr) -> Frame:
        """Return the place of a statement or expression of ``backward``."""
        end = part.end_lineno or part.lineno
        return Frame(self.text.path, self.backward.name, part.lineno, end, part.col_offset, part.end_col_offset or -1)

    def with_none(self, one: ast.Return, needed: Sequence[bool]) -> Edit | None:
        """Add None for each input that needs no gradient, by position.

        The gradients that are returned are those of the first inputs, or those of all inputs that need one, in order.
        """
        values = _returned(one)
        texts = [self.text.segment(value) for value in values]
        if len(self.returns) != 1 or not all(self._is_one_gradient(value) for value in values):
            return None
        rest = needed[len(values) :]
        known = [need or _is_none(value) for need, value in zip(needed, values, strict=False)]
        if all(known) and not any(rest):
            new = [*texts, *["None"] * len(rest)]
        elif sum(needed) == len(values) and not any(map(_is_none, values)):
            left = iter(texts)
            new = [next(left) if need else "None" for need in needed]
        else:
            return None
        return _instead(self.text, one, f"return {', '.join(new)}") if one.value is not None else None

    def _is_one_gradient(self, value: ast.expr) -> bool:
        """Return whether an expression surely is one tensor or None, and no tuple of several."""
        match value:
            case ast.Constant(value=None):
                return True
            case ast.BinOp(left=left, right=right):
                return any(self._is_one_gradient(part) and not _is_none(part) for part in (left, right))
            case ast.UnaryOp(operand=operand):
                return not isinstance(value.op, ast.Not) and self._is_one_gradient(operand)
            case ast.Call(func=ast.Attribute(attr=name)):
                return name in _GIVING_ONE
            case ast.Name(id=name):
                return self._is_gradient_name(name)
        return False

    def _is_gradient_name(self, name: str) -> bool:
        """Return whether a variable is the gradient that arrives, or is only assigned tensors."""
        arguments = self.backward.args
        if name in [one.arg for one in (*arguments.posonlyargs, *arguments.args)][1:]:
            return True
        values = [
            part.value
            for part in ast.walk(self.backward)
            if isinstance(part, ast.Assign) and any(isinstance(to, ast.Name) and to.id == name for to in part.targets)
        ]
        own = [value for value in values if name not in names_read(value)]
        return bool(values) and all(_is_none(value) or self._is_one_gradient(value) for value in own)


_GIVING_ONE = frozenset({
    "clone", "neg", "mul", "add", "sub", "div", "matmul", "mm", "bmm", "sum", "mean", "view", "reshape", "t",
    "contiguous", "transpose", "permute", "expand", "expand_as", "clamp", "sign", "masked_fill", "to", "type", "float",
    "half", "unsqueeze", "squeeze", "zeros_like", "ones_like", "where", "exp", "sigmoid", "tanh", "einsum", "mul_",
    "neg_", "clamp_", "masked_fill_", "view_as", "reshape_as", "type_as", "flatten",
})  # fmt: skip
"""Methods and functions whose result is one tensor."""


def backward_text(timeline: Timeline, function: str) -> BackwardText | None:
    """Return the class of a function of the program; None if there is none, or several of its name."""
    found = []
    for text, owner in classes_named(timeline, function):
        methods = methods_of(owner)
        forward, backward = methods.get("forward"), methods.get("backward")
        if forward is not None and backward is not None:
            has_context = "setup_context" not in methods
            names = [part.arg for part in (*forward.args.posonlyargs, *forward.args.args)][has_context:]
            own = [one.node for one in text.by_function.get(backward, ())]
            returns = tuple(part for part in own if isinstance(part, ast.Return) and part.value is not None)
            found.append(BackwardText(text, tuple(names), backward, returns))
    return found[0] if len(found) == 1 else None


def _returned(part: ast.Return) -> list[ast.expr]:
    """Return the values that a statement returns."""
    return part.value.elts if isinstance(part.value, ast.Tuple) else [part.value] if part.value is not None else []


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _times(text: ProgramText, factor: str, value: ast.expr) -> str:
    """Return the text of a product with a variable."""
    is_product = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult | ast.Div)
    simple = is_product or isinstance(value, ast.Name | ast.Call | ast.Attribute | ast.Subscript | ast.Constant)
    old = text.segment(value)
    return f"{factor} * {old if simple else f'({old})'}"


@dataclass(frozen=True, slots=True)
class ModelTwice:
    """A line that copies a model onto itself: ``net.load_state_dict(net.state_dict())``, and the model's `name`."""

    at: Frame
    name: str
    text: ProgramText
    second: ast.expr

    def replaced(self, name: str) -> Edit | None:
        """Return the edit that reads another model in the second place."""
        return _instead(self.text, self.second, name)


def model_twice(timeline: Timeline, at: Frame | None) -> ModelTwice | None:
    """Return the model that a line reads as source and as destination of a copy; None if there is none.

    The line may load a state, pair parameters in the head of a loop around a frame, or give a function one model twice.
    """
    source = statement_at(timeline, at)
    if source is None or at is None:
        return None
    text, one = source
    loops = [other for other in text.statements if isinstance(other.node, ast.For) and other.node in one.around]
    for statement in (one, *reversed(loops)):
        for call in statement.parts(ast.Call):
            pair = _same_model(text, call)
            if pair is not None:
                return ModelTwice(frame_of(at, call.lineno, text), text.segment(pair), text, pair)
    return None


def _same_model(text: ProgramText, call: ast.Call) -> ast.expr | None:
    """Return the second place of a model in a call that gets it twice."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name() | ast.Attribute() as model, attr="load_state_dict")):
            parts = (part for argument in call.args for part in ast.walk(argument))
            methods = [part for part in parts if isinstance(part, ast.Attribute) and part.attr == "state_dict"]
            return next((one.value for one in methods if text.segment(one.value) == text.segment(model)), None)
        case ast.Call(args=[first, second, *_]) if text.segment(first) == text.segment(second):
            while isinstance(second, ast.Call) and isinstance(second.func, ast.Attribute):
                second = second.func.value
            return second if isinstance(second, ast.Name | ast.Attribute) else None
    return None


_SHORT_TYPES = {"bfloat16": "bfloat16", "half": "float16", "float16": "float16"}
"""Types of two bytes, by the attribute of a module or the method that names them."""


def named_type(timeline: Timeline, at: Frame | None, dtype: str) -> tuple[Frame, Edit | None] | None:
    """Return the first line that names a short type, ``torch.bfloat16`` or ``.half()``, and the edit to float32."""
    text = program_text(timeline, at)
    if text is None or at is None:
        return None
    for one in text.statements:
        for part in one.parts(ast.Attribute):
            if _SHORT_TYPES.get(part.attr) == dtype:
                is_type = isinstance(part.value, ast.Name) and part.value.id == "torch"
                new = "torch.float32" if is_type else f"{text.segment(part.value)}.float"
                return frame_of(at, one.first, text), _instead(text, part, new)
    return None


@dataclass(frozen=True, slots=True)
class PlainContainer:
    """A list or dictionary of layers that is an attribute: where it is set, its text, and what to use instead."""

    at: Frame
    text: str
    kind: str
    edit: Edit | None


_LISTED = re.compile(r"(?:[\w\[\].'\"]*\.)?(\w+)\[(['\"\w]+)\](\..*)?")


def plain_container(timeline: Timeline, at: Frame | None, name: str) -> PlainContainer | None:
    """Return the list or dictionary that a parameter is in: ``self.layers = [...]`` for ``layers[4].bias``.

    Its modules have no names in the model (``layers.4.bias``): ``parameters()`` does not find them. Where the parameter
    has no name at all, the line that made it must set the attribute, or append to it.
    """
    source, match = statement_at(timeline, at), _LISTED.fullmatch(name)
    if source is None or at is None or (name and match is None):
        return None
    text, line = source
    attribute = match[1] if match is not None else _container_of(line.node)
    for one in text.statements:
        match one.node:
            case (
                ast.Assign(targets=[ast.Attribute(value=ast.Name(), attr=attr) as target], value=value)
                | ast.AnnAssign(target=ast.Attribute(value=ast.Name(), attr=attr) as target, value=ast.expr() as value)
            ) if attr == attribute:
                is_plain = isinstance(value, ast.List | ast.ListComp | ast.Dict | ast.DictComp)
                if not is_plain and not (isinstance(value, ast.Call) and called_name(value) in ("list", "dict")):
                    continue  # a ModuleList, or what a function returns
                whole = text.segment(value)
                keyed = isinstance(value, ast.Dict | ast.DictComp) or whole.startswith("dict(")
                made = text.segment(line.node)
                kind = f"{'Parameter' if 'Parameter(' in made else 'Module'}{'Dict' if keyed else 'List'}"
                prefix = "nn" if re.search(r"(?<![\w.])nn\.", "\n".join(text.rows)) else "torch.nn"
                new = "" if whole in ("[]", "{}", "list()", "dict()") else whole
                edit = _instead(text, value, f"{prefix}.{kind}({new})") if _are_registrable(value) else None
                return PlainContainer(frame_of(at, one.first, text), text.segment(target), f"{prefix}.{kind}", edit)
    return None


def _are_registrable(value: ast.expr) -> bool:
    """Return whether all elements of a list or dictionary are instances of classes, and its keys are strings."""
    match value:
        case ast.ListComp(elt=element) | ast.DictComp(value=element):
            elements = [element]
        case ast.List(elts=elements):
            pass
        case ast.Dict(keys=keys, values=elements):
            if not all(isinstance(key, ast.Constant) and isinstance(key.value, str) for key in keys):
                return False
        case _:
            return not (isinstance(value, ast.Call) and (value.args or value.keywords))
    return all(isinstance(one, ast.Call) and called_name(one)[:1].isupper() for one in elements)


def _container_of(node: ast.stmt) -> str:
    """Return the attribute that a statement sets or appends to; empty for any other statement."""
    match node:
        case ast.Assign(targets=[ast.Attribute(value=ast.Name(), attr=attr)]):
            return attr
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=ast.Attribute(value=ast.Name(), attr=attr), attr=method))
        ):
            return attr if method in ("append", "extend", "insert") else ""
        case ast.AugAssign(target=ast.Attribute(value=ast.Name(), attr=attr)):
            return attr
    return ""
