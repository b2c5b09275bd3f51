"""Commands that show something: a node, its source, the tape, the output, an explanation. Time does not move."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from gviz.errors import GvizError
from gviz.explain import finding
from gviz.explain.display_names import label
from gviz.explain.event_description import sentence
from gviz.explain.iteration_summary import summary_text
from gviz.explain.program_text import about
from gviz.explain.source_frames import frame_text
from gviz.explain.training import freezing_line, frozen_parameters, last_pass, pass_result, reading_progress
from gviz.query_syntax.place import split_aspect
from gviz.source.call_stack import Frame
from gviz.system.cooperative_work import LongWork
from gviz.trace.node_gradients import in_its_iteration
from gviz.trace.timeline import Timeline
from gviz.tui import styled_lines
from gviz.tui.commands import expressions, source_listing
from gviz.tui.drawing import tape as drawing
from gviz.tui.drawing.iterations_and_passes import pass_rows
from gviz.tui.drawing.node_details import Subject, event_in_branch, node_lines, what_if_title
from gviz.tui.drawing.program_output import output_lines
from gviz.tui.drawing.saved_tensors import saved_lines
from gviz.tui.drawing.tensor_elements import tensor_lines
from gviz.tui.drawing.training_summary import between_lines, pass_at, training_lines
from gviz.tui.keymaps import key_lines
from gviz.tui.language.command import Answer, Choice, Command, Jump, View
from gviz.tui.session import Session
from gviz.tui.styled_lines import TIED, Line, line, link, wrapped
from gviz.values.number_text import typed_count
from gviz.values.plain_text import clipped, shown

if TYPE_CHECKING:
    from gviz.explain.finding import Checked

ROWS = 200
"""How many nodes of the tape line mode shows, which has no panel for it."""


def explain(session: Session, text: str) -> View:
    """Run ``explain [PLACE] [all]``."""
    from gviz.explain.finding_kinds import located
    from gviz.explain.typed_question import answer  # imports every kind of answer: only on demand

    cursor, (place, whole) = session.cursor, _in_full(text)
    explanation = located(answer(cursor.asker.names, place or _missing(session), cursor.position, cursor.selected))
    rest = f'("explain {shown(f"{place} all".lstrip())}" has them)'
    rows = list(finding.lines(explanation)) if whole else finding.brief(explanation, rest)
    cause = cause_of(explanation)
    if cause in session.timeline.nodes and cause != cursor.selected:
        cursor.select(cause)
        rows = [*rows, _selected_cause(session.timeline, cause)]
    if what_if_title(session.branch_view, cursor.position):
        rows = [*rows, (1, "This is about the recording, without the what-if.", 0)]
    return View("Why", partial(explanation_lines, rows))


def _missing(session: Session) -> str:
    """Return the default place to explain: after a pass, with its loss selected, the first missing gradient."""
    result = pass_at(session.timeline, session.cursor.position, session.cursor.selected)
    return f"#{result.missing[0]}.grad" if result is not None and result.missing and not result.is_for_inputs else ""


def cause_of(explanation: finding.Finding) -> int:
    """Return the node that caused an error or warning at another one; 0 if there is none, or it is the same.

    What might have been meant instead is a guess, and an earlier nan another case: they are no causes.
    """
    from gviz.explain.finding_kinds import BY_NAME

    kind = BY_NAME.get(explanation.kind)
    if kind is None or kind.severity == "fact":
        return 0
    parts = (one for one in finding.whole(explanation) if one.kind not in _NO_CAUSES)
    return next((one.node for one in parts if one.node not in (0, explanation.node)), 0)


_NO_CAUSES = frozenset({"nearest", "earlier-nan", "older-pass", "layer"})


def findings(session: Session, _: str) -> LongWork[Choice | Answer]:
    """List what is wrong, and the parameters without a gradient after the last pass, each with its moment and node.

    Frozen parameters are listed, too, by the line that froze them. They are no finding: mostly they are intended.
    """
    from gviz.explain.check import checking, no_findings_text
    from gviz.explain.finding_kinds import findable

    timeline = session.timeline
    entries = yield from checking(timeline)
    ended, missing = _without_gradient(timeline, len(timeline))
    places = [
        _place_without_gradient(_heading(one), ended, one.finding.node)
        if one.finding.node in missing
        else _place_of_finding(timeline, one)
        for one in entries
    ]
    known = {one.finding.node for one in entries}
    places += [
        _place_without_gradient(f"  no gradient  {label(timeline, node)}", ended, node)
        for node in missing
        if node not in known
    ]
    frozen = [*_frozen_places(timeline, ended)]
    nothing = "" if places else no_findings_text([timeline], len(findable())) + _so_far(session)
    if not places and not frozen:
        return Answer((nothing,))
    title = "Findings" if places else "No findings, frozen parameters"
    title += " so far" * timeline.growing  # a finding may be graver when the program goes on
    texts = [*([nothing] if nothing else []), *(place.text for place in (*places, *frozen))]
    return Choice(title, partial(wrapped_lines, tuple(texts)), places=(*places, *frozen))


def _so_far(session: Session) -> str:
    """Return what to do for the findings of the rest of a program that has not ended."""
    if not session.timeline.growing:
        return ""
    then = "ask again when it has stopped" if session.is_running else "c runs the program to its next stop"
    return f". This is so far: {then}"


_MOST_FROZEN = 3
"""How many frozen parameters are named in a row."""


def _frozen_places(timeline: Timeline, n: int) -> Iterator[Jump]:
    """Yield a row for each line that froze parameters which are frozen at moment `n`."""
    by_line: dict[tuple[str, int] | int, list[int]] = {}
    events: dict[int, tuple[int, Frame | None]] = {}
    for node in frozen_parameters(timeline, n) if n else ():
        seq, frame = events[node] = freezing_line(timeline, node, n)
        by_line.setdefault((frame.path, frame.line) if frame is not None else seq, []).append(node)
    for nodes in by_line.values():
        seq, frame = events[nodes[0]]
        where = f"{frame_text(frame, 30)}  " if frame is not None else ""
        more = f" and {len(nodes) - _MOST_FROZEN} more" if len(nodes) > _MOST_FROZEN else ""
        named = ", ".join(label(timeline, node) for node in nodes[:_MOST_FROZEN])
        yield Jump(f"  frozen   {where}{named}{more}", seq, nodes[0], f"#{nodes[0]}.grad")


def _place_of_finding(timeline: Timeline, one: Checked) -> Jump:
    """Return the row of a finding, with all its lines.

    If the finding names a cause, that node is selected, as by ``explain``.
    """
    rows, cause = list(finding.lines(one.finding)), cause_of(one.finding)
    cause = cause if cause in timeline.nodes and cause != one.finding.node else 0
    if cause:
        rows.append(_selected_cause(timeline, cause))
    view = View("Why", partial(explanation_lines, rows))
    return Jump(_heading(one), one.finding.event, one.finding.node, explanation=view, cause=cause)


def _selected_cause(timeline: Timeline, cause: int) -> tuple[int, str, int]:
    return 1, f"selected: {label(timeline, cause)}, the cause", 0


def _place_without_gradient(text: str, ended: int, node: int) -> Jump:
    return Jump(text, ended, node, f"#{node}.grad")


def _heading(one: Checked) -> str:
    """Return ``! warning  cut.py:9  #3 w got no gradient``; a note has no mark."""
    mark = " " if one.level == "note" else "!"
    where = f"{one.finding.where}  " if one.finding.where else ""
    return f"{mark} {one.level:<7}  {where}{one.finding.text}{f' (and {one.more} more)' if one.more else ''}"


def _without_gradient(timeline: Timeline, n: int) -> tuple[int, tuple[int, ...]]:
    """Return the event that ended the last backward pass, and the nodes that had no gradient then."""
    ended = last_pass(timeline, n)
    result = pass_result(timeline, ended) if ended else None
    return (ended, ()) if result is None or result.is_for_inputs else (ended, result.missing)


def explanation_lines(rows: Sequence[tuple[int, str, int]], width: int) -> Iterator[Line]:
    """Yield the rows of `gviz.explain.finding.lines`, wrapped to a width; events are links."""
    for depth, text, event in rows:
        where = [(f"  event{TIED}{event}", link("key", event))] if event else []
        yield from wrapped(line("  " * depth, (text, "" if depth else "title"), *where), width, 2 * depth + 2)


def _in_full(text: str) -> tuple[str, bool]:
    """Return the place to explain, and whether the text ends with ``all``: then every line of the answer is shown."""
    words = text.split()
    return (" ".join(words[:-1]), True) if words[-1:] == ["all"] else (text, False)


def event(session: Session, _: str) -> View:
    """Describe the event of the moment in full."""
    text = session.glyphs.text(sentence(session.timeline, session.cursor.position))
    there = session.glyphs.text(event_in_branch(session.timeline, session.moment, session.branch_view))
    texts = [f"recorded: {text}", there] if there else [text]
    return View("What happened", lambda width: (row for each in texts for row in wrapped(line(each), width)))


def check(session: Session, text: str) -> LongWork[View]:
    """Run ``check [all]``: everything that is or may be wrong in the recording."""
    from gviz.explain.check import checking, no_findings_text
    from gviz.explain.finding_kinds import findable

    whole = text == "all"
    entries = yield from checking(session.timeline)
    rows = [
        (depth, text if depth else one.heading, event)
        for one in entries
        for depth, text, event in (finding.lines(one.finding) if whole else finding.short_lines(one.finding))
    ]
    left = 0 if whole else finding.left_out(one.finding for one in entries)
    if left:
        rows.append((0, f'{left} more line{"s" * (left != 1)} ("check all" has them)', 0))
    nothing = (0, no_findings_text([session.timeline], len(findable())), 0)
    return View("Check", partial(explanation_lines, rows or [nothing]))


def node(session: Session, place: str) -> View:
    """Show a node in full, and select it."""
    cursor = session.cursor
    if place:
        cursor.select(cursor.node_at(place))
    subject = partial(Subject, session.timeline, session.moment, cursor.selected)
    return View(
        "Node",
        lambda width: node_lines(subject(width, session.glyphs, branch_view=session.branch_view)),
        panel="inspector",
    )


def print_expression(session: Session, command: Command) -> View | Answer:
    """Run ``print [EXPR]``."""
    text = command.argument
    return (
        Answer((*expressions.evaluate(session.cursor.asker, text, session.cursor.position),))
        if text
        else node(session, "")
    )


def graph(session: Session, place: str) -> View:
    """Show the graph; line by line, list its nodes."""
    if place:
        session.cursor.select(session.cursor.node_at(place))
    return View("Graph", partial(_tape_lines, session), panel="graph")


def up(session: Session, command: Command) -> View:
    """Go to a caller."""
    return _frame(session, command.count)


def down(session: Session, command: Command) -> View:
    """Go back from a caller."""
    return _frame(session, -command.count)


def _frame(session: Session, steps: int) -> View:
    depth = session.frame_of(session.cursor.selected) + steps
    if not 0 <= depth < max(len(session.stack), 1):
        raise GvizError(f"this is the {'outermost' if steps > 0 else 'innermost'} line of the call", exit_code=2)
    session.show_caller(depth)
    return source_listing.here(session)


def keys(session: Session, _: str) -> View:
    """Show the keys of the current keymap."""
    return View("Keys", partial(key_lines, session.keys))


def tape(session: Session, _: str) -> View:
    """Run ``tape``."""
    return View("Tape", partial(_tape_lines, session), panel="tape")


def _tape_lines(session: Session, width: int) -> Iterator[Line]:
    timeline, moment = session.timeline, session.moment
    nodes = timeline.nodes.of(timeline.iteration_at(moment.n)) if timeline.iterations else ()
    widest = drawing.title_width(session.timeline, nodes), drawing.shape_width(session.timeline, nodes)
    columns = drawing.columns_for(width, max(nodes, default=0), *widest)
    yield drawing.heading(columns)
    for number, state in zip(nodes[:ROWS], moment.states(list(nodes[:ROWS])), strict=True):
        for nr in range(max(len(timeline.info(number).created.outputs), 1)):
            yield drawing.row(timeline, moment, drawing.Entry(number, state, nr), columns, session.glyphs)
    if len(nodes) > ROWS:
        yield line(f"and {len(nodes) - ROWS} more nodes; node #{nodes[ROWS]} shows one")


def where(session: Session, text: str) -> View:
    """Run ``where [FRAMES]``: the line that the program is at, and the call stack of the selected node."""
    count = typed_count(text.removeprefix("-")) if text else None
    if text and not count:
        raise GvizError(f"{clipped(text, 20)} is not a number of frames", hint="where 2, where -2", exit_code=2)
    part = slice(-count, None) if count and text.startswith("-") else slice(count)
    return View("Where", lambda _: _stack_lines(session, part), panel="stack")


def _stack_lines(session: Session, part: slice) -> Iterator[Line]:
    selected, paused_stack = session.cursor.selected, session.paused_stack
    if paused_stack is not None and paused_stack.node == selected:
        yield line(f"the program is {'paused ' * paused_stack.is_pause}at:")
        yield from _numbered(paused_stack.frames, part)
        return
    if session.current_frame is not None:
        yield line(f"the program is at {frame_text(session.current_frame)}")
    if not selected:
        yield line("no node is selected.")
        return
    info = session.timeline.info(selected)
    yield line(f"node {label(session.timeline, selected)} was made at event {info.born}:")
    yield from _numbered(info.frames, part)


def _numbered(frames: tuple[Frame, ...], part: slice) -> Iterator[Line]:
    return (line(f"  {depth}  {frame_text(frame)}") for depth, frame in [*enumerate(frames)][part])


def tensor(session: Session, text: str) -> View:
    """Show all elements of a value, of ``x.grad``, or of the incoming gradient of a node."""
    place, aspect = split_aspect(text.strip())
    cursor = session.cursor
    node = cursor.asker.last(place, cursor.position) if place else cursor.selected
    state = in_its_iteration(session.timeline, session.moment.n, session.moment.state(node)) if node else None
    if state is None or not state.outputs:
        raise GvizError("the node is not made yet" if node else "no node is selected", exit_code=2)
    output, title = state.outputs[0], label(session.timeline, node)
    if aspect != "grad":
        draw = partial(tensor_lines, session.timeline, title, "value", output.value)
    else:
        value = output.grad if output.grad is not None else output.incoming
        if value is None:
            raise GvizError(f"{title} has no gradient here", exit_code=2)
        draw = partial(tensor_lines, session.timeline, f"gradient of {title}", "grad", value)
    return View("Tensor", lambda width: draw(width, session.glyphs))


def passes(session: Session, _: str) -> View:
    """Run ``passes``."""
    rows = pass_rows(session.timeline, session.cursor.position)
    marks = session.glyphs
    return View("Passes", lambda _: (line(f"{marks.now if here else ' '} {text}") for text, _, here in rows))


def training(session: Session, _: str) -> LongWork[View]:
    """Run ``training``: losses and gradients from pass to pass."""
    progress = yield from reading_progress(session.timeline)
    recorded = session.timeline.recorded_iterations
    between = partial(between_lines, recorded, glyphs=session.glyphs) if recorded is not None else lambda width: ()
    return View("Training", lambda width: [*training_lines(progress, width, session.glyphs), *between(width)])


def summary(session: Session, _: str) -> View:
    """Run ``summary``: what the iteration does, line by line."""
    timeline, n = session.timeline, session.cursor.position
    return View("Summary", lambda width: map(line, summary_text(timeline, n, width)))


def saved(session: Session, place: str) -> View:
    """Show saved tensors and versions of a node, and select it."""
    if place:
        session.cursor.select(session.cursor.node_at(place))
    return View("Saved", partial(saved_lines, session.timeline, session.moment, session.cursor.selected), panel="saved")


def output(session: Session, _: str) -> View:
    """Show what the program has printed."""
    return View("Output", partial(output_lines, session.timeline, session.cursor.position), panel="output")


def lesson(session: Session, _: str) -> View:
    """Show the text at the top of the program."""
    text = about(session.timeline)
    if not text:
        raise GvizError("this program has no text at its top", exit_code=2)
    return View("Lesson", lambda width: styled_lines.paragraphs(text, width))


def wrapped_lines(texts: tuple[str, ...], width: int) -> Iterator[Line]:
    """Yield sentences, wrapped to a width."""
    for text in texts:
        yield from wrapped(line(text), width, 3)
