"""The gradients of equal parts that are drawn as one box, and their bars.

Equal layers have parameters of their own: the bar of a layer is the norm of its ``.grad``. The steps of a loop share
their parameters, or have none: the bar of a step is the norm of the gradient of its result, which the next step uses
(``h`` in ``h = cell(x[t], h)``). So the bars show how a gradient vanishes through time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import isfinite, log, nan

from gviz.render.boxes.folding import Group
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number

BARS, NO_BAR, BAD_BAR = "▁▂▃▄▅▆▇█", "·", "!"
"""The bars from low to high, and the signs of a part without a gradient, and with nan or inf in it."""
EACH = "each"
"""The label of the bars of parts whose results have no name, and of layers."""
MOST_BARS, BRIEF_BARS = 24, 12
"""The most bars of a box, and of a brief box. Of more parts, every second or third has a bar."""
ORDERS = 30.0
"""The ratio of norms from which a linear scale is too coarse for the bars."""

Use = tuple[int, int, int]
"""A parameter, its user, and the number of the input."""


def bars(norms: Sequence[float | None], most_bars: int = MOST_BARS) -> str:
    """Return the norms as bars, with the least and the greatest: ``▁▂▄█  0.01 .. 0.8``; empty for fewer than two."""
    known = [norm for norm in norms if norm is not None and isfinite(norm)]
    if sum(norm is not None for norm in norms) < 2:
        return ""
    least, most = min(known, default=nan), max(known, default=nan)
    ends = f"{number(least, 3)} .. {number(most, 3)}"
    is_log = is_logarithmic(ends)
    drawn = "".join(_bar(norm, least, most, is_log=is_log) for norm in norms[:: -(-len(norms) // most_bars)])
    return f"{drawn}  {ends}"


def starts_bars(text: str) -> bool:
    """Return whether a text is that of bars."""
    return " .. " in text and text[:1] in BARS + NO_BAR + BAD_BAR


def is_logarithmic(text: str) -> bool:
    """Return whether bars that end with their least and greatest norm have a logarithmic scale.

    It is used where norms differ by orders of magnitude.
    """
    words = text.split()
    if words[-2:-1] != [".."]:
        return False
    least, most = float(words[-3]), float(words[-1])
    return most > ORDERS * least > 0


def bars_width(count: int, most_bars: int = MOST_BARS) -> int:
    """Return the characters of the bars of this many parts, and of a usual label."""
    return len("|∂L/∂h| ") + -(-count // -(-count // most_bars)) + len("  0.00021 .. 0.00021")


def _bar(norm: float | None, least: float, most: float, *, is_log: bool) -> str:
    """Return the bar of a norm."""
    if norm is None:
        return NO_BAR
    if not isfinite(norm):
        return BAD_BAR
    if norm <= 0 or most <= 0:
        return BARS[0]
    part = log(norm / least) / log(most / least) if is_log else norm / most
    return BARS[min(round(part * (len(BARS) - 1)), len(BARS) - 1)]


def parameter_uses(timeline: Timeline, group: Group) -> tuple[Use, ...]:
    """Return where the nodes of a collapsed call use its parameters."""
    parameters = frozenset(group.parameters)
    inputs = (
        (source, user, slot)
        for user in group.inner
        for slot, (source, _) in enumerate(timeline.info(user).created.inputs)
    )
    return tuple([use for use in inputs if use[0] in parameters])


def part_parameters(timeline: Timeline, group: Group) -> tuple[tuple[int, ...], ...]:
    """Return the parameters that only one part uses, for each part; empty if the parts share all, or have none."""
    if group.repeat is None or not group.parameters:
        return ()
    own = {node: at for at, nodes in enumerate(group.repeat.members) for node in nodes}
    parameters: list[dict[int, None]] = [{} for _ in group.repeat.members]
    for source, user, _ in timeline.once(parameter_uses, group):
        parameters[own[user]][source] = None
    counts = Counter(node for nodes in parameters for node in nodes)
    if 1 not in counts.values():
        return ()
    return tuple(tuple(node for node in nodes if counts[node] == 1) for nodes in parameters)


def step_results(timeline: Timeline, group: Group) -> tuple[tuple[int, int], ...]:
    """Return the result of each part, as node and output number; empty if autograd does not track it.

    It is the largest tensor that the next part uses. If there are several (``h`` and ``c`` of an LSTM), it is the one
    that the program uses after the last part. If the parts are independent, it is the last tensor of each.
    """
    if group.repeat is None:
        return ()
    members = group.repeat.members
    part_of = {node: at for at, part in enumerate(members) for node in part}
    first = [*filter(_is_tracked, map(timeline.info, members[0]))]
    if not first:
        return ()
    carried = {
        (source, output_nr)
        for part in members[1:]
        for user in part
        for source, output_nr in timeline.info(user).created.inputs
        if part_of.get(source) == 0
    }
    candidates = [(info, nr) for info in first for nr in range(len(info.created.outputs)) if (info.node, nr) in carried]
    last = [*map(timeline.info, members[-1])]

    def importance(one: tuple[NodeInfo, int]) -> tuple[int, bool, int]:
        return _size(*one), _is_used_outside(timeline, group, _like(one[0], first, last)), one[0].node

    info, output_nr = max(candidates, key=importance, default=(first[-1], 0))
    results = [_like(info, first, [*map(timeline.info, part)]) for part in members]
    return tuple((node, output_nr) for node in results if node)


def _is_used_outside(timeline: Timeline, group: Group, node: int) -> bool:
    return bool(node) and any(int(user) not in group.inner for user in timeline.nodes.users(node))


def _is_tracked(info: NodeInfo) -> bool:
    return info.created.kind == "op" and info.created.requires_grad and not info.created.untracked


def _size(info: NodeInfo, output_nr: int) -> int:
    value = info.created.outputs[output_nr].value
    return value.size if value is not None else 0


def _like(info: NodeInfo, first: Sequence[NodeInfo], part: Sequence[NodeInfo]) -> int:
    """Return the node of a part that corresponds to a node of the first part; 0 if there is none.

    Nodes are counted from the end: the first part may lack some, as its data requires no gradient.
    """
    same = [one.node for one in first if one.op.name == info.op.name]
    others = [one.node for one in part if _is_tracked(one) and one.op.name == info.op.name]
    back = len(same) - same.index(info.node)
    return others[-back] if back <= len(others) else 0
