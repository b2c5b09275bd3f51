"""Recurrent cells and layers, as ``torch.lstm``, ``torch.gru_cell`` and others compute them: step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gviz.engine.nn.functional.dropout import torch_dropout
from gviz.engine.ops.joining import cat, stack
from gviz.engine.ops.matrix import linear
from gviz.engine.ops.recurrence import unsafe_split
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor

__all__: list[str] = []

State = tuple[Tensor, ...]
Step = Callable[[Tensor, State, Tensor, Tensor | None], State]
"""From the projected input and the state (with the weight and bias for the state) to the next state."""
Layers = Callable[..., tuple[Tensor, ...]]
"""What a whole net says at every step, and its last states."""


def _parts(gates: Tensor, count: int) -> State:
    parts: State = unsafe_split(gates, split_size=gates.shape[-1] // count, dim=gates.ndim - 1)
    return parts


def _tanh_step(projected: Tensor, state: State, weight: Tensor, bias: Tensor | None) -> State:
    return ((linear(state[0], weight, bias) + projected).tanh(),)


def _relu_step(projected: Tensor, state: State, weight: Tensor, bias: Tensor | None) -> State:
    return ((linear(state[0], weight, bias) + projected).relu(),)


def _lstm_step(projected: Tensor, state: State, weight: Tensor, bias: Tensor | None) -> State:
    hidden, cell = state
    enters, stays, new, leaves = _parts(linear(hidden, weight, bias) + projected, 4)
    enters, stays, new, leaves = enters.sigmoid(), stays.sigmoid(), new.tanh(), leaves.sigmoid()
    cell = (stays * cell).add_(enters * new)
    return leaves * cell.tanh(), cell


def _gru_step(projected: Tensor, state: State, weight: Tensor, bias: Tensor | None) -> State:
    (hidden,) = state
    from_input = _parts(projected, 3)
    from_state = _parts(linear(hidden, weight, bias), 3)
    forgets = (from_state[0] + from_input[0]).sigmoid()
    keeps = (from_state[1] + from_input[1]).sigmoid()
    new = (from_input[2] + from_state[2] * forgets).tanh()
    return ((hidden - new).mul_(keeps).add_(new),)


def _check_cell(input: Tensor, state: Tensor, w_ih: Tensor, w_hh: Tensor, name: str) -> None:
    """RuntimeError, in PyTorch's words, for sizes that do not fit."""
    if input.ndim < 2:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    if input.shape[-1] != w_ih.shape[1]:
        raise RuntimeError(f"input has inconsistent input_size: got {input.shape[-1]} expected {w_ih.shape[1]}")
    if state.shape[-1] != w_hh.shape[1]:
        raise RuntimeError(
            f"hidden{name} has inconsistent hidden_size: got {state.shape[-1]}, expected {w_hh.shape[1]}"
        )
    if input.shape[0] != state.shape[0]:
        raise RuntimeError(f"Input batch size {input.shape[0]} doesn't match hidden{name} batch size {state.shape[0]}")


def _cell(name: str, step: Step, doc: str) -> Callable[..., Tensor]:
    def cell(
        input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
    ) -> Tensor:
        _check_cell(input, hx, w_ih, w_hh, "0")
        return step(linear(input, w_ih, b_ih), (hx,), w_hh, b_hh)[0]

    cell.__name__ = cell.__qualname__ = name
    cell.__doc__ = doc
    return front(name, method=False)(cell)


rnn_tanh_cell = _cell("rnn_tanh_cell", _tanh_step, "One step of a simple recurrent network.")
rnn_relu_cell = _cell("rnn_relu_cell", _relu_step, "One step of a simple recurrent network with relu.")
gru_cell = _cell("gru_cell", _gru_step, "One step of a gated recurrent unit.")


@front("lstm_cell", method=False)
def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """One step of a long short-term memory: the next output and the next cell."""
    hidden, cell = hx
    _check_cell(input, hidden, w_ih, w_hh, "0")
    hidden, cell = _lstm_step(linear(input, w_ih, b_ih), (hidden, cell), w_hh, b_hh)
    return hidden, cell


def _direction(
    input: Tensor, state: State, weights: Sequence[Tensor], step: Step, backwards: bool
) -> tuple[Tensor, State]:
    """One layer in one direction: what it says at every step, and its last state."""
    w_ih, w_hh, *biases = weights
    b_ih, b_hh = biases or (None, None)
    steps = list(linear(input, w_ih, b_ih).unbind(0))
    said = []
    for projected in reversed(steps) if backwards else steps:
        state = step(projected, state, w_hh, b_hh)
        said.append(state[0])
    return stack(said[::-1] if backwards else said, 0), state


def _layers(
    input: Tensor,
    states: Sequence[State],
    params: Sequence[Tensor],
    step: Step,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[Tensor, list[State]]:
    """All layers, each from what the one before said; the last states, in the order of `states`."""
    directions, size = 1 + bidirectional, 4 if has_biases else 2
    weights = [params[i : i + size] for i in range(0, len(params), size)]
    last: list[State] = []
    for layer in range(num_layers):
        said = []
        for direction in range(directions):
            number = layer * directions + direction
            output, state = _direction(input, states[number], weights[number], step, bool(direction))
            said.append(output)
            last.append(state)
        input = cat(said, said[0].ndim - 1) if bidirectional else said[0]
        if dropout and train and layer < num_layers - 1:
            input = torch_dropout(input, dropout, True)
    return input, last


def _layer_function(name: str, step: Step, doc: str) -> Layers:
    def layer(
        input: Tensor,
        hx: Any,
        params: Sequence[Tensor],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> tuple[Tensor, ...]:
        if isinstance(hx, Tensor) and not hx.dtype.is_floating_point:  # the batch sizes of a packed sequence
            raise NotImplementedError(f"the built-in engine has no packed sequences; give torch.{name} a padded one")
        given = (hx,) if isinstance(hx, Tensor) else tuple(hx)
        steps = input.transpose(0, 1) if batch_first else input
        states = list(zip(*[t.unbind(0) for t in given], strict=True))
        shape = (has_biases, num_layers, dropout, train, bidirectional)
        output, last = _layers(steps, states, params, step, *shape)
        output = output.transpose(0, 1) if batch_first else output
        return (output, *[stack(parts, 0) for parts in zip(*last, strict=True)])

    layer.__name__ = layer.__qualname__ = name
    layer.__doc__ = doc
    return front(name, method=False)(layer)


rnn_tanh = _layer_function(
    "rnn_tanh", _tanh_step, "A simple recurrent network: what it says at every step, and its last state."
)
rnn_relu = _layer_function("rnn_relu", _relu_step, "`rnn_tanh` with relu.")
gru = _layer_function("gru", _gru_step, "A gated recurrent unit: what it says at every step, and its last state.")
lstm = _layer_function(
    "lstm", _lstm_step, "A long short-term memory: what it says at every step, its last output and cell."
)
