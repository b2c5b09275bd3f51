"""What a custom function saves has a name and a shape, and a box of its own, in PyTorch and in the built-in engine."""

import pytest

import gviz
import gviz.engine
from gviz import trace
from gviz.explain.saved_memory import saved_memory
from gviz.explain.value_computation import saved_names
from gviz.render.boxes.graph_options import Options
from gviz.render.picture_request import moment_scene


def program(torch):
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, by):
            ctx.save_for_backward(by)
            return x * by

        @staticmethod
        def backward(ctx, g):
            (by,) = ctx.saved_tensors
            return g * by, None

    class Sinh(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            p, n = torch.exp(x), torch.exp(-x)
            ctx.save_for_backward(p, n)
            return (p - n) / 2

        @staticmethod
        def backward(ctx, g):
            p, n = ctx.saved_tensors
            return g * (p + n) / 2

    class Many(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *xs):
            ctx.save_for_backward(*xs)
            return xs[0] + xs[1]

        @staticmethod
        def backward(ctx, g):
            return g, g

    x = torch.ones(3, requires_grad=True)
    (Scale.apply(x, torch.ones(3)) + Sinh.apply(x) + Many.apply(x, x)).sum().backward()


def hooked(torch):
    layer = torch.nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda module, sent, arrived: None)
    layer(torch.ones(1, 2, requires_grad=True)).sum().backward()


def recorded(folder, run):
    with gviz.record(folder / "run.gviz"):
        run()
    return trace.load(folder / "run.gviz")


@pytest.fixture(params=["engine", pytest.param("torch", marks=pytest.mark.torch)])
def torch(request):
    return gviz.engine if request.param == "engine" else pytest.importorskip("torch")


def test_saved_tensors_have_the_names_of_the_source_and_the_shapes_of_what_they_are(torch, tmp_path):
    timeline = recorded(tmp_path, lambda: program(torch))
    picture = moment_scene(timeline, len(timeline), Options(saved=True, content="all"))
    boxes = {
        box.title.removeprefix("saved: "): [row.text for row in box.rows]
        for box in picture.boxes
        if box.role == "saved"
    }
    assert boxes["by"] == boxes["p"] == boxes["n"] == ["(3,) 12 B"]
    assert boxes["saved_tensors"] == []


def test_the_result_that_a_setup_saves_has_the_name_of_a_result(torch, tmp_path):
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return torch.exp(x)

        @staticmethod
        def setup_context(ctx, inputs, output):
            (x,) = inputs
            ctx.save_for_backward(x, output)

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[1]

    timeline = recorded(tmp_path, lambda: Exp.apply(torch.ones(3, requires_grad=True)).sum().backward())
    node = next(node for node in timeline.nodes if timeline.info(node).op.name.startswith("Exp"))
    assert saved_names(timeline, node) == ("x", "result")


def test_the_memory_of_a_function_counts_what_its_forward_computed(torch, tmp_path):
    timeline = recorded(tmp_path, lambda: program(torch))
    names = {timeline.info(one.output[0]).name for one in saved_memory(timeline, len(timeline)).tensors}
    assert {"p", "n"} <= names


def test_the_function_around_a_module_with_a_backward_hook_is_called_after_the_hook(torch, tmp_path):
    timeline = recorded(tmp_path, lambda: hooked(torch))
    ops = [info.op for info in map(timeline.info, timeline.nodes) if info.created.kind == "op"]
    assert "backward_hook" in [op.name for op in ops]
    assert not any("BackwardHookFunction" in text for op in ops for text in (op.name, op.formula, *op.rules))
    assert "BackwardHookFunctionBackward" in [op.grad_fn for op in ops]
