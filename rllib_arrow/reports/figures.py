"""Curves over training, as the paper draws them, normalised or raw."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from rllib_arrow.envs.suites import task_label
from rllib_arrow.metrics.continual import worst_case_series
from rllib_arrow.metrics.curve import RunCurve
from rllib_arrow.metrics.statistics import median_series
from rllib_arrow.reports.style import (
    INK,
    PALETTE,
    WIDTH,
    band,
    frames_axis,
    legend_below,
    legend_room,
    method_label,
    method_style,
    panel_title,
    panels,
    seeds_label,
    short_number,
)
from rllib_arrow.runs.normalise import HUGE
from rllib_arrow.runs.results import Comparison, SingleTaskResult

MAX_TASKS = 24  # drawn in one figure; more could not be told apart


def curves_figure(comparison: Comparison, raw: bool = False) -> Figure:
    """Median score per task with its quartile band, bold while the task is trained."""
    first = comparison.first_raw if raw else comparison.first_curve
    tasks = first.tasks[:MAX_TASKS]
    labels = [task_label(comparison.suite, task) for task in tasks]
    columns = min(3, len(comparison.methods))
    lines = -(-len(comparison.methods) // columns)
    width = WIDTH if columns > 1 else 6.4
    room = legend_room(labels, width)
    left = 0.95 if raw else 0.74
    figure, axes = panels(
        lines, columns, width, 2.15, left=left, gap=0.2, legend=room, share=True
    )
    handles = []
    for ax, result in zip(axes.flat, comparison.methods.values(), strict=False):
        curves = result.raw if raw else result.curves
        handles = [
            _task_curve(ax, curves, task, PALETTE[i % len(PALETTE)])
            for i, task in enumerate(tasks)
        ]
        _mark_cycles(ax, curves[0])
        name = method_label(result.method, comparison.sweep).replace("\n", " ")
        panel_title(ax, f"{name} ({seeds_label(len(curves))})")
        frames_axis(ax)
    for ax in axes.flat[len(comparison.methods) :]:
        ax.set_visible(False)
    axes[0, 0].set_ylabel("Return" if raw else "Normalised score")
    if raw:
        axes[0, 0].yaxis.set_major_formatter(FuncFormatter(short_number))
    legend_below(figure, handles, labels)
    return figure


def _task_curve(ax: Axes, curves: Sequence[RunCurve], task: str, colour: str) -> Line2D:
    scores = [c.scores[:, c.columns[task]].clip(-HUGE, HUGE) for c in curves]
    series = median_series(curves, scores)
    line = band(ax, series, (colour, "-"), width=1.1)
    for exposure in curves[0].exposures:
        # The segment into an exposure's first evaluation belongs to its training.
        inside = (series.epochs >= exposure.start) & (series.epochs <= exposure.end)
        if exposure.task == task and inside.sum() > 1:
            x, y = series.frames[inside], series.median[inside]
            ax.plot(x, y, color=colour, linewidth=3.2, solid_capstyle="round")
    return line


def _mark_cycles(ax: Axes, curve: RunCurve) -> None:
    """A dotted line where a cycle ends and the next begins."""
    for cycle in range(1, curve.cycles):
        end = curve.of_cycle(cycle)[-1].end
        if end < curve.now:
            frames = np.interp(end, curve.epochs, curve.frames)
            ax.axvline(frames, color=INK, linestyle=":", linewidth=1.2)


def progress_figure(comparison: Comparison) -> Figure:
    """Sample efficiency and the stability-plasticity balance while training."""
    names = list(comparison.methods)
    labels = [method_label(name, comparison.sweep) for name in names]
    figure, axes = panels(1, 2, WIDTH, 2.2, legend=legend_room(labels))
    left, right = axes.flat
    threshold = comparison.efficiency.threshold
    handles = []
    for method, result in comparison.methods.items():
        style = method_style(method, names)
        handles.append(band(left, median_series(result.curves), style))
        frames = comparison.efficiency.summary(method).median
        if np.isfinite(frames):
            dot = {"markeredgecolor": INK, "markersize": 7, "zorder": 5}
            left.plot(frames, threshold, "o", color=style[0], **dot)
        worst = [worst_case_series(curve) for curve in result.curves]
        band(right, median_series(result.curves, worst), style)
    if np.isfinite(threshold):
        left.axhline(threshold, color=INK, linestyle="--", linewidth=1)
    left.set_title("Mean score over all tasks; dashed: 85 % of the best", loc="left")
    right.set_title("WC-ACC at every evaluation", loc="left")
    for ax in (left, right):
        frames_axis(ax)
        _mark_cycles(ax, comparison.first_curve)
    legend_below(figure, handles, labels)
    return figure


def single_task_figure(results: Sequence[SingleTaskResult]) -> Figure:
    """Raw returns of the single-task runs, one panel per task."""
    results = results[:MAX_TASKS]
    columns = min(3, len(results))
    lines = -(-len(results) // columns)
    width = 3.2 * columns if columns > 1 else 5.4
    names = list(dict.fromkeys(m for result in results for m in result.curves))
    labels = [method_label(name, "") for name in names]
    room = legend_room(labels, width)
    figure, axes = panels(lines, columns, width, 1.6, legend=room)
    handles = {}
    for ax, result in zip(axes.flat, results, strict=False):
        for method, curves in result.curves.items():
            series = median_series(curves)
            handles[method] = band(ax, series, method_style(method, names))
        ax.set_title(task_label(result.suite, result.task), loc="left")
        ax.yaxis.set_major_formatter(FuncFormatter(short_number))
        frames_axis(ax)
    for ax in axes.flat[len(results) :]:
        ax.set_visible(False)
    axes[0, 0].set_ylabel("Return")
    legend_below(figure, [handles[name] for name in names], labels)
    return figure
