"""What a tensor is made of: its shape and dtype, and where its memory is: on the CPU, with strides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gviz.engine import dtypes, watching
from gviz.engine.devices import CPU, say_what_cuda_means
from gviz.engine.devices import check as check_device
from gviz.engine.devices import device as Device
from gviz.engine.dtypes import dtype as DType
from gviz.engine.layout import layout as Layout
from gviz.engine.layout import strided
from gviz.engine.methods import Methods
from gviz.engine.size import Size
from gviz.values import Array

if TYPE_CHECKING:
    from gviz.engine.tensor import Tensor


class Placement(Methods):
    """The part of `Tensor` that answers questions about its memory."""

    __slots__ = ()
    _array: Array
    is_cpu = property(lambda self: True)
    is_cuda = is_ipu = is_maia = is_meta = is_mkldnn = is_mps = is_mtia = is_nested = property(lambda self: False)
    is_quantized = is_sparse = is_sparse_csr = is_vulkan = is_xla = is_xpu = property(lambda self: False)
    name = property(lambda self: None, doc="Always None: tensors have no names of their own.")

    @property
    def shape(self) -> Size:
        """The size of each dimension."""
        if watching.watchers and (recorder := watching.recorder()) is not None:
            return recorder.shape(self)  # type: ignore[arg-type]  # it is a `Tensor`
        return tuple.__new__(Size, self._array.shape)

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return dtypes.of(self._array)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    @property
    def device(self) -> Device:
        """Always the CPU."""
        return CPU

    @property
    def layout(self) -> Layout:
        """Always ``torch.strided``."""
        return strided

    @property
    def itemsize(self) -> int:
        """The number of bytes of one element."""
        return self._array.itemsize

    @property
    def nbytes(self) -> int:
        """The number of bytes of all elements."""
        return self._array.nbytes

    def get_device(self) -> int:
        """The number of the GPU it is on: -1, none."""
        return -1

    def data_ptr(self) -> int:
        """The address of the first element."""
        return int(self._array.ctypes.data) if self._array.size else 0

    def is_pinned(self, device: Any = None) -> bool:
        """Whether the memory is pinned for a GPU: never."""
        return False

    def is_shared(self) -> bool:
        """Whether the memory is shared between processes: never."""
        return False

    def cpu(self, memory_format: Any = None) -> Tensor:
        """The tensor itself, or a copy whose elements lie in memory as `memory_format` says."""
        return self.to("cpu", memory_format=memory_format)

    def cuda(self, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
        """Refused, unless ``cuda`` stands for the CPU: then the tensor itself."""
        check_device("cuda" if device is None else device, "cuda")
        say_what_cuda_means()
        return self  # type: ignore[return-value]  # it is a `Tensor`
