"""Hooks of nodes, tensors and leaves, against PyTorch: when they run, what they see, what they may give back."""

import pytest
from heard import Heard, number
from twin import compare

import gviz.engine as torch
from gviz import events as e

PROGRAMS = {
    "hooks of a node see what came and what goes": """
x = torch.tensor([1., 2.], requires_grad=True); w = torch.tensor([3., 4.], requires_grad=True)
def show(name): return lambda *given: see(name, given)
y = x * w; n = y.grad_fn
see(n.register_prehook(show("pre")) is not None); n.register_hook(show("post")); n.register_prehook(show("pre 2")); n.register_hook(show("post 2"))
y.register_hook(show("tensor")); y.retain_grad()
y.sum().backward(); see(x, w, y)
y = x * 2; y.grad_fn.register_hook(show("scalar")); (y + 1).sum().backward()
y = torch.cat([x, w, torch.ones(1)]); y.grad_fn.register_hook(show("cat")); y.sum().backward()
""",
    "hooks of a node replace": """
x = torch.tensor([1., 2.], requires_grad=True); w = torch.tensor([3., 4.], requires_grad=True)
y = x * w
y.grad_fn.register_prehook(lambda grads: (grads[0] * 10,)); y.grad_fn.register_prehook(lambda grads: (grads[0] + 1,))
y.grad_fn.register_hook(lambda ins, outs: (ins[0] * 2, None)); y.grad_fn.register_hook(lambda ins, outs: (ins[0] + outs[0], ins[1]))
y.sum().backward(); see(x, w)
y = x * w; y.grad_fn.register_prehook(lambda grads: (None,)); y.sum().backward(); see(x, w)
y = x * w; y.grad_fn.register_hook(lambda ins, outs: ins); y.sum().backward(); see(x, w)
y = (x * 2).expand(3, 2); y.grad_fn.register_hook(lambda ins, outs: (ins[0] + 1,)); y.sum().backward(); see(x)
""",
    "what hooks of a node may not give": """
x = torch.tensor([1., 2.], requires_grad=True); w = torch.tensor([3., 4.], requires_grad=True)
def one(g): return g
for bad in (lambda g: g[0], lambda g: (g[0], g[0]), lambda g: (), lambda g: [g[0]], lambda g: (g[0].double(),),
            lambda g: (g[0][:1],), lambda g: (3,), lambda g: ("no",), lambda g: 5, one):
    y = x * 2; y.grad_fn.register_prehook(bad); attempt(lambda: y.sum().backward()); see(x)
for bad in (lambda i, o: i[0], lambda i, o: (i[0],), lambda i, o: [*i], lambda i, o: (i[0].double(), i[1]), lambda i, o: (i[0][:1], None),
            lambda i, o: (3, None), lambda i, o: (i[0], i[0], i[0]), lambda i, o: (i[0].long(), i[1])):
    y = x * w; y.grad_fn.register_hook(bad); attempt(lambda: y.sum().backward()); see(x, w)
y = x * 2; y.grad_fn.register_hook(lambda i, o: (i[0], torch.ones(()))); attempt(lambda: y.sum().backward())
class Silent:
    def __call__(self, *given): return "no"
y = x * 2; y.register_hook(Silent()); attempt(lambda: y.sum().backward())
y = x * 2; y.register_hook(lambda g: g.double()); attempt(lambda: y.sum().backward())
y = x * 2; y.register_hook(lambda g: g.double()[:1]); attempt(lambda: y.sum().backward())
y = x * 2; y.register_hook(lambda g: (g,)); attempt(lambda: y.sum().backward())
y = x * 2; y.register_hook(3); attempt(lambda: y.sum().backward()); see(x, w)
class Short(Silent):
    def __call__(self, g): return g[:1]
y = x * 2; y.register_hook(Short()); attempt(lambda: y.sum().backward())
""",
    "outputs that got nothing": """
x = torch.tensor([1., 2.], requires_grad=True)
def show(name): return lambda *given: see(name, given)
a, b = (x * 1).unbind(); a.register_hook(show("a")); b.register_hook(show("b")); a.retain_grad()
a.grad_fn.register_prehook(show("pre")); a.grad_fn.register_hook(show("post")); b.backward(); see(x, a.grad)
a, b = (x * 1).unbind(); a.register_hook(lambda g: torch.ones(())); attempt(lambda: b.backward())
a, b = (x * 1).unbind(); a.grad_fn.register_prehook(lambda g: (torch.ones(()), None)); attempt(lambda: b.backward())
a, b = (x * 1).unbind(); a.grad_fn.register_prehook(lambda g: (None, None)); b.backward(); see(x)
""",
    "handles": """
x = torch.tensor([1., 2.], requires_grad=True); y = x * 2; n = y.grad_fn
first = n.register_prehook(lambda g: see("gone")); second = n.register_hook(lambda i, o: see("stays"))
first.remove(); first.remove()
with n.register_hook(lambda i, o: see("inside")): y.sum().backward(retain_graph=True)
y.sum().backward(retain_graph=True); second.remove(); y.sum().backward(); see(second.id > first.id)
def once(g): see("once"); h.remove()
y = x * 2; h = y.register_hook(once); y.register_hook(lambda g: see("other")); y.sum().backward(retain_graph=True); y.sum().backward()
def drop(g): later.remove()
y = x * 2; y.register_hook(drop); later = y.register_hook(lambda g: see("removed in the middle")); y.sum().backward(retain_graph=True); y.sum().backward()
def add(g): y.register_hook(lambda g: see("added in the middle"))
y = x * 2; h = y.register_hook(add); y.sum().backward(retain_graph=True); h.remove(); y.sum().backward()
""",
    "a leaf and its accumulator": """
x = torch.tensor([1., 2.], requires_grad=True); y = x * 2; acc = y.grad_fn.next_functions[0][0]
see(acc.variable is x, acc.name(), type(acc).__name__, acc.next_functions, (x * 3).grad_fn.next_functions[0][0] is acc, acc._sequence_nr())
def grad(): return None if x.grad is None else x.grad.tolist()
x.register_hook(lambda g: see("tensor", g, grad())); x.register_hook(lambda g: g * 10)
acc.register_prehook(lambda g: see("pre", g, grad())); acc.register_prehook(lambda g: (g[0] + 1,))
x.register_post_accumulate_grad_hook(lambda t: see("accumulated", t is x, grad()))
acc.register_hook(lambda i, o: see("post", i, o, grad()))
y.sum().backward(); see(x.grad)
(x * 3).sum().backward(); see(x.grad)
see(torch.autograd.grad((x * 3).sum(), x), x.grad)
(x * x).sum().backward(inputs=[x]); see(x.grad)
acc.register_hook(lambda i, o: (o[0],)); attempt(lambda: (x * 2).sum().backward()); see(x.grad)
""",
    "hooks of an accumulator die with it, those of a leaf do not": """
x = torch.tensor([1., 2.], requires_grad=True); y = x * 2
y.grad_fn.next_functions[0][0].register_prehook(lambda g: see("accumulator")); x.register_hook(lambda g: see("leaf"))
x.register_post_accumulate_grad_hook(lambda t: see("accumulated"))
y.sum().backward(); del y
(x * 2).sum().backward()
""",
    "hooks after accumulation": """
x = torch.tensor([1., 2.], requires_grad=True); order = []
first = x.register_post_accumulate_grad_hook(lambda t: order.append("first")); x.register_post_accumulate_grad_hook(lambda t: order.append(t.grad.tolist()))
(x * 2).sum().backward(); first.remove(); (x * 2 + x).sum().backward(); see(order, x)
attempt(lambda: (x * 2).register_post_accumulate_grad_hook(print)); attempt(lambda: torch.ones(1).register_post_accumulate_grad_hook(print))
w = torch.ones(2, requires_grad=True); w.register_post_accumulate_grad_hook(lambda t: t.grad.zero_()); attempt(lambda: (w * 2).sum().backward()); see(w)
w = torch.ones(2, requires_grad=True); w.register_post_accumulate_grad_hook(lambda t: t); (w * 2).sum().backward(); see(w)
for bad in (lambda t: 3, lambda t: t * 1, lambda t: t[:1], lambda t: t.double()):
    w = torch.ones(2, requires_grad=True); w.register_post_accumulate_grad_hook(bad); attempt(lambda: (w * 2).sum().backward()); see(w)
w = torch.ones(2, requires_grad=True)
def step(t):
    t.add_(t.grad, alpha=-0.5); t.grad = None; see(torch.is_grad_enabled())
w.register_post_accumulate_grad_hook(step); (w * 2).sum().backward(); see(w)
(w * w).sum().backward(create_graph=False); see(w)
""",
    "in place writes: hooks stay, retain_grad moves": """
x = torch.tensor([1., 2.], requires_grad=True)
y = x * 2; y.register_hook(lambda g: see("before", g)); y.retain_grad(); y.grad_fn.register_hook(lambda i, o: see("node before", i, o))
y.mul_(3); y.register_hook(lambda g: see("after", g)); y.sum().backward(); see(y, y.retains_grad, x)
y = x * 2; y.retain_grad(); y[0].mul_(5); y.register_hook(lambda g: see("copy slices", g)); y.sum().backward(); see(y, x)
y = x * 2; v = y[0]; v.register_hook(lambda g: see("view", g)); y.mul_(2); v.register_hook(lambda g: see("view anew", g)); (v + y.sum()).backward(); see(x)
y = x * 2; y.grad_fn.register_prehook(lambda g: (g[0] * 100,)); y.add_(1); y.sum().backward(); see(x)
y = x * 2; y[1] = 7; y.grad_fn.register_hook(lambda i, o: numbers(*i, *o)); y.grad_fn.register_prehook(lambda g: (g[0] + 1,)); y.sum().backward(); see(x)
""",
    "views of what was written since": """
x = torch.tensor([1., 2.], requires_grad=True)
def stale(): y = x * 1; v = y[0]; y.mul_(2); return y, v
y, v = stale(); v.backward(); see(x); y, v = stale(); torch.autograd.backward([v, y.sum()]); see(x)
y, v = stale(); v.backward(inputs=[v]); see(v.grad); y, v = stale(); see(torch.autograd.graph.get_gradient_edge(v).node.name())
y, v = stale(); attempt(lambda: torch.autograd.grad(y.sum(), v, allow_unused=True)); y, v = stale(); v.retain_grad(); (v * 3).backward(); see(v.grad)
""",
    "a hook that writes to its gradient": """
x = torch.tensor([1., 2.], requires_grad=True)
def double(g): g.mul_(2)
y = x * 2; y.register_hook(double); (y * 3).sum().backward(); see(x)
x.grad = None; x.register_hook(double); (x * 3).sum().backward(); see(x)
s = torch.tensor(3., requires_grad=True); t = s * 2; t.register_hook(double); s.register_hook(double); (t * 5).backward(); see(s)
""",
    "grad mode in hooks": """
x = torch.tensor([1., 2.], requires_grad=True); mode = torch.is_grad_enabled
y = x * 2; y.register_hook(lambda g: see(mode(), g.requires_grad)); y.grad_fn.register_hook(lambda i, o: see(mode())); y.grad_fn.register_prehook(lambda g: see(mode()))
x.register_post_accumulate_grad_hook(lambda t: see(mode()))
y.sum().backward(retain_graph=True); (y * y).sum().backward(create_graph=True)
def enable(g): torch.set_grad_enabled(True)
x = torch.tensor([1., 2.], requires_grad=True); y = x * 2; y.register_hook(enable); x.register_hook(lambda g: see(mode())); y.sum().backward(); see(mode())
with torch.no_grad(): y = torch.ones(2, requires_grad=True); y.register_hook(lambda g: see(mode())); y.backward(torch.ones(2)); see(mode())
""",
    "a hook that runs another backward": """
x = torch.tensor([1., 2.], requires_grad=True); w = torch.tensor([3., 4.], requires_grad=True)
def inner(g):
    see("in", torch.is_grad_enabled())
    with torch.enable_grad(): (w * g).sum().backward()
    see("out", w.grad.tolist(), torch.is_grad_enabled())
y = x * 2; y.register_hook(inner); y.sum().backward(); see(x, w)
def same(g):
    with torch.enable_grad(): (x * 3).sum().backward()
    see(x.grad.tolist())
x.grad = None; y = x * 2; y.register_hook(same); y.sum().backward(); see(x)
def deep(depth):
    def hook(g):
        if depth:
            with torch.enable_grad(): z = x * 1; z.register_hook(deep(depth - 1)); z.sum().backward()
        see(depth)
    return hook
y = x * 2; y.register_hook(deep(4)); y.sum().backward(); see(x)
def fails(g): torch.ones(2).sum().backward()
y = x * 2; y.register_hook(fails); attempt(lambda: y.sum().backward()); see(x, torch.is_grad_enabled())
""",
    "what fails leaves what ran": """
x = torch.tensor([1., 2.], requires_grad=True); w = torch.tensor([3., 4.], requires_grad=True)
def fail(*given): raise KeyError("no")
for where in ("tensor", "pre", "post", "leaf", "accumulated"):
    x = torch.tensor([1., 2.], requires_grad=True); w = torch.tensor([3., 4.], requires_grad=True)
    y = x * x; z = w * w; s = (y + z.exp()).sum()
    {"tensor": y.register_hook, "pre": y.grad_fn.register_prehook, "post": y.grad_fn.register_hook, "leaf": x.register_hook,
     "accumulated": x.register_post_accumulate_grad_hook}[where](fail)
    attempt(lambda: s.backward()); see(where, x, w); attempt(lambda: y.grad_fn._saved_self); attempt(lambda: z.grad_fn._saved_self)
    attempt(lambda: s.backward()); see(x, w)
""",
    "gradients of gradients": """
x = torch.tensor([1., 2.], requires_grad=True)
y = x ** 3; y.register_hook(lambda g: g * 2); y.grad_fn.register_prehook(lambda g: (g[0] * x,)); y.grad_fn.register_hook(lambda i, o: tuple(None if p is None else p * 3 for p in i))
(g,) = torch.autograd.grad(y.sum(), x, create_graph=True); numbers(g); numbers(*torch.autograd.grad(g.sum(), x))
""",
    "metadata": """
x = torch.tensor([1., 2.], requires_grad=True); y = x * 2; n = y.grad_fn
see(n.metadata); n.metadata["note"] = 1; see(n.metadata, y.grad_fn.metadata is n.metadata, n.next_functions[0][0].metadata)
y.mul_(2); see(y.grad_fn.metadata, y.grad_fn.next_functions[0][0].metadata)
attempt(lambda: n.nothing); attempt(lambda: n._saved_nothing); see([tuple(m.shape) for m in n._input_metadata], [str(m.dtype) for m in n._input_metadata])
""",
    "limited passes": """
x = torch.tensor([1., 2.], requires_grad=True); w = torch.tensor([3., 4.], requires_grad=True)
def show(name): return lambda *given: see(name, given)
y = x * w; z = (y * 2).sum(); y.grad_fn.register_hook(show("post")); y.grad_fn.register_prehook(show("pre")); y.register_hook(show("tensor"))
x.register_post_accumulate_grad_hook(show("accumulated")); acc = y.grad_fn.next_functions[0][0]; acc.register_prehook(show("x pre")); acc.register_hook(show("x post"))
see(torch.autograd.grad(z, x, retain_graph=True)); see(torch.autograd.grad(z, y, retain_graph=True)); see(torch.autograd.grad(z, [y, w], retain_graph=True))
z.backward(inputs=[w], retain_graph=True); z.backward(inputs=[y], retain_graph=True); z.backward(inputs=[x])
""",
}  # fmt: skip


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    compare(PROGRAMS[name])


def hooked():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    y.register_hook(lambda g: g * 2)
    y.grad_fn.register_prehook(lambda grads: (grads[0] + 1,))
    y.grad_fn.register_hook(lambda ins, outs: (ins[0] * 10, None))
    x.register_post_accumulate_grad_hook(lambda leaf: None)
    y.sum().backward()
    return x, y


def test_a_recording_says_every_hook_and_what_it_gave():
    heard = Heard(hooked)
    mul, (x,) = heard.named("mul")[0], heard.leaves()
    ran = [(h.node, h.output_nr, h.when, number(h.value)) for h in heard.all(e.HookRan)]
    assert ran == [
        (mul, 0, "tensor", [2.0, 2.0]),
        (mul, 0, "pre", [3.0, 3.0]),
        (mul, 0, "post", [90.0, 90.0]),
        (x, 0, "post accumulate", None),
    ]


def test_the_step_and_the_flow_of_a_recording_have_what_the_hooks_gave():
    heard = Heard(hooked)
    mul, (x,) = heard.named("mul")[0], heard.leaves()
    (grads,) = [s.grads for s in heard.all(e.StepStarted) if s.node == mul]
    (flowed,) = [f for f in heard.all(e.GradFlowed) if f.node == x]
    assert (number(grads[0]), number(flowed.part)) == ([3.0, 3.0], [90.0, 90.0])
    assert number(heard.all(e.GradAccumulated)[0].part) == [90.0, 90.0]


def write(g):
    g.mul_(5)


def test_a_gradient_that_a_hook_wrote_to_is_said():
    def program():
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = x * 3
        y.register_hook(write)
        (y * 2).sum().backward()
        return x

    heard = Heard(program)
    (ran,) = heard.all(e.HookRan)
    (step,) = [s for s in heard.all(e.StepStarted) if s.node == heard.named("mul")[0]]
    assert number(ran.value) == number(step.grads[0]) == [10.0, 10.0]


def test_a_hook_makes_its_graph_during_the_step_of_its_node():
    def program():
        x = torch.tensor(2.0, requires_grad=True)
        y = x * 3
        y.register_hook(lambda g: g.exp())
        (y * y).backward(create_graph=True)
        return x, y

    heard = Heard(program)
    assert heard.created("exp").during == (1, heard.named("mul")[0])
