"""A momentum, average or sum that is made anew in each step, so that it has only the newest part.

Idea. ``v.mul_(beta).add_(g)`` carries `v` over from step to step. If `v` is a new tensor of zeros at each of these
lines, every time, nothing is carried: the line that makes it runs in each step, and not once.

Example. ``state["velocity"] = torch.zeros_like(p)`` in the `step` of an optimizer, without ``if "velocity" not in
state``: an optimizer with momentum 0.9 takes steps of a tenth of the gradient.

Limits. The first step starts from zeros in any program, so it takes three iterations, and all decays at the line. A
membrane potential or a hidden state that starts at zeros in each sequence is decayed at the same line with other
numbers, later in the sequence. Zeros to which nothing is added are left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.program_text import line_text
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.values.number_text import number, times_text

_FEWEST = 3
_ADDING = ("add", "sub", "addcmul", "addcdiv", "lerp")


def states_reset_each_step(survey: Survey) -> Iterator[Finding | None]:
    """Yield the states that are zero at every decay: each line once."""
    by_line: defaultdict[int, list[tuple[NodeRecord, NodeRecord | None]]] = defaultdict(list)
    for record in survey.ops("mul", "lerp"):
        yield None
        by_line[record.created.stack].append((record, _zeros_decayed(survey, record)))
    reported = set[object]()
    for decays in by_line.values():
        yield None
        of_zeros = [(decay, zeros) for decay, zeros in decays if zeros is not None]
        if len(of_zeros) < max(len(decays), _FEWEST) or len({zeros.node for _, zeros in of_zeros}) < len(decays):
            continue
        in_iterations = {survey.timeline.iteration_at(decay.seq).index for decay, _ in of_zeros}
        usual = sorted(
            of_zeros, key=lambda pair: _factor(survey, *pair) in (0, 1)
        )  # momentum 0 may be one of many runs
        decay, zeros = next((pair for pair in usual if _is_added_to(survey, *pair)), (None, None))
        if decay is None or zeros is None or len(in_iterations) < _FEWEST or survey.at(decay) in reported:
            continue
        reported.add(survey.at(decay))
        yield _finding(survey, decay, zeros, len(decays))


def _zeros_decayed(survey: Survey, decay: NodeRecord) -> NodeRecord | None:
    """Return the new tensor of zeros that is multiplied by one number, or of which a part is replaced; else None."""
    sources = list(survey.sources(decay))
    whole = [one for one in sources if one.shape == decay.shape]
    state = whole[0] if whole else None
    stats = state.stats if state is not None else None
    if state is None or state.value is None or stats is None or stats.zero < state.value.size:
        return None
    if decay.op == "mul" and _factor(survey, decay, state) is None:
        return None  # a mask, a gate: a product with numbers that differ
    is_new = not [one for one in survey.timeline.nodes.users(state.node, decay.seq) if one != decay.node]
    is_made = state.created.kind == "constant" or state.op.startswith(("zeros", "new_zeros"))
    return state if is_new and is_made else None


def _factor(survey: Survey, decay: NodeRecord, zeros: NodeRecord) -> float | None:
    """Return the number that zeros are multiplied by, if it is known."""
    others = (one.number for one in survey.sources(decay) if one is not zeros and decay.op == "mul")
    return next((one for one in others if one is not None), None)


def _is_added_to(survey: Survey, decay: NodeRecord, zeros: NodeRecord) -> bool:
    """Return whether something is added to the state after its decay, or by it."""
    users = {*survey.timeline.nodes.users(zeros.node), *survey.timeline.nodes.users(decay.node)}
    after = (survey.nodes[node] for node in users if node in survey.nodes)
    return decay.op == "lerp" or any(one.op in _ADDING and one.seq > decay.seq for one in after)


def _finding(survey: Survey, decay: NodeRecord, zeros: NodeRecord, times: int) -> Finding:
    timeline, at = survey.timeline, survey.at(zeros)
    text = titled("{} is made anew in each step, and carries nothing over", label(timeline, zeros.node))
    factor = _factor(survey, decay, zeros)
    what = f"multiplies zeros by {number(factor)}" if factor is not None else "starts from zeros"
    fact = f"{label_at(timeline, decay.node)} {what}, {times_text(times)}: nothing of the step before is in them"
    part = Finding("zeros", fact, decay.seq, decay.node, at=survey.at(decay))
    row = line_text(timeline, at).strip()
    where = "in the first step only, as with: if not state" if "state[" in row else "once, before the loop"
    return Finding("state-made-anew", text, decay.seq, zeros.node, (part,), f"make it {where}", at)
