"""Sample efficiency and the statistics beyond the paper."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import mannwhitneyu, trim_mean

from rllib_arrow.curriculum.exposure import Exposure
from rllib_arrow.metrics.curve import RunCurve
from rllib_arrow.metrics.statistics import (
    bootstrap_iqm,
    iqm,
    median_series,
    paired_difference,
    performance_profile,
    probability_of_improvement,
    sample_efficiency,
    summarise,
)


def run(scores, seed=1, epochs=None):
    """A run of one task, or of several where scores are rows of tasks."""
    table = np.array(scores, dtype=float)
    table = table[:, None] if table.ndim == 1 else table
    epochs = np.arange(len(table)) if epochs is None else np.array(epochs)
    tasks = tuple("ABCD"[: table.shape[1]])
    exposures = (Exposure("A", 1, 0, int(epochs[-1]) or 1),)
    fields = ("ARROW", "toy", "default", seed, tasks, exposures)
    return RunCurve(*fields, epochs, 1000 * epochs, table)


def test_summary_is_the_median_with_linear_quartiles_of_what_is_defined():
    # Quartiles of 1, 2, 3, 10 by linear interpolation: 1.75 and 4.75.
    assert summarise([3, np.nan, 1, 2, 10]) == (2.5, 1.75, 4.75, 4)
    assert summarise([np.nan])[3] == 0


def test_sample_efficiency_matches_the_numbers_worked_by_hand():
    runs = {
        "fast": [
            run([0, 0.9, 1.0, 0.2]),
            run([0, 0.5, 0.8, 0.9]),
            run([0, 0.6, 0.7, 1]),
        ],
        "slow": [run([0, 0.1, 0.2, 0.3]), run([0, 0.1, 0.3, 0.85])],
    }
    result = sample_efficiency(runs)
    # fast: medians 0, 0.6, 0.8, 0.9; slow: 0, 0.1, 0.25, 0.575. 85 % of 0.9 is 0.765.
    assert result.threshold == pytest.approx(0.765)
    assert result.frames["fast"] == [1000, 2000, 3000]
    assert np.isnan(result.frames["slow"][0])
    assert result.frames["slow"][1] == 3000
    # Of the last scores 0.2, 0.9, 1.
    assert result.peaks["fast"] == pytest.approx((0.9, 0.55, 0.95, 3))
    assert result.peaks["slow"].median == pytest.approx(0.575)
    assert result.summary("fast") == (2000, 1500, 2500, 3)
    assert result.summary("slow") == (3000, 3000, 3000, 1)


def test_sample_efficiency_takes_the_mean_over_tasks():
    curves = [run([[0, 0], [1, 0], [1, 1]])]
    result = sample_efficiency({"one": curves})
    assert result.frames["one"] == [2000]  # a mean of 0.5 at 1000 is below 0.85


def test_without_any_learning_there_is_no_threshold():
    result = sample_efficiency({"flat": [run([0, -0.2, -0.1])]})
    assert np.isnan(result.threshold)
    assert result.summary("flat").seeds == 0


def test_median_series_holds_the_last_value_and_lets_short_runs_drop_out():
    series = median_series(
        [run([0, 2, 4], epochs=[0, 2, 4]), run([0, 1], epochs=[0, 1])]
    )
    assert series.epochs.tolist() == [0, 1, 2, 4]
    assert series.frames.tolist() == [0, 1000, 2000, 4000]
    assert series.median.tolist() == [0, 0.5, 2, 4]


@settings(deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=1, max_size=30))
def test_iqm_agrees_with_scipys_trimmed_mean(values):
    assert iqm(np.array(values)) == pytest.approx(trim_mean(values, 0.25), abs=1e-9)


def test_iqm_by_hand():
    # Of eight values the two lowest and the two highest are cut off.
    assert iqm(np.array([[100, 1, 2, 3], [4, 5, 6, -50]])) == pytest.approx(3.5)


def test_bootstrap_interval_agrees_with_a_plain_loop():
    scores = np.random.default_rng(0).normal(size=(5, 3))
    found = bootstrap_iqm(scores, np.random.default_rng(1), resamples=4000)
    rng, draws = np.random.default_rng(2), []
    for _ in range(1500):
        columns = [rng.choice(scores[:, task], 5) for task in range(3)]
        draws.append(trim_mean(np.concatenate(columns), 0.25))
    low, high = np.quantile(draws, [0.025, 0.975])
    assert found.value == pytest.approx(trim_mean(scores.ravel(), 0.25))
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.08)
    assert found.low < found.value < found.high


def test_one_seed_has_an_interval_of_no_width():
    found = bootstrap_iqm(np.array([[0.2, 0.4, 0.9]]), np.random.default_rng(0))
    assert found.low == found.value == found.high


def test_probability_of_improvement_is_the_mean_mann_whitney_statistic():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 5, (4, 3)).astype(float)
    y = rng.integers(0, 5, (5, 3)).astype(float)
    expected = np.mean(
        [mannwhitneyu(x[:, t], y[:, t]).statistic / (4 * 5) for t in range(3)]
    )
    found = probability_of_improvement(x, y, np.random.default_rng(1))
    assert found.value == pytest.approx(expected)
    assert found.low <= found.value <= found.high


def test_the_interval_of_an_improvement_holds_95_percent():
    # All three seeds drawn are the losing one in 1 of 27 resamples, 3.7 %: inside.
    x, y = np.array([[0.0], [1.0], [1.0]]), np.array([[0.5]])
    found = probability_of_improvement(x, y, np.random.default_rng(0))
    assert found == pytest.approx((2 / 3, 0.0, 1.0))


def test_a_method_compared_with_itself_is_no_improvement():
    x = np.random.default_rng(0).normal(size=(5, 4))
    assert probability_of_improvement(x, x, np.random.default_rng(1)).value == 0.5


def test_paired_differences_are_those_of_the_seeds_both_have():
    x = {1: 0.5, 2: 0.7, 3: 0.9, 5: np.nan}
    y = {3: 0.9, 1: 0.2, 2: 0.6, 4: 1.0, 5: 0.1}
    found = paired_difference(x, y, np.random.default_rng(0))
    # Differences 0.3, 0.1 and 0: so few have their range.
    assert found.mean == pytest.approx((0.4 / 3, 0.0, 0.3))
    assert (found.higher, found.seeds) == (2, 3)
    assert paired_difference(x, {4: 1.0, 5: 1.0}, np.random.default_rng(0)) is None


def test_few_seeds_have_their_range_and_are_never_sure():
    zero = dict.fromkeys(range(5), 0.0)
    for seeds, sure in ((4, False), (5, True)):
        x = {seed: 1.0 + seed for seed in range(seeds)}
        found = paired_difference(x, zero, np.random.default_rng(0))
        assert found.excludes_zero == sure
        assert (found.mean.low == 1.0) == (found.mean.high == seeds) == (not sure)


def test_the_paired_interval_agrees_with_scipys_bootstrap():
    differences = np.random.default_rng(1).normal(0.3, 1, 12)
    values = dict(enumerate(differences))
    ours = paired_difference(
        values, dict.fromkeys(values, 0.0), np.random.default_rng(2), 20_000
    )
    theirs = stats.bootstrap(
        (differences,),
        np.mean,
        n_resamples=20_000,
        method="percentile",
        rng=np.random.default_rng(3),
    ).confidence_interval
    assert ours.mean[1:] == pytest.approx((theirs.low, theirs.high), abs=0.02)


def test_a_profile_is_the_share_of_scores_at_or_above():
    scores = np.array([[0.0, 0.5], [1.0, 0.5]])
    grid = np.array([0, 0.25, 0.5, 0.75, 1, 1.1])
    found = performance_profile(scores, grid, np.random.default_rng(0))
    assert found.share.tolist() == [1, 0.75, 0.75, 0.25, 0.25, 0]
    # Task one draws 0 and 1 with replacement: none, one or both reach 0.25. Task two
    # always does.
    assert (found.low[1], found.high[1]) == (0.5, 1)
    assert np.all(found.low <= found.share) and np.all(found.share <= found.high)
