"""Recurrent nets over whole sequences, as modules."""

from __future__ import annotations

from math import sqrt
from numbers import Number
from typing import Any, ClassVar

from gviz.engine.creation import zeros
from gviz.engine.dtypes import dtype as DType
from gviz.engine.nn import init
from gviz.engine.nn.fresh import begin, empty
from gviz.engine.nn.functional.recurrent import Layers, gru, lstm, rnn_relu, rnn_tanh
from gviz.engine.nn.module import Module
from gviz.engine.nn.parameter import Parameter
from gviz.engine.tensor import Tensor
from gviz.site import warn


class RNNBase(Module):
    """Layers of recurrent nets, in one or both directions: their weights, and the checks of what they are given."""

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
        self._names = [self._make_weights(layer, back, device, dtype) for layer, back in self._passes()]
        begin(self)

    def _passes(self) -> list[tuple[int, bool]]:
        """Every layer in every direction."""
        directions = (False, True) if self.bidirectional else (False,)
        return [(layer, back) for layer in range(self.num_layers) for back in directions]

    def _make_weights(self, layer: int, back: bool, device: Any, dtype: DType | None) -> list[str]:
        """The weights of one layer in one direction; their names."""
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
        """Draw first values."""
        bound = 1.0 / sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Nothing: the weights may lie in memory as they like."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The weights, one list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._names]

    def _run(self, function: Layers, input: Tensor, states: Any) -> tuple[Tensor, ...]:
        weights = [weight for weights in self.all_weights for weight in weights]
        options = (self.bias, self.num_layers, self.dropout, self.training, self.bidirectional, self.batch_first)
        return function(input, states, weights, *options)

    def _check_input(self, input: Tensor) -> None:
        weight = self.all_weights[0][0]
        if input.dtype != weight.dtype:
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
        made: Tensor = zeros(*self._state_shape(input, width), dtype=input.dtype)
        return made

    def _check_state(self, state: Tensor, input: Tensor, width: int, name: str) -> None:
        expected = self._state_shape(input, width)
        if tuple(state.shape) != expected:
            raise RuntimeError(f"Expected {name} size {expected}, got {list(state.shape)}")

    def extra_repr(self) -> str:
        """Its sizes, and what is not as usual."""
        usual = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0}
        usual["bidirectional"] = False
        parts = [f"{name}={getattr(self, name)}" for name, value in usual.items() if getattr(self, name) != value]
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *parts])


class _OneState(RNNBase):
    """Recurrent nets whose state is one tensor."""

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
    """Simple recurrent nets."""

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
        """The output of every step, and the last hidden state of every layer."""
        return self._forward("RNN", rnn_tanh if self.mode == "RNN_TANH" else rnn_relu, input, hx, "tensor instead")


class GRU(_OneState):
    """Gated recurrent units."""

    gates = 3

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The output of every step, and the last hidden state of every layer."""
        return self._forward("GRU", gru, input, hx, "instead")


class LSTM(RNNBase):
    """Long short-term memories."""

    gates = 4

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)
        if self.proj_size:
            raise RuntimeError("gviz's built-in engine has no LSTM with projections yet; leave proj_size out")

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """The output of every step, and the last hidden and cell state of every layer."""
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
    wanted, kind = (2, "unbatched") if single else (3, "batched")
    if hx[0].dim() != wanted or hx[1].dim() != wanted:
        raise RuntimeError(
            f"For {kind} {wanted}-D input, hx and cx should also be {wanted}-D but got ({hx[0].dim()}-D, "
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
