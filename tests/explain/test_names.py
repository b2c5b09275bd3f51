"""One node, one phase: the same name wherever it is shown."""

import pytest
from explain.programs import recorded, recorded_text
from recording import timeline_of
from stories import demo, failed

import gviz
import gviz.engine as torch
from gviz.events import GradAccumulated, OptimizerStarted, OptimizerStepped, StorageWritten, VariableHeld
from gviz.explain.display_names import called, constant_value, label, op_title, symbol, title
from gviz.explain.event_description import sentence
from gviz.explain.iteration_words import iteration_called, phase_words
from gviz.explain.source_frames import frame_text, own_frame
from gviz.explain.typed_question import answer
from gviz.query.nodes import NamedNodes
from gviz.query_syntax.place import place
from gviz.render.scene import caption
from gviz.source.call_stack import Frame
from gviz.trace import load
from gviz.tui.drawing.status import phase_name


@pytest.mark.parametrize(
    ("node", "names"),
    [
        (1, ("x", "#1 x", "x leaf #1", "x")),
        (4, ("b = mul", "#4 b = mul", "b = mul #4", "b")),
        (0, ("", "", "", "?")),
    ],
)
def test_the_names_of_a_node_say_the_same_with_more_or_less_words(node, names):
    timeline = demo()
    known = timeline.info(node) if node else None
    said = (called(known), label(timeline, node), title(known)) if known else ("", "", "")
    assert (*said, symbol(timeline, node)) == names
    assert not known or constant_value(known) == ""


@pytest.mark.torch
def test_an_operation_has_the_name_of_its_function_in_pytorch(tmp_path):
    pytorch = pytest.importorskip("torch")
    F = pytorch.nn.functional
    with gviz.record(tmp_path / "trace.gviz"):
        x = pytorch.randn(2, 1, 4, 4, requires_grad=True)
        h = F.batch_norm(F.conv2d(x, pytorch.ones(2, 1, 3, 3)), None, None, training=True)
        h = F.linear(F.layer_norm(h.flatten(2), (4,)), pytorch.ones(3, 4), pytorch.ones(3))
        h = F.relu_(h * 2)
        loss = F.cross_entropy(h[:, 0], pytorch.tensor([0, 1]))
        loss.backward()
    timeline = load(tmp_path / "trace.gviz")
    names = [op_title(info) for info in map(timeline.info, timeline.nodes) if info.created.kind == "op"]
    for name in (
        "conv2d",
        "batch_norm",
        "layer_norm",
        "mul",
        "relu_",
        "log_softmax",
        "cross_entropy",
        "view",
        "linear",
    ):
        assert name in names
    assert not [name for name in names if name.startswith("_") or name.lower().startswith(("native", "convol"))]
    assert not {"T", "Nll_loss", "nll_loss", "addmm", "Addmm", "mm", "Mm"}.intersection(names)
    last = next(info for info in map(timeline.info, reversed(timeline.nodes)) if info.created.kind == "op")
    assert last.op.grad_fn == "NllLossBackward0"  # the exact name is next to it in the node panel


@pytest.mark.torch
def test_a_product_has_the_name_of_the_function_that_the_program_called(tmp_path):
    pytorch = pytest.importorskip("torch")
    with gviz.record(tmp_path / "trace.gviz"):
        a, b = pytorch.randn(3, 4, requires_grad=True), pytorch.randn(4, 5)
        assert pytorch.addmm(b[0], a, b).requires_grad
        assert all(
            it.requires_grad
            for it in (pytorch.mm(a, b), a @ b, pytorch.nn.functional.linear(a, pytorch.ones(5, 4), b[0]))
        )
        assert pytorch.dot(a[0], a[1]).requires_grad
        assert pytorch.kron(a, b).requires_grad
    timeline = load(tmp_path / "trace.gviz")
    names = [op_title(info) for info in map(timeline.info, timeline.nodes) if info.created.kind == "op"]
    names = [name for name in names if name not in ("index", "view")]
    assert names == ["addmm", "mm", "matmul", "linear", "dot", "mul"]


def test_operations_are_written_in_small_letters():
    timeline = timeline_of(lambda: (torch.ones(2, 2, requires_grad=True).log_softmax(1) @ torch.ones(2, 2)).t().sum())
    names = [op_title(info) for info in map(timeline.info, timeline.nodes) if info.created.kind == "op"]
    assert names == ["log_softmax", "matmul", "transpose", "sum"]


def test_the_number_of_a_backward_pass_is_said_from_the_second_on_until_it_is_over():
    timeline = failed()
    first, second, over = (timeline.at(n) for n in (20, 36, 39))
    assert phase_words(timeline, first) == "backward"
    assert phase_words(timeline, second) == phase_words(timeline, over) == "backward pass 2"
    assert [phase_name(timeline, moment) for moment in (first, second)] == ["BACKWARD", "BACKWARD 2"]
    for moment in (first, second, over):
        assert f", {phase_words(timeline, moment)}" in sentence(timeline, moment.n)
        assert f", {phase_words(timeline, moment)}" in caption(timeline, moment)


@pytest.mark.parametrize("engine", ["builtin", "torch"])
def test_without_an_update_nothing_is_called_an_optimizer(engine):
    timeline = recorded("updates", "twice", engine)
    assert "optimizer" not in {phase.kind for phase in timeline.phases}
    number = timeline.phases[-1].start
    assert f"event {number}, after backward" in sentence(timeline, number)
    assert phase_name(timeline, timeline.at(number)) == "AFTER BACKWARD"
    assert "after backward" in caption(timeline, timeline.at(number))


@pytest.mark.parametrize("engine", ["builtin", "torch"])
def test_a_step_is_the_optimizers(engine):
    timeline = recorded("updates", "a_plain_step", engine)
    kinds = OptimizerStarted, OptimizerStepped
    (_, begun), (_, done) = [(event, sentence(timeline, n)) for n, event in timeline.select(kinds)]
    assert begun.endswith(", optimizer: SGD starts a step, lr=0.1.")
    assert done.endswith(", optimizer: SGD has updated 1 parameter.")


@pytest.mark.torch
def test_a_write_of_a_step_is_told_with_what_was_there_and_asked_about_without_a_word():
    timeline = recorded("updates", "a_plain_step", "torch")
    ((seq, write),) = timeline.select((StorageWritten,))
    assert sentence(timeline, seq).endswith(": SGD takes it from [1 2] to [0.8 1.6], in place, version 1.")
    found = answer(NamedNodes(timeline), "", seq, selected=write.node)
    assert found.parts[0].text.startswith("then a step of SGD (lr=0.1)")


def trained_in_a_loop():
    w = torch.tensor(2.0, requires_grad=True)
    for _ in range(2):
        (w * w).backward()


def two_in_a_row():
    w = torch.tensor(2.0, requires_grad=True)
    (w * w).backward()
    (w * 3).backward()


@pytest.mark.parametrize(("program", "word"), [(trained_in_a_loop, "iteration"), (two_in_a_row, "graph")])
def test_graphs_that_no_loop_makes_are_no_iterations(program, word):
    timeline = timeline_of(program)
    assert len(timeline.iterations) == 2
    assert iteration_called(timeline) == word


def test_a_long_file_name_keeps_its_line():
    frame = Frame("/x/12_vanishing_gradients.py", "deep", 15, 15, 0, 1)
    assert frame_text(frame, 23) == "…ishing_gradients.py:15 in deep"
    assert frame_text(frame) == "12_vanishing_gradients.py:15 in deep"


# A name means the object that the program's variable holds

HEAD = """
import copy
import torch
from torch import nn
X = torch.ones(2, 1)
"""
IN_A_FUNCTION = """
def main():
    shared, worker = nn.Linear(1, 1), nn.Linear(1, 1)
    worker(X).mean().backward()
main()
"""
ATTRIBUTES = """
class Agent:
    def __init__(self):
        self.actor = nn.Linear(1, 1)
        self.target = copy.deepcopy(self.actor)
    def learn(self):
        self.actor(X).mean().backward()
agent = Agent()
agent.learn()
"""
COPIED_BEFORE_A_CALL = """
def train(m):
    m(X).mean().backward()
model = nn.Linear(1, 1)
train(copy.deepcopy(model))
"""
SAME_CLASS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(1, 1)
    def forward(self, x):
        return self.lin(x)
a, b = Net(), Net()
a(X).mean().backward()
"""
PATH_OF_ANOTHER = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head, self.other = nn.Linear(1, 1), nn.Linear(1, 1)
    def forward(self, x):
        return self.other(x) + 0 * self.head(x)
net, head = Net(), nn.Linear(1, 1)
net(X).mean().backward()
"""
ONE = "net = nn.Linear(1, 1)\nnet(X).mean().backward()\n"
ELSEWHERE = [
    ("shared, worker = nn.Linear(1, 1), nn.Linear(1, 1)\nworker(X).mean().backward()", "shared.weight", "worker"),
    (IN_A_FUNCTION, "shared.weight", "worker"),
    ("net = nn.Linear(1, 1)\nfast = copy.deepcopy(net)\nnet(X).mean().backward()", "fast.weight", "net"),
    (f"{ONE}fast = copy.deepcopy(net)", "fast.weight", ""),
    (f"{ONE}net = nn.Linear(1, 1)", "net.weight", ""),
    (ATTRIBUTES, "self.target.weight", "agent.actor"),
    (ATTRIBUTES, "agent.target.weight", "agent.actor"),
    (COPIED_BEFORE_A_CALL, "model.weight", ""),
    (SAME_CLASS, "b.lin.weight", "a"),
    (PATH_OF_ANOTHER, "head.weight", ""),
    ("nets = [nn.Linear(1, 1), nn.Linear(1, 1)]\nnets[1](X).mean().backward()", "nets[0].weight", "nets[1]"),
    ("d = {'a': nn.Linear(1, 1), 'b': nn.Linear(1, 1)}\nd['b'](X).mean().backward()", 'd["a"].weight', "d['b']"),
]


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize(("program", "name", "other"), ELSEWHERE)
def test_what_took_no_part_is_not_taken_for_another_object(program, name, other, engine, tmp_path):
    timeline = recorded_text(HEAD + program, tmp_path, engine)
    trained = {event.node for _, event in timeline.select((GradAccumulated,))}
    found = answer(NamedNodes(timeline), f"{name}.grad", len(timeline))
    if engine == "torch":
        assert found.kind == "took-no-part"
        assert found.text.startswith(name.replace('"', "'") + " took no part in this recording")
        assert found.parts[0].node in timeline.nodes
        assert not other or f" of {other}" in found.parts[0].text
    else:  # the built-in engine records a parameter when it is made
        assert found.kind in ("unused", "no-pass")
        assert found.node not in trained


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize(
    ("program", "name"),
    [
        (f"{ONE}fast = net", "fast.weight"),
        (f"{ONE}fast = net", "net.weight"),
        ("net = nn.Sequential(nn.Linear(1, 1))\nenc = net[0]\nnet(X).mean().backward()", "enc.weight"),
        ("def train(model):\n    model(X).mean().backward()\nnet = nn.Linear(1, 1)\ntrain(net)", "model.weight"),
        ("def train(model):\n    model(X).mean().backward()\nnet = nn.Linear(1, 1)\ntrain(net)", "net.weight"),
        ("a = b = torch.ones(3, requires_grad=True)\n(b * 2).sum().backward()", "b"),
        ("w = torch.ones(3, requires_grad=True)\nv = w\n(v * 2).sum().backward()", "v"),
        ("idle, net = nn.Linear(1, 1), nn.Linear(1, 1)\nnet(X).mean().backward()", "net.weight"),
        ("a, b = nn.Linear(1, 1), nn.Linear(1, 1)\na(X).mean().backward()\nb(X).mean().backward()", "b.weight"),
        (ATTRIBUTES, "agent.actor.weight"),
    ],
)
def test_every_name_of_an_object_means_it(program, name, engine, tmp_path):
    timeline = recorded_text(HEAD + program, tmp_path, engine)
    trained = {event.node for _, event in timeline.select((GradAccumulated,))}
    found = answer(NamedNodes(timeline), f"{name}.grad", len(timeline))
    assert found.kind == "gradient"
    assert found.node in trained


@pytest.mark.torch
def test_a_leaf_that_a_name_was_bound_to_later_is_not_taken_for_the_one_before(tmp_path):
    program = "w = torch.ones(3, requires_grad=True)\n(w * 2).sum().backward()\nw = nn.Parameter(torch.zeros(3))"
    timeline = recorded_text(HEAD + program, tmp_path, "torch")
    found = answer(NamedNodes(timeline), "w.grad", len(timeline))
    assert found.kind == "took-no-part"
    assert "is the tensor that w held before" in found.parts[0].text
    n = next(seq for seq, _ in timeline.select((VariableHeld,)))
    assert answer(NamedNodes(timeline), "w.grad", n - 1).kind == "gradient"


@pytest.mark.parametrize(
    ("paths", "line"),
    [
        (["/venv/lib/python3.11/site-packages/a/b.py", "/home/me/train.py"], 2),
        (["/usr/lib/python3.11/copy.py", "/usr/lib/python3/dist-packages/x.py", "/home/me/train.py"], 3),
        ([r"C:\Python311\Lib\site-packages\a.py", r"C:\me\train.py"], 2),
        (["/home/me/train.py", "/venv/lib/python3.11/site-packages/run.py"], 1),
        (["/venv/lib/python3.11/site-packages/a.py"], 1),
    ],
)
def test_the_line_is_the_nearest_of_the_program_itself(paths, line):
    frames = [Frame(path, "f", number, number, -1, -1) for number, path in enumerate(paths, 1)]
    assert own_frame(frames).line == line


def test_an_operation_is_found_by_the_name_that_is_shown():
    timeline = timeline_of(lambda: (torch.ones(2, 2, requires_grad=True) @ torch.ones(2, 2)).sum())
    (shown,) = [info for info in map(timeline.info, timeline.nodes) if op_title(info) == "matmul"]
    for text in ("op:matmul", "op:MatMul", "op:mm"):
        assert place(text).fits(shown)
    assert not place("op:linear").fits(shown)
    assert not place("matmul").names(shown)  # a plain word may be a module of that name


def test_an_operation_whose_name_reads_like_a_variable_has_its_documented_name():
    def program():
        t = torch.ones(2, 3)
        w = torch.ones(2, 3, requires_grad=True)
        return (w.t() @ t).sum()

    timeline = timeline_of(program)
    names = [op_title(info) for info in map(timeline.info, timeline.nodes) if info.created.kind == "op"]
    assert names == ["transpose", "matmul", "sum"]
    assert all(place(typed).fits(timeline.info(3)) for typed in ("op:t", "op:transpose"))
