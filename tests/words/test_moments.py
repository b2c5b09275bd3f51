"""One vocabulary of moments: the same words in every option and command, and all of them said where one is unknown."""

import pytest
from click.testing import CliRunner
from driving import transcript
from stories import demo, failed, iterations

from gviz.api.moments import moment_of
from gviz.cli.main import gviz
from gviz.errors import GvizError
from gviz.words.moments import event_at
from gviz.words.vocabulary import A_MOMENT, MOMENT_WORDS, MOMENTS


def ends(timeline, kind):
    return [phase.end for phase in timeline.phases if phase.kind == kind]


@pytest.mark.parametrize(("word", "short"), [("forward", "fwd"), ("backward", "bwd")])
def test_a_pass_is_through_in_the_iteration_where_one_stands_and_in_the_last_from_outside(word, short):
    timeline = iterations(3)
    first, *_, last = ends(timeline, word)
    for text in (word, short):
        assert event_at(timeline, text) == moment_of(timeline, text) == last
        assert event_at(timeline, text, n=2) == first
        assert f"event {first}, " in transcript(timeline, f"goto {text}", at=2)


@pytest.mark.parametrize("word", MOMENT_WORDS)
def test_every_word_is_known(word):
    timeline = failed()
    if word == "nan":
        with pytest.raises(GvizError, match="no nan or inf in this recording"):
            event_at(timeline, word)
    else:
        assert 0 <= event_at(timeline, word) <= len(timeline)


def test_what_is_no_moment_is_answered_with_all_that_are():
    with pytest.raises(GvizError) as caught:
        event_at(demo(), "blah")
    assert caught.value.what == "there is no moment blah"
    assert all(word in caught.value.hint for word in MOMENT_WORDS)


def test_every_word_is_explained():
    said = " ".join(how for how, _ in MOMENTS)
    assert all(word in said for word in MOMENT_WORDS)


@pytest.mark.parametrize("command", ["open", "show", "why", "explain", "export", "whatif"])
def test_every_command_takes_them(command):
    said = " ".join(CliRunner().invoke(gviz, [command, "--help"]).output.split())
    assert A_MOMENT.replace("\n", " ") in said


@pytest.mark.parametrize("word", ["forward", "backward"])
def test_a_pass_is_said_to_mean_its_end_wherever_it_is_offered(word):
    assert next(means for how, means in MOMENTS if word in how).startswith("the end of the ")
    assert "fwd, bwd: the end of that pass" in A_MOMENT
    assert A_MOMENT in " ".join(CliRunner().invoke(gviz, ["explain", "--help"]).output.split())
