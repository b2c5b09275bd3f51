"""``gviz open FOLDER``: the recordings of several processes beside each other."""

import json
import re
import sys
from pathlib import Path

import pytest
from cli.programs import gviz, gviz_here
from tmux import Tmux, needs_tmux

TRAINING = """\
import sys
import gviz.engine as torch
rank, differs = int(sys.argv[1]), sys.argv[2] == "differs"
torch.manual_seed(0)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    loss = (model(torch.ones(4, 2)) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    if differs and rank == 1 and step == 0:
        model.bias.grad = model.bias.grad * 3
    optimizer.step()
"""


@pytest.fixture
def folder(tmp_path):
    """Makes a folder of two ranks."""

    def make(how):
        (tmp_path / "train.py").write_text(TRAINING)
        (tmp_path / how).mkdir()
        for rank in (0, 1):
            gviz("record", "-o", f"{how}/rank{rank}.gviz", "train.py", str(rank), how, cwd=tmp_path)
        return tmp_path

    return make


def test_ranks_that_agree(folder):
    code, out, _ = gviz("open", "--plain", "-c", "quit", "same", cwd=folder("same"))
    assert code == 0
    assert "rank0.gviz  2 iterations" in out
    assert "agrees in parameters, used gradients, buffers and graph with rank0.gviz" in out


def test_the_first_difference_is_marked_and_the_rank_that_has_it_is_opened(folder):
    code, out, _ = gviz("open", "--plain", "-c", "quit", "differs", cwd=folder("differs"))
    assert code == 0
    assert "iteration 1: the optimizer used another gradient, first #2 bias" in out
    assert re.search(r"each rank's own, as expected: .*operations beside the training", out)
    lines = out.splitlines()
    heading = ["rank0.gviz", "iteration", "1", "rank1.gviz", "iteration", "1"]
    row = lines[[line.split() for line in lines].index(heading) + 1]
    assert "#2 bias" in row
    assert "gradient" in row
    assert " | " in row


def test_the_first_difference_as_text_and_as_data(folder):
    at = folder("differs")
    code, out, _ = gviz_here("diff", "differs", cwd=at)
    assert code == 1
    assert "why it matters: it was not averaged over the ranks, or changed after that on one of them." in out
    code, out, _ = gviz_here("diff", "differs", "--format", "json", cwd=at)
    found = json.loads(out)
    assert code == 1
    assert [rank["file"] for rank in found["ranks"]] == ["rank0.gviz", "rank1.gviz"]
    (one,) = found["compared"]
    assert (one["iteration"], one["what"], one["agrees"]) == (1, "gradient", False)
    parts = {(each["part"], each["shared"]) for each in one["differences"]}
    assert parts >= {("gradient", True), ("own work", False)}
    assert gviz_here("diff", "same", cwd=folder("same"))[0] == 0


def test_what_is_no_trace_and_which_rank_is_missing_is_told_in_a_line(folder):
    at = folder("same")
    (at / "same" / "rank0.gviz").rename(at / "same" / "rank2.gviz")
    (at / "same" / "rank3.gviz").write_text("no trace")
    (at / "same" / "notes.txt").write_text("mine")
    code, out, _ = gviz_here("diff", "same", cwd=at)
    assert code == 0
    assert "there is no trace of rank 0\n" in out
    assert "rank3.gviz is left out: " in out
    assert "not the trace of a rank: notes.txt\n" in out
    assert "agrees in parameters" in out


def test_of_ranks_that_were_started_again_the_last_start_is_compared(folder):
    at = folder("same")
    for rank in (0, 1):
        (at / "same" / f"rank{rank}-restart1.gviz").write_bytes((at / "same" / f"rank{rank}.gviz").read_bytes())
    code, out, _ = gviz_here("diff", "same", cwd=at)
    assert code == 0
    assert "before the ranks were started again: rank0.gviz, rank1.gviz\n" in out
    assert "agrees in parameters, used gradients, buffers and graph with rank0-restart1.gviz" in out


@pytest.mark.parametrize("asked", [("check", "runs"), ("show", "runs"), ("export", "runs", "-o", "page.html")])
def test_what_takes_one_trace_says_how_to_name_it(tmp_path, asked):
    (tmp_path / "runs").mkdir()
    for rank in (0, 1):
        (tmp_path / "runs" / f"rank{rank}.gviz").write_text("")
    code, _, err = gviz(*asked, cwd=tmp_path)
    assert code == 3
    assert "runs is a folder with 2 traces\n" in err
    assert "gviz diff runs" in err
    assert "runs/rank0.gviz" in err


def test_an_empty_folder(tmp_path):
    (tmp_path / "empty").mkdir()
    code, _, err = gviz_here("open", "empty", cwd=tmp_path)
    assert (code, err) == (3, "gviz: error: there is no trace in empty\n")


@needs_tmux
@pytest.mark.parametrize(
    ("how", "first"), [("differs", "Ranks: enter goes to it here"), ("same", "rank0.gviz of 2 ranks")]
)
def test_a_terminal_shows_the_ranks_that_differ_beside_each_other(folder, how, first):
    at = folder(how)
    root = Path(__file__).parents[2]
    terminal = Tmux(
        f"env -C {at} PYTHONPATH={root} XDG_CACHE_HOME={at} {sys.executable} -m gviz open {how}", columns=100
    )
    try:
        screen = terminal.until(first)
        assert (how == "same") or "used another gradient, first #2 bias" in screen
    finally:
        terminal.close()
