"""What an event says of an operation is enough to know which one it was."""

from itertools import product

import pytest
from msgspec.structs import replace
from recording import events_of

import gviz.engine as torch
from gviz.engine.op import REGISTRY
from gviz.engine.operation_lookup import attributes_of, effect_of, named, operation, recorded_operation, without
from gviz.engine.ops.shape import VARIANTS
from gviz.events import NodeCreated, OpSeen


def code(op):
    """What the forward computes, which several functions may do alike."""
    return getattr(op.forward, "__code__", op.forward)


@pytest.mark.parametrize("op", [*REGISTRY, *VARIANTS], ids=lambda op: f"{op.name}-{op.grad_fn}")
def test_every_declaration_is_found_by_its_description(op):
    variants = [op, *[without(op, [slot]) for slot in op.optional]]
    for variant, how in product(variants, ["describe", "describe_in_place", "describe_slices"]):
        seen = getattr(variant, how)(7)
        found = recorded_operation(seen, variant.attrs)
        assert getattr(found, how)(7) == seen
        assert (code(found), tuple(found.attrs)) == (code(variant), tuple(variant.attrs))


@pytest.mark.parametrize("op", [*REGISTRY, *VARIANTS], ids=lambda op: f"{op.name}-{op.grad_fn}")
def test_every_declaration_is_found_by_its_name(op):
    found = operation(named(op))
    assert (found.name, found.grad_fn, found.formula, found.forward) == (op.name, op.grad_fn, op.formula, op.forward)


def program():
    x = torch.ones(2, 3, requires_grad=True) * 2
    x[0].mul_(3)
    x.unsqueeze_(1)
    y = torch.nn.functional.linear(x, torch.ones(4, 3))
    torch.nn.functional.leaky_relu_(y)
    return x, y, y.sum(dtype=torch.float64)


def test_the_effect_and_the_attributes_come_from_the_event():
    events = events_of(program)
    seen = {event.op: event for event in events if isinstance(event, OpSeen)}
    found = {}
    for event in events:
        if isinstance(event, NodeCreated) and event.kind == "op":
            op = recorded_operation(seen[event.op], dict(event.attrs))
            found[seen[event.op].name] = (op.grad_fn, effect_of(op, seen[event.op]), attributes_of(op, event.attrs))
    assert found["mul_"] == ("MulBackward0", "write", {})
    assert found["unsqueeze_"] == ("UnsqueezeBackward1", "become", {"dim": 1})
    assert found["leaky_relu_"][1:] == ("write", {"negative_slope": 0.01})
    assert found["sum"][2]["dtype"] == "float64"


def test_what_the_engine_has_not_is_not_found():
    mul = next(op for op in REGISTRY if op.name == "mul").describe(1)
    assert recorded_operation(mul, ()).name == "mul"
    for field, other in [("name", "mull"), ("grad_fn", "PowBackward0"), ("formula", "self + other"), ("slots", ("a",))]:
        assert recorded_operation(replace(mul, **{field: other}), ()) is None
    assert recorded_operation(mul, ["alpha"]) is None
