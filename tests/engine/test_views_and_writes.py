"""Views, writes in place and version counters, against PyTorch."""

import pytest
from twin import compare

PROGRAMS = {
    "versions": """
x = torch.ones(3); v = x[1:]; d = x.detach(); a = x.data; c = x.clone()
x.add_(1); see(x, v, d, a, c)
v.mul_(2); see(x, v, d, a, c)
d.zero_(); see(x, v, d, a, c)
a.fill_(7); see(x, v, d, a, c)
x[0] = 5; see(x._version); x[0] += 1; see(x._version); x[[0, 1]] = 2.; see(x._version); x[:] = 3; see(x)
with torch.no_grad(): x.sub_(1)
see(x, v)
y = torch.ones(3); y.data = torch.zeros(3); see(y); y.add_(1); y.data = torch.zeros(3); see(y)
""",
    "what data may be": """
def put(t, value): t.data = value
x = torch.ones(2, requires_grad=True); y = x * 2; v = y[:1]; z = torch.ones(2); i = torch.tensor([1, 2])
for value in (5, None, [1., 2.], "a"): attempt(lambda: put(x, value)); attempt(lambda: put(z, value))
for t in (x, y, v): attempt(lambda: put(t, i)); attempt(lambda: put(t, i > 1))
put(x, i.double()); put(z, i); put(y, i.float()); see(x, y, z)
""",
    "leaves may not be written": """
x = torch.ones(3, requires_grad=True)
def item(t, i, v): t[i] = v
attempt(lambda: x.add_(1)); attempt(lambda: x.zero_()); attempt(lambda: item(x, 0, 1.)); attempt(lambda: item(x, [0], 1.))
attempt(lambda: x[1:].mul_(2)); attempt(lambda: x.view(3, 1).fill_(2)); attempt(lambda: x.detach().add_(1))
attempt(lambda: x.data.add_(1)); attempt(lambda: item(x, slice(None), 1.)); see(x)
with torch.no_grad(): x.add_(1); x[0] = 9; x[1:].zero_()
see(x)
z = torch.ones(3); attempt(lambda: z.add_(x)); see(z)
""",
    "modified since it was saved": """
x = torch.tensor([1., 2.], requires_grad=True)
y = x * 2; z = y * y; y.add_(1); attempt(lambda: z.sum().backward())
y = x.exp(); y.mul_(2); attempt(lambda: y.sum().backward())
y = x.exp(); z = y + 1; y.mul_(2); attempt(lambda: z.sum().backward())
y = x.sigmoid(); y.data.mul_(2); attempt(lambda: y.sum().backward()); see(x)
w = torch.ones(2); z = x * w; w.add_(1); attempt(lambda: z.sum().backward())
w = torch.ones(2); z = x + w; w.add_(1); attempt(lambda: z.sum().backward())
y = x * 2; z = y ** 2; y.detach().zero_(); attempt(lambda: z.sum().backward())
y = x.relu(); z = y * 3; y.add_(1); attempt(lambda: z.sum().backward())
i = torch.tensor([0, 1]); z = x[i]; i[0] = 1; attempt(lambda: z.sum().backward())
m = torch.ones(2, 2, requires_grad=True); a = m * 1; b = a @ a; a[0] = 0; attempt(lambda: b.sum().backward())
y = x * 2; z = y.sin(); y.zero_(); attempt(lambda: z.grad_fn._saved_self)
""",
    "writes to a base": """
x = torch.tensor([1., 2., 3.], requires_grad=True)
y = x * 2; v = y[1:]; y.mul_(3); see(y, v); v.sum().backward(); see(x)
y = x * 2; v = y[1:]; w = v[1:]; y.add_(x); see(w, v, y); (w * 2).sum().backward(retain_graph=True); see(x)
y = x * 2; y.exp_(); y.sum().backward(); see(y, x)
y = x * 2; y.mul_(x); y.sum().backward(); see(y, x)
y = x * 2; y.div_(x); y.sub_(1); y.neg_(); y.pow_(2); y.sum().backward(); see(y, x)
y = x * 2; y.zero_(); see(y); y.sum().backward(); see(x)
y = x * 2; y.fill_(3); see(y); y.sum().backward(); see(x)
y = x * 2; y.copy_(x * x); see(y); y.sum().backward(); see(x)
y = torch.ones(3); y.mul_(x); see(y); y.sum().backward(); see(x)
y = torch.ones(3); y.copy_(x); see(y); y.sum().backward(); see(x)
y = x * 2; y += x; y *= 2; y -= 1; y /= 2; y **= 2; see(y); y.sum().backward(); see(x)
y = x * 2; y[:] = x; see(y); y.sum().backward(); see(x)
y = x * 2; y.relu_(); y.sigmoid_(); y.tanh_(); y.sqrt_(); y.sin_(); y.clamp_(0, 1); see(y); y.sum().backward(); see(x)
""",
    "writes to a view": """
x = torch.tensor([[1., 2., 3.], [4., 5., 6.]], requires_grad=True)
y = x * 2; v = y[0]; v.mul_(3); see(v, y); y.sum().backward(); see(x); x.grad = None
y = x * 2; y[0] = 1.; see(y); y.sum().backward(); see(x); x.grad = None
y = x * 2; y[1, 2] = x[0, 0] * 5; see(y); (y * y).sum().backward(); see(x); x.grad = None
y = x * 2; y[:, 1] *= 4; see(y); (y * y).sum().backward(); see(x); x.grad = None
y = x * 2; v = y[0]; w = y[0, 1:]; w.mul_(5); see(w, v, y); (v * v).sum().backward(); see(x); x.grad = None
y = x * 2; y.t()[0].add_(x[:, 0]); see(y); (y * y).sum().backward(); see(x); x.grad = None
y = x * 2; y.view(6)[2:4].exp_(); see(y); y.sum().backward(); see(x); x.grad = None
y = torch.zeros(2, 3); y[0] = x[0]; y[1] = x[1] * 2; see(y); (y * y).sum().backward(); see(x); x.grad = None
y = x * 2; y[:, ::2] = 0; see(y); y.sum().backward(); see(x); x.grad = None
y = x * 2; y[[0, 1], [1, 2]] = 7.; see(y); (y * y).sum().backward(); numbers(x.grad); x.grad = None
y = x * 2; y[y > 5] = 0.; numbers(y); (y * y).sum().backward(); numbers(x.grad); x.grad = None
y = x * 2; y[torch.tensor([1])] = x[0:1]; numbers(y); (y * y).sum().backward(); numbers(x.grad); x.grad = None
y = x * 2; y[..., 0] = 3; y[None, 1] = 2; see(y); y.sum().backward(); see(x)
""",
    "filling slice by slice": """
x = torch.tensor(2., requires_grad=True); s = torch.ones(3)
s[1] = s[0] * x; z = s.sum(); see(s, z); attempt(lambda: z.backward())
s = torch.ones(3); s[1] = s[0].clone() * x; s[2] = s[1].clone() * x; z = s.sum(); see(s, z); z.backward(); see(x)
""",
    "views": """
x = torch.arange(24., requires_grad=True); y = x * 1
for v in (y.view(4, 6), y.view(2, -1), y.reshape(4, 6), y.view(4, 6).t(), y.view(2, 3, 4).permute(2, 0, 1),
          y.view(2, 3, 4).transpose(0, -1), y.view(1, 24, 1).squeeze(), y.view(1, 24).squeeze(0), y.view(1, 24).squeeze(1),
          y.unsqueeze(0), y.unsqueeze(-1), y[3], y[-1], y[2:9], y[2:9:3], y[None], y[...], y.view(4, 6)[1, 2], y.view(4, 6)[:, 2],
          y.view(4, 6)[1:3, ::2], y.view(4, 6)[:, None], y.view(2, 12).expand(2, 12), y.view(24, 1).expand(-1, 3),
          y.view(4, 6).t().reshape(24), y.view(4, 6).flatten(), y.flatten(), y.view(4, 6).T, y.view(2, 3, 4).flatten(1),
          y.view(2, 3, 4)[..., 1], y.view(2, 3, 4)[0, ..., 1], y.view(4, 6).t().contiguous(), y[:], y.view(4, 6)[:, :]):
    see(v, v.shape, v.stride(), v.is_contiguous())
    (g,) = torch.autograd.grad((v * v).sum(), x, retain_graph=True); numbers(g)
attempt(lambda: y.view(5)); attempt(lambda: y.view(-1, 5)); attempt(lambda: y.view(4, 6).t().view(24))
attempt(lambda: y[24]); attempt(lambda: y[0, 0]); attempt(lambda: y.transpose(0, 1)); attempt(lambda: y.unsqueeze(3))
attempt(lambda: y.expand(3)); attempt(lambda: y.squeeze(4)); attempt(lambda: y.view(2, 12)[2])
""",
    "several views of one": """
x = torch.arange(6., requires_grad=True).view(2, 3); y = x * 1
for parts in (y.unbind(0), y.split(2, 1), y.split([1, 2], 1), y.unbind(1), [row for row in y]):
    see(parts)
    see(torch.autograd.grad(sum((p * (i + 1)).sum() for i, p in enumerate(parts)), y, retain_graph=True))
a, b = y.unbind(0); attempt(lambda: a.add_(1))
a, b = y.unbind(0); y.mul_(2); attempt(lambda: a.grad_fn)
with torch.no_grad(): v = y[0]
attempt(lambda: v.add_(1)); y.mul_(2); attempt(lambda: v.grad_fn); attempt(lambda: v * 2)
""",
    "no_grad writes": """
x = torch.ones(3, requires_grad=True); y = x * 2; v = y[1:]
with torch.no_grad(): v.mul_(2)
see(y, v); y.sum().backward(); see(x)
y = x * 2
with torch.no_grad(): y.add_(1)
see(y)
""",
    "detach": """
x = torch.ones(3, requires_grad=True); y = x * 2
d = y.detach(); see(d); d.requires_grad_(); see(d, y)
y.detach_(); see(y)
attempt(lambda: (x * 2)[0].detach_())
see(x.detach().clone(), x.clone().detach(), x.data, x.detach() is x)
attempt(lambda: x.numpy()); attempt(lambda: (x * 2).numpy()); see(x.detach().numpy())
""",
    "overlap": """
y = torch.ones(3, 1).expand(3, 4); attempt(lambda: y.add_(1)); attempt(lambda: torch.ones(3).expand(1, 3).add_(1))
x = torch.ones(1, requires_grad=True); v = x.expand(3); v.sum().backward(); see(x); (x.grad.add_(1)); see(x)
""",
    "writes that overlap what they read": """
b = torch.arange(4.); attempt(lambda: b[1:].add_(b[:-1])); attempt(lambda: b.add_(b.unsqueeze(0))); attempt(lambda: b.add_(b))
attempt(lambda: b[::2].add_(b[1::2])); attempt(lambda: b[1:].add_(b.data[:-1])); attempt(lambda: b[:2].add_(b[2:]))
attempt(lambda: torch.ones(1, 3).expand(4, 3)[:1].add_(1)); attempt(lambda: torch.ones(0, 3).expand(2, 0, 3).add_(1)); m = torch.arange(4.).view(2, 2); attempt(lambda: m.add_(m.t())); attempt(lambda: m.copy_(m.t()))
""",
    "views of views that must not be written": """
x = torch.ones(2, 3, requires_grad=True); y = x * 2
attempt(lambda: y.unbind(0)[0][1:].add_(1)); attempt(lambda: y.split(2)[0].add_(1))
""",
    "what does not fit in place": """
i = torch.ones(2, dtype=torch.int64); f = torch.ones(2); b = torch.ones(2, dtype=torch.bool)
attempt(lambda: i.add_(1.5)); attempt(lambda: i.mul_(f)); attempt(lambda: i.div_(2)); attempt(lambda: b.add_(1)); attempt(lambda: f.add_(i))
attempt(lambda: f.add_(torch.ones(3, 2))); attempt(lambda: f.add_(torch.ones(3))); attempt(lambda: f.copy_(torch.ones(3)))
attempt(lambda: f.double().add_(f)); attempt(lambda: f.add_(f.double())); attempt(lambda: i.copy_(f * 2.7)); see(i)
""",
    "hooks and writes": """
x = torch.ones(2, requires_grad=True); y = x * 2; seen = []
y.register_hook(lambda g: seen.append(g.tolist())); y.mul_(3); y.register_hook(lambda g: seen.append(("new", g.tolist())))
y.sum().backward(); see(seen, x)
""",
}


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    compare(PROGRAMS[name])


@pytest.mark.torch
def test_under_no_grad_an_old_view_may_be_written_and_elsewhere_it_is_refused_first():
    compare("""
import torch
leaf = torch.tensor([1., 2., 3.], requires_grad=True)
with torch.no_grad():
    rows, tail = leaf.unbind(), leaf[1:]
    tail.add_(1), rows[0].add_(5)
numbers(leaf)
attempt(lambda: rows[0] + 1); attempt(lambda: rows[0] + torch.zeros(2, 3))
base = leaf * 1
with torch.no_grad(): tail = base[1:]
base.add_(1)
attempt(lambda: torch.zeros(3) + tail)
""")


@pytest.mark.torch
def test_whether_a_gradient_is_wanted_is_said_by_a_bool():
    compare("""
import torch
leaf = torch.zeros(2, requires_grad=True)
attempt(lambda: setattr(leaf, "requires_grad", 1)); attempt(lambda: leaf.requires_grad_(None)); see(leaf)
""")
