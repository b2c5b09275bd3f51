"""The conditions that decide between a mistake and what only looks like it: just on one side, and just on the other."""

import pytest
from explain.programs import recorded as of_a_file
from explain.test_each_kind import found, recorded, told

import gviz.engine as torch
from gviz.explain.check import check
from gviz.explain.typed_question import answers
from gviz.explain.why import why

F = torch.nn.functional


def test_a_softmax_that_is_sure_is_saturated_and_does_not_cancel():
    def program():
        w = torch.tensor([[300.0, -300.0]], requires_grad=True)
        torch.softmax(w, 1)[:, 0].sum().backward()
        return w

    assert set(found(program)) == {"saturated"}


def test_numbers_come_back_on_the_line_on_which_they_left_in_another_shape():
    def program():
        w = torch.ones(2, 3, requires_grad=True)
        v = torch.ones(1, requires_grad=True)
        h = w * 2
        (torch.tensor([float(h.detach().numpy().sum())]) * v).sum().backward()
        return w, v

    assert "with no autograd history" in told(found(program)["cut"])


def test_a_parameter_that_a_program_which_failed_has_not_stepped_is_no_mistake():
    (one,) = check(of_a_file("loops", "fails_before_its_step"))
    assert one.finding.kind == "failed"


def test_chances_that_are_logarithms_already_are_the_same_logits():
    def program():
        w = torch.randn(2, 3, requires_grad=True)
        F.cross_entropy(F.log_softmax(w, 1), torch.tensor([0, 1])).backward()
        return w

    assert found(program) == {}


def test_a_target_that_is_learned_itself_is_meant():
    def program():
        w, prototype = torch.ones(3, requires_grad=True), torch.zeros(3, requires_grad=True)
        F.mse_loss(w * 2, prototype).backward()
        return w, prototype

    assert found(program) == {}


def test_one_number_against_a_row_is_no_square():
    def program():
        w = torch.ones(5, requires_grad=True)
        (w - torch.full((1,), 3.0)).pow(2).mean().backward()
        return w

    assert found(program) == {}


def test_dropout_in_the_training_of_a_head_on_fixed_features_is_active_on_purpose():
    def program():
        body = torch.nn.Linear(3, 3)
        head = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
        optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
        with torch.no_grad():
            features = body(torch.randn(4, 3))
        head(features).pow(2).mean().backward()
        optimizer.step()
        return body, head, optimizer

    assert found(program) == {}


def test_one_flat_function_is_no_row_of_them():
    def program():
        w = torch.tensor([8.0], requires_grad=True)
        (torch.sigmoid(w) * 1.0).sum().backward()
        return w

    assert found(program) == {}


def test_two_graphs_alive_are_those_of_this_step_and_the_last():
    def program():
        w = torch.ones(2, requires_grad=True)
        before = loss = (w * w).sum()
        for _ in range(6):
            loss, before = (w * w).sum(), loss
            w.grad = None
            loss.backward()
        return w, before

    assert found(program) == {}


def test_what_a_program_keeps_after_its_last_pass_is_not_held_against_it():
    def program():
        w = torch.ones(2, requires_grad=True)
        for _ in range(5):
            w.grad = None
            (w * w).sum().backward()
        return w, [(w * step).sum() for step in range(6)]

    assert found(program) == {}


def test_gradients_added_up_before_they_are_used_are_accumulated_on_purpose():
    def program():
        w = torch.ones(2, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            for _ in range(3):
                (w * w).sum().backward()
            optimizer.step()
        return w, optimizer

    assert check(recorded(program)) == []


def test_parts_of_one_net_that_have_the_same_name_may_share_by_mistake():
    class Head(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(3, 3)

        def forward(self, x):
            return self.fc(x)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.head = torch.nn.Linear(3, 3), Head()
            self.head.fc.weight = self.fc.weight

        def forward(self, x):
            return self.head(self.fc(x))

    def program():
        net = Net()
        net(torch.ones(2, 3)).sum().backward()
        return net

    assert found(program)["shared"].level == "note"


def test_the_write_that_is_named_came_after_it_was_saved():
    def program():
        w = torch.ones(3, requires_grad=True)
        b = w * 1
        b.add_(1)
        loss = (b * b).sum()
        b.add_(2)
        with pytest.raises(RuntimeError, match="inplace"):
            loss.backward()
        return w

    one = found(program)["changed-in-place"]
    assert "at version 1" in told(one)
    assert "to version 2" in told(one)


def test_a_result_that_no_pass_has_reached_would_keep_nothing():
    def program():
        w = torch.ones(3, requires_grad=True)
        other = w * 3
        (w * 2).sum().backward()
        return w, other

    timeline = recorded(program)
    assert answers(timeline, "other.grad")[0].kind == "unused"


def test_what_is_detached_to_be_looked_at_is_no_use_that_brought_nothing():
    def program():
        w = torch.ones(3, requires_grad=True)
        shown = (w * 5).detach().sum()
        (w * 2).sum().backward()
        return w, shown

    timeline = recorded(program)
    parts = why(timeline, timeline.at(len(timeline)), 1, "grad").parts
    assert [part.kind for part in parts] == ["contribution"]


def test_graphs_that_were_kept_until_a_function_ended_were_kept():
    def program():
        w, losses = torch.ones(2, requires_grad=True), []
        for _ in range(6):
            losses.append((w * w).sum())
            losses[-1].backward()
            w.grad = None

    assert "graphs-kept" in found(program)
