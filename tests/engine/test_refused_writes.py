"""Which of two errors a write raises, what it warns of, and numbers given as tensors: as in PyTorch."""

import pytest
from fuzz import difference
from random_scripts import recorded
from reference import reference

LEAF, VIEW = "a = data(2, 3).requires_grad_()", "a = data(2, 3).requires_grad_()[0:]"
EXPANDED = "a = data(3).expand(2, 3)"
SCRIPTS = [
    # A leaf is refused before shapes, dimensions and bounds are looked at.
    *[
        [start, f"a.{call}"]
        for start in (LEAF, VIEW)
        for call in (
            "add_(data(5))", "index_add_(0, whole(1), data(5))", "scatter_(0, whole(2, 3) + 9, 1)", "cumsum_(9)", "clamp_()", "unsqueeze_(9)",
            "index_reduce_(0, whole(2) + 9, data(2, 3), 'prod')", "bernoulli_(7.0)", "normal_(0, -1)", "masked_fill_(data(5) > 0, 1)", "addmm_(data(5, 5), data(3, 3))",
            "set_(whole(3))", "resize_(5)", "logical_and_(data(5))", "fill_(data(5))",
        )
    ],
    # Memory that meets is refused before indices are.
    *[
        ["b = data(2)", f"b.{call}"]
        for call in (
            "put_(whole(1) + 7, b[:1])", "index_add_(0, whole(1) + 7, b[:1])", "index_copy_(0, whole(1) + 7, b[:1])", "scatter_reduce_(0, whole(1) + 7, b[:1], 'sum')",
        )
    ],
    *[[EXPANDED, line] for line in ("a.masked_fill_(a > 0, 1)", "a.index_fill_(0, whole(1), 1)", "a[[0]] = 1", "a[a > 0] = 1", "a[0] = 1", "a.scatter_(0, whole(2, 3), 1)")],
    *[
        [f"p = {call}"]
        for call in (
            "F.threshold(data(3), torch.tensor(0.5), 1)", "F.softshrink(data(3), torch.tensor(0.5))", "data(4).split(torch.tensor(2))", "torch.tensordot(data(3, 3), data(3, 3), dims=torch.tensor(1))",
            "data(4).sum(torch.tensor(0))", "F.avg_pool1d(data(1, 4), torch.tensor(2))", "data(4).add(data(4), alpha=torch.tensor(2))", "F.softmax(data(4), torch.tensor(0))",
            "torch.meshgrid(data(2), data(3))", "torch.allclose(data(2), whole(2))", "torch.allclose(data(2), data(3))", "torch.addmv(data(3), data(3, 3), whole(3))", "torch.baddbmm(data(2, 3, 3), data(2, 3, 3), whole(2, 3, 3))",
            "data(3).bernoulli_(data(2).sigmoid())", "F.fold(data(1, 4, 4), (3, 3), 0)", "F.fold(data(1, 4, 4), (3, 3, 3), 2)", "F.unfold(data(1, 1, 3, 3), 2, stride=0)", "torch.get_device(None)", "torch.linalg.diagonal(None)",
        )
    ],
    ["a = data(2, 3).requires_grad_() * 1", "v = a[0]", "a.set_(data(4))", "a.sum().backward()"],
    ["a = data(2)", "a.set_(data(4, 3)[1])", "a.set_()"],
    ["x = data(2, 3).requires_grad_()", "(x * x).sum().backward(create_graph=True)"],
    ["m = filled(nn.RNN(3, 2)).double()", "m._flat_weights[0] = data(2, 3)", "p, q = m(data(2, 1, 3))"],
    ["m = filled(nn.RNN(3, 2)).double()", "m.weight_ih_l0 = nn.Parameter(data(2, 3))", "p, q = m(data(2, 1, 3))"],
    ["m = filled(nn.LSTM(3, 2)).double()", "m.num_layers = 2", "p, q = m(data(2, 1, 3))"],
    ["m = filled(nn.LSTM(3, 2)).double()", "see([[tuple(w.shape) for w in l] for l in m.all_weights], m._flat_weights_names)"],
    ["m = filled(nn.MultiheadAttention(4, 2)).double()", "a = data(3, 1, 4)", "p, q = m(a, a, a, attn_mask=torch.ones(3, 3).triu(1) > 0)"],
    *[
        ["m = filled(nn.TransformerEncoderLayer(4, 2, 4, dropout=0.0)).double()", f"p = m(data(3, 1, 4), {masks})"]
        for masks in ("torch.ones(3, 3).triu(1) > 0", "whole(3, 3)", "3", "src_key_padding_mask=whole(1, 3)", "data(3, 3), data(1, 3) > 1")
    ],
]  # fmt: skip


@pytest.mark.torch
@pytest.mark.parametrize("lines", SCRIPTS, ids=" ; ".join)
def test_as_pytorch(lines):
    reference().ask("lines", lines)
    real = reference().answer()
    found = difference(real, recorded(lines, "gviz.engine"), (1e-8, 1e-10))
    assert found is None, found
