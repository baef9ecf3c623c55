"""Cuts the streams of a vector environment into chunks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rllib_arrow.replay.chunk import DTYPES, WIDE, Chunk, make_chunk


class Splicer:
    """Joins the rows of `num_envs` environments into chunks of one fixed length.

    A vector environment gives one row per environment and step, so all streams are
    equally long at any time. What is too short for a chunk waits here and is joined
    to the rows that follow, also across a reset: `is_first` shows the seam.
    """

    def __init__(self, num_envs: int, chunk_length: int):
        for name, value in (("num_envs", num_envs), ("chunk_length", chunk_length)):
            if value < 1:
                raise ValueError(f"{name} ({value}) must be at least 1.")
        self.num_envs = num_envs
        self.chunk_length = chunk_length
        self._fill = 0
        self._waiting: Chunk | None = None  # fields are [num_envs, chunk_length, ...]

    def __len__(self) -> int:
        """Returns how many rows of each environment wait for a full chunk."""
        return self._fill

    def push(self, streams: list[Chunk]) -> Iterator[Chunk]:
        """Takes one equally long stream of rows per environment, as long chunks.

        Yields the chunks they complete, those of one stretch of time together, in
        the order of the environments.
        """
        done, rows = 0, len(streams[0].rewards)
        while done < rows:
            stop = min(rows, done + self.chunk_length - self._fill)
            fields = zip(*streams, strict=True)
            parts = (np.stack([s[done:stop] for s in field]) for field in fields)
            yield from self._append(type(streams[0])(*parts))
            done = stop

    def get_state(self) -> dict[str, np.ndarray]:
        """Returns the waiting rows, fields [num_envs, waiting, ...]; {} if none."""
        if self._fill == 0:
            return {}
        fields = self._waiting._asdict().items()
        return {name: field[:, : self._fill].copy() for name, field in fields}

    def set_state(self, state: dict[str, np.ndarray]) -> None:
        """Goes on from where the splicer that returned `state` stopped."""
        self._fill, self._waiting = 0, None
        if not state:
            return
        num_envs, waiting = state["obs"].shape[:2]
        if num_envs != self.num_envs or waiting >= self.chunk_length:
            raise ValueError(
                f"The state holds {waiting} rows of {num_envs} environments; this "
                f"splicer has num_envs={self.num_envs} and can hold less than "
                f"chunk_length={self.chunk_length} rows."
            )
        self._append(make_chunk(state))

    def _append(self, rows: Chunk) -> list[Chunk]:
        """Takes rows [num_envs, t, ...] that fit; returns the chunks once full."""
        if self._waiting is None:
            self._waiting = self._allocate(rows)
        stop = self._fill + rows.obs.shape[1]
        for name, field in self._waiting._asdict().items():
            part = getattr(rows, name)
            place = field[:, self._fill : stop]
            if part.shape != place.shape:
                raise ValueError(
                    f"{name} has shape {part.shape}; this splicer takes {place.shape}."
                )
            np.copyto(place, part, casting="same_kind")
        self._fill = stop % self.chunk_length
        if self._fill:
            return []
        # The buffer is used again, so the chunks must not share its memory.
        return [
            type(rows)(*(field[env].copy() for field in self._waiting))
            for env in range(self.num_envs)
        ]

    def _allocate(self, rows: Chunk) -> Chunk:
        shape = (self.num_envs, self.chunk_length)
        wide = {name: array.shape[2:] for name, array in rows._asdict().items()}
        return make_chunk(
            {
                name: np.empty((*shape, *(wide[name] if name in WIDE else ())), dtype)
                for name, dtype in DTYPES.items()
                if name in wide
            }
        )
