"""The command language of both front ends: every command, declared once, with who carries it out.

The parser, the help, completion, the palette, line mode and the screen all read this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NoReturn

from gviz.errors import GvizError
from gviz.query.vocabulary import A_MOMENT
from gviz.trace import navigation
from gviz.tui.arrival import Arrival
from gviz.tui.commands import (
    asking,
    branching,
    breaks,
    comparing,
    copying,
    exporting,
    folding,
    gradchecking,
    informing,
    listing,
    looking,
    outside,
    reporting,
    saving,
)
from gviz.tui.commands.kinds import (
    moves,
    moves_by_nodes,
    runs_on,
    said,
    with_asker,
    with_breakpoints,
    with_cursor,
    with_session,
)
from gviz.tui.cursor import Cursor
from gviz.tui.folds import Folds
from gviz.tui.language.command import Command, FrontEnd, Look, Said, Spec
from gviz.tui.session import Session


def _jump(session: Session, command: Command) -> Arrival:
    """``jump`` skips code in gdb and pdb; here nothing runs, and that is said once."""
    arrival = session.cursor.goto(command.argument)
    if "jump" in session.told:
        return arrival
    session.told.add("jump")
    return replace(arrival, said=("jump runs nothing and skips nothing: it is goto in this recording", *arrival.said))


def _commands(session: Session, command: Command) -> Said:
    raise GvizError("commands cannot be given here", hint="type it in the prompt", exit_code=2)


def _help(session: Session, command: Command) -> Look | Said:
    from gviz.tui.language import parsing  # it reads this table

    return parsing.help_for(command.argument)


def _of_a_program(session: Session, command: Command) -> NoReturn:
    hint = "gviz run SCRIPT holds one; goto start is the beginning of this recording"
    raise GvizError(f"{command.name} is for a program that gviz run holds", hint=hint, exit_code=2)


_TIME = (
    Spec("step", ("s",), "[N]", "one event forward: a node made, a gradient added, a buffer freed",
         moves(navigation.step, "step"), runs="step"),
    Spec("reverse-step", ("rs",), "[N]", "one event back",
         moves(navigation.reverse_step, "step", backward=True)),
    Spec("next", ("n",), "[N]", "one whole node forward: its backward with all its additions",
         moves_by_nodes(Folds.next_node), runs="next"),
    Spec("reverse-next", ("rn",), "[N]", "one whole node back",
         moves_by_nodes(Folds.reverse_next_node, backward=True)),
    Spec("finish", ("f", "return", "r"), "[N]", "to the end of the current module call, else of the current pass",
         moves(navigation.finish, "finish"), runs="finish"),
    Spec("reverse-finish", ("rf",), "[N]", "to the start of the current module call, else of the current pass",
         moves(navigation.reverse_finish, "finish", backward=True)),
    Spec("continue", ("c", "cont"), "[N]",
         "to the next stop: a breakpoint, an error, the first nan or inf, a mark, else the end",
         runs_on(), runs="continue"),
    Spec("reverse-continue", ("rc",), "[N]", "to the stop before",
         runs_on(backward=True)),
    Spec("phase", (), "[N]", "to the next phase (forward, backward, optimizer, next iteration); phase -1 goes back",
         moves(navigation.phase, "phase"), runs="phase"),
    Spec("reverse-phase", ("rp",), "[N]", "to the phase before",
         moves(navigation.reverse_phase, "phase", backward=True)),
    Spec("until", ("unt", "advance", "run-to"), "[PLACE]",
         "forward to a place, as break takes it (12: line 12), or a stop that comes first; without one finish",
         with_cursor(Cursor.until), runs="continue", runs_bare="finish"),
    Spec("to", ("t",), "[PLACE]", "to the next event of a node, of the selected one without PLACE",
         with_cursor(Cursor.to), runs="to"),
    Spec("reverse-to", ("rt",), "[PLACE]", "to the event before of a node",
         with_cursor(Cursor.reverse_to)),
    Spec("jump", ("j",), "PLACE", "the same as goto: in a recording nothing is run or skipped", _jump),
    Spec("goto", ("@",), "PLACE",
         f"move the time cursor: {A_MOMENT}", with_cursor(Cursor.going)),
    Spec("back", (), "", "back in the list of positions jumped from", lambda session, _: session.cursor.back()),
    Spec("play", (), "[SPEED]", "step by itself: play, play 2x, play stop",
         lambda _, command: FrontEnd("play", command.argument)),
    Spec("mark", (), "NAME [PLACE]", "remember this position, or that of a place; goto 'NAME comes back",
         lambda session, command: Said((session.cursor.bookmark(command.argument),))),
    Spec("find", ("/",), "TEXT", "select the next node that fits: text, #4, @12, op:Mul, nan",
         with_cursor(Cursor.find)),
    Spec("select", (), "PLACE", "look at a node; the time does not move",
         with_cursor(lambda cursor, place: cursor.select(cursor.node_at(place)))),
    Spec("last", (), "EXPR", "back to where a value, gradient or expression changed last: last x.grad",
         with_cursor(Cursor.last_change)),
    Spec("first", (), "EXPR", "to where it changed first", with_cursor(Cursor.first_change)),
)  # fmt: skip

_LOOK = (
    Spec("print", ("p",), "[EXPR]", "an expression at this moment: x.grad * 2, norm(#4); without one the selected node",
         looking.print_expression),
    Spec("pp", (), "EXPR", "the same, with all elements", with_asker(asking.evaluate_all)),
    Spec("eval", ("=",), "EXPR", "the same as print EXPR", with_asker(asking.evaluate)),
    Spec("node", (), "[PLACE]", "a node in full: value, gradient, where it was made", with_session(looking.node)),
    Spec("explain", ("why", "e"), "[PLACE[.grad]] [all]", "why it has this value or gradient, or none; all: every line",
         with_session(looking.explain)),
    Spec("event", (), "", "what happened here, in full", with_session(looking.event)),
    Spec("check", (), "[all]", "what is wrong in this recording, or may be; why PLACE asks about a node",
         with_session(looking.check)),
    Spec("whatis", ("ptype",), "EXPR", "its shape and dtype", with_asker(asking.whatis)),
    Spec("diff", (), "@A [@B]", "which values and gradients differ between two events", with_asker(asking.diff)),
    Spec("compare", (), "[FILE] [[A,]B]",
         "two iterations of this recording (A: this one), or it and another recording, beside each other",
         with_session(comparing.compare)),
    Spec("ranks", (), "FILE [N]", "this rank of a training run and another one in iteration N: what they should share",
         with_session(comparing.ranks)),
    Spec("tape", (), "", "all nodes of this iteration, one row each", with_session(looking.tape)),
    Spec("graph", (), "[PLACE]", "the graph, and a node in it", with_session(looking.graph)),
    Spec("list", ("l",), "[PLACE]",
         "the source around the current line, where a node was made, or of lines (12, 12,20, model.py:12); again: the "
         "lines behind those, list - the ones before", with_session(listing.source), goes_on=True),
    Spec("longlist", ("ll",), "", "the whole function that the current line is in", with_session(listing.function)),
    Spec("where", ("w", "bt", "backtrace"), "[FRAMES]",
         "the call stack of the selected node, or of where the program stands; 2: two innermost frames, -2: outermost",
         with_session(looking.where)),
    Spec("up", ("u",), "[N]", "to the caller of the line that made the selected node", looking.up),
    Spec("down", ("d",), "[N]", "back towards the line that made it", looking.down),
    Spec("info", ("i",), "[WORD]",
         "what there is: breaks, watch, locals, marks, graph, saved, params, next, stats, leaks",
         lambda session, command: said(informing.info(session, command.argument))),
    Spec("passes", (), "", "the iterations and passes, with their events", with_session(looking.passes)),
    Spec("tensor", (), "[PLACE[.grad]]", "all elements as a matrix, how they are spread, and where the large ones lie",
         with_session(looking.tensor)),
    Spec("saved", ("versions",), "[PLACE]", "what a node keeps for backward, and the versions of its memory",
         with_session(looking.saved)),
    Spec("output", (), "", "what the program has printed up to now", with_session(looking.output)),
    Spec("lesson", (), "", "what the program says about itself at its top", with_session(looking.lesson)),
)  # fmt: skip

_SHOWN = (
    Spec("watch", ("display",), "[EXPR]", "show an expression at every stop; without EXPR list what is watched",
         with_asker(asking.watch)),
    Spec("rewatch", (), "NUMBER EXPR", "show another expression in its place", with_asker(asking.rewatch)),
    Spec("unwatch", ("undisplay",), "[NUMBER]", "no longer show it", with_asker(asking.unwatch)),
)  # fmt: skip

_GRAPH = (
    Spec("modules", (), "", "the modules of this iteration, with the length of their gradients",
         with_session(folding.modules)),
    Spec("close", (), "[MODULE|all]", "one box for a module, and one step of next", with_session(folding.close)),
    Spec("open", (), "[MODULE|all]", "the nodes of a module again", with_session(folding.open_)),
    Spec("ancestors", (), "[PLACE]", "only what a node was made from in the graph; all again if it was so",
         with_session(folding.ancestors)),
    Spec("near", (), "[LINES]", "only the nodes within so many lines of the selected one; near 0 shows all",
         with_session(folding.near)),
)  # fmt: skip

_STOPS = (
    Spec("break", ("b",), "[PLACE]",
         "stop at a place (x, #4, 12 or demo.py:12, Mul, net.fc1 where a call begins and a pass comes to it), on EVENT "
         "[PLACE], at change EXPR, where a comparison holds (zeros(h) > 0.9), or at finding [KIND [PLACE]]; each: "
         "if COND",
         with_breakpoints(breaks.add)),
    Spec("tbreak", ("tb",), "[PLACE]", "break that stops once", with_breakpoints(breaks.add_once)),
    Spec("log", (), 'PLACE "TEXT"', "say TEXT with {value}, {grad}, {name} … filled in, and do not stop",
         with_breakpoints(breaks.log)),
    Spec("condition", (), "N [COND]", "let breakpoint N stop only if COND holds: value > 3 and name == 'x'",
         with_breakpoints(breaks.condition)),
    Spec("ignore", (), "N COUNT", "pass by the first COUNT stops of breakpoint N", with_breakpoints(breaks.ignore)),
    Spec("enable", (), "[N ...]", "switch breakpoints on", with_breakpoints(breaks.enable)),
    Spec("disable", (), "[N ...]", "switch breakpoints off", with_breakpoints(breaks.disable)),
    Spec("delete", ("clear", "cl"), "[N ...]", "take breakpoints away", with_breakpoints(breaks.delete)),
    Spec("commands", (), "[NUMBER]",
         "what a breakpoint (the newest) carries out where it stops, line by line up to end", _commands),
)  # fmt: skip

_PROGRAM = (
    Spec("restart", ("run",), "",
         "run the program of gviz run again, with the same breakpoints, watches, closed modules and settings",
         _of_a_program),
    Spec("type", (), "[LINE]", "type a line into the terminal of the program, for its input(); ^D ends its input",
         _of_a_program),
    Spec("interrupt", (), "", "raise KeyboardInterrupt in the program", _of_a_program),
    Spec("detach", (), "", "leave, and let the program run on without gviz", _of_a_program),
    Spec("kill", (), "", "end the program; its recording stays", _of_a_program),
)  # fmt: skip

_WHAT_IF = (
    Spec("whatif", (), "[CHANGE]",
         "what would follow from another number: x = 5, w[0, 1] = 0, grad z = 2; curves for a range, "
         "x = -3..3 --show z,x.grad",
         with_session(branching.what_if)),
    Spec("undo", (), "", "take the last change of whatif back", with_session(branching.undo)),
    Spec("gradcheck", (), "[PLACE]", "whether the gradients a node sent on are what small changes of its inputs say",
         with_session(gradchecking.gradcheck)),
)  # fmt: skip

_OTHER = (
    Spec("copy", ("y",), "[EXPR]",
         "copy a number as Python writes it: value, grad (of the selected node), x.grad * 2; or node, its line; or "
         "script, PyTorch that makes it again, also into a file: copy script FILE",
         with_session(copying.copy)),
    Spec("python", ("!", "interact"), "[EXPR]",
         "a Python shell with the numbers of this moment, which it cannot change; ! EXPR is print EXPR",
         with_session(outside.python)),
    Spec("edit", (), "[PLACE]", "the line that made the selected node, or runs, in $EDITOR",
         with_session(outside.edit)),
    Spec("browse", (), "", "this recording as a page, in the browser", with_session(outside.browse)),
    Spec("report", (), "", "write a report about gviz itself, without values, and say where it is",
         with_session(reporting.report)),
    Spec("export", (), "FILE", "write this moment as a picture: {suffixes}; the branch of whatif: .gviz",
         with_session(exporting.export)),
    Spec("save", (), "[FILE]", "write breakpoints, watches and marks to a file", with_session(saving.save)),
    Spec("load", (), "FILE", "read them again; what it evaluates or carries out is shown first",
         with_session(saving.load)),
    Spec("source", (), "FILE", "carry out the commands of a file", with_session(saving.source)),
    Spec("set", (), "KEY VALUE", "change a setting; show lists them; set x = 5 and set x = -3..3 are whatif",
         with_session(branching.set_)),
    Spec("show", (), "[KEY]", "the settings, or one of them",
         lambda session, command: Said(tuple(session.settings.told(command.argument)))),
    Spec("theme", (), "NAME", "the same as set theme NAME",
         lambda session, command: branching.set_(session, f"theme {command.argument}")),
    Spec("keys", (), "", "which keys do what", with_session(looking.keys)),
    Spec("help", ("h", "?"), "[WORD]", "this list, one command, a word of the screen, or all of them: words", _help),
    Spec("quit", ("q", "exit"), "[!]", "leave; q! stops the program and does not ask",
         lambda _, command: FrontEnd("quit", command.argument)),
)  # fmt: skip

GROUPS: Mapping[str, tuple[Spec, ...]] = {
    "Through time": _TIME,
    "Look and ask": _LOOK,
    "Watch": _SHOWN,
    "The graph": _GRAPH,
    "Stops": _STOPS,
    "A running program": _PROGRAM,
    "What if": _WHAT_IF,
    "Files, settings, help": _OTHER,
}
"""In the order of the help."""
SPECS: tuple[Spec, ...] = tuple(spec for group in GROUPS.values() for spec in group)

REPEATED = frozenset(spec.name for spec in (*_TIME, *_LOOK))
"""What an empty line does again, as in gdb and pdb; what sets something is not done twice."""

BY_NAME = {name: spec for spec in SPECS for name in (spec.name, *spec.aliases)}
