"""An attribute ``requires_grad`` of a module, which changes none of its parameters."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from gviz.events import OptimizerStepped, ScopeEntered
from gviz.explain.display_names import label, titled
from gviz.explain.finding import Finding
from gviz.explain.program_text import (
    all_programs,
    binds_name,
    classes_named,
    method_class,
    names_read,
)
from gviz.explain.recording_survey import Survey
from gviz.explain.source_edit import statement_instead
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.number_text import times_text
from gviz.values.plain_text import shown


def module_flags(survey: Survey) -> Iterator[Finding | None]:
    """Yield assignments ``module.requires_grad = False`` of modules whose parameters are trained all the same.

    The opposite is reported, too: ``module.requires_grad = True`` where every parameter of the module stays frozen.

    Idea. A recording shows which modules have such an attribute, the parameters that their calls use, and whether an
    optimizer updates these. The text shows the line.

    Limits. A module whose class reads the attribute itself is left out, and so is one without such a line, as with
    `setattr`.
    """
    flagged = [event for event in survey.scopes.values() if event.plain_flags]
    if not flagged:
        return
    leaves = (record.node for record in survey.nodes.values() if record.created.kind != "op")
    tensors = {survey.timeline.info(node).name for node in leaves}
    assignments = [one for one in _flag_assignments(survey.timeline) if one.target not in tensors]
    kinds = {event.name: event.kind for event in survey.scopes.values()}
    reported: set[_FlagAssignment] = set()
    flags_seen = {one for event in flagged for one in event.plain_flags}
    for (path, flag), used in _parameters_by_flag(survey).items():
        yield None
        if (path, not flag) in flags_seen or _class_reads(survey.timeline, kinds.get(path, ""), "requires_grad"):
            continue
        fact = _still_trained(survey, used) if not flag else _still_frozen(survey, used)
        ranks = {one: one.rank(path, kinds.get(path, "")) for one in assignments if one.flag == flag}
        statement = min((one for one, rank in ranks.items() if rank), key=lambda one: ranks[one], default=None)
        if fact is None or statement is None or statement in reported:
            continue
        reported.add(statement)
        does = "unfreezes" if flag else "freezes"
        text = titled(f"requires_grad of the module {{}} {does} nothing: only tensors have it", shown(path))
        fix = f"{statement.target}.requires_grad_({flag}), which sets it for each parameter of the module"
        edit = statement_instead(survey.timeline, statement.at, f"{statement.target}.requires_grad_({flag})")
        if statement.target == "self":
            edit = None  # its modules may be made later in the method
        yield Finding("module-flag", text, fact.event, fact.node, (fact,), fix, statement.at, edit=edit)


def _parameters_by_flag(survey: Survey) -> dict[tuple[str, bool], dict[int, int]]:
    """Return the parameters that each flagged module uses, with the event of their first use under the flag."""
    used: defaultdict[tuple[str, bool], dict[int, int]] = defaultdict(dict)
    flags: dict[int, tuple[tuple[str, bool], ...]] = {}
    for record in survey.nodes.values():
        scope = record.created.scope
        if scope not in survey.scopes:
            continue
        if scope not in flags:
            flags[scope] = _flags_of(survey, survey.scopes[scope])
        for one in flags[scope]:
            for source in survey.sources(record):
                if source.created.kind == "parameter":
                    used[one].setdefault(source.node, record.seq)
    return used


def _flags_of(survey: Survey, scope: ScopeEntered) -> tuple[tuple[str, bool], ...]:
    """Return the flags of the module of a call and of the modules around it, the outermost first."""
    around = survey.scopes[survey.outermost(scope.scope)].plain_flags
    return tuple(one for one in around if scope.name == one[0] or scope.name.startswith(f"{one[0]}."))


def _still_trained(survey: Survey, used: dict[int, int]) -> Finding | None:
    """Return how often an optimizer has updated a parameter since its module was to be frozen; None for never."""
    counts: defaultdict[int, int] = defaultdict(int)
    last = 0
    for seq, step in survey.select(OptimizerStepped):
        for node in step.parameters:
            if node in used and seq > used[node]:
                counts[node] += 1
                last = seq
    if not counts:
        return None
    node = next(iter(counts))
    others = f", and {len(counts) - 1} more of its parameters" if len(counts) > 1 else ""
    text = f"an optimizer has updated {label(survey.timeline, node)} {times_text(counts[node])} since{others}"
    return Finding("used", text, last, node)


def _still_frozen(survey: Survey, used: dict[int, int]) -> Finding | None:
    """Return that no parameter of a module requires a gradient; None if one does."""
    states = survey.timeline.at(max(used.values())).states([*used])
    if any(state is None or state.requires_grad for state in states):
        return None
    node, seq = next(iter(used.items()))
    text = f"{label(survey.timeline, node)} requires no gradient, nor does any other parameter that it uses"
    return Finding("frozen", text, seq, node)


# What the text of the program says


# Assignments of a flag to modules and tensors: ``model.encoder.requires_grad = False``


@dataclass(frozen=True, slots=True)
class _FlagAssignment:
    """A line that sets ``requires_grad`` of something to a constant.

    `target` is its text, `loop` what a loop around the line goes through if the target is its variable, and `owner` the
    class of ``self``.
    """

    at: Frame
    target: str
    flag: bool
    loop: str
    owner: str

    def rank(self, path: str, kind: str) -> int:
        """Return how well it fits the module of a class at a path: 1 is best, and 0 means that it is of no module."""
        own, last = self.target.rpartition(".")[2], path.rpartition(".")[2]
        if own == last or (self.owner and self.owner == kind):
            return 1
        if own in ("weight", "bias", "data") or "parameters(" in self.loop:
            return 0
        return 2 if self.loop else 3


def _flag_assignments(timeline: Timeline) -> Iterator[_FlagAssignment]:
    """Yield the lines of a program that set ``requires_grad`` to True or False as an attribute."""
    for text in all_programs(timeline):
        for one in text.statements:
            match one.node:
                case ast.Assign(
                    targets=[ast.Attribute(value=target, attr="requires_grad")],
                    value=ast.Constant(value=bool() as flag),
                ):
                    names = names_read(target)
                    loops = (outer for outer in reversed(one.around) if isinstance(outer, ast.For))
                    loop = next((each for each in loops if any(binds_name(each.target, name) for name in names)), None)
                    items = text.segment(loop.iter) if loop is not None else ""
                    frame = Frame(text.path, "", one.first, one.first, -1, -1)
                    owner = method_class(one) if ast.unparse(target) == "self" else ""
                    yield _FlagAssignment(frame, text.segment(target), flag, items, owner)


def _class_reads(timeline: Timeline, name: str, attribute: str) -> bool:
    """Return whether a class of the program reads an attribute of ``self``."""
    parts = (part for _, owner in classes_named(timeline, name) for part in ast.walk(owner))
    reads = (part for part in parts if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Load))
    return any(part.attr == attribute and ast.unparse(part.value) == "self" for part in reads)
