"""The figures of what diagnostics saw: a column of panels for each method."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import (
    FuncFormatter,
    MaxNLocator,
    NullFormatter,
    PercentFormatter,
)
from PIL import Image

from rllib_arrow.envs.suites import task_label
from rllib_arrow.reports.inside_view import InsideView, over_seeds
from rllib_arrow.reports.style import (
    INK,
    PALETTE,
    WIDTH,
    band,
    frames_axis,
    legend_below,
    legend_room,
    panel_title,
    panels,
    seeds_label,
    short_number,
)
from rllib_arrow.runs.forgotten import MAIN_MEASURE
from rllib_arrow.runs.inside import BUFFERS

MEASURES = {
    "dormant": "Dormant units",
    "effective_rank": "Effective rank",
    "weight_norm": "Weight norm",
    "distance": "Distance moved",
    "gradient_norm": "Gradient norm",
}
BUFFER_NAMES = {"fifo": "FIFO", "ltdm": "Long-term"}
GREYS = ("#b4bcc9", "#465063")  # of the two buffers
_AXIS = 0.42  # inches below the last row, for the frames


def parts_figure(view: InsideView) -> Figure:
    """What each part forgot of each task over time."""
    parts = [part for part in MAIN_MEASURE if (view.forgotten.part == part).any()]
    labels = [task_label(view.suite, task) for task in view.tasks]
    figure, axes = _grid(view, [_words(part) for part in parts], 0.62, labels)
    for line, part in zip(axes, parts, strict=True):
        for ax, method in zip(line, view.methods, strict=True):
            rows = view.forgotten
            rows = rows[(rows.part == part) & (rows.method == method)]
            if rows.empty:
                _say_none(ax)
                continue
            _each_line(ax, rows, "task", view.tasks, "forgotten")
            ax.axhline(0, color=INK, linewidth=0.8)
            ax.axhline(1, color=INK, linewidth=0.8, linestyle=":")
            ax.set_ylim(-0.35, 1.6)
            ax.set_yticks([0, 1])
            _mark_switches(ax, view)
    legend_below(figure, _lines(labels), labels)
    return figure


def plasticity_figure(view: InsideView) -> Figure:
    """Five measures of each network over time."""
    rows = view.inside[view.inside.task == ""]
    measures = [m for m in MEASURES if (rows.measure == m).any()]
    parts = list(dict.fromkeys(rows.part))
    labels = [_words(part) for part in parts]
    names = [MEASURES[measure] for measure in measures]
    figure, axes = _grid(view, names, 0.95, labels)
    for line, measure in zip(axes, measures, strict=True):
        for ax, method in zip(line, view.methods, strict=True):
            own = rows[(rows.measure == measure) & (rows.method == method)]
            if measure == "gradient_norm":  # of networks that differ a thousandfold
                ax.set_yscale("log")
            _each_line(ax, own, "part", parts, "value", bands=False)
            _mark_switches(ax, view)
        limits = [ax.get_ylim() for ax in line]
        for ax in line:  # methods side by side on one scale
            ax.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))
            _value_axis(ax, measure)
    legend_below(figure, _lines(labels), labels)
    return figure


def _value_axis(ax: Axes, measure: str) -> None:
    if measure == "gradient_norm":
        ax.yaxis.set_minor_formatter(NullFormatter())
    else:
        # Lines along zero stay in sight.
        top = ax.get_ylim()[1]
        ax.set_ylim(-0.04 * top, top)
        ax.yaxis.set_major_locator(MaxNLocator(3, min_n_ticks=2))
    percent = PercentFormatter(1)  # with decimals where the axis needs them
    plain = FuncFormatter(short_number)
    ax.yaxis.set_major_formatter(percent if measure == "dormant" else plain)


def memory_figure(view: InsideView) -> Figure:
    """What the buffers hold, how old it is, and the share of minibatches from each."""
    mean = view.memory.groupby(
        ["method", "buffer", "task", "measure", "frames"], sort=False
    ).value.mean()
    mean = mean.reset_index()
    held = [
        b for b in BUFFERS if ((mean.buffer == b) & (mean.measure == "chunks")).any()
    ]
    rows = [
        *(f"{BUFFER_NAMES[b]}, chunks" for b in held),
        "Minibatches",
        "Median age, chunks",
    ]
    tasks = [task_label(view.suite, task) for task in view.tasks]
    buffers = [BUFFER_NAMES[b] for b in BUFFERS]
    figure, axes = _grid(view, rows, 0.95, [*tasks, *buffers])
    colours = [PALETTE[i % len(PALETTE)] for i in range(len(tasks))]
    for column, method in enumerate(view.methods):
        own = mean[mean.method == method]
        for line, buffer in zip(axes, held, strict=False):
            chunks = own[(own.buffer == buffer) & (own.measure == "chunks")]
            _stack(line[column], chunks, "task", view.tasks, colours)
        shares = own[own.measure == "minibatches"]
        _stack(axes[-2, column], shares, "buffer", BUFFERS, GREYS)
        axes[-2, column].set_ylim(0, 1)
        axes[-2, column].yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        ages = own[own.measure == "age_median"]
        for buffer, colour in zip(BUFFERS, GREYS, strict=True):
            one = ages[ages.buffer == buffer].sort_values("frames")
            axes[-1, column].plot(one.frames, one.value, color=colour, linewidth=1.6)
        axes[-1, column].set_ylim(bottom=0)
        for ax in axes[:, column]:
            _mark_switches(ax, view)
    patches = [Patch(color=colour) for colour in (*colours, *GREYS)]
    legend_below(figure, patches, [*tasks, *buffers])
    return figure


def strips_figure(view: InsideView) -> Figure:
    """Real frames, reconstruction and dream, at both ends."""
    images = [
        [_pixels(png) for png in (s.at_its_end, s.at_the_end)] for s in view.strips
    ]
    widest = max(pixels.shape[1] for line in images for pixels in line)
    tallest = max(pixels.shape[0] for line in images for pixels in line)
    gap, left, right = 0.12, 0.1, 0.1
    panel = (WIDTH - left - right - gap) / 2
    height = panel * tallest / widest
    top, between = 0.3, 0.3
    whole = len(images) * (height + between) + top
    figure = Figure(figsize=(WIDTH, whole))
    for row, (strip, line) in enumerate(zip(view.strips, images, strict=True)):
        bottom = whole - top - (row + 1) * (height + between) + 0.06
        for column, pixels in enumerate(line):
            place = (left + column * (panel + gap), bottom, panel, height)
            sizes = (WIDTH, whole, WIDTH, whole)
            ax = figure.add_axes([p / s for p, s in zip(place, sizes, strict=True)])
            ax.imshow(pixels, interpolation="nearest", aspect="auto")
            ax.set_axis_off()
            if column == 0:
                name = task_label(view.suite, strip.task)
                title = f"{name}, {strip.method} (seed {strip.seed})"
                ax.set_title(title, loc="left", fontsize=9, fontweight="normal", pad=3)
            if row == 0:
                when = ("When its training ended", "At the end of the run")[column]
                x = (left + column * (panel + gap)) / WIDTH
                figure.text(x, 1 - 0.18 / whole, when, fontweight="bold")
    return figure


# Panels


def _grid(
    view: InsideView, rows: Sequence[str], height: float, labels: Sequence[str]
) -> tuple[Figure, np.ndarray]:
    """A row of panels for each name, a column for each method."""
    width = WIDTH if len(view.methods) > 1 else 6.4
    room = legend_room(labels, width)
    left = 0.6 + 0.085 * max(map(len, rows))
    figure, axes = panels(
        len(rows),
        len(view.methods),
        width,
        height,
        left=left,
        gap=0.52,
        below=-0.16,
        legend=room + _AXIS + 0.16,
    )
    for line, name in zip(axes, rows, strict=True):
        for ax in line:
            frames_axis(ax)
            last = line is axes[-1] or ax in axes[-1]
            if not last:
                ax.set_xlabel("")
                ax.set_xticklabels([])
        line[0].set_ylabel(name, rotation=0, ha="right", va="center")
        line[0].yaxis.set_label_coords(-0.48 / _width(line[0], width), 0.5)
    for ax, method in zip(axes[0], view.methods, strict=True):
        panel_title(ax, f"{method} ({seeds_label(view.seeds(method))})")
    end = view.exposures[-1].end * view.frames_per_epoch
    for ax in axes.flat:
        ax.set_xlim(0, end)
    return figure, axes


def _width(ax: Axes, figure_width: float) -> float:
    return ax.get_position().width * figure_width


def _each_line(
    ax: Axes,
    rows: pd.DataFrame,
    key: str,
    names: Sequence[str],
    value: str,
    bands: bool = True,
) -> None:
    """One median line for each name, in its colour; a new cycle begins a new line."""
    for i, name in enumerate(names):
        for _, one in rows[rows[key] == name].groupby("cycle"):
            series = over_seeds(one, value)
            style = _style(i)
            if bands:
                band(ax, series, style, width=1.5)
            else:
                colour, dashes = style
                ax.plot(series.frames, series.median, dashes, color=colour)


def _style(i: int) -> tuple[str, str]:
    again, place = divmod(i, len(PALETTE))
    return PALETTE[place], ("-", "--", ":")[again % 3]


def _lines(labels: Sequence[str]) -> list[Line2D]:
    styles = map(_style, range(len(labels)))
    return [Line2D([], [], color=c, linestyle=line) for c, line in styles]


def _stack(
    ax: Axes,
    rows: pd.DataFrame,
    key: str,
    names: Sequence[str],
    colours: Sequence[str],
) -> None:
    table = rows.pivot_table(index="frames", columns=key, values="value")
    table = table.reindex(columns=list(names)).fillna(0)
    if len(table) and table.to_numpy().any():
        ax.stackplot(table.index, table.to_numpy().T, colors=colours, linewidth=0)
        ax.set_ylim(bottom=0)
    else:
        _say_none(ax)


def _say_none(ax: Axes) -> None:
    where = {"transform": ax.transAxes, "ha": "center", "va": "center", "size": 9}
    ax.text(0.5, 0.5, "none", **where)
    ax.set_yticks([])
    ax.grid(visible=False)


def _mark_switches(ax: Axes, view: InsideView) -> None:
    for exposure in view.exposures[:-1]:
        at = exposure.end * view.frames_per_epoch
        ax.axvline(at, color=INK, linewidth=0.6, linestyle=(0, (1, 3)))


def _pixels(png: bytes | None) -> np.ndarray:
    if png is None:
        return np.full((8, 8, 3), 255, np.uint8)
    with Image.open(io.BytesIO(png)) as image:
        return np.asarray(image.convert("RGB"))


def _words(name: str) -> str:
    return name.replace("_", " ").capitalize()
