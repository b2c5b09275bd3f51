"""A fix as an edit: the lines of the program that it changes, and their new text.

The recorded text is parsed, never run. An edit is made only if its statement is found as the trace has it, and only if
the program is still valid Python after it. Otherwise there is no edit, and the fix is only described in words. Each
function makes one kind of change and returns the `Edit`, or None.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from typing import TypeAlias

from gviz.explain.program_text import (
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
)
from gviz.source import parsing
from gviz.source.call_stack import Frame, source_lines
from gviz.trace.timeline import Timeline

Change: TypeAlias = Callable[[ast.expr], str | None]
"""The new text of an expression, or None if it stays."""


STEP = 4
"""The spaces of one more level of indentation."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A replacement of whole lines of a program from `line`: `old` and `new` are their texts, with line ends.

    Raises ValueError if the new text is the old one.
    """

    path: str
    line: int
    old: str
    new: str

    def __post_init__(self) -> None:
        if self.old == self.new:
            raise ValueError(f"an edit of line {self.line} that changes nothing")

    @property
    def end_line(self) -> int:
        """The last line that is replaced."""
        return self.line + self.old.count("\n") - 1

    def diff(self) -> list[str]:
        """Return the change as lines that begin with ``-``, ``+`` or, if they stay, a space.

        The lines between are shown if a line only moves, and would be removed and added at the same place else. Next
        to lines that are only added stands the line before or behind which they go.
        """
        old, new = self.old.splitlines(), self.new.splitlines()
        is_move = sorted(map(str.strip, old)) == sorted(map(str.strip, new))
        is_addition = len(old) == 1 and old[0] in new
        rows = unified_diff(old, new, lineterm="", n=len(old) if is_move or is_addition else 0)
        return [row for row in rows if not row.startswith(("---", "+++", "@@"))]

    def applied(self, text: str) -> str:
        """Return the text of the program after the edit. Raises ValueError if its lines have changed since."""
        rows = [f"{row}\n" for row in source_lines(text)]
        first, count = self.line - 1, self.old.count("\n")
        if "".join(rows[first : first + count]) != self.old:
            raise ValueError(f"line {self.line} has changed")
        return "".join([*rows[:first], self.new, *rows[first + count :]])


def node_replaced(text: ProgramText, node: ast.expr | ast.stmt, new: str) -> Edit | None:
    """Return the edit that replaces a node of the syntax tree with a text."""
    first, last = node.lineno, node.end_lineno or node.lineno
    rows = [row.encode() for row in text.rows[first - 1 : last]]
    head, tail = rows[0][: node.col_offset].decode(), rows[-1][node.end_col_offset :].decode()
    return lines_replaced(text, first, last, f"{head}{new}{tail}\n")


def nodes_replaced(text: ProgramText, changes: Sequence[tuple[ast.expr, str]]) -> Edit | None:
    """Return the edit that replaces several parts by texts; of nested parts only the outer one is replaced."""
    if not changes or any(part.lineno != part.end_lineno for part, _ in changes):
        return node_replaced(text, *changes[0]) if len(changes) == 1 else None
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
    return lines_replaced(text, first, last, "".join(f"{row.decode()}\n" for row in rows.values()))


def lines_replaced(text: ProgramText, first: int, last: int, new: str) -> Edit | None:
    """Return the edit that replaces lines; None if the result is the same or not a valid program."""
    old = "".join(f"{row}\n" for row in text.rows[first - 1 : last])
    if old == new:
        return None
    edit = Edit(text.path, first, old, new)
    after = "".join(f"{row}\n" for row in text.rows[: first - 1]) + new
    try:
        parsing.program(after + "".join(f"{row}\n" for row in text.rows[last:]))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return edit


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
        return nodes_replaced(text, [(part, new) for part in parts if (new := known(part)) is not None])
    ran = [part for part in parts if is_at(part, at)]
    for part in (*ran, *(inner for outer in ran for inner in ast.walk(outer)), *parts):
        if isinstance(part, ast.expr) and (new := known(part)) is not None:
            return node_replaced(text, part, new)
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


def stacked(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Replace ``torch.tensor(losses)`` and ``torch.tensor([l.item() for l in losses])`` with ``torch.stack(...)``."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            if not (isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and len(part.args) == 1):
                return None
            inner = part.args[0]
            if called_name(part) not in _OF_ARRAYS or text.segment(part.func.value) != "torch":
                return None
            match inner:
                case ast.Name() | ast.Attribute():
                    return f"torch.stack({text.segment(inner)})"
                case ast.List(elts=[_, *_] as elements):
                    names = [_without_numbers(text, one) for one in elements]
                    return f"torch.stack([{', '.join(names)}])" if all(names) else None
                case ast.ListComp(elt=element, generators=[ast.comprehension()]):
                    name = _without_numbers(text, element)
                    return f"torch.stack({text.with_part(inner, element, name)})" if name else None
            return None

        return known

    return rewritten(timeline, at, change)


def _without_numbers(text: ProgramText, element: ast.expr) -> str:
    """Return ``l`` for ``l.item()``, ``l.detach().item()``, ``float(l)`` or ``l``; empty for anything else."""
    while isinstance(element, ast.Call):
        match element:
            case ast.Call(func=ast.Attribute(value=inner, attr=name), args=[]) if name in _TO_ARRAYS:
                element = inner
            case ast.Call(func=ast.Name(id="float"), args=[inner]):
                element = inner
            case _:
                return ""
    return text.segment(element) if isinstance(element, ast.Name | ast.Attribute | ast.Subscript) else ""


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


def with_dim(timeline: Timeline, at: Frame | None, function: str, value: str) -> Edit | None:
    """Change the dimension of a call: ``softmax(x, 1)``, ``x.softmax(1)``, or the keyword."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            if not (isinstance(part, ast.Call) and called_name(part) == function):
                return None
            given = part.args[0 if _is_method(part) else 1 :]
            return text.with_part(part, given[0], value) if given else None

        return known

    return rewritten(timeline, at, change) or with_keyword(timeline, at, function, "dim", value)


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


def difference_with(timeline: Timeline, at: Frame | None, suffix: str) -> Edit | None:
    """Replace the difference in ``w + (q - w)`` with ``(q - w).detach()``."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            match part:
                case ast.BinOp(op=ast.Add(), right=ast.BinOp(op=ast.Sub()) as difference, left=other):
                    return f"{text.segment(other)} + ({text.segment(difference)}){suffix}"
                case ast.BinOp(op=ast.Add(), left=ast.BinOp(op=ast.Sub()) as difference, right=other):
                    return f"({text.segment(difference)}){suffix} + {text.segment(other)}"
            return None

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


def imported_modules(text: ProgramText) -> set[str]:
    """Return the names of the modules that a program imports."""
    imports = [one.node for one in text.statements if isinstance(one.node, ast.Import)]
    return {each.asname or each.name for one in imports for each in one.names}


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
        return node_replaced(text, one.node, f"{statement}; {text.segment(one.node)}")
    rows = "".join(f"{row}\n" for row in text.rows[one.first - 1 : one.last])
    return lines_replaced(text, one.first, one.last, f"{text.indent(one)}{statement}\n{rows}")


def after(timeline: Timeline, at: Frame | None, statement: str) -> Edit | None:
    """Add a statement on a line of its own after another."""
    source = statement_at(timeline, at)
    if source is None or getattr(source[1].node, "body", None):
        return None
    text, one = source
    if not text.is_alone(one):
        return node_replaced(text, one.node, f"{text.segment(one.node)}; {statement}")
    rows = "".join(f"{row}\n" for row in text.rows[one.first - 1 : one.last])
    return lines_replaced(text, one.first, one.last, f"{rows}{text.indent(one)}{statement}\n")


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
        return node_replaced(text, one.node, "pass")
    if text.is_alone(one):
        return lines_replaced(text, one.first, one.last, "")
    row = text.rows[one.first - 1].encode()
    head, tail = row[: one.node.col_offset].decode(), row[one.node.end_col_offset :].decode()
    if tail.lstrip().startswith(";"):
        return lines_replaced(text, one.first, one.last, f"{head}{tail.lstrip()[1:].lstrip()}\n")
    return lines_replaced(text, one.first, one.last, f"{head.rstrip().removesuffix(';')}{tail}\n")


def moved(
    timeline: Timeline, at: Frame | None, to: Frame | None, *, ahead: bool = False, across: bool = False
) -> Edit | None:
    """Move a statement behind another one of the same function, or with `ahead` before it.

    With `across` it may go to another function, whose variables the caller has examined.
    """
    one, other = statement_at(timeline, at), statement_at(timeline, to)
    if one is None or other is None or one[0] is not other[0] or one[1].node is other[1].node:
        return None
    text = one[0]
    if any(getattr(part.node, "body", None) for part in (one[1], other[1])):
        return None
    if function_of(one[1]) is not function_of(other[1]) and not across:
        return None  # its variables are those of another function
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
    return lines_replaced(text, first, last, "".join(new))


def softmax_last(timeline: Timeline, at: Frame | None, mask: Frame | None) -> Edit | None:
    """Move ``w = w.softmax(-1)`` behind ``w = w.masked_fill(m, -inf)``, or behind the ``if`` that contains it.

    Between both only the mask may be computed. In one expression, ``F.softmax(s, -1).masked_fill(m, x)`` becomes
    ``F.softmax(s.masked_fill(m, x), -1)``.
    """
    one, other = statement_at(timeline, at), statement_at(timeline, mask)
    if one is None or other is None or one[0] is not other[0]:
        return None
    text, (softmax, write) = one[0], (one[1], other[1])
    if softmax.node is write.node:
        return _softmax_around(timeline, mask)
    name = _updated_by_itself(softmax.node)
    is_call = isinstance(softmax.node, ast.Assign) and isinstance(softmax.node.value, ast.Call)
    if not name or not is_call or _updated_by_itself(write.node) != name or not text.is_alone(softmax):
        return None
    between = list(softmax.block[softmax.block.index(softmax.node) + 1 :])
    outer = next((part for part in between if part is write.node or part in write.around), None)
    if outer is None or not (outer is write.node or (isinstance(outer, ast.If) and not outer.orelse)):
        return None
    before = between[: between.index(outer)]
    inside = [part for part in ast.walk(outer) if isinstance(part, ast.stmt) and part not in (outer, write.node)]
    if any(name in names_read(part) or name in names_set(part) for part in (*before, *inside)):
        return None
    if isinstance(outer, ast.If) and (name in names_read(outer.test) or write.node not in outer.body):
        return None
    first, last = softmax.first, outer.end_lineno or outer.lineno
    own = range(first, softmax.last + 1)
    rest = "".join(f"{text.rows[line - 1]}\n" for line in range(first, last + 1) if line not in own)
    moved = "".join(f"{text.rows[line - 1]}\n" for line in own)
    return lines_replaced(text, first, last, rest + moved)


def _updated_by_itself(node: ast.stmt) -> str:
    """Return ``w`` for ``w = f(w)``, ``w += m`` or ``w.fill_(m)``; empty for any other statement."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in names_read(value):
            reads = [part for part in ast.walk(value) if isinstance(part, ast.Name) and part.id == name]
            return name if len(reads) == 1 else ""
        case ast.AugAssign(target=ast.Name(id=name)):
            return name
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr))) if attr.endswith("_"):
            return name
    return ""


def _softmax_around(timeline: Timeline, at: Frame | None) -> Edit | None:
    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            match part:
                case ast.Call(func=ast.Attribute(value=ast.Call() as inner, attr="masked_fill")):
                    end = text.segment(part).removeprefix(text.segment(inner))
                case ast.BinOp(left=ast.Call() as inner, op=ast.Add() | ast.Sub()):
                    end = text.segment(part).removeprefix(text.segment(inner))
                case _:
                    return None
            if called_name(inner) != "softmax" or isinstance(inner.func, ast.Name):
                return None
            is_method = _is_method(inner)
            scores = (
                inner.func.value
                if is_method and isinstance(inner.func, ast.Attribute)
                else next(iter(inner.args), None)
            )
            if scores is None or "\n" in text.segment(part):
                return None
            old = text.segment(scores)
            is_simple = isinstance(scores, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
            masked = f"{old if is_simple or isinstance(part, ast.BinOp) or old.startswith('(') else f'({old})'}{end}"
            masked = f"({masked})" if is_method and isinstance(part, ast.BinOp) else masked
            return text.with_part(inner, scores, masked)

        return known

    return rewritten(timeline, at, change)


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
    return lines_replaced(text, one.first, one.last, "".join([*rows, f"{indent}{then}\n" * bool(then)]))


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
    return in_block(timeline, at, "with torch.no_grad():", write) if "torch" in imported_modules(text) else None


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
    return node_replaced(text, call, f"{text.segment(call.func)}({', '.join(arguments)})")


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


def statement_instead(timeline: Timeline, at: Frame | None, statement: str) -> Edit | None:
    """Replace a statement with another."""
    source = statement_at(timeline, at)
    if source is None or getattr(source[1].node, "body", None):
        return None
    return node_replaced(source[0], source[1].node, statement)


_IN_PLACE = {"add_": "+", "sub_": "-", "mul_": "*", "div_": "/"}


def assigned_to_itself(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Replace ``h.detach()``, whose result is dropped, with ``h = h.detach()``."""
    source = statement_at(timeline, at)
    match source[1].node if source is not None else None:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name() | ast.Attribute() as place)) as call):
            if source is not None and ast.unparse(place).replace(".", "").isidentifier():
                return node_replaced(source[0], call, f"{source[0].segment(place)} = {source[0].segment(call)}")
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
            return node_replaced(text, one.node, f"{value.id} = {value.id}.{attr[:-1]}{whole.removeprefix(head)}")
        case ast.AugAssign(target=ast.Name(id=name), op=op, value=value) if type(op) in _SIGNS:
            old = text.segment(value)
            right = old if isinstance(value, ast.Name | ast.Call | ast.Constant | ast.Attribute) else f"({old})"
            return node_replaced(text, one.node, f"{name} = {name} {_SIGNS[type(op)]} {right}")
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name))], value=value) if name not in names_read(value):
            return before(timeline, at, f"{name} = {name}.clone()")
    return None


_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.MatMult: "@", ast.Pow: "**",
}  # fmt: skip


def leaf_last(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Replace ``w = torch.randn(4, requires_grad=True) * 0.1`` with ``w = (torch.randn(4) * 0.1).requires_grad_()``.

    In a list or a dict, it is the element at the frame.
    """
    source = statement_at(timeline, at)
    value = getattr(source[1].node, "value", None) if source is not None else None
    if source is None or not isinstance(source[1].node, ast.Assign | ast.AnnAssign) or not isinstance(value, ast.expr):
        return None
    text = source[0]
    value = _element_at(value, at)
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
    return node_replaced(text, value, f"{whole if simple else f'({whole})'}.requires_grad_()")


def _element_at(value: ast.expr, at: Frame | None) -> ast.expr:
    """Return the element at a frame of a list, a tuple, a dict or a comprehension; another expression as it is."""
    while True:
        match value:
            case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Dict(values=elements):
                inside = [one for one in elements if _contains(one, at)]
            case ast.ListComp(elt=element) | ast.DictComp(value=element):
                inside = [element]
            case _:
                return value
        if len(inside) != 1:
            return value
        (value,) = inside


def _contains(part: ast.expr, at: Frame | None) -> bool:
    """Return whether a part of a program begins at or before a frame, and ends behind its beginning."""
    if at is None or at.column < 0 or part.end_lineno is None or part.end_col_offset is None:
        return False
    begin, end = (part.lineno, part.col_offset), (part.end_lineno, part.end_col_offset)
    return begin <= (at.line, at.column) < end


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
    return node_replaced(text, value, f"{function}({text.segment(value).replace(text.segment(call), inner, 1)})")


def places_in(part: ast.AST, how: type[ast.expr_context]) -> set[str]:
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
                        edit = lines_replaced(text, decorator.lineno, decorator.end_lineno or decorator.lineno, "")
                        line = decorator.lineno
                        return Switch(frame_of(frame, line, text), "decorator", edit, f"@{text.segment(decorator)}")
                break
    return None


def inference_mode_around(timeline: Timeline, frames: Sequence[Frame]) -> Switch | None:
    """Return the ``inference_mode`` around the innermost of some calls, and the edit to ``no_grad``; None without one.

    It is a block, a decorator, or a part of the statement itself: ``torch.inference_mode()(model)(x)``.
    """
    for frame in frames:
        source = statement_at(timeline, frame)
        if source is None:
            continue
        text, one = source
        for outer in (*reversed(one.around), one.node):
            parts: Sequence[ast.expr] = ()
            match outer:
                case ast.With(items=items):
                    parts = [item.context_expr for item in items]
                case ast.FunctionDef(decorator_list=parts) | ast.AsyncFunctionDef(decorator_list=parts):
                    pass
                case ast.stmt() if outer is one.node:
                    parts = [*one.parts(ast.Call)]
            for part in parts:
                if (mode := _is_inference_mode(part)) is not None:
                    edit = node_replaced(text, part, f"{text.segment(mode).removesuffix('inference_mode')}no_grad()")
                    return Switch(frame_of(frame, part.lineno, text), "inference", edit, text.segment(mode))
            if isinstance(outer, FUNCTION_NODES):
                break
    return None


def _is_inference_mode(part: ast.expr) -> ast.expr | None:
    """Return the name ``torch.inference_mode`` in an expression that switches it on; None in any other."""
    inner = part.func if isinstance(part, ast.Call) else part
    values = [*part.args, *(one.value for one in part.keywords)] if isinstance(part, ast.Call) else []
    is_off = any(isinstance(one, ast.Constant) and one.value is False for one in values)
    name = inner.attr if isinstance(inner, ast.Attribute) else inner.id if isinstance(inner, ast.Name) else ""
    return inner if name == "inference_mode" and not is_off else None


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
    return lines_replaced(
        text, first, last, "".join(f"{row[deeper:] if not row[:deeper].strip() else row}\n" for row in rows)
    )


def _until_the_end(text: ProgramText, one: Statement) -> Edit | None:
    """Replace a call that lasts to the end with ``with torch.no_grad():`` around the rest of its block."""
    rest = [other for other in one.block if other.lineno > one.last]
    if not rest or not text.is_alone(one):
        return None
    last = rest[-1].end_lineno or rest[-1].lineno
    rows = [f"{' ' * STEP}{row}" if row.strip() else row for row in text.rows[one.last : last]]
    head = f"{text.indent(one)}with torch.no_grad():"
    return lines_replaced(text, one.first, last, "".join(f"{row}\n" for row in [head, *rows]))


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
        edit = node_replaced(text, value, f"list({inner})")
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
    values = [value for part in returns for value in returned_values(part) if not is_none(value)]
    if not values:
        return None
    changes = [(value, _times(text, names[0], value)) for value in values]
    at = Frame(text.path, backward.name, returns[-1].lineno, returns[-1].lineno, -1, -1)
    return IgnoredGradient(names[0], at, nodes_replaced(text, changes) if len(returns) == len(names) == 1 else None)


def returned_values(part: ast.Return) -> list[ast.expr]:
    """Return the values that a statement returns."""
    return part.value.elts if isinstance(part.value, ast.Tuple) else [part.value] if part.value is not None else []


def is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _times(text: ProgramText, factor: str, value: ast.expr) -> str:
    """Return the text of a product with a variable."""
    is_product = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult | ast.Div)
    simple = is_product or isinstance(value, ast.Name | ast.Call | ast.Attribute | ast.Subscript | ast.Constant)
    old = text.segment(value)
    return f"{factor} * {old if simple else f'({old})'}"
