"""Optimizers, against PyTorch: those of SGD bit by bit, in float32, the others but for rounding."""

import contextlib

import numpy as np
import pytest
from recording import events_of
from twin import assert_same, compare, run

import gviz.engine as torch
from gviz.events import OptimizerStepped

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

OTHERS = [
    "Adam()",
    "Adam(lr=0.1)",
    "Adam(lr=0.1,amsgrad=True)",
    "Adam(lr=0.1,weight_decay=0.1,betas=(0.5,0.7))",
    "Adam(lr=0.1,maximize=True,eps=0.01)",
    "AdamW(lr=0.1)",
    "AdamW(lr=0.1,weight_decay=0.3,amsgrad=True)",
    "RMSprop()",
    "RMSprop(lr=0.1,momentum=0.9,centered=True)",
    "RMSprop(lr=0.1,weight_decay=0.1,alpha=0.5)",
    "RMSprop(lr=0.1,momentum=0.5,maximize=True)",
    "Adagrad()",
    "Adagrad(lr=0.1,lr_decay=0.1,weight_decay=0.1,initial_accumulator_value=0.5)",
    "Adagrad(lr=0.1,maximize=True)",
    "Adadelta()",
    "Adadelta(lr=0.5,rho=0.7,weight_decay=0.1)",
    "Adadelta(maximize=True)",
    "Adamax()",
    "Adamax(lr=0.1,weight_decay=0.1,maximize=True)",
    "NAdam()",
    "NAdam(lr=0.1,weight_decay=0.1,momentum_decay=0.1)",
    "NAdam(lr=0.1,weight_decay=0.1,decoupled_weight_decay=True)",
    "RAdam()",
    "RAdam(lr=0.1,weight_decay=0.1,betas=(0.5,0.6))",
    "RAdam(lr=0.1,weight_decay=0.1,decoupled_weight_decay=True,maximize=True)",
    "SGD(lr=torch.tensor(0.1),momentum=0.5)",
    "Adam(lr=torch.tensor(0.1),foreach=False)",
]

TRAIN_OTHERS = """
w = torch.tensor([0.5, -1.25, 2., 0.], requires_grad=True); b = torch.tensor(0.75, requires_grad=True); unused = torch.ones(2, requires_grad=True)
optimizer = torch.optim.{name}([w, b, unused], {options})
for i in range(9):
    optimizer.zero_grad(); loss = ((w - torch.arange(4.) * b) ** 2).sum() + w[1] * 2; loss.backward(); optimizer.step()
    see(w, b, unused, optimizer.state_dict()["state"])
print(optimizer); see(optimizer.state_dict()["param_groups"], optimizer.defaults)
again = torch.optim.{name}([w, b, unused], {options}); again.load_state_dict(optimizer.state_dict())
loss = (w * b).sum(); loss.backward(); again.step(); see(w, again.state_dict()["state"])
double = torch.ones(4, dtype=torch.float64, requires_grad=True); other = torch.optim.{name}([double, b, unused], {options})
other.load_state_dict(optimizer.state_dict()); (double * 2).sum().backward(); other.step(); see(double, other.state_dict()["state"])
"""

PROGRAMS = {
    "L-BFGS": """
for options in ("", "lr=0.5, max_iter=4", "line_search_fn='strong_wolfe'", "max_iter=5, history_size=2, line_search_fn='strong_wolfe'", "max_iter=7, max_eval=5", "tolerance_grad=10."):
    w = torch.tensor([-1.2, 1., 0.3], dtype=torch.float64, requires_grad=True); b = torch.tensor(0.5, dtype=torch.float64, requires_grad=True); calls = [0]
    o = eval(f"torch.optim.LBFGS([w, b], {options})")
    def closure():
        calls[0] += 1; o.zero_grad(); loss = (1 - w[0]) ** 2 + 10 * (w[1] - w[0] ** 2) ** 2 + (w[2] * b - 1) ** 2 + b ** 2; loss.backward(); return loss
    for _ in range(3): see(float(o.step(closure))); numbers(w, b)
    s = o.state_dict()["state"][0]; see(calls[0], s["n_iter"], s["func_evals"], sorted(k for k in s if k not in ("al",)) if s["n_iter"] else 0)
attempt(lambda: torch.optim.LBFGS([{"params": [w]}, {"params": [b]}])); attempt(lambda: torch.optim.LBFGS([w], lr=-1)); o = torch.optim.LBFGS([w], line_search_fn="no"); attempt(lambda: o.step(closure))
""",
    "hooks": """
w = torch.ones(2, requires_grad=True); o = torch.optim.Adam([w], lr=0.1); w.sum().backward()
o.register_step_pre_hook(lambda opt, args, kwargs: see("pre", type(opt).__name__, len(args), kwargs)); h = o.register_step_post_hook(lambda *a: see("post", len(a)))
o.step(); h.remove(); o.step(closure=None); o.register_state_dict_post_hook(lambda opt, s: {**s, "more": 1}); see(o.state_dict()["more"])
o.register_state_dict_pre_hook(lambda opt: see("saving")); o.register_load_state_dict_pre_hook(lambda opt, s: see(sorted(s))); o.register_load_state_dict_post_hook(lambda opt: see("loaded"))
o.load_state_dict(o.state_dict())
""",
    "hooks of all optimizers": """
import sys; every = sys.modules[torch.optim.Optimizer.add_param_group.__module__]; w = torch.ones(2, requires_grad=True); w.sum().backward()
first, last = torch.optim.SGD([w], lr=0.1), torch.optim.Adam([w]); first.register_step_pre_hook(lambda *a: see("own pre")); first.register_step_post_hook(lambda *a: see("own post"))
before = every.register_optimizer_step_pre_hook(lambda opt, *a: see("pre", type(opt).__name__)); after = every.register_optimizer_step_post_hook(lambda opt, *a: see("post", type(opt).__name__))
first.step(); last.step(); before.remove(); last.step(); after.remove(); first.step()
""",
    "an optimizer of one's own": """
class Plain(torch.optim.Optimizer):
    def __init__(self, params, lr): super().__init__(params, dict(lr=lr))
    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None: p -= group["lr"] * p.grad; self.state[p]["n"] = self.state[p].get("n", 0) + 1
w = torch.ones(2, requires_grad=True); o = Plain([w], 0.5); (w * w).sum().backward(); o.step(); o.step(); see(w, o.state_dict()); print(o)
""",
    "names": """
w = torch.ones(2, requires_grad=True); b = torch.ones(1, requires_grad=True); c = torch.ones(1, requires_grad=True)
o = torch.optim.SGD([("w", w), ("b", b)], lr=0.1); see(o.param_groups[0]["param_names"], o.state_dict()["param_groups"]); print(o)
attempt(lambda: o.add_param_group({"params": [c]})); attempt(lambda: torch.optim.SGD([("w", w), b])); attempt(lambda: torch.optim.SGD([{"params": {w, b}}])); attempt(lambda: o.add_param_group([c]))
import copy, pickle
o2 = copy.deepcopy(o); see(o2.state_dict())
""",
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
for name in ("Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adadelta"):
    for wrong in ("lr=-1", "eps=-1", "weight_decay=-1", "lr=torch.ones(2)"): attempt(lambda: eval(f"torch.optim.{name}([w], {wrong})"))
for wrong in ("Adam([w], betas=(1., 0.))", "Adam([w], betas=(0.5, -1.))", "Adam([w], betas=(0.5, 0))", "RMSprop([w], alpha=-1)", "RMSprop([w], momentum=-1)", "Adagrad([w], lr_decay=-1)", "Adadelta([w], rho=2)", "NAdam([w], momentum_decay=-1)", "Adagrad([w], initial_accumulator_value=-1)"):
    attempt(lambda: eval(f"torch.optim.{wrong}"))
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
@pytest.mark.parametrize("call", OTHERS)
def test_every_algorithm_is_pytorchs(call):
    name, _, options = call.removesuffix(")").partition("(")
    compare(TRAIN_OTHERS.format(name=name, options=options), rtol=1e-4, atol=1e-6)


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    compare(PROGRAMS[name])


EXTENDED = """
import torch
class Halving(torch.optim.Optimizer):
    def __init__(self, params): super().__init__(params, {})
    def step(self, closure=None):
        with torch.no_grad():
            for group in self.param_groups:
                for p in group["params"]: p.mul_(.5)
class Counting(Halving):
    def step(self, closure=None):
        see("counted"); return super().step(closure)
x = torch.ones(1, requires_grad=True); x.grad = torch.ones(1); o = Counting([x])
o.register_step_pre_hook(lambda opt, args, kwargs: see("pre", len(args), sorted(kwargs))); o.register_step_post_hook(lambda opt, args, kwargs: see("post", len(args), sorted(kwargs)))
o.step(); o.step(closure=None); see(x, len(o.state_dict()))
"""


@pytest.mark.torch
def test_hooks_of_an_extended_step_run_once():
    compare(EXTENDED)


def test_an_extended_step_is_said_once():
    class Extended(torch.optim.Adam):
        def step(self, closure=None):
            return super().step(closure)

    def program():
        x = torch.ones(1, requires_grad=True)
        optimizer = Extended([x])
        for _ in range(2):
            x.sum().backward()
            optimizer.step()
        return x

    said = [event for event in events_of(program) if isinstance(event, OptimizerStepped)]
    assert [event.kind for event in said] == ["Extended", "Extended"]


def test_hooks_run_again_after_a_step_that_failed():
    x = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([x])
    called = []
    optimizer.register_step_pre_hook(lambda *_: called.append("pre"))
    for closure in (lambda: 1 / 0, None):
        with contextlib.suppress(ZeroDivisionError):
            optimizer.step(closure)
    assert called == ["pre", "pre"]


@pytest.mark.torch
def test_groups_and_their_state_print_as_there():
    compare("""
import torch
p, q = torch.nn.Parameter(torch.zeros(2)), torch.nn.Parameter(torch.zeros(3))
optimizer = torch.optim.SGD([{"params": [p], "lr": 0.5}, {"params": [q]}], lr=0.1)
print(optimizer, optimizer.state_dict())
for kind in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam"):
    print(getattr(torch.optim, kind)([("weight", p), ("bias", q)], lr=0.1).state_dict())
""")
