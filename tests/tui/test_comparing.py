"""``compare`` in the debugger."""

import pytest
from cli.programs import gviz
from driving import transcript
from recording import events_of

import gviz.engine as torch
from gviz.trace.log import MemoryLog
from gviz.trace.timeline import Timeline


def loops():
    w = torch.tensor(0.5, requires_grad=True)
    for steps in (1, 3):
        h = torch.tensor(1.0)
        for _ in range(steps):
            h = torch.tanh(h * w)
        h.backward()
    return w


@pytest.fixture(scope="module")
def timeline():
    return Timeline(MemoryLog(events_of(loops)))


def said(timeline, *commands):
    return transcript(timeline, "goto end", *commands).rpartition("(gviz) ")[2].splitlines()[1:]


def test_this_iteration_and_the_one_before(timeline):
    rows = said(timeline, "compare")
    assert rows[0].startswith("only in b: 2 more times mul, tanh, from #8")
    assert rows == said(timeline, "compare 1,2")
    assert max(map(len, rows)) <= 80
    assert any(row.rstrip().endswith("gradient 0.3932 | 0.04…") or "gradient" in row for row in rows)


def test_another_recording(timeline, tmp_path):
    (tmp_path / "one.py").write_text("import gviz.engine as torch\nw = torch.tensor(0.5)\nh = torch.tanh(w * 1.0)\n")
    gviz("record", "-o", "one.gviz", "one.py", cwd=tmp_path)
    rows = said(timeline, f"compare {tmp_path / 'one.gviz'} 1,1")
    assert "one.gviz" in rows[[row.startswith("#") for row in rows].index(True) - 1]


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("compare 2,2", "both sides are iteration 2 of this recording"),
        ("compare 1,7", "there is no iteration 7"),
        ("compare none.gviz", "none.gviz does not exist"),
    ],
)
def test_bad_input(timeline, command, what):
    assert said(timeline, command)[0].startswith(what)
