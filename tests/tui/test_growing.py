"""The graph of a recording that grows: its boxes and lines follow it, and what is in view stays where it is."""

from driving import app_of
from recording import events_of
from tui.test_graph import Stage
from tui.test_graph_view import TRAINED

import gviz.engine as torch
from gviz.events import BackwardStarted
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline
from gviz.tui import graph_view
from gviz.tui.drawing.tape import title_width
from gviz.tui.glyphs import UNICODE
from gviz.tui.graph_view import Folds
from gviz.tui.widgets import tape_panel as tape_module
from gviz.tui.widgets._graph_drawings import Drawings
from gviz.tui.widgets.tape_panel import Tape

EVENTS = list(TRAINED._log.everything())


def tall():
    h = torch.tensor(2.0, requires_grad=True)
    for _ in range(12):
        h = torch.sin(h) * torch.tensor(3.0, requires_grad=True)
    h.backward()


TALL = list(events_of(tall))


def shape(drawings, timeline):
    return drawings.get(drawings.shown(len(timeline), timeline.at(len(timeline)).actor)).shape


def test_the_picture_of_a_recording_that_grows_is_that_of_one_opened_there():
    for closed in ((), ("Sequential.0", "Sequential.2")):
        log = MemoryLog(EVENTS[:1])
        grown = Timeline(log)
        folds = Folds(grown)
        drawings = Drawings(grown, folds, UNICODE)
        folds._collapse(frozenset(closed))
        for n, event in enumerate(EVENTS[1:], 2):
            log.append(event)
            if not grown.refresh():
                continue
            fresh = Timeline(MemoryLog(EVENTS[:n]))
            same = Folds(fresh)
            same._collapse(frozenset(closed))
            assert shape(drawings, grown) == shape(Drawings(fresh, same, UNICODE), fresh), n


def test_the_graph_for_folding_is_built_anew_only_for_other_nodes(monkeypatch):
    built = []
    graph_of = graph_view.graph_of
    monkeypatch.setattr(graph_view, "graph_of", lambda *given: built.append(given) or graph_of(*given))
    log = MemoryLog(EVENTS[:1])
    timeline = Timeline(log)
    folds = Folds(timeline)
    steps = 0
    for event in EVENTS[1:]:
        log.append(event)
        steps += timeline.refresh()
        iteration = timeline.iteration_at(len(timeline))
        known = set(folds.graph(iteration).nodes)
        assert set(timeline.nodes.of(iteration)) >= known
        assert folds.graph(iteration).nodes == Folds(timeline).graph(iteration).nodes
    assert len(built) - (len(EVENTS) - 1) < steps / 2  # but for those of the fresh ones it is compared with


def middle(app):
    """The node of the box nearest to the middle of the view, and the row of the panel that it begins in."""
    x, y = app.graph.view.center
    places = [place for place in app.graph.drawing.shape.places if place.role != "chip"]
    rows = {place.node: app.graph.place(place.node) for place in places}
    nearest = min(rows, key=lambda node: abs(rows[node].y + rows[node].height / 2 - y) * 100 + abs(rows[node].x - x))
    return nearest, rows[nearest].y - app.graph.scroll_offset.y


async def test_boxes_in_view_stay_where_they_are_while_the_graph_grows():
    begins = next(at for at, event in enumerate(TALL) if isinstance(event, BackwardStarted))
    log = MemoryLog(TALL[:begins])
    timeline = Timeline(log)
    app = Stage(timeline)
    async with app.run_test(size=(80, 30)) as pilot:
        app.go(len(timeline) // 2)
        await pilot.pause()
        node, row = middle(app)
        before = app.graph.place(node)
        log.append(TALL[begins])  # now every leaf above has room for what comes in
        timeline.refresh()
        app.graph.length = len(timeline)
        await pilot.pause()
        assert app.graph.place(node).y > before.y
        assert app.graph.place(node).y - app.graph.scroll_offset.y == row


async def test_the_box_that_acts_is_wholly_in_view_at_every_step_of_a_graph_that_grows():
    log = MemoryLog(TALL[:1])
    timeline = Timeline(log)
    app = Stage(timeline)
    async with app.run_test(size=(50, 24)) as pilot:
        for event in TALL[1:]:
            log.append(event)
            if not timeline.refresh():
                continue
            app.graph.length = len(timeline)
            app.go(len(timeline))
            await pilot.pause()
            place = app.graph.place(app.graph.moment.actor)
            if place is not None:
                assert app.graph.view.y <= place.y
                assert place.bottom <= app.graph.view.bottom


def named():
    h = torch.tensor(2.0, requires_grad=True)
    for _ in range(30):
        h = torch.sin(h)
    a_name_longer_than_any_other, b = h * 2, h * 3
    (a_name_longer_than_any_other + b).backward()


def heading(app):
    return "".join(part.text for part in app.screen.query_one(Tape).render_line(0))


async def test_the_columns_of_a_tape_that_grows_are_those_of_one_opened_there(monkeypatch):
    measured = []

    def counting(timeline, nodes):
        measured.append(len(nodes))
        return title_width(timeline, nodes)

    monkeypatch.setattr(tape_module, "title_width", counting)
    events = list(events_of(named))
    log = MemoryLog(events[:1])
    timeline = Timeline(log)
    timeline.growing = True
    app = app_of(timeline, at=0)
    async with app.run_test(size=(120, 40)) as pilot:
        for event in events[1:]:
            log.append(event)
            if timeline.refresh():
                app.screen.length = len(timeline)
                await pilot.pause()
        assert max(measured) < len(timeline.nodes), "a step looks at the last nodes alone"
        timeline.growing = False
        app.screen.length = 0
        app.screen.length = len(timeline)
        await pilot.pause()
        grown = heading(app)
    fresh = app_of(Timeline(MemoryLog(events)), at=0)
    async with fresh.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        assert grown == heading(fresh)
