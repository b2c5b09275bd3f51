"""Fixes that are edits: what each kind of change writes, and that a program is right with the edit of its finding."""

import re
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from explain.programs import builtin

from benchmarks.answers import edit_for, findings_in, mends, programs
from gviz.explain import parameter_initialization, program_text
from gviz.explain import source_edit as edits
from gviz.explain.findings.errors import in_place_errors, second_backward
from gviz.explain.findings.gradient_values import nan_remedies
from gviz.explain.findings.missing_gradient import no_gradient, parameters_without_optimizer
from gviz.explain.findings.model import duplicate_index
from gviz.explain.findings.training_loop import (
    gradient_accumulation,
    kept_graphs,
    learning_rate,
    optimizer_made_in_loop,
)
from gviz.explain.source_edit import Edit
from gviz.source.call_stack import Frame

PATH = "program.py"


class Text:
    """A timeline that knows no more than the text of a program."""

    def __init__(self, text):
        self.text = text

        self.sources = (PATH,)

    def source(self, path):
        return self.text if path == PATH else None

    def once(self, question, about):
        return question(self, about)

    def __len__(self):
        return 1


def at(line, column=-1, end=-1):
    return Frame(PATH, "<module>", line, line, column, end)


def after(text, make, *arguments, line=1, **options):
    """The program after an edit, None where there is none."""
    edit = make(Text(text), at(line), *arguments, **options)
    return None if edit is None else edit.applied(text)


CHANGES = [
    (duplicate_index.indices_added, [], "out[rows] += x\n", "out.index_add_(0, rows, x)\n"),
    (duplicate_index.indices_added, [], "self.out[rows] -= x * 2\n", "self.out.index_add_(0, rows, x * 2, alpha=-1)\n"),
    (duplicate_index.indices_added, [], "out[:, rows] += x\n", None),
    (duplicate_index.indices_added, [], "out[1:3] += x\n", None),
    (duplicate_index.indices_added, [], "out[rows] *= x\n", None),
    (edits.parameter_last, [], "w = nn.Parameter(torch.randn(4)).view(2, 2)\n",
     "w = nn.Parameter(torch.randn(4).view(2, 2))\n"),
    (edits.parameter_last, [], "w = nn.Parameter(a - b).half()\n", "w = nn.Parameter((a - b).half())\n"),
    (edits.parameter_last, [], "w = nn.Parameter(-a).half()\n", "w = nn.Parameter((-a).half())\n"),
    (edits.parameter_last, [], "w = nn.Parameter(a)\n", None),
    (edits.parameter_last, [], "w = nn.Parameter(a, requires_grad=False).half()\n", None),
    (edits.without_method, ["detach"], "h = f(x).detach()\n", "h = f(x)\n"),
    (edits.without_method, ["detach"], "h = f(x)\n", None),
    (edits.without_attribute, ["data"], "y = g(x.data, 1)  # why\n", "y = g(x, 1)  # why\n"),
    (edits.without_call, ["Parameter"], "h = nn.Parameter(f(x))\n", "h = f(x)\n"),
    (edits.without_call, ["sigmoid"], "p = torch.sigmoid(net(x))\n", "p = net(x)\n"),
    (edits.without_call, ["sigmoid"], "p = net(x).sigmoid(y)\n", None),
    (edits.without_arrays, [], "h = torch.from_numpy(h.detach().cpu().numpy())\n", "h = h\n"),
    (edits.without_arrays, [], "h = torch.tensor([1.0])\n", None),
    (edits.renamed_call, ["sample", "rsample"], "z = dist.sample()\n", "z = dist.rsample()\n"),
    (edits.with_keyword, ["grad", "create_graph", "True"], "g, = grad(y, x)\n", "g, = grad(y, x, create_graph=True)\n"),
    (edits.with_keyword, ["f", "a", "2"], "f(x, a=1, b=3)\n", "f(x, a=2, b=3)\n"),
    (edits.with_keyword, ["f", "a", "2"], "f()\n", "f(a=2)\n"),
    (edits.with_keyword, ["f", "a", "2"], "f(x, a=2)\n", None),
    (edits.wrapped, ["fake", ".detach()"], "loss = dis(fake).mean()\n", "loss = dis(fake.detach()).mean()\n"),
    (edits.wrapped, ["fake", ".detach()"], "fake = gen(z)\n", None),
    (edits.argument_suffix, ["log", ".clamp(min=1e-8)"], "y = torch.log(p * 2)\n",
     "y = torch.log((p * 2).clamp(min=1e-8))\n"),
    (edits.argument_suffix, ["log", ".clamp(min=1e-8)"], "y = p.log()\n", "y = p.clamp(min=1e-8).log()\n"),
    (edits.argument_suffix, ["log", ".clamp(min=1e-8)"], "y = a * torch.log(p) + b * torch.log(1 - p)\n",
     "y = a * torch.log(p.clamp(min=1e-8)) + b * torch.log((1 - p).clamp(min=1e-8))\n"),
    (nan_remedies.safe_where, [], "y = torch.where(x > 0, torch.log(x), 0)\n",
     "y = torch.where(x > 0, torch.log(torch.where(x > 0, x, 1.0)), 0)\n"),
    (nan_remedies.safe_where, [], "y = torch.where(v > 0, v.sqrt(), v)\n",
     "y = torch.where(v > 0, torch.where(v > 0, v, 1.0).sqrt(), v)\n"),
    (gradient_accumulation.divided, [4], "loss.backward()\n", "(loss / 4).backward()\n"),
    (edits.before, ["opt.zero_grad()"], "loss.backward()\n", "opt.zero_grad()\nloss.backward()\n"),
    (edits.after, ["h.retain_grad()"], "h = x * 2\n", "h = x * 2\nh.retain_grad()\n"),
    (edits.removed, [], "opt.zero_grad(); reg.backward()\n", "reg.backward()\n"),
    (edits.in_block, ["with torch.no_grad():"], "w -= g\n", "with torch.no_grad():\n    w -= g\n"),
    (edits.in_block, ["with torch.no_grad():"], "w -= g; print(w)\n", None),
    (edits.without_in_place, [], "h += b(x)\n", "h = h + b(x)\n"),
    (edits.without_in_place, [], "h *= a + b\n", "h = h * (a + b)\n"),
    (edits.without_in_place, [], "e.data.clamp_(max=1.0)\n", "e = e.clamp(max=1.0)\n"),
    (edits.without_in_place, [], "s[0] = 0.0\n", "s = s.clone()\ns[0] = 0.0\n"),
    (edits.without_in_place, [], "s[1] = s[0]\n", None),
    (edits.without_option, ["inplace"], "r = nn.ReLU(inplace=True)\n", "r = nn.ReLU()\n"),
    (edits.leaf_last, [], "w = torch.randn(4, requires_grad=True) * 0.1\n",
     "w = (torch.randn(4) * 0.1).requires_grad_()\n"),
    (edits.leaf_last, [], "w = f(torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True))\n", None),
]  # fmt: skip


GENERATORS = [
    ("p = net.parameters()\nf(p)\ng(p)\n", "p = list(net.parameters())\nf(p)\ng(p)\n", 2),
    ("p = (a for a in b)\nf(p)\ng(p)\n", "p = list(a for a in b)\nf(p)\ng(p)\n", 2),
    ("p = map(f, q)\nfor a in p:\n    h(p)\ng(q, p)\n", "p = list(map(f, q))\nfor a in p:\n    h(p)\ng(q, p)\n", 2),
    ("p = net.parameters()\nx = 1\ng(p)\n", "p = list(net.parameters())\nx = 1\ng(p)\n", None),
    ("p = net.parameters()\np = [a]\ng(p)\n", None, None),
    ("p = list(net.parameters())\nf(p)\ng(p)\n", None, None),
    ("g(p)\np = net.parameters()\n", None, None),
    ("def a():\n    p = net.parameters()\ndef b(p):\n    h(p)\ng(p)\n", None, None),
    ("p = iter(q)\nif p is None:\n    h()\ng(p)\n", "p = list(iter(q))\nif p is None:\n    h()\ng(p)\n", None),
    ("p = iter(q)\nif any(p):\n    h()\ng(p)\n", "p = list(iter(q))\nif any(p):\n    h()\ng(p)\n", 2),
    ("p = iter(q)\ntry:\n    h()\nexcept E:\n    f(p)\ng(p)\n",
     "p = list(iter(q))\ntry:\n    h()\nexcept E:\n    f(p)\ng(p)\n", 5),
    ("def a():\n    p = iter(q)\ndef b(p):\n    return g(p)\nb([])\n", None, None),
    ("def a():\n    p = iter(q)\ndef b():\n    return g(p)\n", None, None),
    ("p = iter(q)\ndef a(p):\n    f(p)\ndef b():\n    h(p)\n    return g(p)\n",
     "p = list(iter(q))\ndef a(p):\n    f(p)\ndef b():\n    h(p)\n    return g(p)\n", 5),
    ("p = [a]\ndef b():\n    p = iter(q)\n    return g(p)\n",
     "p = [a]\ndef b():\n    p = list(iter(q))\n    return g(p)\n", None),
    ("def b():\n    global p\n    p = iter(q)\ng(p)\n", "def b():\n    global p\n    p = list(iter(q))\ng(p)\n", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected", "first"), GENERATORS)
def test_a_generator_that_a_line_reads_becomes_a_list(text, expected, first):
    last = next(
        number
        for number, row in enumerate(text.splitlines(), 1)
        if row.strip().removeprefix("return ").startswith("g(")
    )
    read = edits.generator_read(Text(text), at(last))
    assert (read and read.edit.applied(text)) == expected
    assert (read and read.first and read.first.line) == first


IN_LOOPS = [
    ("for i in a:\n    opt = Adam(p)\n    opt.step()\n", "opt = Adam(p)\nfor i in a:\n    opt.step()\n"),
    (
        "def f():\n    while a:\n        b()\n        opt = o.Adam(\n            p)\n        c()\n        opt.step()\n",
        "def f():\n    opt = o.Adam(\n            p)\n    while a:\n        b()\n        c()\n        opt.step()\n",
    ),
    ("for i in a:\n    opt = Adam(p); b()\n    opt.step()\n", ""),
    ("for i in a:\n    if i:\n        opt = Adam(p)\n    opt.step()\n", None),
    ("for i in a:\n    opt = SGD(p)\n    opt.step()\n", None),
    ("for i in a:\n    other = Adam(p)\n    opt.step()\n", None),
    ("for i in a:\n    b()\n    opt.step()\n    opt = Adam(p)\n", None),
    ("opt = Adam(p)\nfor i in a:\n    opt.step()\n", None),
    ("for j in b:\n    opt = Adam(p)\n    for i in a:\n        opt.step()\n", None),
    ("opt = Adam(p)\nopt.step()\n", None),
    ("for lr in a:\n    opt = Adam(p, lr=lr)\n    opt.step()\n", None),
    ("for i in a:\n    c.lr = i\n    opt = Adam(p, lr=c.lr)\n    opt.step()\n", None),
    ("for i in a:\n    opt = Adam([w])\n    w.grad = None\n    opt.step()\n",
     "opt = Adam([w])\nfor i in a:\n    w.grad = None\n    opt.step()\n"),
    ("for i in a:\n    opt = Adam([w for w in p])\n    opt.step()\n",
     "opt = Adam([w for w in p])\nfor i in a:\n    opt.step()\n"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), IN_LOOPS)
def test_what_a_loop_makes_anew_moves_before_it(text, expected):
    last = next(number for number, row in enumerate(text.splitlines(), 1) if "opt.step()" in row)
    made = optimizer_made_in_loop.construction_in_loop(Text(text), at(last), "opt", "Adam")
    assert (made and (made.edit.applied(text) if made.edit else "")) == expected


REPEATED = [
    ("p = d(f)\nloss = b(p)\nopt.step()\nloss.backward()\n", [1, 2],
     "p = d(f)\nloss = b(p)\nopt.step()\np = d(f)\nloss = b(p)\nloss.backward()\n"),
    ("def f():\n    p = d(\n        f)\n    opt.step()\n", [2],
     "def f():\n    p = d(\n        f)\n    opt.step()\n    p = d(\n        f)\n"),
    ("if a:\n    p = d(f)\nopt.step()\n", [2], None),
    ("p += d(f)\nopt.step()\n", [1], None),
    ("opt.step()\np = d(f)\n", [2], None),
    ("p = d(f); opt.step()\n", [1], None),
    ("opt.step()\n", [], None),
    ("h = cell(x, h)\nopt.step()\n", [1], None),
    ("net.h = cell(x, net.h)\nopt.step()\n", [1], None),
    ("p = d(h)\nh, c = cell(x, p)\nopt.step()\n", [1, 2], None),
    ("p[0] = d(p[1])\nopt.step()\n", [1], None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "earlier", "expected"), REPEATED)
def test_assignments_are_repeated_after_a_statement_of_their_block(text, earlier, expected):
    last = next(number for number, row in enumerate(text.splitlines(), 1) if "opt.step()" in row)
    texts, edit = in_place_errors.repeated_after(
        Text(text), at(last, text.splitlines()[last - 1].index("opt")), [*map(at, earlier)]
    )
    assert (edit and edit.applied(text)) == expected
    assert bool(texts) is (expected is not None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x.require_grad = True\n", "x.requires_grad = True\n"),
        ("x.requires_grad = True\n", None),
        ("y.require_grad = True\n", None),
        ("x.data = y\n", None),
        ("x.grad = None\n", None),
    ],
)
def test_a_misspelled_attribute_is_written_as_it_is_meant(text, expected):
    typo = no_gradient.misspelled(Text(text), at(1), "x", "requires_grad")
    assert (typo and typo[2].applied(text)) == expected


@pytest.mark.parametrize(("make", "arguments", "text", "expected"), CHANGES)
def test_what_a_change_writes(make, arguments, text, expected):
    assert after(text, make, *arguments) == expected


INDENTED = """\
for x in data:
    loss = f(x)
    loss.backward()
    opt.zero_grad()
    if last:
        opt.step()
"""


def test_a_statement_moves_to_the_indentation_of_another():
    edit = edits.moved(Text(INDENTED), at(4), at(6))
    assert edit.applied(INDENTED) == INDENTED.replace("    opt.zero_grad()\n", "") + "        opt.zero_grad()\n"
    assert (edit.line, edit.end_line) == (4, 6)


def test_a_statement_moves_into_the_loop_that_uses_it():
    text = "feats = enc(x)\nfor step in range(3):\n    loss = head(feats)\n"
    edit = second_backward.into_loop(Text(text), at(1), at(3))
    assert edit.applied(text) == "for step in range(3):\n    feats = enc(x)\n    loss = head(feats)\n"


def test_the_column_chooses_between_statements_of_a_line():
    text = "oa.step(); ob.step()\n"
    assert [program_text.receiver(Text(text), at(1, column, column + 9), "step") for column in (0, 11)] == [
        "oa",
        "ob",
    ]


BLOCK = "@torch.no_grad()\ndef f(x):\n    return g(x)\nwith torch.no_grad():\n    y = h(x)\n    z = y * 2\n"


@pytest.mark.parametrize(
    ("line", "how", "expected"),
    [
        (3, "decorator", BLOCK.replace("@torch.no_grad()\n", "")),
        (6, "with", BLOCK.partition("with")[0] + "y = h(x)\nz = y * 2\n"),
    ],
)
def test_what_switches_gradients_off_is_taken_away(line, how, expected):
    found = edits.switch_of(Text(BLOCK), [at(line)])
    assert (found.how, found.edit.applied(BLOCK)) == (how, expected)


def test_an_edit_is_not_applied_to_another_text():
    with pytest.raises(ValueError, match="line 2 has changed"):
        Edit(PATH, 2, "b\n", "c\n").applied("a\nx\n")


def test_a_diff_has_the_lines_that_change():
    assert Edit(PATH, 1, "a\nb\n", "a\nc\n").diff() == ["-b", "+c"]


def test_a_diff_of_a_new_line_shows_the_line_next_to_it():
    assert Edit(PATH, 1, "a\n", "b\na\n").diff() == ["+b", " a"]
    assert Edit(PATH, 1, "a\n", "a\nb\n").diff() == [" a", "+b"]


def test_a_diff_of_a_moved_line_shows_the_lines_between():
    assert Edit(PATH, 1, "a\nb\n", "b\na\n").diff() == ["+b", " a", "-b"]


def test_no_edit_has_the_old_text_as_the_new_one():
    with pytest.raises(ValueError, match="changes nothing"):
        Edit(PATH, 1, "a\n", "a\n")
    text = program_text.parsed_program(PATH, "a\nb\n")
    assert edits.lines_replaced(text, 1, 1, "a\n") is None
    assert edits.node_replaced(text, text.statements[1].node, "b") is None


IN_TWO_FUNCTIONS = """
class Trainer:
    def __init__(self, model):
        self.opt = SGD(model.parameters())

    def copy(self, model):
        return deepcopy(model)
"""


def test_a_statement_is_not_moved_to_another_function():
    assert edits.moved(Text(IN_TWO_FUNCTIONS), at(4), at(7)) is None


@pytest.mark.parametrize("text", ["def f(:\n", "x = (\n", ""])
def test_a_text_that_is_no_program_has_no_edit(text):
    assert after(text, edits.without_method, "detach") is None


# Programs: with the edit of the finding that names the line of the mistake, they are right

EDITED = """\
cut_numpy cut_detach cut_data cut_tensor_of_tensors no_grad_decorator no_grad_block grad_disabled scaled_leaf
double_leaf reshaped_leaf optimizer_of_results intermediate_grad wrapped_parameter zero_after_backward
zero_each_micro_batch two_losses_cleared never_cleared one_of_two_cleared manual_not_cleared step_before_backward
rebound_by_update rebound_in_no_grad leaf_in_place init_in_place loop_keeps_graphs running_total_keeps_graphs
hidden_not_detached ema_with_graph backward_twice features_outside_the_loop penalty_outside_the_loop
gan_without_detach residual_in_place exp_then_mul_ inplace_relu_after_tanh index_write_to_saved unbind_in_place
data_write loss_broadcast mse_broadcast softmax_over_batch sigmoid_before_logits_loss nll_without_log
functional_dropout_in_eval log_of_zero where_log where_sqrt td_target_not_detached actor_reaches_critic
padding_trained clip_before_backward clip_after_step penalty_without_create_graph
second_derivative_without_create_graph penalty_input_without_grad micro_batches_summed loss_returned_detached
checkpoint_reentrant clip_scaled sampled_not_reparameterized
""".split()  # noqa: SIM905  # a table
WITHOUT_BUILTIN = {"checkpoint_reentrant", "clip_scaled", "sampled_not_reparameterized"}
"""The built-in engine lacks what these programs use."""


def found_in(checks, text, engine):
    outcome = checks.of_text(text, engine)
    return findings_in(outcome.found, outcome.path)


BY_NAME = {program.name: program for program in programs("sick")}


def switch_on():
    """Let gradients be computed again: one of the programs switches them off for good."""
    for engine in ("torch", "gviz.engine"):
        if hasattr(sys.modules.get(engine), "set_grad_enabled"):
            sys.modules[engine].set_grad_enabled(True)


@pytest.fixture
def gradients_on():
    """Switch them on after a test, whatever it did."""
    yield
    switch_on()


@pytest.mark.usefixtures("gradients_on")
@pytest.mark.parametrize(
    ("name", "engine"),
    [
        *((name, "builtin") for name in EDITED if name not in WITHOUT_BUILTIN),
        *(pytest.param(name, "torch", marks=pytest.mark.torch) for name in EDITED),
    ],
)
def test_a_program_is_right_with_the_edit_that_is_advised(name, engine, checks):
    program = BY_NAME[name]
    found = found_in(checks, program.text, engine)
    edit = edit_for(program, found)
    assert edit is not None
    switch_on()
    with builtin(None) if engine == "builtin" else nullcontext():
        assert mends(program, edit)


KINDS = {
    "same_init": "same-units",
    "padding_trained": "padding-trained",
    "actor_reaches_critic": "reaches-other-part",
    "clip_after_step": "clipped-late",
    "micro_batches_summed": "summed-passes",
    "half_underflow": "underflow",
    "hook_each_iteration": "changed-by-hook",
    "kl_of_probabilities": "no-log-probabilities",
    "masked_loss_nan": "nan-born-backward",
}
QUIET = ["token_zero_is_a_word", "padding_index", "accumulation", "accumulation_of_sums", "lora", "vae"]
HEALTHY = {program.name: program for program in programs("healthy")}


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize("name", KINDS)
def test_a_mistake_is_found_as_its_kind(name, engine, checks):
    found = {one.kind for one in found_in(checks, BY_NAME[name].text, engine)}
    assert KINDS[name] in found


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize("name", QUIET)
def test_what_looks_like_it_is_not_found(name, engine, checks):
    found = found_in(checks, HEALTHY[name].text, engine)
    assert not {one.kind for one in found} & {*KINDS.values(), "scaled-step"}


@pytest.mark.torch
def test_a_step_with_scaled_gradients_is_found_and_one_of_the_scaler_is_not(checks):
    sick = found_in(checks, BY_NAME["scaled_but_stepped"].text, "torch")
    assert [one.kind for one in sick if one.names(BY_NAME["scaled_but_stepped"])] == ["scaled-step"]
    assert found_in(checks, HEALTHY["amp_with_scaler"].text, "torch") == ()


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
def test_the_line_that_registered_a_hook_is_named(engine, checks):
    for name in ("hook_zero", "hook_flip", "module_hook_zero"):
        program = BY_NAME[name]
        found = found_in(checks, program.text, engine)
        assert any(one.kind == "changed-by-hook" and one.names(program) for one in found), name


LOOP = "import torch\nw = 1\nfor x in data:\n    loss = f(x)\n    {kept}\n    y = 2\nlosses.append(loss)\n"

READS = [
    (program_text.receiver, 1, ["step"], "opt.step()\n", "opt"),
    (program_text.receiver, 1, ["step"], "self.opt.step(f)\n", "self.opt"),
    (program_text.receiver, 1, ["step"], "step()\n", ""),
    (program_text.receiver, 1, ["step"], "opt.zero_grad()\n", ""),
    (program_text.receiver, 1, ["step"], "while opt.step():\n    f()\n", ""),
    (program_text.receiver, 9, ["step"], "opt.step()\n", ""),
    (program_text.arguments, 1, ["step"], "scaler.step(opt, f(x))\n", ["opt", "f(x)"]),
    (program_text.arguments, 1, ["step"], "scaler.update(opt)\n", []),
    (program_text.arguments, 9, ["step"], "scaler.step(opt)\n", []),
    (parameters_without_optimizer.optimizer_named, 2, [], "opt = torch.optim.SGD(p)\nopt.step()\n", "opt"),
    (parameters_without_optimizer.optimizer_named, 2, [], "opt = torch.nn.Linear(p)\nopt.step()\n", ""),
    (parameters_without_optimizer.optimizer_named, 3, [], "a = optim.SGD(p)\nb = optim.Adam(q)\na.step()\n", ""),
    (program_text.method_self, 3, [], "class A:\n    def f(this, x):\n        return x\n", "this"),
    (program_text.method_self, 2, [], "def f(this, x):\n    return x\n", ""),
    (program_text.method_self, 3, [], "class A:\n    def f():\n        return x\n", ""),
    (program_text.method_self, 3, [], "def g():\n    def f(x):\n        return x\n", ""),
    (program_text.method_self, 9, [], "class A:\n    def f(this, x):\n        return x\n", ""),
    (program_text.called_at, 1, ["sample", "rsample"], "z = dist.sample()\n", True),
    (program_text.called_at, 1, ["sample"], "z = dist.rsample()\n", False),
    (program_text.called_at, 1, ["sample"], "for x in y:\n    z = dist.sample()\n", False),
    (program_text.called_at, 9, ["sample"], "z = dist.sample()\n", False),
    (program_text.keyword_or_argument, 1, ["grad", 1, "inputs"], "g = grad(y, [a, b])\n", {"a", "b"}),
    (program_text.keyword_or_argument, 1, ["grad", 1, "inputs"], "g = grad(y, inputs=c)\n", {"c"}),
    (program_text.keyword_or_argument, 1, ["grad", 1, "inputs"], "g = other(y, c)\n", set()),
    (program_text.target_of, 1, [], "y = f(x)\n", "y"),
    (program_text.target_of, 1, [], "a, b = f(x)\n", ""),
    (program_text.target_of, 9, [], "y = f(x)\n", ""),
]


@pytest.mark.parametrize(("read", "line", "arguments", "text", "expected"), READS)
def test_what_a_line_says(read, line, arguments, text, expected):
    assert read(Text(text), at(line), *arguments) == expected


LINES = [
    (program_text.assignment, 4, ["opt"], "opt = a\nopt = b\nx = 1\nopt.step()\nopt = c\n", 2),
    (program_text.assignment, 2, ["opt"], "x = a\nopt.step()\n", None),
    (program_text.assignment, 2, ["b"], "a, b = f()\nb.step()\n", 1),
    (program_text.assignment, 2, ["self.opt"], "self.opt = f()\nself.opt.step()\n", 1),
]


@pytest.mark.parametrize(("read", "line", "arguments", "text", "expected"), LINES)
def test_the_line_that_made_or_wrote_something(read, line, arguments, text, expected):
    frame = read(Text(text), at(line), *arguments)
    assert (frame and frame.line) == expected


WRITES = [
    ("w", "w = f()\nnn.init.zeros_(w)\nw.data.fill_(1)\nx = 1\ng(w)\n", 3),
    ("fc.weight", "net = f()\nnn.init.ones_(net.fc.weight)\nx = 1\ng()\n", 2),
    ("fc.weight", "net = f()\nnn.init.ones_(net.fc.bias)\nx = 1\ng()\n", None),
    ("w", "net = f()\nfor p in net.parameters():\n    p.zero_()\ng()\n", 3),
    ("w", "net = f()\nfor _, p in net.named_parameters():\n    zeros_(p)\ng()\n", 3),
    ("w", "net = f()\nfor p in net.others():\n    p.zero_()\ng()\n", None),
    ("w", "w = f()\nw.relu()\nw.__init__()\ng(w)\n", None),
    ("w", "w = f()\nw.grad.zero_()\ninit.zeros_()\ng(w)\n", None),
]


@pytest.mark.parametrize(("name", "text", "expected"), WRITES)
def test_the_line_that_sets_the_first_numbers_of_a_parameter(name, text, expected):
    info = SimpleNamespace(name=name, also=())
    write = parameter_initialization.initial_write(Text(text), info, parameter_initialization.writes_constant)
    assert (write and write.at.line) == expected


@pytest.mark.parametrize(
    ("kept", "names", "written"),
    [
        ("losses.append(loss)", ["loss"], "losses.append(loss.item())"),
        ("losses.add(loss)", ["loss"], "losses.add(loss.item())"),
        ("total += loss", ["loss"], "total += loss.item()"),
        ("total -= loss", ["loss"], None),
        ("total = total + loss", ["loss"], "total = total + loss.item()"),
        ("total = other + loss", ["loss"], None),
        ("losses.append(x)", ["loss"], None),
        ("print(loss)", ["loss"], None),
    ],
)
def test_the_line_that_keeps_a_loss_of_each_iteration_keeps_its_number(kept, names, written):
    text = LOOP.format(kept=kept)
    found = kept_graphs.kept_by(Text(text), at(4), names)
    assert (found and found[0].line) == (written and 5)
    assert (found and found[1].applied(text)) == (written and LOOP.format(kept=written))


def test_the_line_of_the_result_itself_keeps_it():
    text = "for x in data:\n    total = total + f(x) * 2\n"
    frame, edit = kept_graphs.kept_by(Text(text), at(2), [])
    assert frame.line == 2
    assert edit.applied(text) == "for x in data:\n    total = total + (f(x) * 2).item()\n"
    assert kept_graphs.kept_by(Text("total = total + f(x)\n"), at(1), []) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n = loss.item()\ny = torch.tensor(n)\n", ("n", 1)),
        ("n = loss.item()\nn = float(loss)\ny = torch.tensor(n)\n", ("n", 2)),
        ("n += loss.item()\ny = torch.tensor(n)\n", ("n", 1)),
        ("n = loss.sum()\ny = torch.tensor(n)\n", None),
        ("n = loss.item()\ny = torch.tensor(m)\n", None),
        ("y = torch.tensor(n)\n", None),
    ],
)
def test_the_number_from_which_a_line_makes_a_tensor(text, expected):
    last = text.count("\n")
    found = next(iter(program_text.numbers_read(Text(text), at(last))), None)
    assert (found and (found[0], found[1].line)) == expected


def test_a_block_that_begins_on_its_own_line_has_no_edit():
    assert after("while a:\n    f()\n", edits.in_block, "with torch.no_grad():") is None
    assert after("f()\n", edits.in_block, "with torch.no_grad():", "g()", "h()") is not None


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        (
            "def f():\n    torch.set_grad_enabled(False)\n    g()\n\n    h()\nk()\n",
            2,
            "def f():\n    with torch.no_grad():\n        g()\n\n        h()\nk()\n",
        ),
        ("def f():\n    g()\n    torch.set_grad_enabled(False)\nk()\n", 3, None),
        ("def f():\n    torch.set_grad_enabled(False); g()\n    h()\n", 2, None),
    ],
)
def test_gradients_that_stay_off_are_off_to_the_end_of_the_function_only(text, line, expected):
    found = edits.switched_off_for_good(Text(text), [PATH])
    assert found.at.line == line
    assert (found.edit and found.edit.applied(text)) == expected


PLATEAU = "plateau = ReduceLROnPlateau(opt, MODE)\nfor _ in range(9):\n    val = f(x)\n    STEP\n"


@pytest.mark.parametrize(
    ("mode", "step", "name"),
    [
        ('mode="max"', "plateau.step(val)", "val"),
        ("'max'", "plateau.step(metrics=val.item())", "val"),
        ('mode="min"', "plateau.step(val)", ""),
        ("patience=2", "plateau.step(val)", ""),
        ('mode="max"', "other.step(val)", ""),
        ('mode="max"', "plateau.step(-val)", ""),
        ('mode="max"', "val = -val\n    plateau.step(val)", ""),
    ],
)
def test_a_plateau_for_a_maximum_is_found_with_the_one_assignment_of_what_it_gets(mode, step, name):
    text = PLATEAU.replace("MODE", mode).replace("STEP", step)
    plateaus = list(learning_rate.plateaus_for_maxima(Text(text), at(1)))
    expected = [(1, name, range(3, 4))] * bool(name)
    assert [(frame.line, metric, lines) for frame, metric, lines, _ in plateaus] == expected
    mended = PLATEAU.replace("MODE", re.sub("['\"]max['\"]", '"min"', mode)).replace("STEP", step)
    assert [edit.applied(text) for *_, edit in plateaus] == [mended] * bool(name)
