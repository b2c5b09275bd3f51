"""First weights so large that each layer multiplies the size of what goes into it.

Idea. A layer of weights with the standard deviation s, applied to n inputs of size 1, has results of size s * sqrt(n).
An initialization keeps this near 1. With s = 1 and n = 96 it is 10: after 8 layers the logits are in the millions, so
is the first loss, and gradients grow in the same way on their way back. That the first forward has such numbers shows
that no step is the reason.

Example. ``m.weight.data.normal_(0.0, 1.0)`` in a loop over layers; ``nn.Parameter(torch.randn(64, 64))``.

Limits. Only layers whose weights the program itself draws are examined, as the line to change is that of the draw. A
result that is scaled or normalized after the layer has no size that grows. One layer alone counts if it makes the
scores of a classifier; the targets of a regression may be large.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite, log, sqrt

from gviz.explain.backward_passes import loss_at, root_value
from gviz.explain.display_names import label
from gviz.explain.finding import Finding, Number
from gviz.explain.operation_sets import LAYER_PRODUCTS, SOFTMAXES
from gviz.explain.parameter_initialization import InitialWrite, constant_number, initial_write, writes_random
from gviz.explain.program_text import called_name, line_text, statement_at
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_frames import innermost
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number

_GAIN = 3.0
"""What weights multiply the size of their inputs by if they are too large: an initialization keeps it near 1."""

_FACTOR = 2.0
"""What such a layer has multiplied it by in the first forward at least."""

_FEWEST = 3
"""The fewest such layers whose factors add up to a size that no loss expects."""

_GROWN, _GROWN_ALONE = 100.0, 1000.0
"""How much larger than the inputs the results of the last such layer are: if a nan follows, and if none does."""

_SCORES, _SCORES_ALONE = 8.0, 15.0
"""The size of the scores of a classifier from which its first loss is far too large: the same."""

_OF_SCORES = SOFTMAXES | {"cross_entropy", "binary_cross_entropy_with_logits"}


@dataclass(frozen=True, slots=True)
class _Layer:
    """A product of the first forward with weights that are too large, and the sizes before and after it."""

    record: NodeRecord
    weight: int
    deviation: float
    fan_in: int
    before: float
    after: float

    @property
    def gain(self) -> float:
        """What the weights multiply the size of independent inputs by."""
        return self.deviation * sqrt(self.fan_in)


def large_first_weights(survey: Survey) -> Iterator[Finding | None]:
    """Yield the layers whose first weights make the numbers of the first forward grow from layer to layer."""
    timeline = survey.timeline
    if len(survey.passes) < 2 or len(survey.passes[0][1].roots) != 1:
        return  # one pass is no training: there the gradient that grows is what is reported
    start, root = survey.passes[0][0], survey.passes[0][1].roots[0][0]
    yield None
    records = [survey.nodes[node] for node in survey.history(root)] if root in survey.nodes else []
    layers = [one for record in records if (one := _layer(survey, record)) is not None]
    if not layers:
        return
    yield None
    layers.sort(key=lambda one: one.record.seq)
    broken = timeline.error_index.first_bad() > start
    grown = layers[-1].after / layers[0].before
    is_deep = len({one.weight for one in layers}) >= _FEWEST and grown >= (_GROWN if broken else _GROWN_ALONE)
    scores = next((one for one in layers if _makes_scores(survey, one, records)), None)
    is_far = scores is not None and scores.after >= (_SCORES if broken else _SCORES_ALONE)
    if not is_deep and not is_far:
        return
    shown = layers if is_deep or scores is None else [scores]
    written = [(_line(timeline, one.weight), one) for one in shown]
    known = [(at, one) for at, one in written if at is not None]
    if known:
        at, layer = max(known, key=lambda pair: pair[1].gain)
        yield _finding(survey, at, layer, shown, start, root, suspected=not broken and not is_deep)


def _layer(survey: Survey, record: NodeRecord) -> _Layer | None:
    """Return a product with a matrix of weights, if these are too large and its result is too large because of them."""
    if record.op not in LAYER_PRODUCTS or record.stats is None:
        return None
    sources = [survey.unwrapped(source) for source in survey.sources(record)]
    plain = [*survey.sources(record)]
    weights = [one for one in sources if one.created.kind != "op" and one.created.requires_grad and len(one.shape) > 1]
    if len(weights) != 1:
        return None
    inputs = [
        one for one, source in zip(plain, sources, strict=True) if source is not weights[0] and len(one.shape) > 1
    ]
    value = survey.timeline.memory_value(weights[0].node, 0, record.seq)
    stats = value.statistics() if value is not None else None
    size = inputs[0].stats if len(inputs) == 1 else None
    if stats is None or size is None or not size.rms or not all(map(isfinite, (size.rms, stats.rms, record.stats.rms))):
        return None
    shape = weights[0].shape
    of_rows = "conv" in record.op
    fan_in = weights[0].value.size // shape[0] if of_rows and weights[0].value is not None else inputs[0].shape[-1]
    layer = _Layer(record, weights[0].node, stats.rms, fan_in, size.rms, record.stats.rms)
    return layer if layer.gain >= _GAIN and layer.after >= _FACTOR * layer.before else None


def _makes_scores(survey: Survey, layer: _Layer, records: Sequence[NodeRecord]) -> bool:
    """Return whether the results of a layer go into the loss of a classifier as they are."""
    users = (record for record in records if record.op in _OF_SCORES)
    return any(survey.unwrapped(source) is layer.record for user in users for source in survey.sources(user))


# The line that draws the weights

_DRAWN = ("randn", "randn_like", "rand", "rand_like", "normal", "standard_normal", "uniform")


def _line(timeline: Timeline, weight: int) -> Frame | None:
    """Return the line of the program that gives a weight its size; None if a layer draws it by itself."""
    info = timeline.info(weight)
    if (write := initial_write(timeline, info, _sets_size)) is not None:
        return write.at
    at = innermost(info)
    source = statement_at(timeline, at)
    calls = source[1].parts(ast.Call) if source is not None else iter(())
    return at if line_text(timeline, at) and any(called_name(call) in _DRAWN for call in calls) else None


def _sets_size(write: InitialWrite) -> bool:
    """Return whether a line draws the numbers of a parameter, or makes them larger."""
    if writes_random(write):
        return True
    if write.how in ("mul_", "*="):
        factor = constant_number(write.value(0, "other"))
        return factor is not None and factor > 1
    parts = (part for value in write.values for part in ast.walk(value))
    return write.how in ("=", "copy_") and any(
        isinstance(part, ast.Call) and called_name(part) in _DRAWN for part in parts
    )


def _finding(
    survey: Survey, at: Frame, layer: _Layer, layers: Sequence[_Layer], start: int, root: int, *, suspected: bool
) -> Finding:
    timeline, count = survey.timeline, len({one.weight for one in layers})
    of_layers = f"of {count} layers" if count > 1 else f"of {label(timeline, layer.weight)}"
    text = f"the first weights {of_layers} are too large: std {number(layer.deviation, 2)} at fan_in {layer.fan_in:,}"
    before, after = layers[0].before, layers[-1].after
    grows = f"the results of {label(timeline, layers[-1].record.node)} have an rms of {number(after, 3)}"
    if count > 1:
        factor = (after / before) ** (1 / len(layers))
        grows = f"activations grow x{number(factor, 2)} per layer, from rms {number(before, 2)} to {number(after, 3)}"
    facts = [
        f"std {number(layer.deviation, 2)} with fan_in {layer.fan_in:,}: {grows}",
        *_first_loss(survey, start, root),
    ]
    part = Finding("scale", "; ".join(facts), layers[-1].record.seq, layer.weight)
    good = number(sqrt(2 / layer.fan_in), 2)
    fix = f"nn.init.kaiming_normal_(weight): it has std sqrt(2 / fan_in), here {good}"
    numbers = (Number("gain", layer.gain, layer.record.seq), Number("rms", after, layers[-1].record.seq))
    return Finding("large-start", text, layers[-1].record.seq, layer.weight, (part,), fix, at, numbers, suspected)


def _first_loss(survey: Survey, start: int, root: int) -> Iterator[str]:
    """Yield the first loss of a classifier, next to that of equal chances for all classes."""
    value, loss = root_value(survey.timeline, start), loss_at(survey.timeline, start)
    record = survey.nodes.get(loss[0] if loss is not None else root)
    scores = (
        next(survey.sources(record), None)
        if record is not None and record.op in ("cross_entropy", "nll_loss")
        else None
    )
    if value is None or scores is None or len(scores.shape) < 2 or scores.shape[1] < 2:
        return
    classes = scores.shape[1]
    if value > 2 * log(classes):
        yield f"the first loss is {number(value, 3)}, and log({classes}) is {number(log(classes), 2)}"
