"""The question as people ask it: a place, a moment or none; ``error``, ``nan``, ``alive``."""

from __future__ import annotations

import re
from dataclasses import replace

from gviz.errors import GvizError
from gviz.events import DataSet, Event, StorageWritten
from gviz.explain.check import check
from gviz.explain.finding import Finding
from gviz.explain.findings.lifetimes import alive
from gviz.explain.trouble import Trouble, trouble_at, troubles
from gviz.explain.why import why, why_failed
from gviz.plain_text import shown
from gviz.trace.moment import Moment
from gviz.trace.state import BAD
from gviz.trace.timeline import Timeline
from gviz.where.place import split_aspect, unreadable
from gviz.words.moments import event_at
from gviz.words.names import NamedNodes
from gviz.words.nodes import node_at


def asked(names: NamedNodes, text: str, n: int, selected: int = 0) -> Finding:
    """Why the place of `text` (the selected node without one) is as it is at moment `n`; of several nodes the last.

    ``alive`` asks which graphs are, ``error`` why the last error by then was raised, else the first, ``nan`` where the
    first nan came from, without any the first infinity, ``inf`` where that did. GvizError for a place there is not.
    """
    moment = names.timeline.at(n)
    if text.strip() in BAD and not names.last(text.strip(), len(names.timeline)):
        return _first_bad(names, text.strip())
    if text.strip() == "alive":
        return alive(names.timeline, moment)
    if text.strip() == "error":
        found, also = why_failed(_last_error(names, n)), names.also("error")
        return replace(found, text=f"{found.text} ({also})") if also else found
    trouble = trouble_at(names.timeline, n) if n and not text.strip() else None
    if trouble is not None and not trouble.node:
        return why_failed(trouble)
    place, aspect = split_aspect(_question(text))
    node = node_at(names, place, n, selected, aspect)
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
    return replace(found, parts=(_which(same, node, place), *found.parts)) if len(same) > 1 else found


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


def _which(same: list[int], node: int, name: str) -> Finding:
    """Which of several nodes of one name was asked about, and how to ask for another."""
    if node != same[-1]:
        text = f"this is #{node}, the last of {len(same)} called {shown(name)} with a backward pass after it"
        return Finding("which", f"{text}; #{same[-1]} is the last of all", node=node)
    text = f"this is #{node}, the last of {len(same)} called {shown(name)}; #{same[-2]} is the one before"
    return Finding("which", text, node=node)


def _question(text: str) -> str:
    """The place in what people type: ``is x.grad 8?`` asks about ``x.grad``."""
    asked = re.fullmatch(r"(?:is|are|was|has|does)\s+(?:the\s+)?(\S+?)(?:\s.*)?\??", text.strip())
    return asked[1] if asked else text.strip()


def _first_bad(names: NamedNodes, word: str) -> Finding:
    """Where the first nan or infinity came from."""
    moment = names.timeline.at(event_at(names.timeline, word))
    return why(names.timeline, moment, moment.node)


def _last_error(names: NamedNodes, n: int) -> Trouble:
    found = list(troubles(names.timeline))
    if not found:
        raise names.without("error", "error")
    return next((trouble for trouble in reversed(found) if trouble.seq <= n), found[0])


def answers(timeline: Timeline, place: str | None, n: int | None = None) -> list[Finding]:
    """Why a place is as it is at moment `n` (the end without one); without a place why the program failed.

    A program that did not fail is checked instead. GvizError for an empty place.
    """
    if place is not None and not place.strip():
        raise unreadable("a place is missing")
    if not len(timeline.nodes):
        raise GvizError("this recording holds no nodes", hint="it records operations on tensors", exit_code=2)
    if place is not None:
        return [asked(NamedNodes(timeline), place, len(timeline) if n is None else n)]
    found = [why_failed(trouble) for trouble in troubles(timeline)]
    return found[-1:] or [one.finding for one in check(timeline)]
