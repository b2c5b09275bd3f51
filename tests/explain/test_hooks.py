"""Hooks in the answers: what arrived, what each hook made of it, and that this is what is shown."""

from contextlib import nullcontext

import numpy as np
import pytest
from explain.programs import FRAMEWORKS, pytorch
from hypothesis import given
from hypothesis import strategies as st

import gviz.engine
from gviz.events import GradAccumulated, HookRan
from gviz.explain.check import check
from gviz.explain.hook_effects import hooks_of
from gviz.explain.why import why
from gviz.trace import load
from gviz.trace.recording.record import Kept, record

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]


def timeline_of(program, engine, folder):
    torch = gviz.engine if engine == "builtin" else pytest.importorskip("torch")
    path = folder / "program.gviz"
    with (
        record(path, Kept(limit=1 << 16), framework=FRAMEWORKS[engine]) as recording,
        nullcontext() if engine == "builtin" else pytorch(recording),
    ):
        kept = program(torch)
    del kept
    return load(path)


def named(timeline, name):
    return next(node for node in timeline.nodes if timeline.info(node).name == name)


def answer(timeline, name):
    end = timeline.at(len(timeline))
    return str(why(timeline, end, named(timeline, name), "grad"))


@pytest.fixture(params=ENGINES)
def engine(request):
    return request.param


def test_a_hook_of_a_leaf_stands_between_what_arrived_and_the_gradient(engine, tmp_path):
    def program(torch):
        w = torch.ones(3, requires_grad=True)

        def mask(grad):
            return grad * torch.tensor([1.0, 0.0, 0.0])

        w.register_hook(mask)
        (w * 2).sum().backward()
        return w

    text = answer(timeline_of(program, engine, tmp_path), "w")
    arrived, hook = text.index("+= [2 2 2]"), text.index("the hook mask changed [2 2 2] to [2 0 0]")
    assert text.index(".grad is [2 0 0]") < arrived < hook


def test_a_hook_of_a_result_stands_below_what_its_rule_sent(engine, tmp_path):
    def program(torch):
        x, w = (torch.tensor(numbers, requires_grad=True) for numbers in ([1.0, 2.0], [3.0, 4.0]))
        f = x * w

        def reverse(grad):
            return -0.1 * grad

        f.register_hook(reverse)
        (f**2).sum().backward()
        return x, w, f

    timeline = timeline_of(program, engine, tmp_path)
    words = "the hook reverse changed [6 16] to [-0.6 -1.6] (multiplied by -0.1)"
    assert f"before that rule, {words} at #3 f = mul" in answer(timeline, "x")
    (found,) = check(timeline)
    assert (found.finding.kind, found.level) == ("changed-by-hook", "note")
    assert words in found.finding.parts[0].text


def test_hooks_are_listed_in_their_order_and_those_that_only_look_say_so(engine, tmp_path):
    def program(torch):
        w = torch.ones(2, requires_grad=True)

        def double(grad):
            return grad * 2

        def look(grad):
            assert grad.shape == (2,)

        def cut(grad):
            return grad.clamp(-1.0, 1.0)

        def seen(tensor):
            assert tensor.grad is not None

        for hook in (double, look, cut):
            w.register_hook(hook)
        w.register_post_accumulate_grad_hook(seen)
        (w * 3).sum().backward()
        return w

    timeline = timeline_of(program, engine, tmp_path)
    text = answer(timeline, "w")
    rows = [row.strip().partition(", registered at test_hooks.py:") for row in text.splitlines() if "the hook" in row]
    assert all(line.isdecimal() for _, _, line in rows)
    assert [said for said, _, _ in rows] == [
        "the hook double changed [3 3] to [6 6]",
        "the hook look ran and changed nothing",
        "the hook cut changed [6 6] to [1 1]",
        "the hook seen ran after that was added",
    ]


@pytest.mark.parametrize("how", ["returns", "writes"])
def test_a_hook_that_makes_zero_is_named_and_nothing_is_said_to_cancel(engine, how, tmp_path):
    def program(torch):
        x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        y = x * x

        def zeros(grad):
            return torch.zeros_like(grad) if how == "returns" else grad.mul_(0)

        y.register_hook(zeros)
        (y * 3).sum().backward()
        return x, y

    timeline = timeline_of(program, engine, tmp_path)
    text = answer(timeline, "x")
    assert "the gradient of #1 x is zero: the hook zeros makes it so" in text
    assert "the hook zeros changed [3 3 3] to [0 0 0] at #2 y = mul" in text
    assert {one.finding.kind for one in check(timeline)} == {"changed-by-hook"} | (
        {"written-gradient"} if how == "writes" else set()
    )


def test_a_hook_after_a_rule_that_makes_zero_is_named(tmp_path):
    def program(torch):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = x * 3

        def nothing(inputs, outputs):
            return tuple(None if one is None else one * 0 for one in inputs)

        y.grad_fn.register_hook(nothing)
        y.sum().backward()
        return x, y

    assert "the hook nothing put [0 0] in its place" in answer(timeline_of(program, "builtin", tmp_path), "x")


def test_a_hook_that_clips_is_no_finding(engine, tmp_path):
    def program(torch):
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        w.register_hook(lambda grad: grad.clamp(-3, 3))
        w.register_hook(lambda grad: grad * 0.5)
        (w**2).sum().backward()
        return w

    assert not list(check(timeline_of(program, engine, tmp_path)))


def test_a_hook_of_another_output_is_not_listed(engine, tmp_path):
    def program(torch):
        x = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
        a, b = x.split(2)

        def look(grad):
            assert grad.shape == (2,)

        b.register_hook(look)
        (a.sum() + b.sum()).backward()
        return x, a, b

    timeline = timeline_of(program, engine, tmp_path)
    (hook,) = [one for one in range(1, len(timeline) + 1) if isinstance(timeline.event(one), HookRan)]
    ran = timeline.event(hook)
    listed = [len(hooks_of(timeline, ran.node, nr, ran.pass_nr, len(timeline))) for nr in (0, 1)]
    assert listed == [0, 1]


HOOKS = {
    "scale": lambda torch: lambda grad: grad * 3,
    "flip": lambda torch: lambda grad: -grad,
    "add": lambda torch: lambda grad: grad + torch.tensor([1.0, 0.0]),
    "clip": lambda torch: lambda grad: grad.clamp(-1, 2),
    "write": lambda torch: lambda grad: grad.mul_(2),
    "look": lambda torch: lambda grad: None,
}


@pytest.mark.parametrize("engine", ENGINES)
@given(
    st.lists(st.sampled_from(sorted(HOOKS)), max_size=4),
    st.lists(st.sampled_from(sorted(HOOKS)), max_size=3),
    st.integers(1, 3),
    st.booleans(),
)
def test_what_arrived_and_the_hooks_end_at_what_is_added(engine, tmp_path_factory, of_leaf, of_result, uses, create):
    def program(torch):
        w = torch.tensor([1.0, -2.0], requires_grad=True)
        h = sum(w * (factor + 1) for factor in range(uses)) if uses > 1 else w * 2
        for hook in of_leaf:
            w.register_hook(HOOKS[hook](torch))
        for hook in of_result:
            h.register_hook(HOOKS[hook](torch))
        (h**2).sum().backward(create_graph=create)
        return w, h

    timeline = timeline_of(program, engine, tmp_path_factory.mktemp("hooks"))
    node = named(timeline, "w")
    end = timeline.at(len(timeline))
    (output,) = end.state(node).outputs
    added = timeline.event(output.grad_seq)
    assert isinstance(added, GradAccumulated)
    hooks = hooks_of(timeline, node, 0, added.pass_nr, len(timeline))
    assert len(hooks) == len(of_leaf)
    here = sum(timeline.array(part.value) for part in output.parts)
    for hook in hooks:
        np.testing.assert_allclose(timeline.array(hook.before), here, rtol=1e-6)
        here = timeline.array(hook.after)
    np.testing.assert_allclose(timeline.array(added.part), here, rtol=1e-6)
