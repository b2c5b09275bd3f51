"""Programs with nothing wrong in them: the check says nothing false, and what it only suspects it says so."""

import pytest
from explain.programs import HERE, recorded, recorded_text
from samples.lessons import LESSONS, recording

from gviz.explain.check import check
from gviz.explain.why import why

PROGRAMS = sorted(path.stem for path in (HERE / "healthy").glob("*.py"))
MISTAKES_SHOWN = {
    "04_two_losses": {"second-backward"},
    "08_in_place": {"changed-in-place"},
    "09_two_runs": {"same-units"},  # it begins at one constant, so that the two runs can be compared
    "11_nan_in_backward": {"nan-born-backward"},
    "12_vanishing_gradients": {"vanishing"},
    "19_forgotten_zero_grad": {"not-cleared"},
    "20_cut_in_the_wrong_place": {"cut", "not-reached"},
}
"""The mistakes that a lesson shows on purpose."""

NOTES = {"energy_gradient": [("note", "not-reached")]}  # the last bias gets no gradient, and needs none


def found(timeline):
    return [(one.level, one.finding.kind) for one in check(timeline)]


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_healthy_program_is_healthy(name, engine):
    timeline = recorded("healthy", name, engine)
    assert not timeline.failures
    assert found(timeline) == NOTES.get(name, [])


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_shows_what_it_means_to_show(name):
    assert {kind for _, kind in found(recording(name))} == MISTAKES_SHOWN.get(name, set())


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize(
    ("name", "line"),
    [("0.weight", ":7: net[0].requires_grad_(False)"), ("2.bias", ":8: net[2].bias.requires_grad = False")],
)
def test_the_line_that_froze_a_parameter_is_named(name, line, engine):
    timeline = recorded("healthy", "frozen_by_lines", engine)
    (node,) = [node for node in timeline.nodes if timeline.info(node).name == name]
    found = why(timeline, timeline.at(len(timeline)), node, "grad")
    assert found.kind == "requires-none"
    assert timeline.info(node).created.kind == "parameter"
    assert [part.text for part in found.parts] == [f"requires_grad was set to False at frozen_by_lines.py{line}"]


AS_DATA = """
import torch
from torch import nn
torch.manual_seed(0)
m, x = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)), torch.randn(5, 4)
"""
FUNCTIONAL = [
    """
from torch.func import functional_call, grad, vmap
P = {k: v.detach() for k, v in m.named_parameters()}
def f(p, x):
    return functional_call(m, p, (x[None],)).pow(2).sum()
g = vmap(grad(f), (None, 0))(P, x)
q = {k: v.clone().requires_grad_() for k, v in P.items()}
functional_call(m, q, (x,)).sum().backward()
""",
    """
from torch.func import functional_call
p = {k: v.detach().requires_grad_() for k, v in m.named_parameters()}
opt = torch.optim.SGD(p.values(), 0.1)
for i in range(3):
    loss = functional_call(m, p, (x,)).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    """
from torch.func import functional_call, stack_module_state, vmap
ms = [nn.Linear(4, 1) for _ in range(3)]
params, buffers = stack_module_state(ms)
out = vmap(lambda p, b: functional_call(ms[0], (p, b), (x,)))(params, buffers)
out.pow(2).mean().backward()
""",
]


@pytest.mark.torch
@pytest.mark.parametrize("program", FUNCTIONAL)
def test_parameters_that_are_taken_as_data_are_not_cut(program, tmp_path):
    assert found(recorded_text(AS_DATA + program, tmp_path, "torch")) == []


@pytest.mark.torch
def test_parameters_of_an_optimizer_that_are_taken_as_data_are_cut(tmp_path):
    program = """
from torch.func import functional_call
opt, s = torch.optim.SGD(m.parameters(), 0.1), torch.ones((), requires_grad=True)
p = {k: v.detach() for k, v in m.named_parameters()}
loss = (s * functional_call(m, p, (x,))).pow(2).mean()
loss.backward(); opt.step()
"""
    assert ("warning", "cut") in found(recorded_text(AS_DATA + program, tmp_path, "torch"))
