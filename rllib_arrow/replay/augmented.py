"""ARROW's augmented replay: a FIFO and a long-term buffer over one store of chunks."""

from __future__ import annotations

import logging
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from ray.rllib.utils.replay_buffers.base import ReplayBufferInterface

from rllib_arrow.replay import snapshot
from rllib_arrow.replay.chunk import DTYPES, Chunk, check_chunk
from rllib_arrow.replay.retention import Fifo, Reservoir, ltdm_capacity
from rllib_arrow.replay.store import ChunkCodec, ChunkStore, Record, digest_of
from rllib_arrow.seeding import derive_rng

logger = logging.getLogger(__name__)


class Draw(NamedTuple):
    """Which sequences a minibatch consists of, before any frame is decompressed.

    It holds the stored chunks themselves, so that what is added between drawing and
    gathering changes nothing.
    """

    buffer: str  # "fifo" or "ltdm": a minibatch comes whole from one of them
    records: tuple[Record, ...]
    starts: np.ndarray  # int64 [B]
    length: int

    def part(self, start: int, stop: int) -> Draw:
        """Returns the sequences from number `start` to before `stop`."""
        return self._replace(
            records=self.records[start:stop], starts=self.starts[start:stop]
        )


class AugmentedReplay(ReplayBufferInterface):
    """Chunks of experience, offered to a FIFO and to a long-term buffer.

    Args:
        capacity_chunks: How many chunks the two buffers hold together.
        chunk_length: How many rows a chunk has.
        ltdm_fraction: Which part of the capacity is the long-term buffer's, rounded
            half up to whole chunks; between 0 and 1, each buffer gets at least one
            chunk. 0 is plain FIFO and 1 a plain reservoir.
        seed: Of the long-term buffer's keys and of sampling.
        ltdm_probability: How likely a minibatch comes from the long-term buffer, where
            there are two.
        max_bytes: Refuse chunks that would make the stored bytes pass this.
        num_threads: For compressing. Reading uses one: waking a second thread costs
            more than it gains while a learner keeps the processors busy.
    """

    def __init__(
        self,
        capacity_chunks: int,
        chunk_length: int,
        ltdm_fraction: float,
        seed: int,
        *,
        ltdm_probability: float = 0.5,
        max_bytes: int | None = None,
        num_threads: int = 2,
    ):
        self._settings = {
            "capacity_chunks": capacity_chunks,
            "chunk_length": chunk_length,
            "ltdm_fraction": ltdm_fraction,
            "seed": int(seed),
            "ltdm_probability": ltdm_probability,
            "max_bytes": max_bytes,
            "num_threads": num_threads,
        }
        _check_settings(self._settings)
        self.chunk_length = chunk_length
        self.max_bytes = max_bytes
        self._ltdm_probability = ltdm_probability
        ltdm_chunks = ltdm_capacity(capacity_chunks, ltdm_fraction)
        self._rng = derive_rng(seed, "replay", "draws")
        self._rules = {
            "fifo": Fifo(capacity_chunks - ltdm_chunks),
            # Keys have a stream of their own: what stays does not depend on how
            # often somebody has sampled.
            "ltdm": Reservoir(ltdm_chunks, derive_rng(seed, "replay", "keys")),
        }
        self._slots: dict[str, list[int]] = {"fifo": [], "ltdm": []}  # serials
        self._store = ChunkStore()
        self._codec: ChunkCodec | None = None
        self._added = 0
        self._pool = ThreadPoolExecutor(num_threads) if num_threads > 1 else None

    def __len__(self) -> int:
        """Returns how many chunks are stored; one held by both buffers counts once."""
        return len(self._store)

    def add(self, chunk: Chunk, task: str | None = None) -> None:
        """Offers a chunk to both buffers.

        Args:
            chunk: Exactly `chunk_length` rows, shaped as the first chunk was.
            task: A label for `stats()`; sampling never sees it.
        """
        check_chunk(chunk, self.chunk_length, self._codec and self._codec.frame_shape)
        codec = self._codec or ChunkCodec(self.chunk_length, chunk.obs.shape[1:])
        data = codec.encode(chunk, self._pool)
        record = Record(data, digest_of(data), self._added, task)
        slots = {name: rule.slot_for_next() for name, rule in self._rules.items()}
        slots = {name: slot for name, slot in slots.items() if slot is not None}
        self._refuse_beyond_max_bytes(record, slots)
        self._codec = codec
        for name, slot in slots.items():
            self._put(name, slot, record)
        for rule in self._rules.values():
            rule.advance()
        self._added += 1
        if self._added == 1:
            self._log_estimate()

    def draw(self, batch_size: int, length: int) -> Draw:
        """Chooses a minibatch: one buffer, then chunks and starts, all uniformly.

        Args:
            batch_size: How many sequences.
            length: How many rows each has; a sequence never leaves its chunk.
        """
        if batch_size < 1:
            raise ValueError(f"batch_size ({batch_size}) must be at least 1.")
        if not 1 <= length <= self.chunk_length:
            raise ValueError(
                f"length ({length}) must be in [1, {self.chunk_length}]: a sequence "
                "lies within one chunk."
            )
        if not len(self):
            raise ValueError("The replay is empty: add a chunk before sampling.")
        buffer = self._choose_buffer()
        slots = self._slots[buffer]
        chosen = self._rng.integers(len(slots), size=batch_size)
        starts = self._rng.integers(self.chunk_length - length + 1, size=batch_size)
        records = tuple(self._store[slots[slot]] for slot in chosen)
        return Draw(buffer, records, starts, length)

    def reseed(self, epoch: int) -> None:
        """Draws from here on from the random stream named by the epoch."""
        self._rng = derive_rng(self._settings["seed"], "replay", "draws", epoch)

    def gather(self, draw: Draw) -> dict[str, np.ndarray]:
        """Returns the sequences of a draw as batch-major arrays [B, T, ...]."""
        codec = self._codec
        shape = (len(draw.records), draw.length)
        batch = {
            name: np.empty((*shape, *(codec.frame_shape if name == "obs" else ())), dt)
            for name, dt in DTYPES._asdict().items()
        }
        for sequence, record in enumerate(draw.records):
            start = int(draw.starts[sequence])
            codec.read_frames(record.data, start, batch["obs"][sequence])
            for name in Chunk._fields[1:]:
                field = codec.field(record.data, name)
                batch[name][sequence] = field[start : start + draw.length]
        return batch

    def sample(self, batch_size: int, length: int) -> dict[str, np.ndarray]:
        """Returns a minibatch: arrays [B, T, ...] named as the fields of a Chunk."""
        return self.gather(self.draw(batch_size, length))

    def stats(self) -> dict[str, Any]:
        """Returns figures for people; the algorithm must not look at them.

        `bytes` is exactly what the stored chunks take, compressed frames and arrays;
        `observations` counts a chunk held by both buffers once; an age is the number
        of chunks added since.
        """
        stats = {
            "bytes": self._store.bytes,
            "estimated_full_bytes": self._estimate_full_bytes(),
            "observations": len(self) * self.chunk_length,
            "chunks": len(self),
            "chunks_added": self._added,
        }
        for name, serials in self._slots.items():
            stats[f"{name}_chunks"] = len(serials)
            stats[f"{name}_capacity"] = self._rules[name].capacity
            tasks = [self._store[serial].task for serial in serials]
            stats[f"{name}_tasks"] = dict(Counter(t for t in tasks if t is not None))
            ages = sorted(self._added - 1 - serial for serial in serials)
            stats[f"{name}_ages"] = {
                "min": min(ages, default=0),
                "median": float(np.median(ages)) if ages else 0.0,
                "max": max(ages, default=0),
            }
        return stats

    def save(self, path: str | os.PathLike) -> None:
        """Writes a snapshot into the directory `path`; see `snapshot.save`."""
        snapshot.save(path, self.get_state())

    @classmethod
    def load(cls, path: str | os.PathLike) -> AugmentedReplay:
        """Returns the replay saved at `path`, equal bit for bit, also in what follows.

        Raises:
            SnapshotError: If a file is missing, damaged or not a snapshot's.
        """
        state = snapshot.load(path)
        replay = cls(**state["meta"]["settings"])
        replay.set_state(state)
        return replay

    def restore(self, path: str | os.PathLike) -> None:
        """Replaces the contents by those saved at `path`; they stay if that fails.

        Unlike after `load`, `ltdm_probability`, `max_bytes` and `num_threads` remain
        this replay's own.
        """
        self.set_state(snapshot.load(path))

    def get_state(self) -> dict[str, Any]:
        """Returns everything: `meta` suits JSON, `records` are the stored chunks."""
        meta = {
            "settings": self._settings,
            "frame_shape": list(self._codec.frame_shape) if self._codec else None,
            "added": self._added,
            "generator": self._rng.bit_generator.state,
            "rules": {name: rule.get_state() for name, rule in self._rules.items()},
            "slots": {name: list(slots) for name, slots in self._slots.items()},
        }
        return {"meta": meta, "records": list(self._store.records())}

    def set_state(self, state: dict[str, Any]) -> None:
        """Replaces the contents by those of `get_state` of an equal replay."""
        meta = state["meta"]
        for key in ("capacity_chunks", "chunk_length", "ltdm_fraction"):
            if meta["settings"][key] != self._settings[key]:
                raise ValueError(
                    f"The state's {key} is {meta['settings'][key]}, this replay's is "
                    f"{self._settings[key]}; they must be equal."
                )
        records = {record.serial: record for record in state["records"]}
        shape = meta["frame_shape"]
        self._codec = ChunkCodec(self.chunk_length, shape) if shape else None
        self._added = meta["added"]
        self._rng.bit_generator.state = meta["generator"]
        self._store = ChunkStore()
        for name, rule in self._rules.items():
            rule.set_state(meta["rules"][name])
            self._slots[name] = list(meta["slots"][name])
            for serial in self._slots[name]:
                self._store.hold(records[serial])

    def _choose_buffer(self) -> str:
        names = [name for name, slots in self._slots.items() if slots]
        if len(names) == 1:
            return names[0]
        return "ltdm" if self._rng.random() < self._ltdm_probability else "fifo"

    def _put(self, name: str, slot: int, record: Record) -> None:
        slots = self._slots[name]
        self._store.hold(record)
        if slot == len(slots):
            slots.append(record.serial)
        else:
            self._store.release(slots[slot])
            slots[slot] = record.serial

    def _refuse_beyond_max_bytes(self, record: Record, slots: dict[str, int]) -> None:
        if self.max_bytes is None or not slots:
            return
        leaving = Counter(
            self._slots[name][slot]
            for name, slot in slots.items()
            if slot < len(self._slots[name])
        )
        needed = self._store.bytes + len(record.data)
        for serial, releases in leaving.items():
            if self._store.is_last_holder(serial, releases):
                needed -= len(self._store[serial].data)
        if needed > self.max_bytes:
            raise ValueError(
                f"Adding this chunk would take the replay to {needed} bytes, beyond "
                f"max_bytes={self.max_bytes}; raise it, or lower capacity_chunks="
                f"{self._settings['capacity_chunks']} (a full buffer takes about "
                f"{self._estimate_full_bytes(record)} bytes)."
            )

    def _estimate_full_bytes(self, *more: Record) -> int:
        """Returns the capacity times the mean size of the chunks held so far."""
        total = self._store.bytes + sum(len(record.data) for record in more)
        mean = total / max(1, len(self) + len(more))
        return round(mean * self._settings["capacity_chunks"])

    def _log_estimate(self) -> None:
        estimate = self._estimate_full_bytes()
        too_much = self.max_bytes is not None and estimate > self.max_bytes
        logger.log(
            logging.WARNING if too_much else logging.INFO,
            "Judging by its first chunk, a full replay of %d chunks will take about "
            "%.0f MB (max_bytes=%s).",
            self._settings["capacity_chunks"],
            estimate / 1e6,
            self.max_bytes,
        )


def _check_settings(settings: dict[str, Any]) -> None:
    for key in ("capacity_chunks", "chunk_length", "num_threads"):
        if settings[key] < 1:
            raise ValueError(f"{key} ({settings[key]}) must be at least 1.")
    for key in ("ltdm_fraction", "ltdm_probability"):
        if not 0 <= settings[key] <= 1:
            raise ValueError(f"{key} ({settings[key]}) must be in [0, 1].")
    if settings["max_bytes"] is not None and settings["max_bytes"] < 1:
        raise ValueError(f"max_bytes ({settings['max_bytes']}) must be positive.")
