"""What becomes of ``.grad``, against PyTorch: taken over or copied, its version and layout, which object it is."""

import pytest
from heard import Heard, number
from twin import compare

import gviz.engine as torch
from gviz import events as e
from gviz.engine import backward

START = """
import torch
def leaf(*numbers, **options): return torch.tensor(numbers, requires_grad=True, **options)
def grads(*leaves): see([None if t.grad is None else (t.grad.tolist(), t.grad._version, t.grad.stride(), t.grad.requires_grad) for t in leaves])
def passes(make, *leaves, times=1):
    for _ in range(times):
        y = make(*leaves); (y if y.numel() == 1 else y.sum()).backward(); grads(*leaves)
"""
PROGRAMS = {
    "taken over or copied": """
for make in (lambda x, w: x.sum(), lambda x, w: x * w, lambda x, w: x + w, lambda x, w: x - w, lambda x, w: x + 1, lambda x, w: -x, lambda x, w: x * 2,
             lambda x, w: x.view(2, 1) * 1, lambda x, w: x.view(2, 1), lambda x, w: x.clone() * 1, lambda x, w: x.clone(), lambda x, w: x.exp(), lambda x, w: x[0],
             lambda x, w: x[0:1], lambda x, w: torch.cat([x, w]) * 1, lambda x, w: torch.cat([x, w]), lambda x, w: torch.stack([x, w]) * 1,
             lambda x, w: x.view(1, 2).t() * 1, lambda x, w: x.unbind()[0] * 2, lambda x, w: (x + w) * 1, lambda x, w: x.dot(w), lambda x, w: (x - w) * 1,
             lambda x, w: x.expand(3, 2) * 1, lambda x, w: x.expand(3, 2), lambda x, w: torch.where(x > 1, x, w), lambda x, w: x.relu(), lambda x, w: x / w):
    passes(make, leaf(1., 2.), leaf(3., 4.))
""",
    "a grad of another shape": """
for own, other in (((2, 3), (3,)), ((3,), (2,)), ((3,), (2, 3)), ((2,), (3,)), ((1,), (2,)), ((), (2,))):
    x = torch.ones(own, requires_grad=True); x.sum().backward(); x.grad.data = torch.ones(other)
    try: (x * 2).sum().backward(); see(x.grad.tolist())
    except RuntimeError as error: see(str(error))
""",
    "a leaf of another shape": """
for own, other in (((2, 3), (3,)), ((3,), (2, 3))):
    x = torch.ones(own, requires_grad=True); y = x * 1; x.data = torch.ones(other)
    try: y.sum().backward(); grads(x)
    except RuntimeError as error: see(str(error))
""",
    "several uses": """
for make in (lambda x, w: x + x, lambda x, w: x * x, lambda x, w: x * 2 + x * 3, lambda x, w: x * 2 + x * 3 + x * 4, lambda x, w: x + x + x,
             lambda x, w: (x * w) + (x * 2) + (w * 3), lambda x, w: x + w + x * w, lambda x, w: ((x + w) * 2) + x, lambda x, w: x * x * x * w):
    passes(make, leaf(1., 2.), leaf(3., 4.)); passes(make, torch.tensor(2., requires_grad=True), torch.tensor(3., requires_grad=True))
""",
    "one number": """
for make in (lambda x, w: x * w, lambda x, w: x + w, lambda x, w: x, lambda x, w: (x + w) * 2, lambda x, w: x.sum(), lambda x, w: x.view(1) * 2, lambda x, w: x + 1, lambda x, w: -x):
    passes(make, torch.tensor(2., requires_grad=True), torch.tensor(3., requires_grad=True))
for shape in ((1,), (1, 1), (2, 1), (1, 2), (0,), (0, 3)):
    x = torch.ones(shape).requires_grad_(); passes(lambda x: x.sum(), x); x = torch.ones(shape).requires_grad_(); passes(lambda x: x * 2, x)
x = torch.ones(1, 2).requires_grad_(); passes(lambda x: x.sum(0) * 1, x); x = torch.ones(2, 1).requires_grad_(); passes(lambda x: x.squeeze(1) * 1, x)
""",
    "layouts": """
def two(): return torch.ones(2, 3).requires_grad_(), torch.ones(3, 2).requires_grad_()
for make in (lambda a, b: a @ b, lambda a, b: a.t() * 1, lambda a, b: a.t() * b, lambda a, b: a.t(), lambda a, b: torch.nn.functional.linear(a, b.t()), lambda a, b: a.permute(1, 0) + b,
             lambda a, b: a.sum(0) * 1, lambda a, b: a * b.sum()):
    passes(make, *two())
passes(torch.nn.functional.linear, torch.ones(4, 3).requires_grad_(), torch.ones(2, 3).requires_grad_(), torch.ones(2).requires_grad_())
passes(lambda x, w: x * w, torch.ones(4, 3).requires_grad_(), leaf(1., 2., 3.)); passes(lambda x, w: x + w, torch.ones(4, 3).requires_grad_(), leaf(1., 2., 3.))
base = torch.ones(4)
for t in (base[::2], torch.ones(2, 3).t(), torch.ones(1).expand(3), torch.ones(2, 3, 4).permute(2, 0, 1)):
    x = t.detach().requires_grad_(); passes(lambda x: x * 2, x); x = t.detach().requires_grad_(); passes(lambda x: x.sum(), x)
    x = t.detach().requires_grad_(); (x * 2).sum().backward(create_graph=True); grads(x)
x = leaf(1., 2.); x.sum().backward(); x.grad[0] = 7.; see(x.grad)
""",
    "gradients given by the program": """
x, g = leaf(1., 2.), torch.ones(2); x.backward(g); grads(x); g.add_(1); see(x.grad, g); x.grad.add_(1); see(g)
for make in (lambda x: x, lambda x: x + 0, lambda x: x * 2, lambda x: x.view(2, 1).view(2)):
    x = leaf(1., 2.); make(x).backward(torch.ones(2)); grads(x); y = make(x); y.backward(torch.ones(2)); grads(x)
x = leaf(1., 2.); torch.autograd.backward([x, x], [torch.ones(2), torch.ones(2)]); grads(x)
""",
    "across passes": """
x, w = leaf(1., 2.), leaf(3., 4.); passes(lambda x, w: x * w + x, x, w, times=3)
first = x.grad; (x * 2).sum().backward(); see(x.grad is first, first); (x * x).sum().backward(create_graph=True); see(x.grad is first, first); grads(x)
second = x.grad; (x * 2).sum().backward(); see(x.grad is second, x.grad.requires_grad); grads(x)
x.grad = None; x.sum().backward(); see(x.grad is first, first); x.grad.zero_(); x.sum().backward(); grads(x)
a, b = torch.ones(4).requires_grad_(), torch.ones(4).requires_grad_(); passes(lambda a, b: (a + b) * 1, a, b, times=3)
""",
    "graphs of gradients": """
for make in (lambda x: x * x, lambda x: x + 0, lambda x: x.sum(), lambda x: x.exp() * x):
    x = leaf(1., 2.); make(x).sum().backward(create_graph=True); grads(x); see(type(x.grad.grad_fn).__name__ if x.grad.grad_fn else None)
    one = x.grad; make(x).sum().backward(create_graph=True); see(x.grad is one); grads(x); x.grad = None
""",
    "hooks": """
kept = []
for hook in (kept.append, lambda g: None, lambda g: g * 2, lambda g: kept.append(g * 2) or kept[-1], lambda g: g, lambda g: g.view(2), lambda g: g[:], lambda g: g.expand(2)):
    x = leaf(1., 2.); x.register_hook(hook); (x * 2).sum().backward(); grads(x); x = leaf(1., 2.); x.register_hook(hook); (x * 2 + x * 3).sum().backward(); grads(x)
    x = leaf(1., 2.); acc = (x * 2).grad_fn.next_functions[0][0]; y = x * 2; y.register_hook(hook); y.sum().backward(); grads(x)
see([k.tolist() for k in kept], [k._version for k in kept])
for register in ("register_hook", "register_prehook"):
    x = leaf(1., 2.); y = x * 2; getattr(y.grad_fn.next_functions[0][0], register)(lambda *given: None); y.sum().backward(); grads(x)
    x = leaf(1., 2.); y = x * 2; getattr(y.grad_fn, register)(lambda *given: None); y.sum().backward(); grads(x)
x = leaf(1., 2.); x.register_post_accumulate_grad_hook(lambda t: None); (x * 2).sum().backward(); grads(x)
x = leaf(1., 2.); y = x * 2; y.retain_grad(); y.sum().backward(); grads(x, y); y = x * 2; y.retain_grad(); (y * x).sum().backward(); grads(x, y)
""",
    "results of grad": """
x = leaf(1., 2.); grad = torch.autograd.grad
for make in (lambda x: x * 2 + x * 3 + x * 4, lambda x: x * 2, lambda x: x * x, lambda x: x + x):
    (g,) = grad(make(x).sum(), x); see(g, g._version)
(g,) = grad(x * 2, x, torch.ones(2)); see(x.grad, g._version)
""",
    "assigned": """
x = leaf(1., 2.); w = leaf(3., 4.)
def assign(t, value): t.grad = value
for value in (3, "a", torch.ones(3), torch.ones(2, dtype=torch.float64), torch.ones(1, 2), torch.ones(2, dtype=torch.int64), x, w, w * 2, torch.ones(2), None):
    attempt(lambda: assign(x, value)); see(x.grad is value)
attempt(lambda: assign(torch.ones(2), torch.ones(2))); attempt(lambda: assign(x * 2, torch.ones(2))); attempt(lambda: assign(torch.ones(2, dtype=torch.int64), torch.ones(2)))
given = torch.ones(2); x.grad = given; (x * 3).sum().backward(); see(x.grad is given, given)
part = torch.ones(4)[::2]; x.grad = part; (x * 3).sum().backward(); see(x.grad is part, part)
x.grad = torch.ones(1).expand(2); attempt(lambda: (x * 3).sum().backward()); see(x.grad)
x.grad = torch.ones(2); (x * 3).sum().backward(create_graph=True); see(x.grad)
shared = torch.zeros(2); x.grad = shared; w.grad = shared; (x * 1 + w * 10).sum().backward(); see(x.grad, w.grad, shared)
""",
    "read from a result": """
import warnings
def said(t):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always"); t.grad
    see([(w.category.__name__, str(w.message).split(" (Triggered")[0]) for w in caught])
x = leaf(1., 2.); y = x * 2; said(x); said(y); said(y.detach()); said(y[0]); said(torch.ones(2)); y.retain_grad(); said(y)
y = x * 2; y.grad = torch.ones(2); said(y); y.grad = None; said(y)
with torch.no_grad(): v = y[0]
first, _ = y.unbind(); y.mul_(2); said(v); said(first)
""",
    "partly freed": """
x = leaf(1., 2.); y = x.exp(); a = (y * 2).sum(); b = y.sum(); b.backward(); attempt(lambda: a.backward()); see(x)
y = x.exp(); z = y * y; z.sum().backward(inputs=[y]); attempt(lambda: y.sum().backward()); see(x, y); attempt(lambda: z.sum().backward())
x = leaf(1., 2.); w = leaf(3., 4.); y = x * w; u = w.exp(); s = (y + u).sum(); y.sum().backward(); attempt(lambda: s.backward()); see(x, w)
attempt(lambda: u.grad_fn._saved_result); attempt(lambda: y.grad_fn._saved_self); u.sum().backward()
""",
}  # fmt: skip


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    compare(START + PROGRAMS[name])


def test_two_leaves_never_share_a_gradient():
    a, b = torch.ones(4, requires_grad=True), torch.ones(4, requires_grad=True)
    for _ in range(3):
        ((a.view(2, 2) + b.view(2, 2)) * 1).sum().backward()
    assert a.grad.tolist() == b.grad.tolist() == [3.0] * 4  # PyTorch 2.13 adds in memory it shares, and has 5


def versions():
    x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    ((x + w) * 2 + x * 3).sum().backward()
    y = torch.tensor(2.0, requires_grad=True)
    (y * y + y).backward()
    return [t.grad._version for t in (x, w, y)]


def test_a_recording_does_not_change_what_is_taken_over():
    seen = []
    Heard(lambda: seen.append(versions()))
    assert seen == [versions()]


def test_what_was_taken_over_is_nobody_elses_memory():
    x = torch.ones(3, requires_grad=True)
    kept = []
    y = x * 2
    y.register_hook(kept.append)
    (y + 0).sum().backward()
    (y2,) = torch.autograd.grad((x * 3).sum(), x)
    x.grad.add_(5)
    assert (kept[0].tolist(), y2.tolist()) == ([1.0] * 3, [3.0] * 3)


def test_a_second_pass_writes_the_memory_and_says_so():
    def program():
        x = torch.ones(2, requires_grad=True)
        (x * 2).sum().backward()
        seen = x.grad * 1
        (x * 2).sum().backward()
        return x, seen

    heard = Heard(program)
    assert [number(w.value) for w in heard.all(e.StorageWritten)] == [[4.0, 4.0]]
    assert [number(a.value) for a in heard.all(e.GradAccumulated)] == [None, [4.0, 4.0]]


@pytest.mark.torch
@pytest.mark.parametrize("freeze", ["x.requires_grad_(False)", "x.detach_()"])
def test_a_leaf_that_is_frozen_after_the_forward_gets_nothing(freeze):
    compare(f"""
import torch
x, w = (torch.tensor([start, 2.0], requires_grad=True) for start in (1.0, 3.0))
y = (x * w).sum()
(x * 3).sum().backward()
ran = []
x.register_hook(lambda g: ran.append("tensor"))
x.register_post_accumulate_grad_hook(lambda leaf: ran.append("after"))
{freeze}
y.backward(retain_graph=True)
see(x.grad, x.grad._version, w.grad, ran)
x.grad = None
y.backward(retain_graph=True)
see(x.grad, w.grad)
x.requires_grad_()
y.backward()
see(x.grad, w.grad, ran)
""")


def test_a_pass_that_builds_a_graph_adds_out_of_place_and_any_other_in_place():
    w = torch.tensor([2.0, 3.0], requires_grad=True)
    (w * w * w).sum().backward(create_graph=True)
    first = w.grad
    assert first.requires_grad
    assert first.grad_fn is not None
    (w * w * w).sum().backward(create_graph=True)
    assert w.grad is not first
    assert (first.tolist(), first._version) == ([12.0, 27.0], 1)
    assert w.grad.tolist() == [24.0, 54.0]
    (second,) = torch.autograd.grad(w.grad.sum(), w)
    assert second.tolist() == [24.0, 36.0]  # 6 w of each of both passes

    v = torch.tensor([2.0, 3.0], requires_grad=True)
    (v * v * v).sum().backward()
    first = v.grad
    assert not first.requires_grad
    before = first._version
    (v * v * v).sum().backward()
    assert v.grad is first
    assert (first.tolist(), first._version) == ([24.0, 54.0], before + 1)


def test_of_a_contiguous_gradient_only_the_flags_are_read(monkeypatch):
    x = torch.zeros(2, 3, requires_grad=True)
    monkeypatch.setattr(backward, "strides_of", None)
    monkeypatch.setattr(backward, "_is_dense", None)
    (x * x).sum().backward()
    (x * x).sum().backward()
    assert x.grad.shape == (2, 3)


@pytest.mark.torch
def test_the_layout_of_a_gradient_is_judged_the_same_at_the_first_and_at_later_additions():
    compare("""
import warnings
def tried(x, *seeds):
    for seed in seeds:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            torch.autograd.backward(x.view_as(x), seed)
        see(x.grad.stride(), x.grad._version, len(said))
ones = torch.ones(2, 3)
tried(torch.zeros(2, 3, requires_grad=True), ones.clone(), ones.t().contiguous().t())
tried(torch.zeros(3, 2).t().requires_grad_(), ones.t().contiguous().t(), ones.clone())
tried(torch.zeros(4, 6)[::2, ::2].requires_grad_(), torch.ones(2, 3), torch.ones(3, 2).t())
tried(torch.zeros(2, 1, 3).permute(2, 1, 0).requires_grad_(), torch.ones(3, 1, 2), torch.ones(2, 1, 3).permute(2, 1, 0))
tried(torch.zeros(0, 3).requires_grad_(), torch.ones(0, 3), torch.ones(3, 0).t())
""")
