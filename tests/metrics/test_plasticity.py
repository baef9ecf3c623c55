"""Measures of plasticity, against numbers worked by hand."""

import numpy as np
import pytest

from rllib_arrow.metrics.plasticity import (
    distance,
    dormant_share,
    effective_rank,
    norm,
)


def test_units_are_dormant_relative_to_the_mean_of_their_layer():
    # Means 1 and 100: the limits are 0.025 and 2.5.
    layers = [np.array([0.025, 1.975]), np.array([2.6, 197.4, 2.4, 197.6])]
    assert dormant_share(layers) == 2 / 6
    assert dormant_share(layers, threshold=0.026) == 3 / 6
    assert dormant_share([np.zeros(3), np.ones(1)]) == 3 / 4


def test_effective_rank_counts_directions_by_their_weight():
    assert effective_rank(np.eye(4)) == pytest.approx(4)
    assert effective_rank(np.ones((5, 3))) == pytest.approx(1, abs=1e-5)
    # Singular values 3 and 1: shares 3/4 and 1/4.
    shares = np.array([0.75, 0.25])
    truth = np.exp(-(shares * np.log(shares)).sum())
    for features in (np.diag([3.0, 1.0]), np.diag([3.0, 1.0, 0.0])[:2]):
        assert effective_rank(features) == pytest.approx(truth)
    assert effective_rank(np.zeros((2, 3))) == 0


def test_norm_and_distance_run_over_all_arrays():
    arrays = [np.array([[3.0, 0.0]], np.float32), np.array([4.0], np.float32)]
    assert norm(arrays) == 5
    assert distance(arrays, arrays) == 0
    assert distance(arrays, [np.zeros((1, 2)), np.array([4.0])]) == 3
