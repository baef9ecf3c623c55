"""Looks into networks: how far their parts have moved, whether they can still learn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from rllib_arrow.inside.anatomy import Anatomy, Arrays, Finding
from rllib_arrow.inside.probe_set import ProbeSet
from rllib_arrow.inside.units import Activations
from rllib_arrow.metrics import plasticity


class Examiner:
    """Looks at one network as it stands; nothing of it is changed.

    Args:
        anatomy: What the network's parts are.
        net: The network.
        start: The same network as it was before any training.
        seed: Of the noise that questions need, the same at every look.
    """

    def __init__(self, anatomy: Anatomy, net: Any, start: Any, seed: int) -> None:
        self._anatomy, self._net, self._start, self._seed = anatomy, net, start, seed

    @torch.no_grad()
    def probe_set(self, rows: Arrays) -> ProbeSet:
        """Returns the rows with what the network says of them now."""
        questions = self._anatomy.questions(self._net, rows, self._seed)
        answers = self._anatomy.answers(self._net, rows, questions, self._seed)
        return ProbeSet(rows, questions, answers)

    def drift(self, probe: ProbeSet) -> list[Finding]:
        """Returns how far each part is from what it said then."""
        return self._drift(self._net, probe)

    def untrained(self, probe: ProbeSet) -> list[Finding]:
        """Returns how far each part was from it before any training."""
        return self._drift(self._start, probe)

    @torch.no_grad()
    def _drift(self, net: Any, probe: ProbeSet) -> list[Finding]:
        rows, questions, then = probe
        now = self._anatomy.answers(net, rows, questions, self._seed)
        return list(self._anatomy.drift(rows, then, now))

    @torch.no_grad()
    def plasticity(self, rows: Arrays) -> Iterator[Finding]:
        """Yields what units do on the rows and where the weights are, by network."""
        networks = self._anatomy.networks(self._net)
        activations = Activations(networks)
        with activations.watching():
            self._anatomy.use_all(self._net, rows, self._seed)
        before = self._anatomy.networks(self._start)
        for name, parts in networks.items():
            weights, first = _weights(parts), _weights(before[name])
            if activity := activations.activity(name):
                yield Finding(name, "dormant", plasticity.dormant_share(activity))
                rank = plasticity.effective_rank(activations.features(name))
                yield Finding(name, "effective_rank", rank)
            yield Finding(name, "weight_norm", plasticity.norm(weights))
            yield Finding(name, "distance", plasticity.distance(weights, first))

    @torch.no_grad()
    def strip(self, probe: ProbeSet) -> np.ndarray | None:
        """Returns what the network makes of a probe set as a picture, if it draws."""
        return self._anatomy.strip(self._net, probe.rows, self._seed)


def _weights(parts: list[nn.Module]) -> list[np.ndarray]:
    return [p.detach().cpu().numpy() for part in parts for p in part.parameters()]
