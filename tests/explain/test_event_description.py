import re

import pytest
from recording import timeline_of
from stories import Story, demo, failed, hostile

import gviz.engine as torch
from gviz.events import Failed, Returned, StorageWritten
from gviz.explain.event_description import description, sentence
from gviz.explain.why import diagnosis
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline


def test_one_sentence_for_every_event():
    timeline = demo()
    said = [sentence(timeline, n) for n in range(len(timeline) + 1)]
    assert said[0] == "start of the recording, before event 1 of 33."
    assert said[7] == "event 7, forward, node #4 b = mul: 3 (x) * -6 (a) = -18."
    assert said[11] == "event 11, forward: the program wrote to stdout: loss -24.0."
    assert (
        said[19]
        == "event 19, backward, node #4 b = mul: sends to #3 a = mul: incoming gradient 1 += 3, now 4 (2 of 2)."
    )
    assert said[21] == (
        "event 21, backward, node #4 b = mul: its rule has run and sent -6 to #1 x (1 of 2); "
        "to #3 a = mul 1 += 3, now 4 (2 of 2)."
    )
    assert said[31] == "event 31, backward, node #1 x: .grad was None, is now -14."
    assert all(text.endswith(".") and "\n" not in text for text in said)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (((1, 2, ""), (0, 2, "values")), "[1].values"),
        (((0, 0, "loss"), (0, 3, "")), "['loss'][0]"),
    ],
)
def test_a_part_of_a_result_is_told_as_the_program_takes_it(path, text):
    story = Story()
    node = story.leaf("x", 1.0, 3)
    story.say(Returned(node, 0, 1, path))
    timeline = story.timeline()
    assert description(timeline, timeline.at(len(timeline))) == f"it is {text} of what the call gave"


def test_who_was_told_of_a_share_is_not_told_again():
    timeline = demo()
    assert sentence(timeline, 21, since=20) == "event 21, backward, node #4 b = mul: its rule has run."
    assert sentence(timeline, 21, since=18).endswith("its rule has run and sent to #3 a = mul 1 += 3, now 4 (2 of 2).")


@pytest.mark.parametrize(("rows", "said"), [
    (2, "incoming gradient [[2 2 2] [2 2 2]] += [[3 3 3] [3 3 3]], now [[5 5 5] [5 5 5]] (2 of 2)"),
    (6, "incoming gradient |g| 8.49 += |g| 12.7, now |g| 21.2 (lengths do not add) (2 of 2)"),
])  # fmt: skip
def test_where_gradients_meet_all_three_numbers_are_in_one_notation(rows, said):
    def program():
        x = torch.ones(rows, 3, requires_grad=True)
        (x * 3).sum().add((x * 2).sum()).backward()

    timeline = timeline_of(program)
    sums = [description(timeline, timeline.at(n)) for n in range(1, len(timeline) + 1)]
    found = next(text for text in sums if "incoming" in text)
    assert said in found


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
    assert description(timeline, timeline.at(0)) == "nothing has happened yet"
    timeline.growing = True
    assert "no tensors yet" in description(timeline, timeline.at(0))


def test_an_error_without_a_message_is_named_alone():
    timeline = Timeline(MemoryLog([Failed("KeyboardInterrupt", "", 0, 0, "")]))
    assert sentence(timeline, 1) == "event 1, failed: the program failed with KeyboardInterrupt."


def test_the_start_of_a_program_that_has_gone_on_is_not_called_a_start():
    timeline = demo()
    timeline.growing = True
    assert description(timeline, timeline.at(0)) == "before the first event: the program is further on"


def test_a_name_without_end_is_told_by_both_of_its():
    name = "start" + "_very" * 1000 + "_end"
    story = Story()
    story.add("y", story.leaf(name, 1.0, 3), story.leaf("x", 2.0, 4), 5)
    timeline = story.timeline()
    said = [sentence(timeline, n) for n in range(1, len(timeline) + 1)]
    assert max(map(len, said)) < 300
    assert any("start…_very" in text and "very_end" in text for text in said)


@pytest.mark.parametrize(("frozen", "used", "said"), [
    (True, True, "SGD has updated nothing: all of its 2 parameters are frozen"),
    (False, True, "SGD has updated nothing: none of its 2 parameters has a gradient"),
    (False, False, "SGD has updated nothing: none of its parameters is used in what is recorded, so no gradient comes"),
])  # fmt: skip
def test_a_step_that_updates_nothing_says_why(frozen, used, said):
    layer = torch.nn.Linear(2, 1).requires_grad_(not frozen)  # made before anybody listens

    def program():
        if used:
            layer(torch.ones(1, 2))
        torch.optim.SGD(layer.parameters(), lr=0.1).step()

    timeline = timeline_of(program)
    told = [description(timeline, timeline.at(n)) for n in range(1, len(timeline) + 1)]
    assert any(text.startswith(said) for text in told)


def test_in_little_room_the_old_and_the_new_value_of_a_parameter_come_first():
    def program():
        model = torch.nn.Linear(30, 20)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.ones(2, 30)).sum().backward()
        optimizer.step()

    timeline = timeline_of(program)
    written = [seq for seq, _ in timeline.select((StorageWritten,), 1, len(timeline) + 1)]
    for seq in written:
        moment = timeline.at(seq)
        whole, brief = description(timeline, moment), description(timeline, moment, room=90)
        first, _, rest = brief.partition(", in place")
        assert len(first) <= 90
        assert re.search(r"\(?20,.* → \(?20,", first), first
        assert "version" in rest
        assert whole == description(timeline, moment, room=0)
    assert written
