"""What the report says, in order; `page.py` and `tables.md` show the same sections."""

from __future__ import annotations

from rllib_arrow.reports.building_blocks import Section, suite_title
from rllib_arrow.reports.comparison_sections import comparison_section, raw_section
from rllib_arrow.reports.efficiency_sections import efficiency_section, single_section
from rllib_arrow.reports.tables import Cell, Row, Table
from rllib_arrow.runs.normalise import listed
from rllib_arrow.runs.results import Comparison, Results


def build_sections(results: Results) -> list[Section]:
    """All sections with tables and figures, in reading order."""
    sections = [comparison_section(c) for c in results.comparisons]
    sections += [raw_section(c) for c in results.raw_only]
    groups: dict[tuple[str, str], list[Comparison]] = {}
    for comparison in results.comparisons:
        groups.setdefault((comparison.sweep, comparison.suite), []).append(comparison)
    for (sweep, suite), group in sorted(groups.items()):
        sections.append(efficiency_section(suite, sweep, group))
    for suite in dict.fromkeys(r.suite for r in results.single):
        group = [r for r in results.single if r.suite == suite]
        sections.append(single_section(suite, group))
    return sections


def normalisation_notes(results: Results) -> list[str]:
    """What 0 and 1 are, suite by suite."""
    return [
        f"{suite_title(suite)}: {note}"
        for suite, normaliser in results.normalisers.items()
        for note in normaliser.notes
    ]


def runs_table(results: Results) -> Table:
    """Which runs went in, and how far each one is."""
    columns = [
        "Method",
        "Suite",
        "Setting",
        "Seed",
        "Tasks",
        "Epoch",
        "Frames",
        "State",
    ]
    table = Table("Runs in this report", [*columns, "File"], numeric=False)
    for run in (*results.runs, *results.baselines):
        curve = run.curve
        end = f" / {curve.end}" if run.plan else ""
        cells = [
            curve.method,
            curve.suite,
            curve.setting + (" (baseline)" if run in results.baselines else ""),
            str(curve.seed),
            listed(curve.tasks),
            f"{curve.now}{end}",
            f"{int(curve.frames[-1]):,}",
            "finished" if run.finished else "unfinished",
            "/".join(run.path.parts[-2:]),
        ]
        table.rows.append(Row(tuple(map(Cell, cells))))
    return table
