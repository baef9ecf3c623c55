"""The replay as a Ray actor, so that no frame passes through the driver.

Env runners add by reference, learners ask ahead. Every minibatch of an epoch has a
number; minibatches are drawn in the order of their numbers whoever asks first, so a
run's batches depend on its seed and not on timing.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import ray
from ray.actor import ActorHandle

from rllib_arrow.replay.augmented import AugmentedReplay, Draw
from rllib_arrow.replay.chunk import Chunk


class ReplayActor:
    """Gives out numbered minibatches of an `AugmentedReplay`; see `journal.py`.

    One call runs at a time. Reading a batch takes a few milliseconds, which is little
    beside an update, and learners ask ahead: more threads would only compete with them.
    """

    def __init__(self, **settings: Any):
        self._replay = AugmentedReplay(**settings)
        self.begin(epoch=0)

    def add(self, chunks: list[Chunk], task: str | None = None) -> int:
        """Adds the chunks in order; pass an object reference to the list.

        Add an epoch's chunks before `begin`: which minibatches had been drawn when a
        chunk arrives later would depend on timing.
        """
        for chunk in chunks:
            self._replay.add(chunk, task)
        return len(chunks)

    def begin(self, epoch: int) -> None:
        """Starts numbering minibatches at 0 again; what was not fetched is dropped."""
        self._epoch = epoch
        self._shape: tuple[int, int, int] | None = None
        self._drawn = 0
        self._unfetched: dict[int, tuple[Draw, set[int]]] = {}

    def batch(
        self,
        index: int,
        shard: int,
        num_shards: int,
        batch_size: int,
        length: int,
        epoch: int | None = None,
    ) -> dict[str, np.ndarray]:
        """Returns one learner's sequences of minibatch `index` since `begin`.

        Args:
            index: Any minibatch of which this shard has not been fetched yet.
            shard: Which of the `num_shards` equal parts.
            num_shards: How many learners share a minibatch.
            batch_size: Sequences in the whole minibatch.
            length: Rows of a sequence.
            epoch: If given, must be what `begin` was told last.
        """
        self._check(epoch, shard, num_shards, batch_size, length)
        while self._drawn <= index:
            draw = self._replay.draw(batch_size, length)
            self._unfetched[self._drawn] = (draw, set(range(num_shards)))
            self._drawn += 1
        draw, missing = self._unfetched.get(index, (None, ()))
        if shard not in missing:
            raise ValueError(
                f"Shard {shard} of minibatch {index} has been fetched before; each is "
                "given out once."
            )
        missing.discard(shard)
        if not missing:
            del self._unfetched[index]
        share = batch_size // num_shards
        return self._replay.gather(draw.part(shard * share, (shard + 1) * share))

    def stats(self) -> dict[str, Any]:
        """Returns `AugmentedReplay.stats()`."""
        return self._replay.stats()

    def save(self, path: str | os.PathLike) -> None:
        """Writes a snapshot; see `AugmentedReplay.save`."""
        self._replay.save(path)

    def load(self, path: str | os.PathLike) -> None:
        """Replaces the contents by a snapshot's; see `AugmentedReplay.restore`."""
        self._replay.restore(path)
        self.begin(self._epoch)

    def _check(
        self,
        epoch: int | None,
        shard: int,
        num_shards: int,
        batch_size: int,
        length: int,
    ) -> None:
        if epoch is not None and epoch != self._epoch:
            raise ValueError(
                f"epoch ({epoch}) is not the one begun last ({self._epoch}); call "
                "begin first."
            )
        if batch_size % num_shards:
            raise ValueError(
                f"batch_size ({batch_size}) must be divisible by num_shards "
                f"({num_shards})."
            )
        if not 0 <= shard < num_shards:
            raise ValueError(f"shard ({shard}) must be in [0, {num_shards}).")
        shape = (num_shards, batch_size, length)
        # Minibatches that nobody has asked for yet are drawn too, so all are alike.
        if self._shape not in (None, shape):
            raise ValueError(
                f"(num_shards, batch_size, length) = {shape} differs from the first "
                f"call's {self._shape}; call begin before changing them."
            )
        self._shape = shape


class BatchStream:
    """Iterates over one learner's part of an epoch's minibatches, asking ahead.

    Args:
        actor: The `ReplayActor`.
        count: How many minibatches.
        batch_size: Sequences in a whole minibatch, over all shards.
        length: Rows of a sequence.
        shard: Which part is this learner's.
        num_shards: How many learners share a minibatch.
        prefetch: How many requests are under way while the learner computes.
        epoch: If given, the actor refuses to mix minibatches of different epochs.
        start: The number of the first minibatch since `begin`.
    """

    def __init__(
        self,
        actor: ActorHandle,
        count: int,
        batch_size: int,
        length: int,
        *,
        shard: int = 0,
        num_shards: int = 1,
        prefetch: int = 2,
        epoch: int | None = None,
        start: int = 0,
    ):
        if prefetch < 1:
            raise ValueError(f"prefetch ({prefetch}) must be at least 1.")
        self.waited_s = 0.0  # how long the learner had to wait for batches
        self._request = lambda index: actor.batch.remote(
            index, shard, num_shards, batch_size, length, epoch
        )
        self._indices = iter(range(start, start + count))
        self._pending: deque[ray.ObjectRef] = deque()
        for _ in range(prefetch):
            self._ask()

    def __iter__(self) -> Iterator[dict[str, np.ndarray]]:
        return self

    def __next__(self) -> dict[str, np.ndarray]:
        """Returns the next batch; its arrays lie in the object store, read-only."""
        if not self._pending:
            raise StopIteration
        began = time.perf_counter()
        batch = ray.get(self._pending.popleft())
        self.waited_s += time.perf_counter() - began
        self._ask()
        return batch

    def _ask(self) -> None:
        index = next(self._indices, None)
        if index is not None:
            self._pending.append(self._request(index))
