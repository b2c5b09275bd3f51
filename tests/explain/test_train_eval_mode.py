"""A model that is trained in evaluation mode; tests/explain/healthy has those that are meant so."""

import pytest
from explain.programs import HERE, line_of, recorded

from gviz.explain.check import check

on_both_engines = pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])


@on_both_engines
@pytest.mark.parametrize(
    ("name", "steps", "before"),
    [
        ("eval_left_on", "4 steps", "up to this step it was in training mode"),
        ("eval_for_one_step", "a step", "up to this step it was in training mode"),
        ("never_in_training_mode", "3 steps", "it was never in training mode"),
    ],
)
def test_training_in_evaluation_mode_is_suspected(name, steps, before, engine):
    (found,) = check(recorded("loops", name, engine))
    assert (found.level, found.finding.kind) == ("note", "trained-in-eval")
    assert found.finding.text == f"{steps} of the optimizer trained a model in evaluation mode"
    assert found.finding.where == f"{name}.py:{line_of(HERE / 'loops' / f'{name}.py')}"
    assert [part.text.partition("; ")[2] for part in found.finding.parts] == [before]
    assert "model.train()" in found.finding.fix
