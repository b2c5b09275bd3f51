"""The page that lists what the engine has is what the engine has."""

from docs import make_operations


def test_the_page_is_current():
    assert make_operations.PATH.read_text(encoding="utf-8") == make_operations.text(), "run `make operations`"
