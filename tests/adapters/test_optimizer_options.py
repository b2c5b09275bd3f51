"""The options of PyTorch's optimizers, which a step tells as the engine's does."""

import sys
from pathlib import Path

import pytest
from recording import events_of as events_of_engine

import gviz.engine

sys.path.insert(0, str(Path(__file__).parent))
from recorded import RELEASE, events_of, of_kind  # beside this file

from gviz.events import OptimizerStarted, OptimizerStepped

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

OPTIMIZERS = ["Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "LBFGS", "NAdam", "RAdam", "RMSprop", "SGD"]


def of_both(ours, theirs):
    """What both say of those options that both have: the engine has those of PyTorch 2.13."""
    both = names_in(ours) & names_in(theirs)

    def common(options):
        return tuple(tuple(it for it in group if it[0] in both) for group in options)

    return [([(common(options), before) for options, before in steps], counts) for steps, counts in (ours, theirs)]


def names_in(said):
    return {name for options, _ in said[0] for group in options for name, _ in group}


def steps_of(framework, name):
    def program():
        v, w, idle = [framework.tensor([number], requires_grad=True) for number in (2.0, 3.0, 4.0)]
        groups = [{"params": [idle, v]}, {"params": [w], "lr": 0.25}]
        optimizer = getattr(framework.optim, name)([v, w] if name == "LBFGS" else groups, lr=framework.tensor(0.5))
        for _ in range(2):
            (v * w).sum().backward()
            optimizer.step(*[lambda: v * w] * (name == "LBFGS"))
            optimizer.param_groups[-1]["lr"] = 0.125
        return v, w

    log = events_of(program) if framework is torch else events_of_engine(program)
    return [(one.options, one.before) for one in of_kind(log, OptimizerStarted)], [
        one.per_group for one in of_kind(log, OptimizerStepped)
    ]


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")  # as LBFGS does
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_both_frameworks_tell_the_same(name):
    ours, theirs = steps_of(gviz.engine, name), steps_of(torch, name)
    if RELEASE != (2, 13):
        ours, theirs = of_both(ours, theirs)
    assert ours == theirs
    if name != "LBFGS":
        (_, second), counts = theirs
        assert second[1] == ((), (("lr", 0.25),))
        assert counts == [(1, 1), (1, 1)]


def test_a_tensor_in_other_memory_is_not_waited_for():
    def program():
        w = torch.zeros(1, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.5)
        optimizer.param_groups[0].update(afar=torch.zeros(1, device="meta"), many=torch.zeros(2))
        optimizer.step()

    (step,) = of_kind(events_of(program), OptimizerStarted)
    assert dict(step.options[0]).keys().isdisjoint(("afar", "many"))
