"""A divergence of another parameter than the one that scales the noise, so that the scale in use has no penalty.

Idea. A Bayesian layer draws its weights or activations as mean plus noise times scale, and a term of the loss without
any data keeps mean and scale near to a prior. Three parameters of one module show the mistake: one is in both terms,
one scales noise and is in the term with data only, and the third is in the term without data only.

Example. ``Normal(self.mu, self.q_log_sigma.exp())`` in the divergence, with ``self.log_sigma`` in the forward.

Limits. A learned prior is in the term without data only, too; then the scale of the noise is in that term as well. The
two terms must be numbers that the loss adds.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.loss_terms import scalar_terms
from gviz.explain.program_text import ProgramText, frame_of_part, function_of, program_text
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Change, Edit, rewritten
from gviz.explain.source_frames import own_frames
from gviz.explain.tracking import ancestors
from gviz.source.call_stack import Frame

_MOST_SCALES = 200
"""The most products with noise that are examined."""


@dataclass(frozen=True, slots=True)
class _Term:
    """A number that a loss adds: what it was made from, the parameters among that, and whether data is."""

    nodes: frozenset[int]
    parameters: frozenset[int]
    has_data: bool


def divergences_of_other_parameters(survey: Survey) -> Iterator[Finding | None]:
    """Yield parameters that only a term without data has, next to one that scales the noise of the other term."""
    last = {event.stack: event for _, event in survey.passes if not event.inputs}
    roots = [survey.nodes[node] for event in last.values() for node, _ in event.roots if node in survey.nodes]
    terms = list[_Term]()
    for root in roots:
        yield None
        terms += [_term(survey, one.record) for one in scalar_terms(survey, root)]
    with_data = frozenset[int]().union(*(one.parameters for one in terms if one.has_data))
    without = frozenset[int]().union(*(one.parameters for one in terms if not one.has_data))
    if not (with_data - without and without - with_data and with_data & without):
        return
    both = {_module(survey, node) for node in with_data & without}
    scales = [scale for one in terms if one.has_data for scale in _scales(survey, one)]
    seen = set[tuple[str, int]]()
    for other in sorted(without - with_data):
        yield None
        module = _module(survey, other)
        for used, scale in scales:
            if module in both and used in with_data - without and _module(survey, used) == module:
                nodes = next(one.nodes for one in terms if not one.has_data and other in one.parameters)
                found = _finding(survey, other, used, scale, nodes)
                if found.at is not None and (found.at.path, found.at.line) not in seen:
                    seen.add((found.at.path, found.at.line))
                    yield found
                break


def _term(survey: Survey, record: NodeRecord) -> _Term:
    nodes = frozenset((record.node, *ancestors(survey.timeline, record.node))) & survey.nodes.keys()
    leaves = [survey.nodes[node] for node in nodes if not survey.nodes[node].created.inputs]
    parameters = {one.node: one.shape for one in leaves if one.created.requires_grad}
    drawn = {(), *parameters.values()}  # noise and zeros for each number of a parameter are no data
    has_data = any(one.node not in parameters and one.shape not in drawn and _is_tensor(one) for one in leaves)
    return _Term(nodes, frozenset(parameters), has_data)


def _is_tensor(record: NodeRecord) -> bool:
    return record.value is None or record.value.size > 1


def _module(survey: Survey, node: int) -> str | None:
    """Return the path of the module that has a parameter; None without a name."""
    name = survey.timeline.info(node).name
    return name.rpartition(".")[0] if name else None


def _scales(survey: Survey, term: _Term) -> Iterator[tuple[int, NodeRecord]]:
    """Yield each parameter that scales noise in a term, and the product with the noise.

    Another sample, such as the result of the layer before, has a noise of its own.
    """
    products = [
        one for node in sorted(term.nodes) if (one := survey.nodes[node]).op == "mul" and _is_noisy(survey, one)
    ]
    samples = {
        user
        for product in products
        for user in survey.timeline.nodes.users(product.node)
        if user in survey.nodes and survey.nodes[user].op in ("add", "sub")
    }
    for product in products[:_MOST_SCALES]:
        if samples.isdisjoint(survey.timeline.nodes.users(product.node)):
            continue
        waiting, seen = [product.node], {product.node}
        while waiting:
            record = survey.nodes[waiting.pop()]
            if not record.created.inputs and record.created.requires_grad:
                yield record.node, product
            for source in survey.sources(record):
                is_new = source.node not in seen and source.node not in samples
                if is_new and source.created.requires_grad:
                    seen.add(source.node)
                    waiting.append(source.node)


def _is_noisy(survey: Survey, product: NodeRecord) -> bool:
    """Return whether a product has a tracked factor and one of random numbers on both sides of 0."""
    pair = list(survey.sources(product))
    noise = [one for one in pair if not one.created.requires_grad and one.shape == product.shape]
    stats = noise[0].stats if len(pair) == 2 and len(noise) == 1 else None
    is_drawn = bool(noise) and not [one for one in survey.sources(noise[0]) if noise[0].created.untracked != "numbers"]
    return is_drawn and stats is not None and stats.min < 0 < stats.max


def _finding(survey: Survey, other: int, used: int, product: NodeRecord, nodes: frozenset[int]) -> Finding:
    timeline = survey.timeline
    users = [survey.nodes[node] for node in timeline.nodes.users(other) if node in nodes]
    names = label(timeline, other), label(timeline, used)
    text = titled("{} is in the divergence, and {} scales the noise", *names)
    user = users[0]
    readings = _readings(survey, user, other)
    at = readings[0] if readings else survey.at(user)
    own = f"{label(timeline, other)} reaches the loss by a term without data only: {label_at(timeline, user.node)}"
    first = Finding("term", own, user.seq, user.node, at=survey.at(user))
    noise = f"{label_at(timeline, product.node)} multiplies the noise, and no term without data has {names[1]}"
    second = Finding("scale", noise, product.seq, product.node, at=survey.at(product))
    one, right = timeline.info(other).name, timeline.info(used).name
    fix = f"the same parameters for both: {right} in the divergence, or {one} for the noise"
    is_alike = survey.nodes[other].shape == survey.nodes[used].shape
    edit = _renamed(survey, at, one, right) if is_alike and len(readings) == 1 else None
    return Finding("noise-scale", text, user.seq, other, (first, second), fix, at, edit=edit)


# What the text of the program says


def _readings(survey: Survey, user: NodeRecord, parameter: int) -> list[Frame]:
    """Return where the innermost function on the call stack of an operation that reads a parameter by name does so."""
    timeline = survey.timeline
    name = timeline.info(parameter).name.rpartition(".")[2]
    for frame in own_frames(timeline.stack(user.created.stack)):
        text = program_text(timeline, frame)
        here = text.at(frame.line, frame.column) if text is not None else None
        if text is None or here is None:
            continue
        parts = (one for each in text.by_function.get(function_of(here), ()) for one in each.parts(ast.Attribute))
        read = [part for part in parts if part.attr == name and isinstance(part.ctx, ast.Load)]
        if read:
            return [frame_of_part(text, part, frame.function) for part in read]
    return []


def _renamed(survey: Survey, at: Frame | None, old: str, new: str) -> Edit | None:
    """Replace ``self.q_log_sigma`` at a frame with ``self.log_sigma``."""
    (_, _, before), (_, _, after) = old.rpartition("."), new.rpartition(".")

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            match part:
                case ast.Attribute(value=ast.Name(id=owner), attr=attribute) if attribute == before:
                    return f"{owner}.{after}"
            return None

        return known

    return rewritten(survey.timeline, at, change)
