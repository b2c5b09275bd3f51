"""Which node a name means, also as the program says it."""

import pytest
from recording import events_of

import gviz.engine as torch
from gviz.errors import GvizError
from gviz.trace.log import MemoryLog
from gviz.trace.timeline import Timeline
from gviz.words.names import NamedNodes
from gviz.words.nodes import last


def one_net():
    net = torch.nn.Sequential(torch.nn.Linear(2, 1))
    net(torch.ones(1, 2)).sum().backward()


def two_nets():
    one, two = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
    two(one(torch.ones(1, 2))).sum().backward()


def names(program):
    timeline = Timeline(MemoryLog(events_of(program)))
    return NamedNodes(timeline), len(timeline)


def test_a_parameter_may_be_asked_for_by_what_the_program_calls_its_module():
    known, end = names(one_net)
    assert last(known, "net.0.weight", end) == last(known, "0.weight", end)


def test_a_word_that_the_program_does_not_have_is_no_module():
    known, end = names(one_net)
    strange = "".join(("no", "net"))  # this file is the program, and must not have the word
    with pytest.raises(GvizError, match=rf"there is no {strange}\.0\.weight"):
        last(known, f"{strange}.0.weight", end)


def test_modules_that_share_a_name_are_told_apart_by_their_variables():
    known, end = names(two_nets)
    assert last(known, "one.weight", end) != last(known, "two.weight", end)
    with pytest.raises(GvizError, match="there is no weight"):
        last(known, "weight", end)


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("0.weight.grda", "did you mean 0.weight.grad?"),
        ("0.wieght.grad", "did you mean 0.weight.grad?"),
        ("nothing_like_it", "only tensors are recorded: "),
    ],
)
def test_who_misspells_a_name_or_what_follows_it_is_told_what_there_is(asked, hint):
    known, end = names(one_net)
    with pytest.raises(GvizError) as caught:
        last(known, asked, end)
    assert caught.value.hint.startswith(hint)
    assert hint.startswith("did") or "0.weight" in caught.value.hint
