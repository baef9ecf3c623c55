"""The record every metric works on: one run's scores, evaluation by evaluation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rllib_arrow.curriculum.exposure import Exposure


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
    trained: tuple[Exposure, ...] = ()  # all exposures, where some were left out

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
    def frames_per_epoch(self) -> float:
        return int(self.frames[-1]) / max(1, self.now)

    @property
    def cycles(self) -> int:
        return max(exposure.cycle for exposure in self.exposures)

    @cached_property
    def columns(self) -> dict[str, int]:
        """Each task's column in `scores`."""
        return {task: i for i, task in enumerate(self.tasks)}

    def score(self, task: str, epoch: int, just_before: bool = False) -> float:
        """A task's score at the last evaluation at or before `epoch`, else NaN.

        `just_before` looks for an evaluation strictly before it.
        """
        side = "left" if just_before else "right"
        row = int(np.searchsorted(self.epochs, epoch, side=side)) - 1
        return float(self.scores[row, self.columns[task]]) if row >= 0 else np.nan

    def within(self, task: str, start: int, end: int) -> np.ndarray:
        """A task's scores [n] at the evaluations in (start, end]."""
        first, last = np.searchsorted(self.epochs, (start, end), side="right")
        return self.scores[first:last, self.columns[task]]

    def begun(self) -> list[Exposure]:
        """The exposures that have begun; before any training, the first one."""
        return [e for e in self.exposures if e.start < self.now] or [self.exposures[0]]

    @property
    def in_training(self) -> str:
        """The task trained last, which may be one that was left out."""
        every = self.trained or self.exposures
        return ([e for e in every if e.start < self.now] or [every[0]])[-1].task

    @property
    def trained_first(self) -> str:
        """The task trained first, which may be one that was left out."""
        return (self.trained or self.exposures)[0].task

    def first_exposures(self) -> dict[str, Exposure]:
        """Each task met so far and its first exposure, in the order of training."""
        first: dict[str, Exposure] = {}
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
        """The run without some tasks and their exposures; None if nothing is left.

        Which task was trained first, and which is in training, stays as it was.
        """
        keep = [i for i, task in enumerate(self.tasks) if task not in left_out]
        exposures = tuple(e for e in self.exposures if e.task not in left_out)
        if not exposures:
            return None
        return replace(
            self,
            tasks=tuple(self.tasks[i] for i in keep),
            exposures=exposures,
            scores=self.scores[:, keep],
            trained=self.trained or self.exposures,
        )
