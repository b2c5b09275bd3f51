"""``torch.autograd.graph``, against PyTorch: edges, hooks of saved tensors, hooks of several gradients, versions."""

import pytest
from twin import compare

import gviz.engine as torch

START = """
import torch
G = torch.autograd.graph
x = torch.tensor([1., 2.], requires_grad=True); w = torch.tensor([3., 4.], requires_grad=True)
def pack(t): see("pack", t.tolist(), t.requires_grad, t.grad_fn.name() if t.grad_fn else None, torch.is_grad_enabled(), t._version); return t.detach()
def unpack(t): see("unpack", t.tolist(), torch.is_grad_enabled()); return t
def hooked(): return G.saved_tensors_hooks(pack, unpack)
"""
PROGRAMS = {
    "a saved output without a gradient is a leaf": """
x = torch.tensor([[1., 5.], [3., 2.]], requires_grad=True)
for run in (lambda: x.max(0), lambda: x.sort(), lambda: x.topk(1), lambda: x.kthvalue(1), lambda: x.median(0), lambda: x.mode(0), lambda: x.cummax(0)):
    v, i = run(); saved = v.grad_fn._saved_indices; see(saved is i, saved.requires_grad, saved.grad_fn, saved.is_leaf)
    g, = torch.autograd.grad(v.sum(), x, create_graph=True); see(g.requires_grad)
    v, i = run(); i.add_(1); attempt(lambda: v.sum().backward())
with hooked(): v, i = x.max(0)
v.sum().backward(); see(x)
""",
    "edges": """
y = x * w; z = y.sum(); e, ex, ez = map(G.get_gradient_edge, (y, x, z)); grad = torch.autograd.grad
see(e.node is y.grad_fn, e.output_nr, ex.node.variable is x, ex.output_nr, isinstance(e, G.GradientEdge), isinstance(y.grad_fn, G.Node), isinstance(x, G.Node))
see(grad(z, e, retain_graph=True), grad(z, [ex, y], retain_graph=True), grad(ez, x, retain_graph=True), grad([ez], [x], retain_graph=True))
attempt(lambda: grad(e, x, retain_graph=True)); see(grad(e, x, torch.ones(2), retain_graph=True)); attempt(lambda: grad(e, x, torch.ones(3), retain_graph=True))
torch.autograd.backward(ez, retain_graph=True); see(x, w); torch.autograd.backward(ez, inputs=[ex], retain_graph=True); see(x, w)
torch.autograd.backward(ez, inputs=e, retain_graph=True); z.backward(inputs=[e], retain_graph=True); see(y.retains_grad)
attempt(lambda: G.get_gradient_edge(torch.ones(1)))
o = torch.ones(1, requires_grad=True); eo = G.get_gradient_edge(o)
attempt(lambda: grad(z, [eo], retain_graph=True)); see(grad(z, [eo], allow_unused=True, retain_graph=True)); attempt(lambda: grad(z, [eo], materialize_grads=True, retain_graph=True))
see(grad(z, [ex], materialize_grads=True, retain_graph=True))
a, b = (x * 1).unbind(); see(G.get_gradient_edge(b).output_nr, grad((a * b), [G.get_gradient_edge(b), G.get_gradient_edge(a)]))
""",
    "what is no edge and no tensor": """
y = x * w; z = y.sum(); grad, backward = torch.autograd.grad, torch.autograd.backward
for call in (lambda: grad(3, x), lambda: grad(z, 3), lambda: grad([3], x), lambda: grad(z, [3]), lambda: grad(z, x, 3), lambda: grad(z, x, [3]), lambda: grad([], x),
             lambda: backward([]), lambda: backward(3), lambda: z.backward(3), lambda: z.backward(inputs=3), lambda: z.backward(inputs=[3]), lambda: grad(torch.ones(1), x),
             lambda: grad([z, torch.ones(1)], x), lambda: backward([z, torch.ones(2)]), lambda: grad(z, [x, torch.ones(1)]), lambda: grad(z, torch.ones(1), allow_unused=True),
             lambda: grad([z, z], [x], [torch.tensor(1.)]), lambda: backward(z, torch.ones(()), grad_variables=torch.ones(()))):
    attempt(call)
see(grad(z, x, [torch.tensor(1.), torch.tensor(2.)], retain_graph=True)); backward([z], [torch.tensor(1.), torch.tensor(2.)], retain_graph=True); see(x)
from collections import OrderedDict, UserDict
attempt(lambda: grad(z, UserDict(a=x))); attempt(lambda: z.backward(inputs=UserDict(a=x))); attempt(lambda: z.backward(inputs={}))
see(grad(z, {"a": x, "b": w}, retain_graph=True)); z.backward(inputs={"a": x}, retain_graph=True); see(x, w)
""",
    "seeds of another dtype": """
y = x * w; z = y.sum(); double = torch.float64
see(torch.autograd.grad(z, x, torch.tensor(1., dtype=double), retain_graph=True)); z.backward(torch.tensor(2), retain_graph=True); see(x)
a = torch.ones(2, requires_grad=True); a.backward(torch.ones(2, dtype=double)); see(a, a.grad); see(torch.autograd.grad(a, a, torch.ones(2, dtype=double)))
see(torch.autograd.grad(z, [x, a], materialize_grads=True, create_graph=True)[1].requires_grad)
""",
    "roots": """
y = x * w; z = y.sum(); grad = torch.autograd.grad
see(grad([z, z], x, retain_graph=True), grad([y, y], [x, y], [torch.ones(2), torch.ones(2) * 2], retain_graph=True), grad([z, y], [y], [None, torch.ones(2)], retain_graph=True))
see(grad([x, x], [x], [torch.ones(2)] * 2), grad(x, x, torch.ones(2)), grad(z, x, (None,), retain_graph=True))
torch.autograd.backward([y, z, y[0]], [torch.ones(2), None, None]); see(x, w); attempt(lambda: z.backward())
y = x * w; torch.autograd.backward([y.sum(), y.exp().sum()], inputs=[x]); see(x)
""",
    "batches of gradients": """
y = x * w; z = y.sum(); grad = torch.autograd.grad
see(grad(y, x, torch.eye(2), is_grads_batched=True, retain_graph=True)); see(grad([y, z], [x, w], [torch.ones(3, 2), torch.tensor([1., 2., 3.])], is_grads_batched=True, retain_graph=True))
o = torch.ones(2, requires_grad=True); see(grad(y, [x, o], torch.eye(2), is_grads_batched=True, allow_unused=True, retain_graph=True))
see(grad(G.get_gradient_edge(y), x, torch.eye(2), is_grads_batched=True, retain_graph=True)); attempt(lambda: grad(G.get_gradient_edge(y), x, torch.ones(2, 3), is_grads_batched=True)); attempt(lambda: grad(y, x, torch.ones(2, 3), is_grads_batched=True))
""",
    "hooks of saved tensors": """
for make in (lambda: x * w, lambda: x / w, lambda: x.exp(), lambda: x * 2, lambda: x ** 2, lambda: x ** w, lambda: x * x, lambda: torch.where(x > 1, x, w),
             lambda: torch.cat([x, w]), lambda: x + w, lambda: (x + 0).sigmoid_(), lambda: (x * 1)[:1].exp_(), lambda: x.view(1, 2) @ w.view(2, 1), lambda: x * torch.ones(2)):
    with hooked(): y = make()
    see("forward"); y.sum().backward(retain_graph=True); y.sum().backward(); see(x, w); attempt(lambda: y.sum().backward())
""",
    "saved attributes through hooks": """
with hooked(): y = x.exp(); z = y * w
see(y.grad_fn._saved_result, y.grad_fn._saved_result.grad_fn is y.grad_fn, z.grad_fn._saved_self.grad_fn is y.grad_fn, z.grad_fn._saved_other.is_leaf, z.grad_fn._saved_other is w)
z.sum().backward(); attempt(lambda: y.grad_fn._saved_result); see(x, w)
with hooked(): y = (x ** 3).sum()
(g,) = torch.autograd.grad(y, x, create_graph=True); numbers(g, *torch.autograd.grad(g.sum(), x))
with hooked(): y = x.exp().sum()
(g,) = torch.autograd.grad(y, x, create_graph=True); numbers(g, *torch.autograd.grad(g.sum(), x))
""",
    "nested, disabled": """
with G.saved_tensors_hooks(lambda t: 1 / 0, unpack):
    with hooked(): y = x * w
y.sum().backward()
def keep():
    with G.save_on_cpu(): return x * w
def disabled(message, body):
    with G.disable_saved_tensors_hooks(message): return body()
attempt(lambda: disabled("no hooks", keep)); attempt(lambda: disabled("outer", lambda: disabled("inner", keep))); see(keep())
def inside():
    with hooked(): return disabled("not now", lambda: x * w)
attempt(inside); see(keep()); keep().sum().backward(); see(x, w)
def outer():
    try: disabled("inner", keep)
    except RuntimeError as error: see(str(error))
    return keep()
attempt(lambda: disabled("outer", outer))
""",
    "errors of hooks of saved tensors": """
def saved(pack, unpack, make=lambda: x * w):
    with G.saved_tensors_hooks(pack, unpack): return make()
def same(t): return t
attempt(lambda: saved(lambda t: t if t.requires_grad else t.add_(1), same, lambda: x * torch.ones(2)))
attempt(lambda: saved(lambda t: 1 / 0, same)); see(x * w); attempt(lambda: saved(3, 4)); see(torch.is_grad_enabled())
for bad in (lambda t: 3, lambda t: None, lambda t: 1 / 0, lambda t: "no", lambda t: t.numpy() if not t.requires_grad else [1]):
    y = saved(same, bad); attempt(lambda: y.sum().backward())
y = saved(lambda t: t.detach().double(), same); y.sum().backward(); see(x, w)
z = x * 1; y = saved(same, same, lambda: z * w); z.add_(1); y.sum().backward(); see(x, w)
y = saved(lambda t: t.tolist(), lambda n: torch.tensor(n) * 2); y.sum().backward(); see(x, w)
""",
    "one saved tensor": """
y = x * w; raw = y.grad_fn._raw_saved_self; raw.register_hooks(lambda t: see("pack", t) or 5, lambda five: see("unpack", five) or w)
attempt(lambda: raw.register_hooks(pack, unpack)); attempt(lambda: y.grad_fn._raw_saved_self.register_hooks(pack, unpack)); y.sum().backward(); see(x, w)
attempt(lambda: y.grad_fn._raw_saved_other.register_hooks(pack, unpack)); attempt(lambda: raw.register_hooks(pack, unpack))
y = x * 2; attempt(lambda: y.grad_fn._raw_saved_self.register_hooks(pack, unpack)); y.grad_fn._raw_saved_other.register_hooks(pack, unpack); y.sum().backward(); see(x)
y = x.exp(); y.grad_fn._raw_saved_result.register_hooks(pack, unpack); see(y.grad_fn._saved_result.grad_fn is y.grad_fn); y.sum().backward(); see(x)
attempt(lambda: y.grad_fn._raw_saved_nothing)
""",
    "hooks of several gradients": """
def noted(mode, tensors, run):
    seen = []
    handle = G.register_multi_grad_hook(tensors, lambda g: seen.append([None if t is None else t.tolist() for t in g] if mode == "all" else g.tolist()), mode=mode)
    attempt(run); see(seen); handle.remove()
for mode in ("all", "any"):
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True); c = a * b; d = a * b; four = (a, b, c, d)
    noted(mode, four, lambda: c.sum().backward(retain_graph=True)); noted(mode, four, lambda: c.sum().backward(inputs=(a,), retain_graph=True))
    noted(mode, four, lambda: (c + d).sum().backward(retain_graph=True)); noted(mode, four, lambda: torch.autograd.grad(c.sum(), [c], retain_graph=True))
    noted(mode, four, lambda: torch.autograd.grad(c.sum(), [a], retain_graph=True)); noted(mode, (c, d), lambda: torch.autograd.grad((c * d).sum(), [a], retain_graph=True))
    noted(mode, (a, a), lambda: c.sum().backward(retain_graph=True)); noted(mode, (), lambda: c.sum().backward(retain_graph=True))
    noted(mode, (c,), lambda: (c.sum().backward(retain_graph=True), c.sum().backward()))
    with G.register_multi_grad_hook((a,), lambda g: see("inside"), mode=mode): (a * 2).sum().backward()
    (a * 2).sum().backward()

def inferred(call):
    with torch.inference_mode(): return call() is not None
for t in (a, a * 2): attempt(lambda: inferred(lambda: G.register_multi_grad_hook((t,), print))); attempt(lambda: inferred(lambda: G.get_gradient_edge(t))); attempt(lambda: inferred(lambda: G.register_multi_grad_hook((t,), print, mode="any")))
attempt(lambda: G.register_multi_grad_hook((a, torch.ones(1)), print)); attempt(lambda: G.register_multi_grad_hook((a,), print, mode="some"))
with G.register_multi_grad_hook((a, torch.ones(1)), lambda g: see(g), mode="any"): (a * 3).sum().backward()
""",
    "versions": """
t = torch.ones(1); G.increment_version(t); G.increment_version([t, t]); see(t._version); G.increment_version(t[:1]); see(t._version)
attempt(lambda: G.increment_version(3)); attempt(lambda: G.increment_version([3]))
y = x * 1; z = y * y; G.increment_version(y); attempt(lambda: z.sum().backward())
a, b = x * 1, w + 0; z = a * b; a.add_(1); b.add_(1); attempt(lambda: z.sum().backward())
""",
    "second order through a write": """
y = x * 1; y.mul_(w); (g,) = torch.autograd.grad(y.sum(), w, create_graph=True); numbers(g, *torch.autograd.grad(g.sum(), x))
y = x * 1; y[:1].exp_(); (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True); numbers(g, *torch.autograd.grad(g.sum(), x))
y = x * 1; v = y[:1]; v.sigmoid_(); v = y[1:]; v.mul_(w[1:]); y.tanh_(); (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True); numbers(g, *torch.autograd.grad(g.sum(), [x, w]))
y = x * 1; y[:1].mul_(w[1:]); (g,) = torch.autograd.grad((y * y).sum(), w, create_graph=True); numbers(g, *torch.autograd.grad(g.sum(), x))
""",
}  # fmt: skip


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    compare(START + PROGRAMS[name])


def test_what_is_not_there_says_so():
    with pytest.raises(
        NotImplementedError, match=r"has no torch.autograd.graph.allow_mutation_on_saved_tensors; clone"
    ):
        torch.autograd.graph.allow_mutation_on_saved_tensors()
    with pytest.raises(AttributeError, match=r"gviz's built-in engine has no torch.autograd.graph.nothing yet"):
        _ = torch.autograd.graph.nothing


@pytest.mark.parametrize(
    ("expression", "shown"), [("x * w", {"self", "other"}), ("x + w", {"alpha"}), ("x.exp()", {"result"})]
)
def test_a_node_lists_what_it_shows_as_pytorch_does(expression, shown):
    node = eval(expression, {"x": torch.ones(2, requires_grad=True), "w": torch.ones(2, requires_grad=True)}).grad_fn
    assert {name.removeprefix("_saved_") for name in dir(node) if name.startswith("_saved_")} == shown
    raw = {name.removeprefix("_raw_saved_") for name in dir(node) if name.startswith("_raw_saved_")}
    assert raw == shown - {"alpha"}
