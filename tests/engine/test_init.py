"""First values: those that are no chance are PyTorch's, the others have PyTorch's distributions."""

import numpy as np
import pytest
from recording import events_of
from twin import compare

import gviz.engine as torch
from gviz import events as e
from gviz.engine import nn

MANY = 200

PROGRAMS = {
    "without chance": """
from torch import nn
t = lambda *shape: torch.zeros(shape) + 3
see(nn.init.constant_(t(2, 2), 0.5), nn.init.ones_(t(3)), nn.init.zeros_(t(2)), nn.init.eye_(t(2, 3)), nn.init.dirac_(t(4, 2, 3), 2), nn.init.dirac_(t(3, 2, 2, 3)))
for name in ("linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu", "selu", "conv_transpose3d"): see(nn.init.calculate_gain(name))
see(nn.init.calculate_gain("leaky_relu", 0.3)); p = nn.Parameter(t(2, 2)); see(nn.init.zeros_(p) is p, p)
""",
    "what it refuses": """
from torch import nn
t = lambda *shape: torch.zeros(shape) + 3
attempt(lambda: nn.init.calculate_gain("no")); attempt(lambda: nn.init.calculate_gain("leaky_relu", True)); attempt(lambda: nn.init.eye_(t(2))); attempt(lambda: nn.init.dirac_(t(2, 2)))
attempt(lambda: nn.init.dirac_(t(3, 2, 2), 2)); attempt(lambda: nn.init.xavier_uniform_(t(2))); attempt(lambda: nn.init.kaiming_uniform_(t(2, 2), mode="no"))
attempt(lambda: nn.init.orthogonal_(t(2))); attempt(lambda: nn.init.sparse_(t(2), 0.5)); attempt(lambda: nn.init.uniform_(t(2), 3, 2)); attempt(lambda: nn.init.normal_(t(2), 0, -1))
see(nn.init.kaiming_uniform_(t(0, 2)), nn.init.orthogonal_(t(0, 2)))
""",
    "writes": """
from torch import nn
for f in (nn.init.uniform_, nn.init.normal_, nn.init.xavier_uniform_, nn.init.xavier_normal_, nn.init.kaiming_uniform_, nn.init.kaiming_normal_, nn.init.orthogonal_):
    p = nn.Parameter(torch.ones(3, 2)); before = p._version; r = f(p); see(r is p, p._version - before, p.requires_grad)
see(nn.Linear(2, 3).weight._version, nn.Linear(2, 3).bias._version)
""",
}

DRAWN = [
    (lambda t: nn.init.uniform_(t, -1, 3), 1, 4 / 12**0.5),
    (lambda t: nn.init.normal_(t, 2, 3), 2, 3),
    (nn.init.xavier_uniform_, 0, (2 / (2 * MANY)) ** 0.5),
    (lambda t: nn.init.xavier_normal_(t, gain=2.0), 0, 2 * (2 / (2 * MANY)) ** 0.5),
    (nn.init.kaiming_uniform_, 0, (2 / MANY) ** 0.5),
    (lambda t: nn.init.kaiming_normal_(t, 0.5, "fan_out"), 0, (2 / 1.25 / MANY) ** 0.5),
    (nn.init.orthogonal_, 0, MANY**-0.5),
]


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    compare(PROGRAMS[name])


@pytest.mark.parametrize(("fill", "mean", "std"), DRAWN)
def test_distributions(fill, mean, std):
    torch.manual_seed(0)
    values = fill(torch.empty(MANY, MANY)).numpy()
    assert abs(values.mean() - mean) < 5 * std / MANY
    assert abs(values.std() - std) < 0.02 * std


def test_truncated_numbers_stay_within_their_bounds():
    torch.manual_seed(0)
    values = nn.init.trunc_normal_(torch.empty(MANY, MANY), 1.0, 2.0, 0.0, 2.0).numpy()
    assert values.min() >= 0
    assert values.max() <= 2
    assert abs(values.mean() - 1) < 0.02
    with pytest.warns(UserWarning, match="mean is more than 2 std"):
        nn.init.trunc_normal_(torch.empty(1), 9.0)


def test_orthogonal_matrices_are():
    for shape in ((4, 3), (3, 4), (3, 2, 2)):
        matrix = nn.init.orthogonal_(torch.empty(*shape, dtype=torch.float64), gain=2.0).numpy().reshape(shape[0], -1)
        product = matrix @ matrix.T if matrix.shape[0] < matrix.shape[1] else matrix.T @ matrix
        np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-12)


def test_sparse_columns_have_so_many_zeros():
    values = nn.init.sparse_(torch.empty(10, 4), 0.35).numpy()
    assert ((values == 0).sum(0) == 4).all()


def test_generators_decide():
    draws = [nn.init.normal_(torch.empty(3), generator=torch.Generator().manual_seed(4)).tolist() for _ in range(2)]
    assert draws[0] == draws[1]


def test_a_module_made_while_listening_says_its_first_values_once():
    events = events_of(lambda: nn.Linear(2, 1))
    assert not [event for event in events if isinstance(event, e.StorageWritten)]
    created = [event for event in events if isinstance(event, e.NodeCreated)]
    assert [event.kind for event in created] == ["parameter", "parameter"]
    assert all(np.any(event.outputs[0].value.array()) for event in created)
