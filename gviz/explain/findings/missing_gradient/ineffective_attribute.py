"""Attributes without an effect: ``requires_grad`` of a module, a misspelt one, the ``lr`` of an optimizer.

Python adds any attribute to these objects, without an error.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Set
from dataclasses import dataclass

from gviz.events import OptimizerStarted, OptimizerStepped, ScopeEntered
from gviz.explain.display_names import label, titled
from gviz.explain.finding import Finding
from gviz.explain.optimizer_construction import constructions
from gviz.explain.program_text import (
    ProgramText,
    Statement,
    all_programs,
    assigned_parts,
    binds_name,
    called_name,
    classes_named,
    frame_of_part,
    method_class,
    names_read,
    own_programs,
)
from gviz.explain.recording_survey import Survey
from gviz.explain.source_edit import node_replaced, statement_instead
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


# Attributes that PyTorch does not have: ``p.require_grad = False``, ``optimizer.lr = 0.01``

_MISSPELT = re.compile(r"req[uire]{2,5}[sd]?_?grad(ient)?s?", re.IGNORECASE)
"""Names that are meant as ``requires_grad``."""

_OPTIONS = {"lr": "lr", "learning_rate": "lr", "momentum": "momentum", "weight_decay": "weight_decay"}
"""Attributes of an optimizer that programs set, and the option of its groups that they mean."""


def unread_attributes(survey: Survey) -> Iterator[Finding | None]:
    """Yield assignments to attributes that PyTorch does not have, of parameters and of optimizers.

    Limits. What the program reads or defines itself is not reported, whoever reads it.
    """
    kinds = {step.kind for _, step in survey.timeline.select((OptimizerStarted,))}
    for text in own_programs(survey.timeline):
        yield None
        attributes = [part for one in text.statements for part in one.parts(ast.Attribute)]
        read = {part.attr for part in attributes if isinstance(part.ctx, ast.Load)}
        own = {one.node.name for one in text.statements if isinstance(one.node, ast.ClassDef)}
        of_own = _names_of_objects(text, own)
        made = {name for kind in kinds - own for one in constructions(text, kind) for name in one.targets}
        for one in text.statements:
            match one.node:
                case ast.Assign(targets=[ast.Attribute() as target], value=value):
                    pass
                case ast.AugAssign(target=ast.Attribute() as target, value=value):
                    pass
                case _:
                    continue
            at, name, owner = frame_of_part(text, one.node), target.attr, text.segment(target.value)
            if _is_misspelt(name) and name not in read and isinstance(value, ast.Constant) and owner not in of_own:
                title = titled("{} is no attribute of a tensor: it changes nothing", shown(name))
                fix = f"{shown(owner)}.requires_grad = {shown(text.segment(value))}"
                fact = Finding("beside", "the line makes a new attribute, which PyTorch does not read", survey.end)
                edit = node_replaced(text, target, f"{owner}.requires_grad")
                yield Finding("unread-attribute", title, survey.end, 0, (fact,), fix, at, edit=edit)
            elif name in _OPTIONS and owner.split(".")[-1] in made and not _is_used(text, one, target):
                title = titled("{} has no effect: the option is in param_groups", f"{shown(owner)}.{name}")
                option = _OPTIONS[name]
                fix = f'for group in {shown(owner)}.param_groups: group["{option}"] = …'
                fact = Finding("beside", f"the steps take {option} from the groups of the optimizer", survey.end)
                yield Finding("unread-attribute", title, survey.end, 0, (fact,), fix, at)


def _is_misspelt(name: str) -> bool:
    return name != "requires_grad" and _MISSPELT.fullmatch(name) is not None


_NAMESPACES = {"Namespace", "SimpleNamespace", "parse_args", "EasyDict"}
"""Calls whose results hold the settings of a program under any names."""


def _names_of_objects(text: ProgramText, own: Set[str]) -> set[str]:
    """Return the names of namespaces and of objects of the program's own classes: what their calls are assigned to, and
    ``self``.

    Modules count: their attributes are those of `module_flags`.
    """
    names = set[str]()
    for one in text.statements:
        if isinstance(one.node, ast.Assign) and isinstance(one.node.value, ast.Call):
            if called_name(one.node.value) in own | _NAMESPACES:
                names |= {ast.unparse(part) for part in assigned_parts(one.node)}
        elif isinstance(one.node, ast.FunctionDef) and method_class(one):
            names |= {argument.arg for argument in one.node.args.args[:1]}
    return names


def _is_used(text: ProgramText, own: Statement, target: ast.Attribute) -> bool:
    """Return whether the program computes with the attribute, or also writes the option to the groups.

    Such programs have ``group["lr"] = rate``, or a decay by hand. Printing it is no use.
    """
    name = ast.unparse(target)
    reads = (part for one in text.statements if one is not own for part in one.parts(ast.BinOp))
    if any(ast.unparse(part) == name for each in reads for part in ast.walk(each) if isinstance(part, ast.Attribute)):
        return True
    return any(
        isinstance(one.node, ast.Assign | ast.AugAssign)
        and any(
            isinstance(part, ast.Subscript) and getattr(part.slice, "value", None) == _OPTIONS[target.attr]
            for part in assigned_parts(one.node)
        )
        for one in text.statements
    )


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


# What the program's source code shows


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
