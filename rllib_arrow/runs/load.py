"""Runs as pandas frames: what was scored, what it amounts to, what was trained."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

import pandas as pd

from rllib_arrow.errors import UserError
from rllib_arrow.runs.analysis import analyse
from rllib_arrow.runs.inside import (
    INSIDE_CSV,
    MEMORY_CSV,
    Inside,
    Memory,
    Row,
    read_findings,
)
from rllib_arrow.runs.read import Run, read_runs
from rllib_arrow.runs.results import Results
from rllib_arrow.runs.scores import COLUMNS

METRIC_COLUMNS = ("method", "suite", "setting", "seed", "metric", "value")


class Runs:
    """Runs as read from their directories; frames and results are made when asked."""

    def __init__(
        self, runs: Sequence[Run], baselines: Sequence[Run] = (), notes: Sequence = ()
    ) -> None:
        self.runs = list(runs)
        self.baselines = list(baselines)
        self.notes = list(notes)  # what a reader must know about the choice of runs

    @cached_property
    def scores(self) -> pd.DataFrame:
        """One row per evaluated task: `evaluations.csv`'s columns, and `run`."""
        rows = [(*s, _place(r)) for r in self._all for s in r.scores]
        return pd.DataFrame(rows, columns=[*COLUMNS, "run"])

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """One row per seed and metric: the columns of `metrics_by_seed.csv`.

        A seed without a value, such as an unfinished one beside finished ones, has NaN.
        """
        rows = []
        for comparison in self.results.comparisons:
            for result in comparison.own_methods:
                key = (result.method, comparison.suite, comparison.setting)
                rows += [(*key, *row) for row in result.by_seed()]
        return pd.DataFrame(rows, columns=list(METRIC_COLUMNS))

    @cached_property
    def curricula(self) -> pd.DataFrame:
        """One row per stretch of training, epochs in (start, end], and `run`."""
        columns = ["method", "suite", "setting", "seed", "task", "cycle"]
        rows = [
            (c.method, c.suite, c.setting, c.seed, *exposure, _place(run))
            for run in self._all
            for c in [run.curve]
            for exposure in c.exposures
        ]
        return pd.DataFrame(rows, columns=[*columns, "start", "end", "run"])

    @cached_property
    def inside(self) -> pd.DataFrame:
        """One row per measure of a part: `inside.csv`'s columns, the run's, `frames`.

        Empty where no run was looked into.
        """
        return self._findings(Inside, INSIDE_CSV)

    @cached_property
    def memory(self) -> pd.DataFrame:
        """One row per figure of a buffer: `memory.csv`'s columns, the run's, too."""
        return self._findings(Memory, MEMORY_CSV)

    def _findings(self, kind: type[Row], name: str) -> pd.DataFrame:
        rows = []
        for run in self._all:
            if run.plan is None:  # a file of several runs has nothing beside it
                continue
            c, place = run.curve, _place(run)
            of_run = (place, c.method, c.suite, c.setting, c.seed)
            rows += [
                (*of_run, round(found.epoch * c.frames_per_epoch), *found)
                for found in read_findings(kind, run.path.with_name(name))
            ]
        columns = ["run", "method", "suite", "setting", "seed", "frames"]
        return pd.DataFrame(rows, columns=[*columns, *kind._fields])

    @cached_property
    def results(self) -> Results:
        """Every number of a report."""
        return analyse(self.runs, self.baselines, self.notes)

    @property
    def _all(self) -> list[Run]:
        return [*self.runs, *self.baselines]


def _place(run: Run) -> str:
    """The run's directory, or its file where that holds several runs."""
    return str(run.path.parent if run.plan else run.path)


def load_runs(
    *paths: str | Path, baselines: str | Path | Iterable[str | Path] | None = None
) -> Runs:
    """Returns the runs in the given directories, trees of them, or CSV files.

    `baselines` are single-task runs, by which scores are normalised; they may lie in
    the same tree as the others. Unfinished runs are welcome.
    """
    if not paths:
        raise UserError("no runs were given; name a run directory or a CSV file.")
    runs, notes, singles = read_runs(paths), [], []
    if isinstance(baselines, str | Path):
        baselines = [baselines]
    if baselines := list(baselines or ()):
        found = read_runs(baselines)
        singles = [run for run in found if run.curve.setting == "single"]
        if not singles:
            raise UserError(
                f"--baselines {', '.join(map(str, baselines))}: none of the "
                f"{len(found)} runs has the setting 'single'; give single-task runs."
            )
        if len(singles) < len(found):
            notes.append(
                f"{len(found) - len(singles)} runs under --baselines are not "
                "single-task runs and were not used."
            )
    taken = {run.key for run in singles}
    return Runs([run for run in runs if run.key not in taken], singles, notes)
