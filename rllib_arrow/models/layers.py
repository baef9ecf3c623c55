"""Dense layers with LayerNorm and SiLU, and how weights start."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rllib_arrow.models.size import StateUnits

NORM_EPS = 1e-3


class NormSiLU(nn.LayerNorm):
    """LayerNorm over the last axis, then SiLU."""

    def __init__(self, units: int) -> None:
        super().__init__(units, eps=NORM_EPS)

    def forward(self, x: Tensor) -> Tensor:
        x = F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        return F.silu(x)


class NormGRUCell(nn.Module):
    """A GRU with one layer norm over its gates, which starts by forgetting slowly."""

    def __init__(self, inputs: int, units: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs + units, 3 * units, bias=False)
        self.norm = nn.LayerNorm(3 * units, eps=NORM_EPS)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        """Takes [B, inputs] and [B, units], returns the next h."""
        gates = self.norm(self.linear(torch.cat([x, h], -1)))
        reset, candidate, update = gates.chunk(3, -1)
        candidate = torch.tanh(torch.sigmoid(reset) * candidate)
        return torch.lerp(h, candidate, torch.sigmoid(update - 1.0))


def linear(inputs: int | StateUnits, outputs: int) -> nn.Linear:
    """Returns a linear layer without bias over plain numbers or over model states."""
    if isinstance(inputs, StateUnits):
        return StateLinear(inputs, outputs)
    return nn.Linear(inputs, outputs, bias=False)


class StateLinear(nn.Linear):
    """A linear layer without bias over [h, z], where z is one-hot in each group.

    With `by_index` the part over z is the sum of the weights that z picks, instead of
    a product with all of them: the same terms, added in another order.
    """

    by_index = False

    def __init__(self, inputs: StateUnits, outputs: int) -> None:
        h, groups, classes = inputs
        super().__init__(h + groups * classes, outputs, bias=False)
        self.inputs = inputs

    def forward(self, states: Tensor) -> Tensor:
        if self.by_index and not torch.is_autocast_enabled(states.device.type):
            return _PickedSum.apply(states, self.weight, *self.inputs)
        return super().forward(states)


class _PickedSum(torch.autograd.Function):
    """The product of [h, z] and weights whose part over z is looked up and added."""

    @staticmethod
    def forward(
        states: Tensor, weight: Tensor, h_units: int, groups: int, classes: int
    ) -> Tensor:
        rows = states.flatten(0, -2)
        z = rows[:, h_units:].unflatten(1, (groups, classes))
        numbers = torch.arange(classes, dtype=z.dtype, device=z.device)
        first = torch.arange(groups, device=z.device) * classes
        index = (z * numbers).sum(-1).long() + first
        out = F.embedding_bag(index, weight[:, h_units:].t().contiguous(), mode="sum")
        if h_units:
            out = torch.addmm(out, rows[:, :h_units], weight[:, :h_units].t())
        return out.unflatten(0, states.shape[:-1])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[:2])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        states, weight = ctx.saved_tensors
        to_states = grad @ weight if ctx.needs_input_grad[0] else None
        to_weight = grad.flatten(0, -2).t() @ states.flatten(0, -2)
        return to_states, to_weight, None, None, None


class MLP(nn.Sequential):
    """Hidden layers (no bias: the norm has one) and a linear output layer."""

    def __init__(
        self,
        inputs: int | StateUnits,
        units: int,
        layers: int,
        outputs: int,
        zero_output: bool = False,
    ) -> None:
        super().__init__()
        for _ in range(layers):
            self.append(linear(inputs, units))
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
