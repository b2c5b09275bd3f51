"""``torch.cuda`` as in a PyTorch built without CUDA; streams and graphs work where ``cuda`` means the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NoReturn

from gviz.engine import graphs
from gviz.engine.devices import CPU, warn_that_cuda_is_the_cpu
from gviz.engine.unsupported_names import lookup_in


def is_available() -> bool:
    """Whether a GPU is available: always False."""
    return False


def is_initialized() -> bool:
    """Whether CUDA was initialized: always False."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether GPUs support bfloat16: always False."""
    return False


def device_count() -> int:
    """The number of GPUs: 0."""
    return 0


def empty_cache() -> None:
    """Does nothing."""


def manual_seed(seed: int) -> None:
    """Does nothing: there is no generator on a GPU."""


def manual_seed_all(seed: int) -> None:
    """Does nothing, see `manual_seed`."""


def memory_allocated(device: Any = None) -> int:
    """The bytes in use on a GPU: 0."""
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """The largest number of bytes in use on a GPU: 0."""
    return 0


def memory_reserved(device: Any = None) -> int:
    """The bytes reserved on a GPU: 0."""
    return 0


def _refused(*args: Any, **options: Any) -> NoReturn:
    """Raise AssertionError: there is only the CPU."""
    raise AssertionError("Torch not compiled with CUDA enabled")


class CUDAGraph(graphs.Graph):
    """A `gviz.engine.graphs.Graph`."""

    def __init__(self, keep_graph: bool = False) -> None:
        warn_that_cuda_is_the_cpu()
        super().__init__(keep_graph)


def graph(cuda_graph: graphs.Graph, pool: Any = None, stream: Any = None, **_: Any) -> AbstractContextManager[Any]:
    """Captures into `cuda_graph`, see `gviz.engine.graphs.capture`."""
    warn_that_cuda_is_the_cpu()
    return graphs.capture(cuda_graph)


class Stream:
    """A queue of work. Operations run immediately here, so there is nothing to wait for."""

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        warn_that_cuda_is_the_cpu()
        self.device = CPU

    def wait_stream(self, stream: Stream) -> None:
        """Returns at once."""

    def synchronize(self) -> None:
        """Returns at once."""

    def query(self) -> bool:
        """Whether all work is done: always True."""
        return True

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@contextmanager
def stream(stream: Stream | None) -> Iterator[None]:
    """Changes nothing: operations run in order."""
    yield


def current_stream(device: Any = None) -> Stream:
    """The only stream."""
    return Stream()


default_stream = current_stream


def synchronize(device: Any = None) -> None:
    """Returns at once."""
    warn_that_cuda_is_the_cpu()


current_device = get_device_name = get_device_properties = init = set_device = _refused

__getattr__ = lookup_in(__name__)
