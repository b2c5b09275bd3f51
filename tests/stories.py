"""Recordings made by hand: stories about small graphs that do not depend on the engine."""

import numpy as np
from recording import timeline_of

import gviz.engine as torch
from gviz.events import (
    BackwardFinished,
    BackwardStarted,
    Failed,
    GradAccumulated,
    GradFlowed,
    Named,
    NodeCreated,
    OpSeen,
    Output,
    Printed,
    SavedFreed,
    SourceSeen,
    StackSeen,
    StepFinished,
    StepStarted,
)
from gviz.source.call_stack import Frame
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline
from gviz.values.value import capture

SOURCE = """import gviz.engine as torch

x = torch.tensor(3.0, requires_grad=True)
w = torch.tensor(-2.0, requires_grad=True)
a = x * w
b = x * a            # x is used twice
loss = b + a         # a is used twice
print("loss", loss.item())
loss.backward()
"""
PATH = "/home/me/demo.py"

OPS = (
    OpSeen(1, "Leaf", "AccumulateGrad", (), (), ()),
    OpSeen(2, "mul", "MulBackward0", ("self", "other"), ("g * other", "g * self"), ("self", "other"), "self * other"),
    OpSeen(3, "add", "AddBackward0", ("self", "other"), ("g", "g"), (), "self + other"),
)


def value(x, dtype="float64"):
    return capture(np.asarray(x, dtype=dtype))


class Story:
    """Says events one after the other; a scalar graph computes its own gradients."""

    def __init__(self, path=PATH, source=SOURCE):
        self.events = [*OPS, SourceSeen(path, source)]
        self.path = path
        self.nodes, self.values, self.inputs = 0, {}, {}
        self.stacks = 0

    def stack(self, line, column, end):
        self.stacks += 1
        self.events.append(StackSeen(self.stacks, (Frame(self.path, "<module>", line, line, column, end),)))
        return self.stacks

    def leaf(self, name, number, line):
        return self._node(name, 1, "leaf", (), number, self.stack(line, 4, 45))

    def mul(self, name, left, right, line):
        return self._node(name, 2, "op", (left, right), self.values[left] * self.values[right], self.stack(line, 4, 9))

    def add(self, name, left, right, line):
        return self._node(name, 3, "op", (left, right), self.values[left] + self.values[right], self.stack(line, 7, 12))

    def _node(self, name, op, kind, inputs, number, stack):
        self.nodes += 1
        node = self.nodes
        self.values[node], self.inputs[node] = np.asarray(number, dtype=float), (op, inputs)
        edges = tuple((source, 0) for source in inputs)
        output = Output(value(number), storage=node)
        self.events.append(NodeCreated(node, op, kind, edges, (output,), (), True, "", stack, 0))
        if name:
            self.events.append(Named(node, name))
        return node

    def say(self, *events):
        self.events += events

    def backward(self, root, line, pass_nr=1, *, leaves_had=()):
        stack = self.stack(line, 0, 15)
        had = dict(leaves_had)
        self.say(BackwardStarted(pass_nr, ((root, 0),), (value(1.0),), False, False, (), stack))
        totals = {root: 1.0}
        for node in range(root, 0, -1):
            if node not in totals:
                continue
            g = totals[node]
            op, inputs = self.inputs[node]
            self.say(StepStarted(pass_nr, node, (value(g),)))
            if not inputs:
                old = had.get(node)
                total = None if old is None else value(old + g)
                self.say(GradAccumulated(pass_nr, node, value(g), total))
            for slot, target in enumerate(inputs):
                part = g * self.values[inputs[1 - slot]] if op == 2 else g
                first = target not in totals
                totals[target] = totals.get(target, 0.0) + part
                total = None if first else value(totals[target])
                self.say(GradFlowed(pass_nr, node, slot, target, 0, value(part), total))
            if op == 2:
                self.say(SavedFreed(node))
            self.say(StepFinished(pass_nr, node))
        self.say(BackwardFinished(pass_nr))

    def timeline(self):
        return Timeline(MemoryLog(self.events))


def demo_story():
    story = Story()
    x = story.leaf("x", 3.0, 3)
    w = story.leaf("w", -2.0, 4)
    a = story.mul("a", x, w, 5)
    b = story.mul("b", x, a, 6)
    loss = story.add("loss", b, a, 7)
    story.say(Printed("stdout", "loss -24.0\n"))
    story.backward(loss, 9)
    return story


def demo():
    """a = x*w; b = x*a; loss = b + a, backward once."""
    return demo_story().timeline()


AGAIN = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad()."
)


def failed():
    """The same, and a second backward that fails at b."""
    story = demo_story()
    stack = story.stack(9, 0, 15)
    story.say(
        BackwardStarted(2, ((5, 0),), (value(1.0),), False, False, (), stack),
        StepStarted(2, 5, (value(1.0),)),
        GradFlowed(2, 5, 0, 4, 0, value(1.0)),
        GradFlowed(2, 5, 1, 3, 0, value(1.0)),
        StepFinished(2, 5),
        BackwardFinished(2, AGAIN),
        Failed("RuntimeError", AGAIN, 4, stack, "Traceback (most recent call last): …"),
    )
    return story.timeline()


def iterations(count=3):
    """Several forward and backward passes, each with a new graph over the same leaf."""
    story = Story()
    x = story.leaf("x", 3.0, 3)
    had = 0.0
    for at in range(count):
        y = story.mul("y", x, x, 5)
        story.backward(y, 9, at + 1, leaves_had={x: had} if at else {})
        had += 6.0
    return story.timeline()


def chain(length):
    """A long chain of additions."""
    story = Story()
    last = story.leaf("x", 1.0, 3)
    for _ in range(length):
        last = story.add("", last, last, 5)
        story.values[last] = np.asarray(1.0)
    return story.timeline()


def late():
    """A graph made before the recording: operations without values, of which some inputs are not known, and a step."""
    x = torch.tensor([3.0, 4.0], requires_grad=True)
    optimizer = torch.optim.SGD([x], lr=0.5)
    y = x * torch.tensor(2.0)

    def program():
        z = y + 1
        z.sum().backward()
        optimizer.step()
        return z

    return timeline_of(program)


HOSTILE = "\x1b[31mred[bold]x[/bold] \u202eevil 漢字\n]8;;"


def hostile():
    """Names, paths and output that try to be more than text."""
    story = Story(path=f"/tmp/{HOSTILE}.py", source=f"x = '{HOSTILE}'\n[red]y[/red] = x\n" * 5)
    x = story.leaf(HOSTILE, 3.0, 1)
    y = story.mul("[red]y[/red]", x, x, 2)
    story.say(Printed("stdout", f"{HOSTILE}\n[red]printed[/red]\n"))
    story.backward(y, 3)
    story.say(Failed(HOSTILE, f"{HOSTILE} [/nothing]", y, 0, HOSTILE))
    return story.timeline()
