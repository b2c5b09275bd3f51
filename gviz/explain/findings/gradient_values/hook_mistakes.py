"""Hooks that make zero of a gradient or turn it round, and hooks that a loop registers again and again."""

from __future__ import annotations

import ast
import math
from collections import defaultdict
from collections.abc import Iterator

from gviz.events import HookRan
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.hook_effects import HOOK_FIX, hook_finding, hooks_of
from gviz.explain.program_text import (
    names_read,
    positional_parameters,
    statement_at,
)
from gviz.explain.recording_survey import Survey
from gviz.explain.source_edit import Edit, lines_replaced
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


# What the text of the program says


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
