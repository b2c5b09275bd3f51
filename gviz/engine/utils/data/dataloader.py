"""``DataLoader``: iterates over batches of samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Generic, TypeVar

from gviz.engine.random import Generator
from gviz.engine.utils.data.collate import default_collate, default_convert
from gviz.engine.utils.data.dataset import IterableDataset
from gviz.engine.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler
from gviz.source.call_stack import warn

T_co = TypeVar("T_co", covariant=True)

_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
IN_THIS_PROCESS = (
    "the built-in engine loads all data in the process of the program: num_workers={count} is taken as num_workers=0"
)


class _Forever(Sampler[None]):
    """The sampler for an iterable dataset, which has its own order."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader(Generic[T_co]):
    """Iterates over a dataset batch by batch, in this process."""

    _initialized = False
    _length: int | None = None

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self.generator = generator
        self.persistent_workers = persistent_workers
        self.sampler: Any
        self._is_iterable = isinstance(dataset, IterableDataset)
        if self._is_iterable:
            _check_iterable(shuffle, sampler, batch_sampler)
        _check_order(batch_size, bool(shuffle), sampler, batch_sampler, drop_last)
        self.sampler = self._default_sampler(bool(shuffle)) if sampler is None else sampler
        self.batch_size = None if batch_sampler is not None else batch_size
        self.drop_last = drop_last
        if self.batch_size is not None:
            batch_sampler = BatchSampler(self.sampler, self.batch_size, drop_last)
        self.batch_sampler = batch_sampler
        self.collate_fn = collate_fn or (default_convert if batch_sampler is None else default_collate)
        self._initialized = True
        if num_workers > 0:
            warn(IN_THIS_PROCESS.format(count=num_workers))

    def _default_sampler(self, shuffle: bool) -> Sampler[Any]:
        if self._is_iterable:
            return _Forever()
        return RandomSampler(self.dataset, generator=self.generator) if shuffle else SequentialSampler(self.dataset)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._initialized and name in _FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        object.__setattr__(self, name, value)

    def __iter__(self) -> Iterator[Any]:
        if self.pin_memory:
            warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be "
                "used.",
            )
        return self._from_iterable(self._length) if self._is_iterable else self._from_indices()

    def _from_indices(self) -> Iterator[Any]:
        if self.batch_sampler is None:
            for index in self.sampler:
                yield self.collate_fn(self.dataset[index])
            return
        for indices in self.batch_sampler:
            yield self.collate_fn(self._samples(indices))

    def _samples(self, indices: list[int]) -> list[Any]:
        if callable(getattr(self.dataset, "__getitems__", None)):
            samples: list[Any] = self.dataset.__getitems__(indices)
            return samples
        return [self.dataset[index] for index in indices]

    def _from_iterable(self, length: int | None) -> Iterator[Any]:
        for count, batch in enumerate(self._stream(), 1):
            if length is not None and count > length:
                warn(
                    f"Length of IterableDataset {self.dataset} was reported to be {length}(when accessing "
                    f"len(dataloader)), but {count} samples have been fetched. ",
                )
            yield batch

    def _stream(self) -> Iterator[Any]:
        samples = iter(self.dataset)
        if self.batch_size is None:
            for sample in samples:
                yield self.collate_fn(sample)
            return
        while batch := list(islice(samples, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield self.collate_fn(batch)

    def __len__(self) -> int:
        if not self._is_iterable:
            return len(self.sampler if self.batch_sampler is None else self.batch_sampler)
        count = self._length = len(self.dataset)
        if self.batch_size is None:
            return count
        full, rest = divmod(count, self.batch_size)
        return full + (rest > 0 and not self.drop_last)


def _check_workers(workers: int, timeout: float, prefetch: int | None, persistent: bool) -> None:
    if workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if workers == 0 and prefetch is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
            "multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch is not None and prefetch < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent and workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_iterable(shuffle: bool | None, sampler: Any, batch_sampler: Any) -> None:
    options = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
    for name, value in options.items():
        if value is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
            )


def _check_order(size: int | None, shuffle: bool, sampler: Any, batch_sampler: Any, drop_last: bool) -> None:
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
            )
    elif size is None and drop_last:
        raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")


def get_worker_info() -> None:
    """Returns None: there are no worker processes."""
