"""A page that applies its changes says at every moment what the scene and a fresh panel say."""

from itertools import product

import pytest
from explain.programs import recorded_text
from histories import histories
from hypothesis import Phase, given, settings
from msgspec.structs import replace
from recording import events_of, timeline_of
from render.logs import LOGS

import gviz.engine as torch
from gviz.events import BackwardStarted, Marked, NodeCreated, RequiresGradSet
from gviz.render.boxes.graph_options import Options
from gviz.render.boxes.graph_structure import structure
from gviz.render.page.changes import Changes, PanelRows, dressed, nodes_in
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline


def replayed(changes, n):
    """What every cell says at a moment, if changes are applied one after the other."""
    said = {cell: text for moment, cell, text in changes if moment <= n}
    return {cell: text for cell, text in said.items() if text}


def asked(timeline, shape, nodes, n):
    """What every cell says at a moment, asked without any memory."""
    moment = timeline.at(n)
    said = dict(dressed(shape, timeline, moment))
    for node in nodes:
        rows = PanelRows(timeline).rows(moment, node, moment.state(node))
        said |= {(node, key): text for key, text in rows}
    return {cell: text for cell, text in said.items() if text}


def compare(timeline):
    for iteration, marks in product(timeline.iterations, (False, True)):
        shape = structure(timeline, iteration, Options(marks=marks))
        nodes = nodes_in(timeline, iteration, shape)
        low = iteration.start - 1
        moments = range(low, iteration.end + 1)
        expected = [asked(timeline, shape, nodes, n) for n in moments]  # before anything follows from event to event
        changes = Changes(timeline, shape, nodes).between(low, iteration.end)
        assert [n for n, _, _ in changes] == sorted(n for n, _, _ in changes)
        for n, said in zip(moments, expected, strict=True):
            assert replayed(changes, n) == said, n


@pytest.mark.parametrize("log", LOGS)
def test_changes_lead_to_what_the_scene_says(log):
    compare(LOGS[log]().timeline)


@settings(max_examples=40, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(histories)
def test_changes_lead_to_what_the_scene_says_of_any_history(log):
    compare(Timeline(MemoryLog(log)))


def switched_on_late():
    """The rule for `x` reads differently once `x` needs a gradient, though nothing happens to the product."""
    x, w = torch.ones(2), torch.ones(2, requires_grad=True)
    product = x * w
    x.requires_grad_()
    (product.sum() + x.sum()).backward()
    x.requires_grad_(False)


def hooked():
    """Hooks replace what arrives, at an operation, at a leaf, and at the root that a second pass begins with."""
    x = torch.ones(2, requires_grad=True)
    y = x * 3
    loss = y.sum()
    for each, factor in ((x, 2), (y, 5), (loss, 7)):
        each.register_hook(lambda g, factor=factor: g * factor)
    loss.backward(retain_graph=True)
    loss.backward(inputs=[x])


def nested():
    """A hook runs a pass of its own to a leaf that the outer pass has reached by half."""
    x = torch.ones(2, requires_grad=True)
    y = x * 3

    def inner(grad):
        with torch.enable_grad():
            (x * 5).sum().backward()

    y.register_hook(inner)
    (y.sum() + x.sum()).backward()


def cleared():
    """What a pass has brought is taken back in the iteration that it was of."""
    x = torch.ones(2, requires_grad=True)
    loss = (x * x).sum()
    loss.backward(retain_graph=True)
    x.grad = None
    loss.backward()
    x.grad.zero_()


@pytest.mark.parametrize("program", [switched_on_late, hooked, nested, cleared])
def test_changes_lead_to_what_the_scene_says_of_a_program(program):
    compare(timeline_of(program))


def test_changes_lead_to_the_box_of_a_failed_call(tmp_path):
    program = """
import torch
x = torch.ones(2, requires_grad=True)
y = x * 2
print("before")
z = y @ torch.ones(3)
"""
    timeline = recorded_text(program, tmp_path)
    assert "failed" in [place.role for place in structure(timeline, timeline.iterations[-1], Options()).places]
    compare(timeline)


def test_a_pass_may_reach_what_it_was_not_to_reach():
    def twice():
        x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        loss = (x * w).sum() + w.sum()
        loss.backward(retain_graph=True)
        loss.backward()

    events = list(events_of(twice))
    last = max(at for at, event in enumerate(events) if isinstance(event, BackwardStarted))
    events[last] = replace(events[last], inputs=((1, 0),))
    compare(Timeline(MemoryLog(events)))


def test_a_wish_for_a_gradient_that_was_there_already_is_over_at_the_next_event():
    events = list(events_of(lambda: (torch.ones(2, requires_grad=True) * 2).sum().backward()))
    born = next(at for at, event in enumerate(events) if isinstance(event, NodeCreated))
    node = events[born].node
    wishes = [RequiresGradSet(node, True), Marked("then")] * 2
    compare(Timeline(MemoryLog([*events[: born + 1], Marked("first"), *wishes, *events[born + 1 :]])))


def test_the_gradients_on_lines_are_written_as_mathematics():
    def program():
        x = torch.tensor(2.0, requires_grad=True)
        h = x * 3
        (h * h + x).backward()

    timeline = timeline_of(program)
    options = Options(marks=False)
    shape = structure(timeline, timeline.iterations[0], options)
    labels = {text.split("\t")[-1] for _, _, text in Changes(timeline, shape).between(0, len(timeline))}
    assert {"∂L/∂h += 6", "∂L/∂x += 36"} <= labels
