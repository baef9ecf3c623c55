"""One figure for a reader who has ten seconds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from rllib_arrow import ALGORITHMS
from rllib_arrow.envs.suites import task_label
from rllib_arrow.metrics.statistics import median_series
from rllib_arrow.reports.style import (
    FAINT,
    INK,
    WIDTH,
    band,
    frames_axis,
    legend_below,
    legend_room,
    longest_line,
    method_label,
    method_style,
    panels,
    rows_high,
)
from rllib_arrow.runs.results import Comparison


def headline_figure(comparison: Comparison) -> Figure:
    """The first task through the curriculum, and what is left of earlier tasks."""
    everyone = list(comparison.methods)
    names = _headline_methods(everyone)
    labels = [method_label(name, comparison.sweep) for name in names]
    rows = rows_high(labels)
    longest = max(map(longest_line, labels))
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
    """The algorithms as they are, or the first few: what is taken in at a glance."""
    known = [name for name in names if name in ALGORITHMS]
    return known if len(known) > 1 else list(names[:6])


def _shade_training(ax: Axes, comparison: Comparison, task: str) -> None:
    """Grey where the task is trained, with words for it."""
    curve = comparison.first_curve
    ends = [0, *(e.end for e in curve.exposures)]
    frames = dict(zip(ends, np.interp(ends, curve.epochs, curve.frames), strict=True))
    mine = [exposure for exposure in curve.exposures if exposure.task == task]
    for exposure in mine:
        span = frames[exposure.start], frames[exposure.end]
        ax.axvspan(*span, color=FAINT, alpha=0.6, linewidth=0, zorder=0)
    first, *again = mine
    until = again[0].start if again else curve.end
    for start, end, words in (
        (first.start, first.end, "trained"),
        (first.end, until, "other tasks trained"),
    ):
        # Words that would not fit into their stretch are left out.
        if end - start > 0.0155 * len(words) * curve.end:
            middle = (frames[start] + frames[end]) / 2
            about = {"transform": ax.get_xaxis_transform(), "size": 8.5}
            ax.text(middle, 0.99, words, ha="center", va="top", **about)


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
