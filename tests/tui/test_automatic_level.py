"""The level that a screen chooses for a graph that does not fit: what is collapsed, and what the user keeps."""

from itertools import pairwise

import pytest
from driving import app_of, transcript
from recording import events_of
from tui.test_graph_view import TRAINED as SMALL

import gviz.engine as torch
from gviz.engine import nn
from gviz.errors import GvizError
from gviz.events import DEFINITIONS, BackwardStarted
from gviz.render.boxes.folding import fold
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline
from gviz.tui import graph_view
from gviz.tui.cursor import Cursor
from gviz.tui.graph_view import LONG_RUN, MOST_BOXES, Folds
from gviz.tui.widgets.text_panel import AROUND_TITLE


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x):
        return torch.tanh(self.other(torch.relu(self.one(x)))) + x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(8)])
        self.head = nn.Linear(2, 1)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def train():
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.ones(1, 2)).sum().backward()
        optimizer.step()


EVENTS = events_of(train)
TRAINED = Timeline(MemoryLog(EVENTS))
FIRST, SECOND, LAST = TRAINED.iterations


def folds_of(timeline=TRAINED):
    folds = Folds(timeline)
    folds.chooses_views = True
    return folds


def count(folds, iteration=FIRST):
    folded = folds.folded(iteration)
    return len(folded.shown) + len(folded.groups)


def titles(folds, iteration=FIRST):
    return [group.call.path for group in folds.folded(iteration).groups if group.call.of_module or group.call.is_repeat]


def inside(path, iteration=FIRST):
    infos = map(TRAINED.info, TRAINED.nodes.of(iteration))
    return next(info.node for info in infos if info.scope == path and info.created.kind == "op")


def test_a_small_graph_shows_every_node():
    folds = folds_of(SMALL)
    iteration = SMALL.iterations[0]
    assert folds.automatic_view(iteration) is None
    assert folds.level_of(iteration) == "nodes"
    assert folds.folded(iteration) == Folds(SMALL).folded(iteration)
    assert folds.collapsed_text(iteration) == ()


def test_a_graph_with_too_many_boxes_gets_the_view_with_most_of_those_that_are_easy_to_read():
    folds = folds_of()
    assert len(TRAINED.nodes.of(FIRST)) > MOST_BOXES
    assert count(folds) <= MOST_BOXES < count(Folds(TRAINED))
    assert titles(folds) == ["Net.blocks.0.one", "Net.blocks.0.other", "blocks.1–7 ×7", "Net.head"]
    assert folds.level_of(FIRST) == "modules"
    brief = f"{len(TRAINED.nodes.of(FIRST))} nodes in {count(folds)} boxes"
    assert folds.collapsed_text(FIRST) == (f"{brief}: blocks.1–7 ×7 is one box (of 8 equal parts)", brief)


class Pyramid(nn.Module):
    """Blocks of layers of their own sizes: none of them repeats."""

    def __init__(self):
        super().__init__()
        sizes = [*pairwise(range(2, 30))]
        self.layers = nn.ModuleList([nn.Sequential(nn.Linear(n, m), nn.Tanh(), nn.Linear(m, m)) for n, m in sizes])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def test_a_view_without_equal_parts_counts_as_the_level_of_modules():
    net = Pyramid()
    timeline = Timeline(MemoryLog(events_of(lambda: net(torch.ones(1, 2)).sum().backward())))
    folds, iteration = folds_of(timeline), timeline.iterations[0]
    view = folds.automatic_view(iteration)
    assert not view.repeats
    assert view.hides_modules
    assert folds.level_of(iteration) == "modules"


def test_line_mode_shows_every_node():
    assert Folds(TRAINED).automatic_view(FIRST) is None
    assert Folds(TRAINED).level_of(FIRST) == "nodes"


def test_the_level_of_the_user_wins_in_every_iteration_until_the_user_gives_it_up():
    folds = folds_of()
    assert folds.next_level(FIRST) == "nodes"
    for iteration in TRAINED.iterations:
        assert folds.folded(iteration) == Folds(TRAINED).folded(iteration)
        assert folds.collapsed_text(iteration) == ()
    folds.choose_automatically()
    assert titles(folds) == titles(folds_of())


def test_what_the_user_expands_and_collapses_is_kept():
    folds = folds_of()
    assert folds.collapse(inside("Net.blocks.0")) == "Net.blocks.0"
    assert titles(folds) == ["blocks.0–7 ×8", "Net.head"]
    assert folds.expand(inside("Net.blocks.3")) == "blocks.0–7 ×8"
    linears = [f"Net.blocks.{at}.{part}" for at in range(1, 8) for part in ("one", "other")]
    assert titles(folds) == ["Net.blocks.0", *linears, "Net.head"]
    assert titles(folds, SECOND) == titles(folds)
    assert folds.collapsed_text(FIRST) == (f"{len(TRAINED.nodes.of(FIRST))} nodes in {count(folds)} boxes",)
    folds.choose_automatically()
    assert titles(folds) == titles(folds_of())


def test_the_view_does_not_change_within_an_iteration():
    folds = folds_of()
    views = [folds.graph_filter(TRAINED.iteration_at(n)) for n in range(len(TRAINED) + 1)]
    kept = {TRAINED.iteration_at(n).index: view for n, view in enumerate(views)}
    assert all(view == kept[TRAINED.iteration_at(n).index] for n, view in enumerate(views))


def test_n_takes_each_box_as_one_step_both_ways():
    folds, forward, backward, n = folds_of(), [], [], 0
    while (n := folds.next_node(TRAINED, n)) < len(TRAINED):
        forward.append(n)
    n = len(TRAINED)
    while (n := folds.reverse_next_node(TRAINED, n)) > 0:
        backward.append(n)
    assert forward == backward[::-1]
    assert len(forward) < len(TRAINED.contexts.node_ends) / 3


def test_the_next_box_and_the_box_of_an_input_are_others_than_this_one():
    folds = folds_of()
    first, after = inside("Net.blocks.1"), inside("Net.head")
    assert TRAINED.info(folds.neighbour(first, 1, FIRST.end)).scope == "Net.head"
    assert TRAINED.info(folds.neighbour(after, -1, FIRST.end)).scope.startswith("Net.blocks.7")
    assert folds.neighbour(first, 1, FIRST.end) == folds.neighbour(inside("Net.blocks.5"), 1, FIRST.end)
    assert TRAINED.info(folds.relative(first, "user", FIRST.end)).scope == "Net.head"
    assert TRAINED.info(folds.relative(first, "input", FIRST.end)).scope == "Net.blocks.0"
    assert folds.neighbour(int(TRAINED.nodes[0]), -1, FIRST.end) == 0
    assert folds.relative(inside("Net.blocks.0.one") - 1, "input", FIRST.end) == 0


def grown(until, events=EVENTS):
    """A timeline of a program that is still running, with the events before the first that fulfils a condition."""
    end = next((at for at, event in enumerate(events) if until(at, event)), len(events))
    log = MemoryLog(events[:end])
    timeline = Timeline(log)
    timeline.growing = True
    return log, timeline


def first_backward(_, event):
    return isinstance(event, BackwardStarted)


def test_a_running_program_shows_every_node_of_its_first_iteration_until_it_has_run_for_long():
    log, timeline = grown(lambda at, _: at == 40)
    folds = folds_of(timeline)
    newest = timeline.iterations[-1]
    assert folds.automatic_view(newest) is None
    start = len(timeline)
    whole = next(at for at, event in enumerate(EVENTS) if first_backward(at, event))
    for event in EVENTS[40:whole]:
        before = len(timeline)
        log.append(event)
        timeline.refresh()
        folds.choose_view_after_run(before)
        assert folds.automatic_view(timeline.iterations[-1]) is None  # a single step moves no box
    folds.choose_view_after_run(start)
    view = folds.automatic_view(timeline.iterations[-1])
    assert view is not None
    assert view.boxes <= MOST_BOXES
    folds.choose_view_after_run(0)
    assert folds.automatic_view(timeline.iterations[-1]) is view  # a second long run moves no box


def test_a_short_run_and_a_user_who_has_expanded_something_keep_every_node():
    _, timeline = grown(first_backward)
    folds = folds_of(timeline)
    folds._views[0] = None
    nodes = timeline.nodes.of(timeline.iterations[-1])
    born = [timeline.info(node).born for node in nodes]
    folds.choose_view_after_run(born[-LONG_RUN])
    assert folds.automatic_view(timeline.iterations[-1]) is None
    folds.collapse(0, "Net.blocks.1")
    folds.choose_view_after_run(0)
    assert folds.automatic_view(timeline.iterations[-1]) is None
    folds._was_edited_by_user = False
    folds.choose_view_after_run(born[-LONG_RUN] - 1)
    assert folds.automatic_view(timeline.iterations[-1]) is not None


def test_a_new_iteration_of_a_running_program_has_the_view_of_the_one_before():
    passed = []
    _, timeline = grown(lambda _, event: passed.append(event.__class__ not in DEFINITIONS) or sum(passed) > 760)
    folds = folds_of(timeline)
    newest = timeline.iterations[-1]
    assert newest.index == 1
    assert len(timeline.nodes.of(newest)) < MOST_BOXES
    assert folds.automatic_view(newest) == folds.automatic_view(timeline.iterations[0]) is not None


def test_a_large_graph_that_is_read_in_the_background_is_shown_in_its_view_at_once(monkeypatch):
    monkeypatch.setattr(graph_view, "SOON", 1)
    folds = folds_of()
    folds.reads_later = True
    assert folds.automatic_view(FIRST) is None
    progress = [str(far) for far in folds.read_graph(FIRST)]
    assert any("choosing a level" in text for text in progress)
    monkeypatch.setattr(graph_view, "finished", None)
    assert folds.automatic_view(FIRST) is not None


@pytest.mark.parametrize(
    ("size", "title"),
    [
        ((80, 24), "nodes in {} boxes, V: more"),
        ((110, 40), "nodes in {} boxes. +: expand · V: level"),
        ((200, 60), "blocks.1–7 ×7 is one box (of 8 equal parts). +: expand · V: level"),
    ],
)
async def test_the_title_says_what_is_collapsed_and_how_to_see_more(size, title):
    app = app_of(TRAINED, at=SECOND.start + 40)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        graph = app.screen.query_one("#graph")
        assert str(graph.border_title).endswith(title.format(count(folds_of(), SECOND)))
        await pilot.press("V")
        await pilot.pause()
        assert str(graph.border_title).partition(",")[0] == "0 Graph"
        assert "boxes" not in str(graph.border_title)


async def test_a_title_of_wide_letters_has_room_too():
    app = app_of(TRAINED, at=SECOND.start + 40)
    async with app.run_test(size=(110, 40)) as pilot:
        await pilot.pause()
        graph = app.screen.query_one("#graph")
        room = graph.outer_size.width - AROUND_TITLE
        wide = "層" * (room // 2 - 10)
        graph._entitle("", (wide, "few"))
        assert wide not in str(graph.border_title)
        assert "few" in str(graph.border_title)
        graph._entitle("", (wide[:-20], "few"))
        assert wide[:-20] in str(graph.border_title)


async def test_no_box_moves_while_time_does_and_the_current_node_is_in_a_box():
    app = app_of(TRAINED, at=SECOND.start + 1)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        graph = app.screen.query_one("#graph")
        places = graph.drawing.canvas.layout.places
        for key in [*"nnnnnnss", "right_curly_bracket", *"nnnNNS"]:
            await pilot.press(key)
            await pilot.pause()
            if TRAINED.iteration_at(app.screen.cursor.position) == SECOND:
                assert graph.drawing.canvas.layout.places == places
            place = graph.place(app.screen.cursor.selected)
            assert place is not None
            assert graph.view.overlaps(graph._region(place))


async def test_the_keys_of_the_graph_select_another_box():
    app = app_of(TRAINED, at=SECOND.start + 1)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        screen = app.screen
        assert screen.query_one("#graph").display
        assert not screen.query_one("#tape").display
        screen.cursor.select(inside("Net.blocks.1", SECOND))
        screen.show_frame()
        await pilot.press("j")
        assert TRAINED.info(screen.cursor.selected).scope == "Net.head"
        await pilot.press("k")
        assert TRAINED.info(screen.cursor.selected).scope.startswith("Net.blocks.7")
        await pilot.press("down")
        assert TRAINED.info(screen.cursor.selected).scope == "Net.head"
        await pilot.press("h")
        assert TRAINED.info(screen.cursor.selected).scope.startswith("Net.blocks.7")
        await pilot.press("v", "v")  # the tape is on the screen, and shows every node
        await pilot.pause()
        before = screen.cursor.selected
        assert screen.query_one("#tape").display
        await pilot.press("k")
        assert screen.cursor.selected == before - 1


def test_the_command_chooses_automatically_again():
    output = transcript(TRAINED, "level modules", "level auto", "level call")
    assert "level nodes, chosen automatically" in output  # line mode shows every node
    assert "the levels are nodes, calls, modules, auto" in output or "did you mean calls?" in output


def test_a_view_collapses_the_steps_of_optimizers_as_all_nodes_do():
    folds = folds_of()
    view = folds.automatic_view(FIRST)
    assert view is not None
    assert fold(folds._calls(FIRST), folds.graph_filter(FIRST)).shown == folds.folded(FIRST).shown
    assert sum(group.call.path == "optimizer step" for group in folds.folded(FIRST).groups) <= 1


def test_what_has_no_user_says_so():
    folds = folds_of()
    last = TRAINED.nodes.of(LAST)[-1]
    assert folds.relative(int(last), "user", LAST.end) == 0
    cursor = Cursor(TRAINED, len(TRAINED))
    cursor.select(int(last))
    with pytest.raises(GvizError, match="has no user"):
        cursor.select_relative(0, "user")


def grown_to(n, events=EVENTS):
    """A timeline of a program that is paused after event `n`, which is no definition."""
    passed = []
    _, timeline = grown(lambda _, event: passed.append(event.__class__ not in DEFINITIONS) or sum(passed) > n, events)
    assert len(timeline) == n
    return timeline


def stops(folds, start, end):
    found, n = [], start
    while (n := folds.next_node(folds.timeline, n)) < end:
        found.append(n)
    return found


def arrived(folds, here, count, events=EVENTS):
    """Where a program is after as many nodes as `count` boxes have."""
    paused = folds_of(grown_to(here, events))
    paused.level = folds.level
    paused._level = folds._level
    ends = [end for end in folds.timeline.contexts.node_ends if end > here and not paused_optimizer(folds, end)]
    nodes = paused.nodes_of_next_boxes(here, count)
    return ends[nodes - 1] if nodes else 0


def paused_optimizer(folds, end):
    return folds._is_optimizer_arithmetic(end)


@pytest.mark.parametrize("level", ["auto", "calls", "modules"])
def test_a_running_program_passes_the_boxes_of_its_iteration_as_one_node_each(level):
    folds = folds_of()
    if level != "auto":
        folds.level = level
    every = stops(folds, SECOND.start, LAST.end)
    for here, there, later in zip(every[::3], every[1::3], every[2::3], strict=False):
        assert arrived(folds, here, 1) == there, here
        assert arrived(folds, here, 2) == later, here


class Other(Net):
    pass


def take_turns():
    nets = Net(), Other()
    for step in range(6):
        nets[step % 2](torch.ones(1, 2)).sum().backward()


def test_models_that_take_turns_pass_the_boxes_of_their_own_last_turn():
    events = events_of(take_turns)
    timeline = Timeline(MemoryLog(events))
    folds = folds_of(timeline)
    folds.level = "modules"
    before, newest = timeline.iterations[-2:]
    assert newest.index == 5
    every = stops(folds, before.start, newest.end)
    assert any(timeline.info(timeline.at(n).actor).scope.startswith("Other.") for n in every)
    for here, there in pairwise(every):
        assert arrived(folds, here, 1, events) == there, here


def test_a_first_backward_pass_passes_its_boxes_as_one_node_each():
    folds = folds_of()
    folds.level = "modules"
    phase = next(phase for phase in TRAINED.phases if phase.kind == "backward")
    every = stops(folds, phase.start, phase.end)
    assert len(every) == 3
    for here, there in pairwise(every):
        assert arrived(folds, here, 1) == there


def test_nothing_is_known_about_a_first_forward_and_about_all_nodes():
    timeline = grown_to(40)
    folds = folds_of(timeline)
    assert folds.nodes_of_next_boxes(40, 1) == 0
    folds.level = "modules"
    assert folds.nodes_of_next_boxes(40, 1) == 0


def built(folds, monkeypatch):
    """The iterations whose graphs are built, one after the other."""
    found, build = [], folds._built
    monkeypatch.setattr(folds, "_built", lambda iteration: found.append(iteration.index) or build(iteration))
    return found


def test_the_next_boxes_beyond_an_iteration_are_those_of_the_other_iteration(monkeypatch):
    folds = folds_of()
    n, node, passed = LAST.end, int(TRAINED.nodes[-1]), []
    builds = built(folds, monkeypatch)
    while TRAINED.info(node).born >= SECOND.start:
        passed.append(node)
        node = folds.neighbour(node, -1, n)
    assert builds == [LAST.index, SECOND.index]  # each of them once
    made = [[node for node in passed if one.start <= TRAINED.info(node).born <= one.end] for one in (SECOND, LAST)]
    assert len(made[0]) == len(made[1]) < len(TRAINED.nodes.of(SECOND)) / 3
    again, node = [], passed[-1]
    while node:
        again.append(node)
        node = folds.neighbour(node, 1, n)
    boxes = [graph_view._BoxesAt(folds, n).of(node) for node in passed]
    assert [graph_view._BoxesAt(folds, n).of(node) for node in again] == boxes[::-1]
    assert builds == [LAST.index, SECOND.index]


def test_one_key_builds_the_graph_of_each_iteration_once(monkeypatch):
    folds = folds_of()
    builds = built(folds, monkeypatch)
    first = next(node for node in TRAINED.nodes if TRAINED.info(node).born >= LAST.start)
    before = folds.neighbour(int(first), -1, LAST.end)
    assert TRAINED.info(before).born <= SECOND.end
    folds.neighbour(before, -5, LAST.end)
    folds.graph(LAST)
    assert sorted(builds) == [SECOND.index, LAST.index]


def test_the_relatives_of_a_box_of_another_iteration_are_those_that_it_has_there():
    folds, ops = folds_of(), []
    for node in map(int, TRAINED.nodes.of(SECOND)):
        info = TRAINED.info(node)
        if info.born >= SECOND.start and info.created.kind == "op":
            ops.append(node)
            assert folds.relative(node, "user", LAST.end) == folds.relative(node, "user", SECOND.end)
    head = next(node for node in ops if TRAINED.info(node).scope == "Net.head")
    source = folds.relative(head, "input", LAST.end)
    assert TRAINED.info(source).scope.startswith("Net.blocks.7")
    assert source in ops


def test_few_graphs_are_kept_and_the_answers_do_not_depend_on_their_number(monkeypatch):
    many, few, n = folds_of(), folds_of(), LAST.end
    nodes = [int(node) for node in TRAINED.nodes[::40]]
    expected = [many.neighbour(node, steps, n) for node in nodes for steps in (1, -1)]
    monkeypatch.setattr(graph_view, "MOST_KNOWN", 1)
    assert [few.neighbour(node, steps, n) for node in nodes for steps in (1, -1)] == expected
    assert len(few._known) == 1
    again = folds_of()
    builds = built(again, monkeypatch)
    first = next(int(node) for node in TRAINED.nodes if TRAINED.info(node).born >= LAST.start)
    again.neighbour(first, -5, n)
    assert builds == [LAST.index, SECOND.index]  # a single call keeps what it needs


def test_a_parameter_is_in_the_box_of_the_iteration_that_is_shown():
    folds = folds_of()
    weight = next(node for node in TRAINED.nodes if TRAINED.info(node).name == "blocks.1.one.weight")
    for iteration in (FIRST, LAST, SECOND):
        user = TRAINED.info(folds.relative(int(weight), "user", iteration.end))
        assert (user.scope, user.iteration) == ("Net.head", iteration.index)
