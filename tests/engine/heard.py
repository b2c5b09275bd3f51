"""What a program said, in the terms tests ask in."""

import numpy as np
from recording import events_of

from gviz import events as e


class Heard:
    """The events of a program. Nodes are asked for by their op's name, which must then be the only one of that name."""

    def __init__(self, program, **options):
        self.events = events_of(program, **options)
        self.ops = {op.op: op for op in self.all(e.OpSeen)}
        self.nodes = {created.node: created for created in self.all(e.NodeCreated)}

    def all(self, *kinds):
        return [event for event in self.events if isinstance(event, kinds)]

    def named(self, name):
        return [n for n, created in self.nodes.items() if self.ops[created.op].name == name]

    def node(self, name):
        (found,) = self.named(name)
        return found

    def created(self, name):
        return self.nodes[self.node(name)]

    def grad_fn(self, node):
        return self.ops[self.nodes[node].op].grad_fn

    def leaves(self):
        return [n for n, created in self.nodes.items() if created.kind in ("leaf", "parameter")]

    def between(self, first, last):
        """The events after the only `first` and before the only `last`."""
        (start,) = [i for i, event in enumerate(self.events) if isinstance(event, first)]
        (end,) = [i for i, event in enumerate(self.events) if isinstance(event, last)]
        return self.events[start + 1 : end]


def number(value):
    """The array of a value, as nested lists."""
    return None if value is None else np.asarray(value.array()).tolist()
