"""A recording, in progress or over, stands for its trace wherever one is read."""

import pytest

import gviz
import gviz.engine as torch
from gviz.errors import GvizError
from gviz.trace.recording.record import NestedRecording


@pytest.fixture
def made(tmp_path):
    return gviz.record(tmp_path / "run.gviz")


def compute():
    x = torch.tensor(3.0, requires_grad=True)
    y = x * x
    y.backward()
    return x, y


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("seen_as", [lambda made: made, NestedRecording], ids=["recording", "within"])
def test_it_is_drawn_asked_and_shown_in_progress_and_over(made, ended, seen_as, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("gviz.api.show.view", lambda path, at: opened.append(gviz.load(path)))
    with made:
        kept = compute()
        if ended:
            made.close()
        of = seen_as(made)
        (path,) = gviz.export(of, tmp_path / "graph.txt")
        assert "mul" in path.read_text()
        assert "mul" in gviz.make_dot(of).source
        assert "mul" in of._repr_mimebundle_()["image/svg+xml"]
        assert "1 backward pass" in of._repr_mimebundle_()["text/plain"]
        assert "6" in gviz.why(of, "x.grad").text
        assert len(gviz.load(of)) == len(of)
        gviz.show(of)
    assert [len(timeline) > 0 for timeline in opened] == [True]
    del kept


def test_one_that_has_not_begun_says_so(made, tmp_path):
    assert made._repr_mimebundle_() == {"text/plain": f"recording to {made.path}: it has not begun"}
    with pytest.raises(GvizError, match=r"run\.gviz"):
        gviz.export(made, tmp_path / "graph.svg")
    assert not (tmp_path / "graph.svg").exists()
