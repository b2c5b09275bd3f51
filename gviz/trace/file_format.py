"""What makes a file a trace: its marks, its format's number, its tables."""

from __future__ import annotations

import sqlite3
from functools import cache
from pathlib import Path

FORMAT = 1
"""Counts up when a reader of the old format would misread a new file; `schema.sql` keeps the history."""

MAGIC = b"SQLite format 3\0"
"""The first bytes of the file; that it is a trace, and not some other database, is said further in."""

APPLICATION_ID = 0x67766973  # "gvis"; `file` and SQLite clients show it
CHUNK_BYTES = 1 << 20
HASH_BYTES = 16

SchemaRow = tuple[str, str, str, str | None]
"""``(type, name, table, sql)``"""


def create(connection: sqlite3.Connection) -> None:
    """Make an empty file a trace of this format."""
    for statement in _statements():
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")


def schema_rows(connection: sqlite3.Connection) -> set[SchemaRow]:
    """Everything a database defines."""
    return set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema"))


@cache
def expected_schema() -> frozenset[SchemaRow]:
    """Everything a trace of this format defines, and nothing else."""
    empty = sqlite3.connect(":memory:")
    try:
        for statement in _statements():
            empty.execute(statement)
        return frozenset(schema_rows(empty))
    finally:
        empty.close()


def _statements() -> list[str]:
    """The statements of the schema, one by one: `executescript` would end the transaction around them."""
    text = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
    return [part + ";" for part in text.split(";\n") if "CREATE" in part]
