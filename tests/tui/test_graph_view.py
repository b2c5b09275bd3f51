"""Modules that are closed: in the graph, for a step of next, and by key and command."""

import pytest
from driving import app_of, transcript
from hypothesis import given, settings
from hypothesis import strategies as st
from recording import timeline_of

import gviz.engine as torch
from gviz.trace.graph_state import OPTIMIZER
from gviz.tui import graph_view
from gviz.tui.graph_view import Folds
from gviz.tui.widgets.graph_canvas import GraphCanvas


def trained(layers=3, steps=2):
    """A net of Linear and Tanh layers, trained for some steps."""

    def program():
        parts = [part for _ in range(layers) for part in (torch.nn.Linear(2, 2), torch.nn.Tanh())]
        net = torch.nn.Sequential(*parts)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        x = torch.ones(1, 2)
        for _ in range(steps):
            optimizer.zero_grad()
            net(x).sum().backward()
            optimizer.step()

    return timeline_of(program)


TRAINED = trained()
PATHS = ["Sequential", *(f"Sequential.{number}" for number in range(6))]


def closed(timeline, *paths):
    folds = Folds(timeline)
    node = next(node for node in timeline.nodes if timeline.info(node).scope)
    for path in paths:
        folds.collapse(node, path)
    return folds


@given(st.sets(st.sampled_from(PATHS)), st.integers(0, len(TRAINED)))
@settings(deadline=None)
def test_next_and_its_reverse_undo_each_other_whatever_is_closed(paths, n):
    folds = closed(TRAINED, *paths)
    there = folds.next_node(TRAINED, n)
    again = folds.next_node(TRAINED, there)
    if again != len(TRAINED) or folds.reverse_next_node(TRAINED, again) == there:
        assert folds.reverse_next_node(TRAINED, again) == there
    assert folds.reverse_next_node(TRAINED, n) < n or n == 0
    assert there > n or n == len(TRAINED)


@given(st.sets(st.sampled_from(PATHS)))
@settings(deadline=None)
def test_the_stops_of_next_are_the_same_both_ways(paths):
    folds = closed(TRAINED, *paths)
    forward, n = [], 0
    while (n := folds.next_node(TRAINED, n)) < len(TRAINED):
        forward.append(n)
    backward, n = [], len(TRAINED)
    while (n := folds.reverse_next_node(TRAINED, n)) > 0:
        backward.append(n)
    assert forward == backward[::-1]


def test_a_closed_module_is_one_step_forward_and_one_in_the_pass():
    folds = closed(TRAINED, "Sequential")
    stops = [n for n in TRAINED.contexts.node_ends if folds.next_node(TRAINED, n - 1) == n]
    infos = [TRAINED.info(actor) for n in stops if (actor := TRAINED.at(n).actor)]
    inside = [info for info in infos if info.scope or info.created.kind == "parameter"]
    assert len(inside) == 5  # its parameters are made; then forward and backward, twice
    assert len(stops) < len(TRAINED.contexts.node_ends) - 20


def test_nothing_closed_means_the_node_ends_themselves():
    folds = Folds(TRAINED)
    folds.expand_all()
    assert [folds.next_node(TRAINED, n - 1) for n in TRAINED.contexts.node_ends] == TRAINED.contexts.node_ends


def test_close_goes_outwards_and_open_inwards():
    folds = Folds(TRAINED)
    node = next(node for node in TRAINED.nodes if TRAINED.info(node).scope == "Sequential.2")
    assert [folds.collapse(node), folds.collapse(node)] == ["Sequential.2", "Sequential"]
    assert [folds.expand(node), folds.expand(node)] == ["Sequential", "Sequential.2"]


def test_a_parameter_is_in_the_module_that_uses_it():
    weight = next(node for node in TRAINED.nodes if TRAINED.info(node).name == "2.weight")
    assert Folds(TRAINED).collapse(weight) == "Sequential.2"


def test_a_large_graph_opens_with_modules_closed(monkeypatch):
    monkeypatch.setattr(graph_view, "LARGE", 15)
    monkeypatch.setattr(graph_view, "FEW_BOXES", 12)
    folds = Folds(TRAINED)
    wanted = folds.graph_filter(TRAINED.iterations[0])
    assert {f"Sequential.{number}" for number in (0, 2, 4)} <= wanted.closed
    assert "Sequential" not in wanted.closed
    folds.expand_all()
    assert not folds.graph_filter(TRAINED.iterations[0]).closed  # what somebody opened stays open


def test_a_large_graph_without_calls_is_not_built_to_see_what_to_close(monkeypatch):
    monkeypatch.setattr(graph_view, "LARGE", 15)
    monkeypatch.setattr(Folds, "graph", None)
    timeline = timeline_of(lambda: sum(torch.ones(2, requires_grad=True) for _ in range(20)).sum().backward())
    assert Folds(timeline).collapsed_in_program == (OPTIMIZER,)
    assert not Folds(timeline).hides(timeline.iterations[0])


@pytest.mark.parametrize(
    ("flat", "made"),
    [
        (True, lambda x: (x * x).sum().backward()),
        (False, lambda x: torch.autograd.grad((x * x).sum(), x, create_graph=True)),
        (False, lambda x: torch.nn.Tanh()(x)),
        (False, lambda x: torch.optim.SGD([x]).step((x * x).sum().backward)),
    ],
)
def test_calls_passes_and_steps_that_make_nodes_are_known_without_the_graph(flat, made):
    timeline = timeline_of(lambda: made(torch.ones(2, requires_grad=True)))
    assert timeline.contexts.flat == flat


def test_commands_say_what_is_left():
    said = transcript(TRAINED, "select op:addmm", "close", "close all", "open all", "close nothing", "open")
    assert "Sequential.0 is collapsed: 15 boxes, 2 of them collapsed" in said  # the other is the optimizer
    assert "every module is collapsed: 4 boxes, 2 of them collapsed" in said
    assert "every module is expanded" in said
    assert "nothing is not a module that was called" in said
    assert "no collapsed module contains the selected node" in said


def test_modules_tell_their_gradients_in_line_mode():
    said = transcript(TRAINED, f"goto {TRAINED.phases[1].end}", "modules")
    rows = said.splitlines()
    assert any("- Sequential" in row and "18 params" in row and "|g|" in row for row in rows)
    assert any("    0 Linear" in row.replace("- ", "  ") and "6 params" in row for row in rows)


def test_ancestors_and_neighbours_in_line_mode():
    said = transcript(
        TRAINED, "ancestors op:tanh", "ancestors op:tanh", "select op:tanh", "near 1", "near 0", "near far"
    )
    assert "was made from: " in said
    assert "within 1 line of #" in said
    assert said.count("the whole graph: ") == 2
    assert "near takes a number of lines, not far" in said


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_keys_close_and_open_the_module_of_the_selected_node(size):
    at = next(n for n in range(len(TRAINED)) if TRAINED.at(n).scope == "Sequential.2" and TRAINED.at(n).node)
    app = app_of(TRAINED, at=at + 1)
    async with app.run_test(size=size) as pilot:
        await pilot.press("v", "minus")
        await pilot.pause()
        graph = app.screen.query_one(GraphCanvas)
        assert graph.graph_filter.closed == {OPTIMIZER, "Sequential.2"}
        assert "Sequential.2 is collapsed" in app.screen.remark
        await pilot.press("plus")
        await pilot.pause()
        assert graph.graph_filter.closed == {OPTIMIZER}


async def test_the_graph_shows_the_closed_module_and_counts_it_as_one_node():
    at = next(n for n in range(len(TRAINED)) if TRAINED.at(n).scope == "Sequential.2" and TRAINED.at(n).node)
    app = app_of(TRAINED, at=at)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("minus", "n")
        await pilot.pause()
        assert TRAINED.info(app.screen.cursor.selected).scope == "Sequential.2"
        assert TRAINED.info(TRAINED.at(app.screen.cursor.position).node).op.name == "addmm"
        graph = app.screen.query_one(GraphCanvas)
        rows = ["".join(part.text for part in graph.render_line(y)) for y in range(graph.size.height)]
        assert any("[+] 2 Linear" in row for row in rows)


async def test_the_part_key_shows_ancestors_then_neighbours_then_all():
    at = next(n for n in range(len(TRAINED)) if TRAINED.at(n).scope == "Sequential.2" and TRAINED.at(n).node)
    app = app_of(TRAINED, at=at)
    async with app.run_test(size=(120, 40)) as pilot:
        said = []
        for _ in range(3):
            await pilot.press("a")
            await pilot.pause()
            said.append((app.screen.remark.split(":")[0], str(app.screen.query_one(GraphCanvas).border_title)))
        node = app.screen.cursor.selected
        assert [remark for remark, _ in said] == [
            f"what #{node} was made from",
            f"within 2 lines of #{node}",
            "the whole graph",
        ]
        assert said[0][1].endswith(f"what #{node} was made from")
        assert "of #" not in said[2][1]
