"""Each command on a real trace of a real program."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli.programs import ROOT, gviz, gviz_here

PROGRAM = """\
import gviz.engine as torch
a = torch.tensor(3.0, requires_grad=True)
b = a * a + a
b.backward()
print("grad", a.grad)
"""

FAILING = PROGRAM + "b.backward()\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A program, one that fails, and their traces."""
    folder = tmp_path_factory.mktemp("commands")
    for name, text in (("program", PROGRAM), ("failing", FAILING)):
        (folder / f"{name}.py").write_text(text)
        gviz("record", "-o", f"{name}.gviz", f"{name}.py", cwd=folder)
    return folder


def alone(tmp_path):
    """Folders of one's own for cache and reports."""
    return {"XDG_CACHE_HOME": str(tmp_path / "cache"), "XDG_STATE_HOME": str(tmp_path / "state")}


def test_record_says_what_it_wrote(folder, tmp_path):
    code, out, err = gviz("record", "-o", str(tmp_path / "t.gviz"), "program.py", cwd=folder)
    assert (code, out) == (0, "grad tensor(7.)\n")
    assert re.fullmatch(r"wrote .*t\.gviz \(\d+ events, .* [KM]iB\)\nopen it with: gviz open .*t\.gviz\n", err)
    assert [path.name for path in tmp_path.iterdir()] == ["t.gviz"]


def test_record_keeps_the_exit_code_and_the_trace_of_a_failure(folder, tmp_path):
    code, _, err = gviz("record", "-o", str(tmp_path / "t.gviz"), "failing.py", cwd=folder)
    assert code == 1
    assert "RuntimeError: Trying to backward through the graph a second time" in err
    assert (tmp_path / "t.gviz").is_file()


def test_a_killed_program_leaves_its_trace(folder, tmp_path):
    (tmp_path / "killed.py").write_text(f"{PROGRAM}import os, time\ntime.sleep(.3)\nos.kill(os.getpid(), 9)\n")
    code, _, err = gviz("record", "-o", "t.gviz", "killed.py", cwd=tmp_path)
    assert code == -9
    assert "wrote t.gviz" in err
    assert "NodeCreated        3" in gviz_here("show", "t.gviz", cwd=tmp_path)[1]


def test_existing_traces_are_refused(folder):
    before = (folder / "program.gviz").read_bytes()
    code, _, err = gviz_here("record", "-o", "program.gviz", "program.py", cwd=folder)
    assert (code, err) == (1, "gviz: error: program.gviz already exists\nhint: use --force to overwrite it\n")
    assert (folder / "program.gviz").read_bytes() == before


def test_without_output_the_trace_goes_to_the_cache_and_open_finds_it(folder, tmp_path):
    code, _, err = gviz("record", "program.py", cwd=folder, env=alone(tmp_path))
    assert code == 0
    assert f"wrote {tmp_path}/cache/gviz/traces/program-" in err
    code, out, _ = gviz("open", "--plain", cwd=folder, env=alone(tmp_path))
    assert code == 0
    assert "event 1" in out


def test_the_cache_keeps_the_newest(folder, tmp_path, monkeypatch):
    from gviz.trace.file import paths

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for n in range(paths.KEPT + 5):
        path = paths.new_trace("a/b c\x1b.py")
        path.touch()
        os.utime(path, (n, n))
    assert len(paths.cached_traces()) == paths.KEPT
    assert re.fullmatch(r"b_c_-\d{8}-\d{6}(-\d+){1,2}\.gviz", paths.cached_traces()[0].name)


def test_what_cannot_be_removed_from_the_cache_keeps_nobody_from_recording(tmp_path, monkeypatch):
    from gviz.trace.file import paths

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (paths.traces() / "folder.gviz" / "in use").mkdir(parents=True)
    for n in range(paths.KEPT + 5):
        path = paths.new_trace("program.py")
        path.touch()
        os.utime(path, (n, n))
        os.utime(paths.traces() / "folder.gviz", (0, 0))
    assert (paths.traces() / "folder.gviz").is_dir()
    assert len(paths.cached_traces()) == paths.KEPT + 1


def test_the_cache_keeps_what_may_be_about_to_be_opened(tmp_path, monkeypatch):
    from gviz.trace.file import paths

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    closed = paths.new_trace("mine.py")
    closed.touch()
    for _ in range(paths.KEPT + 5):
        paths.new_trace("other.py").touch()
    assert closed.exists()


_RECORDING = """
import gviz, gviz.engine as torch
with gviz.record() as recording:
    torch.ones(2) + 1
    recording.flush()
    print(recording.path, flush=True)
    input()
"""


def test_the_cache_keeps_what_is_being_written_until_its_process_is_gone(tmp_path, monkeypatch):
    from gviz.trace.file import paths

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    command = [sys.executable, "-c", _RECORDING]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        trace = Path(process.stdout.readline().strip())
        os.utime(trace, (0, 0))
        for n in range(1, paths.KEPT + 6):
            path = paths.new_trace("other.py")
            path.touch()
            os.utime(path, (n, n))
        kept = trace.exists()
        process.kill()
    assert kept
    paths.new_trace("other.py")
    assert [path for path in trace.parent.iterdir() if path.name.startswith(trace.name)] == []


def test_run_reads_commands_from_a_pipe_after_the_program(folder, tmp_path):
    code, out, _ = gviz("run", "program.py", cwd=folder, stdin="goto end\nq\n", env=alone(tmp_path))
    assert code == 0
    assert out.startswith("grad tensor(7.)\n")
    assert "end" in out


def test_run_opens_where_the_program_failed_and_keeps_its_exit_code(folder, tmp_path):
    code, out, _ = gviz("run", "failing.py", cwd=folder, env=alone(tmp_path))
    assert code == 1
    assert "a second time" in out


@pytest.mark.parametrize(("name", "word"), [("program.gviz", "event 1"), ("program.py", "grad tensor(7.)")])
def test_a_file_stands_for_its_command(folder, tmp_path, name, word):
    code, out, _ = gviz(name, cwd=folder, env=alone(tmp_path))
    assert code == 0
    assert word in out


def test_a_trace_is_known_by_its_header(folder, tmp_path):
    (tmp_path / "renamed.py").write_bytes((folder / "program.gviz").read_bytes())
    code, out, _ = gviz("renamed.py", cwd=tmp_path)
    assert code == 0
    assert "event 1" in out


def test_show_stats(folder):
    code, out, _ = gviz("show", "program.gviz", cwd=folder)
    assert code == 0
    assert re.search(r"^nodes +3$", out, re.MULTILINE)
    assert re.search(r"^backward passes +1$", out, re.MULTILINE)
    assert re.search(r"^NodeCreated +3$", out, re.MULTILINE)
    assert re.search(r"^loss +12$", out, re.MULTILINE)


def test_show_passes(folder):
    _, out, _ = gviz_here("show", "program.gviz", "passes", cwd=folder)
    first, forward, backward, *_ = out.splitlines()
    assert re.fullmatch(r"graph 1  events 1 to \d+, \S+ 12", first)
    assert (forward.split()[0], backward.split()[:3]) == ("forward", ["backward", "pass", "1"])
    _, out, _ = gviz_here("show", "program.gviz", "passes", "--format", "json", cwd=folder)
    (iteration,) = json.loads(out)["passes"]
    forward, backward, *_ = iteration["phases"]
    assert (forward["start"], backward["start"]) == (iteration["start"], forward["end"] + 1)
    assert (backward["kind"], backward["pass"], backward["loss"]) == ("backward", 1, 12)


def test_show_tape(folder):
    code, out, _ = gviz_here("show", "program.gviz", "tape", cwd=folder)
    assert code == 0
    heading, *rows = out.splitlines()
    assert heading.split()[:2] == ["#", "node"]
    assert [row.split()[0] for row in rows] == ["1", "2", "3"]
    assert "12" in rows[2]


def test_show_events_are_numbered_sentences(folder):
    _, out, _ = gviz_here("show", "program.gviz", "events", cwd=folder)
    numbers = [int(re.match(r"event (\d+)", line)[1]) for line in out.splitlines()]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("page", [("stats",), ("passes",), ("tape",), ("events",), ("node", "b")])
def test_show_runs_a_script_and_prints_what_its_trace_would_say(folder, tmp_path, page):
    code, out, err = gviz("show", "program.py", *page, cwd=folder, env=alone(tmp_path))
    kept = gviz_here("show", "program.gviz", *page, cwd=folder)[1]
    assert code == 0
    assert out == kept
    assert "grad tensor(7.)" in err


def test_what_show_cannot_read_may_be_for_the_script(folder):
    code, _, err = gviz_here("show", "program.py", "--lr", "1", cwd=folder)
    assert code == 2
    assert "gviz show program.py -- --lr" in err
    code, _, err = gviz_here("show", "program.gviz", "tape", "--", "1", cwd=folder)
    assert (code, "a trace takes no arguments" in err) == (2, True)


def test_options_after_a_trace_are_refused_with_the_command_in_the_right_order(folder, monkeypatch):
    words = ["why", "b", "program.gviz", "--at", "iteration 1"]
    monkeypatch.setattr("sys.argv", ["gviz", *words])
    code, _, err = gviz_here(*words, cwd=folder)
    assert code == 2
    assert "options come before program.gviz: gviz why b --at 'iteration 1' program.gviz" in err
    assert gviz_here("why", "b", "--at", "iteration 1", "program.gviz", cwd=folder)[0] == 0


def test_each_share_is_told_once(folder):
    _, out, _ = gviz_here("show", "program.gviz", "events", cwd=folder)
    assert "its rule has run." in out
    assert "its rule has run and sent" not in out


@pytest.mark.parametrize("place", ["3", "#3", "b"])
def test_show_node(folder, place):
    code, out, err = gviz_here("show", "program.gviz", "node", place, cwd=folder)
    assert (code, err) == (0, "")
    assert "#3" in out


def test_only_the_programs_frames_are_recorded(folder):
    _, out, _ = gviz_here("show", "program.gviz", "node", "3", "--format", "json", cwd=folder)
    frames = json.loads(out)["node"]["info"]["frames"]
    assert [Path(frame["path"]).name for frame in frames] == ["program.py"]


def test_the_elements_of_a_node_are_written_as_precisely_as_they_are(folder):
    text = "import torch\nw = torch.full((3, 4), 0.1, requires_grad=True)\n(w * 2).sum().backward()"
    (folder / "matrix.py").write_text(text)
    _, out, _ = gviz_here("show", "matrix.py", "node", "w", "--engine", "builtin", cwd=folder)
    assert "[0.1 0.1 0.1 0.1]" in out


@pytest.mark.parametrize("page", [("stats",), ("tape",), ("events",), ("node", "1")])
def test_show_as_json(folder, page):
    code, out, err = gviz_here("show", "program.gviz", *page, "--format", "json", cwd=folder)
    assert (code, err) == (0, "")
    document = json.loads(out, parse_constant=lambda name: pytest.fail(name))
    assert document["schema"] == 1
    assert document[page[0]]


def test_show_at_a_moment(folder):
    def grads(at):
        _, out, _ = gviz_here("show", "program.gviz", "tape", "--at", at, "--format", "json", cwd=folder)
        [leaf] = json.loads(out)["tape"][0]["outputs"]
        return leaf["grad"] and leaf["grad"]["elements"]

    assert (grads("1"), grads("end")) == (None, 7.0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("show", "program.gviz", "node"), "needs a NODE"),
        (("show", "program.gviz", "tape", "--at", "99999"), "99999"),
        (("show", "program.gviz", "tape", "--at", "nan"), "nan"),
        (("show", "program.gviz", "node", "zzz"), "zzz"),
        (("export", "program.gviz", "-o", "x.jpeg"), "suffixes"),
        (("export", "program.gviz", "-o", "x.svg", "--at", "99999"), "99999"),
    ],
)
def test_wrong_moments_nodes_and_suffixes(folder, arguments, words):
    code, out, err = gviz_here(*arguments, cwd=folder)
    assert (code, out) == (2, "")
    assert words in err
    assert not (folder / "x.svg").exists()


@pytest.mark.parametrize(
    ("suffix", "start"), [("svg", b"<?xml"), ("dot", b"digraph"), ("png", b"\x89PNG"), ("pdf", b"%PDF"), ("txt", b"")]
)
def test_export_every_format(folder, tmp_path, suffix, start):
    output = tmp_path / f"graph.{suffix}"
    code, out, err = gviz_here("export", "program.gviz", "-o", str(output), cwd=folder)
    assert (code, out) == (0, "")
    assert err.endswith(f"wrote {output}\n")
    assert output.read_bytes().startswith(start)
    assert output.stat().st_size > 100
    assert [path.name for path in tmp_path.iterdir()] == [output.name]


def test_export_of_a_script_and_of_a_moment(folder, tmp_path):
    first, last = tmp_path / "first.txt", tmp_path / "last.txt"
    assert gviz("export", "program.py", "-o", str(first), "--at", "2", cwd=folder)[:2] == (0, "grad tensor(7.)\n")
    assert gviz("export", "program.py", "-o", str(last), cwd=folder)[0] == 0
    assert first.read_text() != last.read_text()


def test_export_refuses_and_cleans_up(folder, tmp_path):
    (tmp_path / "graph.svg").write_text("mine")
    assert gviz_here("export", "program.gviz", "-o", str(tmp_path / "graph.svg"), cwd=folder)[0] == 1
    assert (tmp_path / "graph.svg").read_text() == "mine"
    assert gviz_here("export", "program.gviz", "-o", str(tmp_path / "no" / "graph.svg"), cwd=folder)[0] == 1
    assert gviz_here("export", "program.gviz", "-f", "-o", str(tmp_path / "graph.svg"), cwd=folder)[0] == 0
    assert (tmp_path / "graph.svg").read_text() != "mine"


def test_demo_lists_and_walks_the_lessons(tmp_path):
    code, out, err = gviz("demo", "--list", cwd=tmp_path)
    assert (code, err) == (0, "")
    ours, real = out.split("\n\nfor users of PyTorch")
    for part, first in ((ours.splitlines(), "01"), (real.splitlines()[1:], "p1")):
        numbers = [line.split()[0] for line in part]
        assert numbers == sorted(numbers)
        assert numbers[0] == first
    code, out, err = gviz("demo", cwd=tmp_path, env=alone(tmp_path))
    assert code == 0
    assert out.count("\nevent ") > 3
    [picture] = re.findall(r"wrote (.*\.svg)", err)
    assert picture.startswith(str(tmp_path))
    assert "<svg" in Path(picture).read_text()
    assert "no commands on standard input: stepping through the lesson line by line" in err
    assert out.index("Press n to step") < out.index("\nevent ")


def test_demo_carries_out_the_commands_of_a_pipe(tmp_path):
    code, out, err = gviz("demo", cwd=tmp_path, env=alone(tmp_path), stdin="goto 5\nq\nn\n")
    assert code == 0
    assert "(gviz) goto 5\nevent 5, " in out
    assert "(gviz) n" not in out
    assert "wrote" not in err


def test_stops_and_commands_from_the_command_line(folder):
    code, out, _ = gviz_here(
        "open", "program.gviz", "--plain", "--break", "b if value > 3", "-c", "eval a * 2", cwd=folder
    )
    assert code == 0
    assert "breakpoint 1: b if value > 3" in out
    assert "event 3, forward, node #3 b = add" in out
    assert "breakpoint 1." in out
    assert out.index("breakpoint 1.") < out.index("a * 2 = 6")


def test_a_program_opens_at_its_first_stop(folder, tmp_path):
    code, out, _ = gviz("run", "--plain", "--on", "accumulate", "failing.py", cwd=folder, env=alone(tmp_path))
    assert code == 1
    assert ".grad was None, is now 7" in out
    assert "second time" not in out.partition("breakpoint 1.")[0].partition("event 0")[2]


@pytest.mark.parametrize("option", [("--break", "x if"), ("--on", "sundays"), ("--break", "x if nothing > 3")])
def test_what_is_no_stop_is_wrong_usage_before_anything_runs(folder, tmp_path, option):
    code, out, err = gviz_here("run", "--plain", *option, "program.py", cwd=folder, env=alone(tmp_path))
    assert code == 2
    assert "grad tensor" not in out
    assert err.startswith("gviz: error: ")


def test_quit_from_the_command_line_leaves(folder):
    code, out, _ = gviz_here("open", "program.gviz", "--plain", "-c", "s", "-c", "quit", "-c", "s", cwd=folder)
    assert code == 0
    assert out.count("(gviz)") == 2


def test_explain_says_why_as_text_and_as_json(folder):
    code, out, _ = gviz("explain", "program.gviz", "a.grad", cwd=folder)
    assert code == 0
    assert out.startswith("#1 a: .grad is 7  [event ")
    assert "+= 1 from #3 b = add at program.py:3" in out
    code, out, _ = gviz_here("explain", "program.gviz", "a.grad", "--at", "forward", "--format", "json", cwd=folder)
    finding = json.loads(out)["finding"]
    assert (finding["kind"], finding["node"]) == ("no-pass", 1)


@pytest.mark.parametrize("arguments", [("nosuch",), ("a", "--at", "999"), ("#77",)])
def test_explain_refuses_what_is_not_there(folder, arguments):
    code, out, err = gviz_here("explain", "program.gviz", *arguments, cwd=folder)
    assert (code, out) == (2, "")
    assert err.startswith("gviz: error: ")


LONG = """
import gviz.engine as torch
w = torch.tensor([1.0, 2.0], requires_grad=True)
for step in range(6):
    (w * w).sum().backward()
print("done")
"""


@pytest.mark.parametrize("options", [("--last", "2"), ("--last", "2 iterations", "--max-size", "2M")])
def test_only_the_last_iterations_are_kept_and_everybody_says_so(tmp_path, options):
    (tmp_path / "long.py").write_text(LONG)
    code, out, err = gviz("record", *options, "-o", "long.gviz", "long.py", cwd=tmp_path)
    assert (code, out) == (0, "done\n")
    assert re.search(r"only the last part was kept, \d+ events before it were dropped", err)
    assert re.search(r"^iterations +2$", gviz_here("show", "long.gviz", cwd=tmp_path)[1], re.MULTILINE)
    shown = gviz_here("show", "long.gviz", "--format", "json", cwd=tmp_path)[1]
    assert json.loads(shown)["stats"]["dropped_events"] > 0
    code, out, _ = gviz_here("--plain", "open", "long.gviz", "-c", "print w.grad", cwd=tmp_path)
    assert code == 0
    assert "events before it were dropped; the first 2 events say what was still there" in out
    assert "w.grad = [8 16]" in out


@pytest.mark.parametrize("options", [("--last", "none"), ("--max-size", "5 apples"), ("--max-size", "10")])
def test_bounds_that_mean_nothing_are_refused_before_anything_runs(tmp_path, options):
    (tmp_path / "long.py").write_text(LONG)
    code, out, err = gviz_here("record", *options, "long.py", cwd=tmp_path)
    assert (code, out) == (2, "")
    assert options[1] in err


COMMANDS_ON_A_FILE = [
    ["evil.gviz"], ["open", "evil.gviz"], ["run", "evil.gviz"], ["record", "evil.gviz"], ["check", "evil.gviz"],
    ["why", "x.grad", "evil.gviz"], ["export", "-o", "o.svg", "evil.gviz"], ["graphify", "evil.gviz"],
    ["show", "evil.gviz"], ["diff", "evil.gviz", "evil.gviz"], ["whatif", "evil.gviz", "x = 1"],
]  # fmt: skip


@pytest.mark.parametrize("arguments", COMMANDS_ON_A_FILE, ids=" ".join)
def test_what_is_named_as_a_trace_is_never_run(tmp_path, arguments):
    (tmp_path / "evil.gviz").write_text("open('ran', 'w').close()\n")
    code, _, err = gviz_here(*arguments, cwd=tmp_path)
    runs = arguments[0] in ("run", "record")
    assert code == (2 if runs else 3)
    assert f"evil.gviz is {'a trace, not a program' if runs else 'not a gviz trace'}" in err
    assert [path.name for path in tmp_path.iterdir()] == ["evil.gviz"]


@pytest.mark.parametrize("command", ["check", "graphify"])
def test_a_script_that_computes_nothing_is_not_called_healthy(tmp_path, command):
    (tmp_path / "defines.py").write_text("def f(x):\n    return x * 2 if x.sum() > 0 else x\n")
    code, out, err = gviz(command, "defines.py", cwd=tmp_path)
    assert (code, out) == (3, "")
    assert err.startswith("gviz: error: no tensor operation was recorded")


def test_a_script_that_fails_before_its_first_operation_is_a_finding(tmp_path):
    (tmp_path / "fails.py").write_text("import torch\ntorch.optim.SGD([], lr=0.1)\n")
    code, out, _ = gviz("check", "fails.py", cwd=tmp_path)
    assert code == 1
    assert out.startswith("fails.py:2: error: this optimizer gets no parameters [failed]")
    code, out, err = gviz("why", "w.grad", "fails.py", cwd=tmp_path)
    assert (code, out) == (2, "")
    assert "gviz: error: this recording holds no nodes" in err


def test_a_run_that_keeps_only_its_last_part_says_why_it_is_not_held(tmp_path):
    (tmp_path / "long.py").write_text(LONG)
    code, out, err = gviz(
        "--plain", "run", "--last", "2", "-c", "print w.grad", "-o", "m.gviz", "long.py", cwd=tmp_path
    )
    assert "the script runs to its end first: with --last, --max-size or --keep events are dropped" in err
    assert (code, "w.grad = [8 16]" in out) == (0, True)


def test_who_names_the_wrong_thing_is_shown_the_way(tmp_path):
    """A program where a trace belongs, and a trace where there is only gviz to ask about."""
    program = tmp_path / "train.py"
    program.write_text("x = 1\n")
    code, _, err = gviz_here("open", "train.py", cwd=tmp_path)
    assert (code, err.splitlines()[-1]) == (3, "hint: gviz run train.py")
    code, _, err = gviz_here("info", "run.gviz", cwd=tmp_path)
    assert (code, err.splitlines()[-1]) == (2, "hint: gviz show run.gviz prints what a trace contains")


def test_show_stats_has_a_row_for_each_of_two_losses_that_come_again(tmp_path):
    steps = [f"{name} = x * {factor}; {name}.backward()" for name, factor in (("d_loss", 2), ("g_loss", 3))]
    loop = "import gviz.engine as torch\nx = torch.tensor(1.0, requires_grad=True)\nfor _ in range(2):\n"
    (tmp_path / "two.py").write_text(loop + "".join(f"    {step}\n" for step in steps))
    _, out, _ = gviz_here("show", "two.py", cwd=tmp_path)
    assert re.search(r"^d_loss +2, 2$", out, re.MULTILINE)
    assert re.search(r"^g_loss +3, 3$", out, re.MULTILINE)
    assert not re.search(r"^loss", out, re.MULTILINE)


def test_show_stats_has_the_losses_in_a_row_also_those_that_json_has_no_number_for(tmp_path):
    step = "torch.tensor(x, requires_grad=True).log().backward()"
    (tmp_path / "logs.py").write_text(f"import gviz.engine as torch\nfor x in (4.0, 2.0, 0.0):\n    {step}\n")
    gviz_here("record", "-o", "logs.gviz", "logs.py", cwd=tmp_path)
    _, out, _ = gviz_here("show", "logs.gviz", "stats", cwd=tmp_path)
    assert re.search(r"^losses +1\.386, 0\.6931, -inf$", out, re.MULTILINE)
    _, out, _ = gviz_here("show", "logs.gviz", "stats", "--format", "json", cwd=tmp_path)
    assert json.loads(out)["stats"]["losses"][2] == "-inf"
