"""What to type instead of the commands of other debuggers: gdb, pdb, lldb, rr, WinDbg."""

from __future__ import annotations

from collections.abc import Mapping


def _each(words: str, instead: str) -> dict[str, str]:
    return dict.fromkeys(words.split(), instead)


INSTEAD: Mapping[str, str] = {
    **_each("si stepi ni nexti stepin step-in", "step is one event, the smallest step"),
    **_each("stepover step-over over", "next is one whole node"),
    **_each("stepout step-out gu", "finish runs to the end of a module call"),
    **_each("start starti", "goto start, restart"),
    **_each("resume", "continue goes to the next stop"),
    **_each("rsi rni reverse-stepi reverse-nexti", "reverse-step is one event back"),
    **_each("when", "event describes what has happened here"),
    **_each("iterations iter epoch", "goto iteration 3, passes lists them"),
    **_each("seek ugo", "goto 12 goes to event 12"),
    **_each("frame", "where, up and down show the call stack"),
    **_each("args locals variables dv", "info locals lists names and values"),
    **_each("retval rv", "node shows the value of a node"),
    **_each("exceptions", "goto error, why error"),
    **_each("po expr expression call inspect", "print EXPR shows a value"),
    **_each("catch", "break on error, break on nan, break on inf"),
    **_each("rwatch awatch", "break change EXPR, break on backward x"),
    **_each("hbreak thbreak breakpoint bp", "break PLACE, tbreak PLACE"),
    **_each("dprintf", 'log PLACE "TEXT"'),
    **_each("silent", 'log PLACE "TEXT" does not stop'),
    **_each("skip", "close MODULE makes one step of it"),
    **_each("stop pause halt", "Ctrl+C pauses the program"),
    **_each("signal handle", "interrupt sends Ctrl+C, kill ends it"),
    **_each("checkpoint record", "goto goes anywhere, mark NAME keeps a moment"),
    **_each("shell make", "Ctrl+Z goes to your shell, fg comes back"),
    **_each("apropos search forward-search", "help, find TEXT"),
    **_each("attach file exec core", "gviz run SCRIPT, gviz open TRACE"),
    **_each("echo printf", 'print EXPR, log PLACE "TEXT"'),
    **_each("alias unalias define document", "source FILE runs commands"),
    **_each("layout tui focus winheight", "v changes the view, Tab the panel"),
    **_each("refresh", "Ctrl+L redraws the screen"),
    **_each("debug", "interact opens Python with these numbers"),
    **_each("history", "the up and down keys step through it"),
}
"""By the typed word. None is a command of gviz, nor the beginning of one."""

INFO_INSTEAD: Mapping[str, str] = {
    **_each("frame stack f", "where shows the call stack"),
    **_each("source line sources", "list shows the source"),
    **_each("registers functions types symbol", "info locals lists names and values"),
    **_each("threads inferiors program", "event, info stats"),
}
"""The same for the words after ``info``."""
