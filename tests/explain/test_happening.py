from stories import demo, failed, hostile

from gviz.events import Failed
from gviz.explain.failure import diagnosis
from gviz.explain.happening import happening, sentence
from gviz.trace.log import MemoryLog
from gviz.trace.timeline import Timeline


def test_one_sentence_for_every_event():
    timeline = demo()
    said = [sentence(timeline, n) for n in range(len(timeline) + 1)]
    assert said[0] == "start of the recording, before event 1 of 33."
    assert said[7] == "event 7, forward, node #4 b = Mul: 3 (x) * -6 (a) = -18."
    assert said[11] == "event 11, forward: the program wrote to stdout: loss -24.0."
    assert said[19] == ("event 19, backward, node #4 b = Mul: sends 3 to #3 a = Mul: incoming 1 += 3, now 4 (2 of 2).")
    assert said[21] == (
        "event 21, backward, node #4 b = Mul: its rule has run and sent -6 to #1 x, sum -6 (1 of 2); "
        "3 to #3 a = Mul, sum 4 (2 of 2)."
    )
    assert said[31] == "event 31, backward, node #1 x: .grad was None, is now -14."
    assert all(text.endswith(".") and "\n" not in text for text in said)


def test_a_failure_has_a_cause_what_came_before_and_a_remedy():
    timeline = failed()
    found = diagnosis(timeline, timeline.at(len(timeline)))
    assert "an earlier backward() released what #" in found.cause
    assert "retain_graph=True" in found.remedy
    assert found.related == (("released by the first backward() at demo.py:9", 20),)
    assert diagnosis(timeline, timeline.at(20)) is None


def test_hostile_text_stays_text():
    timeline = hostile()
    for n in range(len(timeline) + 1):
        assert sentence(timeline, n).isprintable()


def test_a_program_that_has_made_nothing_yet_is_starting():
    timeline = Timeline(MemoryLog([]))
    assert happening(timeline, timeline.at(0)) == "nothing has happened yet"
    timeline.growing = True
    assert "no tensor is made yet" in happening(timeline, timeline.at(0))


def test_an_error_without_a_message_is_named_alone():
    timeline = Timeline(MemoryLog([Failed("KeyboardInterrupt", "", 0, 0, "")]))
    assert sentence(timeline, 1) == "event 1, failed: the program failed with KeyboardInterrupt."


def test_the_start_of_a_program_that_has_gone_on_is_not_called_a_start():
    timeline = demo()
    timeline.growing = True
    assert happening(timeline, timeline.at(0)) == "before the first event: the program is further on"
