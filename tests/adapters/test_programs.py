"""What PyTorch programs do, each seen in the log, and none of it changed by being seen."""

import contextlib
import itertools
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

import gviz
from gviz import emit
from gviz.events import (
    BackwardFinished,
    BackwardStarted,
    GradAccumulated,
    GradCaptured,
    GradFlowed,
    GradSet,
    HookRan,
    Named,
    NodeCreated,
    NodeFreed,
    OpSeen,
    OptimizerStarted,
    OptimizerStepped,
    RequiresGradSet,
    Returned,
    ScopeEntered,
    ScopeLeft,
    StepStarted,
    StorageWritten,
    Warned,
)
from gviz.explain.outgoing_gradients import outgoing_gradients
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline
from gviz.values.value_text import short

sys.path.insert(0, str(Path(__file__).parent))
from recorded import RELEASE, events_of, of_kind, operations  # beside this file

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
nn = torch.nn


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


def balanced(log):
    """Every pass that began ended, and every scope."""
    assert len(of_kind(log, BackwardStarted)) == len(of_kind(log, BackwardFinished))
    assert len(of_kind(log, ScopeEntered)) == len(of_kind(log, ScopeLeft))
    return log


def test_a_custom_function_is_a_node_with_its_place():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    log = balanced(events_of(lambda: Double.apply(leaf(1.0, 2.0)).sum().backward()))
    assert [name for name in operations(log) if "Backward" in name] == ["DoubleBackward", "SumBackward0"]
    made = next(event for event in of_kind(log, NodeCreated) if event.outputs[0].value.shape == (2,) and event.inputs)
    assert made.stack
    assert made.outputs[0].value.array() is not None


@pytest.mark.filterwarnings("ignore:.torch.cpu.amp.autocast:FutureWarning")  # PyTorch 2.4 warns of itself
@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints(reentrant):
    from torch.utils.checkpoint import checkpoint

    def program():
        x = leaf(1.0, 2.0)
        y = checkpoint(lambda v: (v * v).sin(), x, use_reentrant=reentrant)
        y.sum().backward()
        return x

    log = balanced(events_of(program))
    assert of_kind(log, GradAccumulated)
    if reentrant:
        assert len(of_kind(log, BackwardStarted)) == 2
        assert "CheckpointFunctionBackward" in operations(log)
    recomputed = [event for event in of_kind(log, NodeCreated) if event.during[0]]
    assert recomputed


def test_what_pytorch_computes_while_it_imports_a_module_is_no_step_of_the_program():
    """As Dynamo, which the first step of an optimizer imports in PyTorch 2.6 and 2.8, makes tables."""
    text = """
import torch
def half(x):
    return torch.nn.functional.relu(x) / 2
table = half(torch.ones(2)) + 1
rule = (torch.ones(2, requires_grad=True) * 2).sum()
"""
    module = compile(text, f"{torch.__path__[0]}/tables.py", "exec")

    def program():
        x = leaf(1.0) * 2
        exec(module, {})
        return x * 3

    log = events_of(program)
    assert operations(log) == ["MulBackward0", "MulBackward0"]
    assert len(of_kind(log, NodeCreated)) == 5  # a leaf, two products, two numbers


def test_a_checkpoint_keeps_books_of_its_inputs_unseen():
    """Releases before 2.12 keep them in a function of this name, which no pass goes through."""

    class _NoopSaveInputs(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *inputs):
            ctx.save_for_backward(*inputs)
            return torch.empty((0,))

        @staticmethod
        def backward(ctx, *grads):
            raise AssertionError("no pass comes here")

    def program():
        return _NoopSaveInputs.apply(torch.empty((0,), requires_grad=True), leaf(1.0))

    assert not of_kind(events_of(program), NodeCreated)[1:]  # the leaf that the program made


def test_double_backward():
    def program():
        x = leaf(2.0)
        (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        g.sum().backward()
        assert x.grad.item() == 12.0
        return g

    log = balanced(events_of(program))
    assert len(of_kind(log, GradCaptured)) == 1
    assert of_kind(log, GradAccumulated)[0].part.array() == 12.0
    assert any(event.during[0] == 1 for event in of_kind(log, NodeCreated))


def test_several_losses_add_up():
    def program():
        w = leaf(1.0, 2.0)
        for factor in (2, 3):
            (w * factor).sum().backward()
        return w

    parts = [
        (e.part.array().tolist(), e.value and e.value.array().tolist())
        for e in of_kind(events_of(program), GradAccumulated)
    ]
    assert parts == [([2.0, 2.0], None), ([3.0, 3.0], [5.0, 5.0])]


def test_contributions_and_their_sum():
    def program():
        w = leaf(1.0, 2.0)
        (w * 2 + w * 3 + w).sum().backward()
        return w

    flowed = [e for e in of_kind(events_of(program), GradFlowed) if e.node == 1]
    totals = [None if e.total is None else e.total.array().tolist() for e in flowed]
    assert totals == [None, [4.0, 4.0], [6.0, 6.0]] or (totals[0] is None and totals[-1] == [6.0, 6.0])


def test_function_transforms_say_what_they_cannot_show():
    def program():
        gradient = torch.func.grad(lambda v: (v**2).sum())(torch.tensor([1.0, 2.0]))
        several = torch.func.vmap(lambda v: v * 2)(torch.ones(3, 2))
        return gradient, several

    log = balanced(events_of(program))
    assert operations(log)


def test_a_recurrent_layer_has_several_outputs():
    def program():
        net = nn.LSTM(2, 3)
        out, (h, c) = net(torch.ones(4, 1, 2))
        (out.sum() + h.sum() + c.sum()).backward()
        return net

    log = balanced(events_of(program))
    assert {e.name for e in of_kind(log, ScopeEntered)} == {"LSTM"}
    assert len(of_kind(log, GradAccumulated)) == 4


def several_results(name):
    """A call with several results, of which one may depend on another, and its loss."""
    x, state = torch.ones(4, 1, 2), (torch.ones(1, 3), torch.ones(1, 3))
    if name == "LSTMCell":
        h, c = nn.LSTMCell(2, 3)(x[0], state)
        h, c = nn.LSTMCell(2, 3)(x[1], (h, c))
        return h.sum() + (c * c).sum()
    if name == "the state of an LSTMCell alone":
        h, c = nn.LSTMCell(2, 3)(x[0], state)
        return c.sum()
    if name == "attention":
        out, weights = nn.MultiheadAttention(4, 2)(*[torch.rand(3, 1, 4)] * 3)
        return out.sum() + weights.pow(2).sum()
    kinds = {"LSTM": nn.LSTM, "RNN": nn.RNN, "GRU": nn.GRU}
    out, state = kinds[name](2, 3, 2, dtype=torch.float64)(x.double())
    return out.sum() + sum(one.pow(2).sum() for one in (state if isinstance(state, tuple) else (state,)))


@pytest.mark.parametrize("name", ["LSTMCell", "the state of an LSTMCell alone", "attention", "LSTM", "RNN", "GRU"])
def test_each_graph_node_of_a_call_with_several_results_is_one_node(name):
    counts = []

    def program():
        loss = several_results(name)
        waiting, seen = [loss.grad_fn], {loss.grad_fn}
        while waiting:
            for node, _ in waiting.pop().next_functions:
                if node is not None and node not in seen:
                    seen.add(node)
                    waiting.append(node)
        counts.append(sum("AccumulateGrad" not in node.name() for node in seen))
        loss.backward()

    log = balanced(events_of(program))
    assert len(of_kind(log, StepStarted)) == counts[0]
    assert not of_kind(log, HookRan)


def test_hooks_that_replace_gradients():
    def program():
        w = leaf(1.0, 2.0)
        y = w * 2
        y.register_hook(lambda g: g * 10)
        w.register_hook(lambda g: g + 1)
        y.sum().backward()
        assert w.grad.tolist() == [21.0, 21.0]
        return w

    log = balanced(events_of(program))
    assert [e.value.array().tolist() for e in of_kind(log, HookRan)] == [[10.0, 10.0], [21.0, 21.0]]
    assert of_kind(log, GradAccumulated)[0].part.array().tolist() == [21.0, 21.0]
    assert [e.grads[0].array().tolist() for e in of_kind(log, StepStarted)][-1] == [10.0, 10.0]


def test_what_a_hook_does_to_a_gradient_that_was_added_comes_after_it():
    def program():
        p = nn.Parameter(torch.tensor([1.0, 2.0]))
        optimizer = torch.optim.SGD([p], lr=0.5)

        def step(_):
            optimizer.step()
            optimizer.zero_grad()

        p.register_post_accumulate_grad_hook(step)
        (p * p).sum().backward()
        return p, optimizer

    log = events_of(program)
    (added,), (cleared,) = of_kind(log, GradAccumulated), of_kind(log, GradSet)
    (ran,), (stepped,) = of_kind(log, HookRan), of_kind(log, OptimizerStepped)
    assert log.index(added) < log.index(stepped) < log.index(cleared) < log.index(ran)
    assert added.part.array().tolist() == [2.0, 4.0]
    assert cleared.how == "none"


def test_a_gradient_is_taken_over_not_copied_as_it_is_alone():
    def program():
        w, seen = leaf(1.0, 2.0), []
        w.register_hook(lambda grad: seen.append(grad.data_ptr()))
        (w * w.detach()).sum().backward()
        return w.grad.data_ptr() in seen

    kept = []
    events_of(lambda: kept.append(program()))
    assert kept == [program()] == [True]


def test_a_hook_of_a_node_that_replaces_a_gradient():
    def program():
        w = leaf(1.0, 2.0)
        y = w * 3
        y.grad_fn.register_prehook(lambda grads: (grads[0] * 10,))
        y.sum().backward()
        return w

    log = events_of(program)
    (ran,) = of_kind(log, HookRan)
    (started,) = [step for step in of_kind(log, StepStarted) if step.node == ran.node]
    assert (ran.when, ran.value.array().tolist()) == ("pre", [10.0, 10.0])
    assert log.index(started) < log.index(ran) < log.index(of_kind(log, GradFlowed)[-1])
    timeline = Timeline(MemoryLog(log))
    assert outgoing_gradients(timeline, timeline.at(len(timeline)), ran.node)[0].numbers == "[10 10] * 3"


def test_a_hook_of_an_accumulator_that_replaces_a_gradient():
    def program():
        w = leaf(1.0, 2.0)
        accumulator = (w * 2).grad_fn.next_functions[0][0]
        y = w * 3
        accumulator.register_prehook(lambda grads: (grads[0] * 7,))
        y.sum().backward()
        return w

    (added,) = of_kind(events_of(program), GradAccumulated)
    assert (added.part.array().tolist(), added.value) == ([21.0, 21.0], None)


def test_a_hook_of_a_module_that_replaces_a_gradient():
    def program():
        x, layer = leaf(1.0, 2.0), nn.Linear(2, 1)
        layer.register_full_backward_hook(lambda module, given, grads: (given[0] * 2,))
        layer(x * 2).sum().backward()
        return x, layer

    log = events_of(program)
    (ran,) = of_kind(log, HookRan)
    flowed = next(event for event in of_kind(log, GradFlowed) if event.node == ran.node)
    step = next(event for event in of_kind(log, StepStarted) if event.node == ran.node)
    assert ran.value.array().tolist() == (2 * flowed.part.array()).tolist()
    assert step.grads[0] == ran.value


def test_parts_without_gradients():
    def program():
        w = leaf(1.0, 2.0)
        with torch.no_grad():
            a = w * 2
        with torch.inference_mode():
            b = w * 3
        c = (w * 2).detach()
        return a, b, c

    created = [e for e in of_kind(events_of(program), NodeCreated) if e.kind == "op"]
    assert [e.untracked for e in created] == ["no_grad", "inference", "", "detach"]


def test_autocast():
    def program():
        net = nn.Linear(4, 2)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = net(torch.ones(3, 4))
        out.float().sum().backward()
        return net

    log = balanced(events_of(program))
    dtypes = {o.value.dtype for e in of_kind(log, NodeCreated) for o in e.outputs if o.value is not None}
    assert "bfloat16" in dtypes
    assert len(of_kind(log, GradAccumulated)) == 2


@pytest.mark.parametrize("fused", [False, True])
def test_what_a_scaler_takes_back_from_gradients(fused):
    def program():
        w = nn.Parameter(torch.tensor([1.0, 2.0]))
        optimizer, scaler = torch.optim.SGD([w], lr=0.5, fused=fused), torch.amp.GradScaler("cpu", init_scale=8.0)
        scaler.scale((w * w).sum()).backward()
        scaler.step(optimizer)
        return w

    log = events_of(program)
    (added,), (*_, unscaled) = of_kind(log, GradAccumulated), of_kind(log, GradSet)
    assert added.part.array().tolist() == [16.0, 32.0]
    assert not [event for event in of_kind(log, NodeCreated) if event.untracked]  # the scaler's own arithmetic
    assert (unscaled.how, unscaled.value.array().tolist()) == ("in place", [2.0, 4.0])
    assert log.index(unscaled) < log.index(of_kind(log, OptimizerStepped)[0])


def test_accumulation_clipping_and_steps():
    def program():
        net = nn.Linear(2, 1)
        optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
        for _ in range(2):
            (net(torch.ones(1, 2)) * 10).sum().backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return net, optimizer

    log = balanced(events_of(program))
    hows = [e.how for e in of_kind(log, GradSet)]
    assert hows.count("in place") == 2
    assert hows[-2:] == ["none", "none"]
    (stepped,) = of_kind(log, OptimizerStepped)
    assert len(stepped.parameters) == 2
    assert stepped.kind == "Adam"
    assert [e.node for e in of_kind(log, StorageWritten)][-2:] == list(stepped.parameters)


def test_several_threads_each_with_a_pass():
    def work(results, n):
        w = leaf(float(n))
        (w * w).sum().backward()
        results[n] = w.grad.item()

    def program():
        results = {}
        threads = [threading.Thread(target=work, args=(results, n)) for n in range(1, 4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == {1: 2.0, 2: 4.0, 3: 6.0}

    log = balanced(events_of(program))
    assert len(of_kind(log, BackwardStarted)) == 3
    assert len(of_kind(log, GradAccumulated)) == 3


def test_meta_tensors_have_shapes_alone():
    log = events_of(lambda: torch.ones(2, 3, device="meta") * 2)
    op = of_kind(log, NodeCreated)[-1]
    assert op.outputs[0].value.shape == (2, 3)
    assert op.outputs[0].value.data is None
    assert ("device", "meta") in op.attrs


def test_sparse_gradients_are_shown_as_such():
    def program():
        table = nn.Embedding(5, 2, sparse=True)
        table(torch.tensor([1, 3])).sum().backward()
        assert table.weight.grad.is_sparse
        return table

    (added,) = of_kind(balanced(events_of(program)), GradAccumulated)
    assert short(added.part) == "(5,2) f32 sparse not stored"


def test_a_pass_that_fails_names_its_node():
    def program():
        w = leaf(1.0, 2.0)
        y = w.exp()
        loss = y.sum()
        y.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace"):
            (y * 2).sum().backward()
        return loss

    log = events_of(program)
    (ended,) = of_kind(log, BackwardFinished)
    assert "modified by an inplace operation" in ended.error
    last = [e for e in log if isinstance(e, StepStarted)][-1]
    ops = {
        e.node: name
        for e, name in zip([e for e in of_kind(log, NodeCreated) if e.kind == "op"], operations(log), strict=True)
    }
    assert ops[last.node] == "ExpBackward0"


def test_writes_in_place():
    def program():
        x = torch.zeros(3)
        y = x[1:]
        y.add_(1)
        x[0] = 5.0
        out = torch.empty(3)
        torch.add(x, 1, out=out)
        return x, y, out

    written = [e.value.array().tolist() for e in of_kind(events_of(program), StorageWritten)]
    assert written == [[0.0, 1.0, 1.0], [5.0, 1.0, 1.0], [6.0, 2.0, 2.0]]


def test_everything_dies():
    def program():
        w = leaf(1.0, 2.0)
        for _ in range(3):
            (w * 2).sum().backward()

    log = events_of(lambda: (program(), torch.ones(1))[1])
    assert len(of_kind(log, NodeFreed)) >= len(of_kind(log, NodeCreated)) - 3


def test_data_loaders_with_workers():
    from torch.utils.data import DataLoader, TensorDataset

    def program():
        data = TensorDataset(torch.arange(8.0).reshape(4, 2))
        net = nn.Linear(2, 1)
        for (batch,) in DataLoader(data, batch_size=2, num_workers=1):
            net(batch).sum().backward()
        return net

    log = balanced(events_of(program))
    assert len(of_kind(log, BackwardStarted)) == 2


def test_what_a_module_hook_puts_in_place_is_said_beside_a_tensors_own_hook():
    def program():
        model = nn.Linear(1, 1, bias=False)
        model.register_full_backward_hook(lambda module, given, got: (given[0] * 0 + 5,))
        x = leaf(1.0) * 1
        x.register_hook(lambda g: g + 1)
        model(x).sum().backward()
        return model

    ran = of_kind(balanced(events_of(program)), HookRan)
    assert [(event.when, event.value.array().item()) for event in ran] == [("pre", 5.0), ("tensor", 6.0)]


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")  # of PyTorch 2.8 itself
def test_what_a_step_changes_between_calls_of_its_closure_is_said_before_it_is_used():
    """LBFGS computes with numbers of its own, which are no part of the program, and moves on between evaluations."""

    def program():
        w = nn.Parameter(torch.tensor([3.0, -2.0]))
        optimizer = torch.optim.LBFGS([w], lr=0.5, max_iter=3)
        seen = []

        def closure():
            optimizer.zero_grad()
            loss = (w * w).sum()
            loss.backward()
            seen.append(w.tolist())
            return loss

        optimizer.step(closure)
        return w, seen

    log = balanced(events_of(program))
    ops = {event.op: event.name for event in of_kind(log, OpSeen)}
    assert {ops[event.op] for event in of_kind(log, NodeCreated)} == {"tensor", "mul", "sum"}
    written = [event.value.array().tolist() for event in of_kind(log, StorageWritten)]
    starts = [log.index(event) for event in of_kind(log, BackwardStarted)]
    assert len(starts) == 3
    said = [of_kind(log[a:b], StorageWritten) for a, b in itertools.pairwise(starts)]
    assert [len(each) for each in said] == [1, 1]
    assert written == [[2.700000047683716, -1.7999999523162842], *[[1.3499996662139893, -0.9000000953674316]] * 2]


def test_sequences_of_several_lengths_are_named_unless_their_order_is_yet_to_come():
    def program():
        from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

        x = torch.ones(3, 2, 2, requires_grad=True)
        kept = []
        for sort in (True, False):
            packed = pack_padded_sequence(x, [3, 2], enforce_sorted=sort)
            kept += pad_packed_sequence(packed)
        return kept

    said = [event.path for event in of_kind(balanced(events_of(program)), Returned)]
    pair = [((0, 2, ""),), ((1, 2, ""),)]
    assert said == [*pair, *pair, *pair]  # packed, padded, and packed again


def test_a_compiled_region_is_left_alone():
    def program():
        double = torch.compile(lambda x: (x * 2).sin(), backend="eager")
        w = leaf(1.0, 2.0)
        double(w).sum().backward()
        return w

    log = balanced(events_of(program))
    assert of_kind(log, GradAccumulated)


def test_the_rule_of_a_compiled_region_is_closed():
    """What it computes, and what compiles it when it runs first, is no part of the program; what follows it is."""

    def program():
        doubled = torch.compile(lambda x: (x * 2).sin().sum(), backend="aot_eager")
        w = leaf(1.0, 2.0)
        w.register_hook(lambda g: g * 3)
        doubled(w).backward()
        return w

    log = balanced(events_of(program))
    ops = {event.op: event.name for event in of_kind(log, OpSeen)}
    made = [event for event in of_kind(log, NodeCreated) if event.kind == "op"]
    assert [ops[event.op] for event in made] == ["CompiledFunction", "mul"]
    assert made[1].during == (1, of_kind(log, GradAccumulated)[0].node)


def test_what_was_compiled_before_the_recording_stays_compiled():
    """Dynamo would follow the calls of the program into gviz, and fail there."""
    doubled = torch.compile(lambda x: (x * 2).sin().sum(), backend="aot_eager", fullgraph=True)

    def program():
        w = leaf(1.0, 2.0)
        doubled(w).backward()
        return w * 2

    for _ in range(2):  # it is compiled in the first, and run in the second
        log = balanced(events_of(program))
        assert [event.message[:17] for event in of_kind(log, Warned)] == ["a compiled region"]
        assert operations(log) == ["CompiledFunctionBackward", "MulBackward0"]


def test_a_listener_that_blocks_in_one_thread_holds_no_other():
    """A debugger may hold one thread at an event; the others, and other passes, must be able to go on."""
    from gviz.adapters.pytorch.attachment import Attachment

    held, release, done = threading.Event(), threading.Event(), threading.Event()
    holder = []

    def listener(event):
        if isinstance(event, StepStarted) and threading.get_ident() == holder[0] and not release.is_set():
            held.set()
            release.wait()

    def work():
        holder.append(threading.get_ident())
        w = leaf(1.0)
        (w * w).sum().backward()
        done.set()

    channel = emit.Channel(listener)
    with emit.listening(channel), Attachment(channel):
        thread = threading.Thread(target=work)
        thread.start()
        assert held.wait(60)
        w = leaf(3.0)
        (w * w).sum().backward()
        assert w.grad.item() == 6.0
        assert not done.is_set()
        release.set()
        thread.join()
    assert done.is_set()


def test_detached_again_nothing_is_left():
    from gviz.adapters.pytorch.attachment import Attachment

    before = (torch.autograd._engine_run_backward, torch.autograd.Function.__dict__["apply"], torch.compile,
              threading.Thread._bootstrap_inner)  # fmt: skip
    channel = emit.Channel(lambda event: None)
    with emit.listening(channel), Attachment(channel):
        pass
    assert before == (torch.autograd._engine_run_backward, torch.autograd.Function.__dict__["apply"], torch.compile,
                      threading.Thread._bootstrap_inner)  # fmt: skip
    assert not torch.overrides._get_current_function_mode_stack()
    assert not torch.nn.modules.module._global_forward_hooks


def test_a_recording_of_what_is_no_model_after_all_leaves_nothing_behind(tmp_path, capfd):
    before = (torch.autograd._engine_run_backward, threading.Thread._bootstrap_inner, torch.compile, sys.stdout)
    almost = SimpleNamespace(_parameters=None)
    with gviz.record(tmp_path / "a.gviz", model=almost):
        pass
    assert "gviz: warning: nothing is recorded: AttributeError(" in capfd.readouterr().err
    assert before == (torch.autograd._engine_run_backward, threading.Thread._bootstrap_inner, torch.compile, sys.stdout)
    assert not torch.overrides._get_current_function_mode_stack()
    with gviz.record(tmp_path / "b.gviz"):
        leaf(1.0) * 2


def test_a_missing_name_disables_only_what_needs_it(monkeypatch):
    monkeypatch.delattr(torch.autograd.graph, "_engine_run_backward")
    log = events_of(lambda: leaf(1.0) * 2)
    assert any("lacks backward passes" in event.message for event in of_kind(log, Warned))
    assert operations(log) == ["MulBackward0"]


def test_iterations_leave_nothing_behind():
    from gviz.adapters.pytorch.attachment import Attachment

    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = torch.optim.Adam(net.parameters())
    channel, kept = emit.Channel(lambda event: None), []
    with emit.listening(channel), Attachment(channel) as attached:
        for _ in range(60):
            loss = net(torch.randn(2, 3)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            kept.append((len(attached.session.marks._known), len(channel._ends), len(channel._stacks)))
    assert len(set(kept[2:])) == 1


def test_steps_on_a_device_thread_belong_to_their_pass():
    """A device's backward runs its hooks on another thread, which has no pass of its own."""
    from gviz.adapters.pytorch.recording_state import Pass, Session

    channel, found = emit.Channel(lambda event: None), []
    session = Session(channel)
    running = session.latest = Pass(1, retain_graph=False, create_graph=False)
    thread = threading.Thread(target=lambda: found.append(session.current_pass()))
    with emit.listening(channel):
        thread.start()
        thread.join()
        assert found == [running]
        session.forget(running)
        assert session.current_pass() is None


def test_buffers_that_are_used_have_names():
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    log = events_of(lambda: model(torch.ones(2, 3)))
    assert {event.name for event in of_kind(log, Named)} - {name for name, _ in model.named_parameters()} == {
        "1.running_mean", "1.running_var",
    }  # fmt: skip


def test_a_parameter_of_no_module_has_the_line_and_the_name_it_was_made_with(tmp_path):
    makes = nn.Parameter.__new__
    with gviz.record(tmp_path / "a.gviz"):
        gain = nn.Parameter(torch.ones(2))
        line = sys._getframe().f_lineno - 1
        (gain * 3).sum()
    timeline = gviz.load(tmp_path / "a.gviz")
    (node,) = [node for node in timeline.nodes if timeline.info(node).created.kind == "parameter"]
    info = timeline.info(node)
    assert (info.name, info.frames[0].line) == ("gain", line)
    assert nn.Parameter.__new__ is makes


def test_what_a_constructor_computes_has_not_the_name_of_the_object(tmp_path):
    def program():
        from torch.distributions import Categorical, MultivariateNormal

        logits = torch.zeros(2, requires_grad=True)
        kinds = Categorical(logits=logits)
        normal = MultivariateNormal(logits, torch.eye(2) * 2)
        gain = nn.Parameter(torch.ones(2))
        loss = (gain * normal.loc).sum() - kinds.entropy()
        loss.backward()

    with gviz.record(tmp_path / "a.gviz"):
        program()
    timeline = gviz.load(tmp_path / "a.gviz")
    assert {timeline.nodes.name(node) for node in timeline.nodes} == {"", "logits", "gain", "loss"}


def test_a_pass_begins_at_an_edge_of_the_graph():
    def program():
        w = torch.ones(2, requires_grad=True)
        torch.autograd.backward(torch.autograd.graph.get_gradient_edge((w * 3).sum()))
        assert w.grad.tolist() == [3, 3]

    if RELEASE < (2, 8):  # PyTorch takes no edge there
        with pytest.raises((AttributeError, AssertionError)):
            program()
        return
    (started,) = of_kind(events_of(program), BackwardStarted)
    assert [seed.array().tolist() for seed in started.seeds] == [1.0]


def steps_of(log):
    said = of_kind(log, (OptimizerStarted, OptimizerStepped))
    return [(e.kind, *((e.parameters, e.raised) if isinstance(e, OptimizerStepped) else ())) for e in said]


class Raises(torch.optim.SGD):
    def step(self, closure=None):
        super().step(closure)
        raise ValueError


class Extended(torch.optim.SGD):
    def step(self, closure=None):
        return super().step(closure)


def test_a_step_that_raised_is_over_and_has_updated_what_it_has_written():
    def program():
        v, w = leaf(2.0), leaf(3.0)
        (v * v).backward()
        for optimizer, closure in ((Raises([v, w]), None), (torch.optim.SGD([v]), lambda: 1 / 0)):
            with contextlib.suppress(ValueError, ZeroDivisionError):
                optimizer.step(closure)
        return v, w

    log = events_of(program)
    assert steps_of(log) == [("Raises",), ("Raises", (1,), "ValueError"), ("SGD",), ("SGD", (), "ZeroDivisionError")]
    assert of_kind(log, StorageWritten)[-1].value.array() != 2.0


def test_a_step_whose_hook_raised_has_begun_and_is_over():
    def refuse(*_):
        raise KeyError

    def program():
        optimizer = torch.optim.SGD([leaf(1.0)])
        optimizer.register_step_pre_hook(refuse)
        with contextlib.suppress(KeyError):
            optimizer.step()

    assert steps_of(events_of(program)) == [("SGD",), ("SGD", (), "KeyError")]


def test_a_step_that_calls_that_of_the_class_it_extends_is_one():
    def program():
        v = leaf(2.0)
        for kind in (torch.optim.SGD, Extended):  # PyTorch hears of a class's own steps once there is one
            v.grad = torch.ones_like(v)
            kind([v]).step()

    assert steps_of(events_of(program)) == [("SGD",), ("SGD", (1,), ""), ("Extended",), ("Extended", (1,), "")]


def test_after_a_recording_steps_are_as_they_were():
    before = torch.autograd.profiler.record_function.__exit__
    events_of(lambda: None)
    assert torch.autograd.profiler.record_function.__exit__ is before


@pytest.mark.parametrize("freeze", [lambda x: x.requires_grad_(False), lambda x: x.detach_()])
def test_a_leaf_that_is_frozen_before_the_pass_gets_nothing(freeze):
    def program():
        x, w = (torch.tensor([start, 2.0], requires_grad=True) for start in (1.0, 3.0))
        y = (x * w).sum()
        freeze(x)
        y.backward()
        assert x.grad is None
        return x, w

    log = events_of(program)
    (frozen,) = of_kind(log, RequiresGradSet)
    (added,) = of_kind(log, GradAccumulated)
    assert not frozen.requires_grad
    assert (added.part.array().tolist(), added.node != frozen.node) == ([1.0, 2.0], True)


def test_a_pass_that_begins_at_a_leaf_which_nothing_uses():
    def program():
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        for _ in range(2):
            x.backward(torch.tensor([3.0, 4.0]))
        return x

    added = of_kind(events_of(program), GradAccumulated)
    assert [(event.part.array().tolist(), event.value and event.value.array().tolist()) for event in added] == [
        ([3.0, 4.0], None),
        ([3.0, 4.0], [6.0, 8.0]),
    ]
