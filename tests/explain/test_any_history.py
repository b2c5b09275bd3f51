"""Whatever happened, and whatever a file claims to have happened: every question has an answer."""

from contextlib import suppress

import pytest
from histories import histories
from hypothesis import given, settings
from recording import events_of
from stories import chain, demo, failed, hostile, iterations, late

import gviz.engine as torch
from gviz.errors import GvizError
from gviz.explain.check import check
from gviz.explain.finding import LEVELS, lines, whole
from gviz.explain.why import why
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline

STORIES = [demo, failed, hostile, late, iterations, lambda: chain(40)]


def ask_everything(timeline):
    for node in timeline.nodes:
        for n in {timeline.nodes.born(node), len(timeline)}:
            for aspect in (None, "value", "grad"):
                found = why(timeline, timeline.at(n), node, aspect)
                assert found.text
                assert all(fact.event <= len(timeline) for fact in whole(found))
    for one in check(timeline):
        assert one.level in LEVELS
        assert all(text for _, text, _ in lines(one.finding))


@pytest.mark.parametrize("story", STORIES)
def test_every_question_about_a_story_has_an_answer(story):
    ask_everything(story())


@settings(max_examples=60, deadline=None)
@given(histories)
def test_every_question_about_any_history_has_an_answer(events):
    ask_everything(Timeline(MemoryLog(events)))


def training():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        loss = torch.nn.functional.mse_loss(model(torch.ones(4, 2)), torch.ones(4, 1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def test_a_recording_in_which_something_is_missing_is_answered_or_refused():
    """What is left out, as damage or malice would, is a node or a definition; a check never ends in a surprise."""
    events = events_of(training)
    for missing in range(0, len(events), 3):
        with suppress(GvizError):
            check(Timeline(MemoryLog([*events[:missing], *events[missing + 1 :]])))
