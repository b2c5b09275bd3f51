"""The leaves that got no gradient from any pass, or zero from the last: which of them a check reports, and why."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from gviz.events import (
    BackwardFinished,
    DataSet,
    GradAccumulated,
    GradCaptured,
    NodeCreated,
    StorageWritten,
)
from gviz.explain.finding import Finding
from gviz.explain.grad_history import is_zero
from gviz.explain.operation_sets import SAME_NUMBERS
from gviz.explain.parameter_updates import idle_parameters, nodes_with_numbers, steps_by
from gviz.explain.program_text import takes_all_parameters
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.tracking import ancestors
from gviz.explain.why import why

MOST_EXPLAINED = 200
"""The most leaves that are examined one by one."""


def leaf_findings(survey: Survey) -> Iterator[Finding | None]:
    """Yield why leaves got no gradient from any pass, or zero from the last."""
    if all(event.inputs for _, event in survey.passes):
        return  # no pass, or only passes for some gradients
    timeline, end = survey.timeline, survey.timeline.at(survey.end)
    last = {event.node: (seq, event) for seq, event in survey.accumulated}
    alive = list(survey.alive(survey.passes[-1][0]))
    leaves = [record.node for record in alive if record.created.kind != "op" and record.created.requires_grad]
    failed = _before_failed_passes(survey)
    captured = {event.node for _, event in survey.select(GradCaptured)} - survey.skipped
    silent = [node for node in leaves if node not in {*last, *failed, *captured, *survey.roots}]
    silent = [node for node in silent if not _is_for_some_gradients(survey, node)]
    idle, stepped = idle_parameters(timeline, survey.end), steps_by(timeline, survey.end).parameters
    # an optimizer of a model that was replaced since: the finding about the new model's parameters names these
    was_replaced = any(node not in stepped for node in last)
    replaced = idle if was_replaced else frozenset()
    copied = {survey.nodes[node].created.stack for node in silent if _is_copy_of_trained(survey, node)} - {0}
    for node in silent[:MOST_EXPLAINED]:
        yield None
        finding = why(timeline, end, node, "grad")
        untrained = _is_never_trained(finding)
        is_of_other = bool(survey.optimized) and node not in survey.optimized
        is_left_out = (
            untrained and not survey.optimized and _is_written(survey, last) and not _is_written(survey, [node])
        )
        # so does the finding about a new layer, if no module and no variable refers to the old one any more
        is_old = node in replaced or (was_replaced and _has_lost_its_name(survey, node))
        of_old_model = finding.kind == "unused" and is_old
        is_free = is_of_other or not survey.optimized
        follows = finding.kind == "not-reached" and is_free and _is_set_from_others(survey, node)
        is_not_for_loss = [part.kind for part in finding.parts] == ["used", "dropped"]  # only features before it are
        is_not_for_loss = is_not_for_loss or _is_for_evaluation(survey, node, copied)
        if finding.kind == "not-reached" and is_of_other and is_not_for_loss:
            continue
        if of_old_model or follows or _is_taken_as_data(survey, finding) or _is_of_no_call(survey, finding):
            continue
        if not (untrained and is_of_other) and not is_left_out:  # else it follows others, as a target network does
            yield replace(finding, suspected=finding.suspected or is_of_other or (untrained and node not in idle))
    if survey.passes[-1][1].pass_nr in _failed(survey):
        return  # a program that stopped early: a single zero is no sign of a mistake
    # includes results on which requires_grad_() was called, but not those whose gradient became a part of the loss: the
    # derivative of a gradient penalty by its own input is zero for a network of relus
    again = {node for _, event in survey.passes if event.create_graph for node, _ in event.inputs} - survey.optimized
    added = [record.node for record in alive if record.node in last and record.node not in again]
    seen = set[tuple[str, int]]()
    for node in [node for node in added if is_zero(last[node][1].part)][:MOST_EXPLAINED]:
        yield None
        finding = why(timeline, timeline.at(last[node][0]), node, "grad")
        is_of_several = (finding.text, finding.event) in seen  # it is the same for each of them
        seen.add((finding.text, finding.event))
        is_on_purpose = (finding.kind == "masked" and _is_zero_by_data(survey, finding)) or (
            finding.kind == "saturated" and _is_annealed(survey, finding)
        )
        if is_on_purpose and (share := _share_of_passes(survey, node)):
            if share > 0.5:
                continue
            finding = replace(finding, suspected=True)
        if not is_of_several and (finding.kind != "cancelled" or not _is_offset(survey, node, last)):
            yield finding


def _share_of_passes(survey: Survey, node: int) -> float:
    """Return in which part of the passes a gradient was not zero; 0 if it was zero from the first pass on."""
    parts = [event.part for _, event in survey.accumulated if event.node == node]
    return 0.0 if is_zero(parts[0]) else sum(not is_zero(part) for part in parts) / len(parts)


def _is_zero_by_data(survey: Survey, finding: Finding) -> bool:
    """Return whether data make a gradient zero, such as equal rewards of a group."""
    factor = survey.nodes.get(finding.node)
    return factor is not None and factor.created.kind == "op" and not factor.created.requires_grad


def _is_annealed(survey: Survey, finding: Finding) -> bool:
    """Return whether a function is flat because a factor of its input has grown from iteration to iteration.

    In ``sigmoid(beta * s)`` with a beta that grows, the gates become hard on purpose. The factor is an untracked number
    that has grown at least twofold, and more than the rest of the input: weights or data that grew make it flat by
    themselves. A division by a temperature that falls is the same.
    """
    record = survey.nodes.get(finding.node)
    product = _scaled_input(survey, record) if record is not None else None
    if product is None:
        return False
    alike = (one for one in survey.ops(product.op) if one.created.stack == product.created.stack)
    first, last = (_factor_and_size(survey, one) for one in (next(alike), product))
    if first is None or last is None or not first[0] or not first[1]:
        return False
    growth, growth_of_rest = abs(last[0] / first[0]), last[1] / first[1]
    return growth >= _GROWN and growth > growth_of_rest


_GROWN = 2.0
"""A factor that has grown less than this is not annealed."""


def _scaled_input(survey: Survey, record: NodeRecord) -> NodeRecord | None:
    """Return the multiple, by an untracked number, that goes into a function, before a shift or in another shape."""
    for _ in range(_MOST_STEPS):
        tracked = [one for one in survey.sources(record) if one.created.requires_grad]
        if len(tracked) != 1:
            return None
        record = tracked[0]
        if record.op in ("mul", "div") and _factor_and_size(survey, record) is not None:
            return record
        if record.op not in SAME_NUMBERS | {"add", "sub", "neg"}:
            return None
    return None


_MOST_STEPS = 4
"""The most operations between a function and the multiple that goes into it."""


def _factor_and_size(survey: Survey, product: NodeRecord) -> tuple[float, float] | None:
    """Return the untracked number that scales a tracked tensor, and the size (RMS) of that tensor; else None."""
    sources = [*survey.sources(product)]
    if len(sources) != 2 or sources[0].created.requires_grad == sources[1].created.requires_grad:
        return None
    scaled, scale = sources if sources[0].created.requires_grad else reversed(sources)
    if scale.number is None or (product.op == "div" and (not scale.number or scale is sources[0])):
        return None
    value = survey.timeline.memory_value(scaled.node, 0, product.seq)
    stats = value.statistics() if value is not None else None
    return (1 / scale.number if product.op == "div" else scale.number, stats.rms) if stats is not None else None


def _is_offset(survey: Survey, node: int, last: dict[int, tuple[int, GradAccumulated]]) -> bool:
    """Return whether a bias cancels in a difference of two outputs, as in a ranking loss, and its weight does not."""
    users = [survey.nodes[user] for user in survey.timeline.nodes.users(node) if user in survey.nodes]
    factors = [one for user in users for one in survey.sources(user)]
    factors += [source for one in factors for source in survey.sources(one)]  # a weight may be transposed
    weights = {one.node for one in factors if len(one.shape) > 1 and one.node in last}
    name = survey.timeline.info(node).name
    return name.endswith("bias") and any(not is_zero(last[weight][1].part) for weight in weights)


def _is_for_some_gradients(survey: Survey, node: int) -> bool:
    """Return whether only passes for some gradients followed the first use of a leaf."""
    users = survey.timeline.nodes.users(node)
    whole = max(seq for seq, event in survey.passes if not event.inputs)
    return bool(users) and min(map(survey.timeline.nodes.born, users)) > whole


def _before_failed_passes(survey: Survey) -> set[int]:
    """Return the nodes that a pass which ended with an error would have reached, or may have."""
    failed = _failed(survey)
    if survey.passes[-1][1].pass_nr in failed:
        return set(survey.nodes)
    roots = {node for _, event in survey.passes if event.pass_nr in failed for node, _ in event.roots}
    return {*roots, *ancestors(survey.timeline, *roots)}


def _failed(survey: Survey) -> set[int]:
    """Return the passes that ended with an error."""
    return {event.pass_nr for _, event in survey.select(BackwardFinished) if event.error}


def _is_never_trained(finding: Finding) -> bool:
    """Return whether every path to the leaf ends where autograd is off, as for a copy that follows another model."""
    ends = [part.text for part in finding.parts]
    return finding.kind == "cut" and bool(ends) and all("no_grad" in text or "inference_mode" in text for text in ends)


def _is_for_evaluation(survey: Survey, node: int, copied: Collection[int]) -> bool:
    """Return whether a parameter is of a copy of the trained model, or was used only where autograd is off.

    `copied` are the call stacks of such copies. A copy serves an evaluation, or is kept as it is.
    """
    record = survey.nodes[node]
    users = [survey.nodes[user] for user in survey.timeline.nodes.users(node) if user in survey.nodes]
    is_off = all(user.created.untracked in ("no_grad", "inference") for user in users)
    if _is_written(survey, [node]) and not _is_set_from_others(survey, node):
        return False  # the program itself changes it: it is the model that others are copied from
    return record.created.stack in copied or (bool(users) and is_off)


def _is_copy_of_trained(survey: Survey, node: int) -> bool:
    """Return whether a parameter without an optimizer began with different numbers that one of an optimizer had."""
    record = survey.nodes[node]
    stats = record.value.statistics() if record.value is not None and node not in survey.optimized else None
    if record.value is None or stats is None or not stats.min < stats.max:
        return False
    return not survey.optimized.isdisjoint(nodes_with_numbers(survey.timeline, record.value, record.seq))


def _is_written(survey: Survey, nodes: Iterable[int]) -> bool:
    """Return whether the program wrote to the memory of some leaves after the first pass, as an update by hand does."""
    known = {node for node in nodes if node in survey.nodes}
    storages = {output.storage for node in known for output in survey.nodes[node].created.outputs}
    first = survey.passes[0][0]
    later = (event for seq, event in survey.select(StorageWritten, DataSet) if seq > first)
    return any(
        (isinstance(event, DataSet) and event.node in known)
        or (isinstance(event, StorageWritten) and event.storage in storages)
        for event in later
    )


def _is_set_from_others(survey: Survey, node: int) -> bool:
    """Return whether the program sets a parameter from others after their training, as Reptile and averages do.

    Such a parameter needs no gradient. A write that only depends on the parameter itself, such as a clamp, does not
    count.
    """
    timeline, first = survey.timeline, survey.passes[0][0]
    storages = {output.storage for output in survey.nodes[node].created.outputs}
    for seq, event in survey.select(StorageWritten, DataSet):
        match event:
            case DataSet(node=written, writer=writer) if written == node and seq > first:
                source = survey.nodes.get(writer)
            case StorageWritten(storage=storage, node=writer) if storage in storages and seq > first:
                source = survey.nodes.get(writer)
            case _:
                continue
        if isinstance(event, DataSet) and (source is None or source.created.kind != "op"):
            before = (timeline.event(one) for one in range(seq - 1, max(seq - _NEAR, 0), -1))
            made = (one.node for one in before if isinstance(one, NodeCreated) and one.first_value == event.value)
            source = survey.nodes.get(next(made, 0))
        if source is None or source.node == node:  # as by load_state_dict
            alike = nodes_with_numbers(timeline, event.value, seq) if not timeline.contexts.steps_at(seq) else ()
            source = next((survey.nodes[one] for one in alike if one in survey.nodes and one != node), None)
        origins = {source.node, *ancestors(timeline, source.node)} if source is not None else set()
        if any(survey.nodes[one].created.kind == "parameter" for one in origins - {node} if one in survey.nodes):
            return True
    return False


_NEAR = 20
"""The events before an assignment to ``.data`` among which its value was computed."""


def _is_taken_as_data(survey: Survey, finding: Finding) -> bool:
    """Return whether a program takes all parameters of a model as data, and no optimizer has this one.

    ``{k: v.detach() for k, v in model.named_parameters()}`` is the form that `torch.func` expects.
    """
    if finding.kind != "cut" or finding.node in survey.optimized or not finding.parts:
        return False
    cuts = [survey.nodes.get(part.node) for part in finding.parts]
    return all(
        cut is not None
        and cut.created.untracked in ("detach", "data")
        and takes_all_parameters(survey.timeline, survey.at(cut))
        for cut in cuts
    )


def _is_of_no_call(survey: Survey, finding: Finding) -> bool:
    """Return whether a parameter belongs to a template of copies: an uncalled model without an optimizer."""
    is_of_other = bool(survey.optimized) and finding.node not in survey.optimized
    return finding.kind == "unused" and is_of_other and _has_lost_its_name(survey, finding.node)


def _has_lost_its_name(survey: Survey, node: int) -> bool:
    """Return whether no module that was called and no variable refers to a parameter."""
    record = survey.nodes.get(node)
    return record is not None and record.created.kind == "parameter" and node not in survey.timeline.nodes.named
