"""What the analysis of runs finds, for tables, figures and the page to show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from rllib_arrow.metrics.curve import RunCurve
from rllib_arrow.metrics.statistics import (
    Interval,
    Paired,
    Profile,
    SampleEfficiency,
    Summary,
    summarise,
)
from rllib_arrow.metrics.value import Value
from rllib_arrow.runs.normalise import Normaliser
from rllib_arrow.runs.read import Run

RATIO = "ratio"  # the sweep that the paper has, over the share of long-term memory
RATIOS = ("AR25", "AR50", "AR75")  # its methods


@dataclass
class MethodResult:
    """One method's runs in one comparison, and their numbers."""

    method: str
    raw: list[RunCurve]  # those that count
    curves: list[RunCurve]  # the same normalised; empty if no task has a scale
    values: dict[str, list[Value]]  # metric to one value per curve
    waiting: list[Run]  # unfinished, while other seeds have finished

    @property
    def seeds(self) -> list[int]:
        return [curve.seed for curve in self.raw]

    def of_seeds(self, metric: str) -> dict[int, float]:
        """A metric's value by seed."""
        values = self.values.get(metric, [])
        return {s: v.value for s, v in zip(self.seeds, values, strict=False)}

    def summary(self, metric: str) -> Summary:
        return summarise([v.value for v in self.values.get(metric, [])])

    def by_seed(self) -> list[tuple[int, str, float]]:
        """Seed, metric and value, by metric; NaN for a seed that has no value yet."""
        rows = []
        for metric in self.values:
            found = self.of_seeds(metric) | {
                run.curve.seed: np.nan for run in self.waiting
            }
            rows += [(seed, metric, found[seed]) for seed in sorted(found)]
        return rows

    def final_scores(self, tasks: Sequence[str]) -> np.ndarray:
        """Normalised scores at the end: [seeds, tasks]."""
        return np.array(
            [[c.scores[-1, c.columns[task]] for task in tasks] for c in self.curves]
        )


@dataclass
class Comparison:
    """Methods trained on the same sequence of tasks, side by side."""

    suite: str
    setting: str
    sweep: str  # what is varied: RATIO, names of settings, or nothing
    methods: dict[str, MethodResult]
    efficiency: SampleEfficiency
    finished: bool
    notes: list[str] = field(default_factory=list)
    iqm: dict[str, Interval] = field(default_factory=dict)
    improvement: dict[tuple[str, str], Interval] = field(default_factory=dict)
    profiles: dict[str, Profile] = field(default_factory=dict)
    # By method, then by metric: the reference method's value minus the method's.
    differences: dict[str, dict[str, Paired]] = field(default_factory=dict)

    @property
    def normalised(self) -> bool:
        """Whether there are normalised scores, without which no metric is defined."""
        return all(result.curves for result in self.methods.values())

    @property
    def reference(self) -> str:
        """The method that others are measured against: ARROW, else the first."""
        names = list(self.methods)
        return next((n for n in ("ARROW", "AR50") if n in names), names[0])

    @property
    def own_methods(self) -> list[MethodResult]:
        """The methods without ARROW where it stands in for AR50."""
        own = self.methods.items()
        return [result for name, result in own if result.raw[0].method == name]

    @property
    def first_curve(self) -> RunCurve:
        return next(iter(self.methods.values())).curves[0]

    @property
    def first_raw(self) -> RunCurve:
        return next(iter(self.methods.values())).raw[0]

    @property
    def cycles(self) -> int:
        return max(c.cycles for r in self.methods.values() for c in r.raw)

    @property
    def name(self) -> str:
        """A name for files and anchors."""
        parts = [self.suite, self.setting, *self.sweep.split()]
        return "_".join(parts)


@dataclass
class SingleTaskResult:
    """Methods trained on one task alone, in raw returns."""

    suite: str
    task: str
    curves: dict[str, list[RunCurve]]
    efficiency: SampleEfficiency


@dataclass
class Results:
    """All a report shows."""

    runs: list[Run]
    baselines: list[Run]
    normalisers: dict[str, Normaliser]
    comparisons: list[Comparison]
    raw_only: list[Comparison]  # of which no task has a scale
    single: list[SingleTaskResult]
    notes: list[str]
