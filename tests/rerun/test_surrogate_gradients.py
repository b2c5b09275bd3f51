"""Functions that send something else than the derivative on purpose are told from those that are wrong."""

import pytest

import gviz
import gviz.engine
from gviz.rerun.finite_differences import check_gradients
from gviz.rerun.surrogate_gradients import (
    BOUNDED,
    CLIPPING,
    GUIDED,
    HOOKED,
    REPLACED,
    REVERSAL,
    SCALING,
    STOPPED,
    STRAIGHT_THROUGH,
    SURROGATE,
    surrogate_kind,
)


@pytest.fixture(params=["gviz.engine", pytest.param("torch", marks=pytest.mark.torch)])
def torch(request):
    return pytest.importorskip(request.param)


def kind_of(torch, tmp_path, forward, backward, inputs=1, hook=None, ones=False, twice=False, seed=None, held=None):
    """What the backward of a function of so many vectors is taken for, and whether it differs at all.

    The last may be `ones`, or the first given `twice`; `seed` is what arrives and `held` what the function is given,
    else random numbers.
    """

    def kept(ctx, *given):
        ctx.save_for_backward(*given)
        return forward(*given)

    def sent(ctx, g):
        return backward(g, *ctx.saved_tensors)

    members = {"forward": staticmethod(kept), "backward": staticmethod(sent)}
    mine = type("Mine", (torch.autograd.Function,), members)
    with gviz.record(tmp_path / "t.gviz", force=True):
        torch.manual_seed(1)
        leaves = [torch.randn(40, requires_grad=True) for _ in range(inputs)]
        given = [leaf * 1.5 for leaf in leaves] if held is None else [torch.tensor(held, requires_grad=True) * 1]
        last = torch.ones(40, requires_grad=True) if ones else given[0]
        made = mine.apply(*([*given[:1], last] if ones or twice else given))
        if hook is not None:
            made.grad_fn.register_hook(hook)
        (made * (torch.randn(40) if seed is None else torch.tensor(seed))).sum().backward()
    timeline = gviz.load(tmp_path / "t.gviz")
    node = next(node for node in timeline.nodes if timeline.info(node).op.name == "Mine")
    found = check_gradients(timeline, node, len(timeline))
    return any(one.differs.any() for one in found), surrogate_kind(timeline, node, len(timeline), found)


def where(condition, g):
    return g * condition.to(g.dtype)


ON_PURPOSE = [
    (STRAIGHT_THROUGH, lambda x: x.sign(), lambda g, x: g),
    (STRAIGHT_THROUGH, lambda x: x.sign(), lambda g, x: where(x.abs() <= 1, g)),
    (STRAIGHT_THROUGH, lambda x: (x > 0.5).float(), lambda g, x: g),
    (STRAIGHT_THROUGH, lambda x: (x.clamp(0, 1) * 15).round() / 15, lambda g, x: g),
    (STRAIGHT_THROUGH, lambda x: x.sign() * x.abs().mean(), lambda g, x: where(x.abs() <= 1, g)),
    (STRAIGHT_THROUGH, lambda x: x.clamp(-0.5, 0.5), lambda g, x: g),
    (STRAIGHT_THROUGH, lambda x: x.clamp(min=0.3), lambda g, x: where((x >= 0.3) | (g < 0), g)),
    (STRAIGHT_THROUGH, lambda x: (x / 2 + 0.5).clamp(0, 1), lambda g, x: where((x.abs() < 1) | (x * g > 0), g / 2)),
    (SURROGATE, lambda x: (x > 0).float(), lambda g, x: g / (25 * x.abs() + 1) ** 2),
    (REVERSAL, lambda x: x.view_as(x), lambda g, x: -0.5 * g),
    (SCALING, lambda x: x * 1, lambda g, x: 0.1 * g),
    (CLIPPING, lambda x: x.view_as(x), lambda g, x: g.clamp(-0.1, 0.1)),
    (STOPPED, lambda x: x.view_as(x), lambda g, x: g * 0),
    (REPLACED, lambda x: x.view_as(x), lambda g, x: -g.clamp(-0.1, 0.1)),
    (REPLACED, lambda x: x.view_as(x), lambda g, x: g * (1 + g * g)),
    (BOUNDED, lambda x: x.exp(), lambda g, x: g * x.clamp(-2, 1).exp()),
    (GUIDED, lambda x: x.clamp(min=0), lambda g, x: where((x > 0) & (g > 0), g)),
]


@pytest.mark.parametrize("cast", ["long", "int", "short", "char", "byte", "bool"])
def test_steps_made_by_a_cast_are_run_again(torch, tmp_path, cast):
    dtype = {"long": torch.int64, "int": torch.int32, "short": torch.int16}.get(cast)
    casts = [lambda x: getattr(x.abs(), cast)().float(), lambda x: x.abs().to(dtype).float()]
    for forward in casts if dtype is not None else casts[:1]:
        assert kind_of(torch, tmp_path, forward, lambda g, x: where(x > 0, g))[0]


@pytest.mark.parametrize(("kind", "forward", "backward"), ON_PURPOSE)
def test_each_kind_is_told_by_its_form(torch, tmp_path, kind, forward, backward):
    assert kind_of(torch, tmp_path, forward, backward) == (True, kind)


def test_of_several_inputs(torch, tmp_path):
    assert kind_of(torch, tmp_path, lambda a, b: a.view_as(a), lambda g, a, b: (None, g), 2) == (True, REPLACED)
    forward, backward = (lambda x, s: x.sign() * s), (lambda g, x, s: (g, g * x.sign()))
    assert kind_of(torch, tmp_path, forward, backward, 2) == (True, STRAIGHT_THROUGH)


def test_a_gradient_that_no_factor_made_is_replaced(torch, tmp_path):
    """Also where nothing arrived, at some elements or at all."""
    for seed in ([0.0, 2.0] * 20, [0.0] * 40):
        found = kind_of(torch, tmp_path, lambda x: x.view_as(x), lambda g, x: 2 * g + where(g == 0, g + 1), seed=seed)
        assert found == (True, REPLACED)


def pair_kind(torch, tmp_path, backward):
    """What the backward of a function is taken for that gives two inputs on."""
    members = {"forward": staticmethod(lambda ctx, a, b: (a.view_as(a), b.view_as(b))), "backward": backward}
    mine = type("Mine", (torch.autograd.Function,), members)
    with gviz.record(tmp_path / "t.gviz", force=True):
        torch.manual_seed(1)
        one, other = mine.apply(*(torch.randn(40, requires_grad=True) * 1.5 for _ in range(2)))
        (one * torch.randn(40) + other * torch.randn(40)).sum().backward()
    timeline = gviz.load(tmp_path / "t.gviz")
    node = next(node for node in timeline.nodes if timeline.info(node).op.name == "Mine")
    return surrogate_kind(timeline, node, len(timeline), check_gradients(timeline, node, len(timeline)))


def test_two_inputs_that_are_given_on_may_be_reversed_but_not_exchanged(torch, tmp_path):
    assert pair_kind(torch, tmp_path, staticmethod(lambda ctx, g, h: (-g, -0.5 * h))) == REVERSAL
    assert pair_kind(torch, tmp_path, staticmethod(lambda ctx, g, h: (-g, h))) == REVERSAL
    assert pair_kind(torch, tmp_path, staticmethod(lambda ctx, g, h: (h, g))) == ""
    assert pair_kind(torch, tmp_path, staticmethod(lambda ctx, g, h: (-h, -g))) == ""
    assert pair_kind(torch, tmp_path, staticmethod(lambda ctx, g, h: (g / 2, h))) == ""


def test_the_input_that_is_given_on_is_what_counts(torch, tmp_path):
    forward, backward = (lambda a, b: b.view_as(b)), (lambda g, a, b: (g * 0, -g))
    assert kind_of(torch, tmp_path, forward, backward, 2) == (True, REVERSAL)


def test_steps_of_which_one_is_passed_on_and_one_is_not(torch, tmp_path):
    forward, backward = (lambda a, b: a.sign() + b.sign()), (lambda g, a, b: (g, g / (1 + b.abs()) ** 2))
    assert kind_of(torch, tmp_path, forward, backward, 2) == (True, SURROGATE)


def test_steps_that_end_where_a_table_does(torch, tmp_path):
    table = torch.tensor([1.0, 2.0, 3.0])
    forward = lambda x: table[((x + 10) / 8).long()]  # noqa: E731
    assert kind_of(torch, tmp_path, forward, lambda g, x: g) == (True, STRAIGHT_THROUGH)


def test_a_hook_that_only_looks_excuses_nothing(torch, tmp_path):
    looks = lambda *_: None  # noqa: E731
    assert kind_of(torch, tmp_path, lambda x: x * x, lambda g, x: x * g, hook=looks) == (True, "")


def test_of_a_tensor_that_was_given_twice_nothing_is_excused(torch, tmp_path):
    forward, backward = (lambda a, b: a.view_as(a)), (lambda g, a, b: (-g, g * 0))
    assert kind_of(torch, tmp_path, forward, backward, twice=True) == (True, "")


def test_an_infinity_is_never_on_purpose(torch, tmp_path):
    assert kind_of(torch, tmp_path, lambda x: x.view_as(x), lambda g, x: g / 0) == (True, "")


def test_what_a_hook_gave_is_no_rule(tmp_path):
    def doubled(grads, _):
        return (grads[0] * 2,)

    assert kind_of(gviz.engine, tmp_path, lambda x: x * x, lambda g, x: 2 * x * g, hook=doubled) == (True, HOOKED)


WRONG = [
    ("sign of a straight-through one", lambda x: x.sign(), lambda g, x: -g, 1),
    ("sign", lambda x: x.sin(), lambda g, x: -g * x.cos(), 1),
    ("factor 2", lambda x: x * x, lambda g, x: g * x, 1),
    ("no gradient used", lambda x: x * x, lambda g, x: 2 * x, 1),
    ("nothing", lambda x: x * x, lambda g, x: g * 0, 1),
    ("mask of a relu forgotten", lambda x: x.clamp(min=0), lambda g, x: g, 1),
    ("mask of a relu inverted", lambda x: x.clamp(min=0), lambda g, x: where(x < 0, g), 1),
    ("a slope forgotten", lambda x: x.clamp(min=0) + 0.1 * x.clamp(max=0), lambda g, x: where(x > 0, g), 1),
    ("clamp scaled, and not its gradient", lambda x: x.clamp(-1, 1) * 2, lambda g, x: g, 1),
    ("a slope forgotten that is small", lambda x: x.clamp(min=0) + 0.1 * x.clamp(max=0), lambda g, x: g, 1),
    ("more sent where it is clipped", lambda x: x.clamp(-1, 1), lambda g, x: g * (1 + 2 * (x.abs() > 1)), 1),
    ("turned round where it is clipped", lambda x: x.clamp(-1, 1), lambda g, x: g * (1 - 2 * (x.abs() > 1)), 1),
    ("fading where it is clipped", lambda x: x.clamp(-1, 1), lambda g, x: g * (1 - x.abs()).clamp(max=0).exp(), 1),
    ("halved below 0", lambda x: x.clamp(min=0), lambda g, x: where(x > 0, g.clamp(min=0) + g.clamp(max=0) / 2), 1),
    ("guided, and doubled", lambda x: x.clamp(min=0), lambda g, x: where(x > 0, g.clamp(min=0)) * (1 + (x > 1)), 1),
    ("clipped and bounded", lambda x, y: x.clamp(-1, 1) + y.exp(), lambda g, x, y: (g, g * y.clamp(-2, 1).exp()), 2),
    ("order", lambda x: x.flip(0), lambda g, x: g, 1),
    ("swapped", lambda x, y: x - y, lambda g, x, y: (-g, g), 2),
    ("swapped, where one is not used", lambda x, y: x * 2, lambda g, x, y: (g * 0, g * 2), 2),
    ("sent to what is not used", lambda x, y: y * 2, lambda g, x, y: (g, g * 2), 2),
    ("swapped product", lambda x, y: x * y, lambda g, x, y: (g * x, g * y), 2),
    ("factor of a learned scale", lambda x, s: x.sign() * s, lambda g, x, s: (g, 2 * g * x.sign()), 2),
]  # fmt: skip


@pytest.mark.parametrize(
    ("forward", "backward", "inputs"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG]
)
def test_no_mistake_is_excused(torch, tmp_path, forward, backward, inputs):
    assert kind_of(torch, tmp_path, forward, backward, inputs) == (True, "")


FEW = [
    (
        "",
        lambda x: x.clamp(min=0),
        lambda g, x: where((x > 0) & (g > 0), g),
        [1.0, 2.0, 3.0, 4.0],
        [1.0, 1.0, 1.0, -1.0],
    ),
    (
        GUIDED,
        lambda x: x.clamp(min=0),
        lambda g, x: where((x > 0) & (g > 0), g),
        [1.0, 2.0, 3.0, 4.0, 5.0],
        [1.0] * 4 + [-1.0],
    ),
    (
        "",
        lambda x: x.sign() * x.abs().mean(),
        lambda g, x: where(x.abs() <= 1, g),
        [0.1 * at for at in range(1, 8)],
        [1.0, -2.0] * 3 + [4.0],
    ),
    (
        "",
        lambda x: x.exp(),
        lambda g, x: g * x.clamp(max=1).exp(),
        [-2.0, -1.0, 0.0, 0.5, 1.0, 1.7],
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    ),
    (
        BOUNDED,
        lambda x: x.exp(),
        lambda g, x: g * x.clamp(max=1).exp(),
        [-2.0, -1.0, 0.0, 0.5, 1.5, 1.7],
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    ),
    (
        "",
        lambda x: x.exp(),
        lambda g, x: g * x.clamp(max=1).exp(),
        [-1.0, 0.0, 0.5, 1.5, 1.7],
        [1.0, 2.0, 3.0, 4.0, 5.0],
    ),
    (SURROGATE, lambda x: x.sign(), lambda g, x: -g, [0.4, -0.8, 1.1], [1.0, 2.0, 3.0]),
    ("", lambda x: x.sign(), lambda g, x: -g, [0.4, -0.8, 1.1, 0.6], [1.0, 2.0, 3.0, 4.0]),
    (STRAIGHT_THROUGH, lambda x: (x > 20).float(), lambda g, x: g, [1.5] * 4, [1.0, 2.0, 3.0, 4.0]),
    ("", lambda x: (x > 200).float(), lambda g, x: g, [1.5] * 4, [1.0, 2.0, 3.0, 4.0]),
]


@pytest.mark.parametrize(("kind", "forward", "backward", "held", "seed"), FEW)
def test_few_elements_are_no_evidence_and_far_steps_are(torch, tmp_path, kind, forward, backward, held, seed):
    assert kind_of(torch, tmp_path, forward, backward, held=held, seed=seed) == (True, kind)


def test_a_mask_that_does_not_depend_on_the_input_is_a_mistake_to_forget(torch, tmp_path):
    mask = torch.tensor([1.0, 0.0] * 20)
    assert kind_of(torch, tmp_path, lambda x: x * mask * 2, lambda g, x: g * 2) == (True, "")


def test_a_scale_of_ones_is_no_identity(torch, tmp_path):
    assert kind_of(torch, tmp_path, lambda x, s: x * s, lambda g, x, s: (-g, g * x), 2, ones=True) == (True, "")


def test_what_is_right_is_of_no_kind(torch, tmp_path):
    assert kind_of(torch, tmp_path, lambda x: x * x, lambda g, x: 2 * x * g) == (False, "")
