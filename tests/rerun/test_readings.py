"""Where a program may take numbers out of tensors is found in its source; what was decided otherwise, in the branch."""

import pytest
from recording import timeline_of

import gviz.engine as torch
from gviz.explain.whatif import reads_tensors
from gviz.rerun.change_parser import Change
from gviz.rerun.iteration import rerun_iteration

READING = (
    "a = x.item()", "a = float(x)", "a = np.asarray(x)", "i = y.argmax()", "if x: pass", "if not x: pass",
    "while x.sum(): pass", "assert x[0]", "a = 1 if x - 1 else 2", "a = b or x", "a = [b for b in c if x]",
    "for i in range(n): pass", "match x:\n    case 1: pass", "if self.x: pass", "def (",
)  # fmt: skip
NOT_READING = (
    "if x > 0: pass", "if step: pass", "while x.sum() < 3 and y[0] == 1: pass", "for i in range(3): pass",
    "y = x.sum()", "if __name__ == '__main__': pass", "if isinstance(x, str): pass",
)  # fmt: skip


@pytest.mark.parametrize("source", READING)
def test_what_reads(source):
    assert reads_tensors(source, {"x", "n"})


@pytest.mark.parametrize("source", NOT_READING)
def test_what_does_not(source):
    assert not reads_tensors(source, {"x", "n"})


def recorded():
    x = torch.tensor(3.0, requires_grad=True)
    y = torch.tensor([2.0, 2.0, 2.0])
    s = y.sum()
    z = x * s
    if s > 5:
        z = z * 2
    while not (s < 1).any() and z < 0:
        z = z + 1
    torch.where(s > 5.5, z, x)
    z.backward()


@pytest.mark.parametrize(
    ("value", "decided"),
    [([2.0, 2.0, 3.0], []), ([1.0, 1.0, 1.0], ["gt"]), ([1.0, 1.0, -3.0], ["gt", "any", "lt"])],
)
def test_what_a_program_decides_otherwise_by(value, decided):
    timeline = timeline_of(recorded)
    nodes = list(timeline.nodes)
    y = next(node for node in nodes if timeline.info(node).name == "y")
    branch = rerun_iteration(timeline, timeline.iteration_at(len(timeline)), [Change(y, value)])
    assert [timeline.info(one.node).op.name for one in branch.decisions] == decided
    assert [(one.was, one.now) for one in branch.decisions][:1] == [(True, False)][: len(decided)]
