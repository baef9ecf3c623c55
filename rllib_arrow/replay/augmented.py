"""ARROW's augmented replay: a FIFO and a long-term buffer over one store of chunks."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from ray.rllib.utils.replay_buffers.base import ReplayBufferInterface

from rllib_arrow.errors import UserError
from rllib_arrow.replay import snapshot
from rllib_arrow.replay.chunk import Chunk, check_chunk
from rllib_arrow.replay.draws import Draw, LossTally, Origin
from rllib_arrow.replay.parts import (
    DEFAULTS,
    RULES,
    check_settings,
    make_buffers,
    make_shares,
)
from rllib_arrow.replay.retention import ltdm_capacity
from rllib_arrow.replay.store import ChunkCodec, ChunkStore, Record, digest_of
from rllib_arrow.seeding import derive_rng

logger = logging.getLogger(__name__)


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
        parts: Rules other than the paper's; see `parts.DEFAULTS`.
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
        **parts: Any,
    ):
        if unknown := set(parts) - set(DEFAULTS):
            raise TypeError(f"AugmentedReplay has no parts {sorted(unknown)}.")
        self._settings = DEFAULTS | {
            "capacity_chunks": capacity_chunks,
            "chunk_length": chunk_length,
            "ltdm_fraction": ltdm_fraction,
            "seed": int(seed),
            "ltdm_probability": ltdm_probability,
            "max_bytes": max_bytes,
            "num_threads": num_threads,
            **parts,
        }
        check_settings(self._settings)
        self.chunk_length = chunk_length
        self.max_bytes = max_bytes
        self._rng = derive_rng(seed, "replay", "draws")
        self._store = ChunkStore()
        self._buffers = make_buffers(self._settings, self._store)
        self._shares = make_shares(self._settings)
        self._codec: ChunkCodec | None = None
        self._added = 0
        self._fresh_from = 0
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
        slots = {n: b.retention.slot_for(chunk) for n, b in self._buffers.items()}
        self._refuse_beyond_max_bytes(record, slots)
        self._codec = codec
        for name, buffer in self._buffers.items():
            buffer.take(chunk, record, slots[name])
        self._fit_fifo()
        self._added += 1
        if self._added == 1:
            self._log_estimate()

    def begin_epoch(self) -> None:
        """Notes that chunks added from here on are the fresh ones."""
        self._fresh_from = self._added

    def draw(
        self,
        batch_size: int,
        length: int,
        *,
        buffer: str | None = None,
        rng: np.random.Generator | None = None,
    ) -> Draw:
        """Chooses a minibatch: a buffer, chunks by its rule, and uniform starts.

        Args:
            batch_size: How many sequences.
            length: How many rows each has; a sequence never leaves its chunk.
            buffer: "fifo" or "ltdm", instead of leaving it to chance.
            rng: A random stream of the caller's; the replay then stays as it is, and
                what it draws next does not depend on this call.
        """
        self._check_request(batch_size, length, buffer)
        own, rng = rng is None, rng or self._rng
        buffer = buffer or self._choose_buffer(rng)
        records = self._buffers[buffer].choose(batch_size, rng, visit=own)
        starts = rng.integers(self.chunk_length - length + 1, size=batch_size)
        return Draw(buffer, records, starts, length)

    def reseed(self, epoch: int) -> None:
        """Draws from here on from the random stream named by the epoch."""
        self._rng = self.stream("draws", epoch)

    def stream(self, *names: int | str) -> np.random.Generator:
        """Returns a random stream with a name of its own."""
        return derive_rng(self._settings["seed"], "replay", *names)

    def gather(self, draw: Draw) -> dict[str, np.ndarray]:
        """Returns the sequences of a draw as batch-major arrays [B, T, ...]."""
        data = [record.data for record in draw.records]
        return self._codec.gather(data, draw.starts.tolist(), draw.length)

    def sample(self, batch_size: int, length: int) -> dict[str, np.ndarray]:
        """Returns a minibatch: arrays [B, T, ...] named as the fields of a Chunk."""
        return self.gather(self.draw(batch_size, length))

    def note_losses(self, origins: Sequence[Origin], losses: np.ndarray) -> None:
        """Lets sampling rules and shares know how well the world model did.

        Args:
            origins: Of the epoch's first minibatches.
            losses: float [len(origins), B], the loss of each of their sequences.
        """
        epoch = LossTally(origins, losses)
        for name, buffer in self._buffers.items():
            buffer.sampling.learn(epoch.by_chunk(name))
        for share in self._shares.values():
            share.update(epoch.means(self._fresh_from))
        if self._is_split_adaptive:
            share = self._shares["ltdm_fraction"].value
            capacity = self._settings["capacity_chunks"]
            self._buffers["ltdm"].resize(ltdm_capacity(capacity, share))
            self._fit_fifo()

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
            "ltdm_probability": self._shares["ltdm_probability"].value,
        }
        for name, buffer in self._buffers.items():
            figures = buffer.stats(self._added).items()
            stats |= {f"{name}_{key}": value for key, value in figures}
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
        buffers = self._buffers.items()
        meta = {
            "settings": self._settings,
            "frame_shape": list(self._codec.frame_shape) if self._codec else None,
            "added": self._added,
            "fresh_from": self._fresh_from,
            "generator": self._rng.bit_generator.state,
            "rules": {name: buffer.retention.get_state() for name, buffer in buffers},
            "capacities": {name: buffer.capacity for name, buffer in buffers},
            "sampling": {name: buffer.sampling.get_state() for name, buffer in buffers},
            "shares": {name: share.get_state() for name, share in self._shares.items()},
            "slots": {name: list(buffer.serials) for name, buffer in buffers},
        }
        return {"meta": meta, "records": list(self._store.records())}

    def set_state(self, state: dict[str, Any]) -> None:
        """Replaces the contents by those of `get_state` of an equal replay."""
        meta = state["meta"]
        # Snapshots written before there was a choice of parts do not name them.
        settings = DEFAULTS | meta["settings"]
        for key in ("capacity_chunks", "chunk_length", "ltdm_fraction", *RULES):
            if settings[key] != self._settings[key]:
                raise ValueError(
                    f"The state's {key} is {settings[key]}, this replay's is "
                    f"{self._settings[key]}; they must be equal."
                )
        records = {record.serial: record for record in state["records"]}
        shape = meta["frame_shape"]
        self._codec = ChunkCodec(self.chunk_length, shape) if shape else None
        self._added = meta["added"]
        self._fresh_from = meta.get("fresh_from", self._added)
        self._rng.bit_generator.state = meta["generator"]
        self._store.clear()
        for name, buffer in self._buffers.items():
            buffer.set_state(meta, name, records)
        for name, share in self._shares.items():
            share.set_state(meta.get("shares", {}).get(name, {}))

    @property
    def _is_split_adaptive(self) -> bool:
        return self._settings["ltdm_fraction_rule"] != "constant"

    def _fit_fifo(self) -> None:
        """Leaves to the FIFO what the long-term buffer does not use, if that moves.

        A reservoir that may grow fills slowly; until then its room is not wasted.
        """
        if self._is_split_adaptive:
            used = len(self._buffers["ltdm"])
            self._buffers["fifo"].resize(self._settings["capacity_chunks"] - used)

    def _check_request(self, batch_size: int, length: int, buffer: str | None) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size ({batch_size}) must be at least 1.")
        if not 1 <= length <= self.chunk_length:
            raise ValueError(
                f"length ({length}) must be in [1, {self.chunk_length}]: a sequence "
                "lies within one chunk."
            )
        if not len(self):
            raise ValueError("The replay is empty: add a chunk before sampling.")
        full = [name for name, held in self._buffers.items() if len(held)]
        if buffer is not None and buffer not in full:
            raise ValueError(
                f"buffer ({buffer!r}) must be one that holds chunks: {full}."
            )

    def _choose_buffer(self, rng: np.random.Generator) -> str:
        full = [name for name, buffer in self._buffers.items() if len(buffer)]
        if len(full) == 1:
            return full[0]
        share = self._shares["ltdm_probability"].value
        return "ltdm" if rng.random() < share else "fifo"

    def _refuse_beyond_max_bytes(
        self, record: Record, slots: dict[str, int | None]
    ) -> None:
        if self.max_bytes is None or all(slot is None for slot in slots.values()):
            return
        leaving = Counter(self._buffers[name].leaving(s) for name, s in slots.items())
        del leaving[None]
        needed = self._store.bytes_after(record, leaving)
        if needed > self.max_bytes:
            raise UserError(
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
