"""The page of words: every word for a state that boxes and tape can show stands there."""

import re
from functools import partial

import pytest
from driving import transcript
from recording import timeline_of
from stories import demo, failed, iterations, late

import gviz.engine as torch
from gviz.explain.tracking import UNTRACKED
from gviz.render.boxes.graph_options import Options
from gviz.render.boxes.node_states import MEANINGS, SHOWN
from gviz.render.picture_request import moment_scene
from gviz.trace.timeline import Timeline
from gviz.tui.drawing.help import SECTIONS, help_page, words_page
from gviz.tui.drawing.tape import note
from gviz.tui.keymaps import keys_of
from gviz.tui.styled_lines import plain

NUMBER = r"[-+\d.\[\](,) |ge]+"
KNOWN = re.compile("|".join(
    re.sub(r"\d+", lambda _: NUMBER, re.escape(word)) for words, _ in MEANINGS for word in words.split(", ")
))  # fmt: skip
SUM = re.compile(rf"(in |\.grad )?({NUMBER} )?\+= {NUMBER}( -> {NUMBER})?|in {NUMBER}")
"""How ``in 3 += 4`` is written where there is more room or less."""


def everything_happens():
    """Writes in place, ops of every kind that is not tracked, two passes, a graph of gradients, nan, what is gone."""
    x = torch.tensor([1.0, -4.0], requires_grad=True)
    for _ in range(2):
        (x * x).sum().backward()
    y = x.exp()
    y.mul_(2)
    with torch.no_grad():
        y.detach() * 2
    (slope,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    slope.sum().backward()
    torch.ones(2) + 1
    return x, y, slope, (x.sqrt().sum() > 0)


@pytest.mark.parametrize("program", [demo, failed, partial(iterations, 2), late, everything_happens])
def test_every_state_word_is_explained(program):
    timeline = program()
    if not isinstance(timeline, Timeline):
        timeline = timeline_of(program)
    said = set()
    for n in range(len(timeline) + 1):
        moment = timeline.at(n)
        said |= {box.status for box in moment_scene(timeline, n, Options()).boxes}
        for node in timeline.nodes:
            said |= {note(timeline, moment, timeline.info(node), moment.state(node), width) for width in (8, 14, 26)}
    unknown = {word for word in said - {""} if not KNOWN.fullmatch(word) and not SUM.fullmatch(word)}
    assert not unknown
    assert len(said) > 3


def test_the_words_of_boxes_and_the_reasons_of_no_tracking_are_among_them():
    for word in (*(shown.word for shown in SHOWN), *(UNTRACKED.keys() - {"inputs"})):
        assert KNOWN.fullmatch(word), word


@pytest.mark.parametrize("width", [30, 74, 120])
def test_every_word_is_on_the_page_of_any_width(width):
    rows = [plain(row) for row in words_page(width)]
    assert max(map(len, rows)) <= width
    text = " ".join(" ".join(rows).split())
    assert all(" ".join(means.split()) in text for _, section in SECTIONS for _, means in section)


def test_help_words_in_line_mode():
    said = transcript(demo(), "help words")
    assert "rms" in said
    assert "the gradient that came into this node" in said


def test_the_help_is_one_screen_and_names_the_page_of_the_words():
    said = [plain(row) for row in help_page(keys_of("default"), 76)]
    assert len(said) <= 20, "what is longer scrolls at 80x24"
    assert "one event forward" in said[0]
    assert ":help words" in said[-1]
    assert any("pending" in plain(row) for row in words_page(74))


@pytest.mark.parametrize(("word", "said"), [
    ("waiting", "a pass will come to it"),
    ("2 of 3", "contributions to its gradient"),
    ("|g|", "the L2 norm of a gradient"),
    ("INCOMING", "the gradient of a leaf in this pass"),
    (".grad", "the sum over all"),
    ("released", "its saved tensors are released"),
])  # fmt: skip
def test_one_word_of_the_screen_is_explained_alone(word, said):
    answer = transcript(demo(), f"help {word}")
    assert said in answer
    assert len(answer.splitlines()) < 16


def test_a_command_is_explained_before_a_word_of_the_screen():
    assert "step, s [N]: one event forward" in transcript(demo(), "help step")
    assert "step, s [N]: one event forward" in transcript(demo(), "help ste")
    assert "there is no command 'nosuch'" in transcript(demo(), "help nosuch")


@pytest.mark.parametrize(
    ("word", "said"),
    [("grad", "the incoming gradient of the node"), ("outgoing", "sends to one of its inputs"),
     ("leaf", "no operation made"), ("version", "written in place"), ("retained", "retain_grad()"),
     ("pass", "one run of backward()"), ("moment", "a position in the recording"), ("not yet", "no number yet"),
     ("·", "no gradient has arrived"), ("saved", "keeps for its backward rule"), ("event", "one entry")],
)  # fmt: skip
def test_the_words_of_panels_are_explained_also_where_a_command_has_the_name(word, said):
    text = " ".join(transcript(demo(), f"help {word}").split())
    assert said in text
    assert ("[PLACE]: the saved tensors" in text) is (word == "saved")
