"""Normalizations that name no dimension: of tokens, and of what has its features in dimension 1."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.emb, self.norm = nn.Linear(5, 8), nn.Embedding(9, 8), nn.LayerNorm(8)
        self.conv, self.image = nn.Conv1d(5, 8, 3), nn.Conv2d(3, 8, 3)
        self.cos, self.flat = nn.CosineSimilarity(), nn.Linear(5, 8)
    def forward(self, x, ids):
        BODY
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, ids = torch.randn(4, 6, 5), torch.randint(0, 9, (4, 6))
for i in range(2):
    loss = (net(x, ids) - 0.1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "tokens of a layer": ("return F.normalize(self.fc(x))  #!", "F.normalize(self.fc(x), dim=-1)"),
    "tokens of an embedding": (
        "h = F.dropout(self.emb(ids), 0.1)\nh = F.normalize(h, p=2)  #!\nreturn h",
        "F.normalize(h, p=2, dim=-1)",
    ),
    "tokens of a norm": (
        "h = torch.relu(self.norm(self.fc(x)))\nreturn nn.functional.normalize(h)  #!",
        "nn.functional.normalize(h, dim=-1)",
    ),
    "similar tokens": (
        "return F.cosine_similarity(self.fc(x), self.emb(ids))  #!",
        "F.cosine_similarity(self.fc(x), self.emb(ids), dim=-1)",
    ),
    "a layer of similarities": ("return self.cos(self.fc(x), self.emb(ids))  #!", None),
    "a softmax of samples": ("return F.softmax(self.fc(x))  #!", "F.softmax(self.fc(x), dim=-1)"),
}
RIGHT = {
    "a dimension": "return F.normalize(self.fc(x), dim=-1)",
    "tokens in words": "return F.normalize(self.fc(x), dim=1)",
    "tokens in words by place": "return F.normalize(self.fc(x), 2, 1)",
    "channels of a sequence": "return F.normalize(self.conv(x.transpose(1, 2)))",
    "channels of an image": "return F.normalize(self.image(torch.ones(2, 3, 6, 6)))",
    "two dimensions": "return F.normalize(self.flat(x[:, 0]))",
    "features moved to dimension 1": "return F.normalize(self.fc(x).transpose(1, 2))",
    "similar rows": "return F.cosine_similarity(self.fc(x)[:, 0], self.emb(ids)[:, 0])",
    "a softmax of features": "return F.softmax(self.fc(x), -1)",
    "a method": "return self.fc(x).softmax(-1)",
    "data": "return self.fc(F.normalize(x))",
}


def found_in(body, engine, checks):
    text = PROGRAM.replace("BODY", body.replace("\n", "\n        "))
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return text, [one for one in outcome.found if one.finding.kind == "default-dim"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", WRONG)
def test_a_normalization_of_tokens_is_a_note(name, engine, checks):
    body, mended = WRONG[name]
    text, (one,) = found_in(body, engine, checks)
    assert one.level == "note"
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert mended is None if one.finding.edit is None else mended in one.finding.edit.new


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", RIGHT)
def test_a_dimension_that_is_given_or_right_is_no_finding(name, engine, checks):
    assert [str(one) for one in found_in(RIGHT[name], engine, checks)[1]] == []
