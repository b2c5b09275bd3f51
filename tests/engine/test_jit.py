"""Tracing: what is recorded, what is warned of, and how a static graph runs, against PyTorch and the function itself."""

import io
import random
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from recording import events_of

import gviz.engine as torch
from gviz.engine import jit
from gviz.errors import GvizError
from gviz.events import NodeCreated, ScopeEntered
from gviz.values.value import decode

READINGS = {
    "bool": "x * 2 if x.sum() > 0 else x + 2",
    "int": "x * int(x.sum())",
    "float": "x * float(x.sum())",
    "number": "x * x.sum().item()",
    "list": "x * len(x.tolist())",
    "array": "x * float(x.numpy()[0])",
    "len": "x * len(x)",
    "iteration": "sum(part for part in x)",
    "shape as boolean": "x * 2 if x.shape[0] > 2 else x",
    "shape as integer": "x * int(x.shape[0])",
    "shape as size": "x.view(x.shape[0], -1)",
    "shape in arithmetic": "x.view(x.shape[0] * 1)",
}


def warned(package, function, *example):
    """The texts of tracer warnings, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        package.jit.trace(function, example)
    return list(dict.fromkeys(str(w.message) for w in caught if "Tracer" in w.category.__name__))


@pytest.mark.torch
@pytest.mark.parametrize("body", READINGS.values(), ids=READINGS)
def test_warnings_are_those_of_pytorch(body):
    import torch as pytorch

    space = {"__name__": __name__}
    exec(f"def f(x):\n    return (\n        {body}\n    )\n", space)
    expected = warned(pytorch, space["f"], pytorch.tensor([1.0, 2.0, 3.0]))
    assert warned(torch, space["f"], torch.tensor([1.0, 2.0, 3.0])) == expected


def test_a_warning_is_at_the_users_line():
    def f(x):
        y = x + 1
        return y * 2 if y.sum() > 0 else y

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        jit.trace(f, torch.ones(2))
    assert [(w.filename, w.lineno, w.category) for w in caught] == [
        (__file__, f.__code__.co_firstlineno + 2, jit.TracerWarning)
    ]


class NonTraceableModel(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x * 2
        return x + 2


def test_the_other_branch_is_gone():
    model = NonTraceableModel()
    with pytest.warns(jit.TracerWarning, match="Python boolean"):
        traced = jit.trace(model, torch.tensor(0))
    assert model(torch.tensor(1)) == 2
    assert traced(torch.tensor(1)) == 3
    found = jit.compare(model, traced.graph, (torch.tensor(1),))
    assert found.is_structural
    assert "runs mul(x, 2)" in str(found)
    assert "runs add(x, 2)" in str(found)
    assert __file__.rpartition("/")[2] in str(found)


def test_where_keeps_both_branches():
    def f(x):
        return torch.where(x.sum() > 0, x * 2, x + 2)

    traced = jit.trace(f, torch.randn(3))
    assert traced(torch.tensor(1)) == 2
    assert traced(torch.tensor(1)).dtype is torch.int64
    assert traced(torch.tensor(0)) == 2


@pytest.mark.filterwarnings("ignore:Converting")
def test_checks_of_other_inputs():
    with pytest.raises(jit.TracingCheckError, match=r"runs add\(x, 2\) .* where the traced graph runs mul\(x, 2\)"):
        jit.trace(NonTraceableModel(), torch.ones(3), check_inputs=[(-torch.ones(3),)])

    def frozen(x):
        return x * x.sum().item() + 1

    with pytest.warns(jit.TracerWarning, match=r"They part at mul\(x, 3.0\) .*: the function gives \[12 12"):
        jit.trace(frozen, torch.ones(3), check_inputs=[(torch.ones(3) * 2,)])


def test_a_module_shares_its_parameters():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    x = torch.randn(5, 3)
    traced = jit.trace(model, x)
    assert list(traced.state_dict()) == list(model.state_dict())
    assert list(traced.graph.parameters.values()) == list(model.parameters()) == list(traced.parameters())
    with torch.no_grad():
        model[0].weight.mul_(2)
    assert torch.equal(traced(x), model(x))
    traced(x).sum().backward()
    assert all(p.grad is not None for p in model.parameters())


def test_gradients_flow_through_it():
    def f(x, w):
        return (torch.sin(x * w) + x).sum()

    x, w = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    traced = jit.trace(f, (x, w))
    expected = torch.autograd.grad(f(x, w), (x, w), create_graph=True)
    got = torch.autograd.grad(traced(x, w), (x, w), create_graph=True)
    assert all(torch.equal(a, b) for a, b in zip(expected, got, strict=True))
    assert torch.equal(*[torch.autograd.grad(g[0].sum(), w)[0] for g in (expected, got)])


def test_without_gradients_it_makes_no_nodes():
    traced = jit.trace(lambda x: (x * 2).sin(), torch.ones(3))
    assert traced(torch.ones(3)).grad_fn is None
    assert traced(torch.ones(3, requires_grad=True)).grad_fn is not None


def test_writes_to_what_the_program_made_are_repeated():
    def f(x):
        h = torch.zeros(3)
        for i in range(3):
            h[i] = x[i] * (i + 1)
        return h

    traced = jit.trace(f, torch.ones(3))
    for _ in range(2):
        assert traced(torch.tensor([1.0, 2.0, 3.0])).tolist() == [1, 4, 9]


def test_writes_to_inputs_are_said_and_done():
    with pytest.warns(jit.TracerWarning, match="writes to its input x in place"):
        traced = jit.trace(lambda x: x.add_(1) * 2, torch.zeros(2))
    x = torch.zeros(2)
    assert traced(x).tolist() == [2, 2]
    assert x.tolist() == [1, 1]
    assert x._version == 1


def test_random_numbers_are_recorded():
    with pytest.warns(jit.TracerWarning, match="Random numbers are recorded"):
        traced = jit.trace(lambda x: torch.nn.functional.dropout(x, 0.5), torch.ones(20))
    assert torch.equal(traced(torch.ones(20)), traced(torch.ones(20)))


def test_operations_that_are_none_are_warned_of():
    def f(x):
        h = x * 2
        h.detach_()
        return h * x

    with pytest.warns(jit.TracerWarning, match=r"detach_\(\) is not an operation"):
        jit.trace(f, torch.ones(2, requires_grad=True))


REFUSED = {
    "no tensors": (lambda: jit.trace(lambda x: x, 3), TypeError, "needs example inputs that are tensors"),
    "none at all": (lambda: jit.trace(lambda: torch.ones(1), ()), TypeError, "at least one tensor"),
    "no function": (lambda: jit.trace(3, torch.ones(1)), TypeError, "takes a function or a module, not int"),
    "no result": (lambda: jit.trace(lambda x: None, torch.ones(1)), RuntimeError, "didn't return any values"),
    "a number": (lambda: jit.trace(lambda x: 3, torch.ones(1)), RuntimeError, "Only tensors, lists, tuples"),
    "a dict": (lambda: jit.trace(lambda x: {"a": x}, torch.ones(1)), RuntimeError, "Encountering a dict"),
    "history": (lambda: jit.trace(lambda x: x * HISTORY, torch.ones(1)), RuntimeError, "Cannot insert a Tensor that"),
}
HISTORY = torch.ones(1, requires_grad=True) * 2


@pytest.mark.parametrize(("call", "kind", "text"), REFUSED.values(), ids=REFUSED)
def test_refused(call, kind, text):
    with pytest.raises(kind, match=text) as error:
        call()
    assert "\n" not in str(error.value)


def test_calls_that_do_not_fit():
    traced = jit.trace(lambda x, y: x @ y, (torch.ones(2, 3), torch.ones(3, 2)))
    with pytest.raises(RuntimeError, match=r"was traced with 2 arguments \(tensor, tensor\) and is called with 1"):
        traced(torch.ones(2, 3))
    with pytest.raises(
        RuntimeError, match=r"takes tensors, as it was traced with: \(tensor, tensor\), not \(int, int\)"
    ):
        traced(1, 2)
    with pytest.raises(
        RuntimeError, match=r"traced with y of float32\[3, 2\] and is called with float32\[4, 2\]; its op"
    ):
        traced(torch.ones(2, 3), torch.ones(4, 2))
    assert traced(torch.ones(5, 3), torch.ones(3, 2)).shape == (5, 2)


def test_it_reads_as_code():
    def f(x):
        y = x * 2
        return y.sum(0), y[1:]

    assert str(jit.trace(f, torch.ones(3, 2)).graph).split("\n") == [
        "def f(x: float32[3, 2]):",
        f"    v1 = mul(x, 2)                                 # float32[3, 2]  {at(f, 1, 13)}",
        f"    v2 = sum(v1, dim=(0,), keepdim=False)          # float32[2]  {at(f, 2, 16)}",
        f"    v3 = slice(v1, dim=0, start=1, end=3, step=1)  # float32[2, 2]  {at(f, 2, 26)}",
        "    return v2, v3",
    ]


def at(function, line, column):
    return f"test_jit.py:{function.__code__.co_firstlineno + line}:{column}"


def test_whoever_listens_sees_its_operations():
    def f(x):
        return (x * 2).exp()

    traced = jit.trace(f, torch.ones(2))
    log = events_of(lambda: traced(torch.ones(2)))
    assert [event.name for event in log if isinstance(event, ScopeEntered)] == ["f"]
    values = [event.outputs[0].value for event in log if isinstance(event, NodeCreated)][-2:]
    assert np.allclose(decode(values[-1].dtype, values[-1].shape, values[-1].data), np.exp(2))


def saved(traced):
    file = io.BytesIO()
    traced.save(file)
    file.seek(0)
    return file


def test_saved_and_loaded():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4), torch.nn.Linear(4, 2))
    x = torch.randn(5, 3)
    loaded = jit.load(saved(jit.trace(model, x)))
    assert torch.equal(loaded(x), model(x))
    assert list(loaded.state_dict()) == list(model.state_dict())
    loaded(x).sum().backward()
    assert all(p.grad is not None for p in loaded.parameters())

    def f(x):
        h = torch.zeros(3)
        h[1:] = x[:2] * 3
        return h.max(0), torch.where(h > 1, h, x.double().float())

    traced = jit.trace(f, torch.ones(3))
    pair, chosen = f(torch.ones(3))
    loaded_pair, loaded_chosen = jit.load(saved(traced))(torch.ones(3))
    assert torch.equal(chosen, loaded_chosen)
    assert all(map(torch.equal, pair, loaded_pair))


def loading(data):
    """What `load` says of bytes: its error, or None."""
    try:
        jit.load(io.BytesIO(data))
    except GvizError as error:
        return error
    return None


def test_damaged_files_give_one_line():
    data = saved(jit.trace(torch.nn.Linear(3, 2), torch.ones(1, 3))).getvalue()
    chance = random.Random(0)
    for _ in range(300):
        damaged = bytearray(data)
        for _ in range(chance.choice([1, 30])):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        error = loading(bytes(damaged[: chance.choice([len(damaged), chance.randrange(len(damaged))])]))
        assert error is None or ("no traced function" in error.what and len(error.lines()) <= 2)


HOSTILE = {
    "another format": lambda c: c.update({"gviz static graph": 99}),
    "a later node": lambda c: c["nodes"][-1].update(inputs=[(99, 0)]),
    "an unknown op": lambda c: c["nodes"][-1].update(op=("os.system(self)", "", "", ())),
    "an unknown argument": lambda c: c["nodes"][-1].update(attrs={"__class__": 1}),
    "too few operands": lambda c: c["nodes"][-1].update(inputs=[(0, 0)]),
    "no such output": lambda c: c.update(outputs=[(0, 7)]),
    "no tensors": lambda c: c.update(tensors=[]),
    "a wrong shape": lambda c: c["nodes"][1].update(outputs=[((9,), "float32", (4,), 1)]),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_hostile_files_are_refused(change):
    content = torch.load(saved(jit.trace(lambda x: x * torch.ones(3), torch.ones(3))))
    change(content)
    file = io.BytesIO()
    torch.save(content, file)
    file.seek(0)
    with pytest.raises(GvizError, match="no traced function that gviz saved"):
        jit.load(file)


def test_a_file_that_is_not_there():
    with pytest.raises(GvizError, match=r"cannot read /nowhere/at.all: No such file"):
        jit.load("/nowhere/at.all")


def test_batch_statistics_move_in_every_run():
    traced_model, model = torch.nn.BatchNorm1d(3), torch.nn.BatchNorm1d(3)
    x, y = torch.randn(4, 3), torch.randn(4, 3)
    traced = jit.trace(traced_model, x, check_trace=False)
    with torch.no_grad():
        outputs = [model(x), model(y)][1], traced(y)
    assert torch.equal(*outputs)
    assert torch.equal(traced_model.running_mean, model.running_mean)
    assert torch.equal(traced_model.running_var, model.running_var)


def test_values_that_leave_inside_of_functions_are_warned_of():
    mask = torch.tensor([[True, False], [True, True]])

    def attention(q, mask):
        return torch.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=mask > 0)

    with pytest.warns(jit.TracerWarning, match="NumPy array"):
        jit.trace(attention, (torch.randn(2, 4), mask.float()))
    with pytest.warns(jit.TracerWarning, match="NumPy array"):
        jit.trace(lambda x, n: x.repeat_interleave(n * 1), (torch.ones(2), torch.tensor([1, 2])))


def test_examples_by_name():
    traced = jit.trace(lambda x, y: x - y, example_kwarg_inputs={"y": torch.ones(1), "x": torch.ones(1) * 3})
    assert traced(torch.tensor([5.0]), torch.tensor([1.0])).item() == 4


def test_threads_have_buffers_of_their_own():
    def f(x):
        for _ in range(50):
            x = torch.sin(x) * 2 + x / 3
        return x

    traced = jit.trace(f, torch.ones(1000))
    inputs = [torch.randn(1000) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(traced, inputs * 5))
    assert all(torch.equal(result, f(x)) for result, x in zip(results, inputs * 5, strict=True))


def test_parameters_may_become_another_dtype():
    model = torch.nn.Linear(3, 2)
    traced = jit.trace(model, torch.ones(1, 3))
    model.double()
    with torch.no_grad():
        assert traced(torch.ones(1, 3).double()).dtype is torch.float64
