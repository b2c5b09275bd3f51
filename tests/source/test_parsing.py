"""Texts of Python that are read."""

import ast
import warnings

import pytest

from gviz.explain.findings.missing_gradient.no_gradient import variable_owners
from gviz.source import parsing
from gviz.trace.naming.bindings import bindings


@pytest.mark.parametrize("read", [parsing.program, bindings, variable_owners])
def test_reading_a_program_warns_of_nothing(read):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert read("pattern = '\\d'\nx = w * 1if pattern else w")
    assert not said


def test_a_text_is_read_as_it_stands():
    assert ast.unparse(parsing.expression("x  *2")) == "x * 2"
    with pytest.raises(SyntaxError):
        parsing.expression("x = 2")
