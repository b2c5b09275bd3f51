"""Waiting for a package: whatever a program asks about it first, its import is noticed, once."""

import importlib.util
import sys

import pytest

from gviz.system.import_hook import when_imported


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package that nobody has imported, and that fails as long as there is no file ``ready`` beside it."""
    text = (
        "import pathlib\nif not pathlib.Path(__file__).with_name('ready').exists():\n    raise ImportError('not yet')\n"
    )
    (tmp_path / "waited_for.py").write_text(text)
    (tmp_path / "ready").touch()
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("waited_for", None)


def test_an_import_is_noticed_when_it_is_over(package):
    came = []
    with when_imported("waited_for", lambda: came.append("waited_for" in sys.modules)):
        assert came == []
        import waited_for  # noqa: F401

        assert came == [True]
    assert not any(type(finder).__name__ == "_Waiting" for finder in sys.meta_path)


def test_who_only_asks_where_it_is_does_not_use_up_the_waiting(package):
    came = []
    with when_imported("waited_for", lambda: came.append(1)):
        assert importlib.util.find_spec("waited_for") is not None
        assert importlib.util.find_spec("waited_for") is not None
        assert came == []
        importlib.import_module("waited_for")
        importlib.reload(sys.modules["waited_for"])
        assert came == [1]


def test_an_import_that_failed_may_be_tried_again(package):
    came = []
    (package / "ready").unlink()
    with when_imported("waited_for", lambda: came.append(1)):
        with pytest.raises(ImportError, match="not yet"):
            importlib.import_module("waited_for")
        assert came == []
        (package / "ready").touch()
        importlib.import_module("waited_for")
        assert came == [1]
