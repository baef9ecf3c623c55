"""A stretch of training on one task: what schedules, run files and metrics share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

MAX_EXPOSURES = 100_000  # of a run; all of them stand in memory


class Exposure(NamedTuple):
    """One stretch of training on one task: the epochs in (start, end]."""

    task: str
    cycle: int  # counted from 1
    start: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.start


def most_cycles(tasks: int) -> str:
    """Returns how many cycles so many tasks may have, in words."""
    return f"{MAX_EXPOSURES // tasks:,} for {tasks} tasks"


def plan_exposures(
    tasks: Sequence[str], epochs_per_task: Sequence[int], cycles: int = 1
) -> tuple[Exposure, ...]:
    """Returns the exposures of tasks trained one after the other, `cycles` times."""
    exposures, start = [], 0
    for cycle in range(1, cycles + 1):
        for task, epochs in zip(tasks, epochs_per_task, strict=True):
            exposures.append(Exposure(task, cycle, start, start + epochs))
            start += epochs
    return tuple(exposures)
