"""What keeps a program from becoming a static graph is found where it stands; what is to be written instead works."""

import ast
import json
import re
import sys

import pytest
from cli.programs import gviz

import gviz.engine as torch
from gviz.engine import operation_watchers, static
from gviz.graphify.break_recorder import BreakRecorder
from gviz.graphify.breaks import breaks
from gviz.graphify.construct import construct
from gviz.source.call_stack import Frame
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline

INPUTS = ([3.0, -1.0, 2.0], [-3.0, 1.0, -2.0], [0.0, 0.0, 1.0])

IMAGE = "y = torch.stack([x, -x, x * 2])\n    i = (x[2] < 0).long()\n    return "

SAME_RESULT = {
    "if, both return": ("if x.sum() > 0:\n        return x * 2\n    return x + 2", "{0}", "if"),
    "if else": (
        "if x.sum() > 0:\n        y = x * 2\n    else:\n        y = x + 2\n    return y",
        "{0}\n    return y",
        "if",
    ),
    "if alone": ("y = x\n    if x.max() > 2:\n        y = y - 1\n    return y", "y = x\n    {0}\n    return y", "if"),
    "if and": (
        "if x.sum() > 0 and not x.max() > 2.5:\n        return x * 2\n    return x + 2", "{0}", "if"
    ),
    "if read": ("if 0 < x.sum().item() < 9 or bool(x[0] == 0):\n        return x * 2\n    return x + 2", "{0}", "if"),
    "if augmented": (
        "y = x * 1\n    if x.max() > 2:\n        y *= 3\n    return y",
        "y = x * 1\n    {0}\n    return y",
        "if",
    ),
    "expression": ("return x * 2 if x.mean() > 0 else x / 2", "return {0}", "if"),
    "while": (
        "while x.norm() > 1:\n        x = x / 2\n    return x",
        "LIMIT = 9\n    {0}\n    {1}\n    return x",
        "while",
    ),
    "for": (
        "for i in range(int(x.abs().sum())):\n        x = x + 1\n    return x",
        "LIMIT = 9\n    {all}\n    return x",
        "for",
    ),
    "for a fraction": (
        "y = x * 1\n    for i in range(1, int(x.abs().max() * 1.3)):\n        y += i\n        x = x * y\n    return x",
        "y = x * 1\n    LIMIT = 9\n    {all}\n    return x",
        "for",
    ),
    "while of two": (
        "y = x * 1\n    while not x.norm() < 1:\n        x = x / 2\n        y += x\n    return y",
        "y = x * 1\n    LIMIT = 9\n    {all}\n    return y",
        "while",
    ),
    "break": (
        "while 1:\n        x = x / 2\n        if x.norm() < 1:\n            break\n        x = x - 0.1\n    return x",
        "LIMIT = 9\n    {all}\n    return x",
        "if",
    ),
    "break of a while": (
        "while x.norm() > 1:\n        if x[0] == 3:\n            break\n        x = x / 2\n    return x",
        "LIMIT = 9\n    {all}\n    return x",
        "if",
    ),
    "break of a for": (
        "for i in range(3):\n        x = x * i\n        if x.sum() > 0:\n            break\n    return x",
        "{all}\n    return x",
        "if",
    ),
    "continue": (
        "for v in x:\n        if v < 0:\n            continue\n        x = x + v\n    return x",
        "for v in x:\n        {0}\n        {1}\n    return x",
        "if",
    ),
    "if a number": ("if x.sum():\n        return x * 2\n    return x + 2", "{0}", "if"),
    "if none": ("if not x[0]:\n        return x * 2\n    return x + 2", "{0}", "if"),
    "if one of": ("k = x[0]\n    return x * 2 if k.item() in (3, 4) else x + 2", "k = x[0]\n    return {0}", "if"),
    "if none of": ("return x * 2 if int(x.sum()) not in [1, 4] else x + 2", "return {0}", "if"),
    "if any": ("return x * 2 if (x < -2).any() else x + 2", "return {0}", "if"),
    "if not any": ("return x * 2 if not (x < -2).any() or x[0] and bool(x[1]) else x + 2", "return {0}", "if"),
    "if not of python": (
        "i = 4\n    return x * 2 if x.sum() > 0 and not i > 3 else x + 2", "i = 4\n    return {0}", "if"
    ),
    "words": ("return 'large' if x.sum() > 2 else 'small'", "return ['small', 'large'][{0}.item()]", "if"),
    "smaller": ("return min(x[0], x[1]) + x", "return {0} + x", "value"),
    "at most": ("low = 0.5\n    return min(low, x[1]) + x", "low = 0.5\n    return {0} + x", "value"),
    "smallest": ("return min([x[0], x[1]]) + x", "return {0} + x", "value"),
    "all": ("return x * all(v * 2 < 5 for v in x)", "return x * {0}", "value"),
    "all of a list": ("y = [x[0], x[2]]\n    return x * all(v for v in y)",
                      "y = [x[0], x[2]]\n    return x * {0}", "value"),
    "angle": ("import math\n    return x + math.atan2(1.5, x[0])", "return x + {0}", "value"),
    "slice": ("return x[: int(x[2].abs() * 1.4)].sum()", "return torch.where({0}, x, 0).sum()", "value"),
    "window": ("i = (x[2] < 0).long()\n    return x[i + 1 : i + 1 + 1]",
               "i = (x[2] < 0).long()\n    return {0}", "value"),
    "window that begins later": ("i, n = (x[2] < 0).long(), 2\n    return x[i + 1 : i + n]",
               "i, n = (x[2] < 0).long(), 2\n    return {0}", "value"),
    "window of a list of tensors": ("k, n = (x[:2] < 0).long(), 2\n    return torch.stack([x[i : i + n] for i in k])",
               "k, n = (x[:2] < 0).long(), 2\n    return torch.stack([{0} for i in k])", "value"),
    "window after an operation": ("i = (x[2] < 0).long() + 4\n    return x[i & 1 : (i & 1) + 2]",
                                  "i = (x[2] < 0).long() + 4\n    return {0}", "value"),
    "window after a choice": ("i = (x[2] < 0).long()\n    return x[i if len(x) else 0 : (i if len(x) else 0) + 2]",
                              "i = (x[2] < 0).long()\n    return {0}", "value"),
    "window of numbers read": ("i = x[2] < 0\n    return x[int(i) : int(i) + 2]",
                               "i = x[2] < 0\n    return {0}", "value"),
    "window whose length is data": ("i, k = (x[2] < 0).long(), x[0].abs().long()\n    return x[i : i + k].sum()",
                                    "i, k = (x[2] < 0).long(), x[0].abs().long()\n"
                                    "    return torch.where({0}, x, 0).sum()", "value"),
    "window whose length is in part data": ("i, k = (x[2] < 0).long(), x[0].abs().long()\n"
                                            "    return x[i : i + 1 * k].sum()",
                                            "i, k = (x[2] < 0).long(), x[0].abs().long()\n"
                                            "    return torch.where({0}, x, 0).sum()", "value"),
    "window of no length": ("i = (x[2] < 0).long()\n    return x[i + 2 : i + 1].sum()",
                            "i = (x[2] < 0).long()\n    return torch.where({0}, x, 0).sum()", "value"),
    "slice from the back": ("k = x[2].abs().long()\n    return x[-k:].sum()",
                            "k = x[2].abs().long()\n    return torch.where({0}, x, 0).sum()", "value"),
    "slice to the back": ("k = x[0].long()\n    return x[k // 2 : -k].sum()",
                          "k = x[0].long()\n    return torch.where({0}, x, 0).sum()", "value"),
    "columns": (IMAGE + "y[:, i : i + 2]", IMAGE + "{0}", "value"),
    "rows of one column": (IMAGE + "y[i : i + 2, 0]", IMAGE + "{0}", "value"),
    "columns of one row": (IMAGE + "y[0, i : i + 2]", IMAGE + "{0}", "value"),
    "last columns": (IMAGE + "y[..., i:].sum()", IMAGE + "torch.where({0}, y, 0).sum()", "value"),
    "cut out": (IMAGE + "y[i : i + 2, i + 1 : i + 2]", IMAGE + "{0}", "value"),
    "cut out of one of three": (IMAGE + "y[None].mul(2)[0, :, i : i + 2]", IMAGE + "{0}", "value"),
    "cut out of the last": (IMAGE + "y[None, None][..., i : i + 2, 1]", IMAGE + "{0}", "value"),
    "slice within": ("return x[int(x[2].abs()) : -1].sum()", "return torch.where({0}, x, 0).sum()", "value"),
    "unique": ("return x.unique()", "{all}\n    return ordered[is_first]", "sizes"),
    "counted": ("k = x.abs().long()\n    return torch.bincount(k)",
                "k = x.abs().long()\n    LIMIT = int(k.max()) + 1\n    return {0}", "sizes"),
    "rows": ("y = torch.stack([x, -x], 1)\n    return y[x > 0].sum(0)",
             "y = torch.stack([x, -x], 1)\n    return ({0}).sum(0)", "index"),
    "first rows": ("y = torch.stack([x, -x], 1)\n    return y[x > 0]",
                   "y = torch.stack([x, -x], 1)\n    return ({1})[: int((x > 0).sum())]", "index"),
    "first of all": ("y = torch.stack([x, -x], 1)\n    return y[y > 0]",
                     "y = torch.stack([x, -x], 1)\n    return ({1})[: int((y > 0).sum())]", "index"),
    "whole numbers": ("y = x.long()\n    return y[y > 0].sum()", "y = x.long()\n    return ({0}).sum()", "index"),
    "if chain": (
        "if x.sum() > 3:\n        y = x\n    elif x.max() > 2 or x[0] < -1:\n        y = -x\n    else:\n"
        "        y = x * 3\n    return y",
        "{0}\n    return y",
        "if",
    ),
    "any with a number": ("return x * any(v > x.mean() for v in x)", "return x * {0}", "value"),
    "largest of both": ("y = [x[0], 1, 0.5]\n    return max(y) + x", "y = [x[0], 1, 0.5]\n    return {0} + x", "value"),
    "largest of a list of both": ("return max([x[0], 0.5]) + x", "return {0} + x", "value"),
    "element of numbers": ("return x + [3, 1, 2][x.argmax()]", "return x + {0}", "value"),
    "function by its name": ("from math import sin as s\n    return x + s(x[0])",
                             "from math import sin as s\n    return x + {0}", "value"),
    "if of a number": ("return x * 2 if x[0] > 0 and 3 or None else x", "return {0}", "if"),
    "if of no number": ("return x * 2 if x[0] > 0 and not 3 else x", "return {0}", "if"),
    "side read": ("return (x[0].item() if x[1] > 0 else 3) + x", "return {0} + x", "if"),
    "side in whole numbers": ("n = 2.5\n    y = int(n) if x[1] > 0 else int(x[0])\n    return y + x",
                              "n = 2.5\n    y = {0}\n    return y + x", "if"),
    "side without end": ("return (float('inf') if x[1] > 0 else x[0]) + x", "return {0} + x", "if"),
    "set read": ("if x[1] > 0:\n        y = x[0].item()\n    else:\n        y = int(x[2])\n    return y + x",
                 "{0}\n    return y + x", "if"),
    "any": ("return x * any(v < 0 for v in x)", "return x * {0}", "value"),
    "larger": ("return max(x[0], x[1]) + x", "return {0} + x", "value"),
    "at least": ("return max(1.5, x[1]) + x", "return {0} + x", "value"),
    "largest": ("return max(x) + x", "return {0} + x", "value"),
    "sorted": ("return torch.stack(sorted(x))", "return {0}", "value"),
    "function": ("import math\n    return x + math.cos(x[0])", "return x + {0}", "value"),
    "element": ("a = [3.0, 1.0, 2.0]\n    return x + a[x.argmax()]", "a = [3, 1, 2]\n    return x + {0}", "value"),
    "arrange": ("return torch.cat([x[x > 0], x[x <= 0]])", "{0}\n    return {1}", "index"),
    "mask": ("return x[x > 0].sum()", "return ({0}).sum()", "index"),
    "nonzero": ("return x[(x > 0).nonzero()].numel()", "{1}\n    return (x > 0).sum().item()", "sizes"),
}  # fmt: skip


READY = (
    "window", "slice", "cut", "column", "rows of", "any", "all", "large", "small", "sorted", "element", "function",
    "angle", "side", "set read", "if of",
)  # fmt: skip
SAME_RESULT_AND_READY = [name for name in SAME_RESULT if name.startswith(READY)]

IN_WORDS = re.compile(r"^(choose a number, and look up|or a fixed number|keep the size and use a mask)[^:]*: ")
"""What stands before code in a line."""


@pytest.fixture
def found_in(tmp_path):
    """The breaks of a function with this body, run on an input."""

    def find(body, values=INPUTS[0]):
        path = tmp_path / "program.py"
        path.write_text(f"def f(x):\n    {body}\n")
        names = {"torch": torch}
        exec(compile(path.read_text(), str(path), "exec"), names)

        def program():
            with operation_watchers.recording_every_thread(BreakRecorder()):
                return names["f"](torch.tensor(values))

        log = MemoryLog(events_of_program(program, path))
        return list(breaks(Timeline(log)))

    return find


def events_of_program(program, path):
    from gviz import emit

    log = []
    channel = emit.Channel(log.append, read_source=lambda name: path.read_text() if name == str(path) else None)
    with emit.listening(channel):
        program()
    return log


def function(body):
    names = {"torch": torch}
    exec(f"def f(x):\n    {body}\n", names)
    return names["f"]


@pytest.mark.parametrize("name", SAME_RESULT)
def test_what_is_written_instead_gives_the_same(found_in, name):
    body, shape, kind = SAME_RESULT[name]
    first = next(one for one in found_in(body) if one.kind == kind)
    lines = [IN_WORDS.sub("", line.partition("   #")[0]) for line in first.advice.instead]
    if name == "nonzero":
        lines[1] = lines[1].replace("LIMIT", "2")
    static = function(shape.format(*lines, "", "", all="\n    ".join(lines)))
    for values in INPUTS:
        one, other = function(body)(torch.tensor(values)), static(torch.tensor(values))
        assert one == other if isinstance(one, str) else torch.equal(torch.as_tensor(one), torch.as_tensor(other))


@pytest.mark.parametrize("name", SAME_RESULT_AND_READY)
def test_what_is_written_instead_breaks_nothing_again(found_in, name):
    body, shape, kind = SAME_RESULT[name]
    first = next(one for one in found_in(body) if one.kind == kind)
    assert found_in(shape.format(IN_WORDS.sub("", first.advice.instead[0].partition("   #")[0]))) == []


def test_a_line_is_counted_as_python_counts_it(found_in):
    [one] = found_in("'a\x0cb\u2028c'\n    return float(x.sum())")
    assert one.code == "return float(x.sum())"


class Asked:
    """Notes in which column a test of it stands: of an `if` with nothing in it, Python 3.11 says that of the `if`."""

    def any(self):
        return self

    def __bool__(self):
        asking = sys._getframe(1)
        self.column = [*asking.f_code.co_positions()][asking.f_lasti // 2][2]
        return True


def column_of_test(body):
    names, asked = {}, Asked()
    exec(f"def f(x):\n    {body}", names)
    names["f"](asked)
    return asked.column


IF_WITH_NOTHING = "if x.any():\n        pass\n    return x"


@pytest.mark.parametrize(
    ("body", "kind", "column", "word"),
    [
        ("return torch.tensor(x.sum().item())", "value", 24, "number"),
        ("return torch.tensor(float(x[0]))", "value", 24, "float"),
        ("return torch.from_numpy(x.numpy())", "value", 28, "numpy"),
        ("assert x.sum() != 9\n    return x", "assert", 11, "check"),
        ("return x.unique()", "sizes", 11, "unique"),
        ("return torch.masked_select(x, x > 0)", "sizes", 11, "masked_select"),
        ("return [i for i in range(int(x.max()))]", "for", 29, "rounds"),
        ("return f'{x.sum().item():.2f} {x!r:>5}'", "value", 14, "number"),
        (IF_WITH_NOTHING, "if", column_of_test(IF_WITH_NOTHING), "side"),
        ("return [y * 2 for y in x if y > 0]", "filter", 32, "kept"),
        ("if x.sum() > 99: raise ValueError\n    return x", "if", 7, "check"),
        ("return x if x.sum() > 0 and x.max() > 1 else -x", "if", 16, "side"),
    ],
)
def test_each_kind_is_found_at_its_column(found_in, body, kind, column, word):
    first = found_in(body)[0]
    assert (first.kind, first.frame.line, first.frame.column) == (kind, 2, column)
    assert word in first.advice.why


def test_what_a_static_graph_can_hold_is_not_found(found_in):
    body = "x = x.clone()\n    x[x > 1] = 0.0\n    for row in x:\n        x = x + row\n    return x.view(len(x)).sort()"
    assert found_in(body) == []


def test_a_place_is_told_once_with_how_often_it_was_reached(found_in):
    (one,) = found_in("while x.norm() > 1:\n        x = x / 2\n    return x")
    assert one.times == 3
    assert one.code == "while x.norm() > 1:"


def test_what_is_named_instead_is_the_tensor_that_was_read(found_in):
    (one,) = found_in("return f'{x.sum().item():.2f} {x.shape!r:>5}'")
    assert one.advice.instead[0].startswith("continue with the tensor x.sum();")
    (one,) = found_in("return x.nonzero()")
    assert "torch.where(x != 0, a, b)" in one.advice.instead[0]
    (one,) = found_in("import numpy as np\n    return torch.tensor(np.asarray(x).sum())")
    assert one.advice.instead[0].startswith("continue with the tensor x;")
    (one,) = found_in("return x * (0 < x[0] < 5)")
    assert one.advice.instead[0].startswith("continue with the tensor (0 < x[0]) & (x[0] < 5);")
    (one,) = found_in("return [0] * x.argmax()")
    assert one.advice.instead[0].startswith("continue with the tensor x.argmax();")
    (one,) = found_in("return f'{x.mean():.2f}'")
    assert one.advice.instead == ("return the tensor, and write it out after the graph has run",)


CLIPPED = "w = torch.nn.Parameter(x * 1)\n    w.sum().backward()\n    {0}\n    return x"


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("torch.nn.utils.clip_grad_norm_([w], 1.0)", "torch.nn.utils.clip_grad_norm_"),
        ("from torch.nn.utils import clip_grad_norm_\n    clip_grad_norm_([w], 1.0)", "clip_grad_norm_"),
        ("adam = torch.optim.Adam([w])\n    adam.step()", "adam.step"),
    ],
)
def test_a_call_that_looks_at_values_itself_is_named(found_in, monkeypatch, line, named):
    monkeypatch.setitem(sys.modules, "torch.nn.utils", torch.nn.utils)
    one = found_in(CLIPPED.format(line))[0]
    assert one.advice.why.startswith(f"{named} looks at a value")
    assert one.advice.instead[0].startswith(f"leave {named} out of the graph: ")


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ("while True:\n        x = x / 2\n        if x.norm() < 1:\n            break\n    return x", "if",
         "    done = done | (x.norm() < 1)"),
        ("for v in x:\n        if v < 0:\n            continue\n        x = x + v\n    return x", "if",
         "x = torch.where(skipped, x, x + v)"),
        ("match 'a':\n        case 'a' if x.sum() > 0:\n            return x\n    return -x", "match", "of_case"),
        ("match int(x.argmax()):\n        case 0:\n            return x\n    return -x", "match", "of_case"),
        ("return 'large' if x.sum() > 9 else 'small'", "if", "torch.where(x.sum() > 9, 1, 0)"),
        ("if x.sum() > 1:\n        print('large')\n    return x", "if",
         "do this after the graph has run, which returns x.sum() > 1"),
        ("flag, known = 1, {3.0}\n    return x if flag and x.sum() > 0 or x[0].item() in known else -x", "if",
         "<flag, as a tensor of booleans> & (x.sum() > 0) | <x[0].item() in known, as a tensor of booleans>"),
        ("return x if max(x[0], x[1]) > 1 else -x", "if", "torch.where(<max(x[0], x[1]) > 1, as a tensor of booleans>"),
        ("while x.norm() > 1:\n        x = x / 2\n        print(x)\n    return x", "while",
         "<each variable that the round sets> = torch.where(goes_on, <its new value>, <itself>)"),
        ("for v in x.tolist():\n        x = x + v\n    return x", "for", "continue with the tensor x;"),
        ("return [v for v in range(int(x[0]))]", "for", "torch.arange(LIMIT) < count"),
        ("return [x[0], 1] if x.sum() > 0 else [x[1], 2]", "if", "torch.where(x.sum() > 0, 1, 0)"),
        ("return x[:, None][x > 0, 0]", "index", "torch.where(<mask>, <tensor>, 0)"),
        ("a = [x, -x]\n    return a[x.argmax() // 2]", "value", "<a, as a tensor>[(x.argmax() // 2).reshape(1)][0]"),
        ("return 'abc'[x.argmax()]", "value", "<'abc', as a tensor>[x.argmax().reshape(1)][0]"),
        ("a = [1, 2, 3]\n    a[x.argmax()] = 4\n    return a", "value", "keep a tensor in place of a, and a mask"),
        ("a = [1, 2, 3]\n    del a[x.argmax()]\n    return a", "value", "keep a tensor in place of a, and a mask"),
        ("a = [1, 2, 3]\n    a.append(x)\n    return a[x.argmax()]", "value", "<a, as a tensor>[x.argmax()"),
        ("return (1, 2, 3)[x.argmax() :]", "value", "use a tensor in place of the list"),
        ("return x[x.argmax() :: 2]", "value", "keep the size, and use a mask of what the slice takes"),
        ("return x[max(int(x.argmax()), 0) :]", "value", "keep the size, and use a mask of what the slice takes"),
        ("b = 0\n    return x[None][b:, x.argmax() :]", "value", "dimension 1: (torch.arange(x[None].shape[1])"),
        ("import cmath\n    return x * cmath.sqrt(x[0]).real", "value", "continue with the tensor x[0];"),
        ("y = x[0] > -9 and 3\n    return x * y", "value", "torch.where(x[0] > -9, <the others>, <it>)"),
        ("y = x[0] > 9 or 3\n    return x * y", "value", "torch.where(x[0] > 9, <it>, <the others>)"),
        ("return max(x[0], x[1], key=lambda v: v)", "value", "make one tensor of the values"),
        ("return any(v is not None and v > 9 for v in x)", "value", "<v is not None, as a tensor of booleans>"),
        ("return x[: int(x[0])]", "value", "(torch.arange(len(x)) < x[0].long() + len(x) * (x[0].long() < 0))"),
        ("for _ in range(int(x[0])):\n        x = x + 1\n    return x", "for", "torch.where(i < bound, x + 1, x)"),
    ],
)  # fmt: skip
def test_the_rewrite_is_that_of_the_construct(found_in, body, kind, words):
    first = found_in(body)[0]
    assert first.kind == kind
    assert words in "\n".join(first.advice.instead)


def test_numbers_of_the_program_are_no_data(found_in):
    assert found_in("return x * 2 + torch.ones(3)") == []


def test_a_place_that_is_not_in_the_tree_is_unknown():
    assert construct(ast.parse("x = 1\n"), Frame("p.py", "f", 9, 9, 0, 4), "boolean") is None


SCRIPT = """\
import torch

def f(x):
    return x * 2 if x.sum() > 0 else x + 2

def g(x):
    return x[x > 0]

x = torch.ones(2)
f(x)
print(g(x))
"""


def test_on_the_command_line(tmp_path):
    (tmp_path / "program.py").write_text(SCRIPT)
    code, out, err = gviz("graphify", "program.py", cwd=tmp_path)
    assert code == 1
    assert "tensor([1., 1.])" in err
    lines = out.splitlines()
    assert lines[0] == "program.py:4:21: return x * 2 if x.sum() > 0 else x + 2"
    assert lines[2] == "  instead: torch.where(x.sum() > 0, x * 2, x + 2)"
    assert lines[-1] == "2 places."
    code, out, _ = gviz("graphify", "--function", "g", "--format", "json", "program.py", cwd=tmp_path)
    assert [one["kind"] for one in json.loads(out)["breaks"]] == ["index"]
    code, out, err = gviz("graphify", "--function", "h", "program.py", cwd=tmp_path)
    assert (code, out) == (2, "")
    assert "this run did not call a function h" in err


def test_a_program_that_is_ready(tmp_path):
    (tmp_path / "program.py").write_text("import torch\nx = torch.ones(2)\ny = torch.where(x > 0, x, -x)\n")
    code, out, _ = gviz("graphify", "program.py", cwd=tmp_path)
    assert (code, out) == (0, "nothing that this run reached prevents a static graph.\n")


def test_threads_and_code_made_at_run_time_are_watched_too(tmp_path):
    (tmp_path / "program.py").write_text(
        "import threading\nimport torch\nx = torch.ones(2)\n"
        "def work():\n    return x * 2 if x.sum() > 0 else x\n"
        "thread = threading.Thread(target=work)\nthread.start()\nthread.join()\n"
        "exec('y = float(x.sum())')\n"
    )
    code, out, _ = gviz("graphify", "program.py", cwd=tmp_path)
    lines = out.splitlines()
    assert (code, lines[-1]) == (1, "2 places.")
    assert lines[0] == "program.py:5:21: return x * 2 if x.sum() > 0 else x"
    assert lines[3:6] == [
        "<string>:1:5",
        "  a value leaves the graph here",
        "  instead: the source of <string> is not known",
    ]


def test_what_a_capture_a_trace_or_a_static_graph_does_is_seen_too(tmp_path):
    (tmp_path / "program.py").write_text(
        "import gviz.engine as torch\nfrom gviz.engine import graphs, static\nx = torch.ones(2)\n"
        "with graphs.capture(graphs.Graph()):\n    y = x * 2\n"
        "with static.Graph() as graph:\n    p = static.placeholder('p', (2,))\n    q = p + 1\n"
        "assert graph.run(q, {p: x}).tolist() == [2, 2]\nassert not torch.jit.is_tracing()\n"
        "torch.jit.trace(lambda x: x * 2 if x.sum() > 0 else x, x, check_trace=False)\n"
        "with graphs.capture(graphs.Graph()):\n    x[x > 0]\n"
    )
    _, out, err = gviz("graphify", "program.py", cwd=tmp_path)
    lines = [line.split(":")[1] for line in out.splitlines() if line.startswith("program.py:")]
    assert lines == ["9", "11", "13"]  # a value that is read, a side that is chosen, a size that depends on data
    assert "depends on data, and buffers are of a fixed size" in err


class Seen(BreakRecorder):
    """Notes the names of operations, in place of what they do."""

    def __init__(self):
        self.names = []

    def ran(self, op, refs, attrs, outputs):
        self.names.append(op.name)


def test_a_watch_is_over_when_its_block_is():
    seen, x = Seen(), torch.ones(2)
    with operation_watchers.recording_every_thread(seen):
        torch.jit.trace(lambda x: x * 2, x, check_trace=False)
    assert seen.names == ["mul"]
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        assert not torch.jit.is_tracing()
        with static.Graph():
            static.placeholder("p") + 1
        x.sin()
    assert seen.names == ["mul"]


def test_a_thread_that_recorded_before_is_watched():
    seen, x = Seen(), torch.ones(2)
    torch.jit.trace(lambda x: x * 2, x, check_trace=False)
    with operation_watchers.recording_every_thread(seen):
        assert not torch.jit.is_tracing()
        x.sin()
    x.cos()
    assert seen.names == ["sin"]


def test_a_watch_within_a_watch():
    outer, inner, x = Seen(), Seen(), torch.ones(2)
    with operation_watchers.recording_every_thread(outer):
        with operation_watchers.recording_every_thread(inner):
            x.sin()
        x.cos()
    assert (outer.names, inner.names) == (["cos"], ["sin"])
