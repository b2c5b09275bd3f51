"""What a node keeps for backward is what the gradients that are needed are made of, and no more."""

import pytest
from recording import timeline_of

import gviz.engine as torch
from gviz.explain.outgoing_gradients import outgoing_gradients
from gviz.explain.value_computation import saved_names


def last(timeline, op):
    return [node for node in timeline.nodes if timeline.info(node).op.name == op][-1]


def product(*, first, second):
    def program():
        x, y = torch.ones(2, requires_grad=first), torch.ones(2, requires_grad=second)
        (x * y).sum()

    return program


@pytest.mark.parametrize(
    ("first", "second", "names"), [(True, True, ("self", "other")), (True, False, ("other",)), (False, True, ("self",))]
)
def test_a_product_keeps_the_factors_that_gradients_are_made_of(first, second, names):
    timeline = timeline_of(product(first=first, second=second))
    assert saved_names(timeline, last(timeline, "mul")) == names


def test_what_requires_a_gradient_only_later_is_asked_as_it_was_when_it_was_used():
    def program():
        x = torch.zeros(2)
        x.fill_(3)
        x.requires_grad = True
        (x * torch.ones(2)).sum()

    timeline = timeline_of(program)
    assert saved_names(timeline, last(timeline, "mul")) == ("other",)


def test_what_a_write_through_a_view_sends_is_its_part_of_what_arrives():
    def program():
        x, s = torch.tensor(1.0, requires_grad=True), torch.ones(2)
        s[1] = s[0].clone() * x
        s.sum().backward()

    timeline = timeline_of(program)
    _, source = outgoing_gradients(timeline, timeline.at(len(timeline)), last(timeline, "copy_"))
    assert (source.summed, source.part.array()) == ("its part of g", 1)


def test_a_base_gets_all_but_what_was_written_over():
    def program():
        x = torch.ones(2, requires_grad=True)
        a = x * 1
        a[0].mul_(x[1])
        a.sum().backward()

    timeline = timeline_of(program)
    base, factor = outgoing_gradients(timeline, timeline.at(len(timeline)), last(timeline, "mul_"))
    assert base.summed.startswith("g, its part now g * ")
    assert factor.summed.startswith("(its part of g) * ")
