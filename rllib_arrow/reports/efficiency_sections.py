"""Sections on sample efficiency, of curricula and of single tasks."""

from __future__ import annotations

from rllib_arrow.envs.suites import SUITES, task_label
from rllib_arrow.metrics.curve import RunCurve
from rllib_arrow.reports import paper
from rllib_arrow.reports.building_blocks import (
    Picture,
    Section,
    setting_title,
    suite_title,
    sweep_title,
)
from rllib_arrow.reports.figures import single_task_figure
from rllib_arrow.reports.paper import Efficiency, EfficiencyBlock
from rllib_arrow.reports.tables import efficiency_table
from rllib_arrow.runs.results import RATIO, Comparison, SingleTaskResult

_EFFICIENCY = "Frames to reach 85 % of the best median performance"


def planned_frames(curve: RunCurve) -> int:
    """The frames of the whole curriculum."""
    return round(curve.frames_per_epoch * max(curve.end, curve.now))


def efficiency_section(
    suite: str, sweep: str, comparisons: list[Comparison]
) -> Section:
    title = f"{suite_title(suite)}{sweep_title(sweep)}: sample efficiency"
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


def single_section(suite: str, results: list[SingleTaskResult]) -> Section:
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
            scale = SUITES[suite].reward_scale(result.task)
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
