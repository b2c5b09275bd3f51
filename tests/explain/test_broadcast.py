"""What is summed in backward is what was widened in forward, and every view says so of the same inputs."""

import pytest
from recording import timeline_of

import gviz.engine as torch
from gviz.explain.outgoing_gradients import outgoing_gradients
from gviz.render.boxes.graph_structure import structure


def told(combine, *shapes):
    """The line labels and the remarks on sums for an op on leaves of these shapes."""
    leaves = [torch.ones(*shape, requires_grad=True) for shape in shapes]

    def program():
        result = combine(*leaves)
        result.sum().backward()
        return result

    timeline = timeline_of(program)
    node = next(node for node in timeline.nodes if timeline.info(node).created.kind == "op")
    links = structure(timeline, timeline.iterations[0]).links
    labels = [link.label for link in links if link.target == f"n{node}" and link.kind == "forward"]
    return labels, [share.reduced for share in outgoing_gradients(timeline, timeline.at(len(timeline)), node)]


@pytest.mark.parametrize(
    ("combine", "shapes", "labels", "reduced"),
    [
        (torch.mul, [(8, 3), (3,)], ["(8,3)", "(3,)→(8,3)"], ["", "dim 0"]),
        (
            torch.add,
            [(3, 1), (1, 2)],
            ["(3,1)→(3,2)", "(1,2)→(3,2)"],
            ["dim 1", "dim 0"],
        ),
        (
            torch.sub,
            [(2, 1, 4), (4,)],
            ["(2,1,4)", "(4,)→(2,1,4)"],
            ["", "dims 0, 1"],
        ),
        (torch.matmul, [(3, 1), (1, 3)], ["(3,1)", "(1,3)"], ["", ""]),
        (lambda a, b: torch.cat([a, b]), [(1, 3), (2, 3)], ["(1,3)", "(2,3)"], ["", ""]),
    ],
)
def test_lines_and_sums_agree(combine, shapes, labels, reduced):
    assert told(combine, *shapes) == (labels, reduced)
