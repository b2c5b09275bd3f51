"""Datasets: sources of samples, by index or by iteration."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from math import floor, isclose
from typing import Any, Generic, TypeVar

from gviz.engine.random import Generator
from gviz.engine.random_tensors import randperm
from gviz.engine.tensor import Tensor
from gviz.source.call_stack import warn

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Base class of datasets with samples by index; subclasses define ``__getitem__`` and ``__len__``."""

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[Any]) -> Dataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """Base class of datasets that are iterated over; subclasses define ``__iter__``."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other: Dataset[Any]) -> Dataset[Any]:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """The rows of several tensors of equal length."""

    def __init__(self, *tensors: Tensor) -> None:
        if any(len(tensors[0]) != len(tensor) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple([tensor[index] for tensor in self.tensors])

    def __len__(self) -> int:
        return len(self.tensors[0])


class StackDataset(Dataset[Any]):
    """Combines the samples of several datasets of equal length as tuples or dictionaries."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, but both "
                "types are given."
            )
        listed = list(args or kwargs.values())
        if not listed:
            raise ValueError("At least one dataset should be passed")
        if any(len(dataset) != len(listed[0]) for dataset in listed):
            raise ValueError("Size mismatch between datasets")
        self.datasets: Any = args or kwargs
        self._length = len(listed[0])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple([dataset[index] for dataset in self.datasets])

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """Concatenates datasets."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = list(accumulate([len(dataset) for dataset in self.datasets]))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> T_co:
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        position = bisect_right(self.cumulative_sizes, idx)
        before = self.cumulative_sizes[position - 1] if position else 0
        sample: T_co = self.datasets[position][idx - before]
        return sample


class ChainDataset(IterableDataset[Any]):
    """Concatenates iterable datasets."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for dataset in self.datasets:
            yield from _iterable(dataset)

    def __len__(self) -> int:
        return sum(len(_iterable(dataset)) for dataset in self.datasets)


def _iterable(dataset: Any) -> Any:
    if not isinstance(dataset, IterableDataset):
        raise AssertionError("ChainDataset only supports IterableDataset")
    return dataset


class Subset(Dataset[T_co]):
    """A subset of a dataset, by indices."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        chosen = [self.indices[i] for i in indices]
        if callable(getattr(self.dataset, "__getitems__", None)):
            samples: list[Any] = self.dataset.__getitems__(chosen)
            return samples
        return [self.dataset[i] for i in chosen]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[int | float], generator: Generator | None = None) -> list[Subset[Any]]:
    """Splits a dataset at random into subsets of these lengths or fractions."""
    total = len(dataset)
    if isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _whole(lengths, total)
    if sum(lengths) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    counts = [int(length) for length in lengths]
    indices = randperm(total, generator=generator).tolist()
    ends = accumulate(counts)
    return [Subset(dataset, indices[end - count : end]) for end, count in zip(ends, counts, strict=True)]


def _whole(fractions: Sequence[int | float], total: int) -> list[int]:
    """Convert fractions to numbers of samples; the remainder goes to the first ones in turn."""
    for position, fraction in enumerate(fractions):
        if fraction < 0 or fraction > 1:
            raise ValueError(f"Fraction at index {position} is not between 0 and 1")
    counts = [floor(total * fraction) for fraction in fractions]
    for position in range(total - sum(counts)):
        counts[position % len(counts)] += 1
    for position, count in enumerate(counts):
        if count == 0:
            warn(f"Length of split at index {position} is 0. This might result in an empty dataset.")
    return counts
