"""From finished runs to the results pages: raw files, reports, tables."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.evidence.plan import Group, Page, Plan
from benchmarks.evidence.records import (
    FILE,
    IF_THERE,
    PUBLISHED,
    SCORES,
    RunDirectory,
    odd_commits,
)
from benchmarks.evidence.tables import (
    headline_table,
    inside_tables,
    page_tables,
    paper_table,
)
from rllib_arrow import load_runs
from rllib_arrow.files import write_aside
from rllib_arrow.reports import write_report
from rllib_arrow.runs.load import Runs

RUNS = "runs"
INSIDE = "inside"  # the page on which parts forgot, of all suites
MADE_OF = "made_of.txt"  # in a report's directory
RECALLED = "published"  # in place of a trial's directory
OWN = "<!-- Written by `make evidence`. -->\n"


@dataclass
class Shown:
    """What a report may show: runs of the same seeds for every method."""

    paths: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def publish(
    plan: Plan,
    storage: Path,
    out: Path,
    tell: Callable[[str], None],
    afresh: bool = True,
) -> None:
    """Copies the raw files of finished runs to `out` and rebuilds each page's parts.

    `out` has a directory per page: `runs`, the reports, and a README.md whose parts
    between markers are replaced. Pages without a finished run are left alone, and so
    are, unless all is made `afresh`, reports that were made of the same.
    """
    reports: dict[str, Runs] = {}
    inside: dict[str, str] = {}
    for page in plan.pages:
        groups = [group for group in plan.groups if group.page == page.name]
        directories = [each for group in groups for each in _copy(group, storage, out)]
        if not directories:
            continue
        _tell_odd_commits(page, directories, tell)
        blocks: dict[str, str] = {}
        reported: list[list[Path]] = []
        made: dict[Path, str] = {}
        for name, compared in page.reports.items():
            shown = balanced(plan, compared, storage, out)
            for note in shown.notes:
                tell(f"{page.name}/{name}: {note}")
            if not shown.paths or shown.paths in reported:
                continue  # nothing yet, or no more than another report
            reported.append(shown.paths)
            singles = _baselines(plan, page, storage, out)
            runs = load_runs(*shown.paths, baselines=singles or None)
            reports[f"{page.name}/{name}"] = runs
            if name in ("report", "quiver"):  # the later has more methods
                inside |= inside_tables(page, runs)
            target = out / page.name / name / MADE_OF
            text = _made_of([*shown.paths, *(p.parent for p in singles)], shown.notes)
            if not afresh and target.exists() and target.read_text() == text:
                continue
            target.unlink(missing_ok=True)
            made[target] = text
            write_report(runs, target.parent)
            blocks |= page_tables(page, name, runs, shown.notes)
            blocks |= paper_table(page, name, runs)
        _write_blocks(out / page.name / "README.md", blocks)
        for target, text in made.items():  # all that is made of it is there by now
            write_aside(target, text)
    _write_blocks(out / INSIDE / "README.md", inside)
    if reports and plan.headline:
        table = headline_table(plan, reports)
        _write_blocks(out / "README.md", {"headline": table})


def copy_headline(source: Path, target: Path) -> None:
    """Copies the headline table to a document elsewhere, with its links adapted."""
    found = _block("headline").search(source.read_text()) if source.exists() else None
    if found:
        there = os.path.relpath(source.parent, target.parent)
        table = found[2].replace("](", f"]({there}/")
        _write_blocks(target, {"headline": table})


# Runs


def _copy(group: Group, storage: Path, out: Path) -> list[RunDirectory]:
    """Copies the small files of the group's finished runs, and returns these."""
    finished = [d for run in group.runs if (d := RunDirectory(storage, run)).finished]
    for directory in finished:
        directory.note_bytes()
        target = place(out, directory)
        target.mkdir(parents=True, exist_ok=True)
        _copy_files(directory.trial, target)
        for name in (FILE, "experiment.json"):
            shutil.copyfile(directory.path / name, target / name)
    return finished


def _copy_files(source: Path, target: Path) -> None:
    for name in _files(source):
        shutil.copyfile(source / name, target / name)


def _files(directory: Path) -> list[str]:
    """Returns the names of a run's raw files."""
    return [*PUBLISHED, *(name for name in IF_THERE if (directory / name).exists())]


def _made_of(runs: Sequence[Path], notes: Sequence[str]) -> str:
    """Returns which raw files a report is made of, by run, and what it lacks."""
    lines = [f"lacks: {note}" for note in notes]
    for run in runs:
        content = b"".join((run / name).read_bytes() for name in _files(run))
        lines.append(f"{hashlib.sha256(content).hexdigest()[:16]} {_ending(run)}")
    return "\n".join(lines) + "\n"


def _ending(run: Path) -> str:
    """Returns where a published run lies within its page."""
    return "/".join(run.parts[run.parts.index(RUNS) :])


def recall(plan: Plan, storage: Path, out: Path) -> None:
    """Takes published runs for finished ones, where the storage is a new one."""
    for group in plan.groups:
        for run in group.runs:
            directory = RunDirectory(storage, run)
            source = place(out, directory)
            if directory.path.exists() or not (source / FILE).is_file():
                continue
            trial = directory.path / RECALLED
            trial.mkdir(parents=True)
            _copy_files(source, trial)
            for name in (FILE, "experiment.json"):
                shutil.copyfile(source / name, directory.path / name)


def place(out: Path, directory: RunDirectory) -> Path:
    """Returns where a run's raw files are published."""
    page, _, group = directory.run.group.partition("/")
    return out / page / RUNS / group / directory.run.name


def finished_seeds(group: Group, storage: Path) -> list[int]:
    """Returns the seeds that all methods of the group have finished, on all tasks."""
    return [
        seed
        for seed in group.seeds
        if all(RunDirectory(storage, run).finished for run in group.of_seed(seed))
    ]


def balanced(plan: Plan, groups: Iterable[str], storage: Path, out: Path) -> Shown:
    """Returns the runs of a report with the same seeds for what stands side by side.

    Groups that are compared have the same setting, which is the first part of the
    group's name (`default`, `default-controls`). The first of them decides on the
    seeds, among those that are planned for all. Another joins once it has more
    than half of these, and then only seeds that all of them have are shown.
    """
    shown = Shown()
    compared: dict[str, list[Group]] = {}
    for name in groups:
        setting = name.partition("/")[2].partition("-")[0]
        compared.setdefault(setting, []).append(plan.group(name))
    for setting, (first, *others) in compared.items():
        planned = set(first.seeds).intersection(*(group.seeds for group in others))
        seeds = [seed for seed in finished_seeds(first, storage) if seed in planned]
        joined, wanted = [first], len(seeds)
        for group in (first, *others):
            own = finished_seeds(group, storage)
            if len(own) < len(group.seeds):
                shown.notes.append(_what_lacks(setting, group, len(own)))
            both = [seed for seed in seeds if seed in own]
            if group is not first and both and 2 * len(both) > wanted:
                seeds = both
                joined.append(group)
        runs = [
            run for group in joined for seed in seeds for run in group.of_seed(seed)
        ]
        shown.paths += [place(out, RunDirectory(storage, run)) for run in runs]
    return shown


def _what_lacks(setting: str, group: Group, finished: int) -> str:
    methods = ", ".join(group.methods)
    return f"{setting}, {methods}: {finished} of {len(group.seeds)} seeds are finished"


def _baselines(plan: Plan, page: Page, storage: Path, out: Path) -> list[Path]:
    """Returns all finished single-task runs: medians over seeds need no pairs."""
    groups = [plan.group(name) for name in page.baselines]
    every = (RunDirectory(storage, run) for group in groups for run in group.runs)
    return [place(out, each) / SCORES for each in every if each.finished]


def _tell_odd_commits(
    page: Page, copied: list[RunDirectory], tell: Callable[[str], None]
) -> None:
    for path, commits in odd_commits(copied).items():
        tell(f"Of another commit than the rest: {path} ({', '.join(commits)})")


# Documents


def _block(name: str) -> re.Pattern[str]:
    begin, end = rf"<!-- evidence: {re.escape(name)} -->\n", r"<!-- /evidence -->"
    return re.compile(f"({begin})(.*?)({end})", re.DOTALL)


def _write_blocks(path: Path, blocks: dict[str, str]) -> None:
    """Replaces what stands between the markers of a document, as far as it has any.

    Where there is no document, one is begun; blocks are added to it as they come.
    """
    if not blocks:
        return
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_aside(path, OWN)
    text = path.read_text()
    for name, content in blocks.items():
        if text.startswith(OWN) and not _block(name).search(text):
            text += f"\n## {name}\n\n<!-- evidence: {name} -->\n<!-- /evidence -->\n"
        text = _block(name).sub(lambda m, c=content: m[1] + c + m[3], text)
    write_aside(path, text)
