"""The plan: which runs the results pages need, and in which order they are started."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from rllib_arrow.errors import UserError

KEYS = {
    "plan": {"seeds", "fast", "groups", "pages", "headline"},
    "group": {"group", "methods", "tasks", "seeds", "set", "fast"},
    "method": {"example", "set"},
    "page": {"groups", "baselines", "tables", "paper"},
    "fast": {"seeds", "set", "examples"},
}


@dataclass(frozen=True)
class PlannedRun:
    """One training run: an example, what is set beside it, and where it belongs."""

    group: str  # page/name, such as minatar/default
    method: str  # what the group calls it
    example: str
    seed: int
    task: str = ""  # trained alone, in a group of single-task runs
    settings: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """The name of the run's directory."""
        parts = [self.method.lower(), self.task, str(self.seed)]
        return "_".join(re.sub(r"\W+", "_", part) for part in parts if part)

    @property
    def path(self) -> str:
        return f"{self.group}/{self.name}"

    def command(self, rllib: Sequence[str], storage: Path, resume: bool) -> list[str]:
        """Returns the command that starts the run, or continues it."""
        settings = dict(self.settings)
        if self.task:
            settings["curriculum.tasks"] = [self.task]
        settings["seed"] = self.seed
        told = [f"{key}={json.dumps(value)}" for key, value in settings.items()]
        return [
            *(*rllib, "train", "file", self.example),
            *(word for text in told for word in ("--set", text)),
            *("--storage", str(storage / self.group), "--name", self.name),
            *(["--resume"] if resume else []),
        ]


@dataclass(frozen=True)
class Group:
    """Methods that are compared, so that each seed is run with all of them."""

    name: str
    methods: dict[str, tuple[str, dict[str, Any]]]  # example and settings
    seeds: tuple[int, ...]
    tasks: tuple[str, ...] = ("",)

    @property
    def page(self) -> str:
        return self.name.partition("/")[0]

    def of_seed(self, seed: int) -> list[PlannedRun]:
        """Returns the runs of one seed: all methods on all tasks."""
        return [
            PlannedRun(self.name, method, example, seed, task, tuple(settings.items()))
            for task in self.tasks
            for method, (example, settings) in self.methods.items()
        ]

    @property
    def runs(self) -> list[PlannedRun]:
        """All runs, seed by seed, so that a stop leaves as many of each method."""
        return [run for seed in self.seeds for run in self.of_seed(seed)]


@dataclass(frozen=True)
class Page:
    """A results page: its comparisons (lists of groups) and the tables it shows."""

    name: str
    reports: dict[str, tuple[str, ...]]  # the report's directory and its groups
    baselines: tuple[str, ...]  # the groups of single-task runs
    tables: dict[str, dict[str, Any]]
    paper: str = ""  # the paper's suite that it stands for

    def without(self, left_out: Set[str]) -> Page:
        """Returns the page as if the groups of these names were not planned."""
        reports = {
            key: tuple(name for name in names if name not in left_out)
            for key, names in self.reports.items()
        }
        baselines = tuple(name for name in self.baselines if name not in left_out)
        return replace(self, reports=reports, baselines=baselines)


@dataclass(frozen=True)
class Plan:
    """Groups in the order of running, and the pages made of them."""

    groups: tuple[Group, ...]
    pages: tuple[Page, ...]
    headline: tuple[dict[str, Any], ...] = ()

    def group(self, name: str) -> Group:
        return next(group for group in self.groups if group.name == name)

    def runs(self, only: Iterable[str] = ()) -> list[PlannedRun]:
        """Returns all runs, or word after word those whose path starts with it."""
        words = tuple(only)
        every = [run for group in self.groups for run in group.runs]
        matches = (run for word in words for run in every if run.path.startswith(word))
        chosen = list({run.path: run for run in matches}.values()) if words else every
        if not chosen:
            known = ", ".join(group.name for group in self.groups)
            raise UserError(f"--only {' '.join(words)}: no such runs; groups: {known}")
        return chosen


def read_plan(path: Path, fast: bool = False) -> Plan:
    """Reads a plan; with `fast`, the short version of it that the file describes."""
    plan = yaml.safe_load(path.read_text())
    _check(path, "plan", plan, {"seeds", "groups"})
    short = plan.get("fast", {}) if fast else {}
    _check(path, "fast", short, set())
    groups = [_group(path, given, plan["seeds"], short) for given in plan["groups"]]
    names = [group.name for group in groups]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"{path}: the group {name} occurs twice")
    pages = [_page(path, *item, names) for item in plan.get("pages", {}).items()]
    if fast:
        slow = {each["group"] for each in plan["groups"] if each.get("fast") is False}
        groups = [group for group in groups if group.name not in slow]
        pages = [page.without(slow) for page in pages]
    return Plan(tuple(groups), tuple(pages), tuple(plan.get("headline", ())))


def _group(
    path: Path, given: Any, seeds: Sequence[int], short: Mapping[str, Any]
) -> Group:
    _check(path, "group", given, {"group", "methods", "seeds"})
    name, count = given["group"], given["seeds"]
    if not 1 <= count <= len(seeds):
        raise UserError(f"{path}: {name}: seeds ({count}) must be 1 to {len(seeds)}")
    common = dict(given.get("set", {}))
    own_fast = given.get("fast") or {}  # false: left out of the fast version
    if not isinstance(own_fast, Mapping):
        raise UserError(f"{path}: {name}: fast must be settings or `false`")
    late = {**short.get("set", {}), **own_fast} if short else {}
    methods = {}
    for method, entry in given["methods"].items():
        entry = {"example": entry} if isinstance(entry, str) else entry
        _check(path, "method", entry, {"example"})
        example = entry["example"]
        own = {**common, **entry.get("set", {}), **late}
        for prefix, settings in short.get("examples", {}).items():
            own |= settings if example.startswith(prefix) else {}
        methods[method] = example, own
    tasks = tuple(given.get("tasks", ("",)))
    count = min(count, short.get("seeds", count))
    return Group(name, methods, tuple(seeds[:count]), tasks)


def _page(path: Path, name: str, given: Any, groups: Sequence[str]) -> Page:
    _check(path, "page", given, {"groups"})
    reports = {key: _full(name, names) for key, names in given["groups"].items()}
    baselines = _full(name, given.get("baselines", ()))
    for group in [*(g for names in reports.values() for g in names), *baselines]:
        if group not in groups:
            raise UserError(f"{path}: page {name}: there is no group {group}")
    tables = given.get("tables", {})
    return Page(name, reports, baselines, tables, given.get("paper", ""))


def _full(page: str, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{page}/{name}" for name in names)


def _check(path: Path, kind: str, given: Any, needed: set[str]) -> None:
    """Refuses what is no mapping, unknown keys and missing ones."""
    if not isinstance(given, Mapping):
        raise UserError(f"{path}: a {kind} must be a mapping, not {given!r}")
    for key in set(given) - KEYS[kind]:
        allowed = ", ".join(sorted(KEYS[kind]))
        raise UserError(f"{path}: {kind} has the key {key!r}; allowed: {allowed}")
    for key in needed - set(given):
        raise UserError(f"{path}: {kind} {given} needs the key {key!r}")
