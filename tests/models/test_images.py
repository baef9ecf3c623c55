import numpy as np
import pytest
import torch

from rllib_arrow.models.images import (
    ChannelNormSiLU,
    Decoder,
    Encoder,
    ToPixels,
    images_to_float,
    images_to_uint8,
)


@pytest.mark.parametrize("side", [16, 32, 64, 128])
def test_any_power_of_two_from_16_up_goes_down_to_4x4_and_back(side):
    encoder = Encoder((side, side, 3), depth=2)
    assert sum(isinstance(x, torch.nn.Conv2d) for x in encoder.layers) == (
        int(np.log2(side)) - 2
    )
    deepest = 2 * 2 ** (int(np.log2(side)) - 3)
    assert encoder.units == 16 * deepest
    obs = torch.zeros(2, side, side, 3, dtype=torch.uint8)
    assert encoder(images_to_float(obs)).shape == (2, encoder.units)
    decoder = Decoder(7, (side, side, 3), depth=2)
    assert decoder(torch.zeros(2, 7)).shape == (2, 3, side, side)


def test_the_papers_encoder_ends_in_4096_units_of_256_channels():
    encoder = Encoder((64, 64, 3), depth=32)
    assert encoder.units == 4096
    convolutions = [x for x in encoder.layers if isinstance(x, torch.nn.Conv2d)]
    assert [x.out_channels for x in convolutions] == [32, 64, 128, 256]


@pytest.mark.parametrize("shape", [(8, 8, 3), (64, 32, 3), (48, 48, 3), (84, 84, 1)])
def test_other_image_shapes_are_refused(shape):
    with pytest.raises(ValueError, match="power of two"):
        Encoder(shape, depth=2)


def test_pixels_survive_the_way_to_floats_and_back():
    obs = torch.arange(256, dtype=torch.uint8).view(1, 16, 16, 1)
    images = images_to_float(obs)
    assert images.min() == 0.0 and images.max() == 1.0
    assert images.shape == (1, 1, 16, 16)
    assert torch.equal(images_to_uint8(images), obs)


def test_channel_norm_treats_every_pixel_on_its_own():
    x = torch.randn(2, 5, 3, 4, generator=torch.Generator().manual_seed(0))
    norm = ChannelNormSiLU(5)
    centred = x - x.mean(1, keepdim=True)
    scaled = centred / (x.var(1, unbiased=False, keepdim=True) + 1e-3).sqrt()
    torch.testing.assert_close(norm(x), scaled * torch.sigmoid(scaled))


def test_to_pixels_is_a_transposed_convolution():
    torch.manual_seed(0)
    layer = ToPixels(6, 3, 4, 2, 1)
    x = torch.randn(2, 6, 5, 5).to(memory_format=torch.channels_last)
    gradient = torch.randn(2, 3, 10, 10)
    found = layer(x)
    found.backward(gradient)
    weight, bias = (p.detach().clone().requires_grad_() for p in layer.parameters())
    peer = torch.nn.functional.conv_transpose2d(x, weight, bias, 2, 1)
    peer.backward(gradient)
    torch.testing.assert_close(found, peer)
    torch.testing.assert_close(layer.weight.grad, weight.grad)
    torch.testing.assert_close(layer.bias.grad, bias.grad)
    assert found.is_contiguous(memory_format=torch.channels_last)
