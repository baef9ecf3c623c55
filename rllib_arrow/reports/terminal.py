"""A short answer for the terminal: what was learned, and what was forgotten."""

from __future__ import annotations

import numpy as np

from rllib_arrow.envs.suites import task_label
from rllib_arrow.reports.building_blocks import comparison_title
from rllib_arrow.reports.evidence_tables import after_training, more_tasks
from rllib_arrow.reports.figures import MAX_TASKS
from rllib_arrow.reports.tables import Cell, Row, Table, format_summary
from rllib_arrow.runs.load import Runs
from rllib_arrow.runs.results import Comparison, Results

_METRICS = {
    "F": "Forgetting (less is better)",
    "ACC": "ACC (more is better)",
    "WC_ACC": "WC-ACC (more is better)",
}


def forgetting_table(runs: Runs) -> str:
    """Returns plain-text tables of each task's return before, after and at the end.

    Returns are raw, medians over seeds; the summary below them is normalised.
    """
    results = runs.results
    parts = []
    for comparison in (*results.comparisons, *results.raw_only):
        parts.append(_returns(comparison, results).plain())
        if comparison.normalised:
            parts.append(_summary(comparison).plain())
    if not parts:
        return "No run with more than one task: nothing could be forgotten."
    notes = [n for normaliser in results.normalisers.values() for n in normaliser.notes]
    return "\n\n".join([*parts, "\n".join(notes)])


def _returns(comparison: Comparison, results: Results) -> Table:
    table = Table(
        f"{comparison_title(comparison)}: raw return, median over seeds",
        [
            "Task",
            "Method",
            "At random",
            "After its training",
            "At the end",
            "Forgotten",
        ],
    )
    scales = results.normalisers[comparison.suite].scales
    table.notes += more_tasks(comparison)
    for task in comparison.first_raw.tasks[:MAX_TASKS]:
        for method, result in comparison.methods.items():
            curves = [curve for curve in result.raw if task in curve.columns]
            start = [curve.score(task, 0) for curve in curves]
            low = scales[task].low if task in scales else np.median(start)
            after = np.array([after_training(curve, task) for curve in curves])
            end = np.array([curve.score(task, curve.now) for curve in curves])
            cells = [
                task_label(comparison.suite, task),
                method,
                f"{low:.2f}",
                *(_median(values) for values in (after, end, after - end)),
            ]
            table.rows.append(Row(tuple(map(Cell, cells))))
    return table


def _median(values: np.ndarray) -> str:
    known = values[np.isfinite(values)]
    return f"{np.median(known):.2f}" if len(known) else "not yet"


def _summary(comparison: Comparison) -> Table:
    table = Table(
        "Normalised, median [q25 - q75] over seeds:", ["Method", *_METRICS.values()]
    )
    for method, result in comparison.methods.items():
        cells = [method, *(format_summary(result.summary(m)) for m in _METRICS)]
        table.rows.append(Row(tuple(map(Cell, cells))))
    return table
