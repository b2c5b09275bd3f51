"""Keeps gviz out of what PyTorch compiles, exports and traces: it runs as it would without gviz."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import wraps
from typing import Any

import torch

from gviz.adapters.pytorch import module_calls, private_api
from gviz.adapters.pytorch.function_mode import CallListener
from gviz.adapters.pytorch.private_api import replace
from gviz.adapters.pytorch.recording_state import Session

_MAKERS = ((torch.jit, "trace"), (torch.jit, "trace_module"), (torch.export, "export"))
"""Functions that make a graph from the calls of a program."""


def put_in(session: Session, leaving: ExitStack) -> None:
    """Keep compiled regions compiled, as one node each (``opaque``), or run them as written (``eager``)."""
    compile_it = torch.compile
    regions = leaving.enter_context(ExitStack())  # what is compiled later is restored too

    @wraps(compile_it)
    def listened(*args: Any, **options: Any) -> Any:
        if not args or args[0] is None:
            return lambda model: listened(model, **options)
        if session.scope.compiled == "eager" or not private_api.can_move_modes:
            return args[0]
        return opaque(session, compile_it(*args, **options), regions, of=args[0])

    replace(torch, "compile", listened, leaving)
    for home, name in _MAKERS if private_api.can_move_modes else ():
        replace(home, name, _making(session, vars(home)[name]), leaving)


def opaque(session: Session, region: Any, leaving: ExitStack, of: Any = None) -> Any:
    """Return a compiled callable that gviz's function mode does not enter: otherwise it would not stay compiled.

    `of` is the function it was compiled from. Calls of its modules are not observed, but their parameters are still
    named.
    """
    if isinstance(region, torch.nn.Module):
        replace(region, "forward", opaque(session, region.forward, leaving), leaving)
        return region

    inside = _unheard(region)

    @wraps(region)
    def closed(*args: Any, **options: Any) -> Any:
        if session.is_recording:
            session.not_seen("compiled")
            _name_parameters(session, of)
        return inside(*args, **options)

    return closed


def _name_parameters(session: Session, function: Any) -> None:
    """Record the parameter names of the modules that a compiled function uses."""
    for module in [] if session.is_partial else modules_of(function):
        module_calls.name_unnamed(session, module)


def modules_of(function: Any) -> Iterator[torch.nn.Module]:
    """Yield the modules that a function can use: in its closure, its globals, its ``__self__`` and its attributes."""
    owner = getattr(function, "__self__", None)
    candidates = [owner, *getattr(owner, "__dict__", {}).values()]
    code = getattr(function, "__code__", None)
    if code is not None:
        candidates += [function.__globals__.get(name) for name in code.co_names]
    for cell in getattr(function, "__closure__", None) or ():
        with suppress(ValueError):  # a variable that has no value yet
            candidates.append(cell.cell_contents)
    yield from (each for each in candidates if isinstance(each, torch.nn.Module))


def _making(session: Session, maker: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function that makes a graph. It removes gviz's hooks: Dynamo treats modules with hooks differently."""
    unheard = _unheard(maker)

    @wraps(maker)
    def alone(*args: Any, **options: Any) -> Any:
        tables = [(handle.hooks_dict_ref(), handle.id) for handle in session.module_hooks]
        taken = [(table, key, table.pop(key)) for table, key in tables if table is not None and key in table]
        try:
            return unheard(*args, **options)
        finally:
            for table, key, hook in taken:
                table[key] = hook

    return alone


def _unheard(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def alone(*args: Any, **options: Any) -> Any:
        with without_listening():
            return function(*args, **options)

    return alone


def put_in_earlier(session: Session, leaving: ExitStack) -> None:
    """Keep regions compiled that were compiled before the recording began.

    The function that runs a compiled region switches Dynamo on before it and off after it. Such regions can exist only
    if Dynamo is already imported. With ``eager`` they run as written.
    """
    frames = sys.modules.get("torch._dynamo.eval_frame")
    if frames is None or not private_api.can_move_modes:
        return
    name = _SWITCH if hasattr(frames, _SWITCH) else _OLDER_SWITCH
    switch, local = getattr(frames, name), threading.local()
    if session.scope.compiled == "eager":
        _run_as_written(frames, name, switch, leaving)
        return

    @wraps(switch)
    def listened(callback: Any) -> Any:
        caller, regions = sys._getframe(1), vars(local).setdefault("regions", [])
        if regions and regions[-1][0] is caller:
            _put_back(regions.pop()[1])
        elif callback not in (None, False) and caller.f_code.co_name in _RUNNERS:
            before = _taken_out()
            if any(isinstance(mode, CallListener) for mode in before):
                regions.append((caller, before))
                if session.is_recording:
                    session.not_seen("compiled")
                    _name_parameters(session, caller.f_locals.get("fn"))
        return switch(callback)

    replace(frames, name, listened, leaving)


_SWITCH, _OLDER_SWITCH = "_maybe_set_eval_frame", "set_eval_frame"
"""The function that switches Dynamo on and off, and its name in PyTorch 2.4."""

_RUNNERS = {"compile_wrapper", "_fn"}
"""Names of the functions that run a compiled one, in current and in older releases."""


def _run_as_written(frames: Any, name: str, switch: Callable[[Any], Any], leaving: ExitStack) -> None:
    """Keep Dynamo switched off, so that compiled functions run as written."""
    if hasattr(torch.compiler, "set_stance"):
        leaving.enter_context(torch.compiler.set_stance("force_eager"))
        return

    @wraps(switch)
    def listened(callback: Any) -> Any:
        return switch(None if callback else callback)

    replace(frames, name, listened, leaving)


@contextmanager
def without_listening() -> Iterator[None]:
    """Remove gviz's function modes from this thread within the context; the program's own modes stay."""
    before = _taken_out()
    try:
        yield
    finally:
        _put_back(before)


def _taken_out() -> list[Any]:
    """Remove gviz's function modes from this thread. Return all modes that were active before."""
    before = _popped()
    for mode in before:
        if not isinstance(mode, CallListener):
            private_api.push_mode(mode)
    return before


def _put_back(before: list[Any]) -> None:
    _popped()
    for mode in before:
        private_api.push_mode(mode)


def _popped() -> list[Any]:
    """Pop all function modes of this thread and return them, outermost first."""
    count = private_api.count_modes()
    return [private_api.pop_mode() for _ in range(count)][::-1]
