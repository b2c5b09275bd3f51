"""The level of the graph: a box for each node, for each function call, or for each child module."""

import pytest
from driving import app_of, transcript
from recording import timeline_of

import gviz.engine as torch
from gviz.engine import nn
from gviz.engine.nn import functional as F
from gviz.errors import GvizError
from gviz.tui import folds as folds_module
from gviz.tui.drawing import lists
from gviz.tui.drawing.lists import WITH_COSTS, module_rows
from gviz.tui.folds import GRAPH_LEVELS, Folds
from gviz.tui.glyphs import UNICODE
from gviz.tui.styled_lines import plain


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
    assert [folds.next_level() for _ in range(4)] == ["calls", "modules", "nodes", "calls"]


def test_a_level_has_the_boxes_of_pictures_of_that_level():
    linears = [f"Net.blocks.{at}.lin" for at in range(3)]
    assert titles(at("nodes")) == []
    assert titles(at("calls")) == [*linears, "Net.head", "cross_entropy"]
    assert titles(at("modules")) == ["blocks.0–2 ×3", "Net.head", "cross_entropy"]


def test_a_repeat_expands_to_its_modules_and_a_module_to_its_calls():
    folds = at("modules")
    inside = next(n for n in TRAINED.nodes if TRAINED.info(n).scope == "Net.blocks.1")
    assert folds.open(inside) == "blocks.0–2 ×3"
    assert titles(folds) == ["Net.blocks.0", "Net.blocks.1", "Net.blocks.2", "Net.head", "cross_entropy"]
    assert folds.open(inside) == "Net.blocks.1"
    assert "Net.blocks.1.lin" in titles(folds)
    assert "Net.blocks.1" not in titles(folds)
    assert folds.close(inside) == "Net.blocks.1"
    assert folds.close(inside) == "blocks.0–2 ×3"
    assert titles(folds) == titles(at("modules"))
    assert folds.close(inside) == "Net"
    assert titles(folds) == ["Net", "cross_entropy"]
    assert folds.open(inside) == "Net"
    assert titles(folds) == titles(at("modules"))


def test_a_named_module_expands_out_of_its_repeat():
    folds = at("modules")
    assert "Net.blocks.2" in folds.collapsed(TRAINED.iterations[0])
    assert folds.open(0, "Net.blocks.2") == "Net.blocks.2"
    assert titles(folds) == ["blocks.0–1 ×2", "Net.blocks.2.lin", "Net.head", "cross_entropy"]
    with pytest.raises(GvizError, match="not collapsed"):
        folds.open(0, "Net.blocks.2")


def test_a_call_expands_to_its_nodes_in_every_iteration_and_collapses_again():
    folds = at("calls")
    head = next(n for n in TRAINED.nodes if TRAINED.info(n).scope == "Net.head")
    assert folds.open(head) == "Net.head"
    assert "Net.head" not in titles(folds, 1)
    assert folds.close(head) == "Net.head"
    assert "Net.head" in titles(folds, 1)
    entropy = node("loss")
    assert folds.open(entropy) == "cross_entropy"
    assert "cross_entropy" not in titles(folds)
    assert folds.close(entropy) == "cross_entropy"
    assert "cross_entropy" in titles(folds)


def test_what_is_expanded_at_a_level_leaves_all_nodes_as_they_are():
    folds = at("calls")
    inside = next(n for n in TRAINED.nodes if TRAINED.info(n).scope == "Net.head")
    folds.open(inside)
    folds.close(inside)
    folds.level = "nodes"
    assert titles(folds) == []


def test_expanding_all_shows_every_node():
    folds = at("modules")
    folds.open_all()
    assert folds.level == "nodes"
    assert titles(folds) == []


def test_collapsing_all_leaves_one_box_for_the_model():
    folds = at("modules")
    folds.open(0, "Net.blocks.2")
    folds.close_all(TRAINED.iterations[0])
    assert titles(folds) == ["Net", "cross_entropy"]


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


def test_a_running_program_counts_the_calls_of_collapsed_modules_as_one_node():
    assert "Net.blocks.0" in at("modules").closed
    assert "Net.blocks.0" not in at("calls").closed
    assert "Net.blocks.0.lin" in at("calls").closed


def test_another_run_has_the_same_level_and_the_same_calls_expanded():
    old, new = at("modules"), Folds(TRAINED)
    old.open(0, "Net.blocks.2")
    new.copy_closed(old)
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


def test_the_memory_of_an_iteration_that_grows_is_not_computed_at_every_step(monkeypatch):
    kinds = []
    costs = lists.costs
    monkeypatch.setattr(lists, "costs", lambda timeline, kind, n: kinds.append(kind) or costs(timeline, kind, n))
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
        work = getattr(folds_module, name)
        monkeypatch.setattr(folds_module, name, lambda *args, name=name, work=work: calls.append(name) or work(*args))
    folds, first = at(level), TRAINED.iterations[0]
    once = [*["closed_below"] * (level == "modules"), "fold"]
    answers = [(folds.graph_filter(first), folds.collapsed(first), folds.folded(first)) for _ in range(3)]
    assert calls == once
    assert answers[0] == answers[1] == answers[2]
    folds.close(0, "Net")
    assert "Net" in folds.collapsed(first)
    folds.level = "nodes"
    assert "Net.head" not in folds.collapsed(first)
    folds.level = level
    folds.open(0, "Net")
    assert "Net" not in folds.collapsed(first)


def test_messages_at_a_level_of_calls_speak_of_calls():
    folds = at("calls")
    for act, state in ((folds.open, "collapsed"), (folds.close, "expanded")):
        with pytest.raises(GvizError, match=f"no {state} module or function call contains the selected node"):
            act(0)
