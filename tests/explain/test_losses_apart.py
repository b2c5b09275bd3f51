"""Several losses of one program: each has its own row, and no row mixes the numbers of two."""

from textwrap import dedent

import pytest
from explain.programs import recorded_text

from gviz.explain.backward_passes import growing_losses, loss_values_by_name, passes_by_loss
from gviz.explain.training import progress
from gviz.tui.drawing.training_summary import beginning, plain_training
from gviz.tui.glyphs import glyphs
from gviz.tui.styled_lines import plain

START = """
    import torch
    torch.manual_seed(0)
    a, b = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    sa = torch.optim.SGD(a.parameters(), lr=0.1)
    sb = torch.optim.SGD(b.parameters(), lr=0.1)
    x = torch.tensor([[1.0, 2.0], [3.0, -1.0]])
"""

PROGRAMS = {
    "two losses": (
        """
    for step in range(4):
        sa.zero_grad()
        small = a(x).pow(2).mean()
        small.backward()
        sa.step()
        sb.zero_grad()
        large = (b(x) + a(x) + 100).pow(2).mean()
        large.backward()
        sb.step()
    """,
        ["small", "large"],
        [["a"], ["a", "b"]],
    ),
    "same name": (
        """
    for step in range(4):
        loss = a(x).pow(2).mean()
        loss.backward()
        loss = (b(x) + 100).pow(2).mean()
        loss.backward()
    """,
        ["loss, line 11", "loss, line 13"],
        [["a"], ["b"]],
    ),
    "one call for two names": (
        """
    for step in range(4):
        small, large = a(x).pow(2).mean(), (b(x) + 100).pow(2).mean()
        for each in (small, large):
            each.backward()
    """,
        ["small", "large"],
        [["a"], ["b"]],
    ),
    "two models in turn": (
        """
    for step in range(4):
        for model, optimizer in ((a, sa), (b, sb)):
            optimizer.zero_grad()
            loss = model(x).pow(2).mean()
            loss.backward()
            optimizer.step()
    """,
        ["loss (1)", "loss (2)"],
        [["a"], ["b"]],
    ),
    "one model after the other": (
        """
    for model, optimizer in ((a, sa), (b, sb)):
        for step in range(3):
            optimizer.zero_grad()
            loss = model(x).pow(2).mean()
            loss.backward()
            optimizer.step()
    """,
        ["loss (1)", "loss (2)"],
        [["a"], ["b"]],
    ),
    "without a loop": (
        """
    loss = a(x).pow(2).mean()
    loss.backward()
    sa.step()
    loss = a(x).pow(2).mean()
    loss.backward()
    sa.step()
    """,
        ["loss"],
        [["weight", "bias", "#3", "#4"]],
    ),
    "one loss of several models": (
        """
    for step in range(3):
        loss = (a(x) + b(x)).pow(2).mean()
        loss.backward()
    """,
        ["loss"],
        [["a", "b"]],
    ),
}


def timeline_of(folder, program):
    return recorded_text(dedent(START) + dedent(program), folder)


@pytest.mark.parametrize(("program", "names", "modules"), PROGRAMS.values(), ids=PROGRAMS)
def test_each_loss_has_a_row_of_its_own_with_the_modules_that_it_reaches(program, names, modules, tmp_path):
    timeline = timeline_of(tmp_path, program)
    summary = progress(timeline)
    assert [one.name for one in passes_by_loss(timeline)] == names
    assert [one.name for one in summary.by_loss] == names
    assert [[name for name, _ in one.modules] for one in summary.by_loss] == modules
    assert sum(len(one.losses) for one in summary.by_loss) == summary.passes == len(summary.names)
    assert [*loss_values_by_name(timeline)] == (names if len(names) > 1 else [""])
    text = "\n".join(plain_training(summary, 100))
    assert all(f"of {name}" in text for name in names) == (len(names) > 1)


def test_a_long_recording_keeps_passes_of_each_loss(tmp_path):
    program, names, _ = PROGRAMS["two losses"]
    timeline = timeline_of(tmp_path, program.replace("range(4)", "range(20)"))
    summary = progress(timeline, most=10)
    assert [one.name for one in summary.by_loss] == names
    assert [len(one.losses) for one in summary.by_loss] == [10, 10]
    for one, values in zip(summary.by_loss, loss_values_by_name(timeline).values(), strict=True):
        assert (one.losses[0], one.losses[-1]) == (values[0], values[-1])
        assert {*one.losses} <= {*values}
    rows = [plain(row) for row in beginning(timeline, timeline.at(1), 80, glyphs(ascii=False))]
    assert sum(row.startswith(("small  ", "large  ")) for row in rows) == 2


def test_gradients_that_passes_accumulate_are_shown_before_each_step(tmp_path):
    program = """
    for step in range(8):
        loss = a(x).pow(2).mean() / 4
        loss.backward()
        if step % 4 == 3:
            sa.step()
            sa.zero_grad()
    """
    timeline = timeline_of(tmp_path, program)
    (one,) = progress(timeline).by_loss
    assert one.before_step
    assert len(one.losses) == 8
    assert [len(norms) for name, norms in one.modules if name == "weight"] == [2]
    assert "after the last pass before each step" in "\n".join(plain_training(progress(timeline), 100))


def test_passes_that_no_step_uses_are_all_shown(tmp_path):
    program = """
    for step in range(3):
        loss = a(x).pow(2).mean()
        loss.backward()
        with torch.no_grad():
            for p in a.parameters():
                p -= 0.1 * p.grad
                p.grad = None
    """
    (one,) = progress(timeline_of(tmp_path, program)).by_loss
    assert not one.before_step
    assert {len(norms) for _, norms in one.modules} == {3}


def test_the_values_of_one_loss_only_show_that_it_grew(tmp_path):
    program = """
    w = torch.tensor(1.0, requires_grad=True)
    for number in (1.0, 5.0, 30.0):
        grows = w * number
        grows.backward()
        falls = w / number
        falls.backward()
    """
    timeline = timeline_of(tmp_path, program)
    assert growing_losses(timeline, len(timeline)) == [1, 5, 30]
