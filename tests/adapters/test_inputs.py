"""What a call was given is an input of what it made, also where no gradient goes to it."""

import warnings

import pytest

from gviz.events import NodeCreated, OpSeen, Warned
from tests.adapters.recorded import RELEASE, events_of, of_kind

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
nn, functional = torch.nn, torch.nn.functional


class Graph:
    """What was announced, by the number of the node."""

    def __init__(self, program):
        log = events_of(program)
        self.ops = {event.op: event for event in of_kind(log, OpSeen)}
        self.made = {event.node: event for event in of_kind(log, NodeCreated)}

    def users(self, *numbers):
        """``(operation, slot)`` of every use of the constant that holds these numbers."""
        return [
            (self.ops[event.op].name, self.ops[event.op].slots[slot])
            for event in self.made.values()
            for slot, (node, _) in enumerate(event.inputs)
            if node and (value := self.made[node].outputs[0].value) is not None and value.array() is not None
            and self.made[node].kind == "constant" and value.array().ravel().tolist() == list(numbers)
        ]  # fmt: skip


@pytest.mark.parametrize("cell", [nn.RNNCell, nn.GRUCell])
def test_what_a_cell_is_given_is_used_where_it_is(cell):
    def program():
        x, h = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0, 5.0]])
        return cell(2, 3)(x, h)

    graph = Graph(program)
    assert graph.users(1.0, 2.0) == graph.users(3.0, 4.0, 5.0) == [("addmm", "mat1")]


def test_what_is_used_through_a_view_leads_back_to_it():
    x = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])
    graph = Graph(lambda: nn.Linear(2, 3)(x))
    assert graph.users(1.0, 2.0, 3.0, 4.0) == [("view", "self")]
    (view,) = [event for event in graph.made.values() if graph.ops[event.op].name == "view" and event.untracked]
    assert view.node in [node for event in graph.made.values() for node, _ in event.inputs]


def test_a_state_that_every_layer_uses_is_an_input_of_each():
    def program():
        state = torch.zeros(2, 1, 3), torch.ones(2, 1, 3)
        return nn.LSTM(2, 3, num_layers=2)(torch.tensor([[[5.0, 6.0]]]), state)

    graph = Graph(program)
    layers = [event for event in graph.made.values() if graph.ops[event.op].grad_fn == "MkldnnRnnLayerBackward0"]
    assert len(layers) == 2
    for layer in layers:
        slots = graph.ops[layer.op].slots
        assert slots[0] == "input"
        assert slots[-2:] == ("hx_", "cx_")
        assert all(node for node, _ in layer.inputs)


def test_arguments_fill_the_slots_of_their_names():
    def program():
        target, weight = torch.tensor([0.25, 0.75]), torch.tensor([2.0, 3.0])
        scores = torch.tensor([0.5, 1.0], requires_grad=True)
        return functional.binary_cross_entropy_with_logits(scores, target, pos_weight=weight)

    graph = Graph(program)
    name = "binary_cross_entropy_with_logits"
    assert graph.users(0.25, 0.75) == [(name, "target")]
    assert graph.users(2.0, 3.0) == [(name, "pos_weight")]


def test_no_operand_of_a_call_is_taken_for_a_number_within_it():
    def program():
        scores = torch.tensor([[0.5, 1.0]], requires_grad=True)
        target = torch.tensor([[0.25, 0.75]])
        return functional.kl_div(scores, target, reduction="batchmean")

    assert Graph(program).users(0.25, 0.75) == [("mul", "self")]


def test_what_is_used_nobody_knows_where_is_an_input_of_the_result():
    def program():
        one, other = (torch.tensor([values], requires_grad=True) for values in ([1.0, 2.0], [3.0, 4.0]))
        return functional.cosine_embedding_loss(one, other, torch.tensor([-1.0]))

    assert Graph(program).users(-1.0) == [("mean", "target of cosine_embedding_loss")]


def test_what_autocast_converted_is_used():
    def program():
        with torch.autocast("cpu", torch.bfloat16):
            return nn.Linear(2, 3)(torch.tensor([[1.0, 2.0]]))

    assert Graph(program).users(1.0, 2.0) == [("to", "self")]


def test_a_layer_that_is_not_tracked_leads_on():
    def program():
        return nn.Sequential(nn.AvgPool1d(2), nn.Linear(1, 1))(torch.tensor([[1.0, 3.0]]))

    assert [name for name, _ in Graph(program).users(1.0, 3.0)] == ["avg_pool1d"]


def test_an_argument_that_is_not_there_is_no_input():
    graph = Graph(lambda: nn.Conv1d(1, 1, 1, bias=False)(torch.ones(1, 1, 2)))
    (convolution,) = [event for event in graph.made.values() if graph.ops[event.op].grad_fn == "ConvolutionBackward0"]
    assert len(convolution.inputs) == 2
    assert all(node for node, _ in convolution.inputs)


def test_hooks_of_saved_tensors_are_not_run():
    ran = []

    def program():
        with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, ran.append):
            return nn.RNNCell(2, 3)(torch.ones(1, 2), torch.zeros(1, 3))

    Graph(program)
    assert ran == []


def test_a_write_goes_into_what_was_there():
    def program():
        out = torch.tensor([7.0, 8.0])
        out[0] = torch.tensor(2.0, requires_grad=True)
        return out

    assert Graph(program).users(7.0, 8.0) == [("setitem", "input")]


def test_a_tensor_cut_from_its_past_is_a_new_one():
    def program():
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        state = w * 3
        state.detach_()
        return state * w

    graph = Graph(program)
    (cut,) = [event for event in graph.made.values() if event.untracked == "detach"]
    product = graph.made[max(graph.made)]
    assert [node for node, _ in product.inputs] == [cut.node, 1]


def test_what_scripted_code_is_given_is_used():
    def program():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # TorchScript is deprecated
            net = torch.jit.script(nn.Linear(2, 3))
        x = torch.tensor([[1.0, 2.0]])
        return net(x + 0).sum(), net(x).sum(), x

    if RELEASE < (2, 9):  # nobody hears of the call, and so what its nodes have saved may have hooks
        assert "version" in [event.unseen for event in of_kind(events_of(program), Warned)]
        return
    assert ("addmm", "mat1") in Graph(program).users(1.0, 2.0)
