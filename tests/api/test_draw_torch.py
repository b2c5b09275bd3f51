"""PyTorch's tensors are drawn from the recording that knows them, else from their graph as it stands."""

import re
import traceback
from collections import Counter

import pytest

import gviz
from gviz.errors import GvizError
from gviz.integrations.notebook import bundle
from gviz.render.boxes.graph_options import Options
from tests.adapters.recorded import events_of

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def mlp():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    return (net(torch.ones(5, 3)) ** 2).mean(), dict(net.named_parameters())


def shared():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    one, other = (w * w).chunk(2)
    return (one * other + w.sum()).exp().sum(), {"w": w}


def rewritten():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad

    a, b = (torch.ones(2, 3, requires_grad=True) for _ in range(2))
    y = torch.zeros(2, 3) + Twice.apply(a)
    y[0] = b[1]
    (grad,) = torch.autograd.grad((y**3).sum(), a, create_graph=True)
    return torch.cat([y, grad.relu()]).logsumexp(0).sum(), {"a": a, "b": b}


def text(of, folder, **options):
    """What a picture says."""
    (path,) = gviz.export(of, folder / "graph.txt", force=True, **options)
    return path.read_text()


def behind(loss):
    """The operations and leaves behind a tensor and the lines between them, walked by hand."""
    names, lines, waiting, seen = Counter(), 0, [loss.grad_fn], set()
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        names[type(node).__name__] += 1
        befores = [before for before, _ in node.next_functions if before is not None]
        lines += len(befores)
        waiting += befores
    return names, lines


def as_gviz(loss, params):
    """The same from the picture that gviz makes, where each use of a tensor has a line."""
    source = gviz.make_dot(loss, params, options=Options(split_above=1000, titles="backward")).source
    titles = re.findall(r'^\tn(\d+) \[label=.*?<b><font color="#\w+">([^<]*)</font></b>.*class="([^"]*)"', source, re.M)
    names = Counter(
        "AccumulateGrad" if {"role-leaf", "role-parameter"} & set(roles.split()) else title.partition(" #")[0]
        for _, title, roles in titles
    )
    return names, len(re.findall(r"^\tn\d+(?::\w+)* -> n\d+", source, re.MULTILINE))


@pytest.mark.parametrize("made", [mlp, shared, rewritten])
def test_nodes_and_edges_are_those_that_pytorch_made(made):
    loss, params = made()
    assert as_gviz(loss, params) == behind(loss)


def test_an_unrecorded_graph_has_the_values_that_are_at_hand_and_no_others(tmp_path):
    loss, params = mlp()
    first = params["0.bias"]
    first.grad = torch.full((4,), 0.125)
    shown = text(loss, tmp_path, params=params)
    for name in params:
        assert f"{name} param" in shown
    assert re.search(r"^0\.bias param #\d+ .*\.grad .*0\.125\b", shown, re.MULTILINE)
    assert re.search(r"^tanh #\d+ +\(5,4\) not stored\b", shown, re.MULTILINE)
    assert re.search(rf"^mean #\d+ +{loss.item():.4g}( |$)", shown, re.MULTILINE)


def test_what_a_pass_released_is_not_shown_as_kept():
    w = torch.ones(2, requires_grad=True)
    loss = (w.exp() * torch.ones(2)).sum()
    assert "released" not in gviz.make_dot(loss, show_saved=True).source
    loss.backward()
    assert gviz.make_dot(loss, show_saved=True).source.count("released") >= 1
    assert "released" not in gviz.make_dot(w.sum(), show_saved=True).source, "a sum keeps nothing"


def test_arguments_and_saved_tensors_are_shown_as_torchviz_does():
    source = gviz.make_dot(mlp()[0], show_attrs=True, show_saved=True).source
    for word in ("exponent", "saved: mat1", "saved: result", "saved: self"):
        assert word in source


def test_a_drawing_leaves_nothing_in_the_graph():
    loss, _ = shared()
    gviz.make_dot(loss)
    assert dict(loss.grad_fn.metadata) == {}
    one, other = torch.ones(1), torch.zeros(1)
    gviz.make_dot(one)
    torch.utils.swap_tensors(one, other)  # refuses what anybody refers to weakly
    assert one.item() == 0


def test_a_drawing_while_recording_leaves_no_trace_in_it():
    def program(draw):
        loss, _ = made
        if draw:
            assert "edge-forward" in gviz.make_dot(loss).source
        x = torch.ones(2, requires_grad=True)
        y = x * x
        if draw:
            assert "edge-forward" in gviz.make_dot(y).source
        (y.sum() + loss).backward()
        return x, y

    said = []
    for draw in (True, False):
        made = shared()
        log = events_of(lambda draw=draw: program(draw))
        said.append([(type(event).__name__, getattr(event, "node", None)) for event in log])
    assert [one for one in said[0] if one[0] != "StackSeen"] == [one for one in said[1] if one[0] != "StackSeen"]


def test_a_recorded_tensor_is_drawn_from_its_recording(tmp_path):
    with gviz.record(tmp_path / "run.gviz") as made:
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        apart = w * 5
        y = (w.exp()).sum()
        during = text(y, tmp_path)
        y.backward()
    after = text(y, tmp_path)
    for shown in (during, after, text(y, tmp_path, params={"weight": w})):
        assert re.search(r"^exp #\d+ +\[2\.72 7\.39\]", shown, re.MULTILINE)
        assert "mul" not in shown, "what does not lead to it"
    assert "+= [2.72 7.39]" in after
    assert "+=" not in during
    assert "weight leaf" in text(y, tmp_path, params={"weight": w})
    source = gviz.make_dot(y, {"weight": w}).source
    assert "weight leaf" in source
    assert "7.389" in source
    assert "mul" not in source
    assert "mul" in text(made, tmp_path)
    made.path.unlink()
    assert "not stored" in text(apart.exp().sum(), tmp_path)
    assert "not stored" in text(y, tmp_path), "its graph as it stands"


def test_a_tensor_of_an_earlier_iteration_is_drawn_in_that(tmp_path):
    losses = []
    with gviz.record(tmp_path / "run.gviz"):
        w = torch.tensor(2.0, requires_grad=True)
        for factor in (3.0, 5.0):
            losses.append(w * factor)
            losses[-1].backward()
    for loss, value in zip(losses, ("6", "10"), strict=True):
        assert re.search(rf"mul #\d+ +{value} ", text(loss, tmp_path))


def test_show_opens_a_recorded_tensor_where_it_was_made_and_others_as_they_stand(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("gviz.api.show.open_debugger", lambda timeline, how, plain: opened.append((timeline, how.at)))
    monkeypatch.setattr("gviz.api.show.view", lambda path, at: opened.append((gviz.load(path), at)))
    with gviz.record(tmp_path / "run.gviz") as made:
        y = torch.tensor(2.0, requires_grad=True).exp()
        gviz.show(y)
        gviz.show(made)
    gviz.show(shared()[0])
    (recorded, at), (whole, start), (graph, end) = opened
    assert recorded.info(recorded.at(at).actor).op.name == "exp"
    assert start is None
    assert len(whole) >= at
    assert end == len(graph)


def test_a_notebook_shows_tensors_with_a_graph():
    loss, _ = shared()
    shown = bundle(loss)
    assert shown["text/plain"] == repr(loss)
    assert "<svg" in shown["image/svg+xml"]
    assert bundle(torch.ones(2)) == {"text/plain": repr(torch.ones(2))}


@pytest.mark.parametrize("thing", [3, None, [1], ()])
def test_anything_else_is_refused_with_what_can_be_drawn(thing, tmp_path):
    for draw in (gviz.make_dot, lambda it: gviz.export(it, tmp_path / "a.svg"), gviz.show):
        with pytest.raises(GvizError, match="gviz cannot draw") as refused:
            draw(thing)
        assert "PyTorch" in refused.value.hint
        assert "recording" in refused.value.hint
        assert refused.value.hint in "".join(traceback.format_exception(refused.value)), "also where nobody catches it"


def test_a_module_without_inputs_is_refused_with_what_to_add(tmp_path):
    for draw in (gviz.make_dot, lambda it: gviz.export(it, tmp_path / "a.svg"), gviz.show):
        with pytest.raises(GvizError, match="Linear is a module, and has no graph before it is called") as refused:
            draw(torch.nn.Linear(1, 1))
        assert "inputs=x" in refused.value.hint
