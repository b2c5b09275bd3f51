import numpy as np
import pytest
from recording import timeline_of
from stories import demo, value

from gviz import engine as torch
from gviz.events import GradFlowed, NodeCreated, OpSeen, Output, StepStarted
from gviz.explain.formula import attribute_words, with_numbers
from gviz.explain.outgoing_gradients import outgoing_gradients
from gviz.explain.value_computation import computation
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline
from gviz.values.value import capture


@pytest.mark.parametrize(
    ("text", "words", "result"),
    [
        ("self * other", {"self": "3 (x)", "other": "-6 (a)"}, "3 (x) * -6 (a)"),
        ("g * other", {"other": "-6"}, "g * -6"),
        ("self ** exponent", {"self": "-2 (x)", "exponent": "3"}, "(-2 (x)) ** 3"),
        ("-self", {"self": "-0.5 (x)"}, "-(-0.5 (x))"),
        ("-g * other", {"g": "-1", "other": "-2"}, "-(-1) * -2"),
        ("self - other", {"self": "3", "other": "-2"}, "3 - -2"),
        ("g · cos(self)", {"self": "0.5", "cos": "no"}, "g · cos(0.5)"),
        ("g.sum(dim) * selfish", {"self": "1", "dim": "0", "g": "G"}, "g.sum(0) * selfish"),
        ("g @ other.mT", {"g": "g", "other": "W"}, "g @ W.mT"),
        ("__import__('os')", {"os": "1"}, "__import__('1')"),
    ],
)
def test_names_become_numbers_as_text(text, words, result):
    assert with_numbers(text, words) == result


def test_a_value_is_explained_by_its_formula_with_numbers():
    timeline = demo()
    assert computation(timeline, 4).text == "3 (x) * -6 (a) = -18"
    assert [operand.name for operand in computation(timeline, 4).operands] == ["x", "a"]
    assert computation(timeline, 1).text == ""


def test_a_share_says_rule_numbers_and_what_it_was_added_to():
    timeline = demo()
    first, second = outgoing_gradients(timeline, timeline.at(21), 4)
    assert (first.rule, first.numbers, first.nth, first.expected) == ("g * a", "1 * -6", 1, 2)
    assert (first.before, float(first.after.array())) == (None, -6.0)
    assert (second.numbers, float(second.before.array()), float(second.after.array())) == ("1 * 3", 1.0, 4.0)
    assert (second.nth, second.expected, second.event) == (2, 2, 19)


def test_shares_know_only_what_has_happened():
    timeline = demo()
    assert [share.event for share in outgoing_gradients(timeline, timeline.at(7), 4)] == [0, 0]
    assert [share.numbers for share in outgoing_gradients(timeline, timeline.at(7), 4)] == ["g * -6", "g * 3"]
    assert [share.event for share in outgoing_gradients(timeline, timeline.at(18), 4)] == [18, 0]


def broadcast():
    add = OpSeen(1, "Add", "AddBackward0", ("self", "other"), ("g", "g"), (), "self + other")
    leaf = OpSeen(2, "Leaf", "", (), (), ())
    big, small = capture(np.ones((8, 3))), capture(np.ones(3))

    def made(node, kind, op, inputs, array, tracked=True):
        return NodeCreated(node, op, kind, inputs, (Output(array, node),), (), tracked, "", 0, 0)

    return Timeline(
        MemoryLog([
            add, leaf,
            made(1, "constant", 2, (), big, False), made(2, "leaf", 2, (), small),
            made(3, "op", 1, ((1, 0), (2, 0)), big),
            StepStarted(1, 3, (big,)), GradFlowed(1, 3, 1, 2, 0, small),
        ])
    )  # fmt: skip


def test_a_broadcast_input_says_what_is_summed_and_a_constant_why_it_gets_nothing():
    timeline = broadcast()
    constant, leaf = outgoing_gradients(timeline, timeline.at(5), 3)
    assert constant.missing == "needs no gradient"
    assert leaf.reduced == "dim 0"
    assert (leaf.numbers, leaf.shapes) == ("g", "g (8,3)")


def test_nothing_of_a_trace_is_evaluated():
    op = OpSeen(1, "Evil", "E", ("self",), ("__import__('os').abort()",), (), "exit()")
    made = NodeCreated(1, 1, "op", (), (Output(value(1.0), 1),), (("x", "exit()"),), True, "", 0, 0)
    assert computation(Timeline(MemoryLog([op, made])), 1).text == "exit() = 1"


def test_a_transposed_operand_is_called_as_in_the_program():
    assert with_numbers("self.T @ g", {"self": "X"}) == "X.T @ g"
    assert with_numbers("g + self.shape", {"self": "X"}) == "g + self.shape"


def test_a_formula_has_few_numbers_and_long_names_and_the_shapes_stand_behind_it():
    def program():
        x = torch.ones(4, 8, requires_grad=True)
        w = torch.tensor([[2.0]] * 8, requires_grad=True)
        c = torch.tensor(3.0, requires_grad=True)
        y = x @ w
        z = y.tanh() * c
        z.sum().backward()

    timeline = timeline_of(program)
    node = {timeline.info(node).name or timeline.info(node).op.name: node for node in timeline.nodes}
    product, tanh = computation(timeline, node["y"]), computation(timeline, node["tanh"])
    assert (product.formula, product.shapes) == ("x @ w", "x (4,8), w (8,1)")
    assert product.text == "x @ w = [[16] [16] [16] [16]], with x (4,8), w (8,1)"
    assert product.brief == "x @ w = [[16] [16] [16] [16]]"
    assert (tanh.formula, tanh.shapes) == ("tanh([[16] [16] [16] [16]] (y))", "")
    (to_x, to_w) = outgoing_gradients(timeline, timeline.at(len(timeline)), node["y"])
    assert (to_x.rule, to_x.shapes) == ("g @ w.T", "w (8,1)")
    assert (to_w.rule, to_w.shapes) == ("x.T @ g", "x (4,8)")


@pytest.mark.parametrize(("shape", "dim", "count"), [((4,), None, 4), ((2, 3), 1, 3), ((2, 3), None, 6)])
def test_a_mean_says_of_how_many_elements(shape, dim, count):
    def program():
        x = torch.ones(shape, requires_grad=True)
        (x.mean() if dim is None else x.mean(dim)).sum().backward()

    timeline = timeline_of(program)
    mean = next(node for node in timeline.nodes if timeline.info(node).op.name == "mean")
    (share,) = outgoing_gradients(timeline, timeline.at(len(timeline)), mean)
    assert share.rule == ("g / number of elements" if dim is None else f"g / size of dim {dim}")
    assert share.numbers.endswith(f" / {count}")


VARIANCES = {
    "plain": (lambda c: c.var(), "variance of [1 2 3 4] (c) over all dims = 1.667", "(4 - 1)"),
    "biased": (lambda c: c.var(unbiased=False), "variance of [1 2 3 4] (c) over all dims = 1.25", "(4 - 0)"),
    "over a dim": (lambda c: c.var(0), "variance of [1 2 3 4] (c) over dim 0 = 1.667", "(4 - 1)"),
    "deviation": (lambda c: c.std(), "standard deviation of [1 2 3 4] (c) over all dims = 1.291", "(4 - 1)), 0"),
}


@pytest.mark.parametrize(("function", "text", "freedom"), VARIANCES.values(), ids=VARIANCES)
def test_what_was_left_out_reads_as_what_it_stands_for(function, text, freedom):
    def program():
        c = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
        d = function(c)
        return c, d

    timeline = timeline_of(program)
    node = timeline.nodes[-1]
    assert computation(timeline, node).text == text
    (share,) = outgoing_gradients(timeline, timeline.at(len(timeline)), node)
    assert freedom in share.numbers


def test_weights_that_were_not_given_are_one():
    words = attribute_words((("weight", "None"), ("bias", "None"), ("dim", "1")))
    assert words == {"weight": "1", "bias": "0", "dim": "dim 1"}
    assert with_numbers("-g * weight / total", {"g": "2", **words}) == "-2 * 1 / total"
