"""Keys typed before the first frame do not show, and the terminal is afterwards as it was."""

import os
import sys
import termios

import pytest

from gviz.tui.terminal import echo_is_off, unechoed, with_echo

LOCAL = 3


@pytest.fixture
def terminal(monkeypatch):
    ours, inner = os.openpty()
    with os.fdopen(ours, "rb"), os.fdopen(inner, "r") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield stdin


def shows(terminal):
    return bool(termios.tcgetattr(terminal)[LOCAL] & termios.ECHO)


def test_nothing_shows_until_the_screen_has_come_and_gone(terminal):
    before = termios.tcgetattr(terminal)
    with unechoed(plain=False):
        assert not shows(terminal)
        assert echo_is_off()
        found = termios.tcgetattr(terminal)
        with_echo(found)
        assert found == before, "what a screen brings back for a shell"
    assert termios.tcgetattr(terminal) == before
    assert not echo_is_off()


def test_what_is_typed_line_by_line_shows(terminal):
    with unechoed(plain=True):
        assert shows(terminal)


def test_a_terminal_without_echo_stays_so(terminal):
    quiet = termios.tcgetattr(terminal)
    quiet[LOCAL] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSANOW, quiet)
    with unechoed(plain=False):
        found = termios.tcgetattr(terminal)
        with_echo(found)
        assert found == quiet
    assert not shows(terminal)
