"""What `gviz` promises by name."""

import ast
from importlib import import_module
from pathlib import Path

import gviz


def told_to_type_checkers():
    """By its name the module from which ``if TYPE_CHECKING`` imports each name of `gviz`."""
    tree = ast.parse(Path(gviz.__file__).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    return {name.asname: node.module for node in block.body for name in node.names if name.asname}


def test_type_checkers_are_told_of_every_public_name():
    assert told_to_type_checkers() == gviz._HOMES


def test_every_public_name_is_found_at_home_and_says_what_it_is():
    for name, home in gviz._HOMES.items():
        found = getattr(gviz, name)
        assert found is getattr(import_module(home), name)
        assert found.__doc__
    assert set(gviz.__all__) <= set(dir(gviz))
