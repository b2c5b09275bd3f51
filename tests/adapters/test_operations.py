import subprocess
import sys

import pytest

from gviz.events import NodeCreated, OpSeen
from gviz.explain.value_computation import computation
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline
from tests.adapters.recorded import events_of, of_kind

CURRENT = "from gviz.engine import operation_table as table; print(table.PATH.read_text() == table.text())"


def test_the_table_of_operations_is_current():
    said = subprocess.run([sys.executable, "-c", CURRENT], capture_output=True, text=True)  # no test's own operations
    assert said.stdout == "True\n", f"run python -m gviz.engine.operation_table {said.stderr}"


def compiled(path):
    names = {}
    exec(compile("def doubled(x):\n    return x * 2\n", path, "exec"), names)
    return names["doubled"]


@pytest.mark.torch
def test_what_only_reads_as_a_part_of_pytorch_is_a_step_of_the_program():
    import torch

    of_pytorch, own = compiled(f"{torch.__path__[0]}/optim/doubled.py"), compiled("/home/me/doubled.py")
    x = torch.ones(2)
    for function, seen in ((of_pytorch, []), (own, ["mul"])):
        log = events_of(lambda function=function: function(x))
        assert [event.name for event in of_kind(log, OpSeen) if event.name == "mul"] == seen


@pytest.mark.torch
def test_arguments_have_the_names_that_the_program_knows():
    import torch

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            return x * factor

        @staticmethod
        def backward(ctx, g):
            return g, None

    class Shifted(torch.autograd.Function):
        @staticmethod
        def forward(x, by):
            return x + by

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return g, None

    x = torch.ones(2, 3)

    def program():
        w = x.clone().requires_grad_()
        Scaled.apply(w, 3), Shifted.apply(w, 2), torch.ops.aten.sum.dim_IntList(x, [0], True), x.new_zeros(3, 2)

    log = events_of(program)
    ops = {event.op: event.name for event in of_kind(log, OpSeen)}
    given = {ops[event.op]: dict(event.attrs) for event in of_kind(log, NodeCreated)}
    assert given["Scaled"] == {"factor": 3}
    assert given["Shifted"] == {"by": 2}
    assert given["sum"] == {"dim": (0,), "keepdim": True}
    assert given["new_zeros"] == {"size": (3, 2)}


@pytest.mark.torch
def test_what_is_not_tracked_is_told_with_the_arguments_it_has_by_itself():
    import torch

    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])

    def program():
        x.norm(), x.norm(float("inf")), x.norm("nuc"), x.std(), x.topk(1), torch.cat([x, x]), x.clamp(0), x.amax()
        x.std(0)

    timeline = Timeline(MemoryLog(events_of(program)))
    told = [computation(timeline, node).formula for node in timeline.nodes if timeline.info(node).created.inputs]
    number = "[[1 2] [3 4]] (x)"
    assert told == [
        f"size of {number} over all dims: (sum of |{number}|**2)**(1 / 2)",
        f"size of {number} over all dims: the largest |{number}|",
        f"norm({number}, p='nuc', dim=None, keepdim=False, dtype=None)",
        f"standard deviation of {number} over all dims",
        f"the top 1 of {number} along dim -1",
        "tensors joined along dim 0",
        f"{number}, at least 0",
        f"amax of {number} over all dims",
        f"standard deviation of {number} over dim 0",
    ]


@pytest.mark.torch
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_a_reduction_is_told_as_a_program_gives_it(reduction):
    import torch

    def program():
        scores = torch.zeros(2, 3, requires_grad=True)
        torch.nn.functional.cross_entropy(scores, torch.tensor([0, 1]), reduction=reduction).sum().backward()

    log = events_of(program)
    told = [dict(event.attrs).get("reduction") for event in of_kind(log, NodeCreated)]
    assert [word for word in told if word is not None] == [reduction]


@pytest.mark.torch
@pytest.mark.parametrize("is_in_place", [False, True], ids=["new", "in place"])
@pytest.mark.parametrize("sign", ["+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>"])
def test_an_operator_has_one_name_on_both_engines(sign, is_in_place):
    import torch

    import gviz.engine

    def names(engine):
        def program():
            whole = {"dtype": engine.int64} if sign in "&|^<<>>" else {}
            given = {
                "a": engine.tensor([5, 6], **(whole or {"dtype": engine.float32})),
                "b": engine.tensor([2, 3], **whole),
            }
            exec(f"a {sign}= b" if is_in_place else f"c = a {sign} b", given)

        return [event.name for event in of_kind(events_of(program), OpSeen)]

    assert names(torch) == names(gviz.engine) != []
