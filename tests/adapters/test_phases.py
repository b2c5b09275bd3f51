"""What PyTorch's own loops do between a pass and the next forward."""

import pytest

from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline
from tests.adapters.recorded import events_of

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def recorded(program):
    return Timeline(MemoryLog(events_of(program)))


def asks_for_its_gradient():
    w = torch.tensor([2.0, 3.0], requires_grad=True)
    for _ in range(2):
        (g,) = torch.autograd.grad(((w - 4.0) ** 2).sum(), w)
        g.abs()


def test_what_autograd_grad_gave_is_of_the_iteration_whose_pass_gave_it():
    timeline = recorded(asks_for_its_gradient)
    gave = [info for info in map(timeline.info, timeline.nodes) if info.op.name == "grad"]
    assert [info.iteration for info in gave] == [0, 1]
    assert [phase.kind for phase in timeline.phases] == ["forward", "backward", "after backward"] * 2


def steps_with_a_closure():
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    total = torch.zeros(())
    for _ in range(2):
        x = torch.rand(4, 2)

        def closure(x=x):
            optimizer.zero_grad()
            loss = model(x).square().sum()
            loss.backward()
            return loss

        total += optimizer.step(closure).detach()


def test_a_step_with_a_closure_is_the_optimizers_from_where_the_pass_is_over():
    timeline = recorded(steps_with_a_closure)
    turn = ["forward", "backward", "optimizer", "after optimizer"]
    assert [phase.kind for phase in timeline.phases] == turn * 2
    assert len(timeline.iterations) == 2


class Model(torch.nn.Module):
    """Gives the odds of the next of five tokens, and what it has made of those so far."""

    def __init__(self):
        super().__init__()
        self.embedding, self.head = torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5)

    def forward(self, token, before=None):
        state = self.embedding(token)
        if before is not None:
            state = torch.cat([before, state])
        return self.head(state.mean(0)), state


@torch.inference_mode()
def generates():
    model, token, state = Model(), torch.tensor([0]), None
    for _ in range(3):
        odds, state = model(token, state)
        token = torch.multinomial(odds.softmax(0), 1)


@torch.no_grad()
def evaluates():
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3), torch.nn.ReLU())
    data = torch.utils.data.TensorDataset(torch.rand(6, 2), torch.tensor([0, 1, 2] * 2))
    for x, y in torch.utils.data.DataLoader(data, batch_size=2):
        _, chosen = model(x).max(1)
        (chosen == y).sum().item()


@pytest.mark.parametrize("program", [generates, evaluates])
def test_where_nothing_goes_back_each_batch_and_each_token_is_an_iteration(program):
    timeline = recorded(program)
    made = [[info.op.name for info in map(timeline.info, timeline.nodes) if info.iteration == nr] for nr in range(4)]
    assert made[1]
    assert made[1:] == [made[1], made[1], []]
