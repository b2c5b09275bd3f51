"""Noise that is multiplied by the variance of a Gaussian, or by another power of its deviation.

Idea. A sample ``mu + eps * scale`` has the standard deviation `scale`. The divergence of the same Gaussian in the loss,
``-0.5 * (1 + s - mu ** 2 - exp(s))``, shows what its variance is: the tensor that is added to ``mu ** 2``, if the loss
subtracts its logarithm. The scale must be the square root of it.

Example. With ``logvar`` as `s`, the variance is ``exp(logvar)``, and the noise needs ``exp(0.5 * logvar)``. With
``-0.5 * (1 + 2 * s - mu ** 2 - exp(2 * s))`` it needs ``exp(s)``.

Limits. The divergence must be written in operations, and the square of the same mean must have the same factor: then
nothing else can be meant.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from math import isclose

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.loss.divergence_of_other_parameter import divergences_of_other_parameters
from gviz.explain.loss_terms import Term, summands_by_element
from gviz.explain.operation_sets import SAME_NUMBERS
from gviz.explain.program_text import ProgramText, called_name, is_at
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Change, Edit, rewritten
from gviz.values.number_text import number

_MOST = 400
"""The most nodes of a loss, or of what follows from a tensor, that are searched."""

_MOST_BETWEEN = 8


@dataclass(frozen=True, slots=True)
class _Power:
    """What a positive tensor is a power of: ``root ** exponent``, or ``exp(exponent * root)``."""

    root: NodeRecord
    exponent: float
    is_exponential: bool

    def like(self, other: _Power) -> bool:
        return self.root is other.root and self.is_exponential is other.is_exponential


@dataclass(frozen=True, slots=True)
class _Gaussian:
    """A Gaussian whose divergence a loss has: its mean, its variance, and that as a power."""

    mean: NodeRecord
    variance: NodeRecord
    power: _Power


def wrong_noise_scales(survey: Survey) -> Iterator[Finding | None]:
    """Yield lines that multiply noise by another power than the deviation of the Gaussian in the loss.

    Divergences of a parameter that is no part of the noise come first.
    """
    yield from divergences_of_other_parameters(survey)
    if not {"exp", "log"} & survey.by_op.keys():
        return
    last = {event.stack: event for _, event in survey.passes if len(event.roots) == 1 and not event.inputs}
    seen = set[int]()
    for event in last.values():
        yield None
        root = survey.nodes.get(event.roots[0][0])
        if root is None or root.shape:
            continue
        for gaussian in _gaussians(survey, root):
            yield None
            for product, scale, power in _samples(survey, gaussian):
                ratio = power.exponent / gaussian.power.exponent
                if not isclose(ratio, 0.5, rel_tol=0.01) and product.created.stack not in seen:
                    seen.add(product.created.stack)
                    yield _finding(survey, gaussian, product, scale, ratio)


# The Gaussian of a divergence


def _gaussians(survey: Survey, root: NodeRecord) -> Iterator[_Gaussian]:
    """Yield the Gaussians whose variance, logarithm and squared mean a loss adds up."""
    added: dict[int, Term] = {}
    waiting = [Term(root)]
    while waiting and len(added) < _MOST:
        for one in summands_by_element(survey, waiting.pop()):
            if one.record.created.requires_grad and one.record.node not in added:
                added[one.record.node] = one
                waiting.append(one)
    logarithms = [(term, power) for term in added.values() if (power := _logarithm(survey, term.record)) is not None]
    squares = [term for term in added.values() if _base_of_square(survey, term.record) is not None]
    for term in added.values():
        power = _power(survey, term.record)
        if power is None or not term.factor > 0 or not power.exponent:
            continue
        fits = any(one.like(power) and _balances(log, one, term, power) for log, one in logarithms)
        for square in squares if fits else ():
            base = _base_of_square(survey, square.record)
            is_same = base is not None and base.shape == term.record.shape and base is not power.root
            if base is not None and is_same and isclose(square.factor, term.factor, rel_tol=0.01):
                yield _Gaussian(base, term.record, power)


def _balances(log: Term, of_log: _Power, variance: Term, power: _Power) -> bool:
    """Return whether a loss is smallest where the variance is 1, as a divergence from the standard Gaussian is."""
    return isclose(log.factor * of_log.exponent, -variance.factor * power.exponent, rel_tol=0.01)


def _base_of_square(survey: Survey, record: NodeRecord) -> NodeRecord | None:
    inputs, sources = record.created.inputs, list(survey.sources(record))
    is_product = record.op == "mul" and len(inputs) == 2 and inputs[0] == inputs[1]
    is_power = record.op == "pow" and dict(record.created.attrs).get("exponent") == 2
    return survey.unwrapped(sources[0]) if sources and (is_product or is_power or record.op == "square") else None


# Powers and logarithms


def _power(survey: Survey, record: NodeRecord) -> _Power | None:
    """Return an exponential, or a root or power of it, or of another tensor, as a power."""
    exponent, has_power = 1.0, False
    for _ in range(_MOST_BETWEEN):
        sources, inputs = list(survey.sources(record)), record.created.inputs
        by = dict(record.created.attrs).get("exponent")
        if record.op == "exp" and sources:
            linear = _multiple(survey, sources[0])
            return _Power(linear[0], exponent * linear[1], is_exponential=True)
        if record.op == "pow" and isinstance(by, int | float) and not isinstance(by, bool):
            exponent, has_power = exponent * by, True
        elif record.op in ("square", "sqrt", "rsqrt", "reciprocal"):
            factors = {"square": 2.0, "sqrt": 0.5, "rsqrt": -0.5, "reciprocal": -1.0}
            exponent, has_power = exponent * factors[record.op], True
        elif record.op == "mul" and len(inputs) == 2 and inputs[0] == inputs[1]:
            exponent, has_power = 2 * exponent, True
        elif record.op not in SAME_NUMBERS or not sources:
            break
        if not sources:
            return None
        record = sources[0]
    return _Power(record, exponent, is_exponential=False) if has_power or record.created.kind == "op" else None


def _logarithm(survey: Survey, record: NodeRecord) -> _Power | None:
    """Return the power whose logarithm a tensor is: `s` is the logarithm of ``exp(s)``."""
    root, factor = _multiple(survey, record)
    source = next(survey.sources(root), None)
    if root.op == "log" and source is not None:
        power = _power(survey, source)
        return _Power(power.root, power.exponent * factor, power.is_exponential) if power is not None else None
    return _Power(root, factor, is_exponential=True)


def _multiple(survey: Survey, record: NodeRecord) -> tuple[NodeRecord, float]:
    """Return a tensor and the number that it is multiplied by."""
    factor = 1.0
    for _ in range(_MOST_BETWEEN):
        sources = list(survey.sources(record))
        if record.op in ("mul", "div") and len(sources) == 2:
            numbers = [source.number if not source.created.requires_grad else None for source in sources]
            at = 1 if numbers[1] is not None else 0
            by = numbers[at]
            if by is None or not by or (record.op == "div" and at == 0):
                break
            factor, record = factor * by if record.op == "mul" else factor / by, sources[1 - at]
        elif record.op == "neg" and sources:
            factor, record = -factor, sources[0]
        elif record.op in SAME_NUMBERS and sources and sources[0].value is not None and record.value is not None:
            if sources[0].value.size != record.value.size:
                break
            record = sources[0]
        else:
            break
    return record, factor


# The sample


def _samples(survey: Survey, gaussian: _Gaussian) -> Iterator[tuple[NodeRecord, NodeRecord, _Power]]:
    """Yield products of noise with a power of the same root that are added to the mean, and the power."""
    waiting, seen = [gaussian.power.root], {gaussian.power.root.node}
    while waiting and len(seen) < _MOST:
        record = waiting.pop()
        for node in survey.timeline.nodes.users(record.node):
            user = survey.nodes.get(node)
            if user is None or node in seen or user.created.during[0]:
                continue
            seen.add(node)
            pair = list(survey.sources(user))
            if user.op == "mul" and len(pair) == 2 and sum(map(_is_noise, pair)) == 1:
                scale = pair[0] if _is_noise(pair[1]) else pair[1]
                power = _power(survey, scale)
                if power is not None and power.like(gaussian.power) and _is_added(survey, user, gaussian.mean):
                    yield user, scale, power
            elif user.op in SAME_NUMBERS | {"exp", "sqrt", "pow", "square", "mul", "div", "neg", "log"}:
                waiting.append(user)


def _is_noise(record: NodeRecord) -> bool:
    stats = record.value.statistics() if record.value is not None and record.value.size > 1 else None
    return not record.created.requires_grad and stats is not None and stats.min < 0 < stats.max


def _is_added(survey: Survey, product: NodeRecord, mean: NodeRecord) -> bool:
    """Return whether a product is added to a mean."""
    users = (survey.nodes.get(node) for node in survey.timeline.nodes.users(product.node))
    return any(
        user is not None and user.op == "add" and mean in map(survey.unwrapped, survey.sources(user)) for user in users
    )


def _finding(survey: Survey, gaussian: _Gaussian, product: NodeRecord, scale: NodeRecord, ratio: float) -> Finding:
    timeline = survey.timeline
    names = label(timeline, scale.node), label(timeline, gaussian.variance.node)
    is_variance = isclose(ratio, 1, rel_tol=0.01)
    if is_variance:
        text = titled("{} scales the noise, and is the variance in the loss", names[0])
    else:
        text = titled(f"{{}} scales the noise: the variance in the loss to the {number(ratio, 3)}", names[0])
    loss = f"the loss takes {label_at(timeline, gaussian.variance.node)} for the variance, and its logarithm"
    root, of = f"{loss}: the deviation of the noise is its square root", gaussian.variance
    part = Finding("scale", root, of.seq, of.node, at=survey.at(of))
    power = gaussian.power.exponent / 2
    base = timeline.info(gaussian.power.root.node).name
    named = base if base.isidentifier() else "s"
    times = "" if power == 1 else f"{number(power, 3)} * "
    right = f"exp({times}{named})" if gaussian.power.is_exponential else f"the square root of {names[1]}"
    fix = f"multiply the noise by the standard deviation, {right}"
    at = survey.at(product)
    numbers = (Number("power of the variance", ratio),)
    edit = _with_exponent(survey, scale, 0.5) if is_variance and gaussian.power.is_exponential else None
    return Finding("noise-scale", text, product.seq, scale.node, (part,), fix, at, numbers, edit=edit)


# What the program's source code shows


def _with_exponent(survey: Survey, scale: NodeRecord, factor: float) -> Edit | None:
    """Replace ``s.exp()`` with ``(0.5 * s).exp()``, and ``torch.exp(s)`` with ``torch.exp(0.5 * s)``.

    The exponential must be used for the noise only.
    """
    timeline, at = survey.timeline, survey.at(scale)
    users = [survey.nodes[node] for node in timeline.nodes.users(scale.node) if node in survey.nodes]
    forward = [user for user in users if not user.created.during[0]]
    if at is None or scale.op != "exp" or len(forward) != 1:
        return None

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            if not (isinstance(part, ast.Call) and called_name(part) == "exp" and is_at(part, at)):
                return None
            match part:
                case ast.Call(args=[ast.Name() as inner]):
                    return text.with_part(part, inner, f"{factor} * {text.segment(inner)}")
                case ast.Call(func=ast.Attribute(value=ast.Name() as inner), args=[]):
                    return f"({factor} * {text.segment(inner)}).exp()"
            return None

        return known

    return rewritten(timeline, at, change)
