"""What is done to gradients, parameters and sequences from outside, against PyTorch."""

import pytest
from twin import compare

PROGRAMS = {
    "clipping norms": """
from torch import nn
def some():
    a = torch.arange(6.).view(2, 3).requires_grad_(); b = torch.ones(2, requires_grad=True); c = torch.ones(1, requires_grad=True)
    (a * a).sum().backward(); (b * -7).sum().backward(); return [a, b, c]
for order in (2., 1, 3., float("inf"), "inf", 0.5):
    for limit in (1., 1e6): p = some(); numbers(nn.utils.clip_grad_norm_(p, limit, order), p[0].grad, p[1].grad); see(p[0].grad._version, p[2].grad)
p = some(); numbers(nn.utils.clip_grad_norm_(p[0], 2.), p[0].grad, nn.utils.clip_grad_norm_([], 1.), nn.utils.clip_grad_norm_([p[2]], 1.), nn.utils.clip_grad_norm_(iter(p), 1.))
p[0].grad[0, 0] = float("nan"); attempt(lambda: nn.utils.clip_grad_norm_(p, 1., error_if_nonfinite=True)); numbers(nn.utils.clip_grad_norm_(p, 1.), p[1].grad)
p = some(); t = nn.utils.get_total_norm([q.grad for q in p[:2]]); nn.utils.clip_grads_with_norm_(p, 1., t); numbers(t, p[0].grad)
""",
    "clipping values": """
from torch import nn
a = torch.arange(6.).view(2, 3).requires_grad_(); (a * a).sum().backward(); nn.utils.clip_grad_value_([a, torch.ones(1)], 3.5); numbers(a.grad); nn.utils.clip_grad_value_(a, 1); numbers(a.grad); see(a.grad._version)
""",
    "vectors": """
from torch import nn
net = nn.Linear(2, 2); v = nn.utils.parameters_to_vector(net.parameters()); see(v.shape, type(v.grad_fn).__name__); w = torch.arange(6.); nn.utils.vector_to_parameters(w, net.parameters()); numbers(net.weight, net.bias); w.add_(1); numbers(net.bias)
attempt(lambda: nn.utils.vector_to_parameters([1.], net.parameters())); see(net.weight.is_leaf, net.weight.requires_grad)
""",
    "sequences": """
from torch.nn.utils.rnn import pad_sequence, unpad_sequence
a, b, c = torch.arange(6.).view(3, 2).requires_grad_(), torch.ones(1, 2), torch.arange(4.).view(2, 2)
for options in ({}, dict(batch_first=True), dict(padding_value=-1., padding_side="left"), dict(batch_first=True, padding_side="left")):
    p = pad_sequence([a, b, c], **options); numbers(p); (p * p).sum().backward(); numbers(a.grad)
attempt(lambda: pad_sequence(3)); attempt(lambda: pad_sequence([])); attempt(lambda: pad_sequence([a], padding_side="up"))
p = pad_sequence([torch.ones(2), torch.ones(3)], batch_first=True); numbers(*unpad_sequence(p, torch.tensor([2, 3]), batch_first=True))
""",
}


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    compare(PROGRAMS[name])
