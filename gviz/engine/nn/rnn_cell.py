"""One step of a recurrent net, as modules."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any, ClassVar

from gviz.engine.creation import zeros
from gviz.engine.dtypes import dtype as DType
from gviz.engine.nn import init
from gviz.engine.nn.fresh import begin, empty
from gviz.engine.nn.functional.recurrent import gru_cell, lstm_cell, rnn_relu_cell, rnn_tanh_cell
from gviz.engine.nn.module import Module
from gviz.engine.nn.parameter import Parameter
from gviz.engine.tensor import Tensor


class RNNCellBase(Module):
    """Weights for the input and for the hidden state, one stretch of rows for each gate."""

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
        """Draw first values."""
        bound = 1.0 / sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        """Its sizes, and what is not as usual."""
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias is True else f", bias={self.bias}")

    def _step(self, function: Callable[..., Any], input: Tensor, hidden: Any) -> Any:
        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return function(input, hidden, *weights)

    def _check(self, what: str, tensor: Tensor) -> None:
        if tensor.dim() not in (1, 2):
            raise ValueError(f"{type(self).__name__}: Expected {what} to be 1D or 2D, got {tensor.dim()}D instead")

    def _batched(self, function: Callable[..., Tensor], input: Tensor, hx: Tensor | None) -> Tensor:
        """One step from a hidden state (zeros if None), also for a single sample."""
        self._check("input", input)
        if hx is not None:
            self._check("hidden", hx)
        single = input.dim() == 1
        rows = input.unsqueeze(0) if single else input
        hidden = self._zeros(rows) if hx is None else hx.unsqueeze(0) if single else hx
        result: Tensor = self._step(function, rows, hidden)
        return result.squeeze(0) if single else result

    def _zeros(self, input: Tensor) -> Tensor:
        made: Tensor = zeros(input.shape[0], self.hidden_size, dtype=input.dtype)
        return made


class RNNCell(RNNCellBase):
    """A step of a simple recurrent net."""

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
        """Its sizes, and what is not as usual."""
        usual = self.nonlinearity == "tanh"
        return super().extra_repr() + ("" if usual else f", nonlinearity={self.nonlinearity}")


class GRUCell(RNNCellBase):
    """A step of a gated recurrent unit."""

    gates = 3

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next hidden state."""
        return self._batched(gru_cell, input, hx)


class LSTMCell(RNNCellBase):
    """A step of a long short-term memory."""

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
