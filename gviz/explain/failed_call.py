"""The call at which the program failed: what it called, with which tensors, and what the error message says.

A call that raises an error makes no node. But its traceback names the line, the trace has the ends of the module calls
that the error left, and the explanation of the error names the tensors that do not fit. For example::

    File "train.py", line 9, in <module>         loss = cross_entropy(net(x), t)
    File ".../torch/nn/modules/linear.py", line 134, in forward

failed in a module's own ``forward``, so the call is that of the innermost module that the error left: ``2 Linear``. A
line of the program itself, such as ``y = x @ w``, failed in the operation of its expression: ``y = matmul``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, takewhile

from gviz.events import BackwardFinished, Failed, NodeFreed, ScopeEntered, ScopeLeft
from gviz.explain.program_errors import Failure, failure_at
from gviz.explain.why import why_failure
from gviz.source.call_stack import Frame
from gviz.trace.graph_state import Iteration
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import clipped, shown

_STOPPED = ("KeyboardInterrupt", "SystemExit", "GeneratorExit")
"""Errors with which a user stops a program: no call has failed."""
_MOST_OPERANDS = 6
_MOST_PARAMETERS = 1000
LONGEST = 40
"""The most characters of the operation of a failed call."""


@dataclass(frozen=True, slots=True)
class FailedCall:
    """The call at which the program failed, at event `seq`.

    * `name`: the variable for its result, if there is one; `operation`: a function, an expression or a module.
    * `scope`: the failed call of a module, 0 if the program itself failed; `around`: the innermost call around it.
    * `operands`: the nodes of its inputs and parameters, as far as they are known.
    """

    seq: int
    error: str
    message: str
    name: str
    operation: str
    scope: int
    around: int
    operands: tuple[int, ...]

    @property
    def quoted(self) -> str:
        """Return the class of the error and its message in one line."""
        return f"{shown(self.error)}: {shown(' '.join(self.message.split()))}".removesuffix(": ")


def failed_call(timeline: Timeline, iteration: Iteration) -> FailedCall | None:
    """Return the call at which the program failed in an iteration; None if it did not, or if it failed at a node."""
    ends = [seq for seq in timeline.error_index.failures() if timeline.iteration_at(seq).index == iteration.index]
    return timeline.once(_failed_at, ends[-1]) if ends else None


def first_input(timeline: Timeline, n: int) -> int:
    """Return the first input of the call that failed at event `n`; 0 if it is unknown, or no call failed there."""
    failed = failed_call(timeline, timeline.iteration_at(n)) if isinstance(timeline.event(n), Failed) else None
    return next(iter(failed.operands), 0) if failed is not None and failed.seq == n else 0


def _failed_at(timeline: Timeline, seq: int) -> FailedCall | None:
    event, failure = timeline.event(seq), failure_at(timeline, seq)
    if failure is None or not isinstance(event, Failed) or event.node or event.error in _STOPPED:
        return None
    before = timeline.event(seq - 1) if seq > 1 else None
    if isinstance(before, BackwardFinished) and before.error:
        return None
    names = [(path, int(line), name) for path, line, name in _FRAME.findall(event.traceback)]
    chain = _ended_calls(timeline, seq, sum(name == _FORWARD for _, _, name in names))
    is_inner = bool(chain) and _FORWARD in [name for _, _, name in _below(names, failure.at)]
    scope = chain[-1] if is_inner else 0
    outer = chain[:-1] if is_inner else chain
    around = outer[-1] if outer else 0
    name, operation = _written(failure)
    return FailedCall(
        seq,
        event.error,
        event.message,
        "" if is_inner else name,
        operation,
        scope,
        around,
        tuple(_operands(failure, scope)),
    )


_FRAME = re.compile(r'File "(.+?)", line (\d+), in (.+)')
_FORWARD = "forward"


def _below(names: list[tuple[str, int, str]], at: Frame | None) -> list[tuple[str, int, str]]:
    """Return the frames of a traceback below a line of the program."""
    places = [number for number, (path, line, _) in enumerate(names) if at and (path, line) == (at.path, at.line)]
    return names[places[-1] + 1 :] if places else []


def _ended_calls(timeline: Timeline, seq: int, depth: int) -> list[int]:
    """Return the module calls that an error left, the outermost first. As many ``forward`` are in its traceback."""
    before = (timeline.event(number) for number in range(seq - 1, 0, -1))
    ends = takewhile(lambda event: isinstance(event, ScopeLeft | NodeFreed), before)
    left = (event.scope for event in ends if isinstance(event, ScopeLeft))
    chain: list[int] = []
    for scope in islice(left, depth):
        call = timeline.contexts.call(scope)
        if not isinstance(call, ScopeEntered) or (chain and call.parent != chain[-1]):
            break
        chain.append(scope)
    return chain


_OPERATORS: dict[type[ast.operator], str] = {
    ast.MatMult: "matmul", ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow",
}  # fmt: skip


def _written(failure: Failure) -> tuple[str, str]:
    """Return the variable for the result of the expression that failed, and its operation: ``("y", "matmul")``."""
    at, line = failure.at, failure.line
    if at is None or at.end_line != at.line or not line.strip():
        return "", clipped(line.strip(), LONGEST) or failure.error
    text = line.encode()[at.column : at.end_column].decode(errors="replace")
    name = re.match(r"\s*([A-Za-z_]\w*)\s*=\s*$", line.encode()[: at.column].decode(errors="replace"))
    return name[1] if name else "", clipped(_operation(text), LONGEST)


def _operation(text: str) -> str:
    try:
        match ast.parse(text, mode="eval").body:
            case ast.BinOp(op=op) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)]
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                return name
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    return text.strip()


def _operands(failure: Failure, scope: int) -> Iterator[int]:
    """Yield the tensors that the explanation names, and the other parameters of a module among them.

    What the failed call of a module has computed before the error stands for its inputs.
    """
    timeline = failure.timeline
    named = [part.node for part in why_failure(failure).parts if part.kind == "operand" and part.node]
    if not named:
        latest = {name.rpartition(".")[2]: info for info in failure.earlier_nodes() for name in (info.name,) if name}
        named = [latest[name].node for name in failure.names_on_its_line() if name in latest]
    infos = [timeline.info(node) for node in dict.fromkeys(named)]
    owners = {info.name.rpartition(".")[0] for info in infos if info.created.kind == "parameter"} - {""}
    first = (timeline.info(node) for node in islice(timeline.nodes, _MOST_PARAMETERS))
    siblings = (
        info.node for info in first if info.created.kind == "parameter" and info.name.rpartition(".")[0] in owners
    )
    every = [*(info.node for info in infos), *(siblings if owners else ())]
    inner = [info for info in failure.earlier_nodes() if scope and info.created.scope == scope]
    used = {node for info in inner for node, _ in info.created.inputs}
    ends = [info.node for info in inner if info.node not in used]
    yield from islice((node for node in dict.fromkeys([*every, *ends]) if node not in used), _MOST_OPERANDS)
