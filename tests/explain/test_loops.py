"""Mistakes inside of a loop: the answer is about the right time round, says each thing once, and helps."""

from pathlib import Path

import pytest
from driving import transcript
from explain.programs import HERE, line_of, recorded

from gviz.cli.findings import print_text
from gviz.cli.recording_input import Recordings
from gviz.compare.ranks import Rank
from gviz.events import OptimizerStepped
from gviz.explain.check import check, check_ranks
from gviz.explain.event_description import description
from gviz.explain.finding import lines, whole
from gviz.explain.typed_question import answers
from gviz.explain.why import diagnosis

on_both_engines = pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])


def place(name):
    return f"{name}.py:{line_of(HERE / 'loops' / f'{name}.py')}"


def rows(finding):
    return [text for _, text, _ in lines(finding)]


@on_both_engines
def test_a_cut_is_the_one_of_the_last_time_round(engine):
    timeline = recorded("loops", "cut_each_time", engine)
    (found,) = answers(timeline, "w.grad")
    (cut,) = found.parts
    (copied,) = cut.parts
    assert timeline.info(cut.node).op.name == "detach"
    before = [node for node in timeline.nodes if timeline.info(node).op.name == "detach"][-1]
    assert (cut.node, copied.node) == (before, timeline.nodes[timeline.nodes.place_of(before) + 1])
    assert place("cut_each_time") in copied.text


@on_both_engines
def test_an_error_because_of_a_none_says_why_it_is_none(engine):
    timeline = recorded("loops", "lost_leaf_fails", engine)
    (found,) = answers(timeline, "error")
    assert found.text == "the program failed with TypeError because w.grad is None"
    told = "\n".join(rows(found))
    assert f"w = sub is not a leaf: only leaves keep their gradient in .grad, at {place('lost_leaf_fails')}" in told
    assert "the name w referred to the leaf" in told
    assert found.fix == "with torch.no_grad(): w -= lr * w.grad"
    assert len(rows(found)) <= 6
    failed = diagnosis(timeline, timeline.at(found.event))
    assert (failed.cause, failed.remedy) == (found.text, found.fix)


@on_both_engines
def test_a_check_tells_of_a_lost_leaf_once(engine):
    (one,) = check(recorded("loops", "lost_leaf_fails", engine))
    assert (one.level, one.finding.kind) == ("error", "failed")
    assert "rebound" in {part.kind for part in whole(one.finding)}


@on_both_engines
def test_a_question_about_a_node_is_not_answered_with_the_failure(engine):
    timeline = recorded("loops", "lost_leaf_fails", engine)
    for text in ("h", "w", "w.grad"):
        (found,) = answers(timeline, text)
        assert found.kind != "failed"
        assert timeline.info(found.node).name == text.removesuffix(".grad")
    assert "failed with TypeError" in transcript(timeline, "goto end", "explain")
    assert "failed with" not in transcript(timeline, "goto end", "explain h").partition("explain h")[2]


@on_both_engines
def test_after_the_pass_the_value_of_a_result_is_told_first(engine):
    timeline = recorded("loops", "lost_leaf_fails", engine)
    (found,) = answers(timeline, "h")
    first, which, *rest = rows(found)
    assert first.startswith(f"#{found.node} h = mul at lost_leaf_fails.py:8: ")
    assert which.startswith(f"this is #{found.node}, the last of 2 called h; #")
    assert rest[0] == "its gradient was [1 1]; .grad keeps it only after retain_grad()"
    assert rest[1].startswith("+= [1 1]")


@on_both_engines
def test_all_parameters_of_a_loop_are_named(engine):
    (one,) = check(recorded("loops", "never_cleared_by_hand", engine))
    assert (one.finding.kind, one.finding.where) == ("not-cleared", place("never_cleared_by_hand"))
    assert one.more == 2
    names = [one.finding.text, *one.others]
    assert [name for name in ("w", "b", "c") if any(name in text.split() for text in names)] == ["w", "b", "c"]
    assert ", ".join(one.others) in one.heading
    count = len(recorded("loops", "never_cleared_by_hand", engine).iterations)
    assert f", in {count - 1} of {count} iterations" in one.finding.parts[0].text


@on_both_engines
def test_a_parameter_is_found_by_what_the_program_calls_it(engine):
    timeline = recorded("loops", "cut_in_a_model", engine)
    (by_program,), (by_module,) = answers(timeline, "net.enc.weight.grad"), answers(timeline, "enc.weight.grad")
    assert by_program == by_module
    assert timeline.info(by_program.node).name == "enc.weight"


@on_both_engines
def test_a_cut_parameter_that_the_optimizer_has_is_more_than_suspected(engine):
    timeline = recorded("loops", "cut_in_a_model", engine)
    (one,) = check(timeline)
    assert (one.level, one.finding.kind, one.more) == ("warning", "cut", 1)
    (cut,) = one.finding.parts
    assert place("cut_in_a_model") in cut.parts[0].text
    (stepped,) = [event for _, event in timeline.select([OptimizerStepped])][-1:]
    assert {timeline.info(node).name for node in stepped.skipped} == {"enc.weight", "enc.bias"}
    assert description(timeline, timeline.at(next(n for n, _ in timeline.select([OptimizerStepped])))).endswith(
        "SGD has updated 2 parameters, 2 had no gradient"
    )


@on_both_engines
def test_a_state_detached_behind_the_cut_is_not_blamed(engine):
    timeline = recorded("loops", "cut_behind_a_carried_state", engine)
    (one,) = check(timeline)
    assert (one.finding.kind, [part.kind for part in one.finding.parts]) == ("cut", ["cut"])
    assert place("cut_behind_a_carried_state") in one.finding.parts[0].text
    at, line = one.finding.at, line_of(HERE / "loops" / "cut_behind_a_carried_state.py")
    assert at is not None
    assert at.line == line


@on_both_engines
@pytest.mark.parametrize("question", ["explain w.grad", "check"])
def test_the_debugger_answers_in_six_lines_and_in_full_when_asked(engine, question):
    timeline = recorded("loops", "cut_in_many_places", engine)
    brief, full = (" ".join(transcript(timeline, "goto end", text).split()) for text in (question, f"{question} all"))
    assert (brief.count("cut at"), full.count("cut at")) == (2, 4)
    left = 5 if question == "check" else 4  # a check prints one line of the fix
    assert f'{left} more lines ("{question} all" has them)' in brief
    assert "more lines" not in full


def test_check_prints_few_lines_of_a_finding_and_all_when_asked(capsys):
    timeline = recorded("loops", "cut_in_many_places")
    found, given = check_ranks([check(timeline)]), Recordings((Path("t.gviz"),), (Rank(timeline),))
    for whole_of_it, cuts in ((False, 2), (True, 4)):
        print_text(given, found, 1, in_full="" if whole_of_it else "gviz check -v t.gviz", fails=True)
        out = capsys.readouterr().out
        assert out.count("cut at") == cuts
        assert ("gviz check -v t.gviz prints 5 more lines" in out) != whole_of_it


@on_both_engines
def test_the_fix_of_a_second_backward_names_the_call_and_comes_after_it(engine):
    said = " ".join(transcript(recorded("bugs", "second_backward", engine), "goto end").split())
    released, fix = (said.rindex(text) for text in ("released by the first backward() at", "retain_graph=True in the"))
    assert released < fix
    assert said[fix:].startswith("retain_graph=True in the backward() at second_backward.py:7")


@on_both_engines
def test_a_state_detached_at_some_steps_is_suspected(engine):
    (one,) = check(recorded("loops", "detached_now_and_then", engine))
    assert (one.level, one.finding.kind, one.more) == ("note", "partly-detached", 0)
    assert one.finding.where == place("detached_now_and_then")
    assert "at 2 of 7 steps" in one.finding.text
    assert "takes" in one.finding.text
    assert [part.kind for part in one.finding.parts] == ["cut", "elsewhere"]


@on_both_engines
def test_a_state_detached_at_every_step_is_meant_so(engine):
    assert check(recorded("loops", "detached_every_step", engine)) == []


@on_both_engines
@pytest.mark.parametrize(("shape", "silent"), [((5, 3), "6 of its 8 uses"), ((4, 7), "6 of its 8 uses"), ((1, 4), "")])
def test_uses_that_brought_nothing_are_named_with_their_cut(engine, shape, silent):
    timeline = recorded("loops", "detached_now_and_then", engine)
    infos = (timeline.info(node) for node in timeline.nodes)
    weights = (info.node for info in infos if info.created.kind == "parameter")
    weight = next(node for node in weights if timeline.info(node).created.outputs[0].value.shape == shape)
    (answer,) = answers(timeline, f"#{weight}.grad")
    told = [part for part in answer.parts if part.kind == "silent"]
    assert [part.where for part in told] == [place("detached_now_and_then")] * bool(silent)
    assert all(f"{silent} sent nothing: cut at #" in part.text for part in told)


@on_both_engines
def test_a_result_of_an_earlier_iteration_is_asked_about_its_own_pass(engine):
    timeline = recorded("loops", "detached_now_and_then", engine)
    first = next(node for node in timeline.nodes if timeline.info(node).op.name == "embedding")
    (answer,) = answers(timeline, f"#{first}.grad")
    assert answer.kind == "cut"
    assert place("detached_now_and_then") in rows(answer)[1]


@on_both_engines
def test_an_optimizer_of_a_model_that_was_built_anew_holds_others(engine):
    timeline = recorded("loops", "optimizer_of_the_old", engine)
    (one,) = [one for one in check(timeline) if one.finding.kind == "never-stepped"]
    assert (one.level, one.finding.where, one.more) == ("warning", place("optimizer_of_the_old"), 1)
    assert "the step of Adam at optimizer_of_the_old.py:14 found no gradient" in rows(one.finding)[1]
    (answer,) = answers(timeline, "weight.grad")
    assert rows(answer)[1].endswith("gets a gradient, but no optimizer holds it")
    assert answer.fix.startswith("make the optimizer after the model")


@on_both_engines
def test_what_was_made_once_is_not_to_be_detached_but_to_be_the_leaf(engine):
    found = check(recorded("loops", "made_once", engine))
    (error,) = [one.finding for one in found if one.level == "error"]
    assert (error.kind, error.where) == ("second-backward", place("made_once"))
    assert error.fix.endswith("make it the leaf itself: requires_grad last, w = (...).requires_grad_()")
    assert not any("detach" in text or "retain_grad" in text for one in found for text in rows(one.finding))


@on_both_engines
def test_the_line_that_made_a_loss_a_number_is_named(engine):
    (found,) = answers(recorded("loops", "backward_of_a_number", engine), None)
    first, second, third = rows(found)
    assert first == "backward was called on loss, which is a number, not a tensor"
    assert second == "it became a number at backward_of_a_number.py:8: loss = loss.item()"
    assert third.startswith("try: call backward() on the tensor, and give the number another name")
