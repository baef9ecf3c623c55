"""A short answer for the terminal: what was learned, and what was forgotten."""

from __future__ import annotations

import numpy as np

from rllib_arrow.reports.sections import comparison_title
from rllib_arrow.reports.tables import Cell, Row, Table, format_summary
from rllib_arrow.runs.load import Runs
from rllib_arrow.runs.normalise import task_label
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
    for comparison in results.comparisons:
        parts.append(_returns(comparison, results).plain())
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
    for task in comparison.first_curve.tasks:
        low, size = scales[task].low, scales[task].high - scales[task].low
        for method, result in comparison.methods.items():
            after, end = [], []
            for curve in result.curves:
                first = curve.first_exposures().get(task)
                known = first is not None and first.end <= curve.now
                after.append(curve.score(task, first.end) if known else np.nan)
                end.append(curve.score(task, curve.now))
            drop = np.array(after) - np.array(end)
            cells = [
                task_label(comparison.suite, task),
                method,
                f"{low:.2f}",
                *(_median(np.array(x) * size + low) for x in (after, end)),
                _median(drop * size),
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
