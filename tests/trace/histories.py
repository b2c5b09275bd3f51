"""Arbitrary legal event lists: a little world that takes actions drawn by hypothesis and says what it does."""

import numpy as np
from hypothesis import strategies as st

from gviz import events as e
from gviz.source.call_stack import Frame
from gviz.values.value import capture

OPS = (
    e.OpSeen(1, "tensor", "", (), (), ()),
    e.OpSeen(2, "mul", "MulBackward0", ("a", "b"), ("g * b", "g * a"), ("a", "b")),
    e.OpSeen(3, "add", "AddBackward0", ("a", "b"), ("g", "g"), ()),
)


def value(*numbers, dtype="float64"):
    return capture(np.array(numbers, dtype))


class World:
    """Says events; keeps just enough to stay legal."""

    def __init__(self):
        self.log = list(OPS)
        self.created = {}
        self.requires = {}
        self.storage_size = {}
        self.version = {}
        self.freed = set()
        self.passes = 0
        self.scopes = []
        self.scope_count = 0
        self.depth = 0

    def say(self, event):
        self.log.append(event)

    def pick(self, number, among=None):
        nodes = list(self.created) if among is None else among
        return nodes[number % len(nodes)] if nodes else 0

    def make(self, kind, op, inputs, outputs, *, requires_grad, untracked="", during=(0, 0)):
        node = len(self.created) + 1
        scope = self.scopes[-1] if self.scopes else 0
        event = e.NodeCreated(node, op, kind, inputs, outputs, (), requires_grad, untracked, 1, scope, during)
        self.created[node] = event
        self.requires[node] = requires_grad
        self.say(event)
        return node

    def memory(self, size):
        number = len(self.storage_size) + 1
        self.storage_size[number] = size
        self.version[number] = 0
        return number

    def plain(self, a, *, dtype="float64"):
        numbers = value(a, a + 1, a + 2, dtype=dtype)
        return e.Output(numbers, self.memory(3), 0)

    def view(self, a, b):
        node = self.pick(a)
        base = self.created[node].outputs[0]
        size = self.storage_size[base.storage]
        offset = b % size
        length = (size - offset + 1) // 2
        shown = value(*range(length))
        return node, e.Output(shown, base.storage, self.version[base.storage], node, offset, (2,))

    # actions

    def leaf(self, a, b, c):
        kind = ("leaf", "parameter", "constant")[b % 3]
        self.make(kind, 1, (), (self.plain(a),), requires_grad=kind != "constant")

    def op(self, a, b, c):
        if not self.created:
            return self.leaf(a, b, c)
        inputs = tuple(
            (node, c % len(self.created[node].outputs)) for node in (self.pick(a), self.pick(b))[: 1 + c % 2]
        )
        tracked = c % 5 != 4 and any(self.requires[node] for node, _ in inputs)
        outputs = (self.plain(a), self.plain(b, dtype="int64")) if c % 3 == 2 else (self.plain(a),)
        why = "" if tracked else ("no_grad" if c % 5 == 4 else "inputs")
        self.make("op", 2 + b % 2, inputs, outputs, requires_grad=tracked, untracked=why)

    def slice(self, a, b, c):
        if self.created:
            node, output = self.view(a, b)
            tracked = self.requires[node]
            self.make("op", 3, ((node, 0),), (output,), requires_grad=tracked, untracked="" if tracked else "inputs")

    def write(self, a, b, c):
        if self.created:
            storage = self.created[self.pick(a)].outputs[0].storage
            self.version[storage] += 1
            written = value(*(b + i for i in range(self.storage_size[storage])))
            self.say(e.StorageWritten(storage, self.pick(c), self.version[storage], written))

    def give_data(self, a, b, c):
        """Another memory, shape or dtype for an output, again and again."""
        if self.created:
            node = self.pick(a)
            output_nr = b % len(self.created[node].outputs)
            given = value(*range(b % 4), dtype=("float64", "float32")[c % 2])
            self.say(e.DataSet(node, output_nr, c % 3, given, self.pick(c), c % 2))

    def requires_grad(self, a, b, c):
        node = self.pick(a, [node for node, made in self.created.items() if made.kind != "op"])
        if node:
            self.requires[node] = bool(b % 2)
            self.say(e.RequiresGradSet(node, bool(b % 2)))

    def set_grad(self, a, b, c):
        if self.created:
            how = ("none", "zero", "assigned")[b % 3]
            self.say(e.GradSet(self.pick(a), 0, how, None if how == "none" else value(c)))

    def free(self, a, b, c):
        node = self.pick(a, [node for node in self.created if node not in self.freed])
        if node:
            self.freed.add(node)
            self.say(e.SavedFreed(node) if b % 2 else e.NodeFreed(node))

    def speak(self, a, b, c):
        self.say((e.Marked("here"), e.Printed("stdout", "text"), e.Warned("UserWarning", "text", 0))[a % 3])

    def name(self, a, b, c):
        if self.created:
            self.say(e.Named(self.pick(a), f"n{b}"))

    def give(self, a, b, c):
        if self.created:
            node = self.pick(a)
            output_nr = b % len(self.created[node].outputs)
            self.say(e.Returned(node, output_nr, 1 + c % 2, ((b % 2, 2, "values" * (c % 2)),)))

    def step(self, a, b, c):
        """The start of a step, its end, or both in any order: a step may raise, and older recordings say no start."""
        if self.created:
            if c % 3:
                self.say(e.OptimizerStarted("SGD", 1 + a % 2))
            if c % 3 != 1:
                self.say(e.OptimizerStepped("SGD", (self.pick(a), self.pick(b)), 1 + b % 2))

    def scope(self, a, b, c):
        if self.scopes and a % 2:
            self.say(e.ScopeLeft(self.scopes.pop()))
        else:
            self.scope_count += 1
            self.say(e.ScopeEntered(self.scope_count, self.scopes[-1] if self.scopes else 0, f"net.{a}", "Linear"))
            self.scopes.append(self.scope_count)

    def backward(self, a, b, c):
        roots = [node for node in self.created if self.requires[node]]
        if not roots or self.depth > 1:
            return
        self.passes += 1
        chosen = tuple((self.pick(number, roots), 0) for number in (a, b)[: 1 + c % 2])
        inputs = ((self.pick(c, roots), 0),) if c % 4 == 3 else ()
        nr, retain = self.passes, bool(c % 2)
        self.say(e.BackwardStarted(nr, chosen, tuple(value(1.0) for _ in chosen), retain, False, inputs, 1))
        error = Pass(self, nr, chosen, retain, b, c).run()
        self.say(e.BackwardFinished(nr, error))


class Pass:
    """One backward pass of the world: newest node first; odd draws lose contributions, nest passes, end in errors."""

    def __init__(self, world, nr, roots, retain, b, c):
        self.world, self.nr, self.retain, self.b, self.c = world, nr, retain, b, c
        self.pending = {node for node, _ in roots}
        self.arrived = set(roots)

    def run(self):
        for count in range(len(self.world.created)):
            if not self.pending:
                return ""
            if count == self.c % 3 and self.b % 3 == 2:
                return "ended early"
            node = max(self.pending)
            self.pending.discard(node)
            self.visit(node, count)
        return ""

    def visit(self, node, count):
        world = self.world
        made = world.created[node]
        self.hook(node, count)
        if made.kind != "op":
            if (self.b + count) % 6 == 5:
                world.say(e.GradCaptured(self.nr, node, 0, value(count)))
            else:
                world.say(e.GradAccumulated(self.nr, node, value(count), value(count + 1) if count % 2 else None))
            return
        world.say(e.StepStarted(self.nr, node, (value(count),)))
        self.send(node, made, count)
        if not self.retain:
            world.say(e.SavedFreed(node))
        if count % 3 == 0:
            world.say(e.GradRetained(self.nr, node, 0, value(count)))
        world.say(e.StepFinished(self.nr, node))

    def hook(self, node, count):
        if (self.c + count) % 3 == 1:
            result = (value(count + 7), None)[(self.b + count) % 2]
            when = ("tensor", "pre", "tensor", "post")[(self.b + self.c) % 4]
            self.world.say(e.HookRan(self.nr, node, 0, when, "hook", result))

    def send(self, node, made, count):
        world = self.world
        if (self.b + count) % 5 == 4:  # a pass within the rule of another
            world.depth += 1
            world.backward(self.b + 1, count, self.c + 1)
            world.depth -= 1
        for slot, (target, output_nr) in enumerate(made.inputs):
            dtype = world.created[target].outputs[output_nr].value.dtype
            if not world.requires[target] or not dtype.startswith("float") or (self.c + slot + count) % 11 == 10:
                continue
            total = value(slot + 1) if (target, output_nr) in self.arrived else None
            self.arrived.add((target, output_nr))
            world.say(e.GradFlowed(self.nr, node, slot, target, output_nr, value(slot), total))
            self.pending.add(target)


ACTIONS = (
    "leaf", "op", "op", "op", "slice", "write", "backward", "backward", "requires_grad", "set_grad", "free", "speak",
    "name", "give", "give_data", "step", "scope",
)  # fmt: skip

_numbers = st.integers(0, 40)
_actions = st.lists(st.tuples(st.sampled_from(ACTIONS), _numbers, _numbers, _numbers), min_size=4, max_size=30)


def tell(actions):
    """The events of a list of actions."""
    world = World()
    world.say(e.SourceSeen("demo.py", "x = 1\n"))
    world.say(e.StackSeen(1, (Frame("demo.py", "<module>", 1, 1, 0, 1),)))
    for action, a, b, c in actions:
        getattr(world, action)(a, b, c)
    return world.log


histories = _actions.map(tell)
"""A strategy: legal event lists with several passes, views, in-place writes, frees, errors and passes within passes."""
