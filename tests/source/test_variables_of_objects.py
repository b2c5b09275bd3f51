"""Which variable holds an object: found without running any code of the program, and without keeping anything alive."""

import sys
import weakref
from collections import UserDict

import pytest

from gviz.source.variables_of_objects import first_name


class Thing:
    """What names are looked for of."""


class Touchy(list):
    """Every question that it is asked is one too many."""

    def __getattribute__(self, name):
        raise AssertionError(name)

    __iter__ = __len__ = __eq__ = __hash__ = __getattribute__


class Keyed(dict):
    """Looks as if it had nothing in it."""

    def items(self):
        raise AssertionError

    __len__ = __iter__ = items


def found(body):
    """What a function with this body returns: none of pytest's, whose `assert` asks a function for its variables."""
    world = {"Keyed": Keyed, "Thing": Thing, "Touchy": Touchy, "UserDict": UserDict}
    world |= {"first_name": first_name, "sys": sys, "weakref": weakref}
    exec("def run():\n" + "".join(f"    {line}\n" for line in body.splitlines()), world)
    return world["run"]()


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("x = Thing()\ndef call(given):\n    return first_name(given)\nreturn call(x)", "x"),
        ("batch = Thing(), Thing()\nreturn first_name(batch[1])", "batch[1]"),
        ("batch = {'x': Thing()}\nreturn first_name(batch['x'])", "batch['x']"),
        ("batch = UserDict(x=Thing())\nreturn first_name(batch['x'])", "batch['x']"),
        ("data = Thing()\ndata.x = Thing()\nreturn first_name(data.x)", "data.x"),
        ("batch = Thing(), Thing()\nx, y = batch\nreturn first_name(y)", "y"),
        ("self = x = Thing()\nreturn first_name(self)", "x"),
        ("_ = [Thing()]\nreturn first_name(_[0])", ""),
        ("return first_name(Thing())", ""),
        ("x = y = Thing()\ny.eval = str\ny.eval()\nreturn first_name(x)", "x"),
        ("items = [Thing() for _ in range(1000)]\nreturn first_name(items[0])", ""),
    ],
)
def test_an_object_is_called_as_the_program_calls_it(body, name):
    assert found(body) == name


def test_no_code_of_the_program_runs_where_a_name_is_looked_for():
    body = "keyed, touchy = Keyed(x=Thing()), Touchy()\nit = dict.__getitem__\n"
    assert found(f"{body}return first_name(Thing()), first_name(touchy)") == ("", "touchy")
    assert found(f"{body}return first_name(it(keyed, 'x'))") == "keyed['x']"


def test_what_a_class_says_of_its_attributes_is_not_asked():
    body = "class Proxy:\n    __dict__ = property(lambda self: 1 / 0)\nheld = Proxy()\n"
    assert found(f"{body}return first_name(Thing())") == ""


def test_a_global_that_is_called_by_a_number_gives_no_name():
    world = {"Thing": Thing, "first_name": first_name}
    exec("globals()[3] = Thing()\nglobals()[3].x = Thing()\nname = first_name(globals()[3].x)", world)
    assert world["name"] == ""


def test_a_variable_that_was_looked_at_lives_no_longer_for_that():
    assert found("x = Thing()\nalive = weakref.ref(x)\nfirst_name(x)\ndel x\nreturn alive()") is None


def test_a_dictionary_of_its_variables_that_a_function_holds_stays_as_it_is():
    assert "x" not in found("first = locals()\nx = Thing()\nfirst_name(x)\nreturn first")


def test_a_test_has_names_too():
    x = Thing()
    name = first_name(x)
    assert name == "x"


def test_a_dictionary_of_its_variables_that_another_holds_is_not_emptied():
    assert found("x = Thing()\nheld = sys._getframe().f_locals\nreturn first_name(x), held['x'] is x") == ("x", True)
