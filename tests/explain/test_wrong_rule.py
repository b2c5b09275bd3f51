"""Functions of a program's own whose backward is tried: what a recording keeps for that, and which are told wrong."""

import pytest

import gviz
from gviz import events as e
from gviz.explain.check import check
from gviz.explain.finding import lines


@pytest.fixture(params=["gviz.engine", "torch"])
def torch(request):
    return pytest.importorskip(request.param)


def recorded(tmp_path, program, **options):
    with gviz.record(tmp_path / "t.gviz", **options):
        kept = program()
    del kept
    return gviz.load(tmp_path / "t.gviz")


def told(timeline):
    found = [one.finding for one in check(timeline) if one.finding.kind == "wrong-rule"]
    return "\n".join(text for one in found for _, text, _ in lines(one))


def calls_of(timeline, name):
    calls = (event for _, event in timeline.select((e.NodeCreated,)) if timeline.op(event.op).name == name)
    return list(calls)


def scaled(torch, size, wrong=1.5):
    """A program with five calls of a function whose rule misses a factor."""

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2 * wrong

    def program():
        x = torch.randn(size, requires_grad=True)
        for _ in range(5):
            Scaled.apply(x * 3).sum().backward()
        return x

    return program


def test_the_first_calls_are_kept_whole_so_that_an_ordinary_batch_can_be_tried(torch, tmp_path):
    timeline = recorded(tmp_path, scaled(torch, 1000))
    assert "what is sent is 1.5 times what differences say" in told(timeline)
    calls = calls_of(timeline, "Scaled")
    assert [[timeline.array(value).shape for value in call.given] for call in calls] == [[(1000,)]] * 3 + [[]] * 2
    multiplied = [call.outputs[0].value for call in calls_of(timeline, "mul")]
    assert multiplied
    assert all(timeline.array(value) is None for value in multiplied)


@pytest.mark.parametrize("options", [{"limit": 1024}, {"keep": "stats"}, {"keep": "none"}])
def test_no_more_is_kept_than_was_asked_for(torch, tmp_path, options):
    timeline = recorded(tmp_path, scaled(torch, 1000), **options)
    assert not any(call.given for call in calls_of(timeline, "Scaled"))
    assert not told(timeline)


def test_a_value_that_is_large_is_not_kept(torch, tmp_path):
    timeline = recorded(tmp_path, scaled(torch, (1 << 18) + 1))
    assert not told(timeline)
    assert (tmp_path / "t.gviz").stat().st_size < 1 << 20


def test_all_that_is_kept_so_has_a_bound(torch, tmp_path):
    programs = [scaled(torch, 1 << 18) for _ in range(3)]
    recorded(tmp_path, lambda: [program() for program in programs])  # nine calls, with 2 MiB each that are in no other
    assert 4 << 20 < (tmp_path / "t.gviz").stat().st_size < 12 << 20


def test_a_function_that_writes_to_what_it_is_given_is_not_tried_with_that(torch, tmp_path):
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    def program():
        x = torch.ones(1000, requires_grad=True)
        Doubled.apply(x * 3).sum().backward()
        assert x.grad[0] == 6
        return x

    assert not told(recorded(tmp_path, program))
