"""Writes a report's files, each under a temporary name first, the page last."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from rllib_arrow.metrics.statistics import Summary
from rllib_arrow.reports.analysis import analyse
from rllib_arrow.reports.page import render_page
from rllib_arrow.reports.results import MethodResult, Results
from rllib_arrow.reports.rows import ReportError
from rllib_arrow.reports.sections import Picture, Section, build_sections, runs_table
from rllib_arrow.reports.style import draw

METRICS_COLUMNS = "method,suite,setting,metric,median,q25,q75,seeds".split(",")
BY_SEED_COLUMNS = "method,suite,setting,seed,metric,value".split(",")


def write_report(
    runs: Sequence[str | Path],
    out: str | Path,
    baselines: Sequence[str | Path] = (),
) -> Path:
    """Writes the report on the given runs to `out` and returns its page's path.

    `runs` and `baselines` are run directories, trees of them, or CSV files; baselines
    are single-task runs. Unfinished runs are welcome.
    """
    results = analyse(runs, baselines)
    sections = build_sections(results)
    out = Path(out)
    try:
        (out / "figures").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReportError(
            f"--out {out}: must be a directory that can be written ({error.strerror})."
        ) from None
    images = {}
    for picture in _pictures(sections):
        images[picture.name] = draw(picture.make)
        _write(out / "figures" / f"{picture.name}.png", images[picture.name])
    _write(out / "metrics.csv", _csv(METRICS_COLUMNS, _metric_rows(results)))
    _write(out / "metrics_by_seed.csv", _csv(BY_SEED_COLUMNS, _seed_rows(results)))
    _write(out / "tables.md", _tables(results, sections).encode())
    _write(out / "index.html", render_page(results, sections, images).encode())
    return out / "index.html"


def _pictures(sections: Sequence[Section]) -> Iterator[Picture]:
    for section in sections:
        yield from (part for part in section.parts if isinstance(part, Picture))


def _write(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _csv(columns: Sequence[str], rows: Iterator[list[str]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue().encode()


def _number(value: float) -> str:
    return f"{value:.10g}" if math.isfinite(value) else ""


def _own_results(results: Results) -> Iterator[tuple[list[str], MethodResult]]:
    """Each method once: ARROW standing in for AR50 is not written a second time."""
    for comparison in results.comparisons:
        for method, result in comparison.methods.items():
            if result.curves[0].method == method:
                yield [method, comparison.suite, comparison.setting], result


def _metric_rows(results: Results) -> Iterator[list[str]]:
    peaks = {
        (c.suite, c.setting, method): peak
        for c in reversed(results.comparisons)
        for method, peak in c.efficiency.peaks.items()
    }
    for key, result in _own_results(results):
        for metric in result.values:
            summary = result.summary(metric)
            if metric == "max_performance":
                method, suite, setting = key
                summary = peaks[suite, setting, method]
            yield [*key, metric, *_summary_cells(summary)]


def _summary_cells(summary: Summary) -> list[str]:
    return [*(_number(x) for x in summary[:3]), str(summary.seeds)]


def _seed_rows(results: Results) -> Iterator[list[str]]:
    """One row per seed and metric; a seed without a value has an empty cell."""
    for key, result in _own_results(results):
        for metric, values in result.values.items():
            cells = {
                seed: _number(value.value)
                for seed, value in zip(result.seeds, values, strict=True)
            }
            cells |= {run.curve.seed: "" for run in result.waiting}
            for seed in sorted(cells):
                yield [*key, str(seed), metric, cells[seed]]


def _tables(results: Results, sections: Sequence[Section]) -> str:
    """The page's tables as Markdown, with the notes that belong to them."""
    parts = ["# Continual-learning metrics\n"]
    parts += [
        f"- {suite}: {note}\n"
        for suite, normaliser in results.normalisers.items()
        for note in normaliser.notes
    ]
    parts += [f"- {note}\n" for note in results.notes]
    for section in sections:
        parts.append(f"\n## {section.title}\n")
        parts += [
            f"\n{part.markdown()}"
            for part in section.parts
            if not isinstance(part, Picture)
        ]
        if section.notes:
            parts.append("\nRead with care:\n\n")
            parts += [f"- {note}\n" for note in section.notes]
    parts.append(f"\n## Runs\n\n{runs_table(results).markdown()}")
    return "".join(parts)
