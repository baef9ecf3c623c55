"""Which chunks stay: one named rule for each of the two buffers.

A rule only names slots; what lies in a slot is the replay's business. Asking for the
slot changes nothing, so that a chunk can still be refused after its fate is known.
"""

from __future__ import annotations

import numpy as np


def ltdm_capacity(capacity_chunks: int, ltdm_fraction: float) -> int:
    """Returns how many of all chunks are the long-term buffer's, rounded half up.

    Between 0 and 1 each buffer has at least one chunk, so that 0 and 1 alone mean
    that there is only one buffer.
    """
    if ltdm_fraction in (0, 1):
        return int(ltdm_fraction) * capacity_chunks
    if capacity_chunks == 1:
        raise ValueError(
            f"capacity_chunks (1) cannot be split by ltdm_fraction ({ltdm_fraction}); "
            "use at least 2 chunks, or a fraction of 0 or 1."
        )
    rounded = int(ltdm_fraction * capacity_chunks + 0.5)
    return min(max(rounded, 1), capacity_chunks - 1)


class Fifo:
    """Keeps the newest chunks: the slots are overwritten in turn."""

    def __init__(self, capacity: int):
        self.capacity = capacity
        self.seen = 0

    @property
    def size(self) -> int:
        """How many slots are taken."""
        return min(self.seen, self.capacity)

    def slot_for_next(self) -> int | None:
        """Returns the slot to overwrite; None only if there is no slot at all."""
        return self.seen % self.capacity if self.capacity else None

    def advance(self) -> None:
        """Notes that the next chunk has been put where `slot_for_next` said."""
        self.seen += 1

    def get_state(self) -> dict:
        """Returns what JSON needs to continue this rule exactly."""
        return {"seen": self.seen}

    def set_state(self, state: dict) -> None:
        """Continues where `get_state` was called."""
        self.seen = state["seen"]


class Reservoir:
    """Keeps each chunk ever offered with equal probability: the largest keys stay.

    Every chunk gets one uniform random key. The `capacity` largest of independent,
    identically distributed keys belong to a uniformly random subset of the chunks,
    however many there have been.
    """

    def __init__(self, capacity: int, rng: np.random.Generator):
        self.capacity = capacity
        self.size = 0
        self.keys = np.zeros(capacity)
        self._rng = rng
        self._next_key = rng.random()

    def slot_for_next(self) -> int | None:
        """Returns the slot to overwrite, or None if the next chunk is not kept."""
        if self.size < self.capacity:
            return self.size
        if self.capacity == 0:
            return None
        lowest = int(self.keys.argmin())
        return lowest if self._next_key > self.keys[lowest] else None

    def advance(self) -> None:
        """Notes that the next chunk has been put where `slot_for_next` said."""
        slot = self.slot_for_next()
        if slot is not None:
            self.keys[slot] = self._next_key
            self.size = max(self.size, slot + 1)
        self._next_key = self._rng.random()

    def get_state(self) -> dict:
        """Returns what JSON needs to continue this rule exactly."""
        return {
            "keys": self.keys[: self.size].tolist(),
            "next_key": self._next_key,
            "generator": self._rng.bit_generator.state,
        }

    def set_state(self, state: dict) -> None:
        """Continues where `get_state` was called."""
        self.size = len(state["keys"])
        self.keys[: self.size] = state["keys"]
        self._next_key = state["next_key"]
        self._rng.bit_generator.state = state["generator"]
