"""Who may read what gviz writes of a program: its owner only, whatever the umask, unless it is to be shared."""

import os
import stat

import pytest
from cli.programs import gviz

from gviz.errors import GvizError
from gviz.system import crash
from gviz.system.files import make_private
from gviz.trace.file import paths
from gviz.trace.recording.record import Kept, mark, record

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home" / "cache"))
    return tmp_path / "home" / "cache" / "gviz"


@pytest.mark.parametrize("share", [False, True])
def test_a_trace_and_what_lies_next_to_it(tmp_path, umask, share):
    path = tmp_path / "t.gviz"
    allowed = 0o666 & ~umask if share else 0o600
    with record(path, Kept(share=share)) as recording:
        mark("here")
        recording.flush()
        parts = sorted(tmp_path.iterdir())
        assert [part.name for part in parts] == ["t.gviz", "t.gviz-shm", "t.gviz-wal"]
        assert {mode(part) for part in parts} == {allowed}
    assert mode(path) == allowed


def test_no_moment_at_which_others_could_open_it(tmp_path, umask, monkeypatch):
    """It is made with its mode: what is open already stays readable."""
    seen, opened = [], os.open

    def watched(path, flags, *more, **options):
        number = opened(path, flags, *more, **options)
        if flags & os.O_CREAT and str(path).endswith(".gviz"):
            seen.append(stat.S_IMODE(os.fstat(number).st_mode))
        return number

    monkeypatch.setattr(os, "open", watched)
    with record(tmp_path / "t.gviz"):
        mark("here")
    assert seen == [0o600]


def test_a_trace_that_takes_the_place_of_a_wider_one(tmp_path, umask):
    with record(tmp_path / "t.gviz", Kept(share=True)):
        mark("here")
    (tmp_path / "t.gviz").chmod(0o666)
    with record(tmp_path / "t.gviz", force=True):
        mark("here")
    assert mode(tmp_path / "t.gviz") == 0o600


def test_the_cache_folder_and_those_above_it(cache, umask):
    path = paths.new_trace("program.py")
    assert path.parent == cache / "traces"
    assert {mode(folder) for folder in (cache, cache / "traces", cache.parent, cache.parent.parent)} == {0o700}


def test_a_cache_folder_of_before_is_closed(cache, umask):
    (cache / "traces").mkdir(parents=True)
    for folder in (cache, cache / "traces"):
        folder.chmod(0o755)
    paths.new_trace("program.py")
    assert mode(cache / "traces") == 0o700


def test_a_crash_report(tmp_path, umask):
    report = crash.write_report(ValueError("x"), tmp_path / "logs" / "gviz")
    assert (mode(report), mode(report.parent)) == (0o600, 0o700)


def test_a_file_in_the_place_of_a_private_folder_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        make_private(tmp_path / "file")


@pytest.mark.parametrize(("option", "allowed"), [([], 0o600), (["--share"], 0o644)])
def test_by_command(tmp_path, option, allowed):
    (tmp_path / "program.py").write_text("import gviz\ngviz.mark('here')\n")
    before = os.umask(0o022)
    try:
        code, _, err = gviz("record", *option, "-o", "t.gviz", "program.py", cwd=tmp_path)
    finally:
        os.umask(before)
    assert (code, mode(tmp_path / "t.gviz")) == (0, allowed), err


def test_a_picture_follows_the_umask(tmp_path):
    (tmp_path / "program.py").write_text("import gviz.engine as torch\n(torch.ones(2, requires_grad=True) * 2).sum()\n")
    before = os.umask(0o022)
    try:
        code, _, err = gviz("export", "program.py", "-o", "g.dot", cwd=tmp_path)
    finally:
        os.umask(before)
    assert (code, mode(tmp_path / "g.dot")) == (0, 0o644), err


def test_share_is_yes_or_no():
    with pytest.raises(GvizError, match="share"):
        Kept(share="no")
