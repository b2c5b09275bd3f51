"""Parameters of modules that are numbers in a sequence, in expressions, breakpoints and questions."""

import numpy as np
import pytest
from driving import transcript

import gviz
import gviz.engine as torch
from gviz.where.spelling import as_python


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("sequence") / "run.gviz"
    with gviz.record(path):
        net = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.ReLU(), torch.nn.Linear(1, 1))
        for _ in range(2):
            net(torch.ones(1, 1)).sum().backward()
    return gviz.load(path), net


@pytest.mark.parametrize("name", ["0.weight", "net.0.weight"])
def test_a_parameter_is_printed_by_its_path(recorded, name):
    timeline, net = recorded
    said = transcript(
        timeline, f"print {name}.grad.sum() * 1.0 + 2.e0", f"print {name} - #1", "last 0.weight.grad", at=len(timeline)
    )
    expected = np.float32(net[0].weight.grad.item()) * 1.0 + 2
    assert f"{name}.grad.sum() * 1.0 + 2.e0 = {expected:.4g}"[:-1] in said
    assert f"{name} - #1 = 0" in said
    assert "back to event" in said


def test_a_module_without_the_parameter_has_not_that_of_another(recorded):
    timeline, _ = recorded
    assert "there is no 1.0.weight here" in transcript(timeline, "print 1.0.weight", at=len(timeline))


def test_a_breakpoint_may_be_about_one(recorded):
    timeline, _ = recorded
    said = transcript(timeline, "break norm(0.weight) > -1", "break change 2.bias.grad", "info break", at=1)
    assert "never stops" not in said
    assert "break norm(0.weight) > -1  [1 time in" in said
    assert "break change 2.bias.grad  [2 times in" in said


@pytest.mark.parametrize(
    ("text", "python"),
    [
        ("0.weight.grad", "item_0_.weight.grad"),
        ("net.10.0.w[0].grad", "net.item_10_.item_0_.w[0].grad"),
        ("#4 - #12.grad", "node_4_ - node_12_.grad"),
        ("1.0 + 2.e5 + .5 + 2.j", "1.0 + 2.e5 + .5 + 2.j"),
        ("op == '0.weight #4'", "op == '0.weight #4'"),
    ],
)
def test_numbers_stay_what_they_are(text, python):
    assert as_python(text) == python
