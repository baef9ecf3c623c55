"""Figures that compare methods: metrics, intervals and profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from rllib_arrow.metrics.statistics import Summary
from rllib_arrow.reports.style import (
    INK,
    WIDTH,
    interval_bar,
    legend_below,
    legend_room,
    longest_line,
    method_label,
    method_style,
    panels,
    rows_high,
    short_number,
)
from rllib_arrow.reports.tables import MORE_METRICS, metric_blocks, metric_heading
from rllib_arrow.runs.results import Comparison

_ROW = 0.27  # inches a method takes in a list of methods


def metrics_figure(
    comparison: Comparison, paper: Mapping[str, Mapping[str, Summary]]
) -> Figure:
    """Every metric by method: median, quartiles and seeds; diamonds are the paper's."""
    metrics = [m for block in metric_blocks(comparison.cycles) for m in block]
    metrics = [m for m in (*metrics, *MORE_METRICS) if _all_seeds(comparison, m)]
    metrics.append("SE_frames")
    columns = min(5, len(metrics))
    lines = -(-len(metrics) // columns)
    figure, axes = _method_panels(comparison, lines, columns)
    for ax, metric in zip(axes.flat, metrics, strict=False):
        _metric_panel(ax, comparison, metric, paper)
    for ax in axes.flat[len(metrics) :]:
        ax.set_visible(False)
    return figure


def _all_seeds(comparison: Comparison, metric: str) -> list[float]:
    values = (r.of_seeds(metric).values() for r in comparison.methods.values())
    return [value for seeds in values for value in seeds if np.isfinite(value)]


def _method_panels(
    comparison: Comparison, lines: int, columns: int
) -> tuple[Figure, np.ndarray]:
    """Panels with a row for each method, whose names stand on the left."""
    labels = [method_label(name, comparison.sweep) for name in comparison.methods]
    rows = rows_high(labels)
    longest = max(map(longest_line, labels))
    figure, axes = panels(
        lines,
        columns,
        WIDTH,
        _ROW * rows + 0.2,
        left=0.35 + 0.075 * longest,
        gap=0.3,
        below=0.3,
        legend=0,
    )
    for line in axes:
        for ax in line:
            ax.set_yticks(range(len(labels)) if ax is line[0] else [])
            ax.set_ylim(len(labels) - 0.4, -0.6)
            ax.tick_params(axis="y", length=0)
            ax.grid(axis="y", visible=False)
        line[0].set_yticklabels(labels)
    return figure, axes


def _metric_panel(
    ax: Axes,
    comparison: Comparison,
    metric: str,
    paper: Mapping[str, Mapping[str, Summary]],
) -> None:
    names = list(comparison.methods)
    for y, method in enumerate(names):
        result = comparison.methods[method]
        summary, colour = result.summary(metric), method_style(method, names)[0]
        if not summary.seeds:
            where = ax.get_yaxis_transform()
            text = "never" if metric == "SE_frames" else "n/a"
            ax.text(0.5, y, text, transform=where, ha="center", va="center", size=8)
            continue
        seeds = list(result.of_seeds(metric).values())
        dots = {"markersize": 3.4, "alpha": 0.45, "markeredgewidth": 0}
        ax.plot(seeds, [y] * len(seeds), "o", color=colour, **dots)
        ax.plot([summary.q25, summary.q75], [y, y], color=colour, linewidth=3.2)
        bar = {"markersize": 12, "markeredgewidth": 2}
        ax.plot(summary.median, y, "|", color=INK, **bar)
        if metric in paper.get(method, {}):
            bar = {"markersize": 5, "markerfacecolor": "white", "markeredgecolor": INK}
            ax.plot(paper[method][metric].median, y, "D", **bar)
    if metric == "SE_frames":
        ax.xaxis.set_major_formatter(FuncFormatter(short_number))
        ax.set_xlim(0, 1.12 * max([1, *_all_seeds(comparison, metric)]))
    else:
        ax.axvline(0, color=INK, linewidth=0.8)
    ax.set_title(metric_heading(metric), loc="left", fontsize=9.5)
    ax.xaxis.set_major_locator(MaxNLocator(3, min_n_ticks=2))


def statistics_figure(comparison: Comparison) -> Figure:
    """Interquartile means and probabilities of improvement with 95 % intervals."""
    names, pairs = list(comparison.methods), comparison.improvement
    label = partial(method_label, sweep=comparison.sweep)
    reference = comparison.reference
    title = "Probability of improvement"
    if all(x == reference for x, _ in pairs):
        title = f"Probability that {label(reference)} beats"
        against = [label(y) for _, y in pairs]
    else:
        against = [f"{label(x)} > {label(y)}" for x, y in pairs]
    figure, (left, right) = _two_lists([label(name) for name in names], against)
    for y, (method, interval) in enumerate(comparison.iqm.items()):
        interval_bar(left, y, interval, method_style(method, names)[0])
    left.set_title("Interquartile mean of final scores", loc="left")
    for y, ((x, other), interval) in enumerate(pairs.items()):
        which = other if x == reference else x
        interval_bar(right, y, interval, method_style(which, names)[0])
    right.axvline(0.5, color=INK, linestyle="--", linewidth=1)
    right.set_xlim(0, 1)
    right.set_title(title, loc="left")
    right.set_visible(bool(pairs))
    return figure


def _two_lists(
    left_labels: Sequence[str], right_labels: Sequence[str]
) -> tuple[Figure, Sequence[Axes]]:
    """Two panels of horizontal intervals, with room for the longest names."""
    left_room, right_room = (
        0.3 + 0.08 * max(map(longest_line, labels), default=0)
        for labels in (left_labels, right_labels)
    )
    height = 0.34 * max(len(left_labels), len(right_labels), 2)
    figure, axes = panels(
        1, 2, WIDTH, height, left=left_room, gap=right_room, below=0.3, legend=0
    )
    for ax, labels in zip(axes.flat, (left_labels, right_labels), strict=True):
        ax.set_yticks(range(len(labels)), labels)
        ax.set_ylim(max(len(labels), 2) - 0.5, -0.5)
        ax.grid(axis="y", visible=False)
    return figure, list(axes.flat)


def profiles_figure(comparison: Comparison) -> Figure:
    """Performance profiles, and what the reference method has over each other one."""
    names = list(comparison.methods)
    labels = [method_label(name, comparison.sweep) for name in names]
    rows = len(comparison.differences)
    height = max(2.2, 0.3 * rows)
    room = legend_room(labels)
    others = [method_label(name, comparison.sweep) for name in comparison.differences]
    gap = 0.4 + 0.075 * max(map(longest_line, others), default=0)
    figure, axes = panels(1, 2, WIDTH, height, gap=gap, legend=room)
    left, right = axes.flat
    handles = []
    for method, profile in comparison.profiles.items():
        colour, line = method_style(method, names)
        left.fill_between(
            profile.scores,
            profile.low,
            profile.high,
            color=colour,
            alpha=0.13,
            linewidth=0,
        )
        handles += left.plot(profile.scores, profile.share, line, color=colour)
    left.set_title("Share of tasks and seeds that end at or above", loc="left")
    left.set_xlabel("Normalised score")
    left.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    left.set_ylim(-0.02, 1.02)
    metric = _paired_metric(comparison)
    differences = comparison.differences
    for y, (method, found) in enumerate(differences.items()):
        if metric in found:
            interval_bar(right, y, found[metric].mean, method_style(method, names)[0])
    right.axvline(0, color=INK, linestyle="--", linewidth=1)
    right.set_yticks(range(rows), others)
    right.set_ylim(max(rows, 2) - 0.5, -0.5)
    right.grid(axis="y", visible=False)
    reference = method_label(comparison.reference, comparison.sweep).replace("\n", " ")
    right.set_title(f"{metric_heading(metric)}: {reference} minus", loc="left")
    right.set_visible(bool(differences))
    legend_below(figure, handles, labels)
    return figure


def _paired_metric(comparison: Comparison) -> str:
    """Retention, or the mean score where no run has a retention."""
    known = [m for found in comparison.differences.values() for m in found]
    return "retention" if "retention" in known or not known else "ACC"
