"""What modules and optimizers say: scopes, names, steps."""

import pytest
from heard import Heard, number

import gviz.engine as torch
from gviz import events as e
from gviz.engine import nn
from gviz.engine.modes import thread


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
        self.head = nn.Linear(3, 1)
        self.again = self.head

    def forward(self, x):
        return self.head(self.body(x)).sum()


class Fails(nn.Module):
    def forward(self, x):
        raise ValueError("no")


def test_every_module_call_is_a_scope_with_its_path():
    net = Net()
    heard = Heard(lambda: net(torch.ones(4, 2)))
    entered = heard.all(e.ScopeEntered)
    assert [(s.scope, s.parent, s.name, s.kind) for s in entered] == [
        (1, 0, "Net", "Net"),
        (2, 1, "Net.body", "Sequential"),
        (3, 2, "Net.body.0", "Linear"),
        (4, 2, "Net.body.1", "Tanh"),
        (5, 1, "Net.head", "Linear"),
    ]
    assert [s.scope for s in heard.all(e.ScopeLeft)] == [3, 4, 2, 5, 1]
    scopes = {heard.ops[c.op].name: c.scope for c in heard.nodes.values() if c.kind == "op"}
    assert scopes == {"t": 5, "addmm": 5, "tanh": 4, "sum": 1}


def test_parameters_are_named_once_by_their_path():
    net = Net()

    def program():
        for _ in range(2):
            net(torch.ones(1, 2))

    heard = Heard(program)
    named = {n.node: n.name for n in heard.all(e.Named)}
    assert list(named.values()) == ["body.0.weight", "body.0.bias", "head.weight", "head.bias"]
    assert len(heard.all(e.Named)) == 4
    assert {heard.nodes[node].kind for node in named} == {"parameter"}
    assert [number(heard.nodes[node].outputs[0].value) for node in named] == [p.tolist() for p in net.parameters()]
    assert len(Heard(program).all(e.Named)) == 4


def test_a_module_called_on_its_own_has_its_class_as_path():
    net = Net()
    heard = Heard(lambda: (net.head(torch.ones(3)), net.body(torch.ones(2))))
    assert [s.name for s in heard.all(e.ScopeEntered)] == ["Linear", "Sequential", "Sequential.0", "Sequential.1"]


def test_a_scope_ends_with_an_exception():
    net = nn.Sequential(nn.Identity(), Fails())

    def program():
        with pytest.raises(ValueError, match="no"):
            net(torch.ones(1))
        return torch.ones(1) * 2

    heard = Heard(program)
    assert [s.scope for s in heard.all(e.ScopeLeft)] == [2, 3, 1]
    assert heard.created("mul").scope == 0
    assert (thread.scopes, thread.modules) == ([], [])


def test_a_recording_that_ends_inside_a_call_leaves_no_scope_behind():
    from gviz import emit

    class Stops(nn.Module):
        def forward(self, x):
            emit.detach()
            return x

    assert Heard(lambda: Stops()(torch.ones(1))).all(e.ScopeLeft) == []
    assert thread.scopes == []


def test_recording_changes_no_result():
    net, x = Net(), torch.ones(4, 2)
    expected = net(x).item()
    results = []
    Heard(lambda: results.append(net(x).item()))
    assert results == [expected]


def test_a_step_is_said_after_the_writes_it_made():
    layer = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.5, momentum=0.9)

    def program():
        for _ in range(2):
            optimizer.zero_grad()
            layer(torch.ones(1, 2)).sum().backward()
            optimizer.step()

    heard = Heard(program)
    nodes = {n.name: n.node for n in heard.all(e.Named)}
    steps = heard.all(e.OptimizerStepped)
    assert [(s.kind, s.parameters) for s in steps] == [("SGD", (nodes["weight"], nodes["bias"]))] * 2
    storage = heard.nodes[nodes["weight"]].outputs[0].storage
    writes = [w for w in heard.all(e.StorageWritten) if w.storage == storage]
    assert len(writes) == 2
    assert number(writes[-1].value) == layer.weight.tolist()[0]
    order = [type(event).__name__ for event in heard.events if event in writes or event in steps]
    assert order == ["StorageWritten", "OptimizerStepped"] * 2
    assert [s.how for s in heard.all(e.GradSet)] == ["none", "none"]
    assert all(heard.nodes[w.node].untracked == "no_grad" for w in writes)


def test_a_parameter_made_while_listening_is_a_parameter_also_a_frozen_one():
    heard = Heard(lambda: (nn.Linear(2, 1), nn.Parameter(torch.ones(1), requires_grad=False)))
    kinds = [c.kind for c in heard.nodes.values()]
    assert kinds.count("parameter") == 3
    assert kinds[-1] == "parameter"
