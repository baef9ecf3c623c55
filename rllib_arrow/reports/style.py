"""The look of the figures: colours, fonts, axes, and drawing to PNG."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import NamedTuple

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from rllib_arrow.metrics.statistics import Interval, Series


class Theme(NamedTuple):
    """Colours of one appearance; the palette is safe for the colour-blind."""

    name: str
    paper: str
    ink: str
    faint: str
    palette: tuple[str, ...]


# Okabe and Ito's colours; black and yellow are replaced where they would not be seen.
LIGHT = Theme(
    "light",
    "#ffffff",
    "#1d2430",
    "#d5d9e0",
    ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8A6D00", "#56B4E9", "#4B4B4B"),
)
DARK = Theme(
    "dark",
    "#161b22",
    "#e4e8ef",
    "#39414d",
    ("#4BA3E3", "#F0803C", "#2BC497", "#E7A0C9", "#E5CF5A", "#8ED3FF", "#B8BEC8"),
)
_METHOD_COLOURS = {
    name: i
    for i, names in enumerate((("ARROW", "AR50"), ("DV3", "AR25"), ("TES-SAC", "AR75")))
    for name in names
}
WIDTH = 9.6


def draw(make: Callable[[Theme], Figure], theme: Theme) -> bytes:
    """Draws a figure in a theme and returns it as PNG."""
    style = {
        "font.size": 9.5,
        "font.family": "DejaVu Sans",
        "axes.titlesize": 10,
        "axes.titleweight": "bold",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "text.color": theme.ink,
        "axes.labelcolor": theme.ink,
        "xtick.color": theme.ink,
        "ytick.color": theme.ink,
        "axes.edgecolor": theme.ink,
        "grid.color": theme.faint,
        "axes.facecolor": theme.paper,
        "figure.facecolor": theme.paper,
    }
    with rc_context(style):
        figure = make(theme)
        FigureCanvasAgg(figure)
        buffer = io.BytesIO()
        # Without the date and version, equal numbers give equal files.
        figure.savefig(buffer, format="png", dpi=120, metadata={"Software": None})
    return buffer.getvalue()


def method_colour(method: str, theme: Theme, others: Sequence[str]) -> str:
    """The paper's methods have fixed colours; others take the ones that are left."""
    if method in _METHOD_COLOURS:
        return theme.palette[_METHOD_COLOURS[method]]
    rank = [m for m in others if m not in _METHOD_COLOURS].index(method)
    return theme.palette[3 + rank % (len(theme.palette) - 3)]


def new_figure(width: float, height: float) -> Figure:
    return Figure(figsize=(width, height), layout="constrained")


def band(ax: Axes, series: Series, colour: str, label: str) -> Line2D:
    ax.fill_between(
        series.frames, series.q25, series.q75, color=colour, alpha=0.18, linewidth=0
    )
    (line,) = ax.plot(
        series.frames, series.median, color=colour, linewidth=1.9, label=label
    )
    return line


def interval_bar(
    ax: Axes, y: int, interval: Interval, colour: str, theme: Theme
) -> None:
    ax.plot(
        [interval.low, interval.high], [y, y], color=colour, linewidth=6, alpha=0.45
    )
    ax.plot(interval.value, y, "|", color=theme.ink, markersize=13, markeredgewidth=2)


def frames_axis(ax: Axes) -> None:
    ax.set_xlabel("Frames")
    ax.xaxis.set_major_formatter(FuncFormatter(short_number))
    ax.xaxis.set_major_locator(MaxNLocator(5))


def short_number(value: float, _position: int = 0) -> str:
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def seeds_label(count: int) -> str:
    return f"{count} seed{'' if count == 1 else 's'}"
