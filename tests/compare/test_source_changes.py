"""What two programs read otherwise is found, and what only looks so is not."""

from gviz.compare.source_changes import MOST_LINES, SourceChange, source_changes
from gviz.render.comparison_table import programs

TRAIN = """\
import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for step in range(3):
    loss = model(torch.ones(2)).sum()
    loss.backward()
    optimizer.step()
"""
SLOW = TRAIN.replace("lr=0.5", "lr=0.05")


def test_the_line_that_was_changed_is_told_with_both_its_forms():
    (one,) = source_changes({"/runs/a/train.py": TRAIN}, {"/runs/b/train.py": SLOW})
    assert one == SourceChange(
        ("/runs/a/train.py", "/runs/b/train.py"),
        (4, 4),
        (
            ("optimizer = torch.optim.SGD(model.parameters(), lr=0.5)",),
            ("optimizer = torch.optim.SGD(model.parameters(), lr=0.05)",),
        ),
    )
    assert list(programs([one])) == [
        "the programs differ at train.py:4",
        "  < optimizer = torch.optim.SGD(model.parameters(), lr=0.5)",
        "  > optimizer = torch.optim.SGD(model.parameters(), lr=0.05)",
    ]


def test_the_only_file_of_each_is_the_same_program_whatever_it_is_called():
    (one,) = source_changes({"good.py": TRAIN, "model.py": "x = 1\n"}, {"slow.py": SLOW, "model.py": "x = 1\n"})
    assert one.files == ("good.py", "slow.py")
    assert next(programs([one])) == "the programs differ at good.py:4 and slow.py:4"


def test_lines_that_one_side_lacks_are_told():
    without = TRAIN.replace("    loss.backward()\n", "")
    (one,) = source_changes({"t.py": TRAIN}, {"t.py": without})
    assert (one.lines, one.texts) == ((7, 7), (("    loss.backward()",), ()))
    assert list(programs([one]))[1:] == ["  <     loss.backward()"]


def test_a_line_that_was_moved_out_of_its_loop_is_told():
    (one,) = source_changes({"t.py": TRAIN}, {"t.py": TRAIN.replace("    optimizer.step()", "optimizer.step()")})
    assert one.texts == (("    optimizer.step()",), ("optimizer.step()",))


def test_what_python_does_not_read_is_no_difference():
    commented = TRAIN.replace("import torch\n", "import torch  \n\n# a comment\n\n")
    assert source_changes({"t.py": TRAIN}, {"t.py": commented}) == ()


def test_other_programs_and_texts_that_were_not_kept_or_are_huge_are_not_compared():
    other = "\n".join(f"print({number})" for number in range(20))
    assert source_changes({"t.py": TRAIN}, {"t.py": other}) == ()
    assert source_changes({"t.py": TRAIN}, {"t.py": None}) == ()
    assert source_changes({"t.py": "x = 1\n" * (MOST_LINES + 1)}, {"t.py": "x = 1\n" * MOST_LINES + "x = 2\n"}) == ()
    assert source_changes({"a.py": TRAIN, "b.py": TRAIN}, {"c.py": SLOW}) == ()


def test_of_many_places_and_lines_the_first_are_told():
    text = [f"x{number} = {number}" for number in range(40)]
    every = [line if at % 4 else f"{line}0" for at, line in enumerate(text)]
    told = list(programs(source_changes({"t.py": "\n".join(text)}, {"t.py": "\n".join(every)})))
    assert told[-1] == "and at 6 more places"
    long = list(programs(source_changes({"t.py": "\n".join(text)}, {"t.py": "\n".join([*text[:10], *text[20:]])})))
    assert long[1:] == [*(f"  < x{number} = {number}" for number in range(10, 15)), "  < and 5 more lines"]


def test_a_line_is_text_and_not_what_it_would_do_to_a_terminal():
    (place, *lines) = programs(source_changes({"t.py": "x = 1\ny = 2\n"}, {"t.py": "x = 1\ny = '\x1b[2J'\n"}))
    assert place == "the programs differ at t.py:2"
    assert "\x1b" not in "".join(lines)
