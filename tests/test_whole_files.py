"""A file is written whole or not at all, and what was there stays what it was."""

import os
import stat

import pytest

from gviz.errors import GvizError
from gviz.system.files import write_whole


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_who_may_read_a_file_stays(tmp_path):
    path = tmp_path / "a.session"
    write_whole([(path, b"1")])
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    for mode in (0o600, 0o755):
        path.chmod(mode)
        write_whole([(path, b"2")])
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_link_stays_one(tmp_path):
    (tmp_path / "link").symlink_to("file")
    write_whole([(tmp_path / "link", b"1")])
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"1"


def folder(path):
    path.mkdir()


def pipe(path):
    os.mkfifo(path)


def circle(path):
    path.symlink_to(path.name)


@pytest.mark.parametrize("make", [folder, pipe, circle])
def test_what_is_no_file_is_refused_before_any_is_written(tmp_path, make):
    make(tmp_path / "b")
    before = (tmp_path / "b").lstat()
    with pytest.raises(GvizError, match="cannot write"):
        write_whole([(tmp_path / "a", b"1"), (tmp_path / "b", b"2")])
    assert [path.name for path in tmp_path.iterdir()] == ["b"]
    assert (tmp_path / "b").lstat().st_ino == before.st_ino
