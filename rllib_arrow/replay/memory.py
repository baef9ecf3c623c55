"""Both buffers over one store: which of them takes a chunk, and gives a minibatch."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

import numpy as np

from rllib_arrow.errors import UserError
from rllib_arrow.replay.buffer import Buffer
from rllib_arrow.replay.chunk import Chunk
from rllib_arrow.replay.draws import LossTally
from rllib_arrow.replay.retention import ltdm_capacity
from rllib_arrow.replay.rules import make_buffers, make_shares
from rllib_arrow.replay.store import ChunkStore, Record

logger = logging.getLogger(__name__)


class DividedMemory:
    """The chunks held by the buffers "fifo" and "ltdm", within a limit of bytes."""

    def __init__(self, settings: dict[str, Any]):
        self._max_bytes: int | None = settings["max_bytes"]
        self._capacity: int = settings["capacity_chunks"]
        self._store = ChunkStore()
        self._buffers = make_buffers(settings, self._store)
        self._shares = make_shares(settings)
        self._is_split_adaptive = settings["ltdm_fraction_rule"] != "constant"

    def __len__(self) -> int:
        """Returns how many chunks are stored; one held by both buffers counts once."""
        return len(self._store)

    def __getitem__(self, name: str) -> Buffer:
        """Returns the buffer "fifo" or "ltdm"."""
        return self._buffers[name]

    @property
    def filled(self) -> list[str]:
        """The names of the buffers that hold chunks."""
        return [name for name, buffer in self._buffers.items() if len(buffer)]

    def offer(self, chunk: Chunk, record: Record) -> None:
        """Has each buffer take the chunk or leave it."""
        slots = {n: b.retention.slot_for(chunk) for n, b in self._buffers.items()}
        self._refuse_beyond_max_bytes(record, slots)
        for name, buffer in self._buffers.items():
            buffer.take(chunk, record, slots[name])
        self._fit_fifo()
        if record.serial == 0:
            self._log_estimate()

    def choose_buffer(self, rng: np.random.Generator) -> str:
        """Returns the buffer that a minibatch comes from."""
        if len(self.filled) == 1:
            return self.filled[0]
        share = self._shares["ltdm_probability"].value
        return "ltdm" if rng.random() < share else "fifo"

    @property
    def exploration(self) -> float:
        """How much of the next epoch is to be played at random."""
        return self._shares["exploration"].value

    def learn(self, losses: LossTally, fresh_from: int) -> None:
        """Lets sampling rules and shares know how well the world model did."""
        for name, buffer in self._buffers.items():
            buffer.sampling.learn(losses.by_chunk(name))
        for share in self._shares.values():
            share.update(losses.means(fresh_from))
        if self._is_split_adaptive:
            share = self._shares["ltdm_fraction"].value
            self._buffers["ltdm"].resize(ltdm_capacity(self._capacity, share))
            self._fit_fifo()

    def _fit_fifo(self) -> None:
        """Leaves to the FIFO what the long-term buffer does not use, if that moves.

        A reservoir that may grow fills slowly; until then its room is not wasted.
        """
        if self._is_split_adaptive:
            self._buffers["fifo"].resize(self._capacity - len(self._buffers["ltdm"]))

    def stats(self, added: int) -> dict[str, Any]:
        """Returns figures for people; `added` chunks have been offered so far."""
        stats = {
            "bytes": self._store.bytes,
            "estimated_full_bytes": self._estimate_full_bytes(),
            "ltdm_probability": self._shares["ltdm_probability"].value,
            "exploration": self.exploration,
        }
        for name, buffer in self._buffers.items():
            figures = buffer.stats(added).items()
            stats |= {f"{name}_{key}": value for key, value in figures}
        return stats

    # Saving.

    def records(self) -> list[Record]:
        """Returns the stored chunks."""
        return list(self._store.records())

    def get_state(self) -> dict[str, Any]:
        """Returns what the rules need to go on, and which chunk is where."""
        buffers = self._buffers.items()
        return {
            "rules": {name: buffer.retention.get_state() for name, buffer in buffers},
            "capacities": {name: buffer.capacity for name, buffer in buffers},
            "sampling": {name: buffer.sampling.get_state() for name, buffer in buffers},
            "shares": {name: share.get_state() for name, share in self._shares.items()},
            "slots": {name: list(buffer.serials) for name, buffer in buffers},
        }

    def set_state(self, state: dict[str, Any], records: dict[int, Record]) -> None:
        """Replaces the contents by those of `get_state`, with its records by serial."""
        self._store.clear()
        for name, buffer in self._buffers.items():
            buffer.set_state(state, name, records)
        for name, share in self._shares.items():
            share.set_state(state.get("shares", {}).get(name, {}))

    # The limit of bytes.

    def _refuse_beyond_max_bytes(
        self, record: Record, slots: dict[str, int | None]
    ) -> None:
        if self._max_bytes is None or all(slot is None for slot in slots.values()):
            return
        leaving = Counter(self._buffers[name].leaving(s) for name, s in slots.items())
        del leaving[None]
        needed = self._store.bytes_after(record, leaving)
        if needed > self._max_bytes:
            raise UserError(
                f"Adding this chunk would take the replay to {needed} bytes, beyond "
                f"max_bytes={self._max_bytes}; raise it, or lower capacity_chunks="
                f"{self._capacity} (a full buffer takes about "
                f"{self._estimate_full_bytes(record)} bytes)."
            )

    def _estimate_full_bytes(self, *more: Record) -> int:
        """Returns the capacity times the mean size of the chunks held so far."""
        total = self._store.bytes + sum(len(record.data) for record in more)
        mean = total / max(1, len(self) + len(more))
        return round(mean * self._capacity)

    def _log_estimate(self) -> None:
        estimate = self._estimate_full_bytes()
        too_much = self._max_bytes is not None and estimate > self._max_bytes
        logger.log(
            logging.WARNING if too_much else logging.INFO,
            "Judging by its first chunk, a full replay of %d chunks will take about "
            "%.0f MB (max_bytes=%s).",
            self._capacity,
            estimate / 1e6,
            self._max_bytes,
        )
