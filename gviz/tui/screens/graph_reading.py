"""Reads the graph of a large iteration in the background, while the other panels are visible and keys act."""

from __future__ import annotations

import asyncio

from gviz.errors import GvizError
from gviz.system.cooperative_work import LongWork, paced
from gviz.tui.screens.panel_stack import Panels
from gviz.tui.screens.session_screen import SessionScreen
from gviz.tui.widgets.list_panels import ModuleTree

_WORK_SECONDS = 0.1
_PAUSE_SECONDS = 0.005


class GraphReading:
    """Reads the graph of the cursor's iteration, unless `Folds` has it; then the panels follow."""

    def __init__(self, screen: SessionScreen, panels: Panels) -> None:
        self._screen, self._panels = screen, panels
        self._work: LongWork[None] | None = None
        self._iteration = -1
        self._progress_text = ""

    def begin(self) -> None:
        """Begin to read the iteration of the moment, and drop any other."""
        screen = self._screen
        if not screen.timeline.iterations:
            return
        iteration = screen.timeline.iteration_at(screen.cursor.position)
        if screen.session.folds.ready(iteration) or (self._work is not None and self._iteration == iteration.index):
            return
        waiting = self._work is not None
        self._iteration = iteration.index
        self._work = paced(screen.session.folds.read_graph(iteration), _WORK_SECONDS)
        if not waiting:
            self._soon()

    def _soon(self) -> None:
        asyncio.get_running_loop().call_later(_PAUSE_SECONDS, self._screen.call_next, self._yield_to_screen)

    def _yield_to_screen(self) -> None:
        screen = self._screen
        if self._work is None or not screen.is_running:
            return
        try:
            far = next(self._work)
        except StopIteration:
            self._work = None
            self._show_progress("")
            screen.show_result_of(self._show)
        except GvizError as error:
            self._work = None
            self._show_progress(error.what)
        else:
            self._show_progress(str(far))
            self._soon()

    def _show(self) -> None:
        """Let the panels show the graph, which has been read."""
        screen = self._screen
        screen.follow_settings()
        self._panels.fit()
        for tree in screen.query(ModuleTree):
            tree.draw_soon()

    def _show_progress(self, text: str) -> None:
        """Show the progress, unless there is another remark."""
        if self._screen.remark in ("", self._progress_text):
            self._screen.show_remark(text)
            self._progress_text = text
