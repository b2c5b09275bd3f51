"""The page of keys and commands, written from the tables."""

from docs.make_commands import PATH, text
from gviz.tui.commands.command_table import GROUPS, SPECS


def test_the_page_is_as_the_tables_are():
    assert PATH.read_text() == text(), "run make commands"


def test_every_command_has_one_group():
    assert sorted(spec.name for group in GROUPS.values() for spec in group) == sorted({spec.name for spec in SPECS})
