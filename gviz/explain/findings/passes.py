"""No ``.grad`` because of what passes ran and when: none yet, cleared, still on its way, asked for others only."""

from __future__ import annotations

from gviz.events import BackwardStarted, GradSet, changing
from gviz.explain.finding import Finding
from gviz.explain.kind import Kind, Question
from gviz.explain.names import innermost, label, label_at, made_at
from gviz.explain.pass_starts import pass_started, start_of_pass

_CHANGES = changing("grad")


def passes_before(asked: Question) -> list[tuple[int, BackwardStarted]]:
    """The backward passes that had begun by the moment of a question."""
    timeline = asked.timeline
    phases = (phase for phase in timeline.phases if phase.kind == "backward" and phase.start <= asked.moment.n)
    starts = [phase.start for phase in phases]
    return [(start, event) for start in starts if isinstance(event := timeline.event(start), BackwardStarted)]


def cleared(asked: Question) -> Finding | None:
    """It had one that was set to None, and no pass for all leaves has started since."""
    timeline = asked.timeline
    event, last = None, 0
    for seq in reversed([seq for seq in timeline.events_of(asked.node) if seq <= asked.moment.n]):
        change = timeline.event(seq)
        if isinstance(change, GradSet) and change.how == "none":
            event, last = change, seq  # the first of several: there was nothing for the others to clear
        elif isinstance(change, _CHANGES):
            break
    if event is None:
        return None
    if any(start > last and not started.inputs for start, started in passes_before(asked)):
        return None
    frames = timeline.stack(event.stack)
    text = f"the .grad of {label(timeline, asked.node)} was set to None{made_at(frames) or f' by event {last}'}"
    fix = "read it before zero_grad() or .grad = None"
    return Finding("cleared", text, last, asked.node, fix=fix, at=frames[0] if frames else innermost(asked.info))


def no_pass(asked: Question) -> Finding | None:
    """Nobody has called backward."""
    if any(start > asked.info.born for start, _ in passes_before(asked)):
        return None
    text = f"no backward pass has run since {label_at(asked.timeline, asked.node)} was made"
    fix = "call backward() on a result of it"
    return Finding("no-pass", text, asked.info.born, asked.node, fix=fix, at=innermost(asked.info))


def on_its_way(asked: Question) -> Finding | None:
    """The latest pass covers it, and has not come to it, or brought nothing."""
    passes, state, timeline = passes_before(asked), asked.state, asked.timeline
    if state is None or not state.pass_nr or (passes and passes[-1][1].pass_nr > state.pass_nr):
        return None
    name = label(timeline, asked.node)
    if asked.moment.pass_nr == state.pass_nr:
        cut_off = "; the recording ends within it" if asked.moment.n == len(timeline) and not timeline.growing else ""
        return Finding("pending", f"the backward pass has not come to {name} yet{cut_off}", 0, asked.node)
    start, event = start_of_pass(timeline, state.pass_nr), pass_started(timeline, state.pass_nr)
    if event is not None and event.inputs:
        at = made_at(timeline.stack(event.stack))
        text = f"the pass{at} was asked for other gradients only (inputs=, or autograd.grad): it added to no .grad here"
        return Finding("not-asked-for", text, start, asked.node)
    text = f"backward pass {state.pass_nr} reached {name} but no gradient arrived"
    return Finding("nothing-arrived", text, start, asked.node)


CLEARED = Kind("cleared", "fact", "a .grad that the program has set to None", ("missing",), cleared)
NO_PASS = Kind("no-pass", "fact", "no backward pass has run since the node was made", ("missing",), no_pass)
PENDING = Kind("pending", "fact", "the running pass has not come to the node yet", ("missing",), on_its_way)
NOT_ASKED_FOR = Kind("not-asked-for", "fact", "the pass was asked for the gradients of others only")
NOTHING_ARRIVED = Kind("nothing-arrived", "fact", "a pass reached the node and brought no gradient")
