"""Figures that compare methods: metrics, intervals, profiles, and one for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from rllib_arrow.envs.suites import task_label
from rllib_arrow.metrics.statistics import Summary, median_series
from rllib_arrow.reports.paper import BASELINES
from rllib_arrow.reports.style import (
    FAINT,
    INK,
    WIDTH,
    band,
    frames_axis,
    interval_bar,
    legend_below,
    legend_room,
    method_label,
    method_style,
    panels,
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
    rows = sum(max(1, 0.75 * (label.count("\n") + 1)) for label in labels)
    longest = max(len(line) for label in labels for line in label.split("\n"))
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

    def label(method: str) -> str:
        return method_label(method, comparison.sweep).replace("\n", " ")

    shown = [label(name) for name in names]
    against = [f"{label(x)} > {label(y)}" for x, y in pairs]
    figure, (left, right) = _two_lists(shown, against)
    for y, (method, interval) in enumerate(comparison.iqm.items()):
        interval_bar(left, y, interval, method_style(method, names)[0])
    left.set_title("Interquartile mean of final scores", loc="left")
    for y, ((x, other), interval) in enumerate(pairs.items()):
        which = other if x == comparison.reference else x
        interval_bar(right, y, interval, method_style(which, names)[0])
    right.axvline(0.5, color=INK, linestyle="--", linewidth=1)
    right.set_xlim(0, 1)
    right.set_title("Probability of improvement", loc="left")
    right.set_visible(bool(pairs))
    return figure


def _two_lists(
    left_labels: Sequence[str], right_labels: Sequence[str]
) -> tuple[Figure, Sequence[Axes]]:
    """Two panels of horizontal intervals, with room for the longest names."""
    left_room, right_room = (
        0.3 + 0.08 * max(map(len, texts), default=0)
        for texts in (left_labels, right_labels)
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
    gap = 0.4 + 0.075 * max(
        (_longest(method_label(m, comparison.sweep)) for m in comparison.differences),
        default=0,
    )
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
    right.set_yticks(
        range(rows), [method_label(m, comparison.sweep) for m in differences]
    )
    right.set_ylim(max(rows, 2) - 0.5, -0.5)
    right.grid(axis="y", visible=False)
    reference = method_label(comparison.reference, comparison.sweep).replace("\n", " ")
    right.set_title(f"{metric_heading(metric)}: {reference} minus", loc="left")
    right.set_visible(bool(differences))
    legend_below(figure, handles, labels)
    return figure


def _longest(label: str) -> int:
    return max(map(len, label.split("\n")))


def _paired_metric(comparison: Comparison) -> str:
    """Retention, or the mean score where no run has a retention."""
    known = [m for found in comparison.differences.values() for m in found]
    return "retention" if "retention" in known or not known else "ACC"


def headline_figure(comparison: Comparison) -> Figure:
    """The first task through the curriculum, and what is left of earlier tasks."""
    everyone = list(comparison.methods)
    names = _headline_methods(everyone)
    labels = [method_label(name, comparison.sweep) for name in names]
    rows = sum(max(1, 0.75 * (label.count("\n") + 1)) for label in labels)
    longest = max(map(_longest, labels))
    figure, axes = panels(
        1,
        2,
        WIDTH,
        max(2.3, 0.36 * rows),
        gap=0.35 + 0.08 * longest,
        legend=legend_room(labels),
    )
    left, right = axes.flat
    task = comparison.first_curve.tasks[0]
    name = task_label(comparison.suite, task)
    handles = []
    for method in names:
        curves = comparison.methods[method].curves
        series = median_series(curves, [c.scores[:, c.columns[task]] for c in curves])
        handles.append(band(left, series, method_style(method, everyone)))
    _shade_training(left, comparison, task)
    left.set_title(f"Score on {name}, the first task", loc="left")
    left.set_ylabel("0 = random, 1 = trained alone")
    frames_axis(left)
    for y, method in enumerate(names):
        _kept_bar(right, y, comparison, method, method_style(method, everyone)[0])
    right.set_yticks(range(len(names)), labels)
    right.set_ylim(len(names) - 0.4, -0.6)
    right.tick_params(axis="y", length=0)
    right.grid(axis="y", visible=False)
    right.axvline(0, color=INK, linewidth=0.8)
    right.axvline(1, color=INK, linewidth=0.8, linestyle="--")
    right.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    right.set_xlabel("100 % = nothing forgotten; dots are seeds")
    right.set_title("How much of earlier tasks is left at the end", loc="left")
    legend_below(figure, handles, labels)
    return figure


def _headline_methods(names: Sequence[str]) -> list[str]:
    """The paper's methods, or the first few: what can be taken in at a glance."""
    known = [name for name in names if name in BASELINES]
    return known if len(known) > 1 else list(names[:6])


def _shade_training(ax: Axes, comparison: Comparison, task: str) -> None:
    """Grey where the task is trained, with words for it."""
    curve = comparison.first_curve
    for i, exposure in enumerate(e for e in curve.exposures if e.task == task):
        start, end = np.interp(
            [exposure.start, exposure.end], curve.epochs, curve.frames
        )
        ax.axvspan(start, end, color=FAINT, alpha=0.6, linewidth=0, zorder=0)
        if i == 0:
            where = ax.get_xaxis_transform()
            about = {"transform": where, "va": "top", "size": 8.5}
            ax.text((start + end) / 2, 0.99, "trained", ha="center", **about)
            middle = (end + curve.frames[-1]) / 2
            ax.text(middle, 0.99, "other tasks are trained", ha="center", **about)


def _kept_bar(
    ax: Axes, y: int, comparison: Comparison, method: str, colour: str
) -> None:
    result = comparison.methods[method]
    summary = result.summary("retention")
    if not summary.seeds:
        ax.text(0.02, y, "learned no earlier task", va="center", size=8.5)
        return
    ax.barh(y, summary.median, color=colour, height=0.62, alpha=0.85)
    seeds = list(result.of_seeds("retention").values())
    ax.plot(seeds, [y] * len(seeds), "o", color=INK, markersize=3.6, alpha=0.65)
    ax.annotate(
        f"{summary.median:.0%}",
        (max(summary.median, *seeds, 0), y),
        xytext=(7, 0),
        textcoords="offset points",
        va="center",
        weight="bold",
    )
    ax.margins(x=0.16)
