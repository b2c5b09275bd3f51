"""Iterations that are calls of a function: what they divide, and how one of them is run again after an alarm."""

import collections
import functools
import importlib
import io
import itertools
import math
import queue
import random
import string
import types
import weakref

import numpy as np
import pytest

import gviz
from gviz.adapters.monitor_budget import Budget
from gviz.errors import GvizError
from gviz.events import BackwardStarted, Marked, Named
from gviz.explain.check import check
from gviz.trace.file.reader import open_trace
from gviz.trace.timeline import Timeline
from gviz.trace.whole_iterations import recorded_iterations

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

sentinel = importlib.import_module("gviz.adapters.pytorch.monitored_training")
snapshots = importlib.import_module("gviz.adapters.pytorch.state_snapshot")


@pytest.fixture(autouse=True)
def snapshot_of_each_call(monkeypatch):
    """The budget decides by measured times: here only the first iteration and those after an alarm are whole, and each
    other call is looked at and has a snapshot."""
    monkeypatch.setattr(Budget, "looked", lambda self, cost: None)
    monkeypatch.setattr(Budget, "_later", 10**9)
    monkeypatch.setattr(Budget, "affords_snapshot", property(lambda self: not self.is_whole))


class Trainer:
    """A program with all kinds of state: buffers, dropout, an optimizer, a scheduler, counters and generators."""

    def __init__(self, spoil=20):
        torch.manual_seed(0)
        random.seed(0)
        np.random.seed(0)
        self.model = torch.nn.Sequential(
            torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.3), torch.nn.Linear(8, 1)
        )
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 7, 0.5)
        self.average = [it.detach().clone() for it in self.model.parameters()]
        self.generator = torch.Generator().manual_seed(1)
        self.spoil, self.steps, self.losses, self.calls = spoil, 0, [], []

    def step(self, batch):
        self.calls.append(len(self.calls) + 1)
        self.steps += 1
        self.optimizer.zero_grad()
        noise = torch.rand(batch.shape, generator=self.generator) * random.random() * np.random.rand()
        loss = self.model(batch + noise).pow(2).mean()
        if self.steps == self.spoil:
            loss = (loss - loss - 1).sqrt().detach() + loss
        loss.backward()
        if self.steps != self.spoil:
            self.optimizer.step()
        else:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0, error_if_nonfinite=False)
            self.optimizer.step()
        self.scheduler.step()
        for mean, it in zip(self.average, self.model.parameters(), strict=True):
            mean.lerp_(it.detach(), 0.1)
        self.losses.append(loss.item())
        return loss.detach()

    def train(self, step, count=30):
        return [step(torch.randn(4, 3)).item() for _ in range(count)]

    def state(self):
        tensors = [*self.model.parameters(), *self.model.buffers(), *self.average]
        for own in self.optimizer.state.values():
            tensors += [own["step"], own["exp_avg"], own["exp_avg_sq"]]
        return (
            [it.detach().numpy().tobytes() for it in tensors],
            [it.grad.numpy().tobytes() for it in self.model.parameters()],
            (self.steps, repr(self.losses), self.scheduler.last_epoch, self.optimizer.param_groups[0]["lr"]),
            (torch.rand(1).item(), random.random(), np.random.rand(), torch.rand(1, generator=self.generator).item()),
        )


def plain(spoil=20):
    trainer = Trainer(spoil)
    return repr(trainer.train(trainer.step)), trainer.state()


def recorded(path, trainer, step=None, **options):
    with gviz.record(path, model=trainer.model, **{"budget": 0.5, **options}):
        results = trainer.train(gviz.iteration(step or trainer.step))
    log = open_trace(path)
    return repr(results), recorded_iterations(log.meta), log


def events(log):
    return [event for _, event in log.select(1, len(log) + 1, range(64))]


def names(log):
    return [event.name for event in events(log) if isinstance(event, Marked)]


def test_the_second_run_is_recorded_and_leaves_the_state_of_the_first_bit_for_bit(tmp_path, capfd):
    trainer, weights = Trainer(), []

    def step(batch):
        weights.append(trainer.model[0].weight.tolist())
        return trainer.step(batch)

    results, told, log = recorded(tmp_path / "a.gviz", trainer, step)
    assert (results, trainer.state()) == plain()
    assert trainer.calls.count(20) == 1  # the attributes are those of then, so the numbers go on
    assert len(trainer.calls) == 30
    err = capfd.readouterr().err
    assert "gviz: iteration 20 was run again, and is recorded whole\n" in err
    assert "the second run" not in err
    assert [at for at, _ in told.alarms] == [20]
    assert told.iterations == 30
    assert told.has_whole(20)
    with log:
        assert "iteration 20" in names(log)
        timeline = Timeline(log)
        iteration = timeline.iteration_numbered(20)
        found = {one.finding.kind: one for one in check(timeline)}
        assert iteration.start < found["nan-born"].finding.event <= iteration.end
        assert "sqrt" in found["nan-born"].finding.text
        (node,) = [event.node for event in events(log) if isinstance(event, Named) and event.name == "0.weight"]
        assert timeline.memory_value(node, 0, iteration.start).array().tolist() == weights[19]
        numbers = [one.number for one in timeline.iterations]
        assert numbers == sorted(numbers)


def test_an_answer_that_comes_later_leaves_the_state_of_then(tmp_path, capfd, monkeypatch):
    for spoil in (20, 21, 22):  # a snapshot is kept until its answer is there, so not each call has one
        trainer = Trainer(spoil)

        def is_there(answer, trainer=trainer):
            return len(trainer.calls) >= answer.iteration + 2

        monkeypatch.setattr(sentinel.Answer, "is_there", property(is_there))
        results, told, log = recorded(tmp_path / f"{spoil}.gviz", trainer)
        log.close()
        assert (results, trainer.state()) == plain(spoil)
        assert [at for at, _ in told.alarms] == [spoil]
        again = f"iteration {spoil} was run again" in capfd.readouterr().err
        assert told.has_whole(spoil) == again
        if again:
            assert told.whole_ranges[-1] == (spoil + 3, spoil + 5)  # the answer came two iterations later
            break
    else:
        raise AssertionError("no iteration was run again")


def why_not(path, trainer, capfd, step=None, **options):
    _, told, log = recorded(path, trainer, step, **options)
    log.close()
    assert [at for at, _ in told.alarms] == [20]
    assert not told.has_whole(20)
    (line,) = [line for line in capfd.readouterr().err.splitlines() if "not run again" in line]
    return line.partition("iteration 20 is not run again: ")[2]


def test_without_a_budget_there_is_no_snapshot(tmp_path, capfd):
    assert (
        why_not(tmp_path / "a.gviz", Trainer(), capfd, budget=0) == "the budget has no room for a snapshot of its state"
    )


def test_a_snapshot_that_is_too_expensive_is_not_taken(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(Budget, "affords_snapshot", False)
    why = why_not(tmp_path / "a.gviz", Trainer(), capfd)
    assert why.startswith("a snapshot of its state fits into the budget in one of 20 iterations")


def test_a_function_that_reads_from_an_iterator_is_not_run_again(tmp_path, capfd):
    trainer, batches = Trainer(), itertools.repeat(torch.ones(4, 3))
    why = why_not(tmp_path / "a.gviz", trainer, capfd, lambda batch: trainer.step(batch + next(batches)))
    assert why == "it reads from the iterator batches, which cannot go back"
    assert len(trainer.losses) == 30


def test_an_argument_that_is_a_generator_is_not_read_again(tmp_path, capfd):
    trainer = Trainer()
    step = gviz.iteration(lambda batches: trainer.step(next(batches)))
    with gviz.record(tmp_path / "a.gviz", budget=0.5):
        for _ in range(30):
            step(torch.randn(4, 3) for _ in range(1))
    assert "not run again: it reads from the iterator argument 1, which" in capfd.readouterr().err


def test_a_function_that_writes_to_a_large_tensor_is_not_run_again(tmp_path, capfd):
    trainer, large = Trainer(), torch.zeros(1 << 19)

    def step(batch):
        large.add_(1)
        return trainer.step(batch)

    why = why_not(tmp_path / "a.gviz", trainer, capfd, step)
    assert why == "it writes to a tensor of more than 1 MiB that belongs to no model"


def test_processes_that_train_together_run_nothing_again(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(sentinel, "has_other_ranks", lambda: True)
    trainer = Trainer(spoil=20)
    with gviz.record(tmp_path / "a.gviz", budget=0):
        trainer.train(gviz.iteration(trainer.step))
    assert "is not run again: all processes of the training would have to do so" in capfd.readouterr().err


def test_a_program_without_such_a_function_hears_so_once(tmp_path, capfd):
    trainer = Trainer()
    with gviz.record(tmp_path / "a.gviz", budget=0.5):
        trainer.train(trainer.step, 60)
    assert capfd.readouterr().err.count("is not run again: that needs the iteration as a function") == 1


@pytest.mark.parametrize("fails", [False, True])
def test_what_cannot_be_restored_is_noticed_and_the_first_run_counts(tmp_path, capfd, fails):
    def program():
        trainer, secret = Trainer(), string.Template(0)  # an object of a library

        def step(batch):
            secret.template += 1
            if secret.template == 21 and fails:
                raise ValueError("once too often")
            return trainer.step(batch * (secret.template - trainer.steps))

        return trainer, step

    trainer, step = program()
    results, told, log = recorded(tmp_path / "a.gviz", trainer, step)
    log.close()
    state = trainer.state()
    other, _ = program()
    expected = [other.step(torch.randn(4, 3)).item() for _ in range(20)]
    assert told.has_whole(20)
    what = (
        "failed with ValueError"
        if fails
        else "has other numbers (state that gviz does not restore, or a nondeterministic operation)"
    )
    assert f"gviz: the second run {what}" in capfd.readouterr().err
    expected += [other.step(torch.randn(4, 3) * 2).item() for _ in range(10)]  # only the secret number ran ahead
    assert (results, state) == (repr(expected), other.state())


def test_each_call_is_an_iteration_whatever_it_does(tmp_path):
    trainer = Trainer(spoil=0)
    inner = gviz.iteration(trainer.step)

    @gviz.iteration
    def step(batch):
        gviz.mark("in the middle")
        inner(batch)
        trainer.step(batch)
        return trainer.model(batch).sum()

    with gviz.record(tmp_path / "a.gviz", model=trainer.model, budget=0.5):
        trainer.train(step, 10)
    with open_trace(tmp_path / "a.gviz") as log:
        told = recorded_iterations(log.meta)
        passes = sum(isinstance(event, BackwardStarted) for _, event in log.select(1, len(log) + 1, range(64)))
    assert told.iterations == 10
    count = sum(last - first + 1 for first, last in told.whole_ranges if last <= 10)
    assert passes == 2 * count


def test_calls_take_over_from_steps(tmp_path):
    trainer = Trainer(spoil=0)
    with gviz.record(tmp_path / "a.gviz", budget=0):
        trainer.train(trainer.step, 5)
        trainer.train(gviz.iteration(trainer.step), 10)
    with open_trace(tmp_path / "a.gviz") as log:
        assert recorded_iterations(log.meta).iterations == 15


def test_a_look_at_the_steps_of_a_call_is_one_for_each(tmp_path):
    trainer = Trainer(spoil=0)
    _, told, log = recorded(tmp_path / "a.gviz", trainer)
    log.close()
    assert [at for at, _, _ in told.checks] == list(range(1, 31))
    assert [loss for _, loss, _ in told.checks] == pytest.approx(trainer.losses)


def test_in_other_recordings_a_call_begins_with_a_mark(tmp_path):
    trainer = Trainer(spoil=0)
    step = gviz.iteration(trainer.step)
    step(torch.ones(4, 3))
    with gviz.record(tmp_path / "a.gviz"):
        trainer.train(step, 3)
    with open_trace(tmp_path / "a.gviz") as log:
        assert names(log) == ["iteration 1", "iteration 2", "iteration 3"]
    assert step.__name__ == "step"


def test_an_error_in_a_call_goes_to_the_caller_and_ends_no_iteration(tmp_path):
    trainer = Trainer(spoil=0)

    @gviz.iteration
    def step(batch):
        if len(trainer.losses) == 4 and not failed:
            failed.append(1)
            raise ValueError("broken")
        return trainer.step(batch)

    failed = []
    with gviz.record(tmp_path / "a.gviz", budget=0.5):
        for _ in range(10):
            try:
                step(torch.ones(4, 3))
            except ValueError:
                assert len(trainer.losses) == 4
    with open_trace(tmp_path / "a.gviz") as log:
        assert recorded_iterations(log.meta).iterations == 9
    assert failed == [1]


async def later():
    pass


def one_after_another():
    yield


@pytest.mark.parametrize("fn", [3, later, one_after_another])
def test_what_has_not_run_when_its_call_returns_is_refused(fn):
    with pytest.raises(GvizError):
        gviz.iteration(fn)


class Own:
    """An object of the program with attributes of many kinds."""

    def __init__(self):
        self.number, self.items, self.table, self.some = 1, [1, 2], {"a": 1}, {3}
        self.long = list(range(1000))
        self.tensor = torch.zeros(2)
        self.python, self.numpy = random.Random(0), np.random.default_rng(0)


COUNT = 5


def test_a_snapshot_restores_what_a_function_reaches():
    own, cell = Own(), 7

    def change():
        global COUNT
        nonlocal cell
        COUNT, cell = COUNT + 1, cell + 1
        own.number += 1
        own.items[0], own.table["b"], own.new = 9, 2, 3
        own.some.add(4)
        own.long.pop()
        own.long[0] = 5
        own.tensor += 1
        return own.python.random(), own.numpy.random(), random.random(), torch.rand(1).item()

    state = snapshots.StateSnapshot(snapshots.Reach(change, (), {}), [])
    first = change()
    assert state.why_not_again() == ""
    assert not state.equals(state.now())
    state.restore()
    assert state.equals(state.now())
    assert (COUNT, cell, own.number, own.items, own.table, own.some) == (5, 7, 1, [1, 2], {"a": 1}, {3})
    assert own.long == list(range(1000))
    assert not hasattr(own, "new")
    assert own.tensor.tolist() == [0, 0]
    assert change() == first


def test_a_snapshot_restores_gradients_and_states_that_were_not_there():
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step():
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        optimizer.param_groups[0]["lr"] *= 0.5

    state = snapshots.StateSnapshot(snapshots.Reach(step, (), {}), [])
    weights = model.weight.tolist()
    step()
    state.restore()
    assert model.weight.grad is None
    assert not optimizer.state
    assert optimizer.param_groups[0]["lr"] == 0.1
    assert model.weight.tolist() == weights
    step()
    state = snapshots.StateSnapshot(snapshots.Reach(step, (), {}), [], state.copies)
    gradient = model.weight.grad.clone()
    step()  # adds to the gradient
    state.restore()
    assert model.weight.grad.equal(gradient)


def snapshot_of(function):
    return snapshots.StateSnapshot(snapshots.Reach(function, (), {}), [])


def test_a_gradient_is_restored_in_the_tensor_that_it_is():
    model = torch.nn.Linear(2, 1)
    flat = torch.zeros(3)
    model.weight.grad, model.bias.grad = flat[:2].view(1, 2), flat[2:]
    gradient = model.weight.grad
    flat.fill_(1)

    def change():
        flat.fill_(2)
        model.bias.grad = flat[2:].clone()

    state = snapshot_of(change)
    change()
    state.restore()
    assert model.weight.grad is gradient
    assert flat.tolist() == [1, 1, 1]
    flat.fill_(3)
    assert model.weight.grad.tolist() == [[3, 3]]
    assert model.bias.grad.tolist() == [1]  # its tensor no longer exists


def test_what_has_not_changed_is_not_written_to():
    model, other = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    waiting = [other(torch.ones(1, 2)).pow(2).sum()]

    class Loud(list):
        def clear(self):
            raise AssertionError("not needed")

    numbers = Loud([1, 2])

    def change():
        with torch.no_grad():
            model.weight.add_(1)
        model.bias.data.add_(1)  # its version stays
        waiting.append(other(torch.ones(1, 2)).sum())
        return numbers

    state, before = snapshot_of(change), [it._version for it in (*model.parameters(), *other.parameters())]
    bias = model.bias.tolist()
    change()
    state.restore()
    assert model.bias.tolist() == bias
    assert [it._version for it in (*model.parameters(), *other.parameters())] == before
    (loss,) = waiting
    loss.backward()


def test_a_tensor_that_was_given_other_memory_gets_its_own_back():
    model = torch.nn.Linear(2, 1, bias=False)
    view, weights = model.weight.detach(), model.weight.tolist()

    def change():
        model.weight.data = torch.zeros(1, 2)

    state = snapshot_of(change)
    change()
    state.restore()
    assert model.weight.data_ptr() == view.data_ptr()
    assert model.weight.tolist() == weights


def test_an_expanded_tensor_is_restored():
    one = torch.ones(1)
    many = one.expand(3)

    def change():
        one.add_(1)
        return many

    state = snapshot_of(change)
    change()
    state.restore()
    assert many.tolist() == [1, 1, 1]


def test_a_tensor_whose_graph_grows_in_place_is_refused():
    weight = torch.ones(1, requires_grad=True)
    total = torch.zeros(1)

    def change():
        total.add_(weight)

    state = snapshot_of(change)
    change()
    assert state.why_not_again() == "it writes in place to a tensor with a graph, which cannot go back"


def test_containers_are_restored_with_the_methods_of_the_builtin_classes():
    class Items(list):
        def extend(self, items):
            raise AssertionError("of the program")

    counter, items = collections.Counter(a=1, b=2), Items([1])
    order, members = collections.OrderedDict(a=1, b=2), {1}

    def change():
        counter["a"] += 1
        del counter["b"]
        counter["c"] = 4
        items.append(2)
        order.move_to_end("a")
        members.add(2)

    state = snapshot_of(change)
    change()
    state.restore()
    assert [*counter.items()] == [("a", 1), ("b", 2)]
    assert items == [1]
    assert [*order] == ["a", "b"]
    assert members == {1}


class Broken:
    def restore(self):
        raise MemoryError("no room")


def test_a_part_that_fails_does_not_keep_the_others_from_being_restored():
    model, table = torch.nn.Linear(2, 1), {"a": 1}

    def change():
        table["a"] = 2
        return model

    state = snapshot_of(change)
    state._tensors["leaf", id(model.weight)] = Broken()
    change()
    with pytest.raises(snapshots.NotRestored, match="MemoryError: no room"):
        state.restore()
    assert table == {"a": 1}


def test_a_program_does_not_continue_half_restored(tmp_path, monkeypatch):
    trainer, restored = Trainer(), []
    restore = snapshots.StateSnapshot.restore

    def fails(self):
        restored.append(self)
        if len(restored) == 2:
            raise snapshots.NotRestored("OutOfMemoryError")
        restore(self)

    monkeypatch.setattr(snapshots.StateSnapshot, "restore", fails)
    monkeypatch.setattr(snapshots.StateSnapshot, "equals", lambda self, other: False)
    with pytest.raises(RuntimeError, match="iteration 20 is not restored: OutOfMemoryError"):
        recorded(tmp_path / "a.gviz", trainer)


def test_copies_of_a_device_have_arrived_before_they_are_read(monkeypatch):
    waits = []
    monkeypatch.setattr(snapshots, "_synchronize", waits.append)
    state = snapshot_of(torch.nn.Linear(2, 1))
    assert state.equals(state.now())
    assert not waits
    state._objects["leaf", 0] = torch.empty(1, device="meta")
    for read in (lambda: state.equals(state.now()), state.restore):
        waits.clear()
        read()
        assert waits == [torch.device("meta")]


class Slots:
    __slots__ = ("count", "new")
    shared = 1

    def __init__(self):
        self.count = 0


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.seen, self.noise = [], torch.Generator().manual_seed(3)


class Averaging(torch.optim.SGD):
    def __init__(self, parameters):
        super().__init__(parameters, lr=0.1)
        self.norms = []


def test_a_snapshot_restores_attributes_and_arrays_of_all_kinds():
    layer, own, array, space = Layer(), Slots(), np.zeros(2), types.SimpleNamespace(at=1)
    optimizer, numbers, old = (
        Averaging([torch.nn.Parameter(torch.zeros(1))]),
        bytearray(b"ab"),
        np.random.RandomState(0),
    )
    tensors = {number: torch.zeros(1) for number in range(200)}

    def change():
        layer.seen.append(1)
        own.count += 1
        own.new = 1
        Slots.shared += 1
        array[0] += 1
        space.at += 1
        optimizer.norms.append(1)
        numbers[0] = 0
        change.calls += 1
        tensors[150] += 1
        return torch.rand(1, generator=layer.noise).item(), old.rand()

    change.calls = 0
    state = snapshot_of(change)
    first = change()
    assert not state.equals(state.now())
    state.restore()
    assert state.equals(state.now())
    assert (layer.seen, own.count, Slots.shared, array[0], space.at, optimizer.norms) == ([], 0, 1, 0, 1, [])
    assert not hasattr(own, "new")
    assert (numbers, change.calls, tensors[150].item()) == (b"ab", 0, 0)
    assert change() == first


def test_states_of_an_optimizer_that_are_lists_are_restored():
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.LBFGS([weight], max_iter=2)

    def step():
        def closure():
            optimizer.zero_grad()
            loss = (weight.pow(4) + weight).sum()
            loss.backward()
            return loss

        optimizer.step(closure)

    step()
    state = snapshot_of(step)
    before = len(optimizer.state[weight]["old_dirs"])
    step()
    assert len(optimizer.state[weight]["old_dirs"]) > before
    state.restore()
    assert len(optimizer.state[weight]["old_dirs"]) == before


STREAM = iter(range(3))
LINES = queue.Queue()


def read_stream():
    return next(STREAM)


class Reader:
    def step(self):
        return self.read()

    def read(self):
        return next(STREAM)

    @property
    def line(self):
        return LINES.get()


class Lines:
    @property
    def line(self):
        return LINES.get()


def nested(levels):
    items = []
    for _ in range(levels):
        items = [items]
    return items


def reading(value):
    return lambda: value


NO_WAY_BACK = {
    "a method reads it": (Reader().step, "it reads from the iterator STREAM, which cannot go back"),
    "a function in a partial": (functools.partial(read_stream), "it reads from the iterator STREAM, which"),
    "a decorated function": (torch.no_grad()(read_stream), "it reads from the iterator STREAM, which"),
    "a cached function": (functools.cache(read_stream), "it reads from the iterator STREAM, which"),
    "the method of an iterator": (reading(iter([1]).__next__), "it reads from the iterator value, which"),
    "a property": (reading(Lines()), "it uses the queue LINES, which cannot go back"),
    "a file": (reading(io.StringIO()), "it reads from the file value, which cannot go back"),
    "a large array": (reading(np.zeros(1 << 18)), "the NumPy array value has more than 1 MiB"),
    "an array of objects": (reading(np.array([None])), "the NumPy array value has more than numbers"),
    "a long list": (reading([0] * 100_001), "value has more than 100,000 items"),
    "a long table": (reading(dict.fromkeys(range(100_001))), "value has more than 100,000 items"),
    "deep": (reading(nested(100)), "value is more than 40 levels deep in its state"),
}


@pytest.mark.parametrize("kind", NO_WAY_BACK)
def test_what_cannot_be_restored_is_refused(kind):
    function, why = NO_WAY_BACK[kind]
    with pytest.raises(snapshots.NoSnapshot) as refused:
        snapshots.Reach(function, (), {})
    assert str(refused.value).startswith(why)


def test_more_objects_than_the_limit_are_refused(monkeypatch):
    monkeypatch.setattr(snapshots, "_MOST_OBJECTS", 20)
    lists = [[number] for number in range(30)]
    with pytest.raises(snapshots.NoSnapshot, match="its state has more than 20 objects"):
        snapshots.Reach(lambda: lists, (), {})


def test_variables_of_the_modules_of_the_program_are_restored(tmp_path, monkeypatch):
    (tmp_path / "own_data.py").write_text("at, stream = 0, None\n\ndef read():\n    global at\n    at += 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    own_data = importlib.import_module("own_data")

    def change():
        own_data.read()

    def late():
        import own_data as data

        data.at += 1

    for function in (change, late):
        state = snapshot_of(function)
        function()
        state.restore()
        assert own_data.at == 0
    own_data.stream = iter([1])
    snapshot_of(change)
    with pytest.raises(snapshots.NoSnapshot, match="iterator stream"):
        snapshot_of(lambda: next(own_data.stream))


def test_variables_without_a_value_have_none_again():
    def outer():
        def change():
            global NEW
            nonlocal later
            NEW, later = 1, 2

        def is_there():
            return bool(change.__closure__[0].cell_contents)

        yield change, is_there
        later = 1
        yield later

    change, is_there = next(outer())
    state = snapshot_of(change)
    change()
    assert is_there()
    state.restore()
    assert "NEW" not in globals()
    with pytest.raises(ValueError, match="empty"):
        is_there()


def test_a_call_is_released_when_it_raised_no_alarm(tmp_path):
    trainer, batches, alive = Trainer(spoil=0), [], []
    step = gviz.iteration(trainer.step)
    with gviz.record(tmp_path / "a.gviz", model=trainer.model, budget=0.5):
        for _ in range(12):
            batch = torch.randn(4, 3)
            batches.append(weakref.ref(batch))
            step(batch)
            del batch
            alive.append(batches[-1]() is not None)
        batch = torch.randn(4, 3)
        batches.append(weakref.ref(batch))
        with pytest.raises(TypeError):
            step(batch, 1)
        del batch
        assert batches[-1]() is None
    assert not any(alive[1:])  # the first iteration is recorded whole


def test_nothing_is_held_after_a_recording(tmp_path, monkeypatch):
    monkeypatch.setattr(sentinel.Answer, "is_there", False)
    monitors, prepare = [], sentinel.Monitored._prepare_call
    monkeypatch.setattr(
        sentinel.Monitored, "_prepare_call", lambda self, *call: (monitors.append(self), prepare(self, *call))
    )
    trainer = Trainer(spoil=0)
    with gviz.record(tmp_path / "a.gviz", model=trainer.model, budget=0.5):
        trainer.train(gviz.iteration(trainer.step), 5)
        assert monitors[-1]._call is not None
    assert monitors[-1]._call is None
    assert not monitors[-1]._copies


def test_the_memory_of_copies_is_used_again():
    model = torch.nn.Linear(2, 1)
    state = snapshot_of(model)
    again = snapshots.StateSnapshot(snapshots.Reach(model, (), {}), [], state.copies)
    assert {id(it) for it in again.copies.values()} == {id(it) for it in state.copies.values()}
    model.weight.grad = torch.ones(1, 2)
    more = snapshots.StateSnapshot(snapshots.Reach(model, (), {}), [], again.copies)
    assert {id(it) for it in again.copies.values()} < {id(it) for it in more.copies.values()}


def test_a_snapshot_has_a_limit(monkeypatch):
    monkeypatch.setattr(snapshots, "MOST", 1 << 30 >> 30)
    model = torch.nn.Linear(2, 1)
    with pytest.raises(snapshots.NoSnapshot, match="its state takes"):
        snapshots.StateSnapshot(snapshots.Reach(model, (), {}), [])


def test_bits_are_compared():
    same = snapshots._is_same
    assert same(torch.tensor([math.nan, -0.0]), torch.tensor([math.nan, -0.0]))
    assert not same(torch.tensor([0.0]), torch.tensor([-0.0]))
    assert not same(torch.zeros(2), torch.zeros(2, dtype=torch.float64))
    assert not same(torch.zeros(2), torch.zeros(1, 2))
