"""The gradients of an attack on an input, which its backward passes leave in the parameters of the model.

Idea. A pass that is run for the gradient of an input, as of a perturbation, also adds to the ``.grad`` of every
parameter. A step that comes before these are cleared uses their sum with the gradient of its own loss, and the attack
wants the opposite of it.

Example. ``attack_loss.backward(); delta = delta + rate * delta.grad.sign()``, in a function that a training loop calls
after ``optimizer.zero_grad()``.

Limits. The input is no parameter of an optimizer, the program computes with its ``.grad``, and the other loss does not
reach it. One such pass before each step may be meant: a loss of the clean input and one of the changed input. That is a
note.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from gviz.explain.backward_passes import pass_started, roots_of_pass
from gviz.explain.display_names import label, titled
from gviz.explain.finding import Finding
from gviz.explain.findings.training_loop.adversarial_gradients import TakenStep, steps_by_call
from gviz.explain.recording_survey import Survey
from gviz.explain.source_frames import at_text
from gviz.values.number_text import times_text


def attack_gradients(survey: Survey) -> Iterator[Finding | None]:
    """Yield the first step of each call that also uses gradients of passes that were run for the gradient of an input.

    Both are in one step each time that is recorded.
    """
    read = {
        owner
        for record in survey.nodes.values()
        if isinstance(owner := dict(record.created.attrs).get("grad_of"), int)
        and survey.timeline.nodes.users(record.node)
    }
    if not read:
        return
    yield None
    inputs: defaultdict[int, set[int]] = defaultdict(set)
    for _, event in survey.accumulated:
        if event.node in read and event.node not in survey.optimized:
            inputs[event.pass_nr].add(event.node)
    by_optimizer = yield from survey.once(steps_by_call)
    for steps in by_optimizer.values():
        yield None
        found = [_attack(step, inputs) for step in steps]
        if found and all(found) and found[0] is not None:
            yield _finding(survey, steps[0], found[0], next(iter(inputs[found[0][-1]])))


def _attack(step: TakenStep, inputs: defaultdict[int, set[int]]) -> list[int] | None:
    """Return the passes of a step that were run for the gradient of an input; None if there is no other pass."""
    attacks = [numbers for numbers in step.passes.values() if all(inputs[number] for number in numbers)]
    others = [number for numbers in step.passes.values() if numbers not in attacks for number in numbers]
    return attacks[0] if len(attacks) == 1 and others and not any(inputs[number] for number in others) else None


def _finding(survey: Survey, step: TakenStep, passes: list[int], target: int) -> Finding:
    timeline = survey.timeline
    started = pass_started(timeline, passes[0])
    at = next(iter(timeline.stack(started.stack)), None) if started is not None else None
    node = next(node for node in step.last if node in survey.nodes)
    seq, _ = step.last[node]
    loss = label(timeline, next(iter(roots_of_pass(timeline, passes[0])), 0))
    text = titled("the step also uses the gradient of {}, an attack on {}", loss, label(timeline, target))
    count = f"ran {times_text(len(passes))}" if len(passes) > 1 else "ran"
    used = f"the step{at_text(timeline.stack(step.event.stack))} uses the sum with that of its own loss"
    sums = f"this backward {count} since the last clearing, and added to {label(timeline, node)}.grad each time; {used}"
    part = Finding("sum", sums, seq, node)
    fix = "autograd.grad(loss, input)[0], which leaves the parameters alone; or zero_grad() after the attack"
    return Finding("attack-gradient", text, seq, node, (part,), fix, at, suspected=len(passes) < 2)
