"""A nan or inf that reached a parameter: told as it was then, and followed back through the optimizer's step."""

import math
import re

import pytest
from explain.programs import HERE, line_of, recorded, recorded_text
from recording import timeline_of

import gviz
import gviz.engine as torch
from gviz.errors import GvizError
from gviz.events import GradFlowed
from gviz.explain.check import check
from gviz.explain.finding import lines, whole
from gviz.explain.typed_question import answers
from gviz.explain.why import why
from gviz.trace import load
from gviz.trace.recording.record import record
from gviz.values.value_text import bad_text

ENGINES = pytest.mark.parametrize("engine", ["builtin", "torch"])


def asked(name, engine, place):
    timeline = recorded("updates", name, engine)
    return timeline, answers(timeline, place)[0]


@ENGINES
@pytest.mark.parametrize("place", ["loss", "w.grad", "w"])
def test_a_nan_is_followed_through_the_step_that_wrote_it(engine, place):
    timeline, found = asked("nan_through_a_step", engine, place)
    assert found.kind == "nan-born-backward"
    assert found.text.startswith("the first inf appears in the backward rule of")
    assert timeline.error_index.first_bad() == found.event == check(timeline)[0].finding.event
    assert "sqrt(x + 1e-8)" in found.fix


@ENGINES
def test_where_an_infinity_became_a_nan(engine):
    timeline, found = asked("nan_through_a_step", engine, "loss")
    became = next(part for part in whole(found) if part.kind == "became-nan")
    assert "it became nan in" in became.text
    first = next(n for n in range(1, len(timeline) + 1) if "nan" in _bad_at(timeline, n))
    assert became.event == first


def _bad_at(timeline, n):
    """What is bad in the values that an event brings."""
    event = timeline.event(n)
    outputs = [output.value for output in getattr(event, "outputs", ())]
    return " ".join(
        bad_text(value) for value in (*outputs, getattr(event, "part", None), getattr(event, "value", None))
    )


@pytest.mark.torch
def test_a_step_that_made_an_infinity_of_finite_numbers():
    timeline, found = asked("overflow_in_a_step", "torch", "w")
    assert found.text == "the first -inf appears when #1 w is updated"
    by, *before = [part.text for part in found.parts[:3]]
    assert by == "updated by SGD (lr=1e+38) at overflow_in_a_step.py:9"
    assert found.at.line == line_of(HERE / "updates" / "overflow_in_a_step.py")
    assert before == ["its value was [2 1] before", "its .grad was [100 100] before"]
    assert "learning rate" in found.fix
    held = timeline.at(found.event - 1).state(found.node).outputs[0]
    assert bad_text(held.value) == bad_text(held.grad) == ""


@ENGINES
def test_a_bad_gradient_of_an_earlier_pass_is_not_from_outside(engine):
    timeline, found = asked("kept_from_an_earlier_pass", engine, "w.grad")
    assert found.kind == "nan-born-backward"
    assert timeline.info(found.node).op.name == "sqrt"


@pytest.mark.torch
def test_a_value_that_a_step_has_changed_names_the_optimizer():
    timeline = recorded("updates", "a_plain_step", "torch")
    found = why(timeline, timeline.at(len(timeline)), timeline.nodes[0], "value")
    written = found.parts[0]
    assert written.text.startswith("then a step of SGD (lr=0.1) at a_plain_step.py:6 wrote to its memory: [0.8 1.6]")
    assert written.at.line == line_of(HERE / "updates" / "a_plain_step.py")


@pytest.mark.filterwarnings("ignore:std")
@pytest.mark.parametrize(
    ("operation", "numbers", "says"),
    [
        (lambda x: x**2, [1e20, 2.0], "keep its result small enough for float32"),
        (lambda x: x**-1.0, [0.0, 2.0], "keep its base above 0"),
        (lambda x: torch.fmod(x, 0.0), [1.0, 2.0], "keep them away from where it is not defined"),
        (lambda x: x**0.5, [-4e19, 2.0], "keep its base at 0 or above"),
        (lambda x: x * x, [1e30, 2.0], "keep its result small enough for float32"),
        (lambda x: x @ (x * torch.tensor([1.0, -1.0])), [1e30, 1e30], "keep its result small enough for float32"),
        (lambda x: 1 / x, [0.0, 2.0], "keep what is divided by away from 0"),
        (lambda x: x.reshape(2, 1).std(1), [1.0, 2.0], "one number has no spread"),
        (lambda x: x * 2, [float("nan"), 2.0], "it came with the data"),
    ],
)
def test_the_advice_is_about_what_happened(operation, numbers, says, tmp_path):
    with record(tmp_path / "run.gviz"):
        operation(torch.tensor(numbers, requires_grad=True)).sum().backward()
    assert says in answers(load(tmp_path / "run.gviz"), None)[0].fix


@pytest.mark.parametrize(("bad", "is_told"), [("inf", True), ("nan", False)])
def test_an_infinity_in_half_precision_may_be_a_number_that_is_too_great(tmp_path, bad, is_told):
    with record(tmp_path / "run.gviz"):
        scale = torch.tensor([7e4 if bad == "inf" else math.nan], dtype=torch.float16)
        (scale * torch.ones(1, dtype=torch.float16, requires_grad=True)).sum().backward()
    assert ("65504" in answers(load(tmp_path / "run.gviz"), None)[0].fix) is is_told


@ENGINES
def test_a_loss_that_was_nan_before_is_explained_by_its_first(engine):
    timeline, found = asked("nan_since", engine, "loss")
    (checked,) = check(timeline)
    assert found.event == checked.finding.event
    assert found.text.startswith(checked.finding.text)
    *_, before, last = [node for node in timeline.nodes if timeline.info(node).name == "loss"]
    which, first, _, became = found.parts[:4]
    assert which.text == f"this is #{last}, the last of 4 called loss; #{before} is the one before"
    assert "is nan each time since iteration 2; the first is #" in first.text
    assert timeline.info(first.node).name == "loss"
    assert became.text.endswith(": 0 * -inf in 2 of 3 elements")


@ENGINES
def test_a_mask_is_not_the_first_of_the_nans_of_its_line(engine):
    timeline, found = asked("nan_after_masks", engine, "scores")
    masks = [node for node in timeline.nodes if timeline.info(node).name == "scores"]
    bad = [bad_text(timeline.info(node).created.first_value) for node in masks]
    assert bad == ["1 -inf", "2 -inf", "1 nan, 1 -inf", "1 nan, 1 -inf"]
    since = next(part for part in found.parts if part.kind == "since")
    assert since.text.endswith(f"is nan each time since iteration 3; the first is #{masks[2]}")
    assert found.node == masks[1]


@ENGINES
def test_a_row_that_is_masked_throughout_is_named(engine):
    _, found = asked("../bugs/masked_row", engine, "loss")
    became = next(part for part in whole(found) if part.kind == "became-nan")
    assert became.text.endswith("scores[0, :] is all -inf")


@pytest.mark.parametrize(
    ("dim", "says"),
    [(-1, "scores[1, 0, :] is all -inf, as is 1 more"), (1, "scores[0, :, 1] is all -inf, as are 2 more")],
)
def test_rows_are_counted_along_the_dimension_of_the_softmax(dim, says, tmp_path):
    hidden = torch.tensor([[[False, True], [False, True]], [[True, True], [True, True]]])
    with record(tmp_path / "run.gviz"):
        scores = torch.ones(2, 2, 2, requires_grad=True).masked_fill(hidden, -math.inf)
        torch.softmax(scores, dim=dim).sum().backward()
    found, *_ = answers(load(tmp_path / "run.gviz"), None)
    assert next(part.text for part in found.parts if part.kind == "became-nan").endswith(says)


@pytest.mark.parametrize(("lr", "leaps"), [(1e20, True), (0.1, False)])
def test_a_step_that_made_a_parameter_too_large_is_named(lr, leaps, tmp_path):
    with record(tmp_path / "run.gviz"):
        w = torch.tensor([2.0], requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=lr)
        for size in (1.0, 1e30):
            optimizer.zero_grad()
            loss = (w * size) * (w * size)
            loss.backward()
            optimizer.step()
    (found,) = answers(load(tmp_path / "run.gviz"), None)
    told = [part.text for part in found.parts if part.kind == "leapt"]
    assert [text.partition(" took ")[2] for text in told] == ["#1 w from rms 2 to 4e+20"] * leaps
    assert found.fix.startswith("a smaller learning rate, or clip_grad_norm_") is leaps


def test_turns_of_one_line_that_are_bad_are_told_of_as_such(tmp_path):
    with record(tmp_path / "run.gviz"):
        h = torch.tensor([1e30], requires_grad=True)
        for _ in range(4):
            h = h * 1e5
    (found,) = answers(load(tmp_path / "run.gviz"), "h")
    assert "h = mul is inf, and what its line makes is nan or inf each time since #" in "".join(
        part.text for part in found.parts
    )


def test_the_first_nan_is_asked_about_by_that_word(tmp_path):
    with record(tmp_path / "run.gviz"):
        x = torch.tensor([1e30], requires_grad=True)
        (x * x - x * x).sum().backward()
    timeline = load(tmp_path / "run.gviz")
    (found,) = answers(timeline, "nan")
    assert (found.kind, found.event) == ("nan-born", timeline.error_index.first_bad())


def test_a_tensor_called_nan_is_asked_about_by_that_word(tmp_path):
    with record(tmp_path / "run.gviz"):
        nan = torch.tensor([1.0], requires_grad=True)
        (nan * 2).sum().backward()
        torch.zeros(1).log()
    (found,) = answers(load(tmp_path / "run.gviz"), "nan")
    assert found.node == 1


def test_where_there_is_no_nan_that_is_said(tmp_path):
    with record(tmp_path / "run.gviz"):
        torch.ones(2).sum()
    with pytest.raises(GvizError, match="no nan or inf in this recording"):
        answers(load(tmp_path / "run.gviz"), "nan")


def test_a_nan_that_is_older_than_what_was_kept_is_called_so(tmp_path):
    with gviz.record(tmp_path / "run.gviz", last=1):
        w = torch.zeros(1, requires_grad=True)
        torch.sqrt(w * 0).sum().backward()
        for _ in range(4):
            (w * 2).sum().backward()
    (found,) = answers(load(tmp_path / "run.gviz"), "w.grad")
    assert "was nan already where this recording begins" in str(found)


def test_a_nan_that_arrives_at_a_later_output_is_followed(tmp_path):
    with gviz.record(tmp_path / "run.gviz"):
        x = torch.tensor([4.0, 0.0], requires_grad=True)
        first, second = (x * 1).split(1)
        (first + torch.sqrt(second * 0)).sum().backward()
    timeline = load(tmp_path / "run.gviz")
    (sent,) = [
        (n, event.source)
        for n, event in timeline.select([GradFlowed])
        if timeline.info(event.node).op.name == "split" and bad_text(event.part)
    ]
    found = why(timeline, timeline.at(sent[0]), sent[1])
    assert found.kind == "nan-born-backward"
    assert timeline.info(found.node).op.name == "sqrt"


def test_a_loss_that_grew_is_told_in_a_row_and_the_learning_rate_is_tried_first():
    def program():
        w = torch.tensor(1.0, requires_grad=True)
        for _ in range(12):
            loss = w**2
            w.grad = None
            loss.backward()
            with torch.no_grad():
                w -= 5000.0 * w.grad
        return loss

    timeline = timeline_of(program)
    (found,) = (one.finding for one in check(timeline) if one.level == "error")
    grew = next(part for part in found.parts if part.kind == "grew")
    assert grew.text.startswith("the loss had grown from iteration to iteration: 1, 9.998e+07, 9.996e+15, ")
    assert found.fix.startswith("a smaller learning rate")


def test_one_that_fell_is_not_said_to_have_grown():
    def program():
        w = torch.tensor(1.0, requires_grad=True)
        for scale in (1.0, 0.5, 0.25, 1e30):
            loss = (w * scale) ** 2
            loss.backward()
        return loss

    timeline = timeline_of(program)
    (found,) = (one.finding for one in check(timeline) if one.level == "error")
    assert not [part for part in found.parts if part.kind == "grew"]
    assert found.fix.startswith("keep its result small enough")


def _logarithm_of_zero():
    x = torch.tensor([1.0, 2.0, 0.0, 4.0] * 5, requires_grad=True)
    y = x.log()
    return x, y


def _root_of_zero():
    x = torch.tensor([[4.0, 1.0, 2.0], [9.0, 0.0, 1.0]], requires_grad=True)
    d = x.sqrt()
    d.sum().backward()
    return x, d


def _by_zero_in_a_row():
    x, y = torch.ones(4, 3, requires_grad=True), torch.tensor([1.0, 0.0, 2.0])
    z = x / y
    return x, y, z


@pytest.mark.parametrize(
    ("program", "place", "where"),
    [
        (_logarithm_of_zero, "y", ", the first at [2], where x is 0: log(x) = (20,) "),
        (_root_of_zero, "x.grad", ", at [1, 1], where g is 1 and d is 0: g / (2 * d) = "),
        (_by_zero_in_a_row, "z", ", the first at [0, 1], where x is 1 and y is 0: x / "),
    ],
)
def test_the_element_at_which_it_came_up_is_named_with_what_met_there(program, place, where):
    timeline = timeline_of(program)
    assert where.removeprefix(", ") in answers(timeline, place)[0].parts[0].text


def test_what_is_written_out_needs_no_element():
    def program():
        x = torch.tensor([1.0, 0.0])
        y = x.log()
        return x, y

    assert answers(timeline_of(program), "y")[0].parts[0].text == "log([1 0] (x)) = [0 -inf]"


def test_of_values_that_are_not_kept_their_range_is_told_in_place_of_a_shape():
    timeline = timeline_of(_logarithm_of_zero, limit=16)
    assert answers(timeline, "y")[0].parts[0].text.endswith("! 5 -inf, with x (20,) [0 .. 4] μ 1.75 rms 2.29")


def test_what_is_made_of_all_elements_names_none():
    def program():
        x = torch.full((20,), 3e38, requires_grad=True)
        y = x.cumsum(0)
        return x, y

    assert "where" not in answers(timeline_of(program), "y")[0].parts[0].text


@pytest.mark.torch
@pytest.mark.parametrize(
    ("number", "said"), [("87506.4", "it is a number beyond float16"), ("inf", "(x) * inf = [inf inf]")]
)
def test_a_number_of_the_program_may_be_beyond_half_precision(tmp_path, number, said):
    program = f"import torch\ninf = float('inf')\nx = torch.ones(2, dtype=torch.float16)\ny = x * {number}\n"
    (tmp_path / "half.py").write_text(program)
    found = answers(recorded(tmp_path, "half", "torch"), "y")[0]
    assert said in found.parts[0].text


# A gradient that overflowed and was thrown away

SCALED = """
import torch
from torch import nn
torch.manual_seed(0)
m = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.SGD(m.parameters(), 0.1)
sc = torch.amp.GradScaler("cpu", init_scale=SCALE)
for i in range(ROUNDS):
    opt.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = (m(torch.randn(8, 4)) - 1).pow(2).mean()
    sc.scale(loss).backward()
    STEP
"""
BY_HAND = """
import torch
w = torch.tensor([1.0, 2.0], requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
for i in range(4):
    opt.zero_grad()
    scale = 1e39 if i == FIRST else 2.0
    ((w * w).sum() * scale).backward()
    if USES or torch.isfinite(w.grad).all():
        w.grad /= scale
        opt.step()
"""


def scaled(scale, rounds, step):
    return SCALED.replace("SCALE", scale).replace("ROUNDS", str(rounds)).replace("STEP", step)


@pytest.mark.torch
@pytest.mark.parametrize(
    "step",
    [
        "sc.step(opt); sc.update()",
        "sc.unscale_(opt); nn.utils.clip_grad_norm_(m.parameters(), 1.0); sc.step(opt); sc.update()",
    ],
)
def test_the_first_steps_that_a_scaler_skips_are_how_it_is_meant(step, tmp_path):
    assert check(recorded_text(scaled("2.0**18", 8, step), tmp_path, "torch")) == []


@pytest.mark.torch
def test_a_scaler_that_skips_every_step_is_found(tmp_path):
    found = check(recorded_text(scaled("2.0**40", 3, "sc.step(opt); sc.update()"), tmp_path, "torch"))
    assert ("error", "nan-born-backward") in [(one.level, one.finding.kind) for one in found]


@pytest.mark.torch
def test_a_step_without_the_scaler_uses_the_infinity(tmp_path):
    found = check(recorded_text(scaled("2.0**18", 3, "opt.step()"), tmp_path, "torch"))
    assert ("error", "nan-born-backward") in [(one.level, one.finding.kind) for one in found]


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
def test_a_program_that_skips_a_step_itself_is_healthy_and_one_that_takes_it_is_not(engine, tmp_path):
    skipping = BY_HAND.replace("FIRST", "0").replace("USES", "False")
    assert [one for one in check(recorded_text(skipping, tmp_path, engine)) if one.level == "error"] == []
    taking = BY_HAND.replace("FIRST", "1").replace("USES", "True")
    assert [one.level for one in check(recorded_text(taking, tmp_path, engine))][:1] == ["error"]


# Numbers beyond a short type

BEYOND = [
    ("((w.half() * 300) ** 2).sum()", "float16", "65504", "in float32, as torch.autocast"),
    ("torch.exp((w * 20).half()).sum()", "float16", "65504", "in float32, as torch.autocast"),
    ("(w * 1e5).half().abs().sum()", "float16", "65504", "in float32, as torch.autocast"),
    ("(1 / (w * 1e-6).half()).sum()", "float16", "65504", "in float32, as torch.autocast"),
    ("((w.half() * 2.0).float() * 1e6).sum()", "float16", "65504", "make the loss smaller"),
    ("((w.half() * 2.0).float() / 8).mean() * 1e7", "float16", "65504", "scaler.step(optimizer)"),
]


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize(("loss", "dtype", "largest", "fix"), BEYOND)
def test_an_overflow_is_named_with_the_largest_number_of_its_type(loss, dtype, largest, fix, engine, tmp_path):
    program = f"import torch\nw = torch.tensor([1.0, 2.0, -1.5], requires_grad=True)\n({loss}).backward()\n"
    first = check(recorded_text(program, tmp_path, engine))[0]
    (share,) = [part.text for part in first.finding.parts if part.kind == "overflow"]
    assert f"overflow {dtype}, whose largest number is {largest}" in share.replace("overflows", "overflow")
    assert fix in first.finding.fix


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize(
    "loss", ["(1 / (w * 0).half()).sum()", "(w * 1e38 * 10).sum()", "torch.log((w - 1).half()).sum()"]
)
def test_what_is_infinite_in_every_type_is_no_overflow_of_a_short_one(loss, engine, tmp_path):
    program = f"import torch\nw = torch.tensor([1.0, 2.0, 1.5], requires_grad=True)\n({loss}).backward()\n"
    first = check(recorded_text(program, tmp_path, engine))[0]
    assert "overflow" not in [part.kind for part in first.finding.parts]


@pytest.mark.torch
def test_bfloat16_overflows_at_its_own_largest_number(tmp_path):
    program = (
        "import torch\nw = torch.ones(2, requires_grad=True)\n(w.bfloat16() * 1e38 * 10).float().sum().backward()\n"
    )
    first = check(recorded_text(program, tmp_path, "torch"))[0]
    assert "overflow bfloat16, whose largest number is 3.39e+38" in str(first)


# A branch of where() that is not taken

HIDDEN = [
    ("torch.where(x > 0, torch.log(x), 0)", "torch.where(x > 0, torch.log(torch.where(x > 0, x, 1.0)), 0)"),
    ("torch.where(x > 0, x.sqrt(), x)", "torch.where(x > 0, torch.where(x > 0, x, 1.0).sqrt(), x)"),
    ("torch.where(x != 0, 2 * (x / x), 0)", "torch.where(x != 0, 2 * (x / torch.where(x != 0, x, 1.0)), 0)"),
]


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize(("wrong", "right"), HIDDEN)
def test_what_where_hides_is_mended_at_its_input(wrong, right, engine, tmp_path):
    program = "import torch\nx = torch.tensor([0.0, 2.0], requires_grad=True)\nLOSS.sum().backward()\n"
    found = check(recorded_text(program.replace("LOSS", wrong), tmp_path, engine))
    assert "make the input safe before where(): x = torch.where(condition, x, 1.0)" in found[0].finding.fix
    mended = recorded_text(program.replace("LOSS", right), tmp_path, engine)
    assert not mended.error_index.first_bad()
    assert [one for one in check(mended) if one.level == "error"] == []


def test_what_where_does_not_hide_is_mended_where_it_is_made(tmp_path):
    program = "import torch\nx = torch.tensor([0.0, 2.0], requires_grad=True)\n"
    program += "torch.where(x < 1, torch.log(x), x).sum().backward()\n"
    (first, *_) = check(recorded_text(program, tmp_path))
    assert "keep its input above 0" in first.finding.fix


SEVERAL = """
import torch
x = torch.tensor([0.0, 4.0], requires_grad=True)
y = torch.tensor([-1.0, 4.0], requires_grad=True)
z = torch.tensor([0.0, 4.0], requires_grad=True)
a = torch.log(x)
b = torch.sqrt(y)
c = torch.sqrt(z)
loss = a.sum() + b.sum() + c.mul(2).sum()
loss.backward()
"""


@ENGINES
def test_each_source_of_nan_or_inf_has_a_finding_with_its_line(engine, tmp_path):
    found = [one.finding for one in check(recorded_text(SEVERAL, tmp_path, engine))]
    places = {(one.at.line, one.kind) for one in found}
    assert places == {(6, "nan-born"), (7, "nan-born"), (8, "nan-born-backward")}


@ENGINES
def test_what_follows_from_a_source_is_no_other_source(engine, tmp_path):
    text = SEVERAL.replace("c = torch.sqrt(z)", "c = a * z").replace("b = torch.sqrt(y)", "b = torch.sqrt(y + 2)")
    found = [one.finding for one in check(recorded_text(text, tmp_path, engine))]
    assert [(one.at.line, one.kind) for one in found] == [(6, "nan-born")]


HEALED = """
import torch
w = torch.tensor([1.0, 2.0], requires_grad=True)
for i in range(4):
    x = torch.tensor([-1.0, 4.0] if i in (0, 3) else [1.0, 4.0])
    loss = (torch.log(x * w)).mean()
    loss.backward()
"""


@ENGINES
def test_only_the_first_nan_of_the_recording_is_called_the_first(engine, tmp_path):
    timeline = recorded_text(HEALED, tmp_path, engine)
    (answer,) = answers(timeline, "loss")
    logs = [node for node in timeline.nodes if timeline.info(node).op.base_name == "log"]
    assert answer.text.startswith(f"this nan appears first in #{logs[-1]} log ")
    (earlier,) = (part for part in answer.parts if part.kind == "earlier-nan")
    assert earlier.text == f"the first of all is in #{logs[0]} log at {earlier.where}, in iteration 1"
    assert earlier.event == timeline.error_index.first_bad()
    (first,) = answers(timeline, "nan")
    assert first.text.startswith(f"the first nan appears in #{logs[0]} log ")
    assert "earlier-nan" not in [part.kind for part in first.parts]


UNDEFINED = {
    "s = torch.linalg.svd(torch.eye(3) * 2 * w)[0].sum()": "two singular values are equal, 2 and 2",
    "s = torch.linalg.eigh(torch.eye(3) * w)[1].sum()": "two eigenvalues are equal, 1 and 1",
    "s = (w * torch.tensor([[0.0, 0.0], [3.0, 4.0]])).norm(dim=1).sum().sqrt()": "",
}


@pytest.mark.torch
@pytest.mark.parametrize("line", UNDEFINED)
def test_the_numbers_that_make_a_rule_divide_by_zero_are_named(line, tmp_path):
    text = f"import torch\nw = torch.ones(1, requires_grad=True)\n{line}\ns.backward()\n"
    found = [one.finding for one in check(recorded_text(text, tmp_path, "torch"))]
    parts = [part.text for one in found for part in one.parts]
    assert any(UNDEFINED[line] in part for part in parts) if UNDEFINED[line] else not found


ANOMALY = """
import torch
x = torch.zeros(3, requires_grad=True)
with torch.autograd.detect_anomaly():
    first = torch.sqrt(x + 1)
    y = torch.sqrt(x)
    z = (y * 0).sum() + first.sum()
    z.backward()
"""


@ENGINES
def test_in_anomaly_mode_the_node_and_the_line_of_its_forward_are_named(engine, tmp_path):
    timeline = recorded_text(ANOMALY, tmp_path, engine)
    (found,) = answers(timeline, "error")
    assert timeline.info(found.node).name == "y"
    assert found.text == f"the backward rule of #{found.node} y = sqrt returned nan"
    assert (found.kind, found.at.line) == ("failed", 6)
    assert found.parts[0].text.endswith(": sqrt([0 0 0] (x)) = [0 0 0]")


def texts(program, tmp_path):
    timeline = recorded_text(f"import torch\n{program}", tmp_path, "builtin")
    return [each.finding for each in check(timeline)]


@pytest.mark.parametrize("operation", ["a.sqrt()", "a.rsqrt()", "a ** 0.5"])
def test_the_fix_for_a_root_of_a_negative_number_is_not_a_small_number(tmp_path, operation):
    (found,) = texts(f"a = torch.tensor([-4.0, 4.0], requires_grad=True)\n({operation}).sum().backward()", tmp_path)
    assert found.fix.startswith("keep its ")
    assert "clamp(min=" in found.fix


def test_of_many_nan_the_earliest_of_each_line_is_named(tmp_path):
    program = """
bad = [torch.tensor([-1.0 - i], requires_grad=True) for i in range(120)]
total = sum(each.sqrt() for each in bad)
for each in bad:
    total = total + each.log()
total.backward()
"""
    first, second = texts(program, tmp_path)
    assert first.text.startswith("the first nan appears in ")
    assert second.text.startswith("another nan appears in ")
    assert "log(-1 (" in second.parts[0].text


def test_a_pass_that_starts_with_nan_names_its_line(tmp_path):
    program = "a = torch.ones(2, requires_grad=True)\n(a * 2).backward(torch.tensor([float('nan'), 1.0]))"
    (found,) = texts(program, tmp_path)
    assert (found.kind, found.at.line) == ("nan-seed", 3)
    assert found.text == "backward started with the gradient [nan 1]"


ON_A_LINE = """
import torch
a, b = torch.tensor([[-1.0, 4.0], [-2.0, 3.0]], requires_grad=True).unbind()
loss = SUM
loss.backward()
"""
WRITTEN = "write a finite number"


@ENGINES
@pytest.mark.parametrize(
    ("terms", "found"),
    [
        ("a.sqrt().sum() + b.log().sum()", [("the first nan", "sqrt", "sqrt("), ("another nan", "log", "log(")]),
        ("a.log().sum() + b.log().sum()", [("the first nan", "log", "log(")]),
        ("(b.abs() - b.abs()) * float('inf')", [("the first nan", "mul", WRITTEN)]),
        ("(b.relu() * float('Inf')).sum()", [("the first nan", "mul", WRITTEN)]),
        ("(b * float('nan')).sum()", [("the first nan", "mul", "instead of nan")]),
        ("(b - torch.inf).sum()", [("the first -inf", "sub", WRITTEN)]),
        ("((a.sqrt() - torch.inf) * 2).sum()", [("the first nan", "sqrt", "sqrt(")]),
    ],
)
def test_each_source_of_nan_in_a_line_is_found(terms, found, engine, tmp_path):
    told = check(recorded_text(ON_A_LINE.replace("SUM", f"({terms}).sum()"), tmp_path, engine))
    rows = [(one.finding.text, one.finding.fix) for one in told if one.finding.kind == "nan-born"]
    assert len(rows) == len(found)
    for (text, fix), (start, operation, words) in zip(rows, found, strict=True):
        assert text.startswith(start)
        assert operation in text
        assert words in fix


@ENGINES
def test_the_numbers_that_meet_a_written_infinity_are_shown(engine, tmp_path):
    (one,) = check(recorded_text(ON_A_LINE.replace("SUM", "(b.relu() * float('inf')).sum()"), tmp_path, engine))
    assert "0 * inf in 1 of 2 elements" in one.finding.parts[0].text


UNTRAINED = """
import torch
net = torch.nn.Linear(3, 1)
for i in range(2):
    x = torch.ones(4, 3)
    net(x).pow(2).mean().backward()
    z = MADE
    USED
"""
LOG = "(x - x).log()"


@ENGINES
@pytest.mark.parametrize(
    ("made", "used", "is_found"),
    [
        (LOG, "y = z.sum()", True),
        (LOG, "print(torch.isinf(z).any())", True),
        (LOG, "print((z == -torch.inf).any())", True),
        ("x.sum() * torch.inf", "y = z.sum()", False),
        (LOG, "y = z.masked_fill(torch.isinf(z), 0.0)", False),
        (LOG, "z[z == -torch.inf] = 0.0", False),
        (LOG, "y = torch.where(torch.isfinite(z), z, x)", False),
        (LOG, "y = z[~torch.isinf(z)].sum()", False),
    ],
)
def test_an_infinity_that_trains_nothing_is_a_note_unless_it_is_written_or_replaced(
    made, used, is_found, engine, tmp_path
):
    found = check(recorded_text(UNTRAINED.replace("MADE", made).replace("USED", used), tmp_path, engine))
    assert [(one.level, one.finding.kind) for one in found] == [("note", "nan-born")] * is_found


ROWS = """
import torch
w = torch.ones(2, 3, requires_grad=True)
mask = torch.tensor([[True, False, False], [True, True, True]])
s = FILLED
loss = LOSS
loss.backward()
"""


@ENGINES
@pytest.mark.parametrize(
    ("filled", "loss", "fact"),
    [
        (
            "w.masked_fill(mask, -torch.inf)",
            "s.logsumexp(1).sum()",
            "it is still -inf in {} at program.py:6",
        ),
        (
            "w.masked_fill(mask, -torch.inf)",
            "torch.log_softmax(s, 1)[:, 1].sum()",
            "it became nan in {} at program.py:6",
        ),
        ("w + torch.where(mask, -torch.inf, 0.0)", "s.softmax(1).log().mean()", "it became nan in {} at program.py:6"),
    ],
)
def test_a_row_that_is_masked_as_a_whole_is_named(filled, loss, fact, engine, tmp_path):
    (one,) = check(recorded_text(ROWS.replace("FILLED", filled).replace("LOSS", loss), tmp_path, engine))
    said = "\n".join(text for _, text, _ in lines(one.finding))
    before, after = fact.split("{}")
    assert one.finding.at.line == 5
    assert before in said
    assert after in said
    assert "s[1, :] is all -inf" in said
    assert "leave one element of each row unmasked" in one.finding.fix


DIVERGENCE = """
import torch
F = torch.nn.functional
torch.manual_seed(0)
net, x = torch.nn.Linear(4, 5), torch.randn(8, 4)
p = F.softmax(torch.randn(8, 5), dim=-1)
q = F.log_softmax(net(x), dim=-1)
loss = F.LOSS
loss.backward()
"""


@ENGINES
@pytest.mark.parametrize(
    ("loss", "least_of", "new"),
    [
        ('kl_div(p, q, reduction="batchmean")', "logarithm of q, ", 'kl_div(q, p, reduction="batchmean")'),
        ("kl_div(q, p.log())", "logarithm of ", "kl_div(q, p.log(), log_target=True)"),
        ("kl_div(q, target=x[:, :1])", "logarithm of ", ""),
    ],
    ids=["swapped", "log-target", "negative-target"],
)
def test_the_negative_argument_of_a_loss_that_takes_its_logarithm_is_named(loss, least_of, new, engine, tmp_path):
    text = DIVERGENCE.replace("LOSS", loss)
    (one,) = [it for it in check(recorded_text(text, tmp_path, engine)) if it.finding.kind == "nan-born"]
    said = [row for _, row, _ in lines(one.finding)]
    assert any(least_of in row and "goes down to -" in row for row in said), said
    assert one.finding.at.line == 8
    edit = one.finding.edit
    assert (edit.new.strip() if edit is not None else "") == (f"loss = F.{new}" if new else "")
    if edit is not None:
        after = check(recorded_text(edit.applied(text), tmp_path, engine))
        assert not any(it.finding.kind == "nan-born" for it in after)


@pytest.mark.torch
def test_the_negative_argument_of_another_call_is_named(tmp_path):
    text = DIVERGENCE.replace("LOSS", "poisson_nll_loss(net(x)[:, 0], p[:, 0], log_input=False)")
    (one,) = [it for it in check(recorded_text(text, tmp_path, "torch")) if it.finding.kind == "nan-born"]
    assert "it takes the logarithm of #" in one.finding.parts[0].text
    assert one.finding.fix.startswith("keep #")


CAUSAL = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
proj, out = nn.Linear(6, 6), nn.Linear(6, 3)
x, y = torch.randn(4, 5, 6), torch.randint(0, 3, (4, 5))
MASK
h = proj(x)
scores = h @ x.transpose(1, 2)
scores = scores.masked_fill(HIDDEN, float("-inf"))
loss = F.cross_entropy(out(F.softmax(scores, -1) @ x).flatten(0, 1), y.flatten())
loss.backward()
"""
WITH_DIAGONAL = {
    "an upper triangle": (
        "mask = torch.triu(torch.ones(5, 5)).bool()  #!", "mask", "triu(torch.ones(5, 5), diagonal=1)"),
    "a part of a larger one": (
        "mask = torch.triu(torch.ones(9, 9)) == 1  #!", "mask[:5, :5]", "triu(torch.ones(9, 9), diagonal=1)"),
    "a lower triangle": (
        "mask = torch.tril(torch.ones(5, 5), diagonal=-1)  #!", "mask == 0", "tril(torch.ones(5, 5), diagonal=0)"),
}  # fmt: skip


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize("name", WITH_DIAGONAL)
def test_a_causal_mask_that_hides_the_diagonal_is_found_where_it_is_made(name, engine, checks):
    mask, hidden, mended = WITH_DIAGONAL[name]
    text = CAUSAL.replace("MASK", mask).replace("HIDDEN", hidden)
    (one,) = checks.of_text(text, engine).found
    assert (one.finding.kind, one.level) == ("nan-born", "error")
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert "hides the whole first row" in one.finding.text
    assert mended in one.finding.edit.new
    after = checks.of_text(one.finding.edit.applied(text), engine)
    assert (after.errors, [str(each) for each in after.found]) == ([], [])


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
def test_a_triangle_without_a_softmax_is_no_causal_mask(engine, checks):
    text = (
        "import torch\ntorch.manual_seed(0)\nw = torch.randn(5, 2, requires_grad=True)\n"
        "mask = torch.triu(torch.ones(5, 5)).bool()\n"
        "far = (w @ w.T).masked_fill(mask, float('inf'))\nnear = far.min(1)[0]\nnear.sum().backward()\n"
    )
    assert not [one for one in checks.of_text(text, engine).found if "whole first row" in one.finding.text]


OWN_NORMALIZATION = """
import torch
import torch.nn as nn

net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    p = net(torch.randn(8, 4))
    opt.zero_grad()
    (p - (p.detach() if step == 1 else 0.0)).pow(2).mean().backward()
    for q in net.parameters():
        WRITE
    opt.step()
"""


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize(
    "write", ["q.grad /= q.grad.norm()", "q.grad.div_(q.grad.abs().max())", "q.grad.mul_(1 / q.grad.norm())"]
)
def test_gradients_that_a_loop_divides_by_zero_are_one_finding_about_the_first(write, engine, tmp_path):
    timeline = recorded_text(OWN_NORMALIZATION.replace("WRITE", write), tmp_path, engine)
    (found,) = (one.finding for one in check(timeline) if one.finding.kind == "nan-born")
    assert re.search(r"in the \.grad of #\d+ 0\.weight \(and 3 more\)$", found.text)
    assert found.parts[0].text.endswith(" is 0, and the line divides by it")
    assert "(norm + 1e-8)" in found.fix


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
def test_gradients_that_a_loop_divides_by_a_little_more_than_zero_are_healthy(engine, tmp_path):
    text = OWN_NORMALIZATION.replace("WRITE", "q.grad /= q.grad.norm() + 1e-8")
    assert "nan-born" not in {one.finding.kind for one in check(recorded_text(text, tmp_path, engine))}
