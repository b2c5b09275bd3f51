"""Every declared operation with its own examples: rules against differences, variants against each other."""

import warnings
from itertools import count

import differences
import numpy as np
import pytest
from differences import check, weights
from recording import events_of

import gviz.engine as torch
from gviz.engine.op import REGISTRY, apply
from gviz.engine.ops import _examples as examples
from gviz.engine.views import apply_in_place


def example(op, position):
    """The op (without its optional tensors that the example leaves out), the example's arrays and attributes."""
    chosen = op.examples()[position]
    op, arrays = op if op.takes_list else op.present(chosen.tensors)[0], [a for a in chosen.tensors if a is not None]
    return op, [np.asarray(array) for array in arrays], chosen.attrs


def keeps_shape(op, position):
    """Whether the result has the shape of the first operand, so that it can be written there."""
    _, arrays, _ = example(op, position)
    return np.broadcast_shapes(*(a.shape for a in arrays)) == arrays[0].shape


DIFFERENTIABLE = [op for op in REGISTRY if op.rules and op.rules[0].text != "none"]
CASES = [
    pytest.param(op, i, id=f"{op.name}-{op.grad_fn}-{i}") for op in DIFFERENTIABLE for i in range(len(op.examples()))
]
IN_PLACE = [case for case in CASES if case.values[0].in_place and keeps_shape(*case.values)]
NAMED = [case for case in CASES if case.values[0].torch]


@pytest.fixture(autouse=True)
def same_examples(monkeypatch):
    """The same numbers whatever ran before."""
    monkeypatch.setattr(examples, "_seeds", count())


def leaves(op, arrays):
    """Leaves, of which those require grad that a rule of `op` is for."""
    return differences.leaves(arrays, has_rule(op, arrays))


def has_rule(op, arrays):
    return [op.takes_list or op.slots[i] in op.slots_with_rules for i in range(len(arrays))]


def gradients(outputs, inputs):
    """Results and gradients of all, as arrays."""
    listed = [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
    total = sum((o * weights(o).to(o.dtype)).sum() for o in listed if o.requires_grad)
    wanted = [t for t in inputs if t.requires_grad]
    return [t.detach().numpy() for t in (*listed, *torch.autograd.grad(total, wanted))]


def assert_equal(one, other):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: f"{op.name}-{op.grad_fn}")
def test_every_differentiable_op_has_an_example(op):
    assert op.examples()


@pytest.mark.parametrize("op", REGISTRY, ids=lambda op: f"{op.name}-{op.grad_fn}")
def test_every_op_describes_itself(op):
    seen = op.describe(1)
    assert seen.slots == op.slots
    assert len(seen.rules) == len(op.slots)
    assert all(rule.text for rule in op.rules)
    assert {slot for rule in op.rules for slot in rule.slots} <= set(op.slots)


def fit(op, tensors):
    """The tensors as the op wants them, where it reads only one half of a symmetric or triangular matrix."""
    if op.name in ("linalg_cholesky", "cholesky", "linalg_eigh"):
        return [(tensors[0] + tensors[0].mT) / 2]
    return [tensors[0], tensors[1].tril()] if op.name == "cholesky_solve" else tensors


@pytest.mark.parametrize(("op", "position"), CASES)
def test_rules_agree_with_differences_twice_over(op, position):
    op, arrays, attrs = example(op, position)
    check(lambda *tensors: apply(op, fit(op, tensors), attrs), arrays, only=has_rule(op, arrays), order=2)


@pytest.mark.parametrize(("op", "position"), CASES)
def test_a_listener_changes_nothing(op, position):
    op, arrays, attrs = example(op, position)

    def program():
        tensors = leaves(op, arrays)
        results.append(gradients(apply(op, tensors, attrs), tensors))

    results = []
    program()
    events_of(program)
    assert_equal(*results)


@pytest.mark.parametrize(
    ("op", "position"), [c for c in CASES if c.values[0].name != "view" and "storage_offset" not in c.values[0].attrs]
)
def test_memory_order_changes_nothing(op, position):
    op, arrays, attrs = example(op, position)
    plain = leaves(op, arrays)
    scattered = [
        torch.from_numpy(spread(a)).requires_grad_(p.requires_grad) for a, p in zip(arrays, plain, strict=True)
    ]
    for a, b in zip(
        gradients(apply(op, plain, attrs), plain), gradients(apply(op, scattered, attrs), scattered), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def spread(array):
    """The same elements, backwards in memory and with gaps between them."""
    if not array.ndim:
        return array
    wide = np.zeros([2 * n for n in array.shape[::-1]], array.dtype)
    view = wide[tuple([slice(None, None, 2)] * array.ndim)].T
    view[...] = array
    return view


@pytest.mark.parametrize(("op", "position"), IN_PLACE)
def test_writing_in_place_gives_the_same(op, position):
    op, arrays, attrs = example(op, position)
    plain, written = leaves(op, arrays), leaves(op, arrays)
    expected = gradients(apply(op, plain, attrs), plain)
    assert_equal(expected, gradients(apply_in_place(op, [written[0] * 1, *written[1:]], attrs), written))


@pytest.mark.parametrize(("op", "position"), [case for case in CASES if case.values[0].name != "to"])
def test_float32_stays_float32(op, position):
    op, arrays, attrs = example(op, position)
    tensors = leaves(op, [a.astype(np.float32) if a.dtype.kind == "f" else a for a in arrays])
    for array in gradients(apply(op, tensors, attrs), tensors):
        assert array.dtype.kind != "f" or array.dtype == np.float32


@pytest.mark.parametrize("op", [op for op in DIFFERENTIABLE if op.in_place], ids=lambda op: f"{op.name}-{op.grad_fn}")
def test_nothing_gives_nothing(op):
    _, _, attrs = example(op, 0)
    tensors = leaves(op, [np.zeros((0, 3))] * len(op.slots))
    for array in gradients(apply(op, tensors, attrs), tensors):
        assert array.shape == (0, 3)


def listed(results):
    return list(results) if isinstance(results, (tuple, list)) else [results]


def called(package, op, tensors, attrs):
    """What the function of a package that means `op` gives for these tensors and attributes."""
    names = op.torch.removeprefix("Tensor.").split(".")
    if op.torch.startswith("Tensor."):
        return listed(getattr(tensors[0], names[0])(*tensors[1:], **attrs))
    function = package
    for name in names:
        function = getattr(function, name)
    if op.takes_list:
        return listed(function(tensors, **attrs))
    if not (op.absent or op.attrs):
        return listed(function(*tensors, **attrs))
    first, *others = zip(op.slots, tensors, strict=True)
    return listed(function(first[1], **dict(others), **attrs))


def floating(tensors):
    """Those that a gradient can be asked for."""
    return [t for t in tensors if t.requires_grad]


@pytest.mark.torch
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize(("op", "position"), NAMED)
def test_ops_are_pytorchs(op, position, kind):
    import torch as real

    op, arrays, attrs = example(op, position)
    arrays = [a.astype(kind) if a.dtype.kind == "f" else a for a in arrays]
    ours = leaves(op, arrays)
    theirs = [real.tensor(a, requires_grad=t.requires_grad) for a, t in zip(arrays, ours, strict=True)]
    got, expected = called(torch, op, ours, attrs), called(real, op, theirs, attrs)
    for mine, other in zip(got, expected, strict=True):
        assert type(mine.grad_fn).__name__ == type(other.grad_fn).__name__
        assert str(mine.dtype) == str(other.dtype)
    seeds = [weights(o) for o in floating(got)]
    real.autograd.backward(
        floating(expected),
        [
            real.tensor(s.numpy(), dtype=real.float64).to(o.dtype)
            for s, o in zip(seeds, floating(expected), strict=True)
        ],
    )
    torch.autograd.backward(floating(got), [s.to(o.dtype) for s, o in zip(seeds, floating(got), strict=True)])
    close = {"rtol": 1e-4, "atol": 1e-5} if kind == np.float32 else {"rtol": 1e-10, "atol": 1e-12}
    assert [t.grad is None for t in ours] == [t.grad is None for t in theirs]
    grads = [(a.grad, b.grad) for a, b in zip(ours, theirs, strict=True) if b.grad is not None]
    for mine, other in [*zip(got, expected, strict=True), *grads]:
        np.testing.assert_allclose(mine.detach().numpy(), other.detach().numpy(), **close)


def outcome(package, op, arrays, attrs):
    """What a user sees of an op: results and gradients, or the type of the error."""
    tensors = [
        package.tensor(a, requires_grad=wanted and a.dtype.kind == "f")
        for a, wanted in zip(arrays, has_rule(op, arrays), strict=True)
    ]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch warns of variances of nothing
            results = called(package, op, tensors, attrs)
        total = sum(o.sum() for o in floating(results))
        grads = package.autograd.grad(total, floating(tensors), allow_unused=True) if floating(results) else ()
    except (RuntimeError, IndexError, ValueError) as error:
        return type(error).__name__
    return [(None if t is None else (str(t.dtype), t.detach().numpy())) for t in (*results, *grads)]


def assert_same_outcome(op, arrays, attrs):
    import torch as real

    got, expected = outcome(torch, op, arrays, attrs), outcome(real, op, arrays, attrs)
    if isinstance(expected, str) or isinstance(got, str):
        assert got == expected
        return
    for mine, other in zip(got, expected, strict=True):
        assert (mine is None) == (other is None)
        if mine is not None:
            assert mine[0] == other[0]
            np.testing.assert_allclose(mine[1], other[1], rtol=1e-10, atol=1e-12, strict=True)


@pytest.mark.torch
@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize(("op", "position"), NAMED)
def test_ops_on_nothing_are_pytorchs(op, position, dim):
    op, arrays, attrs = example(op, position)
    lengths = [a.shape[dim] for a in arrays if a.ndim]
    emptied = [a.take([], dim) if a.ndim and a.shape[dim] == lengths[0] else a for a in arrays]
    assert_same_outcome(op, emptied, attrs)


@pytest.mark.torch
@pytest.mark.parametrize(
    "shapes", [((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 3)), ((2, 3), (2, 2)), ((1,), ()), ((2, 0), (1,))], ids=str
)
@pytest.mark.parametrize(("op", "position"), [c for c in NAMED if len(c.values[0].slots) == 2 and c.values[0].promotes])
def test_broadcasting_is_pytorchs(op, position, shapes):
    op, arrays, attrs = example(op, position)
    resized = [np.resize(a, shape) for a, shape in zip(arrays, shapes, strict=True)]
    assert_same_outcome(op, resized, attrs)
