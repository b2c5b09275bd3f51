"""Hooks that make zero of a gradient or turn it round, that write to their leaf, and that a loop registers again and
again.
"""

from __future__ import annotations

import ast
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from gviz.events import HookRan, OptimizerStarted, OptimizerStepped, StorageWritten
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.hook_effects import HOOK_FIX, hook_finding, hooks_of
from gviz.explain.program_text import (
    names_read,
    positional_parameters,
    program_text,
    statement_at,
)
from gviz.explain.recording_survey import Survey
from gviz.explain.source_edit import Edit, lines_replaced, wrapped
from gviz.explain.source_frames import at_text, innermost
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.number_text import times_text
from gviz.values.plain_text import shown
from gviz.values.value import Value


def turning_hooks(survey: Survey) -> Iterator[Finding | None]:
    """Yield hooks that change an incoming gradient to zero or reverse it: each once, at the first such gradient.

    Either may be intended: to freeze a part of a tensor, or as the gradient reversal of domain adaptation.
    """
    yield from _hooks_again(survey)
    timeline, seen = survey.timeline, set[tuple[str, int]]()
    for seq, ran in timeline.select((HookRan,)):
        if ran.value is None or ran.when not in ("tensor", "pre") or ran.node not in timeline.nodes:
            continue
        info = timeline.info(ran.node)
        key = ran.name, info.created.stack
        if key in seen or len(seen) >= _MOST_JUDGED:
            continue
        yield None
        seen.add(key)
        effect = next(one for one in hooks_of(timeline, ran.node, ran.output_nr, ran.pass_nr, seq) if one.seq == seq)
        factor = effect.factor(timeline)
        if factor is None:
            factor = _statistics_factor(effect.before, effect.after)
        if effect.is_zeroing or effect.is_opposite(timeline) or (factor is not None and factor < 0):
            does = "makes zero of" if effect.is_zeroing else "turns round"
            text = titled(f"the hook {{}} {does} the gradient of {{}}", shown(ran.name), label(timeline, ran.node))
            at, fix = effect.at(timeline) or innermost(info), HOOK_FIX
            parts: tuple[Finding, ...] = (hook_finding(timeline, effect),)
            uses = [user for user in timeline.nodes.users(ran.node) if timeline.info(user).created.requires_grad]
            turn = max((timeline.info(user).iteration for user in uses if timeline.nodes.born(user) < seq), default=0)
            uses = [user for user in uses if timeline.info(user).iteration == turn]  # of the others it gets others
            if len(uses) > 1:
                named = ", ".join(label_at(timeline, use) for use in uses[:_MOST_USES]) + ", …" * (
                    len(uses) > _MOST_USES
                )
                parts = (
                    *parts,
                    Finding("elsewhere", f"it changes the gradients of all {len(uses)} uses: {named}", seq),
                )
                fix = "hook a tensor that only one use gets, h = x.view_as(x), if the others are to keep their gradient"
            yield Finding("changed-by-hook", text, seq, ran.node, parts, fix, at, suspected=True)


_MOST_JUDGED = 100
_MOST_USES = 3


def _statistics_factor(before: Value | None, after: Value | None) -> float | None:
    """Return a negative factor that turns all statistics of one value into those of another; None if there is none."""
    was, became = (value.statistics() if value is not None and value.size > 1 else None for value in (before, after))
    if was is None or became is None or was.rms == 0 or not math.isfinite(was.rms) or was.zero != became.zero:
        return None
    factor = -became.rms / was.rms
    pairs = ((was.max, became.min), (was.min, became.max), (was.mean, became.mean))
    near = all(math.isclose(factor * old, new, rel_tol=1e-3, abs_tol=1e-4 * became.rms) for old, new in pairs)
    return factor if near and not math.isclose(was.max, -was.min, rel_tol=1e-3) else None


def _hooks_again(survey: Survey) -> Iterator[Finding | None]:
    """Yield hooks that one line registered several times on one tensor. In one pass each of them ran and changed it.

    If their number grows from pass to pass, the loop registers them again and again, which is surely a mistake.
    """
    timeline = survey.timeline
    ran: defaultdict[tuple[int, int, int], list[tuple[int, HookRan]]] = defaultdict(list)
    for seq, event in timeline.select((HookRan,)):
        if event.stack and event.value is not None and event.node in timeline.nodes:
            ran[event.pass_nr, event.node, event.stack].append((seq, event))
    most: dict[tuple[int, int], list[tuple[int, HookRan]]] = {}
    counts: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for (_, node, stack), runs in ran.items():
        counts[node, stack].append(len(runs))
        if len(runs) > max(1, len(most.get((node, stack), ()))) and len({event.output_nr for _, event in runs}) == 1:
            most[node, stack] = runs
    for (node, stack), runs in most.items():
        yield None
        frames = timeline.stack(stack)
        first, last = runs[0][1], runs[-1][0]
        names = shown(first.name), label(timeline, node)
        text = titled(f"the hook {{}} of {{}} ran {len(runs)} times in one backward pass", *names)
        grows = counts[node, stack][0] < counts[node, stack][-1]
        grown = f", and {times_text(counts[node, stack][0])} in the first pass" if grows else ""
        often = Finding("hook", f"it was registered as often{at_text(frames)}{grown}", last, node)
        fix = "register it once, in __init__ or before the loop, or remove() the handle after each pass"
        numbers = (Number("hooks", len(runs), last),)
        at = frames[0] if frames else None
        edit = _done_once(timeline, at) if grows else None
        yield Finding("changed-by-hook", text, last, node, (often,), fix, at, numbers, suspected=not grows, edit=edit)


# What the program's source code shows


def _done_once(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Move a statement out of a training loop, before it, or out of a method to the end of ``__init__``.

    A ``for`` loop with only this statement moves as a whole. Nothing moves that reads what the loop or method computes.
    """
    source = statement_at(timeline, at)
    if source is None:
        return None
    (text, one), around = source, list(source[1].around)
    block: ast.stmt = one.node
    while isinstance(around[-1], ast.For) and len(around[-1].body) == 1 and not around[-1].orelse:
        block = around.pop()  # type: ignore[assignment]  # a loop is a statement
    places = [place for place, part in enumerate(around) if isinstance(part, ast.FunctionDef | ast.ClassDef)]
    scope = around[places[-1]] if places else text.tree
    loops = [part for part in around[places[-1] if places else 0 :] if isinstance(part, ast.For | ast.While)]
    reads = names_read(block) - {name for part in ast.walk(block) for name in _bound(part)}
    target: ast.stmt | None = None
    if loops and around[-1] is loops[-1]:
        target, computed = loops[0], [part for part in ast.walk(loops[0]) if part not in set(ast.walk(block))]
    elif (
        not loops
        and isinstance(scope, ast.FunctionDef)
        and len(places) > 1
        and around[-1] is scope
        and len(scope.body) > 1
    ):
        owner = around[places[-2]]
        methods = owner.body if isinstance(owner, ast.ClassDef) and owner is around[-2] else []
        inits = [each for each in methods if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
        target = inits[0].body[-1] if inits and scope is not inits[0] else None
        reads -= {*positional_parameters(scope)[:1]}
        computed = [part for part in ast.walk(scope) if part not in set(ast.walk(block))]
    if target is None or reads & {name for part in computed for name in _bound(part)}:
        return None
    first, last = block.lineno, block.end_lineno or block.lineno
    row = text.rows[target.lineno - 1]
    shift = len(row) - len(row.lstrip()) - block.col_offset
    moved_rows = [f"{' ' * shift}{each}" if shift > 0 else each[-shift:] for each in text.rows[first - 1 : last]]
    place = target.lineno - 1 if loops else target.end_lineno or target.lineno
    rows = dict(enumerate(text.rows, 1))
    start, end = min(place + 1, first), max(place, last)
    new = [rows[number] for number in range(start, end + 1) if not first <= number <= last]
    index = sum(1 for number in range(start, place + 1) if not first <= number <= last)
    new[index:index] = moved_rows
    return lines_replaced(text, start, end, "".join(f"{each}\n" for each in new))


def _bound(part: ast.AST) -> Iterator[str]:
    """Yield the names that a node of the syntax tree binds: variables that are assigned, and parameters."""
    match part:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            yield name


# ----------------------------------------------------------------------------------------------------------------------
# Hooks of a leaf that write to the leaf: they were meant for the gradient.


def written_by_hook(survey: Survey) -> Iterator[Finding | None]:
    """Yield hooks after accumulation that write to their parameter and read no gradient: each hook once.

    Such a hook gets the parameter, and not its gradient. One that makes an update of its own reads ``.grad``. A write
    outside of the function of the hook is one of the program, between two hooks.
    """
    timeline, seen = survey.timeline, set[str]()
    since = 0
    for seq, ran in timeline.select((HookRan, OptimizerStarted, OptimizerStepped)):
        if not isinstance(ran, HookRan) or ran.when != "post accumulate" or ran.name in seen:
            since = seq
            continue
        yield None
        written = _written_inside(survey, ran, since, seq)
        since = seq
        if written is None:
            continue
        seen.add(ran.name)
        write, at, function = written
        if ".grad" in function.text:
            continue
        text = titled(
            f"the hook {shown(ran.name)} writes to {{}} itself, not to its gradient", label(timeline, ran.node)
        )
        registered = timeline.stack(ran.stack) if ran.stack else ()
        then = f"a hook after accumulation gets the parameter; it was registered{at_text(registered)}"
        part = Finding("hook", then, seq, ran.node, at=registered[0] if registered else None)
        fix = "write to its .grad in the hook, or use register_hook, whose hook gets the gradient"
        edit = wrapped(timeline, at, function.parameter, ".grad") if function.parameter else None
        yield Finding("written-by-hook", text, write, ran.node, (part,), fix, at, edit=edit)


def _written_inside(survey: Survey, ran: HookRan, start: int, end: int) -> tuple[int, Frame, _FunctionText] | None:
    """Return the first write to the memory of a leaf by its hook between two events, with its line and the hook."""
    record, timeline = survey.nodes.get(ran.node), survey.timeline
    storages = {output.storage for output in record.created.outputs} if record is not None else set()
    for seq, event in timeline.select((StorageWritten,), start, end):
        writer = survey.nodes.get(event.node) if event.storage in storages else None
        at = survey.at(writer) if writer is not None and writer.created.kind == "op" else None
        if writer is None or at is None:
            continue
        functions = (_function_around(timeline, frame, ran.name) for frame in timeline.stack(writer.created.stack))
        function = next((one for one in functions if one is not None), None)
        if function is not None:
            return seq, at, function
    return None


@dataclass(frozen=True, slots=True)
class _FunctionText:
    """The text of a function, and its first parameter; that of a method is the one after ``self``."""

    text: str
    parameter: str


def _function_around(timeline: Timeline, at: Frame | None, name: str) -> _FunctionText | None:
    """Return the function with this name, or the lambda, in which a frame is; None if it is in no such function."""
    text = program_text(timeline, at)
    if text is None or at is None:
        return None
    last = name.rpartition(".")[2]
    for part in ast.walk(text.tree):
        if not isinstance(part, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        known = "<lambda>" if isinstance(part, ast.Lambda) else part.name
        if known == last and _is_inside(part, at):
            names = positional_parameters(part)
            is_method = names[:1] in (["self"], ["cls"])
            return _FunctionText(text.segment(part), next(iter(names[is_method:]), ""))
    return None


def _is_inside(part: ast.expr | ast.stmt, at: Frame) -> bool:
    """Return whether the expression at a frame is a part of another. Unknown columns are those of the whole line."""
    start, end = (part.lineno, part.col_offset), (part.end_lineno or part.lineno, part.end_col_offset or 0)
    here = (at.line, at.column) if at.column >= 0 else (at.line, part.col_offset)
    return start <= here <= end
