"""How tensors print, against PyTorch."""

import pytest
from twin import compare

PROGRAMS = {
    "numbers": """
for data in (1., 0., -2.5, 1e-5, 1e10, 123456789., float("nan"), float("inf"), 3, True, [1., 2.], [1.5, -2.25], [1e-5, 1.],
             [1e5, 1.5], [1e8, 1.], [1., float("nan")], [float("inf"), 1.5], [float("-inf"), 2.], [1, 20, -300], [True, False],
             [0.1, 1000.25], [0.001, 999.], [12345.678, 1.], [[1., 2.], [3., 4.]], [[1.5], [22.25]], [], [[]], [0., 0.],
             [1e-10, 2e-10], [99999999., 1.], [100000000., 1.], [-1., 10.], [0.00012, 0.5], [0.00001, 0.5], [1/3, 2/3]):
    print(torch.tensor(data))
    print(torch.tensor(data, dtype=torch.float64) * 1)
""",
    "notes": """
x = torch.tensor([1., 2.], requires_grad=True)
print(x, x * 2, (x * 2).sum(), x.detach(), x.double(), x.half(), x > 1, x.int(), x.long(), x[0], (x * 2)[1:], x.unbind())
print(torch.nn.Parameter(torch.ones(2))); print(torch.ones(2, dtype=torch.float64, requires_grad=True))
y = torch.zeros(2); y[0] = x[0]; print(y); z = x * 2; z.add_(1); print(z)
print(x.shape, x.size(), x.size(0), x.dtype, torch.Size([1, 2]), x.shape.numel(), torch.float64, torch.bool)
print(f"{x[0]:.2f} {x[1].item():.3f}", str(x), [x], {"x": x})
""",
    "where lines end": """
for n in range(1, 40):
    for scale in (1, 10, 1000):
        print((torch.arange(float(n)) * scale).requires_grad_() * 1, torch.arange(float(n) * 2).view(2, n).requires_grad_())
        print(torch.arange(n, dtype=torch.float64) * scale, torch.arange(n, dtype=torch.int32), torch.arange(n) > scale)
""",
    "a view cut off from its base": """
x = torch.ones(2, requires_grad=True); y = x * 2; a, b = y.unbind(); y.mul_(2); print(a)
""",
    "many": """
print(torch.arange(30.)); print(torch.arange(30)); print(torch.arange(40.).view(4, 10)); print(torch.arange(24.).view(2, 3, 4))
print(torch.arange(1001.)); print(torch.arange(2000.).view(100, 20)); print(torch.arange(60.) / 7)
print((torch.arange(60.) / 7).requires_grad_()); print(torch.zeros(2, 0, 3)); print(torch.arange(48.).view(2, 2, 3, 4) * 100)
print(torch.zeros(3, 50)); print(torch.zeros(30, 40, 2)); print(torch.arange(12).view(3, 4) * 1000)
""",
}


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    compare(PROGRAMS[name])
