"""Small graphs for layout tests, as the roles of boxes 0, 1, 2 … and ``(source, target, slot)`` edges."""

import random

from gviz.render.cells import Face
from gviz.render.layout import Box, Edge, layout

WIDTHS = {"op": 18, "leaf": 14, "parameter": 14, "constant": 10}


def boxes(roles):
    return [Box(key, WIDTHS[role], 3 if role == "constant" else 4) for key, role in enumerate(roles)]


def laid_out(roles, edges, function=layout):
    return function(boxes(roles), [Edge(*edge) for edge in edges])


def faces(roles):
    return {key: Face(f"v{key}", role=role) for key, role in enumerate(roles)}


def chain(length):
    return ["leaf", *["op"] * (length - 1)], [(box, box + 1, 0) for box in range(length - 1)]


def lesson():
    """z = x*x + sin(2*y): x, y, 2, x*x, 2*y, sin, +."""
    roles = ["leaf", "leaf", "constant", "op", "op", "op", "op"]
    return roles, [(0, 3, 0), (0, 3, 1), (2, 4, 0), (1, 4, 1), (4, 5, 0), (3, 6, 0), (5, 6, 1)]


def residual(blocks):
    roles, edges = ["leaf"], []

    def new(role, *inputs):
        roles.append(role)
        edges.extend((source, len(roles) - 1, slot) for slot, source in enumerate(inputs))
        return len(roles) - 1

    hidden = 0
    for _ in range(blocks):
        first = new("op", new("op", hidden, new("parameter")))
        hidden = new("op", new("op", first, new("parameter")), hidden)
    return roles, edges


def random_graph(count, arguments, seed):
    chance = random.Random(seed)
    edges = [
        (chance.randrange(box), box, slot) for box in range(1, count) for slot in range(chance.randint(0, arguments))
    ]
    computed = {target for _, target, _ in edges}
    return ["op" if box in computed else "leaf" for box in range(count)], edges
