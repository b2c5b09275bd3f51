"""A file may be anything: the answer is one clear GvizError with exit code 3, or the truth; never a crash or a hang."""

import json
import random
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest
from histories import ACTIONS, tell

import gviz
import gviz.engine as torch
from gviz import events as e
from gviz.errors import GvizError
from gviz.source.call_stack import Frame
from gviz.trace import load
from gviz.trace.codec import KIND_NUMBERS, decode, encode
from gviz.trace.event_log import MemoryLog
from gviz.trace.file import connection
from gviz.trace.file import format as file_format
from gviz.trace.file.reader import open_trace
from gviz.trace.file.writer import TraceWriter
from gviz.trace.timeline import Timeline
from gviz.values.value import Stats, Value


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The bytes of a trace with a bit of everything in it."""
    path = tmp_path_factory.mktemp("sound") / "run.gviz"
    draw = random.Random(7)
    writer = TraceWriter(path, about={"gviz": "0.1.0"}, on_error=pytest.fail)
    for event in tell([(draw.choice(ACTIONS), *(draw.randrange(41) for _ in range(3))) for _ in range(60)]):
        writer.record(event)
    writer.close()
    return path.read_bytes()


@pytest.fixture
def path(tmp_path, sound):
    path = tmp_path / "run.gviz"
    path.write_bytes(sound)
    return path


def change(path, *statements):
    database = sqlite3.connect(path)
    for sql, *parameters in statements:
        database.execute(sql, parameters)
    database.commit()
    database.close()


def look_at_everything(path):
    timeline = load(path)
    try:
        for n in range(len(timeline) + 1):
            moment = timeline.at(n)
            moment.states(timeline.nodes)
            if moment.node:
                timeline.info(moment.node)
        for node in timeline.nodes:
            timeline.info(node)
        return (
            [(node, list(timeline.nodes.users(node)), list(timeline.events_of(node))) for node in timeline.nodes],
            [list(timeline.nodes.of(iteration)) for iteration in timeline.iterations],
            timeline.phases,
            timeline.marks,
            timeline.error_index.first_bad(),
            timeline.contexts.node_ends,
            timeline.printed(len(timeline)),
        )
    finally:
        timeline._log.close()


def survived(path):
    """Either it can be looked at, and what is seen comes back, or it is refused as it should be, and nothing does."""
    try:
        return look_at_everything(path)
    except GvizError:
        refused(path)


def refused(path):
    with pytest.raises(GvizError) as caught:
        look_at_everything(path)
    assert caught.value.exit_code == 3
    assert all("\n" not in line for line in caught.value.lines())
    return caught.value


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"", "it is empty"), (b"GIF89a and more", "first bytes"), (b"SQLite format 3\0", "damaged"),
     (b"SQLite format 3\0" + b"\xff" * 5000, "damaged")],
)  # fmt: skip
def test_other_files_are_not_traces(tmp_path, content, why):
    path = tmp_path / "file"
    path.write_bytes(content)
    assert why in refused(path).what


def test_a_missing_file_says_how_to_get_one(tmp_path):
    error = refused(tmp_path / "none.gviz")
    assert error.what.endswith("does not exist")
    assert error.hint == "gviz record -o FILE SCRIPT writes a trace"  # options of gviz come before the script


def test_a_folder_is_not_a_trace(tmp_path):
    assert refused(tmp_path).what.endswith("is a folder")


def test_a_name_that_cannot_be_a_path_is_refused():
    refused(Path("nul\0byte"))


def test_no_permission_says_so(sound, open_folder):
    path = open_folder / "run.gviz"
    path.write_bytes(sound)
    path.chmod(0)
    assert opened_by_nobody(path).startswith(f"3 gviz: error: {path} cannot be read: Permission denied")


def test_a_database_of_another_program_is_not_a_trace(tmp_path):
    change(tmp_path / "other.db", ("CREATE TABLE t (x)",))
    assert "of another program" in refused(tmp_path / "other.db").what


def test_a_newer_format_names_both_versions(path):
    change(
        path,
        ("UPDATE meta SET value = '9.9' WHERE key = 'gviz'",),
        (f"PRAGMA user_version = {file_format.FORMAT + 4}",),
    )
    error = refused(path)
    assert f"was written by gviz 9.9 (format {file_format.FORMAT + 4}); this is" in error.what
    assert error.hint == "pip install -U gviz"


@pytest.mark.parametrize("turns", ["", "[[]]", "[7]", '[["a"]]', "[" * 100_000])
def test_turns_that_cannot_be_are_refused(tmp_path, turns):
    with gviz.record(tmp_path / "last.gviz", last=1):
        w = torch.tensor([2.0], requires_grad=True)
        for _ in range(3):
            (w * w).sum().backward()
    change(tmp_path / "last.gviz", ("UPDATE meta SET value = ? WHERE key = 'turns'", turns))
    assert "its turns cannot be read" in refused(tmp_path / "last.gviz").what


def rewritten(old, new):
    """Statements that write one piece of the schema's text anew."""
    return ("PRAGMA writable_schema = ON",), ("UPDATE sqlite_schema SET sql = replace(sql, ?, ?)", old, new)


ENDLESS = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r)"


@pytest.mark.parametrize(
    "statements",
    [
        [("CREATE VIEW more AS SELECT 1",)],
        [("CREATE TRIGGER t AFTER INSERT ON batch BEGIN DELETE FROM meta; END",)],
        [("CREATE VIRTUAL TABLE more USING fts5(x)",)],
        [("CREATE TABLE more (x)",)],
        [("CREATE INDEX more ON batch (length(bodies))",)],
        [("DROP TABLE batch",), (f"CREATE VIEW batch AS {ENDLESS} SELECT x AS first, x AS last FROM r",)],
        [("DROP VIEW event",), (f"CREATE VIEW event AS {ENDLESS} SELECT x AS seq, 1 AS kind FROM r",)],
        [("DROP TABLE chunk",)],
        [("ALTER TABLE batch ADD COLUMN more DEFAULT 0",)],
        [*rewritten("kind INTEGER NOT NULL", "kind\u00a0INTEGER NOT NULL")],
        [*rewritten("body BLOB NOT NULL", "body BLOB DEFAULT '--\n' NOT NULL")],
    ],
    ids=lambda statements: statements[-1][-1][:30],
)
def test_a_schema_that_is_not_ours_is_refused_unread(path, statements):
    change(path, *statements)
    assert "its tables are not those of a trace" in refused(path).what


def test_a_newer_file_whose_meta_never_ends_is_not_asked(path, monkeypatch):
    monkeypatch.setattr(connection, "SECONDS_A_QUERY", 0.2)
    change(
        path,
        ("DROP TABLE meta",),
        (f"CREATE VIEW meta AS {ENDLESS} SELECT 'x' AS key, x AS value FROM r",),
        ("PRAGMA user_version = 9",),
    )
    assert "was written by a newer gviz (format 9)" in refused(path).what


def test_a_query_has_an_end(path, monkeypatch):
    monkeypatch.setattr(connection, "SECONDS_A_QUERY", 0.2)
    with open_trace(path) as log, pytest.raises(GvizError, match="interrupted"):
        log._connection.rows("SELECT count(*) FROM kind a, kind b, kind c, kind d, kind e, kind f")


@pytest.mark.parametrize(
    "sql", ["ATTACH 'other.db' AS o", "DELETE FROM batch", "PRAGMA writable_schema = ON", "CREATE TABLE x (y)"]
)
def test_a_trace_that_is_open_answers_nothing_but_queries(path, sql):
    with open_trace(path) as log, pytest.raises(GvizError, match="not authorized"):
        log._connection.rows(sql)


def body_of(kind, *fields):
    return KIND_NUMBERS[kind], msgspec.msgpack.encode(fields)


MARKED = KIND_NUMBERS[e.Marked]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        body_of(e.GradSet, 1, 0, "x", ("float64", (10**9,), b"\0" * 8, None, None)),
        body_of(e.GradSet, 1, 0, "x", ("float64", (-1,), b"\0" * 8, None, None)),
        body_of(e.GradSet, 1, 0, "x", ("float64", (1,) * 65, b"\0" * 8, None, None)),
        body_of(e.GradSet, 1, 0, "x", ("object", (1,), b"\0" * 8, None, None)),
        body_of(e.GradSet, 1),
        body_of(e.GradSet, 2, 0, "x", None),
        body_of(e.Marked, 5),
        (MARKED, b"\xdb\xff\xff\xff\xff"),
        (MARKED, b"\x91" * 100_000),
        body_of(e.OpSeen, 1, "x", "x", (), (), ()),
        (99, b"\x90"),
        (-1, b"\x90"),
        ("NodeCreated", b"\x90"),
        body_of(e.NodeCreated, 1, 1, "op", ((-5, 0),), (), (), True, "", 1, 1, (0, 0)),
        body_of(e.NodeCreated, 1, 1, "op", ((2**62, 0),), (), (), True, "", 1, 1, (0, 0)),
        body_of(e.NodeCreated, 1, 1, "what", (), (), (), True, "", 1, 1, (0, 0)),
    ],
    ids=range(16),
)
def test_a_body_that_is_no_event_is_damage(path, kind, body):
    database = sqlite3.connect(path)
    [(events, bodies)] = database.execute("SELECT events, bodies FROM batch").fetchall()
    database.close()
    rows = json.loads(events)
    rows[1] = [kind, 1, 0, 0, 0, 1, len(bodies), len(body)]
    change(
        path,
        ("DELETE FROM index_column",),
        ("UPDATE batch SET events = ?, bodies = ?", json.dumps(rows), bodies + body),
    )
    assert "is damaged" in refused(path).what


ONE = Value("float64", (), b"\0" * 8)
LEAF = e.NodeCreated(1, 1, "leaf", (), (e.Output(ONE, 1),), (), True, "", 0, 0)
OP = e.NodeCreated(2, 1, "op", ((1, 0),), (e.Output(ONE, 2),), (), True, "", 0, 0)
PASS = e.BackwardStarted(1, ((2, 0),), (ONE,), False, False, (), 0)


@pytest.mark.parametrize(
    "stray",
    [
        e.Named(999, "x"),
        e.GradFlowed(1, 999, 0, 1, 0, ONE),
        e.GradFlowed(1, 2, 7, 1, 0, ONE),
        e.GradFlowed(1, 2, 0, 1, 99, ONE),
        e.GradFlowed(1, 2, 0, 999, 0, ONE),
        e.HookRan(1, 999, 0, "tensor", "hook", None),
        e.GradSet(1, 99, "none", None),
        e.GradRetained(1, 2, 1, ONE),
        e.Failed("ValueError", "", 999, 0, ""),
        e.StorageWritten(1, 999, 1, ONE),
        e.OptimizerStepped("SGD", (1, 999), 0),
        e.BackwardStarted(2, ((2, 1),), (ONE,), False, False, (), 0),
        e.BackwardStarted(2, ((2, 0),), (ONE,), False, False, ((999, 0),), 0),
        e.NodeCreated(3, 1, "op", ((1, 5),), (), (), True, "", 0, 0),
        e.NodeCreated(3, 1, "op", ((4, 0),), (), (), True, "", 0, 0),
        e.NodeCreated(3, 1, "op", (), (e.Output(ONE, 1, 0, 999),), (), True, "", 0, 0),
        e.NodeCreated(3, 1, "op", (), (), (), True, "", 0, 0, (1, 999)),
        e.NodeCreated(3, 1, "op", ((3, 0),), (e.Output(ONE, 1),), (), True, "", 0, 0),
        e.NodeCreated(2, 1, "op", (), (e.Output(ONE, 1),), (), True, "", 0, 0),
    ],
    ids=lambda stray: type(stray).__name__,
)
def test_an_event_about_what_is_not_there_is_damage(tmp_path, stray):
    said = [e.OpSeen(1, "add", "AddBackward0", ("a", "b"), ("g", "g"), ()), LEAF, OP, PASS, stray]
    writer = TraceWriter(tmp_path / "run.gviz", about={}, on_error=pytest.fail)
    for event in [*said, e.NodeCreated(4, 1, "leaf", (), (e.Output(ONE, 3),), (), True, "", 0, 0)]:
        writer.record(event)
    writer.close()
    assert "the trace is damaged" in refused(tmp_path / "run.gviz").what


@pytest.mark.parametrize(
    "event",
    [
        e.Returned(1, 0, 0, ((2, 2, ""),)),
        e.BackwardStarted(1, ((1, 0), (1, 0)), (ONE,), False, False, (), 0),
        e.OptimizerStepped("SGD", (1, 2), 0, (), "", (1, 0)),
        e.NodeCreated(1, 1, "op", (), (), (), True, "", 0, 0, (0, 0), (ONE,)),
        e.GradSet(1, 0, "assigned", Value("float64", (2,), None, Stats(0.0, 1.0, 0.5, 0.7, 1, 1, 1))),
        e.GradSet(1, 0, "assigned", Value("float64", (2,), None, Stats(0.0, 1.0, 0.5, 0.7, -1, 0, 0))),
    ],
    ids=lambda event: type(event).__name__,
)
def test_an_event_that_contradicts_itself_is_refused(event):
    with pytest.raises(ValueError, match=r"was returned|gradients|parameters|given|statistics"):
        read_back(event)


def test_events_that_are_read_in_a_row_are_checked_as_single_ones(tmp_path):
    """A node that two events make has two module calls: whoever asks for that of one event gets the other's."""
    twice = e.NodeCreated(2, 1, "op", ((1, 0),), (e.Output(ONE, 2),), (), True, "", 0, 7)
    timeline = Timeline(MemoryLog([LEAF, OP, twice]))
    with pytest.raises(GvizError, match="which another event makes too"):
        list(timeline.select([e.NodeCreated]))


def test_a_contribution_from_nowhere_is_damage_also_after_it_was_passed(tmp_path):
    timeline = Timeline(MemoryLog([LEAF, OP, PASS, e.GradFlowed(1, 999, 0, 1, 0, ONE), e.Marked("here")]))
    with pytest.raises(GvizError, match="damaged"):
        timeline.at(5).state(1)


def test_what_was_made_before_the_recording_is_no_damage():
    late = e.NodeCreated(1, 1, "op", ((0, 0), (0, 0)), (e.Output(ONE, 2),), (), True, "", 0, 0)
    timeline = Timeline(MemoryLog([late]))
    assert timeline.info(1).created == timeline.at(1).event == late


@pytest.mark.parametrize(
    "event",
    [
        e.Named(-1, "x"),
        e.GradFlowed(1, -2, 0, 1, 0, ONE),
        e.GradFlowed(1, 2, 1 << 40, 1, 0, ONE),
        e.ScopeEntered(1, -1, "net", "Linear"),
        e.Warned("UserWarning", "", 1 << 62),
        e.OptimizerStepped("SGD", (1, -1), 0),
        e.BackwardStarted(1, ((1, -1),), (ONE,), False, False, (), 0),
        e.NodeCreated(1, 1, "leaf", (), (e.Output(ONE, 1, -1),), (), True, "", 0, 0),
    ],
    ids=lambda event: type(event).__name__,
)
def test_a_number_that_counts_nothing_is_refused(event):
    with pytest.raises(ValueError, match="Expected `int`"):
        read_back(event)


@pytest.mark.parametrize("parent", [5, 6])
def test_a_call_in_itself_or_in_a_later_one_is_refused(parent):
    with pytest.raises(ValueError, match="begins after it"):
        read_back(e.ScopeEntered(5, parent, "net", "Linear"))


@pytest.mark.parametrize("shape", [(-1,), (1,) * 65, (3,), (1 << 40, 1 << 40)], ids=str)
def test_a_shape_that_its_elements_do_not_fill_is_refused(shape):
    with pytest.raises(ValueError, match=r"shape|length|Expected `int`"):
        read_back(e.GradRetained(1, 1, 0, Value("float32", shape, b"1234")))


def test_steps_of_a_view_may_go_backward():
    made = e.NodeCreated(1, 1, "op", (), (e.Output(ONE, 1, 0, 1, 3, (-1,)),), (("dim", -1),), True, "", 0, 0)
    assert read_back(made) == made


def read_back(event):
    return decode(KIND_NUMBERS[type(event)], encode(event))


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE batch SET first = 2",
        "UPDATE batch SET first = -9223372036854775808",
        "UPDATE batch SET first = 0",
        "UPDATE batch SET last = last + 1",
        "UPDATE batch SET last = 4000000000000",
        "UPDATE batch SET last = 'x'",
        "UPDATE batch SET bodies = 'x'",
        "UPDATE batch SET bodies = x'00'",
        "UPDATE batch SET events = x'00'",
        "UPDATE batch SET events = '[[['",
        "UPDATE batch SET events = json_remove(events, '$[2]')",
        "UPDATE batch SET events = json_set(events, '$[2][1]', 'x')",
        "UPDATE batch SET events = json_set(events, '$[2][1]', -1)",
        "UPDATE batch SET events = json_set(events, '$[2][1]', 1 << 60)",
        "UPDATE batch SET events = json_set(events, '$[2][6]', 1 << 30)",
        "UPDATE batch SET events = json_set(events, '$[2][7]', 1)",
        "INSERT INTO batch SELECT first + 2000, last + 2000, events, bodies FROM batch",
        "UPDATE definition SET body = 'x'",
        "UPDATE definition SET kind = 0",
    ],
)
def test_rows_that_do_not_hold_together_are_damage(path, sql):
    database = sqlite3.connect(path)
    database.execute("PRAGMA ignore_check_constraints = ON")
    database.execute("DELETE FROM index_column")
    database.execute(sql)
    database.commit()
    database.close()
    assert "is damaged" in refused(path).what


@pytest.mark.parametrize(
    "name",
    ["kind.seqs", "node.keys", "node.starts", "created.seqs", "edges.target", "phases.kind", "context.pass_nr",
     "edges_to.seqs", "iterations.start", "count"],
)  # fmt: skip
@pytest.mark.parametrize(
    "content",
    [b"", b"\0" * 4, b"\xff" * 400, b"\1\0\0\0" * 100, b"odd"],
    ids=["empty", "zero", "all ones", "ones", "odd"],
)
def test_an_index_that_lies_is_rebuilt_or_refused(path, name, content):
    truth = look_at_everything(path)
    change(path, ("UPDATE index_column SET bytes = ? WHERE name = ?", content, name))
    assert survived(path) in (None, truth)


def test_an_index_with_other_dtypes_is_not_used(path, sound):
    truth = look_at_everything(path)
    change(path, ("UPDATE index_column SET dtype = 'O'",))
    assert look_at_everything(path) == truth


@pytest.mark.parametrize("seed", range(150))
def test_flipped_and_missing_bytes_are_survived(tmp_path, sound, seed):
    draw = random.Random(seed)
    damaged = bytearray(sound)
    for _ in range(draw.choice((1, 4, 40))):
        damaged[draw.randrange(len(damaged))] ^= 1 << draw.randrange(8)
    if seed % 3 == 0:
        del damaged[draw.randrange(len(damaged)) :]
    path = tmp_path / "run.gviz"
    path.write_bytes(damaged)
    survived(path)


def test_a_trace_copied_without_its_log_opens_with_what_it_has(tmp_path):
    writer = TraceWriter(tmp_path / "run.gviz", about={}, on_error=pytest.fail)
    writer.record(e.Marked("here"))
    writer.flush()
    copy = tmp_path / "copy.gviz"
    copy.write_bytes((tmp_path / "run.gviz").read_bytes())
    writer.close()
    assert len(load(copy)) == 0


AS_NOBODY = """
import os, sys
from gviz.errors import GvizError
from gviz.trace.file.reader import open_trace
if os.geteuid() == 0:
    os.setuid(65534)
try:
    print(len(open_trace(sys.argv[1])))
except GvizError as error:
    print(error.exit_code, *error.lines())
"""


@pytest.fixture
def open_folder():
    """A folder that everybody may look into; those that pytest makes are closed again whenever it starts."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def opened_by_nobody(path):
    """What a user without rights is told; root becomes one, because root may do everything."""
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", AS_NOBODY, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root)
    assert not done.stderr
    return done.stdout


def test_an_unfinished_trace_in_a_folder_without_write_permission_is_explained(open_folder):
    path = open_folder / "run.gviz"
    writer = TraceWriter(path, about={}, on_error=pytest.fail)
    writer.record(e.Marked("here"))
    writer.flush()
    sealed = open_folder / "sealed"
    sealed.mkdir()
    for name in ("run.gviz", "run.gviz-wal"):
        (sealed / name).write_bytes((open_folder / name).read_bytes())
    writer.close()
    sealed.chmod(0o555)
    said = opened_by_nobody(sealed / "run.gviz")
    assert said.startswith("3 ")
    assert "written to" in said


@pytest.mark.parametrize(
    "definition",
    [
        e.OpSeen(1, "x" * 10**6, "y" * 10**6, ("a" * 10**6,), ("g * " * 10**6,), ("s" * 10**6,), "2 * " * 10**6),
        e.OpSeen(1, "x", "y", ("a",), ("g",), (), "", (e.Reading((("a", "b"),), "c" * 10**6),)),
        e.OpSeen(1, "x", "y", ("a",), ("g",), (), "", (e.Reading((), "", (("g", "g" * 10**6),), ("s" * 10**6,)),)),
        e.StackSeen(1, (Frame("/p" * 10**6, "f" * 10**6, 1, 1, 0, 1),)),
        e.SourceSeen("a.py", "x = 1\n" * 10**6),
    ],
    ids=["operation", "formula of a reading", "word of a reading", "stack", "source"],
)
def test_what_many_events_show_is_not_longer_than_a_person_reads(path, definition):
    body = encode(definition)
    change(path, ("DELETE FROM definition", ), ("INSERT INTO definition(kind, body) VALUES (?, ?)",
                                                KIND_NUMBERS[type(definition)], body))  # fmt: skip
    with open_trace(path) as trace:
        assert len(repr((trace.ops, dict(trace.stacks), trace.sources))) < 10_000


def test_a_text_that_a_program_may_have_is_read_whole(path):
    seen = e.OpSeen(1, "x" * 200, "y" * 200, ("a",) * 300, ("g * cos(self)",) * 300, ("s",), "2 * " * 1000)
    change(path, ("DELETE FROM definition",), ("INSERT INTO definition(kind, body) VALUES (?, ?)",
                                               KIND_NUMBERS[e.OpSeen], encode(seen)))  # fmt: skip
    with open_trace(path) as trace:
        assert trace.ops == {1: seen}
