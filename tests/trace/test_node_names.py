"""Names come from the source: each program here makes tensors, and says what its nodes should be called."""

import contextlib
import textwrap

import pytest

import gviz.engine as torch
from gviz import emit
from gviz import events as e
from gviz.trace.event_log import MemoryLog
from gviz.trace.naming.bindings import LARGEST_SOURCE, bindings
from gviz.trace.recording.source_text import read_source
from gviz.trace.timeline import Timeline


@pytest.fixture
def timeline_in(tmp_path):
    """What a program did, whose variables live on."""
    alive = []

    def run(source, raises=()):
        path = tmp_path / "program.py"
        path.write_text(textwrap.dedent(source))
        code = compile(path.read_text(), str(path), "exec")
        log = MemoryLog()
        with emit.listening(emit.Channel(log.append, read_source=read_source)), contextlib.suppress(raises):
            alive.append(names := {"torch": torch})
            exec(code, names)
        return Timeline(log)

    return run


@pytest.fixture
def names_in(timeline_in):
    """The names of the nodes a program makes, in order, or the op in brackets; constants only if they have a name."""

    def run(source):
        timeline = timeline_in(source)
        infos = [timeline.info(node) for node in timeline.nodes]
        return [info.name or f"({info.op.name})" for info in infos if info.name or info.created.kind != "constant"]

    return run


LEAF = "x = torch.tensor([1., 2.], requires_grad=True)\n"


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("y = x**2", "y"),
        ("y = (x.exp())", "y"),
        ("y: object = x.exp()", "y"),
        ("(y := x.exp())", "y"),
        ("y = z = x.exp()", "y"),
        ("y = x.exp() if True else x", "y"),
        ("x = x.exp()", "x"),
        ("torch.h = x.exp(); del torch.h", "torch.h"),
        ("d = {}; d['k'] = x.exp()", "d['k']"),
        ("ü = 'ü', x.exp()", "ü[1]"),
        ("ä = 'ä'; ö = x.exp()", "ö"),
        ("x.exp()", "(exp)"),
        ("repr(x.exp())", "(exp)"),
        ("y = [x.exp()]", "y[0]"),
        ("y = {'k': [1, x.exp()]}", "y['k'][1]"),
        ("class Case: __init__ = lambda self, **fields: None\ny = Case(a=1, b=x.exp())", "y.b"),
        ("class Case: __new__ = lambda cls, a: a.exp()\ny = Case(a=x)", "y"),
        ("class Tensor: __new__ = lambda cls, data: 1\ny = Tensor(data=x.exp())", "(exp)"),
        ("y = dict(k=x.exp())", "y['k']"),
        ("y = [*[], x.exp()]", "(exp)"),
        ("y = {**{}, 'k': x.exp(), 3: 4}", "y['k']"),
        ("setattr(torch, 'h', x.exp()); del torch.h", "torch.h"),
        ("m = torch.nn.Module(); m.register_buffer('h', x.exp())", "m.h"),
        ("y = (\n    x\n    .exp()\n)", "y"),
        ("f = lambda t: t.exp()\ny = f(x)", "y"),
    ],
)
def test_an_assignment_names_what_it_is_given(names_in, line, name):
    assert names_in(LEAF + line) == ["x", name]


def test_only_the_whole_value_gets_the_name(names_in):
    assert names_in(LEAF + "y = (x.exp() + x).sum()") == ["x", "(exp)", "(add)", "y"]


def test_a_chain_over_several_lines_names_its_end(names_in):
    assert names_in(LEAF + "y = (\n    x.exp()\n    .cos()\n    .sum()\n)") == ["x", "(exp)", "(cos)", "y"]


def test_the_start_of_a_chain_is_named_if_nothing_later_is(names_in):
    assert names_in("x = torch.zeros(2).requires_grad_(True)") == ["x"]
    assert names_in(LEAF + "loss = x.sum().item()") == ["x", "loss"]


def test_an_in_place_operator_names_its_target(names_in):
    assert names_in(LEAF + "y = x.exp()\ny += x") == ["x", "y", "y"]


def test_tuples_are_taken_apart(names_in):
    assert names_in(LEAF + "a, b = x.exp(), x.cos()") == ["x", "a", "b"]
    assert names_in(LEAF + "(a, b), c = (x.exp(), x.cos()), x.sin()") == ["x", "a", "b", "c"]


def test_what_a_function_returns_gets_the_callers_name(names_in):
    program = LEAF + "def f(t):\n    h = t.exp()\n    return h.cos()\ndef g(t):\n    return f(t)\ny = g(x)"
    assert names_in(program) == ["x", "h", "y"]


def test_what_runs_inside_a_custom_function_does_not_get_its_callers_name(names_in):
    function = """\
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        return t.exp()
"""
    assert names_in(LEAF + function + "for _ in range(2):\n    y = F.apply(x)") == ["x", *["(exp)", "y"] * 2]


def test_a_returned_tuple_is_taken_apart_by_the_caller(names_in):
    assert names_in(LEAF + "def f(t):\n    return t.exp(), t.cos()\na, b = f(x)") == ["x", "a", "b"]
    assert names_in(LEAF + "def f(t):\n    return t.exp(), t.cos()\npair = f(x)") == ["x", "pair[0]", "pair[1]"]


def test_every_turn_of_a_loop_names_its_node(names_in):
    assert names_in(LEAF + "for _ in range(3):\n    y = x * 2") == ["x", "y", "y", "y"]
    assert names_in(LEAF + "y = x\nfor _ in range(3):\n    y = y.exp().cos()") == ["x", *["(exp)", "y"] * 3]


def test_of_several_nodes_made_by_one_call_the_last_is_named(names_in):
    program = """
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh())
    x = torch.ones(2, 2)
    for _ in range(2):
        y = net(x)
    """
    named = names_in(program)
    assert named.count("y") == 2
    assert named[-1] == "y"


def test_a_batch_norm_gives_its_result_and_not_what_it_remembers(names_in):
    program = "bn = torch.nn.BatchNorm1d(2)\ny = bn(torch.ones(4, 2))\nz = y + 1"
    found = names_in(program)
    assert [name for name in found if name in ("y", "z") or "norm" in name] == ["y", "z"]


def test_a_loop_of_many_calls_is_one_though_only_its_beginning_is_looked_at(names_in):
    program = """
    net = torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Sigmoid(), torch.nn.ReLU())
    x = torch.ones(1)
    for _ in range(350):
        y = net(x)
    """
    assert names_in(program)[-3 * 350 :] == ["(tanh)", "(sigmoid)", "y"] * 350


@pytest.mark.parametrize("layers", ["L, R, L", "L, R, L, R", "L, R, L, R, L, R, L"])
def test_layers_that_repeat_are_steps_of_one_call_and_turns_of_a_loop_are_calls(names_in, layers):
    source = f"""
    L, R = (lambda: torch.nn.Linear(2, 2)), torch.nn.ReLU
    net = torch.nn.Sequential(*[layer() for layer in ({layers})])
    x = torch.ones(1, 2)
    once = net(x)
    for _ in range(3):
        again = net(x)
    """
    found = [name for name in names_in(source) if name in ("once", "again")]
    assert found == ["once", "again", "again", "again"]
    assert names_in(source)[-1] == "again"


def test_a_name_that_was_said_wins():
    log = MemoryLog()
    with emit.listening(emit.Channel(log.append, read_source=read_source)) as channel:
        x = torch.zeros(2, requires_grad=True)
        channel.emit(e.Named(1, "weights.0"))
    assert Timeline(log).info(1).name == "weights.0"
    assert x.requires_grad


@pytest.mark.parametrize("text", ["def f(:", "x = " + "(" * 5000, "\0", "x = 1\n" * LARGEST_SOURCE, "x" + ".x" * 9000])
def test_a_source_that_is_no_program_gives_no_names(text):
    assert bindings(text) == {}


def test_a_gradient_is_called_by_its_owner(names_in):
    names = names_in(LEAF + "loss = (x * x).sum()\nloss.backward()\nstep = 0.1 * x.grad\n")
    assert names == ["x", "(mul)", "loss", "x.grad", "step"]


PARTS = "x = torch.ones(4, 3, requires_grad=True)\ny = 0\n"


@pytest.mark.parametrize(
    "loop",
    [
        "for row in x:\n    row.sum()",
        "for row in x.split(1):\n    row.sum()",
        "for i, row in enumerate(x):\n    row.sum()",
        "for i, row in enumerate(x.split(2)):\n    row.sum()",
        "for row, other in zip(x.split(2), [1, 2]):\n    row.sum()",
        "for row in reversed(x.unbind()):\n    row.sum()",
        "for row in torch.ones(4, 3):\n    row.sum()",
        "sums = [row.sum() for row in x.chunk(2)]",
        "sums = [row.sum() for row in x]",
        "sums = {i: row.sum() for i, row in enumerate(x)}",
        "sums = list(row.sum() for row in x)",
    ],
)
def test_what_a_loop_takes_one_by_one_has_the_name_it_has_there(names_in, loop):
    assert "row" in names_in(PARTS + loop)[1:]


def test_pairs_that_a_loop_takes_apart_are_named(names_in):
    assert "a, b" in names_in(PARTS + "for a, b in x.split(1, 1)[0].view(2, 2):\n    a.sum()")


RETURNED = LEAF + "def f(t):\n    return {'mean': t.exp(), 'std': [t.cos()]}\n"


@pytest.mark.parametrize(
    ("taken", "names"),
    [
        ("out = f(x)", ["out['mean']", "out['std'][0]"]),
        ("m = f(x)['mean']", ["m", "(cos)"]),
        ("s, = f(x)['std']", ["(exp)", "s"]),
        ("f(x)", ["(exp)", "(cos)"]),
        pytest.param(f"{'a' * 81} = f(x)", ["(exp)", "(cos)"], id="a long name"),
    ],
)
def test_what_a_function_returns_in_a_dictionary_is_called_as_it_is_taken(names_in, taken, names):
    assert names_in(RETURNED + taken) == ["x", *names]


TURNS = (
    LEAF
    + """\
def f(t):
    h = t.sin()
    return h.exp()
def g():
    yield x.exp()
    if len(xs) > 1:
        yield x.cos()
class Feed:
    def __init__(self):
        self.left = 2
    def __iter__(self):
        return self
    def __next__(self):
        self.left -= 1
        if self.left < 0:
            raise StopIteration
        return x.exp(), x.cos()
net = torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Sigmoid())
xs = [x, x]
"""
)


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("a, b = (t.exp() for t in xs)", "a b"),
        ("a, b = [t.exp() for t in xs]", "a b"),
        ("a, b = list(t.exp() for t in xs)", "a b"),
        ("a, b = [f(t) for t in xs]", "h a h b"),
        ("a, b = (f(t).cos() + 1 for t in xs)", "h (exp) (cos) a h (exp) (cos) b"),
        ("a, b = map(f, xs)", "h a h b"),
        ("a, b = tuple(map(f, xs))", "h a h b"),
        ("a, b = map(lambda t: t.sin().exp(), xs)", "(sin) a (sin) b"),
        ("a, b = map(torch.exp, xs)", "a b"),
        ("a, b = map(torch.exp, map(torch.sin, xs))", "(sin) a (sin) b"),
        ("a, b = map(net, xs)", "(tanh) a (tanh) b"),
        ("a, b = g()", "a b"),
        ("for _ in xs:\n    a, b = (t.exp() for t in xs)\n    a + b", "a b (add) a b (add)"),
        ("(a, b), c = map(f, xs), x.sin()", "c h a h b"),
        ("for y in g():\n    y.sin()", "y (sin) y (sin)"),
        ("for y in map(f, xs):\n    y.sin()", "h y (sin) h y (sin)"),
        ("y = next(g())", "y"),
        ("y = next(iter(g()))", "y"),
        ("for a, b in Feed():\n    a.sin()", "a b (sin) a b (sin)"),
        ("a, b = next(Feed())", "a b"),
        ("y = next(Feed())[1]", "(exp) y"),
    ],
)
def test_what_is_made_in_turns_is_called_by_who_takes_the_turn(names_in, statement, names):
    assert names_in(TURNS + statement) == ["x", *names.split()]


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("a, b = (t if t is x else t.exp() for t in (x, x * 2))", "t (exp)"),
        ("for _ in xs:\n    a, b = (t.exp() for t in xs)", "(exp) (exp) (exp) (exp)"),
        ("a, b = map(f, map(f, xs))", "h (exp) h (exp) h (exp) h (exp)"),
        ("a, *b = (t.exp() for t in xs)", "(exp) (exp)"),
        ("ys = [t.exp() for t in xs]", "(exp) (exp)"),
        ("ys = list(map(torch.exp, xs))", "(exp) (exp)"),
        ("a, b = [x.exp()] + [x.cos()]", "(exp) (cos)"),
        ("xs = [0]\ny, = g()\nz = list(g())", "y (exp)"),
    ],
)
def test_where_nothing_tells_whose_turn_it_was_there_is_no_name(names_in, statement, names):
    assert names_in(TURNS + statement) == ["x", *names.split()]


def test_what_an_item_of_a_data_set_is_made_of_is_no_batch(names_in):
    data = "class Data:\n    def __getitem__(self, i):\n        [][i // 2:]\n        return x[i].exp(), x[i].cos()\n"
    taken = "data = Data()\ntry:\n    for batch in data:\n        pass\nexcept IndexError:\n    pass\na, b = data[0]"
    assert {"batch", "a", "b"} & {*names_in(LEAF + data + taken)} == {"a", "b"}


RETURNING = """
    class Part(torch.nn.Module):
        def forward(self, x):
            h = x.exp()
            z = h.sin()
            return z, h

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.part = Part()

        def forward(self, x):
            for _ in range(2):
                x, h = self.part(x)
            low = x.mean()
            if low > 5:
                return {'low': low, 'h': x}
            return {'low': low, 'h': h}

    def loss_of(x):
        out = Net()(x)
        total = out['low'] * 2
        return total

    def started():
        loss = loss_of(torch.tensor([1., 2.], requires_grad=True))
        return loss if loss.requires_grad else None

    final = started()
"""


def test_what_a_variable_returns_is_also_called_as_its_callers_call_it(timeline_in):
    timeline = timeline_in(RETURNING)
    infos = [timeline.info(node) for node in timeline.nodes]
    assert [(info.op.name, info.name, info.also) for info in infos if info.name and info.created.kind == "op"] == [
        ("exp", "h", ()), ("sin", "z", ("x",)), ("exp", "h", ()), ("sin", "z", ("x",)),
        ("mean", "low", ("out['low']",)), ("mul", "total", ("loss", "final")),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "name", "also"),
    [
        ("y = x.exp(); return y", "y", ("r",)),
        ("y = x.exp(); print(1); return y", "y", ("r",)),
        ("y = x.exp(); y = y.sin(); return y", "y", ("r",)),
        ("y = x.exp(); z = y.sin(); return y", "z", ()),
        ("y = x.exp(); return Out(a=y)", "y", ("r.a",)),
        ("y = x.exp()\n    if not torch: return\n    return y", "y", ("r",)),
        ("y = x.exp()\n    if not torch: return x\n    return y", "y", ()),
        ("y = x.exp()\n    return y if torch else x", "y", ("r",)),
        ("y = x.exp(); return y, y", "y", ()),
        ("y = x.exp(); (lambda: y); return x.sin()", "r", ()),
        ("r = x.exp(); return r", "r", ()),
        ("y = x.exp(); return [y, {'k': y}]", "y", ()),
        ("y = x.exp()\n    for y in [y]: pass\n    return y", "y", ("r",)),
        ("def inner(y): return y\n    y = x.exp()\n    inner(1)", "y", ()),
    ],
)
def test_only_what_is_returned_and_comes_last_is_called_so(timeline_in, body, name, also):
    out = "class Out: __init__ = lambda self, a: None\n"
    timeline = timeline_in(f"{out}def f(x):\n    {body}\n{LEAF}r = f(x)\n")
    last = timeline.info(timeline.nodes[-1])
    assert (last.name, last.also) == (name, also)


def test_a_variable_that_is_returned_has_been_other_things_before(timeline_in):
    timeline = timeline_in(f"def f(x):\n    x = x.exp()\n    x = x.sin()\n    return x\n{LEAF}r = f(x); r = f(x)\n")
    assert [timeline.info(node).also for node in timeline.nodes] == [(), (), ("r",), (), ("r",)]


@pytest.mark.parametrize("after", ["", "gviz.mark('m')"])
def test_a_call_that_may_go_on_has_given_nothing_yet(timeline_in, after):
    timeline = timeline_in(f"import gviz\ndef f(x):\n    y = x.exp()\n    {after}\n    return y\n{LEAF}r = f(x)\n")
    timeline.growing = True
    assert timeline.info(timeline.nodes[-1]).also == ()
    timeline.growing = False
    assert timeline.info(timeline.nodes[-1]).also == ("r",)


def test_a_model_that_was_called_has_given_what_it_returned(timeline_in):
    timeline = timeline_in(f"""
        class Net(torch.nn.Module):
            def forward(self, x):
                x = x.exp()
                return x
        {LEAF.strip()}
        r = Net()(x)
    """)
    timeline.growing = True
    assert timeline.info(timeline.nodes[-1]).also == ("r",)


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("w = torch.zeros(3).fill_(0.5)", ["w", "w"]),
        ("w = torch.zeros(3).fill_(0.5).mul_(2).requires_grad_()", ["w", "(fill_)", "w"]),
        ("w = torch.zeros(3).fill_(0.5).exp()", ["(fill_)", "w"]),
        ("torch.zeros(3).fill_(0.5)", ["(fill_)"]),
    ],
)
def test_a_new_tensor_that_is_written_to_at_once_has_the_name_of_the_result(names_in, line, names):
    assert names_in(line) == names
