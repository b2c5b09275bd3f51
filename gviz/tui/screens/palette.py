"""The command palette: every command of the table, common requests of several words, and the actions of keys."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial

from textual import events
from textual.await_complete import AwaitComplete
from textual.command import Command, CommandInput, CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.style import Style
from textual.widgets.option_list import Option

from gviz.tui.commands.command_table import SPECS
from gviz.tui.keymaps import ACTS, KEYMAPS, Keys, first
from gviz.tui.screens.session_screen import SessionScreen
from gviz.tui.themes import SHORT

Entry = tuple[str, str, str]
"""The title, the line of the command language (if it ends in a blank, the user completes it), and a description."""

_REQUESTS: tuple[Entry, ...] = (
    ("Go to first NaN", "goto nan", "where the first nan or inf appears"),
    ("Go to first error", "goto error", "where the program failed"),
    ("Go to next phase", "phase", "where the next forward, backward or optimizer part begins"),
    ("Go to end", "goto end", "the last event"),
    ("Go to event…", "goto @", "by its number"),
    ("Run to node…", "until ", "forward to a name, line or operation"),
    ("Last change of…", "last ", "where a value or gradient changed"),
    ("Break on NaN", "break on nan", "stop where a nan appears"),
    ("Break on accumulation", "break on accumulate", "stop whenever a .grad is added to"),
    ("Break on in-place change", "break on inplace", "stop whenever memory is written"),
    ("Break on optimizer step", "break on optimizer", "stop whenever an optimizer starts to step"),
    ("Break on free", "break on free", "stop whenever saved tensors are released"),
    ("Edit breakpoints", "info break", "list them"),
    ("Clear all breakpoints", "delete", "delete them"),
    ("Explain this node", "explain", "why it has this value"),
    ("Copy value", "copy value", "of the selected node, as Python writes it"),
    ("Copy gradient", "copy grad", "of the selected node, as Python writes it"),
    ("Copy node", "copy node", "its number, name, line, value and gradient"),
    ("Copy script", "copy script", "PyTorch that makes the selected node again, and its gradients"),
    ("Copy expression…", "copy ", "such as x.grad * 2"),
    ("Compare with event…", "diff @", "which values and gradients differ"),
    ("Compare iterations or recordings…", "compare ", "two iterations as 1,2, or another trace file"),
    ("What if…", "whatif ", "what would follow from another number: x = 5"),
    ("Check this node's gradients", "gradcheck", "against small changes of its inputs"),
    ("Watch…", "watch ", "show an expression at every stop"),
    ("Stop when an expression changes…", "break change ", "norm(w.grad) > 3"),
    ("Collapse all modules", "close all", "one box for each"),
    ("Expand all modules", "open all", "all their nodes"),
    ("Reduce motion", "set motion off", "no smooth scrolling"),
    ("Open in browser", "browse", "this recording as a page with every step"),
    ("Report a problem", "report", "a file about gviz itself, without values"),
    ("Save session", "save", "breakpoints, watches and marks"),
    ("Load session…", "load ", "read them again"),
    *((f"Keymap: {name}", f"set keymap {name}", "which keys do what") for name in KEYMAPS),
    *((f"Colours: {name}", f"theme {name}", "the theme") for name in SHORT),
)


def entries(keys: Keys) -> Iterator[Entry]:
    """Yield all entries of commands, with their keys."""
    yield from _REQUESTS
    by_action = {act.action: act.id for act in ACTS}
    for spec in SPECS:
        id = by_action.get(f"travel('{spec.name}')")
        key = f"  ({first(keys, id)})" if id else ""
        needs = spec.takes and not spec.takes.startswith("[")
        yield f"{spec.name} {spec.takes}".rstrip() + key, f"{spec.name} " if needs else spec.name, spec.help_text()


def key_acts(keys: Keys) -> Iterator[Entry]:
    """Yield what only keys do: the title, the action of the screen, and the id for keymaps."""
    for act in ACTS:
        if not act.action.startswith(("travel(", "do(", "app.")):
            key = first(keys, act.id)
            yield act.description[0].upper() + act.description[1:] + (f"  ({key})" if key else ""), act.action, act.id


class PalettePage(CommandPalette):
    """The palette. It accepts keys that arrive before it is ready, and searches synchronously.

    Textual searches in the background: Enter and PageDown could act on an incomplete list.
    """

    def dismiss(self, result: None = None) -> AwaitComplete:
        """Leave, as soon as the palette is mounted."""
        if not self.is_mounted:
            self.call_later(self._leave)
            return AwaitComplete()
        return super().dismiss(result) if self.is_active else AwaitComplete()

    def _leave(self) -> None:
        self.dismiss()

    def on_key(self, event: events.Key) -> None:
        """Insert a letter that was sent before the line had the focus."""
        if event.is_printable and event.character:
            event.stop()
            entry = self.query_one(CommandInput)
            entry.replace(event.character, *sorted(entry.selection))

    def _gather_commands(self, search_value: str) -> None:  # type: ignore[override]  # a plain method: no background worker
        """Show all matches, the best first."""
        command_list = self.query_one(CommandList)
        help_style = Style.from_styles(self.get_component_styles("command-palette--help-text"))
        providers = (each for each in self._providers if isinstance(each, Palette))
        hits = (hit for provider in providers for hit in provider.hits(search_value))
        self._refresh_command_list(command_list, [_row(hit, help_style) for hit in hits], clear_current=True)
        if not command_list.option_count:
            command_list.add_option(Option(Content("No matches"), disabled=True, id=self._NO_MATCHES))
            self._list_visible = True
        self.add_class("-ready")

    def _action_command_list(self, action: str) -> None:
        """Move in the list; lay it out first, so that it knows the size of a page."""
        if not self.query_one(CommandList).size:
            self._refresh_layout()
        if self.query_one(CommandList).size:
            super()._action_command_list(action)


def _row(hit: DiscoveryHit | Hit, help_style: Style) -> Command:
    """Return a command of the list: its title, and below it its description."""
    title = hit.prompt if isinstance(hit.prompt, Content) else Content.from_markup(str(hit.prompt))
    return Command(Content("\n").join([title, Content.from_markup(hit.help or "").stylize_before(help_style)]), hit)


def _literal(text: str) -> str:
    """Return a text that the palette, which parses markup, shows unchanged: ``[PLACE]`` is not a style."""
    return text.replace("[", "\\[")


class Palette(Provider):
    """Searches `entries` and `key_acts`, and runs the chosen one."""

    async def search(self, query: str) -> Hits:
        """Yield all matches, in the form that Textual expects."""
        for hit in self.hits(query):
            yield hit

    def hits(self, query: str) -> Iterator[DiscoveryHit | Hit]:
        """Yield all matches; every entry if nothing is typed."""
        if not query:
            for title, help, carry_out in self._all():
                yield DiscoveryHit(_literal(title), carry_out, text=title, help=_literal(help))
            return
        matcher = self.matcher(query)
        for title, help, carry_out in self._all():
            score = max(matcher.match(title), matcher.match(help) * 0.5)
            if score > 0:
                yield Hit(score, matcher.highlight(_literal(title)), carry_out, text=title, help=_literal(help))

    def _all(self) -> Iterator[tuple[str, str, Callable[[], Awaitable[None] | None]]]:
        debugger, text_of = self._debugger, self._debugger.glyphs.text
        for title, text, help in entries(debugger.session.keys):
            yield text_of(title), text_of(help), partial(self._carry_out, text)
        for title, action, help in key_acts(debugger.session.keys):
            yield title, help, partial(debugger.run_action, action)

    @property
    def _debugger(self) -> SessionScreen:
        return next(screen for screen in self.app.screen_stack if isinstance(screen, SessionScreen))

    def _carry_out(self, text: str) -> None:
        if text.endswith((" ", "@")):
            self._debugger.open_prompt(":", text)
        else:
            self._debugger.run_line(text)
