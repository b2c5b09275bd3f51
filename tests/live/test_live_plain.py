"""``gviz run --plain``: the live debugger line by line, as a user runs it."""

import platform
import re

import pytest
from cli.programs import gviz

PROGRAM = """\
import sys
import gviz.engine as torch
import gviz
x = torch.tensor(2.0, requires_grad=True)
for step in range(3):
    y = x * x
    y.backward()
    print("step", step)
name = input("name? ")
print("hello", name)
sys.exit(5)
"""


def live(tmp_path, *options, commands="", program=PROGRAM):
    (tmp_path / "program.py").write_text(program)
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "XDG_STATE_HOME": str(tmp_path / "state")}
    return gviz("run", "--plain", *options, "program.py", cwd=tmp_path, stdin=commands, env=environment)


def test_the_program_stands_still_between_commands_and_its_past_is_replay(tmp_path):
    code, out, _ = live(tmp_path, commands="n\nn-\nn\nn\nquit\n")
    assert code == 0
    assert re.findall(r"(?:back to )?event \d+, \w+", out) == [
        "event 1, forward", "event 2, forward", "back to event 1, forward", "event 2, forward", "event 8, backward",
    ]  # fmt: skip
    assert "| step" not in out


def test_until_takes_a_line_and_refuses_one_that_is_no_code(tmp_path):
    commands = "until 116\nuntil 6\nuntil 3\nuntil nosuch\ntype Ada\nuntil 8\n"
    _, out, _ = live(tmp_path, commands=commands)
    assert "(gviz) until 116\nnothing later is at 116; hint: program.py has 11 lines." in out
    assert out.index("until 6") < out.index("node #2 y = mul") < out.index("until 3")
    assert "3 was never reached: line 4 makes nodes, line 3 none" in out
    assert "| hello Ada" in out


def test_what_was_waited_for_and_never_came_is_told_at_the_end(tmp_path):
    options = ("--on", "nan", "--on", "error", "--break", "nosuch", "--break", "program.py:3", "--break", "y")
    _, out, _ = live(tmp_path, *options, program="import torch\n\n# nothing\nx = torch.ones(2)\ny = x * 2\n")
    assert out[out.index("breakpoint 3.\n") :].splitlines()[2:] == [
        "breakpoint 1 (nosuch) was never reached: no node is named nosuch",
        "breakpoint 2 (program.py:3) was never reached: line 3 contains no code",
        "no nan came up",
        "no error came up",
        "end of recording: still at event 3.",
        "the program has ended with exit code 0.",
    ]


def test_q_with_an_exclamation_mark_stops_the_program_without_a_question(tmp_path):
    code, out, _ = live(tmp_path, commands="n\nq!\n")
    assert code == 0
    assert "is still running" not in out
    assert "| step 2" not in out


def test_an_iteration_that_is_still_to_come_is_told_with_what_lets_the_program_run_there(tmp_path):
    _, out, _ = live(tmp_path, commands="goto iteration 2\nuntil if step == 1\ngoto iteration 2\nq!\n")
    assert "there is no iteration 2 so far; hint: until if step == 1 lets the program run there." in out
    assert out.index("until if step == 1\n") < out.index("event 12, forward, node #3 y = mul")
    assert out.count("there is no iteration") == 1


def test_goto_lets_the_program_run_to_an_event_that_is_still_to_come(tmp_path):
    """Also from the past, and past breakpoints, as it does in a recording; to its end where there is none."""
    commands = "break mul\ngoto 10\ngoto 5\n@12\ngoto 12\ngoto 9999\n"
    _, out, _ = live(tmp_path, commands=commands + "type Ada\nquit\n")
    events = re.findall(r"^(?:back to )?event (\d+),", out, re.M)
    assert events[:5] == ["1", "10", "5", "12", "12"]
    assert "hello Ada" in out
    assert "there is no event" not in out


def test_another_run_keeps_what_was_watched(tmp_path):
    _, out, _ = live(tmp_path, commands="watch x * 2\nrun\nquit\n")
    assert out.count("watch: x * 2 = 4") == 1


def test_the_program_runs_to_its_end_where_the_commands_end(tmp_path):
    code, out, _ = live(tmp_path, commands="type Ada\n")
    assert code == 5
    # where the terminal echoes what was typed is up to the system: at once, or only when the program asks
    assert re.search(r"\| step 0\n\| step 1\n\| step 2\n\| name\? (Ada\n\| )?hello Ada\n", out), out
    assert "the program has ended with exit code 5." in out


def test_a_line_of_any_length_is_one_line(tmp_path):
    length = 20_000_000  # to join what came before with every piece of it takes minutes
    code, out, _ = live(tmp_path, program=f"print('y' * {length})\nprint('end')\n")
    assert code == 0
    assert sorted(map(len, out.splitlines()))[-1] == length + len("| ")
    assert "| end\n" in out


def test_breakpoints_hold_it_again_and_again_and_in_the_next_run(tmp_path):
    code, out, _ = live(tmp_path, "--break", "mul if step == 1", commands="c\ntype Ada\ncontinue 2\nrun\nkill\n")
    stops = re.findall(r"event (\d+), (\w+).*\nbreakpoint 1\.", out)
    assert [kind for _, kind in stops] == ["forward", "backward", "forward"]
    assert stops[0] == stops[2]
    assert code == 0


def test_until_lets_the_program_run_to_a_place_and_leaves_no_breakpoint(tmp_path):
    _, out, _ = live(tmp_path, commands="until program.py:6\nuntil\nuntil program.py:6\ninfo break\nquit\n")
    nodes = [node for node in re.findall(r"event \d+, \w+, node (#\d+ \w+ = mul|#1 x)", out) if node != "#1 x"]
    assert nodes == ["#2 y = mul", "#3 y = mul"]
    assert "there are no breakpoints" in out


ROUNDS = """\
import gviz.engine as torch
x = torch.tensor([1.0], requires_grad=True)
for i in range(4):
    a = x * 2
    b = a + 1
    if i == 2:
        c = b * 3
    b.sum().backward()
"""


def test_until_stops_at_the_same_events_as_in_the_recording_and_leaves_nothing_behind(tmp_path):
    def told(out):
        return re.findall(r"event \d+, \w+|breakpoint 1\.|end of recording\.|there are no breakpoints|tbreak", out)

    commands = "break a\nuntil c\nuntil\ndelete\nuntil c\nuntil on accumulate x\nc\ninfo break\nquit\n"
    _, running, _ = live(tmp_path, "-o", "t.gviz", commands=commands, program=ROUNDS)
    _, replayed, _ = gviz("open", "--plain", "t.gviz", cwd=tmp_path, stdin=commands)
    assert told(running) == told(replayed)
    assert told(running)[1:3] == ["event 3, forward", "breakpoint 1."]
    assert told(running)[-1] == "there are no breakpoints"


def test_until_a_place_that_is_never_met_leaves_nothing_behind(tmp_path):
    _, out, _ = live(tmp_path, commands="until nowhere\ninfo break\nquit\n", program=ROUNDS)
    assert "end of recording" in out
    assert "there are no breakpoints" in out


def test_on_error_and_pauses_of_the_command_line(tmp_path):
    failing = PROGRAM.replace("name = ", "y.backward()\nname = ")
    code, out, _ = live(tmp_path, "--on", "error", program=failing)
    assert code == 1
    assert "event 36, backward pass 4, node #4 y = mul: the pass ended with an error" in out
    _, out, _ = live(tmp_path, "--pause", "backward", commands="quit\n")
    assert "event 3, backward" in out
    code, out, _ = live(tmp_path, "--pause", "never", "-c", "type Bo", program=PROGRAM)
    assert (code, "hello Bo\n" in out) == (5, True)


def test_a_program_that_asks_where_nobody_is_left_to_answer_gets_the_end_of_its_input(tmp_path):
    code, out, _ = live(tmp_path)
    assert code == 1
    assert "EOFError" in out


def test_a_second_run_of_a_named_trace_writes_over_it(tmp_path):
    code, out, err = live(tmp_path, "-o", "t.gviz", commands="run\nn\nquit\n")
    assert code == 0
    assert "trace: t.gviz" in err
    assert "event 2" in out
    assert "t.gviz already exists" in live(tmp_path, "-o", "t.gviz")[2]


def test_a_trace_that_the_program_has_deleted_is_not_announced(tmp_path):
    (tmp_path / "traces").mkdir()
    program = PROGRAM.replace("sys.exit(5)", "import shutil\nshutil.rmtree('traces')").replace('input("name? ")', "0")
    code, _, err = live(tmp_path, "-o", "traces/t.gviz", program=program)
    assert code == 0
    assert "no trace is left: there is no traces/t.gviz" in err
    assert "trace: traces" not in err


def test_commands_for_a_program_are_refused_for_a_recording(tmp_path):
    live(tmp_path, "-o", "t.gviz", commands="type Ada\n")
    _, out, _ = gviz("open", "--plain", "t.gviz", cwd=tmp_path, stdin="type Ada\nrestart\n")
    assert out.count("needs a running program") == 2


def test_a_refused_command_that_nobody_typed_is_an_exit_code(tmp_path):
    short = "import gviz.engine as torch\nx = torch.tensor(2.0, requires_grad=True) * 2\n"
    code, out, _ = live(tmp_path, "-c", "nonsense", commands="print x\n", program=short)
    assert "there is no command 'nonsense'" in out
    assert code == 2
    assert live(tmp_path, "-c", "info break", "-c", "quit", program=short)[0] == 0
    assert live(tmp_path, "-c", "nonsense", program=short + "raise SystemExit(5)\n")[0] == 5


def test_running_on_in_the_past_says_where_the_live_end_is(tmp_path):
    _, out, _ = live(tmp_path, commands="n\nS\nc\nS\nfinish\nquit\n")
    assert out.count("stopped at the live end: the program is paused here; s, n, f and c resume it.") == 2
    assert "| step" not in out


ASKS = """\
import sys
import gviz.engine as torch
x = torch.tensor(2.0, requires_grad=True)
print("name? ", end="", flush=True)
name = sys.stdin.readline()
y = x * len(name)
print("more? ", end="", flush=True)
more = sys.stdin.read()
print(len(name), len(more))
sys.exit(5)
"""


def test_a_program_that_asks_is_answered_by_the_next_command(tmp_path):
    lines = ["continue", "type Ada", "type more", "type ^D"]
    code, out, _ = live(tmp_path, *(word for text in lines for word in ("-c", text)), program=ASKS)
    assert code == 5
    assert out.index("| name? \n") < out.index("type LINE gives one") < out.index("| more? \n")
    assert out.index("| more? \n") < out.index("type more") < out.index("4 5\n")


def test_a_program_that_asked_runs_to_its_end_where_the_commands_end(tmp_path):
    code, out, _ = live(tmp_path, "-c", "break y", "-c", "continue", program=ASKS)
    assert out.index("type LINE gives one") < out.index("breakpoint 1.") < out.index("more? 0 0\n")
    assert code == 5


BARE = """\
import gviz.engine as torch
x = torch.tensor([1.0], requires_grad=True)
a = x * 2
name = input()
b = x * 3
"""


@pytest.mark.skipif(platform.system() != "Linux", reason="only Linux tells what a process waits for")
@pytest.mark.parametrize("first", ["", "import readline\n"])
def test_a_program_that_waits_for_a_line_without_a_word_keeps_no_command_waiting(tmp_path, first):
    commands = ["continue", "print x", "continue", "type Ada"]
    given = [word for text in commands for word in ("-c", text)]
    code, out, _ = live(tmp_path, *given, program=first + BARE)
    assert "it waits for a line: type LINE gives one" in out
    assert "(gviz) print x\nthe program waits for a line; still at event 1.\nx = 1\n" in out
    assert "(gviz) continue\nthe program waits for a line; hint: type LINE gives one" in out
    assert "the program has ended with exit code 0." in out
    assert code == 2  # a command was refused


CALLS = """\
import gviz.engine as torch
import gviz
x = torch.tensor(2.0, requires_grad=True)
for step in range(5):
    y = x * step
    gviz.breakpoint()
    print("step", step)
gviz.breakpoint()
print("over")
"""


def test_a_call_in_the_program_is_a_breakpoint_once_it_was_met(tmp_path):
    commands = "info break\nc\ninfo break\nc\ndisable 1\nc\nenable\ninfo break\nC\n"
    _, out, _ = live(tmp_path, commands=commands + "quit\n", program=CALLS)
    said = out.split("(gviz) ")
    assert "there are no breakpoints" in said[1]
    assert "breakpoint() at program.py:6.\n" in said[2]
    assert "1  breakpoint() at program.py:6  [1 time in this recording, and here]" in said[3]
    assert "1  breakpoint() at program.py:6 (off)" in said[5]
    assert "breakpoint() at program.py:8.\n" in said[6]
    assert "2  breakpoint() at program.py:8  [1 time in this recording, and here]" in said[8]
    assert "back to event 6," in said[9], "where it was held last"
    assert "breakpoint 1." in said[9], "backwards it stops at the same places"


def test_a_call_that_is_switched_off_stays_so_in_the_next_run(tmp_path):
    commands = "c\ndelete\nrestart\nc\nrestart\nenable 1\nc 3\nquit\n"
    _, out, _ = live(tmp_path, commands=commands, program=CALLS)
    said = out.split("(gviz) ")
    assert (
        "1  breakpoint() at program.py:6 (off): it is a call in the program; enable 1 switches it on again" in said[2]
    )
    assert "breakpoint() at program.py:8.\n" in said[4]
    assert "event 11, forward, node #7 y" in said[7], "the third time"
    assert "breakpoint() at program.py:6.\n" in said[7]


def test_a_call_takes_commands_but_no_condition_and_no_session_holds_it(tmp_path):
    given = ["c", "condition 1 value > 2", "ignore 1 2", "commands 1 print step_", "c", "save s", "quit"]
    _, out, _ = live(tmp_path, commands="\n".join(given), program=CALLS)
    assert out.count("breakpoint 1 is a call in the program; hint: disable 1 switches it off") == 2
    assert "there is no step_ here; at print step_ in breakpoint() at program.py:6" in out
    assert "saved 0 lines" in out


def test_a_call_that_is_switched_off_does_not_cut_next_short(tmp_path):
    commands = "c\ndisable\nn\nn 2\nquit\n"
    _, out, _ = live(tmp_path, commands=commands, program=CALLS)
    assert re.findall(r"^event (\d+),", out, re.M)[-2:] == ["5", "10"]
    assert out.count("breakpoint() at program.py:6.\n") == 1


def test_a_count_goes_past_that_many_breakpoints(tmp_path):
    _, out, _ = live(tmp_path, commands="break mul\nc 2\nquit\n", program=CALLS.replace("    gviz.breakpoint()\n", ""))
    assert re.findall(r"^event (\d+), .*\nbreakpoint 1\.", out, re.M) == ["6"]


def test_two_calls_in_a_line_are_switched_off_one_by_one(tmp_path):
    program = CALLS.replace("gviz.breakpoint()\n    print", "gviz.breakpoint(); gviz.show(y)\n    print")
    _, out, _ = live(tmp_path, commands="c 2\ndisable 1\nc\ninfo break\nquit\n", program=program)
    said = out.split("(gviz) ")
    assert "1  breakpoint() at program.py:6 (off)" in said[2]
    assert "show() at program.py:6.\n" in said[3]
    assert "2  show() at program.py:6  [2 times in this recording, and here]" in said[4]


def test_a_program_is_held_whatever_its_thread_is_called(tmp_path):
    program = CALLS.replace(
        "import gviz\n", "import gviz, threading\nthreading.current_thread().name = 'n' * 2_000_000\n"
    )
    code, out, _ = live(tmp_path, commands="c\nquit\n", program=program)
    assert code == 0
    assert "breakpoint() at program.py:7" in out
