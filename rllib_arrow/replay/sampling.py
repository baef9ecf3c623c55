"""Which of a buffer's chunks a minibatch takes: one named rule for each buffer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


class SamplingRule:
    """Chooses among chunks, which it knows by their serial numbers.

    A rule that goes by what was drawn or by losses remembers it; others do not.
    """

    def choose(
        self, serials: Sequence[int], count: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Returns `count` positions in `serials`, drawn with replacement."""
        raise NotImplementedError

    def visit(self, serials: Sequence[int]) -> None:
        """Notes that sequences of these chunks have been drawn for training."""

    def learn(self, losses: dict[int, float]) -> None:
        """Notes the mean loss of the sequences drawn from each chunk."""

    def forget(self, serial: int) -> None:
        """Notes that a chunk has left the buffer."""

    def get_state(self) -> dict[str, Any]:
        """Returns what JSON needs to continue this rule exactly."""
        return {}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continues where `get_state` was called."""


class Uniform(SamplingRule):
    """Every chunk is equally likely."""

    def choose(
        self, serials: Sequence[int], count: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Returns `count` positions in `serials`, drawn with replacement."""
        return rng.integers(len(serials), size=count)


class Curious(SamplingRule):
    """What was seldom drawn and what the model predicts badly is more likely.

    After Kauvar et al., "Curious Replay for Model-based Adaptation" (ICML 2023), with
    their constants: a chunk's priority is `C * BETA**visits + (|loss| + EPS)**ALPHA`.
    Visits count at once; losses arrive when an epoch is over. A chunk whose loss is
    not known yet is taken for an average one.
    """

    C, BETA, ALPHA, EPS = 1e4, 0.7, 0.7, 0.01

    def __init__(self):
        self._visits: dict[int, int] = {}
        self._losses: dict[int, float] = {}

    def priorities(self, serials: Sequence[int]) -> np.ndarray:
        """Returns the priority of each chunk, float64."""
        visits = np.array([self._visits.get(serial, 0) for serial in serials])
        known = [self._losses[s] for s in serials if s in self._losses]
        average = float(np.mean(known)) if known else 0.0
        losses = np.array([self._losses.get(serial, average) for serial in serials])
        return self.C * self.BETA**visits + (np.abs(losses) + self.EPS) ** self.ALPHA

    def choose(
        self, serials: Sequence[int], count: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Returns `count` positions in `serials`, drawn by priority."""
        up_to = np.cumsum(self.priorities(serials))
        chosen = np.searchsorted(up_to, rng.random(count) * up_to[-1], side="right")
        # Rounding may take a number to the very end.
        return np.minimum(chosen, len(serials) - 1)

    def visit(self, serials: Sequence[int]) -> None:
        """Notes that sequences of these chunks have been drawn for training."""
        for serial in serials:
            self._visits[serial] = self._visits.get(serial, 0) + 1

    def learn(self, losses: dict[int, float]) -> None:
        """Notes the mean loss of the sequences drawn from each chunk."""
        self._losses |= losses

    def forget(self, serial: int) -> None:
        """Notes that a chunk has left the buffer."""
        self._visits.pop(serial, None)
        self._losses.pop(serial, None)

    def get_state(self) -> dict[str, Any]:
        """Returns what JSON needs to continue this rule exactly."""
        return {
            "visits": [list(item) for item in self._visits.items()],
            "losses": [list(item) for item in self._losses.items()],
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continues where `get_state` was called."""
        self._visits = dict(state["visits"])
        self._losses = dict(state["losses"])
