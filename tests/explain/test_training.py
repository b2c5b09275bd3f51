"""What a backward pass left in the parameters, and how losses went: from recordings of both engines' events."""

import math

import pytest
from recording import timeline_of

import gviz.engine as torch
from gviz.explain.training import last_pass, pass_result, progress, trained_leaves


def trained(steps=3, *, used=True):
    def program():
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
        idle = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD([*net.parameters(), *idle.parameters()], lr=0.1)
        x = torch.tensor([[1.0, 2.0], [3.0, -1.0]])
        for _ in range(steps):
            optimizer.zero_grad()
            out = net(x)
            loss = (out * out).mean() if used else (out.detach() * idle.weight[0, 0]).mean()
            if steps and not used:
                idle(net[0](x))
            loss.backward()
            optimizer.step()

    return timeline_of(program)


def of_scalars(program):
    timeline = timeline_of(program)
    return pass_result(timeline, last_pass(timeline, len(timeline)))


def test_the_verdict_counts_every_leaf_that_requires_a_gradient():
    timeline = trained(used=False)
    result = pass_result(timeline, last_pass(timeline, len(timeline)))
    count = len(result.received) + len(result.missing)
    assert len(result.received) == 1
    assert result.verdict == f"1 of {count} parameters has a gradient, {count - 1} have none"
    assert result.at is not None
    assert result.loss is not None


@pytest.mark.parametrize(
    ("leaves", "reached", "verdict"),
    [(1, 1, "1 leaf has a gradient"), (2, 2, "all 2 leaves have a gradient"),
     (3, 1, "1 of 3 leaves has a gradient, 2 have none"), (3, 2, "2 of 3 leaves have a gradient, 1 has none")],
)  # fmt: skip
def test_the_verdict_is_a_sentence(leaves, reached, verdict):
    def program():
        tensors = [torch.tensor(2.0, requires_grad=True) for _ in range(leaves)]
        sum(tensors[:reached], start=torch.tensor(0.0)).backward()
        assert [tensor.grad is None for tensor in tensors] == [False] * reached + [True] * (leaves - reached)

    assert of_scalars(program).verdict == verdict


@pytest.mark.parametrize(
    ("frozen", "reached", "verdict"),
    [(2, 2, "2 of 4 parameters have a gradient, 2 are frozen"),
     (1, 2, "2 of 4 parameters have a gradient, 1 has none, 1 is frozen"),
     (3, 1, "1 of 4 parameters has a gradient, 3 are frozen")],
)  # fmt: skip
def test_the_verdict_counts_frozen_parameters_by_themselves(frozen, reached, verdict):
    def program():
        parameters = [torch.nn.Parameter(torch.ones(2)) for _ in range(4)]
        for one in parameters[:frozen]:
            one.requires_grad = False
        for one in parameters:
            (one * 2).sum()  # so that each is recorded
        sum((one * one).sum() for one in parameters[-reached:]).backward()

    result = of_scalars(program)
    assert len(result.frozen) == frozen
    assert result.verdict == verdict


def test_a_pass_for_data_does_not_count_the_parameters_of_a_frozen_model_as_leaves():
    def program():
        net = torch.nn.Linear(2, 1).requires_grad_(False)
        x = torch.ones(1, 2, requires_grad=True)
        net(x).sum().backward()

    assert of_scalars(program).verdict == "1 leaf has a gradient, 2 parameters are frozen"


def test_a_parameter_that_is_trained_again_is_frozen_no_longer():
    def program():
        w, v = torch.nn.Parameter(torch.ones(2), requires_grad=False), torch.nn.Parameter(torch.ones(2))
        (w * v).sum().backward()
        w.requires_grad_(True)
        (w * v).sum().backward()

    timeline = timeline_of(program)
    first, last = [phase.end for phase in timeline.phases if phase.kind == "backward"]
    assert pass_result(timeline, first).verdict == "1 of 2 parameters has a gradient, 1 is frozen"
    assert pass_result(timeline, last).verdict.startswith("all 2 parameters have a gradient")


def test_a_gradient_that_is_nan_is_no_good_gradient():
    def program():
        x = torch.tensor([0.0, 1.0], requires_grad=True)
        y = torch.tensor(1.0, requires_grad=True)
        ((x * 0).sqrt() * 0).sum().backward()
        (y * 2).backward()
        ((x * 0).sqrt() * 0 + y).sum().backward()

    result = of_scalars(program)
    assert result.verdict == "all 2 leaves have a gradient, 1 of them not finite"
    assert result.modules[0].bad


def test_lengths_are_those_of_all_gradients_of_a_module_together():
    timeline = trained(steps=1)
    end = last_pass(timeline, len(timeline))
    result = pass_result(timeline, end)
    of_module = {one.module: one.length for one in result.modules}
    squares = {}
    for node in trained_leaves(timeline, end):
        value = timeline.at(end).state(node).outputs[0].grad
        if value is not None:
            module = timeline.info(node).name.rpartition(".")[0]
            squares[module] = squares.get(module, 0.0) + float((timeline.array(value) ** 2).sum())
    assert of_module == pytest.approx({module: math.sqrt(square) for module, square in squares.items()})
    lengths = [one.length for one in result.modules]
    assert lengths == sorted(lengths, reverse=True)


def test_a_pass_that_failed_has_no_result_and_a_moment_in_a_pass_has_none():
    timeline = trained(steps=1)
    end = last_pass(timeline, len(timeline))
    assert pass_result(timeline, end - 1) is None
    assert pass_result(timeline, 0) is None
    assert last_pass(timeline, 3) == 0


def test_progress_has_one_entry_for_each_pass_and_a_long_recording_is_thinned_out():
    timeline = trained(steps=12)
    whole, thin = progress(timeline), progress(timeline, most=5)
    assert whole.passes == thin.passes == len(whole.ends) == 12
    assert whole.losses[0] > whole.losses[-1]
    assert len(thin.ends) == 5
    assert (thin.ends[0], thin.ends[-1]) == (whole.ends[0], whole.ends[-1])
    assert (thin.losses[0], thin.losses[-1]) == (whole.losses[0], whole.losses[-1])
    assert all(len(lengths) == 12 for _, lengths in whole.modules)


def test_leaves_are_those_that_no_operation_made_and_that_require_a_gradient():
    timeline = trained(steps=1)
    wanted = [
        node
        for node in timeline.nodes
        if timeline.info(node).created.kind != "op" and timeline.info(node).created.requires_grad
    ]
    assert list(trained_leaves(timeline, len(timeline))) == wanted


def test_the_verdict_counts_gradients_of_earlier_passes():
    def program():
        a, b = (torch.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
        (a * a).sum().backward()
        (b * b).sum().backward()

    timeline = timeline_of(program)
    result = pass_result(timeline, last_pass(timeline, len(timeline)))
    assert result.verdict == "all 2 leaves have a gradient, 1 of them not from this pass"
    assert len(result.earlier) == 1


def test_a_leaf_that_is_frozen_meanwhile_lacks_no_gradient():
    def program():
        net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
        net(torch.ones(3, 2)).mean().backward()
        for parameter in net[0].parameters():
            parameter.grad = None
            parameter.requires_grad_(False)
        net(torch.ones(3, 2)).mean().backward()

    timeline = timeline_of(program)
    end = last_pass(timeline, len(timeline))
    assert pass_result(timeline, end).verdict == "2 of 4 parameters have a gradient, 2 are frozen"
    assert pass_result(timeline, end).missing == ()
    assert len(trained_leaves(timeline, 1)) == 1
