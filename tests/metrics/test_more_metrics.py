"""Retention, forward transfer by area and zero-shot scores, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from rllib_arrow.metrics.continual import retention
from rllib_arrow.metrics.transfer import area_transfer, zero_shot
from tests.metrics.made import DEFAULT, TWO_CYCLE, make_curve, single


def test_retention_is_what_is_left_of_earlier_tasks():
    # A is at 0.8 after its training and at 0.4 at the end; B at 1.0 and 0.8.
    assert retention(DEFAULT).value == pytest.approx((0.4 / 0.8 + 0.8 / 1.0) / 2)
    assert retention(DEFAULT).notes == ()


def test_retention_so_far_leaves_out_the_task_in_training():
    assert retention(DEFAULT.until(3)).value == pytest.approx(0.6 / 0.8)
    assert retention(DEFAULT.until(2)).notes == ("needs a second task",)


def test_retention_leaves_out_what_was_never_learned_and_tells_what_was_barely():
    curve = make_curve([[0, 0, 0.5, 0.5], [0, 0, 0.05, 0.1], [0, 0, 0, 1]], [1, 1, 1])
    found = retention(curve)
    assert found.value == pytest.approx(0.1 / 0.05)
    assert found.notes == (
        "A left out, not above random after its training",
        "B was barely learned (0.05): a rough ratio",
    )
    nothing = retention(make_curve([[0, -0.1, 0], [0, 0, 1]], [1, 1]))
    assert np.isnan(nothing.value) and "left out" in nothing.notes[0]


def test_retention_below_random_is_below_zero():
    curve = make_curve([[0, 0.5, -0.1], [0, 0, 1]], [1, 1])
    assert retention(curve).value == pytest.approx(-0.2)


def test_retention_over_two_cycles_is_since_a_task_was_last_trained():
    # A is at 1.0 after its second exposure and at 0.5 at the end.
    assert retention(TWO_CYCLE).value == pytest.approx(0.5 / 1.0)
    # At epoch 5 A is trained again; B was at 0.5 after its training and is at 0.4.
    assert retention(TWO_CYCLE.until(5)).value == pytest.approx(0.4 / 0.5)


def test_transfer_by_area_is_a_share_of_the_room_above_the_single_task_curve():
    curves = single(A=[0, 0.2, 0.6], B=[0, 0.1, 0.3], C=[0, 0.5, 0.7])
    # Means over the exposures: A 0.6 against 0.4, B 0.8 against 0.2, C 0.5 against 0.6.
    terms = [(0.6 - 0.4) / 0.6, (0.8 - 0.2) / 0.8, (0.5 - 0.6) / 0.4]
    assert area_transfer(DEFAULT, curves).value == pytest.approx(sum(terms) / 3)


def test_transfer_by_area_does_not_explode_where_the_single_task_curve_is_low():
    curves = single(A=[0, 0.001, 0], B=[0, 0.001, 0], C=[0, 0.001, 0])
    assert area_transfer(DEFAULT, curves).value == pytest.approx(0.633, abs=1e-3)


def test_a_single_task_curve_without_room_above_it_is_left_out():
    curves = single(A=[0, 1.0, 1.0], B=[0, 0.1, 0.3], C=[0, 0.5, 0.7])
    found = area_transfer(DEFAULT, curves)
    assert found.value == pytest.approx((0.75 - 0.25) / 2)
    assert found.notes == ("A: left out, its single-task curve averages 1 or more",)
    assert area_transfer(DEFAULT, {}).notes == ("needs single-task runs (--baselines)",)


def test_zero_shot_is_the_last_score_before_a_tasks_own_training():
    # B is at 0.2 when its training begins, C at 0.2.
    assert zero_shot(DEFAULT).value == pytest.approx((0.2 + 0.2) / 2)
    assert zero_shot(DEFAULT.until(3)).value == pytest.approx(0.2)
    assert zero_shot(DEFAULT.until(2)).notes == ("needs a second task",)
    steep = make_curve([[0, 1, 1, 1], [0, 0.3, 0.7, 1], [0, 0.1, 0.5, 1]], [1, 1, 1])
    assert zero_shot(steep).value == pytest.approx((0.3 + 0.5) / 2)
