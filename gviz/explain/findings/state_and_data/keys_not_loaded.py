"""States that a module did not load: ``strict=False`` ignores keys with another prefix, and a filter leaves nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gviz.events import OptimizerStarted, Warned
from gviz.explain.display_names import titled
from gviz.explain.finding import Finding, Number
from gviz.explain.program_text import arguments, called_name, program_text
from gviz.explain.recording_survey import Survey
from gviz.explain.source_edit import Edit, with_argument
from gviz.explain.source_frames import own_frame
from gviz.source.call_stack import Frame
from gviz.state_dict_load import INCOMPATIBLE, LoadedKeys, loaded_keys
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import shown

_LOAD = "load_state_dict"


def ignored_keys(survey: Survey) -> Iterator[Finding]:
    """Yield loads that loaded less than half of a module, although its names are among the keys with another prefix.

    So are loads of no tensor at all; these are notes. A later load into a module of the class, or by the same line,
    may have loaded the rest.
    """
    timeline, pending = survey.timeline, list[tuple[LoadedKeys, int, Finding]]()
    trained = next((seq for seq, _ in timeline.select((OptimizerStarted,))), survey.end)
    for seq, event in timeline.select((Warned,)):
        load = loaded_keys(event.message) if event.category == INCOMPATIBLE else None
        if load is None:
            continue
        if not load.is_little and not load.is_own:
            pending = [one for one in pending if one[0].kind != load.kind and one[1] != event.stack]
            continue
        at = own_frame(timeline.stack(event.stack))
        finding = _own_finding(timeline, seq, load, at) if load.is_own else _finding(timeline, seq, load, at)
        if finding is not None and not (load.is_own and seq > trained):
            pending.append((load, event.stack, finding))
    yield from (finding for _, _, finding in pending)


def _finding(timeline: Timeline, seq: int, load: LoadedKeys, at: Frame | None) -> Finding | None:
    numbers = Number("loaded", load.loaded, seq), Number("wanted", load.wanted, seq)
    loaded = f"this load has loaded {load.loaded or 'none'} of {load.wanted} tensors of {{}}"
    example = f"it got {shown(load.key)!r} and wants {shown(load.name)!r}"
    ignored = f"{example}; strict=False ignored {load.ignored} of {load.given} keys"
    parts = (Finding("example", ignored, seq, at=at),)
    if _is_change(load):
        text = titled(f"{loaded}: {_difference(load)}", shown(load.kind), shown(_changed_beginning(load)))
        fix = f"load {_changed(load, next(iter(arguments(timeline, at, _LOAD)), 'state'))}"
        edit = _edit(timeline, at, load)
        return Finding("ignored-keys", text, seq, 0, parts, fix, at, numbers, edit=edit)
    if load.given and not load.loaded:
        text = titled(loaded, shown(load.kind))
        fix = "load with strict=True, which reports the keys that do not fit"
        return Finding("ignored-keys", text, seq, 0, parts, fix, at, numbers, suspected=True)
    if not load.given and _is_filtered(timeline, at):
        text = titled("no key has passed the filter, so this load has loaded nothing of {}", shown(load.kind))
        fix = "compare the keys of the file with those of the module"
        return Finding("ignored-keys", text, seq, 0, (), fix, at, numbers, suspected=True)
    return None


def _is_change(load: LoadedKeys) -> bool:
    """Return whether one change of the keys makes most names fit, or all keys that were ignored.

    A new beginning in the place of another is less certain: it counts only if nothing at all was loaded.
    """
    if not load.fitting or (load.loaded and load.removed and load.added):
        return False
    missing = load.wanted - load.loaded
    return 2 * load.fitting >= missing or (load.fitting >= load.ignored and load.fitting > 1)


def _difference(load: LoadedKeys) -> str:
    if load.within:
        return "keys are in its '{}'"
    return "keys begin with '{}'" if load.removed else "keys lack '{}'"


def _changed_beginning(load: LoadedKeys) -> str:
    return load.within or load.removed or load.added


def _changed(load: LoadedKeys, state: str) -> str:
    """Return the text of the state with the keys that the module wants."""
    if load.within:
        state += f'["{shown(load.within)}"]'
    key = f'key.removeprefix("{shown(load.removed)}")' if load.removed else "key"
    if load.added:
        key = f'"{shown(load.added)}" + {key}'
    return f"{{{key}: value for key, value in {state}.items()}}" if load.removed or load.added else state


def _edit(timeline: Timeline, at: Frame | None, load: LoadedKeys) -> Edit | None:
    """Return the edit of the argument, if the whole module is loaded then, from keys that all begin alike."""
    names = load.within + load.removed + load.added
    is_whole = not load.loaded and load.fitting == load.wanted and names.replace(".", "").isidentifier()
    is_alike = not load.added or not load.removed or load.fitting == load.given
    state = arguments(timeline, at, _LOAD)[:1]
    if not (is_whole and is_alike and state):
        return None
    return with_argument(timeline, at, _LOAD, 0, "state_dict", _changed(load, state[0]))


# A filter that leaves nothing of a checkpoint


def _own_finding(timeline: Timeline, seq: int, load: LoadedKeys, at: Frame | None) -> Finding | None:
    """Return that a state updated with what fits had only the module's own tensors: nothing did fit."""
    if not _is_updated(timeline, at):
        return None
    text = titled("this load gives {} its own tensors: nothing of a file was loaded", shown(load.kind))
    fix = "compare the keys of the file with those of the module: none passed the filter"
    part = Finding(
        "example", f"all {load.given} tensors are the module's own, as state_dict() returns them", seq, at=at
    )
    return Finding("ignored-keys", text, seq, 0, (part,), fix, at, suspected=True)


def _is_filtered(timeline: Timeline, at: Frame | None) -> bool:
    """Return whether the state that a line loads was filtered by a condition."""
    return any(
        isinstance(value, ast.DictComp) and any(part.ifs for part in value.generators)
        for value in _values(timeline, at)
    )


def _is_updated(timeline: Timeline, at: Frame | None) -> bool:
    """Return whether the state that a line loads was updated from another, or joined with it."""
    text, names = program_text(timeline, at), set(arguments(timeline, at, _LOAD)[:1])
    calls = [call for one in (text.statements if text is not None else ()) for call in one.parts(ast.Call)]
    updated = (
        {text.segment(call.func) for call in calls if called_name(call) == "update"} if text is not None else set()
    )
    joined = (isinstance(value, ast.Dict | ast.BinOp) for value in _values(timeline, at))
    return any(f"{name}.update" in updated for name in names) or any(joined)


def _values(timeline: Timeline, at: Frame | None) -> Iterator[ast.expr]:
    """Yield the expressions that a line loads: its argument, and what is assigned to it."""
    text = program_text(timeline, at)
    if text is None or at is None:
        return
    here = text.at(at.line, at.column)
    loads = [call for call in here.parts(ast.Call) if called_name(call) == _LOAD] if here is not None else []
    read = [call.args[0] for call in loads if call.args]
    yield from read
    names = {text.segment(one) for one in read}
    for one in text.statements:
        if isinstance(one.node, ast.Assign) and not names.isdisjoint(map(text.segment, one.node.targets)):
            yield one.node.value
