"""The look of the figures: colours, fonts, axes, and drawing to PNG."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from rllib_arrow.metrics.statistics import Interval, Series

INK = "#1d2430"
FAINT = "#d5d9e0"
# Okabe and Ito's colours, told apart by the colour-blind; their black and yellow would
# be lost on the ink or on white and are replaced.
PALETTE = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#8A6D00",
    "#56B4E9",
    "#6B6B6B",
)
_METHOD_COLOURS = {
    name: i
    for i, names in enumerate((("ARROW", "AR50"), ("DV3", "AR25"), ("TES-SAC", "AR75")))
    for name in names
}
WIDTH = 9.6  # inches, of the widest figure
DPI = 144


def draw(make: Callable[[], Figure]) -> bytes:
    """Draws a figure and returns it as PNG."""
    style = {
        "font.size": 9.5,
        "font.family": "DejaVu Sans",
        "axes.titlesize": 10,
        "axes.titleweight": "bold",
        "axes.titley": 1.0,  # looking for its place takes an eighth of the drawing
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "text.color": INK,
        "axes.labelcolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "axes.edgecolor": INK,
        "grid.color": FAINT,
        # A task may be called "$x$": names are shown as they are.
        "text.parse_math": False,
    }
    with rc_context(style):
        figure = make()
        FigureCanvasAgg(figure)
        buffer = io.BytesIO()
        # Without the date and version, equal numbers give equal files.
        figure.savefig(buffer, format="png", dpi=DPI, metadata={"Software": None})
    return buffer.getvalue()


def method_label(method: str, sweep: str) -> str:
    """A method's name for a figure, in lines short enough for a legend.

    In a sweep only the value is left of `ARROW gamma=0.9`: the title names the rest.
    """
    words = method.split(" ")
    if sweep:
        words = [word.rpartition("=")[2] for word in words]
    name = " ".join(words).replace("_", " ") if "=" in method else method
    # Matplotlib leaves out of legends what begins with an underscore.
    return "\n".join(textwrap.wrap(name, 24)) if name[:1] != "_" else f" {name}"


def longest_line(label: str) -> int:
    """Returns the number of letters in a label's longest line."""
    return max(map(len, label.split("\n")))


def rows_high(labels: Iterable[str]) -> float:
    """Returns how many rows of a list labels take, some of which have several lines."""
    return sum(max(1, 0.75 * (label.count("\n") + 1)) for label in labels)


def method_style(method: str, others: Sequence[str]) -> tuple[str, str]:
    """Returns colour and line style; the paper's methods have colours of their own."""
    if method in _METHOD_COLOURS:
        return PALETTE[_METHOD_COLOURS[method]], "-"
    rank = [m for m in others if m not in _METHOD_COLOURS].index(method)
    again, free = divmod(rank, len(PALETTE) - 3)
    return PALETTE[3 + free], ("-", "--", ":", "-.")[again % 4]


def panels(
    lines: int,
    columns: int,
    width: float,
    height: float,
    left: float = 0.74,
    gap: float = 0.55,
    below: float = 0.52,
    legend: float = 0.33,
    share: bool = False,
) -> tuple[Figure, np.ndarray]:
    """A figure `width` inches wide with a grid of axes, each `height` inches high.

    Margins are set by hand, in inches (`below` each panel, and for the legend below
    all): Matplotlib's own layout engine takes about as long as all the drawing.
    """
    top, right = 0.32, 0.12
    bottom, between = below + legend, below + top
    whole = top + lines * height + (lines - 1) * between + bottom
    panel = (width - left - right - (columns - 1) * gap) / columns
    figure = Figure(figsize=(width, whole))
    axes = figure.subplots(
        lines,
        columns,
        sharex=share,
        sharey=share,
        squeeze=False,
        gridspec_kw={
            "left": left / width,
            "right": 1 - right / width,
            "top": 1 - top / whole,
            "bottom": bottom / whole,
            "wspace": gap / panel,
            "hspace": between / height,
        },
    )
    return figure, axes


def legend_room(labels: Sequence[str], width: float = WIDTH) -> float:
    """Inches that a legend of these labels takes below a figure."""
    lines = max((label.count("\n") + 1 for label in labels), default=1)
    rows = -(-len(labels) // _legend_columns(labels, width))
    return 0.13 + 0.2 * rows + 0.17 * (lines - 1)


def _legend_columns(labels: Sequence[str], width: float) -> int:
    longest = max(map(longest_line, labels), default=1)
    return max(1, min(6, len(labels), int(width / (0.45 + 0.078 * longest))))


def legend_below(
    figure: Figure, handles: Iterable[Artist], labels: Sequence[str]
) -> None:
    columns = _legend_columns(labels, figure.get_figwidth())
    figure.legend(list(handles), labels, loc="lower center", ncols=columns)


def band(
    ax: Axes, series: Series, style: tuple[str, str], width: float = 1.9
) -> Line2D:
    """Draws a median with its quartiles."""
    colour, line_style = style
    ax.fill_between(
        series.frames, series.q25, series.q75, color=colour, alpha=0.16, linewidth=0
    )
    (line,) = ax.plot(
        series.frames, series.median, line_style, color=colour, linewidth=width
    )
    return line


def interval_bar(ax: Axes, y: int, interval: Interval, colour: str) -> None:
    ax.plot(
        [interval.low, interval.high], [y, y], color=colour, linewidth=6, alpha=0.45
    )
    ax.plot(interval.value, y, "|", color=INK, markersize=13, markeredgewidth=2)


def frames_axis(ax: Axes) -> None:
    ax.set_xlabel("Frames")
    ax.xaxis.set_major_formatter(FuncFormatter(short_number))
    ax.xaxis.set_major_locator(MaxNLocator(5))


def short_number(value: float, _position: int = 0) -> str:
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def panel_title(ax: Axes, text: str) -> None:
    """Sets a title that is no wider than its axes."""
    title = ax.set_title(text, loc="left")
    width, room = title.get_window_extent().width, ax.get_window_extent().width
    title.set_fontsize(title.get_fontsize() * min(1.0, room / width))


def seeds_label(count: int) -> str:
    return f"{count} seed{'' if count == 1 else 's'}"
