"""Texts of Python that are read."""

import ast
import warnings

import pytest

from gviz.explain.program_source import variable_owners
from gviz.source import syntax
from gviz.trace.naming.bindings import bindings


@pytest.mark.parametrize("read", [syntax.program, bindings, variable_owners])
def test_reading_a_program_warns_of_nothing(read):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert read("pattern = '\\d'\nx = w * 1if pattern else w")
    assert not said


def test_a_text_is_read_as_it_stands():
    assert ast.unparse(syntax.expression("x  *2")) == "x * 2"
    with pytest.raises(SyntaxError):
        syntax.expression("x = 2")
