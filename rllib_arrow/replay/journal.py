"""A replay actor that loses nothing when it dies.

An epoch's rows arrive in one call. Before that call answers, the new chunks are on
disk beside those of the epochs before (only what is new is written). Ray restarts an
actor that died and repeats the calls that were under way; the new one reads the
journal, and since the minibatches of an epoch are drawn from a random stream named by
the epoch, it draws the same ones again.
"""

from __future__ import annotations

import base64
import logging
import os
import shutil
from collections import Counter
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import ray
from ray.actor import ActorHandle
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from rllib_arrow.replay import snapshot
from rllib_arrow.replay.actor import ReplayActor
from rllib_arrow.replay.chunk import Chunk
from rllib_arrow.replay.splicer import Splicer
from rllib_arrow.replay.two_buffers import TwoBufferReplay

logger = logging.getLogger(__name__)

_LZ4 = pa.Codec("lz4")


class JournaledReplayActor(ReplayActor):
    """Takes whole epochs; see `start_journaled_replay`."""

    def __init__(self, settings: dict[str, Any], journal: str):
        super().__init__(**settings)
        self._settings = settings
        self._journal = Path(journal)
        self._splicers: list[Splicer] = []
        self._epoch = self._learned = -1  # the last epochs stored and learned from
        self._has_news = False  # a restart that no caller has heard of yet
        restarted = ray.get_runtime_context().was_current_actor_reconstructed
        if restarted and (self._journal / snapshot.MANIFEST).exists():
            self._read(self._journal)
            self._has_news = True
            logger.warning("Replay actor restarted from %s; nothing lost.", journal)
        else:
            shutil.rmtree(self._journal, ignore_errors=True)

    def store(self, epoch: int, task: str, *parts: list[Chunk]) -> dict[str, Any]:
        """Splices and adds the rows of one epoch.

        Returns the figures of `stats`, and whether this is a new actor in the place
        of one that died, told once.

        Args:
            epoch: Being stored; an epoch that is in already is not added again.
            task: For `stats` alone.
            parts: One list per env runner, of one long chunk per environment.
        """
        if epoch not in (self._epoch, self._epoch + 1):
            raise RuntimeError(
                f"The replay has rows up to epoch {self._epoch} and cannot take those "
                f"of epoch {epoch}: it was restarted where its journal is not."
            )
        if epoch != self._epoch:
            if not self._splicers:
                length = self._replay.chunk_length
                self._splicers = [Splicer(len(part), length) for part in parts]
            self._replay.begin_epoch()
            for splicer, part in zip(self._splicers, parts, strict=True):
                for chunk in splicer.push(part):
                    self._replay.add(chunk, task)
            self._replay.reseed(epoch)
            self.begin(epoch)
            self.save(self._journal)
        restarted, self._has_news = self._has_news, False
        return self.stats() | {"restarted": restarted}

    def learned(
        self, epoch: int, losses: np.ndarray, count: int, batch_size: int, length: int
    ) -> None:
        """Takes the losses that the learners saw in an epoch; see `note_losses`.

        Args:
            epoch: The one stored last; the same losses again change nothing.
            losses: float [world model updates, batch_size].
            count, batch_size, length: Of the epoch's minibatches. An actor that was
                restarted since has to draw them again, to know what they were.
        """
        self._check_epoch(epoch)
        if epoch == self._learned:
            return
        minibatches = self._minibatches
        minibatches.draw_up_to(count, 1, batch_size, length)
        self._replay.note_losses(minibatches.origins[: len(losses)], losses)
        self._learned = epoch
        self.save(self._journal)

    def exploration(self) -> float:
        """Returns how much of the next epoch is to be played at random."""
        return self._replay.exploration

    def sample(self, batch_size: int, length: int) -> dict[str, np.ndarray]:
        """Returns a minibatch for people to look at, which changes no others."""
        rng = self._replay.stream("pictures", self._epoch)
        return self._replay.gather(self._replay.draw(batch_size, length, rng=rng))

    def recent(self, batch_size: int, length: int) -> dict[str, np.ndarray]:
        """Returns rows of the FIFO buffer, if there is one; it changes no others."""
        rng = self._replay.stream("recent", self._epoch)
        buffer = "fifo" if self.stats()["fifo_chunks"] else None
        draw = self._replay.draw(batch_size, length, buffer=buffer, rng=rng)
        return self._replay.gather(draw)

    def drawn(self) -> dict[str, int]:
        """Returns how many minibatches of the epoch so far came from each buffer.

        None did, as far as an actor knows that was restarted since.
        """
        return dict(Counter(origin.buffer for origin in self._minibatches.origins))

    def forget_journal(self) -> None:
        """Deletes what nobody will read once this actor is stopped."""
        shutil.rmtree(self._journal, ignore_errors=True)

    def pid(self) -> int:
        """Returns the process this actor lives in."""
        return os.getpid()

    def save(self, path: str | os.PathLike) -> None:
        """Writes a snapshot that also holds the rows too few for a chunk yet."""
        state = self._replay.get_state()
        waiting = [_pack(splicer.get_state()) for splicer in self._splicers]
        envs = [splicer.num_envs for splicer in self._splicers]
        state["meta"] |= {"epoch": self._epoch, "learned": self._learned}
        state["meta"] |= {"waiting": waiting, "envs": envs}
        snapshot.save(path, state)

    def load(self, path: str | os.PathLike) -> None:
        """Replaces the contents by a snapshot's, in the journal too."""
        self._read(path)
        self.save(self._journal)

    # For a snapshot from or to another node; see `checkpoints/transfer.py`.

    def node_id(self) -> str:
        """Returns the node this actor lives on."""
        return ray.get_runtime_context().get_node_id()

    def journal_files(self) -> dict[str, int]:
        """Brings the journal up to date; returns its files and their sizes."""
        self.save(self._journal)
        return {file.name: file.stat().st_size for file in self._journal.iterdir()}

    def read(self, name: str, offset: int, size: int) -> bytes:
        """Returns a piece of a file of the journal."""
        with open(self._journal / name, "rb") as file:
            file.seek(offset)
            return file.read(size)

    def receive(self, name: str, offset: int, piece: bytes) -> None:
        """Takes a piece of a file of a snapshot; the same one again does no harm."""
        self._received.mkdir(parents=True, exist_ok=True)
        with open(self._received / name, "r+b" if offset else "wb") as file:
            file.seek(offset)
            file.write(piece)

    def load_received(self) -> None:
        """Replaces the contents by those of the snapshot received."""
        self.load(self._received)
        shutil.rmtree(self._received)

    @property
    def _received(self) -> Path:
        return self._journal.with_name(f"{self._journal.name}.received")

    def _read(self, path: str | os.PathLike) -> None:
        # The old contents go first: two full memories might not fit.
        self._replay = TwoBufferReplay(**self._settings)
        state = snapshot.load(path)
        self._replay.set_state(state)
        meta = state["meta"]
        self._splicers = []
        for envs, waiting in zip(meta["envs"], meta["waiting"], strict=True):
            splicer = Splicer(envs, self._replay.chunk_length)
            splicer.set_state(_unpack(waiting))
            self._splicers.append(splicer)
        self._learned = meta.get("learned", meta["epoch"])
        self.begin(meta["epoch"])


def start_journaled_replay(
    settings: dict[str, Any],
    journal: str | os.PathLike,
    resources: dict[str, float] | None = None,
) -> ActorHandle:
    """Starts the replay of one run; its owner ends it with `ray.kill`.

    Args:
        settings: Those of `TwoBufferReplay`.
        journal: Directory for what a restart needs; what lies there is overwritten.
        resources: Ray's custom resources of the node that should hold it.
    """
    here = NodeAffinitySchedulingStrategy(
        ray.get_runtime_context().get_node_id(), soft=False
    )
    options = {
        # No CPU, and outside the placement group of a Tune trial, whose bundles are
        # counted for others. Beside its owner, whose checkpoints it is part of.
        "num_cpus": 0,
        "scheduling_strategy": "DEFAULT" if resources else here,
        "resources": resources or {},
        "max_restarts": -1,
        "max_task_retries": -1,
    }
    actor = ray.remote(**options)(JournaledReplayActor)
    return actor.remote(settings, os.fspath(journal))


def _pack(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Returns a few arrays as JSON can hold them, compressed."""
    return {
        name: {
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "data": base64.b64encode(_LZ4.compress(array.tobytes())).decode(),
        }
        for name, array in arrays.items()
    }


def _unpack(packed: dict[str, Any]) -> dict[str, np.ndarray]:
    """Returns the arrays that `_pack` was given, read-only."""
    arrays = {}
    for name, one in packed.items():
        dtype = np.dtype(one["dtype"])
        raw = _LZ4.decompress(
            base64.b64decode(one["data"]), prod(one["shape"]) * dtype.itemsize
        )
        arrays[name] = np.frombuffer(raw, dtype).reshape(one["shape"])
    return arrays
