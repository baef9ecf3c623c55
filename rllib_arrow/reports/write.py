"""Writes a report's files, each under a temporary name first, the page last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from rllib_arrow.errors import UserError
from rllib_arrow.files import write_aside
from rllib_arrow.reports.building_blocks import Picture, Section
from rllib_arrow.reports.inside_section import inside_sections
from rllib_arrow.reports.page import render_page
from rllib_arrow.reports.sections import (
    build_sections,
    normalisation_notes,
    runs_table,
)
from rllib_arrow.reports.style import draw
from rllib_arrow.reports.tables import escape
from rllib_arrow.runs.load import Runs
from rllib_arrow.runs.results import Results

METRICS_COLUMNS = "method,suite,setting,metric,median,q25,q75,seeds".split(",")


def write_report(runs: Runs, out: str | Path) -> Path:
    """Writes the report on the given runs to `out` and returns its page's path."""
    results = runs.results
    sections = [*build_sections(results), *inside_sections(runs)]
    out = Path(out)
    try:
        (out / "figures").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"--out {out}: must be a directory that can be written ({error.strerror})."
        ) from None
    images = {}
    for picture in _pictures(sections):
        images[picture.name] = draw(picture.make)
        write_aside(out / "figures" / f"{picture.name}.png", images[picture.name])
    write_aside(out / "metrics.csv", _csv(_summaries(results)))
    write_aside(out / "metrics_by_seed.csv", _csv(runs.metrics))
    write_aside(out / "tables.md", _tables(results, sections))
    write_aside(out / "index.html", render_page(results, sections, images))
    return out / "index.html"


def _pictures(sections: Sequence[Section]) -> Iterator[Picture]:
    for section in sections:
        yield from (part for part in section.parts if isinstance(part, Picture))


def _csv(frame: pd.DataFrame) -> str:
    """A frame as CSV in which no name is a spreadsheet's formula."""
    names = frame.select_dtypes(exclude="number").columns
    frame = frame.assign(**{name: frame[name].map(_harmless) for name in names})
    return frame.to_csv(index=False, float_format="%.10g", lineterminator="\n")


def _harmless(name: str) -> str:
    return f"'{name}" if name[:1] in "=+-@" else name


def _summaries(results: Results) -> pd.DataFrame:
    """Median and quartiles over the seeds that have a value, by metric."""
    rows = []
    for comparison in results.comparisons:
        for result in comparison.own_methods:
            key = (result.method, comparison.suite, comparison.setting)
            summaries = {metric: result.summary(metric) for metric in result.values}
            summaries["max_performance"] = comparison.efficiency.peaks[result.method]
            rows += [(*key, metric, *s) for metric, s in summaries.items()]
    return pd.DataFrame(rows, columns=METRICS_COLUMNS)


def _tables(results: Results, sections: Sequence[Section]) -> str:
    """The page's tables as Markdown, with the notes that belong to them."""
    notes = [*normalisation_notes(results), *results.notes]
    parts = ["# Continual-learning metrics\n", *_bullets(notes)]
    for section in sections:
        parts.append(f"\n## {escape(section.title)}\n")
        parts += [
            f"\n{part.markdown()}"
            for part in section.parts
            if not isinstance(part, Picture)
        ]
        if section.notes:
            parts += ["\nRead with care:\n\n", *_bullets(section.notes)]
    parts.append(f"\n## Runs\n\n{runs_table(results).markdown()}")
    return "".join(parts)


def _bullets(notes: Sequence[str]) -> list[str]:
    return [f"- {escape(note)}\n" for note in notes]
