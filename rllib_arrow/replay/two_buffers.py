"""A FIFO and a long-term buffer over one store of chunks, without a need of RLlib."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from rllib_arrow.files import digest_of
from rllib_arrow.replay import snapshot
from rllib_arrow.replay.chunk import Chunk, ChunkWithPolicy, check_chunk
from rllib_arrow.replay.draws import Draw, LossTally, Origin
from rllib_arrow.replay.memory import DividedMemory
from rllib_arrow.replay.rules import DEFAULTS, RULES, check_settings
from rllib_arrow.replay.store import ChunkCodec, Record
from rllib_arrow.seeding import derive_rng


class TwoBufferReplay:
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
        parts: Rules other than the paper's; see `rules.DEFAULTS`.
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
            raise TypeError(f"{type(self).__name__} has no parts {sorted(unknown)}.")
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
        self._memory = DividedMemory(self._settings)
        self._codec: ChunkCodec | None = None
        self._added = 0
        self._fresh_from = 0
        self._pool = ThreadPoolExecutor(num_threads) if num_threads > 1 else None

    def __len__(self) -> int:
        """Returns how many chunks are stored; one held by both buffers counts once."""
        return len(self._memory)

    def add(self, chunk: Chunk, task: str | None = None) -> None:
        """Offers a chunk to both buffers.

        Args:
            chunk: Exactly `chunk_length` rows, shaped as the first chunk was.
            task: A label for `stats()`; sampling never sees it.
        """
        check_chunk(chunk, self.chunk_length, self._codec and self._codec.frame_shape)
        units = chunk.policy.shape[1] if isinstance(chunk, ChunkWithPolicy) else 0
        codec = self._codec or ChunkCodec(self.chunk_length, chunk.obs.shape[1:], units)
        if units != codec.policy_units:
            raise ValueError(
                f"chunk.policy has {units} columns; the first chunk had "
                f"{codec.policy_units}, and one replay holds one shape."
            )
        data = codec.encode(chunk, self._pool)
        record = Record(data, digest_of(data), self._added, task)
        self._memory.offer(chunk, record)
        self._codec = codec
        self._added += 1

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
        buffer = buffer or self._memory.choose_buffer(rng)
        records = self._memory[buffer].choose(batch_size, rng, visit=own)
        starts = rng.integers(self.chunk_length - length + 1, size=batch_size)
        return Draw(buffer, records, starts, length)

    def reseed(self, epoch: int) -> None:
        """Draws from here on from the random stream named by the epoch."""
        self._rng = self.stream("draws", epoch)

    def stream(self, *names: int | str) -> np.random.Generator:
        """Returns a random stream with a name of its own."""
        return derive_rng(self._settings["seed"], "replay", *names)

    def gather(self, draw: Draw) -> dict[str, np.ndarray]:
        """Returns the sequences of a draw as batch-major arrays [B, T, ...].

        Only long-term sequences come with a policy: what is being learned is not held
        back by what was thought of it a moment ago.
        """
        data = [record.data for record in draw.records]
        batch = self._codec.gather(data, draw.starts.tolist(), draw.length)
        if "policy" in batch and draw.buffer != "ltdm":
            batch["policy"][:] = 0
        return batch

    def sample(self, batch_size: int, length: int) -> dict[str, np.ndarray]:
        """Returns a minibatch: arrays [B, T, ...] named as the fields of a Chunk."""
        return self.gather(self.draw(batch_size, length))

    @property
    def exploration(self) -> float:
        """How much of the next epoch is to be played at random."""
        return self._memory.exploration

    def note_losses(self, origins: Sequence[Origin], losses: np.ndarray) -> None:
        """Lets sampling rules and shares know how well the world model did.

        Args:
            origins: Of the epoch's first minibatches.
            losses: float [len(origins), B], the loss of each of their sequences.
        """
        self._memory.learn(LossTally(origins, losses), self._fresh_from)

    def stats(self) -> dict[str, Any]:
        """Returns figures for people; the algorithm must not look at them.

        `bytes` is exactly what the stored chunks take, compressed frames and arrays;
        `observations` counts a chunk held by both buffers once; an age is the number
        of chunks added since.
        """
        return {
            "observations": len(self) * self.chunk_length,
            "chunks": len(self),
            "chunks_added": self._added,
        } | self._memory.stats(self._added)

    def save(self, path: str | os.PathLike) -> None:
        """Writes a snapshot into the directory `path`; see `snapshot.save`."""
        snapshot.save(path, self.get_state())

    @classmethod
    def load(cls, path: str | os.PathLike) -> TwoBufferReplay:
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
            "policy_units": self._codec.policy_units if self._codec else 0,
            "added": self._added,
            "fresh_from": self._fresh_from,
            "generator": self._rng.bit_generator.state,
        }
        return {
            "meta": meta | self._memory.get_state(),
            "records": self._memory.records(),
        }

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
        shape, units = meta["frame_shape"], meta.get("policy_units", 0)
        self._codec = ChunkCodec(self.chunk_length, shape, units) if shape else None
        self._added = meta["added"]
        self._fresh_from = meta.get("fresh_from", self._added)
        self._rng.bit_generator.state = meta["generator"]
        self._memory.set_state(meta, records)

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
        filled = self._memory.filled
        if buffer is not None and buffer not in filled:
            raise ValueError(
                f"buffer ({buffer!r}) must be one that holds chunks: {filled}."
            )
