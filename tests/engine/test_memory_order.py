"""In which order the elements of results lie in memory, where the operands are transposed: beside PyTorch's."""

import pytest
from expressions import attempted, split
from twin import compare

TURNED = """
import torch
t, b = torch.arange(6.).reshape(3, 2).t(), torch.arange(24.).reshape(2, 3, 4).permute(2, 0, 1)
c = torch.arange(6.).reshape(2, 3)
"""
RESULTS = split("""
t.cumsum(-1) | t.cumprod(0) | t.logcumsumexp(0) | t.softmax(0) | t.log_softmax(1) | torch.cat([t, t]) | torch.stack([t, t])
t.roll(1) | t.roll(1, 0) | t.masked_fill(t > 2, 0) | b.sum(0) | b.sum(1) | b.mean(1) | b.amax(0) | b.amin(1) | b.std(1) | b.cumsum(1)
c[:, [0, 1]] | c[[0, 1]] | t.flip(0) | t.flip((0, 1)) | b.flip(1) | t.sort(0)[0] | t.sort(1, descending=True)[1] | b.sort(1)[0]
""")


@pytest.mark.torch
def test_results_have_the_strides_of_pytorch():
    compare(TURNED + attempted(f"({result}).stride()" for result in RESULTS))


@pytest.mark.torch
def test_reversed_turns_the_first_dimension():
    compare("import torch\nsee(reversed(torch.arange(6.).reshape(2, 3)).tolist())")
