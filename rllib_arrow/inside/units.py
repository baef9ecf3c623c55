"""What the units of networks do while rows run through them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from torch import Tensor, nn

from rllib_arrow.models.layers import NormGRUCell, NormSiLU

# Layers whose outputs are units: one number per unit, or one channel of an image.
UNITS = (NormSiLU, nn.ReLU, nn.SiLU, nn.Tanh, nn.GRUCell, NormGRUCell)


class Activations:
    """The outputs of the layers of networks, each as of the call with most rows."""

    def __init__(self, networks: Mapping[str, Sequence[nn.Module]]) -> None:
        self.layers = {
            name: [layer for part in parts for layer in _layers(part)]
            for name, parts in networks.items()
        }
        self._seen: dict[nn.Module, Tensor] = {}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Keeps the outputs of what is computed within the block."""
        with ExitStack() as stack:
            for layers in self.layers.values():
                for layer in layers:
                    hook = layer.register_forward_hook(self._keep)
                    stack.callback(hook.remove)
            yield

    def _keep(self, layer: nn.Module, inputs: Any, output: Tensor) -> None:
        if layer not in self._seen or len(output) >= len(self._seen[layer]):
            self._seen[layer] = output.detach()

    def activity(self, network: str) -> list[np.ndarray]:
        """Returns the mean absolute activation of each unit, layer by layer."""
        found = []
        for layer in self._used(network):
            output = self._seen[layer].abs()
            others = [axis for axis in range(output.dim()) if axis != 1]
            found.append(output.mean(others).cpu().numpy())
        return found

    def features(self, network: str) -> np.ndarray | None:
        """Returns the output of the last layer as [rows, features]."""
        used = self._used(network)
        return self._seen[used[-1]].flatten(1).cpu().numpy() if used else None

    def _used(self, network: str) -> list[nn.Module]:
        return [layer for layer in self.layers[network] if layer in self._seen]


def _layers(part: nn.Module) -> list[nn.Module]:
    return [layer for layer in part.modules() if isinstance(layer, UNITS)]
