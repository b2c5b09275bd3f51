"""The changelog says what a user can do, and names only what there is."""

import re
from importlib.util import find_spec
from pathlib import Path

from gviz.cli.main import COMMANDS
from gviz.version import __version__

CHANGES = (Path(__file__).parents[1] / "CHANGELOG.md").read_text()


def test_the_version_that_is_built_has_a_section():
    assert re.search(rf"^## {re.escape(__version__)}$", CHANGES, re.MULTILINE)


def test_every_entry_stands_in_a_group():
    group = ""
    for line in CHANGES.splitlines():
        if line.startswith("#"):
            group = line
        if line.startswith("- "):
            assert group.startswith("### "), line


def test_every_command_that_it_names_exists():
    named = set(re.findall(r"`gviz ([a-z]+)", CHANGES))
    assert len(named) > 8
    assert named <= set(COMMANDS)


def test_every_command_of_gviz_is_named():
    questions = {"explain", "info", "keys"}  # `explain` is `why` of a trace; the others show what there is
    assert set(COMMANDS) - questions <= set(re.findall(r"`gviz ([a-z]+)", CHANGES))


def test_every_name_of_gviz_in_code_exists():
    import gviz

    names = set(re.findall(r"`(?:with )?gviz\.([a-z_]+)[`(.]", CHANGES)) - {"engine"}
    assert len(names) > 8
    assert [name for name in names if not hasattr(gviz, name)] == []
    assert all(find_spec(f"gviz.engine.{name}") for name in re.findall(r"`gviz\.engine\.([a-z]+)", CHANGES))
