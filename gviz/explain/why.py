"""The answer to ``why``: why a node has its value, its gradient, or no gradient; why the program failed.

`why` takes a node and a moment and returns the finding of the first kind in `gviz.explain.finding_kinds` that has an
answer. `gviz.explain.typed_question` reads what people type.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from gviz.errors import GvizError
from gviz.explain.display_names import MOST_TITLE, further_names, label, label_at
from gviz.explain.finding import Finding
from gviz.explain.finding_kinds import KINDS, located
from gviz.explain.findings.errors.missing_grad import owners_of_gradients, without_gradient
from gviz.explain.findings.missing_gradient.no_gradient import ASK_ERROR
from gviz.explain.findings.training_loop.monitor_alarms import in_unrecorded_iteration
from gviz.explain.node_question import Question, node_question
from gviz.explain.program_errors import Failure, failure_at
from gviz.query.nodes import NamedNodes
from gviz.query_syntax.place import Aspect
from gviz.trace.timeline import Moment, Timeline
from gviz.values.plain_text import clipped, shown


def why(timeline: Timeline, moment: Moment, node: int, aspect: Aspect | None = None, output_nr: int = 0) -> Finding:
    """Explain the value or gradient of an output of a node; without `aspect`, its most urgent topic.

    That is the error of this moment if it is about the node, or else the topic that `node_question` returns.
    """
    failure = failure_at(timeline, moment.n) if aspect is None else None
    if failure is not None and failure.node == node:
        return why_failure(failure)
    question = node_question(timeline, moment, node, aspect, output_nr)
    for kind in KINDS:
        if question.topic in kind.topics and kind.answer is not None and (finding := kind.answer(question)) is not None:
            head = label(timeline, node)
            if finding.text.startswith(head):
                finding = replace(finding, text=_with_all_names(timeline, node) + finding.text.removeprefix(head))
            finding = _with_what_it_was(question, finding) if finding.kind == "cleared" else finding
            return _with_the_error(question, finding) if finding.fix == ASK_ERROR else finding
    raise AssertionError(question.topic)  # the last kind of every topic always answers


def _with_all_names(timeline: Timeline, node: int) -> str:
    """Return a node for use in the answer, with all its names.

    ``#2 encoder.weight = decoder.weight`` is a tied weight, ``#9 x = out = mul`` is from a function that returned its
    `x`.
    """
    info, head = timeline.info(node), label(timeline, node)
    own, equals, op = head.partition(" = ") if info.created.kind == "op" else (head, "", "")
    return " = ".join((own, *further_names(info.also))) + equals + op


def _with_what_it_was(question: Question, finding: Finding) -> Finding:
    """Return the finding about a ``.grad`` that was set to None, with its last value and a question about it."""
    before = question.at(finding.event - 1)
    if before.state is None or before.output.grad is None:
        return finding
    was = why(question.timeline, before.moment, question.node, "grad", question.output_nr)
    text = was.text.removeprefix(f"{_with_all_names(question.timeline, question.node)}: ")
    fix = was.fix if any(part.kind == "losses" for part in was.parts) else finding.fix
    return replace(finding, parts=(replace(was, text=f"until then (--at {before.moment.n}) {text}"),), fix=fix)


def _with_the_error(question: Question, finding: Finding) -> Finding:
    """Return the finding about a node that a failed pass has not reached, with the cause of the error."""
    failure = failure_at(question.timeline, finding.event)
    if failure is None:
        return finding
    cause = why_failure(failure)
    return replace(finding, parts=(replace(located(cause), parts=(), fix="", edit=None),))


def why_failure(failure: Failure) -> Finding:
    """Explain an error."""
    finding = next(finding for kind in KINDS if kind.explain and (finding := kind.explain(failure)) is not None)
    if finding.kind == "failed" and failure.says("NoneType"):
        finding = _with_the_missing(failure, finding)
    return in_unrecorded_iteration(failure.timeline, failure, finding)


def _with_the_missing(failure: Failure, finding: Finding) -> Finding:
    """Return the finding about an error because of a None, with the reason for it.

    The reason is that of the first ``.grad`` on the line that is None.
    """
    timeline, names = failure.timeline, NamedNodes(failure.timeline)
    moment = timeline.at(failure.seq)
    for name in owners_of_gradients(failure):
        node = names.last(name, failure.seq) or _node_of_module(names, name, failure.seq)
        state = moment.state(node) if node else None
        is_missing = state is not None and bool(state.outputs) and state.outputs[0].grad is None and not state.freed
        reasons = _reasons(failure, [node] if is_missing else without_gradient(failure, name))
        if not reasons:
            continue
        (node, missing), *others = reasons
        text = f"{failure.ended} with {shown(failure.error)} because {shown(name)}.grad is None"
        more = [f"so is {label_at(timeline, other)}" for other, _ in others[:_MOST_OTHERS]]
        parts = (replace(located(missing), fix=""), *(Finding("more", each, 0) for each in more))
        return replace(finding, text=clipped(text, MOST_TITLE), node=node, parts=parts, fix=missing.fix)
    return finding


_MOST_OTHERS = 3
_MOST_ASKED = 50


def _reasons(failure: Failure, nodes: Sequence[int]) -> list[tuple[int, Finding]]:
    """Return why tensors have no gradient, as far as the reason is the one of the first; empty if others have another.

    If the source code shows which tensors a loop reads, the first of them without a gradient ended it.
    """
    moment = failure.timeline.at(failure.seq)
    reasons = [(node, why(failure.timeline, moment, node, "grad")) for node in nodes[:_MOST_ASKED]]
    return [(node, reason) for node, reason in reasons if reason.kind == reasons[0][1].kind]


def _node_of_module(names: NamedNodes, name: str, n: int) -> int:
    with suppress(GvizError):  # several have that name: then the node is unknown
        return names.of_a_module(name, n)
    return 0


# The failure at a moment, for the debugger: its node, its cause and its remedy, next to PyTorch's own words


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One failure. `cause` and `remedy` are empty for an error that is not about the graph.

    `related` are facts with the event at which they happened: ``("written by #7 at train.py:6", 13)``.
    """

    event: int
    error: str
    message: str
    node: int
    cause: str
    remedy: str
    related: tuple[tuple[str, int], ...]


def diagnosis(timeline: Timeline, moment: Moment) -> Diagnosis | None:
    """Return the failure at this moment, or None."""
    failure = failure_at(timeline, moment.n) if moment.n else None
    if failure is None:
        return None

    finding = why_failure(failure)
    known = finding.kind != "failed" or bool(finding.fix)
    related = tuple((part.text, part.event) for part in finding.parts if part.event and part.event != moment.n)
    return Diagnosis(
        moment.n,
        shown(failure.error),
        shown(failure.message, lines=True),
        failure.node,
        finding.text if known else "",
        finding.fix,
        related,
    )
