"""A moment as a script: run alone it gives what was recorded, and says where it does not."""

import contextlib
import io
import re

import pytest
from recording import events_of

import gviz.engine as torch
from gviz.engine import nn
from gviz.errors import GvizError
from gviz.trace.log import MemoryLog
from gviz.trace.timeline import Timeline
from gviz.whatif.script import script
from gviz.words.names import NamedNodes


def product():
    x = torch.tensor(3.0, requires_grad=True)
    b = (x * -2.0) * x
    loss = b / 4 + (1 - x) ** 2
    loss.backward()


def parts():
    x = torch.tensor([[1.0, 5.0, 2.0], [4.0, 0.5, -1.0]], requires_grad=True)
    rows = torch.tensor([1, 0, 1])
    found, _ = torch.max(x[:, 1:], dim=1)
    y = torch.cat([found, x[rows, rows], x.reshape(-1)[2:5]])
    torch.sqrt(y.abs() + 1).sum().backward()


def accumulating():
    w = torch.tensor([1.0, -2.0], requires_grad=True)
    h = torch.tanh(w * torch.tensor([0.5, 3.0]))
    h.backward(torch.tensor([1.0, 10.0]), retain_graph=True)
    h.sum().backward()


def net():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(3, 4), nn.LeakyReLU(0.2), nn.Dropout(0.5), nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(2):
        optimizer.zero_grad()
        out = model(torch.randn(5, 3, dtype=torch.float32))
        loss = nn.functional.cross_entropy(out, torch.tensor([0, 1, 1, 0, 1]))
        loss.backward()
        optimizer.step()


PROGRAMS = (product, parts, accumulating, net)


def recorded(program):
    return Timeline(MemoryLog(events_of(program)))


def run(text, package):
    """How the script ends, and what it says."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), pytest.raises(SystemExit) as end:
        exec(compile(text.replace("import torch\n", f"import {package} as torch\n"), "script.py", "exec"), {})
    return end.value.code, said.getvalue()


def tracked(timeline, iteration):
    return [node for node in timeline.nodes_of(iteration) if timeline.info(node).created.requires_grad]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("package", ["gviz.engine", pytest.param("torch", marks=pytest.mark.torch)])
def test_every_node_of_an_iteration_comes_out_as_recorded(program, package):
    timeline = recorded(program)
    for iteration in timeline.iterations:
        last = max(tracked(timeline, iteration))
        for node in tracked(timeline, iteration) if package == "gviz.engine" else [last]:
            code, said = run(script(timeline, iteration.end, node), package)
            assert not code, said
            assert "is as recorded" in said


def test_another_number_is_told():
    timeline = recorded(product)
    text = script(timeline, len(timeline), NamedNodes(timeline).last("loss", len(timeline)))
    code, said = run(text.replace("x = torch.tensor(3.0", "x = torch.tensor(4.0"), "gviz.engine")
    assert code
    assert re.search(r"x\.grad is .*, recorded: ", said)


def test_before_a_pass_there_is_none_in_the_script():
    timeline = recorded(product)
    loss = NamedNodes(timeline).last("loss", len(timeline))
    assert ".backward(" not in script(timeline, timeline.info(loss).born, loss)
    assert ".backward()" in script(timeline, len(timeline), loss)


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def own():
    x = torch.tensor(3.0, requires_grad=True)
    return Double.apply(x)


def written():
    x = torch.tensor([3.0, 1.0], requires_grad=True)
    y = x * 2
    y.mul_(3.0)
    y.sum().backward()


def hooked():
    x = torch.tensor([3.0, 1.0], requires_grad=True)
    x.register_hook(lambda grad: grad * 2)
    (x * x).sum().backward()


def chosen():
    x = torch.tensor([3.0, 1.0], requires_grad=True)
    torch.autograd.grad((x * x).sum(), x)


@pytest.mark.parametrize(
    ("program", "why"),
    [(own, "no operation of gviz"), (written, "in place"), (hooked, "a hook"), (chosen, "asked for some gradients")],
)
def test_what_no_script_gives_again_is_refused_with_the_reason(program, why):
    timeline = recorded(program)
    with pytest.raises(GvizError, match="again") as refusal:
        script(timeline, len(timeline), max(tracked(timeline, timeline.iterations[-1])))
    assert why in str(refusal.value.why)


def test_numbers_that_were_not_stored_are_missed():
    def large():
        x = torch.ones(3000, requires_grad=True)
        x.sum().backward()

    timeline = recorded(large)
    with pytest.raises(GvizError, match="were not stored"):
        script(timeline, len(timeline), 1)
