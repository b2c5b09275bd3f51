"""Words in another order than a command takes them: options behind the first are read, or what to type is said."""

import pytest
from cli.programs import gviz, gviz_here

PROGRAM = "import gviz.engine as torch\nx = torch.ones(2, requires_grad=True)\nloss = (x * x).sum()\nloss.backward()\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("order")
    (folder / "t.py").write_text(PROGRAM)
    assert gviz("record", "-o", "t.gviz", "t.py", cwd=folder)[0] == 0
    return folder


@pytest.mark.parametrize(
    "typed", ["why t.gviz x.grad", "why -v t.py x.grad", "why t.py -v x.grad", "explain x.grad t.gviz"]
)
def test_a_place_and_its_file_may_be_in_either_order(folder, typed):
    command, *words = typed.split()
    swapped = [command, *(word for word in words if word == "-v"), *reversed([word for word in words if word != "-v"])]
    answers = [gviz_here(*each, cwd=folder)[:2] for each in ([command, *words], swapped)]
    assert answers[0] == answers[1]
    assert answers[0][0] == 0
    assert "x: .grad is" in answers[0][1]


@pytest.mark.parametrize(
    ("typed", "exit_code", "said"),
    [
        (["explain", "x.grad", "t.py"], 2, "hint: gviz why x.grad t.py\n"),
        (["explain", "t.py", "x.grad"], 3, "hint: gviz why x.grad t.py runs it"),
        (["show", "tape", "t.gviz"], 2, "hint: gviz show t.gviz tape\n"),
        (["show", "x", "t.gviz"], 2, "hint: gviz show t.gviz node x\n"),
        (["show", "t.gviz", "x"], 2, "hint: gviz show t.gviz node x prints a node\n"),
        (["show", "t.gviz", "sumary"], 2, "hint: did you mean summary?\n"),
        (["whatif", "x = 5", "no.gviz"], 3, "no.gviz does not exist"),
        (["export", "t.gviz", "g.svg"], 2, "hint: gviz export t.gviz -o g.svg\n"),
        (["export", "g.svg", "t.gviz"], 2, "hint: gviz export t.gviz -o g.svg\n"),
        (["export", "t.gviz"], 2, "hint: gviz export t.gviz -o graph.svg; the suffix"),
    ],
)
def test_the_other_order_is_answered_with_what_to_type(folder, typed, exit_code, said):
    code, out, err = gviz_here(*typed, cwd=folder)
    assert (code, out) == (exit_code, "")
    assert said in err
    assert not (folder / "g.svg").exists()


@pytest.mark.parametrize(
    "options", [["--at", "3"], ["--at=3", "--format", "text"], ["--engine", "builtin", "-f", "--at", "3"]]
)
def test_options_stand_before_or_behind_the_place(folder, options):
    before = gviz_here("why", *options, "x.grad", "t.gviz", cwd=folder)
    assert gviz_here("why", "x.grad", *options, "t.gviz", cwd=folder) == before
    assert before[0] == 0


def test_what_stands_behind_the_script_is_still_the_script_s(folder):
    (folder / "asks.py").write_text(f"import sys\n{PROGRAM}print(sys.argv[1:])\n")
    code, _, err = gviz("why", "x.grad", "--all", "asks.py", "--at", "3", "-m", cwd=folder)
    assert code == 0
    assert "['--at', '3', '-m']" in err
    assert "note: --at comes after asks.py" in err


def test_a_name_for_the_trace_behind_the_script_is_said_to_be_the_script_s(folder):
    said = "note: -o comes after t.py, so the script gets it"
    assert said in gviz("record", "-o", "a.gviz", "t.py", "-o", "b.gviz", cwd=folder)[2]
    assert said not in gviz("record", "-fo", "a.gviz", "t.py", "-o", "b.csv", cwd=folder)[2]


def test_a_flag_of_gviz_behind_the_script_is_named_and_the_commands_that_follow_have_it_in_its_place(folder):
    (folder / "bug.py").write_text(
        "import gviz.engine as torch\nw = torch.ones(3, requires_grad=True)\nh = torch.sigmoid(w * 2)\n"
        "h -= 1\n(h ** 2).sum().backward()\n"
    )
    code, out, err = gviz("check", "bug.py", "-v", "other", cwd=folder)
    assert code == 1
    assert "note: -v comes after bug.py" in err
    assert "gviz check -v bug.py other prints" in out
    assert "gviz run bug.py other, then" in out
    (folder / "own.py").write_text((folder / "bug.py").read_text() + "# -v: be verbose\n")
    _, out, err = gviz("check", "own.py", "-v", cwd=folder)
    assert "note:" not in err
    assert "gviz check -v own.py -v prints" in out, "the script has a -v of its own"
