"""How a tensor became another dtype, or came to another device: the trace says from where, to where, and as what."""

import re

import pytest

from gviz.explain.value_computation import computation
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline
from tests.adapters.recorded import RELEASE, events_of

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def elsewhere(**options):
    return torch.empty(2, device="meta", **options)


CASES = (
    (lambda x: x.to("meta"), "from cpu to meta"),
    (lambda x: x.to(torch.device("meta")), "from cpu to meta"),
    (lambda x: x.to(device="meta"), "from cpu to meta"),
    (lambda x: x.to("meta", non_blocking=True), "from cpu to meta"),
    (lambda x: x.to(elsewhere()), "from cpu to meta"),
    (lambda x: x.to("meta", torch.float64), "from cpu to meta as float64"),
    (lambda x: x.to(dtype=torch.float16, device="meta"), "from cpu to meta as float16"),
    (lambda x: x.to(elsewhere(dtype=torch.float64)), "from cpu to meta as float64"),
    (lambda x: x.to(torch.float64), "as float64"),
    (lambda x: x.to(torch.ones(2, dtype=torch.float64)), "as float64"),
    (lambda x: x.type_as(torch.ones(2, dtype=torch.float64)), "as float64"),
    (lambda x: x.type(torch.float16), "as float16"),
    (lambda x: x.double(), "as float64"),
    (lambda x: x.bfloat16(), "as bfloat16"),
    (lambda x: x.long(), "as int64"),
    (lambda x: x.bool(), "as bool"),
    (lambda x: elsewhere().copy_(x), "from cpu to meta"),
    (lambda x: torch.zeros(2, dtype=torch.float64).copy_(x), "as float64"),
    (lambda x: elsewhere(dtype=torch.float16).copy_(x), "from cpu to meta as float16"),
    (lambda x: x.clone().copy_(x), ""),
    (lambda x: x.to(torch.float32, copy=True), ""),
)


@pytest.mark.parametrize("tracked", [True, False])
@pytest.mark.parametrize(("convert", "says"), CASES)
def test_a_conversion_says_from_where_to_where(convert, says, tracked):
    def program():
        x = torch.ones(2, requires_grad=tracked)
        return x, convert(x)

    timeline = Timeline(MemoryLog(events_of(program)))
    made = [node for node in timeline.nodes if timeline.info(node).created.kind == "op"]
    formula = computation(timeline, made[-1]).formula
    assert re.sub(r" \(.*?\)", "", formula) == f"[1 1] {says}".strip()


def test_what_autocast_converts_within_a_call_says_it_too():
    def program():
        x = torch.ones(2, 2, requires_grad=True)
        with torch.autocast("cpu", torch.bfloat16):
            return torch.nn.functional.linear(torch.ones(2, 2), x)

    timeline = Timeline(MemoryLog(events_of(program)))
    converted = [node for node in timeline.nodes if timeline.info(node).op and timeline.info(node).op.name == "to"]
    assert converted
    formulas = [computation(timeline, node).formula for node in converted]
    says = "as bfloat16" if RELEASE >= (2, 6) else "converted"  # before, nothing shows what a node within a call gave
    assert says in formulas[0]
    assert all("as bfloat16" in formula for formula in formulas[1:])


def test_no_argument_of_a_conversion_is_an_input():
    def program():
        x, like = torch.ones(2, requires_grad=True), torch.ones(2, dtype=torch.float64)
        return x.to(like), like.to(x)

    timeline = Timeline(MemoryLog(events_of(program)))
    made = [timeline.info(node).created for node in timeline.nodes]
    assert [len(created.inputs) for created in made if created.kind == "op"] == [1, 1]
