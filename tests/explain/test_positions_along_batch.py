"""Positions that are added along the batch, and those that are added along the tokens."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(9, 8), nn.Linear(8, 2)
        TABLE
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=FIRST)
    def forward(self, tokens):
        x = self.embed(tokens)
        x = POSITIONS
        return self.head(self.layer(x).mean(MEAN))
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    tokens = torch.randint(9, (BATCH, 6))
    opt.zero_grad()
    nn.functional.cross_entropy(net(tokensTURN), tokens[:, 0] % 2).backward()
    opt.step()
"""
BUFFER = "self.register_buffer('pe', torch.randn(50, 1, 8))"
TABLE = "self.pe = nn.Embedding(50, 8)"


def program(positions, table=BUFFER, first=True, batch=5):
    text = PROGRAM.replace("TABLE", table).replace("POSITIONS", positions).replace("FIRST", str(first))
    text = text.replace("MEAN", "1" if first else "0").replace("TURN", "" if first else ".T")
    return text.replace("BATCH", str(batch))


BY_HAND = program("x + self.pe[:x.size(0)]").replace("self.layer(x)", "(torch.softmax(x @ x.transpose(1, 2), -1) @ x)")


def found(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == "position-of-samples"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "text",
    [
        program("x + self.pe[:x.size(0)]"),
        program("self.pe[:x.size(0), :] + x"),
        program("x + self.pe", "self.pe = nn.Parameter(torch.randn(50, 1, 8))").replace(
            "+ self.pe\n", "+ self.pe[:5]\n"
        ),
        program("x + self.pe(torch.arange(x.size(0))).unsqueeze(1)", TABLE),
        BY_HAND,
    ],
)
def test_positions_along_the_batch_are_found_where_they_are_added(text, engine, checks):
    (one,) = found(text, engine, checks)
    assert one.level == "warning"
    assert "self.pe" in text.splitlines()[one.finding.at.line - 1]
    assert "(5,1,8) is added to (5,6,8)" in one.finding.parts[0].text
    assert "of size 6" in one.finding.parts[0].text
    assert "(1, 6, 8)" in one.finding.fix


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "text",
    [
        program("x + self.pe[:x.size(1)].transpose(0, 1)"),
        program("x + self.pe[:x.size(0)]", first=False),
        program("x + self.pe(torch.arange(x.size(1)))", TABLE),
        program("x + self.pe[:x.size(0)]", batch=6),  # nobody can tell the dimensions apart
        program("x + x.mean(1, keepdim=True)"),
        program("x + self.pe(tokens[:, :1])", TABLE),  # a number of each sample, such as its speaker
    ],
)
def test_positions_of_tokens_and_numbers_of_samples_are_no_finding(text, engine, checks):
    assert found(text, engine, checks) == []
