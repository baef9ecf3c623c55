"""What a minibatch consists of, and how well the world model did on it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from rllib_arrow.replay.shares import EpochLosses
from rllib_arrow.replay.store import Record

FIRST = 16  # sequences of fresh chunks, by which it is judged how new they are


class Origin(NamedTuple):
    """Where the sequences of a minibatch come from."""

    buffer: str  # "fifo" or "ltdm": a minibatch comes whole from one of them
    serials: tuple[int, ...]  # of the chunks, one per sequence


class Draw(NamedTuple):
    """Which sequences a minibatch consists of, before any frame is decompressed.

    It holds the stored chunks themselves, so that what is added between drawing and
    gathering changes nothing.
    """

    buffer: str
    records: tuple[Record, ...]
    starts: np.ndarray  # int64 [B]
    length: int

    @property
    def origin(self) -> Origin:
        """Where the sequences come from, without the chunks themselves."""
        return Origin(self.buffer, tuple(record.serial for record in self.records))

    def part(self, start: int, stop: int) -> Draw:
        """Returns the sequences from number `start` to before `stop`."""
        return self._replace(
            records=self.records[start:stop], starts=self.starts[start:stop]
        )


class LossTally:
    """The losses of an epoch's sequences, each with where it came from."""

    def __init__(self, origins: Sequence[Origin], losses: np.ndarray):
        shape = (len(origins), len(origins[0].serials) if origins else 0)
        if np.shape(losses) != shape:
            raise ValueError(
                f"losses has shape {np.shape(losses)}; one for each sequence drawn "
                f"makes {shape}."
            )
        self._entries = [
            (origin.buffer, serial, float(loss))
            for origin, row in zip(origins, losses, strict=True)
            for serial, loss in zip(origin.serials, row, strict=True)
        ]

    def by_chunk(self, buffer: str) -> dict[int, float]:
        """Returns the mean loss of each chunk that was drawn from the buffer."""
        losses = defaultdict(list)
        for origin, serial, loss in self._entries:
            if origin == buffer:
                losses[serial].append(loss)
        return {serial: float(np.mean(each)) for serial, each in losses.items()}

    def means(self, fresh_from: int) -> EpochLosses:
        """Returns mean losses; fresh are the chunks from this serial number on.

        Of fresh chunks only the first sequences count, which the world model had not
        had the time to learn.
        """
        return EpochLosses(
            fresh=self._mean(lambda _, serial: serial >= fresh_from, FIRST),
            fifo=self._mean(lambda buffer, _: buffer == "fifo"),
            ltdm=self._mean(lambda buffer, _: buffer == "ltdm"),
        )

    def _mean(
        self, wanted: Callable[[str, int], bool], first: int | None = None
    ) -> float | None:
        losses = [loss for *origin, loss in self._entries if wanted(*origin)][:first]
        return float(np.mean(losses)) if losses else None
