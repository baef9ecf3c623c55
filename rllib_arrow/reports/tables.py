"""The paper's table layouts, filled with our numbers or the paper's own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rllib_arrow.metrics.continual import MAX_CYCLES_APART
from rllib_arrow.metrics.statistics import Summary
from rllib_arrow.reports.paper import SEEDS, Efficiency, EfficiencyBlock

EMPTY = "n/a"
_LABELS = {
    "F": "Forgetting",
    "SE_frames": "SE (frames)",
    "max_performance": "Max perf.",
    "retention": "Retention",
    "zero_shot": "Zero-shot",
}
MORE_METRICS = ("retention", "FT_area", "zero_shot")  # beyond the paper's tables


class Cell(NamedTuple):
    text: str
    bold: bool = False


class Row(NamedTuple):
    cells: tuple[Cell, ...]
    quoted: bool = False  # the paper's numbers, not ours


@dataclass
class Table:
    """Rows of text with a caption and footnotes; knows nothing of its origin."""

    title: str
    columns: list[str]
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    numeric: bool = True  # the columns after the first hold numbers

    def markdown(self) -> str:
        lines = [f"**{escape(self.title)}**", "", _line(map(escape, self.columns))]
        lines.append(_line("---" for _ in self.columns))
        for row in self.rows:
            lines.append(_line(_marked(cell) for cell in row.cells))
        lines += ["", *(f"- {escape(note)}" for note in self.notes)]
        return "\n".join(lines).rstrip() + "\n"

    def plain(self) -> str:
        """The table for a terminal: aligned columns, no marks but a star for best."""
        body = [
            [cell.text + ("*" if cell.bold else "") for cell in row.cells]
            for row in self.rows
        ]
        grid = [self.columns, *body]
        widths = [max(len(row[i]) for row in grid) for i in range(len(self.columns))]
        lines = [self.title]
        for row in grid:
            cells = [
                text.ljust(width) if i == 0 else text.rjust(width)
                for i, (text, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append("  " + "  ".join(cells).rstrip())
        lines.insert(2, "  " + "-" * (sum(widths) + 2 * (len(widths) - 1)))
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])


def _line(cells) -> str:
    return f"| {' | '.join(cells)} |"


def escape(text: str) -> str:
    """Returns text that Markdown shows as it is: names are a user's own."""
    text = re.sub(r"([\\`|<>*$~&])", r"\\\1", text.replace("\n", " "))
    # Underscores inside words and brackets that begin no link are no marks.
    text = re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", text)
    return re.sub(r"\](?=[(\[:])", r"\\]", text)


def _marked(cell: Cell) -> str:
    text = escape(cell.text)
    return f"**{text}**" if cell.bold else text


def metric_label(metric: str) -> str:
    """A metric's name as the paper writes it: `min_ACC` is min-ACC."""
    return _LABELS.get(metric, metric.replace("_", "-"))


def lower_is_better(metric: str) -> bool:
    return (
        metric in ("F", "Max_F", "SE_frames")
        or re.fullmatch(r"C\d+_F", metric) is not None
    )


def metric_heading(metric: str) -> str:
    return f"{metric_label(metric)} {'↓' if lower_is_better(metric) else '↑'}"


def metric_blocks(cycles: int) -> list[tuple[str, ...]]:
    """Which metrics a setting's table shows, block by block, as in the paper."""
    if cycles == 1:
        return [("F", "FT", "ACC", "min_ACC", "WC_ACC")]
    if cycles > MAX_CYCLES_APART:
        return [("Max_F", "Recovery", "ACC", "min_ACC", "WC_ACC")]
    numbers = range(1, cycles + 1)
    return [
        (*(f"C{n}_F" for n in numbers), "Max_F"),
        (*(f"C{n}_FT" for n in numbers), "Recovery"),
        ("ACC", "min_ACC", "WC_ACC"),
    ]


def format_summary(summary: Summary, decimals: int = 3) -> str:
    """median [q25 - q75], or n/a."""
    if np.isnan(summary.median):
        return EMPTY
    # Adding zero turns a rounded -0.0 into 0.0.
    median, q25, q75 = (
        f"{round(x, decimals) + 0.0:,.{decimals}f}" for x in summary[:3]
    )
    return f"{median} [{q25} - {q75}]"


def metric_table(
    title: str,
    metrics: Sequence[str],
    ours: Mapping[str, Mapping[str, Summary]],
    paper: Mapping[str, Mapping[str, Summary]] | None = None,
) -> Table:
    """One block: a row per method, the best of ours in bold, the paper's below each."""
    table = Table(title, ["Method", *map(metric_heading, metrics)])
    best = {metric: _best(metric, ours) for metric in metrics}
    for method, values in ours.items():
        cells = [Cell(method)]
        for metric in metrics:
            summary = values.get(metric, _missing())
            bold = summary.median == best[metric] and len(ours) > 1
            cells.append(Cell(format_summary(summary), bold))
        table.rows.append(Row(tuple(cells)))
        if paper and method in paper:
            printed = [
                format_summary(paper[method].get(m, _missing())) for m in metrics
            ]
            table.rows.append(
                Row((Cell(f"{method}, paper"), *map(Cell, printed)), quoted=True)
            )
    return table


def _missing() -> Summary:
    return Summary(np.nan, np.nan, np.nan, 0)


def _best(metric: str, methods: Mapping[str, Mapping[str, Summary]]) -> float:
    medians = [v[metric].median for v in methods.values() if metric in v]
    medians = [m for m in medians if np.isfinite(m)]
    if not medians:
        return np.nan
    return min(medians) if lower_is_better(metric) else max(medians)


def efficiency_table(
    title: str,
    first_column: str,
    blocks: Sequence[
        tuple[str, EfficiencyBlock, Mapping[str, int], EfficiencyBlock | None]
    ],
    middle: Mapping[str, int] | None = None,
) -> Table:
    """Sample efficiency: per block its name, our numbers, runs per method, the paper's.

    `middle` adds the column "Frame at middle", by block name.
    """
    columns = [first_column, "85 % threshold"]
    columns += ["Frame at middle"] if middle else []
    columns += ["Method", "Max perf.", "Env. frames", "Runs ≥ 85 %"]
    table = Table(title, columns)
    for name, block, runs, paper in blocks:
        medians = [e.frames.median for e in block.methods.values() if e.frames.seeds]
        for method, line in block.methods.items():
            first = method == next(iter(block.methods))
            lead = [name, _threshold(block)] if first else ["", ""]
            lead += [f"{middle[name]:,}" if first else ""] if middle else []
            best = line.frames.median == min(medians, default=np.nan)
            bold = best and len(block.methods) > 1
            cells = _efficiency_cells(method, line, runs[method], bold)
            table.rows.append(Row((*map(Cell, lead), *cells)))
            if paper and method in paper.methods:
                lead = ["", f"{paper.threshold:,.2f}" if first else ""]
                lead += [""] if middle else []
                label = f"{method}, paper"
                cells = _efficiency_cells(label, paper.methods[method], SEEDS, False)
                table.rows.append(Row((*map(Cell, lead), *cells), quoted=True))
    return table


def _threshold(block: EfficiencyBlock) -> str:
    return EMPTY if np.isnan(block.threshold) else f"{block.threshold:,.2f}"


def _efficiency_cells(
    label: str, line: Efficiency, runs: int, bold: bool
) -> list[Cell]:
    never = "Never reached threshold"
    frames = format_summary(line.frames, 0) if line.frames.seeds else never
    return [
        Cell(label, bold),
        Cell(f"{line.peak:,.2f}"),
        Cell(frames, bold),
        Cell(f"{line.frames.seeds}/{runs}"),
    ]
