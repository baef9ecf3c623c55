"""What an algorithm tells of its networks, so that they can be looked into."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
from torch import nn

from rllib_arrow.metrics import drift

Arrays = dict[str, np.ndarray]


class Finding(NamedTuple):
    """One number about one part of the networks."""

    part: str
    measure: str
    value: float


def actor_critic_drift(then: Arrays, now: Arrays) -> Iterator[Finding]:
    """Yields how far policy, whole agent and value have moved."""
    for part in ("actor", "agent"):
        yield Finding(part, "kl", drift.mean_kl(then[part], now[part]))
        yield Finding(part, "agreement", drift.agreement(then[part], now[part]))
    yield Finding("critic", "drift", drift.value_drift(then["critic"], now["critic"]))


class Anatomy(ABC):
    """The parts of an algorithm's networks, each of which can be asked by itself.

    Rows are batch-major [B, T, ...], named as the fields of a `Chunk`. What the parts
    are asked and what they answer has one row for each of them, in any order.
    """

    # The names of gradient norms among the learner's metrics, and whose they are.
    gradients: ClassVar[dict[str, str]]

    @abstractmethod
    def questions(self, net: Any, rows: Arrays, seed: int) -> Arrays:
        """Returns what the parts of this network hand on to one another, for rows."""

    @abstractmethod
    def answers(self, net: Any, rows: Arrays, questions: Arrays, seed: int) -> Arrays:
        """Returns what each part says, asked what the parts before it said *then*.

        So no part is blamed for what it is fed by another that has changed.
        """

    @abstractmethod
    def drift(self, rows: Arrays, then: Arrays, now: Arrays) -> Iterator[Finding]:
        """Yields how far the answers are from the old ones, or from the truth."""

    @abstractmethod
    def networks(self, net: Any) -> dict[str, list[nn.Module]]:
        """Returns the modules that each network consists of, by its name."""

    def use_all(self, net: Any, rows: Arrays, seed: int) -> None:
        """Runs rows through all networks, to see what their units do."""
        self.answers(net, rows, self.questions(net, rows, seed), seed)

    def strip(self, net: Any, rows: Arrays, seed: int) -> np.ndarray | None:
        """Returns what the networks make of some rows as a picture, if they draw."""
        return None
