"""The level of the graph: a box for each node, for each function call, or for each child module."""

from math import inf, nan

import pytest
from driving import app_of, transcript
from recording import timeline_of

import gviz.engine as torch
from gviz.engine import nn
from gviz.engine.nn import functional as F
from gviz.errors import GvizError
from gviz.explain.module_costs import Costs, costs
from gviz.render.boxes.folding import modules
from gviz.render.boxes.gradient_bars import bars
from gviz.trace.graph_state import OPTIMIZER
from gviz.tui import graph_view
from gviz.tui.drawing import module_tree
from gviz.tui.drawing.module_tree import WITH_COSTS, module_rows
from gviz.tui.glyphs import UNICODE
from gviz.tui.graph_view import GRAPH_LEVELS, Folds
from gviz.tui.styled_lines import bar_cells, largest_of, plain


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)

    def forward(self, x):
        return torch.tanh(self.lin(x)) + x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(3)])
        self.head = nn.Linear(2, 3)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def train():
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.ones(2, 2), torch.tensor([0, 2])
    for _ in range(2):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()


TRAINED = timeline_of(train)


def at(level, timeline=TRAINED):
    folds = Folds(timeline)
    folds.level = level
    return folds


def titles(folds, iteration=0):
    """The calls that have a box, as they are written."""
    return [group.call.path if group.call.of_module or group.call.is_repeat else group.call.kind
            for group in folds.folded(TRAINED.iterations[iteration]).groups if group.call.of_program]  # fmt: skip


def node(name, iteration=0):
    infos = map(TRAINED.info, TRAINED.nodes.of(TRAINED.iterations[iteration]))
    return next(info.node for info in infos if info.name == name or info.op.name == name)


def test_the_levels_follow_each_other():
    folds = Folds(TRAINED)
    assert [folds.next_level(TRAINED.iterations[0]) for _ in range(4)] == ["calls", "modules", "nodes", "calls"]


def test_a_level_has_the_boxes_of_pictures_of_that_level():
    linears = [f"Net.blocks.{at}.lin" for at in range(3)]
    assert titles(at("nodes")) == []
    assert titles(at("calls")) == [*linears, "Net.head", "cross_entropy"]
    assert titles(at("modules")) == ["blocks.0–2 ×3", "Net.head", "cross_entropy"]


def test_a_repeat_expands_to_its_modules_and_a_module_to_its_calls():
    folds = at("modules")
    inside = next(n for n in TRAINED.nodes if TRAINED.info(n).scope == "Net.blocks.1")
    assert folds.expand(inside) == "blocks.0–2 ×3"
    assert titles(folds) == ["Net.blocks.0", "Net.blocks.1", "Net.blocks.2", "Net.head", "cross_entropy"]
    assert folds.expand(inside) == "Net.blocks.1"
    assert "Net.blocks.1.lin" in titles(folds)
    assert "Net.blocks.1" not in titles(folds)
    assert folds.collapse(inside) == "Net.blocks.1"
    assert folds.collapse(inside) == "blocks.0–2 ×3"
    assert titles(folds) == titles(at("modules"))
    assert folds.collapse(inside) == "Net"
    assert titles(folds) == ["Net", "cross_entropy"]
    assert folds.expand(inside) == "Net"
    assert titles(folds) == titles(at("modules"))


@pytest.mark.parametrize("typed", ["blocks.0–2", "blocks.*", "blocks**", "blocks.0–2 ×3", "blocks.0–2 Block ×3"])
def test_a_repeat_expands_by_the_text_that_names_it(typed):
    folds = at("modules")
    assert folds.expand(0, typed) == typed
    assert titles(folds) == ["Net.blocks.0", "Net.blocks.1", "Net.blocks.2", "Net.head", "cross_entropy"]
    with pytest.raises(GvizError, match="not collapsed"):
        folds.expand(0, "stairs")


def test_a_named_module_expands_out_of_its_repeat():
    folds = at("modules")
    assert "Net.blocks.2" in folds.collapsed(TRAINED.iterations[0])
    assert folds.expand(0, "Net.blocks.2") == "Net.blocks.2"
    assert titles(folds) == ["blocks.0–1 ×2", "Net.blocks.2.lin", "Net.head", "cross_entropy"]
    with pytest.raises(GvizError, match="not collapsed"):
        folds.expand(0, "Net.blocks.2")


def test_a_call_expands_to_its_nodes_in_every_iteration_and_collapses_again():
    folds = at("calls")
    head = next(n for n in TRAINED.nodes if TRAINED.info(n).scope == "Net.head")
    assert folds.expand(head) == "Net.head"
    assert "Net.head" not in titles(folds, 1)
    assert folds.collapse(head) == "Net.head"
    assert "Net.head" in titles(folds, 1)
    entropy = node("loss")
    assert folds.expand(entropy) == "cross_entropy"
    assert "cross_entropy" not in titles(folds)
    assert folds.collapse(entropy) == "cross_entropy"
    assert "cross_entropy" in titles(folds)
    assert {*folds.collapsed(TRAINED.iterations[0])} <= {OPTIMIZER, *modules(folds.graph(TRAINED.iterations[0]))}


def test_what_is_expanded_at_a_level_leaves_all_nodes_as_they_are():
    folds = at("calls")
    inside = next(n for n in TRAINED.nodes if TRAINED.info(n).scope == "Net.head")
    folds.expand(inside)
    folds.collapse(inside)
    folds.level = "nodes"
    assert titles(folds) == []


def test_a_module_that_was_expanded_among_all_nodes_is_one_box_at_a_level():
    folds = at("nodes")
    folds.collapse(0, "Net.head")
    folds.expand(0, "Net.head")
    folds.level = "calls"
    assert "Net.head" in titles(folds)


def test_expanding_all_shows_every_node():
    folds = at("modules")
    folds.expand(0, "Net.blocks.2")
    folds.expand_all()
    assert folds.level == "nodes"
    assert titles(folds) == []
    folds.level = "modules"
    assert titles(folds) == titles(at("modules"))


def test_collapsing_all_leaves_one_box_for_the_model():
    folds = at("modules")
    folds.expand(0, "Net.blocks.2")
    folds.collapse_all(TRAINED.iterations[0])
    assert titles(folds) == ["Net", "cross_entropy"]
    folds.expand(0, "Net")
    assert titles(folds) == titles(at("modules"))


def test_modules_inside_a_collapsed_one_are_collapsed():
    assert "Net.blocks.0.lin" in at("modules").collapsed(TRAINED.iterations[0])


@pytest.mark.parametrize("level", GRAPH_LEVELS)
def test_next_takes_each_box_as_one_step_both_ways(level):
    folds, forward, backward, n = at(level), [], [], 0
    while (n := folds.next_node(TRAINED, n)) < len(TRAINED):
        forward.append(n)
    n = len(TRAINED)
    while (n := folds.reverse_next_node(TRAINED, n)) > 0:
        backward.append(n)
    assert forward == backward[::-1]


def test_fewer_boxes_are_fewer_steps():
    def stops(level):
        folds, n, count = at(level), 0, 0
        while (n := folds.next_node(TRAINED, n)) < len(TRAINED):
            count += 1
        return count

    assert stops("nodes") > stops("calls") > stops("modules")


def test_a_focus_changes_no_step():
    folds = at("modules")
    stops = [folds.next_node(TRAINED, n) for n in range(len(TRAINED))]
    folds.focus(node("loss"), radius=1)
    assert [folds.next_node(TRAINED, n) for n in range(len(TRAINED))] == stops


def test_a_function_call_is_one_step_also_without_an_optimizer():
    def program():
        loss = F.cross_entropy(Net()(torch.ones(2, 2)), torch.tensor([0, 2]))
        loss.backward()

    timeline = timeline_of(program)

    def stops(level):
        return {at(level, timeline).next_node(timeline, n) for n in range(len(timeline))}

    assert stops("calls") < stops("nodes")


def test_a_graph_that_is_not_read_yet_has_no_level(monkeypatch):
    monkeypatch.setattr(graph_view, "SOON", 1)
    folds = at("modules")
    folds.reads_later = True
    assert not folds.graph_filter(TRAINED.iterations[0]).calls
    assert folds.collapsed_in_program == (OPTIMIZER,)


def test_a_program_that_has_made_no_node_collapses_the_optimizer_steps():
    assert at("modules", timeline_of(lambda: None)).collapsed_in_program == (OPTIMIZER,)


def test_a_running_program_counts_the_calls_of_collapsed_modules_as_one_node():
    assert "Net.blocks.0" in at("modules").collapsed_in_program
    assert "Net.blocks.0" not in at("calls").collapsed_in_program
    assert "Net.blocks.0.lin" in at("calls").collapsed_in_program


def test_another_run_has_the_same_level_and_the_same_calls_expanded():
    old, new = at("modules"), Folds(TRAINED)
    old.expand(0, "Net.blocks.2")
    old.focus(node("loss"))
    new.copy_collapsed(old)
    assert not new.shown_part()
    old.focus()
    assert titles(new) == titles(old) != titles(at("modules"))


def test_the_command_names_the_level_and_counts_the_boxes():
    output = transcript(TRAINED, "level calls", "level", "level nodes", "level call")
    assert "level calls, one box for each function call" in output
    assert "level modules, one box for each child module" in output
    assert "level nodes, one box for each node" in output
    assert "there is no level call" in output
    assert "did you mean calls?" in output


async def test_the_key_switches_the_level_and_the_title_names_it():
    app = app_of(TRAINED, at=40)
    async with app.run_test(size=(100, 30)) as pilot:
        found = []
        for _ in range(4):
            await pilot.pause()
            found.append(str(app.screen.query_one("#graph").border_title))
            await pilot.press("V")
    assert [title.partition("Graph")[2].partition(", ")[2] for title in found[1:3]] == ["calls", "modules"]
    assert found[0] == found[3] != found[1]


async def test_the_tree_of_modules_marks_what_the_level_collapses():
    app = app_of(TRAINED, at=40)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("V", "7")
        await pilot.pause()
        tree = app.screen.query_one("#modules")
        rows = ["".join(part.text for part in tree.render_line(y)).split()[:2] for y in range(tree.size.height)]
    assert ["+", "lin"] in rows
    assert ["-", "Net"] in rows


def test_the_tree_of_modules_has_a_column_of_memory_where_there_is_room():
    def rows(width):
        return [plain(row) for row, _ in module_rows(Folds(TRAINED), TRAINED.at(40), UNICODE, width)]

    wide, narrow = rows(WITH_COSTS), rows(WITH_COSTS - 1)
    assert wide[0].split() == ["saved"]
    assert wide[1].split()[-2:] == ["96", "B"]
    assert "gviz monitor SCRIPT" in wide[-1]
    assert all(len(row) == WITH_COSTS for row in wide[:-1])
    assert "saved" not in narrow[0]
    assert len(narrow) == len(wide) - 2


def test_a_module_without_costs_and_a_large_iteration_show_none(monkeypatch):
    def rows():
        return [plain(row).split() for row, _ in module_rows(Folds(TRAINED), TRAINED.at(40), UNICODE, WITH_COSTS)]

    assert {row[-1] for row in rows()[1:-1]} == {"B", UNICODE.nothing}
    assert not any(row[-2:] == ["0", "B"] for row in rows())
    monkeypatch.setattr(module_tree, "MOST_COSTED", 1)
    assert rows()[0] != ["saved"]


def test_times_have_a_column_of_their_own_and_need_no_hint(monkeypatch):
    times = Costs("time", 1e9, {"Net": 5e6}, {}, {})
    monkeypatch.setattr(
        module_tree, "costs", lambda timeline, kind, n: times if kind == "time" else costs(timeline, kind, n)
    )
    rows = [plain(row) for row, _ in module_rows(Folds(TRAINED), TRAINED.at(40), UNICODE, WITH_COSTS)]
    assert rows[0].split() == ["saved", "time"]
    assert rows[1].endswith("5 ms")
    assert not any("gviz monitor" in row for row in rows)


def test_the_memory_of_an_iteration_that_grows_is_not_computed_at_every_step(monkeypatch):
    kinds = []
    costs = module_tree.costs
    monkeypatch.setattr(module_tree, "costs", lambda timeline, kind, n: kinds.append(kind) or costs(timeline, kind, n))
    timeline = timeline_of(train)
    timeline.growing = True

    def says_so(n, width=WITH_COSTS):
        rows = module_rows(Folds(timeline), timeline.at(n), UNICODE, width)
        return any("saved memory: shown once the iteration is complete" in plain(row) for row, _ in rows)

    assert says_so(len(timeline))
    assert kinds == ["time"]
    assert not says_so(len(timeline), WITH_COSTS - 1)
    assert not says_so(40)  # the first iteration is complete
    timeline.growing = False
    assert not says_so(len(timeline))
    assert kinds == ["time", *["memory", "time"] * 2]


@pytest.mark.parametrize("level", ["calls", "modules"])
def test_boxes_of_a_level_are_computed_once_until_it_or_the_graph_changes(monkeypatch, level):
    calls = []
    for name in ("closed_below", "fold"):
        work = getattr(graph_view, name)
        monkeypatch.setattr(graph_view, name, lambda *args, name=name, work=work: calls.append(name) or work(*args))
    folds, first = at(level), TRAINED.iterations[0]
    once = [*["closed_below"] * (level == "modules"), "fold"]
    answers = [(folds.graph_filter(first), folds.collapsed(first), folds.folded(first)) for _ in range(3)]
    assert calls == once
    assert answers[0] == answers[1] == answers[2]
    folds.collapse(0, "Net")
    assert "Net" in folds.collapsed(first)
    folds.level = "nodes"
    assert "Net.head" not in folds.collapsed(first)
    folds.level = level
    folds.expand(0, "Net")
    assert "Net" not in folds.collapsed(first)


def test_messages_at_a_level_of_calls_speak_of_calls():
    folds = at("calls")
    for act, state in ((folds.expand, "collapsed"), (folds.collapse, "expanded")):
        with pytest.raises(GvizError, match=f"no {state} module or function call contains the selected node"):
            act(0)


def test_a_gradient_that_is_nan_has_no_bar():
    def train_into_nan():
        net = Net()
        loss = net(torch.ones(2, 2)).sum() * float("nan")
        loss.backward()

    timeline = timeline_of(train_into_nan)
    rows = [plain(row) for row, _ in module_rows(Folds(timeline), timeline.at(len(timeline)), UNICODE, WITH_COSTS)]
    assert any("|g| nan" in row for row in rows)
    assert not any(UNICODE.past in row for row in rows)


@pytest.mark.parametrize(
    ("amount", "largest", "cells"),
    [(4.0, 4.0, 8), (1.0, 4.0, 2), (1e-9, 4.0, 1), (0.0, 4.0, 0), (None, 4.0, 0), (nan, 4.0, 0), (inf, 4.0, 0)],
)
def test_bars_are_for_finite_amounts(amount, largest, cells):
    assert bar_cells(amount, largest, 8) == cells
    assert largest_of([amount, nan, inf, None]) in (amount, 0.0)


def test_a_gradient_that_is_not_finite_has_a_sign_in_the_place_of_its_bar():
    assert bars([1.0, nan, inf, 2.0, None]).split() == ["▅!!█·", "1", "..", "2"]
    assert bars([1.0, nan]).split() == ["█!", "1", "..", "1"]
    assert bars([nan, nan]).split() == ["!!", "nan", "..", "nan"]
    assert bars([1.0, None]) == bars([]) == ""
