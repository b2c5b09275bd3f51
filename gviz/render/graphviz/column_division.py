"""The column of each box, where a graph that is a sequence of boxes or of parts is folded, as on a slide.

In a chain, each box may end a column. Another graph is divided only where one tensor leads from one part to the next,
as between the blocks of a transformer (`parts`):

    i -- tok --.              blocks.0           ln
    p -- pos -- x = add  =>   blocks.1    =>     head
                              mask               loss
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gviz.render.boxes.edge_content import Edge
from gviz.render.scene import Scene


@dataclass(frozen=True, slots=True)
class Division:
    """The column of each box. `tops` are the topmost boxes with inputs of the columns of a chain, from left to right.

    Both are empty for a scene that is not folded; `tops` also for what is no chain.
    """

    column: Mapping[str, int]
    tops: Sequence[str] = ()

    @property
    def count(self) -> int:
        return len({*self.column.values()})


def division(scene: Scene) -> Division:
    """Return the columns of a scene, numbered from 0 on.

    The columns of a chain have equal numbers of levels with inputs, so that none is empty; there may be fewer columns
    than requested. A box without inputs is in the column of its first user.
    """
    if scene.columns < 2:
        return Division({})
    level, lines = box_levels(scene), data_lines(scene)
    if not _is_chain(level, lines):
        balanced = _balanced(parts(scene), scene.columns, level, lines)
        return Division({key: at for at, part in enumerate(balanced) for key in part})
    height = max(-(-max(level.values(), default=0) // scene.columns), 1)
    users: dict[str, str] = {}
    for edge in sorted(lines, key=lambda edge: level[edge.target]):
        users.setdefault(edge.source, edge.target)
    inner = {edge.target for edge in lines}
    above = {key: level[key if key in inner else users.get(key, key)] - 1 for key in level}
    column = {key: max(levels, 0) // height for key, levels in above.items()}
    tops: dict[int, str] = {}
    for key in sorted(inner, key=lambda key: level[key]):
        tops.setdefault(column[key], key)
    return Division(column, [tops[number] for number in sorted(tops)])


def parts(scene: Scene) -> list[list[str]]:
    """Return the boxes of a graph in parts, from first to last, with one tensor that leads from each to the next.

    Boxes without inputs, and what is made only of constants, may lead to any part. They are in that of the first user.
    """
    lines = data_lines(scene)
    bits = {box.key: 1 << at for at, box in enumerate(scene.boxes)}
    level = box_levels(scene)
    ordered = sorted(bits, key=lambda key: level[key])
    sources: dict[str, list[str]] = {key: [] for key in bits}
    users: dict[str, list[str]] = {key: [] for key in bits}
    for edge in lines:
        sources[edge.target].append(edge.source)
        users[edge.source].append(edge.target)
    free = {box.key for box in scene.boxes if not sources[box.key]}
    constant = {box.key for box in scene.boxes if box.role == "constant"}
    untracked = {box.key for box in scene.boxes if box.role == "op" and "untracked" in box.states}
    for key in ordered:
        if key in untracked and constant.issuperset(sources[key]):
            constant.add(key)
    free |= constant
    before: dict[str, int] = {}
    for key in ordered:
        before[key] = bits[key]
        for source in sources[key]:
            before[key] |= before.get(source, 0)
    ends = [
        key
        for key in ordered
        if key not in free and len({*users[key]}) == 1 and _leads_alone(key, before, bits, users, free)
    ]
    found: list[list[str]] = []
    taken = 0
    for end in sorted(ends, key=lambda key: before[key].bit_count()):
        if taken & ~before[end]:  # it is not behind the end of the last part
            continue
        found.append([key for key in bits if bits[key] & before[end] & ~taken])
        taken |= before[end]
    return [*found, [key for key in bits if not bits[key] & taken]]


def _leads_alone(
    end: str, before: dict[str, int], bits: dict[str, int], users: dict[str, list[str]], free: set[str]
) -> bool:
    """Return whether nothing that a box is made of leads elsewhere, except what is `free`."""
    inside = [key for key in bits if bits[key] & before[end] and key != end and key not in free]
    return all(bits[user] & before[end] for key in inside for user in users[key])


def _balanced(
    divided: Sequence[Sequence[str]], most: int, level: Mapping[str, int], lines: Sequence[Edge]
) -> list[list[str]]:
    """Return the parts joined to at most this number of columns that are as short as possible."""
    ordered = sorted(lines, key=lambda edge: level[edge.target])

    def length(column: Sequence[str]) -> int:
        depth = dict.fromkeys(column, 1)
        for edge in ordered:
            if edge.source in depth and edge.target in depth:
                depth[edge.target] = max(depth[edge.target], depth[edge.source] + 1)
        return max(depth.values(), default=0)

    def joined(longest: int) -> list[list[str]]:
        found: list[list[str]] = []
        for part in divided:
            if found and length([*found[-1], *part]) <= longest:
                found[-1] += part
            else:
                found.append([*part])
        return found

    forms = (joined(longest) for longest in range(1, len(level) + 2))
    return next((form for form in forms if len(form) <= most), [[*level]])


def is_chain(scene: Scene) -> bool:
    """Return whether each box leads to one box on the next level. Boxes without inputs may lead anywhere."""
    return _is_chain(box_levels(scene), data_lines(scene))


def _is_chain(level: Mapping[str, int], lines: Sequence[Edge]) -> bool:
    inner = {edge.target for edge in lines}
    steps = {(edge.source, edge.target) for edge in lines if edge.source in inner}
    return len(steps) == len({level[source] for source, _ in steps})  # a line over a level is a second one from a level


# ----------------------------------------------------------------------------------------------------------------------
# The levels of a graph: how many lines lead to each box.


def data_lines(scene: Scene) -> list[Edge]:
    """Return the lines along which data flows from box to box."""
    return [edge for edge in scene.edges if edge.kind != "gradient" and edge.slot >= 0]


def box_levels(scene: Scene) -> dict[str, int]:
    """Return the level of each box: the most lines that lead to it."""
    level = dict.fromkeys((box.key for box in scene.boxes), 0)
    lines = data_lines(scene)
    for _ in level:
        longer = {edge.target: level[edge.source] + 1 for edge in lines if level[edge.target] <= level[edge.source]}
        if not longer or max(longer.values()) > len(level):
            break
        level |= longer
    inner = {edge.target for edge in lines}
    for key in level.keys() - inner:
        level[key] = max(min((level[edge.target] for edge in lines if edge.source == key), default=1) - 1, 0)
    return level
