"""What is said of a branch: what was run again, where it stopped, what is another number in it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from rich.cells import set_cell_size

from gviz.consequences.branching import PLACES
from gviz.errors import GvizError
from gviz.explain.names import label
from gviz.plain_text import clipped, file_line, shown
from gviz.trace.state import Iteration
from gviz.trace.timeline import Timeline
from gviz.value_text import short
from gviz.words.evaluator import Evaluator

if TYPE_CHECKING:
    from gviz.whatif.beside import Beside
    from gviz.whatif.branch import Branch

_NAME, _NUMBER = 20, 24


def what_runs_again(timeline: Timeline, iteration: Iteration) -> Iterator[str]:
    """What runs again: which iteration and what its passes add to, where there is more than one; what does not."""
    if len(timeline.iterations) > 1:
        from gviz.compare.side import Side

        side = Side(timeline, iteration.index + 1)
        kept = [f"{label(timeline, node)} {short(grad, _NUMBER)}" for node, (grad, _) in side.kept.items() if grad]
        held = f"; .grad before it: {', '.join(kept[:PLACES])}{' …' * (len(kept) > PLACES)}" if kept else ""
        yield f"iteration {iteration.index + 1} of {len(timeline.iterations)} is run again{held}."
    if _takes_numbers_out(timeline, iteration):
        yield "numbers that the program took out of tensors, as .item(), an index, `if x:`, keep their recorded values."


def _takes_numbers_out(timeline: Timeline, iteration: Iteration) -> bool:
    """Whether a file of the program that made the iteration's nodes says so anywhere."""
    from gviz.whatif.readings import reads_tensors

    infos = [timeline.info(node) for node in timeline.nodes.of(iteration)]
    paths = {frame.path for info in infos for frame in info.frames}
    names = {info.name.rpartition(".")[2] for info in infos if info.name}
    return any(reads_tensors(timeline.source(path) or "", names) for path in paths)


def stops(timeline: Timeline, branch: Branch) -> Iterator[str]:
    """Where the program would have gone another way, and where the branch could not go on: a sentence for each."""
    yield from _decisions(timeline, branch)
    places: dict[tuple[str, bool], list[int]] = {}
    for stopped in branch.stopped:
        places.setdefault((stopped.why, stopped.of_gradient), []).append(stopped.node)
    for (why, of_gradient), nodes in places.items():
        what = "gradients beyond it are not known" if of_gradient else "what follows from it is not known"
        names = ", ".join(label(timeline, node) for node in nodes[:PLACES])
        more = f" and {len(nodes) - PLACES} more" if len(nodes) > PLACES else ""
        yield f"stopped at {names}{more}: {shown(why)}; {what}."


def _decisions(timeline: Timeline, branch: Branch) -> Iterator[str]:
    for decision in branch.decisions[:PLACES]:
        frames = timeline.info(decision.node).frames
        place = f" ({file_line(frames[0].path, frames[0].line)})" if frames else ""
        now = f"{label(timeline, decision.node)}{place} is {decision.now} instead of {decision.was}"
        yield f"{now}: a program that decides by it goes another way, and here the recorded way is kept."
    if len(branch.decisions) > PLACES:
        yield f"and so {len(branch.decisions) - PLACES} more."


def in_branch(evaluator: Evaluator, beside: Beside, text: str, n: int) -> str:
    """What an expression about the recording is in its branch at moment `n`; GvizError if it cannot be computed."""
    try:
        return evaluator.evaluated(text, n, partial(beside.states, n=n))
    except GvizError:
        if not beside.branch.stopped:
            raise
        return "not known"


def differences(timeline: Timeline, iteration: Iteration, branch: Branch) -> Iterator[str]:
    """Everything that is another number in the branch, old and new, a row for each node."""
    from gviz.compare.comparison import compare
    from gviz.compare.side import Side
    from gviz.compare.tolerance import SAME_NUMBERS

    before, after = Side(timeline, iteration.index + 1), Side(Timeline(branch.log), 1)
    pairs = [(node, branch.numbers.get(node, 0)) for node in before.infos]
    found = compare(before, after, SAME_NUMBERS, tuple([(x, y) for x, y in pairs if y in after.infos]))
    rows: dict[int, list[str]] = {}
    for one in found.without_gradients(branch.unknown).differences:
        if one.kind in ("value", "gradient"):
            old, new = [short(value, _NUMBER) if value is not None else "none" for value in one.values]
            rows.setdefault(one.pair[0], []).append(f"{one.kind} {old} -> {new}")
    if not rows:
        where = "nothing that could be run again" if branch.stopped else "nothing"
        yield f"{where} depends on it: no number changes."
    for node, changed in rows.items():
        yield f"{set_cell_size(clipped(label(timeline, node), _NAME), _NAME)} {', '.join(changed)}"
