"""What is said of a node in a panel, whoever draws it."""

import re

import msgspec
import pytest
from cli.programs import gviz
from recording import events_of, timeline_of
from render.logs import LOGS
from stories import demo, failed, iterations
from tui.test_drawing import panel

import gviz.engine as torch
from gviz.engine import graphs, static
from gviz.events import DataSet, StorageWritten
from gviz.explain.node_facts import SECTIONS, NodeView
from gviz.render.page.changes import PanelRows
from gviz.trace.event_log import MemoryLog
from gviz.trace.file.reader import open_trace
from gviz.trace.timeline import Timeline


def facts(timeline, n, node, **options):
    moment = timeline.at(n)
    view = NodeView(timeline, moment, node, moment.state(node), **options)
    return {section.name: list(section.facts(view)) for section in SECTIONS}


def texts(rows):
    return [f"{fact.name}: {''.join(part.text for part in fact.parts)}" for fact in rows]


def squeezed(rows):
    return " ".join(" ".join(rows).split())


@pytest.mark.parametrize("story", [demo, failed, iterations])
def test_the_page_and_the_terminal_in_full_say_the_same(story):
    timeline = story()
    for n in range(1, len(timeline) + 1, 4):
        for node in timeline.nodes:
            state = timeline.at(n).state(node)
            rows = [text.split("\t") for _, text in sorted(PanelRows(timeline).rows(timeline.at(n), node, state))]
            drawn = squeezed(panel(timeline, n, node, width=200, full=True))
            for _, name, text in rows:
                assert squeezed([text]) in drawn
                assert name in (*drawn.split(), "formula") or name in drawn


def test_every_section_says_something_somewhere():
    answered = set()
    for make in LOGS.values():
        timeline = make().timeline
        for node in timeline.nodes:
            for n in (0, len(timeline)):
                answered |= {name for name, rows in facts(timeline, n, node).items() if rows}
    assert answered >= {section.name for section in SECTIONS} - {"in module"}


def test_in_full_a_contribution_says_its_rule_and_its_event():
    brief, full = (facts(demo(), 23, 1, full=full)["incoming"] for full in (False, True))
    assert texts(brief)[1:] == ["+=: -6  from #4 b = mul", "+=: -8  from #3 a = mul"]
    assert texts(full)[1] == "+=: -6  from #4 b = mul at demo.py:6: g * a = 1 * -6 = -6, event 18"
    assert full[1].parts[-1].event == 18


def test_before_a_node_is_made_only_when_and_where_is_said():
    assert {name for name, rows in facts(demo(), 1, 4).items() if rows} == {"to be made", "at"}


def test_a_node_of_a_module_says_so():
    model = torch.nn.Sequential(torch.nn.Linear(2, 1))
    timeline = timeline_of(lambda: model(torch.ones(2)).backward())
    said = [texts(facts(timeline, len(timeline), node)["in module"]) for node in timeline.nodes]
    assert ["in module: Sequential.0"] in said


def test_a_graph_that_is_built_first_says_that_its_numbers_come():
    def program():
        with static.Graph() as graph:
            x = static.placeholder("x")
            y = x * 2.0
        graph.run([y], {x: 3.0})

    timeline = timeline_of(program)
    assert texts(facts(timeline, 1, 1)["value"]) == ["value: none yet: the graph is built before its numbers"]
    assert texts(facts(timeline, len(timeline), 1)["value"])[0] == "value: 3  () f32"


def test_a_write_names_who_wrote_unless_it_is_the_tensor_itself():
    def program():
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        w.data.add_(1.0)

    log = list(events_of(program))
    own = [msgspec.structs.replace(event, node=1) if isinstance(event, StorageWritten) else event for event in log]
    said = []
    for events in (log, own):
        timeline = Timeline(MemoryLog(events))
        for answer in facts(timeline, len(timeline), 1).values():
            said += [text for text in texts(answer) if "written in place" in text]
    named, unnamed = said
    assert re.fullmatch(r": written in place by #\d+, version 1, event \d+", named)
    assert unnamed.startswith(": written in place, version 1, event ")


def test_a_result_that_was_given_other_data_says_so_beside_how_it_was_made():
    def program():
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        y.data = torch.zeros(2)

    timeline = timeline_of(program)
    node = next(node for node in timeline.nodes if timeline.info(node).op.name == "mul")
    given = next(n for n in range(1, len(timeline) + 1) if isinstance(timeline.event(n), DataSet))
    before, after = facts(timeline, given - 1, node), facts(timeline, given, node)
    assert texts(after["formula"]) == texts(before["formula"]) == ["formula: [1 1] (x) * 2 = [2 2]"]
    assert texts(before["value"]) == ["value: [2 2]  (2,) f32"]
    assert texts(after["value"]) == ["value: [0 0]  (2,) f32", f": was given other data, event {given}"]


def test_what_a_replay_computed_is_told_with_the_numbers_it_computed_with():
    def program():
        x = torch.tensor([1.0, 2.0])
        graph = graphs.Graph()
        with graphs.capture(graph):
            y = x * 3.0 + 1.0
        x.copy_(torch.tensor([5.0, 6.0]))
        graph.replay()
        return y

    timeline = Timeline(MemoryLog(list(events_of(program))))
    sums = [node for node in timeline.nodes if timeline.info(node).op.name == "add"]
    before, after = (facts(timeline, n, sums[0]) for n in (timeline.info(sums[0]).born, len(timeline)))
    assert texts(before["formula"])[0].endswith("[3 6] (#3) + 1 = [4 7]")
    assert texts(after["formula"])[0].endswith("[15 18] (#3) + 1 = [16 19]")
    assert texts(after["with"])[0] == "with: #3  [15 18]"


def test_a_use_that_is_to_come_is_not_said_to_be_none():
    timeline = demo()
    assert texts(facts(timeline, 1, 1)["used by"]) == ["used by: nothing yet"]
    assert texts(facts(timeline, len(timeline), 5)["used by"]) == ["used by: nothing"]
    timeline.growing = True
    assert texts(facts(timeline, len(timeline), 5)["used by"]) == ["used by: nothing yet"]


LINEAR = """
import torch
from torch.nn.functional import linear
layer, w = torch.nn.Linear(3, 2), torch.nn.Parameter(torch.ones(2, 3))
x = torch.ones(4, 3)
y = layer(x)
z = linear(
    x, w)
own = x @ w.t()
"""


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
def test_the_transposed_weight_that_nobody_wrote_says_what_it_is_for(engine, tmp_path):
    (tmp_path / "t.py").write_text(LINEAR)
    assert gviz("record", "--engine", engine, "-o", "t.gviz", "t.py", cwd=tmp_path)[0] == 0
    with open_trace(tmp_path / "t.gviz") as log:
        timeline = Timeline(log)
        transposed = [node for node in timeline.nodes if timeline.info(node).op.name == "t"]
        said = [texts(facts(timeline, len(timeline), node)["in module"])[-1:] for node in transposed]
    why = ": a linear layer is x @ weight.T + bias: this is its weight.T, which no line of the program writes"
    assert said == [[why], [why], []]
