"""Figures as the paper draws them, and two beyond it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from rllib_arrow.metrics.continual import worst_case_series
from rllib_arrow.metrics.curve import RunCurve
from rllib_arrow.metrics.statistics import Summary, median_series
from rllib_arrow.reports.style import (
    INK,
    PALETTE,
    WIDTH,
    band,
    frames_axis,
    interval_bar,
    legend_below,
    method_colour,
    panels,
    seeds_label,
    short_name,
    short_number,
)
from rllib_arrow.reports.tables import metric_blocks, metric_heading
from rllib_arrow.runs.normalise import task_label
from rllib_arrow.runs.results import Comparison, SingleTaskResult


def curves_figure(comparison: Comparison) -> Figure:
    """Median score per task with its quartile band, bold while the task is trained."""
    columns = min(3, len(comparison.methods))
    lines = -(-len(comparison.methods) // columns)
    width = WIDTH if columns > 1 else 6.4
    figure, axes = panels(lines, columns, width, 2.15, gap=0.2, share=True)
    tasks = comparison.first_curve.tasks
    handles = []
    for ax, result in zip(axes.flat, comparison.methods.values(), strict=False):
        handles = [
            _task_curve(ax, result.curves, task, PALETTE[i % len(PALETTE)])
            for i, task in enumerate(tasks)
        ]
        _mark_cycles(ax, result.curves[0])
        seeds = seeds_label(len(result.curves))
        ax.set_title(f"{short_name(result.method)} ({seeds})", loc="left")
        frames_axis(ax)
    for ax in axes.flat[len(comparison.methods) :]:
        ax.set_visible(False)
    axes[0, 0].set_ylabel("Normalised score")
    labels = [task_label(comparison.suite, task) for task in tasks]
    legend_below(figure, handles, labels)
    return figure


def _task_curve(ax: Axes, curves: Sequence[RunCurve], task: str, colour: str) -> Line2D:
    series = median_series(curves, [c.scores[:, c.columns[task]] for c in curves])
    ax.fill_between(
        series.frames, series.q25, series.q75, color=colour, alpha=0.16, linewidth=0
    )
    (line,) = ax.plot(series.frames, series.median, color=colour, linewidth=1.1)
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


def bars_figure(
    comparison: Comparison, paper: Mapping[str, Mapping[str, Summary]]
) -> Figure:
    """Metric bars with quartiles, sample efficiency last; diamonds are the paper's."""
    metrics = [m for block in metric_blocks(comparison.cycles) for m in block]
    metrics = [m for m in metrics if _any_value(comparison, m)] + ["SE_frames"]
    columns = len(metrics) if len(metrics) <= 6 else 5
    lines = -(-len(metrics) // columns)
    width = max(1.6 * columns, 4.8)
    figure, axes = panels(lines, columns, width, 1.8, left=0.5, below=0.15)
    for ax, metric in zip(axes.flat, metrics, strict=False):
        _metric_bars(ax, comparison, metric, paper)
    for ax in axes.flat[len(metrics) :]:
        ax.set_visible(False)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    legend_below(figure, handles, labels)
    return figure


def _any_value(comparison: Comparison, metric: str) -> bool:
    results = comparison.methods.values()
    return any(r.summary(metric).seeds for r in results)


def _metric_bars(
    ax: Axes,
    comparison: Comparison,
    metric: str,
    paper: Mapping[str, Mapping[str, Summary]],
) -> None:
    names = list(comparison.methods)
    for x, method in enumerate(names):
        summary = comparison.methods[method].summary(metric)
        colour = method_colour(method, names)
        ax.bar(
            x,
            np.nan_to_num(summary.median),
            color=colour,
            width=0.72,
            label=short_name(method),
        )
        if summary.seeds:
            errors = [[summary.median - summary.q25], [summary.q75 - summary.median]]
            ax.errorbar(x, summary.median, errors, color=INK, capsize=3, linewidth=1.1)
        else:
            ax.text(
                x,
                0,
                "never" if metric == "SE_frames" else "n/a",
                ha="center",
                va="bottom",
                rotation=90,
                fontsize=8,
            )
        if metric in paper.get(method, {}):
            ax.plot(
                x,
                paper[method][metric].median,
                "D",
                markersize=5,
                markerfacecolor="white",
                markeredgecolor=INK,
            )
    ax.axhline(0, color=INK, linewidth=0.8)
    ax.set_title(metric_heading(metric), loc="left", fontsize=9.5)
    ax.set_xticks([])
    ax.set_xlim(-0.6, len(names) - 0.4)
    ax.yaxis.set_major_locator(MaxNLocator(5))
    if metric == "SE_frames":
        ax.yaxis.set_major_formatter(FuncFormatter(short_number))


def progress_figure(comparison: Comparison) -> Figure:
    """Sample efficiency and the stability-plasticity balance while training."""
    figure, axes = panels(1, 2, WIDTH, 2.2)
    left, right = axes.flat
    names = list(comparison.methods)
    for method, result in comparison.methods.items():
        colour = method_colour(method, names)
        series = median_series(result.curves)
        band(left, series, colour, short_name(method))
        frames = comparison.efficiency.summary(method).median
        if np.isfinite(frames):
            threshold = comparison.efficiency.threshold
            left.plot(
                frames,
                threshold,
                "o",
                color=colour,
                markeredgecolor=INK,
                markersize=7,
                zorder=5,
            )
        worst = [worst_case_series(curve) for curve in result.curves]
        band(right, median_series(result.curves, worst), colour, short_name(method))
    if np.isfinite(comparison.efficiency.threshold):
        left.axhline(
            comparison.efficiency.threshold,
            color=INK,
            linestyle="--",
            linewidth=1,
        )
    left.set_title("Mean score over all tasks; dashed: 85 % of the best", loc="left")
    right.set_title("WC-ACC at every evaluation", loc="left")
    for ax in (left, right):
        frames_axis(ax)
        _mark_cycles(ax, comparison.first_curve)
    handles, labels = left.get_legend_handles_labels()
    legend_below(figure, handles, labels)
    return figure


def statistics_figure(comparison: Comparison) -> Figure:
    """Interquartile means and probabilities of improvement with 95 % intervals."""
    pairs, names = comparison.improvement, list(comparison.methods)
    shown = [short_name(name) for name in names]
    labels = [f"{short_name(x)} > {short_name(y)}" for x, y in pairs]
    # Room for the longest names, at about 0.08 inches a letter.
    left_room, right_room = (
        0.3 + 0.08 * max(map(len, texts), default=0) for texts in (shown, labels)
    )
    height = 0.34 * max(len(names), len(pairs), 2)
    figure, axes = panels(
        1, 2, WIDTH, height, left=left_room, gap=right_room, below=0.3, legend=0
    )
    left, right = axes.flat
    for y, (method, interval) in enumerate(comparison.iqm.items()):
        colour = method_colour(method, names)
        interval_bar(left, y, interval, colour)
    left.set_yticks(range(len(names)), shown)
    left.set_title("Interquartile mean of final scores", loc="left")
    for y, ((x, _), interval) in enumerate(pairs.items()):
        interval_bar(right, y, interval, method_colour(x, names))
    right.set_yticks(range(len(pairs)), labels)
    right.axvline(0.5, color=INK, linestyle="--", linewidth=1)
    right.set_xlim(0, 1)
    right.set_title("Probability of improvement", loc="left")
    for ax in (left, right):
        ax.invert_yaxis()
        ax.margins(y=0.25)
        ax.grid(axis="y", visible=False)
    right.set_visible(bool(pairs))
    return figure


def single_task_figure(results: Sequence[SingleTaskResult]) -> Figure:
    """Raw returns of the single-task runs, one panel per task."""
    columns = min(3, len(results))
    lines = -(-len(results) // columns)
    width = 3.2 * columns if columns > 1 else 5.4
    figure, axes = panels(lines, columns, width, 1.6)
    names = list(dict.fromkeys(m for result in results for m in result.curves))
    handles = {}
    for ax, result in zip(axes.flat, results, strict=False):
        for method, curves in result.curves.items():
            colour = method_colour(method, names)
            handles[method] = band(ax, median_series(curves), colour, method)
        ax.set_title(task_label(result.suite, result.task), loc="left")
        ax.yaxis.set_major_formatter(FuncFormatter(short_number))
        frames_axis(ax)
    for ax in axes.flat[len(results) :]:
        ax.set_visible(False)
    axes[0, 0].set_ylabel("Return")
    legend_below(figure, handles.values(), [short_name(name) for name in handles])
    return figure
