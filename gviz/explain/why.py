"""The answer to ``why``: why a node has the value, the gradient, or the missing gradient; why the program failed."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace

from gviz.errors import GvizError
from gviz.explain.finding import Finding
from gviz.explain.kind import Question, question
from gviz.explain.names import further_names, label
from gviz.explain.table import KINDS
from gviz.explain.trouble import Trouble, trouble_at
from gviz.plain_text import shown
from gviz.trace.moment import Moment
from gviz.trace.timeline import Timeline
from gviz.where.place import Aspect
from gviz.words.names import NamedNodes


def why(timeline: Timeline, moment: Moment, node: int, aspect: Aspect | None = None, output_nr: int = 0) -> Finding:
    """Explain the value or gradient of an output of a node; without `aspect` whatever is most in need of it.

    That is the error of this moment if it is about the node, else what `question` says.
    """
    trouble = trouble_at(timeline, moment.n) if aspect is None else None
    if trouble is not None and trouble.node == node:
        return why_failed(trouble)
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


def why_failed(trouble: Trouble) -> Finding:
    """Explain an error."""
    found = next(found for kind in KINDS if kind.explain and (found := kind.explain(trouble)) is not None)
    return _with_the_missing(trouble, found) if found.kind == "failed" and trouble.says("NoneType") else found


def _with_the_missing(trouble: Trouble, found: Finding) -> Finding:
    """An error because of a None, with why the first ``.grad`` on its line that is None is so."""
    timeline, names = trouble.timeline, NamedNodes(trouble.timeline)
    moment = timeline.at(trouble.seq)
    for name in dict.fromkeys(re.findall(r"([A-Za-z_][\w.]*)\.grad\b", trouble.line)):
        node = names.last(name, trouble.seq) or _of_a_module(names, name, trouble.seq)
        state = moment.state(node) if node else None
        if state is None or not state.outputs or state.outputs[0].grad is not None:
            continue
        missing = why(timeline, moment, node, "grad")
        text = f"{trouble.ended} with {shown(trouble.error)} because {shown(name)}.grad is None"
        return replace(found, text=text, node=node, parts=(replace(missing, fix=""),), fix=missing.fix)
    return found


def _of_a_module(names: NamedNodes, name: str, n: int) -> int:
    with suppress(GvizError):  # several have it: then it is not known which one is meant
        return names.of_a_module(name, n)
    return 0
