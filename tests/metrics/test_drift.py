"""Measures of drift, against numbers worked by hand."""

import math

import numpy as np
import pytest

from rllib_arrow.metrics.drift import (
    agreement,
    binary_loss,
    forgotten_share,
    linear_cka,
    mean_error,
    mean_kl,
    value_drift,
)


def test_cka_of_features_worked_by_hand():
    # Centred: x = (-1, 0, 1), y = (1, -2, 1): x'y = 0, and z = (-1, 0, 1, ...) = x.
    x = np.array([[0.0], [1.0], [2.0]])
    y = np.array([[3.0], [0.0], [3.0]])
    assert linear_cka(x, y) == 0
    # x'x = 2, [x y] has the products 2 and 6 on the diagonal: 4 / (2 sqrt(4 + 36)).
    both = np.concatenate([x, y], axis=1)
    assert linear_cka(x, both) == pytest.approx(4 / (2 * math.sqrt(40)))


def test_cka_is_blind_to_rotation_and_scale_and_equal_both_ways():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 3))
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    assert linear_cka(x, 5 * x @ turn + 2) == pytest.approx(1)
    # Few rows and many features take the other way to the same number.
    few, more = x[:5], rng.normal(size=(5, 9))
    a, b = few - few.mean(0), more - more.mean(0)
    truth = np.linalg.norm(a.T @ b) ** 2
    truth /= np.linalg.norm(a.T @ a) * np.linalg.norm(b.T @ b)
    assert linear_cka(few, more) == pytest.approx(truth)
    assert linear_cka(more, few) == pytest.approx(truth)
    assert math.isnan(linear_cka(x, np.ones((20, 2))))


def test_kl_sums_groups_and_averages_rows():
    then = np.array([[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.5, 0.5]]])
    now = np.array([[[0.25, 0.75], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]]])
    first = 0.5 * math.log(2) + 0.5 * math.log(2 / 3) + math.log(2)
    assert mean_kl(then, now) == pytest.approx(first / 2)
    assert mean_kl(then, then) == 0
    assert mean_kl(then[:, 0], now[:, 0]) != mean_kl(now[:, 0], then[:, 0])
    assert math.isfinite(mean_kl(now[:, 1], then[:, 1]))


def test_agreement_counts_rows_with_the_same_likeliest_class():
    then = np.array([[0.6, 0.4], [0.6, 0.4], [0.1, 0.9], [0.5, 0.5]])
    now = np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [1.0, 0.0]])
    assert agreement(then, now) == 0.75


def test_value_drift_is_in_spreads_of_the_old_values():
    then, now = np.array([0.0, 2.0]), np.array([3.0, 4.0])  # spread 1, off by 3 and 2
    assert value_drift(then, now) == 2.5
    assert value_drift(then, then) == 0
    assert math.isnan(value_drift(np.ones(3), np.zeros(3)))


def test_errors_are_against_the_truth():
    assert mean_error(np.array([1.0, 0.0]), np.array([0.0, 0.5])) == 0.75
    loss = binary_loss(np.array([0.8, 0.4]), np.array([True, False]))
    assert loss == pytest.approx(-(math.log(0.8) + math.log(0.6)) / 2)
    assert math.isfinite(binary_loss(np.array([0.0]), np.array([True])))


def test_what_is_forgotten_lies_between_the_own_end_and_no_training():
    assert forgotten_share(0.5, own_end=0.0, untrained=2.0) == 0.25
    # A measure that falls as a part forgets, such as agreement.
    assert forgotten_share(0.7, own_end=1.0, untrained=0.4) == pytest.approx(0.5)
    assert forgotten_share(-0.5, own_end=0.0, untrained=2.0) == -0.25
    assert math.isnan(forgotten_share(0.5, own_end=1.0, untrained=1.0))
