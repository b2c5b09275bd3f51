"""``gviz whatif`` as a user meets it."""

import xml.etree.ElementTree as ET

import pytest
from cli.programs import gviz, gviz_here

PROGRAM = """\
import gviz.engine as torch
x = torch.tensor(3.0, requires_grad=True)
w = torch.tensor([1.0, 2.0], requires_grad=True)
z = x * x + w.sum()
z.backward()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whatif")
    (folder / "program.py").write_text(PROGRAM)
    gviz("record", "-o", "program.gviz", "program.py", cwd=folder)
    return folder


def test_old_and_new_beside_each_other(folder):
    code, out, err = gviz("whatif", "program.gviz", "x = 5", "--show", "z,x.grad", cwd=folder)
    assert (code, err) == (0, "")
    assert [line.split() for line in out.splitlines()] == [
        ["recorded", "what", "if"],
        ["z", "12", "28"],
        ["x.grad", "6", "10"],
    ]


def test_a_script_is_run_first_and_may_come_last(folder):
    (folder / "scaled.py").write_text(f"import sys\n{PROGRAM.replace('3.0', 'float(sys.argv[1])')}print('ran')\n")
    for words in (["scaled.py", "x = 5"], ["x = 5", "scaled.py"]):
        code, out, err = gviz("whatif", *words, "--show", "z", "--", "4", cwd=folder)
        assert (code, err) == (0, "ran\n")
        assert out.splitlines()[1].split() == ["z", "19", "28"]
    assert gviz("whatif", "x = 5", "program.gviz", cwd=folder) == gviz("whatif", "program.gviz", "x = 5", cwd=folder)
    assert not [*folder.glob("scaled*.gviz")]


def test_everything_that_differs(folder):
    code, out, _ = gviz_here("whatif", "program.gviz", "x = 5", cwd=folder)
    assert code == 0
    assert out.splitlines()[0] == "#1 x                 value 3 -> 5, gradient 6 -> 10"
    assert "w" not in [line.split()[1] for line in out.splitlines()]


def test_nothing_that_differs(folder):
    assert gviz_here("whatif", "program.gviz", "x = 3", cwd=folder)[1] == "nothing depends on it: no number changes.\n"


def test_the_branch_is_a_trace(folder, tmp_path):
    gviz_here("whatif", "program.gviz", "w[1] = 7", "-o", str(tmp_path / "branch.gviz"), cwd=folder)
    code, out, _ = gviz_here("show", "branch.gviz", "node", "z", cwd=tmp_path)
    assert code == 0
    assert "17" in out
    assert "program.py:4" in out


def test_a_range_draws_curves(folder, tmp_path):
    code, out, _ = gviz_here("whatif", "program.gviz", "x = -3..3", "--show", "z,x.grad", "--points", "5", cwd=folder)
    lines = out.splitlines()
    assert (code, lines[0]) == (0, "z over x")
    assert sum(line.count("•") + line.count("*") for line in lines) == 10
    assert lines[1].split()[0] == "12"
    path = tmp_path / "curve.svg"
    gviz_here("whatif", "program.gviz", "x = -3..3", "--show", "z", "--points", "5", "-o", str(path), cwd=folder)
    (curve,) = ET.parse(path).iter("{http://www.w3.org/2000/svg}polyline")
    heights = [float(pair.split(",")[1]) for pair in curve.get("points").split()]
    assert heights[0] == heights[4] < heights[1] == heights[3] < heights[2]


def test_a_range_on_top_of_a_change(folder):
    _, out, _ = gviz_here("whatif", "program.gviz", "w[0] = 9", "x = -1..1", "--show", "z", "--points", "3", cwd=folder)
    assert [line.split()[0] for line in out.splitlines() if " | " in line and line.split()[0] != "|"] == ["12", "11"]


def test_nodes_are_those_of_the_recording_also_where_the_branch_numbers_them_anew(tmp_path):
    loop = PROGRAM.replace("z = x", "for _ in range(2):\n    z = x").replace("z.backward()", "    z.backward()")
    (tmp_path / "loop.py").write_text(loop)
    gviz("record", "-o", "loop.gviz", "loop.py", cwd=tmp_path)
    _, listed, _ = gviz_here("whatif", "loop.gviz", "x = 5", cwd=tmp_path)
    number = next(line.split()[0] for line in listed.splitlines() if line.split()[1:2] == ["z"])
    code, out, _ = gviz_here("whatif", "loop.gviz", "x = 5", "--show", f"{number}, z", cwd=tmp_path)
    assert code == 0
    assert [line.split()[1:] for line in out.splitlines()[2:]] == [["12", "28"], ["12", "28"]]


def test_what_could_not_be_run_again_is_said_once_and_nothing_is_made_up(tmp_path):
    (tmp_path / "large.py").write_text(
        "import gviz.engine as torch\n"
        "ws = [torch.nn.Parameter(torch.ones(500)) for _ in range(6)]\n"
        "y = torch.tensor(2.0, requires_grad=True)\n"
        "z = sum((w * w).sum() for w in ws) + y\n"
        "z.backward()\n"
    )
    gviz("record", "--values", "64", "-o", "large.gviz", "large.py", cwd=tmp_path)
    code, out, _ = gviz_here("whatif", "large.gviz", "y = 5", cwd=tmp_path)
    lines = out.splitlines()
    assert code == 2
    assert "more: its value was not stored: record with --values all" in lines[0]
    assert [line.split()[1] for line in lines if line.startswith("#")] == ["y"]
    _, out, _ = gviz_here("whatif", "large.gviz", "y = 5", "--show", "z", cwd=tmp_path)
    assert out.splitlines()[-1].split() == ["z", "3002", "not", "known"]


def test_an_answer_that_would_need_values_that_were_not_stored_is_unknown(tmp_path):
    (tmp_path / "large.py").write_text(
        "import torch\n"
        "w = torch.nn.Parameter(torch.ones(500))\n"
        "y = torch.nn.Parameter(torch.tensor(2.0))\n"
        "for _ in range(2):\n"
        "    z = (w * y).sum()\n"
        "    z.backward()\n"
    )
    gviz("record", "--engine", "builtin", "-o", "large.gviz", "large.py", cwd=tmp_path)
    code, out, err = gviz_here("whatif", "large.gviz", "y = 5", cwd=tmp_path)
    assert code == 2
    assert "no other number that could be run again changes; whether the rest does is not known." in out.splitlines()
    assert err.splitlines() == [
        "gviz: error: it is not known what the change leads to",
        "  the values of #2 w were not stored",
        'hint: gviz record --engine builtin --values all -o t.gviz SCRIPT, then gviz whatif t.gviz "y = 5"',
    ]
    gviz("record", "--engine", "builtin", "--values", "all", "-o", "t.gviz", "large.py", cwd=tmp_path)
    code, out, _ = gviz_here("whatif", "t.gviz", "y = 5", "--show", "z", cwd=tmp_path)
    assert (code, out.splitlines()[-1].split()) == (0, ["z", "1000", "2500"])
    code, out, _ = gviz("whatif", "large.py", "y = 5", "--show", "z", cwd=tmp_path)
    assert (code, out.splitlines()[-1].split()) == (0, ["z", "1000", "2500"])  # a script is recorded with all values


def test_a_script_for_pytorch_is_refused_before_it_runs(tmp_path):
    (tmp_path / "program.py").write_text("print('ran')\n")
    code, out, err = gviz("whatif", "--engine", "torch", "program.py", "x = 5", cwd=tmp_path)
    assert (code, out) == (2, "")
    assert "ran" not in err
    assert err.splitlines()[-1].startswith("hint: gviz whatif program.py ")


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (["q = 5"], 2, "gviz: error: there is no q"),
        (["x = five"], 2, "gviz: error: five is not a number or a list of numbers"),
        (["x = [1, 2]"], 2, "gviz: error: this value does not fit"),
        (["x = -3..3"], 2, "gviz: error: a range needs --show, and there can be only one range"),
        (["x = 3..3", "--show", "z"], 2, "gviz: error: x = 3..3 has no extent that can be counted"),
        (["x = -1e308..1e308", "--show", "z"], 2, "gviz: error: x = -1e308..1e308 has no extent that can be counted"),
        (["x = -3..3", "--show", "w"], 2, "gviz: error: w is more than one number"),
        (["x = -3..3", "--show", "z", "-o", "a.gviz"], 2, "gviz: error: cannot write a.gviz"),
        (["x = 3", "-o", "a.svg"], 2, "gviz: error: cannot write a.svg"),
        (["x = 5", "-o", "program.py"], 1, "gviz: error: program.py already exists"),
    ],
)
def test_bad_input(folder, arguments, code, line):
    result, out, err = gviz_here("whatif", "program.gviz", *arguments, cwd=folder)
    assert (result, out, err.splitlines()[0]) == (code, "", line)


def test_which_iteration_is_run_again_is_said_where_there_are_more(tmp_path):
    (tmp_path / "two.py").write_text(PROGRAM + "z = x * 2.0\nz.backward()\n")
    gviz("record", "-o", "two.gviz", "two.py", cwd=tmp_path)
    _, out, _ = gviz_here("whatif", "two.gviz", "x = 5", "--show", "z,x.grad", cwd=tmp_path)
    assert out.splitlines()[0] == "iteration 2 of 2 is run again; .grad before it: #1 x 6."


@pytest.mark.parametrize(("taken", "is_said"), [("x.item()", True), ("2.0", False)])
def test_that_numbers_taken_out_of_tensors_are_not_followed_is_said(tmp_path, taken, is_said):
    (tmp_path / "taken.py").write_text(PROGRAM.replace("w.sum()", f"w.sum() * {taken}"))
    gviz("record", "-o", "taken.gviz", "taken.py", cwd=tmp_path)
    _, out, _ = gviz_here("whatif", "taken.gviz", "x = 5", cwd=tmp_path)
    assert ("keep their recorded values" in out.splitlines()[-1]) is is_said


DECIDING = """\
import gviz.engine as torch
x = torch.tensor(3.0, requires_grad=True)
y = torch.tensor([2.0, 2.0, 2.0])
s = y.sum()
z = x * s
if s > 5:
    z = z * 2
z.backward()
"""


def test_a_test_that_would_go_another_way_is_said(tmp_path):
    (tmp_path / "deciding.py").write_text(DECIDING)
    gviz("record", "-o", "deciding.gviz", "deciding.py", cwd=tmp_path)
    _, out, _ = gviz_here("whatif", "deciding.gviz", "y = [1,1,1]", cwd=tmp_path)
    assert "(deciding.py:6) is False instead of True: a program that decides by it goes another way" in out
    _, out, _ = gviz_here("whatif", "deciding.gviz", "y[0] = 0..3", "--points", "3", "--show", "z", cwd=tmp_path)
    assert "instead of True" in out.splitlines()[0]
    _, out, _ = gviz_here("whatif", "deciding.gviz", "y = [2,2,3]", cwd=tmp_path)
    assert "another way" not in out


STOPPED = """\
import gviz.engine as torch
x = torch.tensor(2.0, requires_grad=True)
h = x * x
h.register_hook(lambda g: g * 3)
y = h * 5
y.backward()
"""


def test_beyond_a_stop_nothing_is_known_in_table_and_curve(tmp_path):
    (tmp_path / "hooked.py").write_text(STOPPED)
    gviz("record", "-o", "hooked.gviz", "hooked.py", cwd=tmp_path)
    code, out, _ = gviz_here("whatif", "hooked.gviz", "x = 4", "--show", "x.grad,y", cwd=tmp_path)
    assert (code, [line.split()[1:] for line in out.splitlines()[2:]]) == (0, [["60", "not", "known"], ["20", "80"]])
    code, out, _ = gviz_here("whatif", "hooked.gviz", "x = 1..4", "--show", "x.grad", "--points", "3", cwd=tmp_path)
    said = out.splitlines()
    assert (code, said[0].partition(":")[0], said[1:]) == (
        0,
        "stopped at #2 h = mul",
        ["x.grad over x", "  no finite value"],
    )


def test_what_has_no_room_differs_in_its_norm_or_else_in_its_elements(tmp_path):
    (tmp_path / "large.py").write_text(
        "import gviz.engine as torch\ntorch.manual_seed(0)\nw = torch.tensor(1.5, requires_grad=True)\n"
        "x = torch.randn(1, 1, 1, 1, 2, 5, 2, 5)\nh = x * w\nh.sum().backward()\n"
    )
    gviz("record", "-o", "large.gviz", "large.py", cwd=tmp_path)
    rows = {}
    for value in ("3", "-1.5"):
        _, out, _ = gviz_here("whatif", "large.gviz", f"w = {value}", cwd=tmp_path)
        rows[value] = next(line for line in out.splitlines() if "h = mul" in line)
    before, after = rows["3"].partition("value norm ")[2].split(" -> ")
    assert float(after) == pytest.approx(2 * float(before), rel=1e-3)
    assert rows["-1.5"].endswith(f"value norm {before} -> {before} (other elements)")
