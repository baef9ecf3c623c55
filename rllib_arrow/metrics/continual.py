"""Continual-learning metrics of one run, in pure NumPy.

Every function takes normalised scores and returns a `Value`: the number and, where
a reader has to know something about it, notes. A number that is not defined is NaN and
always carries a note with the reason. On an unfinished run the tasks met so far stand
for all tasks and the last evaluation stands for the end. `docs/metrics.md` has the
formulas.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rllib_arrow.curriculum.exposure import Exposure
from rllib_arrow.metrics.curve import RunCurve
from rllib_arrow.metrics.transfer import (
    SingleTask,
    area_transfer,
    forward_transfer,
    zero_shot,
)
from rllib_arrow.metrics.value import ZERO, Value, mean_value, undefined

# Metrics of single cycles are for curricula that repeat a few times, not for those
# that alternate between tasks.
MAX_CYCLES_APART = 4
BARELY = 0.1  # a ratio to a score below this is called rough


def forgetting(curve: RunCurve) -> Value:
    """F: mean over tasks of the score after the first exposure minus the score now.

    The task in training has, by definition, forgotten nothing.
    """
    return _forgetting(curve, list(curve.first_exposures().values()), curve.now)


def cycle_forgetting(curve: RunCurve, cycle: int) -> Value:
    """C1-F, C2-F, ...: forgetting within one cycle, against that cycle's end."""
    exposures = curve.of_cycle(cycle)
    begun = [e for e in exposures if e.start < curve.now]
    if not begun:
        return undefined(f"cycle {cycle} has not begun")
    return _forgetting(curve, begun, min(exposures[-1].end, curve.now))


def _forgetting(curve: RunCurve, exposures: list[Exposure], end: int) -> Value:
    learned = [curve.score(e.task, min(e.end, end)) for e in exposures]
    drops = [
        score - curve.score(e.task, end)
        for score, e in zip(learned, exposures, strict=True)
    ]
    notes = [
        f"{e.task} was not above random after its training: little could be forgotten"
        for score, e in zip(learned, exposures, strict=True)
        if score <= 0 and e.end <= end
    ]
    return mean_value(drops, notes + _unseen(curve, exposures))


def retention(curve: RunCurve) -> Value:
    """Retention: mean over tasks of the score now divided by that after training.

    Both are above random, as 0 is random. Over the tasks met so far except the one in
    training, each since it was last trained; one that was not above random after its
    training is left out.
    """
    latest = {e.task: e for e in curve.begun() if e.start < curve.now}
    latest.pop(curve.in_training, None)
    if not latest:
        return undefined("needs a second task")
    kept, notes = [], []
    for task, exposure in latest.items():
        learned = curve.score(task, exposure.end)
        if learned < ZERO:
            kept.append(np.nan)
            notes.append(f"{task} left out, not above random after its training")
            continue
        kept.append(curve.score(task, curve.now) / learned)
        if learned < BARELY:
            notes.append(f"{task} was barely learned ({learned:.2f}): a rough ratio")
    return mean_value(kept, notes)


def average_accuracy(curve: RunCurve) -> Value:
    """ACC: mean score now over the tasks met so far (all of them at the end)."""
    met = curve.first_exposures()
    return Value(float(np.mean([curve.score(task, curve.now) for task in met])))


def min_accuracy(curve: RunCurve) -> Value:
    """min-ACC: mean over earlier tasks of the lowest score since their first exposure.

    Earlier tasks are those met so far except the one in training.
    """
    earlier = [
        exposure
        for task, exposure in curve.first_exposures().items()
        if task != curve.in_training and exposure.start < curve.now
    ]
    if not earlier:
        return undefined("needs a second task")
    lows = [curve.within(e.task, e.end, curve.now).min() for e in earlier]
    return Value(float(np.mean(lows)))


def worst_case_accuracy(curve: RunCurve) -> Value:
    """WC-ACC: the task in training with weight 1/k, min-ACC with weight 1 - 1/k.

    k is the number of tasks met so far.
    """
    k = len(curve.first_exposures())
    newest = curve.in_training
    if newest not in curve.columns:
        return undefined(f"{newest}, the newest task, has no scale")
    lows = min_accuracy(curve).value if k > 1 else 0.0
    return Value(curve.score(newest, curve.now) / k + (1 - 1 / k) * lows)


def worst_case_series(curve: RunCurve) -> np.ndarray:
    """WC-ACC at every evaluation, each knowing only what came before: float [E]."""
    return np.array([worst_case_accuracy(curve.until(e)).value for e in curve.epochs])


def max_forgetting(curve: RunCurve) -> Value:
    """Max-F: mean over tasks of the score after the first exposure minus the score
    just before the second one.

    "Just before" is the last evaluation strictly before the second exposure begins.
    """
    pairs = [p for p in _exposure_pairs(curve) if p[1].start < curve.now]
    if not pairs:
        return undefined("no task has come up a second time")
    drops = [
        curve.score(first.task, first.end)
        - curve.score(first.task, second.start, just_before=True)
        for first, second in pairs
    ]
    return mean_value(drops, [])


def recovery(curve: RunCurve) -> Value:
    """Recovery: mean over tasks of the score after the second exposure divided by the
    score after the first."""
    pairs = [p for p in _exposure_pairs(curve) if p[1].end <= curve.now]
    if not pairs:
        return undefined("no second exposure has ended")
    ratios, notes = [], []
    for first, second in pairs:
        task = first.task
        before = curve.score(task, first.end)
        if abs(before) < ZERO:
            notes.append(f"{task} left out, its score after cycle 1 was zero")
            ratios.append(np.nan)
            continue
        if before < 0:
            notes.append(f"{task} was below random after cycle 1: its ratio misleads")
        ratios.append(curve.score(task, second.end) / before)
    return mean_value(ratios, notes)


def _exposure_pairs(curve: RunCurve) -> list[tuple[Exposure, Exposure]]:
    """Each task's first and second exposure."""
    first = {e.task: e for e in reversed(curve.of_cycle(1))}
    return [(first[e.task], e) for e in curve.of_cycle(2) if e.task in first]


def continual_metrics(
    curve: RunCurve, single: Mapping[str, SingleTask] | None = None
) -> dict[str, Value]:
    """All metrics of one run, by the names the report's files use.

    Metrics of single cycles are present when the curriculum has two to four.
    """
    single = single or {}
    metrics = {
        "F": forgetting(curve),
        "FT": forward_transfer(curve, single),
        "ACC": average_accuracy(curve),
        "min_ACC": min_accuracy(curve),
        "WC_ACC": worst_case_accuracy(curve),
        "retention": retention(curve),
        "FT_area": area_transfer(curve, single),
        "zero_shot": zero_shot(curve),
    }
    if curve.cycles > 1:
        metrics["Max_F"] = max_forgetting(curve)
        metrics["Recovery"] = recovery(curve)
        cycles = curve.cycles if curve.cycles <= MAX_CYCLES_APART else 0
        for cycle in range(1, cycles + 1):
            metrics[f"C{cycle}_F"] = cycle_forgetting(curve, cycle)
            metrics[f"C{cycle}_FT"] = forward_transfer(curve, single, cycle)
    return metrics


def running_metrics(curve: RunCurve) -> dict[str, float]:
    """ACC, F, WC_ACC and, from the second task on, min_ACC as of the last evaluation.

    Meant to be called while training; what is not defined yet is not in the dict.
    """
    values = {
        "ACC": average_accuracy(curve).value,
        "F": forgetting(curve).value,
        "WC_ACC": worst_case_accuracy(curve).value,
        "min_ACC": min_accuracy(curve).value,
    }
    return {name: value for name, value in values.items() if np.isfinite(value)}


def _unseen(curve: RunCurve, exposures: list[Exposure]) -> list[str]:
    """Tells of exposures without an evaluation: their end is not on the grid."""
    return [
        f"{e.task} was not evaluated during its exposure; "
        "the evaluation before it stands in"
        for e in exposures
        if curve.epochs[0] <= e.end <= curve.now
        and len(curve.within(e.task, e.start, e.end)) == 0
    ]
