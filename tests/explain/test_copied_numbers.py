"""Data that a loss was made of: a copy of results only where it was made of their numbers, as far as is known."""

import math

import pytest
from explain.programs import recorded_text

import gviz.engine as torch
from gviz.explain.check import check
from gviz.explain.why import why
from gviz.trace import load
from gviz.trace.recording.record import record


def another_parameter():
    w = torch.tensor([1.0], requires_grad=True)
    h = w * 2
    b = torch.tensor([2.0], requires_grad=True)
    return w, h, (b * b).sum()


def a_number_of_text():
    w = torch.tensor([1.0], requires_grad=True)
    b = torch.tensor([3.0], requires_grad=True)
    h = w * 2
    return w, h, (b * float("2.5")).sum()


def numbers_of_data():
    w, data = torch.tensor([1.0], requires_grad=True), torch.tensor([4.7])
    b = torch.tensor([3.0], requires_grad=True)
    h = w * 2
    return w, h, (b * data.item()).sum()


def the_same_number_by_chance():
    w, start = torch.tensor([0.5], requires_grad=True), 0.25
    h = w * 0.5
    b = torch.tensor([start], requires_grad=True)
    return w, h, (b * b).sum()


def read_on_the_line():
    w = torch.tensor([1.0], requires_grad=True)
    v = torch.tensor([3.0], requires_grad=True)
    h = w * 2
    return w, h, (v * torch.tensor(math.sqrt(h.item()))).sum()


def read_as_a_factor():
    w = torch.tensor([1.0], requires_grad=True)
    v = torch.tensor([3.0], requires_grad=True)
    h = w * 2
    return w, h, (v * float(h)).sum()


def equal_to_the_last_digit():
    w = torch.tensor([0.3, 0.6], requires_grad=True)
    h = [w[0].exp(), w[1].exp()]
    numbers = [one.item() for one in h]
    return w, h, torch.tensor(numbers, requires_grad=True).sum()


def answer(program, tmp_path):
    path = tmp_path / "program.gviz"
    with record(path, framework="gviz.engine") as recording:
        held = program()
        held[2].backward()
        node = recording.node_of(held[0])
        del held
    timeline = load(path)
    return why(timeline, timeline.at(len(timeline)), node, "grad")


@pytest.mark.parametrize("program", [another_parameter, a_number_of_text, numbers_of_data, the_same_number_by_chance])
def test_what_was_made_of_other_numbers_is_no_copy(program, tmp_path):
    found = answer(program, tmp_path)
    assert found.kind == "not-reached"
    assert [part.kind for part in found.parts] == ["elsewhere"]


@pytest.mark.parametrize("program", [read_on_the_line, read_as_a_factor, equal_to_the_last_digit])
def test_what_was_made_of_its_results_is_a_copy(program, tmp_path):
    found = answer(program, tmp_path)
    assert [part.kind for part in found.parts] == ["copied", "elsewhere"]
    assert "is a new tensor with no autograd history" in found.parts[0].text


on_both_engines = pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
TAKEN = """
import torch
w = torch.tensor([1.0, 2.0], requires_grad=True)
scale = torch.tensor(0.5, requires_grad=True)
for _ in range(2):
    factor = {taken}
    (w * factor).sum().backward()
"""


@on_both_engines
@pytest.mark.parametrize("taken", ["scale.item() * 2", "2 * float(scale)", "(scale * 2).item()"])
def test_a_leaf_of_which_only_the_numbers_are_used_names_that_line(tmp_path, engine, taken):
    timeline = recorded_text(TAKEN.format(taken=taken), tmp_path, engine)
    (finding,) = [each.finding for each in check(timeline) if timeline.info(each.finding.node).name == "scale"]
    assert finding.at.line == 6
    assert ".item(), numpy" in finding.fix


def test_a_leaf_that_nothing_reads_is_unused(tmp_path):
    timeline = recorded_text(TAKEN.format(taken="w.sum().item() * 2"), tmp_path, "builtin")
    (finding,) = [each.finding for each in check(timeline) if timeline.info(each.finding.node).name == "scale"]
    assert (finding.kind, finding.at.line) == ("unused", 4)
