"""What the debugger writes is whole or not there, also where the disk is full."""

import resource
from contextlib import contextmanager

import pytest
from driving import transcript
from recording import timeline_of

import gviz.engine as torch
from gviz.errors import GvizError
from gviz.tui.commands.editor_and_browser import browse
from gviz.tui.cursor import Cursor
from gviz.tui.glyphs import glyphs
from gviz.tui.session import Session


def square():
    def program():
        x = torch.tensor(2.0, requires_grad=True)
        (x * x).backward()

    return timeline_of(program)


@contextmanager
def full_disk(room=16):
    """Files of more than a few bytes cannot be written by this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(
    ("command", "name"), [("save {}", "a.session"), ("export {}", "a.dot"), ("copy script {}", "a.py")]
)
def test_nothing_is_left_of_a_file_that_could_not_be_written(tmp_path, command, name):
    order = command.format(tmp_path / name)
    with full_disk():
        said = transcript(square(), "goto end", "break x", "select #2", order)
    assert f"cannot write {tmp_path / name}; " in said
    assert not [*tmp_path.iterdir()]
    transcript(square(), "goto end", "break x", "select #2", order)
    assert (tmp_path / name).stat().st_size > 16


def test_a_page_that_could_not_be_written_is_no_end_of_the_debugger(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    page = browse(Session(Cursor(square(), 1), glyphs(ascii=False)), "")
    with full_disk(20_000), pytest.raises(GvizError, match=r"cannot write .*recording\.html"):
        page.run()


def test_a_session_of_before_stays(tmp_path):
    path = tmp_path / "demo.session"
    transcript(square(), "break x", f"save {path}")
    before = path.read_text()
    with full_disk():
        transcript(square(), "break w", f"save {path}")
    assert path.read_text() == before
