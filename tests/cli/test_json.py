"""Everything that a command prints as JSON is plain data: no text of it is the repr of one of gviz's objects."""

import contextlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
from cli.programs import gviz_here

import gviz
from gviz.cli import json_form

ROOT = Path(__file__).parents[2]
LESSONS = [
    "02_shared_input.py",
    "03_linear_model.py",
    "04_two_losses.py",
    "08_in_place.py",
    "11_nan_in_backward.py",
    "12_vanishing_gradients.py",
]
REPR = re.compile(r"<[\w.]+ (object )?at 0x|^<?(gviz\.|[A-Z]\w*\([a-z_]+=)")


def texts(data):
    """Every text in a JSON document, with the keys that lead to it."""
    stack = [("", data)]
    while stack:
        place, thing = stack.pop()
        if isinstance(thing, dict):
            stack += [(f"{place}.{key}", entry) for key, entry in thing.items()]
        elif isinstance(thing, list):
            stack += [(f"{place}[{position}]", entry) for position, entry in enumerate(thing)]
        elif isinstance(thing, str):
            yield place, thing


def document(*command, cwd):
    """What a command prints as JSON, read back."""
    code, out, err = gviz_here(*command, "--format", "json", cwd=cwd)
    assert code in (0, 1), (command, err)
    return json.loads(out)


def reprs(data):
    return [(place, text) for place, text in texts(data) if REPR.search(text)]


@pytest.fixture(scope="module", params=LESSONS)
def trace(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("json") / "lesson.gviz"
    source = ROOT / "samples" / request.param
    # Some lessons end in the error that they are about.
    with gviz.record(path), contextlib.suppress(RuntimeError):
        exec(compile(source.read_text(), str(source), "exec"), {"__name__": "__main__"})
    return path


def test_the_pattern_knows_reprs():
    assert reprs(
        {"a": ["<gviz.trace.index.backward_reach.Arrivals object at 0x7f>", "Value(dtype='f')", "gviz.values.Value"]}
    )
    assert not reprs({"a": ["Linear(in: 3)", "w < 3", "<module>", "2 * x"]})


@pytest.mark.parametrize("view", ["stats", "passes", "tape", "events"])
def test_a_view_of_a_trace_is_plain_data(trace, view):
    data = document("show", trace.name, view, cwd=trace.parent)
    assert data[view]
    assert reprs(data) == []


def test_every_node_is_plain_data(trace):
    tape = document("show", trace.name, "tape", cwd=trace.parent)
    numbers = sorted({row["node"] for row in next(rows for rows in tape.values() if isinstance(rows, list))})
    assert numbers
    for number in numbers[:25]:
        data = document("show", trace.name, "node", f"#{number}", cwd=trace.parent)
        assert reprs(data) == []


@pytest.mark.parametrize("command", ["check", "gradcheck", "diff --iterations 1,2"])
def test_an_answer_is_plain_data(trace, command):
    name, *options = command.split()
    code, out, err = gviz_here(name, "--format", "json", *options, trace.name, cwd=trace.parent)
    if code > 1:  # a lesson without two iterations, or without a function to try
        assert (name, out) != ("check", "")
        assert err.startswith("gviz: error: ")
    else:
        assert reprs(json.loads(out)) == []


def test_what_gviz_says_of_itself_is_plain_data(tmp_path):
    assert reprs(document("info", cwd=tmp_path)) == []


def test_what_has_no_form_is_refused_and_not_written_as_its_repr():
    with pytest.raises(TypeError, match="a object has no form in JSON"):
        json_form.text(thing=object())


def test_sequences_sets_paths_and_numbers_of_numpy_have_a_form():
    form = json_form.form({"a": range(2), "b": {2, 1}, "c": Path("x"), "d": np.float32(0.5), "e": np.eye(1), "f": 1j})
    assert form == {"a": [0, 1], "b": [1, 2], "c": "x", "d": 0.5, "e": [[1.0]], "f": "1j"}
