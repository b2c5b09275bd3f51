"""Functions of a program's own whose backward is tried: what a recording keeps for that, and which are told wrong."""

import pytest

import gviz
from gviz import events as e
from gviz.cli.main import run_command
from gviz.explain.check import check
from gviz.explain.finding import lines
from gviz.explain.findings.custom_functions.custom_backward_rule import untried_functions


@pytest.fixture(params=["gviz.engine", pytest.param("torch", marks=pytest.mark.torch)])
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


def function(torch, forward, backward):
    """A function that keeps all that it is given, and sends what `backward` makes of that and of the gradient."""

    def kept(ctx, *given):
        ctx.save_for_backward(*given)
        return forward(*given)

    def sent(ctx, g):
        return backward(g, *ctx.saved_tensors)

    members = {"forward": staticmethod(kept), "backward": staticmethod(sent)}
    return type("Mine", (torch.autograd.Function,), members)


def linear(x, weight, bias):
    output = x.mm(weight.t())
    output += bias.unsqueeze(0).expand_as(output)
    return output


def attention(q, k, v):
    return (q @ k.transpose(-2, -1) / 2).softmax(-1) @ v


def of_attention(scale):
    def backward(g, q, k, v):
        p = (q @ k.transpose(-2, -1) / 2).softmax(-1)
        sent = g @ v.transpose(-2, -1)
        scores = p * (sent - (sent * p).sum(-1, keepdim=True)) * scale
        return scores @ k, scores.transpose(-2, -1) @ q, p.transpose(-2, -1) @ g

    return backward


def of_linear(g, x, weight, bias):
    return g.mm(weight), g.t().mm(x), g.sum(0)


def with_weight_transposed(g, x, weight, bias):
    return g.mm(weight.t()), g.t().mm(x), g.sum(0)


def normed(x):
    return x / x.float().norm(dim=1, keepdim=True)


def of_normed(g, x):
    unit = normed(x)
    return (g - unit * (g * unit).sum(1, keepdim=True)) / x.norm(dim=1, keepdim=True)


LINEAR, ATTENTION = [(64, 16), (16, 16), (16,)], [(4, 8, 16)] * 3
RIGHT = [
    (linear, of_linear, LINEAR),
    (attention, of_attention(1 / 2), ATTENTION),
    (normed, of_normed, [(64, 16)]),
    (lambda x: x.view_as(x), lambda g, x: -g, [(64, 16)]),
    (lambda x: x.sign(), lambda g, x: g * (x.abs() <= 1), [(64, 16)]),
    (lambda x: x.clamp(-1, 1), lambda g, x: g, [(64, 16)]),
    (lambda x: (x * x + 1e-12).sqrt(), lambda g, x: g * x / (x * x + 1e-12).sqrt(), [(64, 16)]),
]
WRONG = [
    (linear, with_weight_transposed, LINEAR, "elements tried differ"),
    (attention, of_attention(1), ATTENTION, "what is sent is 2 times what differences say"),
    (lambda x: 1 / (1 + x.exp()), lambda g, x: g * x.sigmoid() * (1 - x.sigmoid()), [(64, 16)], "the other sign"),
    (lambda x: x * x, lambda g, x: x * 0, [(64, 16)], "nothing but 0 is sent"),
    (lambda x: x * x, lambda g, x: g * x / 2048, [(64, 16)], "what is sent is 0.000244 times what differences say"),
    (lambda x: x.clamp(max=2) ** 2, lambda g, x: g * 2 * x, [(64, 16)], " on differ, those up to "),
    (lambda x: x.clamp(-1, 1) * 2, lambda g, x: g, [(64, 16)], "elements tried differ"),
    (lambda x: (x - x.mean()).clamp(-2, 2), lambda g, x: g * 3, [(64, 16)], "elements tried differ"),
]


def of_a_batch(torch, forward, backward, shapes):
    """What a mean over a batch does with a function: the gradients are small."""

    def program():
        torch.manual_seed(0)
        leaves = [torch.randn(shape, requires_grad=True) for shape in shapes]
        (function(torch, forward, backward).apply(*[leaf * 2 for leaf in leaves]) ** 2).mean().backward()
        return leaves

    return program


@pytest.mark.parametrize(("forward", "backward", "shapes"), RIGHT)
def test_functions_that_are_right_or_meant_so_are_left_alone(torch, tmp_path, forward, backward, shapes):
    assert not told(recorded(tmp_path, of_a_batch(torch, forward, backward, shapes)))


@pytest.mark.parametrize(("forward", "backward", "shapes", "says"), WRONG)
def test_mistakes_are_told_with_what_they_have_in_common(torch, tmp_path, forward, backward, shapes, says):
    assert says in told(recorded(tmp_path, of_a_batch(torch, forward, backward, shapes)))


@pytest.mark.parametrize(("least", "most", "suspected"), [(-1, 1, False), (0.1, None, False), (0, None, True)])
def test_a_clamp_that_sends_on_all_is_meant_so_and_a_relu_is_not(torch, tmp_path, least, most, suspected):
    def program():
        x = torch.linspace(-3, 3, 20).requires_grad_()
        function(torch, lambda x: x.clamp(least, most), lambda g, x: g).apply(x * 1).sum().backward()
        return x

    assert ("elements tried differ" in told(recorded(tmp_path, program))) == suspected


def test_why_a_function_could_not_be_tried_is_said(torch, tmp_path):
    def noisy(x):
        return x * torch.rand_like(x)

    program = of_a_batch(torch, noisy, lambda g, x: g, [(64, 16)])
    (why,) = untried_functions(recorded(tmp_path, program)).values()
    assert why.endswith("which it uses, was not stored: record with --values all")


def test_why_tells_of_a_wrong_rule_on_the_way_to_a_gradient(torch, tmp_path, capsys):
    def program():
        before, after = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
        (function(torch, lambda x: x * 2, lambda g, x: g * 3).apply(before * 1) * after).sum().backward()
        return before, after

    recorded(tmp_path, program)
    for name, said in (("before", 1), ("after", 0)):
        assert run_command(["explain", str(tmp_path / "t.gviz"), f"{name}.grad"]) == 0
        assert capsys.readouterr().out.count("on the way the backward of #") == said


def alignment(torch):
    """Feedback alignment: the gradient of the input goes through fixed numbers, the others are right."""

    class Feedback(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w, b, fixed):
            ctx.save_for_backward(x, fixed)
            return x @ w.t() + b

        @staticmethod
        def backward(ctx, g):
            x, fixed = ctx.saved_tensors
            return g @ fixed, g.t() @ x, g.sum(0), None

    def program():
        torch.manual_seed(0)
        x = torch.randn(6, 3, requires_grad=True)
        w, b = torch.nn.Parameter(torch.randn(2, 3)), torch.nn.Parameter(torch.zeros(2))
        fixed = torch.ones(2, 3)
        out = Feedback.apply(torch.tanh(x), w, b, fixed)
        (out * torch.arange(1.0, 13.0).view(6, 2)).sum().backward()
        return x, w.detach()

    return program


def test_a_forward_with_parameters_that_it_sees_first_is_run_again_whole(torch, tmp_path):
    kept = []
    timeline = recorded(tmp_path, lambda: kept.extend(alignment(torch)()))
    (one,) = [one.finding for one in check(timeline) if one.finding.kind == "wrong-rule"]
    expected = torch.tensor([[1.0, 2.0]]) @ kept[1]
    shows = one.parts[0].text.partition("show [")[2].split()[:3]
    assert [float(number) for number in shows] == pytest.approx(expected[0].tolist(), rel=1e-2)


def test_the_expression_of_the_wrong_gradient_is_marked(torch, tmp_path):
    timeline = recorded(tmp_path, alignment(torch))
    (one,) = [one.finding for one in check(timeline) if one.finding.kind == "wrong-rule"]
    line = "        return g @ fixed, g.t() @ x, g.sum(0), None"
    assert line[one.at.column - 4 : one.at.end_column - 4] == "g @ fixed"


LEAVING = """
import numpy as np
import TORCH as torch
def solved(x):
    return np.cumsum(x.detach().numpy(), -1)
class Numpy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.tensor(solved(x)) * 2
    @staticmethod
    def backward(ctx, g):
        return 2 * g.flip(0).cumsum(0).flip(0)
class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.scale = float(x.abs().max())
        return x * ctx.scale
    @staticmethod
    def backward(ctx, g):
        return g * ctx.scale + 0.5 * g
class OfNumber(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = float(factor)
        return x * ctx.factor
    @staticmethod
    def backward(ctx, g):
        return g * (ctx.factor + 1), None
x = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
(CALL * torch.tensor([1.0, 2.0, 4.0])).sum().backward()
"""


@pytest.mark.parametrize(
    ("call", "leaves"),
    [("Numpy.apply(x * 1)", True), ("Scaled.apply(x * 1)", True), ("OfNumber.apply(x * 1, 2)", False)],
)
def test_a_forward_that_leaves_torch_is_not_judged(torch, tmp_path, call, leaves):
    script, trace = tmp_path / "program.py", tmp_path / "t.gviz"
    script.write_text(LEAVING.replace("TORCH", torch.__name__).replace("CALL", call))
    assert run_command(["record", "-o", str(trace), str(script)]) == 0
    timeline = gviz.load(trace)
    assert ("the backward of #" in told(timeline)) != leaves
    assert ["leaves torch" in why for why in untried_functions(timeline).values()] == [True] * leaves
