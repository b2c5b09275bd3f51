"""What a killed program has left beside its trace."""

import shutil
import sqlite3
from contextlib import closing

from gviz.trace.file.paths import fold_file


def test_what_a_killed_program_left_is_brought_into_one_file(tmp_path):
    path, left = tmp_path / "open.gviz", tmp_path / "left.gviz"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        connection.execute("CREATE TABLE t (a)")
        connection.execute("INSERT INTO t VALUES (1)")
        for part in ("", "-wal"):
            shutil.copy(f"{path}{part}", f"{left}{part}")
    fold_file(left)
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith("left")] == ["left.gviz"]
    alone = shutil.copy(left, tmp_path / "alone.gviz")
    with closing(sqlite3.connect(alone)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchall() == [("delete",)]
        assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_a_trace_that_somebody_has_open_is_left_as_it_is(tmp_path):
    path = tmp_path / "open.gviz"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        connection.execute("CREATE TABLE t (a)")
        connection.execute("BEGIN")
        connection.execute("INSERT INTO t VALUES (1)")
        fold_file(path)
        connection.execute("COMMIT")
        assert connection.execute("PRAGMA journal_mode").fetchall() == [("wal",)]


def test_no_file_is_made_where_there_is_none(tmp_path):
    fold_file(tmp_path / "none.gviz")
    assert not list(tmp_path.iterdir())
