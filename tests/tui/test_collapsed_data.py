"""Operations on data before the model are boxes of the graph on a screen, and stay events everywhere else."""

import pytest
from driving import app_of, rows_of, transcript
from recording import timeline_of

import gviz.engine as torch
from gviz.errors import GvizError
from gviz.tui.graph_view import Folds
from gviz.tui.widgets.graph_canvas import GraphCanvas

SIZE = 120, 40


def program():
    t = torch.linspace(-1, 1, 8)
    shifted = t - t.mean()
    x = shifted / shifted.std()
    y = x**2 + 0.5
    w = torch.ones(8, requires_grad=True)
    for _ in range(2):
        loss = ((x * w - y) ** 2).mean()
        loss.backward()


TIMELINE = timeline_of(program)


def node(name):
    return next(node for node in TIMELINE.nodes if TIMELINE.info(node).name == name)


@pytest.fixture
def folds():
    folds = Folds(TIMELINE)
    folds.chooses_views = True
    return folds


def titles(folds):
    return [group.call.kind for group in folds.folded(TIMELINE.iterations[0]).groups if group.call.is_data]


def test_only_a_screen_that_shows_the_graph_collapses_data(folds):
    assert titles(folds) == ["x", "y"]
    plain = Folds(TIMELINE)
    assert not titles(plain)
    assert not plain.graph_filter(TIMELINE.iterations[0]).data


def test_next_takes_a_box_of_data_as_one_step_and_both_ways(folds):
    born = TIMELINE.info(node("t")).born
    ends = [born]
    while (n := folds.next_node(TIMELINE, ends[-1])) < len(TIMELINE):
        ends.append(n)
    assert TIMELINE.info(node("x")).born in ends
    assert TIMELINE.info(node("shifted")).born not in ends
    back = [ends[-1]]
    while n := folds.reverse_next_node(TIMELINE, back[-1]):
        back.append(n)
    assert back[::-1][-len(ends) + 1 :] == ends[1:]


def test_two_results_that_are_made_in_turns_are_one_step_each():
    def program():
        t = torch.linspace(-1, 1, 8)
        x = t * 2
        y = t + 1
        x = x - 1
        y = y / 2
        w = torch.ones(8, requires_grad=True)
        ((x * w - y) ** 2).mean().backward()

    timeline = timeline_of(program)
    folds = Folds(timeline)
    folds.chooses_views = True
    data = [folds.next_node(timeline, 0)]
    data.append(folds.next_node(timeline, data[0]))
    after = folds.next_node(timeline, data[1])
    names = [timeline.info(timeline.at(n).actor).name for n in (*data, after)]
    assert names == ["x", "y", "w"]
    assert folds.reverse_next_node(timeline, after) == data[1]
    assert folds.reverse_next_node(timeline, data[1]) == data[0]
    assert folds.reverse_next_node(timeline, data[0]) == 0


@pytest.mark.parametrize("level", [None, "nodes", "calls", "modules"])
def test_a_box_of_data_expands_and_collapses_at_any_level(folds, level):
    if level is not None:
        folds.level = level
    assert folds.expand(node("shifted")) == "x"
    assert titles(folds) == ["y"]
    assert node("shifted") in folds.folded(TIMELINE.iterations[0]).shown or level in ("calls", "modules")
    assert folds.collapse(node("shifted")) == "x"
    assert titles(folds) == ["x", "y"]


def test_all_is_expanded_and_collapsed_with_the_modules(folds):
    folds.expand_all()
    assert not titles(folds)
    with pytest.raises(GvizError):
        folds.expand(node("shifted"))
    folds.collapse_all(TIMELINE.iterations[0])
    assert titles(folds) == ["x", "y"]
    folds.expand_all()
    folds.choose_automatically()
    assert titles(folds) == ["x", "y"]


async def test_the_first_view_shows_the_first_operation_of_the_model():
    def program():
        t = torch.linspace(-1, 1, 8)
        x = (t - t.mean()) / t.std()
        y = t**2 + 0.5
        w = torch.ones(8, requires_grad=True)
        h = x * w
        for _ in range(6):
            h = torch.tanh(h)
        ((h - y) ** 2).mean().backward()

    app = app_of(timeline_of(program), at=1)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        rows = "\n".join(rows_of(app))
        assert "[+] x" in rows
        assert "h = mul" in rows


async def test_the_screen_shows_the_data_the_model_and_the_key(tmp_path):
    app = app_of(TIMELINE)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        canvas = app.screen.query_one(GraphCanvas)
        assert str(canvas.border_title) == "0 Graph, data collapsed. +: expand"
        rows = "\n".join(rows_of(app))
        assert "[+] x" in rows
        assert "operations on data" in rows
        await pilot.press("s", "s")
        assert app.screen.cursor.position == 3
        await pilot.press("plus")
        await pilot.pause()
        assert "[+] x" not in "\n".join(rows_of(app))


def test_the_line_mode_steps_through_every_operation():
    text = transcript(TIMELINE, "next", "next", "next", at=1)
    assert "#2" in text
    assert "#3" in text
