"""Functions of the program whose forward is not a plain formula: what they ran within is run again all the same."""

import pytest

import gviz
import gviz.engine
from gviz.errors import GvizError
from gviz.rerun.finite_differences import check_gradients


@pytest.fixture(params=["gviz.engine", pytest.param("torch", marks=pytest.mark.torch)])
def torch(request):
    return pytest.importorskip(request.param)


def found_of(torch, tmp_path, forward, backward, use, shape=(4, 3)):
    """What is found of the call of a function that `use` makes with a tensor that leads to a leaf."""
    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    mine = type("Mine", (torch.autograd.Function,), members)
    with gviz.record(tmp_path / "t.gviz", force=True):
        torch.manual_seed(1)
        x = torch.randn(shape, requires_grad=True)
        use(mine, x).sum().backward()
    timeline = gviz.load(tmp_path / "t.gviz")
    node = next(node for node in timeline.nodes if timeline.info(node).op.name == "Mine")
    return check_gradients(timeline, node, len(timeline))


def part(ctx, x):
    return x.view(-1)[1:5]


def column_by_column(ctx, x):
    y = x * 0
    y[:, 0] = x[:, 0] * 2
    y[:, 1:] = x[:, 1:].exp()
    ctx.save_for_backward(y)
    return y


def into_what_is_empty(ctx, x):
    y = torch_of(x).empty_like(x)
    y[:, 0] = x[:, 0] * 2
    y[:, 1:] = x[:, 1:].exp()
    ctx.save_for_backward(y)
    return y


def row_by_row(ctx, x):
    return x[0] * 2 + x[1, None, ...] * 3


def doubled_in_place(ctx, x):
    ctx.mark_dirty(x)
    x.mul_(2)
    return x


def largest(ctx, x):
    values, indices = x.max(1)
    ctx.mark_non_differentiable(indices)
    ctx.save_for_backward(indices)
    return values, indices


def several(ctx, x):
    ctx.save_for_backward(x)
    return x * x, x + 1, "a word"


def dropped(ctx, x):
    ctx.mask = (torch_of(x).rand_like(x) > 0.5).to(x.dtype) * 2
    return x * ctx.mask


def dropped_in_place(ctx, x):
    ctx.mask = torch_of(x).empty(x.shape).bernoulli_(0.5)
    return x * ctx.mask


def torch_of(x):
    return gviz.engine if isinstance(x, gviz.engine.Tensor) else pytest.importorskip("torch")


def of_part(ctx, g):
    sent = g.new_zeros(12)
    sent[1:5] = g
    return sent.view(4, 3)


def of_columns(ctx, g):
    (y,) = ctx.saved_tensors
    sent = g * y
    sent[:, 0] = g[:, 0] * 2
    return sent


def of_rows(ctx, g):
    sent = g.new_zeros(4, 3)
    sent[0], sent[1] = g.reshape(3) * 2, g.reshape(3) * 3
    return sent


def of_largest(ctx, g, _):
    (indices,) = ctx.saved_tensors
    return g.new_zeros(4, 3).scatter_(1, indices.unsqueeze(1), g.unsqueeze(1))


def of_several(ctx, g, h, _):
    return 2 * g * ctx.saved_tensors[0] + h


def weighted(ctx, x, w):
    ctx.save_for_backward(x, w)
    return x * x * w


def of_weighted(factor):
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return 2 * g * x * w * factor, g * x * x

    return backward


def plain(mine, x):
    return mine.apply(x * 1)


CASES = {
    "an output that is a view": (part, of_part, plain),
    "writes to parts": (column_by_column, of_columns, plain),
    "writes into what is empty": (into_what_is_empty, of_columns, plain),
    "parts with other indices": (row_by_row, of_rows, plain),
    "an input that is written to": (doubled_in_place, lambda ctx, g: g * 2, plain),
    "an output with no gradient": (largest, of_largest, lambda mine, x: plain(mine, x)[0]),
    "an output that is no tensor": (several, of_several, lambda mine, x: (lambda a, b, _: a + b * 3)(*plain(mine, x))),
    "random numbers": (dropped, lambda ctx, g: g * ctx.mask, plain),
    "random numbers written": (dropped_in_place, lambda ctx, g: g * ctx.mask, plain),
}


@pytest.mark.parametrize(("forward", "backward", "use"), CASES.values(), ids=CASES)
def test_what_is_right_agrees_and_what_is_not_differs(torch, tmp_path, forward, backward, use):
    def wrong(ctx, *grads):
        return backward(ctx, *grads) * 1.5

    assert all(one.agrees.all() for one in found_of(torch, tmp_path, forward, backward, use))
    assert any(one.differs.any() for one in found_of(torch, tmp_path, forward, wrong, use))


def test_one_tensor_in_two_places(torch, tmp_path):
    def use(mine, x):
        y = x * 1
        return mine.apply(y, y)

    found = found_of(torch, tmp_path, weighted, of_weighted(1), use)
    assert [(one.slot, bool(one.agrees.all())) for one in found] == [("x + w", True), ("x", True), ("w", True)]
    found = found_of(torch, tmp_path, weighted, of_weighted(2), use)
    assert [(one.slot, bool(one.agrees.all())) for one in found] == [("x + w", False), ("x", False), ("w", True)]


def test_a_layer_that_is_used_within_is_a_constant(torch, tmp_path):
    layer = torch.nn.Linear(3, 2)

    def forward(ctx, x):
        return layer(x)

    def backward(ctx, g):
        return g @ layer.weight.detach()

    (one,) = found_of(torch, tmp_path, forward, backward, plain)
    assert one.agrees.all()


def test_a_convolution(torch, tmp_path):
    kernel = torch.tensor([[[1.0, 2.0]]])

    def forward(ctx, x):
        return torch.nn.functional.conv1d(x.unsqueeze(1), kernel, padding=1)

    def backward(ctx, g):
        return (g[:, :, 1:] * 1 + g[:, :, :-1] * 2).squeeze(1)

    (one,) = found_of(torch, tmp_path, forward, backward, plain)
    assert one.agrees.all()


def test_random_numbers_that_were_not_stored_are_named(torch, tmp_path):
    with pytest.raises(GvizError) as refused:
        found_of(torch, tmp_path, dropped, lambda ctx, g: g * ctx.mask, plain, (64, 64))
    assert "which it uses, was not stored: record with --values all" in refused.value.why


def test_a_constant_is_used_as_it_was_before_the_forward_changed_it(torch, tmp_path):
    count = torch.ones(3)

    def forward(ctx, x):
        y = x * count
        count.add_(1)
        return y

    (one,) = found_of(torch, tmp_path, forward, lambda ctx, g: g * 1, plain)
    assert one.agrees.all()


def test_parts_of_one_memory_are_told_by_where_they_begin(torch, tmp_path):
    def forward(ctx, x):
        y = x * torch.tensor([[1.0], [1.0], [5.0], [5.0]])
        return y[:2], y[2:]

    def backward(ctx, upper, lower):
        return torch.cat([upper, lower * 5])

    def use(mine, x):
        upper, lower = mine.apply(x * 1)
        return upper * 2 + lower * 3

    (one,) = found_of(torch, tmp_path, forward, backward, use)
    assert one.agrees.all()
