"""One buffer: the chunks it holds, by a rule to keep them and a rule to draw them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from rllib_arrow.replay.chunk import Chunk
from rllib_arrow.replay.retention import RetentionRule
from rllib_arrow.replay.sampling import SamplingRule
from rllib_arrow.replay.store import ChunkStore, Record


class Buffer:
    """Slots of chunks in a store that several buffers may share."""

    def __init__(
        self, store: ChunkStore, retention: RetentionRule, sampling: SamplingRule
    ):
        self.retention = retention
        self.sampling = sampling
        self.serials: list[int] = []  # by slot
        self._store = store

    def __len__(self) -> int:
        """Returns how many chunks it holds."""
        return len(self.serials)

    @property
    def capacity(self) -> int:
        """How many chunks it can hold."""
        return self.retention.capacity

    def leaving(self, slot: int | None) -> int | None:
        """Returns the serial number of the chunk in a slot; None if there is none."""
        taken = slot is not None and slot < len(self.serials)
        return self.serials[slot] if taken else None

    def take(self, chunk: Chunk, record: Record, slot: int | None) -> None:
        """Puts a chunk where the retention rule said, None for nowhere."""
        leaving = self.leaving(slot)
        if slot is not None:
            self._store.hold(record)
            self.serials[slot : slot + 1] = [record.serial]
        if leaving is not None:
            self._drop(leaving)
        self.retention.advance(chunk)

    def resize(self, capacity: int) -> None:
        """Changes the capacity, dropping what the retention rule says if it shrinks."""
        before = self.serials
        self.serials = [before[slot] for slot in self.retention.resize(capacity)]
        for serial in set(before).difference(self.serials):
            self._drop(serial)

    def choose(
        self, count: int, rng: np.random.Generator, *, visit: bool
    ) -> tuple[Record, ...]:
        """Returns chunks drawn by the sampling rule, which counts them as visited."""
        chosen = self.sampling.choose(self.serials, count, rng)
        serials = [self.serials[position] for position in chosen]
        if visit:
            self.sampling.visit(serials)
        return tuple(self._store[serial] for serial in serials)

    def stats(self, added: int) -> dict[str, Any]:
        """Returns figures for people; `added` chunks have been offered so far."""
        tasks = [self._store[serial].task for serial in self.serials]
        ages = [added - 1 - serial for serial in self.serials]
        return {
            "chunks": len(self),
            "capacity": self.capacity,
            "tasks": dict(Counter(task for task in tasks if task is not None)),
            "ages": {
                "min": min(ages, default=0),
                "median": float(np.median(ages)) if ages else 0.0,
                "max": max(ages, default=0),
            },
        }

    def _drop(self, serial: int) -> None:
        self._store.release(serial)
        self.sampling.forget(serial)

    def set_state(
        self, meta: dict[str, Any], name: str, records: dict[int, Record]
    ) -> None:
        """Takes over the buffer `name` of a replay's state; the store is empty."""
        # Snapshots of a fixed split know no capacities and no sampling rules.
        self.retention.capacity = meta.get("capacities", {}).get(name, self.capacity)
        self.retention.set_state(meta["rules"][name])
        if "sampling" in meta:
            self.sampling.set_state(meta["sampling"][name])
        self.serials = list(meta["slots"][name])
        for serial in self.serials:
            self._store.hold(records[serial])
