"""Random streams, derived from the run's seed and never stored."""

from __future__ import annotations

import zlib

import numpy as np


def derive_seed(seed: int, *keys: int | str) -> int:
    """Returns a 63-bit seed that depends on the run's seed and on every key.

    The same arguments give the same seed in every process, so a stream named by
    `(seed, epoch, purpose, index)` needs no saving to be continued after a crash. Zeros
    at the end count as no keys.
    """
    words = [zlib.crc32(k.encode()) if isinstance(k, str) else int(k) for k in keys]
    state = np.random.SeedSequence([int(seed), *words]).generate_state(1, np.uint64)
    return int(state[0] >> np.uint64(1))


def derive_rng(seed: int, *keys: int | str) -> np.random.Generator:
    """Returns a NumPy generator on the stream named by the seed and the keys."""
    return np.random.default_rng(derive_seed(seed, *keys))
