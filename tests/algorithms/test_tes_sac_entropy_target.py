"""The schedule against traces worked out by hand."""

import json
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

from rllib_arrow import TESSACConfig
from rllib_arrow.algorithms.tes_sac.entropy_target import EntropyTarget

# With a decay of 1/2, all of the following are exact binary fractions:
# d = e - mean; mean += d / 2; variance = (variance + d * d / 2) / 2.
# Calm: |mean - target| <= 1/4 and variance <= 1/4. Two calm steps halve the target.
EASY = {
    "decay": 0.5,
    "mean_threshold": 0.25,
    "std_threshold": 0.5,
    "discount": 0.5,
    "period": 2,
}
ENTROPIES = [1.0, 2.0, 0.5, 1.0, 1.0, 0.5, 0.25]
#            mean, variance   (the same for both rules)
MOMENTS = [
    (1.0, 0.0),
    (1.5, 0.25),  # d = 1: the mean is too far off
    (1.0, 0.375),  # d = -1: the mean is right, the deviation too large
    (1.0, 0.1875),
    (1.0, 0.09375),
    (0.75, 0.109375),  # d = -1/2
    (0.5, 0.1171875),  # d = -1/2
]
TRACES = {
    #               target, calm steps
    "consecutive": [
        (1.0, 1),
        (1.0, 0),  # not calm: from the beginning
        (1.0, 0),
        (1.0, 1),
        (0.5, 0),  # the second in a row
        (0.5, 1),
        (0.25, 0),
    ],
    "cumulative": [
        (1.0, 1),
        (1.0, 1),  # not calm: the count waits
        (1.0, 1),
        (0.5, 0),  # the second in all
        (0.5, 0),  # the mean is still at the old target
        (0.5, 1),
        (0.25, 0),
    ],
}


def schedule_from(start: float, **changed: Any) -> EntropyTarget:
    """The schedule of the default settings, with some of them changed."""
    return replace(TESSACConfig().entropy_target(start), **changed)


@pytest.mark.parametrize("counting", TRACES)
def test_schedule_follows_the_trace_worked_out_by_hand(counting):
    schedule = schedule_from(1.0, counting=counting, **EASY)
    for entropy, moments, (target, calm_steps) in zip(
        ENTROPIES, MOMENTS, TRACES[counting], strict=True
    ):
        assert schedule.update(entropy) == target
        assert (schedule.mean, schedule.variance) == moments
        assert (schedule.target, schedule.calm_steps) == (target, calm_steps)


def test_with_the_papers_settings_the_target_falls_on_the_thousandth_calm_step():
    schedule = schedule_from(2.0)
    targets = [schedule.update(2.0) for _ in range(1001)]
    assert targets[998] == 2.0
    assert targets[999] == targets[1000] == 2.0 * 0.98


def test_one_noisy_step_costs_the_consecutive_rule_all_its_calm_steps():
    schedules = [schedule_from(2.0, counting=rule) for rule in TRACES]
    # k steps after it, a step 2 nats off has the weight w = 0.001 * 0.999^k and makes
    # the variance 4 w (1 - w). That is above 0.05 squared until k = 469.
    for entropy in [2.0] * 600 + [4.0] + [2.0] * 450:
        for schedule in schedules:
            schedule.update(entropy)
    assert [schedule.calm_steps for schedule in schedules] == [0, 600]
    for _ in range(30):
        for schedule in schedules:
            schedule.update(2.0)
    assert [schedule.calm_steps for schedule in schedules] == [11, 611]


def test_mean_and_variance_are_those_of_exponentially_weighted_entropies():
    entropies = np.random.default_rng(0).normal(1.5, 0.3, 200)
    schedule = schedule_from(1.7, decay=0.9)
    for entropy in entropies:
        schedule.update(entropy)
    values = np.array([1.7, *entropies])  # the start stands for all that was before
    weights = 0.1 * 0.9 ** np.arange(200, -1, -1)
    weights[0] = 0.9**200
    mean = (weights * values).sum()
    assert weights.sum() == pytest.approx(1.0)
    assert schedule.mean == pytest.approx(mean)
    assert schedule.variance == pytest.approx((weights * (values - mean) ** 2).sum())


def test_schedule_restored_from_json_goes_on_as_if_nothing_had_happened():
    rng = np.random.default_rng(1)
    first = schedule_from(1.0, period=5, std_threshold=0.2, mean_threshold=0.2)
    for entropy in rng.normal(1.0, 0.1, 37):
        first.update(entropy)
    second = EntropyTarget(**json.loads(json.dumps(asdict(first))))
    for entropy in rng.normal(0.9, 0.1, 100):
        assert first.update(entropy) == second.update(entropy)
    assert first == second and first.target < 1.0
