"""Optimizers, against PyTorch: every update bit by bit, in float32."""

import numpy as np
import pytest
from twin import assert_same, compare, run

OPTIONS = [
    "lr=0.1", "lr=0.1, momentum=0.9", "lr=0.1, momentum=0.9, dampening=0.3", "lr=0.1, momentum=0.9, nesterov=True",
    "lr=0.1, weight_decay=0.01", "lr=0.1, momentum=0.5, weight_decay=0.1, nesterov=True", "lr=0.1, maximize=True",
    "lr=0.1, momentum=0.9, dampening=0.1, weight_decay=0.2, maximize=True",
]  # fmt: skip

TRAIN = """
w = torch.tensor({w}, requires_grad=True)
b = torch.tensor({b}, requires_grad=True)
optimizer = torch.optim.SGD([w, b], {options})
for i in range(7):
    optimizer.zero_grad()
    loss = (w * 0.7).sum() + b * 3
    loss.backward()
    optimizer.step()
    see(w, b, optimizer.state_dict()["state"])
"""

PROGRAMS = {
    "groups and state": """
w = torch.ones(2, requires_grad=True); b = torch.ones(1, requires_grad=True); u = torch.ones(1, requires_grad=True)
optimizer = torch.optim.SGD([{"params": [w]}, {"params": b, "lr": 0.5}], lr=0.1, momentum=0.9)
optimizer.add_param_group({"params": [u], "momentum": 0.0})
for _ in range(3):
    (w * 2).sum().backward(); (b * 3).sum().backward(); optimizer.step(); see(w, b, u)
see([(g["lr"], g["momentum"], len(g["params"])) for g in optimizer.param_groups])
state = optimizer.state_dict(); see(state["state"], [g["params"] for g in state["param_groups"]])
again = torch.optim.SGD([{"params": [w]}, {"params": b}, {"params": u}], lr=1.0)
again.load_state_dict(state); again.step(); see(w, b, u, again.param_groups[0]["lr"])
attempt(lambda: torch.optim.SGD([w], lr=0.1).load_state_dict(state))
attempt(lambda: again.add_param_group({"params": [w]}))
optimizer.param_groups[0]["lr"] = 1.0; optimizer.step(); see(w)
""",
    "what it refuses": """
w = torch.ones(2, requires_grad=True)
for wrong in ("[]", "w", "[w * 2]", "[1]", "[w], lr=-1", "[w], momentum=-1", "[w], weight_decay=-1", "[w], nesterov=True"):
    attempt(lambda: eval(f"torch.optim.SGD({wrong})"))
""",
    "zero_grad and closures": """
w = torch.ones(2, requires_grad=True); u = torch.ones(1, requires_grad=True)
optimizer = torch.optim.SGD([w, u], lr=0.1)
(w * w).sum().backward(); optimizer.step(); see(w, u)
optimizer.zero_grad(set_to_none=False); numbers(w.grad); optimizer.zero_grad(); see(w)
(w * w).sum().backward(create_graph=True); optimizer.zero_grad(set_to_none=False); see(w.grad.requires_grad)
def closure():
    optimizer.zero_grad(); loss = (w * w).sum(); loss.backward(); return loss
see(optimizer.step(closure)); see(w)
z = (w * w).sum(); optimizer.step(); attempt(lambda: z.backward())
""",
}


@pytest.mark.torch
@pytest.mark.parametrize("options", OPTIONS)
def test_every_update_is_pytorchs_bit_by_bit(options):
    rng = np.random.default_rng(0)
    program = TRAIN.format(w=rng.normal(size=37).tolist(), b=float(rng.normal()), options=options)
    for expected, got in zip(run(program, "torch"), run(program, "gviz.engine"), strict=True):
        assert_same(expected, got, options, 0, 0)


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    compare(PROGRAMS[name])
