"""A share that stays constant or moves once per epoch.

The same rules serve for how often a minibatch is long-term and for how much of the
memory is; another one for how much is played at random. They see the world model's mean
losses of an epoch and never a task's name.
"""

from __future__ import annotations

from math import exp, log
from typing import Any, NamedTuple


class EpochLosses(NamedTuple):
    """Mean losses of an epoch's sequences; None where there were no such sequences."""

    fresh: float | None  # of the first sequences of chunks added in this epoch
    fifo: float | None
    ltdm: float | None


class Share:
    """A number between 0 and 1 that the losses of each epoch may move."""

    def __init__(self, value: float, bounds: tuple[float, float]):
        self.value = value

    def update(self, losses: EpochLosses) -> None:
        """Moves the value after an epoch."""

    def get_state(self) -> dict[str, Any]:
        """Returns what JSON needs to continue this rule exactly."""
        return {}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continues where `get_state` was called."""


class Constant(Share):
    """Stays what it is."""


class _Moving(Share):
    """A share between two bounds, and running means of losses."""

    DECAY = 0.8  # of a running mean, per epoch
    FAST = 0.5  # likewise, where the mean has to forget an untrained world model
    JUMP = 1.5  # a loss that is so many times its running mean

    def __init__(self, value: float, bounds: tuple[float, float]):
        self.low, self.high = bounds
        super().__init__(min(max(value, self.low), self.high), bounds)
        self._means: dict[str, float] = {}

    def _follow(self, name: str, loss: float, decay: float = DECAY) -> float:
        """Moves the running mean towards the loss; returns the mean of before."""
        before = self._means.get(name, loss)
        self._means[name] = decay * before + (1 - decay) * loss
        return before

    def _has_changed(self, losses: EpochLosses) -> bool:
        """Returns whether the data changed: the loss on fresh chunks jumped."""
        if losses.fresh is None:
            return False
        mean = self._follow("fresh", losses.fresh, self.FAST)
        jumped = losses.fresh > self.JUMP * mean
        if jumped:
            self._means["fresh"] = losses.fresh
        return jumped

    def get_state(self) -> dict[str, Any]:
        """Returns what JSON needs to continue this rule exactly."""
        return {"value": self.value, "means": dict(self._means)}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continues where `get_state` was called."""
        self.value, self._means = state["value"], dict(state["means"])


class AfterChange(_Moving):
    """Low after the data changed, and higher the longer they stay the same.

    Answers the first of the limitations that the ARROW paper names: a fixed share lies
    somewhere between learning the new and keeping the old.
    """

    RISE = 0.1  # of the way to the upper bound, per epoch

    def update(self, losses: EpochLosses) -> None:
        """Moves the value after an epoch."""
        if self._has_changed(losses):
            self.value = self.low
        else:
            self.value += self.RISE * (self.high - self.value)


class OnceAfterChange(_Moving):
    """The upper bound in the epoch after the data changed, else the lower one.

    A run's first epoch is random play, since nothing is known. When the data change, as
    little is known of them, and a policy that is sure of itself may never find out.
    """

    def update(self, losses: EpochLosses) -> None:
        """Moves the value after an epoch."""
        self.value = self.high if self._has_changed(losses) else self.low


class Balanced(_Moving):
    """Such that the losses in both buffers stand alike to their running means.

    The odds of the long-term buffer move by the ratio of the two relative losses: what
    is predicted worse than it used to be is practised more. Answers the same limitation
    as `AfterChange`, by feedback instead of by a clock.
    """

    def update(self, losses: EpochLosses) -> None:
        """Moves the value after an epoch."""
        if losses.fifo is None or losses.ltdm is None:
            return
        fifo = log(losses.fifo / self._follow("fifo", losses.fifo))
        ltdm = log(losses.ltdm / self._follow("ltdm", losses.ltdm))
        odds = self.value / (1 - self.value) * exp(ltdm - fifo)
        self.value = min(max(odds / (1 + odds), self.low), self.high)
