"""Dense layers with LayerNorm and SiLU, and how weights start."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

NORM_EPS = 1e-3


class NormSiLU(nn.LayerNorm):
    """LayerNorm over the last axis, then SiLU."""

    def __init__(self, units: int) -> None:
        super().__init__(units, eps=NORM_EPS)

    def forward(self, x: Tensor) -> Tensor:
        x = F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        return F.silu(x)


class MLP(nn.Sequential):
    """Hidden layers (no bias: the norm has one) and a linear output layer."""

    def __init__(
        self,
        inputs: int,
        units: int,
        layers: int,
        outputs: int,
        zero_output: bool = False,
    ) -> None:
        super().__init__()
        for _ in range(layers):
            self.append(nn.Linear(inputs, units, bias=False))
            self.append(NormSiLU(units))
            inputs = units
        self.append(nn.Linear(inputs, outputs))
        initialise(self)
        if zero_output:
            nn.init.zeros_(self[-1].weight)


@torch.no_grad()
def initialise(module: nn.Module) -> None:
    """Starts weights as DreamerV3 does: truncated normal of variance 1 / fan average.

    Norms keep their ones and zeros. The standard deviation is that of the normal
    before truncation at two deviations, which leaves 0.88 of it.
    """
    for layer in module.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d | nn.ConvTranspose2d):
            outputs, inputs, *kernel = layer.weight.shape
            fan_average = (outputs + inputs) / 2 * math.prod(kernel)
            std = fan_average**-0.5 / 0.87962566
            nn.init.trunc_normal_(layer.weight, std=std, a=-2 * std, b=2 * std)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
