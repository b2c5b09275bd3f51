"""A ``.grad`` that the program has changed since backward: who wrote, at which line, and what that did to it."""

import numpy as np
import pytest
from explain.programs import HERE, line_of, recorded
from hypothesis import given
from hypothesis import strategies as st

import gviz.engine as torch
from gviz.explain.grad_history import common_factor
from gviz.explain.typed_question import answers
from gviz.explain.why import why
from gviz.trace import load
from gviz.trace.recording.record import Kept, record

ENGINES = pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])


def asked(engine, place, name="clipped"):
    return answers(recorded("updates", name, engine), place)[0]


@ENGINES
@pytest.mark.parametrize(
    ("place", "now", "how", "line"),
    [
        ("w.grad", "[3 4]", "multiplied by 0.5 at clipped.py:8", "torch.nn.utils.clip_grad_norm_([w], 5.0)"),
        ("v.grad", "[6 7]", "cut off at 7 in 1 of 2 elements at clipped.py:9", "torch.nn.utils.clip_grad_value_"),
    ],
)
def test_clipping_is_named_with_its_line_and_what_it_did(engine, place, now, how, line):
    found = asked(engine, place)
    assert found.text.endswith(f".grad is {now}: backward made it [6 8], and then it was {how}")
    assert found.parts[0].text.startswith(line)
    assert found.parts[0].event == found.event


@ENGINES
def test_the_shares_make_what_was_there_before_the_write(engine):
    *_, before = asked(engine, "w.grad").parts
    assert before.text == "before that it was [6 8], from backward"
    assert [part.kind for part in before.parts] == ["contribution", "contribution"]


@ENGINES
def test_several_writes_are_told_in_their_order(engine):
    found = asked(engine, "u.grad")
    assert found.text.endswith("it was changed 2 times, last at clipped.py:11")
    assert [part.text for part in found.parts[:2]] == [
        "multiplied by 0.25 at clipped.py:10: u.grad /= 4",
        "changed from [1.5 2] to [2.5 3] at clipped.py:11: u.grad = u.grad + 1",
    ]


@ENGINES
def test_a_nan_that_clipping_spreads_is_followed_to_its_birth(engine):
    found = asked(engine, "w.grad", "nan_through_clipping")
    assert found.kind == "nan-born-backward"
    assert found.at.line == line_of(HERE / "updates" / "nan_through_clipping.py")
    carried = next(part for part in found.parts if part.kind == "carried")
    assert carried.text.startswith(
        "from the .grad of #2 scale to that of others at nan_through_clipping.py:7: torch.nn"
    )


@given(st.floats(0.01, 100), st.lists(st.floats(-1e3, 1e3, width=32), min_size=2, max_size=9))
def test_a_factor_is_found_in_single_precision(scale, elements):
    before = np.array(elements, np.float32)
    before[abs(before) < 1e-30] = 0  # a product with no room for all its digits
    after = before * np.float32(scale)
    found = common_factor(before.astype(float), after.astype(float), EPS)
    if len(set(before[before != 0].tolist())) > 1 and abs(scale - 1) > 1e-6:
        assert found == pytest.approx(scale, rel=1e-6)
    else:
        assert found is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([1, 2], [2, 5]),
        ([0, 0], [2, 5]),
        ([1e6, 3], [1e6, 0]),  # the small one is no rounding of the large one
        ([1e6, 3], [5e5, 0]),
        ([1, 0, 2], [2, 1, 4]),
        ([1, 2], [1, 2.0000001]),  # 1 changes nothing
        ([2, 2], [1, 1]),  # they may have been set
        ([8], [4]),
    ],
)
def test_no_factor_is_made_up(before, after):
    assert common_factor(np.array(before, float), np.array(after, float), EPS) is None


EPS = float(np.finfo(np.float32).eps)


def told(program, tensor, tmp_path, values="whole"):
    """What is answered of the ``.grad`` of what a program returns under a name."""
    path = tmp_path / f"{program.__name__}_{tensor}.gviz"
    with record(path, Kept(keep=values), framework="gviz.engine") as recording:
        held = program()
        node = recording.node_of(held[tensor])
        del held
    timeline = load(path)
    return why(timeline, timeline.at(len(timeline)), node, "grad")


def masked():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    (w * torch.tensor([1e6, 3.0])).sum().backward()
    w.grad[1] = 0
    return {"w": w}


def flipped():
    w = torch.ones(2000, requires_grad=True)
    (w * torch.arange(2000.0)).sum().backward()
    w.grad = w.grad.flip(0)
    return {"w": w}


def replaced():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    (w * 2).sum().backward()
    w.grad = None
    w.grad = torch.ones(2)
    return {"w": w}


def scaled():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    (w * torch.tensor([4.0, 3.0])).sum().backward()
    w.grad.mul_(0.5)
    return {"w": w}


def divided():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    (w * torch.tensor([4.0, 3.0])).sum().backward()
    w.grad /= 2
    return {"w": w}


def each_by_its_own():
    a = torch.tensor([0.0, 2.0], requires_grad=True)
    b = torch.tensor([1.0, 2.0], requires_grad=True)
    (a.sqrt().sum() + (b * b).sum()).backward()
    for p, scale in ((a, 0.5), (b, float("nan"))):
        p.grad.mul_(scale)
    return {"a": a, "b": b}


def test_an_element_that_was_masked_is_no_factor(tmp_path):
    assert " was changed at test_changed_grad.py" in told(masked, "w", tmp_path).text


def test_statistics_make_no_factor(tmp_path):
    found = told(flipped, "w", tmp_path)
    assert "multiplied" not in str(found)
    assert " was changed at " in found.text


def test_a_grad_that_was_cleared_and_set_is_what_backward_made_it_before(tmp_path):
    found = told(replaced, "w", tmp_path)
    assert ".grad is [1 1]: backward made it [2 2], and then it was changed 2 times" in found.text
    cleared, assigned = (part.text for part in found.parts[:2])
    assert cleared.startswith("cleared at ")
    assert cleared.endswith(": w.grad = None")
    assert assigned.startswith("set to [1 1] at ")


@pytest.mark.parametrize("program", [scaled, divided])
def test_a_write_is_told_without_its_numbers(program, tmp_path):
    found = told(program, "w", tmp_path, values="none")
    assert "backward made it (2,) not stored, and then it was written to at test_changed_grad.py" in found.text


def test_a_nan_of_its_own_line_is_not_blamed_on_another(tmp_path):
    found = told(each_by_its_own, "b", tmp_path)
    assert found.text == "this nan appears first in the .grad of #2 b, where it is written"
    assert [part.kind for part in found.parts] == ["write", "beside", "earlier-nan"]
    assert found.parts[1].text.endswith("which held 1 inf: it may have come from there")
    assert "sqrt" in told(each_by_its_own, "a", tmp_path).text  # its own stayed where it was


def clipped_with_an_infinity():
    a = torch.tensor([0.0, 2.0], requires_grad=True)
    b = torch.tensor([1.0, 2.0], requires_grad=True)
    (a.sqrt().sum() + (b * b).sum()).backward()
    torch.nn.utils.clip_grad_norm_([a, b], 1.0)
    return {"a": a, "b": b}


def clipped_one_by_one():
    a = torch.tensor([float("nan"), 2.0], requires_grad=True)
    b = torch.tensor([1.0, 2.0], requires_grad=True)
    ((a * a).sum() + (b * b).sum()).backward()
    for p, limit in ((a, 1.0), (b, float("nan"))):
        torch.nn.utils.clip_grad_norm_([p], limit)
    return {"a": a, "b": b}


def bad_in_the_pass_before():
    a = torch.tensor([float("nan"), 2.0], requires_grad=True)
    b = torch.tensor([1.0, 2.0], requires_grad=True)
    for scale, loss in ((1.5, lambda: (a * a + b * b).sum()), (float("nan"), lambda: (b * b).sum())):
        loss().backward()
        for p in (a, b):
            if p.grad is not None:
                p.grad.mul_(scale)
        if scale == 1.5:
            a.grad = b.grad = None
    return {"a": a, "b": b}


def written_at_two_lines():
    a = torch.tensor([float("nan"), 2.0], requires_grad=True)
    b = torch.tensor([1.0, 2.0], requires_grad=True)
    (a * a + b * b).sum().backward()
    a.grad.mul_(2)
    b.grad.mul_(float("nan"))
    return {"a": a, "b": b}


def test_an_infinite_norm_clips_the_others_to_zero(tmp_path):
    found = told(clipped_with_an_infinity, "b", tmp_path)
    assert "set to zero at test_changed_grad.py" in found.text
    (beside,) = (part for part in found.parts if part.kind == "beside")
    assert beside.text.endswith("of #1 a, which held 1 inf")
    assert "sqrt" in beside.parts[0].text


def test_calls_of_their_own_clip_by_norms_of_their_own(tmp_path):
    found = told(clipped_one_by_one, "b", tmp_path)
    assert found.text == "this nan appears first in the .grad of #2 b, where it is written"
    assert found.parts[1].text.endswith("it may have come from there")


@pytest.mark.parametrize("program", [bad_in_the_pass_before, written_at_two_lines])
def test_what_another_pass_or_line_wrote_is_not_suspected(program, tmp_path):
    assert [part.kind for part in told(program, "b", tmp_path).parts] == ["write", "earlier-nan"]


def pair(first, second):
    """Two leaves after a pass that left an inf in the ``.grad`` of the first."""
    a = torch.tensor([first, 2.0], requires_grad=True)
    b = torch.tensor([second, 2.0], requires_grad=True)
    (a.sqrt().sum() + (b * b).sum()).backward()
    return {"a": a, "b": b}


def clipped_by_hand():
    held = pair(float("nan"), 1.0)
    scale = 1 / held["a"].grad.norm()
    [p.grad.mul_(scale) for p in held.values()]
    return held


def halved():
    held = pair(0.0, 1.0)
    [p.grad.mul_(0.5) for p in held.values()]
    return held


def clipped_by_a_count():
    held = pair(0.0, 1.0)
    torch.nn.utils.clip_grad_norm_(held.values(), 1.0, norm_type=0.0)
    return held


def filled_with_nan():
    held = pair(0.0, 1.0)
    held["a"].grad.fill_(float("nan"))
    return held


def all_set():
    held = pair(1.0, 1.0)
    held["b"].grad = torch.tensor([1.5, 1.5])
    return held


def test_a_norm_by_hand_is_a_suspicion(tmp_path):
    assert told(clipped_by_hand, "b", tmp_path).parts[1].text.endswith("it may have come from there")


@pytest.mark.parametrize("program", [halved, clipped_by_a_count])
def test_a_bad_grad_that_did_nothing_to_another_is_not_told(program, tmp_path):
    found = told(program, "b", tmp_path)
    assert "multiplied by" in found.text
    assert "beside" not in [part.kind for part in found.parts]


def test_what_is_bad_stays_where_it_was_or_was_put_there(tmp_path):
    assert "sqrt" in told(halved, "a", tmp_path).text
    assert told(filled_with_nan, "a", tmp_path).text.startswith("this nan appears first in the .grad of #1 a, where")


def test_elements_that_were_all_set_are_not_called_cut_off(tmp_path):
    assert " was changed at " in told(all_set, "b", tmp_path).text
