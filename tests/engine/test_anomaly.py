"""Anomaly mode, against PyTorch: what nodes remember, what is refused, what is warned of."""

import warnings

import pytest
from twin import compare

import gviz.engine as torch

START = """
import torch, warnings
def warned(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        attempt(call)
    for warning in caught:
        see(warning.category.__name__, of_program(str(warning.message).partition(" (Triggered internally")[0]))
def of_program(text):
    before, _, after = text.partition("caused the error:\n")
    return before, '"<program>"' in after, after[after.find('  File "<program>"'):]
nan = float("nan"); anomaly = torch.autograd.set_detect_anomaly
def leaf(): return torch.tensor([0., 1.], requires_grad=True)
"""
PROGRAMS = {
    "switching": """
state = lambda: see(torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
state()
def inside():
    with torch.autograd.detect_anomaly(): state()
    with torch.autograd.detect_anomaly(check_nan=False):
        state()
        with anomaly(True): state()
        state()
warned(inside); state()
anomaly(True, check_nan=False); state(); anomaly(False); state()
with anomaly(True): state()
state(); torch.set_anomaly_enabled(True); state(); torch.set_anomaly_enabled(False, True); state()
warned(lambda: torch.autograd.anomaly_mode.detect_anomaly(check_nan=False) is None); state()
""",
    "nan": """
def found(make, seed=None):
    def run():
        with anomaly(True): y = make(leaf()); y.sum().backward() if seed is None else y.backward(seed)
    return run
warned(found(lambda x: x.sqrt() * 0)); warned(found(lambda x: (x / 0) * x)); warned(found(lambda x: x.sqrt()))
bad = torch.tensor([nan, 1.]); warned(found(lambda x: x + 0, bad)); warned(found(lambda x: x, bad)); warned(found(lambda x: torch.ones(2) * x, bad)); warned(found(lambda x: torch.ones(2) - x, bad))
def hooked(y):
    y.register_hook(lambda g: g * nan); return y
warned(found(lambda x: hooked(x * 2)))
def after(y):
    y.grad_fn.register_hook(lambda i, o: (i[0] * nan, None)); return y
warned(found(lambda x: after(x * 2)))
def silent():
    x = leaf()
    with anomaly(True, check_nan=False): (x.sqrt() * 0).sum().backward()
    numbers(x.grad)
warned(silent)
def by_grad():
    with anomaly(True): x = leaf(); torch.autograd.grad((x.sqrt() * 0).sum(), x)
warned(by_grad)
""",
    "no forward": """
x = leaf(); y = x.sqrt(); z = (y * 0).sum()
def late():
    with anomaly(True): z.backward()
warned(late); see(y.grad_fn.metadata); attempt(lambda: y.grad_fn._saved_result); numbers(x.grad)
""",
    "what fails": """
def fails(make):
    def run():
        with anomaly(True): make(leaf())
    warned(run)
def divide(*given): return 1 / 0
def hook(x): y = x * 2; y.register_hook(divide); y.sum().backward()
def prehook(x): y = x * 2; y.grad_fn.register_prehook(divide); y.sum().backward()
def posthook(x): y = x * 2; y.grad_fn.register_hook(divide); y.sum().backward()
def accumulated(x): x.register_post_accumulate_grad_hook(divide); (x * 2).sum().backward()
def leaf_hook(x): x.register_hook(divide); (x * 2).sum().backward()
def twice(x): y = (x * x).sum(); y.backward(); y.backward()
def written(x): y = x.exp(); z = y + 1; y.add_(1); z.sum().backward()
def sliced(x): y = x * 1; y.exp_(); y[0].mul_(2); y.sum().backward()
for make in (hook, prehook, posthook, accumulated, leaf_hook, twice, written, sliced): fails(make)
""",
    "what nodes remember": """
def inside():
    with anomaly(True):
        x = leaf(); y = x.sqrt(); y.mul_(2); z = y[0].add_(1); see([list(n.metadata) for n in (y.grad_fn, y.grad_fn.next_functions[0][0], z.grad_fn)])
        lines = x.sqrt().grad_fn.metadata["traceback_"]; see([line for line in lines if "<program>" in line], len([line for line in lines if "<frozen" not in line])); see(len((x * 1).grad_fn.next_functions[0][0].metadata))
inside()
x = leaf(); see((x * 2).grad_fn.metadata)
""",
    "made by a backward": """
def double():
    with anomaly(True):
        x = leaf() + 1; y = x.exp().sum(); (g,) = torch.autograd.grad(y, x, create_graph=True)
        see(list(g.grad_fn.metadata), g.grad_fn.metadata["parent_"].name())
warned(double)
def within():
    with anomaly(True):
        x = leaf(); y = x * 2
        def hook(g):
            with torch.enable_grad(): v = torch.tensor(0., requires_grad=True); q = v.sqrt() * 0; see(q.grad_fn.metadata["parent_"].name()); q.backward()
        y.register_hook(hook); y.sum().backward()
def names():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        attempt(within)
    see([str(w.message).strip().partition(". ")[0] for w in caught])
names()
""",
}  # fmt: skip


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    compare(START + PROGRAMS[name])


def test_a_node_remembers_only_the_programs_own_lines():
    with torch.autograd.set_detect_anomaly(True):
        node = torch.nn.Linear(2, 2)(torch.ones(1, 2)).grad_fn
    lines = node.metadata["traceback_"]
    assert "test_a_node_remembers_only_the_programs_own_lines" in lines[-1]
    assert "torch.nn.Linear(2, 2)(torch.ones(1, 2))" in lines[-1]
    assert not any("gviz/engine" in line for line in lines)


def test_the_warning_stands_at_the_line_that_ran_the_pass():
    x = torch.tensor(0.0, requires_grad=True)
    with warnings.catch_warnings(record=True) as caught, torch.autograd.set_detect_anomaly(True):
        warnings.simplefilter("always")
        with pytest.raises(RuntimeError, match="SqrtBackward0"):
            (x.sqrt() * 0).backward()
    assert [w.filename for w in caught] == [__file__]
