"""A tensor that is first seen as the target of a write has the numbers from before it."""

import pytest

from gviz.events import StorageWritten
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline
from tests.adapters.recorded import events_of

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
nn, F = torch.nn, torch.nn.functional


def timeline_of(program):
    return Timeline(MemoryLog(events_of(program)))


def batch_norm(target):
    return F.batch_norm(torch.tensor([[1.0, 2.0], [3.0, 6.0]]), target, torch.ones(2), training=True)


def module(target):
    norm = nn.BatchNorm1d(2)
    norm.running_mean = target
    return norm(torch.tensor([[1.0, 2.0], [3.0, 6.0]]))


def instance_norm(target):
    return F.instance_norm(torch.tensor([[[1.0, 2.0], [3.0, 6.0]]]), target, torch.ones(2), use_input_stats=True)


def foreach(target):
    torch._foreach_add_([target], 1.0)


def relu(target):
    F.relu(target, inplace=True)
    return target * torch.ones(2, requires_grad=True)


def dropout(target):
    F.dropout(target, 0.5, True, True)
    return target * torch.ones(2, requires_grad=True)


def added(target):
    target.add_(torch.ones(2))


def copied(target):
    target.index_copy_(0, torch.tensor([1]), torch.tensor([7.0]))


def averaged(target):
    target.lerp_(torch.ones(2), 0.5)


def stepped(target):
    target.requires_grad_()
    target.grad = torch.ones(2)
    torch.optim.SGD([target], lr=0.5).step()


WRITERS = [batch_norm, module, instance_norm, foreach, relu, dropout, added, copied, averaged, stepped]


@pytest.mark.parametrize("write", WRITERS)
def test_the_value_of_an_unseen_target_is_that_before_the_write(write):
    target = torch.tensor([-0.25, 0.5])

    def program():
        return target, write(target)

    timeline = timeline_of(program)
    values = {node: timeline.info(node).created.first_value for node in timeline.nodes}
    first = next(
        node for node, value in values.items() if value is not None and list(value.array().flat) == [-0.25, 0.5]
    )
    now = list(timeline.memory_value(first, 0, len(timeline)).array().flat)
    assert now == target.detach().tolist()
    assert now != [-0.25, 0.5]
    assert next(timeline.select((StorageWritten,)))[0] > timeline.info(first).born


def test_rows_that_an_embedding_renormalizes_are_known_from_before():
    weight = nn.Parameter(torch.full((2, 2), 5.0))
    timeline = timeline_of(lambda: F.embedding(torch.tensor([1]), weight, max_norm=1.0))
    node = next(node for node in timeline.nodes if timeline.info(node).created.kind == "parameter")
    assert timeline.info(node).created.first_value.array().tolist() == [[5.0, 5.0], [5.0, 5.0]]
    assert timeline.memory_value(node, 0, len(timeline)).array().tolist() == weight.tolist()


def test_statistics_that_are_only_read_are_not_announced_before_the_call():
    norm = nn.BatchNorm1d(2).eval()
    timeline = timeline_of(lambda: norm(torch.ones(3, 2)))
    assert not [*timeline.select((StorageWritten,))]
