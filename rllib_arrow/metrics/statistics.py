"""Statistics over the seeds of a method and between methods, in pure NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rllib_arrow.metrics.curve import RunCurve

SE_FRACTION = 0.85
RESAMPLES = 2000  # of a bootstrap
ENOUGH = 5  # seeds for an interval of their mean; fewer have their range instead
PROFILE_RESAMPLES = 500


class Summary(NamedTuple):
    """Median and quartiles over the seeds that have a value; NaN where none has."""

    median: float
    q25: float
    q75: float
    seeds: int


class Interval(NamedTuple):
    """A point estimate with a confidence interval."""

    value: float
    low: float
    high: float


class Paired(NamedTuple):
    """A mean difference over seeds that both methods have, and how it was reached."""

    mean: Interval
    higher: int  # of how many seeds the difference is above zero
    seeds: int

    @property
    def excludes_zero(self) -> bool:
        """Whether an interval says so; a range of few seeds says nothing like it."""
        return self.seeds >= ENOUGH and (self.mean.low > 0 or self.mean.high < 0)


class Profile(NamedTuple):
    """The share of runs and tasks that reach a score, with a 95 % band: float [K]."""

    scores: np.ndarray
    share: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Series(NamedTuple):
    """A median curve over seeds with its quartiles, evaluation by evaluation."""

    epochs: np.ndarray
    frames: np.ndarray
    median: np.ndarray
    q25: np.ndarray
    q75: np.ndarray


@dataclass(frozen=True)
class SampleEfficiency:
    """How soon each method's runs reach a threshold shared by all methods."""

    threshold: float  # NaN where no method rose above zero
    frames: dict[str, list[float]]  # per method, per run; NaN where never reached
    peaks: dict[str, Summary]  # the highest point of each method's median series

    def summary(self, method: str) -> Summary:
        """Median and quartiles over the runs that reach the threshold."""
        return summarise(self.frames[method])


def summarise(values: Sequence[float]) -> Summary:
    """Median and quartiles (linear interpolation) of the values that are defined."""
    defined = [v for v in values if np.isfinite(v)]
    if not defined:
        return Summary(np.nan, np.nan, np.nan, 0)
    q25, median, q75 = (float(q) for q in np.quantile(defined, [0.25, 0.5, 0.75]))
    return Summary(median, q25, q75, len(defined))


def median_series(
    curves: Sequence[RunCurve], values: Sequence[np.ndarray] | None = None
) -> Series:
    """The median over runs of one value per evaluation, by default the task mean.

    Runs may have different grids: between its evaluations a run keeps its last value,
    and after its last evaluation it no longer counts.
    """
    if values is None:
        values = [curve.scores.mean(axis=1) for curve in curves]
    frames_at: dict[int, int] = {}
    for curve in curves:
        frames_at.update(zip(curve.epochs.tolist(), curve.frames.tolist(), strict=True))
    epochs = np.array(sorted(frames_at))
    rows = np.full((len(curves), len(epochs)), np.nan)
    for row, curve, series in zip(rows, curves, values, strict=True):
        index = np.searchsorted(curve.epochs, epochs, side="right") - 1
        known = (index >= 0) & (epochs <= curve.now)
        row[known] = series[index[known]]
    # NumPy's quantile of numbers with NaNs among them is slow: column by column.
    quantile = np.nanquantile if np.isnan(rows).any() else np.quantile
    q25, median, q75 = np.full((3, len(epochs)), np.nan)
    some = ~np.isnan(rows).all(axis=0)
    q25[some], median[some], q75[some] = quantile(
        rows[:, some], [0.25, 0.5, 0.75], axis=0
    )
    frames = np.array([frames_at[e] for e in epochs.tolist()])
    return Series(epochs, frames, median, q25, q75)


def sample_efficiency(runs: Mapping[str, Sequence[RunCurve]]) -> SampleEfficiency:
    """SE: the first frame count at which a run's mean score over all tasks reaches
    85 % of the highest point of any method's median series."""
    medians = {method: median_series(curves) for method, curves in runs.items()}
    peaks = {}
    for method, curves in runs.items():
        series, top = medians[method], int(np.argmax(medians[method].median))
        peaks[method] = Summary(
            *(float(x[top]) for x in (series.median, series.q25, series.q75)),
            len(curves),
        )
    best = max((peak.median for peak in peaks.values()), default=np.nan)
    # A share of a peak at or below zero is no lower than the peak: no threshold.
    threshold = SE_FRACTION * best if best > 0 else np.nan
    frames = {
        method: [_frames_to_reach(curve, threshold) for curve in curves]
        for method, curves in runs.items()
    }
    return SampleEfficiency(float(threshold), frames, peaks)


def _frames_to_reach(curve: RunCurve, threshold: float) -> float:
    reached = np.flatnonzero(curve.scores.mean(axis=1) >= threshold)
    return float(curve.frames[reached[0]]) if len(reached) else np.nan


def iqm(scores: np.ndarray, axis: int | None = None) -> np.ndarray:
    """Interquartile mean: the mean of the middle half, a quarter cut off at each end.

    As is usual, the number cut off is rounded down.
    """
    if axis is None:
        scores, axis = np.ravel(scores), 0
    ordered = np.sort(scores, axis=axis)
    cut = scores.shape[axis] // 4
    middle = np.arange(cut, scores.shape[axis] - cut)
    return np.take(ordered, middle, axis=axis).mean(axis=axis)


def bootstrap_iqm(
    scores: np.ndarray, rng: np.random.Generator, resamples: int = RESAMPLES
) -> Interval:
    """IQM of final scores [seeds, tasks] with a 95 % stratified bootstrap interval.

    Tasks are the strata: each draws its own seeds, so every resample has all tasks.
    """
    drawn = _resample(scores, rng, resamples).reshape(resamples, -1)
    low, high = np.quantile(iqm(drawn, axis=1), [0.025, 0.975])
    return Interval(float(iqm(scores)), float(low), float(high))


def probability_of_improvement(
    x: np.ndarray, y: np.ndarray, rng: np.random.Generator
) -> Interval:
    """Probability that a run of X scores higher than one of Y on a random task.

    Takes final scores [seeds, tasks] of both with the same tasks; ties count one half.
    The 95 % interval is from a bootstrap stratified by task.
    """
    drawn = _wins(_resample(x, rng, RESAMPLES), _resample(y, rng, RESAMPLES))
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Interval(float(_wins(x[None], y[None])[0]), float(low), float(high))


def bootstrap_mean(
    values: np.ndarray, rng: np.random.Generator, resamples: int = RESAMPLES
) -> Interval:
    """Mean of values [seeds] with a 95 % bootstrap interval.

    Fewer than `ENOUGH` values have their range instead: resamples of so few are no
    measure of what another seed would bring.
    """
    if len(values) < ENOUGH:
        return Interval(float(values.mean()), float(values.min()), float(values.max()))
    drawn = values[rng.integers(len(values), size=(resamples, len(values)))]
    low, high = np.quantile(drawn.mean(axis=1), [0.025, 0.975])
    return Interval(float(values.mean()), float(low), float(high))


def paired_difference(
    x: Mapping[int, float],
    y: Mapping[int, float],
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> Paired | None:
    """Mean over shared seeds of X's value minus Y's, as `bootstrap_mean` has it.

    Takes values by seed. Seeds are resampled; None if no seed has both values.
    """
    shared = [s for s in x if np.isfinite(x[s]) and np.isfinite(y.get(s, np.nan))]
    if not shared:
        return None
    differences = np.array([x[seed] - y[seed] for seed in shared])
    mean = bootstrap_mean(differences, rng, resamples)
    return Paired(mean, int((differences > 0).sum()), len(shared))


def performance_profile(
    scores: np.ndarray, thresholds: np.ndarray, rng: np.random.Generator
) -> Profile:
    """Share of final scores [seeds, tasks] at or above each threshold.

    The 95 % band is from a bootstrap stratified by task.
    """
    drawn = _resample(scores, rng, PROFILE_RESAMPLES)
    drawn = np.sort(drawn.reshape(PROFILE_RESAMPLES, -1), axis=1)
    below = np.array([np.searchsorted(row, thresholds) for row in drawn])
    low, high = np.quantile(1 - below / scores.size, [0.025, 0.975], axis=0)
    share = 1 - np.searchsorted(np.sort(scores, axis=None), thresholds) / scores.size
    return Profile(thresholds, share, low, high)


def _wins(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Share of pairs won, per resample: [R, N, T] and [R, M, T] to [R]."""
    total = np.zeros(len(x))
    for i, j in itertools.product(range(x.shape[1]), range(y.shape[1])):
        won, tied = x[:, i] > y[:, j], x[:, i] == y[:, j]
        total += (won + 0.5 * tied).mean(axis=1)
    return total / (x.shape[1] * y.shape[1])


def _resample(
    scores: np.ndarray, rng: np.random.Generator, resamples: int
) -> np.ndarray:
    """Draws seeds with replacement, apart for each task: [R, seeds, tasks]."""
    seeds, tasks = scores.shape
    index = rng.integers(seeds, size=(resamples, seeds, tasks))
    return scores[index, np.arange(tasks)]
