"""Puts gviz into PyTorch for the length of a recording, and takes it out again.

Every private name is looked for first. A missing one disables only what needs it. The recording says once what it
lacks. It says so in an event, not in a Python warning: ``-W error`` would turn that into an error of the program.
"""

from __future__ import annotations

import copy
from contextlib import ExitStack
from functools import partial
from types import TracebackType

import torch

from gviz import site
from gviz.adapters.pytorch import modules, private, regions, warned
from gviz.adapters.pytorch.graph import edge_of
from gviz.adapters.pytorch.parts import parts
from gviz.adapters.pytorch.session import Session
from gviz.adapters.wanted import EVERYTHING, Wanted
from gviz.emit import Channel

site.hide(torch.__path__[0] + "/")
site.hide(copy.__file__)  # by which PyTorch copies layers: the line is that of who asked for the copies


class Attached:
    """PyTorch while it is listened to: a context manager, left at the latest when the recording ends.

    The thread that enters it is listened to, and every thread started from then on.
    """

    def __init__(self, channel: Channel, model: torch.nn.Module | None = None, wanted: Wanted = EVERYTHING) -> None:
        self.session = Session(channel, wanted)
        self.session.edge_of = partial(edge_of, self.session)
        self._model = model
        self._open = ExitStack()

    def __enter__(self) -> Attached:
        with ExitStack() as leaving:  # whatever fails below, PyTorch is as it was
            lacks: dict[str, str] = {}
            for lack, put_in in parts(self.session.wanted.phase).items():
                try:
                    put_in(self.session, leaving)
                except (AttributeError, ImportError, KeyError) as missing:
                    lacks[lack] = str(missing)
            for name, lack in private.missing.items():
                if name not in private.SINCE:
                    lacks.setdefault(lack, f"torch has no {name}")
            if lacks:
                self.session.report_lack("; ".join(f"{lack} ({why})" for lack, why in lacks.items()))
            if self.session.is_partial:
                self.session.not_seen("modules")
            regions.put_in(self.session, leaving)
            warned.put_in(leaving)
            if self._model is not None and not self.session.is_partial:
                modules.name_parameters(self.session, self._model)
            self._open = leaving.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    @property
    def spent(self) -> int:
        """How many nanoseconds threads of the program have spent on being listened to."""
        return self.session.spent

    def node_of(self, tensor: object) -> int:
        """The node that a tensor is an output of, 0 if it was not heard of."""
        mark = self.session.marks.of(tensor) if isinstance(tensor, torch.Tensor) else None
        return mark.node if mark is not None else 0
