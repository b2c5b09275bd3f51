"""``gviz open FOLDER``: the recordings of several processes beside each other."""

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
    assert "iteration 1: rank1.gviz agrees with rank0.gviz" in out
    assert "iteration 2: rank1.gviz agrees with rank0.gviz" in out


def test_the_first_difference_is_marked_and_the_rank_that_has_it_is_opened(folder):
    code, out, _ = gviz("open", "--plain", "-c", "quit", "differs", cwd=folder("differs"))
    assert code == 0
    lines = out.splitlines()
    assert "iteration 1: rank1.gviz has other operations" in out
    assert lines[lines.index("iteration 2: rank1.gviz differs in value, first at #2 bias") + 2].split() == [
        "rank0.gviz", "iteration", "1", "rank1.gviz", "iteration", "1",
    ]  # fmt: skip
    assert any("#2 bias" in line and "gradient" in line and "|" in line for line in lines)


def test_an_empty_folder(tmp_path):
    (tmp_path / "empty").mkdir()
    code, _, err = gviz_here("open", "empty", cwd=tmp_path)
    assert (code, err) == (3, "gviz: error: there is no trace in empty\n")


@needs_tmux
@pytest.mark.parametrize(
    ("how", "first"), [("differs", "Compared: enter goes to it here"), ("same", "rank0.gviz of 2 ranks")]
)
def test_a_terminal_shows_the_ranks_that_differ_beside_each_other(folder, how, first):
    at = folder(how)
    root = Path(__file__).parents[2]
    terminal = Tmux(
        f"env -C {at} PYTHONPATH={root} XDG_CACHE_HOME={at} {sys.executable} -m gviz open {how}", columns=100
    )
    try:
        screen = terminal.until(first)
        assert (how == "same") or "rank1.gviz of 2 ranks" in screen
    finally:
        terminal.close()
