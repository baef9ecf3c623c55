"""What diagnostics saw in the runs of one suite and setting, ready to be drawn."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from rllib_arrow.curriculum.exposure import Exposure
from rllib_arrow.metrics.statistics import Series
from rllib_arrow.runs.analysis import method_rank
from rllib_arrow.runs.forgotten import forgotten, main_rows
from rllib_arrow.runs.inside import AT_ITS_END, AT_THE_END, strip_file
from rllib_arrow.runs.load import Runs
from rllib_arrow.runs.read import Run

MAX_METHODS = 4  # side by side in a figure
MAX_BYTES = 16 * 2**20  # of a strip


class Strips(NamedTuple):
    """PNG files of one task in one run."""

    method: str
    seed: int
    task: str
    at_its_end: bytes
    at_the_end: bytes | None  # a run under way has none yet


class InsideView:
    """The rows of one suite and setting, of the methods that are drawn."""

    def __init__(self, runs: Runs, suite: str, setting: str) -> None:
        def here(frame: pd.DataFrame) -> pd.DataFrame:
            return frame[(frame.suite == suite) & (frame.setting == setting)]

        self.suite, self.setting = suite, setting
        self.all_methods = sorted(set(here(runs.inside).method), key=method_rank)
        self.methods = self.all_methods[:MAX_METHODS]
        drawn = set(self.methods)
        self.inside, self.memory = (
            frame[frame.method.isin(drawn)]
            for frame in (here(runs.inside), here(runs.memory))
        )
        self._runs = [
            run
            for run in runs.runs
            if (run.curve.suite, run.curve.setting) == (suite, setting)
            and run.curve.method in drawn
        ]

    @property
    def tasks(self) -> tuple[str, ...]:
        """In the order of training."""
        return self._runs[0].curve.tasks

    @property
    def exposures(self) -> tuple[Exposure, ...]:
        return self._runs[0].curve.exposures

    @property
    def frames_per_epoch(self) -> float:
        return self._runs[0].curve.frames_per_epoch

    def seeds(self, method: str) -> int:
        return self.inside[self.inside.method == method].seed.nunique()

    @cached_property
    def forgotten(self) -> pd.DataFrame:
        """What the parts forgot, by the measure that each is judged by."""
        return main_rows(forgotten(self.inside)).dropna(subset="forgotten")

    @cached_property
    def strips(self) -> list[Strips]:
        """Of the first run of each method that has any, task by task."""
        found: dict[str, list[Strips]] = {}
        for run in self._runs:
            if not found.get(run.curve.method):
                found[run.curve.method] = _strips_of(run)
        return [strip for method in self.methods for strip in found.get(method, [])]


def _strips_of(run: Run) -> list[Strips]:
    found = []
    for task in run.curve.tasks:
        files = [
            _read(run.path.parent / strip_file(run.curve.tasks, task, when))
            if run.plan
            else None
            for when in (AT_ITS_END, AT_THE_END)
        ]
        if files[0] is not None:
            found.append(Strips(run.curve.method, run.curve.seed, task, *files))
    return found


def _read(path: Path) -> bytes | None:
    if not path.is_file() or path.stat().st_size > MAX_BYTES:
        return None
    return path.read_bytes()


def over_seeds(rows: pd.DataFrame, value: str) -> Series:
    """Returns median and quartiles over the runs, look by look."""
    groups = rows.groupby(["epoch", "frames"])[value]
    q25, median, q75 = (groups.quantile(q) for q in (0.25, 0.5, 0.75))
    epochs, frames = (np.array(median.index.get_level_values(i)) for i in (0, 1))
    return Series(epochs, frames, *(q.to_numpy() for q in (median, q25, q75)))
