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
