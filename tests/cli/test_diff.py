"""``gviz diff`` as a user meets it."""

import json

import pytest
from cli.programs import gviz, gviz_here

from gviz.trace.recording.record import record

LOOP = """\
import gviz.engine as torch
w = torch.tensor(0.5, requires_grad=True)
for steps in (1, 3):
    h = torch.tensor(1.0)
    for _ in range(steps):
        h = torch.tanh(h * w)
    h.backward()
"""


def recorded(folder, name, text):
    """Record a program, in this process."""
    program = folder / f"{name}.py"
    program.write_text(text)
    with record(program.with_suffix(".gviz")):
        exec(compile(text, program, "exec"), {"__name__": "__main__"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("diff")
    recorded(folder, "loop", LOOP)
    recorded(folder, "other", LOOP.replace("0.5", "0.75"))
    return folder


def test_numbers_that_were_not_kept_are_not_called_the_same(tmp_path):
    for name, start in (("a", 1.0), ("b", 2.0)):
        (tmp_path / f"{name}.py").write_text(f"import torch\nx = torch.tensor([{start}])\ny = x.exp()\n")
        gviz_here("record", "--engine", "builtin", "--values", "none", "-o", f"{name}.gviz", f"{name}.py", cwd=tmp_path)
    code, said, _ = gviz_here("diff", "a.gviz", "b.gviz", cwd=tmp_path)
    assert (code, said.splitlines()) == (
        0,
        [
            "no difference: 1 operation and 1 other node on each side.",
            "the numbers of 2 nodes were not compared: they are not known on both sides.",
        ],
    )
    assert json.loads(gviz_here("diff", "a.gviz", "b.gviz", "--format", "json", cwd=tmp_path)[1])["unknown"] == 2


def test_a_trace_and_itself(folder):
    said = "no difference up to iteration 2: 6 operations and 2 other nodes on each side.\n"
    assert gviz("diff", "loop.gviz", "loop.gviz", cwd=folder) == (0, said, "")


def test_two_iterations_of_one_trace(folder):
    code, out, _ = gviz_here("diff", "loop.gviz", cwd=folder)
    lines = out.splitlines()
    assert code == 1
    assert lines[0] == "only in b: 2 more times mul, tanh, from #8 (loop.py:6) on."
    assert lines[1].startswith("first old .grad (there before the pass) that differs: #1 w (loop.py:2), event ")
    assert lines[2].startswith("first gradient that differs: #4 and #7 h = tanh (loop.py:6), event ")
    assert lines[4].split() == ["iteration", "1", "iteration", "2"]
    assert lines[-1].split() == [">", "#11", "h", "=", "tanh", lines[-1].split()[-1]]


def test_two_iterations_may_stand_in_the_place_of_a_trace(folder):
    assert gviz_here("diff", "loop.gviz", "2,1", cwd=folder) == gviz_here("diff", "loop.gviz", "-i", "2,1", cwd=folder)


def test_two_traces_side_by_side(folder):
    code, out, _ = gviz_here("diff", "loop.gviz", "other.gviz", "--all", cwd=folder)
    assert code == 1
    assert out.splitlines()[:4] == [
        "the programs differ at loop.py:2 and other.py:2",
        "  < w = torch.tensor(0.5, requires_grad=True)",
        "  > w = torch.tensor(0.75, requires_grad=True)",
        "the same structure: 2 operations and 2 other nodes on each side.",
    ]
    assert "#1 w            0.5          | #1 w            0.75         value by 0.25" in out
    assert "#2 h            1              #2 h            1\n" in out


def test_as_json(folder):
    code, out, _ = gviz_here("diff", "loop.gviz", "other.gviz", "--format", "json", cwd=folder)
    found = json.loads(out)
    assert (code, found["schema"]) == (1, 1)
    assert found["pairs"][:2] == [[1, 1], [2, 2]]
    assert [d["kind"] for d in found["differences"]][:1] == ["value"]
    assert found["programs"][0]["lines"] == [2, 2]


def test_a_tolerance_may_forgive_everything(folder):
    assert gviz_here("diff", "loop.gviz", "other.gviz", "--atol", "10", cwd=folder)[0] == 0


def test_exact_is_every_bit(tmp_path):
    program = "import gviz.engine as torch\nx = torch.tensor([ZERO, 1.0])\ny = torch.tensor([N])\nz = x * 2, y * 1\n"
    for name, zero, number in (("a", "0.0", 2**53), ("b", "-0.0", 2**53), ("c", "0.0", 2**53 + 1)):
        recorded(tmp_path, name, program.replace("ZERO", zero).replace("N", str(number)))
    code, out, _ = gviz_here("diff", "--exact", "a.gviz", "b.gviz", cwd=tmp_path)
    assert (code, "the same numbers in other bits" in out) == (1, True)
    assert gviz_here("diff", "a.gviz", "b.gviz", cwd=tmp_path)[0] == 0
    code, out, _ = gviz_here("diff", "a.gviz", "c.gviz", cwd=tmp_path)
    assert (code, "1 apart at [0]" in out) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (["loop.gviz", "-i", "1,9"], 2, "gviz: error: there is no iteration 9"),
        (["loop.gviz", "-i", "two"], 2, "gviz: error: --iterations takes two numbers, not two"),
        (["loop.gviz", "1,9"], 2, "gviz: error: there is no iteration 9"),
        (["loop.gviz", "loop.py"], 3, "gviz: error: loop.py is not a gviz trace"),
        (["loop.gviz", "none.gviz"], 3, "gviz: error: none.gviz does not exist"),
    ],
)
def test_bad_input(folder, arguments, code, line):
    result, out, err = gviz_here("diff", *arguments, cwd=folder)
    assert (result, out, err.splitlines()[0][: len(line)]) == (code, "", line)


def test_iterations_are_compared_in_turn(tmp_path):
    lines = (
        "import gviz.engine as torch",
        "w = torch.ones(1, requires_grad=True)",
        "for i in range(N):",
        "    loss = w * F(i)",
    )
    program = "\n".join([*lines, "    loss.backward()", "    del loss", ""])
    for name, factor, count in (("a", "1.0", 3), ("b", "(1.0 if i < 1 else 2.0)", 3), ("c", "1.0", 2)):
        recorded(tmp_path, name, program.replace("F(i)", factor).replace("N)", f"{count})"))
    code, out, _ = gviz_here("diff", "a.gviz", "b.gviz", cwd=tmp_path)
    assert (code, out.splitlines()[3]) == (1, "iteration 2 is the first that differs.")
    code, out, _ = gviz_here("diff", "a.gviz", "c.gviz", cwd=tmp_path)
    assert (code, out.splitlines()[-1]) == (1, "a has 3 iterations, b has 2.")
    assert gviz_here("diff", "a.gviz", "a.gviz", cwd=tmp_path)[1].startswith("no difference up to iteration 3: ")


def test_two_traces_open_beside_each_other(folder):
    code, out, _ = gviz_here("open", "--plain", "loop.gviz", "other.gviz", cwd=folder)
    assert code == 0
    assert "(gviz) compare other.gviz" in out
    assert "first value that differs: #1 w" in out
    code, _, err = gviz_here("open", "--plain", "loop.gviz", "loop.py", cwd=folder)
    assert code == 3
    assert "loop.py is not a gviz trace" in err


def test_programs_are_to_be_recorded_first(tmp_path):
    (tmp_path / "a b.py").write_text("")
    code, out, err = gviz("diff", "a b.py", "c.py", cwd=tmp_path)
    assert (code, out) == (3, "")
    assert err.endswith("is not a gviz trace: it is a program\nhint: gviz record -o 'a b.gviz' 'a b.py'\n")
