"""Uses of a tensor that brought nothing: told for each line that cuts them off, however many there are."""

import pytest
from recording import timeline_of

import gviz.engine as torch
from gviz.explain.why import why
from gviz.trace.node_table import Nodes


def chain(count, cut_at):
    """A state that uses ``w`` so often, and is cut on its way by two lines."""

    def program():
        w = torch.tensor([1.5, 1.2], requires_grad=True)
        h = torch.ones(2)
        for i in range(count):
            if i == cut_at:
                h = h.detach()
            if i == cut_at + 2:
                h = torch.tensor([0.5, 0.5]) * h + h.data
            h = torch.cos(h * w)
        h.sum().backward()

    return timeline_of(program)


def silent(timeline):
    answer = why(timeline, timeline.at(len(timeline)), 1, "grad")
    return [part.text.split(" h = ")[0] for part in answer.parts if part.kind == "silent"]


def test_each_line_that_cuts_tells_how_many_uses_it_cuts_off():
    def program():
        w = torch.tensor([1.5, 1.2], requires_grad=True)
        one = torch.sin(w)
        two = torch.cos(w) + torch.exp(w)
        three = torch.tanh(w)
        (one.detach() * three + two.data * three).sum().backward()

    told = silent(timeline_of(program))
    uses = [text.partition(" at test_")[0] for text in told]
    assert uses == [
        "1 of its 4 uses sent nothing: cut at #7 detach",
        "2 of its 4 uses sent nothing: cut at #9 data",
    ]


def test_a_use_that_goes_on_behind_a_cut_is_not_cut_off():
    first, *others = silent(chain(12, 4))
    assert first.startswith("4 of its 12 uses sent nothing: cut at #")
    assert others == []  # the way through h itself is left where h.data cuts


@pytest.mark.parametrize("cut_at", [0.5, 0.9])
def test_a_long_loop_is_gone_through_once_and_not_once_a_use(monkeypatch, cut_at):
    counts = []
    for count in (20, 80):
        timeline, asked = chain(count, int(count * cut_at)), []
        users = Nodes.users
        with monkeypatch.context() as patch:
            patch.setattr(Nodes, "users", lambda *given, asked=asked, users=users: asked.append(1) or users(*given))
            assert silent(timeline)
        counts.append(len(asked))
    assert counts[1] < 5 * counts[0]
