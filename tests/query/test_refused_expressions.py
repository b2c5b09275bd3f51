"""What an expression cannot be: what, why, and what is written instead, in one line."""

import pytest
from driving import transcript
from stories import demo

ANSWERS = {
    "#1.grad.#2": "#2 is a node, not a part of another; hint: only #2.",
    "x.grad.grad": "hint: a gradient of a gradient is a node of its own, which create_graph makes: the tape lists it.",
    "x.grad_fn.foo": ".grad_fn is no attribute of a recorded tensor; hint: the command node shows it.",
    "x.foo()": "hint: a tensor has .sum() .max() .mean() .norm() .shape .T and others of numpy.",
    "x.detach()": "hint: leave it out: what is typed here has no history.",
    "x.max(dim=0)": "hint: the dimension is called axis here, as in numpy.",
    "x.size()": "hint: x.shape, x.size is the number of elements.",
    "x = 3": "x = 3 is no expression; hint: set x = 5 asks what would follow from a value; == compares.",
    "x ==": "x == is no expression; hint: x.grad, #4,",
    "torch.sum(x)": "there is no torch.sum here; hint: np.sum.",
    "nosuch.grad": "there is no nosuch.grad here; hint:",
    "value[99]": "there is no value here; hint: conditions ask for value,",
    "1/0": "1/0: division by zero.",
}


@pytest.mark.parametrize("text", ANSWERS)
@pytest.mark.parametrize("command", ["print", "whatis", "pp", "copy"])
def test_it_is_said_in_a_line(command, text):
    timeline = demo()
    answer = transcript(timeline, f"{command} {text}", at=len(timeline)).partition(f"(gviz) {command} {text}\n")[2]
    assert ANSWERS[text] in answer
    assert answer.count("\n") == 1


@pytest.mark.parametrize("command", ["print", "copy", "watch", "last", "first"])
def test_what_is_nested_too_deeply_is_refused_with_the_reason(command):
    assert "… is no expression; it is nested too deeply." in transcript(demo(), f"{command} {'-' * 900}x")


def test_what_is_too_long_is_refused_with_the_reason():
    assert "… is no expression; it is longer than 1000 characters." in transcript(demo(), f"print {'x' * 1001}")
