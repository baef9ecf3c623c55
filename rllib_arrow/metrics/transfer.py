"""Forward transfer of one run: what earlier tasks did for a later one's training.

Takes normalised scores; `docs/metrics.md` has the formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from rllib_arrow.curriculum.exposure import Exposure
from rllib_arrow.metrics.curve import RunCurve
from rllib_arrow.metrics.value import ZERO, Value, mean_value, undefined


class SingleTask(NamedTuple):
    """The normalised single-task curve a run's forward transfer is measured against."""

    method: str
    epochs: np.ndarray  # int [E]
    scores: np.ndarray  # float [E]


def forward_transfer(
    curve: RunCurve, single: Mapping[str, SingleTask], cycle: int = 1
) -> Value:
    """FT: mean over tasks of (S - S_single) / S_single.

    S is the mean score over the task's exposure, S_single that of the single-task curve
    over as many epochs from its start. Only exposures that have ended count.
    """
    return _mean_over_tasks(curve, single, cycle, _relative)


def area_transfer(curve: RunCurve, single: Mapping[str, SingleTask]) -> Value:
    """FT_area: mean over tasks of (S - S_single) / (1 - S_single).

    Continual World's forward transfer: the area between the two curves as a share of
    the room there was above the single-task curve.
    """
    return _mean_over_tasks(curve, single, 1, _of_the_room)


def zero_shot(curve: RunCurve) -> Value:
    """zero_shot: mean over tasks but the first of the last score before training."""
    later = [
        exposure
        for task, exposure in curve.first_exposures().items()
        if task != curve.trained_first and exposure.start < curve.now
    ]
    if not later:
        return undefined("needs a second task")
    return mean_value([curve.score(e.task, e.start) for e in later], [])


def _relative(ours: float, single: float) -> tuple[float, str]:
    if abs(single) < ZERO:
        return np.nan, "left out, its single-task curve averages zero"
    note = "its single-task curve is below random, which turns the sign"
    return (ours - single) / single, note if single < 0 else ""


def _of_the_room(ours: float, single: float) -> tuple[float, str]:
    if single >= 1 - ZERO:
        return np.nan, "left out, its single-task curve averages 1 or more"
    return (ours - single) / (1 - single), ""


def _mean_over_tasks(
    curve: RunCurve,
    single: Mapping[str, SingleTask],
    cycle: int,
    compare: Callable[[float, float], tuple[float, str]],
) -> Value:
    """The mean over the ended exposures of a cycle of how S compares with S_single."""
    ended = [e for e in curve.of_cycle(cycle) if e.end <= curve.now]
    if not ended:
        return undefined(f"no exposure of cycle {cycle} has ended")
    if not single:
        return undefined("needs single-task runs (--baselines)")
    terms, notes = [], []
    for exposure in ended:
        alone = single.get(exposure.task)
        term, note = _term(curve, exposure, alone, compare)
        terms.append(term)
        notes += [f"{exposure.task}: {note}"] if note else []
        if alone and alone.method != curve.method:
            notes.append(f"compared with {alone.method}'s single-task runs")
    return mean_value(terms, notes)


def _term(
    curve: RunCurve,
    exposure: Exposure,
    single: SingleTask | None,
    compare: Callable[[float, float], tuple[float, str]],
) -> tuple[float, str]:
    """One task's term and a note; NaN where it is not defined."""
    if single is None:
        return np.nan, "left out, no single-task run"
    ours = curve.within(exposure.task, exposure.start, exposure.end)
    window = (single.epochs > 0) & (single.epochs <= exposure.length)
    if len(ours) == 0 or not window.any():
        return np.nan, "left out, no evaluation within its exposure"
    value, note = compare(float(ours.mean()), float(single.scores[window].mean()))
    if not note and single.epochs[-1] < exposure.length:
        note = f"its single-task run has only {single.epochs[-1]} epochs"
    return value, note
