"""Which chunks stay: one named rule for each of the two buffers.

A rule only names slots; what lies in a slot is the buffer's business. Asking for the
slot changes nothing, so that a chunk can still be refused after its fate is known.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from rllib_arrow.errors import UserError
from rllib_arrow.replay.chunk import Chunk


def ltdm_capacity(capacity_chunks: int, ltdm_fraction: float) -> int:
    """Returns how many of all chunks are the long-term buffer's, rounded half up.

    Between 0 and 1 each buffer has at least one chunk, so that 0 and 1 alone mean
    that there is only one buffer.
    """
    if ltdm_fraction in (0, 1):
        return int(ltdm_fraction) * capacity_chunks
    if capacity_chunks == 1:
        raise UserError(
            f"capacity_chunks (1) cannot be split by ltdm_fraction ({ltdm_fraction}); "
            "use at least 2 chunks, or a fraction of 0 or 1."
        )
    rounded = int(ltdm_fraction * capacity_chunks + 0.5)
    return min(max(rounded, 1), capacity_chunks - 1)


class RetentionRule(Protocol):
    """Says which slot each new chunk goes to; the slots taken are 0, 1, 2, ..."""

    capacity: int

    def slot_for(self, chunk: Chunk | None) -> int | None:
        """Returns the slot to overwrite, or None if the chunk is not kept."""

    def advance(self, chunk: Chunk | None) -> None:
        """Notes that the chunk has been put where `slot_for` said."""

    def resize(self, capacity: int) -> list[int]:
        """Changes the capacity; returns the slots that stay, in their new order."""

    def get_state(self) -> dict[str, Any]:
        """Returns what JSON needs to continue this rule exactly."""

    def set_state(self, state: dict[str, Any]) -> None:
        """Continues where `get_state` was called, at the capacity set before."""


class Fifo:
    """Keeps the newest chunks: the slots are overwritten in turn."""

    def __init__(self, capacity: int):
        self.capacity = capacity
        self.seen = 0  # since the slots were last put in order

    def slot_for(self, chunk: Chunk | None) -> int | None:
        """Returns the slot to overwrite; None only if there is no slot at all."""
        return self.seen % self.capacity if self.capacity else None

    def advance(self, chunk: Chunk | None) -> None:
        """Notes that the chunk has been put where `slot_for` said."""
        self.seen += 1

    def resize(self, capacity: int) -> list[int]:
        """Keeps the newest; returns their slots, oldest first."""
        size = min(self.seen, self.capacity)
        oldest = self.seen % size if size else 0
        in_order = [(oldest + age) % size for age in range(size)]
        kept = in_order[max(0, size - capacity) :]
        self.capacity, self.seen = capacity, len(kept)
        return kept

    def get_state(self) -> dict[str, Any]:
        """Returns what JSON needs to continue this rule exactly."""
        return {"seen": self.seen}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continues where `get_state` was called."""
        self.seen = state["seen"]


class Reservoir:
    """Keeps a uniform sample of all chunks ever offered: the largest keys stay.

    Every chunk gets one uniform random key. Only keys above the largest one ever
    dropped are let in, so what is held is always all chunks with a key above that
    threshold. While the capacity stays the same this is the same as keeping the
    `capacity` largest keys: a uniformly random subset of the chunks.

    It also holds when the capacity changes at will, in this sense: a chunk drawn
    uniformly from those held is a uniform draw from all chunks ever offered. For the
    chunk with the largest key of all is always held, and it is each of them equally
    likely. The keys held matter to what was dropped only by being above the threshold;
    so, given which chunks are held, each of them is equally likely to be that chunk.
    """

    def __init__(self, capacity: int, rng: np.random.Generator):
        self.capacity = capacity
        self.keys: list[float] = []
        self.threshold = 0.0  # the largest key ever dropped
        self._rng = rng
        self._next_key = rng.random()

    def slot_for(self, chunk: Chunk | None) -> int | None:
        """Returns the slot to overwrite, or None if the next chunk is not kept."""
        if self.capacity == 0 or self._next_key <= self.threshold:
            return None
        if len(self.keys) < self.capacity:
            return len(self.keys)
        lowest = int(np.argmin(self.keys))
        return lowest if self._next_key > self.keys[lowest] else None

    def advance(self, chunk: Chunk | None) -> None:
        """Notes that the next chunk has been put where `slot_for` said."""
        slot, key = self.slot_for(chunk), self._next_key
        if slot is None:
            self._drop(key)
        elif slot == len(self.keys):
            self.keys.append(key)
        else:
            self._drop(self.keys[slot])
            self.keys[slot] = key
        self._next_key = self._rng.random()

    def resize(self, capacity: int) -> list[int]:
        """Keeps the largest keys; returns their slots in the order they have."""
        by_key = sorted(range(len(self.keys)), key=lambda slot: -self.keys[slot])
        for slot in by_key[capacity:]:
            self._drop(self.keys[slot])
        kept = sorted(by_key[:capacity])
        self.capacity, self.keys = capacity, [self.keys[slot] for slot in kept]
        return kept

    def _drop(self, key: float) -> None:
        self.threshold = max(self.threshold, key)

    def get_state(self) -> dict[str, Any]:
        """Returns what JSON needs to continue this rule exactly."""
        return {
            "keys": list(self.keys),
            "threshold": self.threshold,
            "next_key": self._next_key,
            "generator": self._rng.bit_generator.state,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continues where `get_state` was called."""
        self.keys = list(state["keys"])
        # Snapshots of a fixed capacity did without: there the lowest key decides.
        self.threshold = state.get("threshold", 0.0)
        self._next_key = state["next_key"]
        self._rng.bit_generator.state = state["generator"]
