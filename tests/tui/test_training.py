"""What the screen says first: at the start, at the ends of passes and of the recording; findings and causes."""

from contextlib import suppress
from math import inf, nan

import pytest
from driving import app_of, rows_of, transcript
from recording import timeline_of
from stories import demo, iterations

import gviz.engine as torch
from gviz.events import OptimizerStarted, RequiresGradSet
from gviz.explain.training import last_pass, pass_result, progress
from gviz.system.cooperative_work import finished
from gviz.tui.commands import inspection
from gviz.tui.cursor import Cursor
from gviz.tui.drawing.training_summary import evenly_spaced, sparkline, training_lines
from gviz.tui.glyphs import glyphs
from gviz.tui.screens.overlay_pages import ChooserScreen, SheetScreen
from gviz.tui.session import Session
from gviz.tui.styled_lines import plain

NAMED = {"}": "right_curly_bracket", "!": "exclamation_mark", ">": "greater_than_sign"}


def cut():
    """A net whose encoder gets no gradient, because of a detach."""

    def program():
        torch.manual_seed(0)
        encoder, head = torch.nn.Linear(2, 3), torch.nn.Linear(3, 1)
        h = encoder(torch.tensor([[1.0, 2.0]])).detach()
        loss = (head(h) ** 2).mean()
        loss.backward()
        del h, loss

    return timeline_of(program)


def text(app, panel="node"):
    widget = app.screen.query_one(f"#{panel}")
    rows = ["".join(part.text for part in widget.render_line(y)) for y in range(widget.size.height)]
    return " ".join(" ".join(rows).split())


async def press(pilot, *keys):
    await pilot.press(*(NAMED.get(key, key) for key in keys))
    await pilot.pause(0.3)


def root_at(timeline, end):
    return pass_result(timeline, end).root


async def test_where_a_pass_ends_the_loss_is_selected_and_the_panel_says_what_came_of_it():
    timeline = cut()
    app = app_of(timeline, at=1)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "}", "f")
        end = last_pass(timeline, len(timeline))
        assert app.screen.cursor.position == end
        assert app.screen.cursor.selected == root_at(timeline, end)
        assert "2 of 4 parameters have a gradient, 2 have none" in text(app)
        assert "loss.backward()" in text(app)
        assert "no gradient: encoder.weight, encoder.bias e: why" in text(app)
        assert "head" in text(app)
        await press(pilot, "k")
        assert "2 of 4 parameters" not in text(app), "a node that the user selects comes first"


@pytest.mark.parametrize("is_clipped", [False, True])
async def test_where_a_step_begins_the_panel_says_what_came_of_the_pass_unless_its_gradients_have_changed(is_clipped):
    def program():
        w = torch.nn.Parameter(torch.ones(2))
        optimizer = torch.optim.SGD([w], lr=0.1)
        (w * w).sum().backward()
        if is_clipped:
            torch.nn.utils.clip_grad_norm_([w], 1.0)
        optimizer.step()

    timeline = timeline_of(program)
    app = app_of(timeline, at=next(seq for seq, _ in timeline.select((OptimizerStarted,))))
    async with app.run_test(size=(80, 24)):
        assert ("parameter has a gradient" in text(app)) is not is_clipped


@pytest.mark.parametrize("is_cut", [False, True])
async def test_the_first_event_of_an_update_by_hand_says_what_came_of_the_pass(is_cut):
    def program():
        w, v = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        loss = (w * (v.detach() if is_cut else v)).sum()
        loss.backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
        return loss, v

    timeline = timeline_of(program)
    start = next(phase.start for phase in timeline.phases if phase.kind == "optimizer")
    app = app_of(timeline, at=start)
    async with app.run_test(size=(120, 40)) as pilot:
        shown = text(app)
        assert shown.startswith("w.grad")
        assert ("1 of 2 leaves has a gradient" if is_cut else "all 2 leaves have a gradient") in shown
        assert ("no gradient: v !: findings" in shown) is is_cut
        await press(pilot, "n")
        assert "backward pass 1" not in text(app)


async def test_e_where_a_pass_ends_asks_about_the_missing_gradient_and_goes_to_the_cause():
    timeline = cut()
    app = app_of(timeline, at=last_pass(timeline, len(timeline)))
    async with app.run_test(size=(80, 24)) as pilot:
        before = app.screen.cursor.position
        await press(pilot, "e")
        assert isinstance(app.screen, SheetScreen)
        await press(pilot, "escape")
        cursor = app.screen.cursor
        assert cursor.position == before
        assert "detach" in timeline.info(cursor.selected).op.name.lower()
        assert app.screen.selected == cursor.selected


async def test_findings_lead_from_a_question_to_its_cause_in_three_keys():
    timeline = cut()
    app = app_of(timeline, at=1)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "!")
        assert isinstance(app.screen, ChooserScreen)
        await press(pilot, "enter")
        found = app.screen.cursor.selected
        assert timeline.info(found).name.startswith("encoder.")
        assert app.screen.cursor.position == last_pass(timeline, len(timeline)), "where the gradient is missing"
        await press(pilot, "e", "escape")
        assert "detach" in timeline.info(app.screen.cursor.selected).op.name.lower()


async def test_e_in_the_list_of_findings_explains_one_and_goes_to_its_cause():
    timeline = cut()
    app = app_of(timeline, at=1)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "!")
        title = str(app.screen.query_one("#chooser").border_title)
        assert title == "Findings: Enter goes there, e explains it, Esc closes"
        await press(pilot, "e")
        assert isinstance(app.screen, SheetScreen)
        await press(pilot, "escape")
        assert app.screen.cursor.position == last_pass(timeline, len(timeline))
        assert "detach" in timeline.info(app.screen.cursor.selected).op.name.lower()
        assert app.screen.selected == app.screen.cursor.selected


def with_frozen_body():
    """A net whose body is frozen, as in a recording of fine-tuning."""

    def program():
        torch.manual_seed(0)
        body, head = torch.nn.Linear(2, 3), torch.nn.Linear(3, 1)
        net = torch.nn.Sequential(body, torch.nn.Tanh(), head)
        for parameter in body.parameters():
            parameter.requires_grad = False
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        inputs = torch.randn(8, 2)
        for _ in range(3):
            optimizer.zero_grad()
            ((net(inputs) - inputs[:, :1]) ** 2).mean().backward()
            optimizer.step()

    return timeline_of(program)


async def test_a_frozen_layer_is_found_within_three_keys():
    timeline = with_frozen_body()
    froze = [seq for seq, _ in timeline.select((RequiresGradSet,))]
    app = app_of(timeline, at=1)
    async with app.run_test(size=(160, 40)) as pilot:
        await press(pilot, ">")
        assert "2 of 4 parameters have a gradient, 2 are frozen" in text(app)
        await press(pilot, "!")
        assert isinstance(app.screen, ChooserScreen)
        assert str(app.screen.query_one("#chooser").border_title).startswith("No findings, frozen parameters")
        await press(pilot, "e")
        assert isinstance(app.screen, SheetScreen)
        await press(pilot, "escape")
        assert app.screen.cursor.position == froze[0]
        assert app.screen.session.source_mark.frame.line == timeline.stack(timeline.event(froze[0]).stack)[0].line


def test_frozen_parameters_are_listed_below_what_was_looked_for():
    found, _, frozen = " ".join(transcript(with_frozen_body(), "findings").split()).partition(" frozen ")
    assert "nothing found" in found
    assert frozen.count("weight") == frozen.count("bias") == 1


def test_the_modules_say_which_of_them_are_frozen():
    timeline = with_frozen_body()
    rows = transcript(timeline, "goto end", "modules").splitlines()
    assert [("frozen" in row, "|g|" in row) for row in rows if "Linear" in row] == [(True, False), (False, True)]


async def test_the_list_of_passes_has_nothing_to_explain():
    app = app_of(demo(), at=33)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "P")
        assert "explains" not in str(app.screen.query_one("#chooser").border_title)
        await press(pilot, "e")
        assert isinstance(app.screen, ChooserScreen)


async def test_an_answer_about_a_healthy_node_moves_nothing():
    app = app_of(demo(), at=33)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "g", "e", "escape")
        assert app.screen.cursor.selected == 1


async def test_where_nothing_is_wrong_the_key_says_so():
    app = app_of(demo(), at=33)
    async with app.run_test(size=(200, 24)) as pilot:
        await press(pilot, "!")
        assert not isinstance(app.screen, ChooserScreen)
        assert app.screen.remark or isinstance(app.screen, SheetScreen)


def test_while_the_program_runs_nothing_found_is_so_far():
    timeline = demo()
    assert "so far" not in transcript(timeline, "findings")
    timeline.growing = True
    assert "This is so far: c runs the program to its next stop" in transcript(timeline, "findings")


async def test_findings_of_a_running_program_do_not_offer_the_key_that_runs_it():
    timeline = demo()
    timeline.growing = True
    app = app_of(timeline, at=33)
    async with app.run_test(size=(200, 24)) as pilot:
        app.screen.session.is_running = True
        await press(pilot, "!")
        assert app.screen.remark.endswith("This is so far: ask again when it has stopped")


async def test_the_start_says_how_long_the_recording_is_and_how_to_walk():
    app = app_of(iterations(3), at=1)
    async with app.run_test(size=(80, 24)):
        assert "3 iterations" in text(app)
        assert "n next node" in text(app)
        assert "} next phase" in text(app)


async def test_the_end_sums_up_the_last_pass_and_the_losses():
    timeline = iterations(3)
    app = app_of(timeline, at=1)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, ">")
        assert "3 iterations" in text(app)
        assert "have a gradient" in text(app) or "has a gradient" in text(app)
        assert "→" in text(app)


async def test_training_is_a_page_of_sparklines():
    app = app_of(iterations(3), at=1)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "L")
        assert isinstance(app.screen, SheetScreen)
    said_by_line = transcript(iterations(3), "training")
    assert "3 backward passes" in said_by_line


def test_during_the_first_pass_training_does_not_deny_it():
    timeline = iterations(1)
    (phase,) = [phase for phase in timeline.phases if phase.kind == "backward"]
    text = " ".join(plain(row) for row in training_lines(progress(timeline, phase.start), 80, glyphs(ascii=False)))
    assert text.startswith("1 backward pass began, and none has ended")
    text = " ".join(plain(row) for row in training_lines(progress(timeline, phase.start - 1), 80, glyphs(ascii=False)))
    assert text == "no backward pass was recorded"


def test_training_lists_modules_without_a_gradient():
    rows = transcript(cut(), "training").splitlines()
    assert [row.split() for row in rows if row.strip().startswith("encoder")] == [["encoder", "no", "gradient"]]


@pytest.mark.parametrize("size", [(120, 40), (200, 60)])
async def test_empty_panels_take_one_line_and_the_modules_their_place(size):
    app = app_of(cut(), at=1)
    async with app.run_test(size=size) as pilot:
        watch, modules = app.screen.query_one("#side-watch"), app.screen.query_one("#side-modules")
        assert watch.outer_size.height == 1
        assert modules.display
        before = app.screen.query_one("#graph").region if app.screen.query_one("#graph").display else None
        await press(pilot, *"wloss", "enter")
        assert watch.outer_size.height > 1
        if before is not None:
            assert app.screen.query_one("#graph").region == before, "the graph stays where it is"


@pytest.mark.parametrize(
    ("values", "width", "drawn"),
    [((1.0, 2.0, 3.0), 8, "▁▅█"), ((3.0, 3.0), 8, "▅▅"), ((1.0, float("nan"), None, 2.0), 8, "▁! █"), ((), 8, ""),
     (tuple(map(float, range(100))), 4, "▁▃▆█"), ((-1e308, 1e308), 8, "▁█")],
)  # fmt: skip
def test_a_sparkline_goes_from_the_least_to_the_greatest(values, width, drawn):
    assert sparkline(values, width) == drawn


async def test_e_in_the_list_of_findings_shows_the_finding_and_not_the_gradient_of_its_node():
    def program():
        torch.manual_seed(0)
        body, head = torch.nn.Linear(2, 3), torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            (head(torch.tanh(body(torch.ones(4, 2)))) ** 2).mean().backward()
            optimizer.step()

    app = app_of(timeline_of(program), at=1)
    async with app.run_test(size=(100, 30)) as pilot:
        await press(pilot, "!", "e")
        assert isinstance(app.screen, SheetScreen)
        shown = " ".join("".join(part.text for part in strip) for strip in app.screen._compositor.render_strips())
        assert "no optimizer has updated it" in " ".join(shown.split())


def test_a_plot_of_checks_has_the_iterations_as_its_axis():
    old, new = [(number, 1.0, 2.0) for number in range(1, 3001, 100)], [(n, 1.0, 2.0) for n in range(3001, 3701)]
    bad = [(number, nan, nan) for number in range(3701, 5001)]
    spaced = evenly_spaced([*old, *new, *bad])
    assert len(spaced) == 200
    first = next(at for at, (_, loss, _) in enumerate(spaced) if loss != loss)
    assert first == 3700 * 200 // 5000
    assert spaced[0][0] == 1
    assert spaced[-1][0] > 4970
    many = [(number, float(number), 1.0) for number in range(1, 1001)]
    assert evenly_spaced(many)[0] == (1, 1.0, 1.0)
    assert evenly_spaced(many)[-1] == (1000, 1000.0, 1.0)
    assert evenly_spaced([(7, None, 1.0)]) == [(7, None, 1.0)]
    assert [one[0] for one in evenly_spaced([(1, 1.0, 1.0), (2, inf, 1.0), (4, 1.0, 1.0)])] == [1, 2, 2, 4]


def test_of_several_checks_in_a_part_of_the_plot_the_bad_one_is_seen():
    checks = [(number, nan if number == 501 else 1.0, 1.0) for number in range(1, 1001)]
    assert sum(loss != loss for _, loss, _ in evenly_spaced(checks)) == 1


async def test_e_in_the_list_of_findings_selects_the_cause_as_it_does_elsewhere():
    def program():
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = torch.exp(x)
        y += 1
        with suppress(RuntimeError):
            y.sum().backward()

    timeline = timeline_of(program)
    written = next(node for node in timeline.nodes if timeline.info(node).op.name == "add_")
    for keys in (("exclamation_mark", "e"), ("greater_than_sign", *":goto error", "enter", "e")):
        app = app_of(timeline, at=1)
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.press(*keys)
            await pilot.pause()
            rows = "\n".join(rows_of(app))
            assert f"selected: #{written} y = add_, the cause" in rows
            await pilot.press("escape")
            assert app.screen.selected == app.screen.cursor.selected == written


def test_findings_of_a_paused_program_are_those_so_far():
    timeline = cut()
    session = Session(Cursor(timeline, len(timeline)), glyphs(ascii=False))
    assert finished(inspection.findings(session, "")).title == "Findings"
    timeline.growing = True
    assert finished(inspection.findings(session, "")).title == "Findings so far"
