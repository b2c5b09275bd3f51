"""What parameters are called where a program has several models, and tensors that nothing recorded gave it."""

from importlib import import_module
from threading import Thread

import pytest

import gviz
from gviz.events import ScopeEntered
from gviz.explain.node_facts import NodeView, kind_facts
from gviz.explain.why import why
from gviz.query.nodes import NamedNodes
from gviz.query_syntax.place import place
from gviz.source.variables_of_objects import first_name
from gviz.trace.place_matches import PlaceMatcher

TWO = """
generator = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))
generator(x)
judge = nn.Sequential(nn.Linear(2, 1))
judge(x)
generator(x)
"""
OF_OTHER_PATHS = """
encoder = nn.Sequential(nn.Linear(2, 3, bias=False))
head = nn.Linear(3, 1, bias=False)
head(encoder(x))
"""
ONE_AFTER_ANOTHER = """
model = nn.Sequential(nn.Linear(2, 3, bias=False))
model(x)
del model
model = nn.Linear(2, 3, bias=False)
model(x)
"""
IN_AN_OBJECT = """
class Trainer:
    def __init__(self):
        self.policy, self.value = nn.Linear(2, 2), nn.Linear(2, 1)
    def step(self):
        self.policy(x), self.value(x)
Trainer().step()
"""
IN_A_LIST = """
def run(parts):
    for part in parts:
        part(x)
    del part
    return parts
run([nn.Linear(2, 2), nn.Linear(2, 1)])
"""
BY_A_FUNCTION = """
def run(model):
    model(x)
one, other, models = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False), {"third": nn.Linear(2, 1, bias=False)}
run(one), run(other), run(models["third"])
"""
OF_NOBODY = """
kept = set()
for net in (nn.Linear(2, size, bias=False) for size in (1, 2, 3)):
    kept.add(net)
    net(x)
"""
WITHIN_A_MODEL = """
model = nn.ModuleDict({"encoder": nn.Linear(2, 2), "decoder": nn.Linear(2, 1)})
model["encoder"](x), model["decoder"](x)
"""
IN_A_METHOD = """
class Gan(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.judge = nn.Sequential(nn.Linear(2, 2, bias=False)), nn.Linear(2, 1, bias=False)
    def step(self, x):
        return self.judge(self.net(x))
Gan().step(x)
"""
IN_A_FUNCTION = """
class Gan(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 2, bias=False))
def step(model, x):
    return model.net(x)
step(Gan(), x)
"""
IN_A_LIST_OF_A_MODEL = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)]
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
Net()(x)
"""
WITH_METHODS_OF_ITS_OWN = """
def asked(*arguments, **named):
    raise AssertionError("nobody but the program calls this")
class Net(nn.Module):
    named_parameters = parameters = named_modules = modules = named_children = children = __eq__ = asked
    __hash__ = None
    def __init__(self):
        layer(x)
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 2, bias=False), layer)
    def forward(self, x):
        return self.layers(x)
layer = nn.Linear(2, 1, bias=False)
net = Net()
net(x).sum().backward()
"""
ALONE = """
model = nn.Linear(2, 2)
model(x)
model(x)
"""


def names(text, framework, path, **options):
    torch = import_module(framework)
    code = compile(text, "model.py", "exec")
    with gviz.record(path, **options):
        exec(code, {"nn": torch.nn, "x": torch.ones(1, 2)})
    timeline = gviz.load(path)
    return [timeline.info(n).name for n in timeline.nodes if timeline.info(n).created.kind == "parameter"]


@pytest.mark.parametrize("framework", ["gviz.engine", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (TWO, ["generator.0.weight", "generator.0.bias", "generator.1.weight", "generator.1.bias", "judge.0.weight",
               "judge.0.bias"]),
        (OF_OTHER_PATHS, ["encoder.0.weight", "head.weight"]),
        (ONE_AFTER_ANOTHER, ["0.weight", "weight"]),
        (IN_AN_OBJECT, ["policy.weight", "policy.bias", "value.weight", "value.bias"]),
        (IN_A_LIST, ["parts[0].weight", "parts[0].bias", "parts[1].weight", "parts[1].bias"]),
        (BY_A_FUNCTION, ["one.weight", "other.weight", "models['third'].weight"]),
        (OF_NOBODY, ["Linear.weight", "net.weight", "Linear_3.weight"]),
        (WITHIN_A_MODEL, ["model.encoder.weight", "model.encoder.bias", "model.decoder.weight", "model.decoder.bias"]),
        (IN_A_METHOD, ["net.0.weight", "judge.weight"]),
        (IN_A_FUNCTION, ["net.0.weight"]),
        (WITH_METHODS_OF_ITS_OWN, ["layer.weight", "net.layers.0.weight"]),
        (ALONE, ["weight", "bias"]),
    ],
)  # fmt: skip
def test_models_are_told_apart_by_their_variables(program, expected, framework, tmp_path):
    assert names(program, framework, tmp_path / "t.gviz") == expected


@pytest.mark.torch
def test_a_model_is_not_asked_for_its_parameters_where_passes_alone_are_recorded(tmp_path):
    called = names(WITH_METHODS_OF_ITS_OWN, "torch", tmp_path / "t.gviz", phase="backward")
    assert sorted(called) == ["layer.weight", "net.layers.0.weight"]


@pytest.mark.parametrize(("program", "found"), [(OF_OTHER_PATHS, True), (TWO, False)])
def test_a_path_in_its_model_finds_the_parameter_if_one_model_alone_has_it(program, found, tmp_path):
    assert "0.weight" not in names(program, "gviz.engine", tmp_path / "t.gviz")
    timeline = gviz.load(tmp_path / "t.gviz")
    named, end = NamedNodes(timeline), len(timeline)
    node = named.of_a_module("0.weight", end)
    assert node == (named.last("encoder.0.weight", end) if found else 0)
    assert named.of_a_module("weight", end) == 0


def test_no_code_of_the_program_runs_where_a_holder_is_looked_for():
    class Touchy:
        def __getattribute__(self, name):
            raise AssertionError(name)

    touchy = Touchy()
    nobody = first_name(object())
    assert nobody == ""
    assert first_name(touchy) == "touchy"


PARTS = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(2, 1), nn.Sequential(nn.Linear(1, 2))
    def forward(self, x):
        return self.decoder(self.encoder(x))
model = Model()
model(x)
model.decoder(model.encoder(x))
"""


@pytest.mark.parametrize("framework", ["gviz.engine", pytest.param("torch", marks=pytest.mark.torch)])
def test_a_part_of_a_model_has_its_path_when_it_is_called_alone(framework, tmp_path):
    names(PARTS, framework, tmp_path / "t.gviz")
    timeline = gviz.load(tmp_path / "t.gviz")
    paths = [event.name for _, event in timeline.select((ScopeEntered,))]
    within = ["Model.encoder", "Model.decoder", "Model.decoder.0"]
    assert paths == ["Model", *within, *within]


@pytest.mark.parametrize("framework", ["gviz.engine", pytest.param("torch", marks=pytest.mark.torch)])
def test_a_part_that_a_method_of_its_model_calls_has_its_path_in_it(framework, tmp_path):
    names(IN_A_METHOD, framework, tmp_path / "t.gviz")
    paths = [event.name for _, event in gviz.load(tmp_path / "t.gviz").select((ScopeEntered,))]
    assert paths == ["Gan.net", "Gan.net.0", "Gan.judge"]


LAYERS = """
net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
for _ in range(2):
    net[2](net[1](net[0](x)))
    nn.MSELoss()(net[0](x), net[0](x))
"""


@pytest.mark.parametrize("framework", ["gviz.engine", pytest.param("torch", marks=pytest.mark.torch)])
def test_two_layers_that_are_called_alone_are_two_and_not_one_called_twice(framework, tmp_path):
    names(LAYERS, framework, tmp_path / "t.gviz")
    paths = [event.name for _, event in gviz.load(tmp_path / "t.gviz").select((ScopeEntered,))]
    assert paths == ["Linear", "Tanh", "Linear_2", "Linear", "Linear", "MSELoss"] * 2


OF_ONE_CLASS = """
actor, critic = nn.Sequential(nn.Linear(2, 2)), nn.Sequential(nn.Linear(2, 2))
loss = nn.MSELoss()
loss(critic(x), actor(x))
"""
OF_ONE_CLASS_IN_AN_OBJECT = """
class Agent:
    def __init__(self):
        self.net = nn.Linear(2, 2)
        self.target = nn.Linear(2, 2)
    def loss(self, x):
        return nn.MSELoss()(self.net(x), self.target(x))
agent = Agent()
agent.loss(x)
"""
OF_ONE_CLASS_IN_A_LIST = """
nets = [nn.Linear(2, 2) for _ in range(2)]
nn.MSELoss()(nets[0](x), nets[1](x))
"""
MADE_LATER = """
first = nn.Linear(2, 2)
first(x)
second = nn.Linear(2, 2)
second(first(x))
"""
WITH_A_PART_IN_A_VARIABLE = """
model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
part = model[0]
model(x)
"""


@pytest.mark.parametrize("framework", ["gviz.engine", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize(
    ("program", "paths"),
    [
        (OF_ONE_CLASS, ["critic", "critic.0", "actor", "actor.0", "MSELoss"]),
        (OF_ONE_CLASS_IN_AN_OBJECT, ["net", "target", "MSELoss"]),
        (OF_ONE_CLASS_IN_A_LIST, ["Linear", "Linear_2", "MSELoss"]),
        (MADE_LATER, ["Linear", "Linear", "second"]),
        (WITH_A_PART_IN_A_VARIABLE, ["Sequential", "Sequential.0", "Sequential.1"]),
    ],
    ids=["variables", "object", "list", "later", "part"],
)
def test_models_of_one_class_are_called_by_their_variables(program, paths, framework, tmp_path):
    names(program, framework, tmp_path / "t.gviz")
    calls = [event.name for _, event in gviz.load(tmp_path / "t.gviz").select((ScopeEntered,))]
    assert sorted(calls) == sorted(paths)


ORIGINALS = """
from torch.nn.utils.parametrizations import spectral_norm
def judge():
    return nn.Sequential(spectral_norm(nn.Linear(2, 2)), nn.Tanh(), spectral_norm(nn.Linear(2, 1)))
model = judge()
model(x)
"""
COMBINED = """
generator = nn.Sequential(nn.Linear(2, 2, bias=False))
judge = nn.Sequential(nn.Linear(2, 1, bias=False))
judge(generator(x))
both = nn.Sequential(generator, judge)
both(x), both(x)
"""


@pytest.mark.torch
def test_what_was_called_before_its_model_has_its_path_in_it(tmp_path):
    """PyTorch calls a parametrization when it is registered: no variable holds it."""
    ends = "bias", "parametrizations.weight.original"
    assert sorted(names(ORIGINALS, "torch", tmp_path / "t.gviz")) == [f"{n}.{end}" for n in (0, 2) for end in ends]


@pytest.mark.torch
def test_models_that_variables_hold_keep_their_names_in_a_larger_one(tmp_path):
    assert names(COMBINED, "torch", tmp_path / "t.gviz") == ["generator.0.weight", "judge.0.weight"]


GIVEN = """
from torch.utils.data import DataLoader, TensorDataset
def step(x, y):
    return nn.functional.mse_loss(net(x), y)
def run(batches):
    for batch in batches:
        first, second = batch
        step(first, second)
    for batch in batches:
        step(*batch)
    for batch in batches:
        batch = dict(zip("xy", batch))
        nn.functional.mse_loss(net(batch["x"]), batch["y"])
net = nn.Linear(2, 1)
run(DataLoader(TensorDataset(torch.zeros(4, 2), torch.zeros(4, 1)), batch_size=4))
"""


@pytest.mark.torch
def test_what_a_data_loader_gives_is_called_by_the_variable_that_holds_it(tmp_path):
    import torch

    with gviz.record(tmp_path / "t.gviz"):
        exec(compile(GIVEN, "data.py", "exec"), {"nn": torch.nn, "torch": torch})
    timeline = gviz.load(tmp_path / "t.gviz")
    given = [timeline.info(node) for node in timeline.nodes if timeline.info(node).created.kind == "constant"]
    assert [info.name for info in given][2:] == ["first", "second", "x", "y", "batch['x']", "batch['y']"]


UNCALLED = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(2))
    def __call__(self, x):
        return self.scale * x
def run():
    one, models = Model(), [Model(), Model()]
    whole = nn.ModuleList([one])
    one(x).sum().backward()
    torch.stack([*models[0].parameters(), *models[1].parameters()]).sum().backward()
run()
"""


@pytest.mark.torch
def test_parameters_of_models_that_are_not_called_as_modules_are_have_names(tmp_path):
    import torch

    with gviz.record(tmp_path / "t.gviz"):
        exec(compile(UNCALLED, "model.py", "exec"), {"nn": torch.nn, "torch": torch, "x": torch.ones(1, 2)})
    timeline = gviz.load(tmp_path / "t.gviz")
    infos = [timeline.info(node) for node in timeline.nodes]
    parameters = {info.name for info in infos if info.created.kind == "parameter"}
    assert parameters == {"whole.0.scale", "models[0].scale", "models[1].scale"}


BUFFERS = """
net = nn.Sequential(nn.BatchNorm1d(2))
net(x)
"""


@pytest.mark.parametrize("framework", ["gviz.engine", pytest.param("torch", marks=pytest.mark.torch)])
def test_buffers_have_their_paths(framework, tmp_path):
    torch = import_module(framework)
    with gviz.record(tmp_path / "t.gviz"):
        exec(compile(BUFFERS, "model.py", "exec"), {"nn": torch.nn, "x": torch.zeros(4, 2)})
    timeline = gviz.load(tmp_path / "t.gviz")
    assert {"0.running_mean", "0.running_var"} <= {timeline.info(node).name for node in timeline.nodes}


TIED = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
        self.decoder.weight = self.encoder.weight
    def forward(self, x):
        return self.decoder(self.encoder(x))
model, other = Model(), Model()
model(x).sum().backward()
"""


@pytest.mark.parametrize("framework", ["gviz.engine", pytest.param("torch", marks=pytest.mark.torch)])
def test_a_tied_weight_has_both_its_names(framework, tmp_path):
    names(TIED, framework, tmp_path / "t.gviz")
    timeline = gviz.load(tmp_path / "t.gviz")
    moment = timeline.at(len(timeline))
    (node,) = (node for node in timeline.nodes if "encoder.weight" in timeline.info(node).names)
    assert timeline.info(node).names == ("encoder.weight", "decoder.weight")
    named, end = NamedNodes(timeline), len(timeline)
    assert {named.last("encoder.weight", end), named.last("decoder.weight", end)} == {node}
    assert named.of_a_module("model.decoder.weight", end) == node
    state = moment.state(node)
    said = [fact.parts[0].text for fact in kind_facts(NodeView(timeline, moment, node, state), state)]
    assert said == ["parameter, requires grad", "decoder.weight"]
    assert why(timeline, moment, node, "grad").text.startswith(f"#{node} encoder.weight = decoder.weight: ")
    assert place("decoder.weight").names(timeline.info(node))


REPEATED = """
class Model(nn.Module):
    def __init__(self, times):
        super().__init__()
        self.layers = nn.ModuleList([nn.Sequential(nn.Linear(2, 2, bias=False))] * times)
        self.layers[0].around = self.layers  # a circle is followed once
    def forward(self, x):
        for layer in self.layers:
            x = layer[0](x)
        return x
model = Model(8)
model(x).sum().backward()
"""


@pytest.mark.parametrize("framework", ["gviz.engine", pytest.param("torch", marks=pytest.mark.torch)])
def test_a_repeated_layer_has_a_name_at_each_place_of_which_few_are_told(framework, tmp_path):
    names(REPEATED, framework, tmp_path / "t.gviz")
    timeline = gviz.load(tmp_path / "t.gviz")
    (node,) = (node for node in timeline.nodes if "layers.0.0.weight" in timeline.info(node).names)
    paths = (*(f"layers.{number}.0.weight" for number in range(8)), "layers.0.around.0.0.weight")
    assert sorted(timeline.info(node).names) == sorted(paths)
    told = " = ".join(f"layers.{number}.0.weight" for number in range(4))
    text = why(timeline, timeline.at(len(timeline)), node, "grad").text
    assert text.startswith(f"#{node} {told} = 5 more: ")


@pytest.mark.parametrize("framework", ["gviz.engine", pytest.param("torch", marks=pytest.mark.torch)])
def test_tied_weights_of_two_models_are_told_apart_by_each_of_their_names(framework, tmp_path):
    names(TIED + "other(x)", framework, tmp_path / "t.gviz")
    timeline = gviz.load(tmp_path / "t.gviz")
    named = [timeline.info(node).names for node in timeline.nodes if timeline.info(node).also]
    assert named == [(f"{model}.encoder.weight", f"{model}.decoder.weight") for model in ("model", "other")]


AVERAGED = """
import copy
policy = nn.Sequential(nn.Linear(2, 1, bias=False))
target, spare = copy.deepcopy(policy), nn.Parameter(torch.ones(1))
with torch.no_grad():
    for held, own in zip(target.parameters(), policy.parameters()):
        held.copy_(0.9 * held + 0.1 * own)
    for one in (nn.Parameter(torch.ones(1)), spare):
        one.detach()
policy(x).sum().backward()
"""
STANDING_IN = """
net = nn.Sequential(nn.Linear(2, 1, bias=False))
fast = {name: own.detach().clone().requires_grad_() for name, own in net.named_parameters()}
torch.func.functional_call(net, fast, (x,)).sum().backward()
"""


@pytest.mark.torch
@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (AVERAGED, {"target.0.weight", "policy.0.weight", "spare"}),
        (STANDING_IN, {"0.weight", "fast['0.weight']"}),
    ],
)
def test_parameters_are_told_from_what_is_made_of_them(program, expected, tmp_path):
    import torch

    with gviz.record(tmp_path / "t.gviz"):
        exec(compile(program, "model.py", "exec"), {"nn": torch.nn, "torch": torch, "x": torch.ones(1, 2)})
    timeline = gviz.load(tmp_path / "t.gviz")
    infos = [timeline.info(node) for node in timeline.nodes]
    assert {info.name for info in infos if info.name and not info.name.startswith("x")} == expected


UNCALLED_MODEL = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 1, bias=False))
    def step(self, x):
        return self.net(x).sum()
model = Model()
"""


@pytest.mark.parametrize("framework", ["gviz.engine", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize("call", ["model.step(x)", "model.net(x)"])
def test_a_part_is_found_by_its_path_in_a_model_that_is_never_called(call, framework, tmp_path):
    torch = import_module(framework)
    path = tmp_path / "model.py"
    path.write_text(UNCALLED_MODEL + call)

    def program():
        with gviz.record(tmp_path / "t.gviz"):
            exec(compile(path.read_text(), str(path), "exec"), {"nn": torch.nn, "x": torch.ones(1, 2)})

    alone = Thread(target=program)  # beneath it stands no frame without a text, as that of a worker of the tests is
    alone.start()
    alone.join()
    timeline = gviz.load(tmp_path / "t.gviz")
    (weight,) = [node for node in timeline.nodes if timeline.info(node).created.kind == "parameter"]
    made = {timeline.info(node).scope: node for node in timeline.nodes}
    result = next(node for scope, node in made.items() if scope.endswith(".0"))
    named = NamedNodes(timeline)
    for word, node in (("model.net.0", result), ("model.net", result), ("model.net.0.weight", weight)):
        assert PlaceMatcher(timeline, place(word))(node)
        assert not PlaceMatcher(timeline, place(f"{'no' * 2}.{word}"))(node)
    assert named.of_a_module("model.net.0.weight", len(timeline)) == weight
    assert named.of_a_module(f"{'no' * 2}.net.0.weight", len(timeline)) == 0  # a word that stands in no file


@pytest.mark.torch
def test_layers_that_a_model_has_in_a_list_are_called_by_their_places_in_it(tmp_path):
    assert names(IN_A_LIST_OF_A_MODEL, "torch", tmp_path / "t.gviz") == ["layers[0].weight", "layers[1].weight"]


@pytest.mark.torch
def test_layers_that_pytorch_copies_stand_where_the_program_asked_for_them(tmp_path):
    layer = "nn.TransformerEncoderLayer(2, 1, 2)"
    copying = f"net = nn.TransformerEncoder({layer}, 2, enable_nested_tensor=False)\nnet(x.unsqueeze(0))\n"
    names(copying, "torch", tmp_path / "t.gviz")
    timeline = gviz.load(tmp_path / "t.gviz")
    copied = [info for info in map(timeline.info, timeline.nodes) if "layers.1" in (info.name or "")]
    assert copied
    assert not [frame.path for info in copied for frame in info.frames if frame.path.endswith("copy.py")]


TWO_WITH_BUFFERS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.norm = nn.Linear(2, 3), nn.BatchNorm1d(3)
        self.register_buffer("scale", torch.ones(3))
    def forward(self, x):
        return self.norm(self.fc(x)) * self.scale
student, teacher = Net(), Net()
for net in (student, teacher):
    net(torch.ones(4, 2)).sum().backward()
"""


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
def test_buffers_of_two_models_have_the_names_of_their_models(engine, tmp_path):
    import gviz.engine as torch

    if engine == "torch":
        torch = pytest.importorskip("torch")
    with gviz.record(tmp_path / "t.gviz"):
        exec(compile(TWO_WITH_BUFFERS, "buffers.py", "exec"), {"nn": torch.nn, "torch": torch})
    timeline = gviz.load(tmp_path / "t.gviz")
    named = {timeline.info(node).name for node in timeline.nodes}
    buffers = {f"{net}.{name}" for net in ("student", "teacher") for name in ("norm.running_mean", "scale")}
    assert buffers <= named
    assert not {"norm.running_mean", "scale"} & named
