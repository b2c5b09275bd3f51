"""A question for a gradient by a name that an evaluation has given anew is meant for what was trained."""

import pytest
from explain.programs import recorded

from gviz.explain.finding import lines
from gviz.explain.typed_question import answers

on_both_engines = pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])


def told(name, engine):
    (found,) = answers(recorded("outputs", "trained_then_evaluated", engine), f"{name}.grad")
    return "\n".join(text for _, text, _ in lines(found))


@on_both_engines
def test_the_result_of_the_last_training_is_asked_about(engine):
    answer = told("score", engine)
    assert "called score with a backward pass after it" in answer
    assert "is the last of all" in answer
    assert "its gradient was" in answer


@on_both_engines
def test_a_result_of_nothing_that_requires_a_gradient_says_where_tracking_was_lost(engine):
    answer = told("base", engine)
    assert "none of its inputs requires one" in answer
    assert "tracking was lost at" in answer
    assert "leave detach() out" in answer


@pytest.mark.torch
def test_a_draw_without_a_way_back_names_the_one_that_has_it():
    assert "rsample() where the gradient should flow" in told("z", "torch")
