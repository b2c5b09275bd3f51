"""The commands that only a program under control has: what they do to it, and what follows from that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from gviz.errors import GvizError
from gviz.live.controlled import ControlledProgram
from gviz.tui.live import Live

END_OF_INPUT = "^D"
"""What is typed where nothing more will be."""

Then = Literal["go on", "wait", "leave", "restart"]
"""What a front end does next; it waits until the program stands still or has ended."""


@dataclass(frozen=True, slots=True)
class ProgramAct:
    """One command: `do` gets the text behind its name."""

    do: Callable[[ControlledProgram, str], None]
    then: Then
    said: str = ""
    needs_program: bool = True


def _type(program: ControlledProgram, text: str) -> None:
    if text == END_OF_INPUT:
        program.hang_up()
    else:
        program.type(text)


ACTS = {
    "type": ProgramAct(_type, "go on", "typed; the program reads it when it runs on."),
    "interrupt": ProgramAct(lambda program, _: program.interrupt(), "wait"),
    "detach": ProgramAct(lambda program, _: program.let_go(), "leave", "the program runs on without the debugger."),
    "kill": ProgramAct(lambda program, _: program.stop(), "wait"),
    "restart": ProgramAct(lambda program, _: None, "restart", needs_program=False),
}


def carried_out(live: Live, name: str, text: str) -> ProgramAct:
    """Do to the program what one of `ACTS` says; GvizError if there is no program any more."""
    act = ACTS[name]
    if act.needs_program and not live.alive:
        what = "the program runs by itself" if live.program.state == "let go" else "the program has ended"
        raise GvizError(what, hint="restart (ctrl+r) runs it again", exit_code=2)
    act.do(live.program, text)
    return act
