"""What a box of a picture says at one moment: its states, its rows of text and its tooltip.

There are five kinds of boxes: the node itself, a collapsed module, a chip (the same tensor again, near to a later use),
a tensor that an operation saved for backward, and a call that failed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from gviz.explain.display_names import op_title, title
from gviz.explain.failed_call import failed_call
from gviz.explain.tracking import as_at
from gviz.render.boxes.box_row import Row
from gviz.render.boxes.box_size import Outline, Role, exponent_of, message_rows, module_key, module_title
from gviz.render.boxes.box_text import brief_rows, chip_rows, node_rows, rows_with_comparison, saved_rows
from gviz.render.boxes.collapsed_box import group_rows, group_states, group_status, inner_hooks, operation_list
from gviz.render.boxes.edge_content import brings, hook_words
from gviz.render.boxes.folding import Group
from gviz.render.boxes.graph_structure import Structure
from gviz.render.boxes.node_states import State, cut_text, remark, state_word, states_of, status
from gviz.render.boxes.shown_moment import Now
from gviz.trace.graph_state import NodeInfo, NodeState
from gviz.values.plain_text import file_line
from gviz.values.value_text import full


@dataclass(frozen=True, slots=True)
class Box:
    """One box: its node or nodes, its states and its text.

    * `status`: the most important state, as a word.
    * `width`, `height`: its room at any moment, in characters and rows.
    * `op`: the operation, if it is one.
    * `enclosing_modules`: keys and titles of the expanded modules around it, the outermost first.
    * `longest`: in a series of moments, the length of its longest row.
    * `is_data`: it represents operations that prepare data.
    * `is_narrow`: it keeps no room for the word of its state.
    * `is_constant`: it is one use of a constant, and looks like the constant.
    """

    key: str
    node: int
    role: Role
    states: tuple[State, ...]
    title: str
    status: str
    rows: tuple[Row, ...]
    tooltip: str
    width: int
    height: int
    op: str = ""
    enclosing_modules: tuple[tuple[str, str], ...] = ()
    longest: int = 0
    is_data: bool = field(default=False, repr=False)  # without it, the id of a picture stays: a hash of the scene
    is_narrow: bool = field(default=False, repr=False)
    is_constant: bool = field(default=False, repr=False)


def box(place: Outline, shape: Structure, now: Now, *, tooltips: bool, bare: bool) -> Box:
    """Return a box at the moment; without rows if it is `bare`."""
    drawn = _box(place, shape, now, tooltips=tooltips, bare=bare)
    return replace(drawn, is_narrow=True) if shape.options.stacks else drawn


def _box(place: Outline, shape: Structure, now: Now, *, tooltips: bool, bare: bool) -> Box:
    if place.role == "chip":
        return _chip(place, now)
    if place.role == "saved":
        return _saved(place, now)
    if place.role == "failed":
        return _failed(place, shape, now)
    if place.group is not None:
        return _module(place, place.group, now)
    return _of_node(place, shape, now, tooltips=tooltips, bare=bare)


def _chip(place: Outline, now: Now) -> Box:
    states: tuple[State, ...] = () if now.states[place.node] is not None else ("pending",)
    if brings(now, place.node, 0, [(place.user, place.slot)]):
        states = ("receiving",)
    rows = rows_with_comparison(lambda place, now: chip_rows(place, now.states[place.node], now), place, now)
    chip = _boxed(place, states, "", rows, f"{place.title}: the same tensor as box #{place.node}")
    is_constant = now.options.marks and now.timeline.info(place.node).created.kind == "constant"
    return replace(chip, is_constant=True) if is_constant else chip


def _saved(place: Outline, now: Now) -> Box:
    state, rows = now.states[place.node], saved_rows(place, now.timeline.info(place.node), now)
    if state is not None and state.saved == "freed":
        return _boxed(place, ("freed",), "freed", rows, "")
    return _boxed(place, () if state is not None else ("pending",), "", rows, "")


def _failed(place: Outline, shape: Structure, now: Now) -> Box:
    failed = failed_call(now.timeline, now.timeline.iterations[shape.iteration])
    if failed is None or failed.seq > now.moment.n:
        return _boxed(place, ("pending",), "", (), "")
    rows = tuple(Row(text, "bad") for text in message_rows(failed, now.options)) if place.height > 1 else ()
    states: tuple[State, ...] = ("current", "error") if failed.seq == now.moment.n else ("error",)
    return _boxed(place, states, state_word(states), rows, failed.quoted)


def _module(place: Outline, group: Group, now: Now) -> Box:
    states = group_states(group, now)
    rows = rows_with_comparison(lambda place, now: group_rows(place, group, now), place, now)
    hooks = (hook_words(effect, now) for effect in inner_hooks(group, now)) if now.options.marks else ()
    held = group.call.path if group.preparation is None else operation_list(group, now.timeline)
    box = _boxed(place, states, group_status(group, states, now), rows, "\n".join([held, *hooks]))
    return replace(box, is_data=True) if group.preparation is not None else box


def _of_node(place: Outline, shape: Structure, now: Now, *, tooltips: bool, bare: bool) -> Box:
    info, state = now.timeline.info(place.node), now.states[place.node]
    states = states_of(info, state, now)
    if bare:
        return _boxed(place, states, status(info, states, now), (), "")
    note = remark(now.timeline, info, now.timeline.iterations[shape.iteration])
    if note and "cut" in states:
        note = cut_text(info)
    rows = rows_with_comparison(lambda place, now: _rows(place, info, now, note), place, now)
    tip = tooltip(as_at(info, state), state) if tooltips else ""
    name = f"{op_title(info)} {exponent_of(info)}".rstrip() if info.created.kind == "op" else ""
    return _boxed(place, states, status(info, states, now), rows, tip, name)


def _rows(place: Outline, info: NodeInfo, now: Now, note: str) -> tuple[Row, ...]:
    state = now.states[place.node]
    brief = now.options.density == "brief" or now.options.adds_gradients
    return brief_rows(place, info, state, now) if brief else node_rows(place, info, state, now, note)


def _boxed(place: Outline, states: tuple[State, ...], word: str, rows: tuple[Row, ...], tip: str, op: str = "") -> Box:
    around = _around(place)
    return Box(
        place.key, place.node, place.role, states, place.title, word, rows, tip, place.width, place.height, op, around
    )


def _around(place: Outline) -> tuple[tuple[str, str], ...]:
    return tuple(
        (module_key(call), module_title(call, FRAME_NAME).removeprefix("[+] ")) for call in place.enclosing_calls
    )


FRAME_NAME = 44
"""The most characters of a module's path in the title of its frame, which is wider than the boxes in it."""


def tooltip(info: NodeInfo, state: NodeState | None) -> str:
    """Return the exact values of a node, one per line."""
    lines = [title(info)]
    for number, output in enumerate(state.outputs if state is not None else ()):
        which = f" {number}" if len(info.created.outputs) > 1 else ""
        version = f" v{output.version}" if output.written_by and output.version else ""
        lines.append(f"value{which}{version}: {full(output.value)}")
        if output.incoming is not None:
            lines.append(f"incoming gradient{which}: {full(output.incoming)}")
        if output.grad is not None:
            lines.append(f".grad{which}: {full(output.grad)}")
    if info.frames:
        lines.append(place_text(info))
    return "\n".join(lines)


def place_text(info: NodeInfo) -> str:
    """Return where the program made a node: ``demo.py:4``."""
    frame = info.frames[0]
    return file_line(frame.path, frame.line)
