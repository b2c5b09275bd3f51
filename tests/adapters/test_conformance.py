"""One model, written once, on the built-in engine and on PyTorch: the two say the same events, up to `EXCEPTIONS`."""

from collections import Counter

import numpy as np
import pytest

from gviz import emit
from gviz.events import (
    BackwardStarted,
    GradAccumulated,
    GradFlowed,
    GradRetained,
    GradSet,
    HookRan,
    Named,
    NodeCreated,
    NodeFreed,
    OpSeen,
    OptimizerStepped,
    ScopeEntered,
    SourceSeen,
    StackSeen,
    StepStarted,
    StorageWritten,
    Warned,
)
from gviz.trace.event_log import MemoryLog
from gviz.values.value import Value

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

EXCEPTIONS = """
names        numbers of nodes, stacks, storages and ops; attributes that were not passed
leaves       are announced when they are first used, not when they are made
composites   values within a call that makes several nodes are not seen, which is warned of; outputs without gradient
frees        the order in which nodes die
optimizers   the operations of a step; what they write is seen
second order what a rule computes where it builds a graph, and adds up where gradients are retained
indexing     the view through which an indexed write goes, and what that write is called
saved        which nodes count as having saved something, where nothing can be read from it
"""

MODEL = """
torch.manual_seed(0)
first, last = torch.nn.Linear(2, 3), torch.nn.Linear(3, 2)
with torch.no_grad():
    first.weight.copy_(torch.tensor([[0.5, -1.0], [2.0, 0.25], [1.0, 1.0]]))
    first.bias.copy_(torch.tensor([0.1, 0.2, 0.3]))
    last.weight.copy_(torch.tensor([[1.0, -0.5, 0.25], [0.0, 1.0, 2.0]]))
    last.bias.copy_(torch.tensor([0.4, 0.5]))
model = torch.nn.Sequential(first, torch.nn.Tanh(), last)
# recorded from here
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.tensor([[1.0, 2.0], [3.0, -4.0]])
target = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
for step in range(2):
    loss = ((model(x) - target) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
SHARED = """
w = torch.tensor([1.0, 2.0], requires_grad=True)
y = w * w + w.sin()
z = torch.cat([y, y * 2])[1:3]
z.sum().backward()
"""
RETAINED = """
w = torch.tensor([1.0, 2.0], requires_grad=True)
y = w.exp()
y.retain_grad()
y.register_hook(lambda g: g * 3)
loss = (y * y).sum()
loss.backward(retain_graph=True)
loss.backward()
"""
IN_PLACE = """
w = torch.tensor([1.0, 2.0], requires_grad=True)
y = w * 3
y.mul_(2)
y[0] = 5.0
y.sum().backward()
"""
GRAD = """
w = torch.tensor([1.0, 2.0], requires_grad=True)
y = (w ** 3).sum()
(g,) = torch.autograd.grad(y, w, create_graph=True)
g.sum().backward()
"""
UNTRACKED = """
w = torch.tensor([1.0, 2.0], requires_grad=True)
cut = (w * 2).detach()
with torch.no_grad():
    other = w + 1
loss = (w * cut * other).sum()
loss.backward()
w.grad = None
"""
VIEWED = """
w = torch.tensor([1.0, 2.0], requires_grad=True)
with torch.no_grad():
    v = w.view(2, 1)
    u = v.t() + 1
(u * w).sum().backward()
(v * w).sum().backward()
"""
DIVIDED = """
w = torch.tensor([1.0, 2.0], requires_grad=True)
y = 3 / w
with torch.no_grad():
    z = 1.5 / w
(y * z).sum().backward()
"""
FAILING = """
w = torch.tensor([1.0, 2.0], requires_grad=True)
y = w.exp()
z = y.sum()
y.mul_(2)
try:
    z.backward()
    (y * w).sum().backward()
    y.sum().backward()
except RuntimeError as error:
    failed = str(error)
"""
UNUSED = """
w = torch.tensor([1.0, 2.0], requires_grad=True)
other = torch.ones(2, requires_grad=True)
try:
    torch.autograd.grad((w * 3).sum(), other)
except RuntimeError as error:
    failed = str(error)
"""
NO_WAY_BACK = """
x = torch.tensor([1.0, 2.0])
try:
    x.sum().backward()
except RuntimeError as error:
    failed = str(error)
"""
COPIED = """
w = torch.tensor([1.0, 2.0], requires_grad=True)
parts = [w[0] * 2, w[1] * 3]
numbers = torch.tensor(parts)
(numbers * w).sum().backward()
"""
PROGRAMS = {name.lower(): text for name, text in globals().items() if name.isupper() and "torch." in str(text)}


def engine_log(text):
    import gviz.engine as engine

    return recorded(text, engine, None)


def torch_log(text):
    from gviz.adapters.pytorch.attachment import Attachment

    return recorded(text, torch, Attachment)


def recorded(text, framework, attached):
    log, world = [], {"torch": framework}
    channel = emit.Channel(log.append)
    before, _, text = text.rpartition("# recorded from here\n")
    exec(before or "import numpy", world)
    code = compile(text, "model.py", "exec")
    with emit.listening(channel):
        if attached is None:
            exec(code, world)
        else:
            with attached(channel):
                exec(code, world)
    return log


class Reading:
    """A log in which nodes are called by what they are."""

    def __init__(self, log):
        self.ops = {event.op: event for event in log if isinstance(event, OpSeen)}
        stacks = MemoryLog([event for event in log if isinstance(event, StackSeen)]).stacks
        self.lines = {stack: frames[0].line for stack, frames in stacks.items() if frames}
        self.labels, self.skipped, seen = {}, set(), Counter()
        self.nodes, self.happenings = [], []
        for place, event in enumerate(log):
            if isinstance(event, NodeCreated):
                if self.is_of_optimizer(log, place, event):
                    self.skipped.add(event.node)
                    continue
                label = self.label(event)
                seen[label] += 1
                self.labels[event.node] = f"{label}#{seen[label]}"
                if event.during[0] or self.is_indexed_write(log, place, event):
                    self.skipped.add(event.node)
                elif event.kind == "op":
                    self.nodes.append(self.told(event))
            elif not isinstance(event, (OpSeen, StackSeen, SourceSeen, NodeFreed, Warned)):
                self.process(event)

    def is_of_optimizer(self, log, place, event):
        """A step's own operations: between a pass and the word that the optimizer stepped."""
        if dict(event.attrs).get("grad_of"):
            return True
        for later in log[place:]:
            if isinstance(later, OptimizerStepped):
                return any(self.skipped & {node for node, _ in event.inputs}) or self.ops[event.op].name == "add_"
            if isinstance(later, (BackwardStarted, ScopeEntered)):
                return False
        return False

    def is_indexed_write(self, log, place, event):
        """The view that the next operation writes through."""
        later = (e for e in log[place + 1 :] if isinstance(e, NodeCreated) and e.kind == "op")
        after = next(later, None)
        return (
            bool(event.outputs[0].view_of)
            and after is not None
            and self.ops.get(after.op, NOTHING).grad_fn == "CopySlices"
        )

    def label(self, event):
        op = self.ops[event.op]
        if event.kind != "op":
            return f"{event.kind}{digest(event.outputs[0].value)}"
        return op.grad_fn or op.name

    def told(self, event):
        inputs = [(self.labels.get(node, "?"), nr) for node, nr in event.inputs if node not in self.skipped]
        op = self.ops[event.op]
        outputs = [(digest(output.value), output.version, output.view_of > 0) for output in event.outputs]
        flags = event.requires_grad, event.untracked, event.during[0] > 0
        line = self.lines.get(event.stack, 0)
        called = () if op.grad_fn == "CopySlices" else (op.name, op.slots[: len(inputs)])
        return self.labels[event.node], called, inputs, outputs, *flags, line, event.scope

    def process(self, event):
        if {getattr(event, "source", 0), getattr(event, "node", 0)} & self.skipped and not isinstance(
            event, StorageWritten
        ):
            return
        told = [type(event).__name__]
        match event:
            case BackwardStarted():
                told += [event.retain_graph, event.create_graph, [self.labels[n] for n, _ in event.roots]]
            case GradFlowed():
                told += [
                    self.labels[event.source],
                    event.slot,
                    self.labels[event.node],
                    event.output_nr,
                    number(event.part),
                    number(event.total),
                ]
            case StepStarted():
                told += [self.labels[event.node], number(event.grads[0])]
            case GradAccumulated() | GradSet():
                told += [self.labels[event.node], number(event.value)]
            case GradRetained():
                told += [self.labels[event.node], number(event.value)]
            case HookRan():
                told += [self.labels[event.node], event.when, event.name, number(event.value)]
            case StorageWritten():
                if event.node in self.skipped:
                    told += ["by an optimizer", number(event.value)]
                else:
                    kind = self.labels[event.node].startswith("parameter")
                    told += ["by an optimizer" if kind else self.labels[event.node], number(event.value)]
            case Named():
                told += [event.name]
            case ScopeEntered():
                told += [event.name, event.kind]
            case OptimizerStepped():
                told += [event.kind, len(event.parameters)]
        if told[0] not in ("SavedFreed",):
            self.happenings.append(told)


NOTHING = OpSeen(0, "", "", (), (), ())


def number(value):
    """The numbers of a value."""
    if not isinstance(value, Value) or value.data is None:
        return None
    return np.asarray(value.array(), np.float64).ravel().tolist()


def approximately(told):
    """What is equal to what the other framework says, up to the rounding of single precision."""
    return (
        pytest.approx(told, rel=1e-5, abs=1e-6)
        if isinstance(told, list) and told and not str(told[0])[0].isalpha()
        else told
    )


def digest(value):
    return str([float(f"{x:.4g}") for x in number(value) or ()])


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_say_the_same(name):
    ours, theirs = Reading(engine_log(PROGRAMS[name])), Reading(torch_log(PROGRAMS[name]))
    assert theirs.nodes == ours.nodes
    assert len(theirs.happenings) == len(ours.happenings)
    for theirs_told, ours_told in zip(theirs.happenings, ours.happenings, strict=True):
        assert list(map(approximately, theirs_told)) == ours_told


CALLED = """
a = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
e, b = a.view(2, 3), a - 0.5
a + b, torch.add(a, b, alpha=2), torch.sub(a, 3), 3 - a, torch.rsub(a, b), 2**a, a**2, 7 // a, 7 % a, a // 2, a % 2
a > 2, 2 >= a, a == b, e.sum(), e.sum(0), e.mean(1, keepdim=True), e.max(), e.max(0), e.prod(), e.median(), e.argmax(1)
torch.addmm(torch.zeros(2, 2), e, e.t()), torch.addmm(torch.zeros(2, 2), e, e.t(), beta=0.5, alpha=2)
a.view(torch.int32), a.expand(2, 6), e.permute(1, 0), e.transpose(0, 1), a.repeat(2, 3), a.to(torch.float64)
a.clamp(0, 1), a.round(decimals=1), torch.div(a, b, rounding_mode="floor"), e.squeeze(), e.unsqueeze(0), e[0]
"""


def test_calls_that_are_not_tracked_are_described_alike():
    """Several operations are called the same: their formulas tell what was given."""

    def said(log):
        ops = {event.op: event for event in log if isinstance(event, OpSeen)}
        made = [event for event in log if isinstance(event, NodeCreated) and event.kind == "op"]
        known = [(ops[event.op], event) for event in made if ops[event.op].name not in ("getitem", "select")]
        return [
            (op.name, op.formula, len(event.inputs), [
                name for name, _ in event.attrs if name in op.formula.split()
            ]) for op, event in known
        ]  # fmt: skip

    ours, theirs = said(engine_log(CALLED)), said(torch_log(CALLED))
    assert theirs == ours
