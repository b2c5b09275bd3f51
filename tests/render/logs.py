"""Small event logs written by hand: what a program would have said, without running one."""

import numpy as np

from gviz import events as e
from gviz.source.call_stack import Frame
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline
from gviz.values.value import Value, capture

RULES = {"mul": ("g * b", "g * a"), "add": ("g", "g"), "sin": ("g * cos(a)",), "sum": ("g",), "relu_": ("g",)}


def value(data, dtype="float32"):
    return data if data is None or isinstance(data, Value) else capture(np.asarray(data, dtype=dtype))


class Script:
    """Writes a log line by line; every call is one line of ``demo.py``."""

    def __init__(self, path="/home/user/demo.py"):
        self.events, self.path, self.line, self.node, self.storage = [], path, 0, 0, 0
        self.ops, self.stacks = {}, set()

    @property
    def timeline(self):
        return Timeline(MemoryLog(self.events))

    def say(self, *events):
        self.events.extend(events)

    def new(self, op, kind, inputs, outputs, name="", *, grad=True, untracked="", attrs=()):
        """One node; `outputs` are arrays or `Output`s."""
        self.line, self.node = self.line + 1, self.node + 1
        if self.line not in self.stacks:
            self.stacks.add(self.line)
            self.say(e.StackSeen(self.line, (Frame(self.path, "<module>", self.line, self.line, 0, 9),)))
        if op not in self.ops:
            self.ops[op] = len(self.ops) + 1
            tracked = f"{op.capitalize()}Backward0" if kind == "op" else ""
            rules = RULES.get(op, ("g",) * len(inputs))
            self.say(
                e.OpSeen(self.ops[op], op, tracked, ("a", "b")[: len(rules)], rules, ("a",) if op != "add" else ())
            )
        edges = tuple(edge if isinstance(edge, tuple) else (edge, 0) for edge in inputs)
        outs = tuple(self.output(out) for out in outputs)
        created = e.NodeCreated(self.node, self.ops[op], kind, edges, outs, attrs, grad, untracked, self.line, 0)
        self.say(created, *([e.Named(self.node, name)] if name else []))
        return self.node

    def output(self, out):
        if isinstance(out, e.Output):
            return out
        self.storage += 1
        return e.Output(value(out), self.storage)

    def leaf(self, name, data):
        return self.new("leaf", "leaf", (), (data,), name)

    def parameter(self, name, data):
        return self.new("parameter", "parameter", (), (data,), name)

    def constant(self, data, name=""):
        return self.new("constant", "constant", (), (data,), name, grad=False)

    def op(self, op, inputs, data, name="", **more):
        return self.new(op, "op", inputs, (data,), name, **more)

    def backward(self, root, steps, *, seed=1.0, accumulate=(), pass_nr=1):
        """A pass: `steps` are ``(node, incoming, [(slot, target, part, total), ...])``.

        `accumulate` says ``(leaf, part, value)``, after the last step that sends the leaf a gradient.
        """
        self.say(e.BackwardStarted(pass_nr, ((root, 0),), (value(seed),), False, False, (), self.line))
        order = [node for node, _, _ in steps]
        for node, incoming, flows in steps:
            self.say(e.StepStarted(pass_nr, node, (value(incoming),)))
            for slot, target, part, total in flows:
                self.say(e.GradFlowed(pass_nr, node, slot, target, 0, value(part), value(total)))
            self.say(e.StepFinished(pass_nr, node), e.SavedFreed(node))
            for leaf, part, total in accumulate:
                if node == max((n for n, _, f in steps if leaf in [flow[1] for flow in f]), key=order.index):
                    self.say(e.GradAccumulated(pass_nr, leaf, value(part), value(total)))
        self.say(e.BackwardFinished(pass_nr))


def two_shares(name="x"):
    """a = x*w; b = x*a; loss = b + a: both `x` and `a` get two gradients."""
    s = Script()
    x, w = s.leaf(name, 3.0), s.leaf("w", -2.0)
    a = s.op("mul", (x, w), -6.0, "a")
    b = s.op("mul", (x, a), -18.0, "b")
    loss = s.op("add", (b, a), -24.0, "loss")
    s.backward(
        loss,
        [
            (loss, 1.0, [(0, b, 1.0, None), (1, a, 1.0, None)]),
            (b, 1.0, [(0, x, -6.0, None), (1, a, 3.0, 4.0)]),
            (a, 4.0, [(1, w, 12.0, None), (0, x, -8.0, -14.0)]),
        ],
        accumulate=[(w, 12.0, None), (x, -14.0, None)],
    )
    return s


def linear_model():
    """A parameter, data without gradient, a broadcast bias, a scalar constant and a sum."""
    s = Script()
    weight, bias = s.parameter("fc.weight", np.arange(12).reshape(3, 4) / 8), s.parameter("fc.bias", np.ones(4))
    data = s.constant(np.arange(6).reshape(2, 3), "data")
    h = s.op("matmul", (data, weight), np.arange(8).reshape(2, 4), "h")
    y = s.op("add", (h, bias), np.arange(8).reshape(2, 4) + 1, "y")
    half = s.constant(0.5)
    z = s.op("mul", (y, half), (np.arange(8).reshape(2, 4) + 1) / 2)
    s.op("sum", (z,), 18.0, "loss")
    return s


def broken():
    """log of a negative number: a nan in the forward pass, and an exception after it."""
    s = Script()
    x = s.leaf("x", [-1.0, 2.0, 0.0, 3.0, 4.0])
    y = s.op("log", (x,), [np.nan, 0.6931, -np.inf, 1.0986, 1.3863], "y")
    z = s.op("sum", (y,), np.nan, "z")
    s.say(e.Failed("ValueError", "loss is nan", z, s.line, "Traceback ..."))
    return s


def odd_ops():
    """A view, an in-place write through it, two outputs, a cut path, and something nobody stored."""
    s = Script()
    x = s.leaf("x", np.arange(6).reshape(2, 3))
    y = s.op("exp", (x,), Value("float32", (2, 3)), "y")
    base = s.storage
    view = s.op("select", (y,), e.Output(value([1.0, 2.7, 7.4]), base, 0, y, 0, (1,)), "row", attrs=(("index", 0),))
    s.op("relu_", (view,), e.Output(value([1.0, 2.7, 7.4]), base, 1, y, 0, (1,)), "row")
    s.say(e.StorageWritten(base, s.node, 1, value(np.arange(6))))
    top = s.new("max", "op", (y,), (np.array([5.0, 2.0]), capture(np.array([2, 2]))), "top")
    s.op("detach", ((top, 0),), [5.0, 2.0], "cut", grad=False, untracked="detach")
    return s


def recurrent(steps=6):
    """One weight used in every step: drawn as one chip per use."""
    s = Script()
    weight, h = s.parameter("W_hh", np.eye(4)), s.constant(np.zeros((1, 4)), "h0")
    for step in range(steps):
        product = s.op("matmul", (h, weight), np.full((1, 4), step), "")
        h = s.op("tanh", (product,), np.full((1, 4), step), f"h{step + 1}")
    s.op("sum", (h,), 20.0, "loss")
    return s


LOGS = {f.__name__: f for f in (two_shares, linear_model, broken, odd_ops, recurrent)}
