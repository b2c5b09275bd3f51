"""What is written is what is read, however the recording went."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from histories import histories, value
from hypothesis import given, settings

from gviz import events as e
from gviz.errors import GvizError
from gviz.trace import load
from gviz.trace.codec import KIND_NUMBERS, decode, encode, subject
from gviz.trace.event_log import MemoryLog
from gviz.trace.file import writer as writer_module
from gviz.trace.file.event_batches_and_gaps import LARGEST_BODIES, MOST_EVENTS
from gviz.trace.file.reader import open_trace
from gviz.trace.file.writer import EndCondition, TraceWriter
from gviz.trace.timeline import Timeline
from gviz.values.value import Value, capture


def written(path, events, **about):
    troubles = []
    writer = TraceWriter(path, about=about, on_error=troubles.append)
    for event in events:
        writer.record(event)
    writer.close()
    assert not troubles
    return path


def everything(log):
    return [log.event(n) for n in range(1, len(log) + 1)]


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("traces")


@given(histories)
@settings(deadline=None, max_examples=15)
def test_a_trace_gives_back_every_event_and_answers_as_memory_does(folder, events):
    path = folder / f"{time.monotonic_ns()}.gviz"
    memory, expected = MemoryLog(events), Timeline(MemoryLog(events))
    with open_trace(written(path, events)) as log:
        assert everything(log) == everything(memory)
        assert (dict(log.ops), dict(log.stacks), dict(log.sources)) == (memory.ops, memory.stacks, memory.sources)
        assert log.index() is not None
        timeline = Timeline(log)
        for n in range(len(log) + 1):
            assert timeline.at(n).states(timeline.nodes) == expected.at(n).states(expected.nodes)
        assert timeline.phases == expected.phases
        assert timeline.iterations == expected.iterations
        assert timeline.contexts.node_ends == expected.contexts.node_ends
    path.unlink()


@pytest.mark.parametrize("kind", e.KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_of_event_survives_being_encoded(kind):
    samples = {
        "node": 3, "output_nr": 1, "pass_nr": 2, "kind": "op", "inputs": ((1, 0), (2, 0)), "roots": ((3, 0),),
        "outputs": (e.Output(value(1.0, 2.0), 5, 1, 1, 0, (1,)),), "attrs": (("dim", 1), ("keep", None)),
        "requires_grad": True, "during": (0, 0), "seeds": (value(1.0),), "grads": (None, value(2.0)),
        "retain_graph": True, "create_graph": False, "part": value(1.0), "total": None, "value": value(3.0),
        "parameters": (1, 2), "skipped": (3,), "slots": ("a",), "parent": 2, "also": ("b.weight",),
        "rules": ("g",), "saved": ("a",), "frames": (), "base": 6, "shared": 2,
        "source": "text" if kind is e.DataSet else 7, "text": "x = 1",
        "unseen": "forward", "more": True,
        "readings": (e.Reading((("reduction", "sum"),), "sum of a", (("g", "g"),), ("a",)),),
        "path": ((0, 2, "values"),) if kind is e.Returned else "text",
        "plain_flags": (("net.fc", False),),
        "given": (value(5.0), None), "per_group": (2, 0), "before": ((), (("lr", 0.5),)),
        "options": ((("lr", 0.25), ("betas", (0.9, 0.999)), ("fused", None), ("mode", "min")), (("lr", 1),)),
    }  # fmt: skip
    texts = {"untracked", "how", "name", "when", "error", "message", "traceback", "stream", "category", "path",
             "grad_fn", "formula", "raised", "device", "variable", "function", "call"}  # fmt: skip
    fields = [samples.get(name, "text" if name in texts else 7) for name in kind.__struct_fields__]
    event = kind(*(fields if kind not in (e.ScopeEntered, e.OptimizerStepped) else _with_text_kind(kind, fields)))
    assert decode(KIND_NUMBERS[kind], encode(event)) == event
    assert len(subject(event)) == 3


def _with_text_kind(kind, fields):
    return ["Linear" if name == "kind" else field for name, field in zip(kind.__struct_fields__, fields, strict=True)]


@pytest.mark.parametrize(
    ("attr", "kept"),
    [(1 << 80, str(1 << 80)), ("\udcff", "\\udcff"), (np.float32(1.5), 1.5), (slice(1), "slice(None, 1, None)"),
     ((1, (None, 2.5)), [1, [None, 2.5]])],
)  # fmt: skip
def test_whatever_an_argument_is_the_recording_goes_on(tmp_path, attr, kept):
    event = e.NodeCreated(1, 1, "op", (), (), (("dim", attr),), False, "", 0, 0)
    with open_trace(written(tmp_path / "run.gviz", [event, e.Printed("stdout", "\ud800")])) as log:
        [(_, found)] = log.event(1).attrs
        assert found == kept
        assert log.event(2).text == "\\ud800"


def test_a_trace_whose_name_is_no_utf_8_is_read(tmp_path):
    path = tmp_path / os.fsdecode(b"run\xff%20.gviz")
    try:
        path.touch()
    except OSError:
        pytest.skip("this file system takes no such name")
    path.unlink()
    with open_trace(written(path, [e.Marked("here")])) as trace:
        assert len(trace) == 1


def test_a_clean_close_leaves_one_file_that_explains_itself(tmp_path):
    path = written(tmp_path / "run.gviz", [e.Marked("here")], gviz="0.1.0")
    assert [file.name for file in tmp_path.iterdir()] == ["run.gviz"]
    connection = sqlite3.connect(path)
    [(name, fields)] = connection.execute("SELECT name, fields FROM event JOIN kind USING (kind)").fetchall()
    connection.close()
    assert (name, fields) == ("Marked", "name")
    with open_trace(path) as log:
        assert log.finished
        assert log.meta["gviz"] == "0.1.0"


def test_a_client_of_sqlite_sees_every_event_as_a_row(tmp_path):
    events = [e.GradSet(n, n % 3, "assigned", value(*range(n % 120))) for n in range(1, 2500)]
    path = written(tmp_path / "run.gviz", events)
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT seq, kind, node, output_nr, pass_nr, thread, body FROM event").fetchall()
    batches = connection.execute("SELECT last - first + 1, length(bodies) FROM batch").fetchall()
    connection.close()
    assert [row[:6] for row in rows] == [(n, KIND_NUMBERS[e.GradSet], n, n % 3, 0, 1) for n in range(1, 2500)]
    assert [decode(kind, body) for _, kind, *_, body in rows] == events
    assert all(count <= MOST_EVENTS and length <= LARGEST_BODIES + 2000 for count, length in batches)
    assert len({count for count, _ in batches}) > 2  # some ended by their number, some by their length


def test_large_arrays_are_kept_once_in_chunks_with_their_statistics(tmp_path):
    array = np.arange(300_000, dtype="float64")
    event = e.GradSet(1, 0, "assigned", capture(array, array.nbytes))
    path = written(tmp_path / "run.gviz", [event, event])
    with open_trace(path) as log:
        kept = log.event(1).value
        assert kept.data is None
        assert kept.stats.max == 299_999
        np.testing.assert_array_equal(log.array(kept), array)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*), max(length(bytes)) FROM chunk").fetchone() == (3, 1 << 20)
    connection.close()


def test_large_arrays_do_not_pile_up_in_memory(tmp_path):
    writer = TraceWriter(tmp_path / "run.gviz", about={}, on_error=pytest.fail)
    big = e.GradSet(1, 0, "assigned", capture(np.zeros(1000), 8000))
    writer.record(big)
    writer.flush()
    writer.record(big)
    assert len(writer) == 2  # the program has waited until the file had it
    writer.close()


def test_what_was_not_stored_is_none(tmp_path):
    big = capture(np.zeros(1000))
    with open_trace(written(tmp_path / "run.gviz", [e.GradSet(1, 0, "assigned", big)])) as log:
        assert log.event(1).value == big
        assert log.array(big) is None


def test_what_is_said_after_the_end_never_reaches_the_file(tmp_path):
    bad = e.GradSet(1, 0, "assigned", capture(np.array([np.nan]), 8))
    ended = []
    ending = EndCondition("nan", lambda: ended.append(len(ended)))
    writer = TraceWriter(tmp_path / "run.gviz", about={}, on_error=pytest.fail, ending=ending)
    for event in (e.Marked("before"), bad, e.Marked("in the same batch")):
        writer.record(event)
    writer.flush()
    for event in (e.Marked("already on its way"), bad):
        writer.record(event)
    writer.close()
    with open_trace(tmp_path / "run.gviz") as log:
        events = [event for _, event in log.select(1, len(log) + 1, range(64))]
        assert [type(event) for event in events] == [e.Marked, e.GradSet]
        assert log.meta["until"] == "nan"
    assert ended == [0]


def test_a_reader_follows_a_file_that_is_still_being_written(tmp_path):
    writer = TraceWriter(tmp_path / "run.gviz", about={}, on_error=pytest.fail)
    timeline = load(tmp_path / "run.gviz")
    assert len(timeline) == 0
    for n in range(1, 4):
        writer.record(e.Marked(f"mark {n}"))
        writer.flush()
        assert timeline.refresh()
        assert not timeline.refresh()
        assert timeline.marks[-1] == (n, f"mark {n}")
    writer.close()
    assert len(timeline) == 3


def test_the_write_ahead_log_is_folded_into_the_file_now_and_then(tmp_path, monkeypatch):
    monkeypatch.setattr(writer_module, "CHECKPOINT_SECONDS", 0.0)
    path = tmp_path / "run.gviz"
    writer = TraceWriter(path, about={}, on_error=pytest.fail)
    writer.record(e.Marked("here"))
    writer.flush()
    deadline = time.monotonic() + 60
    while b"here" not in path.read_bytes() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert b"here" in path.read_bytes()
    writer.close()


def test_events_reach_the_file_by_themselves_soon(tmp_path):
    writer = TraceWriter(tmp_path / "run.gviz", about={}, on_error=pytest.fail)
    writer.record(e.Marked("here"))
    with open_trace(tmp_path / "run.gviz") as log:
        deadline = time.monotonic() + 10
        while not log.refresh() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert everything(log) == [e.Marked("here")]
    writer.close()


def test_threads_give_one_order_in_which_each_keeps_its_own(tmp_path):
    writer = TraceWriter(tmp_path / "run.gviz", about={}, on_error=pytest.fail)

    def speak(name):
        for n in range(3000):
            writer.record(e.Printed(name, str(n)))

    threads = [threading.Thread(target=speak, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()
    with open_trace(tmp_path / "run.gviz") as log:
        said = everything(log)
    assert len(said) == 9000
    for name in "abc":
        assert [event.text for event in said if event.stream == name] == [str(n) for n in range(3000)]


def test_an_existing_file_is_not_overwritten(tmp_path):
    path = tmp_path / "run.gviz"
    path.write_text("mine")
    with pytest.raises(GvizError, match="already exists"):
        TraceWriter(path, about={}, on_error=pytest.fail)
    assert path.read_text() == "mine"


CHILD = """
import sys, os
from gviz import events as e
from gviz.trace.file.writer import TraceWriter
writer = TraceWriter(sys.argv[1], about={}, on_error=print)
n = 0
while True:
    n += 1
    writer.record(e.Printed("stdout", str(n)))
    if n % 700 == 0:
        writer.flush()
        os.write(1, b"%d\\n" % n)
"""


@pytest.mark.parametrize("lines", [1, 2, 3, 5, 8, 13])
def test_a_killed_recording_holds_everything_that_was_flushed(tmp_path, lines):
    path = tmp_path / "run.gviz"
    root = Path(__file__).parents[2]
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE, cwd=root)
    flushed = [int(child.stdout.readline()) for _ in range(lines)][-1]
    child.send_signal(signal.SIGKILL)
    flushed = int((child.stdout.read().split() or [flushed])[-1])
    child.stdout.close()
    child.wait()
    with open_trace(path) as log:
        assert not log.finished
        assert len(log) >= flushed
        assert log.event(len(log)).text == str(len(log))
        assert len(Timeline(log)) == len(log)


FORK = """
import os, sys
from gviz.trace.recording.record import mark, record
with record(sys.argv[1]) as recording:
    mark("before")
    child = os.fork()
    if not child:
        for n in range(3000):
            mark("child")
        sys.stdout.flush()
    else:
        assert os.waitpid(child, 0)[1] == 0
        mark("after")
if not child:
    assert sys.stdout is sys.__stdout__
"""


def test_a_fork_detaches_in_the_child_and_leaves_the_file_unharmed(tmp_path):
    path = tmp_path / "run.gviz"
    subprocess.run([sys.executable, "-c", FORK, str(path)], check=True, cwd=Path(__file__).parents[2])
    timeline = load(path)
    assert [name for _, name in timeline.marks] == ["before", "after"]
    assert os.listdir(tmp_path) == ["run.gviz"]


AMID = """
import os, sys, threading, time
from gviz.trace.recording.record import mark, record
with record(sys.argv[1]) as recording:
    written = recording._writer._connection
    written.set_trace_callback(lambda statement: time.sleep(0.002))  # it is in the midst of writing most of the time
    over = threading.Event()
    speaker = threading.Thread(target=lambda: [recording.flush() for _ in iter(over.is_set, True) if not mark("now")])
    speaker.start()
    for _ in range(20):
        child = os.fork()
        if not child:
            os._exit(written.in_transaction)
        print(os.waitpid(child, 0)[1])
    over.set()
    speaker.join()
"""


def test_no_process_is_forked_amid_a_write_whose_locks_it_would_wait_for_for_ever(tmp_path):
    command = [sys.executable, "-c", AMID, str(tmp_path / "run.gviz")]
    done = subprocess.run(command, check=True, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.stdout.split() == ["0"] * 20
    assert load(tmp_path / "run.gviz").marks


FULL = """
import resource, sys
import numpy as np
from gviz import emit, events as e
from gviz.trace.recording.record import Kept
from gviz.trace.recording.record import mark, record
with record(sys.argv[1], Kept(limit=1 << 20)) as recording:
    mark("before")
    recording.flush()
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
    for n in range(40):
        channel = emit.channel
        if channel is not None:
            channel.emit(e.GradSet(1, 0, "assigned", channel.value(np.arange(50_000.) + n)))
            recording.flush()
    print("attached" if emit.channel else "detached")
print("the program goes on")
"""


def test_a_full_disk_detaches_the_recorder_and_lets_the_program_go_on(tmp_path):
    path = tmp_path / "run.gviz"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, cwd=root)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["detached", "the program goes on"]
    assert done.stderr.count("gviz: warning: recording of") == 1
    with open_trace(path) as log:
        assert log.event(1) == e.Marked("before")
        assert not log.finished
        assert f"the trace holds the {len(log):,} events before" in done.stderr


def test_a_value_names_only_its_own_chunks(tmp_path):
    path = written(tmp_path / "run.gviz", [e.Marked("here")])
    with open_trace(path) as log:
        for blob in (b"", b"x" * 16, b"x" * 17):
            with pytest.raises(GvizError, match="damaged"):
                log.array(Value("float64", (10,), None, None, blob))
        with pytest.raises(GvizError, match="impossible"):
            log.array(Value("float64", (1 << 40,), None, None, b"x" * 16))


def test_a_trace_of_an_older_version_opens():
    """Recorded when format 1 was new; the comments of its tables are others by now."""
    timeline = load(Path(__file__).with_name("format_1.gviz"))
    assert timeline.framework == "gviz.engine"
    assert [timeline.info(node).name for node in timeline.nodes] == ["x", "y", "z"]
    assert timeline.at(len(timeline)).state(1).outputs[0].grad.array() == 12
    assert timeline.marks
