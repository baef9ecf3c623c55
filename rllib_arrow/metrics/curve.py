"""The record every metric works on: one run's scores, evaluation by evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np


class Exposure(NamedTuple):
    """One stretch of training on one task: the epochs in (start, end]."""

    task: int  # index into the run's tasks
    start: int
    end: int
    cycle: int = 1

    @property
    def length(self) -> int:
        return self.end - self.start


def plan_exposures(
    epochs_per_task: Sequence[int], cycles: int = 1
) -> tuple[Exposure, ...]:
    """Returns the exposures of a curriculum, each `epochs_per_task[i]` epochs long."""
    exposures, start = [], 0
    for cycle in range(1, cycles + 1):
        for task, length in enumerate(epochs_per_task):
            exposures.append(Exposure(task, start, start + length, cycle))
            start += length
    return tuple(exposures)


@dataclass(frozen=True, eq=False)
class RunCurve:
    """Scores of one run: a row per evaluation, a column per task.

    Metrics assume normalised scores (0 random, 1 single-task). The evaluation grid
    may be coarser than the epochs: a value at an epoch is that of the last evaluation
    at or before it.
    """

    method: str
    suite: str
    setting: str
    seed: int
    tasks: tuple[str, ...]
    exposures: tuple[Exposure, ...]
    epochs: np.ndarray  # int [E], ascending; 0 is before any training
    frames: np.ndarray  # int [E]
    scores: np.ndarray  # float [E, T]

    def __post_init__(self) -> None:
        shape = (len(self.epochs), len(self.tasks))
        if self.scores.shape != shape or len(self.frames) != shape[0]:
            raise ValueError(
                f"scores {self.scores.shape} and frames {np.shape(self.frames)} must "
                f"have one row per epoch and one column per task {shape}."
            )
        if shape[0] == 0 or np.any(np.diff(self.epochs) <= 0):
            raise ValueError(f"epochs ({self.epochs}) must be given and ascending.")
        if not self.exposures:
            raise ValueError("exposures must hold at least one exposure.")

    @property
    def now(self) -> int:
        """The epoch of the last evaluation: all a metric can know about."""
        return int(self.epochs[-1])

    @property
    def end(self) -> int:
        """The epoch at which the curriculum ends."""
        return self.exposures[-1].end

    @property
    def finished(self) -> bool:
        return self.now >= self.end

    @property
    def cycles(self) -> int:
        return max(exposure.cycle for exposure in self.exposures)

    def at(self, epoch: int) -> np.ndarray:
        """Scores [T] of the last evaluation at or before `epoch`, else NaN."""
        return self._row(np.searchsorted(self.epochs, epoch, side="right") - 1)

    def just_before(self, epoch: int) -> np.ndarray:
        """Scores [T] of the last evaluation strictly before `epoch`, else NaN."""
        return self._row(np.searchsorted(self.epochs, epoch, side="left") - 1)

    def _row(self, index: int) -> np.ndarray:
        return self.scores[index] if index >= 0 else np.full(len(self.tasks), np.nan)

    def within(self, start: int, end: int) -> np.ndarray:
        """Scores [n, T] of the evaluations in (start, end]."""
        return self.scores[(self.epochs > start) & (self.epochs <= end)]

    def begun(self) -> list[Exposure]:
        """The exposures that have begun; before any training, the first one."""
        return [e for e in self.exposures if e.start < self.now] or [self.exposures[0]]

    def first_exposures(self) -> dict[int, Exposure]:
        """Each task met so far and its first exposure, in the order of training."""
        first: dict[int, Exposure] = {}
        for exposure in self.begun():
            first.setdefault(exposure.task, exposure)
        return first

    def of_cycle(self, cycle: int) -> list[Exposure]:
        return [e for e in self.exposures if e.cycle == cycle]

    def until(self, epoch: int) -> RunCurve:
        """The run as it looked at `epoch`; at least the first evaluation is kept."""
        stop = max(int(np.searchsorted(self.epochs, epoch, side="right")), 1)
        return replace(
            self,
            epochs=self.epochs[:stop],
            frames=self.frames[:stop],
            scores=self.scores[:stop],
        )

    def without(self, left_out: set[str]) -> RunCurve | None:
        """The run without some tasks and their exposures; None if nothing is left."""
        keep = [i for i, task in enumerate(self.tasks) if task not in left_out]
        new = {old: i for i, old in enumerate(keep)}
        exposures = tuple(
            e._replace(task=new[e.task]) for e in self.exposures if e.task in new
        )
        if not exposures:
            return None
        return replace(
            self,
            tasks=tuple(self.tasks[i] for i in keep),
            exposures=exposures,
            scores=self.scores[:, keep],
        )
