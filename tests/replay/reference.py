"""The same rules in plain Python: nothing compressed, nothing shared or clever."""

from __future__ import annotations

import numpy as np

from rllib_arrow.replay import Chunk
from rllib_arrow.seeding import derive_rng

FRAME = (4, 4, 3)
SETTINGS = {  # of a replay
    "capacity_chunks": 8,
    "chunk_length": 16,
    "ltdm_fraction": 0.5,
    "seed": 7,
    "num_threads": 1,
}


def make_chunk(serial: int, length: int, frame: tuple[int, ...] = FRAME) -> Chunk:
    """Returns a chunk of which every row tells which one it is."""
    rng = np.random.default_rng(serial)
    obs = rng.integers(0, 256, (length, *frame), np.uint8)
    obs[length // 2 :] = obs[length // 2]  # a part that does not move
    return Chunk(
        obs=obs,
        actions=np.arange(length) + 1000 * serial,
        rewards=rng.normal(size=length).astype(np.float32),
        is_first=rng.random(length) < 0.1,
        is_terminated=rng.random(length) < 0.1,
    )


class PlainReplay:
    """Keeps whole chunks in two lists and finds everything by looking at all of it."""

    def __init__(self, capacity, chunk_length, fraction, seed, probability=0.5):
        self.chunk_length = chunk_length
        self.probability = probability
        self.long_slots = {0: 0, 1: capacity}.get(fraction)
        if self.long_slots is None:
            self.long_slots = sorted(
                (1, int(np.floor(fraction * capacity + 0.5)), capacity - 1)
            )[1]
        self.fifo_slots = capacity - self.long_slots
        self.keys = derive_rng(seed, "replay", "keys")
        self.draws = derive_rng(seed, "replay", "draws")
        self.seen = []  # every chunk ever, with its key
        self.fifo, self.ltdm = [], []  # (serial, chunk, key), in slots

    def add(self, chunk):
        entry = (len(self.seen), chunk, self.keys.random())
        self.seen.append(entry)
        if self.fifo_slots:
            if len(self.fifo) == self.fifo_slots:
                oldest = min(self.fifo)[0]
                self.fifo = [entry if e[0] == oldest else e for e in self.fifo]
            else:
                self.fifo.append(entry)
        if self.long_slots:
            if len(self.ltdm) < self.long_slots:
                self.ltdm.append(entry)
            else:
                worst = min(e[2] for e in self.ltdm)
                if entry[2] > worst:
                    self.ltdm = [entry if e[2] == worst else e for e in self.ltdm]

    def sample(self, batch_size, length):
        if self.fifo and self.ltdm:
            use_long = self.draws.random() < self.probability
        else:
            use_long = bool(self.ltdm)
        buffer = self.ltdm if use_long else self.fifo
        chosen = self.draws.integers(len(buffer), size=batch_size)
        starts = self.draws.integers(self.chunk_length - length + 1, size=batch_size)
        rows = [
            [field[s : s + length] for field in buffer[c][1]]
            for c, s in zip(chosen, starts, strict=True)
        ]
        return {
            name: np.stack([row[i] for row in rows])
            for i, name in enumerate(Chunk._fields)
        }


def assert_same_batch(ours: dict, theirs: dict) -> None:
    assert list(ours) == list(theirs) == list(Chunk._fields)
    for name in ours:
        assert ours[name].dtype == theirs[name].dtype
        np.testing.assert_array_equal(ours[name], theirs[name])
