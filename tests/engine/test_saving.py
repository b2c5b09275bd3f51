"""`torch.save` and `torch.load`: what goes in comes out, and nothing but that."""

import io
import pickle
import subprocess
import sys
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
from twin import compare

import gviz.engine as torch
from gviz.engine import nn

PROGRAM = """
import io
from torch import nn
from collections import OrderedDict
def again(value, **options):
    f = io.BytesIO(); torch.save(value, f); f.seek(0); return torch.load(f, **options)
t = torch.arange(6.).view(2, 3); g = torch.ones(2, requires_grad=True)
numbers(again(t), again(t.t()), again(t[:, 1]), again(torch.tensor(3)), again(torch.zeros(0, 2)), again(torch.tensor([True])), again(t.double()), again(t.expand(4, 2, 3)))
see(again(g).requires_grad, again(g * 2).requires_grad, again(g * 2).is_leaf, type(again(nn.Parameter(t))).__name__, again(nn.Parameter(t, False)).requires_grad)
see(again([1, 2.5, "a", None, True, (1, 2), {3: "b", "c": [float("inf")]}, b"x"]), again(OrderedDict(a=1)), again(t.shape), again(torch.float64), again({1, 2}))
a, b = again([t, t[0]]); b.fill_(9); numbers(a); see(a is b)
net, other = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)), nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
s = again(net.state_dict(), weights_only=True, map_location="cpu"); print(other.load_state_dict(s)); see(all(torch.equal(p, q) for p, q in zip(net.parameters(), other.parameters())), type(s).__name__, dict(s._metadata))
o = torch.optim.Adam(net.parameters()); net(torch.ones(1, 2)).sum().backward(); o.step(); l = torch.optim.lr_scheduler.MultiStepLR(o, [1, 1])
o2 = torch.optim.Adam(other.parameters()); o2.load_state_dict(again(o.state_dict())); see(sorted(o2.state_dict()["state"]), float(o2.state_dict()["state"][0]["step"]), again({"epoch": 3, "rate": o.param_groups[0]["lr"]}))
"""


@pytest.mark.torch
def test_as_pytorch():
    compare(PROGRAM)


def saved(value):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


def test_files_by_path(tmp_path):
    path = tmp_path / "state.pt"
    torch.save({"x": torch.ones(2)}, path)
    assert torch.load(path)["x"].tolist() == torch.load(str(path))["x"].tolist() == [1, 1]
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "none.pt")


def test_only_data_is_saved():
    with pytest.raises(TypeError, match="save a module's or an optimizer's state_dict"):
        torch.save(nn.Linear(1, 1), io.BytesIO())
    with pytest.raises(TypeError, match="'function' objects"):
        torch.save([lambda: 1], io.BytesIO())


def test_pickles_are_never_read():
    class Evil:
        def __reduce__(self):
            return pytest.fail, ("the pickle was read",)

    theirs = io.BytesIO()
    with zipfile.ZipFile(theirs, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Evil()))
    with pytest.raises(RuntimeError, match=r"wrote, but PyTorch's. The engine reads no pickles"):
        torch.load(theirs)
    with pytest.raises(RuntimeError, match=r"no file that torch\.save of gviz's built-in engine wrote"):
        torch.load(io.BytesIO(pickle.dumps(Evil())))
    with pytest.raises(RuntimeError, match="no device 'cuda:0'"):
        torch.load(saved(1), map_location="cuda:0")


def test_a_file_cannot_reach_beyond_its_memory():
    file = saved(torch.ones(4))
    with zipfile.ZipFile(file) as archive:
        index, memory = archive.read("gviz.json"), archive.read("0.npy")
    forged = io.BytesIO()
    with zipfile.ZipFile(forged, "w") as archive:
        archive.writestr("gviz.json", index.replace(b"[4]", b"[400]"))
        archive.writestr("0.npy", memory)
    with pytest.raises((TypeError, ValueError)):
        torch.load(forged)


def test_numpy_values_and_shared_memory():
    array = np.arange(3)
    loaded = torch.load(saved({"a": array, "n": np.float32(2.5), "o": OrderedDict(x=1)}))
    assert loaded["a"].tolist() == [0, 1, 2]
    assert loaded["n"] == np.float32(2.5)
    base = torch.arange(1000.0)
    parts = torch.load(saved([base[:2], base[1:3]]))
    parts[0].fill_(7)
    assert parts[1].tolist() == [7, 2]


FORMER = """
gviz.engine.nn.smooth_activation Tanh
gviz.engine.nn.batchnorm BatchNorm2d
gviz.engine.nn.containers Sequential
gviz.engine.nn.parameter_containers ParameterList
gviz.engine.nn.adaptive_pooling AdaptiveAvgPool2d
gviz.engine.nn.margin_loss TripletMarginLoss
gviz.engine.nn.resampling Upsample
gviz.engine.nn.rnn_cell LSTMCell
gviz.engine.nn.flatten Flatten
gviz.engine.nn.state IncompatibleKeys
gviz.engine.nn.parameter _parameter
gviz.engine.nn.functional.recurrent lstm_cell
gviz.engine.nn.utils.clipping get_total_norm
gviz.engine.optim.adamw AdamW
gviz.engine.optim.sgd SGD
gviz.engine.optim.lr_scheduler.one_cycle OneCycleLR
gviz.engine.optim.lr_scheduler.scheduler LRScheduler
gviz.engine.utils.recomputation CheckpointError
gviz.engine.device _restored
"""
"""Where classes and functions were in versions whose pickles may still be around."""


def test_pickles_of_earlier_versions_find_their_classes():
    """In a process that has imported nothing else."""
    pickled = [f"c{module}\n{name}\n.".encode() for module, name in map(str.split, FORMER.strip().splitlines())]
    code = f"import pickle, gviz.engine\nfor p in {pickled!r}: print(pickle.loads(p).__name__)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == [line.split()[1] for line in FORMER.strip().splitlines()]
