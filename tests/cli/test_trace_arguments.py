"""What ``-o`` names where a launcher starts a process for each rank."""

from pathlib import Path

import pytest

from gviz.cli.trace_arguments import TraceArgument, TraceName
from gviz.errors import GvizError


@pytest.fixture
def name(monkeypatch, tmp_path):
    """Converts a name, relative to a folder of its own, in the given rank of two."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)

    def convert(text, rank=None):
        if rank is not None:
            monkeypatch.setenv("RANK", str(rank))
            monkeypatch.setenv("WORLD_SIZE", "2")
        return TraceName().convert(text, None, None)

    return convert


def test_alone_it_is_a_file(name):
    assert name("t.gviz") == Path("t.gviz")
    assert name("t-{rank}.gviz") == Path("t-0.gviz")


def test_a_folder_holds_a_file_for_each_rank(name, tmp_path):
    assert name("runs/", rank=1) == Path("runs/rank1.gviz")
    assert (tmp_path / "runs").is_dir()
    assert name("runs", rank=0) == Path("runs/rank0.gviz")


def test_a_pattern(name):
    assert name("run{rank}.gviz", rank=1) == Path("run1.gviz")


def test_ranks_that_are_started_again_leave_what_was_recorded_before(name, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "2")
    assert name("runs/", rank=1) == Path("runs/rank1-restart2.gviz")
    assert name("run{rank}.gviz", rank=1) == Path("run1-restart2.gviz")
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "0")
    assert name("runs/", rank=1) == Path("runs/rank1.gviz")


def test_two_ranks_never_write_one_file(name):
    with pytest.raises(GvizError, match=r"each of the 2 ranks would write t\.gviz"):
        name("t.gviz", rank=0)


@pytest.mark.parametrize(("given", "what"), [("", "the name of a trace is empty"), ("x" * 5000, "cannot read xxxx")])
def test_what_can_be_the_name_of_no_file_is_no_trace_to_open(given, what):
    with pytest.raises(GvizError, match=what) as refused:
        TraceArgument().convert(given, None, None)
    assert refused.value.exit_code == 3
    assert len(refused.value.what) < 100
    assert TraceArgument().convert("missing.gviz", None, None) == Path("missing.gviz")
