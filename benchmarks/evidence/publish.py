"""From finished runs to the results pages: raw files, reports, tables."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

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
RECALLED = "published"  # in place of a trial's directory
OWN = "<!-- Written by `make evidence`. -->\n"


@dataclass
class Shown:
    """What a report may show: runs of the same seeds for every method."""

    paths: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class Copied(NamedTuple):
    """What a group has to publish."""

    finished: list[RunDirectory]
    anything_new: bool  # that was not published before, or otherwise


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
    are, unless all is made `afresh`, reports without a new run.
    """
    reports: dict[str, Runs] = {}
    inside: dict[str, str] = {}
    for page in plan.pages:
        groups = [group for group in plan.groups if group.page == page.name]
        copied = {group.name: _copy(group, storage, out) for group in groups}
        directories = [each for found in copied.values() for each in found.finished]
        if not directories:
            continue
        new = {name for name, found in copied.items() if found.anything_new}
        _tell_odd_commits(page, directories, tell)
        blocks: dict[str, str] = {}
        reported: list[list[Path]] = []
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
            target = out / page.name / name
            made_of = {*compared, *page.baselines}
            if not afresh and not new & made_of and target.exists():
                continue
            write_report(runs, target)
            blocks |= page_tables(page, name, runs, shown.notes)
            blocks |= paper_table(page, name, runs)
            if name in ("report", "quiver"):  # the later has more methods
                inside |= inside_tables(page, runs)
        _write_blocks(out / page.name / "README.md", blocks)
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


def _copy(group: Group, storage: Path, out: Path) -> Copied:
    """Copies the small files of the group's finished runs."""
    finished = [d for run in group.runs if (d := RunDirectory(storage, run)).finished]
    anything_new = False
    for directory in finished:
        directory.note_bytes()
        target = place(out, directory)
        target.mkdir(parents=True, exist_ok=True)
        anything_new |= _copy_files(directory.trial, target)
        for name in (FILE, "experiment.json"):
            shutil.copyfile(directory.path / name, target / name)
    return Copied(finished, anything_new)


def _copy_files(source: Path, target: Path) -> bool:
    """Returns whether anything was not there before, or otherwise."""
    names = (*PUBLISHED, *(name for name in IF_THERE if (source / name).exists()))
    old = [
        (target / name).exists()
        and (target / name).read_bytes() == (source / name).read_bytes()
        for name in names
    ]
    for name in names:
        shutil.copyfile(source / name, target / name)
    return not all(old)


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
    groups = [plan.group(name) for name in page.baselines]
    runs = [
        run
        for group in groups
        for seed in finished_seeds(group, storage)
        for run in group.of_seed(seed)
    ]
    return [place(out, RunDirectory(storage, run)) / SCORES for run in runs]


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
