"""Other sizes and other arrangements of the same elements, as modules."""

from __future__ import annotations

from typing import Any

from gviz.engine.nn import functional
from gviz.engine.nn.module import Module
from gviz.engine.tensor import Tensor


class Upsample(Module):
    """A sequence, picture or volume of another size."""

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor: Any = tuple([float(factor) for factor in scale_factor])
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Resample."""
        result: Tensor = functional.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )
        return result

    def extra_repr(self) -> str:
        """The size, and how it is reached."""
        size = f"size={self.size!r}" if self.scale_factor is None else f"scale_factor={self.scale_factor!r}"
        return f"{size}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """A picture of another size, of the nearest elements."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """A picture of another size, of means of the four nearest elements."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class PixelShuffle(Module):
    """Channels as finer pixels."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Rearrange."""
        result: Tensor = functional.pixel_shuffle(input, self.upscale_factor)
        return result

    def extra_repr(self) -> str:
        """How much finer."""
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Pixels as channels of a coarser picture."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Rearrange."""
        result: Tensor = functional.pixel_unshuffle(input, self.downscale_factor)
        return result

    def extra_repr(self) -> str:
        """How much coarser."""
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Channels dealt out of groups in turn."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """Rearrange."""
        result: Tensor = functional.channel_shuffle(input, self.groups)
        return result

    def extra_repr(self) -> str:
        """How many groups."""
        return f"groups={self.groups}"


class Unfold(Module):
    """Every window of a picture as a column."""

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        """Cut it up."""
        result: Tensor = functional.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)
        return result

    def extra_repr(self) -> str:
        """The window and how it moves."""
        window = f"kernel_size={self.kernel_size}, dilation={self.dilation}"
        return f"{window}, padding={self.padding}, stride={self.stride}"


class Fold(Unfold):
    """Columns put together as the windows of a picture, and summed where they overlap."""

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """Put them together."""
        window = (self.kernel_size, self.dilation, self.padding, self.stride)
        result: Tensor = functional.fold(input, self.output_size, *window)
        return result

    def extra_repr(self) -> str:
        """The size, the window and how it moves."""
        return f"output_size={self.output_size}, {super().extra_repr()}"
