"""One node, one phase: the same name wherever it is shown."""

import pytest
from explain.programs import recorded
from recording import timeline_of
from stories import demo, failed

import gviz.engine as torch
from gviz.events import OptimizerStarted, OptimizerStepped, StorageWritten
from gviz.explain.event_description import sentence
from gviz.explain.names import called, constant_value, frame_text, iteration_called, label, phase_words, symbol, title
from gviz.explain.why import answer
from gviz.query.names import NamedNodes
from gviz.render.scene import caption
from gviz.site import Frame
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
    assert phase_words(timeline, first) == "backward"
    assert phase_words(timeline, second) == phase_words(timeline, over) == "backward pass 2"
    assert [phase_name(timeline, moment) for moment in (first, second)] == ["BACKWARD", "BACKWARD 2"]
    for moment in (first, second, over):
        assert f", {phase_words(timeline, moment)}" in sentence(timeline, moment.n)
        assert f", {phase_words(timeline, moment)}" in caption(timeline, moment)


@pytest.mark.parametrize("engine", ["builtin", "torch"])
def test_without_an_update_nothing_is_called_an_optimizer(engine):
    timeline = recorded("updates", "twice", engine)
    assert "optimizer" not in {phase.kind for phase in timeline.phases}
    number = timeline.phases[-1].start
    assert f"event {number}, after backward" in sentence(timeline, number)
    assert phase_name(timeline, timeline.at(number)) == "AFTER BACKWARD"
    assert "after backward" in caption(timeline, timeline.at(number))


@pytest.mark.parametrize("engine", ["builtin", "torch"])
def test_a_step_is_the_optimizers(engine):
    timeline = recorded("updates", "a_plain_step", engine)
    kinds = OptimizerStarted, OptimizerStepped
    (_, begun), (_, done) = [(event, sentence(timeline, n)) for n, event in timeline.select(kinds)]
    assert begun.endswith(", optimizer: SGD starts a step, lr=0.1.")
    assert done.endswith(", optimizer: SGD has updated 1 parameter.")


@pytest.mark.torch
def test_a_write_of_a_step_is_told_with_what_was_there_and_asked_about_without_a_word():
    timeline = recorded("updates", "a_plain_step", "torch")
    ((seq, write),) = timeline.select((StorageWritten,))
    assert sentence(timeline, seq).endswith(": SGD takes it from [1 2] to [0.8 1.6], in place, version 1.")
    found = answer(NamedNodes(timeline), "", seq, selected=write.node)
    assert found.parts[0].text.startswith("then a step of SGD (lr=0.1)")


def trained_in_a_loop():
    w = torch.tensor(2.0, requires_grad=True)
    for _ in range(2):
        (w * w).backward()


def two_in_a_row():
    w = torch.tensor(2.0, requires_grad=True)
    (w * w).backward()
    (w * 3).backward()


@pytest.mark.parametrize(("program", "word"), [(trained_in_a_loop, "iteration"), (two_in_a_row, "graph")])
def test_graphs_that_no_loop_makes_are_no_iterations(program, word):
    timeline = timeline_of(program)
    assert len(timeline.iterations) == 2
    assert iteration_called(timeline) == word


def test_a_long_file_name_keeps_its_line():
    frame = Frame("/x/12_vanishing_gradients.py", "deep", 15, 15, 0, 1)
    assert frame_text(frame, 23) == "…ishing_gradients.py:15 in deep"
    assert frame_text(frame) == "12_vanishing_gradients.py:15 in deep"
