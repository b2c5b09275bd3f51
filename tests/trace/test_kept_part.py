"""What is kept of a run, its last iterations, says of each moment what the whole recording says, of both engines."""

import importlib

import pytest

import gviz
from gviz.explain.check import check
from gviz.explain.event_description import sentence
from gviz.explain.typed_question import answer
from gviz.explain.value_computation import computation
from gviz.query.nodes import NamedNodes

ENGINES = [pytest.param("gviz.engine", id="builtin"), pytest.param("torch", marks=pytest.mark.torch)]


def training(torch):
    """What a loop keeps: its last loss, with the graph that made it of parameters that have been stepped since."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    data = torch.ones(4, 2)
    for _ in range(12):
        optimizer.zero_grad()
        loss = (model(data) ** 2).mean()
        loss.backward()
        optimizer.step()
    return model, optimizer, loss


def uncleared(torch):
    """Gradients that add up, two leaves in one memory, a view of a buffer that is written to, one frozen in turns."""
    weight = torch.tensor([[0.5, 0.1], [0.2, 0.4]], requires_grad=True)
    other, buffer = torch.ones(2, requires_grad=True), torch.zeros(6)
    part = buffer[2:4]
    alias, seen = weight.detach(), []
    for step in range(12):
        other.requires_grad_(step % 2 == 0)
        out = (weight @ other).tanh()
        seen = [*seen[-1:], out * weight.sum()]
        out.sum().backward()
        with torch.no_grad():
            weight.sub_(weight.grad * 0.1)
            part.add_(1.0)
    return alias, buffer, seen


def diverging(torch):
    """A weight that is nan from the sixth iteration on."""
    weight = torch.tensor([1.0, 2.0], requires_grad=True)
    for step in range(12):
        weight.grad = None
        loss = (weight * weight).sum()
        loss.backward()
        with torch.no_grad():
            weight.mul_(float("nan") if step == 5 else 0.5)
    return weight, loss


PROGRAMS = (training, uncleared, diverging)


def recorded(path, engine, program, **options):
    torch = importlib.import_module(engine)
    with gviz.record(path, **options):
        held = program(torch)
    del held
    return gviz.load(path)


def what_is_there(timeline, n, nodes):
    """Of each living node: its name, and of each of its outputs the value, the version and the ``.grad``."""
    there = {}
    for node, state in zip(nodes, timeline.at(n).states(nodes), strict=True):
        if state is not None and not state.freed:
            held = [(output.value, output.version, output.grad) for output in state.outputs]
            there[node] = timeline.nodes.name(node), state.requires_grad, held
    return there


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("last", [1, 3])
def test_every_moment_that_was_kept_is_as_in_the_whole(tmp_path, engine, program, last):
    whole = recorded(tmp_path / "whole.gviz", engine, program)
    kept = recorded(tmp_path / "kept.gviz", engine, program, last=last)
    again, shift = kept.dropped.again, kept.dropped.events - kept.dropped.again
    assert 0 < again < len(kept) == len(whole) - shift
    for n in range(again, len(kept) + 1):
        assert n == again or kept.event(n) == whole.event(n + shift)
        assert what_is_there(kept, n, kept.nodes) == what_is_there(whole, n + shift, whole.nodes), n
    kept_parts = [(part.start + shift, part.end + shift) for part in kept.iterations]
    assert kept_parts == [(part.start, part.end) for part in whole.iterations[-last:]]
    first, *others = [(phase.start + shift, phase.end + shift, phase.kind) for phase in kept.phases]
    phases = [(phase.start, phase.end, phase.kind) for phase in whole.phases if phase.end > again + shift]
    assert first == (max(phases[0][0], again + shift + 1), *phases[0][1:])
    assert others == phases[1:]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_what_is_said_again_is_said_truly(tmp_path, engine, program):
    whole = recorded(tmp_path / "whole.gviz", engine, program)
    kept = recorded(tmp_path / "kept.gviz", engine, program, last=2)
    checked = 0
    for node in kept.nodes:
        if kept.info(node).born <= kept.dropped.again and kept.info(node).created.kind == "op":
            for now, then in zip(computation(kept, node).operands, computation(whole, node).operands, strict=True):
                if now.node:
                    assert (now.node, now.value) == (then.node, then.value)
                    checked += 1
            assert computation(kept, node).result == computation(whole, node).result
    assert checked or program is diverging


@pytest.mark.parametrize("engine", ENGINES)
def test_a_leaf_begins_with_what_it_holds_where_nothing_older_needs_less(tmp_path, engine):
    kept = recorded(tmp_path / "kept.gviz", engine, diverging, last=2)
    first = sentence(kept, 1)
    assert first.startswith("event 1, from before the part that was kept, node #1 weight: leaf")
    assert "nan nan" in first
    assert ", forward" in sentence(kept, kept.dropped.again + 1)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_nan_older_than_what_was_kept_is_not_said_to_be_born_there(tmp_path, engine):
    kept = recorded(tmp_path / "kept.gviz", engine, diverging, last=2)
    found, *others = check(kept)
    assert (found.finding.kind, others) == ("nan-born", [])
    answers = [answer(NamedNodes(kept), about, len(kept)) for about in ("nan", "weight.grad")]
    for one in (found.finding, *answers):
        assert "was nan already where this recording begins" in one.text
        assert any("it is older than the part that was kept" in part.text for part in one.parts)


@pytest.mark.parametrize("engine", ENGINES)
def test_one_that_is_not_older_is_still_found(tmp_path, engine):
    kept = recorded(tmp_path / "kept.gviz", engine, diverging, last=8)
    assert kept.dropped.events > 0
    (found,) = check(kept)
    assert found.finding.text.startswith("the first nan appears in")
