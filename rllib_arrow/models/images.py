"""Images to vectors and back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import torch
from torch import Tensor, nn

from rllib_arrow.errors import UserError
from rllib_arrow.models.layers import NormSiLU, initialise, linear
from rllib_arrow.models.native.pictures import DOWN, NORM, UP, Stage, through_stages
from rllib_arrow.models.size import StateUnits

SMALLEST = 4  # the side of the image where the encoder stops and the decoder starts


@contextmanager
def layer_by_layer(*networks: Encoder | Decoder) -> Iterator[None]:
    """Has the layers themselves compute within the block, so that they can be seen."""
    before = [network.is_native for network in networks]
    for network in networks:
        network.is_native = False
    try:
        yield
    finally:
        for network, is_native in zip(networks, before, strict=True):
            network.is_native = is_native


def images_to_float(obs: Tensor) -> Tensor:
    """Turns uint8 [N, H, W, C] into float [N, C, H, W] from 0 to 1, channels last.

    Black is zero: an empty part of a frame says nothing to the convolutions. The
    memory stays where it is: NHWC is what channels-last convolutions want.
    """
    return (obs.float() / 255.0).permute(0, 3, 1, 2)


def images_to_uint8(images: Tensor) -> Tensor:
    """Turns float [N, C, H, W] from 0 to 1 into uint8 [N, H, W, C]."""
    pixels = images.float().permute(0, 2, 3, 1) * 255.0
    return pixels.round().clamp(0, 255).to(torch.uint8)


def channel_plan(image_shape: tuple[int, int, int], depth: int) -> list[int]:
    """Returns the channel counts from the image down to 4 x 4.

    Raises:
        ValueError: if the image is not square with a power of two of at least 16.
    """
    height, width, channels = image_shape
    if height != width or height < 16 or height & (height - 1):
        raise UserError(
            f"Image shape {tuple(image_shape)} must be square with a side that is a "
            "power of two of at least 16 (H, W, C)."
        )
    layers = (height // SMALLEST).bit_length() - 1
    return [channels] + [depth * 2**i for i in range(layers)]


class ChannelNormSiLU(NormSiLU):
    """LayerNorm over the channels of [N, C, H, W] at each pixel, then SiLU."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Encoder(nn.Module):
    """Stride-2 convolutions of doubling depth down to 4 x 4, flattened."""

    is_native = False  # whether it is computed by `models/native/pictures.cpp`

    def __init__(self, image_shape: tuple[int, int, int], depth: int) -> None:
        super().__init__()
        plan = channel_plan(image_shape, depth)
        self.layers = nn.Sequential()
        for inputs, outputs in pairwise(plan):
            self.layers.append(nn.Conv2d(inputs, outputs, 4, 2, 1, bias=False))
            self.layers.append(ChannelNormSiLU(outputs))
        self.units = SMALLEST * SMALLEST * plan[-1]
        initialise(self)
        self.to(memory_format=torch.channels_last)

    def forward(self, images: Tensor) -> Tensor:
        """Takes float [N, C, H, W], returns [N, units]."""
        if self.is_native:
            rows = images.permute(0, 2, 3, 1).float().contiguous()
            stages, tensors = self._stages(images.shape[-1])
            return through_stages(rows, stages, tensors).flatten(1)
        return self.layers(images).permute(0, 2, 3, 1).flatten(1)

    def _stages(self, side: int) -> tuple[list[Stage], list[Tensor]]:
        stages, tensors = [], []
        for layer, norm in zip(self.layers[::2], self.layers[1::2], strict=True):
            side //= 2
            stages.append(Stage(DOWN, side, layer.in_channels, layer.out_channels, 1))
            tensors += [layer.weight.permute(0, 2, 3, 1), norm.weight, norm.bias]
        return stages, tensors


class ToPixels(nn.ConvTranspose2d):
    """A transposed 4 x 4 convolution of stride 2 to few channels, such as RGB.

    Libraries compute channels in blocks of 16, which leaves 3 channels mostly idle.
    The same sums are those of a 3 x 3 convolution to 4 times the channels, one set for
    each of the 2 x 2 pixels that take an input pixel's place.
    """

    def forward(self, x: Tensor) -> Tensor:
        kernel = self._by_phase(self._by_phase(self.weight, 2), 4)
        # [column, row, inputs, outputs, 3, 3] to one output channel per phase.
        kernel = kernel.permute(1, 0, 3, 2, 4, 5).flatten(0, 2)
        pixels = nn.functional.conv2d(x, kernel, self.bias.repeat(4), padding=1)
        pixels = pixels.permute(0, 2, 3, 1).unflatten(3, (2, 2, self.out_channels))
        return pixels.transpose(2, 3).flatten(3, 4).flatten(1, 2).permute(0, 3, 1, 2)

    @staticmethod
    def _by_phase(weight: Tensor, axis: int) -> Tensor:
        """Splits the 4 taps of an axis: even output pixels see 3 and 1, odd 2 and 0."""
        first, second, third, fourth = weight.unbind(axis)
        none = torch.zeros_like(first)
        even = torch.stack([fourth, second, none], axis)
        odd = torch.stack([none, third, first], axis)
        return torch.stack([even, odd])


class Decoder(nn.Module):
    """The encoder turned round: a linear layer to 4 x 4, then transposed layers."""

    is_native = False

    def __init__(
        self,
        inputs: int | StateUnits,
        image_shape: tuple[int, int, int],
        depth: int,
    ) -> None:
        super().__init__()
        plan = channel_plan(image_shape, depth)[::-1]
        self.linear = linear(inputs, SMALLEST * SMALLEST * plan[0])
        self.norm = ChannelNormSiLU(plan[0])
        self.layers = nn.Sequential()
        for inner, outer in pairwise(plan[:-1]):
            self.layers.append(nn.ConvTranspose2d(inner, outer, 4, 2, 1, bias=False))
            self.layers.append(ChannelNormSiLU(outer))
        self.layers.append(ToPixels(plan[-2], plan[-1], 4, 2, 1))
        initialise(self)
        self.to(memory_format=torch.channels_last)

    def forward(self, states: Tensor) -> Tensor:
        """Takes [N, inputs], returns float [N, C, H, W]."""
        x = self.linear(states).unflatten(1, (SMALLEST, SMALLEST, -1))
        if self.is_native:
            stages, tensors = self._stages()
            pixels = through_stages(x.float().contiguous(), stages, tensors)
            side = 2 * stages[-1].side
            return pixels.unflatten(1, (side, side)).permute(0, 3, 1, 2)
        return self.layers(self.norm(x.permute(0, 3, 1, 2)))

    def _stages(self) -> tuple[list[Stage], list[Tensor | None]]:
        *convolutions, last = self.layers[::2]
        channels, side = self.norm.weight.shape[0], SMALLEST
        stages = [Stage(NORM, side, channels, channels, 1)]
        tensors = [None, self.norm.weight, self.norm.bias]
        for layer, norm in zip(convolutions, self.layers[1::2], strict=True):
            stages.append(Stage(UP, side, layer.in_channels, layer.out_channels, 1))
            tensors += [layer.weight.permute(0, 2, 3, 1), norm.weight, norm.bias]
            side *= 2
        stages.append(Stage(UP, side, last.in_channels, last.out_channels, 0))
        return stages, [*tensors, last.weight.permute(0, 2, 3, 1), None, last.bias]
