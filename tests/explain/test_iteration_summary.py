"""What an iteration does, line by line, and what its losses are made from: on both engines."""

import pytest
from explain.programs import recorded_text
from recording import timeline_of

import gviz.engine
from gviz.explain.iteration_summary import iteration_summary, summary_text
from gviz.tui.drawing.iterations_and_passes import pass_rows

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
TEACHER = """
import torch
from torch import nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.head, self.aux = nn.Linear(3, 4), nn.Linear(4, 2), nn.Linear(4, 2)
        self.drop = nn.Dropout(0.5)
    def forward(self, x):
        return self.head(self.drop(torch.tanh(self.enc(x))))
net, teacher = Net(), Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(5, 3), torch.randn(5, 2)
for _ in range(3):
    opt.zero_grad()
    with torch.no_grad():
        target = teacher(x)
    out = net(x)
    weight = out.detach().mean()
    total = out.sum()
    loss = ((out - target) ** 2).mean() + weight * ((out - y) ** 2).mean()
    loss.backward()
    for p in net.parameters():
        if p.grad is not None:
            p.grad.mul_(0.5)
    opt.step()
"""
GAN = """
import torch
torch.manual_seed(0)
g, d = torch.nn.Linear(2, 3), torch.nn.Linear(3, 1)
opts = [torch.optim.SGD(net.parameters(), lr=0.1) for net in (g, d)]
for _ in range(3):
    z, real = torch.randn(4, 2), torch.randn(4, 3)
    opts[1].zero_grad()
    d_loss = (d(real) - 1).pow(2).mean() + d(g(z).detach()).pow(2).mean()
    d_loss.backward()
    opts[1].step()
    opts[0].zero_grad()
    g_loss = (d(g(z)) - 1).pow(2).mean()
    g_loss.backward()
    opts[0].step()
"""
BY_HAND = """
import torch
w = torch.tensor([1.0, 2.0], requires_grad=True)
ema = torch.zeros(2)
h = torch.zeros(2)
for _ in range(3):
    h = torch.tanh(h.detach() + w)
    loss = (h * h).sum()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
        ema.mul_(0.9).add_(w, alpha=0.1)
    w.grad = None
"""


@pytest.fixture(params=ENGINES)
def timeline(request, tmp_path):
    return lambda text: recorded_text(text, tmp_path, request.param)


def last_summary(timeline):
    return iteration_summary(timeline, len(timeline))


def titles(summary):
    return {loss.title.partition(" = ")[0] for loss in summary.losses}


def test_the_actions_of_an_iteration_are_in_order(timeline):
    summary = last_summary(timeline(TEACHER))
    assert (summary.number, summary.count) == (3, 3)
    *before, backward, halved, step = summary.actions
    assert [(action.source, action.text) for action in before] == [
        ("opt.zero_grad()", "clears 4 gradients"),
        ("target = teacher(x)", "calls teacher (Net), train mode, not tracked: no_grad"),
        ("out = net(x)", "calls net (Net), train mode"),
        ("total = out.sum()", "computes total"),
        ("loss = ((out - target) ** 2).mean() + weight * ((out - y) ** 2).mean()", "computes loss"),
    ]
    assert backward.source == "loss.backward()"
    assert backward.text.startswith("backward from loss = ")
    assert "net 4 of 6" in backward.text
    assert (halved.source, halved.text) == ("p.grad.mul_(0.5)", "changes 4 gradients in place")
    assert step.text == "SGD changes 4 parameters, 2 have no gradient"
    starts = [action.start for action in summary.actions]
    assert starts == sorted(starts)


def test_a_loss_names_what_it_is_made_from(timeline):
    summary = last_summary(timeline(TEACHER))
    (loss,) = summary.losses
    assert loss.trained == ("net.enc", "net.head")
    teacher, detached = sorted(loss.numbers_only, key=lambda text: "detach" in text)
    assert teacher.endswith("target = teacher(x)  (results of teacher, no_grad)")
    assert detached.endswith("weight = out.detach().mean()  (detach)")
    assert {"x (5,3)", "y (5,2)"} <= {*loss.data}
    assert len(loss.terms) == 2
    assert "net.aux (2)" in summary.without_gradient
    assert not any("net.enc" in name or "net.head" in name for name in summary.without_gradient)
    (unused,) = summary.unused
    assert unused.startswith("total (")


def test_losses_of_other_iterations_are_named(timeline):
    recording = timeline(GAN)
    last = last_summary(recording)
    assert titles(last) | {name for name, _ in last.elsewhere} == {"d_loss", "g_loss"}
    for name, number in last.elsewhere:
        there = iteration_summary(recording, recording.iteration_numbered(number).end)
        assert name in titles(there)


@pytest.mark.parametrize("number", [1, 3])
def test_writes_and_tensors_made_earlier_are_named(timeline, number):
    recording = timeline(BY_HAND)
    summary = iteration_summary(recording, recording.iteration_numbered(number).end)
    writes = {action.source: action.text for action in summary.actions if action.text.startswith("writes")}
    assert writes["w -= 0.1 * w.grad"] == "writes to w"
    if number > 1:
        assert writes["ema.mul_(0.9).add_(w, alpha=0.1)"] == "writes to ema"
        assert any(text.endswith("(detach)") for text in summary.losses[0].numbers_only)
    assert "clears 1 gradient" in [action.text for action in summary.actions]
    assert any(action.text.endswith(": 1 of 1 gets a gradient") for action in summary.actions)
    (loss,) = summary.losses
    assert loss.trained == ("w",)


def test_an_iteration_without_a_pass_is_that_of_the_last_pass_before(timeline):
    recording = timeline(GAN + "with torch.no_grad():\n    score = d(real).mean()\n")
    assert titles(last_summary(recording))


def test_without_any_pass_it_says_so():
    timeline = timeline_of(lambda: gviz.engine.nn.Linear(2, 1)(gviz.engine.ones(2)))
    rows = [*summary_text(timeline, len(timeline), 80)]
    assert "no backward pass in this iteration" in rows
    assert any("calls Linear" in row for row in rows)


def test_a_failure_is_an_action(timeline):
    summary = last_summary(timeline("import torch\nx = torch.ones(2, requires_grad=True)\ny = x @ torch.ones(3)\n"))
    assert summary.actions[-1].text.startswith("fails: RuntimeError: ")


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_rows_fit_the_width(timeline, width):
    recording = timeline(TEACHER)
    rows = [*summary_text(recording, len(recording), width)]
    assert max(map(len, rows)) <= max(width, 68)
    assert rows[0].startswith("iteration 3 of 3 (events ")


CRITIC = """
import torch
torch.manual_seed(0)
g, d = torch.nn.Linear(2, 3), torch.nn.Linear(3, 1)
opts = [torch.optim.SGD(net.parameters(), lr=0.1) for net in (g, d)]
for _ in range(3):
    for _ in range(2):
        z, real = torch.randn(4, 2), torch.randn(4, 3)
        opts[1].zero_grad()
        d_loss = d(g(z).detach()).mean() - d(real).mean()
        d_loss.backward()
        opts[1].step()
    opts[0].zero_grad()
    g_loss = -d(g(torch.randn(4, 2))).mean()
    g_loss.backward()
    opts[0].step()
"""


def test_a_loss_of_another_iteration_comes_with_its_last_one(timeline):
    recording = timeline(CRITIC)
    last = last_summary(recording)
    assert titles(last) == {"g_loss"}
    ((name, number),) = last.elsewhere
    assert (name, number) == ("d_loss", last.number - 1)
    assert titles(iteration_summary(recording, recording.iteration_numbered(number).end)) == {"d_loss"}
    text = "\n".join(summary_text(recording, len(recording), 100))
    assert f"d_loss  has its passes in other iterations: --at 'iteration {number}'" in text


def test_the_summary_is_that_of_the_last_pass_by_a_moment(timeline):
    recording = timeline(TEACHER)
    first, second = (recording.iteration_numbered(number) for number in (1, 2))
    assert iteration_summary(recording, second.start).number == 1
    assert iteration_summary(recording, second.end).number == 2
    assert iteration_summary(recording, first.start + 1).number == 1


CALLS = """
import torch
torch.manual_seed(0)
net = torch.nn.Linear(2, 2)
x = torch.ones(3, 2)
for _ in range(2):
    a, b = net(x), net(x)
    c = net(a)
    loss = (a + b + c).sum()
    gradient, = torch.autograd.grad(loss, net.weight)
"""


def test_calls_are_counted_by_line_and_gradients_that_are_returned_are_named(timeline):
    summary = last_summary(timeline(CALLS))
    calls = [(action.source, action.times) for action in summary.actions if action.text == "calls Linear"]
    assert calls == [("a, b = net(x), net(x)", 2), ("c = net(a)", 1)]
    (returned,) = [action for action in summary.actions if action.text.startswith("autograd.grad of loss = ")]
    assert returned.text.endswith("for weight")
    assert any(row.endswith("(×2)") for row in summary_text(timeline(CALLS), 10**6, 100))


FROZEN = """
import torch
torch.manual_seed(0)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = torch.nn.Linear(2, 4), torch.nn.Linear(4, 1)
        self.body.requires_grad_(False)
    def forward(self, x):
        return self.head(self.body(x))
net = Net()
scale = torch.ones(1, requires_grad=True)
h = torch.zeros(3, 2)
for i in range(3):
    h = h + 1
    loss = (net(h) * scale).mean()
    loss.backward()
"""


def test_frozen_parameters_and_results_of_earlier_iterations_are_no_data(timeline):
    (loss,) = last_summary(timeline(FROZEN)).losses
    assert {*loss.trained} == {"head", "scale"}
    assert loss.earlier == ("h",)
    assert loss.fixed == ("body.weight", "body.bias")
    assert loss.data == ()


PREPARED = """
import torch
net = torch.nn.Linear(4, 1)
for i in range(3):
    real = torch.randn(16, 4) + 3
    half = (real * 2).sum(1, keepdim=True)
    loss = (net(real) - half).pow(2).mean()
    loss.backward()
"""


@pytest.mark.parametrize("number", [1, 2, 3])
def test_data_that_the_loop_computes_is_named_after_its_variable(timeline, number):
    recording = timeline(PREPARED)
    (loss,) = iteration_summary(recording, recording.iteration_numbered(number).end).losses
    assert loss.data == ("real (16,4)", "half (16,1)")
    assert loss.earlier == loss.numbers_only == ()


@pytest.mark.parametrize("number", [1, 2, 3])
def test_each_turn_clears_once(timeline, number):
    recording = timeline(TEACHER)
    summary = iteration_summary(recording, recording.iteration_numbered(number).end)
    clears = [action for action in summary.actions if action.text == "clears 4 gradients"]
    assert [(action.source, action.times) for action in clears] == [("opt.zero_grad()", 1)] * (number > 1)


def test_where_the_first_line_ran_before_the_first_input_is_in_the_heading_and_in_the_list_of_passes(timeline):
    recording = timeline(TEACHER)
    (clearing, *_), last = last_summary(recording).actions, recording.iterations[-1]
    assert clearing.start < last.start
    heading = next(iter(summary_text(recording, len(recording), 100)))
    assert heading.endswith(f"to {last.end}, after line {clearing.at.line} at event {clearing.start}), in order:")
    steps = [row for row, _, _ in pass_rows(recording, 1) if row.lstrip().startswith("optimizer")]
    assert [row.endswith(", then 4 gradients cleared") for row in steps] == [True, True, False]


def test_what_a_turn_clears_at_its_end_is_its_own(timeline):
    text = TEACHER.replace("    opt.zero_grad()\n", "").replace(
        "    opt.step()\n", "    opt.step()\n    opt.zero_grad()\n"
    )
    recording = timeline(text)
    for number in (1, 2, 3):
        actions = iteration_summary(recording, recording.iteration_numbered(number).end).actions
        assert [action.source for action in actions][-2:] == ["opt.step()", "opt.zero_grad()"]
        assert sum(action.source == "opt.zero_grad()" for action in actions) == 1


QUIET = """
import torch
torch.manual_seed(0)
class Plain(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {})
    def step(self):
        for p in self.param_groups[0]["params"]:
            p.data = p.data - 0.1 * p.grad
body = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
head, base = torch.nn.Linear(3, 1), torch.nn.Linear(2, 3)
base.requires_grad_(False)
opt = Plain([*body.parameters(), *head.parameters()])
for _ in range(3):
    x = torch.randn(4, 2)
    features = base(x)
    opt.zero_grad()
    loss = head(body(x) + features).mean()
    loss.backward()
    opt.step()
"""


def test_running_statistics_and_optimizers_are_no_writes_of_the_program(timeline):
    actions = last_summary(timeline(QUIET)).actions
    assert not [action for action in actions if action.text.startswith("writes")]
    (base,) = [action for action in actions if action.source == "features = base(x)"]
    assert base.text.endswith("not tracked: nothing in it requires a gradient")


def test_a_pass_from_several_results_names_them(timeline):
    text = "import torch\nw = torch.ones(2, requires_grad=True)\na, b = (w * 2).sum(), (w * 3).sum()\n"
    recording = timeline(f"{text}torch.autograd.backward([a, b])\n")
    (loss,) = last_summary(recording).losses
    assert "a = sum" in loss.title
    assert "b = sum" in loss.title


@pytest.mark.torch
def test_what_a_checkpoint_computes_again_is_no_call_of_the_program(tmp_path):
    text = """
import torch
from torch.utils.checkpoint import checkpoint
net, head = torch.nn.Linear(2, 3), torch.nn.Linear(3, 1)
x = torch.ones(4, 2)
loss = head(checkpoint(net, x, use_reentrant=False)).mean()
loss.backward()
"""
    calls = [
        one for one in last_summary(recorded_text(text, tmp_path, "torch")).actions if one.text.startswith("calls")
    ]
    assert [one.times for one in calls] == [1, 1]


LINE = """
import torch
torch.manual_seed(0)
x = torch.linspace(0, 10, 20)
y = 3 * x + 2 + torch.randn(20)
w = torch.zeros(1, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
for epoch in range(3):
    predicted = w * x + b
    loss = ((predicted - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.01 * w.grad
        b -= 0.01 * b.grad
        w.grad.zero_()
        b.grad.zero_()
"""


def test_a_program_without_modules_has_the_lines_of_its_forward_and_each_write_once(timeline):
    summary = last_summary(timeline(LINE))
    forward, loss, backward, *rest = summary.actions
    assert [one.at.line for one in summary.actions] == [9, 10, 11, 13, 14, 15, 16]
    assert (forward.text, loss.text) == ("computes predicted (20,)", "computes loss")
    assert backward.text.endswith(": w, b get a gradient")
    assert [one.text for one in rest] == ["writes to w", "writes to b", "clears 1 gradient", "clears 1 gradient"]


def test_data_that_is_computed_before_the_loop_is_data(timeline):
    (loss,) = last_summary(timeline(LINE)).losses
    assert (loss.data, loss.earlier) == (("x (20,)", "y (20,)"), ())


def test_leaves_that_a_pass_does_not_reach_are_named(timeline):
    text = LINE.replace("w * x + b", "w * x").replace("b -= 0.01 * b.grad", "").replace("b.grad.zero_()", "")
    summary = last_summary(timeline(text))
    assert next(one.text for one in summary.actions if "backward" in one.source).endswith(": w gets a gradient, b none")
