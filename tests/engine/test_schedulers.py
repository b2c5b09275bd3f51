"""Learning-rate schedulers, against PyTorch: every learning rate and momentum, states, warnings, refusals."""

import warnings

import pytest
from twin import compare

import gviz.engine as torch

SETUP = """
S = torch.optim.lr_scheduler
w = torch.ones(2, requires_grad=True); b = torch.ones(1, requires_grad=True)
def optimizer(kind="SGD", **options): return getattr(torch.optim, kind)([{"params": [w]}, {"params": [b], "lr": 0.5}], lr=0.1, **options)
"""

SCHEDULERS = [
    "S.StepLR(o, 3)", "S.StepLR(o, 2, gamma=0.5)", "S.MultiStepLR(o, [2, 5, 5], gamma=0.3)", "S.ConstantLR(o, 0.5, 3)", "S.ConstantLR(o)", "S.LinearLR(o)", "S.LinearLR(o, 0.2, 0.8, 4)",
    "S.ExponentialLR(o, 0.9)", "S.PolynomialLR(o, 6, 2.)", "S.PolynomialLR(o)", "S.CosineAnnealingLR(o, 4)", "S.CosineAnnealingLR(o, 3, eta_min=0.01)", "S.CosineAnnealingWarmRestarts(o, 3)", "S.CosineAnnealingWarmRestarts(o, 2, 2, 0.01)",
    "S.LambdaLR(o, lambda e: 0.9 ** e)", "S.LambdaLR(o, [lambda e: 1 / (e + 1), lambda e: 2 + e])", "S.MultiplicativeLR(o, lambda e: 0.5 + e / 10)",
    "S.CyclicLR(o, 0.01, 0.1, 3)", "S.CyclicLR(o, 0.01, [0.1, 0.3], 2, 3, mode='triangular2')", "S.CyclicLR(o, 0.01, 0.1, 2, mode='exp_range', gamma=0.9)", "S.CyclicLR(o, 0.01, 0.1, 2, scale_fn=lambda x: 1 / x, cycle_momentum=False)",
    "S.OneCycleLR(o, 0.5, total_steps=10)", "S.OneCycleLR(o, [0.5, 1.], epochs=5, steps_per_epoch=3, anneal_strategy='linear')", "S.OneCycleLR(o, 0.5, total_steps=14, three_phase=True, pct_start=0.25)",
    "S.SequentialLR(o, [S.ConstantLR(o, 0.1, 2), S.ExponentialLR(o, 0.9)], [3])", "S.SequentialLR(o, [S.LinearLR(o), S.CosineAnnealingLR(o, 4), S.StepLR(o, 2)], [2, 6])", "S.ChainedScheduler([S.ConstantLR(o, 0.1, 2), S.ExponentialLR(o, 0.9)])",
]  # fmt: skip

TRACE = """
for kind in ("SGD", "Adam"):
    o = optimizer(kind, **({{"momentum": 0.9}} if kind == "SGD" else {{}})); s = {call}
    def show(): see([(g["lr"], g.get("momentum"), g.get("betas"), g.get("initial_lr")) for g in o.param_groups], s.get_last_lr(), getattr(s, "last_epoch", None))
    show()
    for i in range(9):
        o.step(); s.step(); show()
    saved = s.state_dict(); see(sorted(saved), {{k: v for k, v in saved.items() if isinstance(v, (int, float, list, str, bool)) and k != "_schedulers"}})
    s.load_state_dict(saved); show()
"""

PROGRAMS = {
    "plateau": """
for options in ({}, dict(mode="max", patience=1, factor=0.5), dict(patience=0, cooldown=1, threshold_mode="abs", threshold=0.1), dict(patience=0, min_lr=[0.05, 0.2]), dict(mode="max", threshold_mode="abs", patience=0, eps=0.2)):
    o = optimizer(); s = S.ReduceLROnPlateau(o, **options)
    for metric in (1., 0.9, 0.95, torch.tensor(0.95), 0.95, 0.99, 0.5, 0.51, 0.52, 0.53, 0.54, 0.55, 0.56, 0.57, 0.58, 0.59, 0.6, 0.61): s.step(metric); see([g["lr"] for g in o.param_groups], s.get_last_lr(), s.num_bad_epochs, s.best)
    other = S.ReduceLROnPlateau(optimizer()); other.load_state_dict(s.state_dict()); see(other.best, other.mode, s.state_dict())
o.add_param_group({"params": [torch.ones(1, requires_grad=True)]}); s = S.ReduceLROnPlateau(optimizer(), patience=0, min_lr=[0., 0.]); s.optimizer.add_param_group({"params": [torch.ones(1, requires_grad=True)]}); s.step(1.); attempt(lambda: s.step(2.))
attempt(lambda: S.ReduceLROnPlateau(o, factor=1.)); attempt(lambda: S.ReduceLROnPlateau(1)); attempt(lambda: S.ReduceLROnPlateau(o, mode="no")); attempt(lambda: S.ReduceLROnPlateau(o, threshold_mode="no")); attempt(lambda: S.ReduceLROnPlateau(o, min_lr=[1.]))
""",
    "refusals": """
o = optimizer()
for call in ("S.StepLR(1, 2)", "S.LambdaLR(o, [abs])", "S.MultiplicativeLR(o, 3)", "S.ConstantLR(o, 2)", "S.LinearLR(o, 0)", "S.LinearLR(o, end_factor=2)", "S.StepLR(o, 2, last_epoch=3)", "S.CosineAnnealingWarmRestarts(o, 0)",
             "S.CosineAnnealingWarmRestarts(o, 1, 0)", "S.CosineAnnealingWarmRestarts(o, 1, 1, 'a')", "S.CyclicLR(o, [0.1], 1, 2)", "S.CyclicLR(o, 0.1, 1, 2, mode='no')", "S.OneCycleLR(o, 1)", "S.OneCycleLR(o, 1, total_steps=0)", "S.OneCycleLR(o, 1, epochs=0, steps_per_epoch=1)",
             "S.OneCycleLR(o, 1, total_steps=3, pct_start=2.)", "S.OneCycleLR(o, 1, total_steps=3, anneal_strategy='no')", "S.OneCycleLR(torch.optim.Adagrad([w]), 1, total_steps=3)", "S.SequentialLR(o, [], [])", "S.SequentialLR(o, [S.StepLR(o, 1)], [1])", "S.SequentialLR(o, [1], [])",
             "S.SequentialLR(o, [S.ReduceLROnPlateau(o)], [])", "S.ChainedScheduler([])", "S.ChainedScheduler([S.StepLR(o, 1), 3])", "S.LRScheduler(o)"):
    attempt(lambda: eval(call))
o = optimizer(); s = S.OneCycleLR(o, 1., total_steps=2, cycle_momentum=False); s.step(); attempt(lambda: s.step() or s.step())
""",
    "epochs and resuming": """
o = optimizer(); s = S.StepLR(o, 2, 0.5); s.step(5); see([g["lr"] for g in o.param_groups]); s = S.CosineAnnealingWarmRestarts(o, 2, 2); s.step(3.5); see([g["lr"] for g in o.param_groups], s.T_cur, s.T_i); attempt(lambda: s.step(-1))
for call in ("S.ExponentialLR(o, 0.5, 4)", "S.CosineAnnealingLR(o, 5, last_epoch=2)", "S.MultiStepLR(o, [3, 6], last_epoch=3)", "S.LinearLR(o, last_epoch=2)"):
    o = optimizer(); S.StepLR(o, 100); s = eval(call); o.step(); s.step(); see([g["lr"] for g in o.param_groups], s.last_epoch)
class Rate:
    def __init__(self): self.factor = 0.5
    def __call__(self, epoch): return self.factor ** epoch
o = optimizer(); s = S.LambdaLR(o, Rate()); saved = s.state_dict(); see(saved["lr_lambdas"]); saved["lr_lambdas"][0]["factor"] = 0.1; s.load_state_dict(saved); s.step(); see(s.get_last_lr())
t = torch.tensor(0.1); o = torch.optim.SGD([w], lr=t); s = S.ExponentialLR(o, 0.5); o.step(); s.step(); see(t, float(s.get_last_lr()[0]), float(o.param_groups[0]["initial_lr"]))
""",
    "warnings": """
import warnings
def warned(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always"); call()
    see([(str(c.message), c.category.__name__) for c in caught])
o = optimizer(); o.step(); s = S.StepLR(o, 1); warned(s.step); warned(s.step); o = optimizer(); s = S.StepLR(o, 1); o.step(); warned(s.step); warned(lambda: s.step(3)); warned(s.get_lr)
o = optimizer(); s = S.StepLR(o, 1); o.step = lambda: None; o.step(); warned(s.step)
class Own(torch.optim.Optimizer):
    def __init__(self, p): super().__init__(p, {"lr": 1.})
    def step(self): pass
o = Own([w]); s = S.StepLR(o, 1); o.step(); warned(s.step)
""",
}


@pytest.mark.torch
@pytest.mark.parametrize("call", SCHEDULERS)
def test_every_learning_rate_is_pytorchs(call):
    compare(SETUP + TRACE.format(call=call), rtol=1e-12, atol=1e-15)


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    compare(SETUP + PROGRAMS[name])


def test_a_scheduler_warns_where_it_was_called():
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scheduler.step()
    assert [warning.filename for warning in caught] == [__file__]
