"""One node, one phase: the same name wherever it is shown."""

import pytest
from stories import demo, failed

from gviz.explain.happening import sentence
from gviz.explain.names import called, constant_value, label, phase_words, symbol, title
from gviz.render.scene import caption
from gviz.tui.drawing.status import phase_name


@pytest.mark.parametrize(
    ("node", "names"),
    [
        (1, ("x", "#1 x", "x leaf #1", "x")),
        (4, ("b = Mul", "#4 b = Mul", "b = Mul #4", "b")),
        (0, ("", "", "", "?")),
    ],
)
def test_the_names_of_a_node_say_the_same_with_more_or_less_words(node, names):
    timeline = demo()
    known = timeline.info(node) if node else None
    said = (called(known), label(timeline, node), title(known)) if known else ("", "", "")
    assert (*said, symbol(timeline, node)) == names
    assert not known or constant_value(known) == ""


def test_the_number_of_a_backward_pass_is_said_from_the_second_on_until_it_is_over():
    timeline = failed()
    first, second, over = (timeline.at(n) for n in (20, 36, 39))
    assert phase_words(first) == "backward"
    assert phase_words(second) == phase_words(over) == "backward pass 2"
    assert [phase_name(moment) for moment in (first, second)] == ["BACKWARD", "BACKWARD 2"]
    for moment in (first, second, over):
        assert f", {phase_words(moment)}" in sentence(timeline, moment.n)
        assert f", {phase_words(moment)}" in caption(timeline, moment)
