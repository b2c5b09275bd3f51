"""Patches PyTorch for the duration of a recording, and restores it afterwards.

Every private name is looked up first. A missing name disables only the parts that need it, and the recording reports
once what it lacks. It reports this in an event, not in a Python warning: ``-W error`` would turn a warning into an
error of the program.

The parts are in a table, each with what the recording lacks without it. PyTorch's own transformers and attention check
whether anything overrides tensors. If so, they take another code path with different numbers, so gviz makes the check
answer no."""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial, wraps
from multiprocessing.process import BaseProcess
from types import MethodType, TracebackType
from typing import Any

import torch
from torch.overrides import has_torch_function as _is_anything
from torch.overrides import has_torch_function_unary as _is_this

from gviz import emit
from gviz.adapters.pytorch import (
    autograd_passes,
    compilation,
    cuda_graphs,
    module_calls,
    optimizers,
    private_api,
    warning_lines,
)
from gviz.adapters.pytorch.autograd_graph import edge_of, mark_of
from gviz.adapters.pytorch.compilation import without_listening
from gviz.adapters.pytorch.function_mode import CallListener, observe
from gviz.adapters.pytorch.gradient_hooks import WATCHES
from gviz.adapters.pytorch.in_place_writes import set_data
from gviz.adapters.pytorch.node_creation import InputValues
from gviz.adapters.pytorch.private_api import replace, without_overrides
from gviz.adapters.pytorch.recording_state import Session
from gviz.adapters.pytorch.tensor_properties import version_of
from gviz.adapters.recording_scope import EVERYTHING, RecordingScope
from gviz.emit import Channel
from gviz.source import call_stack

call_stack.add_recorder(os.path.dirname(__file__) + os.sep)
call_stack.hide(torch.__path__[0] + "/")
call_stack.hide(copy.__file__)  # PyTorch copies layers with it: the source line is that of whoever requested the copies


class Attachment:
    """Observes PyTorch while it is entered. A context manager, exited at the latest when the recording ends.

    Observes the thread that enters it and every thread started afterwards.
    """

    def __init__(
        self, channel: Channel, model: torch.nn.Module | None = None, scope: RecordingScope = EVERYTHING
    ) -> None:
        self.session = Session(channel, scope)
        self.session.edge_of = partial(edge_of, self.session)
        self.model = model
        self._open = ExitStack()
        self._stays = ExitStack()
        """What stays installed while the recording pauses: the hooks of optimizer steps. It pauses in one of them, and
        PyTorch does not allow their removal while they run.
        """

    def __enter__(self) -> Attachment:
        with ExitStack() as leaving, ExitStack() as staying:  # if anything below fails, PyTorch is restored
            lacks = self._put_in(parts(self.session.scope.phase), leaving, staying)
            for name, lack in private_api.missing.items():
                if name not in private_api.SINCE:
                    lacks.setdefault(lack, f"torch has no {name}")
            if lacks:
                self.session.report_lack("; ".join(f"{lack} ({why})" for lack, why in lacks.items()))
            if self.session.is_partial:
                self.session.not_seen("modules")
            compilation.put_in(self.session, leaving)
            warning_lines.put_in(leaving)
            if self.model is not None and not self.session.is_partial:
                module_calls.name_parameters(self.session, self.model)
            self._open, self._stays = leaving.pop_all(), staying.pop_all()
        return self

    def _put_in(self, requested_parts: Mapping[str, PutIn], leaving: ExitStack, staying: ExitStack) -> dict[str, str]:
        """Install parts. Return what the recording lacks without those that failed, with the reasons."""
        lacks: dict[str, str] = {}
        for lack, put_in in requested_parts.items():
            try:
                put_in(self.session, staying if lack == _OF_STEPS else leaving)
            except (AttributeError, ImportError, KeyError) as missing:
                lacks[lack] = str(missing)
        return lacks

    def pause(self) -> None:
        """Stop listening until `resume`: PyTorch is restored, except for the hooks of optimizer steps."""
        if emit.channel is self.session.channel:
            emit.detach()
        self._open.close()

    def resume(self) -> None:
        """Listen again, unless another recording listens."""
        if emit.channel is not None:
            return
        again = {name: put_in for name, put_in in parts(self.session.scope.phase).items() if name != _OF_STEPS}
        with ExitStack() as leaving:
            self._put_in(again, leaving, self._stays)
            compilation.put_in(self.session, leaving)
            warning_lines.put_in(leaving)
            self._open = leaving.pop_all()
        emit.attach(self.session.channel)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()
        _leave_idle_mode(self.session)
        self._stays.close()
        self.session.value.finish()

    @property
    def spent(self) -> int:
        """Nanoseconds that the program's threads have spent in gviz's hooks."""
        return self.session.spent

    def node_of(self, tensor: object) -> int:
        """Return the node whose output is `tensor`, or 0 if the recording does not know the tensor."""
        mark = self.session.marks.of(tensor) if isinstance(tensor, torch.Tensor) else None
        return mark.node if mark is not None else 0

    def announce(self, tensor: object) -> None:
        """Announces a tensor now instead of at its first use, which may be deep inside a module."""
        if isinstance(tensor, torch.Tensor):
            with without_overrides():
                mark_of(self.session, tensor)


PutIn = Callable[[Session, ExitStack], None]
"""Installs a part and registers its removal on the exit stack."""


def parts(phase: str) -> dict[str, PutIn]:
    """Return the parts to install for a phase, by what the recording lacks without them."""
    names = _OF_BACKWARD if phase == "backward" else _OF_ALL
    return {name: put_in for name, put_in in _PARTS.items() if name in names}


def _put_in_mode(session: Session, leaving: ExitStack) -> None:
    if not session.hears_operations:
        return  # otherwise gviz would observe itself
    mode, thread = session.idle_mode or CallListener(session), threading.get_ident()
    if session.idle_mode is None:
        mode.__enter__()
    session.idle_mode = None
    leaving.callback(_take_out, session, mode, thread)


def _take_out(session: Session, mode: CallListener, thread: int) -> None:
    """Exit the mode if this is the thread that entered it and it is the innermost one. Otherwise it stays, idle."""
    if threading.get_ident() == thread and private_api.innermost_mode() is mode:
        mode.__exit__(None, None, None)
    else:
        session.idle_mode = mode


def _leave_idle_mode(session: Session) -> None:
    """Exit a mode that had to stay below one of the program's, if that one has ended since."""
    if session.idle_mode is not None and private_api.innermost_mode() is session.idle_mode:
        session.idle_mode.__exit__(None, None, None)
        session.idle_mode = None


def _put_in_threads(session: Session, leaving: ExitStack) -> None:
    """Give every new thread its own function mode: a mode applies to one thread only."""
    begin = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]  # private, and looked for here

    @wraps(begin)
    def listening(thread: threading.Thread) -> None:
        if not session.is_recording or not session.hears_operations or thread.name.startswith("gviz"):
            begin(thread)
            return
        with CallListener(session):
            begin(thread)

    replace(threading.Thread, "_bootstrap_inner", listening, leaving)


def _put_in_processes(session: Session, leaving: ExitStack) -> None:
    """Note when the program starts a process: its computation, and its writes to shared memory, are not recorded."""
    start = BaseProcess.start

    @wraps(start)
    def listened(process: BaseProcess) -> None:
        if session.is_recording:
            session.not_seen("processes")
        start(process)

    replace(BaseProcess, "start", listened, leaving)


def _put_in_engine(session: Session, leaving: ExitStack) -> None:
    engine = torch.autograd.graph._engine_run_backward

    @wraps(engine)
    def listened(roots: Any, *args: Any, **options: Any) -> Any:
        return autograd_passes.run(session, engine, roots, args, options)

    for home in (torch.autograd.graph, torch.autograd):
        replace(home, "_engine_run_backward", listened, leaving)


def _put_in_module_hooks(session: Session, leaving: ExitStack) -> None:
    """Make backward hooks of modules report which gradients they replaced: PyTorch replaces them where gviz cannot see
    it.
    """
    for name in ("register_full_backward_hook", "register_full_backward_pre_hook"):
        register = getattr(torch.nn.Module, name)

        def listened(module: torch.nn.Module, hook: Any, *args: Any, register: Any = register, **options: Any) -> Any:
            is_recording = session.is_recording and not session.is_outside and callable(hook)
            return register(
                module, module_calls.recorded_hook(session, hook) if is_recording else hook, *args, **options
            )

        replace(torch.nn.Module, name, wraps(register)(listened), leaving)


def _put_in_loading(session: Session, leaving: ExitStack) -> None:
    """Compare the keys of each load with the names of its module: with ``strict=False`` PyTorch says nothing."""
    load = torch.nn.Module.load_state_dict

    @wraps(load)
    def listened(module: torch.nn.Module, *args: Any, **options: Any) -> Any:
        return module_calls.load(session, load, module, args, options)

    replace(torch.nn.Module, "load_state_dict", listened, leaving)


def _put_in_functions(session: Session, leaving: ExitStack) -> None:
    """Wrap ``Function.apply``, which consults no mode.

    It is a Python class method; from PyTorch 2.14 on it is in C.
    """
    bound_to = torch.autograd.Function.__dict__["apply"].__get__

    @wraps(torch.autograd.Function.apply)
    def listened(cls: Any, *args: Any, **options: Any) -> Any:
        if private_api.is_bookkeeping(cls):
            return bound_to(None, cls)(*args, **options)
        inputs = _input_values(session, cls, args, options) if session.is_recording and not session.is_outside else None
        result = bound_to(None, cls)(*args, **options)
        outputs = (result,) if isinstance(result, torch.Tensor) else result
        if session.is_recording and not session.is_outside and isinstance(outputs, (tuple, list)):
            tensors = [output for output in outputs if isinstance(output, torch.Tensor)]
            with without_overrides():
                observe(session, cls, args, options, tensors, "", inputs)
        return result

    replace(torch.autograd.Function, "apply", classmethod(listened), leaving)


def _input_values(
    session: Session, function: Any, args: Sequence[Any], options: Mapping[str, Any]
) -> InputValues | None:
    """Return the tensor arguments of one of a function's first calls, with which its backward rule is checked; else
    None.
    """
    tensors = [it for it in (*args, *options.values()) if isinstance(it, torch.Tensor)]
    with without_overrides():
        if not torch.is_grad_enabled() or not any(it.requires_grad for it in tensors):
            return None
        if not session.channel.is_first(function):
            return None
        known = ((it, version_of(it), session.value.whole(it)) for it in tensors)
        return [(tensor, version, value) for tensor, version, value in known if value is not None]


def _put_in_parameters(session: Session, leaving: ExitStack) -> None:
    """Note where a parameter is made. It is announced at its first use, and named after what it was assigned to."""
    make, is_compiling = torch.nn.Parameter.__new__, torch.compiler.is_compiling

    @wraps(make)
    def listened(cls: type[torch.nn.Parameter], *args: Any, **options: Any) -> Any:
        parameter = make(cls, *args, **options)
        if not is_compiling() and session.is_recording:
            session.marks.bear(parameter, session.channel.stack())
        return parameter

    replace(torch.nn.Parameter, "__new__", staticmethod(listened), leaving)


def _put_in_swaps(session: Session, leaving: ExitStack) -> None:
    """Forget tensors before a swap: PyTorch refuses to swap tensors that have weak references.

    They are announced again when they are next used.
    """
    swap = torch.utils.swap_tensors

    @wraps(swap)
    def listened(one: torch.Tensor, other: torch.Tensor) -> None:
        for tensor in (one, other):
            session.marks.forget(tensor)
        swap(one, other)  # type: ignore[no-untyped-call]  # PyTorch has no types here

    replace(torch.utils, "swap_tensors", listened, leaving)


class _Hooks(dict[int, Any]):
    """The hooks of a graph node. PyTorch's handles refer to it weakly, which they cannot to a plain dict."""

    __slots__ = ("__weakref__",)


_OWN_KEY = -1
"""The key of gviz's hook of a node; PyTorch's handles count from 0."""


def _put_in_registration(session: Session, leaving: ExitStack) -> None:
    """Register gviz's own hooks without the handles with which a program can remove a hook.

    PyTorch makes one for each, which takes more than half of the time of a registration, and there are two hooks for
    each node.
    """
    mixin = torch.autograd.function._HookMixin
    register = mixin._register_hook

    @wraps(register)
    def registered(hooks: Any, hook: Any) -> Any:
        if hooks is None and hook.__class__ is MethodType and hook.__self__.__class__ in WATCHES:
            return _Hooks({_OWN_KEY: hook}), None
        return register(hooks, hook)  # type: ignore[no-untyped-call]  # PyTorch has no types here

    replace(mixin, "_register_hook", staticmethod(registered), leaving)


def _put_in_set(session: Session, leaving: ExitStack) -> None:
    """Wrap ``Tensor.set_``, which consults no mode and gives a tensor other memory."""
    set_it = torch.Tensor.set_

    @wraps(set_it)
    def listened(tensor: torch.Tensor, *args: Any, **options: Any) -> torch.Tensor:
        if not session.is_recording or session.is_outside:
            return set_it(tensor, *args, **options)
        set_data(session, set_it, (tensor, *args), options)
        return tensor

    setattr(torch.Tensor, "set_", listened)  # noqa: B010  # it is inherited, and a type to checkers
    leaving.callback(delattr, torch.Tensor, "set_")


def _put_in_modules(session: Session, leaving: ExitStack) -> None:
    is_compiling = torch.compiler.is_compiling  # a constant to Dynamo, which then sees hooks that do nothing

    def before(module: torch.nn.Module, args: Any) -> None:
        if not is_compiling() and session.is_recording:
            module_calls.enter(session, module)

    def after(module: torch.nn.Module, args: Any, result: Any) -> None:
        if not is_compiling() and session.is_recording:
            module_calls.leave(session, module, result)

    def registered(module: torch.nn.Module, name: str, parameter: Any) -> None:
        if session.is_recording and isinstance(parameter, torch.nn.Parameter):
            session.marks.bear(parameter, session.channel.stack())

    hooks = torch.nn.modules.module
    leaving.callback(hooks.register_module_parameter_registration_hook(registered).remove)
    entering = hooks.register_module_forward_pre_hook(before)
    left = hooks.register_module_forward_hook(after, always_call=True)
    session.module_hooks = [entering, left]
    leaving.callback(entering.remove)
    leaving.callback(left.remove)

    def has_any_other() -> bool:
        """Answer PyTorch's check, before it warns of hooks that a compiled module skips, without gviz's own hooks."""
        tables = (getattr(hooks, name) for name in _HOOK_TABLES)
        return any(key not in (entering.id, left.id) for table in tables for key in table)

    if hasattr(hooks, "_has_any_global_hook"):  # releases without this name have no such check
        replace(hooks, "_has_any_global_hook", has_any_other, leaving)


_HOOK_TABLES = (
    "_global_backward_pre_hooks", "_global_backward_hooks", "_global_forward_hooks", "_global_forward_pre_hooks",
)  # fmt: skip


def _put_in_names(session: Session, leaving: ExitStack) -> None:
    """Observe module calls only until the parameters that backward passes reach have names."""
    hooks = torch.nn.modules.module

    def before(module: torch.nn.Module, args: Any) -> None:
        if not torch.compiler.is_compiling() and session.is_recording:
            module_calls.name_unnamed(session, module)

    def look(is_on: bool) -> None:
        if is_on and not session.module_hooks:
            session.module_hooks.append(hooks.register_module_forward_pre_hook(before))
        elif not is_on and session.module_hooks:
            session.module_hooks.pop().remove()

    session.look_for_names = look
    look(True)
    leaving.callback(look, False)


def _put_in_optimizers(session: Session, leaving: ExitStack) -> None:
    def after(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if session.is_recording:
            optimizers.stepped(session, optimizer)

    def before(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> Any:
        if not session.is_recording:
            return None
        changed = optimizers.with_closure(session, optimizer, args, kwargs)
        optimizers.starts(session, optimizer, has_closure=changed is not None)
        return changed

    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    leaving.callback(register_optimizer_step_pre_hook(before).remove)
    leaving.callback(register_optimizer_step_post_hook(after).remove)


def _put_in_step_ends(session: Session, leaving: ExitStack) -> None:
    """Observe the block around each optimizer step.

    A recording may pause within a step: the end of that step is still observed, because a ``with`` statement looks up
    both methods at its beginning.
    """
    record_function = torch.autograd.profiler.record_function
    enter, leave = record_function.__enter__, record_function.__exit__

    @wraps(enter)
    def entered(call: torch.autograd.profiler.record_function) -> Any:
        if emit.channel is session.channel and call.name.startswith(optimizers.STEP_NAMES):
            session.thread.updates.append(None)
        return enter(call)  # type: ignore[no-untyped-call]  # PyTorch has no types here

    @wraps(leave)
    def left(call: torch.autograd.profiler.record_function, kind: Any, error: Any, trace: Any) -> Any:
        if session.thread.updates and call.name.startswith(optimizers.STEP_NAMES):
            optimizers.left(session, kind)
        return leave(call, kind, error, trace)

    replace(record_function, "__enter__", entered, leaving)
    replace(record_function, "__exit__", left, leaving)


def _put_in_overrides(session: Session, leaving: ExitStack) -> None:
    """Give callers that look up the check in `torch.overrides` the answer without gviz.

    PyTorch's functions, which imported it directly, still see gviz's mode.
    """
    if session.hears_operations and private_api.can_move_modes:
        replace(torch.overrides, "has_torch_function", has_torch_function, leaving)


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Answer `torch.overrides.has_torch_function` as without gviz."""
    if torch.compiler.is_compiling():  # Dynamo recognizes the function by a name that is replaced here
        return any(_is_this(argument) for argument in relevant_args)
    if not _is_anything(relevant_args):
        return False
    with without_listening():
        return bool(_is_anything(relevant_args))


_OF_STEPS = "optimizer steps"
_PARTS: dict[str, PutIn] = {
    "backward passes": _put_in_engine,
    "custom functions": _put_in_functions,
    "module calls": _put_in_modules,
    "which hooks of modules ran": _put_in_module_hooks,
    "which keys a load ignored": _put_in_loading,
    "swaps of tensors": _put_in_swaps,
    "other memory of tensors": _put_in_set,
    "where parameters are made": _put_in_parameters,
    "names of parameters": _put_in_names,
    _OF_STEPS: _put_in_optimizers,
    "optimizer steps that fail": _put_in_step_ends,
    "what other threads compute": _put_in_threads,
    "that processes are started": _put_in_processes,
    "nothing but some time": _put_in_registration,
    "replays of CUDA graphs": cuda_graphs.put_in,
    "regions compiled before the recording": compilation.put_in_earlier,
    "whether anything is overridden": _put_in_overrides,
    "operations": _put_in_mode,
}
_OF_ALL = set(_PARTS) - {"names of parameters"}
_OF_BACKWARD = {
    "backward passes", "where parameters are made", "optimizer steps", "optimizer steps that fail",
    "names of parameters", "swaps of tensors", "that processes are started", "replays of CUDA graphs",
    "nothing but some time",
}  # fmt: skip
"""The parts for recording backward passes only: nothing that runs at every operation or module call."""
