"""Zero gradients of many leaves with one cause."""

from recording import timeline_of

import gviz.engine as torch
from gviz.explain.check import check
from gviz.explain.findings import zero


def dead_at_its_end(layers):
    def program():
        h = torch.ones(2)
        weights = [torch.tensor([0.5, 0.2], requires_grad=True) for _ in range(layers)]
        for weight in weights:
            h = torch.cos(h * weight)
        torch.relu(h - 10.0).sum().backward()

    return timeline_of(program)


def test_a_way_that_many_leaves_share_is_gone_back_once(monkeypatch):
    asked = []
    arrived = zero.arriving_gradient
    monkeypatch.setattr(zero, "arriving_gradient", lambda *given: asked.append(1) or arrived(*given))
    timeline = dead_at_its_end(30)
    (found,) = check(timeline)
    assert (found.finding.kind, found.more) == ("dead-units", 29)
    assert len(asked) < len(timeline.nodes)


def test_a_number_that_is_zero_may_be_an_input():
    def program():
        x1, x2 = torch.tensor(2.0, requires_grad=True), torch.tensor(0.0, requires_grad=True)
        w1, w2 = torch.tensor(-3.0, requires_grad=True), torch.tensor(1.0, requires_grad=True)
        (x1 * w1 + x2 * w2 + 6.9).tanh().backward()

    (found,) = check(timeline_of(program))
    assert (found.level, found.finding.kind, found.finding.fix) == ("suspicion", "masked", "")


def test_a_result_that_became_a_leaf_is_asked_about():
    def program():
        w = (torch.ones(3) * 2).requires_grad_()
        (w * torch.zeros(3)).sum().backward()

    (found,) = check(timeline_of(program))
    assert found.finding.kind == "masked"


def test_a_mask_in_half_precision_is_no_underflow():
    def program():
        w = torch.ones(4, requires_grad=True)
        (w.half() * torch.zeros(4, dtype=torch.float16)).sum().backward()

    (found,) = check(timeline_of(program))
    assert found.finding.kind == "masked"
