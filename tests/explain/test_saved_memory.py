"""The memory that a graph keeps for backward: bytes and moments, against PyTorch's own saved tensors."""

import json

import pytest
from cli.programs import gviz_here
from explain.programs import recorded_text

from gviz.explain.saved_memory import curve_text, memory_finding, saved_memory
from gviz.query.nodes import NamedNodes

from gviz.explain.typed_question import answer  # isort: skip

on_both_engines = pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\ntorch.manual_seed(0)\n"
CHAIN = """
x, w, v = torch.rand(32, 8), torch.rand(8, 16, requires_grad=True), torch.rand(16, 16, requires_grad=True)
a = x @ w
h = torch.relu(a)
y = h @ v
z = torch.sigmoid(y)
loss = z.sum()
loss.backward()
"""
KIB = 1024


def account(program, tmp_path, engine, n=None):
    timeline = recorded_text(HEAD + program, tmp_path, engine)
    return saved_memory(timeline, len(timeline) if n is None else n)


@on_both_engines
def test_the_example_keeps_two_results_until_their_rules_have_run(tmp_path, engine):
    found = account(CHAIN, tmp_path, engine)
    sizes = [size for _, size in found.curve]
    assert sizes == [2 * KIB, 4 * KIB, 2 * KIB, 0]
    assert found.peak[1] == 4 * KIB
    names = {found.timeline.info(one.output[0]).name: len(one.savers) for one in found.tensors}
    assert names == {"h": 2, "z": 1}
    at_peak = {line.line: size for line, size in found.by_line(found.peak[0]).items()}
    assert at_peak == {8: 2 * KIB, 10: 2 * KIB}


@on_both_engines
@pytest.mark.parametrize(
    ("program", "peak"),
    [  # each has a leaf x of 1 KiB
        ("(x * x).sum().backward()", 0),  # a leaf: the program keeps it
        ("y = x * 2\n(y * y).sum().backward()", KIB),  # twice, one memory
        (
            "x = torch.rand(256, requires_grad=True)\ny = (x * 2).view(16, 16)\n(y * y.t()).sum().backward()",
            KIB,
        ),  # views
        (
            "x = torch.rand(256, requires_grad=True)\ny = (x + 1) + (x + 2)\ny.sum().backward()",
            0,
        ),  # a sum saves nothing
        ("with torch.no_grad():\n    y = (x * 2).exp()", 0),
        ("y = x.exp().exp()", 2 * KIB),  # no pass: both are kept
        ("y = x.exp()\ny.detach().exp()", KIB),
        ("F.dropout(x * 1.0).sum().backward()", KIB),  # the mask
    ],
)
def test_what_counts(tmp_path, engine, program, peak):
    leaf = "x = torch.rand(256, requires_grad=True)\n"
    assert account(leaf + program, tmp_path, engine).peak[1] == peak


def test_a_graph_that_outlives_its_iteration_is_still_counted(tmp_path):
    program = """
w = torch.rand(256, requires_grad=True)
losses = []
for _ in range(3):
    loss = (w * 2).exp().sum()
    losses.append((w * 3).exp().sum())
    loss.backward()
"""
    timeline = recorded_text(HEAD + program, tmp_path)
    found = [saved_memory(timeline, one.end).peak[1] for one in timeline.iterations[:3]]
    assert found == [2 * KIB, 3 * KIB, 4 * KIB]


MODEL = """
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.wide, self.back = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.back(F.gelu(self.wide(x)))


net = nn.Sequential(nn.Linear(16, 32), Block(32), Block(32), Block(32), nn.Dropout(0.5), nn.Linear(32, 4))
x, target = torch.rand(64, 16), torch.rand(64, 4)
"""
ORDINARY = f"{MODEL}\nloss = ((net(x) - target) ** 2).mean()\nloss.backward()\n"
CHECKPOINTED = f"""{MODEL}
from torch.utils.checkpoint import checkpoint

h = net[0](x)
for block in net[1:4]:
    h = checkpoint(block, h, use_reentrant=False)
loss = ((net[4:](h) - target) ** 2).mean()
loss.backward()
"""


@pytest.mark.torch
@pytest.mark.parametrize("program", [CHAIN, ORDINARY])
def test_the_peak_is_what_pytorch_packs(tmp_path, program):
    torch = pytest.importorskip("torch")
    sizes, kept = {}, []

    def pack(tensor):
        kept.append(tensor)  # alive, so that no address is used twice
        sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    names = {}
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        exec(HEAD + program, names)
    held = [*names["net"].parameters()] if "net" in names else []
    held += [one for one in names.values() if isinstance(one, torch.Tensor) and one.is_leaf]
    for one in held:
        sizes.pop(one.untyped_storage().data_ptr(), None)
    assert account(program, tmp_path, "torch").peak[1] == sum(sizes.values())


@on_both_engines
def test_a_checkpoint_lowers_the_peak_as_far_as_was_said(tmp_path, engine):
    before, after = account(ORDINARY, tmp_path, engine), account(CHECKPOINTED, tmp_path, engine)
    advice = before.checkpoint()
    assert advice.modules == ("Sequential.1", "Sequential.2", "Sequential.3")
    assert after.checkpointed
    assert after.peak[1] < before.peak[1]
    assert advice.peak == pytest.approx(after.peak[1], rel=0.1)
    assert after.checkpoint() is None or after.checkpoint().peak > advice.peak * 0.5


LIBRARY = """
from torch.utils.checkpoint import checkpoint

blocks = nn.ModuleList([nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 16)) for _ in range(4)])
h = torch.rand(32, 16)
for block in blocks:
    h = {}
h.pow(2).mean().backward()
"""


@on_both_engines
def test_a_checkpoint_of_library_modules_is_seen(tmp_path, engine):
    plain = account(LIBRARY.format("block(h)"), tmp_path, engine)
    assert plain.peak[1] == 40 * KIB
    advice = plain.checkpoint()
    assert len(advice.modules) == 4  # none is a part of another
    found = account(LIBRARY.format("checkpoint(block, h, use_reentrant=False)"), tmp_path, engine)
    assert found.peak[1] == advice.peak == (3 * 2 + 8) * KIB  # inputs that are no leaf, and one block computed again


EQUAL = """
from torch.utils.checkpoint import checkpoint

w = torch.rand(256, requires_grad=True)


def function(x):
    return F.gelu(F.gelu(F.gelu(x)))


h = w * 2
y = {}
y.sum().backward()
"""


@on_both_engines
def test_the_inputs_of_equal_operations_show_which_one_was_computed_again(tmp_path, engine):
    plain = account(EQUAL.format("function(h)"), tmp_path, engine)
    assert plain.peak[1] == 3 * KIB  # the inputs of three gelus
    found = account(EQUAL.format("checkpoint(function, h, use_reentrant=False)"), tmp_path, engine)
    assert found.checkpointed == 3
    forward = [size for event, size in found.curve if event < found.timeline.pass_start(1)]
    assert forward == [KIB]  # h alone
    assert found.peak[1] == 3 * KIB  # all of it, computed again


TWICE = """
from torch.utils.checkpoint import checkpoint

w = torch.rand(256, requires_grad=True)
y = checkpoint(lambda x: (x * 2).exp().sigmoid(), w, use_reentrant=False)
y.sum().backward(retain_graph=True)
y.sum().backward()
"""


@on_both_engines
def test_a_checkpoint_is_computed_again_in_each_pass(tmp_path, engine):
    found = account(TWICE, tmp_path, engine)
    each = [2 * KIB, KIB, 0] if engine == "torch" else [KIB, 2 * KIB, KIB, 0]  # PyTorch stops within the last operation
    assert [size for _, size in found.curve] == each


WRAPPED = """
from torch.utils.checkpoint import checkpoint


class Wrapped(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        for layer in self.net:
            x = checkpoint(layer, x, use_reentrant=False)
        return x


net = Wrapped(nn.ModuleList([nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 16)) for _ in range(4)]))
net(torch.rand(32, 16)).pow(2).mean().backward()
"""


@on_both_engines
def test_a_checkpoint_inside_a_module_is_seen(tmp_path, engine):
    assert account(WRAPPED, tmp_path, engine).peak[1] == (3 * 2 + 8) * KIB


NESTED = """
from torch.utils.checkpoint import checkpoint

w = torch.rand(256, requires_grad=True)
inner = lambda x: x.exp().sigmoid().exp()
outer = lambda x: checkpoint(inner, (x * 2).exp(), use_reentrant=False).sigmoid()
checkpoint(outer, w * 3, use_reentrant=False).sum().backward()
"""


@pytest.mark.torch
def test_a_checkpoint_in_a_checkpoint_keeps_its_inputs_only(tmp_path):
    found = account(NESTED, tmp_path, "torch")
    forward, outer, inner = [1], [2, 3, 2], [3, 5, 4, 3, 2, 1, 0]  # the input of the inner one stays until its rule
    assert [size // KIB for _, size in found.curve] == forward + outer + inner


@on_both_engines
@pytest.mark.parametrize(
    ("program", "checkpointed"),
    [
        # what a rule computes, even if the forward computed the same before
        (
            """
class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.exp()


(x.exp() + Exp.apply(x)).sum().backward()
""",
            0,
        ),
        # what is computed inside without a gradient
        (
            """
mask = lambda x: (torch.arange(256) > 3) & (x.detach() > 0.5)
checkpoint(lambda x: (x * mask(x)).exp().sigmoid(), x, use_reentrant=False).sum().backward()
""",
            6,
        ),
        # operations that a pass adds to the graph
        (
            """
(g,) = torch.autograd.grad((x**4).sum(), x, create_graph=True)
(h,) = torch.autograd.grad(g.sum(), x, create_graph=True)
h.sum().backward()
""",
            0,
        ),
    ],
)
def test_what_is_a_checkpoint(tmp_path, engine, program, checkpointed):
    head = "from torch.utils.checkpoint import checkpoint\nx = torch.rand(256, requires_grad=True)\n"
    assert account(head + program, tmp_path, engine).checkpointed == checkpointed


@on_both_engines
def test_what_a_checkpoint_computed_again_is_freed_with_the_graph(tmp_path, engine):
    program = """
from torch.utils.checkpoint import checkpoint

w = torch.rand(256, requires_grad=True)
h = w * 2
y = checkpoint(lambda x: x.exp().sigmoid(), h, use_reentrant=False)
torch.autograd.grad(y.sum(), h, retain_graph=True)
del y, h
(w * 3).exp().exp().sum().backward()
"""
    found = account(program, tmp_path, engine)
    assert found.peak[1] == 2 * KIB


def test_a_module_has_what_is_inside_of_it(tmp_path):
    found = account(ORDINARY, tmp_path, "builtin")
    modules = found.by_module(found.peak[0])
    assert modules["Sequential.1"] > modules["Sequential.1.wide"] == 64 * 128 * 4
    assert modules["Sequential.1"] == modules["Sequential.2"]


def test_the_curve_has_its_peak_where_most_is_kept(tmp_path):
    found = account(ORDINARY, tmp_path, "builtin")
    curve = curve_text(found, 40)
    start, end = found.iteration.start, found.iteration.end + 1
    assert len(curve) == 40
    assert curve[(found.peak[0] - start) * 40 // (end - start)] == "█"
    assert curve[0] == curve[-1] == " "


def test_it_can_be_asked(tmp_path):
    timeline = recorded_text(HEAD + ORDINARY, tmp_path)
    told = str(answer(NamedNodes(timeline), "memory", len(timeline)))
    assert told.startswith("the graph of iteration 1 keeps up to 2")
    assert "torch.utils.checkpoint around each of the 3 modules Sequential.1 … Sequential.3" in told
    nothing = recorded_text("import torch\ny = torch.ones(2, requires_grad=True) + 1", tmp_path)
    assert memory_finding(nothing, 1).text == "no operation saves a tensor for backward up to event 1"


def test_a_variable_of_that_name_comes_first(tmp_path):
    timeline = recorded_text(HEAD + "memory = torch.ones(2, requires_grad=True) * 2\nmemory.sum().backward()", tmp_path)
    assert answer(NamedNodes(timeline), "memory", len(timeline)).kind != "memory"


def test_the_command_prints_it(tmp_path):
    (tmp_path / "program.py").write_text(HEAD + CHAIN)
    code, out, _ = gviz_here("show", "program.py", "memory", "--engine", "builtin", cwd=tmp_path)
    assert code == 0
    assert "4 KiB" in out.splitlines()[0]
    assert "█" in out
    code, out, _ = gviz_here("show", "program.py", "memory", "--format", "json", "--engine", "builtin", cwd=tmp_path)
    assert json.loads(out)["memory"]["peak"]["bytes"] == 4 * KIB
