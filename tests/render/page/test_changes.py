"""A page that applies its changes says at every moment what the scene and a fresh panel say."""

import pytest
from histories import histories
from hypothesis import Phase, given, settings
from render.logs import LOGS

from gviz.render.page.cells import Changes, dressed
from gviz.render.page.panel import PanelRows
from gviz.render.scene import structure
from gviz.trace.log import MemoryLog
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
    for iteration in timeline.iterations:
        shape = structure(timeline, iteration)
        nodes = timeline.nodes_of(iteration)
        low = iteration.start - 1
        changes = Changes(timeline, shape, nodes).between(low, iteration.end)
        assert [n for n, _, _ in changes] == sorted(n for n, _, _ in changes)
        for n in range(low, iteration.end + 1):
            assert replayed(changes, n) == asked(timeline, shape, nodes, n), n


@pytest.mark.parametrize("log", LOGS)
def test_changes_lead_to_what_the_scene_says(log):
    compare(LOGS[log]().timeline)


@settings(max_examples=40, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(histories)
def test_changes_lead_to_what_the_scene_says_of_any_history(log):
    compare(Timeline(MemoryLog(log)))
