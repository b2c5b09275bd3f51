"""The index in a file is believed only if its digest is right and it names what there is."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

import gviz.engine as torch
from gviz.errors import GvizError
from gviz.trace.file.reader import open_trace
from gviz.trace.index.search_index import digest, restored
from gviz.trace.recording.record import record
from gviz.trace.timeline import Timeline


@pytest.fixture
def path(tmp_path):
    with record(tmp_path / "run.gviz") as recording:
        x = torch.tensor(2.0, requires_grad=True)
        (x * x).backward()
    return recording.path


@pytest.fixture
def columns(path):
    with open_trace(path) as log:
        return dict(log.index())


def test_what_was_written_is_believed(columns):
    assert restored(columns) is not None


def test_what_was_made_by_older_rules_is_built_anew(tmp_path, monkeypatch):
    x = torch.tensor(2.0, requires_grad=True)
    with monkeypatch.context() as older, record(tmp_path / "run.gviz") as recording:
        older.setattr("gviz.trace.index.search_index.RULES", 1)
        older.setattr("gviz.trace.iterations.Loop.begin_pass", lambda loop, place: None)
        for _ in range(2):
            (x * 2).backward()
            (x * 3).backward()
        recording.close()
        with open_trace(recording.path) as log:
            assert len(Timeline(log).iterations) == 4
    with open_trace(recording.path) as log:
        assert restored(log.index()) is None
        assert len(Timeline(log).iterations) == 2


def test_a_column_whose_bytes_were_changed_is_not(columns):
    for name in columns.keys() - {"digest"}:
        if len(columns[name]):
            changed = columns[name].copy()
            changed[-1] ^= 1
            assert restored(columns | {name: changed}) is None, name


@pytest.mark.parametrize(
    ("name", "number"),
    [("context.step", 157), ("context.pass_nr", 157), ("context.scope", 157), ("context.seq", 157),
     ("phases.end", 157), ("origins.seq", 157), ("origins.seq", 1)],
)  # fmt: skip
def test_a_column_that_names_what_there_is_not_is_refused_with_any_digest(columns, name, number):
    changed = np.full_like(columns[name], number)
    assert len(changed)
    forged = columns | {name: changed}
    assert restored(forged | {"digest": digest(forged)}) is None


@pytest.mark.parametrize(
    "ask", [lambda t: t.info(1), lambda t: list(t.nodes.all_created([1])), lambda t: t.events_of(1)]
)
def test_an_index_that_says_of_one_node_how_another_was_made_is_damage(path, columns, ask):
    forged = columns | {"created.seqs": columns["created.seqs"][::-1].copy()}
    with closing(sqlite3.connect(path)) as database, database:
        for name in ("created.seqs", "digest"):
            data = (forged | {"digest": digest(forged)})[name].tobytes()
            database.execute("UPDATE index_column SET bytes = ? WHERE name = ?", (data, name))
    said = "made node 2, its index says 1|speaks of node 1, which was not made before"
    with open_trace(path) as log, pytest.raises(GvizError, match=said) as caught:
        ask(Timeline(log))
    assert caught.value.exit_code == 3


def test_a_schema_that_is_no_text_is_damage(path):
    data = path.read_bytes()
    assert b"CREATE TABLE meta" in data
    path.write_bytes(data.replace(b"CREATE TABLE meta", b"CREATE TABLE m\xcc\x20a"))
    with pytest.raises(GvizError) as caught:
        open_trace(path)
    assert caught.value.exit_code == 3
