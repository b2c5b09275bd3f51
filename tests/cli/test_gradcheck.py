"""``gviz gradcheck``: the rules of a program's own functions, and of any node, against small changes."""

import json
import re

import pytest
from cli.programs import gviz, gviz_here

FUNCTIONS = """
import gviz.engine as torch

class Squared(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, times):
        ctx.save_for_backward(x)
        ctx.times = times
        return x * x * times
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return FACTOR * g * x * ctx.times, None

class Cubed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, base, *more):
        ctx.save_for_backward(base)
        return base**3 + sum(more)
    @staticmethod
    def backward(ctx, g):
        (base,) = ctx.saved_tensors
        return 3 * g * base * base, g

w = torch.tensor([[1.5, -2.0], [0.5, 3.0]], requires_grad=True)
v = torch.tensor([[1.0, 1.0], [2.0, 2.0]], requires_grad=True)
for _ in range(4):
    y = Squared.apply(w, 1.0)
    z = Cubed.apply(y, v)
    z.sum().backward()
print("done")
"""


@pytest.fixture
def program(tmp_path):
    """Writes the program, whose first function sends `factor` times ``g * x``."""

    def write(factor, framework="gviz.engine as torch"):
        text = FUNCTIONS.replace("FACTOR", str(factor)).replace("gviz.engine as torch", framework)
        (tmp_path / "train.py").write_text(text)
        return tmp_path

    return write


def test_rules_that_are_right(program):
    code, out, err = gviz("gradcheck", "train.py", cwd=program(2))
    assert (code, "done" in err) == (0, True)
    assert out.startswith("Squared at train.py:28: 3 calls tried: 3 agreed\n")
    assert re.search(
        r"^Cubed at train.py:29: 3 calls tried: 3 agreed\n  #\d+ z = Cubed: what it sent", out, re.MULTILINE
    )
    assert re.search(r"^    base = #\d+ y = Squared: agrees", out, re.MULTILINE)
    assert re.search(r"^    more0 = #2 v: agrees", out, re.MULTILINE)


@pytest.mark.torch
def test_the_rules_of_functions_of_pytorch(program):
    code, out, _ = gviz("gradcheck", "train.py", cwd=program(1, "torch"))
    assert code == 1
    assert "Squared at train.py:28: 3 calls tried: 3 differed\n" in out
    assert "    x = #1 w: 4 of 4 differ, by up to 729\n" in out
    assert "      [0, 1] = -2: sent -96, by differences -192\n" in out
    assert "what is sent is 0.5 times what differences say" in out
    assert "    more0 = #" in out


def test_a_rule_that_is_wrong_has_its_elements_in_the_data(program):
    code, out, _ = gviz("gradcheck", "--format", "json", "train.py", cwd=program(1))
    rules = json.loads(out)["rules"]
    assert code == 1
    assert [rule["op"] for rule in rules] == ["Squared"] * 3 + ["Cubed"] * 3
    first = rules[0]["inputs"][0]
    assert (first["input"], first["tried"], first["differ"]) == ("x", 4, 4)
    assert first["elements"][1]["index"] == [0, 1]
    assert first["elements"][1]["sent"] == -96.0
    assert first["elements"][1]["by_differences"] == pytest.approx(-192.0)
    assert rules[3]["inputs"][0]["elements"] == []


def test_any_node_of_a_trace_is_tried_where_it_is_named(program):
    folder = program(2)
    gviz("record", "-o", "t.gviz", "train.py", cwd=folder)
    code, out, _ = gviz_here("gradcheck", "--node", "z", "--node", "w", "t.gviz", cwd=folder)
    assert code == 0
    heads = [line.split(":")[0].split(" ", 1)[1] for line in out.splitlines() if not line.startswith(" ")]
    assert heads == ["z = Cubed"] + ["y = Squared"] * 4


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("e.py",), "the program has no function of its own (torch.autograd.Function)"),
        (("--node", "nosuch", "e.py"), "nosuch"),
        (("--node", "c", "e.py"), "c requires no gradient: none was sent to it"),
        (("nosuch.py",), "nosuch.py: no such script"),
    ],
)
def test_what_cannot_be_tried_is_told(tmp_path, arguments, what):
    made = "import gviz.engine as torch\nx, c = torch.tensor(3.0, requires_grad=True), torch.ones(1)\n"
    (tmp_path / "e.py").write_text(f"{made}(c * x * x).backward()\n")
    code, out, err = gviz("gradcheck", *arguments, cwd=tmp_path)
    assert (code, out) == (3 if "nosuch.py" in arguments else 2, "")
    assert re.search(rf"^gviz: error: .*{re.escape(what)}", err, re.MULTILINE)
    assert "hint: " in err
