"""The computation of a value, and later writes to its memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gviz.events import BackwardStarted, DataSet, StorageWritten
from gviz.explain.display_names import label, label_at
from gviz.explain.finding import Finding
from gviz.explain.node_question import Question
from gviz.explain.parameter_updates import is_unseen, step_of, step_words
from gviz.explain.pass_contributions import contributions
from gviz.explain.source_frames import at_text, innermost
from gviz.explain.tracking import why_cut
from gviz.explain.value_computation import computation, dropout_effect
from gviz.values.value_text import grad, short


def unborn(question: Question) -> Finding:
    """Return that the node does not exist yet."""
    text = f"{label(question.timeline, question.node)} is made later"
    return Finding("unborn", text, question.info.born, question.node, at=innermost(question.info))


def computed_value(question: Question) -> Finding:
    """Return the formula with its numbers, and the last write in place."""
    timeline, info, output = question.timeline, question.info, question.output
    first_value = info.created.outputs[question.output_nr].value
    how = (
        replace(computation(timeline, question.node), results=(("", first_value),)).text
        or f"{info.created.kind} {short(first_value)}"
    )
    text, at = f"{label_at(timeline, question.node)}: {how}", innermost(info)
    further = (*_dropped(question), *_cut(question), *_gradient(question), *_no_pass_yet(question))
    if not output.written_by or _is_own_write(question):
        return Finding("computed", text, info.born, question.node, further, at=at)
    part = _written(question, output.written_by)
    return Finding("written", text, info.born, question.node, (part, *further), at=at)


def _is_own_write(question: Question) -> bool:
    """Return whether the last write to its memory is that of the operation in place that made it."""
    timeline, info, output = question.timeline, question.info, question.output
    made = info.created.outputs[question.output_nr]
    sources = (timeline.info(source).created.outputs[nr] for source, nr in info.created.inputs if source)
    if info.created.kind != "op" or all(source.storage != made.storage for source in sources):
        return False
    seqs = (seq for seq in timeline.events_of(question.node) if seq > info.born)
    first = next((seq for seq in seqs if isinstance(timeline.event(seq), StorageWritten)), 0)
    return output.value_seq == first and output.value == made.value


def _dropped(question: Question) -> Iterator[Finding]:
    """Yield the effect of a dropout on it."""
    if did := dropout_effect(question.timeline, question.node):
        yield Finding("dropped", did, question.info.born, question.node)


def _cut(question: Question) -> Iterator[Finding]:
    """Yield the fact that no gradient flows back through an operation that could have been tracked."""
    created = question.info.created
    if created.untracked and created.untracked != "inputs":
        text = f"no gradient goes back through it: {why_cut(question.info)}"
        yield Finding("cut", text, question.info.born, question.node)


def _written(question: Question, writer: int) -> Finding:
    """Return the last write in place: by an operation, or by an optimizer."""
    timeline, output = question.timeline, question.output
    change = timeline.event(output.value_seq)
    how = "changed its data" if isinstance(change, DataSet) else "wrote to its memory"
    now = f"{how}: {short(output.value)}"
    if not is_unseen(timeline, question.node, writer):
        wrote, own = timeline.info(writer), ""
        if timeline.contexts.step_of(wrote):
            own = f", in a step of {step_words(timeline, question.node, output.value_seq)},"
        text = f"then {label_at(timeline, writer)}{own} {now}"
        return Finding("write", text, output.value_seq, writer, at=innermost(wrote))
    step = step_of(timeline, writer, output.value_seq)
    place = step if step is not None else change if isinstance(change, DataSet) else None
    frames = timeline.stack(place.stack) if place is not None else ()
    stepped = step_words(timeline, writer, output.value_seq)
    by = f"{f'a step of {stepped}' if stepped else 'the program'}{at_text(frames)}"
    at = frames[0] if frames else None
    return Finding("write", f"then {by} {now}", output.value_seq, question.node, at=at)


def _gradient(question: Question) -> Iterator[Finding]:
    """Yield the gradient that the latest pass brought to a result, which does not keep it."""
    output = question.output
    if question.info.created.kind == "op" and output.incoming is not None and output.parts:
        text = f"its gradient was {grad(output.incoming)}; .grad keeps it only after retain_grad()"
        parts = contributions(question.timeline, output.parts)
        yield Finding("incoming", text, output.parts[-1].seq, question.node, parts)


def _no_pass_yet(question: Question) -> Iterator[Finding]:
    """Yield that a leaf has no gradient yet, because no backward pass has begun by the moment."""
    timeline, state, n = question.timeline, question.state, question.moment.n
    is_leaf = question.info.created.kind != "op" and state is not None and state.requires_grad
    if not is_leaf or question.output.grad is not None or any(timeline.select((BackwardStarted,), 1, n + 1)):
        return
    first = next((seq for seq, _ in timeline.select((BackwardStarted,), n + 1)), 0)
    then = ", the first begins later" if first else ""
    yield Finding("no-pass", f"it has no gradient yet: no backward pass has run{then}", first, question.node)
