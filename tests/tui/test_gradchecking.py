"""The command ``gradcheck`` in line mode and on the screen."""

from driving import app_of, transcript
from recording import timeline_of

import gviz.engine as torch
from gviz.tui.screens.overlay_pages import Sheet


def program():
    x = torch.tensor([1.0, 0.0], requires_grad=True)
    y = torch.relu(x)
    z = y * y
    (z.sum() + y.sum()).backward()
    return x, y, z


def timeline():
    return timeline_of(program)


def said(*commands):
    return transcript(timeline(), *commands).rpartition("(gviz) ")[2].splitlines()[1:]


def test_a_rule_that_is_right():
    answer = said("gradcheck z")
    assert answer[0].startswith("#3 z = mul: what it sent to each input")
    assert [row.split(": ")[1].split(",")[0] for row in answer[1:]] == ["agrees", "agrees"]


def test_a_leaf_is_checked_where_it_is_used_and_a_kink_is_told():
    answer = said("gradcheck x")
    assert answer[0].startswith("#2 y = relu")
    assert "[1] = 0: sent 0, by differences" in answer[2]
    assert [row.endswith("a kink, where both are right") for row in answer[2:]] == [True]


def test_what_cannot_be_checked_is_refused_and_what_can_is_said():
    assert said("gradcheck nosuch")[0].startswith("there is no nosuch")

    def leaves():
        x, u = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([1.0], requires_grad=True)
        c, alone = torch.tensor([2.0, 2.0]), torch.tensor([1.0], requires_grad=True)
        dead = x * 3
        with torch.no_grad():
            u * 2
        (x * c).sum().backward()
        return c, alone, dead

    recorded = timeline_of(leaves)
    for place, answer in (
        ("c", "c requires no gradient: none was sent to it; hint: gradcheck PLACE"),
        ("alone", "nothing uses #"),
        ("u", "no backward pass went through #"),
        ("dead", " shows the reason."),
        ("x", ": no backward pass went through #"),
        ("x", "self = #1 x: agrees"),
    ):
        assert answer in transcript(recorded, f"gradcheck {place}"), place


async def test_on_the_screen_it_is_a_page():
    app = app_of(timeline())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(*":gradcheck z", "enter")
        await pilot.pause()
        assert app.screen.query_one(Sheet)
