"""The unit of replay: consecutive rows of one environment."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Chunk(NamedTuple):
    """Consecutive rows of one environment; every field starts with the time axis.

    A chunk may span several episodes: `is_first` marks where each of them starts.
    See docs/architecture.md for what a row means.
    """

    obs: np.ndarray  # uint8 [T, H, W, C]
    actions: np.ndarray  # int64 [T]
    rewards: np.ndarray  # float32 [T], arrived with obs
    is_first: np.ndarray  # bool [T]
    is_terminated: np.ndarray  # bool [T]


class ChunkWithPolicy(NamedTuple):
    """A chunk that also holds what was thought at each row; see `dv3/cloning.py`."""

    obs: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    is_first: np.ndarray
    is_terminated: np.ndarray
    # float16 [T, num_actions + 1]: the probabilities from which the row's action was
    # drawn and the row's value in symlog; zeros where no policy chose.
    policy: np.ndarray


DTYPES = {
    "obs": np.dtype(np.uint8),
    "actions": np.dtype(np.int64),
    "rewards": np.dtype(np.float32),
    "is_first": np.dtype(np.bool_),
    "is_terminated": np.dtype(np.bool_),
    "policy": np.dtype(np.float16),
}
WIDE = ("obs", "policy")  # fields with more axes than time


def make_chunk(fields: dict[str, np.ndarray]) -> Chunk | ChunkWithPolicy:
    """Returns the kind of chunk that has these fields."""
    return (ChunkWithPolicy if "policy" in fields else Chunk)(**fields)


def check_chunk(
    chunk: Chunk | ChunkWithPolicy,
    chunk_length: int,
    frame_shape: tuple[int, ...] | None = None,
) -> None:
    """Raises a ValueError that names the first field which cannot be stored.

    Args:
        chunk: What is about to be added.
        chunk_length: How many rows it must have.
        frame_shape: The shape of one observation, if an earlier chunk has set it.
    """
    for name, array in chunk._asdict().items():
        dtype = DTYPES[name]
        if not isinstance(array, np.ndarray) or array.dtype != dtype:
            found = getattr(array, "dtype", type(array).__name__)
            raise ValueError(f"chunk.{name} is {found}; it must be a {dtype} array.")
        shape = (chunk_length, *(array.shape[1:] if name in WIDE else ()))
        if array.shape != shape:
            raise ValueError(
                f"chunk.{name} has shape {array.shape}; a chunk has exactly "
                f"chunk_length={chunk_length} rows, so it must be {shape}."
            )
    if frame_shape is not None and chunk.obs.shape[1:] != frame_shape:
        raise ValueError(
            f"chunk.obs holds frames of shape {chunk.obs.shape[1:]}; the first chunk "
            f"had {frame_shape}, and one replay holds one shape."
        )
    if not np.isfinite(chunk.rewards).all():
        row = int(np.flatnonzero(~np.isfinite(chunk.rewards))[0])
        raise ValueError(
            f"chunk.rewards[{row}] is {chunk.rewards[row]}; rewards must be finite."
        )
