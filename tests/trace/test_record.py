import importlib
import io
import os
import subprocess
import sys
import warnings
import zipfile
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from types import ModuleType

import pytest

import gviz
import gviz.engine as torch
from gviz import emit, frameworks
from gviz import events as e
from gviz.errors import GvizError
from gviz.trace import load
from gviz.trace.file import format as file_format
from gviz.trace.file import paths
from gviz.trace.naming import bindings
from gviz.trace.recording.record import Kept, Window, mark, record
from gviz.trace.recording.source_text import read_source

ROOT = Path(__file__).parents[2]


def of_kind(timeline, kind):
    return [event for n in range(1, len(timeline) + 1) if isinstance(event := timeline.event(n), kind)]


def marks_in(path):
    return [event.name for event in of_kind(load(path), e.Marked)]


def test_a_window_opens_at_every_first_mark_and_closes_at_the_next_last_one(tmp_path):
    with record(tmp_path / "t.gviz", Kept(window=Window("a", "b"))):
        for name in ("before", "a", "1", "a", "b", "between", "b", "a", "2", "b", "after"):
            mark(name)
    assert marks_in(tmp_path / "t.gviz") == ["a", "1", "a", "b", "a", "2", "b"]


@pytest.mark.parametrize(("first", "last", "kept"), [("", "b", "xaxb"), ("a", "", "axbxax")])
def test_a_window_of_one_mark(tmp_path, first, last, kept):
    with record(tmp_path / "t.gviz", Kept(window=Window(first, last))):
        for name in "xaxbxax":
            mark(name)
    assert "".join(marks_in(tmp_path / "t.gviz")) == kept


def test_a_window_ends_no_other_recording(tmp_path):
    with record(tmp_path / "outer.gviz", Kept(window=Window("a", "b"))), record(tmp_path / "inner.gviz"):
        for name in "xaby":
            mark(name)
    assert (marks_in(tmp_path / "outer.gviz"), marks_in(tmp_path / "inner.gviz")) == ([], ["x", "a", "b", "y"])


def test_what_happens_in_the_block_is_in_the_trace(tmp_path):
    with record(tmp_path / "run.gviz") as recording:
        x = torch.tensor(3.0, requires_grad=True)
        y = x * x
        y.backward()
        mark("done")
    timeline = load(recording.path)
    assert [timeline.info(node).title for node in timeline.nodes] == ["x", "y"]
    [leaf] = timeline.at(len(timeline)).states([1])
    assert leaf.outputs[0].grad.array() == 6.0
    assert [name for _, name in timeline.marks] == ["done"]
    assert timeline.source(__file__) == Path(__file__).read_text()


def test_a_second_pass_writes_the_memory_of_the_grad_that_is_there(tmp_path):
    with record(tmp_path / "run.gviz"):
        x = torch.tensor(2.0, requires_grad=True)
        (x * 3).backward()
        _ = x.grad * 1
        (x * 3).backward()
    timeline = load(tmp_path / "run.gviz")
    [grad] = [node for node in timeline.nodes if timeline.info(node).name == "x.grad"]
    [output] = timeline.at(len(timeline)).state(grad).outputs
    assert (output.value.array(), output.version) == (6.0, 1)


@pytest.mark.parametrize("detour", [emit.silence, lambda: emit.detour(emit.Channel(lambda event: None))])
def test_a_detour_of_one_thread_loses_nothing_of_another(tmp_path, detour):
    def work():
        seen.append(emit.channel is made.channel)
        mark("elsewhere")

    seen = []
    with record(tmp_path / "a.gviz") as made:
        with detour():
            mark("lost")
            with detour():
                thread = Thread(target=work)
                thread.start()
                thread.join()
                mark("lost")
            mark("lost")
            with pytest.raises(GvizError, match="already being recorded"), record(tmp_path / "b.gviz"):
                pass
        mark("here")
    assert seen == [True]
    assert "channel" in vars(emit)  # reading it is as cheap again as it was
    assert emit.channel is None
    assert [name for _, name in load(tmp_path / "a.gviz").marks] == ["elsewhere", "here"]


def test_a_recording_that_ends_during_a_detour_has_ended(tmp_path):
    with record(tmp_path / "a.gviz") as made, emit.silence():
        made.close()
        assert emit.channel is None
    assert emit.channel is None


def test_a_recording_that_cannot_begin_lets_the_block_run_and_leaves_nothing_behind(tmp_path, capfd):
    @contextmanager
    def refused(recording):
        raise TypeError("no such model")
        yield

    before = sys.stdout, sys.stderr, warnings.showwarning
    ran = False
    with record(tmp_path / "a.gviz").with_context(refused):
        ran = True
    assert ran
    assert "nothing is recorded: TypeError('no such model')" in capfd.readouterr().err
    assert (sys.stdout, sys.stderr, warnings.showwarning) == before
    assert emit.channel is None
    with record(tmp_path / "b.gviz"):
        mark("here")
    assert load(tmp_path / "b.gviz").marks


def test_an_exception_is_said_and_goes_on_its_way(tmp_path):
    path = tmp_path / "run.gviz"
    with pytest.raises(ZeroDivisionError), record(path):
        _ = 1 // 0
    timeline = load(path)
    [failed] = of_kind(timeline, e.Failed)
    assert (failed.error, failed.node) == ("ZeroDivisionError", 0)
    assert "_ = 1 // 0" in failed.traceback
    assert timeline.stack(failed.stack)[0].path == __file__
    assert timeline.failures == (len(timeline),)
    assert timeline.phases[-1].kind == "failed"
    assert emit.channel is None


def test_an_error_in_a_backward_rule_names_its_node(tmp_path):
    def program():
        with record(tmp_path / "run.gviz"):
            y = torch.tensor([1.0, 2.0], requires_grad=True).exp()
            y.add_(1)
            y.sum().backward()

    with pytest.raises(RuntimeError):
        program()
    timeline = load(tmp_path / "run.gviz")
    [failed] = of_kind(timeline, e.Failed)
    assert timeline.info(failed.node).op.name == "exp"


def test_leaving_by_sys_exit_is_no_failure(tmp_path):
    with pytest.raises(SystemExit), record(tmp_path / "run.gviz"):
        sys.exit(0)
    assert load(tmp_path / "run.gviz").failures == ()


def test_output_is_said_line_by_line_and_still_printed(tmp_path, capsys):
    with record(tmp_path / "run.gviz"):
        print("one", 2)
        print("no end", end="")
        print("trouble", file=sys.stderr)
    printed = [(event.stream, event.text) for event in of_kind(load(tmp_path / "run.gviz"), e.Printed)]
    assert printed == [("stdout", "one 2\n"), ("stderr", "trouble\n"), ("stdout", "no end")]
    assert tuple(capsys.readouterr()) == ("one 2\nno end", "trouble\n")


def test_the_streams_are_files_to_whoever_asks(tmp_path, monkeypatch):
    stream = open(tmp_path / "out", "w")
    monkeypatch.setattr(sys, "stdout", stream)
    with record(tmp_path / "run.gviz"):
        assert isinstance(sys.stdout, io.TextIOWrapper)
        assert repr(sys.stdout) == repr(stream)
        with sys.stdout as file:
            file.write("said\n")
    assert (tmp_path / "out").read_text() == "said\n"
    assert stream.closed


def test_the_streams_are_what_they_were_afterwards(tmp_path):
    before = sys.stdout, sys.stderr, warnings.showwarning
    with record(tmp_path / "run.gviz"):
        assert sys.stdout.encoding == before[0].encoding
    assert (sys.stdout, sys.stderr, warnings.showwarning) == before


def test_warnings_are_said_with_the_place_that_warned(tmp_path):
    shown = []
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *where: shown.append(str(message))
        with record(tmp_path / "run.gviz"):
            warnings.warn("careful", UserWarning, stacklevel=1)
    assert shown == ["careful"]
    timeline = load(tmp_path / "run.gviz")
    [warned] = of_kind(timeline, e.Warned)
    assert (warned.category, warned.message) == ("UserWarning", "careful")
    assert timeline.stack(warned.stack)[0].function == "test_warnings_are_said_with_the_place_that_warned"


def test_a_warning_about_threads_is_shown_only_if_the_program_has_some(tmp_path, monkeypatch):
    text = "This process (pid=12) is multi-threaded, use of fork() may lead to deadlocks in the child."
    shown, over = [], Event()
    monkeypatch.setattr(warnings, "showwarning", lambda message, *where: shown.append(str(message)))
    with record(tmp_path / "run.gviz"):
        warnings.showwarning(DeprecationWarning(text), DeprecationWarning, "x.py", 1)
        Thread(target=over.wait).start()
        warnings.showwarning(DeprecationWarning(text), DeprecationWarning, "x.py", 1)
        over.set()
    assert shown == [event.message for event in of_kind(load(tmp_path / "run.gviz"), e.Warned)] == [text]


def test_an_existing_trace_is_refused_unless_it_may_be_replaced(tmp_path):
    path = tmp_path / "run.gviz"
    with record(path):
        mark("old")
    old = path.read_bytes()
    left = [tmp_path / f"run.gviz{suffix}" for suffix in ("-wal", "-shm", "-journal")]
    for beside in left:
        beside.write_text("left by a killed recording")
    with pytest.raises(GvizError, match="already exists") as caught:
        record(path)
    assert caught.value.exit_code == 1
    assert path.read_bytes() == old
    with record(path, force=True):
        mark("new")
    assert len(load(path)) == 1
    assert os.listdir(tmp_path) == ["run.gviz"]


def test_a_model_brings_in_the_framework_that_it_is_made_of(tmp_path, monkeypatch):
    heard = []

    class Attachment:
        spent = 0

        def __init__(self, channel, model, wanted):
            heard.append(model)

        def node_of(self, tensor):
            return 0

        def __enter__(self):
            return self

        def __exit__(self, *raised):
            pass

    adapter = ModuleType("othernet_adapter")
    adapter.Attachment = Attachment
    monkeypatch.setitem(sys.modules, adapter.__name__, adapter)
    other = frameworks.Framework("othernet", "OtherNet", adapter.__name__, "", "", "pip install othernet")
    monkeypatch.setattr(frameworks, "FOREIGN", (other,))
    model = type("Mine", (type("Module", (), {"__module__": "othernet.nn"}),), {})()
    with gviz.record(tmp_path / "run.gviz", model=model):
        pass
    assert heard == [model]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"until": "zero"}, "until cannot be 'zero'"),
        ({"keep": "stat"}, "keep cannot be 'stat'"),
        ({"limit": -1}, "limit cannot be -1"),
        ({"phase": "bakward"}, "phase cannot be 'bakward'"),
        ({"compiled": "x"}, "compiled cannot be 'x'"),
        ({"model": "nope"}, "model cannot be of type str"),
        ({"model": []}, "model cannot be of type list"),
        ({"module": 3}, "module is a text, not int"),
    ],
)
def test_an_option_that_is_misspelled_is_refused_before_there_is_a_file(tmp_path, options, said):
    with pytest.raises(GvizError, match=said) as caught:
        gviz.record(tmp_path / "run.gviz", **options)
    assert caught.value.exit_code == 2
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"phase": "bakward"}, "did you mean backward?"),
        ({"until": "zero"}, "until is one of '', nan, inf"),
        ({"keep": 3}, "keep is one of none, stats, whole"),
    ],
)
def test_who_misspells_an_option_is_told_the_word(options, hint):
    with pytest.raises(GvizError) as caught:
        gviz.record(**options)
    assert caught.value.hint == hint


@pytest.mark.parametrize("place", [None, 3, torch.ones(2)])
def test_a_question_is_about_a_place(tmp_path, place):
    with record(tmp_path / "t.gviz"):
        mark("a")
    with pytest.raises(GvizError, match=f"a place is a text, not {type(place).__name__}"):
        gviz.why(tmp_path / "t.gviz", place)


def test_a_file_that_is_not_a_trace_is_never_written_over(tmp_path):
    precious = tmp_path / "thesis.txt"
    precious.write_text("years of work")
    with pytest.raises(GvizError, match="is not a gviz trace"):
        record(precious, force=True)
    assert precious.read_text() == "years of work"


def test_a_device_or_a_pipe_is_never_replaced(tmp_path):
    device, pipe = tmp_path / "device.gviz", tmp_path / "pipe.gviz"
    device.symlink_to(os.devnull)
    os.mkfifo(pipe)
    for path in (device, pipe):
        with pytest.raises(GvizError, match="is not a regular file"):
            record(path, force=True)
    assert device.is_symlink()
    assert pipe.is_fifo()


def test_what_cannot_be_replaced_says_so(tmp_path):
    with pytest.raises(GvizError, match="cannot write"):
        record(tmp_path, force=True)


def test_a_folder_that_is_not_there_is_an_error_of_one_line(tmp_path):
    with pytest.raises(GvizError, match="cannot be written"), record(tmp_path / "none" / "run.gviz"):
        pytest.fail("never reached")
    assert emit.channel is None


def test_a_path_that_is_too_long_for_sqlite_is_an_error_that_leaves_nothing(tmp_path):
    with record(tmp_path / "run.gviz"):
        mark("here")
    folder = tmp_path / ("long" * 60) / ("long" * 60) / "long"
    folder.mkdir(parents=True)
    with pytest.raises(GvizError, match="cannot be written") as refused, record(folder / "run.gviz"):
        pytest.fail("never reached")
    assert refused.value.hint.startswith("choose a shorter path")
    assert [*folder.iterdir()] == []
    (tmp_path / "run.gviz").rename(folder / "run.gviz")
    with pytest.raises(GvizError, match="cannot be opened where it is") as refused:
        load(folder / "run.gviz")
    assert refused.value.hint == "copy it to where its path is shorter"


def test_two_recordings_at_once_are_refused_and_the_first_goes_on(tmp_path):
    with record(tmp_path / "run.gviz"):
        with pytest.raises(GvizError, match="already being recorded"), record(tmp_path / "other.gviz"):
            pytest.fail("never reached")
        mark("still here")
    assert os.listdir(tmp_path) == ["run.gviz"]
    assert len(load(tmp_path / "run.gviz")) == 1


@pytest.mark.parametrize("name", ["run", "other"])
def test_a_recording_that_is_refused_has_replaced_nothing(tmp_path, name):
    with record(tmp_path / "other.gviz"):
        mark("kept")
    with record(tmp_path / "run.gviz"):
        mark("kept")
        with pytest.raises(GvizError, match="already being"), record(tmp_path / f"{name}.gviz", force=True):
            pytest.fail("never reached")
    assert [len(load(tmp_path / f"{each}.gviz")) for each in ("other", "run")] == [1, 1]


def test_without_source_the_text_stays_out(tmp_path):
    with record(tmp_path / "run.gviz", Kept(source=False)):
        torch.zeros(2)
    timeline = load(tmp_path / "run.gviz")
    assert timeline.info(1).frames[0].path == __file__
    assert timeline.source(__file__) is None


def test_a_source_that_is_not_parsed_for_names_is_not_kept_either(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("#" * bindings.LARGEST_SOURCE)
    assert read_source(str(program)) == program.read_text()
    program.write_text("#" * (bindings.LARGEST_SOURCE + 1))
    assert read_source(str(program)) is None


@pytest.mark.parametrize("where", ["pipe", "/dev/zero"])
def test_what_is_no_file_is_not_read(tmp_path, monkeypatch, where):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    assert read_source(where) is None


def test_what_is_imported_from_an_archive_is_read_there(tmp_path, monkeypatch):
    archive, text = tmp_path / "app.pyz", "# coding: latin-1\nname = 'größe'\n"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as written:
        written.writestr("within/__init__.py", "")
        written.writestr("within/zipped.py", text.encode("latin-1"))
    monkeypatch.syspath_prepend(str(archive))
    module = importlib.import_module("within.zipped")
    for name in ("within", "within.zipped"):
        monkeypatch.delitem(sys.modules, name)
    assert read_source(module.__file__) == text
    assert read_source(str(archive / "nowhere.py")) is None
    archive.write_bytes(b"rewritten" * 100)
    assert read_source(module.__file__) is None


def test_the_limit_decides_whether_large_arrays_are_kept(tmp_path):
    for size, limit, kept in (
        (1000, 1024, False),
        (1000, 1 << 20, True),
        (100, None, True),
        (100, 399, False),
        (1, 0, False),
    ):
        path = tmp_path / f"{limit}.gviz"
        with record(path, Kept(limit=limit)):
            torch.zeros(size)
        timeline = load(path)
        value = timeline.at(1).state(1).outputs[0].value
        assert (timeline.array(value) is not None) == kept
        assert value.statistics().zero == size


def test_mark_without_a_recording_does_nothing():
    mark("nobody listens")


def test_without_a_path_a_trace_goes_to_the_cache_folder(tmp_path):
    cache = tmp_path / "gviz" / "traces"
    cache.mkdir(parents=True)
    for n in range(paths.KEPT):
        (cache / f"old-{n}.gviz").touch()
        os.utime(cache / f"old-{n}.gviz", (n, n))
    (cache / "old-0.gviz-journal").touch()
    program = "from gviz.trace.recording.record import record\nwith record() as r: pass\nprint(r.path)"
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
    )
    path = Path(done.stdout.strip())
    assert path.parent == cache
    assert {old.name for old in cache.iterdir()} == {path.name, *(f"old-{n}.gviz" for n in range(1, paths.KEPT))}
    assert len(load(path)) == 0


@pytest.mark.parametrize("text", ["raise ValueError", "return 5"])
def test_an_exception_without_a_text_ends_the_recording_too(tmp_path, text):
    scope = {}
    exec(f"class Wordless(Exception):\n    def __str__(self): {text}", scope)
    with pytest.raises(scope["Wordless"]), record(tmp_path / "run.gviz"):
        raise scope["Wordless"]
    [failed] = of_kind(load(tmp_path / "run.gviz"), e.Failed)
    assert failed.error == "Wordless"
    assert "its text could not be made" in failed.message
    assert emit.channel is None


def test_a_program_may_do_without_its_output(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    with record(tmp_path / "run.gviz"):
        del sys.stdout
        mark("silent")
    sys.stdout = sys.__stdout__
    assert len(load(tmp_path / "run.gviz")) == 1


def test_a_recording_within_a_recorded_program_is_left_out(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr("gviz.trace.recording.record._program", None)
    monkeypatch.setattr(sys, "__stderr__", sys.stderr)
    outer = record(tmp_path / "outer.gviz")
    outer.begin_program()
    with record(tmp_path / "inner.gviz", force=True) as inner:
        mark("heard once")
        inner.flush()
        assert inner.active
        assert len(inner) == 1
        inner.close()
    assert inner.path == outer.path
    mark("still heard")
    outer.__exit__(None, None, None)
    assert os.listdir(tmp_path) == ["outer.gviz"]
    assert len(of_kind(load(outer.path), e.Marked)) == 2
    assert "this inner recording is left out" in capfd.readouterr().err


LIMITED = """
import resource, sys
from gviz.trace.recording.record import mark, record
with record(sys.argv[1]):
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
    for n in range(20_000):
        mark("a mark")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="limits on files are POSIX")
def test_a_limit_on_the_size_of_files_ends_the_recording_alone(tmp_path):
    command = [sys.executable, "-c", f"{LIMITED}print('ran on')\n", str(tmp_path / "run.gviz")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "ran on\n")
    assert "a limit on the size of files" in done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="limits on files are POSIX")
@pytest.mark.parametrize(("most", "left"), [(10_000, []), (60_000, ["run.gviz"])])
def test_a_limit_on_the_size_of_files_leaves_one_trace_or_none(tmp_path, most, left):
    text = f"import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most}))\n"
    text += "from gviz.cli.main import main\nmain()\n"
    (tmp_path / "gviz_limited.py").write_text(text)
    (tmp_path / "program.py").write_text("import gviz\ngviz.mark('a mark' * 20_000)\nprint('ran on')\n")
    folder = tmp_path / "traces"
    folder.mkdir()
    arguments = ["record", "--engine", "builtin", "-o", str(folder / "run.gviz"), str(tmp_path / "program.py")]
    command = [sys.executable, "-B", str(tmp_path / "gviz_limited.py"), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert (done.returncode, done.stdout) == (0, "ran on\n"), done.stderr
    assert os.listdir(folder) == left
    assert ("no trace is left" in done.stderr) == (not left)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="limits on files are POSIX")
@pytest.mark.parametrize("streams", ["2>/dev/full", "2>&-"])
def test_a_program_ends_where_nobody_can_be_told_that_its_recording_has(tmp_path, streams):
    program = f"{LIMITED}print('ran on')\n"
    (tmp_path / "program.py").write_text(program)
    command = f"{sys.executable} {tmp_path}/program.py {tmp_path}/run.gviz {streams}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, text=True, env=environment, timeout=300)
    assert done.stdout == "ran on\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="limits on files are POSIX")
@pytest.mark.parametrize("count", [200, 5000])
def test_a_log_that_cannot_be_written_whole_says_so(tmp_path, count):
    program = """
import resource, sys
from pathlib import Path
from gviz.errors import GvizError
from gviz.events import Printed
from gviz.trace.event_log import MemoryLog
from gviz.trace.recording.source_text import write
log = MemoryLog([Printed("stdout", "x" * 2000)] * int(sys.argv[2]))
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    write(log, Path(sys.argv[1]))
except GvizError as error:
    print(error.what)
"""
    path = tmp_path / "run.gviz"
    command = [sys.executable, "-c", program, str(path), str(count)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.stderr) == (f"cannot write {path}\n", "")


def test_a_recording_that_ends_with_python_leaves_one_file(tmp_path):
    """Python's finalizers may have ended before: their end is then registered after that of the recording."""
    program = """
import sys, weakref
from gviz.trace.recording.record import mark, record
record(sys.argv[1]).__enter__()
weakref.finalize(mark, print)
mark("here")
"""
    (tmp_path / "program.py").write_text(program)
    folder = tmp_path / "traces"
    folder.mkdir()
    command = [sys.executable, str(tmp_path / "program.py"), str(folder / "run.gviz")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, check=True, capture_output=True, env=environment, timeout=300)
    assert os.listdir(folder) == ["run.gviz"]


def test_a_recording_may_end_while_something_is_printed(tmp_path):
    """Python only borrows ``sys.stdout`` for a print: the stream must not go with the recording."""
    program = """
import sys
from gviz.trace.recording.record import record
class Ending:
    def __str__(self):
        recording.close()
        return "said"
with record(sys.argv[1]) as recording:
    print(Ending(), [0] * 3, "on", sep=" ")
    print("more")
"""
    command = [sys.executable, "-c", program, str(tmp_path / "run.gviz")]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PYTHONMALLOC": "debug"}
    )
    assert (done.returncode, done.stdout) == (0, "said [0, 0, 0] on\nmore\n")


def test_a_full_disk_does_not_keep_a_program_from_running(tmp_path, monkeypatch, capfd):
    def full(path, about):
        raise file_format.NoRoom(f"{path} cannot be written")

    monkeypatch.setattr(file_format, "created", full)
    monkeypatch.setattr(sys, "__stderr__", sys.stderr)
    recording = record(tmp_path / "run.gviz")
    recording.begin_program()
    mark("nobody listens")
    recording.__exit__(None, None, None)
    assert "cannot be written" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("statement", "names"),
    [("n = (y - y).sum()", ["y", ""]), ("n = y - y", ["y", "n"]), ("n = y.sum()", ["y", "n"])],
    ids=["within", "at its end", "not at all"],
)
def test_a_statement_that_was_cut_off_names_nothing(tmp_path, statement, names):
    script = tmp_path / "program.py"
    script.write_text(f"y = torch.tensor([1.0, float('inf')], requires_grad=True)\n{statement}\nz = 1\n")
    with record(tmp_path / "run.gviz", Kept(until="nan")):
        exec(compile(script.read_text(), str(script), "exec"), {"torch": torch})
    timeline = load(tmp_path / "run.gviz")
    assert [timeline.info(node).name for node in timeline.nodes] == names


def test_a_program_may_go_to_another_folder(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    with record("run.gviz") as recording:
        mark("before")
        os.chdir("elsewhere")
        mark("after")
        assert [name for _, name in load(recording).marks] == ["before", "after"]
    assert capfd.readouterr().err == ""
    assert [name for _, name in load(tmp_path / "run.gviz").marks] == ["before", "after"]
    assert [path.name for path in tmp_path.rglob("*.gviz*")] == ["run.gviz"]


def test_in_a_folder_that_is_gone_no_name_means_a_file(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(GvizError, match=r"run\.gviz cannot be written") as raised:
        record("run.gviz")
    assert raised.value.why == "the current folder has been deleted"


def test_a_trace_that_is_moved_while_it_is_written_keeps_its_events(tmp_path, capfd):
    path, moved = tmp_path / "run.gviz", tmp_path / "moved.gviz"
    with record(path) as recording:
        mark("before")
        recording.flush()
        path.rename(moved)
        mark("after")
    assert "run.gviz has ended: it was moved or deleted while it was written" in capfd.readouterr().err
    assert [name for _, name in load(moved).marks] == ["before", "after"]
    assert not list(tmp_path.glob("run.gviz*"))
