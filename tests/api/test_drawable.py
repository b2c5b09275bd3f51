"""Everything that can be drawn: tensors in containers, modules with inputs, scripts."""

import collections
import dataclasses

import pytest

import gviz
from gviz.api.drawable import drawn
from gviz.errors import GvizError

pytestmark = pytest.mark.torch
ENGINES = pytest.mark.parametrize("name", ["torch", "gviz.engine"])


def engine(name):
    return pytest.importorskip(name)


@dataclasses.dataclass
class Losses:
    loss: object
    logits: object
    note: str = "no tensor"


class ModelOutput(collections.OrderedDict):
    pass


Pair = collections.namedtuple("Pair", "loss logits")
CONTAINERS = {
    "list": lambda loss, logits: [loss, logits],
    "tuple": lambda loss, logits: (loss, logits),
    "dict": lambda loss, logits: {"loss": loss, "logits": logits},
    "nested": lambda loss, logits: {"loss": loss, "aux": [logits, {"none": None}]},
    "dataclass": Losses,
    "ModelOutput": lambda loss, logits: ModelOutput(loss=loss, logits=logits),
    "namedtuple": Pair,
}


@ENGINES
@pytest.mark.parametrize("kind", CONTAINERS)
def test_the_tensors_in_a_container_are_drawn(tmp_path, name, kind):
    torch = engine(name)
    x = torch.ones(2, requires_grad=True)
    thing = CONTAINERS[kind]((x * 2).sum(), x.exp())
    source = gviz.make_dot(thing).source.lower()
    assert "exp" in source
    assert "sum" in source
    (path,) = gviz.export(thing, tmp_path / "p.svg", note=lambda _: None)
    assert b"<svg" in path.read_bytes()


@ENGINES
def test_a_container_without_tensors_is_refused(name):
    engine(name)
    with pytest.raises(GvizError, match="cannot draw"):
        gviz.make_dot([1, None])


def net(torch):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.norm = torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3)

        def forward(self, tokens, mask=None):
            h = self.norm(self.linear(tokens))
            return h if mask is None else h * mask

    return Net()


def titles(of):
    from gviz.render.boxes.graph_options import Options
    from gviz.render.request import moment_scene

    return [box.title for box in moment_scene(of.timeline, of.n, Options()).boxes]


@ENGINES
@pytest.mark.parametrize("as_dict", [False, True])
def test_the_inputs_of_a_module_have_the_names_of_its_forward(name, as_dict):
    torch = engine(name)
    tokens, mask = torch.ones(2, 4), torch.ones(2, 3)
    of = drawn(net(torch), None, {"tokens": tokens, "mask": mask} if as_dict else (tokens, mask))
    found = " ".join(titles(of))
    assert "tokens const" in found
    assert "mask const" in found
    first = of.timeline.info(next(node for node in of.timeline.nodes if of.timeline.info(node).name == "tokens"))
    assert first.created.scope == 0


@ENGINES
def test_a_module_stays_as_it_was(name):
    torch = engine(name)
    module = net(torch)
    module.linear.weight.grad = torch.ones(3, 4)
    of = drawn(module, None, torch.ones(2, 4), backward=True)
    assert any(phase.kind == "backward" for phase in of.timeline.phases)
    assert module.linear.bias.grad is None
    assert bool((module.linear.weight.grad == 1).all())
    assert bool((module.norm.running_mean == 0).all())
    assert int(module.norm.num_batches_tracked) == 0


@ENGINES
def test_a_module_without_inputs_says_how_to_give_them(name):
    torch = engine(name)
    with pytest.raises(GvizError, match="before it is called") as error:
        gviz.make_dot(net(torch))
    assert "inputs=x" in str(error.value.hint)
    with pytest.raises(GvizError, match="do not fit"):
        gviz.make_dot(net(torch), inputs=())
    with pytest.raises(GvizError, match="inputs are for a module"):
        gviz.make_dot(torch.ones(2, requires_grad=True) * 2, inputs=torch.ones(2))
    with pytest.raises(GvizError, match="requires a gradient"):
        gviz.make_dot(torch.nn.ReLU(), inputs=torch.ones(2), backward=True)


def test_a_script_is_run_and_drawn(tmp_path):
    engine("torch")
    script = tmp_path / "small.py"
    script.write_text(
        "import sys, torch\nx = torch.ones(3, requires_grad=True)\n"
        "loss = (x * 2).sum()\nif __name__ == '__main__':\n    loss.backward()\n    sys.exit(0)\n"
    )
    of = drawn(str(script))
    assert any(title.startswith("loss = Sum") for title in titles(of))
    assert any(phase.kind == "backward" for phase in of.timeline.phases)
    with pytest.raises(GvizError, match="no script"):
        drawn(tmp_path / "missing.py")


@ENGINES
def test_an_operation_that_was_not_recorded_is_a_name_where_nothing_is_known_of_its_values(name):
    torch = engine(name)
    x = torch.ones(2, 3, requires_grad=True)
    source = gviz.make_dot((x * 2).exp().sum()).source
    assert "not stored<" not in source
    (line,) = (line for line in source.splitlines() if "Exp #" in line)
    assert "grad" not in line
    (line,) = (line for line in source.splitlines() if ">x " in line or "leaf #" in line)
    assert ".grad" in line
    full = gviz.make_dot((x * 2).exp().sum(), show_attrs=True).source
    (line,) = (line for line in full.splitlines() if "Exp #" in line)
    assert "grad" in line
