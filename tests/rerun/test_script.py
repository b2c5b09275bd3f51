"""A moment as a script: run alone it gives what was recorded, and says where it does not."""

import re

import pytest
from recording import timeline_of
from rerun.doubled import Doubled
from rerun.scripts import run

import gviz.engine as torch
from gviz.engine import nn
from gviz.errors import GvizError
from gviz.query.nodes import NamedNodes
from gviz.rerun.checked_script import SAME, isolated
from gviz.rerun.reproduction_script import script


def product():
    x = torch.tensor(3.0, requires_grad=True)
    b = (x * -2.0) * x
    loss = b / 4 + (1 - x) ** 2
    loss.backward()


def parts():
    x = torch.tensor([[1.0, 5.0, 2.0], [4.0, 0.5, -1.0]], requires_grad=True)
    rows = torch.tensor([1, 0, 1])
    found, _ = torch.max(x[:, 1:], dim=1)
    y = torch.cat([found, x[rows, rows], x.reshape(-1)[2:5]])
    torch.sqrt(y.abs() + 1).sum().backward()


def accumulating():
    w = torch.tensor([1.0, -2.0], requires_grad=True)
    h = torch.tanh(w * torch.tensor([0.5, 3.0]))
    h.backward(torch.tensor([1.0, 10.0]), retain_graph=True)
    h.sum().backward()


def net():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(3, 4), nn.LeakyReLU(0.2), nn.Dropout(0.5), nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(2):
        optimizer.zero_grad()
        out = model(torch.randn(5, 3, dtype=torch.float32))
        loss = nn.functional.cross_entropy(out, torch.tensor([0, 1, 1, 0, 1]))
        loss.backward()
        optimizer.step()


PROGRAMS = (product, parts, accumulating, net)


def tracked(timeline, iteration):
    return [node for node in timeline.nodes.of(iteration) if timeline.info(node).created.requires_grad]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("package", ["gviz.engine", pytest.param("torch", marks=pytest.mark.torch)])
def test_every_node_of_an_iteration_comes_out_as_recorded(program, package):
    timeline = timeline_of(program)
    for iteration in timeline.iterations:
        last = max(tracked(timeline, iteration))
        for node in tracked(timeline, iteration) if package == "gviz.engine" else [last]:
            code, said = run(script(timeline, iteration.end, node), package)
            assert not code, said
            assert "is as recorded" in said


def test_another_number_is_told():
    timeline = timeline_of(product)
    text = script(timeline, len(timeline), NamedNodes(timeline).last("loss", len(timeline)))
    code, said = run(text.replace("x = torch.tensor(3.0", "x = torch.tensor(4.0"), "gviz.engine")
    assert code
    assert re.search(r"x\.grad is .*, recorded: ", said)


def test_before_a_pass_there_is_none_in_the_script():
    timeline = timeline_of(product)
    loss = NamedNodes(timeline).last("loss", len(timeline))
    assert ".backward(" not in script(timeline, timeline.info(loss).born, loss)
    assert ".backward()" in script(timeline, len(timeline), loss)


def own():
    x = torch.tensor(3.0, requires_grad=True)
    return Doubled.apply(x)


def written():
    x = torch.tensor([3.0, 1.0], requires_grad=True)
    y = x * 2
    y.mul_(3.0)
    y.sum().backward()


def hooked():
    x = torch.tensor([3.0, 1.0], requires_grad=True)
    x.register_hook(lambda grad: grad * 2)
    (x * x).sum().backward()


def chosen():
    x = torch.tensor([3.0, 1.0], requires_grad=True)
    torch.autograd.grad((x * x).sum(), x)


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (own, "no operation of the built-in engine"),
        (written, "in place"),
        (hooked, "a hook"),
        (chosen, "asked for some gradients"),
    ],
)
def test_what_no_script_gives_again_is_refused_with_the_reason(program, why):
    timeline = timeline_of(program)
    with pytest.raises(GvizError, match="again") as refusal:
        script(timeline, len(timeline), max(tracked(timeline, timeline.iterations[-1])))
    assert why in str(refusal.value.why)


def test_a_pass_that_made_a_graph_keeps_it_for_the_next():
    def twice():
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = (x**3).sum()
        y.backward(create_graph=True)
        y.backward()

    timeline = timeline_of(twice)
    text = script(timeline, len(timeline), NamedNodes(timeline).last("y", len(timeline)))
    assert "y.backward(create_graph=True)\n" in text
    assert not run(text, "gviz.engine")[0]
    with pytest.raises(GvizError) as refusal:
        script(timeline, len(timeline), timeline.nodes[-1])
    assert refusal.value.why == "a backward pass made it"


def test_a_script_holds_so_many_numbers_and_no_more(monkeypatch):
    timeline = timeline_of(product)
    loss = NamedNodes(timeline).last("loss", len(timeline))
    monkeypatch.setattr("gviz.rerun.reproduction_script.MOST_ELEMENTS", 6)
    assert script(timeline, len(timeline), loss)  # x, -2, 4, 1, and the loss and x.grad to compare with
    monkeypatch.setattr("gviz.rerun.reproduction_script.MOST_ELEMENTS", 5)
    with pytest.raises(GvizError, match="more than 5 numbers"):
        script(timeline, len(timeline), loss)


def test_numbers_that_were_not_stored_are_missed():
    def large():
        x = torch.ones(3000, requires_grad=True)
        x.sum().backward()

    timeline = timeline_of(large)
    with pytest.raises(GvizError, match="was not stored"):
        script(timeline, len(timeline), 1)


def negative_base():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    small = (-1e-4) ** x
    ((-2.0) ** x + small).sum().backward()


def shadowing():
    all = torch.tensor([1.0, 2.0], requires_grad=True)
    print = all * 3
    SystemExit = (all * print).sum()
    SystemExit.backward()


def names_as_if_given():
    v_2 = torch.tensor([1.0, 2.0], requires_grad=True)
    total = (v_2 * v_2).sum()
    total.backward()


def reset_between_passes():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    x.grad = None
    y.backward()


def flipped():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.flip(0).backward(torch.tensor([1.0, 3.0]))


def without_elements():
    x = torch.ones(0, 3, requires_grad=True)
    (x @ torch.ones(3, 2)).sum().backward()


def one_part():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (part,) = x.split(5)
    part.sum().backward()


def nearly_zero():
    x = torch.tensor([0.1, 0.7, -2.3], requires_grad=True)
    torch.softmax(x, 0).sum().backward()


ODD = (
    negative_base,
    shadowing,
    names_as_if_given,
    reset_between_passes,
    flipped,
    without_elements,
    one_part,
    nearly_zero,
)


@pytest.mark.parametrize("program", ODD)
@pytest.mark.parametrize("package", ["gviz.engine", pytest.param("torch", marks=pytest.mark.torch)])
def test_odd_programs_come_out_as_recorded(program, package):
    timeline = timeline_of(program)
    for node in tracked(timeline, timeline.iterations[-1]):
        code, said = run(script(timeline, len(timeline), node), package)
        assert not code, said
        assert "recorded" in said


@pytest.mark.parametrize(
    ("right", "wrong"), [("-1e-08", "1e-08"), ("torch.empty((0, 3))", "torch.empty((0,))"), ("nan", "1.0")]
)
def test_what_differs_is_no_more_called_the_same(right, wrong):
    names = {}
    exec("from math import inf, isfinite, nan\nimport gviz.engine as torch\n" + SAME, names)
    ours, other = (
        eval(text if "(" in text else f"torch.tensor([{text}, 2e-8], dtype=torch.float64)", names)
        for text in (right, wrong)
    )
    assert names["same"]("x", ours, ours)
    assert not names["same"]("x", other, ours)


def test_a_node_that_nothing_was_computed_for_is_refused():
    timeline = timeline_of(product)
    with pytest.raises(GvizError, match=r"#1 x again") as refusal:
        script(timeline, timeline.info(1).born, 1)
    assert "nothing was computed" in refusal.value.why


def test_what_the_engine_raises_is_a_refusal_with_its_cause(monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("no such tensors here")

    timeline = timeline_of(product)
    monkeypatch.setattr(torch, "tensor", broken)
    with pytest.raises(GvizError) as refusal:
        script(timeline, len(timeline), 3)
    assert "no such tensors here" in refusal.value.why


@pytest.mark.torch
def test_complex_numbers_are_refused_with_their_node(tmp_path):
    import torch as real

    import gviz

    path = tmp_path / "odd.gviz"
    with gviz.record(path):
        z = real.tensor([1 + 1j, 2.0], requires_grad=True)
        (z * z).abs().sum().backward()
    timeline = gviz.load(path)
    said = []
    for node in timeline.nodes:
        with pytest.raises(GvizError) as refusal:
            script(timeline, len(timeline), node)
        said.append(f"{refusal.value} {refusal.value.why}")
    assert any("complex numbers, as #1" in one for one in said), said


@pytest.mark.torch
def test_a_number_to_the_power_of_a_tensor_is_written_in_its_order(tmp_path):
    import torch as real

    import gviz

    with gviz.record(tmp_path / "power.gviz"):
        x = real.tensor([1.0, 2.0], requires_grad=True)
        ((-2.0) ** x).sum().backward()
    timeline = gviz.load(tmp_path / "power.gviz")
    assert "= (-2.0) ** x" in script(timeline, len(timeline), timeline.nodes[1])


def test_what_is_tried_uses_up_no_random_numbers():
    torch.manual_seed(3)
    expected = torch.rand(2).tolist()
    torch.manual_seed(3)
    with isolated():
        torch.rand(2)
    assert torch.rand(2).tolist() == expected


@pytest.mark.torch
def test_what_pytorch_ran_is_written_as_pytorch_takes_it(tmp_path):
    import torch as real

    import gviz

    path = tmp_path / "run.gviz"
    with gviz.record(path):
        x = real.tensor([[1.0, 2.0, 3.0], [4.0, 0.5, -1.0]], requires_grad=True)
        for y in (x.flip(0), x.permute(1, 0), x.repeat((2, 1)), x.sum(0), x[:, 1:], x.reshape(6), x.tile(2), x**-2.0):
            (y * y).sum().backward()
    timeline = gviz.load(path)
    ends = [node for node in timeline.nodes if timeline.info(node).op.name == "sum"][::-1]
    said = [run(script(timeline, len(timeline), node), "torch") for node in ends]
    assert len(said) >= 8
    assert not any(code for code, _ in said), said
