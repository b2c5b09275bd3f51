"""A function that squashes numbers, of its own result: ``tanh(tanh(x))``, or a softmax of a softmax.

Idea. A function that squashes its input makes no sense on what it has squashed already: a tanh of numbers from -1 to 1
reaches 0.76 at most, and a sigmoid of numbers from 0 to 1 lies between 0.5 and 0.73. Probabilities that go into another
softmax, as that of cross_entropy, come out nearly equal.

Example. The log-probability of an action ``a = tanh(u)`` needs ``log(1 - a ** 2)``. With ``log(1 - tanh(a) ** 2)`` it
is that of another distribution.

Limits. A factor between the two makes it another function. Data that was squashed before it came to the model does not
count. A tanh of a tanh that is no correction of a log-probability is a note.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import SAME_NUMBERS, SOFTMAXES
from gviz.explain.program_text import called_name, statement_at
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import without_call, without_method
from gviz.explain.source_frames import innermost

_BOUNDS = {"tanh": "from -0.762 to 0.762", "sigmoid": "from 0.5 to 0.731", "softsign": "from -0.5 to 0.5"}
"""The functions, with the numbers that their results have for the results of the same function."""

_BETWEEN = SAME_NUMBERS | {"detach"}
_MOST_BETWEEN = 6
_MOST_FOLLOWED = 60


def squashed_twice(survey: Survey) -> Iterator[Finding | None]:
    """Yield the lines that apply a function to its own result."""
    seen = set[int]()
    for record in survey.ops(*_BOUNDS):
        yield None
        if record.created.stack in seen or record.created.during[0]:
            continue
        before = _before(survey, record)
        if before is None or before.op != record.op or before is record:
            continue
        if not _is_of_model(survey, before):
            continue
        seen.add(record.created.stack)
        yield _finding(survey, record, before)


def _is_of_model(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a result depends on a parameter or on another tracked tensor, also where autograd is off."""
    waiting, seen = [record], {record.node}
    while waiting and len(seen) < _MOST_FOLLOWED:
        one = waiting.pop()
        if one.created.requires_grad:
            return True
        new = [source for source in survey.sources(one) if source.node not in seen]
        seen |= {source.node for source in new}
        waiting += new
    return False


def _before(survey: Survey, record: NodeRecord) -> NodeRecord | None:
    """Return the operation whose numbers a function gets, up to their shape, order and copies."""
    source = next(survey.sources(record), None)
    for _ in range(_MOST_BETWEEN):
        if source is None or source.op not in _BETWEEN:
            return source
        source = next(survey.sources(source), None)
    return None


def _finding(survey: Survey, record: NodeRecord, before: NodeRecord) -> Finding:
    timeline = survey.timeline
    is_correction = record.op == "tanh" and _is_of_log_probability(survey, record)
    names = label(timeline, record.node), label(timeline, before.node)
    text = titled(f"{{}} is a {record.op} of a {record.op}: of {{}}", *names)
    bounds = f"{label_at(timeline, before.node)} is squashed already: the result is {_BOUNDS[record.op]} for any input"
    first = survey.at(before)
    part = Finding("first", bounds, before.seq, before.node, at=first)
    fix = f"leave out one {record.op}"
    if is_correction:
        name = timeline.info(before.node).name
        squashed = name if name.isidentifier() else f"the result of the first {record.op}"
        fix = f"the correction of a log-probability is log(1 - a ** 2) with a = {squashed}, without another tanh"
    at = survey.at(record)
    edit = without_method(timeline, at, record.op) if at is not None and not _is_function(survey, record) else None
    edit = edit or without_call(timeline, at, record.op)
    suspected = record.op != "sigmoid" and not is_correction
    return Finding("squashed-twice", text, record.seq, record.node, (part,), fix, at, suspected=suspected, edit=edit)


def _is_of_log_probability(survey: Survey, record: NodeRecord) -> bool:
    """Return whether the square of a result is subtracted from 1 in a logarithm: ``log(1 - tanh(u) ** 2 + eps)``."""
    node, steps = record, list[str]()
    for _ in range(_MOST_BETWEEN):
        users = [survey.nodes[one] for one in survey.timeline.nodes.users(node.node) if one in survey.nodes]
        users = [one for one in users if not one.created.during[0]]
        if len(users) != 1:
            return False
        node = users[0]
        if node.op in ("log", "log1p"):
            return bool({"pow", "square", "mul"} & {*steps})
        if node.op not in _BETWEEN | {
            "pow",
            "square",
            "mul",
            "sub",
            "rsub",
            "add",
            "clamp",
            "clamp_min",
            "neg",
            "relu",
        }:
            return False
        steps.append(node.op)
    return False


def _is_function(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a function of a module is called: ``torch.tanh(x)``, and not ``x.tanh()``."""
    source = statement_at(survey.timeline, survey.at(record))
    calls = source[1].parts(ast.Call) if source is not None else ()
    return any(call.args and called_name(call) == record.op for call in calls)


# ----------------------------------------------------------------------------------------------------------------------
# A softmax of a softmax: an operation that takes logits, such as cross_entropy, gets probabilities.

_TWICE = {
    "log_softmax": {*SOFTMAXES, "sigmoid"},
    "softmax": SOFTMAXES,
    "binary_cross_entropy_with_logits": {"sigmoid", "softmax"},
}
"""The operation -> the operations that must not make its input."""


def softmax_twice(survey: Survey) -> Iterator[Finding]:
    """Yield operations that take logits and got probabilities."""
    timeline = survey.timeline
    for record in survey.ops(*_TWICE):
        first = next(survey.sources(record), None)
        before = survey.unwrapped(first) if first is not None else None
        if before is None or before.op not in _TWICE[record.op]:
            continue
        if record.op == before.op == "log_softmax":  # the second log_softmax changes nothing
            continue
        names = label(timeline, record.node), label(timeline, before.node)
        text = titled("{} takes logits, but gets {}", *names)
        first_at = innermost(timeline.info(before.node))
        part = Finding(
            "first", f"{label_at(timeline, before.node)} took it first", before.seq, before.node, at=first_at
        )
        fix = f"give it the input of that {before.op}: cross_entropy and the losses with logits apply it themselves"
        at = innermost(timeline.info(record.node))
        edit = without_call(timeline, survey.at(before), before.op)
        yield Finding("softmax-twice", text, record.seq, record.node, (part,), fix, at, edit=edit)
