"""The questions in both front ends of the debugger."""

from driving import after, transcript
from explain.programs import recorded

from gviz.tui.styled_lines import plain


def test_a_check_in_line_mode():
    said = " ".join(transcript(recorded("bugs", "never_cleared"), "check").split())
    assert "error: the .grad of #1 w still held the gradient from backward pass 1" in said
    assert "optimizer.zero_grad()" in said
    assert "nothing found in" in transcript(recorded("healthy", "by_hand"), "check")


def test_which_graphs_are_alive_in_line_mode():
    assert "graphs are alive at event" in transcript(recorded("bugs", "graph_kept"), "goto end", "explain alive")


async def test_why_at_a_failure_on_the_screen():
    timeline = recorded("bugs", "carried_state")
    screen = await after(timeline, "e", at=len(timeline))
    rows = [plain(row) for row in screen._draw(80)]
    assert "through #8 h = tanh, carried over" in " ".join(" ".join(rows).split())
