"""Local forgetting: a new chunk takes the place of an old one that looks like it."""

from __future__ import annotations

from math import ceil, prod
from typing import Any

import numpy as np

from rllib_arrow.replay.chunk import Chunk
from rllib_arrow.seeding import derive_rng

DIMENSIONS = 16  # of the embedding
EVERY = 8  # how many frames apart are those that a chunk is known by
# Of the slots, which share counts as near. The oldest of all is then evicted if all
# chunks look alike, and a chunk of another place stays however old it is.
NEAR = 1 / 8


class LocalForgetting:
    """Evicts the oldest of the chunks nearest to the new one.

    After Rahimi-Kalahroudi et al., "Replay Buffer with Local Forgetting for Adapting
    to Local Environment Changes in Deep Model-Based Reinforcement Learning" (CoLLAs
    2023). Their neighbourhoods come from a learned embedding of states; here a chunk
    is known by a fixed random projection of its mean frame (of every eighth), and its
    neighbourhood is the nearest eighth of the buffer.
    """

    def __init__(self, capacity: int, seed: int):
        self.capacity = capacity
        self._seed = seed
        self._projection: np.ndarray | None = None  # float64 [DIMENSIONS, H * W * C]
        self._embeddings: list[np.ndarray] = []  # by slot
        self._born: list[int] = []  # by slot
        self._seen = 0

    def slot_for(self, chunk: Chunk) -> int | None:
        """Returns a free slot, or that of the oldest neighbour."""
        if self.capacity == 0:
            return None
        if len(self._born) < self.capacity:
            return len(self._born)
        distances = ((np.stack(self._embeddings) - self._embed(chunk)) ** 2).sum(1)
        # Among equally near ones the older counts as nearer.
        near = np.lexsort((self._born, distances))[: ceil(NEAR * self.capacity)]
        return int(min(near, key=lambda slot: self._born[slot]))

    def advance(self, chunk: Chunk) -> None:
        """Notes that the chunk has been put where `slot_for` said."""
        slot = self.slot_for(chunk)
        if slot is not None:
            self._embeddings[slot : slot + 1] = [self._embed(chunk)]
            self._born[slot : slot + 1] = [self._seen]
        self._seen += 1

    def resize(self, capacity: int) -> list[int]:
        """Keeps the newest; returns their slots, oldest first."""
        in_order = sorted(range(len(self._born)), key=self._born.__getitem__)
        kept = in_order[max(0, len(in_order) - capacity) :]
        self.capacity = capacity
        self._embeddings = [self._embeddings[slot] for slot in kept]
        self._born = [self._born[slot] for slot in kept]
        return kept

    def _embed(self, chunk: Chunk) -> np.ndarray:
        """Returns the projected mean frame, float64 [DIMENSIONS]."""
        frames = chunk.obs[::EVERY].reshape(-1, prod(chunk.obs.shape[1:]))
        if self._projection is None:
            rng = derive_rng(self._seed, "replay", "projection")
            self._projection = rng.normal(size=(DIMENSIONS, frames.shape[1]))
        return self._projection @ frames.mean(0)

    def get_state(self) -> dict[str, Any]:
        """Returns what JSON needs to continue this rule exactly."""
        return {
            "embeddings": [embedding.tolist() for embedding in self._embeddings],
            "born": list(self._born),
            "seen": self._seen,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continues where `get_state` was called."""
        self._embeddings = [np.array(embedding) for embedding in state["embeddings"]]
        self._born = list(state["born"])
        self._seen = state["seen"]
