"""A name means the very result that the program's variable holds, where a call gives several: in both frameworks."""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import gviz
from gviz import emit, engine
from gviz import events as e
from gviz.errors import GvizError
from gviz.explain.typed_question import answer
from gviz.live.breakpoint_prefilter import Prefilter
from gviz.live.node_cache import LEARNED_FROM, NodeCache
from gviz.query.expressions import value_of
from gviz.query.nodes import NamedNodes
from gviz.query_syntax.stop_condition import stop
from gviz.trace.breakpoint_hits import Hits
from gviz.trace.event_log import MemoryLog
from gviz.trace.file.reader import open_trace
from gviz.trace.phases import PhaseTracker
from gviz.trace.recording.source_text import read_source
from gviz.trace.timeline import Timeline

sys.path.insert(0, str(Path(__file__).parents[1] / "adapters"))
from recorded import events_of as events_of_pytorch

BOTH = pytest.mark.parametrize("framework", ["gviz.engine", "torch"])

START = """
torch.manual_seed(0)
x = torch.tensor([[1., 5., 2.], [7., 2., 9.], [4., 4., 3.]], requires_grad=True)
"""

TAKEN = """
best = x.max(1).values
where = x.max(1).indices
low = x.sort(1)[0]
last = x.sort(1)[-1]
middle = torch.split(x, 1)[1]
row = x.unbind(0)[-1]
mean = torch.var_mean(x)[1]
singular = torch.linalg.svd(x)[1]
sign = torch.linalg.slogdet(x)[0]
state = torch.nn.LSTM(3, 2)(x)[1][0]
places = torch.topk(x, 2)[1].to(torch.int64)
"""

UNPACKED = """
a, b = x.max(1)
c, d, e = x.chunk(3)
first, *others, final = x.unbind(0)
(u, s, v), k = torch.linalg.svd(x), x * 2
out, (h, cell) = torch.nn.LSTM(3, 2)(x)
seen, weights = torch.nn.MultiheadAttention(3, 1, batch_first=True)(x[None], x[None], x[None])
top, at = torch.topk(x, 2)
"""

UNTRACKED = """
with torch.no_grad():
    a, b = x.max(1)
    c, d, e = x.chunk(3)
    later = b * 2
    out, (h, cell) = torch.nn.LSTM(3, 2)(x)
"""

THROUGH_FUNCTIONS = """
def largest(t):
    return t.max(1)

def both(t):
    return t * 2, largest(t)

def one(t):
    return t.max(1)[0]

m, n = largest(x)
double, (p, q) = both(x)
w = one(x)
"""

THROUGH_MODULES = """
class Pair(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)

    def encode(self, t):
        h = t * 2
        return self.a(h), self.b(h)

    def forward(self, t):
        mean, spread = self.encode(t)
        return mean * spread, mean, spread

given, mean, spread = Pair()(x)
product = given * 3
w = product + 1
v = w * 2
"""

TAKEN_APART = """
a, b, c = x
for row in x:
    twice = row * 2
del row
w = torch.ones(3, requires_grad=True)
y = (x * x * w).sum()
g, k = torch.autograd.grad(y, [x, w], retain_graph=True)
(of_x,) = torch.autograd.grad(y, x, retain_graph=True)
of_w = torch.autograd.grad(y, w)[0]
"""

PROGRAMS = {"taken": TAKEN, "unpacked": UNPACKED, "untracked": UNTRACKED, "through functions": THROUGH_FUNCTIONS}
PROGRAMS |= {"through modules": THROUGH_MODULES, "taken apart": TAKEN_APART}


class Recorded:
    def __init__(self, framework, text, tmp_path):
        path = tmp_path / "program.py"
        path.write_text(text)
        self.scope = {"torch": import_module(framework), "__name__": "program"}
        code = compile(text, str(path), "exec")
        if framework == "torch":
            events = events_of_pytorch(lambda: exec(code, self.scope), read_source=read_source)
        else:
            events = []
            with emit.listening(emit.Channel(events.append, read_source=read_source)):
                exec(code, self.scope)
        self.events = events
        self.timeline = Timeline(MemoryLog(events))
        self.names = NamedNodes(self.timeline)

    def tensors(self):
        kind = self.scope["torch"].Tensor
        return {name: held for name, held in self.scope.items() if isinstance(held, kind)}

    def told(self, text):
        return value_of(self.timeline, self.names, len(self.timeline), text)


@pytest.fixture
def recorded(tmp_path):
    return lambda framework, text: Recorded(framework, START + text, tmp_path)


@BOTH
@pytest.mark.parametrize("program", PROGRAMS)
def test_every_name_means_what_the_program_calls_so(recorded, framework, program):
    told = recorded(framework, PROGRAMS[program])
    assert len(told.tensors()) > 5
    for name, tensor in told.tensors().items():
        np.testing.assert_allclose(told.told(name), tensor.detach().numpy(), err_msg=name)


@BOTH
@pytest.mark.parametrize(
    "line",
    ["y = max(x.sum(), x.mean())", "y = [t * 25 for t in x][-1]", "y = (x * 2).shape", "y = (x * 2).numel()",
     "y = x.var(0).shape[0]", "i = 1; y = x.max(1)[i]"],
)  # fmt: skip
def test_where_it_is_not_known_what_a_variable_holds_it_names_nothing(recorded, framework, line):
    with pytest.raises(GvizError, match="there is no y"):
        recorded(framework, line).told("y")


@BOTH
def test_a_variable_that_holds_all_is_no_tensor_and_its_parts_are(recorded, framework):
    told = recorded(framework, "parts = x.split(1)\npair = x.max(1)")
    for text in ("parts[0]", "parts[2]", "pair.values", "pair.indices"):
        np.testing.assert_array_equal(told.told(text), eval(text, told.scope).detach().numpy())
    for whole in ("parts", "pair"):
        with pytest.raises(GvizError):
            told.told(whole)


@BOTH
def test_no_step_of_the_clipping_has_the_name_of_the_norm_that_it_gives(recorded, framework):
    clips = "norm = torch.nn.utils.clip_grad_norm_([x], 0.1)\nafter = norm * 2"
    told = recorded(framework, f"(x * x).sum().backward()\n{clips}")
    named = told.names.called("norm", len(told.timeline))
    assert len(named) == (framework == "torch")  # the engine computes it without an operation
    for node in named:
        value = told.timeline.info(node).created.outputs[0].value
        assert value.array() == told.scope["norm"].item()
    np.testing.assert_allclose(told.told("after"), told.scope["after"].numpy())


@BOTH
def test_the_gradient_of_one_of_several_results_is_its_own(recorded, framework):
    told = recorded(framework, "a, b, c = x.split(1)\nb.retain_grad()\n(a * 2 + b * 3 + c * 4).sum().backward()")
    np.testing.assert_array_equal(told.told("b.grad"), [[3, 3, 3]])
    with pytest.raises(GvizError):
        told.told("a.grad * 2")


@BOTH
def test_an_update_in_place_leaves_the_name_with_the_leaf(recorded, framework):
    told = recorded(framework, "w = torch.ones(3, requires_grad=True)\n(w * 2).sum().backward()\n"
                               "with torch.no_grad():\n    w -= w.grad\n    w[0] = 7.")  # fmt: skip
    node = told.names.last("w", len(told.timeline))
    assert told.timeline.info(node).created.kind == "leaf"
    assert told.names.called("w", len(told.timeline)) == [node]
    np.testing.assert_array_equal(told.told("w"), [7, -1, -1])
    np.testing.assert_array_equal(told.told("w.grad"), [2, 2, 2])


@BOTH
def test_a_write_into_a_part_leaves_the_name_with_the_whole(recorded, framework):
    told = recorded(framework, "b = torch.zeros(2, 3)\nb[0] = 5.\nb[1] = x.detach()[0]")
    np.testing.assert_array_equal(told.told("b"), [[5, 5, 5], [1, 5, 2]])


def test_a_question_about_one_result_is_answered_with_its_numbers(recorded):
    told = recorded("gviz.engine", "a, b, c = x.split(1)\n(a * 2 + b * 3 + c * 4).sum().backward()")
    end = len(told.timeline)
    assert "= [[7 2 9]]" in answer(told.names, "b", end).text
    assert "[[3 3 3]]" in answer(told.names, "b.grad", end).parts[0].text
    parts = recorded("gviz.engine", "parts = x.split(1)")
    assert "= [[4 4 3]]" in answer(parts.names, "parts[2]", len(parts.timeline)).text
    with pytest.raises(GvizError, match="parts is several tensors"):
        answer(parts.names, "parts", len(parts.timeline))


@pytest.mark.parametrize(("condition", "is_met"), [("value.max() > 8", True), ("value.max() < 8", False)])
def test_a_condition_on_one_result_is_about_its_numbers(recorded, condition, is_met):
    told = recorded("gviz.engine", "a, b, c = x.split(1)")
    made = told.timeline.nodes.born(told.names.last("b", len(told.timeline)))
    assert [hit.n for hit in Hits(told.timeline, stop(f"b if {condition}")).after(0)] == [made] * is_met


def test_while_it_runs_a_condition_on_one_of_several_results_is_left_to_the_debugger(recorded):
    told = recorded("gviz.engine", "a, b, c = x.split(1)")
    cache = NodeCache()
    prefilter = Prefilter("b if value.max() > 8", cache, PhaseTracker())
    answers = []
    for event in told.events:
        if type(event) in LEARNED_FROM:
            cache.learn(event)
        answers += [prefilter.may_stop(event)] if isinstance(event, e.NodeCreated) else []
    assert answers[-1]


@BOTH
def test_a_change_of_shape_in_place_is_told_of_the_tensor_itself(recorded, framework):
    told = recorded(framework, "a = x.detach()[:2] * 1\nbefore = a * 1\na.t_()\nafter = a * 1\na.unsqueeze_(0)\n"
                               "y = x[:2] * 2\ny.t_()")  # fmt: skip
    for name in ("a", "before", "after", "y"):
        np.testing.assert_array_equal(told.told(name), told.scope[name].detach().numpy())
    after = told.timeline.info(told.names.last("after", len(told.timeline)))
    ((node, _), *_) = after.created.inputs
    assert told.timeline.info(node).created.outputs[0].value.shape == (3, 2)


@pytest.mark.torch
def test_a_resized_tensor_has_its_new_shape(recorded):
    told = recorded("torch", "e = torch.ones(3)\nf = e * 1\ne.resize_(2)\ng = e * 1")
    for name in ("e", "f", "g"):
        np.testing.assert_array_equal(told.told(name), told.scope[name].numpy())


MODULES = """
nn = torch.nn
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
    def forward(self, t):
        h = self.linear(t)
        return h.cos()

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
        self.last = nn.Sequential(Block(), nn.Tanh(), Block())
    def forward(self, t):
        for layer in self.layers:
            t = layer(t)
            seen.append(("t", t))
        t = self.last(t)
        seen.append(("t", t))
        return t, self.last(t)

seen = []
blocks = nn.Sequential(Block(), Block())
mixed = nn.Sequential(Block(), nn.Tanh(), Block(), nn.ReLU())
y = blocks(x)
for _ in range(3):
    z = mixed(x)
    seen.append(("z", z))
t, last = Net()(x)
"""

FOLDED = """
from functools import reduce
parts = [(x * k).sum() for k in (1., 2., 3.)]
a = sum(parts)
b = sum(parts, torch.zeros(()))
c = sum((x * k).sum() for k in (1., 2., 3.))
d = reduce(torch.add, parts)
e = reduce(lambda one, other: one + other, parts)
f = 0 < x.sum() < 100
seen = []
"""

ITEMS = """
d = {"a": x * 1}
d["a"] += 1
m = torch.zeros(3, 3)
m[0] = x[1].exp()
m[0] = 5.
m[1] += x[0]
m[2, 0], n = x[1, 1], x.cos()
m[2][1] = 7.
seen = [("m[0]", m[0]), ("m[1]", m[1]), ("m[2]", m[2]), ("d['a']", d["a"])]
"""


@BOTH
@pytest.mark.parametrize("program", [MODULES, FOLDED, ITEMS], ids=["modules", "folded", "items"])
def test_a_name_is_of_the_result_and_of_no_step_on_the_way(recorded, framework, program):
    told = recorded(framework, program)
    for name, tensor in (told.tensors() | dict(told.scope["seen"])).items():
        np.testing.assert_allclose(told.told(name), tensor.detach().numpy(), err_msg=name, rtol=1e-5)
    for name in {name for name, _ in told.scope["seen"] if "[" not in name}:
        expected = sum(one == name for one, _ in told.scope["seen"])
        assert len(told.names.called(name, len(told.timeline))) == expected, name


@BOTH
@pytest.mark.parametrize(
    "line",
    ["y = list(map(torch.exp, x))", "y, z, w = [*x][::-1]", "y, z, w = reversed(x.split(1))",
     "y, z, w = [*reversed(x)]", "y, z, w = map(torch.exp, x)",
     "def f(*rows):\n    yield from rows[::-1]\ny, z, w = f(*x)"],
)  # fmt: skip
def test_what_another_takes_from_a_call_is_not_what_the_call_gave(recorded, framework, line):
    told = recorded(framework, line)
    assert not any("y" in told.timeline.info(node).variables for node in told.timeline.nodes)


THREADS = (
    START
    + """
import sys, threading
net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU(), torch.nn.Linear(3, 3), torch.nn.Tanh())
def work():
    for _ in range(20):
        y = net(x)
threads = [threading.Thread(target=work) for _ in range(3)]
before = sys.getswitchinterval()
sys.setswitchinterval(1e-5)
[thread.start() for thread in threads]
[thread.join() for thread in threads]
sys.setswitchinterval(before)
"""
)


def test_what_threads_make_meanwhile_cuts_no_call_in_two(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(THREADS)
    with gviz.record(tmp_path / "t.gviz"):
        exec(compile(THREADS, str(path), "exec"), {"torch": engine})
    with open_trace(tmp_path / "t.gviz") as log:
        infos = list(map(Timeline(log).info, Timeline(log).nodes))
    assert [info.op.name for info in infos if info.name == "y"] == ["tanh"] * 60
