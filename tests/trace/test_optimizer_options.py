"""What a step of an optimizer is said to be made with, and what no program can put there."""

import contextlib

import msgspec
import numpy as np
import pytest
from recording import timeline_of

import gviz.engine as torch
from gviz.compare.compared_iteration import Side
from gviz.compare.recording_comparison import compare
from gviz.errors import GvizError
from gviz.events import OptimizerStarted, StorageWritten
from gviz.events.optimizer_options import Earlier, options_in, options_of
from gviz.explain.event_description import description
from gviz.explain.parameter_updates import step_words
from gviz.query.expressions import value_of
from gviz.query.nodes import NamedNodes
from gviz.render.comparison_table import summary
from gviz.trace.codec import KIND_NUMBERS, decode, encode


def schedule(*, early=False):
    def program():
        w = torch.tensor([2.0, 3.0], requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.5, momentum=0.25)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
        for _ in range(3):
            optimizer.zero_grad()
            loss = (w * w).sum()
            loss.backward()
            for step in (scheduler.step, optimizer.step) if early else (optimizer.step, scheduler.step):
                step()

    return timeline_of(program)


def two_groups():
    v, w = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    optimizer = torch.optim.SGD([{"params": [v]}, {"params": [w], "lr": 0.25}], lr=0.5)
    for _ in range(2):
        (v * w).backward()
        optimizer.step()
        optimizer.param_groups[1]["lr"] = 0.125


def told(timeline):
    return [description(timeline, timeline.at(n)) for n, _ in timeline.select((OptimizerStarted,))]


def test_a_step_tells_its_options_and_marks_those_that_have_changed():
    assert told(schedule()) == [
        "SGD starts a step, lr=0.5, momentum=0.25",
        "SGD starts a step, lr=0.5, momentum=0.25",
        "SGD starts a step, lr=0.05 (was 0.5), momentum=0.25",
    ]


def test_further_groups_tell_what_differs_from_the_first():
    assert told(timeline_of(two_groups)) == [
        "SGD starts a step, lr=0.5; group 1: lr=0.25",
        "SGD starts a step, lr=0.5; group 1: lr=0.125 (was 0.25)",
    ]


def test_a_weight_was_changed_with_the_options_of_its_group():
    timeline = timeline_of(two_groups)
    names = NamedNodes(timeline)
    found = []
    for name in ("v", "w"):
        node = names.last(name, len(timeline))
        storage = timeline.info(node).created.outputs[0].storage
        seqs = [n for n, event in timeline.select((StorageWritten,)) if event.storage == storage]
        found.append([step_words(timeline, node, n) for n in seqs])
    assert found == [["SGD (lr=0.5)", "SGD (lr=0.5)"], ["SGD (lr=0.25)", "SGD (lr=0.125)"]]


@pytest.mark.filterwarnings("ignore:Detected call")
def test_a_schedule_that_is_called_too_early_is_named_before_the_first_weight_that_differs():
    a, b = schedule(), schedule(early=True)
    third = list(summary(compare(Side(a, 3), Side(b, 3))))
    (at, _), *_ = [one for one in b.select((OptimizerStarted,)) if one[1].before]
    assert third[0].startswith("first step with other options: SGD in iteration 2 (test_optimizer_options.py:")
    assert third[0].endswith(f", event {at}, lr 0.5 and 0.05, before any number differs.")
    first = list(summary(compare(Side(a, 1), Side(b, 1))))
    assert first[0].startswith("no difference up to iteration 1")


def test_a_step_that_changes_nothing_differs_by_its_options_alone():
    def idle(lr):
        def program():
            w = torch.tensor(2.0, requires_grad=True)
            torch.optim.SGD([w], lr=lr).step()
            return w

        return timeline_of(program)

    first, second = summary(compare(Side(idle(0.5), 1), Side(idle(0.25), 1)))
    assert first.endswith("event 2, lr 0.5 and 0.25.")
    assert second.startswith("no other difference: ")


def test_who_asks_for_an_option_is_told_where_it_stands():
    timeline = schedule()
    second, third = [n for n, _ in timeline.select((OptimizerStarted,))][1:]
    with pytest.raises(GvizError, match="there is no lr here") as raised:
        value_of(timeline, NamedNodes(timeline), third - 1, "lr * 2")
    said = f"SGD has 0.5 in its step at @{second}, SGD has 0.05 in its step at @{third}"
    assert raised.value.hint == f"it is an option: {said}"


def number_in(thing):
    return thing


class Anything:
    def __eq__(self, other):
        raise AssertionError


def test_only_numbers_and_short_texts_of_few_groups_are_told_and_a_file_can_hold_them():
    odd = {
        "params": [1], "fused": True, "lr": np.float32(0.5), "text": "é" * 99, "surrogate": "\ud800" * 40,
        "many": [1.0] * 99, "nan": float("nan"), "large": 1 << 64, "long": np.longdouble(1), "thing": Anything(),
        "deep": ((1,),), 3: 4, "none": None, "pair": (None, 0.5), "dict": {}, "x" * 99: 1,
    }  # fmt: skip
    groups = options_of([odd, *[{**odd, "lr": at} for at in range(99)]], number_in)
    held = options_in(groups, 0)
    assert held == {
        "lr": 0.5, "text": "é" * 40, "surrogate": ("\\ud800" * 40)[:40], "many": (1.0,) * 8,
        "nan": pytest.approx(np.nan, nan_ok=True), "none": None, "pair": (None, 0.5), "x" * 40: 1,
    }  # fmt: skip
    assert len(groups) == 64
    assert groups[1:3] == ((("lr", 0),), (("lr", 1),))
    event = OptimizerStarted("SGD", 1, groups, groups)
    assert encode(decode(KIND_NUMBERS[OptimizerStarted], encode(event))) == encode(event)


@pytest.mark.parametrize(
    "options",
    [
        [[["lr", {"a": 1}]]],
        [[["lr", [[1]]]]],
        [[["lr", "x" * 41]]],
        [[["x" * 41, 1]]],
        [[["lr", [1] * 9]]],
        [[["lr", 1]] * 33],
        [[]] * 65,
    ],
)
def test_a_file_with_other_options_is_refused(options):
    body = msgspec.msgpack.encode(["SGD", 1, options])
    with pytest.raises(msgspec.ValidationError):
        decode(KIND_NUMBERS[OptimizerStarted], body)


def test_an_older_trace_tells_no_options():
    event = decode(KIND_NUMBERS[OptimizerStarted], msgspec.msgpack.encode(["SGD", 1]))
    assert (event.options, event.before) == ((), ())


def test_an_optimizer_in_the_place_of_one_that_is_gone_has_nothing_to_compare_with():
    class Of:
        pass

    earlier, one, other = Earlier(), Of(), Of()
    half, whole = ((("lr", 0.5), ("new", 1)),), ((("lr", 1.0),),)
    assert [earlier.replaced(each, options) for each, options in ((one, half), (other, whole), (one, half))] == [()] * 3
    assert earlier.replaced(one, whole) == ((("lr", 0.5),),)
    earlier._options[id(other)] = earlier._options.pop(id(one))
    assert earlier.replaced(other, half) == ()


def test_a_tensor_of_one_number_is_told_as_that():
    def program():
        w = torch.tensor(2.0, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=torch.tensor(0.5))
        optimizer.param_groups[0]["many"] = torch.ones(2)
        with contextlib.suppress(ValueError):
            optimizer.step()

    assert told(timeline_of(program)) == ["SGD starts a step, lr=0.5"]


def test_an_optimizer_that_is_no_more_is_forgotten():
    class Optimizer:
        pass

    earlier, kept = Earlier(), Optimizer()
    for rate in range(3):
        earlier.replaced(Optimizer(), ((("lr", rate),),))
        earlier.replaced(kept, ((("lr", rate),),))
    assert list(earlier._options) == [id(kept)]
    assert earlier.replaced(kept, ((("lr", 5),),)) == ((("lr", 2),),)
