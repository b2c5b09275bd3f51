"""Recurrent networks: simple ones, GRU and LSTM; as functions, and as modules for whole sequences and for single steps.

A *step* computes the next state from the projected input and the state. A *cell* projects the input and does one step.
A network runs its step along the sequence, in one or both directions (`_direction`), layer by layer (`_layers`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from numbers import Number
from typing import Any, ClassVar, Self

from gviz.engine.argument_parser import all_tensors
from gviz.engine.creation import zeros
from gviz.engine.dtypes import dtype as DType
from gviz.engine.functions_and_methods import front
from gviz.engine.nn import init
from gviz.engine.nn._families_by_dimension import named
from gviz.engine.nn.dropout import torch_dropout
from gviz.engine.nn.module import Module
from gviz.engine.nn.parameter import Parameter, begin, empty
from gviz.engine.ops.joining import cat, stack, unsafe_split
from gviz.engine.ops.matrix_products import linear
from gviz.engine.tensor import Tensor
from gviz.source.call_stack import warn

State = tuple[Tensor, ...]
Step = Callable[[Tensor, State, Tensor, Tensor | None], State]
"""Computes the next state from the projected input, the state, and the weight and bias of the state."""
Layers = Callable[..., tuple[Tensor, ...]]
"""A whole network: returns its output at every step, and its last states."""


class RNNBase(Module):
    """Base class of recurrent networks with several layers and directions: weights, and checks of inputs."""

    gates: ClassVar[int]

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        _check_dropout(dropout, num_layers)
        _check_flags(bias=bias, batch_first=batch_first)
        _check_sizes(input_size, hidden_size, num_layers, proj_size)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._all_weights = [self._make_weights(layer, back, device, dtype) for layer, back in self._passes()]
        self._flat_weights_names = [name for names in self._all_weights for name in names]
        self._gather_weights()
        begin(self)

    def _gather_weights(self) -> None:
        self._flat_weights = [getattr(self, name, None) for name in self._flat_weights_names]

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets an attribute; a new weight is used from the next call on."""
        names = self.__dict__.get("_flat_weights_names", ())
        if name in names and "_flat_weights" in self.__dict__:
            self._flat_weights[names.index(name)] = value
        super().__setattr__(name, value)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        super()._apply(fn, recurse)
        self._gather_weights()
        return self

    def _passes(self) -> list[tuple[int, bool]]:
        """Run every layer in every direction."""
        directions = (False, True) if self.bidirectional else (False,)
        return [(layer, back) for layer in range(self.num_layers) for back in directions]

    def _make_weights(self, layer: int, back: bool, device: Any, dtype: DType | None) -> list[str]:
        """Create the weights of one layer in one direction. Return their names."""
        out = self.proj_size or self.hidden_size
        width = self.input_size if layer == 0 else out * (2 if self.bidirectional else 1)
        rows = self.gates * self.hidden_size
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, width), "weight_hh": (rows, out)}
        if self.bias:
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        names = {name: f"{name}_l{layer}{'_reverse' if back else ''}" for name in shapes}
        for name, shape in shapes.items():
            self.register_parameter(names[name], empty(*shape, device=device, dtype=dtype))
        return list(names.values())

    def reset_parameters(self) -> None:
        """Initializes the parameters."""
        bound = 1.0 / sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Does nothing: the memory layout of the weights does not matter."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The weights, one list per layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def _run(self, function: Layers, input: Tensor, states: Any) -> tuple[Tensor, ...]:
        options = (self.bias, self.num_layers, self.dropout, self.training, self.bidirectional, self.batch_first)
        return function(input, states, self._flat_weights, *options)

    def _check_input(self, input: Tensor) -> None:
        weight = self._flat_weights[0]
        if isinstance(weight, Tensor) and input.dtype != weight.dtype:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). Convert input: "
                f"input.to({weight.dtype}), or convert model: model.to({input.dtype})"
            )
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.shape[-1]}"
            )

    def _state_shape(self, input: Tensor, width: int) -> tuple[int, int, int]:
        batch = input.shape[0 if self.batch_first else 1]
        return self.num_layers * (2 if self.bidirectional else 1), batch, width

    def _zeros(self, input: Tensor, width: int) -> Tensor:
        state: Tensor = zeros(*self._state_shape(input, width), dtype=input.dtype)
        return state

    def _check_state(self, state: Tensor, input: Tensor, width: int, name: str) -> None:
        expected = self._state_shape(input, width)
        if tuple(state.shape) != expected:
            raise RuntimeError(f"Expected {name} size {expected}, got {list(state.shape)}")

    def extra_repr(self) -> str:
        """The sizes, and options that differ from the default."""
        defaults = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0}
        defaults["bidirectional"] = False
        parts = [f"{name}={getattr(self, name)}" for name, value in defaults.items() if getattr(self, name) != value]
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *parts])


class _OneState(RNNBase):
    """Base class of recurrent networks whose state is one tensor."""

    def _forward(
        self, name: str, function: Layers, input: Tensor, hx: Tensor | None, got: str
    ) -> tuple[Tensor, Tensor]:
        if input.dim() not in (2, 3):
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {input.dim()}D {got}")
        single = input.dim() == 2
        place = 0 if self.batch_first else 1
        if hx is not None and hx.dim() != input.dim():
            kind, dims = ("unbatched 2-D", "2-D") if single else ("batched 3-D", "3-D")
            raise RuntimeError(f"For {kind} input, hx should also be {dims} but got {hx.dim()}-D tensor")
        if single:
            input = input.unsqueeze(place)
            hx = None if hx is None else hx.unsqueeze(1)
        hidden = self._zeros(input, self.hidden_size) if hx is None else hx
        self._check_input(input)
        self._check_state(hidden, input, self.hidden_size, "hidden")
        output, last = self._run(function, input, hidden)
        return (output.squeeze(place), last.squeeze(1)) if single else (output, last)


class RNN(_OneState):
    """A simple recurrent network."""

    gates = 1

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        nonlinearity = args[3] if len(args) > 3 else kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(f"RNN_{nonlinearity.upper()}", *args[:3], *args[4:], **kwargs)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Returns the output of every step, and the last hidden state of every layer."""
        if self.mode not in ("RNN_TANH", "RNN_RELU"):
            raise AssertionError(f"mode must be RNN_TANH or RNN_RELU, got {self.mode}")
        return self._forward("RNN", rnn_tanh if self.mode == "RNN_TANH" else rnn_relu, input, hx, "tensor instead")


class GRU(_OneState):
    """A gated recurrent unit (GRU)."""

    gates = 3

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Returns the output of every step, and the last hidden state of every layer."""
        return self._forward("GRU", gru, input, hx, "instead")


class LSTM(RNNBase):
    """A long short-term memory (LSTM)."""

    gates = 4

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)
        if self.proj_size:
            raise RuntimeError("gviz's built-in engine has no LSTM with projections yet; leave proj_size out")

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Returns the output of every step, and the last hidden and cell state of every layer."""
        if input.dim() not in (2, 3):
            raise ValueError(f"LSTM: Expected input to be 2D or 3D, got {input.dim()}D instead")
        single = input.dim() == 2
        place = 0 if self.batch_first else 1
        if hx is not None:
            _check_dims(hx, single)
            hx = (hx[0].unsqueeze(1), hx[1].unsqueeze(1)) if single else hx
        if single:
            input = input.unsqueeze(place)
        out = self.proj_size or self.hidden_size
        states = (self._zeros(input, out), self._zeros(input, self.hidden_size)) if hx is None else hx
        self._check_input(input)
        self._check_state(states[0], input, out, "hidden[0]")
        self._check_state(states[1], input, self.hidden_size, "hidden[1]")
        output, hidden, cell = self._run(lstm, input, states)
        if single:
            return output.squeeze(place), (hidden.squeeze(1), cell.squeeze(1))
        return output, (hidden, cell)


def _check_dims(hx: tuple[Tensor, Tensor], single: bool) -> None:
    dims, kind = (2, "unbatched") if single else (3, "batched")
    if hx[0].dim() != dims or hx[1].dim() != dims:
        raise RuntimeError(
            f"For {kind} {dims}-D input, hx and cx should also be {dims}-D but got ({hx[0].dim()}-D, "
            f"{hx[1].dim()}-D) tensors"
        )


def _check_dropout(dropout: Any, num_layers: int) -> None:
    if not isinstance(dropout, Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:  # type: ignore[operator]
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
        )
    if dropout > 0 and num_layers == 1:  # type: ignore[operator]  # it is a real number
        warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
            f"greater than 1, but got dropout={dropout} and num_layers={num_layers}",
        )


def _check_flags(**flags: Any) -> None:
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise TypeError(f"{name} should be of type bool, got: {type(value).__name__}")


def _check_sizes(input_size: Any, hidden_size: Any, num_layers: int, proj_size: int) -> None:
    for name, size in (("input_size", input_size), ("hidden_size", hidden_size)):
        if not isinstance(size, int):
            raise TypeError(f"{name} should be of type int, got: {type(size).__name__}")
        if size <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if num_layers <= 0:
        raise ValueError("num_layers must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


class RNNCellBase(Module):
    """Base class of cells: weights for the input and for the hidden state, with a block of rows for each gate."""

    gates: ClassVar[int]
    weight_ih: Parameter
    weight_hh: Parameter
    bias_ih: Parameter | None
    bias_hh: Parameter | None

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: DType | None = None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = self.gates * hidden_size
        self.weight_ih = empty(rows, input_size, device=device, dtype=dtype)
        self.weight_hh = empty(rows, hidden_size, device=device, dtype=dtype)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, empty(rows, device=device, dtype=dtype) if bias else None)
        begin(self)

    def reset_parameters(self) -> None:
        """Initializes the parameters."""
        bound = 1.0 / sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        """The sizes, and options that differ from the default."""
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias is True else f", bias={self.bias}")

    def _step(self, function: Callable[..., Any], input: Tensor, hidden: Any) -> Any:
        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return function(input, hidden, *weights)

    def _check(self, what: str, tensor: Tensor) -> None:
        if tensor.dim() not in (1, 2):
            raise ValueError(f"{type(self).__name__}: Expected {what} to be 1D or 2D, got {tensor.dim()}D instead")

    def _batched(self, function: Callable[..., Tensor], input: Tensor, hx: Tensor | None) -> Tensor:
        """Run one step from a hidden state (zeros if None); also accepts a single sample."""
        self._check("input", input)
        if hx is not None:
            self._check("hidden", hx)
        single = input.dim() == 1
        rows = input.unsqueeze(0) if single else input
        hidden = self._zeros(rows) if hx is None else hx.unsqueeze(0) if single else hx
        result: Tensor = self._step(function, rows, hidden)
        return result.squeeze(0) if single else result

    def _zeros(self, input: Tensor) -> Tensor:
        state: Tensor = zeros(input.shape[0], self.hidden_size, dtype=input.dtype)
        return state


class RNNCell(RNNCellBase):
    """One step of a simple recurrent network."""

    gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next hidden state."""
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._batched(rnn_tanh_cell if self.nonlinearity == "tanh" else rnn_relu_cell, input, hx)

    def extra_repr(self) -> str:
        """The sizes, and options that differ from the default."""
        usual = self.nonlinearity == "tanh"
        return super().extra_repr() + ("" if usual else f", nonlinearity={self.nonlinearity}")


class GRUCell(RNNCellBase):
    """One step of a gated recurrent unit."""

    gates = 3

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next hidden state."""
        return self._batched(gru_cell, input, hx)


class LSTMCell(RNNCellBase):
    """One step of a long short-term memory."""

    gates = 4

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """The next hidden state and cell state."""
        self._check("input", input)
        for position, state in enumerate(hx or ()):
            self._check(f"hx[{position}]", state)
        single = input.dim() == 1
        rows = input.unsqueeze(0) if single else input
        if hx is None:
            start = self._zeros(rows)
            states = (start, start)
        else:
            states = (hx[0].unsqueeze(0), hx[1].unsqueeze(0)) if single else hx
        hidden, cell = self._step(lstm_cell, rows, states)
        return (hidden.squeeze(0), cell.squeeze(0)) if single else (hidden, cell)


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
    """Raise RuntimeError, with PyTorch's text, for mismatched sizes."""
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
    @front(name, method=False)
    @named(name, doc)
    def cell(
        input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
    ) -> Tensor:
        _check_cell(input, hx, w_ih, w_hh, "0")
        return step(linear(input, w_ih, b_ih), (hx,), w_hh, b_hh)[0]

    return cell


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
    """One step of a long short-term memory. Returns the next output and the next cell state."""
    hidden, cell = hx
    _check_cell(input, hidden, w_ih, w_hh, "0")
    hidden, cell = _lstm_step(linear(input, w_ih, b_ih), (hidden, cell), w_hh, b_hh)
    return hidden, cell


def _direction(
    input: Tensor, state: State, weights: Sequence[Tensor], step: Step, backwards: bool
) -> tuple[Tensor, State]:
    """Run one layer in one direction. Return its output at every step, and its last state."""
    w_ih, w_hh, *biases = weights
    b_ih, b_hh = biases or (None, None)
    steps = list(linear(input, w_ih, b_ih).unbind(0))
    outputs = []
    for projected in reversed(steps) if backwards else steps:
        state = step(projected, state, w_hh, b_hh)
        outputs.append(state[0])
    return stack(outputs[::-1] if backwards else outputs, 0), state


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
    """Run all layers, each on the output of the previous one.

    Returns the output, and the last states in the order of `states`.
    """
    directions, size = 1 + bidirectional, 4 if has_biases else 2
    all_tensors(params, 2)
    if len(params) % size:
        raise RuntimeError("got an incorrect number of RNN parameters")
    if bidirectional and (len(params) // size) % 2:
        raise RuntimeError("Odd number of params or hiddens given to a bidirectional RNN")
    if len(params) // size != num_layers * directions:
        raise RuntimeError("Expected more weights in stacked_rnn")
    weights = [params[i : i + size] for i in range(0, len(params), size)]
    last: list[State] = []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            number = layer * directions + direction
            output, state = _direction(input, states[number], weights[number], step, bool(direction))
            outputs.append(output)
            last.append(state)
        input = cat(outputs, outputs[0].ndim - 1) if bidirectional else outputs[0]
        if dropout and train and layer < num_layers - 1:
            input = torch_dropout(input, dropout, True)
    return input, last


def _layer_function(name: str, step: Step, doc: str) -> Layers:
    @front(name, method=False)
    @named(name, doc)
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
        initial = (hx,) if isinstance(hx, Tensor) else tuple(hx)
        steps = input.transpose(0, 1) if batch_first else input
        states = list(zip(*[t.unbind(0) for t in initial], strict=True))
        shape = (has_biases, num_layers, dropout, train, bidirectional)
        output, last = _layers(steps, states, params, step, *shape)
        output = output.transpose(0, 1) if batch_first else output
        return (output, *[stack(parts, 0) for parts in zip(*last, strict=True)])

    return layer


rnn_tanh = _layer_function(
    "rnn_tanh", _tanh_step, "A simple recurrent network: its output at every step, and its last state."
)
rnn_relu = _layer_function("rnn_relu", _relu_step, "`rnn_tanh` with relu.")
gru = _layer_function("gru", _gru_step, "A gated recurrent unit: its output at every step, and its last state.")
lstm = _layer_function(
    "lstm", _lstm_step, "A long short-term memory: its output at every step, its last output and cell."
)
