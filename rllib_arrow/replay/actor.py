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
from functools import partial
from typing import Any

import numpy as np
import ray
from ray.actor import ActorHandle

from rllib_arrow.replay.chunk import Chunk
from rllib_arrow.replay.minibatches import NumberedMinibatches
from rllib_arrow.replay.two_buffers import TwoBufferReplay


class ReplayActor:
    """Gives out numbered minibatches of an `TwoBufferReplay`; see `journal.py`.

    One call runs at a time. Reading a batch takes a few milliseconds, which is little
    beside an update, and learners ask ahead: more threads would only compete with them.
    """

    def __init__(self, **settings: Any):
        self._replay = TwoBufferReplay(**settings)
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
        self._minibatches = NumberedMinibatches(self._replay.draw)
        self._apart: dict[str, NumberedMinibatches] = {}

    def batch(
        self,
        index: int,
        shard: int,
        num_shards: int,
        batch_size: int,
        length: int,
        epoch: int | None = None,
        buffer: str | None = None,
    ) -> dict[str, np.ndarray]:
        """Returns one learner's sequences of minibatch `index` since `begin`.

        Args:
            index, shard, num_shards, batch_size, length: See
                `NumberedMinibatches.fetch`.
            epoch: If given, must be what `begin` was told last.
            buffer: "fifo" or "ltdm" for minibatches from this buffer alone, "both" for
                more as they are. They have numbers and a random stream of their own,
                and change no others.
        """
        self._check_epoch(epoch)
        minibatches = self._minibatches if buffer is None else self._only(buffer)
        draw = minibatches.fetch(index, shard, num_shards, batch_size, length)
        return self._replay.gather(draw)

    def _only(self, buffer: str) -> NumberedMinibatches:
        if buffer not in self._apart:
            rng = self._replay.stream("draws", self._epoch, buffer)
            only = None if buffer == "both" else buffer
            draw = partial(self._replay.draw, buffer=only, rng=rng)
            self._apart[buffer] = NumberedMinibatches(draw)
        return self._apart[buffer]

    def stats(self) -> dict[str, Any]:
        """Returns `TwoBufferReplay.stats()`."""
        return self._replay.stats()

    def save(self, path: str | os.PathLike) -> None:
        """Writes a snapshot; see `TwoBufferReplay.save`."""
        self._replay.save(path)

    def load(self, path: str | os.PathLike) -> None:
        """Replaces the contents by a snapshot's; see `TwoBufferReplay.restore`."""
        self._replay.restore(path)
        self.begin(self._epoch)

    def _check_epoch(self, epoch: int | None) -> None:
        if epoch is not None and epoch != self._epoch:
            raise ValueError(
                f"epoch ({epoch}) is not the one begun last ({self._epoch}); call "
                "begin first."
            )


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
        buffer: "fifo", "ltdm" or "both" for minibatches of their own; see `batch`.
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
        buffer: str | None = None,
    ):
        if prefetch < 1:
            raise ValueError(f"prefetch ({prefetch}) must be at least 1.")
        self.waited_s = 0.0  # how long the learner had to wait for batches
        self._request = lambda index: actor.batch.remote(
            index, shard, num_shards, batch_size, length, epoch, buffer
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
