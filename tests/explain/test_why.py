"""Why a value, a gradient, or none: real programs with the classic mistakes, asked at their end."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from explain.programs import recorded_text
from recording import timeline_of

import gviz.engine as torch
from gviz.errors import GvizError
from gviz.events import BackwardStarted
from gviz.explain.finding import brief, lines
from gviz.explain.typed_question import answers
from gviz.explain.why import why


def node_of(timeline, name, *, op=""):
    """The first node of this name, or of this operation."""
    infos = map(timeline.info, timeline.nodes)
    return next(info.node for info in infos if (info.op.name == op if op else info.name == name))


def asked(timeline, name, aspect=None, *, at=None, op=""):
    moment = timeline.at(len(timeline) if at is None else at)
    return why(timeline, moment, node_of(timeline, name, op=op), aspect)


def told(finding):
    return "\n".join("  " * depth + text for depth, text, _ in lines(finding))


def checked(timeline, finding):
    """Every event an explanation leads to is there and concerns the node it speaks of."""
    if finding.event and finding.node:
        related = set(timeline.events_of(finding.node))
        event = timeline.event(finding.event)
        assert (
            finding.event in related
            or finding.node in (getattr(event, "source", 0), getattr(event, "node", 0))
            or (type(event).__name__ == "BackwardStarted")
        )
    for part in finding.parts:
        checked(timeline, part)
    return finding


def cut_ways():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    w = torch.tensor([3.0, 4.0], requires_grad=True)
    unused = torch.tensor(1.0, requires_grad=True)
    data = torch.tensor([1.0, 1.0])
    y = x * w * data
    z = y.detach() * x
    with torch.no_grad():
        m = x.sum()
    best = w.argmax()
    loss = (z * m).sum() + best * 0
    loss.backward()
    return unused


@pytest.mark.parametrize(
    ("name", "kind", "says"),
    [
        ("w", "cut", "detach cuts the graph here"),
        ("unused", "unused", "was not used in anything"),
        ("data", "requires-none", "does not require a gradient"),
        ("m", "cut", "inside no_grad"),
        ("best", "cut", "dtype cannot have a gradient"),
        ("y", "cut", "detach cuts the graph here"),
        ("z", "not-a-leaf", "only leaves keep their gradient"),
    ],
)
def test_a_missing_gradient_has_a_reason_and_a_remedy(name, kind, says):
    timeline = timeline_of(cut_ways)
    found = checked(timeline, asked(timeline, name, "grad"))
    assert found.kind == kind
    assert says in told(found)
    assert "try: " in told(found)


def test_only_the_cuts_that_lead_to_the_loss_are_named():
    timeline = timeline_of(cut_ways)
    found = asked(timeline, "w", "grad")
    assert {timeline.info(part.node).op.name for part in found.parts} == {"detach", "argmax"}

    def without_argmax():
        w = torch.tensor([3.0, 4.0], requires_grad=True)
        w.argmax()
        (w.detach() * torch.ones(2, requires_grad=True)).sum().backward()

    timeline = timeline_of(without_argmax)
    assert [timeline.info(part.node).op.name for part in asked(timeline, "w", "grad").parts] == ["detach"]


def test_another_root_is_no_cut():
    def program():
        x = torch.tensor(1.0, requires_grad=True)
        w = torch.tensor(1.0, requires_grad=True)
        aside = w * 2
        (x * 3).backward()
        return aside

    timeline = timeline_of(program)
    found = checked(timeline, asked(timeline, "w", "grad"))
    assert found.kind == "not-reached"
    assert "#2 w was used in #4 aside" in told(found)
    assert "aside = mul" in told(found)


def test_what_is_used_in_an_evaluation_is_asked_about_its_training():
    def program():
        w = torch.tensor(1.0, requires_grad=True)
        loss = torch.tensor((w * 3).item(), requires_grad=True)
        loss.backward()
        with torch.no_grad():
            w * 5

    timeline = timeline_of(program)
    found = asked(timeline, "w", "grad")
    assert found.kind == "not-reached"
    assert "loss at test_why.py" in told(found)
    assert "a new tensor with no autograd history" in told(found)


def test_a_name_that_became_a_result():
    def program():
        x = torch.tensor(1.0, requires_grad=True)
        x = x + 1
        (x * x).backward()

    timeline = timeline_of(program)
    moment = timeline.at(len(timeline))
    found = checked(timeline, why(timeline, moment, 3, "grad"))
    assert found.kind == "rebound"
    assert found.parts[0].node == 1


def test_before_any_pass_and_on_the_way():
    def program():
        x = torch.tensor(2.0, requires_grad=True)
        y = x * x
        y.backward()

    timeline = timeline_of(program)
    started = next(n for n in range(1, len(timeline)) if type(timeline.event(n)).__name__ == "BackwardStarted")
    assert asked(timeline, "x", "grad", at=started - 1).kind == "no-pass"
    assert asked(timeline, "x", "grad", at=started).kind == "pending"


def test_a_pass_does_not_come_to_a_frozen_parameter_and_that_is_said_while_it_runs():
    def program():
        net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
        net[1].weight.requires_grad_(False)
        net(torch.ones(1, 2)).sum().backward()

    timeline = timeline_of(program)
    begun = next(n for n, _ in timeline.select((BackwardStarted,)))
    assert "does not require a gradient" in asked(timeline, "1.weight", at=begun + 3).text
    assert asked(timeline, "0.weight", at=begun + 3).kind == "computed", "the pass is to come to it"


def test_cleared_and_not_asked_for():
    def program():
        x = torch.tensor(2.0, requires_grad=True)
        w = torch.tensor(2.0, requires_grad=True)
        (x * 3).backward()
        x.grad = None
        torch.autograd.grad(w * 2, [w])

    timeline = timeline_of(program)
    assert asked(timeline, "x", "grad").kind == "cleared"
    assert asked(timeline, "w", "grad").kind == "not-asked-for"


def test_what_a_gradient_was_until_it_was_cleared_is_told_with_its_moment():
    def program():
        x = torch.tensor(2.0, requires_grad=True)
        (x * 3).backward()
        x.grad = None
        x.grad = None

    timeline = timeline_of(program)
    found = checked(timeline, asked(timeline, "x", "grad"))
    (was,) = found.parts
    moment = int(re.match(r"until then \(--at (\d+)\) .grad is 3", was.text)[1])
    assert timeline.at(moment).state(node_of(timeline, "x")).outputs[0].grad is not None
    assert "+= 3 from #3 mul" in told(found)


def test_a_gradient_that_never_was_is_not_one_that_was_cleared():
    def program():
        w = torch.tensor(2.0, requires_grad=True)
        x = torch.tensor(2.0, requires_grad=True)
        for _ in range(2):
            (w.detach() * x).backward()
            w.grad = x.grad = None

    assert asked(timeline_of(program), "w", "grad").kind == "cut"


def test_a_gradient_is_the_sum_of_its_parts():
    def program():
        x = torch.tensor(3.0, requires_grad=True)
        y = x * x + x
        y.backward()
        (x * 5).backward()

    timeline = timeline_of(program)
    found = checked(timeline, asked(timeline, "x", "grad"))
    assert "12" in found.text
    assert [part.kind for part in found.parts] == ["losses", "accumulated", "contribution"]
    assert "7 was there before, from backward pass 1" in told(found)
    assert "= g * 5 = 1 * 5 = 5" in told(found).replace(": g", " = g")
    assert "zero_grad()" in told(found)
    first = next(phase for phase in timeline.phases if phase.kind == "backward").end
    parts = asked(timeline, "x", "grad", at=first).parts
    assert len(parts) == 3
    assert sum(float(part.text.split()[1]) for part in parts) == 7


def test_broadcasting_is_part_of_the_arithmetic():
    def program():
        b = torch.tensor([1.0, 2.0], requires_grad=True)
        (torch.ones(3, 2) + b).sum().backward()

    assert "sum of g over dim 0 = [3 3]" in told(asked(timeline_of(program), "b", "grad"))


def test_a_nan_forward_is_traced_to_the_operation_that_made_it():
    def program():
        x = torch.tensor([0.0, 1.0], requires_grad=True)
        y = x / x
        z = (y * 2).sum()
        z.backward()

    timeline = timeline_of(program)
    found = checked(timeline, asked(timeline, "z"))
    assert found.kind == "nan-born"
    assert timeline.info(found.node).name == "y"
    assert "spread through" in told(found)


def test_a_nan_backward_is_traced_to_the_rule_that_made_it():
    def program():
        x = torch.tensor([0.0, 4.0], requires_grad=True)
        torch.where(x > 0, torch.sqrt(x), 0.0).sum().backward()

    timeline = timeline_of(program)
    found = checked(timeline, asked(timeline, "x"))
    assert found.kind == "nan-born-backward"
    assert timeline.info(found.node).op.name == "sqrt"
    assert "forward it was sqrt" in told(found)


def test_a_bad_seed_is_nobodys_rule():
    def program():
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        (x * 2).backward(torch.tensor([float("nan"), 1.0]))

    found = asked(timeline_of(program), "x")
    assert found.kind == "nan-seed"


def test_a_nan_that_was_written():
    def program():
        x = torch.zeros(2)
        x[0] = float("inf")
        return x + 1

    timeline = timeline_of(program)
    found = asked(timeline, "x", "value")
    assert found.kind == "nan-born"
    assert "the first inf appears in" in found.text
    assert timeline.info(found.node).op.name == "copy_"
    assert any("inf" in part.text for part in found.parts)  # the number that it writes


def test_a_value_and_who_wrote_to_it():
    def program():
        x = torch.tensor(2.0)
        y = x * 3
        y.add_(1)
        return y

    timeline = timeline_of(program)
    found = checked(timeline, asked(timeline, "y", "value"))
    assert "= 6" in found.text
    assert "wrote to its memory: 7" in told(found)


def test_what_is_not_made_yet():
    timeline = timeline_of(cut_ways)
    assert asked(timeline, "loss", at=1).kind == "unborn"


def test_what_is_sent_at_this_moment():
    def program():
        x = torch.tensor(3.0, requires_grad=True)
        (x * 5).backward()

    timeline = timeline_of(program)
    flowed = next(n for n in range(1, len(timeline)) if type(timeline.event(n)).__name__ == "GradFlowed")
    assert "+= 5" in asked(timeline, "", op="mul", at=flowed).text


def test_a_gradient_that_the_program_set():
    def program():
        x = torch.tensor(3.0, requires_grad=True)
        x.grad = torch.tensor(7.0)
        torch.ones(1, requires_grad=True).sum().backward()
        return x

    timeline = timeline_of(program)
    found = checked(timeline, asked(timeline, "x", "grad"))
    assert found.kind == "assigned"
    assert "7" in found.text


def test_a_nan_is_followed_through_the_optimizer_to_the_pass_that_made_it():
    def program():
        w = torch.tensor([0.0, 4.0], requires_grad=True)
        optimizer = torch.optim.Adam([w], lr=0.1)
        for _ in range(2):
            loss = w.sqrt().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss

    timeline = timeline_of(program)
    moment = timeline.at(len(timeline))
    second = [
        node for node in timeline.nodes if timeline.info(node).op.name == "sqrt" and timeline.info(node).name == ""
    ][-1]
    last = why(timeline, moment, timeline.nodes.users(second)[0], "value")
    assert last.kind == "nan-born-backward"
    assert last.event < timeline.info(second).born
    assert "try: add a small number first" in told(last)
    assert checked(timeline, why(timeline, moment, node_of(timeline, "w"), "grad")).event == last.event


def test_a_gradient_that_a_later_pass_missed_is_cut_not_cleared():
    def program():
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        (w * x).sum().backward()
        w.grad = None
        (w.detach() * x).sum().backward()

    found = asked(timeline_of(program), "w", "grad")
    assert found.kind == "cut"
    assert "detach cuts the graph here" in told(found)


def test_a_kept_gradient_that_was_cleared():
    def program():
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = x * 2
        y.retain_grad()
        y.sum().backward()
        y.grad = None

    assert asked(timeline_of(program), "y", "grad").kind == "cleared"


def test_a_nan_a_long_way_back():
    def program():
        x = torch.tensor(0.0)
        y = x / x
        for _ in range(1200):
            y = y + 1
        return y

    timeline = timeline_of(program)
    found = why(timeline, timeline.at(len(timeline)), timeline.nodes[-1], "value")
    assert timeline.info(found.node).op.name == "div"


def test_a_nan_through_many_steps_of_an_optimizer():
    def program():
        w = torch.tensor([0.0, 4.0], requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        for _ in range(400):
            optimizer.zero_grad()
            w.sqrt().sum().backward()
            optimizer.step()

    timeline = timeline_of(program)
    found = asked(timeline, "w", "grad")
    assert found.kind == "nan-born-backward"
    assert timeline.info(found.node).iteration == 0


def test_what_is_sent_at_this_moment_may_be_where_a_nan_is_born():
    def program():
        x = torch.tensor([0.0, 4.0], requires_grad=True)
        torch.where(x > 0, torch.sqrt(x), 0.0).sum().backward()

    timeline = timeline_of(program)
    assert asked(timeline, "", op="sqrt", at=timeline.error_index.first_bad()).kind == "nan-born-backward"


def test_where_the_program_failed_the_question_is_why():
    from stories import failed

    timeline = failed()
    moment = timeline.at(len(timeline))
    assert why(timeline, moment, moment.event.node).kind == "second-backward"
    assert why(timeline, moment, moment.event.node, "value").kind == "computed"


def recurrent(steps):
    def program():
        torch.manual_seed(0)
        w, h = torch.randn(3, 3, requires_grad=True), torch.ones(4, 3)
        for _ in range(steps):
            h = torch.tanh(h @ w)
        h.pow(2).mean().backward()
        return w

    return program


def test_a_gradient_is_taken_apart_by_time_step():
    timeline = timeline_of(recurrent(5))
    found = checked(timeline, asked(timeline, "w", "grad"))
    summary, *parts = found.parts
    assert summary.kind == "steps"
    assert summary.text.startswith("5 steps of a loop at test_why.py:")
    assert [number.value for part in parts for number in part.numbers if number.name == "step"] == [5, 4, 3, 2, 1]
    assert "from step 5 of 5, " in parts[0].text
    norms = {part.event: number.value for part in parts for number in part.numbers if number.name == "norm"}
    most, least = summary.numbers
    assert (most.value, least.value) == (max(norms.values()), min(norms.values()))
    assert norms[most.event] == most.value
    w = timeline.nodes[0]
    state = timeline.at(len(timeline)).state(w).outputs[0]
    total = sum(part.value.array().astype("float64") for part in state.parts)
    assert np.allclose(total, state.grad.array())


def test_two_uses_on_two_lines_are_no_steps():
    def program():
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        y = w * 2
        (y + w * 3 + w * 4).sum().backward()
        return w

    timeline = timeline_of(program)
    found = asked(timeline, "w", "grad")
    assert [part.kind for part in found.parts] == ["contribution"] * 3
    assert "step" not in told(found)


def test_many_passes_that_add_up_are_counted_before_they_are_told():
    def program():
        w = torch.ones(8, requires_grad=True)
        for step in range(30):
            (w * float(step)).sum().backward()
        return w

    timeline = timeline_of(program)
    found = checked(timeline, asked(timeline, "w", "grad"))
    total, this, others = found.parts
    assert total.text == ".grad is the sum of 30 backward passes: nothing has cleared it since pass 1"
    assert this.text.startswith("+= [29 29 29 29 29 29 29 29] from #")
    lengths = [f"|g| {number} in pass {nr}" for number, nr in ((79.2, 29), (76.4, 28), (73.5, 27))]
    assert others.text == f"before it {', '.join(lengths)}, and 26 more passes"
    assert [part.kind for part in others.parts] == ["accumulated"] * 20 + ["more"]
    assert others.parts[-1].text == "and from 9 more passes before these"
    texts = [text for _, text, _ in brief(found)]
    assert texts[1] == total.text
    assert texts[-1].startswith("try: zero_grad()")


def test_a_gradient_is_taken_apart_by_loss():
    def program():
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        fit, size = (w * 3).sum(), (w * w).sum()
        smooth = (w * 5).sum()
        fit.backward()
        size.backward()
        smooth.backward()
        return w

    timeline = timeline_of(program)
    found = checked(timeline, asked(timeline, "w", "grad"))
    assert [part.kind for part in found.parts] == ["losses", "accumulated", "accumulated", "contribution"]
    losses, first, second, last = (part.text for part in found.parts)
    assert re.fullmatch(
        r"passes of 3 losses add up in it: #\d+ fit = sum, #\d+ size = sum and #\d+ smooth = sum", losses
    )
    assert first.startswith("[3 3] was there before, from backward pass 1 of #")
    assert "fit = sum" in first
    assert second.startswith("[2 4] was there before, from backward pass 2 of #")
    assert last.startswith("+= [5 5]")
    assert "[10 12]" in found.text


def test_a_long_answer_is_cut_to_six_lines_and_keeps_the_fix():
    timeline = timeline_of(recurrent(9))
    found = asked(timeline, "w", "grad")
    rows = brief(found)
    assert len(rows) == 6
    assert rows[-1][1] == f"and {len(list(lines(found))) - 5} more lines with --all"
    fixed = replace(found, fix="less")
    left_out = len(list(lines(fixed))) - 5
    assert [text for _, text, _ in brief(fixed)][-2:] == [f"and {left_out} more lines with --all", "try: less"]
    assert brief(replace(found, parts=())) == list(lines(replace(found, parts=())))


def test_of_what_is_cut_off_it_is_said_that_no_gradient_comes_through():
    def program():
        x = torch.ones(2, requires_grad=True)
        kept = x * 2
        cut = kept.detach()
        with torch.no_grad():
            aside = x * 3
        torch.ones(2) * 5
        return cut, aside

    timeline = timeline_of(program)
    found = {
        timeline.info(node).name: [part.text for part in why(timeline, timeline.at(len(timeline)), node, "value").parts]
        for node in timeline.nodes
        if timeline.info(node).created.kind == "op"
    }
    through = "no gradient goes back through it: "
    assert found["cut"] == [f"{through}detach cuts the graph here"]
    assert found["aside"] == [f"{through}inside no_grad"]
    assert found["kept"] == found[""] == []


# A part of a gradient, and questions without a place

TRAINED = """
import torch
from torch import nn
torch.manual_seed(0)
emb, lin, idle = nn.Embedding(6, 3), nn.Linear(3, 1), torch.ones(2, requires_grad=True)
opt = torch.optim.SGD([*emb.parameters(), *lin.parameters()], lr=0.1)
ids = torch.tensor([[1, 2, 3], [4, 5, 0]])
for i in range(2):
    out = lin(emb(ids).mean(1)) + lin(emb(torch.tensor([1, 1])))
    value = ((out - 1.0) ** 2).mean()
    opt.zero_grad() if i == 0 else None
    value.backward()
    opt.step()
grad = emb.weight.grad
print([[float(one) for one in grad[1]], float(grad[1, 0]), [float(one) for one in lin.weight.grad[0, 1:]]])
"""
on_both_engines = pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])


def numbers_in(text):
    return [float(one) for one in re.findall(r"-?\d+\.?\d*(?:e[-+]\d+)?", text)]


@on_both_engines
@pytest.mark.parametrize(
    ("index", "of"), [("emb.weight.grad[1]", 0), ("emb.weight.grad[1, 0]", 1), ("lin.weight.grad[0, 1:]", 2)]
)
def test_a_part_of_a_gradient_is_the_sum_of_what_came_there(index, of, engine, tmp_path, capsys):
    timeline = recorded_text(TRAINED, tmp_path, engine)
    printed = json.loads(capsys.readouterr().out)[of]
    (found,) = answers(timeline, index)
    shown = numbers_in(found.text.split(" is ")[1])
    assert shown == pytest.approx([printed] if isinstance(printed, float) else printed, rel=1e-3)
    rows = [numbers_in(re.sub(r"^\+= | from .*| was there before", "", part.text)) for part in found.parts]
    assert [sum(column) for column in zip(*rows, strict=True)] == pytest.approx(shown, rel=1e-2, abs=1e-6)


@on_both_engines
def test_questions_without_a_place_and_several_places(engine, tmp_path):
    timeline = recorded_text(TRAINED, tmp_path, engine)
    (loss,) = answers(timeline, "loss")
    assert (loss.kind, loss.where) == ("computed", "program.py:10")
    (step,) = answers(timeline, "step")
    assert step.text == "the step of SGD at program.py:13 (lr=0.1) updated 3 parameters"
    assert "emb.weight had the gradient" in step.parts[0].text
    (missing,) = answers(timeline, "no gradient")
    assert missing.text == "1 leaf without a gradient"
    assert [part.kind for part in missing.parts] == ["unused"]
    both = answers(timeline, "emb.weight.grad[1, 0], lin.bias.grad")
    assert [one.kind for one in both] == ["gradient", "gradient"]
    with pytest.raises(GvizError, match="is no index here"):
        answers(timeline, "emb.weight.grad[9]")


HELD = """
import torch
from torch import nn
body, head, frozen = nn.Linear(3, 2), nn.Linear(2, 1), nn.Linear(2, 1).requires_grad_(False)
opt = torch.optim.SGD(body.parameters(), lr=0.1)
for i in range(2):
    h = body(torch.ones(1, 3))
    loss = (head(h) + frozen(h)).sum()
    loss.backward()
    opt.step()
other = torch.optim.SGD(head.parameters(), lr=0.1)
"""


@on_both_engines
def test_a_step_names_the_parameters_without_a_step_in_the_recording(engine, tmp_path):
    (step,) = answers(recorded_text(HELD, tmp_path, engine), "step")
    (held,) = [part for part in step.parts if part.kind == "not-held"]
    assert re.fullmatch(r"2 parameters had no step in this recording: #\d+ head.weight, #\d+ head.bias", held.text)
    (step,) = answers(recorded_text(f"{HELD}other.step()\n", tmp_path, engine), "step")
    assert not [part for part in step.parts if part.kind == "not-held"]


def test_a_tensor_that_is_called_as_a_question_is_asked_about():
    def program():
        loss = torch.tensor(2.0, requires_grad=True) * 3
        (loss * 2).backward()
        return loss

    (found,) = answers(timeline_of(program), "loss")
    assert "mul" in found.text
    assert "= 6" in found.text


# Both engines, programs as they are run

on_both_engines = pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])

CHANGED_SIGMOID = """
import torch
torch.manual_seed(0)
w = torch.randn(4, 4, requires_grad=True)
x = torch.randn(8, 4)
h = torch.sigmoid(x @ w)
s = h.sum(dim=1)
h -= h.mean(dim=0)
loss = (h ** 2).mean() + s.mean()
loss.backward()
"""


@on_both_engines
def test_a_pass_that_an_error_ended_has_not_reached_what_comes_after(engine, tmp_path):
    timeline = recorded_text(CHANGED_SIGMOID, tmp_path, engine)
    (found,) = answers(timeline, "w.grad")
    assert found.text.startswith("backward pass 1 stopped")
    assert found.text.endswith("never reached #1 w")
    assert "h = sigmoid was changed in place" in told(found)
    assert "why error" in found.fix
    assert found.at.line == 10


@on_both_engines
def test_a_pass_that_comes_later_is_named(engine, tmp_path):
    timeline = recorded_text(CHANGED_SIGMOID, tmp_path, engine)
    start = next(seq for seq, _ in timeline.select((BackwardStarted,)))
    (found,) = answers(timeline, "w.grad", start - 1)
    assert found.text.startswith("no backward pass has run since #1 w")
    assert found.fix == ""
    (later,) = found.parts
    assert re.search(r"backward at .*:10 comes later: ask again at event (\d+)$", later.text)
    (after,) = answers(timeline, "w.grad", int(later.text.rpartition(" ")[2]))
    assert "stopped" in after.text
    (never,) = answers(recorded_text(CHANGED_SIGMOID.replace("loss.backward()", ""), tmp_path, engine), "w.grad")
    assert never.fix == "call backward() on a result of it"


@on_both_engines
def test_an_operation_in_place_is_no_second_write_to_its_own_result(engine, tmp_path):
    timeline = recorded_text(CHANGED_SIGMOID, tmp_path, engine)
    (found,) = answers(timeline, "h")
    assert "= sub_" in found.text
    assert "wrote to its memory" not in told(found)
    timeline = recorded_text(CHANGED_SIGMOID.replace("loss = ", "h *= 2\nloss = "), tmp_path, engine)
    node = next(info.node for info in map(timeline.info, timeline.nodes) if info.op.name == "sub_")
    (found,) = answers(timeline, f"#{node}")
    assert re.search(r"then #\d+ h = mul_ at .* wrote to its memory", told(found))


TWO_LOSSES = """
import torch
w = torch.tensor([1.0, 2.0], requires_grad=True)
for step in range(3):
    fit = (w * 3).sum()
    fit.backward()
    size = (w * w).sum()
    size.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
    w.grad.zero_()
"""


@on_both_engines
@pytest.mark.parametrize("clear", ["w.grad.zero_()", "w.grad = None"])
def test_losses_whose_passes_add_up_are_named_with_both_remedies(clear, engine, tmp_path):
    timeline = recorded_text(TWO_LOSSES.replace("w.grad.zero_()", clear), tmp_path, engine)
    (found,) = answers(timeline, "w.grad")
    assert re.search(r"passes of 2 losses add up in it: #\d+ fit = sum and #\d+ size = sum", told(found))
    if clear.endswith("None"):
        assert re.fullmatch(r"detach\(\) what #\d+ fit = sum must not reach, or zero_grad\(\) before .*", found.fix)


@on_both_engines
def test_a_gradient_that_was_set_to_zero_does_not_add_up(engine, tmp_path):
    text = TWO_LOSSES.replace("    fit.backward()\n", "")
    timeline = recorded_text(text, tmp_path, engine)
    (found,) = answers(timeline, "w.grad")
    assert "[0 0] was there before: it was set to zero at program.py:10" in told(found)
    assert "nothing has cleared it" not in told(found)
    assert "zero_grad" not in told(found)


@on_both_engines
def test_a_program_that_still_runs_has_not_called_backward_yet(engine, tmp_path, monkeypatch):
    timeline = recorded_text(CHANGED_SIGMOID, tmp_path, engine)
    start = next(seq for seq, _ in timeline.select((BackwardStarted,)))
    select = timeline.select
    monkeypatch.setattr(timeline, "growing", True, raising=False)
    monkeypatch.setattr(timeline, "select", lambda kinds, low=1, *high: select(kinds, low, *(high or (start,))))
    (found,) = answers(timeline, "w.grad", start - 1)
    assert found.fix == ""
    assert "the program is still running, and calls backward() at program.py:10" in told(found)


ADVERSARIES = """
import torch
from torch import nn
torch.manual_seed(0)
G, D = nn.Linear(2, 2), nn.Linear(2, 1)
opt_g, opt_d = torch.optim.SGD(G.parameters(), lr=0.1), torch.optim.SGD(D.parameters(), lr=0.1)
for step in range(3):
    made = G(torch.randn(4, 2))
    opt_d.zero_grad()
    d_loss = D(made.detach()).mean() - D(torch.randn(4, 2)).mean()
    d_loss.backward()
    opt_d.step()
    opt_g.zero_grad()
    g_loss = -D(made).mean()
    g_loss.backward()
    opt_g.step()
"""


@on_both_engines
def test_a_sum_that_is_cleared_before_it_is_used_needs_no_remedy(engine, tmp_path):
    (found,) = answers(recorded_text(ADVERSARIES, tmp_path, engine), "D.weight.grad")
    assert found.fix == ""
    place = r"the step at program.py:12 has used what was there, .* cleared at program.py:9 before the next step"
    assert re.search(place, found.parts[-1].text)


@on_both_engines
@pytest.mark.parametrize("clear", ["pass", "opt_d.zero_grad() if step == 1 else None"])
def test_a_sum_that_a_step_uses_even_once_needs_one(clear, engine, tmp_path):
    text = ADVERSARIES.replace("opt_d.zero_grad()", clear)
    (found,) = answers(recorded_text(text, tmp_path, engine), "D.weight.grad")
    assert "zero_grad() before each backward" in found.fix


@on_both_engines
@pytest.mark.parametrize(("steps", "more"), [(5, "and 1 more pass"), (6, "and 2 more passes")])
def test_one_more_pass_is_no_passes(steps, more, engine, tmp_path):
    text = "import torch\nw = torch.ones(2, requires_grad=True)\n"
    text += f"for i in range({steps}):\n    (w * w).sum().backward()\n"
    (found,) = answers(recorded_text(text, tmp_path, engine), "w.grad")
    assert any(part.text.endswith(more) for part in found.parts)


FORGOTTEN = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 8)
        self.extra = torch.nn.Linear({width}, 8)
    def forward(self, x):
        return self.first(x)
net = Net()
net(torch.ones(2, 4)).sum().backward()
"""


@on_both_engines
@pytest.mark.parametrize(("width", "is_alike"), [(8, False), (4, True)])
def test_a_guess_what_was_meant_needs_a_whole_module_that_is_alike(width, is_alike, engine, tmp_path):
    timeline = recorded_text(FORGOTTEN.format(width=width), tmp_path, engine)
    for name in ("weight", "bias"):
        finding = asked(timeline, f"extra.{name}", "grad")
        assert finding.kind == "unused"
        assert [part.kind for part in finding.parts] == ["nearest"] * is_alike


LAYER_AFTER_LAYER = """
import torch
first, second = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)
x = torch.ones(2, 4)
a_loss = first(x).sum()
a_loss.backward()
b_loss = second(x).sum()
b_loss.backward()
"""


@on_both_engines
def test_the_weight_of_a_layer_leads_on_to_the_layer(engine, tmp_path):
    timeline = recorded_text(LAYER_AFTER_LAYER, tmp_path, engine)
    finding = asked(timeline, "second.weight", "grad")
    (contribution,) = finding.parts
    (layer,) = contribution.parts
    text = (
        r"a linear layer is x @ weight.T \+ bias: #\d+ transpose is its weight.T, which got it from #(\d+) linear at "
    )
    assert timeline.info(layer.node).op.base_name == "addmm"
    assert re.match(text, layer.text)[1] == str(layer.node)
    assert layer.text.partition(" linear at ")[2].startswith("program.py:7: x.T @ g")


@on_both_engines
def test_a_gradient_of_an_earlier_pass_is_called_one(engine, tmp_path):
    timeline = recorded_text(LAYER_AFTER_LAYER, tmp_path, engine)
    older = [part for part in asked(timeline, "first.weight", "grad").parts if part.kind == "older-pass"]
    one, other = (re.escape(f"backward pass {number} of #") for number in (1, 2))
    text = rf"it is from {one}\d+ a_loss = sum at program.py:5; {other}\d+ b_loss = sum at program.py:7 has brought "
    assert re.fullmatch(f"{text}nothing to it", older[0].text)
    assert not [part for part in asked(timeline, "second.weight", "grad").parts if part.kind == "older-pass"]
    began = max(n for n in range(len(timeline)) if isinstance(timeline.event(n + 1), BackwardStarted)) + 1
    so_far = asked(timeline, "first.weight", "grad", at=began)
    assert so_far.parts[0].text.endswith(" has brought nothing to it so far")


@on_both_engines
def test_before_the_first_pass_a_leaf_has_no_gradient_yet(engine, tmp_path):
    timeline = recorded_text(LAYER_AFTER_LAYER, tmp_path, engine)
    began = next(seq for seq, _ in timeline.select((BackwardStarted,)))
    (part,) = asked(timeline, "first.weight", at=began - 1).parts
    assert (part.text, part.event) == (
        "it has no gradient yet: no backward pass has run, the first begins later", began,
    )  # fmt: skip
    assert "no-pass" not in [part.kind for part in asked(timeline, "second.weight", "value", at=len(timeline)).parts]
