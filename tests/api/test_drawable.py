"""Everything that can be drawn: tensors in containers, modules with inputs, scripts."""

import collections
import dataclasses
import random
import subprocess
import sys
import threading
import warnings

import numpy
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
    from gviz.render.picture_request import moment_scene

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


def mixed(torch):
    class Mixin:
        pass

    class Net(torch.nn.Module, Mixin):
        def __init__(self):
            super().__init__()
            self.linear, self.dropout = torch.nn.Linear(3, 3), torch.nn.Dropout()

        def forward(self, x):
            random.random()
            numpy.random.rand()
            return self.dropout(self.linear(x))

    return Net()


@ENGINES
def test_a_module_with_more_bases_is_drawn_and_random_numbers_stay(name):
    torch = engine(name)
    module = mixed(torch)

    def states():
        return torch.get_rng_state().tolist(), random.getstate(), numpy.random.get_state()[1].tolist()

    before = states()
    assert "x const" in " ".join(titles(drawn(module, None, torch.ones(2, 3))))
    assert states() == before


def test_a_module_with_more_bases_is_drawn_where_the_other_engine_was_never_imported(tmp_path):
    engine("torch")
    script = tmp_path / "program.py"
    script.write_text(
        "import torch, gviz\nclass Mixin: pass\nclass Net(torch.nn.Linear, Mixin): pass\n"
        "class Other(torch.nn.Module, Mixin):\n    def forward(self, x): return x.exp()\n"
        "print(len(gviz.make_dot(Other(), inputs=torch.ones(2)).source))\n"
        "print(len(gviz.make_dot(torch.nn.DataParallel(Net(2, 2)), inputs=torch.ones(1, 2)).source))\n"
    )
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout.split()) == 2


@ENGINES
def test_a_graph_from_before_has_its_backward_pass_after_the_drawing(name):
    torch = engine(name)
    module = net(torch).eval()
    loss = module(torch.ones(2, 4)).sum()
    versions = [tensor._version for tensor in (*module.parameters(), *module.buffers())]
    gviz.make_dot(module, inputs=torch.ones(2, 4), backward=True)
    assert [tensor._version for tensor in (*module.parameters(), *module.buffers())] == versions
    loss.backward()
    assert module.linear.weight.grad is not None


@ENGINES
def test_what_a_forward_changes_in_its_module_and_inputs_is_changed_in_a_copy(name):
    torch = engine(name)

    class Changing(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.calls = torch.nn.Parameter(torch.ones(3)), []
            self.register_buffer("mean", torch.zeros(1))

        def forward(self, x):
            x += 1
            self.mean = self.mean + 1
            self.calls.append(1)
            with torch.no_grad():
                self.weight.mul_(2)
            torch.set_grad_enabled(False)
            return x

    module, x = Changing(), torch.zeros(3)
    weight, mean = module.weight, module.mean
    gviz.make_dot(module, inputs=x)
    assert module.weight is weight
    assert module.mean is mean
    assert module.calls == []
    assert x.tolist() == [0, 0, 0]
    assert weight.tolist() == [1, 1, 1]
    assert mean.tolist() == [0]
    assert torch.is_grad_enabled()


@ENGINES
def test_a_backward_pass_ends_at_the_inputs(name):
    torch = engine(name)
    encoder, head = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)
    x = torch.ones(4, 3, requires_grad=True)
    h = encoder(x).tanh()
    found = " ".join(titles(drawn(head, None, h, backward=True)))
    assert "input leaf" in found
    assert "tanh" not in found.lower()
    assert x.grad is None
    assert encoder.weight.grad is None
    head(h).sum().backward()
    gviz.make_dot(head, inputs=x, backward=True)
    assert x.grad.shape == (4, 3)
    before = x.grad.clone()
    gviz.make_dot(head, inputs=[x], backward=True)
    assert bool((x.grad == before).all())


@ENGINES
def test_an_operation_in_place_on_an_input_works_as_in_the_program(name):
    torch = engine(name)

    class Head(torch.nn.Module):
        def forward(self, x):
            return x.add_(1) * 2

    leaf = torch.ones(3, requires_grad=True)
    h = leaf * 2
    assert "x = " in " ".join(titles(drawn(Head(), None, h, backward=True)))
    assert h.tolist() == [2, 2, 2]
    assert leaf.grad is None
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        gviz.make_dot(Head(), inputs=leaf)


@ENGINES
def test_attributes_without_a_copy_are_shared_and_stored_results_are_copied(name):
    torch = engine(name)
    module = net(torch)
    module.linear.lock, module.stored = threading.Lock(), module.linear(torch.ones(2, 4))
    assert "tokens const" in " ".join(titles(drawn(module, None, torch.ones(2, 4), backward=True)))
    assert module.linear.weight.grad is None


@ENGINES
def test_what_has_no_copy_is_refused_with_the_way_to_record_it(name):
    torch = engine(name)

    class Single(torch.nn.Module):
        def __deepcopy__(self, memo):
            raise TypeError("one is enough")

        def forward(self, x):
            return next(iter(x)) if isinstance(x, dict) else x

    with pytest.raises(GvizError, match="Single cannot be copied: TypeError: one is enough") as error:
        gviz.make_dot(Single(), inputs=torch.ones(2))
    assert "gviz.record()" in str(error.value.hint)
    with pytest.raises(GvizError, match="the input input cannot be copied"):
        gviz.make_dot(torch.nn.ReLU(), inputs=([torch.ones(2), threading.Lock()],))


@ENGINES
def test_params_name_the_parameters_of_the_copy(name):
    torch = engine(name)
    module = net(torch)
    found = " ".join(titles(drawn(module, {"kernel": module.linear.weight}, torch.ones(2, 4))))
    assert "kernel param" in found


@ENGINES
@pytest.mark.parametrize("mode", ["no_grad", "inference_mode"])
def test_without_autograd_there_is_no_backward_pass_and_the_error_names_the_mode(name, mode):
    torch = engine(name)
    with getattr(torch, mode)():
        with pytest.raises(GvizError, match=f"autograd is off here: {mode}") as error:
            gviz.make_dot(net(torch), inputs=torch.ones(2, 4), backward=True)
        assert f"outside of {mode}" in str(error.value.hint)
        assert "tokens const" in " ".join(titles(drawn(net(torch), None, torch.ones(2, 4))))


@ENGINES
def test_an_operation_in_place_in_inference_mode_is_recorded(name, tmp_path):
    torch = engine(name)
    with gviz.record(tmp_path / "run.gviz"), torch.inference_mode():
        a = torch.zeros(2)
        a += 1
        a[0] = 3
    loaded = gviz.load(tmp_path / "run.gviz")
    assert any("add" in str(loaded.info(node).op.name) for node in loaded.nodes)


def test_the_backward_pass_of_a_complex_result_starts_at_the_sum_of_its_real_parts():
    torch = engine("torch")

    class Spectrum(torch.nn.Module):
        def forward(self, x):
            return torch.complex(x, 5 * x), x

    x = torch.ones(2, requires_grad=True)
    of = drawn(Spectrum(), None, x, backward=True)
    assert any(phase.kind == "backward" for phase in of.timeline.phases)
    source = gviz.make_dot(Spectrum(), inputs=x, backward=True).source
    assert ".grad: [2 2]" in source


def test_a_scripted_module_keeps_its_grad():
    torch = engine("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = torch.jit.script(torch.nn.Linear(3, 1))
    gviz.make_dot(module, inputs=torch.ones(2, 3), backward=True)
    assert module.weight.grad is None


@ENGINES
def test_the_copying_is_no_part_of_a_recorded_program(name, tmp_path):
    torch_path = engine(name).__name__
    script = tmp_path / "program.py"
    script.write_text(
        f"import gviz, {torch_path} as torch\n"
        "net, x = torch.nn.Linear(3, 1), torch.ones(2, 3, requires_grad=True)\n"
        "assert 'clone' not in gviz.make_dot(net, inputs=x, backward=True, level='nodes').source.lower()\n"
    )
    command = [sys.executable, "-m", "gviz", "record", str(script)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


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
    assert any(title.startswith("loss = sum") for title in titles(of))
    assert any(phase.kind == "backward" for phase in of.timeline.phases)
    with pytest.raises(GvizError, match="no script"):
        drawn(tmp_path / "missing.py")


@ENGINES
def test_an_operation_that_was_not_recorded_is_a_name_where_nothing_is_known_of_its_values(name):
    torch = engine(name)
    x = torch.ones(2, 3, requires_grad=True)
    source = gviz.make_dot((x * 2).exp().sum()).source
    assert "not stored<" not in source
    (line,) = (line for line in source.splitlines() if "exp #" in line)
    assert "grad" not in line
    (line,) = (line for line in source.splitlines() if ">x " in line or "leaf #" in line)
    assert ".grad" not in line  # no backward pass was run
    full = gviz.make_dot((x * 2).exp().sum(), show_attrs=True).source
    (line,) = (line for line in full.splitlines() if "exp #" in line)
    assert "no value" in line or "not stored" in line
