"""The parts of the debugger's screen work without it: each is given only what it asks of a screen."""

import importlib
import pkgutil

from stories import demo
from textual.widget import Widget

from gviz.live.protocol import CallSite
from gviz.query_syntax.stop_condition import stop
from gviz.system.cooperative_work import finished
from gviz.tui import widgets
from gviz.tui.cursor import SELECTIONS, Cursor
from gviz.tui.glyphs import UNICODE
from gviz.tui.language.command import work
from gviz.tui.language.parser import spec_of
from gviz.tui.screens.controller import PLAY_SECONDS, Player, apply_setting
from gviz.tui.screens.key_and_row_actions import toggle_line, toggle_node
from gviz.tui.screens.prompt_control import PROMPTS
from gviz.tui.session import Session
from gviz.tui.session_options import Title
from gviz.tui.widgets.panel_messages import LinePointed


class Clock:
    """A screen that only keeps time."""

    def __init__(self, at):
        self.session = Session(Cursor(demo(), at), UNICODE, Title("demo.py"))
        self.seconds, self.stopped, self.said = [], 0, []

    def set_interval(self, seconds, _):
        self.seconds.append(seconds)
        return self

    def stop(self):
        self.stopped += 1

    def run_command(self, command):
        finished(work(spec_of(command).run(self.session, command)))

    def follow_settings(self):
        self.said.append("settings")

    def show_remark(self, remark):
        self.said.append(remark)


def test_a_player_steps_until_there_is_nothing_more():
    screen = Clock(at=len(demo()) - 1)
    player = Player(screen)
    apply_setting(screen, "speed", "2x")
    player.play()
    player.play(4)
    assert screen.seconds == [PLAY_SECONDS / 2, PLAY_SECONDS / 4]
    player.play_on()
    assert player.is_playing
    player.play_on()
    assert (player.is_playing, screen.stopped) == (False, 2)


def test_a_breakpoint_comes_and_goes_where_one_points():
    screen = Clock(at=7)
    breakpoints = screen.session.cursor.breakpoints
    screen.session.cursor.select(0)
    toggle_node(screen)
    assert not breakpoints.listed
    screen.session.cursor.select(4)
    toggle_node(screen)
    assert screen.said == ["settings", "breakpoint 1 at #4"]
    toggle_node(screen)
    assert screen.said[2:] == ["settings", "no breakpoint at #4 any more"]
    pointed = LinePointed(screen.session.timeline.info(4).frames[0].path, 6)
    toggle_line(screen, pointed)
    assert [one.stop.text for one in breakpoints.listed] == ["demo.py:6"]
    toggle_line(screen, pointed)
    assert not breakpoints.listed


def test_a_line_switches_all_calls_in_it_off_and_on():
    screen = Clock(at=7)
    breakpoints = screen.session.cursor.breakpoints
    path = screen.session.timeline.info(4).frames[0].path
    calls = [breakpoints.call(CallSite(call, path, 6)) for call in ("breakpoint()", "show()")]
    toggle_line(screen, LinePointed(path, 6))
    assert [one.enabled for one in calls] == [False, False]
    toggle_line(screen, LinePointed(path, 6))
    assert [one.enabled for one in calls] == [True, True]


def test_a_prompt_opens_with_what_is_asked_for():
    session = Clock(at=12).session
    session.cursor.select(3)
    assert PROMPTS["print"](session) == (":", "print ", session.subject)
    assert PROMPTS["break"](session) == (":", "break ", session.subject)
    session.cursor.breakpoints.toggle(stop("#3"))
    assert PROMPTS["break"](session)[1].startswith("condition 1")
    assert PROMPTS["export"](session)[1] == "export demo-12.svg"


def test_the_ends_of_the_tape_are_its_first_and_last_node():
    cursor = Cursor(demo(), 12)
    nodes = cursor.timeline.nodes
    SELECTIONS["edge"](cursor, -1)
    assert cursor.selected == nodes[-1]
    SELECTIONS["edge"](cursor, 0)
    assert cursor.selected == nodes[0]


def test_every_watcher_of_a_widget_watches_a_reactive_of_it():
    """Textual calls ``watch_x`` for a reactive ``x``, and never one that watches another name."""
    modules = [module.name for module in pkgutil.iter_modules(widgets.__path__)]
    modules = [importlib.import_module(f"{widgets.__name__}.{name}") for name in modules]
    found = {each for module in modules for each in vars(module).values() if isinstance(each, type)}
    kinds = [each for each in found if issubclass(each, Widget) and each.__module__.startswith(widgets.__name__)]
    watched = {(kind, name) for kind in kinds for name in dir(kind) if name.startswith("watch_")}
    assert len(watched) > 100
    assert not [(kind, name) for kind, name in watched if name.removeprefix("watch_") not in kind._reactives]
