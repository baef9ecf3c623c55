"""What the report says, in order; `page.py` and `tables.md` show the same sections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from rllib_arrow.metrics.curve import RunCurve
from rllib_arrow.reports import paper
from rllib_arrow.reports.figures import (
    bars_figure,
    curves_figure,
    progress_figure,
    single_task_figure,
    statistics_figure,
)
from rllib_arrow.reports.paper import Efficiency, EfficiencyBlock
from rllib_arrow.reports.tables import (
    Cell,
    Row,
    Table,
    efficiency_table,
    metric_blocks,
    metric_label,
    metric_table,
    statistics_table,
)
from rllib_arrow.runs.normalise import task_label
from rllib_arrow.runs.results import (
    RATIO,
    Comparison,
    Results,
    SingleTaskResult,
)

_SUITES = {"atari": "Atari", "coinrun": "CoinRun", "minatar": "MinAtar"}
_EFFICIENCY = "Frames to reach 85 % of the best median performance"
_SETTINGS = {"default": "default order", "reversed": "reversed order"}


@dataclass
class Picture:
    """A figure yet to be drawn."""

    name: str
    caption: str
    make: Callable[[], Figure]


@dataclass
class Section:
    anchor: str
    title: str
    parts: list[Table | Picture] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def build_sections(results: Results) -> list[Section]:
    """All sections with tables and figures, in reading order."""
    sections = [_comparison_section(c) for c in results.comparisons]
    groups: dict[tuple[str, str], list[Comparison]] = {}
    for comparison in results.comparisons:
        groups.setdefault((comparison.sweep, comparison.suite), []).append(comparison)
    for (sweep, suite), group in sorted(groups.items()):
        sections.append(_efficiency_section(suite, sweep, group))
    for suite in dict.fromkeys(r.suite for r in results.single):
        group = [r for r in results.single if r.suite == suite]
        sections.append(_single_section(suite, group))
    return sections


def suite_title(suite: str) -> str:
    return _SUITES.get(suite, suite)


def setting_title(setting: str) -> str:
    return _SETTINGS.get(
        setting, setting.replace("_cycle", " cycles").replace("_", " ")
    )


def comparison_title(comparison: Comparison) -> str:
    suite, setting = suite_title(comparison.suite), setting_title(comparison.setting)
    return f"{suite}, {setting}{_sweep_title(comparison.sweep)}"


def _sweep_title(sweep: str) -> str:
    if sweep == RATIO:
        return ", buffer ratios"
    return f", by {' and '.join(sweep.split())}" if sweep else ""


def _comparison_section(comparison: Comparison) -> Section:
    title, name = comparison_title(comparison), comparison.name
    printed = paper.METRICS.get((comparison.suite, comparison.setting), {})
    printed = {m: v for m, v in printed.items() if m in comparison.methods}
    section = Section(name, title, notes=list(comparison.notes))
    section.parts.append(
        Picture(
            f"curves_{name}",
            "Median normalised score per task, band from the first to the third "
            "quartile over seeds; bold while the task is trained"
            + ("; a dotted line ends a cycle." if comparison.cycles > 1 else "."),
            partial(curves_figure, comparison),
        )
    )
    section.parts += _metric_tables(comparison, title, printed)
    section.parts.append(
        Picture(
            f"metrics_{name}",
            "Median and quartiles over seeds."
            + (" Diamonds are the paper's medians." if printed else ""),
            lambda: bars_figure(comparison, printed),
        )
    )
    section.parts.append(
        Picture(
            f"progress_{name}",
            "Median and quartiles over seeds while training. A dot marks the median "
            "frame count at which a method's runs reach the dashed threshold.",
            partial(progress_figure, comparison),
        )
    )
    if comparison.iqm:
        section.parts.append(statistics_table(comparison.iqm, comparison.improvement))
        section.parts.append(
            Picture(
                f"statistics_{name}",
                "Normalised scores of all tasks at the end of training; bars are 95 % "
                "intervals of a bootstrap stratified by task.",
                partial(statistics_figure, comparison),
            )
        )
    if printed:
        section.notes += _paper_notes(comparison)
    return section


def _metric_tables(
    comparison: Comparison, title: str, printed: dict[str, dict]
) -> list[Table]:
    """The paper's blocks, each with the reason for every empty cell below it."""
    tables = []
    for block in metric_blocks(comparison.cycles):
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


def planned_frames(curve: RunCurve) -> int:
    """The frames of the whole curriculum."""
    if curve.now == 0:
        return 0
    return round(curve.frames[-1] / curve.now * max(curve.end, curve.now))


def _efficiency_section(
    suite: str, sweep: str, comparisons: list[Comparison]
) -> Section:
    title = f"{suite_title(suite)}{_sweep_title(sweep)}: sample efficiency"
    blocks, middle = [], {}
    for comparison in comparisons:
        name = setting_title(comparison.setting)
        efficiency = comparison.efficiency
        block = EfficiencyBlock(
            efficiency.threshold,
            {
                method: Efficiency(peak.median, efficiency.summary(method))
                for method, peak in efficiency.peaks.items()
            },
        )
        runs = {method: len(r.curves) for method, r in comparison.methods.items()}
        place = (suite, comparison.setting, sweep == RATIO)
        in_paper = sweep in ("", RATIO)
        printed = paper.CONTINUAL_EFFICIENCY.get(place) if in_paper else None
        blocks.append((name, block, runs, printed))
        middle[name] = planned_frames(comparison.first_curve) // 2
    table = efficiency_table(_EFFICIENCY, "Setting", blocks, middle)
    table.notes.append(
        "A run's series is its mean normalised score over all tasks; the threshold is "
        "85 % of the highest median series. Frames: median [q25 - q75] over the runs "
        "that reach it."
    )
    anchor = "_".join(["efficiency", suite, *sweep.split()])
    return Section(anchor, title, [table])


def _single_section(suite: str, results: list[SingleTaskResult]) -> Section:
    title = f"{suite_title(suite)}: single tasks"
    blocks, scaled = [], False
    for result in results:
        label = task_label(suite, result.task)
        peaks = result.efficiency.peaks
        methods = {
            method: Efficiency(peak.median, result.efficiency.summary(method))
            for method, peak in peaks.items()
        }
        block = EfficiencyBlock(result.efficiency.threshold, methods)
        runs = {method: len(curves) for method, curves in result.curves.items()}
        printed = paper.SINGLE_TASK_EFFICIENCY.get((suite, label))
        if printed:
            scale = paper.SINGLE_TASK_SCORES[suite, label].reward_scale
            scaled = scaled or scale != 1
            printed = _unscaled(printed, scale)
        blocks.append((label, block, runs, printed))
    table = efficiency_table(f"{_EFFICIENCY}, raw returns", "Task", blocks)
    if scaled:
        table.notes.append(
            "The paper prints scaled rewards; here they are divided by the scale."
        )
    picture = Picture(
        f"single_{suite}",
        "Raw return of single-task runs: median and quartiles over seeds.",
        lambda: single_task_figure(results),
    )
    return Section(f"single_{suite}", title, [picture, table])


def _unscaled(block: EfficiencyBlock, scale: float) -> EfficiencyBlock:
    methods = {m: e._replace(peak=e.peak / scale) for m, e in block.methods.items()}
    return EfficiencyBlock(block.threshold / scale, methods)


def runs_table(results: Results) -> Table:
    """Which runs went in, and how far each one is."""
    columns = [
        "Method",
        "Suite",
        "Setting",
        "Seed",
        "Tasks",
        "Epoch",
        "Frames",
        "State",
    ]
    table = Table("Runs in this report", [*columns, "File"], numeric=False)
    for run in (*results.runs, *results.baselines):
        curve = run.curve
        end = f" / {curve.end}" if run.plan else ""
        cells = [
            curve.method,
            curve.suite,
            curve.setting + (" (baseline)" if run in results.baselines else ""),
            str(curve.seed),
            ", ".join(curve.tasks),
            f"{curve.now}{end}",
            f"{int(curve.frames[-1]):,}",
            "finished" if run.finished else "unfinished",
            "/".join(run.path.parts[-2:]),
        ]
        table.rows.append(Row(tuple(map(Cell, cells))))
    return table
