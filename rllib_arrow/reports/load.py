"""Finds the evaluations of runs and makes run records of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rllib_arrow.metrics.curve import Exposure, RunCurve, plan_exposures
from rllib_arrow.reports.rows import Plan, ReportError, Row, read_plan, read_rows


@dataclass(frozen=True)
class Run:
    """One run with raw returns, and where it came from."""

    curve: RunCurve
    path: Path
    planned: bool  # the curriculum is known from curriculum.json, not inferred

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


def load_runs(sources: Sequence[str | Path]) -> list[Run]:
    """Reads every run below the given directories and in the given CSV files."""
    if isinstance(sources, str | Path):
        sources = [sources]
    runs = [run for path in _find(sources) for run in read_evaluations(path)]
    seen: dict[tuple[Any, ...], Run] = {}
    for run in runs:
        other = seen.setdefault(run.key, run)
        if other is not run and not _same_scores(run.curve, other.curve):
            raise ReportError(
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


def _find(sources: Sequence[str | Path]) -> list[Path]:
    """The evaluation files behind the sources, each once."""
    found: dict[Path, Path] = {}
    for source in map(Path, sources):
        if source.is_dir():
            files = sorted(source.rglob("evaluations.csv"))
            if not files:
                raise ReportError(
                    f"{source}: no evaluations.csv in this directory or below it; "
                    "give a run directory, a tree of them, or a CSV file."
                )
        elif source.is_file():
            files = [source]
        else:
            raise ReportError(f"{source}: no such file or directory.")
        for file in files:
            found.setdefault(file.resolve(), file)
    return list(found.values())


def read_evaluations(path: str | Path) -> list[Run]:
    """Reads one CSV file, which may hold several runs, strictly."""
    path = Path(path)
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in read_rows(path):
        task = row.eval_task if row.setting == "single" else ""
        key = (row.method, row.suite, row.setting, row.seed, task)
        groups.setdefault(key, []).append(row)
    if not groups:
        raise ReportError(f"{path}: no evaluations below the header line.")
    plan = read_plan(path.with_name("curriculum.json"))
    if plan and len(groups) > 1:
        raise ReportError(
            f"{path}: {len(groups)} runs beside one curriculum.json; a file with "
            "several runs must stand alone."
        )
    return [_build(path, rows, plan) for rows in groups.values()]


def _build(path: Path, rows: list[Row], plan: Plan | None) -> Run:
    """Makes one run of its rows, whatever their order in the file."""
    table = _by_epoch(path, rows)
    trained = {e: _trained_task(path, at.values()) for e, at in table.items()}
    tasks = plan.tasks if plan else _task_order(table, trained)
    _check_tasks(path, rows, table, tasks)
    if plan:
        exposures = plan_exposures(plan.epochs_per_task, plan.cycles)
        _check_against_plan(path, trained, tasks, exposures)
    else:
        exposures = _infer_exposures(trained, tasks)
    frames = np.array([at[tasks[0]].frames for at in table.values()])
    if np.any(np.diff(frames) < 0):
        raise ReportError(f"{path}: frames ({frames.tolist()}) must not fall.")
    first = rows[0]
    curve = RunCurve(
        first.method,
        first.suite,
        first.setting,
        first.seed,
        tasks,
        exposures,
        np.array(list(table)),
        frames,
        np.array([[at[t].return_mean for t in tasks] for at in table.values()]),
    )
    return Run(curve, path, plan is not None)


def _by_epoch(path: Path, rows: list[Row]) -> dict[int, dict[str, Row]]:
    table: dict[int, dict[str, Row]] = {}
    for row in rows:
        other = table.setdefault(row.epoch, {}).setdefault(row.eval_task, row)
        if other is not row:
            raise ReportError(
                f"{path}, line {row.line}, column eval_task: {row.eval_task!r} at "
                f"epoch {row.epoch} was already given in line {other.line}."
            )
    return dict(sorted(table.items()))


def _check_tasks(
    path: Path,
    rows: list[Row],
    table: dict[int, dict[str, Row]],
    tasks: tuple[str, ...],
) -> None:
    """Every evaluation has every task of the run, and no other."""
    for row in rows:
        for column in ("eval_task", "trained_task"):
            if (task := getattr(row, column)) and task not in tasks:
                raise ReportError(
                    f"{path}, line {row.line}, column {column}: {task!r} must be one "
                    f"of {', '.join(tasks)}."
                )
    for epoch, at in table.items():
        if missing := [task for task in tasks if task not in at]:
            raise ReportError(
                f"{path}: the evaluation at epoch {epoch} lacks eval_task "
                f"{missing[0]!r}; every evaluation must have all of "
                f"{', '.join(tasks)}."
            )


def _trained_task(path: Path, rows: Iterable[Row]) -> str:
    """The task of the epoch just finished, on which all rows of it must agree."""
    first, *others = rows
    for row in others:
        for column in ("trained_task", "frames"):
            if getattr(row, column) != getattr(first, column):
                raise ReportError(
                    f"{path}, line {row.line}, column {column}: "
                    f"{getattr(row, column)!r} must be "
                    f"{getattr(first, column)!r} as in line {first.line} "
                    f"(both epoch {row.epoch})."
                )
    return first.trained_task


def _task_order(
    table: dict[int, dict[str, Row]], trained: dict[int, str]
) -> tuple[str, ...]:
    """Tasks in order of training, then those not trained yet as they were listed."""
    evaluated = [task for at in table.values() for task in at]
    order = dict.fromkeys([*filter(None, trained.values()), *evaluated])
    return tuple(order)


def _infer_exposures(
    trained: dict[int, str], tasks: tuple[str, ...]
) -> tuple[Exposure, ...]:
    """Exposures as far as `trained_task` shows them.

    An exposure ends at the last evaluation at which its task was the trained one.
    """
    exposures: list[Exposure] = []
    for epoch, name in trained.items():
        if not name:
            continue
        task = tasks.index(name)
        last = exposures[-1] if exposures else None
        if last and last.task == task:
            exposures[-1] = last._replace(end=epoch)
            continue
        cycle = 1 + sum(e.task == task for e in exposures)
        exposures.append(Exposure(task, last.end if last else 0, epoch, cycle))
    return tuple(exposures) or (Exposure(0, 0, 1),)


def _check_against_plan(
    path: Path,
    trained: dict[int, str],
    tasks: tuple[str, ...],
    exposures: tuple[Exposure, ...],
) -> None:
    for epoch, name in trained.items():
        planned = [tasks[e.task] for e in exposures if e.start < epoch <= e.end]
        if epoch > 0 and planned != [name]:
            raise ReportError(
                f"{path}: trained_task at epoch {epoch} is {name!r}, but "
                f"curriculum.json has {planned[0] if planned else 'no task'!r} there."
            )


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
        if not _compatible(run, other):
            raise ReportError(
                f"{run.path} and {other.path} are both {run.curve.suite} "
                f"{run.curve.setting} but have different curricula "
                f"({_describe(run)}; {_describe(other)}); report them apart."
            )


def _compatible(a: Run, b: Run) -> bool:
    """Whether two curricula agree as far as both are known."""
    if a.planned and b.planned:
        same = a.curve.exposures == b.curve.exposures
        return same and a.curve.tasks == b.curve.tasks
    names = [[r.curve.tasks[e.task] for e in r.curve.exposures] for r in (a, b)]
    shared = min(map(len, names))
    same = names[0][:shared] == names[1][:shared]
    return same and set(a.curve.tasks) == set(b.curve.tasks)


def _describe(run: Run) -> str:
    lengths = [e.length for e in run.curve.exposures]
    return f"{'>'.join(run.curve.tasks)} for {lengths} epochs"
