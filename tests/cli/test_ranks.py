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
rank, how = int(sys.argv[1]), sys.argv[2]
torch.manual_seed(0)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    loss = (model(torch.ones(4, 2)) ** 2).mean()
    if how != "forgets":
        optimizer.zero_grad()
    if how == "waits" and rank and step:
        raise KeyboardInterrupt
    loss.backward()
    if how == "waits" and step:
        raise KeyboardInterrupt
    if how in ("differs", "forgets") and rank == 1 and step == 0:
        model.bias.grad = model.bias.grad * 3
    optimizer.step()
if how == "forgets":
    torch.log(torch.tensor(1.0 - 2 * rank))
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
    assert re.search(r"each rank's own, as expected: .*operations outside training", out)
    lines = out.splitlines()
    (heading,) = [
        at for at, line in enumerate(lines) if line.startswith("rank0.gviz iteration 1 | rank1.gviz iteration 1")
    ]
    row = lines[heading + 1]
    assert row.split()[:4] == ["#2", "|", "#2", "bias"]
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
    assert "from before the ranks restarted: rank0.gviz, rank1.gviz\n" in out
    assert "agrees in parameters, used gradients, buffers and graph with rank0-restart1.gviz" in out


def test_a_folder_is_checked_rank_by_rank_and_what_all_ranks_have_is_told_once(folder):
    code, out, _ = gviz_here("check", "forgets", cwd=folder("forgets"))
    assert code == 1
    assert len(re.findall(r"\[not-cleared\].* on all 2 ranks", out)) == 1
    assert len(re.findall(r"\[nan-born\].* on rank1\.gviz$", out, re.MULTILINE)) == 1
    assert re.search(r"stops agreeing with rank0\.gviz: iteration 1.*\[ranks-part\] on rank1\.gviz", out)
    assert re.search(r"to see it happen: gviz open forgets/rank\d\.gviz --at \d+\n", out)


def test_a_folder_of_ranks_that_agree_has_nothing_to_be_found(folder):
    code, out, _ = gviz_here("check", "same", cwd=folder("same"))
    assert code == 0
    assert re.fullmatch(r"nothing found in \d+ events of 2 ranks \(\d+ kinds looked for; not judged: .*\)\n", out)


def test_what_is_found_in_a_folder_as_data(folder):
    at = folder("forgets")
    found = json.loads(gviz_here("check", "--format", "json", "forgets", cwd=at)[1])
    assert [rank["file"] for rank in found["ranks"]] == ["rank0.gviz", "rank1.gviz"]
    ranks = {one["finding"]["kind"]: one["ranks"] for one in found["findings"]}
    assert ranks["not-cleared"] == ["rank0.gviz", "rank1.gviz"]
    assert ranks["nan-born"] == ranks["ranks-part"] == ["rank1.gviz"]
    log = json.loads(gviz_here("check", "--format", "sarif", "forgets", cwd=at)[1])
    first = {one["ruleId"]: one["message"]["text"].splitlines()[0] for one in log["runs"][0]["results"]}
    assert first["nan-born"].endswith(" on rank1.gviz")


def test_what_is_asked_for_decides_whether_ranks_are_compared(folder):
    at = folder("differs")
    assert gviz_here("check", "differs", cwd=at)[0] == 1
    assert gviz_here("check", "--ignore", "ranks-part", "differs", cwd=at)[0] == 0


def test_what_each_rank_says_is_printed_under_its_name_and_once_where_it_is_the_same(folder):
    at = folder("differs")
    out = gviz_here("show", "differs", "node", "bias", cwd=at)[1]
    assert out.startswith("rank0.gviz:\n")
    assert "\n\nrank1.gviz:\n" in out
    assert gviz_here("explain", "differs", "bias.grad", "--at", "1", cwd=at)[1].startswith("all 2 ranks:\n")
    assert gviz_here("why", "bias.grad", "differs", cwd=at)[1].startswith("rank0.gviz:\n")
    told = json.loads(gviz_here("show", "differs", "--format", "json", cwd=at)[1])["ranks"]
    assert [(rank["file"], rank["stats"]["iterations"]) for rank in told] == [("rank0.gviz", 2), ("rank1.gviz", 2)]


def test_what_one_rank_cannot_answer_is_told_of_it_alone(folder):
    at = folder("forgets")
    code, out, _ = gviz_here("why", "nan", "forgets", cwd=at)
    assert code == 0
    assert "rank0.gviz:\nno nan or inf in this recording" in out
    code, out, err = gviz_here("why", "nowhere", "forgets", cwd=at)
    assert (code, out) == (2, "")
    assert "nowhere" in err


def test_each_rank_gets_a_picture(folder):
    at = folder("same")
    for output, written in (
        ("graph.dot", ["graph-rank0.dot", "graph-rank1.dot"]),
        ("g{rank}.dot", ["g0.dot", "g1.dot"]),
        ("step%03d.dot", ["step001-rank0.dot", "step001-rank1.dot"]),
        ("frames/", ["frames/rank0/001.svg", "frames/rank1/001.svg"]),
    ):
        code, _, err = gviz_here("export", "same", "-o", output, "--moments", "1..2" * ("." not in output), cwd=at)
        assert (code, [name for name in written if not (at / name).exists()]) == (0, []), err
    code, _, err = gviz_here("export", "same", "-o", "-", cwd=at)
    assert code == 2
    assert "hint: gviz export same/rank0.gviz -o -\n" in err


def test_a_folder_with_traces_is_opened_and_never_run(folder):
    at = folder("same")
    code, _, err = gviz_here("record", "same", cwd=at)
    assert code == 2
    assert "same is a folder with traces, not a program\nhint: gviz open same\n" in err
    answers = [gviz_here("why", *words, cwd=at)[:2] for words in (("same", "bias.grad"), ("bias.grad", "same"))]
    assert answers[0] == answers[1]
    assert answers[0][0] == 0


def test_a_program_that_starts_no_ranks_is_alone_in_its_folder(folder):
    at = folder("same")
    assert gviz("record", "-o", "runs/", "train.py", "0", "same", cwd=at)[0] == 0
    assert gviz_here("diff", "runs", cwd=at)[1].startswith("main.gviz  2 iterations")
    (at / "same" / "rank0.gviz").rename(at / "runs" / "rank0.gviz")
    assert gviz_here("diff", "runs", cwd=at)[1].startswith("main.gviz is the program that started them\nrank0.gviz  2")


def test_ranks_of_another_run_are_kept_unless_they_are_to_be_written_over(folder):
    at = folder("same")
    code, _, err = gviz("record", "-o", "same/", "train.py", "0", "same", cwd=at)
    assert code == 1
    assert "same already contains traces of ranks\nhint: choose another folder, or --force overwrites them\n" in err
    assert gviz("record", "-f", "-o", "same/", "train.py", "0", "same", cwd=at)[0] == 0
    assert [path.name for path in (at / "same").iterdir()] == ["main.gviz"]


def test_of_ranks_that_were_interrupted_where_they_waited_the_one_that_came_less_far_is_told(folder):
    out = gviz_here("diff", "waits", cwd=folder("waits"))[1]
    assert re.search(r"rank0\.gviz  2 iterations, \d+ events, interrupted \(.*train\.py:15\)", out)
    assert re.search(r"rank1\.gviz  2 iterations, \d+ events, interrupted \(.*train\.py:12\)", out)
    assert "iteration 2: it is not finished, both stop early, rank1.gviz first" in out


def test_an_empty_folder(tmp_path):
    (tmp_path / "empty").mkdir()
    code, _, err = gviz_here("open", "empty", cwd=tmp_path)
    assert (code, err) == (3, "gviz: error: there is no trace in empty\n")


@needs_tmux
@pytest.mark.parametrize(("how", "first"), [("differs", "Ranks: Enter goes there"), ("same", "rank0.gviz of 2 ranks")])
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


def test_a_rank_that_cannot_be_read_is_left_out_of_the_pictures_and_said(folder):
    at = folder("same")
    (at / "same" / "rank0.gviz").write_text("no trace")
    code, _, err = gviz_here("export", "same", "-o", "graph.dot", cwd=at)
    assert code == 0
    assert err.startswith("rank0.gviz is left out: ")
    assert "wrote graph-rank1.dot\n" in err
    assert [path.name for path in at.glob("*.dot")] == ["graph-rank1.dot"]
