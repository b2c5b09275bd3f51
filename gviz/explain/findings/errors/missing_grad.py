"""The tensors that a line means by ``p.grad`` where ``p`` is not the name of a tensor.

For example, in the update of a loop over the parameters::

    parameters = [C, W1, b1]
    for p in parameters:
        p -= lr * p.grad

``p`` is each of the tensors in turn, so an error because of a None is about the first of them without a gradient. The
source code shows what the loop reads: a list, a dict, ``model.parameters()``. Where it does not, as inside a function
that gets the list, all tensors are candidates whose missing gradient has one reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import islice

from gviz.events import Warned
from gviz.explain.findings.missing_gradient.no_gradient import nameless_leaf
from gviz.explain.program_errors import Failure
from gviz.explain.program_text import FUNCTION_NODES, ProgramText, Statement, called_name, function_of, statement_at
from gviz.trace.graph_state import NodeInfo

_MOST_LEAVES = 5000
_MOST_ASSIGNMENTS = 4
"""The most assignments that are followed from a loop to the tensors that it reads."""
_EVENTS_BEFORE = 4
"""The events before the error among which a warning about the same tensor is."""
_MODULE_CALLS = ("parameters", "named_parameters")
_PARAMETERS = ".parameters()"
_PASSED_ON = ("zip", "enumerate", "list", "tuple", "reversed", "sorted", "filter", "iter")
_WARNING = "The .grad attribute of a Tensor that is not a leaf"


def owners_of_gradients(failure: Failure) -> list[str]:
    """Return what the failing statement reads ``.grad`` of: ``p`` for ``p -= lr * p.grad``, also of a line before it.

    ``g = p.grad`` above ``p -= lr * g`` counts, too.
    """
    source = statement_at(failure.timeline, failure.at)
    if source is None:
        return []
    text, one = source
    owners = [*_owners(one)]
    if not owners:
        read = {name.id for name in one.parts(ast.Name)}
        before = [other for other in text.statements if other.first < one.first]
        for other in reversed([other for other in before if function_of(other) is function_of(one)]):
            match other.node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute(attr="grad")) if name in read:
                    owners += _owners(other)
    return [*dict.fromkeys(owners)]


def _owners(one: Statement) -> Iterator[str]:
    for part in one.parts(ast.Attribute):
        owner = ast.unparse(part.value) if isinstance(part.value, ast.Name | ast.Attribute | ast.Subscript) else ""
        if part.attr == "grad" and owner and owner.split(".")[-1] != "autograd":
            yield owner


def without_gradient(failure: Failure, owner: str) -> list[int]:
    """Return the tensors without a ``.grad`` that an owner of `owners_of_gradients` may be, the likeliest first."""
    timeline, source = failure.timeline, statement_at(failure.timeline, failure.at)
    candidates = [*_candidates(failure)]
    if source is None or not candidates:
        return []
    text, one = source
    tree = ast.parse(owner, mode="eval").body
    read = [*_read(text, one, tree, _MOST_ASSIGNMENTS)]
    found = dict.fromkeys(info.node for name in read for info in candidates if _fits(name, info))
    modules = [name for name in read if name.endswith(_PARAMETERS)]
    if found or any(_is_one_of_several(failure, name) for name in modules):
        return [*found]
    if modules:  # one model, whose parameters are named without it
        return [info.node for info in candidates if info.created.kind == "parameter"]
    before = (timeline.event(seq) for seq in range(max(1, failure.seq - _EVENTS_BEFORE), failure.seq))
    is_warned = any(isinstance(event, Warned) and event.message.startswith(_WARNING) for event in before)
    likely = [info.node for info in candidates if (info.created.kind == "op") == is_warned]
    return likely or [info.node for info in candidates]


def _is_one_of_several(failure: Failure, read: str) -> bool:
    """Return whether the recording has several models, so that the names of their parameters begin with the model's."""
    root = read.split(".")[0].split("[")[0]
    nodes = islice(failure.timeline.nodes, _MOST_LEAVES)
    return any(
        name.startswith((f"{root}.", f"{root}[")) for node in nodes for name in failure.timeline.info(int(node)).names
    )


def _candidates(failure: Failure) -> Iterator[NodeInfo]:
    """Yield the leaves, and the results of a leaf without a name, that the program holds and that have no ``.grad``."""
    timeline = failure.timeline
    freed, moment = timeline.nodes.freed(failure.seq), timeline.at(failure.seq)
    alive = (int(node) for node in timeline.nodes if node not in freed)
    infos = (timeline.info(node) for node in islice(alive, _MOST_LEAVES))
    could = [info for info in infos if info.born < failure.seq and _is_leaf_or_scaled_leaf(failure, info)]
    states = moment.states([info.node for info in could]) if could else ()
    for info, state in zip(could, states, strict=True):
        if state is not None and state.outputs and state.outputs[0].grad is None:
            yield info


def _is_leaf_or_scaled_leaf(failure: Failure, info: NodeInfo) -> bool:
    match info.created.kind:
        case "parameter":
            return True
        case "leaf":
            return bool(info.name)
        case "op":
            return info.created.requires_grad and nameless_leaf(failure.timeline, info) is not None
    return False


def _fits(read: str, info: NodeInfo) -> bool:
    """Return whether a node is what a text reads: ``W1``, an item of ``params``, or one of ``net.parameters()``."""
    if not read.endswith(_PARAMETERS):
        return any(name == read or name.startswith((f"{read}[", f"{read}.")) for name in info.names)
    owner = read.removesuffix(_PARAMETERS)
    parts = owner.split(".")
    return info.created.kind == "parameter" and any(
        name.startswith(f"{'.'.join(parts[start:])}.") for name in info.names for start in range(len(parts))
    )


def _read(text: ProgramText, one: Statement, part: ast.expr, steps: int) -> Iterator[str]:
    """Yield what an expression may be: names of tensors and their containers, and ``net.parameters()``."""
    if steps == 0:
        return
    match part:
        case ast.Name(id=name):
            loops = [*_loops_over(one, name)]
            values = loops[:1] or [*_values_of(text, one, name)]
            for value in values:
                yield from _read(text, one, value, steps - 1)
            if not loops:
                yield name
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Dict(values=parts):
            for each in parts:
                yield from _read(text, one, each.value if isinstance(each, ast.Starred) else each, steps)
        case ast.BinOp(left=left, right=right):
            yield from _read(text, one, left, steps)
            yield from _read(text, one, right, steps)
        case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in _MODULE_CALLS:
            yield f"{ast.unparse(owner)}{_PARAMETERS}"
        case ast.Call(func=ast.Attribute(value=owner, attr="items" | "values")):
            yield from _read(text, one, owner, steps)
        case ast.Call(args=arguments) if called_name(part) in _PASSED_ON:
            for each in arguments:
                yield from _read(text, one, each, steps)
        case ast.ListComp(elt=ast.Name(id=name), generators=[ast.comprehension(target=ast.Name(id=target), iter=read)]):
            if name == target:
                yield from _read(text, one, read, steps)
        case ast.Attribute() | ast.Subscript():
            yield ast.unparse(part)


def _loops_over(one: Statement, name: str) -> Iterator[ast.expr]:
    """Yield what the loops around a statement, and in it, read for a name, the innermost first."""
    for made in one.parts(ast.comprehension):
        if name in _targets(made.target):
            yield made.iter
    for outer in reversed(one.around):
        if isinstance(outer, ast.For | ast.AsyncFor) and name in _targets(outer.target):
            yield outer.iter
        if isinstance(outer, FUNCTION_NODES):
            return


def _targets(target: ast.expr) -> set[str]:
    return {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}


def _values_of(text: ProgramText, one: Statement, name: str) -> Sequence[ast.expr]:
    """Return what the statement before another assigns to a name, in its function or in the program itself."""
    values = list[ast.expr]()
    for other in text.statements:
        if function_of(other) not in (None, function_of(one)):
            continue
        match other.node:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                values = [value]
            case ast.AugAssign(target=ast.Name(id=target), value=value) if target == name:
                values.append(value)
    return values
