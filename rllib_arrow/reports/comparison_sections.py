"""Sections that compare methods on one curriculum."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from rllib_arrow.reports import paper
from rllib_arrow.reports.building_blocks import Picture, Section, comparison_title
from rllib_arrow.reports.efficiency_sections import planned_frames
from rllib_arrow.reports.evidence_figures import (
    metrics_figure,
    profiles_figure,
    statistics_figure,
)
from rllib_arrow.reports.evidence_tables import (
    paired_table,
    raw_table,
    statistics_table,
)
from rllib_arrow.reports.figures import (
    MAX_TASKS,
    curves_figure,
    progress_figure,
)
from rllib_arrow.reports.headline import headline_figure
from rllib_arrow.reports.tables import (
    MORE_METRICS,
    Table,
    metric_blocks,
    metric_label,
    metric_table,
)
from rllib_arrow.runs.results import (
    Comparison,
)


def comparison_section(comparison: Comparison) -> Section:
    title, name = comparison_title(comparison), comparison.name
    printed = paper.METRICS.get((comparison.suite, comparison.setting), {})
    printed = {m: v for m, v in printed.items() if m in comparison.methods}
    section = Section(name, title, notes=list(comparison.notes))
    parts = section.parts
    if not comparison.sweep:
        parts.append(
            Picture(
                f"headline_{name}",
                "Left: the first task's score through the whole curriculum. Right: "
                "scores of earlier tasks at the end, as a share of those right after "
                "their own training; medians over seeds.",
                partial(headline_figure, comparison),
            )
        )
    parts.append(_curves(comparison))
    parts += _metric_tables(comparison, title, printed)
    parts.append(raw_table(comparison))
    parts.append(
        Picture(
            f"metrics_{name}",
            "Bars are medians over seeds, thick lines quartiles, dots seeds."
            + (" Diamonds are the paper's medians." if printed else ""),
            partial(metrics_figure, comparison, printed),
        )
    )
    parts.append(
        Picture(
            f"progress_{name}",
            "Median and quartiles over seeds while training. A dot marks the median "
            "frame count at which a method's runs reach the dashed threshold.",
            partial(progress_figure, comparison),
        )
    )
    if comparison.iqm:
        parts += _evidence(comparison)
    if printed:
        section.notes += _paper_notes(comparison)
    return section


def _curves(comparison: Comparison, raw: bool = False) -> Picture:
    tasks = len((comparison.first_raw if raw else comparison.first_curve).tasks)
    shown = f"; the first {MAX_TASKS} of {tasks} tasks" if tasks > MAX_TASKS else ""
    cycle = "; a dotted line ends a cycle" if comparison.cycles > 1 else ""
    return Picture(
        f"curves_{comparison.name}",
        f"Median {'return' if raw else 'normalised score'} per task, band from the "
        "first to the third quartile over seeds; bold while the task is trained"
        f"{cycle}{shown}.",
        partial(curves_figure, comparison, raw),
    )


def raw_section(comparison: Comparison) -> Section:
    """A comparison of which no task has a scale: raw returns, and why."""
    title = f"{comparison_title(comparison)}: raw returns only"
    why = (
        "There are no normalised numbers: no task has a score above random to measure "
        "by (see how the numbers were normalised)."
    )
    parts = [_curves(comparison, raw=True), raw_table(comparison)]
    return Section(comparison.name, title, parts, [why, *comparison.notes])


def _evidence(comparison: Comparison) -> list[Table | Picture]:
    """How sure the comparison is."""
    parts: list[Table | Picture] = []
    if comparison.differences:
        parts.append(paired_table(comparison))
    parts.append(
        Picture(
            f"profiles_{comparison.name}",
            "Left: performance profiles of the scores at the end. Right: mean of the "
            "paired differences by seed. Bands and bars are 95 % bootstrap intervals; "
            "bars of fewer than five seeds are their range.",
            partial(profiles_figure, comparison),
        )
    )
    parts.append(statistics_table(comparison))
    parts.append(
        Picture(
            f"statistics_{comparison.name}",
            "Normalised scores of all tasks at the end of training; bars are 95 % "
            "intervals of a bootstrap stratified by task.",
            partial(statistics_figure, comparison),
        )
    )
    return parts


def _metric_tables(
    comparison: Comparison, title: str, printed: dict[str, dict]
) -> list[Table]:
    """The paper's blocks, each with the reason for every empty cell below it."""
    tables = []
    for block in (*metric_blocks(comparison.cycles), MORE_METRICS):
        ours = {
            method: {m: result.summary(m) for m in block if m in result.values}
            for method, result in comparison.methods.items()
        }
        name = f"{title}: median [q25 - q75] over seeds"
        table = metric_table(name, block, ours, printed)
        table.notes += _reasons(comparison, block)
        tables.append(table)
    return tables


def _reasons(comparison: Comparison, metrics: Sequence[str]) -> list[str]:
    """Why cells are empty, each reason once."""
    empty: dict[tuple[str, str], list[str]] = {}
    for method, result in comparison.methods.items():
        for metric in metrics:
            values = result.values.get(metric, [])
            if not any(np.isfinite(v.value) for v in values):
                notes = sorted({note for v in values for note in v.notes})
                why = "; ".join(notes) or "not part of these runs"
                empty.setdefault((method, why), []).append(metric_label(metric))
    methods: dict[tuple[str, str], list[str]] = {}
    for (method, why), names in empty.items():
        methods.setdefault((", ".join(names), why), []).append(method)
    return [
        f"n/a: {names} of {', '.join(who)}: {why}."
        for (names, why), who in methods.items()
    ]


def _paper_notes(comparison: Comparison) -> list[str]:
    curve = comparison.first_curve
    frames = planned_frames(curve)
    if len(curve.tasks) == paper.TASKS and abs(frames / paper.FRAMES - 1) < 0.01:
        return []
    return [
        f"The paper's runs have {paper.TASKS} tasks and {paper.FRAMES:,} frames, these "
        f"have {len(curve.tasks)} and {frames:,}: its numbers are not like for like."
    ]
