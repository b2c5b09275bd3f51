"""What a command may write over, and what is left when it cannot go on."""

import os
import shutil

import pytest
from cli.programs import gviz, gviz_here
from cli.test_commands import PROGRAM

from gviz.api.output_files import write_all
from gviz.errors import GvizError


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A program and its trace."""
    folder = tmp_path_factory.mktemp("outputs")
    (folder / "program.py").write_text(PROGRAM)
    gviz("record", "-o", "good.gviz", "program.py", cwd=folder)
    return folder


@pytest.fixture
def folder(tmp_path, recorded):
    """The same beside files that are not to be written over."""
    shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)
    (tmp_path / "important.txt").write_text("important")
    os.mkfifo(tmp_path / "pipe.svg")
    (tmp_path / "device.svg").symlink_to(os.devnull)
    return tmp_path


def contents(folder):
    return {path.name: path.read_bytes() if path.is_file() else path.lstat().st_ino for path in folder.iterdir()}


@pytest.mark.parametrize("force", [(), ("-f",)])
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("record", "-o", "program.py", "program.py"), 1, "program.py is the input itself"),
        (("record", "-o", "good.gviz", "good.gviz"), 1, "good.gviz is the input itself"),
        (("record", "-o", "important.txt", "nosuch.py"), 1, "important.txt exists and is not a gviz trace"),
        (("run", "-o", "important.txt", "program.py"), 1, "important.txt exists and is not a gviz trace"),
        (("record", "-o", "pipe.svg", "program.py"), 1, "pipe.svg is not a regular file"),
        (("record", "-o", "device.svg", "program.py"), 1, "device.svg is not a regular file"),
        (("record", "-o", "no/t.gviz", "program.py"), 1, "there is no folder"),
        (("export", "-o", "pipe.svg", "good.gviz"), 1, "pipe.svg is not a regular file"),
        (("export", "-o", "device.svg", "good.gviz"), 1, "device.svg is not a regular file"),
    ],
)
def test_nothing_is_lost(folder, force, arguments, code, words):
    before = contents(folder)
    got, _, err = gviz_here(arguments[0], *force, *arguments[1:], cwd=folder)
    assert got == code
    assert words in err
    assert contents(folder) == before


def test_a_trace_survives_a_mistyped_script(folder):
    before = contents(folder)
    code, _, err = gviz("record", "-f", "-o", "good.gviz", "progam.py", cwd=folder)
    assert (code, err) == (3, "gviz: error: progam.py: no such script\nhint: did you mean program.py?\n")
    assert contents(folder) == before


def test_a_picture_never_takes_the_place_of_its_trace(folder):
    (folder / "good.gviz").rename(folder / "good.svg")
    before = contents(folder)
    code, _, err = gviz_here("export", "-f", "-o", "good.svg", "good.svg", cwd=folder)
    assert (code, err) == (1, "gviz: error: good.svg is the input itself\nhint: choose another name\n")
    assert contents(folder) == before


def test_a_trace_is_replaced_by_force(folder):
    before = contents(folder)["good.gviz"]
    code, _, err = gviz("record", "-f", "-o", "good.gviz", "program.py", cwd=folder)
    assert code == 0
    assert "wrote good.gviz" in err
    assert contents(folder)["good.gviz"] != before


def test_no_file_is_written_where_one_cannot_be(tmp_path):
    (tmp_path / "001.svg").write_text("old")
    (tmp_path / "002.svg").mkdir()
    with pytest.raises(GvizError, match=r"002\.svg is a folder"):
        write_all([(tmp_path / "001.svg", b"new"), (tmp_path / "002.svg", b"new")], force=True)
    assert (tmp_path / "001.svg").read_text() == "old"


def test_a_folder_that_was_made_for_nothing_is_removed(tmp_path):
    long = "x" * 300
    with pytest.raises(GvizError, match=f"cannot write .*{long}"):
        write_all([(tmp_path / "made" / "001.svg", b""), (tmp_path / "made" / long, b"")], force=False)
    assert list(tmp_path.iterdir()) == []


def test_what_a_link_names_is_written(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link.svg").symlink_to("elsewhere/real.svg")
    for data in (b"first", b"second"):
        write_all([(tmp_path / "link.svg", data)], force=True)
        assert (tmp_path / "link.svg").is_symlink()
        assert (tmp_path / "elsewhere" / "real.svg").read_bytes() == data
    assert len(list(tmp_path.rglob("*"))) == 3


@pytest.mark.parametrize("size", ["-5", "many"])
def test_a_size_is_a_number_from_zero(folder, size):
    code, _, err = gviz_here("record", "--values", size, "program.py", cwd=folder)
    assert code == 2
    assert f"'--values': '{size}' is neither" in err
