"""``torch.nn.utils.rnn``: sequences of different lengths in one tensor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gviz.engine.ops.joining import unbind
from gviz.engine.tensor import Tensor
from gviz.engine.unsupported_names import lookup_in


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Combines sequences in one tensor; the shorter ones are padded."""
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    listed = list(sequences)
    if not listed:
        raise RuntimeError("received an empty list of sequences")
    longest = max(len(sequence) for sequence in listed)
    shape = (len(listed), longest) if batch_first else (longest, len(listed))
    padded: Tensor = listed[0].new_full((*shape, *listed[0].shape[1:]), padding_value)
    for number, sequence in enumerate(listed):
        length = len(sequence)
        place = slice(0, length) if padding_side == "right" else slice(longest - length, longest)
        padded[(number, place) if batch_first else (place, number)] = sequence
    return padded


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences without their padding."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    places = unbind(rows, 0)
    return [row[:length] for row, length in zip(places, lengths.tolist(), strict=True)]


__getattr__ = lookup_in(__name__)
