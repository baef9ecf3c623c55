"""Tables beyond the paper's: raw scores, pairs of seeds, intervals."""

from __future__ import annotations

import numpy as np

from rllib_arrow.envs.suites import task_label
from rllib_arrow.metrics.curve import RunCurve
from rllib_arrow.metrics.statistics import Interval, Paired
from rllib_arrow.reports.figures import MAX_TASKS
from rllib_arrow.reports.tables import EMPTY, Cell, Row, Table, metric_heading
from rllib_arrow.runs.evidence import PAIRED_METRICS
from rllib_arrow.runs.results import Comparison, MethodResult


def raw_table(comparison: Comparison) -> Table:
    """Each task's raw return after its own training and at the end, by method."""
    suite, tasks = comparison.suite, comparison.first_raw.tasks[:MAX_TASKS]
    table = Table(
        "Raw return right after a task's own training → at the end, median over seeds",
        ["Method", *(task_label(suite, task) for task in tasks)],
    )
    everyone = [c for r in comparison.methods.values() for c in r.raw]
    starts = [_median([c.score(t, 0) for c in everyone]) for t in tasks]
    table.rows.append(_row("Before any training", *starts, quoted=True))
    for method, result in comparison.methods.items():
        cells = [f"{_own_end(result, t)} → {_end(result, t)}" for t in tasks]
        table.rows.append(_row(method, *cells))
    table.notes += more_tasks(comparison)
    return table


def more_tasks(comparison: Comparison) -> list[str]:
    """Says that not all tasks are shown, where there are too many."""
    count = len(comparison.first_raw.tasks)
    note = f"Shown are the first {MAX_TASKS} of {count} tasks."
    return [note] if count > MAX_TASKS else []


def after_training(curve: RunCurve, task: str) -> float:
    """A task's score at the end of its first exposure; NaN while that goes on."""
    first = curve.first_exposures().get(task)
    known = first is not None and first.end <= curve.now
    return curve.score(task, first.end) if known else np.nan


def _own_end(result: MethodResult, task: str) -> str:
    return _median([after_training(c, task) for c in result.raw if task in c.columns])


def _end(result: MethodResult, task: str) -> str:
    return _median([c.score(task, c.now) for c in result.raw if task in c.columns])


def _median(values: list[float]) -> str:
    known = [value for value in values if np.isfinite(value)]
    return f"{np.median(known):,.4g}" if known else EMPTY


def _row(*cells: str, quoted: bool = False) -> Row:
    return Row(tuple(map(Cell, cells)), quoted)


def paired_table(comparison: Comparison) -> Table:
    """What the reference method has over each other one, seed by seed."""
    found = comparison.differences
    metrics = [m for m in PAIRED_METRICS if any(m in by for by in found.values())]
    table = Table(
        f"{comparison.reference} minus each other method on the same seeds: mean "
        "[95 % bootstrap interval] (seeds above 0 / seeds)",
        ["Minus", *map(metric_heading, metrics)],
    )
    for method, by_metric in found.items():
        cells = [_paired_cell(by_metric.get(metric)) for metric in metrics]
        table.rows.append(Row((Cell(method), *cells)))
    table.notes.append(
        "Bold: the interval excludes zero. Fewer than five seeds have their range "
        "instead of an interval, and are never bold."
    )
    return table


def _paired_cell(paired: Paired | None) -> Cell:
    if paired is None:
        return Cell(EMPTY)
    text = f"{_interval(paired.mean, 2)} ({paired.higher}/{paired.seeds})"
    return Cell(text, paired.excludes_zero)


def _interval(interval: Interval, decimals: int = 3) -> str:
    # Adding zero turns a rounded -0.0 into 0.0.
    value, low, high = (f"{round(x, decimals) + 0.0:.{decimals}f}" for x in interval)
    return f"{value} [{low} - {high}]"


def statistics_table(comparison: Comparison) -> Table:
    """Interquartile means and probabilities of improvement."""
    table = Table(
        "Scores at the end of training: estimate [95 % bootstrap interval]",
        ["Quantity", "Method", "Estimate"],
        numeric=False,
    )
    for method, interval in comparison.iqm.items():
        table.rows.append(_row("Interquartile mean", method, _interval(interval)))
    for (x, y), interval in comparison.improvement.items():
        name = f"P({x} > {y})"
        cells = ("Probability of improvement", name, _interval(interval))
        table.rows.append(_row(*cells))
    return table
