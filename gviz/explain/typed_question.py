"""Questions as people type them: ``x.grad``, ``emb.weight.grad[0]``, ``loss``, ``step``, ``error``, ``nan``, ``alive``.

`answers` takes the question of a command, which may name several places, and `answer` a single one. They find the node
and the moment that the question is about, and `gviz.explain.why` explains that.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from gviz.errors import GvizError
from gviz.events import BackwardStarted, DataSet, Event, OptimizerStarted, OptimizerStepped, StorageWritten
from gviz.explain.check import check
from gviz.explain.display_names import label, label_at
from gviz.explain.finding import Finding
from gviz.explain.findings.training_loop.kept_graphs import alive_graphs
from gviz.explain.findings.training_loop.monitor_alarms import alarm_at
from gviz.explain.grad_history import accumulation
from gviz.explain.parameter_updates import all_options, steps_by, why_nothing
from gviz.explain.pass_contributions import MOST_PARTS, origin
from gviz.explain.program_errors import Failure, all_failures, ended_first, failure_at, program_end
from gviz.explain.saved_memory import memory_finding
from gviz.explain.source_frames import at_text
from gviz.explain.training import trained_leaves
from gviz.explain.why import why, why_failure
from gviz.query.moments import event_at
from gviz.query.nodes import NamedNodes, TookNoPart, node_at
from gviz.query_syntax.place import split_aspect, unreadable
from gviz.trace.graph_state import BAD
from gviz.trace.timeline import Moment, Timeline
from gviz.values.number_text import number, shape_text
from gviz.values.plain_text import shown
from gviz.values.value import Array
from gviz.values.value_text import grad as short_grad
from gviz.values.value_text import short

_SEVERAL = re.compile(r",(?![^\[]*\])\s*")
"""The separator of several places; a comma within brackets is a part of an index."""


def answers(timeline: Timeline, place: str | None, n: int | None = None) -> list[Finding]:
    """Return why one or several places are as they are at moment `n` (default: the end).

    Without a place, return why the program failed, or the findings of a check if it did not. Raises `GvizError` for an
    empty place.
    """
    places = _SEVERAL.split(place) if place is not None else []
    if not all(one.strip() for one in places):
        raise unreadable("a place is missing")
    if not len(timeline.nodes) and (place is not None or not timeline.failures):
        raise GvizError("this recording holds no nodes", hint="it records operations on tensors", exit_code=2)
    if place is not None:
        names, moment = NamedNodes(timeline), len(timeline) if n is None else n
        return [answer(names, one, moment) for one in places]
    failures = [why_failure(failure) for failure in all_failures(timeline)]
    return failures[-1:] or [one.finding for one in check(timeline)]


def answer(names: NamedNodes, text: str, n: int, selected: int = 0) -> Finding:
    """Return why the place of `text` is as it is at moment `n`; of several nodes the last. Without a text: `selected`.

    Some questions are words:

    * ``alive``: which graphs are still referenced
    * ``memory``: what the graph saves for backward
    * ``error``: why the last error by then was raised, or else the first
    * ``nan``: where the first nan came from, or else the first infinity; ``inf``: where the first infinity came from

    Raises `GvizError` for a place that does not exist.
    """
    moment = names.timeline.at(n)
    if text.strip() in BAD and not names.last(text.strip(), len(names.timeline)):
        return _first_bad_number(names, text.strip())
    if text.strip() == "alive":
        return alive_graphs(names.timeline, moment)
    if text.strip() == "memory" and not names.last("memory", len(names.timeline)):
        return memory_finding(names.timeline, n)
    if text.strip() == "error":
        finding, also = why_failure(_last_error(names, n)), names.hint_at_node("error")
        return replace(finding, text=f"{finding.text} ({also})") if also else finding
    failure = failure_at(names.timeline, n) if n and not text.strip() else None
    if failure is not None and not failure.node:
        return why_failure(failure)
    if not text.strip() and (alarm := alarm_at(names.timeline, n)) is not None:
        return alarm
    if (word := _of_words(names, text)) in _WORDS:
        return _WORDS[word](names, n)
    if (part := _INDEXED.fullmatch(_place_in_question(text))) is not None:
        return _indexed(names, part["place"], part["index"], n, selected)
    place, aspect = split_aspect(_place_in_question(text))
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
    finding = why(names.timeline, moment, node, aspect, output_nr)
    if len(names.timeline.info(node).created.outputs) > 1 and not place.startswith("#"):
        finding = replace(finding, text=f"{shown(place)} of {finding.text}") if place else finding
    return replace(finding, parts=(_namesakes(same, node, place), *finding.parts)) if len(same) > 1 else finding


# Questions about a part of a gradient: ``emb.weight.grad[0]``, ``w.grad[1:3, 0]``

_INDEXED = re.compile(r"(?P<place>.+)\.grad\[(?P<index>[-\d:, ]+)\]")
_MOST_SHOWN = 8


def _indexed(names: NamedNodes, place: str, index: str, n: int, selected: int) -> Finding:
    """Return a part of a gradient: its value, and what each contribution has added there."""
    finding = answer(names, f"{place}.grad", n, selected)
    timeline, node = names.timeline, finding.node
    state = timeline.at(n).state(node) if node else None
    nr = names.output_nr(node, place, n) if node else 0
    output = state.outputs[nr] if state is not None else None
    total = (output.grad or output.incoming) if output is not None else None
    if output is None or total is None:
        return finding
    at = _index(index, total.shape)
    whole = f"{label(timeline, node)}: .grad[{index}]"
    array = timeline.array(total)
    if array is None:
        text = f"{whole} is not known, as the elements were not kept"
        return Finding("gradient", text, output.grad_seq, node, fix=f"keep them with --values {total.nbytes}")
    parts = []
    before = accumulation(timeline, node, output)
    earlier = timeline.array(before.before) if before is not None else None
    if before is not None and earlier is not None and earlier.shape == array.shape:
        parts.append(Finding("before", f"{_part_text(earlier[at])} was there before", before.event, node))
    for part in output.parts[:MOST_PARTS]:
        sent = timeline.array(part.value)
        if sent is None:
            text = f"what {origin(timeline, part)} brought there is not known, as its elements were not kept"
        elif sent.shape != array.shape:
            text = f"{origin(timeline, part)} brought {part.value.shape}"
        else:
            text = f"+= {_part_text(sent[at])} from {origin(timeline, part)}"
        parts.append(Finding("contribution", text, part.seq, part.source))
    hooks = [one for one in finding.parts if one.kind == "hook"]
    return Finding("gradient", f"{whole} is {_part_text(array[at])}", output.grad_seq, node, (*parts, *hooks))


def _index(text: str, shape: tuple[int, ...]) -> tuple[int | slice, ...]:
    """Return an index from its text, as whole numbers and ranges. Raises `GvizError` if it is outside of the shape."""
    index: list[int | slice] = []
    for word, length in zip(text.split(","), (*shape, *[0] * len(text)), strict=False):
        numbers = [int(one) if one.strip() else None for one in word.split(":")]
        first = numbers[0]
        if len(numbers) == 1 and first is not None and -length <= first < length:
            index.append(first)
        elif len(numbers) in (2, 3) and length:
            index.append(slice(*numbers))
        else:
            raise GvizError(f"[{text}] is no index here", hint=f"its shape is {shape_text(shape)}", exit_code=2)
    return tuple(index)


def _part_text(part: Array | np.generic) -> str:
    elements = np.asarray(part).ravel()
    shown_part = " ".join(number(float(one)) for one in elements[:_MOST_SHOWN])
    more = f" … ({elements.size} elements)" if elements.size > _MOST_SHOWN else ""
    return shown_part if elements.size == 1 else f"[{shown_part}{more}]"


# Questions without a place: ``loss``, ``step``, ``no gradient``


def _of_words(names: NamedNodes, text: str) -> str:
    """Return the question if it is one of the words, and no tensor has that name."""
    word = " ".join(text.lower().split())
    return "" if names.last(text.strip(), len(names.timeline)) else word


def _why_loss(names: NamedNodes, n: int) -> Finding:
    """Return the value of the loss at which the last backward pass by a moment began."""
    starts = [(seq, event) for seq, event in names.timeline.select((BackwardStarted,), 1, n + 1)]
    if not starts:
        if (failure := program_end(names.timeline, n)) is not None:
            return ended_first(failure, "a backward pass")
        raise names.no_such("backward pass", "loss")
    node, nr = starts[-1][1].roots[0]
    return why(names.timeline, names.timeline.at(n), node, "value", nr)


def _why_step(names: NamedNodes, n: int) -> Finding:
    """Return the effect of the last optimizer step by a moment, and its parameters."""
    timeline = names.timeline
    seq, step = next(reversed([*timeline.select((OptimizerStepped,), 1, n + 1)]), (0, None))
    if step is None:
        if (failure := program_end(timeline, n)) is not None:
            return ended_first(failure, "a step of an optimizer")
        raise names.no_such("step of an optimizer", "step")
    started = next((timeline.event(one.said) for one in timeline.contexts.steps_at(seq)), None)
    options = f" ({words})" if isinstance(started, OptimizerStarted) and (words := all_options(started)) else ""
    frames, count = timeline.stack(step.stack), len(step.parameters)
    moment = timeline.at(seq)
    effect = (
        f"updated {count} parameter{'s' * (count != 1)}" if count else f"updated nothing: {why_nothing(moment, step)}"
    )
    parts = []
    for node in step.parameters[:_MOST_SHOWN]:
        before, after = timeline.at(seq - 1).state(node), moment.state(node)
        gradient = short_grad(before.outputs[0].grad if before is not None else None)
        value = short(after.outputs[0].value) if after is not None else "?"
        parts.append(Finding("used", f"{label(timeline, node)} had the gradient {gradient}, is now {value}", seq, node))
    idle = step.skipped[:_MOST_SHOWN]
    parts += [Finding("idle", f"{label(timeline, node)} had no gradient", seq, node) for node in idle]
    parts = [*_without_a_step(timeline, seq), *parts]
    text = f"the step of {shown(step.kind)}{at_text(frames)}{options} {effect}"
    return Finding("stepped", text, seq, parts=tuple(parts), at=frames[0] if frames else None)


def _without_a_step(timeline: Timeline, n: int) -> list[Finding]:
    """Return one finding with the parameters that require a gradient, and had no step of an optimizer in the recording.

    An optimizer without a step is not in the recording, so whether one has them is not known.
    """
    stepped = steps_by(timeline, len(timeline)).parameters
    leaves = [node for node in trained_leaves(timeline, n) if timeline.info(node).created.kind == "parameter"]
    states = zip(leaves, timeline.at(n).states(leaves), strict=True)
    nodes = [node for node, state in states if state and state.requires_grad and node not in stepped]
    if not nodes:
        return []
    count = f"{len(nodes)} parameter{'s' * (len(nodes) > 1)}"
    named = ", ".join(label(timeline, node) for node in nodes[:_MOST_SHOWN]) + ", …" * (len(nodes) > _MOST_SHOWN)
    return [
        Finding("not-held", f"{count} had no step in this recording: {named}", timeline.nodes.born(nodes[0]), nodes[0])
    ]


def _why_no_gradient(names: NamedNodes, n: int) -> Finding:
    """Return the leaves that require a gradient and have none at a moment, each with its reason."""
    timeline = names.timeline
    moment, missing = timeline.at(n), []
    for node in timeline.nodes:
        info = timeline.info(node) if timeline.nodes.born(node) <= n else None
        if info is None or info.created.kind == "op" or not info.created.requires_grad:
            continue
        state = moment.state(node)
        if state is not None and not state.freed and state.requires_grad and state.outputs[0].grad is None:
            missing.append(node)
    if not missing:
        return Finding("no-gradient", "every leaf that requires a gradient has one")
    parts = tuple(why(timeline, moment, node, "grad") for node in missing[:_MOST_SHOWN])
    more = f", here are the first {_MOST_SHOWN}" if len(missing) > _MOST_SHOWN else ""
    text = f"{len(missing)} lea{'f' if len(missing) == 1 else 'ves'} without a gradient{more}"
    return Finding("no-gradient", text, node=missing[0], parts=parts, at=parts[0].at)


_WORDS = {"loss": _why_loss, "step": _why_step, "no gradient": _why_no_gradient}


def _took_no_part(timeline: Timeline, unknown: TookNoPart) -> Finding:
    """Return that a name belongs to an object outside of the recording, and which names may be confused with it."""
    text = f"{unknown.what}: {unknown.why}"
    parts = tuple(
        Finding("namesake", f"{label_at(timeline, node)} is another tensor", timeline.info(node).born, node)
        for node in unknown.others
    )
    if parts and unknown.hint:
        first = timeline.info(unknown.others[0])
        parts = (replace(parts[0], text=f"{unknown.hint}{at_text(first.frames)}, another tensor"), *parts[1:])
    fix = f"compute the loss with {shown(unknown.variable)}"
    fix += f", or ask for #{unknown.others[0]}.grad" if unknown.others else ""
    return Finding("took-no-part", text, parts=parts, fix=fix)


def _is_written(event: Event | None, node: int) -> bool:
    """Return whether an event gave a node other numbers: then the question is about them."""
    return isinstance(event, StorageWritten | DataSet) and event.node == node


def _before_the_last_pass(timeline: Timeline, moment: Moment, node: int, same: list[int]) -> int:
    """Return the node of the training before an evaluation if the evaluation's node of that name has no gradient."""
    state, ended = moment.state(node), moment.n == len(timeline) and not timeline.growing
    if len(same) < 2 or node != same[-1] or (state is not None and state.requires_grad and not ended):
        return node
    starts = [phase.start for phase in timeline.phases if phase.kind == "backward" and phase.start <= moment.n]
    before = [one for one in same if starts and timeline.nodes.born(one) < starts[-1]]
    return before[-1] if before else node


def _namesakes(same: list[int], node: int, name: str) -> Finding:
    """Return which of several nodes of one name the answer is about, and how to ask about another."""
    if node != same[-1]:
        text = f"this is #{node}, the last of {len(same)} called {shown(name)} with a backward pass after it"
        return Finding("which", f"{text}; #{same[-1]} is the last of all", node=node)
    text = f"this is #{node}, the last of {len(same)} called {shown(name)}; #{same[-2]} is the one before"
    return Finding("which", text, node=node)


def _place_in_question(text: str) -> str:
    """Return the place in what people type: ``is x.grad 8?`` is about ``x.grad``."""
    match = re.fullmatch(r"(?:is|are|was|has|does)\s+(?:the\s+)?(\S+?)(?:\s.*)?\??", text.strip())
    return match[1] if match else text.strip()


def _first_bad_number(names: NamedNodes, word: str) -> Finding:
    """Return where the first nan or infinity came from."""
    moment = names.timeline.at(event_at(names.timeline, word))
    return why(names.timeline, moment, moment.node)


def _last_error(names: NamedNodes, n: int) -> Failure:
    failures = list(all_failures(names.timeline))
    if not failures:
        raise names.no_such("error", "error")
    return next((failure for failure in reversed(failures) if failure.seq <= n), failures[0])
