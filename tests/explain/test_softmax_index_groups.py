"""Softmax over the edges of a graph that is normalized over one index and summed over another."""

import pytest

HEAD = """import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
n, m = 30, 200
src, dst = torch.randint(0, n, (2, m))
keep = src * 7 % 11 < dst
edges = torch.stack([torch.cat([src[keep], torch.arange(n)]), torch.cat([dst[keep], torch.arange(n)])])
x, y = torch.randn(n, 5), torch.randint(0, 3, (n,))


def total(rows, index, n):
    return torch.zeros(n, *rows.shape[1:]).index_add(0, index, rows)


def softmax(scores, index, n):
    e = (scores - scores.max()).exp()
    return e / (total(e, index, n)[index] + 1e-9)


def scattered(scores, index, n):
    e = (scores - scores.max().detach()).exp()
    sums = torch.zeros(n).scatter_add_(0, index, e) + 1e-9
    return e / sums.index_select(0, index)


def inverse(scores, index, n):
    e = scores.exp()
    return e * (1 / total(e, index, n))[index]


def by_log(scores, index, n):
    return (scores - total(scores.exp(), index, n).log()[index]).exp()


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.att = nn.Linear(5, 3), nn.Linear(6, 1)

    def forward(self, x, edges):
        h = self.fc(x)
        source, target = edges
        scores = F.leaky_relu(self.att(torch.cat([h[source], h[target]], 1)))[:, 0]
        BODY
        return out


net = Layer()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    loss = F.cross_entropy(net(x, edges), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]


def found(body, checks, engine):
    text = HEAD.replace("BODY", body.replace("\n", "\n        "))
    return text, [one for one in checks.of_text(text, engine).found if one.finding.kind == "softmax-dim"]


SUMMED = "\nout = total(a[:, None] * h[source], target, len(x))"
SICK = {
    "a helper": "a = softmax(scores, source, len(x))" + SUMMED,
    "scattered": "a = scattered(scores, edges[0], len(x))" + SUMMED,
    "inverse": "a = inverse(scores, source, len(x))" + SUMMED,
    "by the logarithm": "a = by_log(scores, source, len(x))" + SUMMED,
    "inside": "e = scores.exp()\na = e / total(e, edges[0], len(x))[edges[0]]" + SUMMED,
    "computed twice": "a = scores.exp() / total(scores.exp(), edges[0], len(x))[edges[0]]" + SUMMED,
    "dropped out": "a = softmax(scores, edges[0], len(x))\na = F.dropout(a, 0.1)" + SUMMED,
    "several columns": "a = scattered(scores, source, len(x))\n"
    "out = torch.zeros(len(x), 3).scatter_add(0, target[:, None].expand(-1, 3), h[source] * a.unsqueeze(1))",
    "with a gradient of the sum": "a = softmax(scores, source, len(x))"
    + SUMMED
    + "\nslope, = torch.autograd.grad(out.pow(2).sum(), h, create_graph=True)\nout = out + 0.1 * slope",
    "divided afterwards": "e = scores.exp()[:, None]\nsums = total(e, source, len(x)) + 1e-9\n"
    "out = total(e * h[source], target, len(x)) / sums",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", SICK)
def test_weights_of_other_groups_do_not_add_up_to_one(name, engine, checks):
    text, (one,) = found(SICK[name], checks, engine)
    assert one.level == "note"
    assert len(one.finding.text) <= 80
    line = text.splitlines()[one.finding.at.line - 1]
    assert "source" in line or "edges[0]" in line
    assert "the weights of a sum add up to" in str(one.finding) or name == "divided afterwards"


HEALTHY = {
    "of the destinations": "a = softmax(scores, target, len(x))" + SUMMED,
    "of the destinations as a view": "a = scattered(scores, edges[1].contiguous(), len(x))" + SUMMED,
    "both from the other end": "a = softmax(scores, source, len(x))\n"
    "out = total(a[:, None] * h[target], source, len(x))",
    "divided by its own sums": "e = scores.exp()[:, None]\n"
    "out = total(e * h[source], target, len(x)) / total(e, target, len(x))",
    "normalized again": "a = softmax(scores, source, len(x))\nagain = total(a, target, len(x))" + SUMMED
    + " / (again[:, None] + 1e-9)",
    "summed at both ends": "a = softmax(scores, source, len(x))" + SUMMED
    + "\nout = out + total(a[:, None] * h[target], source, len(x))",
    "other numbers of the same groups": "a = softmax(scores, target * 2, 2 * len(x))" + SUMMED,
    "weights without a softmax": "count = total(torch.ones(len(source)), source, len(x))\n"
    "a = scores.sigmoid() / count[source]" + SUMMED,
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", HEALTHY)
def test_weights_of_the_same_groups_are_right(name, engine, checks):
    _, notes = found(HEALTHY[name], checks, engine)
    assert [str(one.finding) for one in notes] == []
