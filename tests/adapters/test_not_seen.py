"""What no event can show is said, once, and nothing is said where all is seen."""

import sys
from pathlib import Path

import pytest

from gviz.events import NOT_SEEN, Warned
from gviz.explain import node_facts
from gviz.explain.node_facts import INSIDE_CALL, NodeView
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline

sys.path.insert(0, str(Path(__file__).parent))
from recorded import RELEASE, events_of, of_kind  # beside this file

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
functional = torch.nn.functional


def leaf():
    return torch.ones(2, 3, requires_grad=True)


def transformed():
    return torch.func.grad(lambda x: (x * x).sum())(torch.ones(2))


def batched():
    x = leaf()
    (found,) = torch.autograd.grad(x * 2 + x * 3, x, torch.eye(6).view(6, 2, 3), is_grads_batched=True)
    assert torch.equal(found, 5 * torch.eye(6).view(6, 2, 3))


def compiled():
    return torch.compile(lambda x: x * 2, backend="eager")(leaf())


def loaded():
    return list(torch.utils.data.DataLoader(torch.ones(4, 2), num_workers=1))


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (lambda: functional.normalize(leaf()), "of several operations"),
        (transformed, "within a torch.func transform"),
        (batched, "or a batch of gradients"),
        (compiled, "a compiled region is one node"),
        (loaded, "what processes do that the program starts"),
    ],
)
def test_it_is_said_once(program, words):
    said = [event for event in of_kind(events_of(lambda: (program(), program())), Warned) if words in event.message]
    assert [event.category for event in said] == [NOT_SEEN]


@pytest.mark.parametrize(
    "program",
    [
        lambda: torch.nn.Linear(3, 1)(leaf()).sum().backward(),
        lambda: torch.nn.BatchNorm1d(3)(leaf()),
        lambda: (leaf().exp() * 2).sum().backward(),
    ],
)
def test_nothing_is_said_where_all_is_seen(program):
    assert not of_kind(events_of(program), Warned)


@pytest.mark.parametrize(
    ("others", "is_told"),
    [(lambda: None, True), (lambda: loaded() and compiled(), True), (transformed, False)],
    ids=["nothing else", "what has other nodes", "tensors without numbers"],
)
def test_a_node_without_a_value_says_so_where_only_calls_hide_them(others, is_told):
    timeline = Timeline(MemoryLog(events_of(lambda: (others(), functional.normalize(leaf())))))
    last = timeline.at(len(timeline))
    views = [NodeView(timeline, last, node, last.state(node)) for node in timeline.nodes]
    [hidden] = [view for view in views if view.info.op.name == "expand"]
    told = [part.text for fact in node_facts.value_facts(hidden, hidden.state) for part in fact.parts]
    assert (INSIDE_CALL in told) == (is_told and RELEASE >= (2, 6))  # before that not even a shape is known
