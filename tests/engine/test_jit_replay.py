"""Random programs, traced and replayed, give what they give themselves: forward and backward, bit for bit."""

import os
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from random_programs import EXPRESSIONS, NAMES, WRITES

import gviz.engine as torch
from gviz.engine import graphs, jit

MORE = int(os.environ.get("GVIZ_FUZZ", "0"))
NO_OPERATIONS = ("requires_grad_()", ".detach_()", ".data = ")
"""What a static graph does not hold, and warns of."""
SHAPES = {"a": (2, 3), "b": (3,), "c": (2, 3)}


@st.composite
def lines(draw):
    names = {"x": draw(st.sampled_from(NAMES)), "y": draw(st.sampled_from(NAMES))}
    if draw(st.integers(0, 2)) == 0:
        line = draw(st.sampled_from(WRITES)).format(**names)
    else:
        line = f"{draw(st.sampled_from(NAMES[2:]))} = " + draw(st.sampled_from(EXPRESSIONS)).format(**names)
    return draw(st.sampled_from(["", "", "", "with torch.no_grad(): "])) + line


def function(written):
    body = "".join(f"    {line}\n" for line in written)
    text = f"def f(a, b, c):\n    d = a * 1\n    e = b * 2\n{body}    return c.clone(), d.clone(), e.clone(), d, e\n"
    space = {"torch": torch}
    exec(text, space)
    return space["f"]


def inputs(seed, requires_grad=True):
    random = np.random.default_rng(seed)
    made = [torch.tensor(random.normal(size=shape).round(3) * 2) for shape in SHAPES.values()]
    return [t.requires_grad_(requires_grad and name in "ab") for name, t in zip(SHAPES, made, strict=True)]


def works(written, seed):
    """What a function gives, with the inputs it leaves behind; None if it fails."""
    arguments = inputs(seed)
    try:
        return function(written)(*arguments), arguments
    except (RuntimeError, IndexError, ValueError, TypeError, AttributeError):
        return None


def bits(tensors):
    return [(t.dtype, t._array.shape, t._array.tobytes()) for t in tensors]


def usable(written):
    """The lines that do not fail."""
    kept = []
    for line in written:
        if not any(text in line for text in NO_OPERATIONS) and works([*kept, line], 0) is not None:
            kept.append(line)
    return kept


programs = st.lists(lines(), min_size=1, max_size=10)
tried = settings(
    max_examples=MORE or 150,
    derandomize=not MORE,
    deadline=None,
    print_blob=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@pytest.mark.filterwarnings("ignore:std")
@tried
@given(programs)
def test_values(written):
    kept = usable(written)
    note("\n".join(kept))
    traced, is_frozen = trace(function(kept))
    seed = 0 if traced.graph.dynamic or is_frozen else 1
    expected = works(kept, seed)
    if expected is None:
        return
    for grad_enabled in (True, False):
        arguments = inputs(seed)
        with torch.set_grad_enabled(grad_enabled):
            if not grad_enabled and refused(kept, seed):
                continue
            result = traced(*arguments)
        assert bits(result) == bits(expected[0])
        assert bits(arguments) == bits(expected[1])


def refused(kept, seed):
    with torch.no_grad():
        return works(kept, seed) is None


def trace(f):
    """The traced function, and whether it was warned that a value of the example stays in it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", jit.TracerWarning)
        traced = jit.trace(f, tuple(inputs(0)), check_trace=False)
    return traced, any("Converting" in str(warning.message) for warning in caught)


@pytest.mark.filterwarnings("ignore:std")
@tried
@given(programs)
def test_gradients(written):
    kept = usable(written)
    note("\n".join(kept))

    def loss(*arguments):
        c, d, e, *_ = function(kept)(*arguments)
        total = arguments[0].sum() + arguments[1].sum()
        return total + (c * c).sum() + d.sum() * 2 + e.sum()

    arguments = inputs(1)
    try:
        value = loss(*arguments)
        expected = [value, *torch.autograd.grad(value, arguments[:2], retain_graph=True)]
    except (RuntimeError, IndexError, ValueError):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jit.TracerWarning)
        both = jit.value_and_grad(loss, tuple(inputs(1)))
        traced = jit.trace(loss, tuple(inputs(1)), check_trace=False)
    value, gradients = both(*inputs(1))
    assert bits([value, *gradients]) == bits(expected)
    arguments = inputs(1)
    value = traced(*arguments)
    assert bits([value, *torch.autograd.grad(value, arguments[:2])]) == bits(expected)


@pytest.mark.parametrize("shape", [(), (100,), (3, 4)])
def test_long_chains(shape):
    def chain(x, w):
        h = x
        for _ in range(200):
            h = torch.sin(h * w) + x / 2
        return h.sum()

    x, w = torch.full(shape, 0.3, requires_grad=True), torch.full(shape, 0.99, requires_grad=True)
    value = chain(x, w)
    expected = [value, *torch.autograd.grad(value, [x, w], retain_graph=True)]
    value, gradients = jit.value_and_grad(chain, (x, w))(x, w)
    assert bits([value, *gradients]) == bits(expected)


HOLD = ["held.append({x})", "held.append({x}.detach())", "held.append({x}.t())", "held.append({x}[-1:])"]


@st.composite
def holding_lines(draw):
    """A line that may hold what it finds, or a view of it, beyond the program."""
    if draw(st.integers(0, 3)):
        return draw(lines())
    return draw(st.sampled_from(HOLD)).format(x=draw(st.sampled_from(NAMES)))


def capturable(written):
    """The lines that do not fail and can be captured, as a function of three tensors that gives what it held."""
    kept = []
    for line in written:
        f = holding([*kept, line])
        try:
            f(*inputs(0))
            f(*inputs(1))
            captured(f, inputs(0))
        except (RuntimeError, IndexError, ValueError, TypeError, AttributeError):
            continue
        kept.append(line)
    note("\n".join(kept))
    return holding(kept)


def holding(written):
    body = "".join(f"    {line}\n" for line in written)
    text = f"def f(a, b, c):\n    held = []\n    d = a * 1\n    e = b * 2\n{body}    return [*held, c]\n"
    space = {"torch": torch}
    exec(text, space)
    return space["f"]


def captured(f, arguments):
    graph = graphs.Graph()
    with graphs.capture(graph):
        results = f(*arguments)
    return graph, results


@pytest.mark.filterwarnings("ignore:std")
@tried
@given(st.lists(holding_lines(), min_size=1, max_size=12))
def test_captured(written):
    f = capturable(written)
    arguments = inputs(0)
    memory = [argument._array for argument in arguments]
    graph, results = captured(f, arguments)
    places = [result.data_ptr() for result in results]
    for seed in (1, 2):
        fresh = inputs(seed)
        for array, argument in zip(memory, fresh, strict=True):
            array[...] = argument._array
        expected = f(*fresh)
        graph.replay()
        assert bits(results) == bits(expected)
        assert bits(arguments) == bits(fresh)
    assert places == [result.data_ptr() for result in results]
    for result, other in zip(results, expected, strict=True):
        assert gradients(result, arguments) == gradients(other, fresh)


def gradients(result, arguments):
    """The bits of a result's gradients; why it has none if that is so."""
    try:
        found = torch.autograd.grad(
            result.sum(), arguments[:2], retain_graph=True, allow_unused=True, materialize_grads=True
        )
    except RuntimeError as error:
        return str(error)
    return bits(found)
