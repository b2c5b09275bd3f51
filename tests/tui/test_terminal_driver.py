"""When the debugger stops and goes on with the shell: between two events, because a write may hold a lock."""

import asyncio
import os
import signal
from threading import Event
from time import sleep
from types import SimpleNamespace

import pytest
from textual.events import Key

from gviz.tui.terminal_driver import ForgivingDriver, InputParser


class Driver(ForgivingDriver):
    """Writes down what is done to the terminal."""

    def __init__(self):
        self.done, self.fileno = [], 0
        self.exit_event, self._key_thread = Event(), None
        self._auto_restart = self.has_it = True
        self._must_signal_resume = False
        self._app = SimpleNamespace(_exit=False)

    @property
    def _has_terminal(self):
        return self.has_it

    def suspend_application_mode(self):
        self.done.append("released")
        self.has_it = False

    def start_application_mode(self):
        self.done.append("taken")
        self.has_it = True


@pytest.fixture
def driver(monkeypatch):
    made = Driver()
    monkeypatch.setattr(os, "kill", lambda pid, number: made.done.append(signal.Signals(number).name))
    monkeypatch.setattr(os, "tcgetpgrp", lambda file: os.getpgrp())
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    return made


def after(driver, handle):
    """What has been done when the handlers return, and what after the next events."""

    async def run():
        driver.done.clear()
        driver._loop = asyncio.get_running_loop()
        handle()
        at_once = list(driver.done)
        for _ in range(3):
            await asyncio.sleep(0)
        return at_once, driver.done[len(at_once) :]

    return asyncio.run(run())


def test_a_continued_debugger_takes_the_terminal_at_the_next_event_and_once(driver):
    def continued_twice():
        driver._sigcont_application()
        driver._sigcont_application()

    assert after(driver, continued_twice) == ([], ["released", "taken"])


def test_a_stopped_debugger_releases_the_terminal_at_the_next_event(driver):
    assert after(driver, driver._sigtstp_application) == ([], ["released", "SIGTSTP", "taken"])


def test_both_while_an_editor_has_the_terminal(driver):
    driver._auto_restart = driver.has_it = False
    assert after(driver, driver._sigtstp_application) == (["SIGTSTP"], [])
    assert after(driver, driver._sigcont_application) == ([], [])


def test_an_application_that_exits_takes_the_terminal_no_more(driver):
    driver._app._exit = True
    assert after(driver, driver._sigcont_application) == ([], [])
    assert after(driver, driver._sigtstp_application) == ([], ["SIGTSTP"])


def test_without_a_running_event_loop_it_stops_at_once(driver):
    driver._loop = asyncio.new_event_loop()
    driver._sigcont_application()
    driver._sigtstp_application()
    driver._loop.close()
    assert driver.done == ["released", "SIGTSTP", "taken"]


def test_one_in_the_background_stops_again(driver, monkeypatch):
    monkeypatch.setattr(os, "tcgetpgrp", lambda file: os.getpgrp() + 1)
    assert after(driver, driver._sigcont_application) == ([], ["SIGSTOP"])


PASTE = "\x1b[200~a b\x1b[201~"
CUT = PASTE[:-1]


def read(*parts):
    """The keys and pastes of what is read part by part; a number is so many looks without input."""
    parser = InputParser(debug=False)
    messages = []
    for part in parts:
        for _ in range(part if isinstance(part, int) else 1):
            sleep(0.11 if part == 1 else 0)  # Textual waits so long for the rest of an escape sequence
            messages += parser.tick() if isinstance(part, int) else parser.feed(part)
    return [message.key if isinstance(message, Key) else f"<{message.text}>" for message in messages]


@pytest.mark.parametrize(
    ("parts", "keys"),
    [
        ((PASTE, "x"), ["<a b>", "x"]),
        ((PASTE, 60, "x"), ["<a b>", "x"]),
        ((PASTE + PASTE, "x"), ["<a b>", "<a b>", "x"]),
        ((*PASTE, "x"), ["<a b>", "x"]),
        (("\x1b[200~a", 40, " b\x1b[201~", "x"), ["<a b>", "x"]),
        (("\x1b[200~a b", "\x03", "x"), ["<a b>", "ctrl+c", "x"]),
        (("\x1b[200~a b\x03x", "\x03"), ["<a b\x03x>", "ctrl+c"]),
        (("\x1b[200~a b", "\x1b", 1, 1, "x"), ["<a b>", "escape", "x"]),
        (("\x1b[200~a b", "\x1b", "[201~", 1, "x"), ["<a b>", "x"]),
        (("\x1b[200~a b", 50, "x"), ["<a b>", "x"]),
        (("\x1b[200~a b", 49, "\x1b[201~", "x"), ["<a b>", "x"]),
        (("\x1b[200~a b", 49, " ", 49, "c\x1b[201~", "x"), ["<a b c>", "x"]),
        (("\x03", "x", "\x1b", 1), ["ctrl+c", "x", "escape"]),
    ],
)
def test_a_paste_whose_end_is_lost_takes_no_further_keys(parts, keys):
    assert read(*parts) == keys


@pytest.mark.parametrize("then", [("\x03",), ("\x1b", 1, 1), (50,)])
def test_a_paste_whose_end_was_cut_takes_no_further_keys(then):
    keys = read(CUT, "/", "\x1b[H", *then, "x", PASTE)
    assert keys[-2:] == ["x", "<a b>"]


def test_the_parser_survives_a_report_that_it_does_not_know():
    assert read("a\x1b[57344;1:1;;;;u\x1b[<0;0;0Mb", 1, "c")[-2:] == ["b", "c"]
