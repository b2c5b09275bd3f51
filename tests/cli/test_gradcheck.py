"""``gviz gradcheck``: the rules of a program's own functions, and of any node, against small changes."""

import json
import re

import pytest
from cli.programs import gviz, gviz_here

from gviz.explain import gradcheck_report

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
        (
            ("e.py",),
            "the program called no torch.autograd.Function of its own on a tensor that requires a gradient",
        ),
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


DELIBERATE = """
import gviz.engine as torch

class Binarize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return (x > 0).float()
    @staticmethod
    def backward(ctx, g):
        return g

class Halved(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]

w = torch.tensor([1.5, -2.0, 0.5, 3.0], requires_grad=True)
(Binarize.apply(w) * w).sum().backward()
"""


def test_what_differs_on_purpose_is_told_apart_and_passes_only_where_it_is_allowed(tmp_path):
    (tmp_path / "train.py").write_text(DELIBERATE)
    code, out, _ = gviz("gradcheck", "train.py", cwd=tmp_path)
    assert code == 1
    assert out.startswith("Binarize at train.py:22: 1 call tried: 1 differed on purpose\n")
    assert "\n    straight-through estimator: what arrived is sent on" in out
    assert "the rule is wrong" not in out
    assert out.endswith("\n  --allow Binarize accepts it, if this is intended\n")
    code, out, _ = gviz("gradcheck", "--allow", "Binarize", "train.py", cwd=tmp_path)
    assert (code, out.splitlines()[-1]) == (0, "  it is allowed to differ (--allow Binarize)")


def test_what_is_wrong_passes_only_where_it_is_allowed_by_its_own_name(tmp_path):
    (tmp_path / "train.py").write_text(f"{DELIBERATE}Halved.apply(w).sum().backward()\n")
    code, out, _ = gviz("gradcheck", "--format", "json", "--allow", "Binarize", "train.py", cwd=tmp_path)
    rules = json.loads(out)["rules"]
    assert code == 1
    assert [(rule["op"], rule["verdict"], rule["kind"], rule["allowed"]) for rule in rules] == [
        ("Binarize", "deliberate", "straight-through estimator", True),
        ("Halved", "wrong", None, False),
    ]
    assert gviz("gradcheck", "--allow", "Binarize", "--allow", "Halved", "train.py", cwd=tmp_path)[0] == 0
    code, _, err = gviz("gradcheck", "--allow", "Halves", "train.py", cwd=tmp_path)
    assert (code, err.splitlines()[-2:]) == (
        2,
        ["gviz: error: --allow Halves: no function of this name was tried", "hint: tried: Binarize, Halved"],
    )


UNTRIED = """
import gviz.engine as torch

class Listed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.tensor([abs(number) for number in x.tolist()])
    @staticmethod
    def backward(ctx, g):
        return g

class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * x
    @staticmethod
    def backward(ctx, g):
        return g

w = torch.tensor([1.5, -2.0], requires_grad=True)
Listed.apply(w).sum().backward()
Square.apply(w)
"""


def test_each_function_that_cannot_be_tried_has_its_reason(tmp_path):
    (tmp_path / "train.py").write_text(UNTRIED)
    code, out, err = gviz("gradcheck", "train.py", cwd=tmp_path)
    assert code == 2
    assert re.search(r"^  #\d+ Listed: .*: no operation of its forward was recorded$", out, re.M)
    assert re.search(r"^  #\d+ Square: no backward pass went through #\d+ ", out, re.M)
    assert err.endswith("gviz: error: no call could be tried\nhint: the rows above show why\n")
    code, out, _ = gviz("gradcheck", "--format", "json", "train.py", cwd=tmp_path)
    rules = json.loads(out)["rules"]
    assert [(rule["op"], rule["verdict"]) for rule in rules] == [("Listed", "not tried"), ("Square", "not tried")]
    assert all(rule["not_tried"] for rule in rules)


def test_what_was_found_before_ctrl_c_is_kept(tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text(FUNCTIONS.replace("FACTOR", "1"))
    assert gviz("record", "-o", "t.gviz", "train.py", cwd=tmp_path)[0] == 0
    tried, calls = gradcheck_report.check_gradients, []

    def impatient(*given):
        calls.append(given)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return tried(*given)

    monkeypatch.setattr(gradcheck_report, "check_gradients", impatient)
    code, out, _ = gviz_here("gradcheck", "t.gviz", cwd=tmp_path)
    assert code == 130
    assert out.startswith("Squared at train.py:28: 3 calls tried: 1 differed, 2 could not be tried\n")
    assert "Cubed: not tried: interrupted" in out


SECOND = """
import torch
once_differentiable = torch.autograd.function.once_differentiable
class Kept(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.x = x.detach()
        return x**3
    @staticmethod
    def backward(ctx, g):
        return 3 * g * ctx.saved_tensors[0] ** 2

class Cut(Kept):
    @staticmethod
    def backward(ctx, g):
        return 3 * g * ctx.x**2

class Once(Kept):
    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return 3 * g * ctx.saved_tensors[0] ** 2

class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 3
    @staticmethod
    def backward(ctx, g):
        return g * 3

class Unasked(Kept):
    pass

w = torch.tensor([1.0, 2.0], requires_grad=True)
for function in (Kept, Cut, Once, Linear):
    (sent,) = torch.autograd.grad((function.apply(w * 1) * w).sum(), w, create_graph=True)
    try:
        (sent**2).sum().backward()
    except RuntimeError as error:
        print(error)
Unasked.apply(w * 1).sum().backward()
"""


@pytest.mark.parametrize("framework", ["gviz.engine as torch", pytest.param("torch", marks=pytest.mark.torch)])
def test_second_derivatives_that_are_sure_to_be_wrong_and_why_the_others_were_not_tried(tmp_path, framework):
    (tmp_path / "train.py").write_text(SECOND.replace("import torch", f"import {framework}"))
    code, out, _ = gviz("gradcheck", "--format", "json", "train.py", cwd=tmp_path)
    rules = {rule["op"]: rule for rule in json.loads(out)["rules"]}
    assert code == 1
    assert {name: rule["verdict"] for name, rule in rules.items()} == {
        "Kept": "agrees", "Cut": "wrong", "Once": "agrees", "Linear": "agrees", "Unasked": "agrees",
    }  # fmt: skip
    seconds = {name: rule["second_derivatives"] for name, rule in rules.items()}
    assert [name for name, second in seconds.items() if second["verdict"] == "wrong"] == ["Cut"]
    assert "once_differentiable" in seconds["Once"]["why"]
    assert "gradgradcheck" in seconds["Kept"]["why"]
    assert seconds["Unasked"]["why"] == "no pass with create_graph went through it"
    code, out, _ = gviz("gradcheck", "--allow", "Cut", "train.py", cwd=tmp_path)
    assert code == 0
    assert out.count("    second derivatives were not tried: ") == 4
    assert out.count("    second derivatives are wrong: what it is to send changes with its inputs") == 1
