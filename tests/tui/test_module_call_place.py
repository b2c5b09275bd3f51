"""Where a module call begins there is no node: the source shows the line of the call."""

import inspect

import pytest
from driving import app_of, transcript
from recording import timeline_of

import gviz.engine as torch
from gviz.events import ScopeEntered
from gviz.trace.stepping import phase
from gviz.tui.source_location import call_frames


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())

    def forward(self, x):
        return self.twice(x)

    def twice(self, x):
        return self.fc(self.fc(x))


def trained():
    net = Net()
    x = torch.ones(1, 2)
    for _ in range(2):
        net(x).sum().backward()


def line_of(text, inside):
    lines, first = inspect.getsourcelines(inside)
    return first + next(at for at, row in enumerate(lines) if text in row)


@pytest.fixture(scope="module")
def timeline():
    return timeline_of(trained)


def test_the_call_stack_of_a_module_call_is_without_the_forwards_in_it(timeline):
    calls = {event.name: n for n, event in timeline.select((ScopeEntered,))}
    where = {name: [frame.line for frame in call_frames(timeline, n)][:-1] for name, n in calls.items()}
    outer = line_of("net(x)", trained)
    inner = [line_of("self.fc(self.fc", Net.twice), line_of("self.twice", Net.forward), outer]
    assert where == {"Net": [outer], "Net.fc": inner, "Net.fc.0": inner, "Net.fc.1": inner}
    assert call_frames(timeline, 0) == call_frames(timeline, len(timeline)) == ()


async def test_the_source_shows_the_call_and_not_the_line_of_the_selected_parameter(timeline):
    begins = [n for n, event in timeline.select((ScopeEntered,)) if not event.parent][1]
    assert phase(timeline, begins - 1) == begins
    line = line_of("net(x)", trained)
    where = transcript(timeline, f"goto {begins}", "where")
    assert f"the program is at:\n  0  test_module_call_place.py:{line}" in where
    app = app_of(timeline, at=begins - 1)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("right_curly_bracket")
        await pilot.pause()
        assert app.screen.moment.n == begins
        assert f":{line}" in app.screen.query_one("#source").border_title
        await pilot.press("j")
        await pilot.pause()
        assert f"running :{line}" in app.screen.query_one("#source").border_title
