"""Parameters that steps do not change, and parameters that several modules share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from math import floor, isfinite, log2

import numpy as np

from gviz.events import DataSet, GradAccumulated, GradSet, HookRan, OptimizerStepped, StorageWritten
from gviz.explain.display_names import innermost, label, made_at, titled
from gviz.explain.edit import after, assignment, filled_at, named_type, receiver, with_keyword, written_name
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.vanishing_exploding import Waypoint, is_cancelled, path_to, vanishing
from gviz.explain.findings.zero_gradient import first_use, zeroed_at
from gviz.explain.grad_history import is_zero
from gviz.explain.hook_effects import HookEffect, hooks_of
from gviz.explain.parameter_updates import next_step, options_of
from gviz.explain.program_source import line_text
from gviz.explain.recording_overview import Made, Survey
from gviz.explain.tracking import ancestors
from gviz.source.site import Frame
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number
from gviz.values.plain_text import shown
from gviz.values.value import Array, Value, capture
from gviz.values.value_text import grad, norm


@dataclass(slots=True)
class _Parameter:
    """The effect of the steps on one parameter: its gradient, the first step's event, and their number.

    The gradient is its norm, and the `largest` of the absolute elements so far.

    It is `exact` as long as all its numbers were compared, not only their statistics.
    """

    gradient: float = 0.0
    largest: float = 0.0
    filled: int = 0
    first: int = 0
    steps: int = 0
    moved: bool = False
    exact: bool = True


def unchanged(survey: Survey) -> Iterator[Finding | None]:
    """Yield parameters that every step wrote with the numbers that they had before."""
    known: dict[int, _Parameter] = {}
    for seq, stepped in _updates(survey, known):
        yield None
        for one in (known[node] for node in stepped):
            one.first = one.first or seq
            one.steps += 1
    for node, one in known.items():
        if one.steps and not one.moved:
            yield None
            path = path_to(survey.timeline, node, one.filled, one.gradient)
            if not is_cancelled(path):  # a bias before a normalization has no effect
                yield _unchanged_finding(survey, node, one, path)


def _updates(survey: Survey, known: dict[int, _Parameter]) -> Iterator[tuple[int, list[int]]]:
    """Yield the events that end a step, each with the parameters that had a gradient and were written by the step.

    The result for each parameter is stored in `known`; once a parameter has changed, it is not compared again.
    """
    parameters = [survey.nodes[node] for node in survey.optimized if node in survey.nodes]
    # Parameters that share memory have events of their own.
    outputs = ((made, made.created.outputs[0]) for made in parameters)
    owners = {output.storage: made.node for made, output in outputs if output.strides is None}
    holds = {made.node: made.value for made in parameters}
    written: set[int] = set()
    for seq, event in survey.select(StorageWritten, DataSet, GradAccumulated, OptimizerStepped):
        match event:
            case StorageWritten() | DataSet() if (node := _written(event, owners)) in holds:
                one = known.setdefault(node, _Parameter())
                if not one.moved:
                    one.moved = _numbers(event.value) != _numbers(holds[node])
                    one.exact &= (event.value.data or event.value.blob) is not None
                    holds[node] = event.value
                    written.add(node)
            case GradAccumulated(node=node, part=part):
                one = known.setdefault(node, _Parameter())
                if not one.moved:
                    one.gradient, one.filled = norm(part) or 0.0, seq
                    one.largest = max(one.largest, _largest(part))
            case OptimizerStepped(parameters=stepped):
                yield seq, [node for node in stepped if node in written and known[node].gradient]
                written.difference_update(stepped)
                continue
        yield seq, []


def _written(event: StorageWritten | DataSet, owners: dict[int, int]) -> int:
    """Return the parameter that was written to, 0 for anything else."""
    return owners.get(event.storage, 0) if isinstance(event, StorageWritten) else event.node


def _numbers(value: Value | None) -> tuple[object, ...] | None:
    """Return the numbers without the shape: a memory has another shape than the parameter in it."""
    return None if value is None else (value.data, value.stats, value.blob)


def _unchanged_finding(survey: Survey, node: int, one: _Parameter, path: list[Waypoint]) -> Finding:
    timeline = survey.timeline
    often, have = (f"{one.steps} steps", "have") if one.steps > 1 else ("a step", "has")
    told = "" if one.exact else "; it did not change, as far as its statistics show"
    text = titled(f"{often} of the optimizer {have} left {{}} as it was", label(timeline, node))
    died = vanishing(timeline, path)
    size = Finding("gradient", f"its gradient was |g| {number(one.gradient)}{told}", one.filled, node)
    part = replace(died, text=f"{died.text}, at {died.where}{told}", fix="") if died is not None else size
    step, rate = timeline.event(one.first), options_of(timeline, node, one.first).get("lr")
    call = next(iter(timeline.stack(step.stack)), None) if isinstance(step, OptimizerStepped) else None
    suspected = one.steps == 1 or not one.exact  # a schedule may begin with 0
    if (replaced := _replaced(survey, node, one)) is not None:
        return replaced
    if rate == 0:
        text = titled(f"{often} of the optimizer {have} left {{}}: its learning rate is 0", label(timeline, node))
        fix = "a learning rate above 0, or a schedule that does not begin with 0"
        return Finding("unchanged", text, one.first, node, (size,), fix, call, suspected=suspected)
    if (rounded := _rounded_away(survey, node, one, call)) is not None:
        return replace(rounded, suspected=suspected)
    fix = died.fix if died is not None else "a larger learning rate: it is 0, or so small that the change rounds away"
    numbers = (Number("length of the gradient", one.gradient, one.filled),)
    at = call or innermost(timeline.info(node))
    return Finding("unchanged", text, one.first, node, (part,), fix, at, numbers, suspected)


def _largest(value: Value) -> float:
    """Return the largest absolute element; 0 if no element is finite or nothing was stored."""
    stats = value.statistics()
    size = max(abs(stats.min), abs(stats.max)) if stats is not None else 0.0
    return size if isfinite(size) else 0.0


_BITS = {"bfloat16": 8, "float16": 11}
"""The significant bits of the short types."""


def _rounded_away(survey: Survey, node: int, one: _Parameter, call: Frame | None) -> Finding | None:
    """Return the finding about a parameter in a short type whose steps are smaller than the gaps of that type."""
    timeline = survey.timeline
    value, rate = survey.nodes[node].value, options_of(timeline, node, one.first).get("lr")
    if value is None or value.dtype not in _BITS or not isinstance(rate, float | int):
        return None
    largest = _largest(value)
    if not largest:
        return None
    gap = 2.0 ** (floor(log2(largest)) + 1 - _BITS[value.dtype])
    step = timeline.event(one.first)
    # the step of Adam and its kin has about the size of the rate, whatever the gradient is
    is_normalized = isinstance(step, OptimizerStepped) and ("Adam" in step.kind or step.kind == "RMSprop")
    if not abs(rate) * (1.0 if is_normalized else one.largest) < gap / 2:
        return None
    text = titled(f"every step rounds away in {value.dtype}: {{}} stays as it was", label(timeline, node))
    steps = f"near {number(largest)} the numbers of {value.dtype} are {number(gap)} apart; lr is {number(rate)}"
    size = f"{steps}, and the gradient |g| {number(one.gradient)} in {one.steps} steps"
    part = Finding("gradient", size, one.filled, node)
    cast = named_type(timeline, call, value.dtype)
    fix = "keep the parameters in float32, and compute the forward in the short type with torch.autocast"
    at, edit = cast if cast is not None else (call, None)
    return Finding("unchanged", text, one.first, node, (part,), fix, at, edit=edit)


def _replaced(survey: Survey, node: int, one: _Parameter) -> Finding | None:
    """Return the finding about a gradient that the program itself set to zero between the pass and the step."""
    timeline = survey.timeline
    sets = [(seq, event) for seq, event in survey.select(GradSet) if event.node == node and one.filled < seq]
    steps = [seq for seq, event in survey.select(OptimizerStepped) if node in event.parameters and seq > one.filled]
    last = next((pair for pair in reversed(sets) if steps and pair[0] < steps[0]), None)
    if last is None or not is_zero(last[1].value):
        return None
    seq, event = last
    frames = timeline.stack(event.stack)
    text = titled("steps leave {} as it was: its .grad was set to 0", label(timeline, node))
    was = f"backward had made its .grad |g| {number(one.gradient)}; it was set to 0{made_at(frames)} after that"
    size = Finding("gradient", was, one.filled, node)
    fix = "leave the gradient as backward made it, or set .grad = None before backward"
    return Finding("unchanged", text, seq, node, (size,), fix, frames[0] if frames else None)


# One parameter in several modules


def shared(survey: Survey) -> Iterator[Finding | None]:
    """Yield parameters that two modules of one kind use in one call of a model.

    They may be tied on purpose, or by a copied reference. A module that is also called on its own has another path
    there. A module that a list has several times, as in ``[layer] * 3``, is found by the paths of its parameters, too.
    """
    timeline = survey.timeline
    for made in survey.nodes.values():
        if made.created.kind != "parameter":
            continue
        yield None
        info = timeline.info(made.node)
        if names := _sharing(survey, made.node):
            text, where = f"is one parameter in {len(names)} modules", f"they share it: {_listed(names)}"
        elif names := _places((info.name, *info.also)):
            text, where = f"is of one module that is {len(names)} times in a list", f"its places: {_listed(names)}"
        else:
            continue
        fix = "make each module anew, or copy.deepcopy(layer), if they were to differ (leave it if tied on purpose)"
        text, part = titled(f"{{}} {text}", label(timeline, made.node)), Finding("modules", where, made.seq, made.node)
        yield Finding("shared", text, made.seq, made.node, (part,), fix, innermost(info), suspected=True)


def _sharing(survey: Survey, parameter: int) -> list[str]:
    """Return the modules of one kind that use a parameter in one call of a model; empty if there is only one."""
    users = [
        survey.nodes[node] for node in survey.timeline.nodes.users_by_node.get(parameter, ()) if node in survey.nodes
    ]
    places: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
    for user in users:
        scope = survey.scopes.get(user.created.scope)
        if scope is not None:
            places[scope.kind, survey.outermost(scope.scope)].add(scope.name)
    return next((sorted(names) for names in places.values() if len(names) > 1), [])


def _places(paths: Sequence[str]) -> list[str]:
    """Return the modules of a list that have a parameter with these paths, if the paths differ in only one index."""
    first, *others = (path.split(".") for path in paths)
    for at, part in enumerate(first):
        if part.isdecimal():
            same = [other for other in others if [*other[:at], part, *other[at + 1 :]] == first]
            indices = [other[at] for other in same if other[at].isdecimal()]
            if indices:
                return [".".join([*first[:at], index]) for index in (part, *indices)]
    return []


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(shown, names[:4]))


# Two parameters that begin as one: an embedding and the layer over its words, no longer tied

_FEWEST = 8
"""The fewest equal elements of two parameters that are no accident."""


def untied(survey: Survey) -> Iterator[Finding | None]:
    """Yield weights of a linear layer that begin with the numbers of an embedding's, and are trained separately.

    ``load_state_dict(assign=True)``, ``deepcopy`` of one of two modules and ``.to()`` of a copy break the tie.
    """
    timeline = survey.timeline
    added = {event.node for _, event in survey.accumulated}
    words = {next(survey.sources(made)).node for made in survey.ops("embedding") if made.created.inputs[0][0] in added}
    for made in map(survey.nodes.get, added & survey.optimized if words else ()):
        yield None
        if made is None or made.created.kind != "parameter" or made.node in words or not _is_varied(made.value):
            continue
        twin = next((node for node in words if _numbers(survey.nodes[node].value) == _numbers(made.value)), 0)
        same = twin and survey.nodes[twin].shape == made.shape and twin in survey.optimized
        if not same:
            continue
        names = label(timeline, made.node), label(timeline, twin)
        text = titled("{} begins as a copy of {}, and both are trained apart", *names)
        size = f"all of its {made.value.size if made.value is not None else 0:,} elements are equal at the start"
        part = Finding("first", size, made.seq, made.node)
        fix = "tie them again after the copy: output.weight = embedding.weight, before the optimizer is made"
        places = [innermost(timeline.info(node)) for node in (made.node, twin)]
        at = max((one for one in places if one is not None), key=lambda one: one.line, default=None)  # the copy
        yield Finding("untied", text, made.seq, made.node, (part,), fix, at)


def _is_varied(value: Value | None) -> bool:
    """Return whether a value has enough different elements that an equal value is no accident."""
    stats = value.statistics() if value is not None else None
    return value is not None and value.size >= _FEWEST and stats is not None and stats.min < stats.max


# Units that begin equal and stay equal: equal rows of a weight, with equal gradients


def same_units(survey: Survey) -> Iterator[Finding | None]:
    """Yield weights whose rows are all equal, and get equal gradients in every pass: all units stay the same."""
    timeline = survey.timeline
    parts: defaultdict[int, list[GradAccumulated]] = defaultdict(list)
    for _, event in survey.accumulated:
        parts[event.node].append(event)
    for node, events in parts.items():
        yield None
        made = survey.nodes.get(node)
        if made is None or made.created.kind == "op" or len(made.shape) < 2 or min(made.shape[:2]) < 2:
            continue
        used = first_use(timeline, node)
        held = timeline.at(used.born if used is not None else made.seq).state(node)
        value = held.outputs[0].value if held is not None else None
        alike = _has_equal_rows(timeline, value) and all(_has_equal_rows(timeline, one.part) for one in events)
        if not alike or is_zero(events[0].part) or is_zero(value):  # zeros with equal gradients diverge later
            continue
        count = made.shape[0]
        text = titled(f"all {count} rows of {{}} are equal, and so are their gradients", label(timeline, node))
        stay = f"in {len(events)} passes every row got the same gradient: they stay one unit"
        size = Finding("first", stay, survey.accumulated[0][0], node)
        fix = "start with random numbers: nn.init.kaiming_uniform_(weight), or leave out the constant start"
        at = zeroed_at(timeline, timeline.info(node)) or innermost(timeline.info(node))
        yield Finding("same-units", text, made.seq, node, (size,), fix, at)


def _has_equal_rows(timeline: Timeline, value: Value | None) -> bool:
    array = timeline.array(value) if value is not None else None
    return array is not None and array.ndim > 1 and bool(np.allclose(array, array[:1], rtol=1e-5, atol=1e-12))


# Rows of an embedding that only pad the ends of sequences, and are trained all the same

_LEAST_FILLED = 3
"""The fewest padded places in the recording."""


def padding_trained(survey: Survey) -> Iterator[Finding | None]:
    """Yield embeddings without a padding index with a row that only pads sequences of several lengths."""
    timeline, seen = survey.timeline, dict[int, list[Made]]()
    for made in survey.ops("embedding"):
        weight = made.created.inputs[0][0] if made.created.inputs else 0
        seen.setdefault(weight, []).append(made)
    got = {event.node: event.part for _, event in survey.accumulated}
    for weight, uses in seen.items():
        yield None
        index = dict(uses[0].created.attrs).get("padding_idx", -1)
        if weight not in got or (isinstance(index, int) and index >= 0):
            continue
        inputs = [list(survey.sources(one)) for one in uses]
        ids = [timeline.array(pair[1].value) for pair in inputs if len(pair) > 1 and pair[1].value is not None]
        row = _filling(ids)
        gradient = timeline.array(got[weight])
        if row is None or gradient is None or not gradient[row].any():
            continue
        info = timeline.info(weight)
        text = titled(f"row {row} of {{}} is trained, though it only fills sequences", label(timeline, weight))
        part = Finding(
            "share", f"its last gradient was {grad(capture(gradient[row]))}", survey.accumulated[-1][0], weight
        )
        fix = f"nn.Embedding(..., padding_idx={row}), or mask these places before they are added up"
        at = innermost(info)
        edit = with_keyword(timeline, at, "Embedding", "padding_idx", str(row))
        yield Finding("padding-trained", text, uses[0].seq, weight, (part,), fix, at, suspected=True, edit=edit)


def _filling(batches: Sequence[Array | None]) -> int | None:
    """Return the index that ends rows in runs of several lengths, and occurs nowhere else; None if there is none."""
    runs: set[int] = set()
    filled, found = 0, set[int]()
    for ids in batches:
        if ids is None or ids.ndim != 2 or ids.shape[0] < 2 or ids.shape[1] < 2:
            return None
        for row in ids.tolist():
            last = row[-1]
            run = next((n for n, one in enumerate(reversed(row)) if one != last), len(row))
            if run > 1 or last in found:
                found.add(last)
    if len(found) != 1:
        return None
    (index,) = found
    for ids in batches:
        for row in ids.tolist() if ids is not None else ():
            run = next((n for n, one in enumerate(reversed(row)) if one != index), len(row))
            if index in row[: len(row) - run]:
                return None
            runs.add(run)
            filled += run
    return index if len(runs) > 1 and filled >= _LEAST_FILLED and index in (0, 1) else None


# A padding row that real data uses: it gets no gradient, so it never learns


def padding_used(survey: Survey) -> Iterator[Finding | None]:
    """Yield embeddings whose padding row is a real token: it is between other tokens, or a target of the loss.

    If it only pads, the loss should not count it as a target: ``ignore_index`` excludes it.
    """
    timeline, seen = survey.timeline, set[int]()
    for made in survey.ops("embedding"):
        weight, row = made.created.inputs[0][0], dict(made.created.attrs).get("padding_idx")
        if weight in seen or weight not in survey.nodes or not isinstance(row, int) or row < 0:
            continue
        if not made.created.requires_grad or weight not in survey.optimized:
            continue
        yield None
        seen.add(weight)
        ids = next((one for one in list(survey.sources(made))[1:2]), None)
        between = _between(timeline.array(ids.value) if ids is not None and ids.value is not None else None, row)
        target = _as_target(survey, made, row)
        if not between and target is None:
            continue
        text = titled(f"row {row} of {{}} never learns: it is the padding row", label(timeline, weight))
        stays = f"padding_idx={row} keeps its gradient at zero"
        often = "once" if between == 1 else f"{between} times"
        facts = [f"index {row} is between other tokens {often}" * bool(between)]
        fix = f"no padding_idx if index {row} is a token"
        if target is not None:
            loss, count = target
            facts.append(f"{count} of the loss{made_at(timeline.stack(loss.created.stack))} are {row}")
            fix = f"{fix}; ignore_index={row} in the loss if it only pads"
        part = Finding("padding", f"{stays}, but {' and '.join(filter(None, facts))}", made.seq, weight)
        at = innermost(timeline.info(weight))
        yield Finding("padding-used", text, made.seq, weight, (part,), fix, at, suspected=True)


def _between(ids: Array | None, row: int) -> int:
    """Return how often an index has other ones before and after it in its sequence; 0 if it may only pad.

    Sequences lie along either dimension of the indices. Numbers of one dimension are no sequence, and neither is a row
    of a table whose columns have no number in common.
    """
    if ids is None or ids.ndim != 2 or not ids.size:
        return 0
    columns = [set(column) - {row} for column in ids.T.tolist()]
    if not any(one & following for one, following in pairwise(columns)):
        return 0
    counts = [_inside(rows != row) for rows in (ids, ids.T)]
    return counts[0] if all(counts) else 0


def _inside(is_other: Array) -> int:
    """Return how many False elements of rows have True ones before and after them."""
    before = np.logical_or.accumulate(is_other, axis=1)
    after = np.logical_or.accumulate(is_other[:, ::-1], axis=1)[:, ::-1]
    return int((~is_other & before & after).sum())


def _as_target(survey: Survey, embedded: Made, row: int) -> tuple[Made, str] | None:
    """Return a loss made from an embedding that has index `row` among its targets, and a text with their number.

    It has as many classes as the embedding has rows. A loss with weights of classes, or for each element, may leave
    padding out.
    """
    rows = survey.nodes[embedded.created.inputs[0][0]].shape[0]
    for made in survey.ops("nll_loss", "nll_loss2d"):
        inputs, options = list(survey.sources(made)), dict(made.created.attrs)
        if len(inputs) < 2 or len(inputs[0].shape) < 2 or inputs[0].shape[1] != rows or not made.created.requires_grad:
            continue
        value = inputs[1].value
        leaves_out = options.get("ignore_index") == row or options.get("reduction") == "none" or len(inputs) > 2
        if value is None or leaves_out or embedded.node not in ancestors(survey.timeline, made.node):
            continue
        array, stats = survey.timeline.array(value), value.statistics()
        of_statistics = stats.zero if stats is not None and row == 0 else 0
        count = of_statistics if array is None else int((array == row).sum())
        if count:
            return made, f"{count} of the {value.size} targets"
    return None


# The row of an embedding that only pads: it is zero, unless an initialization fills it


def padding_filled(survey: Survey) -> Iterator[Finding | None]:
    """Yield embeddings whose padding row is not zero: it gets no gradient, so it stays as it is.

    Frozen weights and those of ``from_pretrained`` have the row that they were trained with.
    """
    timeline, seen = survey.timeline, set[int]()
    for made in survey.ops("embedding"):
        weight, row = (
            made.created.inputs[0][0] if made.created.inputs else 0,
            dict(made.created.attrs).get("padding_idx"),
        )
        if weight in seen or weight not in survey.nodes or not isinstance(row, int) or row < 0:
            continue
        if not made.created.requires_grad:
            continue
        yield None
        seen.add(weight)
        if any("from_pretrained(" in line_text(timeline, frame) for frame in timeline.info(weight).frames):
            continue
        shape, value = survey.nodes[weight].shape, timeline.memory_value(weight, 0, made.seq)
        ids = next((timeline.memory_value(*edge, made.seq) for edge in made.created.inputs[1:2]), None)
        if (
            len(shape) == 2
            and shape[1]
            and not _may_be_zero(timeline, value, row, shape[1])
            and _is_among(timeline, ids, row)
        ):
            yield _filled_finding(survey, made, weight, row)


def _may_be_zero(timeline: Timeline, value: Value | None, row: int, width: int) -> bool:
    """Return whether a row may be zero: by its elements, or by the number of zeros in the whole weight."""
    array = timeline.array(value) if value is not None else None
    if array is not None:
        return not array.reshape(-1, width)[row].any()
    stats = value.statistics() if value is not None else None
    return stats is None or stats.zero >= width


def _is_among(timeline: Timeline, value: Value | None, row: int) -> bool:
    """Return whether an index is used: known from the elements, or if it is the least or the greatest one."""
    array = timeline.array(value) if value is not None else None
    stats = value.statistics() if value is not None else None
    return bool((array == row).any()) if array is not None else stats is not None and row in (stats.min, stats.max)


def _filled_finding(survey: Survey, made: Made, weight: int, row: int) -> Finding:
    timeline, info = survey.timeline, survey.timeline.info(weight)
    at = zeroed_at(timeline, info) or filled_at(timeline, innermost(info), info.name) or innermost(info)
    text = titled(f"the padding row {row} of {{}} is not zero, and is never trained", label(timeline, weight))
    stays = "an initialization has filled it; padding_idx only keeps its gradient zero, so it keeps these numbers"
    part = Finding("first", stays, made.seq, weight)
    named = written_name(timeline, at)
    if named.rpartition(".")[2] != info.name.rpartition(".")[2]:
        named = ""  # the variable of a loop, which also fills other parameters
    fix = f"set it to zero after the initialization: with torch.no_grad(): {named or 'emb.weight'}[{row}] = 0"
    edit = after(timeline, at, f"{named}.data[{row}].zero_()") if named else None
    return Finding("padding-filled", text, made.seq, weight, (part,), fix, at, suspected=True, edit=edit)


# Elements whose gradient a hook makes zero, and which weight decay still shrinks


def decayed(survey: Survey) -> Iterator[Finding | None]:
    """Yield parameters with a hook that zeroes a part of the gradient, if the optimizer decays all elements."""
    timeline, seen = survey.timeline, set[int]()
    for seq, ran in timeline.select((HookRan,)):
        if ran.when != "tensor" or ran.value is None or ran.node in seen or ran.node not in survey.optimized:
            continue
        yield None
        seen.add(ran.node)
        effects = hooks_of(timeline, ran.node, ran.output_nr, ran.pass_nr, seq)
        effect = next((one for one in effects if one.seq == seq), None)
        lost = _zeroed(effect.before, effect.after) if effect is not None else 0
        step = next_step(timeline, ran.node, seq)
        decay = options_of(timeline, ran.node, step).get("weight_decay") if step else None
        if effect is not None and lost and isinstance(decay, float | int) and decay:
            yield _decayed_finding(timeline, effect, lost, step, decay)


def _zeroed(before: Value | None, after: Value | None) -> int:
    """Return how many more zeros a gradient has after a hook; 0 if the hook made it zero as a whole."""
    stats = [value.statistics() if value is not None else None for value in (before, after)]
    if stats[0] is None or stats[1] is None or after is None or stats[1].zero == after.size:
        return 0
    return max(0, stats[1].zero - stats[0].zero)


def _decayed_finding(timeline: Timeline, effect: HookEffect, lost: int, step: int, decay: float) -> Finding:
    node, event = effect.ran.node, timeline.event(step)
    frames = timeline.stack(event.stack) if isinstance(event, OptimizerStepped) else ()
    call = frames[0] if frames else None
    made = assignment(timeline, call, receiver(timeline, call, "step"))
    kind = event.kind if isinstance(event, OptimizerStepped) else ""
    text = titled("weight decay changes the elements of {} that its hook freezes", label(timeline, node))
    zeroed = f"the hook {shown(effect.ran.name)} makes {lost:,} of its gradients zero{effect.registered(timeline)}"
    part = Finding("hook", f"{zeroed}, but {shown(kind)} has weight_decay={number(decay)}", effect.seq, node)
    fix = "weight_decay=0 for this parameter, in a group of its own, or write the old rows back after the step"
    edit = with_keyword(timeline, made, kind, "weight_decay", "0.0")
    return Finding("decayed", text, step, node, (part,), fix, made or call, suspected=True, edit=edit)


# Replicas: parameters that get the same gradient, and have different values

_FEWEST_REPLICATED = 2


def replicas_apart(survey: Survey) -> Iterator[Finding | None]:
    """Yield the first line that gives one gradient to two parameters with different numbers, for several pairs.

    The pairs must be the same between any two steps of optimizers: other parameters may get equal gradients once.
    Gradients that are zero, or signs only, as of signSGD, are equal by chance.
    """
    timeline = survey.timeline
    last: dict[int, tuple[int, GradSet]] = {}
    now: defaultdict[int, dict[frozenset[int], tuple[int, int, GradSet]]] = defaultdict(dict)
    always: dict[int, dict[frozenset[int], tuple[int, int, GradSet]]] = {}
    for seq, event in chain(survey.select(GradSet, OptimizerStepped), [(survey.end, None)]):
        if not isinstance(event, GradSet):
            for stack in last:
                before_it = always.get(stack, now[stack])
                always[stack] = {pair: one for pair, one in before_it.items() if pair in now[stack]}
            last.clear()
            now.clear()
            continue
        if event.value is None:
            continue
        yield None
        before = last.get(event.stack)
        last[event.stack] = seq, event
        if before is None or before[1].value != event.value or _has_one_size(timeline, event.value):
            continue
        held = [timeline.memory_value(node, 0, seq) for node in (before[1].node, event.node)]
        pair = frozenset((before[1].node, event.node))
        if None not in held and _numbers(held[0]) != _numbers(held[1]) and pair <= survey.optimized:
            now[event.stack].setdefault(pair, (seq, before[1].node, event))
    found = next((pairs for pairs in always.values() if len(pairs) >= _FEWEST_REPLICATED), {})
    if found:
        yield _apart_finding(survey, *next(iter(found.values())))


def _has_one_size(timeline: Timeline, value: Value) -> bool:
    """Return whether all elements have the same absolute value, or may have it as far as the statistics show."""
    array, stats = timeline.array(value), value.statistics()
    if array is not None:
        return np.unique(np.abs(array)).size < 2
    return stats is None or abs(stats.min) == abs(stats.max)


def _apart_finding(survey: Survey, seq: int, first: int, event: GradSet) -> Finding:
    timeline = survey.timeline
    one, other = timeline.info(first), timeline.info(event.node)
    text = titled(
        "{} and {} get the same gradient, but have different values",
        label(timeline, first),
        label(timeline, event.node),
    )
    places = timeline.stack(event.stack)
    part = Finding(
        "first", f"they get it{made_at(places)}, as replicas do, but they began with different values", seq, first
    )
    common = [frame for frame in one.frames if any((frame.path, frame.line) == (f.path, f.line) for f in other.frames)]
    own = innermost(other)
    at = next((frame for frame in reversed(common) if own is not None and frame.path == own.path), own)
    fix = "let all replicas begin with the same numbers: replica.load_state_dict(first.state_dict())"
    return Finding("replicas-apart", text, seq, first, (part,), fix, at, suspected=True)
