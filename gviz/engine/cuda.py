"""``torch.cuda`` of a PyTorch that was built without it; and its streams and graphs where ``cuda`` means the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NoReturn

from gviz.engine import graphs
from gviz.engine.devices import CPU, say_what_cuda_means
from gviz.engine.unsupported_names import lookup_in


def is_available() -> bool:
    """Whether there is a GPU: never."""
    return False


def is_initialized() -> bool:
    """Whether CUDA was started: never."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether GPUs have bfloat16: there is none."""
    return False


def device_count() -> int:
    """The number of GPUs: none."""
    return 0


def empty_cache() -> None:
    """Nothing to do."""


def manual_seed(seed: int) -> None:
    """Nothing to do: there is no generator on a GPU."""


def manual_seed_all(seed: int) -> None:
    """Nothing to do, as above."""


def memory_allocated(device: Any = None) -> int:
    """The bytes in use on a GPU: none."""
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """The bytes that were in use on a GPU: none."""
    return 0


def memory_reserved(device: Any = None) -> int:
    """The bytes kept on a GPU: none."""
    return 0


def _refused(*args: Any, **options: Any) -> NoReturn:
    """Refused: there is only the CPU."""
    raise AssertionError("Torch not compiled with CUDA enabled")


class CUDAGraph(graphs.Graph):
    """A `gviz.engine.graphs.Graph`."""

    def __init__(self, keep_graph: bool = False) -> None:
        say_what_cuda_means()
        super().__init__(keep_graph)


def graph(cuda_graph: graphs.Graph, pool: Any = None, stream: Any = None, **_: Any) -> AbstractContextManager[Any]:
    """Capture into `cuda_graph`, see `gviz.engine.graphs.capture`."""
    say_what_cuda_means()
    return graphs.capture(cuda_graph)


class Stream:
    """A queue of work. Here work is done when it is called, so that there is nothing to wait for."""

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        say_what_cuda_means()
        self.device = CPU

    def wait_stream(self, stream: Stream) -> None:
        """Nothing to wait for."""

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def query(self) -> bool:
        """Whether all is done: always."""
        return True

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@contextmanager
def stream(stream: Stream | None) -> Iterator[None]:
    """Changes nothing: operations run one after the other."""
    yield


def current_stream(device: Any = None) -> Stream:
    """The one queue there is."""
    return Stream()


default_stream = current_stream


def synchronize(device: Any = None) -> None:
    """Nothing to wait for."""
    say_what_cuda_means()


current_device = get_device_name = get_device_properties = init = set_device = _refused

__getattr__ = lookup_in(__name__)
