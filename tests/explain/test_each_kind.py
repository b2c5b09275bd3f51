"""Every kind that a check may report, in the smallest program that has it, and in one that nearly has."""

from dataclasses import replace

import msgspec
import pytest
from recording import events_of, timeline_of

import gviz
import gviz.engine as torch
from gviz.events import BackwardStarted, Failed, Marked, NodeCreated, OptimizerStepped
from gviz.explain.check import check
from gviz.explain.finding import Finding, lines
from gviz.explain.findings.gradient_values.nan_arithmetic import too_short
from gviz.explain.findings.training_loop.monitor_alarms import alarm_at, in_unrecorded_iteration
from gviz.explain.program_errors import all_failures
from gviz.explain.recording_survey import Survey
from gviz.explain.typed_question import answer
from gviz.explain.why import why
from gviz.query.nodes import NamedNodes
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline
from gviz.trace.whole_iterations import RecordedIterations

F = torch.nn.functional


def recorded(program):
    torch.manual_seed(0)
    return timeline_of(program)


def found(program):
    return {one.finding.kind: one for one in check(recorded(program))}


def told(one):
    return "\n".join(text for _, text, _ in lines(one.finding))


def saturated():
    w = torch.tensor([300.0, -300.0], requires_grad=True)
    torch.sigmoid(w).sum().backward()
    return w


def clamped():
    w = torch.tensor([3.0, -3.0], requires_grad=True)
    w.clamp(-1, 1).sum().backward()
    return w


def masked():
    w = torch.tensor([3.0, -3.0], requires_grad=True)
    torch.where(w > 100, w, torch.zeros(2)).sum().backward()
    return w


def multiplied_by_zero():
    w = torch.tensor([3.0, -3.0], requires_grad=True)
    (w * torch.zeros(2)).sum().backward()
    return w


def held_at_zero():
    w, gate = torch.tensor([3.0, -3.0], requires_grad=True), torch.tensor(-3.0, requires_grad=True)
    (w * gate.clamp(0, 1)).sum().backward()
    return w


def rounded():
    w = torch.tensor([3.2, -3.1], requires_grad=True)
    w.round().sum().backward()
    return w


def softmax_twice():
    w = torch.ones(2, 3, requires_grad=True)
    F.cross_entropy(torch.softmax(w, 1), torch.tensor([0, 1])).backward()
    return w


def sigmoid_twice():
    w = torch.ones(3, requires_grad=True)
    F.binary_cross_entropy_with_logits(torch.sigmoid(w), torch.ones(3)).backward()
    return w


def nll_of_probabilities():
    w = torch.ones(2, 3, requires_grad=True)
    F.nll_loss(torch.softmax(w, 1), torch.tensor([0, 1])).backward()
    return w


def nll_of_scores():
    w = torch.ones(2, 3, requires_grad=True)
    F.nll_loss(w * 2, torch.tensor([0, 1])).backward()
    return w


def nll_along_the_batch():
    w = torch.ones(2, 3, requires_grad=True)
    F.nll_loss(torch.log_softmax(w, 0), torch.tensor([0, 1])).backward()
    return w


def nll_of_some_rows_along_the_batch():
    w = torch.ones(4, 3, requires_grad=True)
    F.nll_loss(torch.log_softmax(w, 0)[torch.tensor([0, 2])], torch.tensor([0, 1])).backward()
    return w


def nll_of_a_logarithm_along_the_batch():
    w = torch.ones(2, 3, 4, 4, requires_grad=True)
    F.nll_loss(torch.log(torch.softmax(w, -1)), torch.zeros(2, 4, 4, dtype=torch.int64)).backward()
    return w


def attached_target():
    w = torch.ones(3, requires_grad=True)
    F.mse_loss(w * 2, w * 3).backward()
    return w


def dropout_in_evaluation():
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.5))
    with torch.no_grad():
        model(torch.ones(2, 3))
    return model


def shared_layer():
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    model[1].weight = model[0].weight
    model(torch.ones(2, 3)).sum().backward()
    return model


def one_layer_thrice():
    model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(3, 3))] * 3)
    model(torch.ones(2, 3)).sum().backward()
    return model


def one_layer_at_two_attributes():
    model = torch.nn.Sequential(torch.nn.Linear(3, 3))
    model.first = model[0]
    model[0](torch.ones(2, 3)).sum().backward()
    return model


def a_part_alone_and_in_its_model():
    inner = torch.nn.Sequential(torch.nn.Linear(3, 3))
    model = torch.nn.Sequential(torch.nn.Tanh(), inner)
    (inner(torch.ones(2, 3)).sum() + model(torch.ones(2, 3)).sum()).backward()
    return model


def never_stepped():
    a, b = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(b.parameters(), lr=0.1)
    b(a(torch.ones(1, 2))).sum().backward()
    optimizer.step()
    return a, b, optimizer


def mse_broadcast():
    w = torch.ones(4, 1, requires_grad=True)
    F.mse_loss(w * 2, torch.ones(4)).backward()
    return w


def trained(loss, rate=0.1, rows=32, steps=2):
    def program():
        model, x = torch.nn.Linear(2, 1), torch.randn(rows, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=rate)
        for _ in range(steps):
            optimizer.zero_grad()
            loss(model(x), torch.ones(rows, 1)).backward()
            optimizer.step()
        return model, optimizer

    return program


def summed(output, target):
    return F.mse_loss(output, target, reduction="sum")


def squares(output, target):
    return (output - target).pow(2).sum()


def cleared_early():
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(4, 2)).mean().backward()
    optimizer.zero_grad()
    optimizer.step()
    return model, optimizer


def cleared_early_to_zero():
    w = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    (w * w).sum().backward()
    optimizer.zero_grad(set_to_none=False)
    optimizer.step()
    return w, optimizer


def loss_made_anew():
    w = torch.ones(2, requires_grad=True)
    loss = torch.tensor((w * w).sum().item(), requires_grad=True)
    loss.backward()
    return w, loss


def backward_outside_of_the_loop():
    w = torch.ones(2, requires_grad=True)
    for _ in range(10):
        loss = F.cross_entropy(w.reshape(1, 2), torch.tensor([0]))
    loss.backward()
    return w


def zero_weights():
    a, b = torch.ones(2, 2, requires_grad=True), torch.zeros(1, 2, requires_grad=True)
    ((torch.ones(3, 2) @ a) @ b.t()).sum().backward()
    return a, b


def bad_seed():
    w = torch.ones(2, requires_grad=True)
    (w * 2).backward(torch.tensor([float("nan"), 1.0]))
    return w


@pytest.mark.parametrize(
    ("program", "kind", "level", "says"),
    [
        (saturated, "saturated", "warning", "its derivative there rounds to zero"),
        (clamped, "clamped", "warning", "held at the border"),
        (masked, "masked", "warning", "chose other elements"),
        (multiplied_by_zero, "masked", "warning", "is zero"),
        (held_at_zero, "masked", "warning", "widen the border"),
        (rounded, "masked", "warning", "flat between steps"),
        (softmax_twice, "softmax-twice", "warning", "takes logits"),
        (sigmoid_twice, "softmax-twice", "warning", "takes logits"),
        (nll_of_probabilities, "no-log-probabilities", "warning", "has probabilities"),
        (nll_of_scores, "no-log-probabilities", "warning", "reaches 2,"),
        (
            nll_along_the_batch,
            "no-log-probabilities",
            "warning",
            "makes probabilities that add up to 1 along dimension 0",
        ),
        (nll_of_some_rows_along_the_batch, "no-log-probabilities", "warning", "log_softmax(..., dim=1)"),
        (nll_of_a_logarithm_along_the_batch, "no-log-probabilities", "warning", "softmax(..., dim=1)"),
        (attached_target, "attached-target", "note", "sends a gradient into its target"),
        (dropout_in_evaluation, "dropout-in-evaluation", "note", "model.eval()"),
        (shared_layer, "shared", "note", "one parameter in 2 modules"),
        (one_layer_thrice, "shared", "note", "to one module that a list contains 3 times"),
        (never_stepped, "never-stepped", "note", "no optimizer has updated it"),
        (trained(summed), "summed-loss", "note", "every gradient is 32 times that of the mean"),
        (trained(squares), "summed-loss", "note", "a learning rate 32 times smaller"),
        (trained(F.mse_loss, rate=0.0), "unchanged", "warning", "2 steps of the optimizer did not change"),
        (trained(F.mse_loss, rate=1e-30), "unchanged", "warning", "the change rounds away"),
        (trained(F.mse_loss, rate=0.0, steps=1), "unchanged", "note", "a step of the optimizer did not change"),
        (cleared_early, "cleared-early", "error", "this step finds no gradient: the .grad of #"),
        (cleared_early_to_zero, "cleared-early", "error", "zero_grad() before backward(), or after step()"),
        (loss_made_anew, "not-reached", "warning", "is a new tensor with no autograd history"),
        (backward_outside_of_the_loop, "unused-losses", "note", "goes through 1 of 10 losses"),
        (zero_weights, "masked", "warning", "start it with small random numbers"),
        (bad_seed, "nan-seed", "error", "backward started with"),
    ],
)
def test_a_kind_is_found(program, kind, level, says):
    (one,) = [one for one in found(program).values() if one.finding.kind == kind]
    assert one.level == level
    assert says in told(one)


@pytest.mark.filterwarnings("ignore:Using a target size")
def test_a_loss_of_every_pair():
    assert "(4,1) with (4,) becomes (4,4)" in told(found(mse_broadcast)["broadcast"])


def test_zero_at_some_places_is_no_dead_layer():
    def program():
        w = torch.tensor([1.0, -1.0], requires_grad=True)
        torch.relu(w).sum().backward()
        return w

    assert found(program) == {}


def test_losses_that_are_added_up_are_used():
    def program():
        w = torch.ones(2, requires_grad=True)
        total = torch.zeros(())
        for _ in range(10):
            loss = (w * w).sum()
            total = total + loss
        total.backward()
        return w

    assert "unused-losses" not in found(program)


def test_a_choice_among_losses_of_one_forward_is_no_loop_without_backward():
    def program():
        w = torch.ones(2, requires_grad=True)
        h, losses = w * 2, []
        for power in range(1, 12):
            losses.append((h**power).sum())  # noqa: PERF401  # a comprehension has a frame of its own
        losses[2].backward()
        return w

    assert "unused-losses" not in found(program)


def test_a_choice_among_losses_in_each_step_is_no_loop_without_backward():
    def program():
        w = torch.ones(2, requires_grad=True)
        for _ in range(3):
            losses = []
            for power in range(1, 6):
                losses.append((w**power).sum())  # noqa: PERF401  # a comprehension has a frame of its own
            losses[2].backward()
        return w

    assert "unused-losses" not in found(program)


def test_a_softmax_of_attention_is_none_of_a_loss():
    def program():
        w = torch.ones(2, 2, requires_grad=True)
        (torch.softmax(w, 1) @ torch.softmax(w * 2, 1)).sum().backward()
        return w

    (one,) = found(program).values()
    assert (one.finding.kind, one.level) == ("cancelled", "note")  # each row of a product of chances sums to 1


def test_a_dead_layer_is_found_behind_what_it_multiplies():
    def program():
        w, v = torch.ones(3, 2, requires_grad=True), torch.ones(2, 1, requires_grad=True)
        h = torch.relu(-w)
        (h @ v).sum().backward()
        return w, v

    timeline = recorded(program)
    (one,) = check(timeline)
    assert one.finding.kind == "dead-units"
    assert (one.more, one.others) == (1, ("event 13",))  # of w, and of v, which h multiplies: both are of one node
    assert timeline.info(one.finding.node).op.name == "relu"


@pytest.mark.parametrize(
    "program",
    [trained(F.mse_loss), trained(summed, rows=8), a_part_alone_and_in_its_model, one_layer_at_two_attributes],
)
def test_what_is_no_mistake(program):
    assert found(program) == {}


def test_gradients_cleared_for_another_optimizer_are_no_mistake():
    def program():
        a, b = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
        one, other = torch.optim.SGD(a.parameters(), lr=0.1), torch.optim.SGD(b.parameters(), lr=0.1)
        for optimizer in (one, other, one, other):
            optimizer.zero_grad()
            b(a(torch.ones(1, 2))).sum().backward()
            optimizer.step()
        return a, b

    assert found(program) == {}


def test_what_two_losses_of_one_step_share_is_not_called_carried():
    def program():
        w, v = torch.ones(2, 2, requires_grad=True), torch.ones(2, requires_grad=True)
        fake = torch.tanh(w)
        first = (torch.exp(fake) @ v).sum()
        first.backward()
        second = (torch.exp(fake * 2) @ v).sum()
        with pytest.raises(RuntimeError, match="second time"):
            second.backward()
        return w, v

    one = found(program)["second-backward"]
    assert "fake = tanh, which both use" in told(one)
    assert "fake.detach() at test_each_kind.py:" in told(one)
    assert "else retain_graph=True there" in told(one)


@pytest.mark.parametrize(
    ("shape", "level"), [((2,), "warning"), ((2, 2), "warning"), ((0, 2), None), ((20, 20), "note")]
)
@pytest.mark.parametrize("rate", [0.0, 0.01])
def test_a_weight_of_any_shape_is_compared(shape, level, rate):
    def program():
        w = torch.nn.Parameter(torch.randn(*shape))
        optimizer = torch.optim.SGD([w], lr=rate)
        for _ in range(2):
            optimizer.zero_grad()
            (w * w).mean().backward()
            optimizer.step()
        return w, optimizer

    one = found(program).get("unchanged")
    assert (one.level if one is not None else None) == (level if rate == 0 else None)
    assert one is None or ("statistics" in told(one)) == (level == "note")


def test_a_parameter_that_moved_once_is_not_called_unchanged():
    def program():
        w = torch.ones(2, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.0)
        for rate in (0.0, 0.1, 0.0):  # a schedule that begins and ends with nothing
            optimizer.param_groups[0]["lr"] = rate
            optimizer.zero_grad()
            (w * w).sum().backward()
            optimizer.step()
        return w, optimizer

    assert found(program) == {}


def test_a_sum_is_not_called_a_mistake_before_it_is_used():
    def program():
        w = torch.tensor([1.0], requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        (w * 2).backward()
        optimizer.step()
        (w * 2).backward()
        optimizer.zero_grad()

    assert found(program) == {}


def test_a_mask_of_infinities_is_no_mistake():
    def program():
        w = torch.ones(2, 2, requires_grad=True)
        mask = torch.tensor([[0.0, float("-inf")], [0.0, 0.0]])
        torch.softmax(w + mask, 1)[:, 0].pow(2).sum().backward()
        return w

    assert found(program) == {}


def test_graphs_that_each_pass_goes_through_again_are_kept():
    def program():
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        total = 0.0
        for _ in range(5):
            loss = (w * w).sum()
            total = total + loss
            total.backward(retain_graph=True)
            w.grad = None
        return total

    assert "graphs-kept" in found(program)


def shared_by_two():
    layers = [torch.nn.Linear(2, 2) for _ in range(2)]
    layers[1].weight = layers[0].weight
    torch.nn.Sequential(*layers)(torch.ones(1, 2)).sum().backward()
    return layers


def divided_by_zero(numbers):
    x = torch.tensor([1.0, 1.0], requires_grad=True)
    ratio = torch.tensor(numbers) / torch.tensor([1.0, 0.0])
    (ratio.clamp(max=10.0) * x).sum().backward()
    return x


def saturated_softmax():
    x = torch.tensor([200.0, 0.0], requires_grad=True)
    entropy = torch.log(torch.softmax(x, 0)).detach().clamp(min=-10)
    (x * entropy).sum().backward()
    return x


def logarithm_of(p):
    x = torch.ones(p.shape, requires_grad=True)
    (torch.log(p).clamp(min=-10) * x).sum().backward()
    return x


@pytest.mark.parametrize(
    "program",
    [
        lambda: divided_by_zero([0.0, 1.0]),
        lambda: divided_by_zero([2.0, 1.0]),
        saturated_softmax,
        lambda: logarithm_of(torch.tensor([1.0, 0.5, 0.0])),
        lambda: logarithm_of(torch.tensor([0.5, 0.5, 0.0])),
        lambda: logarithm_of(torch.tensor([1.0, 0.0])),
        lambda: logarithm_of(torch.softmax(torch.tensor([200.0, 0.0]), 0)),
    ],
)
def test_an_infinity_that_is_no_mask_is_suspected(program):
    one = found(program)["nan-born"]
    assert one.level == "note"
    assert "inf appears in" in told(one)


def inverse_degrees(degrees):
    x, inverse = torch.ones(2, requires_grad=True), torch.tensor(degrees) ** -0.5
    inverse[inverse == float("inf")] = 0.0
    (x * inverse).sum().backward()
    return x


def forbidden_steps(allowed):
    x = torch.zeros(3, requires_grad=True)
    torch.logsumexp(x + torch.tensor(allowed).log(), 0).backward()
    return x


def limit_without_use(limit):
    x = torch.ones(3, requires_grad=True)
    torch.clamp(torch.ones(1) * limit, max=1.0)
    x.sum().backward()
    return x


@pytest.mark.parametrize(
    "program",
    [
        lambda: inverse_degrees([0.0, 4.0]),
        lambda: forbidden_steps([0.5, 0.5, 0.0]),
        lambda: limit_without_use(float("inf")),
    ],
)
def test_an_infinity_that_is_meant_is_not_suspected(program):
    assert found(program) == {}


@pytest.mark.parametrize(
    "mask",
    [
        lambda: (torch.arange(3.0) > 1).float().unsqueeze(0),
        lambda: torch.tril(torch.ones(3, 3)),
        lambda: torch.tensor([True, False]).to(torch.float64),
    ],
)
def test_the_logarithm_of_what_says_yes_or_no_is_a_mask(mask):
    assert found(lambda: logarithm_of(mask())) == {}


def test_a_pass_in_progress_is_said_to_be_one():
    """A program that was killed within backward leaves such a recording."""
    events = events_of(saturated)
    started = next(n for n, event in enumerate(events) if type(event).__name__ == "BackwardStarted")
    timeline = Timeline(MemoryLog(events[: started + 1]))
    answer = why(timeline, timeline.at(len(timeline)), 1, "grad")
    assert answer.kind == "pending"
    assert "the recording ends within it" in answer.text
    assert check(timeline) == []


def test_what_was_not_stored_is_said():
    def program():
        w = torch.ones(1000, requires_grad=True)
        y = w * torch.arange(1000.0)
        (y.sum() + (w * 2).sum()).backward()
        return w

    timeline = recorded(program)
    parts = why(timeline, timeline.at(len(timeline)), 1, "grad").parts
    assert any("--values" in part.text for part in parts)


def nan_into_a_loss():
    w = torch.ones(2, requires_grad=True)
    (w * 2).sum().backward()
    (torch.log(w - 1) * 0).sum().backward()
    return w


@pytest.mark.parametrize(
    ("growing", "says"), [(True, "the program stands before"), (False, "the recording ends before")]
)
def test_what_becomes_of_a_nan_is_not_known_before_its_pass(growing, says):
    events = events_of(nan_into_a_loss)
    whole = Timeline(MemoryLog(events))
    timeline = Timeline(MemoryLog(events[: events.index(whole.event(whole.error_index.first_bad())) + 1]))
    timeline.growing = growing
    (one,) = check(timeline)
    assert (one.level, one.finding.kind) == ("note", "nan-born")
    assert says in told(one)
    assert "stopped" not in told(one)


def test_contributions_that_cancel_are_told_as_they_are():
    def program():
        shift, x = torch.zeros(1, requires_grad=True), torch.ones(3, 2)
        ((x + shift).mean() - (x * 2 + shift).mean()).backward()
        return shift

    (one,) = found(program).values()
    assert (one.finding.kind, one.level) == ("cancelled", "note")
    assert "shift is zero: its 2 contributions cancel" in told(one)
    assert [part.text[:6] for part in one.finding.parts] == ["+= -1 ", "+= 1 f"]


def test_a_bias_that_cancels_while_its_weight_does_not_is_explained_only_if_asked():
    """The last bias of a critic: what one mean adds, the other takes away, and nothing is wrong."""

    def program():
        critic, x = torch.nn.Linear(2, 1), torch.ones(3, 2)
        (critic(x).mean() - critic(x * 2).mean()).backward()
        return critic

    assert found(program) == {}
    timeline = Timeline(MemoryLog(events_of(program)))
    bias = next(node for node in timeline.nodes if timeline.info(node).name.endswith("bias"))
    assert why(timeline, timeline.at(len(timeline)), bias, "grad").kind == "cancelled"


def test_contributions_that_cancel_further_up_are_told_there():
    def program():
        w = torch.ones(2, requires_grad=True)
        h = w.exp()
        ((h * 2).sum() - (h * 2).sum()).backward()
        return w

    (one,) = found(program).values()
    assert one.finding.kind == "cancelled"
    assert "h = exp is zero: its 2 contributions cancel" in told(one)


def test_a_pass_that_takes_back_what_one_before_has_added():
    def program():
        w = torch.ones(2, requires_grad=True)
        (w * 2).sum().backward()
        (w * -2).sum().backward()
        return w

    timeline = recorded(program)
    answer = why(timeline, timeline.at(len(timeline)), 1, "grad")
    assert answer.text == "the gradient of #1 w is zero: it cancels what passes before had added"


def test_clipping_before_backward_is_found_also_where_the_update_is_written_by_hand():
    def program(early):
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        for _ in range(2):
            w.grad = None
            if early:
                torch.nn.utils.clip_grad_norm_([w], 0.1)
            (w * w).sum().backward()
            if not early:
                torch.nn.utils.clip_grad_norm_([w], 0.1)
            with torch.no_grad():
                w -= 0.1 * w.grad
        return w

    assert "clipped-early" in found(lambda: program(early=True))
    assert "clipped-early" not in found(lambda: program(early=False))


@pytest.mark.parametrize("shape", [(2, 3), (3,), (2, 3, 4)])
def test_a_label_that_is_no_class_is_told_how_many_there_are(shape):
    def program():
        return torch.zeros(shape, requires_grad=True) * 2

    events = [*events_of(program), Failed("IndexError", "Target 3 is out of bounds.", 0, 0, "")]
    (failure,) = [one.finding for one in check(Timeline(MemoryLog(events))) if one.finding.kind == "failed"]
    assert failure.fix.startswith("use labels from 0 to 2: the scores, #3 ")
    assert failure.fix.endswith(", have 3 columns")


def test_a_second_optimizer_of_nothing_but_frozen_parameters_is_suspected():
    def program(frozen):
        body, head = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1).requires_grad_(not frozen)
        optimizers = [torch.optim.SGD(part.parameters(), lr=0.1) for part in (body, head)]
        head(body(torch.ones(1, 2))).sum().backward()
        for optimizer in optimizers:
            if optimizer is optimizers[0]:
                optimizer.step()
            else:
                optimizer.step()

    one = found(lambda: program(frozen=True))["empty-step"]
    assert one.level == "note"
    assert "updates nothing: all of its 2 parameters are frozen" in told(one)
    assert "empty-step" not in found(lambda: program(frozen=False))


def test_more_of_one_kind_on_one_line_are_named():
    def program():
        w = torch.ones(2, requires_grad=True)
        model = torch.nn.Dropout(0.5)
        with torch.no_grad():
            for _ in range(3):
                model(w)

    one = found(program)["dropout-in-evaluation"]
    assert one.more == 2
    assert one.heading.endswith("(and 2 more on this line: #5 dropout, #7 dropout)")


@pytest.mark.parametrize(
    "cut", [lambda loss: loss.detach().requires_grad_(), lambda loss: loss.new_tensor(loss.item())]
)
def test_a_loss_that_has_become_a_leaf_is_none_that_the_optimizer_lacks(cut):
    def program():
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            loss = cut((model(torch.ones(1, 2)) ** 2).mean()).requires_grad_()
            loss.backward()
            optimizer.step()

    kinds = found(program)
    assert "never-stepped" not in kinds
    assert kinds.keys() & {"cut", "not-reached"}


def test_points_at_which_an_equation_is_to_hold_are_nothing_to_train():
    def program():
        model = torch.nn.Sequential(torch.nn.Linear(1, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x = torch.tensor([[0.5], [1.0]], requires_grad=True)
        for _ in range(3):
            optimizer.zero_grad()
            u = model(x)
            (slope,) = torch.autograd.grad(u.sum(), x, create_graph=True)
            ((slope - u) ** 2).mean().backward()
            optimizer.step()

    assert found(program) == {}


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4, 4)])
@pytest.mark.parametrize("along", ["log_softmax", "log of softmax", "cross_entropy", "logsigmoid", "rows"])
def test_an_nll_loss_of_the_logarithms_of_probabilities_over_its_classes_is_right(shape, along):
    def program():
        w, dim = torch.randn(shape, requires_grad=True), min(1, len(shape) - 1)
        target = torch.zeros(shape[:dim] + shape[dim + 1 :], dtype=torch.int64)
        if along == "cross_entropy":
            F.cross_entropy(w, target).backward()
        elif along == "rows":
            rows = torch.log_softmax(w, -1).reshape(-1, shape[-1])
            F.nll_loss(rows, torch.zeros(len(rows), dtype=torch.int64)).backward()
        else:
            logs = {"log_softmax": torch.log_softmax(w, dim), "log of softmax": torch.softmax(w, dim).log()}
            F.nll_loss(logs.get(along, F.logsigmoid(w)), target).backward()
        return w

    assert "no-log-probabilities" not in found(program)


def test_dropout_before_what_is_trained_on_features_made_under_no_grad_is_no_evaluation():
    def program():
        features, head = torch.nn.Linear(3, 3), torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(3, 1))
        with torch.no_grad():
            h = torch.relu(features(torch.ones(2, 3)))
        head(h).sum().backward()

    assert "dropout-in-evaluation" not in found(program)


def test_dropout_within_features_made_under_no_grad_is_found():
    def program():
        features = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.5), torch.nn.ReLU())
        head = torch.nn.Linear(3, 1)
        with torch.no_grad():
            h = features(torch.ones(2, 3))
        head(h).sum().backward()

    assert "dropout is active" in told(found(program)["dropout-in-evaluation"])


class ClampedSquare(torch.autograd.Function):
    """Its rule forgets that nothing goes through where the clamp holds."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(max=2) ** 2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 * x.clamp(max=2)


def test_a_forgotten_mask_is_no_forward_that_is_flat():
    def program():
        x = torch.tensor([1.0, 3.0, -1.0], requires_grad=True)
        ClampedSquare.apply(x).sum().backward()
        return x

    one = found(program)["wrong-rule"]
    assert "it sends 4, where small changes of x show 0" in told(one)
    assert "1 of the 3 elements tried differ" in told(one)


@pytest.mark.torch
@pytest.mark.parametrize("skips", [True, False])
def test_a_loss_of_sequences_takes_logarithms_too(skips, tmp_path):
    torch = pytest.importorskip("torch")
    with gviz.record(tmp_path / "t.gviz"):
        scores = torch.linspace(-1, 1, 5 * 2 * 4).view(5, 2, 4).requires_grad_()
        targets, lengths = torch.tensor([[1, 2], [3, 1]]), torch.tensor([5, 5])
        for function in (torch.softmax, torch.log_softmax):
            logs, counts = function(scores, 2), torch.tensor([2, 2])
            loss = torch.nn.functional.ctc_loss(logs, targets, lengths, counts, zero_infinity=skips)
            (0.1 * loss).backward()
    (one,) = check(gviz.load(tmp_path / "t.gviz"))
    assert (one.finding.kind, one.more) == ("no-log-probabilities", 0)
    assert "has probabilities" in one.finding.text


@pytest.mark.torch
@pytest.mark.parametrize("skips", [True, False])
def test_a_loss_of_sequences_is_the_cause_only_if_it_is_infinite(skips, tmp_path):
    torch = pytest.importorskip("torch")
    with gviz.record(tmp_path / "t.gviz"):
        scores = torch.ones(2, 1, 3, requires_grad=True).log_softmax(2)
        target = torch.tensor([[1, 2, 1]])
        loss = torch.nn.functional.ctc_loss(scores, target, (2,), (3,), zero_infinity=skips)
        bad = (loss - loss) / (loss - loss)
    timeline = gviz.load(tmp_path / "t.gviz")
    assert bad.isnan()
    last = max(timeline.nodes)
    assert bool(too_short(timeline, last)) is not skips

    assert bool(too_short(Altered(timeline, "zero_infinity", None), last)) is not skips
    for lengths in ((None,), ("9",), (None, 9), 9):
        assert too_short(Altered(timeline, "input_lengths", lengths), last) == ""


class Altered:
    """A timeline whose operations have another value of an attribute."""

    def __init__(self, timeline, name, value):
        self.timeline, self.name, self.value = timeline, name, value
        self.nodes = timeline.nodes

    def info(self, node):
        info = self.timeline.info(node)
        attrs = tuple((key, self.value if key == self.name else value) for key, value in info.created.attrs)
        return replace(info, created=msgspec.structs.replace(info.created, attrs=attrs))


@pytest.mark.parametrize(
    ("factor", "is_written"),
    [("float('inf')", True), ("-torch.inf", True), ("float('Infinity')", True), ("finance", False), ("info", False)],
)
def test_a_number_is_written_only_where_its_line_has_it(factor, is_written, checks):
    text = f"""
import torch
info = finance = float("inf")
w = torch.zeros(2, requires_grad=True)
(w * {factor}).sum().backward()
"""
    (one,) = [one for one in checks.of_text(text, "builtin").found if one.finding.kind == "nan-born"]
    assert ("write a finite number" in one.finding.fix) == is_written


def test_a_pass_from_an_unknown_node_is_no_earlier_loss():
    def program():
        w, total = torch.ones(2, requires_grad=True), 0.0
        for _ in range(3):
            total = total + (w * w).sum()
            total.backward(retain_graph=True)
        return w

    assert "counted-again" in found(program)
    events = []
    for event in events_of(program):
        if isinstance(event, BackwardStarted) and event.pass_nr == 1:
            event = msgspec.structs.replace(event, roots=((0, 0),))
        if isinstance(event, NodeCreated) and len(event.inputs) == 2:
            event = msgspec.structs.replace(event, inputs=((0, 0), *event.inputs))
        events.append(event)
    kinds = {one.finding.kind: one for one in check(Timeline(MemoryLog(events)))}
    assert "1 of 3 passes" in kinds["counted-again"].finding.text


def test_the_ends_of_losses_are_looked_up_once(monkeypatch):
    def program():
        w = torch.ones(2, 3, requires_grad=True)
        y = torch.full((2, 3), 1 / 3)
        for _ in range(5):
            F.cross_entropy(y, w.softmax(1)).backward()
        return w

    timeline, asked, ops = recorded(program), [], Survey.ops

    def counted(survey, *names):
        asked.append(names)
        return ops(survey, *names)

    monkeypatch.setattr(Survey, "ops", counted)
    assert "swapped" in {one.finding.kind for one in check(timeline)}
    assert asked.count(("div",)) == 1


def watched(*alarms, since=(), program=("train.py", "--lr", "0.1")):
    """The checked alarms of a trace whose iterations 1 and 50 are whole."""
    marks = [Marked("iteration 1"), Marked("alarm at iteration 40: the loss is nan"), Marked("iteration 50")]
    log = MemoryLog([*marks[:1], *events_of(saturated), *marks[1:]])
    log.recorded_iterations = RecordedIterations(
        60, 1, ((1, 1), (50, 50)), (), alarms, last_good=since, program=program
    )
    return [one.finding for one in check(Timeline(log)) if one.finding.kind == "alarm"]


def test_an_alarm_of_an_iteration_that_was_not_recorded_comes_with_a_command():
    (alarm,) = watched((40, "the loss is nan"), since=(39,))
    assert alarm.kind == "alarm"
    assert alarm.text == "iteration 40: the loss is nan"
    assert alarm.event > 1
    assert alarm.fix == "gviz record --from-iteration 39 --on nan train.py --lr 0.1 (if the program sets its seeds)"


def test_the_moment_of_an_alarm_is_explained_by_it_until_the_next_iteration_begins():
    marks = [Marked("iteration 1"), Marked("alarm at iteration 40: the loss is nan"), Marked("iteration 50")]
    log = MemoryLog([marks[0], *events_of(saturated), *marks[1:], OptimizerStepped("SGD", (), 0)])
    log.recorded_iterations = RecordedIterations(
        60, 1, ((1, 1), (50, 50)), (), ((40, "the loss is nan"),), last_good=(39,), program=("train.py",)
    )
    timeline = Timeline(log)
    at = timeline.marks[1][0]
    assert [n for n in range(len(timeline) + 1) if alarm_at(timeline, n) is not None] == [at, at + 1]
    alarm = answer(NamedNodes(timeline), "", at, selected=1)
    assert alarm.text == "iteration 40: the loss is nan"
    assert alarm.fix == "gviz record --from-iteration 39 --on nan train.py (if the program sets its seeds)"
    assert answer(NamedNodes(timeline), "", at - 1, selected=1).kind != "alarm"


def failed_in(finding, *events, whole=((1, 1), (50, 50))):
    """A finding about the error that ended a monitored run in iteration 60, after `finding` by its tensors."""
    events = [
        Marked("iteration 50"), *events_of(lambda: torch.ones(2) * 2), OptimizerStepped("SGD", (), 0), *events,
        Marked("alarm at iteration 60: the program failed with RuntimeError"),
        Failed("RuntimeError", "shapes cannot be multiplied", 0, 0, ""),
    ]  # fmt: skip
    log = MemoryLog(events)
    alarms = ((60, "the program failed with RuntimeError"),)
    log.recorded_iterations = RecordedIterations(60, 1, whole, (), alarms, last_good=(59,), program=("train.py",))
    timeline = Timeline(log)
    assert [one.finding.kind for one in check(timeline)] == ["failed"]  # no alarm besides
    (failure,) = all_failures(timeline)
    return in_unrecorded_iteration(timeline, failure, finding)


COMMAND = "record what led to it: gviz record --from-iteration 59 train.py (if the program sets its seeds)"


def test_an_error_in_an_iteration_that_was_not_recorded_is_not_explained_by_tensors_of_another():
    found = failed_in(Finding("mismatch", "x is (2,)", node=1))
    assert found.text == "the program failed in iteration 60, which was not recorded"
    assert found.fix == COMMAND
    assert "shapes cannot be multiplied" in found.parts[0].text
    assert not found.node


def test_an_error_that_is_explained_without_tensors_names_its_iteration():
    finding = Finding("failed", "the program failed")
    assert failed_in(finding).parts[-1].text == f"iteration 60 was not recorded; {COMMAND}"


def test_an_error_in_a_recorded_iteration_is_explained_by_its_tensors():
    created = [event for event in events_of(lambda: torch.ones(16, 5)) if isinstance(event, NodeCreated)]
    finding = Finding("mismatch", "x is (2,)", node=1)
    later = [msgspec.structs.replace(event, node=1000) for event in created]
    assert failed_in(finding, *later, whole=((60, 60),)) is finding


def test_an_alarm_of_a_recorded_iteration_is_no_finding():
    assert watched((1, "the loss is nan"), since=(1,)) == []


@pytest.mark.parametrize("known", [{"since": ()}, {"since": (39,), "program": ()}])
def test_an_alarm_without_a_known_program_has_no_command(known):
    (alarm,) = watched((40, "the loss is nan"), **known)
    assert alarm.fix == ""


def test_later_alarms_are_parts_of_the_first():
    (alarm,) = watched(*((at, "the loss is nan") for at in range(20, 30)), since=range(19, 29))
    assert "--from-iteration 19 " in alarm.fix
    assert [part.text for part in alarm.parts] == ["iteration 21: the loss is nan", "iteration 22: the loss is nan"]


def test_control_characters_of_a_strange_trace_are_not_printed():
    (alarm,) = watched((40, "\x1b[2J"), since=(39,), program=("\x1b]0;x\x07",))
    assert "\x1b" not in alarm.text + alarm.fix


SMOOTHED = """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
x = torch.randn(8, 4)
smooth = 0.0
for step in range(6):
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    smooth = 0.9 * smooth + 0.1 * loss  #!
"""
CARRIED = """
import torch
from torch import nn
torch.manual_seed(0)
cell, net = nn.Linear(3, 3), nn.Linear(3, 1)
h = torch.zeros(1, 3)
for step in range(6):
    h = torch.tanh(cell(h) + 0.1)  #!
    loss = net(h).pow(2).mean()
    net.zero_grad()
    cell.zero_grad()
    loss.backward(retain_graph=True)
"""
FILLED = """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
def start(m):
    if isinstance(m, nn.Linear):
        nn.init.constant_(m.weight, 0.05)  #!
        nn.init.zeros_(m.bias)
net.apply(start)
x, y = torch.randn(16, 3), torch.randn(16, 1)
for step in range(3):
    loss = nn.functional.mse_loss(net(x), y)
    net.zero_grad()
    loss.backward()
    with torch.no_grad():
        for p in net.parameters():
            p -= 0.1 * p.grad
"""


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize(
    ("text", "kind"),
    [(SMOOTHED, "graphs-kept"), (CARRIED, "graphs-kept"), (FILLED, "same-units")],
    ids=["kept", "carried", "same"],
)
def test_the_line_of_the_cause_is_not_the_line_of_the_symptom(text, kind, engine, checks):
    found = [one.finding for one in checks.of_text(text, engine).found if one.finding.kind == kind]
    assert [text.splitlines()[one.at.line - 1][-2:] for one in found] == ["#!"]


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
def test_a_state_that_is_carried_over_is_detached_where_it_is_used(engine, checks):
    (one,) = [one.finding for one in checks.of_text(CARRIED, engine).found if one.finding.kind == "graphs-kept"]
    assert one.edit is not None
    assert "cell(h.detach())" in one.edit.new
    assert "losses.append" not in one.fix


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
def test_a_state_that_is_carried_over_in_two_ways_has_no_edit_for_one_of_them(engine, checks):
    text = CARRIED.replace("cell(h) + 0.1", "cell(h) + h")
    (one,) = [one.finding for one in checks.of_text(text, engine).found if one.finding.kind == "graphs-kept"]
    assert "detach() the result of the iteration before" in one.fix
    assert one.edit is None


COLUMN_ON_THE_LINE = """
import torch
from torch import nn
torch.manual_seed(0)
net, x, y = nn.Linear(3, 1), torch.randn(8, 3), torch.randn(8)
loss = ((net(x).squeeze() - y.unsqueeze(1)) ** 2).mean()
loss.backward()
"""


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
def test_a_column_of_targets_that_is_made_on_the_line_of_the_loss_is_found(engine, checks):
    assert "broadcast" in [one.finding.kind for one in checks.of_text(COLUMN_ON_THE_LINE, engine).found]
