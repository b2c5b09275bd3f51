"""Parameters of modules that are numbers in a sequence, in expressions, breakpoints and questions."""

import threading

import numpy as np
import pytest
from driving import transcript

import gviz
import gviz.engine as torch
from gviz.query_syntax.expression_names import as_python


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A program in a thread, where no caller is in sight whose text is not known, as that of the test runner may be."""
    path, nets = tmp_path_factory.mktemp("sequence") / "run.gviz", []

    def program():
        net = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.ReLU(), torch.nn.Linear(1, 1))
        for _ in range(2):
            net(torch.ones(1, 1)).sum().backward()
        nets.append(net)

    with gviz.record(path):
        thread = threading.Thread(target=program)
        thread.start()
        thread.join()
    return gviz.load(path), nets[0]


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


PLACES = ("net.0.weight", "net[0].weight", "0.weight")


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize(
    ("command", "times"),
    [
        ("break {}", 3),
        ("break {}.grad", 2),
        ("break change {}.grad", 2),
        ("break on accumulate {}", 2),
        ("break norm({}.grad) > -1", 2),
    ],
)
def test_a_breakpoint_knows_it_by_every_path(recorded, name, command, times):
    timeline, _ = recorded
    said = transcript(timeline, command.format(name), "info break", at=1)
    assert "never stops" not in said
    assert f"[{times} times in this recording" in said


@pytest.mark.parametrize("name", PLACES)
def test_a_change_is_found_by_every_path(recorded, name):
    timeline, _ = recorded
    end = len(timeline)
    assert "back to event" in transcript(timeline, f"last {name}.grad", at=end)
    assert "back to event" in transcript(timeline, f"first {name}.grad", at=end)
    assert "selected node #1 0.weight" in transcript(timeline, f"find {name}", at=end)


@pytest.mark.parametrize("command", ["last {}", "first {}", "last {}.grad"])
@pytest.mark.parametrize("name", ["nosuch", f"{'o' * 3}.0.weight", "net.7.weight"])
def test_what_there_is_not_has_not_merely_stayed_the_same(recorded, command, name):
    timeline, _ = recorded
    said = transcript(timeline, command.format(name), at=len(timeline))
    assert f"there is no {name}" in said
    assert "did not change" not in said


def test_a_parameter_with_the_whole_name_is_meant_alone(tmp_path):
    with gviz.record(tmp_path / "two.gviz"):
        for net in [torch.nn.Sequential(torch.nn.Linear(1, 1)) for _ in range(2)]:
            net(torch.ones(1, 1)).sum().backward()
    said = transcript(gviz.load(tmp_path / "two.gviz"), "break net.0.weight", "info break")
    assert "1  break net.0.weight  [2 times" in said


@pytest.mark.parametrize(
    ("text", "python"),
    [
        ("0.weight.grad", "item_0_.weight.grad"),
        ("net.10.0.w[0].grad", "net.item_10_.item_0_.w[0].grad"),
        ("net[0].w.grad - net['a'][1].w[0].sum()", "net.item_0_.w.grad - net.a.item_1_.w[0].sum()"),
        ("x" + "[0]" * 5000 + ".w", "x" + "".join([".item_0_"] * 5000) + ".w"),
        ("x[0].sum() + parts[1].grad", "x[0].sum() + parts[1].grad"),
        ("#4 - #12.grad", "node_4_ - node_12_.grad"),
        ("1.0 + 2.e5 + .5 + 2.j", "1.0 + 2.e5 + .5 + 2.j"),
        ("op == '0.weight #4'", "op == '0.weight #4'"),
    ],
)
def test_numbers_stay_what_they_are(text, python):
    assert as_python(text) == python
