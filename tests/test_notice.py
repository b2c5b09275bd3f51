"""What gviz says beside a program never costs that program anything."""

import io
import sys

import pytest

from gviz.system import notice


class Full(io.StringIO):
    def write(self, text):
        raise OSError(28, "No space left on device")


def closed():
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stream", [None, Full(), closed()], ids=["none", "full", "closed"])
def test_where_nobody_can_be_told_the_program_goes_on(stream, monkeypatch, capsys):
    monkeypatch.setattr(sys, "__stderr__", stream)
    notice.show("gviz: warning: something")
    assert capsys.readouterr() == ("", "")


def test_every_line_is_made_harmless(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "__stderr__", stream)
    notice.show("one\x1b[31m", "two")
    assert stream.getvalue() == "one\\x1b[31m\ntwo\n"
