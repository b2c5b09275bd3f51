"""The terminal debugger over a program that still runs."""

import asyncio
import queue
import signal
import threading
import time
from types import SimpleNamespace

import pytest
from driving_live import PATIENCE, is_collected

from gviz.cli.debugger import Launcher
from gviz.cli.program_run import Program
from gviz.explain.why import why
from gviz.live.debugger_side import OutputWritten
from gviz.tui import debug_live
from gviz.tui.app import ScreenApp
from gviz.tui.config import Config
from gviz.tui.drawing import node_details as node_panel
from gviz.tui.glyphs import glyphs
from gviz.tui.live_session import Live
from gviz.tui.screens.live_screen import LiveScreen
from gviz.tui.session_options import LiveSessionOptions, Title
from gviz.tui.widgets.graph_canvas import GraphCanvas
from gviz.tui.widgets.node_panel import NodePanel
from gviz.tui.widgets.status_rows import StatusRow
from gviz.tui.widgets.tape_panel import Tape

PROGRAM = """\
import gviz.engine as torch
x = torch.tensor(2.0, requires_grad=True)
y = x * x
z = y * x
z.backward()
print("first")
if {loops}:
    while True: pass
name = input("name? ")
print("hello", name)
"""


class Running:
    """A screen over a program, and the pilot that presses its keys."""

    def __init__(self, screen, pilot):
        self.screen, self.pilot, self.live = screen, pilot, screen.live

    async def press(self, *keys):
        await self.pilot.press(*keys)

    async def until(self, condition):
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, (self.screen.time, self.screen.stop, self.screen.remark)
            await self.pilot.pause(0.01)
        await self.pilot.pause()

    async def stands_at(self, n):
        await self.until(lambda: not self.live.running and self.screen.moment.n == n == self.screen.length)

    @property
    def status(self):
        return "".join(text for text, _ in self.screen.query_one(StatusRow).line(120))


def debugged(scenario, tmp_path, *, text=PROGRAM, loops=False, screen=LiveScreen, config=None, **options):
    program = tmp_path / "program.py"
    program.write_text(text.format(loops=loops))

    async def run():
        launch = Launcher(Program((str(program),), output=tmp_path / "trace.gviz"))
        chosen = LiveSessionOptions(launch, **{"first": "next", "title": Title("program.py"), **options})
        made = screen(chosen, glyphs(ascii=False), config=config)
        async with ScreenApp(made, ascii=False, theme=None).run_test(size=(120, 40)) as pilot:
            await scenario(Running(made, pilot))
        return made

    shown = asyncio.run(run())
    assert is_collected(shown.live.program.pid)
    return shown


def test_steps_at_the_live_end_let_the_program_run(tmp_path):
    async def scenario(running):
        await running.stands_at(1)
        assert "LIVE FORWARD" in running.status
        assert "paused at its first node" in running.status, "nobody has pressed n"
        await running.press("n", "n")
        await running.stands_at(3)
        assert "LIVE" in running.status
        assert "next ►" in running.status
        assert len(running.screen.query_one(GraphCanvas).drawing.shape.places) == 3
        assert running.screen.query_one(Tape)._count >= 4
        await running.press("N")
        assert "REPLAY" in running.status
        assert len(running.live.timeline) == 3
        await running.press("c")
        assert (running.screen.moment.n, len(running.live.timeline)) == (3, 3)
        assert running.screen.remark == "stopped at the live end: the program is paused here; s, n, f and c resume it"
        await running.press("c")
        await running.until(lambda: "A answers: name?" in running.status)

    debugged(scenario, tmp_path)


LOOP = """\
import gviz.engine as torch
from gviz.engine import nn

net = nn.Sequential(*[nn.Sequential(nn.Linear(2, 2), nn.Tanh()) for _ in range(4)])
for _ in range(3):
    loss = nn.functional.cross_entropy(net(torch.ones(2, 2)), torch.tensor([0, 1]))
    loss.backward()
"""


def test_next_passes_folded_modules_and_calls_of_a_running_program_as_in_its_recording(tmp_path):
    async def scenario(running):
        live, folds = running.live, running.screen.session.folds
        await running.stands_at(1)
        await running.press("V", "V")
        assert folds.level == "modules"
        await running.press("right_curly_bracket")
        await running.until(lambda: not live.running and len(live.timeline) > 1)
        stops = []
        while live.alive:
            await running.press("n")
            await running.until(lambda: not live.running)
            stops.append(running.screen.cursor.position)
        timeline, first = live.timeline, stops[0]
        expected, n = [first], first
        while (n := folds.next_node(timeline, n)) < len(timeline):
            expected.append(n)
        second = timeline.iterations[1].start
        assert [n for n in stops[:-1] if n > second] == [n for n in expected if n > second]
        assert stops[:2] == expected[:2]

    debugged(scenario, tmp_path, text=LOOP)


UNEVEN = """\
import gviz.engine as torch
from gviz.engine import nn

class Repeated(nn.Module):
    def forward(self, x, times):
        for _ in range(times):
            x = torch.tanh(x)
        return x

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.repeated = Repeated()

    def forward(self, x, times):
        return self.repeated(x * 2, times) * 3 + 1

net, w = Net(), torch.ones(2, requires_grad=True)
for times in (5, 5, 2):
    net(w, times).sum().backward()
"""


def test_next_stops_at_the_end_of_a_box_that_has_fewer_nodes_than_in_the_iteration_before(tmp_path):
    async def scenario(running):
        live, folds = running.live, running.screen.session.folds
        await running.stands_at(1)
        folds.level = "modules"
        stops, early = [], set()
        while live.alive:
            await running.press("n")
            await running.until(lambda: not live.running)
            stops.append(running.screen.cursor.position)
            if live.alive and stops[-1] < len(live.timeline):
                early.add(stops[-1])
        timeline = live.timeline
        last = timeline.iterations[2]
        expected, n = [], last.start
        while (n := folds.next_node(timeline, n)) < len(timeline):
            expected.append(n)
        box = next(n for n in expected if timeline.info(timeline.at(n).actor).scope == "Net.repeated")
        assert box in early
        assert [n for n in stops if last.start <= n <= box] == [n for n in expected if n <= box]
        assert {n for n in expected if n <= stops[-1]} <= {*stops}
        assert stops[-1] in expected  # the program ended after this box, which has fewer nodes
        assert "the program has ended" in running.screen.remark

    debugged(scenario, tmp_path, text=UNEVEN)


def test_a_program_that_begins_with_data_says_how_to_get_on(tmp_path):
    async def scenario(running):
        await running.stands_at(1)
        assert running.screen.remark.startswith("Data comes first. }")
        assert len(running.screen.remark) <= 78  # it fits into 80 columns
        await running.press(*":until program.py:5", "enter")
        await running.stands_at(4)
        assert not running.screen.remark
        assert not running.live.cursor.breakpoints.listed

    debugged(scenario, tmp_path, text=PROGRAM.replace("x = torch", "d = torch.tensor(1.0)\nx = torch"))


def test_a_key_that_has_to_wait_is_answered(tmp_path):
    async def scenario(running):
        await running.stands_at(1)
        assert not running.screen.remark
        await running.press("c")
        await running.until(lambda: running.live.timeline.printed(len(running.live.timeline)))
        await running.press("n")
        assert "kept until the program pauses" in running.screen.remark
        await running.press("ctrl+c")
        await running.until(lambda: not running.live.running)
        assert not running.screen.remark

    debugged(scenario, tmp_path, loops=True)


def test_keys_typed_ahead_are_carried_out_one_after_the_other(tmp_path):
    async def scenario(running):
        await running.until(lambda: running.screen.time == "LIVE")
        await running.press("s", "s", "s", "N", "greater_than_sign")
        await running.stands_at(4)

    debugged(scenario, tmp_path)


def test_a_program_that_asks_is_answered_and_its_end_is_said(tmp_path):
    async def scenario(running):
        await running.stands_at(1)
        await running.press("c")
        await running.until(lambda: "A answers: name?" in running.status)
        assert "RUNNING" in running.status
        await running.press("A", *"Ada", "enter")
        await running.until(lambda: not running.live.alive)
        assert running.screen.remark == "the program has ended with exit code 0"
        assert "REPLAY END" in running.status
        printed = [event.text for _, event in running.live.timeline.printed(len(running.live.timeline))]
        assert printed == ["first\n", "hello Ada\n"]

    debugged(scenario, tmp_path)


@pytest.mark.parametrize(
    ("answer", "states", "stopped"),
    [
        ("q", {"paused"}, False),
        ("escape", {"paused"}, False),
        ("s", {"ended"}, True),
        ("k", {"released", "ended"}, False),  # it goes on, and may be through by now
    ],
)
def test_a_program_is_ended_by_the_answer_that_says_so_and_by_no_other(tmp_path, answer, states, stopped):
    async def scenario(running):
        await running.stands_at(1)
        await running.press("q")
        assert running.screen.remark == "The program is paused. s: stop it · k: let it run without gviz · Esc: stay"
        assert len(running.screen.remark) <= 78  # it fits into 80 columns
        await running.press(answer)
        assert running.live.program.state in states
        assert running.live.program.stopped == stopped
        if answer != "k":  # what a kept one has come to since is no longer read
            assert running.live.alive == (states == {"paused"})
        running.live.program._kill(signal.SIGKILL)  # one that is kept outlives the screen
        await running.until(lambda: running.live.program.ended)

    debugged(scenario, tmp_path)


def test_findings_so_far_are_looked_for_again_when_the_program_has_ended(tmp_path):
    def on_screen(running):
        strips = running.screen.app.screen._compositor.render_strips()
        return " ".join(" ".join("".join(part.text for part in strip) for strip in strips).replace("│", " ").split())

    async def scenario(running):
        await running.stands_at(1)
        await running.press("c")
        await running.until(lambda: "A answers: name?" in running.status)
        await running.press("exclamation_mark")
        await running.until(lambda: "so far: ask again when it has stopped" in on_screen(running))
        running.live.program.type("someone")
        await running.until(lambda: not running.live.alive)
        await running.until(lambda: "nothing found" in on_screen(running))
        assert "so far" not in on_screen(running)

    debugged(scenario, tmp_path)


def test_ctrl_c_pauses_an_endless_loop(tmp_path):
    async def scenario(running):
        await running.stands_at(1)
        await running.press("c")
        await running.until(lambda: running.live.timeline.printed(len(running.live.timeline)))
        await running.press("ctrl+c")
        await running.until(lambda: "LIVE" in running.status)
        assert "paused at program.py:" in running.status
        await running.press("q")
        assert "s: stop it" in running.screen.remark
        await running.press("escape")
        assert running.live.alive
        await running.press("q", "s")

    screen = debugged(scenario, tmp_path, loops=True)
    assert screen.live.program.stopped


def test_before_its_first_node_a_program_is_starting(tmp_path, monkeypatch):
    async def scenario(running):
        await running.pilot.pause()
        assert running.screen.query_one(GraphCanvas)._nothing() == " Starting: no tensors yet"
        text = "".join(text for line in nothing(running) for text, _ in line)
        assert text.startswith("Starting: no tensors yet")

    monkeypatch.setattr(Live, "begin", lambda self, mode: None)
    debugged(scenario, tmp_path)


def test_a_program_that_cannot_be_read_is_no_program_that_starts(tmp_path):
    async def scenario(running):
        await running.until(lambda: not running.live.alive)
        await running.until(lambda: running.screen.query_one(GraphCanvas).empty_text == " no nodes were recorded")

    debugged(scenario, tmp_path, text="x = = 3")


def test_a_program_without_any_event_has_ended_and_does_not_start(tmp_path):
    async def scenario(running):
        await running.until(lambda: not running.live.alive)
        await running.until(lambda: running.screen.query_one(GraphCanvas).empty_text == " no nodes were recorded")
        panel = running.screen.query_one(NodePanel)
        await running.until(lambda: "".join(text for text, _ in panel.row(0)).startswith("This recording has no"))
        assert "end of recording" in running.status
        assert running.screen.remark == "the program has ended with exit code 0"

    debugged(scenario, tmp_path, text="pass")


def test_a_program_that_runs_from_its_start_shows_what_it_made_first(tmp_path):
    async def scenario(running):
        await running.until(lambda: running.screen.length)
        assert "RUNNING" in running.status
        assert running.screen.cursor.selected == 1
        await running.press("ctrl+c")
        await running.until(lambda: "LIVE" in running.status)

    debugged(scenario, tmp_path, loops=True, first="run")


def nothing(running):
    about = node_panel.Subject(running.live.timeline, running.screen.moment, 0, 80, glyphs(ascii=False))
    return node_panel._nothing(about)


def test_what_the_running_pass_has_not_come_to_is_not_called_cut_off(tmp_path):
    async def scenario(running):
        await running.stands_at(1)
        await running.press("n", "n", "s")
        await running.stands_at(4)
        timeline = running.live.timeline
        told = why(timeline, running.screen.moment, timeline.nodes[0], "grad").text
        assert told == "the backward pass has not come to #1 x yet"

    debugged(scenario, tmp_path)


def test_commands_for_a_program_that_has_ended_are_refused(tmp_path):
    async def scenario(running):
        await running.stands_at(1)
        await running.press(":", *"kill", "enter")
        await running.until(lambda: not running.live.alive)
        for name in ("kill", "detach", "interrupt", "type"):
            await running.press("escape", ":", *name, "enter")
            await running.until(lambda: "the program has ended (" in running.screen.remark)

    debugged(scenario, tmp_path)


def test_a_breakpoint_of_the_command_line_is_set_once(tmp_path):
    async def scenario(running):
        await running.stands_at(3)
        assert "yet" not in running.screen.remark
        assert [one.number for one in running.screen.cursor.breakpoints.listed] == [1]

    debugged(scenario, tmp_path, opening=("break #3",))


def test_what_never_came_up_is_said_with_the_end(tmp_path):
    async def scenario(running):
        await running.until(lambda: not running.live.alive)
        assert running.screen.remark == "no nan came up; the program has ended with exit code 0"

    debugged(scenario, tmp_path, text="import gviz.engine as torch\nx = torch.ones(2)\n", opening=("break on nan",))


def test_a_report_on_its_way_while_the_screen_opens_is_heard(tmp_path, monkeypatch):
    class OnItsWay(queue.SimpleQueue):
        """Where a thread comes to put something in only when the screen has looked."""

        def put(self, report):
            assert looked.wait(PATIENCE)
            super().put(report)

    class Late(LiveScreen):
        def on_mount(self, event=None):
            self._reports = OnItsWay()
            threading.Thread(target=self._report, args=(OutputWritten(b"more"),)).start()
            super().on_mount(event)

    async def scenario(running):
        await running.pilot.pause()
        looked.set()
        await running.until(lambda: running.live._pace.question == "more")

    looked = threading.Event()
    monkeypatch.setattr(Live, "begin", lambda self, mode: None)  # so that it says nothing later
    debugged(scenario, tmp_path, screen=Late)


def test_the_opening_sets_breakpoints_and_its_commands_wait_for_the_program(tmp_path):
    async def scenario(running):
        await running.stands_at(3)
        assert running.screen.stop.reason.words == "breakpoint 1"

    debugged(scenario, tmp_path, opening=("break #3",))


def test_commands_wait_until_the_program_stands_still(tmp_path):
    async def scenario(running):
        await running.stands_at(3)

    debugged(scenario, tmp_path, commands=("n", "n"))


def test_another_run_has_the_same_breakpoints(tmp_path):
    async def scenario(running):
        await running.stands_at(1)
        await running.press(":", *"break mul if value > 5", "enter")
        await running.press("c")
        await running.stands_at(3)
        await running.press("ctrl+r")

    screen = debugged(scenario, tmp_path)
    assert screen.restarts
    again = screen.next_run((80, 24))
    assert [one.stop.text for one in again.cursor.breakpoints.listed] == ["mul if value > 5"]
    again.live.program.stop()


def test_the_keys_of_the_user_are_those_of_the_live_screen_and_of_the_next_run(tmp_path):
    async def scenario(running):
        await running.stands_at(1)
        await running.press("y")
        await running.stands_at(2)
        again = running.screen.next_run((80, 24))
        assert again.session.keys["time.step"] == ("y",)
        again.live.program.stop()

    debugged(scenario, tmp_path, config=Config(keys={"time.step": "y"}))


def test_ctrl_c_between_two_runs_does_not_end_the_debugger(monkeypatch):
    class Screen:
        restarts, live = True, SimpleNamespace(program=None)

        def next_run(self, size):
            signal.raise_signal(signal.SIGINT)
            self.restarts = False
            return self

    monkeypatch.setattr("gviz.tui.screens.live_screen.LiveScreen", lambda *_, **__: Screen())
    monkeypatch.setattr("gviz.tui.app.ScreenApp", lambda *_, **__: SimpleNamespace(theme=None))
    monkeypatch.setattr("gviz.tui.app.run", lambda app: None)
    monkeypatch.setattr("gviz.tui.live_session.code_of", lambda program: 0)
    before = signal.getsignal(signal.SIGINT)
    assert debug_live(None) == 0
    assert signal.getsignal(signal.SIGINT) is before
