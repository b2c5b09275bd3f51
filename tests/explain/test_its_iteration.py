"""What a backward pass has brought belongs to it: no view shows it as news of the next iteration."""

import json
import re

import pytest
from recording import timeline_of
from render.test_scene import box
from tui.test_drawing import panel

import gviz.engine as torch
from gviz.engine import static
from gviz.events import GradSet
from gviz.explain.node_facts import NodeView, incoming_facts
from gviz.render.boxes.graph_options import Options
from gviz.render.boxes.graph_structure import structure
from gviz.render.forms.picture_json import render
from gviz.render.page.changes import Changes, dressed
from gviz.render.picture_request import ExportOptions
from gviz.render.scene import scene
from gviz.trace.node_gradients import in_its_iteration


def two_steps():
    w = torch.tensor(3.0, requires_grad=True)
    for _ in range(2):
        w.grad = None
        loss = w * w
        loss.backward()


def recorded(program=two_steps):
    return timeline_of(program)


def at_the_start_of_the_second(timeline):
    n = timeline.iterations[1].start
    return n, timeline.at(n)


def test_the_pictures_of_a_forward_pass_show_nothing_of_the_pass_before():
    timeline = recorded()
    n, moment = at_the_start_of_the_second(timeline)
    drawn = scene(structure(timeline, timeline.iterations[1], Options()), timeline, moment)
    leaf = box(drawn, "n1")
    assert (leaf.status, [f"{row.label} {row.text}" for row in leaf.rows[1:]]) == ("", ["incoming ·", ".grad None"])
    assert all("flowed" not in edge.states for edge in drawn.edges)
    nodes = json.loads(render(timeline, n, ExportOptions()))["nodes"]
    assert next(each for each in nodes if each["node"] == 1)["outputs"][0]["incoming"] is None


def test_terminal_and_page_agree():
    timeline = recorded()
    n, _ = at_the_start_of_the_second(timeline)
    shown = "\n".join(panel(timeline, n, 1))
    assert "none yet" in shown, shown
    shape = structure(timeline, timeline.iterations[1])
    said = {cell: text for _, cell, text in Changes(timeline, shape, [1]).between(n - 1, n)}
    assert {cell: said[cell] for cell, _ in dressed(shape, timeline, timeline.at(n))} == dict(
        dressed(shape, timeline, timeline.at(n))
    )


def test_the_second_pass_shows_its_own_and_the_end_keeps_it():
    timeline = recorded()
    state = timeline.at(len(timeline)).state(1)
    assert in_its_iteration(timeline, len(timeline), state) is state
    (fact,) = list(incoming_facts(NodeView(timeline, timeline.at(len(timeline)), 1, state), state))[:1]
    assert fact.parts[0].text == "6"


def test_a_result_of_an_earlier_graph_keeps_what_its_pass_brought():
    timeline = recorded()
    n, moment = at_the_start_of_the_second(timeline)
    state = moment.state(2)
    assert in_its_iteration(timeline, n, state) is state


@pytest.mark.parametrize("how", ["none", "zero"])
def test_what_a_pass_brought_is_over_once_the_grad_is_cleared(how):
    def program():
        w = torch.tensor(3.0, requires_grad=True)
        (w * w).backward()
        if how == "none":
            w.grad = None
        else:
            w.grad.zero_()

    timeline = recorded(program)
    ((cleared, _),) = timeline.select((GradSet,), 1, len(timeline) + 1)
    before, after = ("\n".join(panel(timeline, n, 1)) for n in (cleared - 1, cleared))
    assert "incoming 6" in before
    assert "incoming none yet" in after
    assert (
        box(scene(structure(timeline, timeline.iterations[0]), timeline, timeline.at(cleared)), "n1").rows[1].text
        == "·"
    )


def test_a_graph_before_its_numbers_says_rules_and_no_arithmetic():
    def program():
        with static.Graph():
            x = static.placeholder("x", requires_grad=True)
            static.gradients(x * x, x)

    timeline = recorded(program)
    said = "\n".join(panel(timeline, len(timeline), 2))
    assert "to #1 x: g * x\n" in said
    assert "2 of 2, without" in said
    assert re.search(r"\bg \(\)", said) is None
