"""The names of nodes, outputs and operations in every view, in titles, sentences and formulas."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gviz.events import NodeCreated
from gviz.events.documented_operation_names import PRODUCTS, documented_name
from gviz.explain.formula import is_small
from gviz.explain.operation_sets import RESHAPING, RESHAPING_CALLS
from gviz.explain.source_frames import at_text
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import abridged, abridged_label, clipped, clipped_name, shown
from gviz.values.value_text import CUT, short

MAX_TITLE = 28
LONGEST_CALL = 40
"""The most characters of a function's name: more than ``binary_cross_entropy_with_logits`` has."""

MAX_NAME = 80
"""Characters of a name in a sentence: a longer name is abridged to both ends."""

MOST_TITLE = 79
"""Characters of the title of a finding."""

_FURTHER = 3
"""The most further names of a tensor that are shown: a layer that a list repeats has one for each index."""


def op_title(info: NodeInfo) -> str:
    """Return the operation of a node as it is called in PyTorch's documentation or in the program: ``mul``, ``conv2d``.

    The last node of a call has the name of the function that was called, such as ``cross_entropy``, or ``flatten`` for
    a ``view``. A node that only reshapes the result of another function, as in a ``linear`` of three dimensions, has
    its own name.
    """
    is_last = not info.op.more and (info.op.base_name not in RESHAPING or info.op.call in RESHAPING_CALLS)
    return shown(public_name(info) if is_last else own_name(info))


def public_name(info: NodeInfo) -> str:
    """Return the function that the program called: ``cross_entropy`` for the ``nll_loss`` in it."""
    called = info.op.call
    return called if called in PRODUCTS else _documented_name(info, called or info.op.name)


def mode_of(info: NodeInfo) -> str:
    """Return ``train`` or ``eval`` for a batch norm or a dropout whose mode is recorded; else an empty text."""
    if info.created.kind != "op" or not any(word in public_name(info) for word in ("batch_norm", "dropout")):
        return ""
    attributes = dict(info.created.attrs)
    training = attributes.get("training", attributes.get("train"))
    if training is None and "p" in attributes and len(info.created.inputs) > 1:
        return "train"  # the built-in engine: it has a mask
    return {True: "train", False: "eval"}.get(training, "") if isinstance(training, bool) else ""


def with_mode(name: str, *infos: NodeInfo) -> str:
    """Return the name of a call with the mode of one of its nodes, if one has a mode: ``batch_norm (train)``."""
    mode = next(filter(None, map(mode_of, infos)), "")
    return f"{name} ({mode})" if mode else name


def own_name(info: NodeInfo) -> str:
    """Return the function of PyTorch's documentation that does what a node does: ``conv2d`` for a ``convolution``."""
    return _documented_name(info, info.op.name)


def _documented_name(info: NodeInfo, name: str) -> str:
    return name if info.op.is_of_program else documented_name(name, info.created)


def is_mask(created: NodeCreated) -> bool:
    """Return whether it is the random mask of a dropout."""
    return dict(created.attrs).get("mask") is True and created.kind == "constant"


def called(info: NodeInfo) -> str:
    """Return a node without its number: ``b = mul``, ``mul``; a leaf by its name, or else by its kind."""
    name = abridged(info.name, MAX_NAME)
    if info.created.kind != "op":
        return name or ("mask" if is_mask(info.created) else info.created.kind)
    return f"{name} = {op_title(info)}" if name else op_title(info)


def label(timeline: Timeline, node: int) -> str:
    """Return a node for use in a sentence: ``#4 b = mul``, ``#1 x``, ``#5 add``."""
    return f"#{node} {called(timeline.info(node))}"


def titled(text: str, *names: str) -> str:
    """The title of a finding: a text with ``{}`` for each name, in at most `MOST_TITLE` characters.

    Names that do not fit lose their middles, the longest first. The number in front of a node's name is kept. Names
    without numbers that would be equal then lose their common beginning instead, so that they stay distinct.
    """
    room = MOST_TITLE - len(text.format(*("" for _ in names)))
    widths: dict[int, int] = {}
    for left, place in zip(
        range(len(names), 0, -1), sorted(range(len(names)), key=lambda n: len(names[n])), strict=True
    ):
        widths[place] = min(len(names[place]), max(room // left, _LEAST_NAME))
        room -= widths[place]
    labels = [abridged_label(name, widths[place]) for place, name in enumerate(names)]
    for short_name in {*labels}:
        equal = {at: names[at] for at, one in enumerate(labels) if one == short_name}
        if len({*equal.values()}) > 1:
            for at, name in equal.items():
                labels[at] = clipped(CUT + name[_common(equal.values()) :], widths[at])
    return text.format(*labels)


def _common(names: Collection[str]) -> int:
    """Return the number of characters before the part in which names differ."""
    first, last = min(names), max(names)
    same = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    return max(first.rfind(".", 0, same), first.rfind("_", 0, same)) + 1


_LEAST_NAME = 9
"""Characters that remain of any name in a title."""


def further_names(also: Sequence[str]) -> list[str]:
    """Return the other names of a tensor in its model; if they are many, their number."""
    left = len(also) - _FURTHER
    shown_names = [abridged(name, MAX_NAME) for name in also[:_FURTHER]]
    return [*shown_names, f"{left} more"] if left > 0 else shown_names


def output_called(info: NodeInfo, nr: int) -> str:
    """Return one of several outputs: ``q``, ``output 1``; empty if there is only one."""
    if len(info.created.outputs) < 2:
        return ""
    return abridged(info.output_name(nr), MAX_NAME) or f"output {nr}"


def output_label(timeline: Timeline, node: int, nr: int) -> str:
    """Return an output for use in a sentence: ``q of #2 p, q = split``, ``output 1 of #5 split``.

    A single output is called by its node.
    """
    info = timeline.info(node)
    return " of ".join(filter(None, (output_called(info, nr), f"#{node} {called(info)}")))


def title(info: NodeInfo, width: int = MAX_TITLE) -> str:
    """Return the title of a node's box: ``z = add #8``, ``x leaf #1``, ``W param #2``.

    A name of more characters than the width is cut.
    """
    kind = {"leaf": "leaf", "parameter": "param", "constant": "const"}.get(info.created.kind, "")
    name = clipped_name(info.name, width)
    if kind:
        return f"{name} {'mask' if is_mask(info.created) else kind} #{info.node}".lstrip()
    op = clipped(op_title(info), LONGEST_CALL)
    return f"{name} = {op} #{info.node}" if name else f"{op} #{info.node}"


def constant_value(info: NodeInfo) -> str:
    """Return the value of a nameless constant number as its name; empty for any other node."""
    outputs = info.created.outputs
    value = outputs[0].value if len(outputs) == 1 else None
    if info.name or value is None or value.size != 1 or info.created.kind != "constant":
        return ""
    return short(value)


def symbol(timeline: Timeline, node: int, output_nr: int = 0) -> str:
    """Return the name of a tensor in a formula, or else its number; empty for a small constant, shown as its value.

    The tensor is an output of a node; ``?`` means that it is unknown.
    """
    if not node:
        return "?"
    info = timeline.info(node)
    if len(info.created.outputs) > 1:
        return abridged(info.output_name(output_nr), MAX_NAME) or f"#{node} output {output_nr}"
    value = info.created.first_value
    if info.created.kind == "constant" and not info.name and value is not None and is_small(value):
        return ""
    return abridged(info.name, MAX_NAME) or ("mask" if is_mask(info.created) else f"#{node}")


def label_at(timeline: Timeline, node: int) -> str:
    """Return a node and the line that made it: ``#4 b = mul at demo.py:4``."""
    info = timeline.info(node)
    return f"#{node} {called(info)}{at_text(info.frames)}"
