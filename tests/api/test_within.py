"""`gviz.breakpoint`, `gviz.debug`, `gviz.post_mortem`: under ``gviz run``, and in a program that runs by itself."""

import gc
import re
import subprocess
import sys
import threading
import weakref

import pytest
from cli.programs import ROOT, gviz

import gviz as package
import gviz.engine as torch
from gviz.api import debug as within
from gviz.errors import GvizError

PROGRAM = """\
import gviz, gviz.engine as torch
x = torch.tensor(2.0, requires_grad=True)
y = x * x
breakpoint()
z = y * x
with gviz.debug():
    z.backward()
try:
    z.backward()
except RuntimeError:
    gviz.post_mortem()
"""


def environment(tmp_path):
    return {
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "PYTHONBREAKPOINT": "gviz.breakpoint",
        "PYTHONPATH": str(ROOT),
        "GVIZ_PLAIN": "1",
        "PATH": "",
    }


def test_under_gviz_run_they_hold_the_program_where_they_stand(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    code, out, _ = gviz("run", "program.py", cwd=tmp_path, stdin="c\nc\nc\nc\n", env=environment(tmp_path))
    assert code == 0
    for place in ("breakpoint() at program.py:4", "breakpoint() at program.py:6", "post_mortem() at program.py:11"):
        assert f"{place}.\n" in out


def test_the_line_is_shown_also_where_nothing_was_made_yet(tmp_path):
    (tmp_path / "program.py").write_text("import gviz\n\ngviz.breakpoint()\nprint('over')\n")
    _, out, _ = gviz("run", "program.py", cwd=tmp_path, stdin="list\nc\n", env=environment(tmp_path))
    assert "breakpoint() at program.py:3: still at event 0.\n" in out
    assert re.search(r"^. +3 gviz\.breakpoint\(\)$", out, re.M)


def test_under_gviz_run_show_holds_the_program_with_the_tensor_selected(tmp_path):
    program = PROGRAM.splitlines()
    (tmp_path / "program.py").write_text("\n".join([*program[:3], "z = y * x", "gviz.show(y)", "print('over')"]))
    code, out, _ = gviz("run", "program.py", cwd=tmp_path, stdin="c\nnode\n", env=environment(tmp_path))
    assert code == 0
    assert (
        out.index("#3 z = mul") < out.index("show() at program.py:5") < out.index("y = mul  #2") < out.index("| over")
    )


def test_by_itself_the_program_records_from_there_and_shows_it(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, input="c\nc\nc\nc\n", capture_output=True, text=True,
        env=environment(tmp_path), timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "recording program.py from here on, the next breakpoint() shows it" in done.stderr
    assert "gviz run program.py stops at the first, too" in done.stderr
    assert done.stdout.count("recording of ") == 2
    assert "gviz: recorded to" in done.stderr


LOOP = """\
import gviz, gviz.engine as torch
x = torch.tensor(2.0, requires_grad=True)
for i in range(5):
    y = x * x
    breakpoint()
    with gviz.debug():
        y.backward()
    print("turn", i)
try:
    y.backward()
except RuntimeError:
    gviz.post_mortem()
print("over")
"""


def looped(tmp_path, text, program=LOOP):
    (tmp_path / "program.py").write_text(program)
    return subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, input=text, capture_output=True, text=True,
        env=environment(tmp_path), timeout=60, check=False,
    )  # fmt: skip


def test_a_program_goes_on_without_any_stop_where_that_is_said(tmp_path):
    done = looped(tmp_path, "c\nc\ndetach\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("recording of ") == 2
    assert [line for line in done.stdout.splitlines() if line.startswith("turn")] == [f"turn {i}" for i in range(5)]
    assert done.stdout.endswith("over\n")
    assert "gviz: recorded to" in done.stderr


@pytest.mark.parametrize("text", ["quit", "q!", "kill"])
def test_a_program_is_stopped_at_once_where_that_is_said(tmp_path, text):
    done = looped(tmp_path, f"{text}\n")
    assert done.returncode == 1
    assert done.stdout.count("recording of ") == 1
    assert "turn" not in done.stdout
    assert "gviz: the program was stopped in the debugger" in done.stderr
    assert "Traceback" not in done.stderr


def test_continue_at_the_end_goes_on_to_the_next_stop(tmp_path):
    done = looped(tmp_path, "continue\ncontinue\n" * 20)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("recording of ") == 10
    assert done.stdout.endswith("over\n")


THREADS = """\
import gviz, gviz.engine as torch, threading
begin = threading.Barrier(8)
def work():
    begin.wait()
    gviz.breakpoint()
    torch.ones(1)
    gviz.breakpoint()
    print("over", flush=True)
threads = [threading.Thread(target=work) for _ in range(8)]
[each.start() for each in threads]
[each.join() for each in threads]
"""


def test_threads_stop_one_after_another(tmp_path):
    done = looped(tmp_path, "continue\n" * 4 + "detach\n", THREADS)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("gviz: recording program.py from here on") == 1
    assert "Traceback" not in done.stderr
    assert 1 < done.stdout.count("recording of ") <= 5  # a thread that runs meanwhile puts the end further off
    assert done.stdout.count("over\n") == 8


def test_a_program_that_was_let_go_is_shown_no_more(tmp_path):
    (tmp_path / "program.py").write_text(LOOP)
    code, out, _ = gviz("run", "program.py", cwd=tmp_path, stdin="c\ndetach\n", env=environment(tmp_path))
    assert code == 0
    assert "breakpoint() at program.py:5" in out
    assert "recording of" not in out


@pytest.mark.parametrize("main", [True, False])
def test_a_stop_ends_the_program_from_any_thread(monkeypatch, main):
    ends = []
    monkeypatch.setattr(within, "_left_alone", False)
    monkeypatch.setattr(within._thread, "interrupt_main", lambda: ends.append("main"))

    def stopped():
        with pytest.raises(SystemExit):
            within._obey("stop")

    if main:
        stopped()
    else:
        thread = threading.Thread(target=stopped)
        thread.start()
        thread.join()
    assert ends == [] if main else ["main"]
    assert within.paused_by_debugger("breakpoint")


FAILING = """\
import gviz, gviz.engine as torch
x = torch.tensor([2.0, 3.0], requires_grad=True)
try:
    x.backward()
except RuntimeError:
    gviz.post_mortem()
    gviz.post_mortem()
    raise
"""


def test_a_post_mortem_says_what_the_error_was_and_the_recording_says_it_once(tmp_path):
    (tmp_path / "program.py").write_text(FAILING)
    said = "event 2, failed: the program failed with RuntimeError: grad can be implicitly created only for scalar"
    code, out, _ = gviz("run", "program.py", cwd=tmp_path, stdin="c\nc\nc\nwhy error\n", env=environment(tmp_path))
    assert code == 1
    assert out.count("the program failed with") == 1
    assert out.index(said) < out.index("post_mortem() at program.py:6.") < out.index("try: reduce it to one number")


def test_a_recording_keeps_nothing_alive_of_an_error_it_was_told_of(tmp_path):
    with package.record(tmp_path / "run.gviz") as recording:
        tensor = torch.ones(3)
        alive = weakref.ref(tensor)
        try:
            raise_over(tensor)
        except ValueError as error:
            recording.fail(error)
            recording.fail(error)
        del tensor
        gc.collect()
        assert alive() is None
    assert len(package.load(tmp_path / "run.gviz").failures) == 1


def raise_over(tensor):
    raise ValueError("too large")


def test_without_a_recording_there_is_no_post_mortem(tmp_path, monkeypatch):
    monkeypatch.setattr("gviz.trace.recording.record.latest", None)
    with pytest.raises(GvizError, match="nothing was recorded"):
        package.post_mortem()


def test_show_takes_a_tensor(monkeypatch):
    seen = []
    monkeypatch.setattr("gviz.api.show.open_debugger", lambda timeline, how, plain: seen.append((timeline, how.at)))
    x = torch.tensor(2.0, requires_grad=True)
    package.show((x * x).sum())
    [(timeline, at)] = seen
    assert at == len(timeline)
    assert len(timeline.nodes) == 3
    with pytest.raises(GvizError, match="cannot draw a"):
        package.show(3)
