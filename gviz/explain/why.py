"""The answer to ``why``: why a node has its value, its gradient, or no gradient; why the program failed.

`answer` takes the question as people write it, `why` a node and a moment. Both return the finding of the first kind in
`gviz.explain.kinds` that has an answer.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace

from gviz.errors import GvizError
from gviz.events import DataSet, Event, StorageWritten
from gviz.explain.failures import Failure, all_failures, failure_at
from gviz.explain.finding import Finding
from gviz.explain.findings.loop import alive_graphs
from gviz.explain.kinds import KINDS
from gviz.explain.names import further_names, label, label_at, made_at
from gviz.explain.question import Question, question
from gviz.query.moments import event_at
from gviz.query.names import NamedNodes, TookNoPart
from gviz.query.nodes import node_at
from gviz.trace.moment import Moment
from gviz.trace.state import BAD
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import shown
from gviz.where.place import Aspect, split_aspect


def why(timeline: Timeline, moment: Moment, node: int, aspect: Aspect | None = None, output_nr: int = 0) -> Finding:
    """Explain the value or gradient of an output of a node; without `aspect` whatever is most in need of it.

    That is the error of this moment if it is about the node, else what `question` says.
    """
    failure = failure_at(timeline, moment.n) if aspect is None else None
    if failure is not None and failure.node == node:
        return why_failure(failure)
    asked = question(timeline, moment, node, aspect, output_nr)
    for kind in KINDS:
        if asked.topic in kind.topics and kind.answer is not None and (found := kind.answer(asked)) is not None:
            head = label(timeline, node)
            if found.text.startswith(head):
                found = replace(found, text=_with_all_names(timeline, node) + found.text.removeprefix(head))
            return _with_what_it_was(asked, found) if found.kind == "cleared" else found
    raise AssertionError(asked.topic)  # the last kind of every topic answers all


def _with_all_names(timeline: Timeline, node: int) -> str:
    """A node in the sentence that answers, by all its names.

    ``#2 encoder.weight = decoder.weight`` is a tied weight, ``#9 x = out = Mul`` of a function that returned its `x`.
    """
    info, head = timeline.info(node), label(timeline, node)
    own, is_made_by, op = head.partition(" = ") if info.created.kind == "op" else (head, "", "")
    return " = ".join((own, *further_names(info.also))) + is_made_by + op


def _with_what_it_was(asked: Question, found: Finding) -> Finding:
    """A ``.grad`` that was set to None, with what it was until then, why, and how to ask about that moment."""
    before = asked.at(found.event - 1)
    if before.state is None or before.output.grad is None:
        return found
    was = why(asked.timeline, before.moment, asked.node, "grad", asked.output_nr)
    told = was.text.removeprefix(f"{_with_all_names(asked.timeline, asked.node)}: ")
    return replace(found, parts=(replace(was, text=f"until then (--at {before.moment.n}) {told}"),))


def why_failure(failure: Failure) -> Finding:
    """Explain an error."""
    found = next(found for kind in KINDS if kind.explain and (found := kind.explain(failure)) is not None)
    return _with_the_missing(failure, found) if found.kind == "failed" and failure.says("NoneType") else found


def _with_the_missing(failure: Failure, found: Finding) -> Finding:
    """An error because of a None, with why the first ``.grad`` on its line that is None is so."""
    timeline, names = failure.timeline, NamedNodes(failure.timeline)
    moment = timeline.at(failure.seq)
    for name in dict.fromkeys(re.findall(r"([A-Za-z_][\w.]*)\.grad\b", failure.line)):
        node = names.last(name, failure.seq) or _node_of_module(names, name, failure.seq)
        state = moment.state(node) if node else None
        if state is None or not state.outputs or state.outputs[0].grad is not None:
            continue
        missing = why(timeline, moment, node, "grad")
        text = f"{failure.ended} with {shown(failure.error)} because {shown(name)}.grad is None"
        return replace(found, text=text, node=node, parts=(replace(missing, fix=""),), fix=missing.fix)
    return found


def _node_of_module(names: NamedNodes, name: str, n: int) -> int:
    with suppress(GvizError):  # several have it: then it is not known which one is meant
        return names.of_a_module(name, n)
    return 0


# Questions as people write them: a place, a moment or neither; ``error``, ``nan``, ``alive``


def answer(names: NamedNodes, text: str, n: int, selected: int = 0) -> Finding:
    """Why the place of `text` (the selected node without one) is as it is at moment `n`; of several nodes the last.

    ``alive`` asks which graphs are, ``error`` why the last error by then was raised, else the first, ``nan`` where the
    first nan came from, without any the first infinity, ``inf`` where that did. GvizError for a place there is not.
    """
    moment = names.timeline.at(n)
    if text.strip() in BAD and not names.last(text.strip(), len(names.timeline)):
        return _first_bad_number(names, text.strip())
    if text.strip() == "alive":
        return alive_graphs(names.timeline, moment)
    if text.strip() == "error":
        found, also = why_failure(_last_error(names, n)), names.also("error")
        return replace(found, text=f"{found.text} ({also})") if also else found
    failure = failure_at(names.timeline, n) if n and not text.strip() else None
    if failure is not None and not failure.node:
        return why_failure(failure)
    place, aspect = split_aspect(_asked_place(text))
    try:
        node = node_at(names, place, n, selected, aspect)
    except TookNoPart as unknown:
        return _took_no_part(names.timeline, unknown)
    if not node:
        raise GvizError("no node is selected", hint="j and k select one", exit_code=2)
    if not text.strip() and _is_written(names.timeline.at(n).event, node):
        aspect = "value"
    same = names.called(place, n) if place else []
    node = _before_the_last_pass(names.timeline, moment, node, same) if aspect == "grad" else node
    output_nr = names.output_nr(node, place, n)
    found = why(names.timeline, moment, node, aspect, output_nr)
    if len(names.timeline.info(node).created.outputs) > 1 and not place.startswith("#"):
        found = replace(found, text=f"{shown(place)} of {found.text}") if place else found
    return replace(found, parts=(_namesakes(same, node, place), *found.parts)) if len(same) > 1 else found


def _took_no_part(timeline: Timeline, unknown: TookNoPart) -> Finding:
    """A name means an object that has no part in the recording: that, and what could be mixed up with it."""
    text = f"{unknown.what}: {unknown.why}"
    parts = tuple(
        Finding("namesake", f"{label_at(timeline, node)} is another tensor", timeline.info(node).born, node)
        for node in unknown.others
    )
    if parts and unknown.hint:
        first = timeline.info(unknown.others[0])
        parts = (replace(parts[0], text=f"{unknown.hint}{made_at(first.frames)}, another tensor"), *parts[1:])
    fix = f"compute the loss with {shown(unknown.variable)}"
    fix += f", or ask for #{unknown.others[0]}.grad" if unknown.others else ""
    return Finding("took-no-part", text, parts=parts, fix=fix)


def _is_written(event: Event | None, node: int) -> bool:
    """Whether an event is that a node got other numbers: then these are what there is to ask about."""
    return isinstance(event, StorageWritten | DataSet) and event.node == node


def _before_the_last_pass(timeline: Timeline, moment: Moment, node: int, same: list[int]) -> int:
    """Of the nodes of one name that of an evaluation has no gradient to ask about: that of the training before it."""
    state, ended = moment.state(node), moment.n == len(timeline) and not timeline.growing
    if len(same) < 2 or node != same[-1] or (state is not None and state.requires_grad and not ended):
        return node
    starts = [phase.start for phase in timeline.phases if phase.kind == "backward" and phase.start <= moment.n]
    before = [one for one in same if starts and timeline.nodes.born(one) < starts[-1]]
    return before[-1] if before else node


def _namesakes(same: list[int], node: int, name: str) -> Finding:
    """Which of several nodes of one name was asked about, and how to ask for another."""
    if node != same[-1]:
        text = f"this is #{node}, the last of {len(same)} called {shown(name)} with a backward pass after it"
        return Finding("which", f"{text}; #{same[-1]} is the last of all", node=node)
    text = f"this is #{node}, the last of {len(same)} called {shown(name)}; #{same[-2]} is the one before"
    return Finding("which", text, node=node)


def _asked_place(text: str) -> str:
    """The place in what people type: ``is x.grad 8?`` asks about ``x.grad``."""
    asked = re.fullmatch(r"(?:is|are|was|has|does)\s+(?:the\s+)?(\S+?)(?:\s.*)?\??", text.strip())
    return asked[1] if asked else text.strip()


def _first_bad_number(names: NamedNodes, word: str) -> Finding:
    """Where the first nan or infinity came from."""
    moment = names.timeline.at(event_at(names.timeline, word))
    return why(names.timeline, moment, moment.node)


def _last_error(names: NamedNodes, n: int) -> Failure:
    found = list(all_failures(names.timeline))
    if not found:
        raise names.without("error", "error")
    return next((failure for failure in reversed(found) if failure.seq <= n), found[0])


# The failure at a moment, for the debugger: who, where and what to try, next to PyTorch's own words


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
    """The failure at this moment, or None."""
    failure = failure_at(timeline, moment.n) if moment.n else None
    if failure is None:
        return None

    found = why_failure(failure)
    known = found.kind != "failed" or bool(found.fix)
    related = tuple((part.text, part.event) for part in found.parts if part.event and part.event != moment.n)
    return Diagnosis(
        moment.n,
        shown(failure.error),
        shown(failure.message, lines=True),
        failure.node,
        found.text if known else "",
        found.fix,
        related,
    )
