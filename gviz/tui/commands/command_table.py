"""The command language of both front ends: every command, declared once, with its function.

The parser, the help, completion, the palette, line mode and the screen all read this table. To add a command, write a
function in the file of its group and one `Spec` here. The kind of function decides its arguments: a move through time
(`moves`), the cursor (`with_cursor`), the expressions (`with_asker`), the breakpoints, or the whole session.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import NoReturn

from gviz.errors import GvizError, did_you_mean
from gviz.query_syntax.moment import A_MOMENT, MOMENT_WORDS, is_stretch
from gviz.render.legend import Rows
from gviz.system.cooperative_work import LongWork, WorkProgress, collected
from gviz.trace import stepping
from gviz.trace.timeline import Timeline
from gviz.tui import stop_search
from gviz.tui.breakpoints import Breakpoints
from gviz.tui.commands import (
    breakpoint_commands,
    collapse_commands,
    compare,
    editor_and_browser,
    export_copy,
    expressions,
    info_pages,
    inspection,
    python_shell,
    session_file,
    source_listing,
    what_if,
)
from gviz.tui.cursor import Asker, Cursor, Move
from gviz.tui.drawing.help import about, words_like, words_named, words_page
from gviz.tui.graph_view import Folds
from gviz.tui.language.command import Answer, Command, FrontEnd, Reply, Run, Spec, View, Work
from gviz.tui.language.other_debuggers import INSTEAD
from gviz.tui.session import Session
from gviz.tui.stop_reason import CursorStop
from gviz.tui.styled_lines import Line, line, wrapped
from gviz.values.plain_text import clipped, shown


def _jump(session: Session, command: Command) -> CursorStop:
    """Run ``jump``, which skips code in gdb and pdb; here nothing runs, and a message says so once."""
    stop = session.cursor.goto(command.argument)
    if "jump" in session.shown_once:
        return stop
    session.shown_once.add("jump")
    return replace(
        stop, messages=("jump does not run or skip code: in a recording it is the same as goto", *stop.messages)
    )


def _commands(session: Session, command: Command) -> Answer:
    raise GvizError("commands cannot be used here", hint="type it in the prompt", exit_code=2)


def _help(session: Session, command: Command) -> View | Answer:
    return help_for(command.argument)


def _of_a_program(session: Session, command: Command) -> NoReturn:
    hint = "gviz run SCRIPT starts one; goto start is the beginning of this recording"
    raise GvizError(f"{command.name} needs a running program", hint=hint, exit_code=2)


def moves(move: Move, reason: str, *, backward: bool = False) -> Run:
    """Return a function that moves through time as often as the count says."""
    return lambda session, command: session.cursor.travel_work(move, reason, command.count, backward=backward)


def moves_by_nodes(move: Callable[[Folds, Timeline, int], int], *, backward: bool = False) -> Run:
    """Return a function that moves by whole nodes; a collapsed module counts as one."""
    return lambda session, command: session.cursor.travel_work(
        partial(move, session.folds), "next", command.count, backward=backward
    )


def with_cursor(act: Callable[[Cursor, str], CursorStop | LongWork[CursorStop]]) -> Run:
    """Return a function that moves the cursor to a place."""
    return lambda session, command: act(session.cursor, command.argument)


def answer_of(lines: Iterator[str | WorkProgress]) -> Work:
    """Return the lines of an answer, once all are known."""
    return Answer((*(yield from collected(lines)),))


def with_asker(answer: Callable[[Asker, str, int], Iterator[str | WorkProgress]]) -> Run:
    """Return a function that evaluates at the current moment."""
    return lambda session, command: answer_of(answer(session.cursor.asker, command.argument, session.cursor.position))


def with_breakpoints(change: Callable[[Breakpoints, str, int], Iterator[str | WorkProgress]]) -> Run:
    """Return a function that changes breakpoints; without a place, a new one is set at the selected node."""
    return lambda session, command: answer_of(
        change(session.cursor.breakpoints, command.argument, session.cursor.selected)
    )


def with_session(act: Callable[[Session, str], Reply | Work]) -> Run:
    """Return a function that needs more than one part of the session."""
    return lambda session, command: act(session, command.argument)


def runs_on(*, backward: bool = False) -> Run:
    """Return a function that runs to the next stop, or the previous one, in small pieces of work."""

    def run_on(session: Session, command: Command) -> Work:
        cursor = session.cursor
        yield from stop_search.search_stops(cursor.timeline, cursor.breakpoints, cursor.position, backward=backward)
        return cursor.run_to_stop(command.count, backward=backward)

    return run_on


_TIME = (
    Spec("step", ("s",), "[N]", "one event forward: a node made, a gradient added, a buffer freed",
         moves(stepping.step, "step"), runs="step"),
    Spec("reverse-step", ("rs",), "[N]", "one event back",
         moves(stepping.reverse_step, "step", backward=True)),
    Spec("next", ("n",), "[N]", "one whole node forward: its backward with all its additions",
         moves_by_nodes(Folds.next_node), runs="next"),
    Spec("reverse-next", ("rn",), "[N]", "one whole node back",
         moves_by_nodes(Folds.reverse_next_node, backward=True)),
    Spec("finish", ("f", "return", "r"), "[N]", "to the end of the current module call, else of the current pass",
         moves(stepping.finish, "finish"), runs="finish"),
    Spec("reverse-finish", ("rf",), "[N]", "to the start of the current module call, else of the current pass",
         moves(stepping.reverse_finish, "finish", backward=True)),
    Spec("continue", ("c", "cont"), "[N]",
         "to the next stop: a breakpoint, an error, the first nan or inf, a mark, else the end",
         runs_on(), runs="continue"),
    Spec("reverse-continue", ("rc",), "[N]", "to the previous stop",
         runs_on(backward=True)),
    Spec("phase", (), "[N]", "to the next phase (forward, backward, optimizer, next iteration); phase -1 goes back",
         moves(stepping.phase, "phase"), runs="phase"),
    Spec("reverse-phase", ("rp",), "[N]", "to the previous phase",
         moves(stepping.reverse_phase, "phase", backward=True)),
    Spec("until", ("unt", "advance", "run-to"), "[PLACE]",
         "forward to a place as in break (12: line 12), or to an earlier stop; without PLACE finish",
         with_cursor(Cursor.until), runs="continue", runs_bare="finish"),
    Spec("to", ("t",), "[PLACE]", "to the next event of a node; without PLACE, of the selected one",
         with_cursor(Cursor.to), runs="to"),
    Spec("reverse-to", ("rt",), "[PLACE]", "to the previous event of a node",
         with_cursor(Cursor.reverse_to)),
    Spec("jump", ("j",), "PLACE", "the same as goto: in a recording nothing is run or skipped", _jump),
    Spec("goto", ("@",), "PLACE",
         f"move the time cursor: {A_MOMENT}", with_cursor(Cursor.goto_work)),
    Spec("back", (), "", "back to the position before the last jump", lambda session, _: session.cursor.back()),
    Spec("play", (), "[SPEED]", "step automatically: play, play 2x, play stop",
         lambda _, command: FrontEnd("play", command.argument)),
    Spec("mark", (), "NAME [PLACE]", "remember this position, or that of a place; goto 'NAME comes back",
         lambda session, command: Answer((session.cursor.bookmark(command.argument),))),
    Spec("find", ("/",), "TEXT",
         "select the next node that matches, first in this iteration: a whole name, else a part of one "
         "(*relu* for both), #4, @12, op:mul, nan",
         with_cursor(Cursor.find)),
    Spec("select", (), "PLACE", "look at a node; the time does not move",
         with_cursor(lambda cursor, place: cursor.select(cursor.node_at(place)))),
    Spec("last", (), "EXPR", "back to where a value, gradient or expression changed last: last x.grad",
         with_cursor(Cursor.last_change)),
    Spec("first", (), "EXPR", "to where it first changed", with_cursor(Cursor.first_change)),
)  # fmt: skip

_LOOK = (
    Spec("print", ("p",), "[EXPR]", "an expression at this moment: x.grad * 2, norm(#4); without one the selected node",
         inspection.print_expression),
    Spec("pp", (), "EXPR", "the same, with all elements", with_asker(expressions.evaluate_all)),
    Spec("eval", ("=",), "EXPR", "the same as print EXPR", with_asker(expressions.evaluate)),
    Spec("node", (), "[PLACE]", "a node in full: value, gradient, where it was made", with_session(inspection.node)),
    Spec("explain", ("why", "e"), "[PLACE[.grad]] [all]", "why it has this value or gradient, or none; all: every line",
         with_session(inspection.explain)),
    Spec("event", (), "", "what happened here, in full", with_session(inspection.event)),
    Spec("check", (), "[all]", "everything that is or may be wrong in this recording; why PLACE explains a node",
         with_session(inspection.check)),
    Spec("findings", (), "", "what is wrong, and which parameters have no gradient; Enter goes to one",
         with_session(inspection.findings)),
    Spec("training", (), "", "the loss and the gradients of each module over all passes, as sparklines",
         with_session(inspection.training)),
    Spec("summary", (), "", "what this iteration does, line by line, and what its losses are made from",
         with_session(inspection.summary)),
    Spec("whatis", ("ptype",), "EXPR", "its shape and dtype", with_asker(expressions.whatis)),
    Spec("diff", (), "@A [@B]", "which values and gradients differ between two events", with_asker(expressions.diff)),
    Spec("compare", (), "[FILE] [[A,]B]",
         "two iterations of this recording (A: this one), or it and another recording, side by side",
         with_session(compare.compare)),
    Spec("ranks", (), "FILE [N]", "this rank of a training run and another one in iteration N: what they should share",
         with_session(compare.ranks)),
    Spec("tape", (), "", "the tape: all nodes, one row each; line by line, those of this iteration",
         with_session(inspection.tape)),
    Spec("graph", (), "[PLACE]", "the graph, and a node in it", with_session(inspection.graph)),
    Spec("list", ("l",), "[PLACE]",
         "the source around the current line, where a node was made, or of lines (12, 12,20, model.py:12); again: the "
         "following lines; list -: the lines before", with_session(source_listing.source), continues=True),
    Spec("longlist", ("ll",), "", "the whole function that the current line is in",
         with_session(source_listing.function)),
    Spec("where", ("w", "bt", "backtrace"), "[FRAMES]",
         "the call stack of the selected node, or of the paused program; 2: two innermost frames, -2: outermost",
         with_session(inspection.where)),
    Spec("up", ("u",), "[N]", "to the caller of the line that made the selected node", inspection.up),
    Spec("down", ("d",), "[N]", "back towards the line that made it", inspection.down),
    Spec("info", ("i",), "[WORD]",
         "what there is: breaks, watch, locals, marks, graph, saved, params, next, stats, leaks",
         lambda session, command: answer_of(info_pages.info(session, command.argument))),
    Spec("passes", (), "", "the iterations and passes, with their events", with_session(inspection.passes)),
    Spec("tensor", (), "[PLACE[.grad]]", "all elements as a matrix, with a histogram and a heat map",
         with_session(inspection.tensor)),
    Spec("saved", ("versions",), "[PLACE]", "the saved tensors of a node, and the versions of its memory",
         with_session(inspection.saved)),
    Spec("output", (), "", "what the program has printed up to now", with_session(inspection.output)),
    Spec("lesson", (), "", "the text at the top of the program", with_session(inspection.lesson)),
)  # fmt: skip

_SHOWN = (
    Spec("watch", ("display",), "[EXPR]", "show an expression at every stop; without EXPR list what is watched",
         with_asker(expressions.watch)),
    Spec("rewatch", (), "NUMBER EXPR", "show another expression in its place", with_asker(expressions.rewatch)),
    Spec("unwatch", ("undisplay",), "[NUMBER]", "stop showing it", with_asker(expressions.unwatch)),
)  # fmt: skip

_GRAPH = (
    Spec("modules", (), "", "the modules of this iteration, with the length of their gradients",
         with_session(collapse_commands.modules)),
    Spec("level", (), "[LEVEL]",
         "what has a box in the graph: nodes (each of them), calls (each function call of the program), modules (each "
         "child module; equal ones share a box), auto (what is easy to read); without LEVEL the next one",
         with_session(collapse_commands.level)),
    Spec("close", (), "[MODULE|all]", "collapse a module to one box, and one step of next",
         with_session(collapse_commands.close)),
    Spec("open", (), "[MODULE|all]", "expand a module to its nodes", with_session(collapse_commands.open_)),
    Spec("ancestors", (), "[PLACE]", "show only the ancestors of a node; again: the whole graph",
         with_session(collapse_commands.ancestors)),
    Spec("near", (), "[LINES]", "show only the nodes within LINES lines of the selected one; near 0: the whole graph",
         with_session(collapse_commands.near)),
)  # fmt: skip

_STOPS = (
    Spec("break", ("b",), "[PLACE]",
         "stop at a place (x, #4, 12 or demo.py:12, mul, net.fc1 where a call begins and a pass comes to it), on EVENT "
         "[PLACE], at change EXPR, where a comparison holds (zeros(h) > 0.9), or at finding [KIND [PLACE]]; each: "
         "if COND",
         with_breakpoints(breakpoint_commands.add)),
    Spec("tbreak", ("tb",), "[PLACE]", "a breakpoint that stops once", with_breakpoints(breakpoint_commands.add_once)),
    Spec("log", (), 'PLACE "TEXT"', "show TEXT with {value}, {grad}, {name} … filled in, without stopping",
         with_breakpoints(breakpoint_commands.log)),
    Spec("condition", (), "N [COND]", "stop at breakpoint N only if COND holds: value > 3 and name == 'x'",
         with_breakpoints(breakpoint_commands.condition)),
    Spec("ignore", (), "N COUNT", "skip the first COUNT stops of breakpoint N",
         with_breakpoints(breakpoint_commands.ignore)),
    Spec("enable", (), "[N ...]", "switch breakpoints on", with_breakpoints(breakpoint_commands.enable)),
    Spec("disable", (), "[N ...]", "switch breakpoints off", with_breakpoints(breakpoint_commands.disable)),
    Spec("delete", ("clear", "cl"), "[N ...]", "delete breakpoints", with_breakpoints(breakpoint_commands.delete)),
    Spec("commands", (), "[NUMBER]",
         "the commands that a breakpoint (the newest) runs at its stops, one per line up to end", _commands),
)  # fmt: skip

_PROGRAM = (
    Spec("restart", ("run",), "",
         "run the program of gviz run again, with the same breakpoints, watches, collapsed modules and settings",
         _of_a_program),
    Spec("type", (), "[LINE]", "type a line into the terminal of the program, for its input(); ^D ends its input",
         _of_a_program),
    Spec("interrupt", (), "", "raise KeyboardInterrupt in the program", _of_a_program),
    Spec("detach", (), "", "leave; the program runs on without gviz", _of_a_program),
    Spec("kill", (), "", "end the program; its recording stays", _of_a_program),
)  # fmt: skip

_WHAT_IF = (
    Spec("whatif", (), "[CHANGE]",
         "what would follow from another number: x = 5, w[0, 1] = 0, grad z = 2; curves for a range, "
         "x = -3..3 --show z,x.grad; undo leaves it",
         with_session(what_if.what_if)),
    Spec("undo", (), "", "undo the last change of whatif; after the first one the recording is shown again",
         with_session(what_if.undo)),
    Spec("gradcheck", (), "[PLACE]", "compare the outgoing gradients of a node with finite differences",
         with_session(what_if.gradcheck)),
)  # fmt: skip

_OTHER = (
    Spec("copy", ("y",), "[EXPR]",
         "copy a number as Python writes it: value, grad (of the selected node), x.grad * 2; or node, its line; or "
         "script, PyTorch that makes it again, also into a file: copy script FILE",
         with_session(export_copy.copy)),
    Spec("python", ("!", "interact"), "[EXPR]",
         "a Python shell with the numbers of this moment, which it cannot change; ! EXPR is print EXPR",
         with_session(python_shell.python)),
    Spec("edit", (), "[PLACE]", "open the line that made the selected node, or the running line, in $EDITOR",
         with_session(editor_and_browser.edit)),
    Spec("browse", (), "", "this recording as a page, in the browser", with_session(editor_and_browser.browse)),
    Spec("report", (), "", "write a report about gviz itself, without values, and show its path",
         with_session(export_copy.report)),
    Spec("export", (), "FILE", "write this moment as a picture: {suffixes}; the branch of whatif: .gviz",
         with_session(export_copy.export)),
    Spec("save", (), "[FILE]", "write breakpoints, watches and marks to a file", with_session(session_file.save)),
    Spec("load", (), "FILE", "read such a file; what it evaluates or runs is shown first",
         with_session(session_file.load)),
    Spec("source", (), "FILE", "run the commands of a file", with_session(session_file.source)),
    Spec("set", (), "KEY VALUE", "change a setting; show lists them; set x = 5 and set x = -3..3 are whatif",
         with_session(what_if.set_)),
    Spec("show", (), "[KEY]", "the settings, or one of them",
         lambda session, command: Answer(tuple(session.settings.descriptions(command.argument)))),
    Spec("theme", (), "NAME", "the same as set theme NAME",
         lambda session, command: what_if.set_(session, f"theme {command.argument}")),
    Spec("keys", (), "", "which keys do what", with_session(inspection.keys)),
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
"""Commands that an empty line repeats, as in gdb and pdb; commands that set something are not repeated."""

BY_NAME = {name: spec for spec in SPECS for name in (spec.name, *spec.aliases)}

_VALUE = re.compile(r"#?\w[\w.\[\], :]*")
"""Matches what looks like an expression, which pdb would evaluate and show."""
_ALIKE = 0.7
"""The least likeness of a word that is taken for a typo: ``loss`` is not meant as ``close``."""


def help_for(word: str) -> View | Answer:
    """Return the help: all commands, one of them, or a word on the screen; ``words``: all of these."""
    if word == "words":
        return View("Words", words_page)
    if word not in BY_NAME and (seen := words_like(word) if word else ()):
        return View(f"Words: {shown(word)}", about(seen))
    if word:
        spec = find(word)
        text = f"{written(spec)}: {spec.help_text()}"
        if len(word) > 1 and (seen := words_named(word)):
            return View(f"Words: {shown(word)}", partial(_command_and_words, text, seen))
        return Answer((text,))
    return View("Commands", _page)


def _command_and_words(text: str, rows: Rows, width: int) -> Iterator[Line]:
    """Yield the help of a command, and words of the screen that are called like it."""
    yield from wrapped(line(text), width, 3)
    yield ()
    yield from about(rows)(width)


def _page(width: int) -> Iterator[Line]:
    for title, specs in GROUPS.items():
        yield line((title, "title"))
        for spec in specs:
            yield from wrapped(line((f"  {written(spec)}".ljust(30) + "  ", "key"), spec.help_text()), width, 6)


def written(spec: Spec) -> str:
    """Return a command's name, its short forms, and its arguments."""
    return f"{', '.join((spec.name, *spec.aliases))} {spec.takes}".rstrip()


def find(word: str, rest: str = "") -> Spec:
    """Return the command with a name, a short form, or a unique beginning of a name.

    Raises GvizError for no or several.

    The rest of the line, such as the number in `iteration 3`, may show what the user meant.
    """
    if word in BY_NAME:
        return BY_NAME[word]
    if word.endswith("-") and len(word) > 1:
        return reversed_spec(find(word[:-1]))
    specs = [spec for spec in SPECS if spec.name.startswith(word)]
    if len(specs) == 1:
        return specs[0]
    if specs:
        names = ", ".join(spec.name for spec in specs)
        raise GvizError(f"{word!r} is ambiguous", hint=f"it may mean {names}", exit_code=2)
    raise unknown_command(word, rest)


def unknown_command(word: str, rest: str = "") -> GvizError:
    value = f"print {clipped(word, 30)} shows a value, " if _VALUE.fullmatch(word) else ""
    hint = INSTEAD.get(word.lower()) or _goto_hint(f"{word} {rest}".strip())
    hint = hint or did_you_mean(word, BY_NAME, f"{value}help lists the commands", _ALIKE)
    return GvizError(f"there is no command {clipped(repr(word), 40)}", hint=hint, exit_code=2)


def _goto_hint(moment: str) -> str:
    """Return how to go to a moment that was typed without a command; empty if the text is not a moment."""
    return f"goto {clipped(moment, 40)} goes there" if moment in MOMENT_WORDS or is_stretch(moment) else ""


_OPPOSITES = {"up": "down", "down": "up"}


def reversed_spec(spec: Spec) -> Spec:
    """Return the command in the opposite direction. Raises GvizError if there is none."""
    other = _OPPOSITES.get(spec.name) or spec.name.removeprefix("reverse-")
    backward = BY_NAME.get(other if other != spec.name else f"reverse-{other}")
    if backward is None:
        raise GvizError(f"{spec.name} cannot run backwards", exit_code=2)
    return backward
