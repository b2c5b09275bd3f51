"""What a recording remembers of tensors, it forgets with them."""

import gc
import sys
import weakref
from collections import Counter
from pathlib import Path

import pytest

import gviz
from gviz.events import NodeCreated, StorageWritten

sys.path.insert(0, str(Path(__file__).parent))
from recorded import events_of, of_kind  # beside this file

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def training():
    model = torch.nn.Linear(8, 3)
    optimizer = torch.optim.SGD(model.parameters(), momentum=0.9)

    def step():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(torch.randn(4, 8)), torch.randint(0, 3, (4,)))
        loss.backward()
        optimizer.step()

    return step


def living():
    gc.collect()
    return Counter(f"{kind.__module__}.{kind.__qualname__}" for kind in map(type, gc.get_objects()))


@pytest.mark.parametrize("phase", ["all", "backward"])
def test_a_training_loop_keeps_nothing_of_an_iteration(tmp_path, phase):
    step = training()
    with gviz.record(tmp_path / "t.gviz", phase=phase) as recording:
        for _ in range(20):
            step()
        recording.flush()
        before = living()
        for _ in range(300):
            step()
        recording.flush()
        grown = living() - before
    assert max(grown.values(), default=0) < 300, grown.most_common(5)  # sqlite3 keeps up to 200 references


def test_of_many_functions_that_the_program_makes_only_the_newest_are_kept():
    from gviz.adapters.pytorch.operation_catalog import FUNCTIONS

    def program():
        x = torch.ones(2)
        for _ in range(FUNCTIONS + 100):
            torch.overrides.handle_torch_function(made(), (x,), x, by=1)

    def made():
        def same(x, by):
            return x

        living.append(weakref.ref(same))
        return same

    living = []
    events_of(program)
    gc.collect()
    assert sum(ref() is not None for ref in living) <= FUNCTIONS


def test_memory_that_was_freed_never_lends_its_number_to_other_memory():
    def program():
        weight = torch.ones(3, requires_grad=True)
        for _ in range(100):
            x, y = torch.randn(3), torch.randn(3)
            (x * weight + y).sum().backward()
            weight.grad = None
            y.add_(1)  # the same memory, of the same number
        return weight

    made = of_kind(events_of(program), NodeCreated)
    numbers = [event.outputs[0].storage for event in made if event.kind == "constant"]
    assert len(numbers) >= 200
    assert len(set(numbers)) == len(numbers)


def test_a_write_in_inference_mode_is_seen_through_every_alias():
    def program():
        with torch.inference_mode():
            x = torch.arange(6.0)
            y = x[2:4]
            x.add_(10)
            y[0] = 1.0
        return x, y

    log = events_of(program)
    x, y = (event.outputs[0] for event in of_kind(log, NodeCreated)[:2])
    assert (y.storage, y.offset, y.strides) == (x.storage, 2, (1,))
    written = [(event.storage, event.value.array().tolist()) for event in of_kind(log, StorageWritten)]
    assert written == [(x.storage, [10, 11, 12, 13, 14, 15]), (x.storage, [10, 11, 1, 13, 14, 15])]
