"""Finds the evaluations of runs and makes run records of them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rllib_arrow.curriculum.exposure import Exposure
from rllib_arrow.errors import UserError
from rllib_arrow.metrics.curve import RunCurve
from rllib_arrow.runs.curricula import CURRICULUM_JSON, Plan, read_plan
from rllib_arrow.runs.scores import EVALUATIONS_CSV, Score, read_scores


@dataclass(frozen=True, eq=False)
class Run:
    """One run with raw returns, and where it came from."""

    curve: RunCurve
    scores: tuple[Score, ...]
    path: Path
    plan: Plan | None  # None where there is no curriculum.json: exposures are inferred

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells runs apart; single-task runs differ by task as well."""
        c = self.curve
        task = c.tasks[0] if c.setting == "single" else ""
        return (c.suite, c.setting, c.method, c.seed, task)

    @property
    def sweep(self) -> str:
        """Which values of a sweep the run has, as its method says: `gamma=0.9`."""
        return split_method(self.curve.method)[1]

    @property
    def label(self) -> str:
        suite, setting, method, seed, task = self.key
        return f"{method} {suite} {setting}{' ' + task if task else ''}, seed {seed}"

    @property
    def finished(self) -> bool:
        """Whether the last evaluation is the curriculum's end, as far as is known."""
        counts = Counter(e.task for e in self.curve.exposures)
        cyclic = "_cycle" in self.curve.setting
        whole = len(counts) == len(self.curve.tasks) and len(set(counts.values())) == 1
        return self.curve.finished and whole and (not cyclic or self.curve.cycles > 1)


def split_method(method: str) -> tuple[str, str]:
    """Returns a method's name and the values of a sweep that follow it."""
    words = method.split(" ")
    name = " ".join(word for word in words if "=" not in word)
    return name, " ".join(word for word in words if "=" in word)


def read_runs(sources: Iterable[str | Path]) -> list[Run]:
    """Reads every run below the given directories and in the given CSV files."""
    runs = [run for path in _find(sources) for run in read_file(path)]
    seen: dict[tuple[Any, ...], Run] = {}
    for run in runs:
        other = seen.setdefault(run.key, run)
        if other is not run and not _same_scores(run.curve, other.curve):
            raise UserError(
                f"{run.path} and {other.path} both hold {run.label}; give only one "
                "of them."
            )
    _check_same_curriculum(runs)
    return sorted(seen.values(), key=lambda run: tuple(map(str, run.key)))


def _same_scores(a: RunCurve, b: RunCurve) -> bool:
    """Whether two runs are one, such as ARROW's own and that of a sweep."""
    return all(
        np.array_equal(getattr(a, part), getattr(b, part))
        for part in ("tasks", "exposures", "epochs", "frames", "scores")
    )


def _find(sources: Iterable[str | Path]) -> list[Path]:
    """The evaluation files behind the sources, each once."""
    found: dict[Path, Path] = {}
    for source in map(Path, sources):
        if source.is_dir():
            files = _below(source)
            if not files:
                raise UserError(
                    f"{source}: no {EVALUATIONS_CSV} in this directory or below it; "
                    "give a run directory, a tree of them, or a CSV file."
                )
        elif source.exists():
            files = [source]
        else:
            raise UserError(f"{source}: no such run directory or CSV file.")
        for file in files:
            found.setdefault(file.resolve(), file)
    return list(found.values())


def _below(top: Path) -> list[Path]:
    """The evaluation files of a tree; links are followed, each directory once."""

    def unreadable(error: OSError) -> None:
        raise UserError(f"{error.filename}: cannot be read ({error.strerror}).")

    found, seen = [], set()
    for folder, folders, files in os.walk(top, onerror=unreadable, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders.sort()
        if EVALUATIONS_CSV in files:
            found.append(Path(folder, EVALUATIONS_CSV))
    return sorted(found)


def read_file(path: str | Path) -> list[Run]:
    """Reads one CSV file, which may hold several runs, strictly."""
    path = Path(path)
    groups: dict[tuple[Any, ...], list[tuple[int, Score]]] = {}
    for line, row in read_scores(path):
        task = row.eval_task if row.setting == "single" else ""
        key = (row.method, row.suite, row.setting, row.seed, task)
        groups.setdefault(key, []).append((line, row))
    if not groups:
        raise UserError(f"{path}: no evaluations below the header line.")
    plan = read_plan(path.with_name(CURRICULUM_JSON))
    if plan and len(groups) > 1:
        raise UserError(
            f"{path}: {len(groups)} runs beside one {CURRICULUM_JSON}; a file with "
            "several runs must stand alone."
        )
    return [_RunReader(path, rows).run(plan) for rows in groups.values()]


class _RunReader:
    """Makes one run of its rows, whatever their order in the file."""

    def __init__(self, path: Path, rows: Sequence[tuple[int, Score]]) -> None:
        self._path = path
        self._rows = rows
        self._lines: dict[tuple[int, str], int] = {}
        self._table: dict[int, dict[str, Score]] = {}
        for line, row in rows:
            place = (row.epoch, row.eval_task)
            if (other := self._lines.setdefault(place, line)) != line:
                raise self._fault(
                    line,
                    "eval_task",
                    f"{row.eval_task!r} at epoch {row.epoch} was already given in "
                    f"line {other}",
                )
            self._table.setdefault(row.epoch, {})[row.eval_task] = row
        self._table = dict(sorted(self._table.items()))

    def run(self, plan: Plan | None) -> Run:
        trained = {epoch: self._trained(epoch) for epoch in self._table}
        tasks = plan.tasks if plan else self._task_order(trained)
        self._check_tasks(tasks)
        if plan:
            exposures = plan.exposures
            self._check_against(exposures, trained)
        else:
            exposures = _infer_exposures(trained, tasks)
        rows = list(self._table.values())
        frames = np.array([at[tasks[0]].frames for at in rows])
        if np.any(np.diff(frames) < 0):
            raise UserError(f"{self._path}: frames ({frames.tolist()}) must not fall.")
        _, first = self._rows[0]
        curve = RunCurve(
            first.method,
            first.suite,
            first.setting,
            first.seed,
            tasks,
            exposures,
            np.array(list(self._table)),
            frames,
            np.array([[at[task].return_mean for task in tasks] for at in rows]),
        )
        scores = tuple(at[task] for at in rows for task in tasks)
        return Run(curve, scores, self._path, plan)

    def _fault(self, line: int, column: str, what: str) -> UserError:
        return UserError(f"{self._path}, line {line}, column {column}: {what}.")

    def _trained(self, epoch: int) -> str:
        """The task of the epoch just finished, on which all rows of it must agree."""
        first, *others = self._table[epoch].values()
        for row in others:
            for column in ("trained_task", "frames"):
                value, needed = getattr(row, column), getattr(first, column)
                if value != needed:
                    raise self._fault(
                        self._lines[epoch, row.eval_task],
                        column,
                        f"{value!r} must be {needed!r} as in line "
                        f"{self._lines[epoch, first.eval_task]} (both epoch {epoch})",
                    )
        return first.trained_task

    def _task_order(self, trained: dict[int, str]) -> tuple[str, ...]:
        """Tasks in order of training, then those not trained yet as listed."""
        evaluated = [task for at in self._table.values() for task in at]
        return tuple(dict.fromkeys([*filter(None, trained.values()), *evaluated]))

    def _check_tasks(self, tasks: tuple[str, ...]) -> None:
        """Every evaluation has every task of the run, and no other."""
        known = set(tasks)
        for line, row in self._rows:
            for column in ("eval_task", "trained_task"):
                if (task := getattr(row, column)) and task not in known:
                    allowed = f"{task!r} must be one of {', '.join(tasks)}"
                    raise self._fault(line, column, allowed)
        for epoch, at in self._table.items():
            if missing := [task for task in tasks if task not in at]:
                raise UserError(
                    f"{self._path}: the evaluation at epoch {epoch} lacks eval_task "
                    f"{missing[0]!r}; every evaluation must have all of "
                    f"{', '.join(tasks)}."
                )

    def _check_against(
        self, exposures: tuple[Exposure, ...], trained: dict[int, str]
    ) -> None:
        ends = [e.end for e in exposures]
        for epoch, name in trained.items():
            index = int(np.searchsorted(ends, epoch))
            planned = exposures[index].task if index < len(ends) else "no task"
            if epoch > 0 and planned != name:
                raise UserError(
                    f"{self._path}: trained_task at epoch {epoch} is {name!r}, but "
                    f"{CURRICULUM_JSON} has {planned!r} there."
                )


def _infer_exposures(
    trained: dict[int, str], tasks: tuple[str, ...]
) -> tuple[Exposure, ...]:
    """Exposures as far as `trained_task` shows them.

    An exposure ends at the last evaluation at which its task was the trained one.
    """
    exposures: list[Exposure] = []
    for epoch, task in trained.items():
        if not task:
            continue
        last = exposures[-1] if exposures else None
        if last and last.task == task:
            exposures[-1] = last._replace(end=epoch)
            continue
        cycle = 1 + sum(e.task == task for e in exposures)
        exposures.append(Exposure(task, cycle, last.end if last else 0, epoch))
    return tuple(exposures) or (Exposure(tasks[0], 1, 0, 1),)


def _check_same_curriculum(runs: Sequence[Run]) -> None:
    """Runs that are compared must have been trained on the same sequence.

    Those with different values of a sweep may differ: it may be over the curriculum.
    """
    first: dict[tuple[str, str, str], Run] = {}
    for run in runs:
        if run.curve.setting == "single":
            continue
        place = (run.curve.suite, run.curve.setting, run.sweep)
        other = first.setdefault(place, run)
        if not same_curriculum(run, other):
            raise UserError(
                f"{run.path} and {other.path} are both {run.curve.suite} "
                f"{run.curve.setting} but have different curricula "
                f"({_describe(run)}; {_describe(other)}); report them apart."
            )


def same_curriculum(a: Run, b: Run) -> bool:
    """Whether two runs' curricula agree as far as both are known."""
    if a.plan and b.plan:
        return a.plan[:3] == b.plan[:3]
    names = [[e.task for e in run.curve.exposures] for run in (a, b)]
    same = all(x == y for x, y in zip(*names, strict=False))
    return same and set(a.curve.tasks) == set(b.curve.tasks)


def _describe(run: Run) -> str:
    lengths = [e.length for e in run.curve.exposures[:20]]
    return f"{'>'.join(run.curve.tasks[:20])} for {lengths} epochs"
