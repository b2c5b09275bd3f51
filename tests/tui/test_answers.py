"""What is said to a key or a line that cannot do what was meant."""

import pytest
from driving import after, transcript
from recording import timeline_of
from stories import demo, iterations

import gviz.engine as torch


@pytest.mark.parametrize(("at", "key", "says"), [(33, "n", "nothing comes after"), (33, "c", "nothing comes after"),
                                                 (0, "N", "nothing comes before")])  # fmt: skip
async def test_a_key_that_cannot_go_on_says_so(at, key, says):
    assert says in (await after(demo(), key, at=at)).remark


def test_a_question_as_people_type_it():
    asked = transcript(demo(), "goto end", "why x.grad").splitlines()
    for text in ("why is x.grad -14", "why is x.grad -14?", "why does x.grad?"):
        assert transcript(demo(), "goto end", text).splitlines()[-3:] == asked[-3:]
    assert "#1 x: .grad is -14" in "\n".join(asked)


def test_what_is_no_tensor_is_said_to_be_unrecorded():
    for text in ("eval lr", "whatif lr = 0.1"):
        assert "only tensors are recorded" in transcript(demo(), text)


async def test_the_selection_follows_into_the_iteration_that_is_shown():
    timeline = iterations(3)
    screen = await after(timeline, "greater_than_sign", at=3)
    assert screen.selected in timeline.nodes.of(timeline.iteration_at(len(timeline)))


def test_a_node_of_another_iteration_is_not_shown_alone():
    timeline = iterations(3)
    last = timeline.nodes[-1]
    assert "is in the graph of another iteration" in transcript(timeline, f"select #{last}", "near 1", at=2)


def test_elements_that_a_node_sends_are_read_once():
    def program():
        w = torch.tensor([2.0, 0.3], requires_grad=True)
        (w * torch.tensor([0.5, 4.0])).sum().backward()

    rows = [row.strip() for row in transcript(timeline_of(program), "goto end", "node op:sum").splitlines()]
    at = next(at for at, row in enumerate(rows) if row.startswith("to #"))
    assert rows[at].endswith("g for every element = 1 for every element")
    assert rows[at + 1] == "outgoing [1 1]"


def test_what_may_have_been_meant_instead_is_no_cause_to_go_to():
    def program():
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        extra = torch.tensor([3.0, 4.0], requires_grad=True)
        (w * 2).sum().backward()
        return w, extra

    timeline = timeline_of(program)
    said = transcript(timeline, "goto end", "select extra", "explain")
    assert "could it have been meant there?" in " ".join(said.split())
    assert "the cause" not in said
