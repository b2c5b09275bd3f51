"""Times of module calls in one iteration, with a clock that only the program and the reading of it move."""

import importlib

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from torch.utils.checkpoint import checkpoint  # noqa: E402  # after the check that PyTorch is there

from gviz.adapters.pytorch.iteration_timer import CudaClock, HostClock, IterationTimer  # noqa: E402

OPTIMIZER = importlib.import_module("torch.optim.optimizer")
HOOKS = importlib.import_module("torch.nn.modules.module")


class Hands:
    """What a clock shows. Each reading takes `reading`."""

    def __init__(self, reading=0):
        self.at = 0
        self.reading = reading

    def read(self):
        self.at += self.reading
        return self.at


class Work(torch.autograd.Function):
    """Takes some time forward and some backward."""

    @staticmethod
    def forward(ctx, x, hands, forward, backward):
        hands.at += forward
        ctx.hands, ctx.backward_time = hands, backward
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        ctx.hands.at += ctx.backward_time
        return grad, None, None, None


class Layer(torch.nn.Module):
    def __init__(self, hands, forward, backward):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))
        self.work = hands, forward, backward

    def forward(self, x):
        return Work.apply(x, *self.work) * self.weight


class Net(torch.nn.Module):
    """Two layers and its own work between them; `layer` is called twice."""

    def __init__(self, hands, again=None):
        super().__init__()
        self.hands, self.again = hands, again
        self.layer, self.other = Layer(hands, 10, 100), Layer(hands, 20, 200)

    def forward(self, x):
        x = self.layer(x) if self.again is None else checkpoint(self.layer, x, use_reentrant=self.again)
        x = Work.apply(x, self.hands, 1, 3)
        return self.layer(self.other(x))


def timed(net, hands, clock=None):
    names = {id(module): name or "net" for name, module in net.named_modules()}
    timer = IterationTimer(lambda module: names[id(module)], clock or HostClock(hands.read))
    engine = torch.autograd.graph._engine_run_backward
    timer.start()
    try:
        x = torch.ones(2, requires_grad=True)
        loss = Work.apply(net(x), hands, 5, 7).sum()
        timer.run_pass(lambda: engine((loss,), (torch.ones(()),), False, False, (), True, accumulate_grad=True), [loss])
        hands.at += 1000
    finally:
        timer.stop()
    return timer


EXPECTED = [["net", "Net", -1, 1, 3], ["layer", "Layer", 0, 10, 100], ["other", "Layer", 0, 20, 200],
            ["layer", "Layer", 0, 10, 100]]  # fmt: skip


@pytest.mark.parametrize("reading", [0, 1, 50])
def test_every_call_has_its_own_time_without_that_of_the_hooks(reading):
    hands = Hands(reading)
    net = Net(hands)
    times = timed(net, hands).times()
    assert times["clock"] == "cpu"
    for call, expected in zip(times["calls"], EXPECTED, strict=True):
        assert call[:3] == expected[:3]
        assert call[3:] == pytest.approx(expected[3:], abs=8 * reading)
    if not reading:
        assert (times["outside"], times["total"], times["optimizer"]) == (7, 1456, 0)
    assert times["total"] <= 1456 + 50 * reading


@pytest.mark.filterwarnings("ignore:.torch.cpu.amp.autocast:FutureWarning")  # PyTorch 2.4 warns of itself
@pytest.mark.parametrize("reentrant", [False, True])
def test_what_a_checkpoint_runs_again_counts_as_backward(reentrant):
    hands = Hands()
    calls = timed(Net(hands, reentrant), hands).times()["calls"]
    assert [call[0] for call in calls] == ["net", "layer", "other", "layer"]
    assert sum(call[3] for call in calls) == 41
    assert sum(call[4] for call in calls) == 403 + 10
    assert calls[1][4] >= 10


def test_an_iteration_that_an_exception_broke_off_has_no_times():
    hands = Hands()
    net = Net(hands)
    timer = IterationTimer(lambda module: "net", HostClock(hands.read))
    timer.start()

    def raising():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        timer.run_pass(raising, [])
    timer.stop()
    assert timer.times() is None  # it called no module
    assert timed(net, hands).times() is not None


def test_nothing_stays_in_pytorch():
    def there():
        modules = len(HOOKS._global_forward_hooks), len(HOOKS._global_forward_pre_hooks)
        return modules, len(OPTIMIZER._global_optimizer_pre_hooks)

    before, hands = there(), Hands()
    net = Net(hands)
    timed(net, hands)
    assert there() == before
    at = hands.read()
    hands.reading = 1
    net(torch.ones(2)).sum().backward()
    assert hands.at - at == 41 + 303  # no hook reads the clock any more


def test_steps_of_an_optimizer_are_timed():
    hands = Hands()
    layer = Layer(hands, 1, 1)

    class Slow(torch.optim.SGD):
        def step(self, closure=None):
            hands.at += 30
            return super().step(closure)

    optimizer = Slow(layer.parameters(), lr=0.1)
    timer = IterationTimer(lambda module: "layer", HostClock(hands.read))
    timer.start()
    layer(torch.ones(2))
    optimizer.step()
    timer.end_step()
    hands.at += 500  # the program between two steps
    optimizer.step()
    timer.end_step()
    hands.at += 500
    timer.stop()
    assert timer.times()["optimizer"] == 60


def test_events_of_a_device_are_read_when_they_are_there(monkeypatch):
    hands, reached = Hands(), [0]

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            self.at = hands.at

        def query(self):
            return self.at <= reached[0]

        def elapsed_time(self, other):
            assert self.query()
            assert other.query()
            return (other.at - self.at) / 1e6

    monkeypatch.setattr(torch.cuda, "Event", Event)
    timer = timed(Net(hands), hands, CudaClock())
    assert not timer.is_known
    reached[0] = hands.at
    assert timer.is_known
    times = timer.times()
    assert times["clock"] == "cuda"
    assert times["calls"] == EXPECTED
    assert times["outside"] == 7
