"""Sizes of boxes in characters and rows.

A box reserves the room that it needs at any moment, so stepping never moves one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from textwrap import wrap
from typing import Literal

import numpy as np
from rich.cells import cell_len

from gviz.explain.display_names import (
    LONGEST_CALL,
    MAX_TITLE,
    called,
    constant_value,
    op_title,
    own_name,
    public_name,
    title,
    with_mode,
)
from gviz.explain.failed_call import FailedCall
from gviz.explain.module_costs import costs
from gviz.render.boxes.edges import box_key, chip_key
from gviz.render.boxes.folding import Group, ModuleCall, Preparation
from gviz.render.boxes.full_detail_rows import detail_count, detail_width
from gviz.render.boxes.gradient_bars import BRIEF_BARS, bars_width, part_parameters, step_results
from gviz.render.boxes.graph_options import Options
from gviz.render.boxes.node_states import cut_text, cuts, remark
from gviz.render.boxes.tensor_pictures import CELL, DIGITS, THUMBNAIL_LINES
from gviz.trace.graph_state import OPTIMIZER, Iteration, NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.number_text import shape_text
from gviz.values.plain_text import clipped, clipped_name, shown
from gviz.values.value import Value
from gviz.values.value_text import CUT, FEW, NO_VALUE, elements_text, short

Role = Literal["leaf", "parameter", "constant", "op", "root", "chip", "module", "saved", "failed"]

STATUS_ROOM = 14
"""Characters next to the title, for the mark of the current node and the word for its state."""

WIDEST_VALUE = 36
"""The most characters of a label and a value in one line."""

LEAF_WIDTH = 26
"""The fewest characters of the box of a leaf."""
LEAF_NUMBER = LEAF_WIDTH - len("incoming ")
"""The characters of a number in the narrowest box of a leaf."""

MAX_OUTPUTS = 4
"""The most outputs that a box shows. An op with more outputs states their number."""


@dataclass(frozen=True, slots=True)
class Outline:
    """A box without its text: its title, and the room it needs at any moment, in characters and rows (title included).

    The role decides what `user` and `slot` hold. A chip represents `node` where `user` uses it as input `slot`. A box
    for a saved tensor represents saved tensor number `slot` of the node. The box of a failed call has one of its
    operands as its node. For all other boxes both are 0.

    `incoming` reserves a row for the incoming gradient of a leaf that a backward pass can reach. The box of a collapsed
    module represents its `group`, and `node` is the last node that the module made. `enclosing_calls` are the expanded
    module calls around a box, the outermost first.
    """

    key: str
    node: int
    role: Role
    title: str
    width: int
    height: int
    user: int = 0
    slot: int = 0
    incoming: bool = False
    group: Group | None = None
    enclosing_calls: tuple[ModuleCall, ...] = ()

    @property
    def nodes(self) -> tuple[int, ...]:
        """Return all nodes that the box represents."""
        return (self.node,) if self.group is None else self.group.nodes


@dataclass(frozen=True, slots=True)
class Rooms:
    """Builder of the boxes of nodes and modules.

    `roots` are the nodes where backward passes start; `backward` is true if there is a pass. There may be no rows for
    gradients of operations (`gradients`) and of leaves (`leaf_gradients`). `opened` are the scopes of expanded modules
    that call only one function: in them, nodes have their own names instead of the function's.
    """

    timeline: Timeline
    iteration: Iteration
    options: Options
    roots: frozenset[int]
    backward: bool
    gradients: bool = True
    leaf_gradients: bool = True
    opened: frozenset[int] = frozenset()

    def _has_gradient(self, info: NodeInfo, role: Role) -> bool:
        """Return whether the box of a node has a row for its gradient."""
        if role in ("leaf", "parameter"):
            return self.leaf_gradients
        return role != "constant" and info.created.requires_grad and self.gradients

    def of(self, info: NodeInfo) -> Outline:
        """Return the outline of a node's own box."""
        role, text = self._role(info), node_title(info, self.options, is_inner=info.created.scope in self.opened)
        if not self.options.numbered and self.options.titles == "both":
            text = with_argument(self.timeline, info, text)
        elif self.options.graph_filter.calls and self.options.titles == "both" and exponent_of(info):
            name, sign, number = text.partition(" #")
            text = f"{name} {exponent_of(info)}{sign}{number}"
        if self.options.density == "min":
            text = constant_value(info) or text
            return Outline(box_key(info.node), info.node, role, text, cell_len(text), 1)
        if self.options.unrecorded and _is_unknown(info):
            return Outline(box_key(info.node), info.node, role, text, cell_len(text) + STATUS_ROOM, 1)
        number = constant_value(info) if role == "constant" else ""
        if number:
            return Outline(box_key(info.node), info.node, role, number, len(number), 1)
        if self.options.density == "brief":
            height = 2 + (self.options.stacks and self._has_gradient(info, role))
            wide = brief_width(info, text, role, self.options)
            return Outline(box_key(info.node), info.node, role, text, wide, height)
        width = cell_len(text) + STATUS_ROOM * (role != "constant")
        width = max(width, self._value_width(info, role))
        if self.options.marks and cuts(self.timeline, info):
            width = max(width, cell_len(cut_text(info)))
        incoming = role in ("leaf", "parameter") and self.backward
        width, height = self._with_cost(width, self._height(info, role), info.node)
        return Outline(box_key(info.node), info.node, role, text, width, height, incoming=incoming)

    def module(self, last: NodeInfo, group: Group) -> Outline:
        """Return the outline of a collapsed call: its contents, its last result, and its parameters' gradient."""
        number = number_in_call(self.timeline, group)
        text = group_title(group, last, map(self.timeline.info, group.inner), self.options, number)
        key = module_key(group.call)
        role: Role = "module"
        if group.call.is_source_call:
            role = "op" if self.roots.isdisjoint(group.inner) else "root"
        if self.options.density == "min":
            count = self._bars(group) if self.options.bars else 0
            wide = max(cell_len(text), bars_width(count, BRIEF_BARS) - len("|∂L/∂h| ")) if count else cell_len(text)
            return Outline(key, last.node, role, text, wide, 1 + bool(count), group=group)
        if group.preparation is not None:
            return self._data(key, last, text, group, group.preparation)
        bars = self._bars(group)
        makes = group.call.path != OPTIMIZER  # an optimizer changes parameters and makes no tensor
        if self.options.density == "brief":
            wide = brief_module_width(text, last.created.first_value, makes=makes) + 4 * self.options.graph_filter.calls
            if self.options.stacks:
                wide = brief_stacked_width(text, last.created.first_value, makes=makes)
            if group.call.is_source_call:
                wide = brief_width(last, text, role, self.options)
            wide = max(wide, bars_width(bars, BRIEF_BARS) if bars else 0)
            sends = bool(group.parameters) and self.leaf_gradients
            sends = sends or (group.call.is_source_call and self._has_gradient(last, role))
            height = 2 + bool(bars) + (self.options.stacks and sends)
            return Outline(key, last.node, role, text, wide, height, group=group)
        grads = self.backward and bool(group.parameters)
        width = max(cell_len(text) + STATUS_ROOM, self._value_width(last, "op"))
        if has_contents(group, self.options):
            width = max(width, CONTENTS)
        gives = value_lines(last.created.first_value, self.options) if makes else 0
        receives = gives if group.call.is_source_call and self._has_gradient(last, role) else 0
        adds = grads and group.call.of > 1
        width = max(width, bars_width(bars) if bars else 0)
        height = 1 + has_contents(group, self.options) + gives + receives + grads + adds + bool(bars)
        width, height = self._with_cost(width, height, last.node, group)
        return Outline(key, last.node, role, text, width, height, group=group)

    def _bars(self, group: Group) -> int:
        """Return the number of equal parts whose gradients a box shows as bars; 0 if it shows none."""
        once = self.timeline.once
        if not self.backward or group.repeat is None or not (once(part_parameters, group) or once(step_results, group)):
            return 0
        return group.repeat.count

    def _data(self, key: str, last: NodeInfo, text: str, group: Group, data: Preparation) -> Outline:
        """Return the outline of data preparation: its number of operations, and the data that enters the graph."""
        counted, value = cell_len(data_text(data, data.operations)), last.created.first_value
        if self.options.density == "brief":
            room = tensor_room(value) + BRIEF_GAP if data.is_entry else 0
            width = max(cell_len(text) + BRIEF_NOTE, room + counted)
            return Outline(key, last.node, "module", text, width, 2, group=group)
        width = max(cell_len(text) + STATUS_ROOM, self._value_width(last, "op") if data.is_entry else 0, counted)
        height = 2 + (value_lines(value, self.options) if data.is_entry else 0)
        return Outline(key, last.node, "module", text, width, height, group=group)

    def _with_cost(self, width: int, height: int, node: int, group: Group | None = None) -> tuple[int, int]:
        """Return the size of a box with room for the row of its cost, if it has one."""
        cost = cost_text(self.timeline, self.iteration.end, self.options, node, group)
        return (max(width, len(f"{self.options.overlay} {cost}")), height + 1) if cost else (width, height)

    def _role(self, info: NodeInfo) -> Role:
        if info.created.kind == "op":
            return "root" if info.node in self.roots else "op"
        return info.created.kind if info.created.requires_grad else "constant"

    def _height(self, info: NodeInfo, role: Role) -> int:
        shown_outputs = info.created.outputs[: min(info.returned, MAX_OUTPUTS)]
        lines = sum(value_lines(output.value, self.options) for output in shown_outputs)
        thumbnails = sum(thumbnail_lines(output.value, self.options) for output in shown_outputs)
        details = detail_count(info, self.options)
        if role == "constant":
            return 1 + max(lines, 1) + thumbnails + details
        leaf = role in ("leaf", "parameter")
        grads = lines if self._has_gradient(info, role) and (leaf or not info.created.untracked) else 0
        twice = lines if leaf and self.backward else 0
        has_remark = bool(remark(self.timeline, info, self.iteration))
        return 1 + lines + thumbnails + grads + twice + has_remark + details

    def _value_width(self, info: NodeInfo, role: Role) -> int:
        """Return the width for ``value`` and the widest value, and for ``incoming -6 (1 of 2)`` of a leaf."""
        values = [output.value for output in info.created.outputs[: info.returned]]
        large = any(value is not None and value.size > FEW for value in values)
        known = max((len(short(value, WIDEST_VALUE, DIGITS)) for value in values), default=0)
        least = {"op": 20, "constant": 0}.get(info.created.kind, LEAF_WIDTH)
        width = max(least, min(len("incoming ") + known, WIDEST_VALUE), 30 if large else 0)
        if role == "constant":
            width = min(width, 30) if values else 0
        grids = [self.options.grid(value.shape) for value in values if value is not None]
        widest = max((shape[1] for shape in grids if shape), default=0)
        return max(width, len("incoming ") + widest * CELL if widest else 0, detail_width(info, self.options))


COST_BAR = 8
"""The cells of the bar of a box that costs as much as the whole iteration."""


def cost_text(timeline: Timeline, n: int, options: Options, node: int, group: Group | None) -> str:
    """Return what a box costs, ``8.5 KiB 40% ▇▇▇``; empty without an overlay, or if the box costs nothing.

    A box of several equal modules costs what all of them do.
    """
    known = costs(timeline, options.overlay, n) if options.overlay is not None else None
    if known is None:
        return ""
    if group is None or known.kind == "memory":
        amount = known.of_nodes((node,) if group is None else group.inner)
    elif group.repeat is not None:
        amount = sum(known.by_module.get(path, 0) for path in group.repeat.modules)
    else:
        amount = known.of_call(group.call.path, group.call.nr)
    if not amount:
        return ""
    share = amount / max(known.total, amount)
    bar = "▇" * max(round(COST_BAR * share), 1)
    return f"{known.text(amount)} {100 * share:.{int(share < 0.0995)}f}% {bar}"


def _is_unknown(info: NodeInfo) -> bool:
    """Return whether nothing is known of the values of an operation but their shapes."""
    values = [output.value for output in info.created.outputs]
    known = (value is not None and (value.array() is not None or value.statistics() is not None) for value in values)
    return info.created.kind == "op" and not any(known)


def node_title(info: NodeInfo, options: Options, *, is_inner: bool = False) -> str:
    """Return the title of a node's box: ``b = mul #4``. Where room is short, a node with a name has no number.

    A node that `is_inner` in the call of a function has its own name instead of the function's.
    """
    if options.titles == "backward" and info.created.kind == "op" and info.op.grad_fn:
        return clipped(info.op.grad_fn, options.longest_name)
    if options.titles == "name":
        unnamed = f"#{info.node}" if options.numbered else "" if info.created.kind == "op" else called(info)
        return clipped_name(info.name or unnamed, options.longest_name)
    if options.graph_filter.calls and info.created.kind == "op":
        name = shown(own_name(info)) if is_inner or info.op.more else public_name(info)
        return _call_title(info, _with_mode(name, info, options), options)
    named = options.density == "brief" and info.name
    is_short = named or options.density == "min" or not options.numbered
    if is_short:
        return _with_mode(clipped_name(called(info), options.longest_name), info, options)
    number = f" #{info.node}"
    text = title(info, options.longest_name).removesuffix(number)
    return _with_mode(text, info, options) + number


def with_argument(timeline: Timeline, info: NodeInfo, text: str) -> str:
    """Return the title of an operation in a figure, with the number that it takes: ``pow 2``, or ``x[3]`` for an index.

    Otherwise the steps of a loop over ``x[t]`` would look equal.
    """
    if info.created.kind != "op" or info.created.inputs == ():
        return text
    attributes = dict(info.created.attrs)
    exponent = exponent_of(info)
    if exponent:
        return f"{text} {exponent}"
    key = attributes.get("key", attributes.get("index") if attributes.get("dim") == 0 else None)
    if info.name or info.op.name not in ("getitem", "select") or not isinstance(key, int):
        return text
    source = timeline.info(info.created.inputs[0][0]).name
    return f"{clipped_name(source, MAX_TITLE)}[{key}]" if source else f"{text} {key}"


def exponent_of(info: NodeInfo) -> str:
    """Return the exponent of a power if it is a plain number, else an empty text."""
    exponent = dict(info.created.attrs).get("exponent") if info.op.name in ("pow", "pow_") else None
    return f"{exponent:g}" if isinstance(exponent, int | float) else ""


def _with_mode(name: str, info: NodeInfo, options: Options) -> str:
    """Return the name of an operation with ``(train)`` or ``(eval)``; without where its attributes have their rows."""
    return name if detail_count(info, options) and options.attr_chars else with_mode(name, info)


def has_contents(group: Group, options: Options) -> bool:
    """Return whether the box of a collapsed call lists its contents. It does not for a single node of the same name."""
    if group.call.is_source_call:
        return len(group.inner) > 1 or bool(group.parameters)
    is_named = options.graph_filter.calls and group.does == group.call.kind.lower()
    return not is_named or len(group.inner) > 1 or bool(group.parameters)


CONTENTS = 30
"""Characters for the contents of a collapsed call."""


COMMUTATIVE = frozenset({"add", "mul", "multiply", "rsub"})
"""Operations whose number may be written after their name, wherever it is in the program: ``rsub 1`` is ``1 - x``."""


def number_in_call(timeline: Timeline, group: Group) -> str:
    """Return the only number in the box of an operation with two operands, ``0.5`` in ``0.5 * x``, else an empty text.

    Otherwise the number would be in no box.
    """
    if not group.call.is_source_call or len(group.inner) != 1:
        return ""
    operands = [node for node, _ in timeline.info(group.inner[0]).created.inputs]
    constants = [timeline.info(node) for node in group.buffers]
    numbers = [info for info in constants if dict(info.created.attrs).get("number") is True]
    return constant_value(numbers[0]) if len(numbers) == len(constants) == 1 and len(operands) == 2 else ""


def group_title(group: Group, last: NodeInfo, inner: Iterable[NodeInfo], options: Options, number: str = "") -> str:
    """Return the title of the box of a collapsed call with these `inner` nodes, and with its `number`: ``mul 0.5``.

    A number that is the first of two operands is before the name: ``1 sub`` for ``1 - x``.
    """
    if group.call.is_source_call:
        name = with_mode(group.call.kind, *inner)
        is_first = bool(number) and last.created.inputs[0][0] in group.buffers
        is_first = is_first and group.call.kind not in COMMUTATIVE
        return _call_title(last, (f"{number} {name}" if is_first else f"{name} {number}").rstrip(), options)
    if group.preparation is not None:
        return _data_title(group.preparation, last, options)
    if group.repeat is not None:
        has_kind = group.call.kind not in ("", group.repeat.title)
        kind = f" {clipped(group.call.kind, options.longest_name)}" if has_kind else ""
        return f"{clipped_name(group.repeat.title, options.longest_name)}{kind} ×{group.repeat.count:,}"
    title = module_title(group.call, options.longest_name)
    return title.removeprefix("[+] ") if options.graph_filter.calls or not options.numbered else title


def _data_title(data: Preparation, last: NodeInfo, options: Options) -> str:
    """Return the title of data preparation: ``[+] x #28``, ``[+] data not used here``."""
    sign = "[+] " if options.numbered else ""
    if data.is_entry:
        number = f" #{last.node}" if options.numbered and options.density not in ("min", "brief") else ""
        return f"{sign}{clipped_name(last.name or op_title(last), options.longest_name)}{number}"
    return f"{sign}data" if data.is_used else f"{sign}data not used here"


def data_text(data: Preparation, made: int = 0) -> str:
    """Return ``12 operations on data``; ``3 of 12 operations on data`` while some are not `made`."""
    some = f"{made} of " if made else ""
    return f"{some}{data.operations} operation{'s' * (data.operations != 1)} on data"


def _call_title(last: NodeInfo, name: str, options: Options) -> str:
    """Return ``h = linear #4``, without the number where room is short."""
    number = "" if options.density in ("min", "brief") or not options.numbered else f" #{last.node}"
    holder, called = clipped_name(last.name, options.longest_name), clipped(name, LONGEST_CALL)
    return f"{holder} = {called}{number}" if holder else f"{called}{number}"


def module_title(call: ModuleCall, width: int = MAX_TITLE) -> str:
    """Return the title of a collapsed module: ``[+] blocks.0 Block``, without the first part, which all paths share.

    A module that is called several times has the number of the call: ``[+] cell:5 Cell``.
    """
    path = call.path.partition(".")[2] or call.path
    kind = f" {call.kind}" if call.kind and call.kind != path else ""
    nr = f":{call.nr}" if call.of > 1 and call.of_module else ""
    return f"[+] {clipped_name(path, width)}{nr}{clipped(kind, width)}"


def named_by_model(places: Sequence[Outline]) -> tuple[Outline, ...]:
    """Return boxes that are drawn without frames: if several models have boxes, titles of modules begin with theirs.

    For example, ``G.0 Linear`` and ``D.0:1 Linear``.
    """
    outermost = [calls[0] for place in places if (calls := (*place.enclosing_calls, *_module_of(place)))]
    models = {call.path for call in outermost if call.of_module}
    return tuple(_with_model(place) for place in places) if len(models) > 1 else tuple(places)


def _module_of(place: Outline) -> tuple[ModuleCall, ...]:
    group = place.group
    return (group.call,) if group is not None and group.preparation is None and not group.call.is_source_call else ()


def _with_model(place: Outline) -> Outline:
    if not place.enclosing_calls or not _module_of(place):
        return place
    sign = "[+] " if place.title.startswith("[+] ") else ""
    title = f"{sign}{clipped_name(place.enclosing_calls[0].path, MAX_TITLE)}.{place.title.removeprefix(sign)}"
    room = 0 if place.height == 1 else STATUS_ROOM
    return replace(place, title=title, width=max(place.width, cell_len(title) + room))


def value_lines(value: Value | None, options: Options) -> int:
    """Return how many rows a value takes."""
    shape = options.grid(value.shape) if value is not None else None
    return shape[0] if shape else 1


def thumbnail_lines(value: Value | None, options: Options) -> int:
    """Return how many rows the thumbnail of a larger value takes: one if the trace has no elements of it."""
    if options.form not in ("heat", "histogram") or value is None or value.size <= FEW:
        return 0
    return THUMBNAIL_LINES if value.data is not None or value.blob is not None else 1


def chip_place(
    info: NodeInfo, user: int, slot: int, options: Options, *, joint: bool = False, gradients: bool = True
) -> Outline:
    """Return the outline of one use of a shared leaf.

    A `joint` chip represents several uses in a collapsed module and has no rows. Without `gradients`, none has.
    """
    name = clipped_name(info.title, options.longest_name - 8)
    if options.density == "min" or joint:
        return Outline(chip_key(info.node, user, slot), info.node, "chip", name, cell_len(name), 1, user, slot)
    text = f"{name} #{info.node}" if options.numbered else name
    height = 1 if not (info.created.requires_grad and gradients) else 2 if options.density == "brief" else 3
    width = max(cell_len(text), _chip_width(info.created.first_value) if height == 3 else 12 if height == 2 else 1)
    return Outline(chip_key(info.node, user, slot), info.node, "chip", text, width, height, user, slot)


def _chip_width(value: Value | None) -> int:
    """Return the width for a number next to ``total``. A tensor has the same digits as in the box of its leaf."""
    listed = value is not None and 1 < value.size <= FEW
    return len("total ") + (LEAF_NUMBER if listed else 10)


def saved_place(info: NodeInfo, slot: int) -> Outline:
    """Return the outline of a tensor that an operation saves for backward."""
    text = f"saved: {shown(info.op.saved[slot])}"
    return Outline(saved_key(info.node, slot), info.node, "saved", text, max(cell_len(text), 20), 2, info.node, slot)


FAILED = "failed"
"""The key of the box of a failed call."""
MESSAGE_WIDTH, MESSAGE_ROWS, BRIEF_MESSAGE = 46, 3, 34
"""The most characters of a row of an error message in a box, the most rows, and the characters in a brief box."""


def failed_place(failed: FailedCall, title: str, node: int, options: Options) -> Outline:
    """Return the outline of the call at which the program failed."""
    if options.density == "min":
        return Outline(FAILED, node, "failed", title, cell_len(title), 1)
    rows = message_rows(failed, options)
    width = max(cell_len(title) + STATUS_ROOM, *map(cell_len, rows))
    return Outline(FAILED, node, "failed", title, width, 1 + len(rows))


def message_rows(failed: FailedCall, options: Options) -> list[str]:
    """Return the error message in rows: in a brief box the beginning in one row."""
    if options.density == "brief":
        return [clipped(failed.quoted, BRIEF_MESSAGE)]
    return wrap(failed.quoted, MESSAGE_WIDTH, max_lines=MESSAGE_ROWS, placeholder=f" {CUT}")


def failed_title(failed: FailedCall, call: ModuleCall | None) -> str:
    """Return the title of the box of a failed call: ``2 Linear``, ``y = matmul``."""
    if call is not None:
        return module_title(call).removeprefix("[+] ")
    return f"{failed.name} = {failed.operation}" if failed.name else failed.operation


def module_key(call: ModuleCall) -> str:
    """Return the key of the box of a collapsed module call."""
    return f"m{call.scope}"


def saved_key(node: int, slot: int) -> str:
    """Return the key of the box of one saved tensor."""
    return f"n{node}.saved{slot}"


BRIEF_NUMBER, BRIEF_TENSOR = 7, 12
"""The most characters of a value in a brief box: of a single number, and of the elements or shape of a tensor."""
BRIEF_LENGTH, BRIEF_LEAF, BRIEF_OP, BRIEF_UNKNOWN = 8, 7, 6, len("not stored")
"""The fewest characters of a gradient: of the norm ``|g| 0.52`` of a tensor, of a leaf's number, of an operation's
number, and of the text for unknown numbers.
"""
BRIEF_GAP = 1
"""The fewest blanks between the value and the gradient."""
BRIEF_NOTE = 10
"""Characters next to the title, for the longest word of a state and the blanks around it."""


LONGEST_SHAPE = 28
"""The most characters of a shape in a brief box."""


def value_room(value: Value | None, options: Options) -> int:
    """Return the most characters of a value in a brief box."""
    if value is None or value.size == 1:
        return BRIEF_NUMBER
    return max(tensor_room(value), elements_room(value) if options.lists_elements else 0)


ELEMENT = "-0.012"
"""An element of the usual length, of two digits."""


def elements_room(value: Value | None) -> int:
    """Return the characters for the elements of a small tensor; 0 for another one."""
    if value is None or not 1 < value.size <= FEW:
        return 0
    return len(_elements_of(value.shape))


def _elements_of(shape: tuple[int, ...]) -> str:
    return elements_text(np.empty(shape), lambda _: ELEMENT)


NARROW = 0.45
"""The width of a bracket, a blank or a point, as a part of the usual room for a character. A digit needs 0.9 of it."""


def _drawn_room(text: str) -> int:
    """Return the characters for which a drawn text of digits and brackets needs room."""
    narrow = sum(text.count(sign) for sign in "[] .")
    return ceil(NARROW * narrow + 2 * NARROW * (len(text) - narrow))


def tensor_room(value: Value | None) -> int:
    """Return the most characters of a tensor in a brief box: its shape has room, however many dimensions it has."""
    return max(BRIEF_TENSOR, min(len(shape_text(value.shape)), LONGEST_SHAPE) if value is not None else 0)


def brief_width(info: NodeInfo, title: str, role: str, options: Options) -> int:
    """Return the width of a brief box: of its title with a state word, or of its widest value next to a gradient."""
    value = info.created.first_value
    text = short(value, value_room(value, options), DIGITS) if value is not None else NO_VALUE
    known = _drawn_room(text) if options.lists_elements else len(text)
    if role == "constant":
        return max(cell_len(title), known)
    label, one = (".grad ", BRIEF_LEAF) if role in ("leaf", "parameter") else ("grad ", BRIEF_OP)
    number = BRIEF_UNKNOWN if value is None else one if value.size == 1 else BRIEF_LENGTH
    if options.lists_elements and value is not None and elements_room(value):
        number = max(number, _drawn_room(_elements_of(value.shape)))
    if options.stacks:
        norm = BRIEF_NORM if value is not None and value.size > 1 and not elements_room(value) else 0
        return max(cell_len(title) + 2, known, norm or number)
    return max(cell_len(title) + BRIEF_NOTE, known + BRIEF_GAP + len(label) + number)


ARROW = len(" → ")
SHORT_NUMBER = len("1.234e-05")
"""Characters of a single number next to its number in a what-if."""


def width_for_two(place: Outline, value: Value | None, options: Options) -> int:
    """Return the width in which a box has room for each number twice, as recorded and as in a what-if."""
    if place.height == 1 or options.density == "min":
        return place.width
    is_list = value is not None and 1 < value.size <= FEW and place.group is None
    if options.density == "brief":
        room, label = value_room(value, options), ".grad " if place.role in ("leaf", "parameter", "module") else "grad "
        is_pair = is_list or (place.group is None and (value is None or value.size == 1))
        left = 2 * room + ARROW if is_pair else room + len("gives ") * (place.group is not None)
        number = BRIEF_LEAF if value is None or value.size == 1 else BRIEF_LENGTH
        right = 0 if place.role == "constant" else BRIEF_GAP + len(label) + 2 * number + ARROW
        return max(place.width, left + right)
    label_room = len("incoming ") if place.incoming else len("value ")
    number = place.width - label_room if is_list else SHORT_NUMBER
    return max(place.width, label_room + 2 * number + ARROW)


BRIEF_NORM = len("|g| 0.0012")
"""Characters of a norm of a usual length."""


def brief_stacked_width(title: str, result: Value | None, *, makes: bool) -> int:
    """Return the width of a collapsed module's brief box whose gradient is below its result."""
    return max(
        cell_len(title) + 2, max(len("gives ") + tensor_room(result), len(".grad ") + BRIEF_NORM) if makes else 0
    )


def brief_module_width(title: str, result: Value | None, *, makes: bool) -> int:
    """Return the width of a collapsed module's brief box. `makes` is false for an optimizer, which makes no tensor."""
    return max(
        cell_len(title) + BRIEF_NOTE,
        len("gives ") + tensor_room(result) + BRIEF_GAP + len(".grad ") + BRIEF_LENGTH if makes else 0,
    )
