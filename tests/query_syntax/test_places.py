"""What users write to say where."""

from types import SimpleNamespace

import numpy as np
import pytest

from gviz.errors import GvizError
from gviz.events import DataSet, GradAccumulated, GradSet, NodeCreated, OpSeen, StepStarted, StorageWritten
from gviz.query_syntax import condition as conditions
from gviz.query_syntax import place as places
from gviz.query_syntax import stop_condition as stops
from gviz.source.call_stack import Frame

NODE = SimpleNamespace(
    node=4,
    names=("loss",),
    op=OpSeen(1, "mul", "MulBackward0", (), (), ()),
    scope="net.fc1",
    frames=(Frame("/home/me/layers.py", "forward", 7, 9, 0, 1), Frame("/home/me/demo.py", "<module>", 30, 30, 0, 1)),
    created=None,
)


@pytest.mark.parametrize(
    "text",
    [
        "#4",
        "loss",
        "lo*",
        "net.fc1",
        "net.*",
        "Mul",
        "mul",
        "MulBackward0",
        "op:mul",
        "layers.py:8",
        ":30",
        "/home/me/demo.py:30",
    ],
)
def test_places_that_mean_a_node(text):
    assert places.place(text).fits(NODE)


@pytest.mark.parametrize(
    "text", ["#5", "los", "net.fc", "net.fc2.*", "add", "op:loss", "layers.py:10", "other.py:30", ":31"]
)
def test_places_that_mean_another(text):
    assert not places.place(text).fits(NODE)


@pytest.mark.parametrize("text", ["h[0]", "h['a']", 'h["a"]', "h[0][1]"])
def test_an_index_is_a_part_of_a_name_and_no_pattern(text):
    like = SimpleNamespace(**{**vars(NODE), "names": ("h0", "ha", "h01")})
    named = SimpleNamespace(**{**vars(NODE), "names": (text.replace('"', "'"),)})
    assert places.place(text).fits(named)
    assert not places.place(text).fits(like)
    assert places.place("h[0-9]").fits(like)


@pytest.mark.parametrize("text", ["", "  ", "#", "#x", "#1234567890123456789"])
def test_what_is_no_place_is_refused(text):
    with pytest.raises(GvizError, match=r"place|node"):
        places.place(text)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("loss", stops.AT_A_NODE),
        ("on backward", (StepStarted,)),
        ("on accumulate x", (GradAccumulated,)),
        ("change x", (NodeCreated, StorageWritten, DataSet)),
        ("change net.fc1.weight.grad if grad is None", (GradAccumulated, stops.CHANGES["grad"][1], GradSet)),
        ("if step == 2", stops.AT_A_NODE),
    ],
)
def test_stops_say_which_events_they_are_about(text, kinds):
    assert stops.stop(text).at.kinds == kinds


@pytest.mark.parametrize(
    ("text", "expression", "test"),
    [
        ("change (1 if x > 2 else 0)", "(1 if x > 2 else 0)", ""),
        ("change {0: (1 if x else 2)}[0] if step > 3", "{0: (1 if x else 2)}[0]", "step > 3"),
        ("change x * 2 if (1 if value else 0)", "x * 2", "(1 if value else 0)"),
    ],
)
def test_an_if_in_brackets_begins_no_condition(text, expression, test):
    stop = stops.stop(text)
    assert stop.at == stops.AtExpression(expression)
    assert (stop.condition.text if stop.condition else "") == test


def test_a_stop_has_its_place_and_its_condition():
    stop = stops.stop("on nan net.* if step > 3 and name != 'if x'")
    assert stop.at == stops.OnEvent("nan", places.place("net.*"))
    assert stop.condition.text == "step > 3 and name != 'if x'"
    assert stops.stop("change (x > 2)").at == stops.AtExpression("(x > 2)")
    assert places.place('d["k"]').word == places.place("d['k']").word == "d['k']"
    assert stops.stop("x.grad").at == stops.stop("change x.grad").at == stops.AtChange("grad", places.place("x"))
    assert stops.stop("max(x) > 2").at == stops.AtExpression("max(x) > 2", holds=True)
    assert stops.stop("finding cut net.*").at == stops.AtFinding("cut", places.place("net.*"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "on",
        "on nothing",
        "on optimizer x",
        "change",
        "x if",
        "x if value >",
        "x if foo",
        "x if __import__('os')",
        "x if exec('1')",
    ],
)
def test_what_is_no_stop_is_refused_in_one_line(text):
    with pytest.raises(GvizError) as error:
        stops.stop(text)
    assert "\n" not in str(error.value.what)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("value > 3", True),
        ("(value > 3).all() and any(value > 4)", True),
        ("isnan(value)", False),
        ("norm(value) < np.float64(1)", False),
        ("all(abs(v) > 3 for v in value)", True),
        ("name == 'x' and event != 'backward'", True),
        ("value[:0] > 3", False),
        ("all(value[:0] > 3)", True),
    ],
)
def test_conditions(text, holds):
    moment = {"value": np.array([4.0, 5.0]), "name": "x", "event": "forward"}
    assert conditions.condition(text).holds(moment) is holds


def test_a_condition_has_none_of_pythons_builtins():
    with pytest.raises(GvizError, match="open"):
        conditions.condition("open('/tmp/x')")
    with pytest.raises(GvizError) as error:
        conditions.condition("[].__class__.__base__ and name")
    assert "__class__ is no attribute of a recorded tensor" in error.value.why
