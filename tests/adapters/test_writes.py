"""Writes that PyTorch keeps no graph node for: the program runs as it does alone, and the trace has what came of it."""

import numpy as np
import pytest
from replay import replay

from gviz.adapters.recording_scope import RecordingScope
from gviz.events import DataSet, GradSet, Named, NodeCreated, StorageWritten
from gviz.explain.outgoing_gradients import outgoing_gradients
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline
from tests.adapters.recorded import events_of, named, of_kind

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def written(log):
    """What each write left in the memory it was done to, in order."""
    return [event.value.array().tolist() for event in of_kind(log, StorageWritten)]


@pytest.mark.parametrize(
    "write",
    [
        lambda w: w[0].clamp_(0, 0.5),
        lambda w: w.view(-1)[:3].fill_(0.5),
        lambda w: w[0].copy_(torch.full((3,), 0.5)),
        lambda w: w.unbind(0)[0].fill_(0.5),
        lambda w: torch.mul(w[1], 0.5, out=w[0]),
        lambda w: torch._foreach_mul_([w[0]], 0.5),
    ],
)
@pytest.mark.parametrize("with_backward", [True, False])
def test_a_view_made_under_no_grad_is_written_to(write, with_backward):
    def program():
        w = torch.nn.Parameter(torch.ones(2, 3))
        y = (w * 2).sum()
        if with_backward:
            y.backward()
        with torch.no_grad():
            write(w)
        return y, w * 1

    log = events_of(program)
    assert written(log)[-1] == [0.5, 0.5, 0.5, 1.0, 1.0, 1.0]
    assert of_kind(log, NodeCreated)[-1].outputs[0].value.array().tolist() == [[0.5] * 3, [1.0] * 3]


def test_a_view_that_went_stale_is_still_looked_at_and_printed():
    def program():
        w = torch.nn.Parameter(torch.ones(2, 3))
        y = w * 2
        with torch.no_grad():
            view = w[0]
            w.mul_(3)
            view.requires_grad_()
            view.grad = None
            assert view.grad is None
            torch.add(view, 1, out=torch.empty(3))
            return y, view + 1

    log = events_of(program)
    assert [3.0] * 6 in written(log)


@pytest.mark.parametrize(
    "write",
    [
        lambda grad: grad.data.mul_(5),
        lambda grad: grad.detach().mul_(5),
        lambda grad: grad.view(-1).fill_(10),
        lambda grad: grad.__setitem__(slice(None), 10),
        lambda grad: setattr(grad, "data", torch.tensor([10.0, 10.0])),
        lambda grad: torch.mul(grad, 5, out=grad.data),
    ],
)
def test_a_grad_is_written_to_through_whatever_shares_its_memory(write):
    def program():
        w = torch.nn.Parameter(torch.ones(2))
        (w * w).sum().backward()
        write(w.grad)
        return w

    told = [event.value.array().tolist() for event in of_kind(events_of(program), GradSet)]
    assert told == [[10.0, 10.0]]


def test_a_grad_that_was_given_other_memory_changes_with_that():
    def program():
        w, other = torch.nn.Parameter(torch.ones(2)), torch.zeros(2)
        (w * w).sum().backward()
        aside = w.grad.data
        w.grad.data = other
        aside.add_(7)
        other.add_(1)
        return w

    log = of_kind(events_of(program), GradSet)
    assert [(event.how, event.value.array().tolist()) for event in log] == [
        ("zero", [0.0, 0.0]),
        ("in place", [1.0, 1.0]),
    ]


@pytest.mark.parametrize("options", [{}, {"foreach": True}])
def test_a_grad_that_is_kept_and_cleared(options):
    def program():
        w = torch.nn.Parameter(torch.ones(2))
        optimizer = torch.optim.SGD([w], lr=0.1, **options)
        (w * w).sum().backward()
        optimizer.zero_grad(set_to_none=False)
        return w

    assert [event.how for event in of_kind(events_of(program), GradSet)] == ["zero"]


@pytest.mark.parametrize(
    "write",
    [
        lambda w: torch.nn.init.constant_(w, 4.0),
        lambda w: torch.nn.init.orthogonal_(w),
        lambda w: torch.nn.init.kaiming_uniform_(w),
        lambda w: torch.nn.init.eye_(w),
        lambda w: torch.nn.init.sparse_(w, 0.5),
        lambda w: torch.nn.functional.relu_(input=w.detach().neg_()),
        lambda w: torch.nn.functional.threshold(w.detach(), 2.0, 9.0, inplace=True),
    ],
)
def test_a_tensor_that_was_used_is_initialized_again(write):
    def program():
        w = torch.nn.Parameter(torch.ones(2, 2))
        y = w * 2
        write(w)
        after.append(w.tolist())
        return y, w * 1

    after = []
    log = events_of(program)
    assert np.reshape(written(log)[-1], (2, 2)).tolist() == after[-1]
    assert of_kind(log, NodeCreated)[-1].outputs[0].value.array().tolist() == after[-1]


def test_parameters_are_reset():
    def program():
        layer, given = torch.nn.Linear(2, 2), torch.ones(2)
        y = layer(given)
        layer.reset_parameters()
        after.extend([layer.weight.flatten().tolist(), layer.bias.tolist()])
        return y, layer(given)

    after = []
    assert written(events_of(program)) == after


def values_at_the_end(log):
    """What the trace says each named tensor or last operation holds: by node number, after the last event."""
    states = replay(read := MemoryLog(log), len(read))
    return {node: state.outputs[0].value.array().tolist() for node, state in states.items() if state.outputs}


def parameters(log):
    return [event.node for event in of_kind(log, NodeCreated) if event.kind == "parameter"]


def test_a_parameter_that_was_given_other_memory_is_followed_there():
    def program():
        w, other = torch.nn.Parameter(torch.ones(3)), torch.tensor([7.0, 8.0, 9.0])
        y = w * 2
        w.data = other
        other.add_(1)
        with torch.no_grad():
            w.mul_(2)
        return w, y

    log = events_of(program)
    assert values_at_the_end(log)[parameters(log)[0]] == [16.0, 18.0, 20.0]


def test_memory_that_a_parameter_left_keeps_its_numbers():
    def program():
        shared = torch.ones(3)
        w = torch.nn.Parameter(shared)
        y, z = w * 2, shared * 1
        w.data = torch.tensor([7.0, 8.0, 9.0])
        again = shared * 1
        shared.add_(5)
        return w, y, z, again

    log = events_of(program)
    held, created = values_at_the_end(log), of_kind(log, NodeCreated)
    assert held[parameters(log)[0]] == [7.0, 8.0, 9.0]
    (operand, _) = next(
        event.inputs[0]
        for event in reversed(created)
        if len(event.inputs) and event.untracked and event.outputs[0].version == 0
    )
    assert held[operand] == [6.0, 6.0, 6.0]


def test_parameters_swapped_and_put_back():
    def program():
        w, average = torch.nn.Parameter(torch.ones(3)), torch.full((3,), 2.0)
        optimizer = torch.optim.SGD([w], lr=1.0)
        w.sum().backward()
        backup = w.data
        w.data = average
        y = w * 1
        w.data = backup
        optimizer.step()
        average.add_(1)
        return w, y

    log = events_of(program)
    assert values_at_the_end(log)[parameters(log)[0]] == [0.0, 0.0, 0.0]


def test_a_vector_becomes_parameters():
    def program():
        a, b = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(3))
        y = (a.sum() * b).sum()
        torch.nn.utils.vector_to_parameters(torch.arange(5.0), [a, b])
        torch.nn.utils.vector_to_parameters(torch.arange(1.0, 6.0), [a, b])
        return a, b, y

    log = events_of(program)
    held = values_at_the_end(log)
    assert [held[node] for node in parameters(log)] == [[1.0, 2.0], [3.0, 4.0, 5.0]]


def test_grads_that_lie_in_one_buffer():
    def program():
        a, b, buffer = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2)), torch.zeros(4)
        a.grad, b.grad = buffer[:2], buffer[2:]
        (a.sum() + b.sum() * 3).backward()
        buffer.mul_(2)
        return a, b, buffer

    told = [event.value.array().tolist() for event in of_kind(events_of(program), GradSet)]
    assert told == [[0.0, 0.0], [0.0, 0.0], [2.0, 2.0], [6.0, 6.0]]


def test_a_write_is_said_of_those_grads_in_one_buffer_that_show_it():
    """Where all lie in one, as in DistributedDataParallel, clipping them would be said by each of each."""

    def program():
        leaves = [torch.ones(2, requires_grad=True) for _ in range(3)]
        sum(leaves).sum().backward()
        flat = torch.zeros(5)
        for start, leaf in zip((0, 1, 3), leaves, strict=True):  # the first two have an element in common
            leaf.grad = flat[start : start + 2]
        for written in (leaves[2].grad, flat[:1], leaves[0].grad, flat):
            written.add_(1)
        torch._foreach_mul_([leaf.grad for leaf in leaves[1:]], 2)

    log = events_of(program)
    first, *_ = [event.node for event in of_kind(log, NodeCreated)]
    told = [event.node - first for event in of_kind(log, GradSet) if event.how == "in place"]
    assert told == [2, 0, 0, 1, 0, 1, 2, 0, 1, 2]


def test_parameters_that_are_given_one_memory():
    def program():
        a, b, buffer = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2)), torch.zeros(4)
        y = a * 1, b * 1
        a.data, b.data = buffer[:2], buffer[2:]
        buffer.fill_(3)
        a.data, b.data = torch.full((2,), 4.0), torch.full((2,), 5.0)
        buffer.fill_(6)
        return a, b, y, buffer

    log = events_of(program)
    held = values_at_the_end(log)
    assert [held[node] for node in parameters(log)] == [[4.0, 4.0], [5.0, 5.0]]


@pytest.mark.parametrize("wanted", [None, RecordingScope(phase="backward")])
def test_tensors_are_swapped_as_they_are_alone(wanted):
    def program():
        one, other = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.zeros(2))
        (one.sum() + other.sum()).backward()
        one.data = torch.ones(2)
        torch.utils.swap_tensors(one, other)
        after.extend([one.tolist(), other.tolist()])
        y = (one * 3).sum()
        y.backward()
        return one, other, y

    after = []
    log = events_of(program, wanted)
    assert after == [[0.0, 0.0], [1.0, 1.0]]
    assert of_kind(log, NodeCreated)[-1].requires_grad


def test_a_module_is_converted_by_swapping():
    before = torch.__future__.get_swap_module_params_on_conversion()

    def program():
        layer = torch.nn.Linear(2, 2)
        layer(torch.ones(2)).sum().backward()
        torch.__future__.set_swap_module_params_on_conversion(True)
        try:
            layer.double()
        finally:
            torch.__future__.set_swap_module_params_on_conversion(before)
        return layer, layer(torch.ones(2, dtype=torch.double))

    created = of_kind(events_of(program), NodeCreated)
    assert [e.outputs[0].value.dtype for e in created if e.kind == "parameter"] == ["float32"] * 2 + ["float64"] * 2


def test_memory_of_another_kind_is_that_of_the_same_parameter():
    def program():
        net = torch.nn.Linear(1, 1, bias=False)
        net(torch.ones(1, 1)).sum().backward()
        net.double()
        return net(torch.ones(1, 1, dtype=torch.float64))

    log = events_of(program)
    (weight,) = [event for event in of_kind(log, NodeCreated) if event.kind == "parameter"]
    assert [event.name for event in of_kind(log, Named)] == ["weight"]
    made = {event.node: event for event in of_kind(log, NodeCreated)}
    transposed = [event for event in made.values() if event.inputs == ((weight.node, 0),)]
    assert [event.outputs[0].value.dtype for event in transposed] == ["float32", "float64"]


@pytest.mark.parametrize("change", [
    lambda weight: weight.data.fill_(3.0),
    lambda weight: setattr(weight, "data", torch.full((1, 1), 3.0)),
])  # fmt: skip
def test_a_weight_that_was_changed_is_shown_changed_within_its_layer(change):
    def program():
        net = torch.nn.Linear(1, 1, bias=False)
        net(torch.ones(1, 1)).sum().backward()
        change(net.weight)
        return net(torch.ones(1, 1))

    created = of_kind(events_of(program), NodeCreated)
    (weight,) = [event.node for event in created if event.kind == "parameter"]
    transposed = [event for event in created if event.inputs == ((weight, 0),) and event.outputs[0].view_of and
                  not event.untracked]  # fmt: skip
    assert transposed[-1].outputs[0].value.array().tolist() == [[3.0]]


def test_set_gives_a_tensor_other_memory():
    def program():
        x = torch.zeros(3)
        x * 2
        x.set_(torch.tensor([1.0, 2.0]))
        return x * 3

    log = events_of(program)
    last = of_kind(log, NodeCreated)[-1]
    assert [(event.node, event.value.array().tolist()) for event in of_kind(log, DataSet)] == [
        (last.inputs[0][0], [1.0, 2.0])
    ]
    assert "set_" not in vars(torch.Tensor)


def test_memory_that_holds_nothing_yet_is_shown_with_its_first_numbers():
    def program():
        out = torch.empty(2)
        out.fill_(3.0)
        return out * 2

    log = events_of(program)
    first = next(event for event in of_kind(log, NodeCreated) if event.outputs[0].value.shape == (2,))
    assert first.outputs[0].value.array().tolist() == [3.0, 3.0]
    assert written(log) == [[3.0, 3.0]]


@pytest.mark.parametrize("write", [
    lambda x: x.add_(1),
    lambda x: x.__setitem__(slice(None), 2.0),
    lambda x: torch.add(x, 1, out=x),
    lambda x: torch.nn.functional.threshold(x, 1.0, 2.0, inplace=True),
    lambda x: torch._foreach_add_([x], 1),
])  # fmt: skip
def test_writes_that_inference_mode_does_not_count(write):
    def program():
        with torch.inference_mode():
            x = torch.ones(2)
            x * 2
            write(x)
            return x.contiguous()

    assert written(events_of(program)) == [[2.0, 2.0]]


def test_the_transpositions_of_two_weights_in_one_memory_are_told_apart():
    flat, x = torch.arange(8.0), torch.ones(1, 2)
    weights = [torch.nn.Parameter(part.view(2, 2)) for part in flat.split(4)]
    log = events_of(lambda: [torch.nn.functional.linear(torch.nn.functional.linear(x, w), w) for w in weights])
    shown = [event.outputs[0] for event in of_kind(log, NodeCreated) if named(log).get(event.node) == "TBackward0"]
    assert [output.value.array().tolist() for output in shown] == [
        weight.t().tolist() for weight in weights for _ in range(2)
    ]  # fmt: skip
    assert [output.offset for output in shown] == [0, 0, 4, 4]


@pytest.mark.parametrize("layer", [torch.nn.BatchNorm1d(2), torch.nn.InstanceNorm1d(2, track_running_stats=True)])
@pytest.mark.parametrize("grad", [True, False])
def test_running_statistics_are_followed(layer, grad):
    seen = []

    def program():
        layer.train()
        with torch.set_grad_enabled(grad):
            for factor in (1.0, 2.0):
                layer(factor * torch.arange(12.0).view(2, 2, 3))
                seen.append([statistics.tolist() for statistics in (layer.running_mean, layer.running_var)])
            layer.eval()(torch.ones(2, 2, 3))

    log = events_of(program)
    nodes = {event.name: event.node for event in of_kind(log, Named)}
    for place, name in enumerate(("running_mean", "running_var")):
        written = [event for event in of_kind(log, StorageWritten) if event.node == nodes[name]]
        assert [event.value.array().tolist() for event in written] == [now[place] for now in seen]


def test_rows_that_an_embedding_shortens_are_shown_short():
    table = torch.nn.Embedding(3, 2, max_norm=0.5)
    log = events_of(lambda: (table.weight.sum(), table.weight.data.mul_(4.0), table(torch.tensor([0]))))
    weight = next(event for event in of_kind(log, NodeCreated) if event.kind == "parameter")
    written = [event for event in of_kind(log, StorageWritten) if event.storage == weight.outputs[0].storage]
    assert written[-1].value.array().tolist() == table.weight.flatten().tolist()


@pytest.mark.parametrize(
    "make",
    [
        lambda a: torch.einsum("ij,jk->ik", a, a),
        lambda a: torch.tensordot(a, a, 1),
        lambda a: torch.linalg.multi_dot([a, a, a]),
    ],
)
@pytest.mark.parametrize("with_gradient", [True, False])
def test_a_result_that_is_a_view_of_what_was_not_seen_is_written_to(make, with_gradient):
    def program():
        a = torch.ones(2, 2, requires_grad=with_gradient)
        with torch.no_grad():
            m = make(a)
            m.add_(1)
            m[0] = 7
            return a, m, m * 1

    log = events_of(program)
    assert np.reshape(written(log)[-1], (2, 2)).tolist() == program()[1].tolist()


def test_the_kept_gradient_of_a_result_is_written_to():
    def program():
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        h = x * 2
        h.retain_grad()
        (h * h).sum().backward()
        h.grad.mul_(3)
        h.grad[0] = 7.0
        h.grad.zero_()
        return x, h

    said = [(event.how, event.value.array().tolist()) for event in of_kind(events_of(program), GradSet)]
    assert said == [("in place", [12.0, 24.0]), ("in place", [7.0, 24.0]), ("zero", [0.0, 0.0])]


def test_a_gradient_of_which_a_part_is_set_to_zero_is_not_cleared():
    def program():
        w = torch.nn.Parameter(torch.ones(3))
        (w * w).sum().backward()
        w.grad[:1].zero_()
        w.grad[1:].zero_()
        return w

    changes = [(event.how, event.value.array().tolist()) for event in of_kind(events_of(program), GradSet)]
    assert changes == [("in place", [0.0, 2.0, 2.0]), ("zero", [0.0, 0.0, 0.0])]


def test_a_rule_whose_text_is_not_known_is_told_by_its_name():
    def program():
        x, s = torch.tensor(1.0, requires_grad=True), torch.ones(2)
        s[1] = s[0].clone() * x

    log = MemoryLog()
    for event in events_of(program):
        log.append(event)
    timeline = Timeline(log)
    write = next(node for node in timeline.nodes if timeline.info(node).op.grad_fn == "CopySlices")
    _, source = outgoing_gradients(timeline, timeline.at(len(timeline)), write)
    assert source.missing == "the outgoing gradient of CopySlices"


def momentum_steps(**options):
    """Two steps whose momentum the program reads in between, and their optimizer."""
    w = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([w], lr=1.0, momentum=0.5, **options)
    read = None
    for _ in range(2):
        optimizer.zero_grad()
        (w * 2).sum().backward()
        optimizer.step()
        read = optimizer.state[w]["momentum_buffer"] * 1
    return optimizer, read


@pytest.mark.parametrize("options", [{}, {"foreach": True}, {"maximize": True, "foreach": True}])
def test_a_step_writes_to_state_that_the_program_has_read(options):
    log = events_of(lambda: momentum_steps(**options))
    sign = -1.0 if options.get("maximize") else 1.0
    assert [sign * 3.0] * 3 in written(log)
    assert not [event for event in of_kind(log, GradSet) if event.how == "in place"]
    read = [event for event in of_kind(log, NodeCreated) if event.kind == "op"][-1]
    assert read.outputs[0].value.array().tolist() == [sign * 3.0] * 3


@pytest.mark.parametrize("how", ["own step", "hook"])
def test_a_gradient_that_the_program_changes_within_a_step_is_recorded_once(how):
    class Halving(torch.optim.SGD):
        def step(self, closure=None):
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.grad.mul_(0.5)
            return super().step(closure)

    def program():
        w = torch.nn.Parameter(torch.ones(3))
        optimizer = Halving([w], lr=1.0) if how == "own step" else torch.optim.SGD([w], lr=1.0)

        def halve(*_):
            w.grad.mul_(0.5)

        if how == "hook":
            optimizer.register_step_pre_hook(halve)
        (w * 2).sum().backward()
        optimizer.step()
        return w

    log = events_of(program)
    assert [event.value.array().tolist() for event in of_kind(log, GradSet)] == [[1.0] * 3]
    assert written(log)[-1] == [0.0] * 3
