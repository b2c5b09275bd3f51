"""Whose variable a name is, judged by the code that Python compiles, and the findings that depend on it."""

import types

import pytest

from gviz.explain.check import check
from gviz.explain.findings.missing_gradient.no_gradient import variable_owners, variables_read
from gviz.explain.why import why
from gviz.trace import load
from gviz.trace.recording.record import Kept, record

TEXT = """
y = z = 1
class Net:
    size = y
    def forward(self, h, *rest, key=None, **more):
        out = [each.grad + h.grad for each in rest]
        add = lambda y: y.grad + h.grad
        def inner(y):
            nonlocal out
            out = y.grad, z.grad
            return out.grad
        return inner
def report():
    def name_of(y):
        return y
    global z
    z = 2
    return y.grad, z.grad, size.grad
"""


def functions(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from functions(constant)


def test_what_is_a_functions_own_is_what_python_makes_local_to_it():
    known = variable_owners(TEXT)
    compared = 0
    for code in functions(compile(TEXT, "text.py", "exec")):
        for name in {*code.co_varnames, *code.co_cellvars} & {
            name for name, scope in known if scope == code.co_qualname
        }:
            assert known[name, code.co_qualname] == code.co_qualname
            compared += 1
        if code.co_qualname not in ("<module>", "Net"):
            for name in {*code.co_names, *code.co_freevars}:
                assert known.get((name, code.co_qualname)) != code.co_qualname
                compared += 1
    assert compared > 15


def test_a_read_is_of_the_variable_that_python_reads():
    forward = "Net.forward"
    assert variables_read(TEXT, "grad") == {
        ("each", f"{forward}.<locals>.<listcomp>"),
        ("h", forward),
        ("y", f"{forward}.<locals>.<lambda>"),
        ("y", f"{forward}.<locals>.inner"),
        ("out", forward),
        ("z", "<module>"),
        ("y", "<module>"),
        ("size", "<module>"),
    }


def test_a_function_that_only_hands_a_variable_on_does_not_own_it():
    text = (
        "def f():\n    h = 1\n    def g():\n        def k():\n            return h.grad\n        return k\n    return g"
    )
    assert variables_read(text, "grad") == {("h", "f")}


@pytest.mark.parametrize("text", ["def", "x = (", "\0"])
def test_a_text_that_is_no_python_owns_nothing(text):
    assert variable_owners(text) == {}
    assert variables_read(text, "grad") == set()


def recorded(folder, text):
    (folder / "program.py").write_text(
        "import gviz.engine as torch\nx = torch.tensor(2.0, requires_grad=True)\n" + text
    )
    with record(folder / "program.gviz", Kept()):
        exec(compile((folder / "program.py").read_text(), str(folder / "program.py"), "exec"), {"__name__": "__main__"})
    return load(folder / "program.gviz")


INNER = """
y = x * 3
def report():
    def name_of(y):
        return "y"
    return name_of(y), y.grad
(y * y).backward()
report()
"""
SET_BY_A_FUNCTION = """
def make():
    global y
    y = x * 3
make()
(y * y).backward()
y.grad
"""
TWO_CLASSES = """
class A:
    def forward(self, x):
        h = x * 3
        h.retain_grad()
        self.h = h
        return h * h
class Look:
    def forward(self):
        h = a.h
        return h.grad
class B:
    def forward(self, x):
        h = x * 2
        return h + 1
a = A()
B().forward(a.forward(x)).backward()
Look().forward()
"""


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
@pytest.mark.parametrize(
    ("text", "expected"), [(INNER, ["not-a-leaf"]), (SET_BY_A_FUNCTION, ["not-a-leaf"]), (TWO_CLASSES, [])]
)
def test_the_grad_of_a_result_is_read_where_its_variable_is(tmp_path, text, expected):
    assert [one.finding.kind for one in check(recorded(tmp_path, text))] == expected


SET_AGAIN = "x = x * 2\nx.backward()\n"
SET_WITHIN = """
def twice(x):
    x = x * 2
    return x
twice(x).backward()
"""


@pytest.mark.parametrize(("text", "kind"), [(SET_AGAIN, "rebound"), (SET_WITHIN, "not-a-leaf")])
def test_a_leaf_has_lost_its_name_only_where_its_own_variable_was_set(tmp_path, text, kind):
    timeline = recorded(tmp_path, text)
    (node,) = [node for node in timeline.nodes if timeline.info(node).created.kind == "op"]
    assert timeline.info(node).name == "x"
    assert why(timeline, timeline.at(len(timeline)), node, "grad").kind == kind
