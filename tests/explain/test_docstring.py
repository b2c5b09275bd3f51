"""What a program says about itself."""

import pytest

from gviz.explain.program_text import docstring


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('"""One.\n\n    Two.\n    """\nx = 1\n', "One.\n\nTwo."),
        ("#!/usr/bin/python\n\n'one'\n", "one"),
        ("x = 1\n", ""),
        ("", ""),
        ('f"{print(1)}"\n', ""),
        ('b"one"\n', ""),
        ('"""never ends', ""),
        ("\x00", ""),
    ],
)
def test_only_a_string_at_the_top_counts(text, said, capsys):
    assert docstring(text) == said
    assert capsys.readouterr().out == ""
