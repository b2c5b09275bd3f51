import pytest
from driving import transcript
from stories import demo

from gviz.errors import GvizError
from gviz.tui.commands.command_table import SPECS, help_for
from gviz.tui.language.command import Command
from gviz.tui.language.parser import parse
from gviz.tui.styled_lines import plain


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("s", Command("step")),
        ("n 5", Command("next", 5)),
        ("n- 3", Command("reverse-next", 3)),
        ("c-", Command("reverse-continue")),
        ("N 3", Command("reverse-next", 3)),
        ("rs 2", Command("reverse-step", 2)),
        ("reverse-finish", Command("reverse-finish")),
        ("phase -1", Command("reverse-phase", 1)),
        ("up -2", Command("down", 2)),
        ("down -1", Command("up", 1)),
        (":12", Command("goto", argument="12")),
        ("@12", Command("goto", argument="12")),
        ("goto @12", Command("goto", argument="@12")),
        ("goto 'here", Command("goto", argument="'here")),
        ("/op:mul", Command("find", argument="op:mul")),
        ("cont", Command("continue")),
        ("conti", Command("continue")),
        ("STEP 2", Command("step", 2)),
        ("export a b.svg", Command("export", argument="a b.svg")),
        ("?", Command("help")),
        ("help step", Command("help", argument="step")),
    ],
)
def test_a_line_becomes_a_command(text, command):
    assert parse(text) == command


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("contniue", "did you mean continue"),
        ("zero_grad", "print zero_grad shows a value"),
        ("w.grad", "print w.grad shows a value"),
        ("l[0]", "print l[0] shows a value"),
        ("loss", "print loss shows a value"),
        ("n five", "takes a count"),
        ("continue loss", "takes a count"),
        ("goto", "needs PLACE"),
        ("quit now", "takes !, or nothing"),
        ("tape now", "takes no argument"),
        ("re", "ambiguous"),
        ("quit-", "cannot run backwards"),
        ("", "there is no command"),
        ("\x1b[31m", "there is no command"),
        ("-", "there is no command"),
    ],
)
def test_what_is_not_a_command_is_explained(text, word):
    with pytest.raises(GvizError) as error:
        parse(text)
    assert word in " ".join(error.value.lines())
    assert "\x1b" not in " ".join(error.value.lines())


def test_help_names_every_command_and_its_short_forms():
    text = "\n".join(plain(row) for row in help_for("").lines(1000))
    for spec in SPECS:
        assert spec.help_text() in text
        assert all(alias in text for alias in spec.aliases)


def test_absurd_counts_stay_numbers():
    assert parse("s 999999999999").count == 10**9


MANY = "9" * 5000  # Python reads no number of more than 4300 digits


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("near \N{SUPERSCRIPT TWO}", "takes a number of lines"),
        (f"near {MANY}", "takes a number of lines"),
        (f"rewatch {MANY} x", "needs NUMBER EXPR"),
        ("rewatch \N{SUPERSCRIPT TWO} x", "needs NUMBER EXPR"),
        (f"diff @{MANY}", "one or two events"),
        ("diff 1 2 \N{SUPERSCRIPT TWO}", "one or two events"),
        (f"compare {MANY},1", "cannot"),
        (f"ignore 1 {MANY}", "needs N COUNT"),
        ("ignore 1\t2 3", "several"),
        ("condition 1\t2 value > 3", "several"),
        ("commands 1\t2 print x", "several"),
        ("delete \x1b[31m", r"no breakpoint \x1b[31m"),
    ],
)
def test_numbers_that_are_none_are_refused(text, word):
    said = transcript(demo(), "break x", "break y", "watch x", text)
    assert word in said.splitlines()[-1]
    assert "\x1b" not in said


def test_list_shows_any_line_of_a_file_in_the_trace():
    said = transcript(demo(), "list demo.py:2", "list :99", "list other.py:2", "list nowhere")
    assert "demo.py:2:\n     1 import gviz.engine as torch\n     2\n►    3 x = torch.tensor(3.0" in said
    assert "demo.py has 9 lines." in said
    assert "other.py is not in the trace; hint: it contains demo.py." in said
    assert "there is no nowhere" in said
    assert "demo.py has 9 lines." in transcript(demo(), "list 0")
