"""`at` means the same to everything that a program calls."""

import pytest
from render.logs import two_shares

import gviz
from gviz.api import show as showing
from gviz.errors import GvizError

CALLS = {
    "export": lambda timeline, at, folder: gviz.export(timeline, folder / "x.dot", at=at),
    "make_dot": lambda timeline, at, folder: gviz.make_dot(timeline, at=at),
    "show": lambda timeline, at, folder: gviz.show(timeline, at=at),
    "why": lambda timeline, at, folder: gviz.why(timeline, "loss", at=at),
}


@pytest.fixture
def opened(monkeypatch):
    found = []
    monkeypatch.setattr(showing, "open_debugger", lambda _, how, **__: found.append(how.at))
    return found


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize(
    ("at", "said"),
    [
        (99, "there is no event 99"),
        (-1, "there is no event -1"),
        (True, "at cannot be True"),
        (2.5, r"at cannot be 2\.5"),
        ("nobody", "there is no moment nobody"),
    ],
)
def test_a_moment_that_is_none_is_refused(opened, tmp_path, call, at, said):
    with pytest.raises(GvizError, match=said) as caught:
        call(two_shares().timeline, at, tmp_path)
    assert caught.value.exit_code == 2
    assert not opened


def test_a_moment_may_be_in_words(opened, tmp_path):
    timeline = two_shares().timeline
    end = len(timeline)
    assert gviz.make_dot(timeline, at="end").source == gviz.make_dot(timeline, at=end).source
    assert gviz.make_dot(timeline, at="fwd").source != gviz.make_dot(timeline, at=end).source
    assert gviz.why(timeline, "loss", at="end") == gviz.why(timeline, "loss", at=end)
    gviz.show(timeline, at="end")
    assert opened == [end]
