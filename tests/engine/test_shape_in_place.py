"""Tensors that become another view of their own memory, and what detaching in place does, against PyTorch."""

import pytest
from recording import events_of
from twin import compare

import gviz.engine as torch
from gviz.events import NodeCreated, OpSeen

SETUP = """
x = torch.arange(6.).view(2, 3).clone().requires_grad_()
WAYS = {"t_": lambda t: t.t_(), "transpose_": lambda t: t.transpose_(0, 1), "unsqueeze_": lambda t: t.unsqueeze_(0), "squeeze_": lambda t: t.squeeze_(),
    "squeeze_ dim": lambda t: t.squeeze_(0), "squeeze_ dims": lambda t: t.squeeze_((0, 1)), "swapaxes_": lambda t: t.swapaxes_(0, 1), "swapdims_": lambda t: t.swapdims_(-1, 0), "out of range": lambda t: t.unsqueeze_(7)}
SIZES = {"other": lambda t: t.resize_(3, 2), "smaller": lambda t: t.resize_(2, 2), "as": lambda t: t.resize_as_(torch.ones(3, 2)), "list": lambda t: t.resize_([6])}
"""

PROGRAMS = {
    "shapes": """
for way in WAYS.values():
    attempt(lambda: way(x) if way is not WAYS["out of range"] else None)
    y = x * 1; attempt(lambda: (way(y) is y, y, y.stride())); y = x * 1; v = y[:1]; attempt(lambda: (way(v) is v, v, y, v._is_view(), v._base is y))
    c = torch.arange(6.).view(2, 3).clone(); attempt(lambda: (way(c) is c, c))
    y = x * 2; way(y) if way is not WAYS["out of range"] else None; x.grad = None; (y * y).sum().backward(); see(x)
with torch.no_grad(): x.unsqueeze_(0)
see(x)
""",
    "memory": """
y = x * 1; y.t_(); (y * torch.arange(6.).view(3, 2)).sum().backward(); see(x); x.grad = None
y = x * 1; v = y[:1]; v.t_(); (v * torch.arange(3.).view(3, 1)).sum().backward(); see(x); x.grad = None
y = x * 1; v = y[:1]; v.t_(); v.mul_(2); see(y, v); y.sum().backward(); see(x); x.grad = None
y = x * 1; w = y.t(); y.unsqueeze_(0); see(w); z = y.sin(); y.squeeze_(0); attempt(lambda: z.sum().backward())
d = x.detach(); d.unsqueeze_(0); see(x, d); a, b = (x * 1).unbind(); attempt(lambda: a.unsqueeze_(0))
y = x.sum(0); z = y * y
with torch.no_grad(): y.add_(1)
attempt(lambda: z.sum().backward())
y = x * 1; y.retain_grad(); y.t_(); y.sum().backward(); see(y)
""",
    "sizes": """
for size in SIZES.values():
    attempt(lambda: size(x)); attempt(lambda: size(x * 1)); c = torch.arange(6.).view(2, 3); attempt(lambda: (size(c) is c, c)); c = torch.arange(6.); attempt(lambda: (size(c) is c, c))
c = torch.arange(4.); c.resize_(2); see(c); c.resize_(4); see(c); see(torch.ones(3).resize_(0), torch.ones(3).resize_(5)[:3])
""",
    "detach": """
y = x * 1; y.detach_(); see(y); y = x * 1; v = y[0]; attempt(lambda: v.detach_()); attempt(lambda: torch.ones(3)[1:].detach_()); see(x.detach_() is x, x)
""",
}


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    compare(SETUP + PROGRAMS[name])


def test_a_recording_shows_the_new_shape():
    def program():
        y = torch.ones(2, 3, requires_grad=True) * 2
        y.t_()
        return y, y * 2

    log = events_of(program)
    (op,) = [event for event in log if isinstance(event, OpSeen) and event.name == "t_"]
    (node,) = [event for event in log if isinstance(event, NodeCreated) and event.op == op.op]
    last = [event for event in log if isinstance(event, NodeCreated)][-1]
    assert op.grad_fn == "TBackward1"
    assert node.requires_grad
    assert node.outputs[0].value.shape == (3, 2)
    assert node.outputs[0].version == 1
    assert last.inputs[0] == (node.node, 0)
