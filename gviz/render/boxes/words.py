"""What the words and numbers in the rows of boxes mean, wherever they are explained."""

from __future__ import annotations

Rows = tuple[tuple[str, str], ...]

NUMBERS: Rows = (
    ("(2,4) [-0.6 .. 0.7]", "a tensor: its shape, its least and its greatest element"),
    ("μ  rms", "its mean, and its root mean square: how large an element is as a rule"),
    ("|g|", "the length of a gradient (L2 norm): the root of the sum of its squares"),
    ("60% zero, 3 nan, 1 inf", "how many of its elements are so"),
    ("f64, i64", "its dtype, where it is not float32"),
    ("-6 (1 of 2)", "the gradient so far: one of the two contributions has arrived"),
)
"""What is said of the numbers of a tensor."""

RULES: Rows = (
    ("to #1 x: g * y", "what the backward rule of this node sends to its input #1, called x"),
    ("g", "the gradient that came into this node: how the result changes with its value"),
    ("@  .T", "matrix product; transposed, as the weight of a linear layer is: x @ weight.T + bias"),
    ("+= 3", "what is added: by one line into a node, or by a pass to what .grad was"),
    ("incoming, .grad", "what arrives at a leaf in this pass; what all passes have added up, for the optimizer"),
    (
        "adds, total",
        "of a leaf drawn once for each use: what this use brings, what all have brought in this pass",
    ),
    ("gives, adds", "of a closed call: its result; the length of what it has sent to its parameters"),
)
"""What is said of gradients."""
