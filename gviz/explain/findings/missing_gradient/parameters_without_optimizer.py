"""Parameters that get a gradient and that no optimizer updates: it does not have them, or no step ever runs."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from gviz.events import DataSet, GradAccumulated, GradCaptured, OptimizerStepped, StorageWritten
from gviz.explain.backward_passes import call_of_pass, pass_started
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.findings.missing_gradient.copied_model import copies_with_returned_gradient
from gviz.explain.findings.missing_gradient.no_gradient import PARAMETER_LAST, nameless_leaf, variables_read
from gviz.explain.findings.missing_gradient.unregistered_layers import (
    PlainContainer,
    container_of,
    has_optimizer,
    layers_in_container,
)
from gviz.explain.parameter_updates import Steps, steps_by
from gviz.explain.program_text import (
    assignment,
    frame_of,
    line_text,
    program_text,
    receiver,
    statement_at,
    target_of,
    update_in_place,
)
from gviz.explain.recording_survey import Survey
from gviz.explain.source_edit import after, in_block, moved, parameter_last
from gviz.explain.source_frames import at_text, innermost, own_frames
from gviz.explain.tracking import ancestors
from gviz.source.call_stack import Frame
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import clipped, shown
from gviz.values.value_text import grad


def never_stepped(survey: Survey) -> Iterator[Finding]:
    """Yield leaves that got a gradient and that no optimizer and no line of the program has changed since.

    Inputs with respect to which the program takes derivatives, as the points of a differential equation, do not count.
    """
    if survey.timeline.failures:  # the update may have come later
        return
    requested_nodes = {event.node for _, event in survey.select(GradCaptured)}
    leaves = dict.fromkeys(event.node for _, event in survey.accumulated if event.node in survey.nodes)
    returned = copies_with_returned_gradient(survey)
    single, listed = list[Finding](), dict[str, list[Finding]]()
    containers: dict[str, PlainContainer] = {}
    for node in leaves:
        is_data = node in requested_nodes and survey.nodes[node].created.kind != "parameter"
        is_used = is_data or node in survey.optimized or node in returned
        finding = None if is_used else unused_gradient(survey.timeline, node, survey.end)
        if finding is None:
            continue
        is_parameter = survey.nodes[node].created.kind == "parameter"
        container = container_of(survey.timeline, survey.timeline.info(node), finding.at)
        if container is None or not is_parameter or has_optimizer(survey, container):
            single.append(finding)
        else:
            containers[container.text] = container
            listed.setdefault(container.text, []).append(finding)
    yield from _at_one_level(survey.timeline, single)
    for name, findings in listed.items():
        yield layers_in_container(containers[name], findings)


def _at_one_level(timeline: Timeline, findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yield the findings, and give those about the parameters of one layer the level of the surest of them.

    The parameters of a layer share the call that made them, and it is one fact that the optimizer has none of them.
    """
    layers = [
        tuple((frame.path, frame.line) for frame in own_frames(timeline.info(one.node).frames)) for one in findings
    ]
    sure = {layer for one, layer in zip(findings, layers, strict=True) if layer and not one.suspected}
    for one, layer in zip(findings, layers, strict=True):
        is_parameter = timeline.info(one.node).created.kind == "parameter"
        yield replace(one, suspected=False) if is_parameter and layer in sure else one


# Unused gradients: of leaves that no optimizer step and no line of the program ever changes

_PASSES = 3
"""The fewest passes after which a parameter is probably trained, and not only examined."""


def unused_gradient(timeline: Timeline, node: int, n: int) -> Finding | None:
    """Return a finding if nothing has used the gradients of a leaf by event `n`; None if something has.

    It is only suspected if the program may use the gradients themselves.
    """
    added = _added(timeline, node, n)
    if not added:
        return None
    steps, info = steps_by(timeline, n), timeline.info(node)
    if node in steps.parameters or _is_a_loss(timeline, node, added[0][1]):
        return None
    if info.created.kind != "parameter" and (_is_grad_input(timeline, node, n) or _is_copy(timeline, node, steps)):
        return None
    inputs = frozenset[int]()
    if info.created.kind == "parameter" and not steps.idle:
        inputs = _inputs_that_count(timeline, added, steps, n)
        if inputs and inputs.isdisjoint(steps.parameters):
            return None
    if inputs:
        return _fixed_model(timeline, info, added, steps, min(inputs & steps.parameters))
    if steps.count:
        return _not_in_optimizer(timeline, info, added, steps)
    if not _is_of_a_loop(timeline, [event for _, event in added]):
        return None
    recomputed = _recomputed(timeline, info, added[0][0])
    return _never_updated(timeline, info, added) if recomputed is None else recomputed


def _is_grad_input(timeline: Timeline, node: int, n: int) -> bool:
    """Return whether the program takes derivatives with respect to a leaf by autograd.grad, and needs no ``.grad``."""
    return any(isinstance(timeline.event(seq), GradCaptured) for seq in timeline.events_of(node) if seq <= n)


def _is_copy(timeline: Timeline, node: int, steps: Steps) -> bool:
    """Return whether a leaf was made from a parameter of an optimizer: the cut between them is another finding."""
    return not steps.parameters.isdisjoint(ancestors(timeline, node))


def _added(timeline: Timeline, node: int, n: int) -> list[tuple[int, GradAccumulated]]:
    """Return the additions of passes to the ``.grad`` of a leaf by event `n`; empty if the leaf changed since."""
    added = []
    for seq in timeline.events_of(node):
        if seq > n:
            break
        event = timeline.event(seq)
        if isinstance(event, GradAccumulated):
            added.append((seq, event))
        elif added and isinstance(event, StorageWritten | DataSet):
            return []
    return added


# Fixed models that serve only the gradient with respect to an input: for an attack, a picture or a latent vector


def _inputs_that_count(
    timeline: Timeline, added: list[tuple[int, GradAccumulated]], steps: Steps, n: int
) -> frozenset[int]:
    """Return the inputs whose gradients are what the passes to a parameter were for; empty if they train a model.

    An input is a leaf of no model. Its gradient counts if the program reads it, or if an optimizer holds the input.
    """
    leaves = timeline.once(_leaves_by_pass, n)
    found: set[int] = set()
    for reached in {leaves[event.pass_nr] for _, event in added}:
        inputs = {node for node in reached if _is_input_that_counts(timeline, node, steps)}
        if not inputs or not steps.parameters.isdisjoint(reached - inputs):
            return frozenset()
        found |= inputs
    return frozenset(found)


def _leaves_by_pass(timeline: Timeline, n: int) -> dict[int, frozenset[int]]:
    """Return to which leaves each pass by event `n` brought a gradient."""
    leaves: defaultdict[int, set[int]] = defaultdict(set)
    for _, event in timeline.select((GradAccumulated,), 1, n + 1):
        leaves[event.pass_nr].add(event.node)
    return {number: frozenset(reached) for number, reached in leaves.items()}


def _is_input_that_counts(timeline: Timeline, node: int, steps: Steps) -> bool:
    if node not in timeline.nodes:
        return False
    info = timeline.info(node)
    at = innermost(info)
    if info.created.kind == "parameter" and not (info.name and target_of(timeline, at) == info.name):
        return False
    if node in steps.parameters or (timeline.nodes.origins.gradient_of == node).any():
        return True
    text = (timeline.source(at.path) if at is not None else None) or ""
    return any(name == info.name for name, _ in variables_read(text, "grad"))


def _fixed_model(
    timeline: Timeline, info: NodeInfo, added: list[tuple[int, GradAccumulated]], steps: Steps, trained: int
) -> Finding:
    """Return the finding about a parameter on the path to an input that an optimizer holds, such as a picture."""
    text = titled("{} gets a gradient, but no optimizer has updated it", label(timeline, info.node))
    fact, model = _other_parameters(timeline, steps, added), _model_without_optimizer(timeline, info, steps)
    frozen = f"{model}.requires_grad_(False)" if model else "requires_grad_(False) on its model"
    fix = f"{frozen}, if only {label(timeline, trained)} is to change; or pass its parameters to an optimizer, too"
    return Finding("never-stepped", text, added[0][0], info.node, (fact,), fix, innermost(info), suspected=True)


def _is_a_loss(timeline: Timeline, node: int, first: GradAccumulated) -> bool:
    """Return whether the pass began at the leaf itself: it is a loss without a history, not a parameter."""
    started = pass_started(timeline, first.pass_nr)
    return started is not None and any(root == node for root, _ in started.roots)


def _not_in_optimizer(
    timeline: Timeline, info: NodeInfo, added: list[tuple[int, GradAccumulated]], steps: Steps
) -> Finding | None:
    """Return the finding about optimizers with other parameters: surely a mistake if one of them has no gradient."""
    name, seq = label(timeline, info.node), added[0][0]
    if (result := _result_in_its_place(timeline, info)) is not None:
        return _not_registered(timeline, info, result, added, steps)
    if not steps.idle:
        if info.created.kind != "parameter" and not _piles_up(timeline, [event for _, event in added]):
            return None
        text = titled("{} gets a gradient, but no optimizer has updated it", name)
        fact, born = _other_parameters(timeline, steps, added), innermost(info)
        remedy = "pass it to an optimizer, too (layers in a list need nn.ModuleList)"
        if fact.at is not None and born is not None and fact.at.path == born.path and fact.at.line < born.line:
            remedy = "make the optimizer of all parameters() after this line"
        if info.created.kind != "parameter":
            remedy = "make it an nn.Parameter of the model, so that parameters() has it for the optimizer"
        fix = f"{remedy}, or freeze it with requires_grad_(False)"
        is_certain = len(added) > 1 and _follows_trained(timeline, info, steps)
        if not is_certain and (model := _model_without_optimizer(timeline, info, steps)):
            fix = f"call {model} under torch.no_grad(), if it is a teacher; or pass its parameters to an optimizer, too"
        return Finding("never-stepped", text, seq, info.node, (fact,), fix, born, suspected=not is_certain)
    if info.created.kind != "parameter" and _is_made_in_several_iterations(timeline, info):
        return None  # a loss that each iteration makes anew: the finding is that it reaches no parameter
    step = timeline.event(steps.idle[-1])
    assert isinstance(step, OptimizerStepped)
    frames, kind = timeline.stack(step.stack), shown(step.kind)
    text = titled("{} gets a gradient, but no optimizer holds it", name)
    others = f"{label_at(timeline, step.skipped[0])} and others" if step.skipped else "other parameters"
    idle = f"the step of {kind}{at_text(frames)} found no gradient: it holds {others}"
    at = frames[0] if frames else None
    fix = "make the optimizer after the model is as it stays, of that model's parameters()"
    parts = (Finding("idle", idle, steps.idle[-1], at=at),)
    construction = assignment(timeline, at, receiver(timeline, at, "step"))
    born = innermost(info)
    is_later = (
        construction is not None
        and born is not None
        and construction.path == born.path
        and construction.line < born.line
    )
    edit = moved(timeline, construction, born) if is_later and _are_in_one_block(timeline, construction, born) else None
    return Finding(
        "never-stepped", text, seq, info.node, parts, fix, born if is_later else construction or born, edit=edit
    )


def _model_without_optimizer(timeline: Timeline, info: NodeInfo, steps: Steps) -> str:
    """Return the variable of a parameter's model if no optimizer holds any parameter of it, as of a teacher."""
    model, _, path = info.name.partition(".") if info.created.kind == "parameter" else ("", "", "")
    names = (timeline.info(node).name for node in steps.parameters)
    return model if path and model.isidentifier() and not any(name.partition(".")[0] == model for name in names) else ""


def _are_in_one_block(timeline: Timeline, *lines: Frame | None) -> bool:
    """Return whether the same functions, loops and branches are around some lines."""
    found = [one[1].around if (one := statement_at(timeline, at)) is not None else None for at in lines]
    return None not in found and len(set(found)) == 1


def _result_in_its_place(timeline: Timeline, info: NodeInfo) -> NodeInfo | None:
    """Return the named result that the line of a nameless parameter made from it, if nothing else uses the parameter.

    ``self.token = nn.Parameter(torch.randn(d)).view(1, 1, d)`` keeps the result of ``view``, which is no parameter.
    """
    users = [timeline.info(user) for user in timeline.nodes.users(info.node)]
    if info.created.kind != "parameter" or len(users) != 1 or not users[0].name:
        return None
    leaf = nameless_leaf(timeline, users[0])
    return users[0] if leaf is not None and leaf.node == info.node else None


def _not_registered(
    timeline: Timeline, info: NodeInfo, result: NodeInfo, added: list[tuple[int, GradAccumulated]], steps: Steps
) -> Finding:
    """Return the finding about an attribute that holds a result of a parameter, so that no module has the parameter."""
    text = titled("{} is no parameter: it is computed from one", label(timeline, result.node))
    fact, at = _other_parameters(timeline, steps, added), innermost(result)
    edit = parameter_last(timeline, at)
    return Finding("never-stepped", text, added[0][0], info.node, (fact,), PARAMETER_LAST, at, edit=edit)


def _other_parameters(timeline: Timeline, steps: Steps, added: Sequence[tuple[int, GradAccumulated]]) -> Finding:
    """Return the fact that the latest optimizer step updates other parameters, with the line that makes the optimizer.

    It adds what has arrived at the leaf in the meantime."""
    step = timeline.event(steps.last)
    assert isinstance(step, OptimizerStepped)
    frames = timeline.stack(step.stack)
    at = frames[0] if frames else None
    construction = assignment(timeline, at, receiver(timeline, at, "step")) or at
    count = len(step.parameters) + len(step.skipped)
    others = f"{count} other parameter{'s' * (count != 1)}"
    latest = added[-1][1]
    total = latest.value or latest.part
    passes = f"{len(added)} passes" if len(added) > 1 else "one pass"
    place = at_text((construction,) if construction else ())
    text = f"{shown(step.kind)}{place} holds {others}; its .grad is {grad(total, _ROOM)}"
    return Finding("held", f"{text} after {passes}", steps.last, at=construction)


def _is_made_in_several_iterations(timeline: Timeline, info: NodeInfo) -> bool:
    """Return whether the line that made a leaf has made another one in another iteration."""
    origins, nodes = timeline.nodes.origins, timeline.nodes
    alike = (origins.stack == info.created.stack).nonzero()[0].tolist() if info.created.stack else []
    ends = [timeline.info(nodes[place]).iteration for place in (alike[:1] + alike[-1:])]
    return len(set(ends)) > 1


def _follows_trained(timeline: Timeline, info: NodeInfo, steps: Steps) -> bool:
    """Return whether trained parameters come before this one on the way to the loss, as with a replaced head.

    A program that trains only a head on an unchanged model may have frozen nothing. What is done to the parameter
    without a graph, such as an initialization, is no use of it.
    """
    users = (user for user in timeline.nodes.users(info.node) if timeline.info(user).created.requires_grad)
    return info.created.kind == "parameter" and any(
        source in steps.parameters
        for user in islice(users, 1)
        for later in (user, *timeline.nodes.users(user))
        for source in ancestors(timeline, later)
    )


def _piles_up(timeline: Timeline, added: list[GradAccumulated]) -> bool:
    """Return whether a loop has added to the gradient several times and nothing cleared it."""
    uncleared = all(event.value is not None for event in added[1:])
    return len(added) >= _PASSES and uncleared and _is_of_a_loop(timeline, added)


def _is_of_a_loop(timeline: Timeline, added: list[GradAccumulated]) -> bool:
    """Return whether one line called the last two passes, as in a training loop."""
    return len(added) > 1 and len({call_of_pass(timeline, event.pass_nr) for event in added[-2:]} - {0}) == 1


def _recomputed(timeline: Timeline, info: NodeInfo, seq: int) -> Finding | None:
    """Return the finding about an update that makes a new, unused tensor from the leaf and its gradient."""
    update = next(
        (user for user in _computed_updates(timeline, info.node) if not timeline.nodes.users(user.node)), None
    )
    if update is None:
        return None
    at, name = innermost(update), shown(update.name)
    text = titled("{} stays as it was: its update makes a new tensor", label(timeline, info.node))
    new_tensor = f"{label_at(timeline, update.node)} is that tensor, and nothing uses it"
    in_place = update_in_place(line_text(timeline, at), update.name)
    fix = f"with torch.no_grad(): {clipped(in_place, 80)}" if in_place else f"with torch.no_grad(): {name or 'it'} -= …"
    parts = (Finding("recomputed", new_tensor, update.born, update.node, at=at),)
    edit = in_block(timeline, at, "with torch.no_grad():", in_place) if in_place else None
    return Finding("never-stepped", text, seq, info.node, parts, fix, at, edit=edit)


def _computed_updates(timeline: Timeline, node: int) -> list[NodeInfo]:
    """Return the nodes that were computed from a leaf and its latest gradient."""
    owners = timeline.nodes.origins.gradient_of
    latest = [timeline.nodes[place] for place in (owners == node).nonzero()[0][-1:].tolist()]
    scaled = {user for gradient in latest for user in timeline.nodes.users(gradient)}
    infos = map(timeline.info, sorted({*scaled, *(user for one in scaled for user in timeline.nodes.users(one))}))
    return [info for info in infos if node in {source for source, _ in info.created.inputs}]


def _never_updated(timeline: Timeline, info: NodeInfo, added: list[tuple[int, GradAccumulated]]) -> Finding | None:
    if info.created.kind != "parameter" or len(added) < _PASSES:
        return None  # the program may only look at its gradient
    text = titled(f"{{}} got gradients in {len(added)} passes, and nothing has updated it", label(timeline, info.node))
    fix = "optimizer.step() after backward(), if it is to learn"
    started = pass_started(timeline, added[-1][1].pass_nr)
    frames = timeline.stack(started.stack) if started is not None else ()
    at = frames[0] if frames else innermost(info)
    name = optimizer_named(timeline, at)
    skipped = _conditional_call(timeline, at, name, "step") if name else None
    if skipped is not None:
        condition = clipped(skipped.condition, 80)
        never = f"{name}.step() never ran: {condition} was not true in any of {len(added)} passes"
        part = Finding("idle", never, added[-1][0], at=skipped.at)
        fix = "a condition that comes true: fewer batches to accumulate, or a step after the last batch of each epoch"
        if "%" not in skipped.condition:
            fix = "a condition that comes true, if it is to learn"
        suspected = "%" not in skipped.condition  # a switch of the program may be off on purpose
        return Finding("never-stepped", text, added[0][0], info.node, (part,), fix, skipped.at, suspected=suspected)
    edit = after(timeline, at, f"{name}.step()") if name else None
    suspected = not name or not _only_clears(timeline, at, name)
    return Finding("never-stepped", text, added[0][0], info.node, (), fix, at, suspected=suspected, edit=edit)


_ROOM = 40
"""Characters for a gradient in the finding."""


# What the program's source code shows


def optimizer_named(timeline: Timeline, at: Frame | None) -> str:
    """Return the only optimizer's name in a program, as in ``opt = torch.optim.SGD(...)``; empty
    for none or several.
    """
    text = program_text(timeline, at)
    names = set()
    for one in text.statements if text is not None else ():
        match one.node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Attribute(value=package))) if (
                text is not None and text.segment(package).split(".")[-1] == "optim"
            ):
                names.add(name)
    return names.pop() if len(names) == 1 else ""


def _only_clears(timeline: Timeline, at: Frame | None, name: str) -> bool:
    """Return whether a program clears the gradients by its optimizer, and no line of it takes a step or reads a .grad.

    A program that only looks at its gradients reads them, or has a hook.
    """
    text = program_text(timeline, at)
    attributes = [part for one in text.statements for part in one.parts(ast.Attribute)] if text is not None else []
    used = {part.attr for part in attributes}
    clears = any(part.attr == "zero_grad" and ast.unparse(part.value) == name for part in attributes)
    return clears and not used & _USES_OF_GRADIENTS and not any("hook" in attr for attr in used)


_USES_OF_GRADIENTS = {"step", "grad", "clip_grad_norm_", "clip_grad_value_", "get_total_norm"}


@dataclass(frozen=True, slots=True)
class _ConditionalCall:
    """A call that runs only under a condition: the line of the ``if``, and the text of the condition."""

    at: Frame
    condition: str


def _conditional_call(timeline: Timeline, at: Frame | None, name: str, method: str) -> _ConditionalCall | None:
    """Return the only ``name.method()`` in the loop around a line, if an ``if`` of that loop encloses it."""
    source = statement_at(timeline, at)
    if source is None or at is None:
        return None
    text, here = source
    loop = next((part for part in reversed(here.around) if isinstance(part, ast.For | ast.While)), None)
    if loop is None:
        return None
    inside = [one for one in text.statements if loop in one.around]
    calls = [one for one in inside if any(_is_call_of(call, name, method) for call in one.parts(ast.Call))]
    if len(calls) != 1:
        return None
    around = calls[0].around
    branches = [part for part in around[around.index(loop) :] if isinstance(part, ast.If) and part not in here.around]
    if len(branches) != 1 or not any(calls[0].node in ast.walk(one) for one in branches[0].body):
        return None  # of several conditions, or in an else, it is not known which was not true
    condition = " ".join(text.segment(branches[0].test).split())
    return _ConditionalCall(frame_of(at, branches[0].lineno, text), condition)


def _is_call_of(call: ast.Call, name: str, method: str) -> bool:
    match call.func:
        case ast.Attribute(value=value, attr=attribute):
            return attribute == method and ast.unparse(value) == name
    return False
