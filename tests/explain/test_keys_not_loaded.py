"""Loads with strict=False that load little or nothing, and those that load what they should."""

import pytest

from gviz.state_dict_load import LoadedKeys, loaded_keys

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
HEAD = """
import copy, io, torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
x, y = torch.randn(24, 4), torch.randn(24, 2)
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 8))
    def forward(self, x):
        return self.body(x)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.model, self.head = Encoder(), nn.Linear(8, 2)
    def forward(self, x):
        return self.head(self.model(x))
def with_prefix(prefix, state):
    return {prefix + key: value for key, value in state.items()}
old = copy.deepcopy(Net().state_dict())
of_encoder = {key.removeprefix("model."): value for key, value in old.items() if "model" in key}
LOAD
opt = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(4):
    loss = F.mse_loss(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
NET = "net = model = Net()\n"
ENCODER = "encoder = Encoder()\nmodel = nn.Sequential(encoder, nn.Linear(8, 2))\n"
IGNORED = {
    "prefix of a wrapper": (
        ENCODER + "encoder.load_state_dict(old, strict=False)  #!",
        "none of 8 tensors of Encoder: keys begin with 'model.'",
        "old.items()",
        True,
    ),
    "prefix of data parallel": (
        NET + "found = net.load_state_dict(with_prefix('module.', old), strict=False)  #!",
        "none of 10 tensors of Net: keys begin with 'module.'",
        'key.removeprefix("module.")',
        True,
    ),
    "keys without the prefix": (
        NET + "net = nn.Sequential(net)\nnet.load_state_dict(old, strict=False)  #!",
        "none of 10 tensors of Sequential: keys lack '0.'",
        '{"0." + key: value for key, value in old.items()}',
        False,
    ),
    "another prefix": (
        NET + "net.load_state_dict(with_prefix('student.', of_encoder), strict=False)  #!",
        "none of 10 tensors of Net: keys begin with 'student.'",
        '"model." + key.removeprefix("student.")',
        False,
    ),
    "a part without the prefix": (
        NET + "net.load_state_dict(of_encoder, strict=False)  #!",
        "none of 10 tensors of Net: keys lack 'model.'",
        '"model." + key',
        False,
    ),
    "only the head fits": (
        NET + "old = {key.removeprefix('model.'): value for key, value in old.items()}\n"
        "net.load_state_dict(old, strict=False)  #!",
        "2 of 10 tensors of Net: keys lack 'model.'",
        '"model." + key',
        False,
    ),
    "a state in a checkpoint": (
        NET + "net.load_state_dict({'epoch': 3, 'weights': old}, False)  #!",
        "none of 10 tensors of Net: keys are in its 'weights'",
        '["weights"]',
        True,
    ),
    "a prefix in a checkpoint": (
        NET + "saved = {'state_dict': with_prefix('m.', old)}\nnet.load_state_dict(saved, strict=False)  #!",
        "none of 10 tensors of Net: keys are in its 'state_dict'",
        'key.removeprefix("m."): value for key, value in saved["state_dict"].items()',
        False,
    ),
}
NOTES = {
    "other names": (
        NET + "net.load_state_dict({'a.weight': torch.zeros(3)}, strict=False)  #!",
        "this load has loaded none of 10 tensors of Net",
    ),
    "a filter that nothing passes": (
        ENCODER + "own = encoder.state_dict()\nold = {k: v for k, v in old.items() if k in own}\n"
        "encoder.load_state_dict(old, strict=False)  #!",
        "no key has passed the filter, so this load has loaded nothing of Encoder",
    ),
    "a state that nothing updates": (
        ENCODER + "own = encoder.state_dict()\n"
        "own.update({k: v for k, v in old.items() if k in own})\nencoder.load_state_dict(own)  #!",
        "this load gives Encoder its own tensors: nothing of a file was loaded",
    ),
}
LOADED = {
    "all of it": NET + "net.load_state_dict(old, strict=False)",
    "strict": NET + "net.load_state_dict(old)",
    "without the prefix": (
        ENCODER + "encoder.load_state_dict({k.removeprefix('model.'): v for k, v in old.items()}, strict=False)"
    ),
    "a second attempt": (
        ENCODER + "missing, _ = encoder.load_state_dict(old, strict=False)\nif missing:\n"
        "    encoder.load_state_dict({k.removeprefix('model.'): v for k, v in old.items()}, strict=False)"
    ),
    "all but the head": (NET + "net.load_state_dict({k: v for k, v in old.items() if 'head' not in k}, strict=False)"),
    "another head": NET + "net.load_state_dict({k.replace('head', 'fc'): v for k, v in old.items()}, strict=False)",
    "parts of a larger state": NET + "net.model.load_state_dict(of_encoder, strict=False)",
    "part by part": (
        NET + "for name, part in net.named_children():\n"
        "    own = {k[len(name) + 1:]: v for k, v in old.items() if k.startswith('model.') and k.startswith(name)}\n"
        "    part.load_state_dict(own, strict=False)"
    ),
    "a few weights of an adapter": (
        NET + "net.load_state_dict({'model.body.0.bias': torch.zeros(8), 'head.bias': torch.zeros(2)}, strict=False)"
    ),
    "its own state": NET + "net.load_state_dict(net.state_dict())",
    "no tensors to load": NET + "nn.Tanh().load_state_dict(old, strict=False)",
    "a state that is updated": (
        ENCODER + "own = encoder.state_dict()\nold = {k[6:]: v for k, v in old.items()}\n"
        "own.update({k: v for k, v in old.items() if k in own})\nencoder.load_state_dict(own)"
    ),
}


def program(load):
    return HEAD.replace("LOAD", load)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", IGNORED)
def test_a_load_whose_keys_have_another_prefix_is_found_and_mended(name, engine, checks):
    load, title, fix, is_mended = IGNORED[name]
    text = program(load)
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    (one,) = outcome.found
    assert (one.level, one.finding.kind) == ("warning", "ignored-keys")
    assert one.finding.text == f"this load has loaded {title}"
    assert len(one.finding.text) <= 80
    assert one.finding.at.line == next(n for n, row in enumerate(text.splitlines(), 1) if row.endswith("#!"))
    assert fix in one.finding.fix
    assert "it got '" in one.finding.parts[0].text
    if is_mended:
        assert [str(other) for other in checks.of_text(one.finding.edit.applied(text), engine).found] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", NOTES)
def test_a_load_of_nothing_is_noted(name, engine, checks):
    load, title = NOTES[name]
    (one,) = checks.of_text(program(load), engine).found
    assert (one.level, one.finding.kind, one.finding.text) == ("note", "ignored-keys", title)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", LOADED)
def test_a_load_that_loads_what_it_should_is_not_found(name, engine, checks):
    outcome = checks.of_text(program(LOADED[name]), engine)
    assert outcome.errors == []
    assert [str(one) for one in outcome.found] == []


@pytest.mark.parametrize(
    "load",
    [
        LoadedKeys("Net", 1, 11, 3, 4),
        LoadedKeys("Net", 5, 5, 0, 5, is_own=True),
        LoadedKeys("Net", 0, 2, 2, 2, False, 2, "state", "module.", "net.", "module.a", "net.a"),
        LoadedKeys("Net", 0, 2, 2, 2, key="a", name="b"),
    ],
)
def test_a_load_is_read_from_its_warning(load):
    assert loaded_keys(load.text()) == load


def test_other_warnings_are_no_loads():
    assert loaded_keys("load_state_dict of Net: 1 of 2 names") is None


LAZY = """
import torch
from torch import nn
net = nn.Sequential(nn.LazyLinear(3), nn.ReLU(), nn.LazyLinear(1))
other = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
net.load_state_dict({"model." + k: v for k, v in other.state_dict().items()}, strict=False)  #!
net(torch.randn(4, 2)).sum().backward()
"""
ODD = """
import torch
from torch import nn
class Odd:
    @property
    def shape(self):
        raise ValueError("it has none")
net = nn.Linear(2, 1)
net.load_state_dict({"a.weight": Odd(), "b": object()}, strict=False)  #!
net(torch.randn(4, 2)).sum().backward()
"""


@pytest.mark.torch
def test_a_load_into_a_module_without_shapes_is_read_and_the_program_goes_on(checks):
    outcome = checks.of_text(LAZY, "torch")
    assert outcome.errors == []
    (one,) = [one for one in outcome.found if one.finding.kind == "ignored-keys"]
    assert one.level == "warning"
    assert "keys begin with 'model.'" in one.finding.text


@pytest.mark.parametrize("engine", ENGINES)
def test_a_load_of_objects_of_any_class_does_not_stop_the_program(engine, checks):
    outcome = checks.of_text(ODD, engine)
    assert outcome.errors == []
    assert "ignored-keys" in [one.finding.kind for one in outcome.found]
