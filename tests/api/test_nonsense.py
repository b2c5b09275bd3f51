"""Whatever a program hands to the public functions, what makes no sense is one clear refusal."""

from contextlib import suppress
from inspect import signature

import numpy as np
import pytest

import gviz
import gviz.engine as torch
from gviz import argument_checks
from gviz.errors import GvizError

NONSENSE = [b"x", [], ["a"], [None], {"a": 1}, {1}, object(), int, -1, 3.5, float("nan"), True]
NONSENSE += ["\0", "\ud800", "é" * 5000]
FUNCTIONS = ("export", "make_dot", "load", "why", "check", "record", "attach", "mark")
ANY = {"note", "progress", "source", "saved", "ancestors", "show_attrs", "show_saved"}
"""Whatever is given for these means yes or no, or is called."""
KNOWN = [
    (name, argument)
    for name in FUNCTIONS
    for argument, known in signature(getattr(gviz, name)).parameters.items()
    if argument not in ANY and known.kind is not known.VAR_KEYWORD
]


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("of") / "run.gviz"
    with gviz.record(path):
        x = torch.tensor(3.0, requires_grad=True)
        (x * 2).backward()
    return path


def right(name, trace):
    tensor = torch.tensor(3.0, requires_grad=True) * 2
    return {
        "export": {"of": tensor, "path": "o.txt", "force": True},
        "make_dot": {"var": tensor},
        "load": {"path": trace},
        "why": {"trace": trace, "place": "x.grad"},
        "check": {"trace": trace},
        "record": {"path": "r.gviz", "force": True},
        "attach": {"path": "r.gviz"},
        "mark": {"name": "here"},
    }[name]


@pytest.mark.parametrize(("name", "argument"), KNOWN)
def test_nonsense_is_refused_or_means_something(name, argument, trace, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for given in NONSENSE:
        with suppress(GvizError):
            made = getattr(gviz, name)(**{**right(name, trace), argument: given})
            if name == "attach":
                made.close()


@pytest.mark.parametrize("given", [[], {}, None, 3, b"x", (), [1]])
def test_what_cannot_be_drawn_is_named(given, tmp_path):
    with pytest.raises(GvizError, match="cannot draw"):
        gviz.export(given, tmp_path / "a.svg")


@pytest.mark.parametrize(
    ("argument", "given", "said"),
    [
        ("path", b"x", "path cannot be b'x'"),
        ("path", None, "path cannot be None"),
        ("path", "", "path cannot be ''"),
        ("depth", "two", "depth cannot be 'two'"),
        ("modules", 3, "modules cannot be 3"),
        ("only", ["a", 3], "each of only cannot be 3"),
        ("params", {"x": 3}, r"params\['x'\] cannot be 3"),
        ("style", [], "style cannot be of type list"),
    ],
)
def test_an_argument_is_refused_by_its_name_and_nothing_is_written(argument, given, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GvizError, match=f"^{said}") as refused:
        gviz.export(**{"of": torch.ones(2, requires_grad=True) * 2, "path": "a.txt", argument: given})
    assert refused.value.hint
    assert refused.value.exit_code == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("place", ["", "  "])
def test_a_question_needs_a_place(place, trace):
    with pytest.raises(GvizError, match="a place is missing"):
        gviz.why(trace, place)


def test_a_name_of_a_moment_is_a_text():
    with pytest.raises(GvizError, match=r"^name cannot be 3"):
        gviz.mark(3)


@pytest.mark.parametrize("given", ["no", 1, None, torch.ones(2)])
def test_only_yes_writes_over_a_file(given, trace, tmp_path):
    picture = tmp_path / "x.txt"
    picture.write_text("mine")
    for write in (lambda: gviz.export(trace, picture, force=given), lambda: gviz.record(trace, force=given)):
        with pytest.raises(GvizError, match="force cannot be"):
            write()
    assert picture.read_text() == "mine"
    assert len(gviz.load(trace))


@pytest.mark.parametrize(
    ("look", "given", "hint"),
    [
        (argument_checks.at_least_0, float("inf"), "finite"),
        (argument_checks.place, 1.5, "a text, or the number of a node"),
        (argument_checks.place, -1, "a text, or the number of a node"),
        (argument_checks.text, "\ud800", "surrogate"),
        (argument_checks.text, b"x", "a text"),
    ],
)
def test_the_hint_is_true_of_what_was_refused(look, given, hint):
    with pytest.raises(GvizError) as raised:
        look("it", given)
    assert hint in raised.value.hint


def test_a_number_of_numpy_is_a_number():
    assert argument_checks.place("node", np.int64(3)) == "3" == argument_checks.place("node", "3")
