"""What 0 and 1 mean for each task, and the single-task curves behind it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rllib_arrow.envs.references import Reference
from rllib_arrow.envs.suites import SUITES, reference_scores, task_label
from rllib_arrow.errors import UserError
from rllib_arrow.metrics.curve import RunCurve
from rllib_arrow.metrics.statistics import median_series
from rllib_arrow.metrics.transfer import SingleTask
from rllib_arrow.runs.read import Run

NORMALISER = "ARROW"  # the method whose single-task score is 1
HUGE = 1e100  # scores further apart than this are no scale


@dataclass(frozen=True)
class Scale:
    """The raw scores that become 0 and 1, and a sentence on where they come from."""

    low: float
    high: float
    source: str

    def apply(self, scores: np.ndarray) -> np.ndarray:
        return (scores - self.low) / (self.high - self.low)


@dataclass
class Normaliser:
    """The scales of one suite, with what the reader has to be told about them."""

    suite: str
    scales: dict[str, Scale] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def curve(self, raw: RunCurve) -> RunCurve | None:
        """The normalised run without the tasks that have no scale."""
        kept = raw.without(set(raw.tasks) - set(self.scales))
        if kept is None:
            return None
        columns = [
            self.scales[task].apply(kept.scores[:, i])
            for i, task in enumerate(kept.tasks)
        ]
        return replace(kept, scores=np.stack(columns, axis=1))

    def single_tasks(
        self, method: str, baselines: Sequence[Run]
    ) -> dict[str, SingleTask]:
        """Each task's single-task curve: the method's own, else ARROW's."""
        curves = {}
        for task in self.scales:
            for name in (method, NORMALISER):
                runs = _single_runs(baselines, self.suite, task, name)
                if runs:
                    series = median_series([self.curve(run.curve) for run in runs])
                    curves[task] = SingleTask(name, series.epochs, series.median)
                    break
        return curves


def build_normaliser(
    suite: str, runs: Sequence[Run], baselines: Sequence[Run]
) -> Normaliser:
    """Chooses a scale for every task the given runs have.

    In this order: the single-task ARROW runs among the baselines, `low` and `high` as
    given with a task, the scores shipped with the suite, and else the best score among
    the runs themselves.
    """
    everything = [r for r in (*runs, *baselines) if r.curve.suite == suite]
    normaliser, left_out = Normaliser(suite), {}
    for task in dict.fromkeys(t for run in everything for t in run.curve.tasks):
        scale = (
            _from_baselines(suite, task, baselines)
            or reference_scale(_reference(suite, task, everything))
            or _from_best(task, everything)
        )
        if scale is not None:
            normaliser.scales[task] = scale
        else:
            label = task_label(suite, task)
            left_out.setdefault(_why_no_scale(task, everything), []).append(label)
    normaliser.notes += [
        f"{listed(tasks)} {'is' if len(tasks) == 1 else 'are'} left out of every "
        f"normalised number: {why}."
        for why, tasks in left_out.items()
    ]
    normaliser.notes += _explain(normaliser, bool(baselines))
    return normaliser


def _why_no_scale(task: str, runs: Iterable[Run]) -> str:
    scores = [
        r.curve.scores[:, r.curve.columns[task]] for r in runs if task in r.curve.tasks
    ]
    low, high = min(map(np.min, scores)), max(map(np.max, scores))
    if low == high:
        return f"no score above random is known (every evaluation has {low:g})"
    if high >= low + HUGE:
        return f"scores from {low:g} to {high:g} are too far apart to be compared"
    return "no score above random is known"


def listed(names: Sequence[str]) -> str:
    """Returns names as a list in words, cut where it would fill a page."""
    most = 12
    more = [f"and {len(names) - most} more"] if len(names) > most else []
    return ", ".join([*names[:most], *more])


def _from_baselines(suite: str, task: str, baselines: Sequence[Run]) -> Scale | None:
    """Medians over seeds of the first and the last single-task ARROW evaluation.

    Tasks of a suite that is one game in many looks share the scale of one look.
    """
    measure = SUITES[suite].measure if suite in SUITES else ""
    runs = _single_runs(baselines, suite, measure or task, NORMALISER)
    lows = [r.curve.scores[0, 0] for r in runs if r.curve.epochs[0] == 0]
    if not lows:
        return None
    high = np.median([run.curve.scores[-1, 0] for run in runs])
    on = f" on {task_label(suite, measure)}" if measure else ""
    source = (
        "0 is the first and 1 the last score of the single-task ARROW runs given"
        f"{on}, both medians over seeds"
        + ("" if runs[0].finished else ", of which none has finished yet")
    )
    return _scale(float(np.median(lows)), float(high), source)


def reference_scale(reference: Reference | None) -> Scale | None:
    """The scale of a task's reference scores, which every run shares."""
    if reference is None or reference.arrow is None:
        return None
    source = f"0 and 1 are {reference.source}"
    if reference.random_episodes:
        source = (
            "0 and 1 are the suite's shipped reference scores of a random policy and "
            f"of single-task ARROW ({reference.source})"
        )
    return _scale(reference.random, reference.arrow, source)


def _reference(suite: str, task: str, runs: Iterable[Run]) -> Reference | None:
    """The reference scores that the runs recorded, else those of the suite."""
    recorded = {
        r.plan.references[task]: r for r in runs if r.plan and task in r.plan.references
    }
    if len(recorded) > 1:
        one, two, *_ = (
            f"{r.path} ({x.random:g}, {x.arrow:g})" for x, r in recorded.items()
        )
        raise UserError(f"{one} and {two} differ in low and high of {task!r}.")
    shipped = reference_scores(suite).get(task) if suite in SUITES else None
    return next(iter(recorded), shipped)


def _from_best(task: str, runs: Iterable[Run]) -> Scale | None:
    """Random: the runs' epoch 0. One: the best median over seeds of any method."""
    groups: dict[tuple[str, str], list[tuple[RunCurve, np.ndarray]]] = {}
    starts = []
    for run in runs:
        if task in run.curve.tasks:
            raw = run.curve.scores[:, run.curve.columns[task]]
            key = (run.curve.method, run.curve.setting)
            groups.setdefault(key, []).append((run.curve, raw))
            starts += [raw[0]] if run.curve.epochs[0] == 0 else []
    if not starts:
        return None
    best = max(
        median_series(*zip(*g, strict=True)).median.max() for g in groups.values()
    )
    source = (
        "0 is the score at epoch 0 and 1 the best median score of any method among the "
        "runs given, as no single-task ARROW score is known"
    )
    return _scale(float(np.median(starts)), float(best), source)


def _scale(low: float, high: float, source: str) -> Scale | None:
    """A scale needs a 1 above its 0: a task never learned cannot be the measure."""
    return Scale(low, high, source) if low < high < low + HUGE else None


def _single_runs(runs: Iterable[Run], suite: str, task: str, method: str) -> list[Run]:
    """The finished runs; unfinished ones while none has finished."""
    found = [
        run
        for run in runs
        if run.curve.setting == "single"
        and (run.curve.suite, run.curve.method) == (suite, method)
        and run.curve.tasks == (task,)
    ]
    return [run for run in found if run.finished] or found


def _explain(normaliser: Normaliser, with_baselines: bool) -> list[str]:
    """Says in words which tasks are normalised by what."""
    by_source: dict[str, list[str]] = {}
    for task, scale in normaliser.scales.items():
        label = task_label(normaliser.suite, task)
        by_source.setdefault(scale.source, []).append(label)
    notes = [
        f"{source}{', for ' + listed(tasks) if len(by_source) > 1 else ''}."
        for source, tasks in by_source.items()
    ]
    if not with_baselines:
        notes.append(
            "No single-task runs were given (--baselines), so forward transfer is "
            "not defined, and 1 is not the score of single-task runs made here."
        )
    return notes
