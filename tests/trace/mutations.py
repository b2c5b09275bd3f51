"""Sound traces, damaged in every way that a file can be, and what every command of gviz makes of them.

``python tests/trace/mutations.py FIRST COUNT`` damages a trace by each of the seeds from FIRST on, in a process that
may take 2 GB, and prints each that breaks the rule: a command ends with an answer, or with exit code 2 or 3 and a
message; never with a crash report (70), never with a traceback, and within `SECONDS` of CPU time.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import resource
import signal
import sqlite3
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from gviz.cli.main import run_command
from gviz.events import DEFINITIONS, KINDS
from gviz.system import crash
from gviz.trace.codec import KIND_NUMBERS, decode, subject
from gviz.trace.file.reader import open_trace
from gviz.trace.index.search_index import digest

SECONDS = 60
"""CPU time that a command may take: many times what it takes on a slow machine."""

ALLOWED = (0, 1, 2, 3)
PROGRAM = """
import warnings
import gviz.engine as torch
from gviz.engine import nn
import gviz.engine.nn.functional as F
from gviz.engine.utils.checkpoint import checkpoint

torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Dropout(0.5))
        self.second = nn.Linear(5, 3)
    def forward(self, x):
        h = self.first(x)
        a, b = h.split([2, 3], dim=1)
        return self.second(torch.cat([a * 2, b], 1))

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
hook = net.second.weight.register_hook(lambda grad: grad * 2)
large = torch.zeros(30, 40, requires_grad=True)
for turn in range(3):
    if turn == 2:
        net.eval()
    x, y = torch.randn(6, 4), torch.tensor([0, 1, 2, 0, 1, 2])
    optimizer.zero_grad()
    loss = F.cross_entropy(net(x), y) + (large * large).sum() * 0.1
    loss.backward()
    optimizer.step()
    print("loss", loss.item())
with torch.no_grad():
    net(x)
    large[0] += 1
w = torch.tensor([1.0, 0.0], requires_grad=True)
h = w.exp()
h.retain_grad()
g, = torch.autograd.grad(h.sum(), w, create_graph=True)
(g * g).sum().backward()
warnings.warn("a warning")
z = w.log()
h.sum().backward()
"""

COMMANDS: tuple[tuple[str, ...], ...] = (
    ("show", "T", "stats"), ("show", "T", "passes"), ("show", "T", "tape"), ("show", "T", "events"),
    ("show", "T", "events", "--format", "json"), ("show", "T", "node", "loss"), ("show", "T", "node", "#9"),
    ("show", "T", "memory"), ("show", "T", "training"),
    ("check", "T"), ("check", "T", "--format", "json"),
    ("why", "loss", "T"), ("why", "w.grad", "T"), ("why", "error", "T"), ("why", "nan", "T"),
    ("explain", "T"), ("explain", "T", "alive"), ("explain", "T", "#12.grad"),
    ("export", "T", "-o", "graph.dot"), ("export", "T", "-o", "graph.mmd"), ("export", "T", "-o", "graph.json"),
    ("export", "T", "-o", "graph.txt"), ("export", "T", "-o", "graph.html"), ("export", "T", "-o", "graph.svg"),
    ("diff", "T", "S"), ("diff", "S", "T"), ("diff", "T", "0,1"),
    ("whatif", "T", "w = 5"), ("whatif", "T", "loss = 2"), ("graphify", "T"), ("open", "--plain", "T"),
)  # fmt: skip
"""What is tried; ``t`` is the damaged trace, ``S`` the sound one."""

TYPED = """
n
n
c
b
goto end
p loss
w loss.sum()
tape
why loss
break value > 3
c
rc
events
info
q
"""


Mutation = Callable[[random.Random, Path], None]


def _database(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path)
    database.execute("PRAGMA ignore_check_constraints = ON")
    database.execute("PRAGMA journal_mode = DELETE").fetchall()
    return database


def flipped_bits(draw: random.Random, path: Path) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(draw.choice((1, 1, 4, 40))):
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    path.write_bytes(data)


def cut(draw: random.Random, path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: draw.randrange(len(data))])


def pages(draw: random.Random, path: Path) -> None:
    data = bytearray(path.read_bytes())
    size = 4096
    one, other = (draw.randrange(len(data) // size) * size for _ in range(2))
    page = draw.choice((bytes(size), bytes(data[other : other + size]), draw.randbytes(size)))
    data[one : one + size] = page
    path.write_bytes(data)


def schema(draw: random.Random, path: Path) -> None:
    with contextlib.closing(_database(path)) as database, database:
        database.execute("PRAGMA writable_schema = ON")
        rows = database.execute("SELECT rowid, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
        number, sql = draw.choice(rows)
        at = draw.randrange(len(sql))
        changed = draw.choice((sql[:at] + sql[at + 1 :], sql[:at] + draw.choice("x ,()'1") + sql[at:], sql.upper()))
        database.execute("UPDATE sqlite_schema SET sql = ? WHERE rowid = ?", (changed, number))


def fields(draw: random.Random, path: Path) -> None:
    """Another value in some field of some row of some table."""
    with contextlib.closing(_database(path)) as database, database:
        table = draw.choice(("batch", "definition", "meta", "kind", "chunk", "index_column"))
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        rows = [row[0] for row in database.execute(f"SELECT rowid FROM {table}")]
        if not rows:
            return
        value = draw.choice(
            (None, 0, 1, -1, 2**40, 2**62, "", "x", "[]", b"", b"\0" * 8, 1.5, "9" * 5000, "\ud7ff\u202e")
        )
        column, row = draw.choice(columns), draw.choice(rows)
        with contextlib.suppress(sqlite3.Error):
            database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, row))


def missing_rows(draw: random.Random, path: Path) -> None:
    with contextlib.closing(_database(path)) as database, database:
        table = draw.choice(("batch", "definition", "definition", "definition", "meta", "chunk", "index_column"))
        rows = [row[0] for row in database.execute(f"SELECT rowid FROM {table}")]
        for row in draw.sample(rows, min(len(rows), draw.choice((1, 1, 5, 1000)))):
            database.execute(f"DELETE FROM {table} WHERE rowid = ?", (row,))


def _with_events(draw: random.Random, path: Path, change: Callable[[list[list[int]], list[bytes]], None]) -> None:
    """Change the rows and bodies of the events of a trace; the index goes, mostly, and JSON is spaced, sometimes."""
    with contextlib.closing(_database(path)) as database, database:
        rows: list[list[int]] = []
        bodies: list[bytes] = []
        for events, data in database.execute("SELECT events, bodies FROM batch ORDER BY first"):
            for row in json.loads(events):
                rows.append(row)
                bodies.append(data[row[6] : row[6] + row[7]])
        change(rows, bodies)
        start = 0
        for row, body in zip(rows, bodies, strict=True):
            row[6:8] = start, len(body)
            start += len(body)
        database.execute("DELETE FROM batch")
        for at in range(0, len(rows), 900):
            part = rows[at : at + 900]
            first = part[0][6]
            for row in part:
                row[6] -= first
            separators = draw.choice(((",", ":"), (",", ":"), (", ", ": "), (",\n", ":")))
            text = json.dumps(part, separators=separators)
            parts = at + 1, at + len(part), text, b"".join(bodies[at : at + 900])
            database.execute("INSERT INTO batch VALUES (?, ?, ?, ?)", parts)
        if draw.random() < 0.8:
            database.execute("DELETE FROM index_column")


def numbers_of_rows(draw: random.Random, path: Path) -> None:
    def change(rows: list[list[int]], bodies: list[bytes]) -> None:
        for _ in range(draw.choice((1, 1, 3))):
            row = draw.choice(rows)
            row[draw.randrange(6)] = draw.choice((0, 1, 2, 7, -1, 2**31, 2**40, row[1] + 1, len(KINDS)))

    _with_events(draw, path, change)


def kinds(draw: random.Random, path: Path) -> None:
    """Events as another kind, with a body that such an event could have."""

    def change(rows: list[list[int]], bodies: list[bytes]) -> None:
        for _ in range(draw.choice((1, 5))):
            one, other = draw.randrange(len(rows)), draw.randrange(len(rows))
            rows[one][:4], bodies[one] = rows[other][:4], bodies[other]

    _with_events(draw, path, change)


def order(draw: random.Random, path: Path) -> None:
    """Events left out, said twice, or at another place."""

    def change(rows: list[list[int]], bodies: list[bytes]) -> None:
        for _ in range(draw.choice((1, 1, 2, 20))):
            one, other = draw.randrange(len(rows)), draw.randrange(len(rows))
            match draw.randrange(4):
                case 0 if len(rows) > 2:
                    del rows[one], bodies[one]
                case 1:
                    rows.insert(other, [*rows[one]])
                    bodies.insert(other, bodies[one])
                case 2:
                    rows[one], rows[other] = rows[other], rows[one]
                    bodies[one], bodies[other] = bodies[other], bodies[one]
                case _:
                    length = draw.randrange(1, 40)
                    if len(rows) > length + 2:
                        del rows[one : one + length], bodies[one : one + length]

    _with_events(draw, path, change)


def bodies(draw: random.Random, path: Path) -> None:
    """Another number, text or array in the body of an event, which its row agrees with."""

    def change(rows: list[list[int]], bodies: list[bytes]) -> None:
        for _ in range(draw.choice((1, 1, 1, 4))):
            at = draw.randrange(len(rows))
            for _ in range(20):
                body = _changed(draw, bodies[at])
                try:
                    event = decode(rows[at][0], body)
                except Exception:
                    if draw.random() < 0.05:
                        bodies[at] = body
                    continue
                bodies[at], rows[at][1:4] = body, subject(event)
                break

    _with_events(draw, path, change)


def definitions(draw: random.Random, path: Path) -> None:
    with contextlib.closing(_database(path)) as database, database:
        rows = database.execute("SELECT rowid, body FROM definition").fetchall()
        for _ in range(draw.choice((1, 3))):
            number, body = draw.choice(rows)
            kind = draw.choice([KIND_NUMBERS[one] for one in DEFINITIONS])
            column, value = draw.choice(
                (("body", _changed(draw, body)), ("body", _changed(draw, body)), ("kind", kind))
            )
            database.execute(f"UPDATE definition SET {column} = ? WHERE rowid = ?", (value, number))


def index(draw: random.Random, path: Path) -> None:
    """Another number in the kept index, whose digest is that of what it says now."""
    with contextlib.closing(_database(path)) as database, database:
        rows = database.execute("SELECT name, dtype, bytes FROM index_column").fetchall()
        columns = {name: np.frombuffer(data, dtype).copy() for name, dtype, data in rows}
        for _ in range(draw.choice((1, 1, 3))):
            name = draw.choice([name for name, column in columns.items() if len(column) and name != "digest"])
            column = columns[name]
            at = draw.randrange(len(column))
            column[at] = draw.choice((0, 1, int(column[at - 1]), min(int(column[at]) + 1, np.iinfo(column.dtype).max)))
        columns["digest"] = digest(columns)
        for name, column in columns.items():
            database.execute("UPDATE index_column SET bytes = ? WHERE name = ?", (column.tobytes(), name))


def _changed(draw: random.Random, body: bytes) -> bytes:
    """A body with one of its parts another."""
    thing = msgspec.msgpack.decode(body)
    places = list(_places(thing))
    holder, key = draw.choice(places)
    old = holder[key]
    match old:
        case bool():
            holder[key] = not old
        case int():
            holder[key] = draw.choice((0, 1, 2, 3, 5, old + 1, max(old - 1, 0), draw.randrange(60), 2**30, 2**62, -1))
        case float():
            holder[key] = draw.choice((0.0, -1.0, float("nan"), float("inf"), 1e308))
        case str():
            holder[key] = draw.choice(
                ("", "x", "float64", "op", "leaf", "0.weight", "\x1b[31m", "\u202e", "a" * 3000, "%s{}")
            )
        case bytes():
            holder[key] = draw.choice((b"", old[:-1], old + b"\0" * 8, bytes(len(old)), draw.randbytes(len(old))))
        case list():
            choices = ([], old[:-1], old + old[:1], old[::-1], old * 2, None)
            holder[key] = draw.choice(choices)
        case _:
            holder[key] = draw.choice((0, 1, "x", [], [1, 2], b"x"))
    return msgspec.msgpack.encode(thing)


def _places(thing: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(thing, list):
        for number, part in enumerate(thing):
            yield thing, number
            yield from _places(part)
    elif isinstance(thing, dict):
        for key, part in thing.items():
            yield thing, key
            yield from _places(part)


MUTATIONS: tuple[Mutation, ...] = (
    flipped_bits, cut, pages, schema, fields, missing_rows, numbers_of_rows, kinds, order, order, bodies, bodies,
    bodies, definitions, index,
)  # fmt: skip


def recorded(folder: Path) -> Path:
    """A trace of `PROGRAM`, with a bit of everything in it."""
    program = folder / "program.py"
    program.write_text(PROGRAM)
    sound = folder / "sound.gviz"
    _quietly(["record", "--values", "all", "-o", str(sound), str(program)])
    assert len(open_trace(sound)) > 300
    return sound


def _quietly(arguments: list[str]) -> int:
    """Run a command; what it prints goes nowhere."""
    before = sys.stdin, sys.stdout, sys.stderr
    try:
        sys.stdin = io.TextIOWrapper(io.BytesIO(TYPED.encode()))
        sys.stdout, sys.stderr = (io.TextIOWrapper(io.BytesIO()) for _ in range(2))
        return run_command(arguments)
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


class _TooLong(BaseException):
    """A command took longer than it may."""


class _Stopped(BaseException):
    """Somebody has seen enough."""


def _stop(*_: object) -> None:
    raise _Stopped


def _too_long(*_: object) -> None:
    raise _TooLong


def broken_rules(sound: Path, seed: int, every: int, counts: Counter[str]) -> Iterator[str]:
    """Damage a trace by a seed, and say which commands do what they must not; tries one of `every` commands."""
    draw = random.Random(seed)
    mutation = MUTATIONS[seed % len(MUTATIONS)]
    path = sound.with_name("damaged.gviz")
    path.write_bytes(sound.read_bytes())
    try:
        mutation(draw, path)
    except (sqlite3.Error, IndexError):  # nothing to be changed there
        counts["not damaged"] += 1
        return
    counts[mutation.__name__] += 1
    crashes: list[BaseException] = []
    crash.write_report = lambda error, folder=None: crashes.append(error) or path  # type: ignore[func-returns-value]
    signal.signal(signal.SIGPROF, _too_long)
    names = {"T": str(path), "S": str(sound)}
    for command in COMMANDS[seed // len(MUTATIONS) % every :: every]:
        arguments = [names.get(word, word) for word in command]
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            code: object = _quietly(arguments)
        except _TooLong as error:
            code, crashes = "too long", [error]
        except _Stopped:
            raise
        except BaseException as error:
            code, crashes = type(error).__name__, [error]
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        counts[f"exit code {code}"] += 1
        if code not in ALLOWED:
            where = "".join(traceback.format_exception(crashes[-1])[-4:]) if crashes else ""
            yield f"seed {seed}, {mutation.__name__}: gviz {' '.join(command)} ends with {code}\n{where}"
            crashes.clear()


def main(first: int, count: int, every: int = 5) -> int:
    """Try some seeds; print what breaks the rule, and what was tried. 1 if anything does."""
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
    signal.signal(signal.SIGTERM, _stop)  # ``timeout 600 python mutations.py 0 1000000``
    counts: Counter[str] = Counter()
    tried = troubles = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sound = recorded(Path(folder))
        with contextlib.suppress(_Stopped):
            for seed in range(first, first + count):
                for trouble in broken_rules(sound, seed, every, counts):
                    troubles += 1
                    print(trouble, flush=True)
                tried += 1
    print(", ".join(f"{name} {number}" for name, number in sorted(counts.items())))
    print(f"{tried} traces, {troubles} findings")
    return min(troubles, 1)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
