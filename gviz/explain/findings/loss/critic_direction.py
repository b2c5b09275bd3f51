"""A critic and a generator that push the scores of the generated samples the same way, and so are no adversaries.

Idea. A critic gives scores to real and to generated samples, and its loss pushes the two apart. The generator is
trained through the critic, and must push the scores of its samples against what the critic wants. If both push them
the same way, the critic learns to give the generated samples the scores that the generator looks for, and these move
away from the data.

Example. ``d_loss = D(real).mean() - D(G(z).detach()).mean()`` and ``g_loss = -D(G(z)).mean()``. Both raise the scores
of the generated samples. The critic's loss needs the other sign.

Limits. Each model needs an optimizer of its own, and the critic's pass must not reach the generator. All elements of
the gradient that arrives at the scores must have one sign in each pass that is compared; or the losses compare the
scores with constants, such as 0 and 1. The scores of real samples do not depend on the generator: two parts that both
raise an estimate of mutual information are left out, and so is a critic that only learns the value of a policy's
actions. Functions of the program with a backward rule, such as a gradient reversal, may turn the sign.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from gviz.events import OptimizerStarted
from gviz.explain.backward_passes import roots_of_pass
from gviz.explain.display_names import label_at
from gviz.explain.finding import Finding
from gviz.explain.findings.training_loop.adversarial_gradients import (
    TakenStep,
    arrived_gradient,
    last_layer,
    steps_by_call,
    target_number,
    uses_of_parameter,
)
from gviz.explain.parameter_updates import maximizes
from gviz.explain.program_text import statement_at
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Edit, node_replaced
from gviz.explain.source_frames import at_text, own_frame
from gviz.explain.tracking import ancestors
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number as number_text

_FEWEST = 2
"""The fewest steps of each model that must agree."""


@dataclass(frozen=True, slots=True)
class _Push:
    """The scores of one kind of samples in the first of some passes, and where all of these move them.

    `up` is the direction in all elements: 1 or -1, or 0 if these differ. `target` is the number with which the
    loss compares them, if it is one.
    """

    pass_nr: int
    scores: NodeRecord
    up: int
    target: float | None


@dataclass(frozen=True, slots=True)
class _Adversaries:
    """How a critic pushes the scores of real and of generated samples, and how the generator pushes its own."""

    real: _Push
    fake: _Push
    own: _Push

    @property
    def agree(self) -> bool:
        """Whether the critic keeps real and generated samples apart, and the generator wants what the critic does."""
        real, fake, own = self.real.target, self.fake.target, self.own.target
        if real is None or fake is None or own is None:
            return 0 != self.fake.up == self.own.up == -self.real.up
        if not abs(own - fake) < abs(own - real):
            return False
        return self.fake.up == self.own.up or not self.fake.up or not self.own.up

    @property
    def is_critic_inverted(self) -> bool:
        """Whether the critic gives generated samples the higher scores: usually it gives real samples these."""
        if self.fake.target is not None and self.real.target is not None:
            return self.fake.target > self.real.target
        return self.fake.up > 0


def agreeing_adversaries(survey: Survey) -> Iterator[Finding | None]:
    """Yield the losses of a critic and of a generator that push the scores of generated samples the same way."""
    by_optimizer = yield from survey.once(steps_by_call)
    maximized = {event.stack for _, event in survey.timeline.select((OptimizerStarted,)) if maximizes(event)}
    for critic in by_optimizer.values():
        for generator in by_optimizer.values():
            yield None
            if min(len(critic), len(generator)) < _FEWEST:
                continue
            pairs = [*zip(critic, generator, strict=False)]
            if not all({*one.event.parameters}.isdisjoint(other.event.parameters) for one, other in pairs):
                continue
            known = _adversaries(survey, critic, generator, maximized)
            if known is not None and known.agree:
                yield _finding(survey, known)
                return


def _adversaries(
    survey: Survey, critics: Sequence[TakenStep], generators: Sequence[TakenStep], maximized: Collection[int]
) -> _Adversaries | None:
    """Return how the steps of a critic and of a generator push the critic's scores; None if they are no such pair."""
    timeline, own, others = survey.timeline, critics[0].event.parameters, {*generators[0].event.parameters}
    layer, real, fake, of_generator = 0, list[_Push](), list[_Push](), list[_Push]()
    for number in _passes(critics):
        graph = set(survey.history(*roots_of_pass(timeline, number)))
        parameter, uses = last_layer(survey, graph, own)
        layer = layer or parameter
        if parameter != layer or not graph.isdisjoint(others):
            return None
        for scores in (one for one in uses if one.op == uses[-1].op):  # a gradient penalty uses its weight, too
            group = real if others.isdisjoint(ancestors(timeline, scores.node)) else fake
            group += _push(survey, number, scores, is_maximized=critics[0].event.stack in maximized)
    for number in _passes(generators) if layer else ():
        graph = set(survey.history(*roots_of_pass(timeline, number)))
        for scores in (survey.nodes[node] for node in uses_of_parameter(survey, graph, layer)):
            behind = set(survey.history(scores.node))
            if behind.isdisjoint(others):
                continue
            if any(timeline.op(survey.nodes[node].created.op).is_of_program for node in behind):
                return None
            of_generator += _push(survey, number, scores, is_maximized=generators[0].event.stack in maximized)
    if not real or any(len({one.pass_nr for one in pushes}) < _FEWEST for pushes in (fake, of_generator)):
        return None
    return _Adversaries(_common(real), _common(fake), _common(of_generator))


def _passes(steps: Sequence[TakenStep]) -> list[int]:
    """Return the passes whose gradients some steps have used."""
    return sorted({number for one in steps for numbers in one.passes.values() for number in numbers})


def _push(survey: Survey, number: int, scores: NodeRecord, *, is_maximized: bool) -> Iterator[_Push]:
    """Yield where a step moves scores, by the gradient that arrives there in a pass; nothing if that is 0.

    A hinge sends 0, and so does a gradient penalty.
    """
    stats = arrived_gradient(survey, number, scores.node)
    if stats is not None and (stats.min or stats.max):
        up = (stats.min < 0 and stats.max <= 0) - (stats.min >= 0 and stats.max > 0)
        yield _Push(number, scores, -up if is_maximized else up, target_number(survey, number, scores))


def _common(pushes: Sequence[_Push]) -> _Push:
    """Return the push that several have in common: without a direction, or a target, if they differ in it."""
    up = pushes[0].up if len({one.up for one in pushes}) == 1 else 0
    target = pushes[0].target if len({one.target for one in pushes}) == 1 else None
    return replace(pushes[0], up=up, target=target)


def _finding(survey: Survey, first: _Adversaries) -> Finding:
    timeline, is_inverted = survey.timeline, first.is_critic_inverted
    losses = _loss(survey, first.fake, first.real), _loss(survey, first.own)
    wrong, other = losses if is_inverted else losses[::-1]
    scores = [label_at(timeline, one.scores.node) for one in (first.fake, first.own)]
    critic = f"the critic pushes {scores[0]} {_way(first.fake)}, and the score of real samples {_way(first.real)}"
    generator = f"the generator pushes {scores[1]} {_way(first.own)}, too"
    part = Finding("pushes", f"{critic}; {generator}", wrong.seq, wrong.node, at=survey.at(wrong))
    other_words = f"the loss of the {'generator' if is_inverted else 'critic'} is computed"
    place = Finding(
        "other-loss", f"{other_words}{at_text(timeline.stack(other.created.stack))}", other.seq, other.node,
        at=survey.at(other),
    )  # fmt: skip
    text = "critic and generator push the score of the fakes the same way"
    loss = "critic's loss" if is_inverted else "generator's loss"
    inverted = _with_other_sign(timeline, wrong)
    has_labels = (first.fake if is_inverted else first.own).target is not None
    fix = f"swap the {'labels' if has_labels else 'signs'} of real and generated samples in the critic's loss"
    if inverted is not None:
        fix = f"{inverted[0]} in the {loss}"
    elif not is_inverted:
        fix = f"use the {'label of real samples' if has_labels else 'other sign'} in the generator's loss"
    edit = inverted[1] if inverted is not None else None
    fix = f"{fix}: the two should push this score against each other"
    return Finding("agreeing-adversaries", text, wrong.seq, wrong.node, (part, place), fix, survey.at(wrong), edit=edit)


def _way(push: _Push) -> str:
    """Return where a loss pushes scores, in words."""
    return {1: "up", -1: "down"}.get(push.up) or f"to {number_text(push.target or 0.0)}"


def _loss(survey: Survey, first: _Push, *others: _Push) -> NodeRecord:
    """Return the first result that depends on the scores of all pushes; or else the first single number that depends
    on the first scores.
    """
    graph = sorted(survey.history(*roots_of_pass(survey.timeline, first.pass_nr)))
    of_scores = [_descendants(survey, graph, push.scores.node) for push in (first, *others)]
    meeting = [node for node in graph if all(node in one for one in of_scores)] if others else []
    numbers = [node for node in graph if node in of_scores[0] and survey.nodes[node].value is not None]
    single = [node for node in numbers if not survey.nodes[node].shape]
    return survey.nodes[next(iter((*meeting, *single, *graph[-1:])))]


def _descendants(survey: Survey, graph: Sequence[int], node: int) -> set[int]:
    """Return a node of a graph, in order of creation, and what was computed from it."""
    known = {node}
    for each in graph:
        if not known.isdisjoint(source for source, _ in survey.nodes[each].created.inputs):
            known.add(each)
    return known


_SIMPLE = (ast.Call, ast.Name, ast.Attribute)
"""Operands that keep their meaning in another place."""


def _with_other_sign(timeline: Timeline, loss: NodeRecord) -> tuple[str, Edit] | None:
    """Return a loss with the other sign, and the edit: for a difference on its line, or for a mean or a sum."""
    source = statement_at(timeline, own_frame(timeline.stack(loss.created.stack)))
    if source is None:
        return None
    text, one = source
    differences = [part for part in one.parts(ast.BinOp) if isinstance(part.op, ast.Sub)]
    value = one.node.value if isinstance(one.node, ast.Assign | ast.Return) else None
    replaced, new = value, ""
    if len(differences) == 1 and loss.op == "sub":
        replaced = differences[0]
        if isinstance(replaced.left, _SIMPLE) and isinstance(replaced.right, _SIMPLE):
            new = f"{text.segment(replaced.right)} - {text.segment(replaced.left)}"
    elif isinstance(value, ast.Call) and loss.op in ("mean", "sum"):
        new = f"-{text.segment(value)}"
    edit = node_replaced(text, replaced, new) if replaced is not None and new and "\n" not in new else None
    return (new, edit) if edit is not None else None
