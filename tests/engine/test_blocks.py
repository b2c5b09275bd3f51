"""Large pointwise writes, computed in blocks: the same bits as at once, as PyTorch's, and no temporary arrays."""

import tracemalloc

import numpy as np
import pytest
from twin import compare

import gviz.engine as torch
from gviz.engine.op import REGISTRY
from gviz.engine.pointwise_blocks import BLOCK, fit_blocks
from gviz.engine.tensor import new_tensor
from gviz.engine.views import apply_in_place

SIZES = [BLOCK + 1, 2 * BLOCK, 3 * BLOCK + 5]
ATTRS = {"alpha": -0.3, "value": 0.7, "weight": 0.4}


def random(size, dtype, seed):
    return np.random.default_rng(seed).uniform(0.5, 2, size).astype(dtype)


def in_blocks():
    """The ops that may be written in place, and fit."""
    for op in REGISTRY:
        operands = [np.ones(BLOCK + 1)] * len(op.slots)
        if op.in_place and not op.takes_list and not op.optional and fit_blocks(op, operands, operands[0]):
            yield op


@pytest.mark.parametrize("op", in_blocks(), ids=lambda op: f"{op.name} {op.grad_fn}")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_write_in_blocks_has_the_bits_of_the_forward(op, dtype):
    attrs = {name: ATTRS[name] for name in op.attrs}
    weights = [attrs] if "weight" not in attrs else [attrs, {"weight": 0.8}]
    for attrs in weights:
        for size in SIZES:
            arrays = [random(size, dtype, seed) for seed in range(len(op.slots))]
            with np.errstate(all="ignore"):
                expected = np.asarray(op.forward(*[array.copy() for array in arrays], **attrs), dtype)
            target, *others = [new_tensor(array.copy()) for array in arrays]
            assert apply_in_place(op, (target, *others), attrs) is target
            assert target._array.tobytes() == expected.tobytes()
            assert [other._array.tobytes() for other in others] == [array.tobytes() for array in arrays[1:]]


def test_there_are_ops_of_both_kinds():
    found = list(in_blocks())
    assert {op.name for op in found} >= {"add", "sub", "mul", "div", "neg", "sqrt", "lerp", "addcmul", "addcdiv"}
    assert sum(op.write_block is not None for op in found) >= 5


@pytest.mark.torch
@pytest.mark.parametrize(
    "write",
    [
        "x.mul_(x)", "x.addcmul_(x, x, value=0.5)", "x.lerp_(y, 0.75)", "x.lerp_(y, 0.25)", "x.add_(x, alpha=3)", "x.sub_(y, alpha=0.1)",
        "x.add_(s)", "x.add_(s, alpha=2)", "x.div_(3)", "x.t().mul_(2)", "x.t().add_(y.t(), alpha=2)", "x.mul_(y[0])", "x[:, 0].mul_(3)",
        "x.mul_(h)", "x.add_(d)", "x.copy_(y).sqrt_().neg_()", "x.copy_(y[0])", "x.copy_(h)", "x.zero_()", "x.fill_(2)", "x.fill_(float('nan'))", "x.div_(z)", "x.addcdiv_(y, z, value=2)", "x.add_(i, alpha=2)", "x.sub_(i)",
    ],
)  # fmt: skip
def test_writes_to_large_tensors_are_as_pytorch_has_them(write):
    compare(
        f"""
def spread(step): return ((torch.arange(2 * {BLOCK}) * step) % 1000).float().reshape(-1, 2) / 250 - 2
x, y, z = spread(7919), spread(104729), spread(1299709)
z[5] = 0; z[6] = float("nan"); y[7] = float("inf"); s = torch.tensor(0.3)
h, d, i = y.half(), y.double(), (y * 3).nan_to_num(0, 0, 0).int()
attempt(lambda: ({write}, None)[1])
see(x, x._version, y)
w = spread(7919).requires_grad_()
x = w * 2; old = x._version
attempt(lambda: ({write}, None)[1])
see(x, x.grad_fn.name(), x._version - old); x.sum().backward(); see(w.grad)
""",
        rtol=1e-5,
    )


@pytest.mark.torch
def test_what_copy_makes_is_named_with_its_namespace():
    compare("""
w = torch.ones(2, requires_grad=True); x = torch.zeros(2); x.copy_(w * 2); see(x.grad_fn.name(), type(x.grad_fn).__name__)
y = x * x; x.copy_(w); attempt(lambda: y.sum().backward())
""")


OPTIMIZERS = [
    ("SGD", "lr=0.1"), ("SGD", "lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1"), ("SGD", "lr=0.1, maximize=True, momentum=0.5"),
    ("Adam", "lr=0.1, amsgrad=True, weight_decay=0.1, maximize=True"), ("AdamW", "lr=0.1"), ("RMSprop", "lr=0.1, momentum=0.9, centered=True"),
    ("RMSprop", "lr=0.1, weight_decay=0.1"), ("Adagrad", "lr=0.1, weight_decay=0.1"), ("Adadelta", "lr=0.5, weight_decay=0.1"),
    ("Adamax", "lr=0.1, weight_decay=0.1"), ("NAdam", "lr=0.1"), ("RAdam", "lr=0.1, betas=(0.5, 0.6)"),
]  # fmt: skip
STEPS = """
def spread(step): return ((torch.arange({size}) * step) % 1000).to({dtype}) / 250 - 2
w = spread(7919).requires_grad_()
v = spread(104729).reshape(2, -1).t().detach().requires_grad_()
b = torch.ones(3, dtype={dtype}, requires_grad=True); u = torch.ones({size}, requires_grad=True)
optimizer = torch.optim.{name}([w, v, b, u], {options})
for i in range(8):
    optimizer.zero_grad(); ((w * w * w).sum() + (v * v).sum() * 0.1 + (b * b).sum()).backward(); before = w._version
    optimizer.step(); see(w, v, b, u, w._version > before)
see(optimizer.state_dict()["state"])
"""


@pytest.mark.torch
@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
@pytest.mark.parametrize("dtype", ["torch.float32", "torch.float64"])
def test_steps_of_large_parameters_are_as_pytorchs(name, options, dtype):
    exact = name == "SGD" and dtype == "torch.float32"
    program = STEPS.format(name=name, options=options, dtype=dtype, size=2 * BLOCK + 6)
    compare(program, rtol=1e-6 if exact else 1e-4, atol=1e-6)


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_a_recorded_step_gives_the_same_bits(name, options, tmp_path):
    import gviz

    def trained():
        space = {"torch": torch, "see": lambda *seen: None}
        exec(STEPS.format(name=name, options=options, dtype="torch.float32", size=2 * BLOCK + 6), space)
        return [space[parameter].detach().numpy().tobytes() for parameter in "wvbu"]

    alone = trained()
    with gviz.record(tmp_path / "steps.gviz"):
        recorded = trained()
    assert recorded == alone


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_a_step_makes_no_temporary_arrays(name, options):
    elements = 40 * BLOCK
    parameter = torch.ones(elements, requires_grad=True)
    parameter.grad = torch.ones(elements)
    optimizer = eval(f"torch.optim.{name}([parameter], {options})")
    for _ in range(7):  # RAdam begins with another formula
        optimizer.step()
    tracemalloc.start()
    try:
        optimizer.step()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < elements  # a quarter of the parameter's bytes; each temporary array would be all of them


def test_the_intermediate_results_of_two_parameters_do_not_meet():
    first, second = (torch.full((3 * BLOCK + k,), float(k + 1), requires_grad=True) for k in (0, 1))
    alone = torch.full((3 * BLOCK,), 1.0, requires_grad=True)
    for parameter in (first, second, alone):
        parameter.grad = torch.full_like(parameter, 0.5)
    torch.optim.Adam([first, second, torch.ones(1, dtype=torch.float64)], weight_decay=0.1, amsgrad=True).step()
    torch.optim.Adam([alone], weight_decay=0.1, amsgrad=True).step()
    assert first.tolist() == alone.tolist()
