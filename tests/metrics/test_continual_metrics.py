"""Every metric against numbers worked by hand, and the properties they must have."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_arrow.curriculum.exposure import Exposure, plan_exposures
from rllib_arrow.metrics.continual import (
    average_accuracy,
    continual_metrics,
    cycle_forgetting,
    forgetting,
    max_forgetting,
    min_accuracy,
    recovery,
    running_metrics,
    worst_case_accuracy,
    worst_case_series,
)
from rllib_arrow.metrics.curve import RunCurve
from rllib_arrow.metrics.transfer import forward_transfer
from tests.metrics.made import DEFAULT, REVERSED, TWO_CYCLE, make_curve, single


def test_default_order_matches_the_numbers_worked_by_hand():
    # F: A 0.8 - 0.4, B 1.0 - 0.8, C 0.
    assert forgetting(DEFAULT).value == pytest.approx(0.6 / 3)
    assert average_accuracy(DEFAULT).value == pytest.approx((0.4 + 0.8 + 0.6) / 3)
    # Lowest after its training: A 0.3 (epochs 3 to 6), B 0.7 (epochs 5 and 6).
    assert min_accuracy(DEFAULT).value == pytest.approx(0.5)
    assert worst_case_accuracy(DEFAULT).value == pytest.approx(0.6 / 3 + 2 / 3 * 0.5)


def test_default_forward_transfer_matches_the_numbers_worked_by_hand():
    # S: A (0.4 + 0.8) / 2, B (0.6 + 1.0) / 2, C (0.4 + 0.6) / 2. The single-task
    # means over epochs 1 and 2 are 0.4, 0.8 and 1.0; epoch 3 is outside the window.
    curves = single(A=[0, 0.2, 0.6, 9], B=[0, 0.5, 1.1, 9], C=[0, 0.6, 1.4, 9])
    expected = ((0.6 - 0.4) / 0.4 + 0.0 + (0.5 - 1.0) / 1.0) / 3
    assert forward_transfer(DEFAULT, curves).value == pytest.approx(expected, abs=1e-12)


def test_worst_case_series_knows_only_the_past():
    expected = [
        0.0,
        0.4,
        0.8,
        0.6 / 2 + 0.6 / 2,
        1.0 / 2 + 0.5 / 2,
        0.4 / 3 + 2 / 3 * (0.3 + 0.7) / 2,
        0.6 / 3 + 2 / 3 * (0.3 + 0.7) / 2,
    ]
    assert worst_case_series(DEFAULT) == pytest.approx(expected)


def test_reversed_order_on_a_coarse_grid_takes_the_last_evaluation_before_a_step():
    # C ends at 2, where epoch 0 is the last evaluation; B ends at 4, that is epoch 3.
    result = forgetting(REVERSED)
    assert result.value == pytest.approx(((0.0 - 0.3) + (0.6 - 0.4) + 0) / 3)
    assert any("C was not evaluated during its exposure" in n for n in result.notes)
    assert average_accuracy(REVERSED).value == pytest.approx((0.3 + 0.4 + 0.9) / 3)
    assert min_accuracy(REVERSED).value == pytest.approx((0.3 + 0.4) / 2)
    assert worst_case_accuracy(REVERSED).value == pytest.approx(0.9 / 3 + 2 / 3 * 0.35)


def test_reversed_forward_transfer_leaves_out_what_was_never_evaluated():
    curves = single(C=[0, 1, 1], B=[0, 0.4, 0.6], A=[0, 0.5, 0.7])
    result = forward_transfer(REVERSED, curves)
    # B: 0.6 at epoch 3 against 0.5; A: 0.9 at epoch 6 against 0.6; C left out.
    assert result.value == pytest.approx(((0.6 - 0.5) / 0.5 + (0.9 - 0.6) / 0.6) / 2)
    assert result.notes == ("C: left out, no evaluation within its exposure",)


def test_two_cycles_match_the_numbers_worked_by_hand():
    curves = single(A=[0, 0.4, 0.9], B=[0, 0.1, 0.3])
    values = {k: v.value for k, v in continual_metrics(TWO_CYCLE, curves).items()}
    a_1, b_1 = (0.5 + 0.8) / 2, (0.3 + 0.5) / 2
    a_2, b_2 = (0.6 + 1.0) / 2, (0.6 + 0.9) / 2
    assert values == pytest.approx(
        {
            "F": ((0.8 - 0.5) + (0.5 - 0.9)) / 2,
            "FT": ((a_1 - 0.65) / 0.65 + (b_1 - 0.2) / 0.2) / 2,
            "ACC": (0.5 + 0.9) / 2,
            "min_ACC": 0.2,
            "WC_ACC": 0.9 / 2 + 0.2 / 2,
            "retention": 0.5 / 1.0,
            "FT_area": ((a_1 - 0.65) / 0.35 + (b_1 - 0.2) / 0.8) / 2,
            "zero_shot": 0.1,
            # After the first exposure; last evaluation before epochs 4 and 6.
            "Max_F": ((0.8 - 0.4) + (0.5 - 0.4)) / 2,
            "Recovery": (1.0 / 0.8 + 0.9 / 0.5) / 2,
            "C1_F": ((0.8 - 0.2) + 0) / 2,
            "C2_F": ((1.0 - 0.5) + 0) / 2,
            "C1_FT": ((a_1 - 0.65) / 0.65 + (b_1 - 0.2) / 0.2) / 2,
            "C2_FT": ((a_2 - 0.65) / 0.65 + (b_2 - 0.2) / 0.2) / 2,
        }
    )


def test_in_the_second_cycle_every_task_but_the_trained_one_counts_as_earlier():
    # At epoch 5 A is trained again; B has been at 0.4 since its training ended.
    assert min_accuracy(TWO_CYCLE.until(5)).value == pytest.approx(0.4)
    expected = 0.6 / 2 + 0.4 / 2
    assert worst_case_accuracy(TWO_CYCLE.until(5)).value == pytest.approx(expected)


def test_three_cycles_have_their_own_metrics():
    curve = make_curve([[0, 0.2, 0.4, 0.6]], [1], cycles=3)
    assert {"C1_F", "C2_F", "C3_F", "C3_FT"} <= set(continual_metrics(curve))


def test_one_cycle_has_no_cycle_metrics():
    paper = {"F", "FT", "ACC", "min_ACC", "WC_ACC"}
    more = {"retention", "FT_area", "zero_shot"}
    assert set(continual_metrics(DEFAULT)) == paper | more


def test_tasks_that_alternate_have_no_metrics_of_single_cycles():
    curve = make_curve([[0, 0.2] * 6, [0, 0.4] * 6], [1, 1], cycles=5)
    found = set(continual_metrics(curve))
    assert {"Max_F", "Recovery", "retention"} <= found
    assert not {"C1_F", "C5_FT"} & found


def test_running_metrics_of_an_unfinished_run_count_the_tasks_met_so_far():
    # At epoch 3 A has ended and B is in training.
    assert running_metrics(DEFAULT.until(3)) == pytest.approx(
        {
            "ACC": (0.6 + 0.6) / 2,
            "F": ((0.8 - 0.6) + 0) / 2,
            "WC_ACC": 0.6 / 2 + 0.6 / 2,
            "min_ACC": 0.6,
        }
    )
    assert not DEFAULT.until(3).finished
    assert DEFAULT.finished


def test_running_metrics_before_training_and_in_the_first_task_leave_out_min_acc():
    assert running_metrics(DEFAULT.until(0)) == {"ACC": 0.0, "F": 0.0, "WC_ACC": 0.0}
    first = running_metrics(DEFAULT.until(1))
    assert first == pytest.approx({"ACC": 0.4, "F": 0.0, "WC_ACC": 0.4})


@pytest.mark.parametrize("epoch", range(9))
def test_an_undefined_value_always_says_why(epoch):
    for name, result in continual_metrics(TWO_CYCLE.until(epoch)).items():
        assert np.isfinite(result.value) or result.notes, name


def test_reasons_name_what_is_missing():
    early = TWO_CYCLE.until(3)
    assert max_forgetting(early).notes == ("no task has come up a second time",)
    assert recovery(early).notes == ("no second exposure has ended",)
    assert cycle_forgetting(early, 2).notes == ("cycle 2 has not begun",)
    assert forward_transfer(early, {}).notes == (
        "needs single-task runs (--baselines)",
    )
    assert min_accuracy(early.until(1)).notes == ("needs a second task",)


def test_a_task_never_learned_is_told_and_a_zero_is_not_divided_by():
    curve = make_curve([[0, 0, 0.2], [0, 0, 0.5]], [1, 1])
    assert any("A was not above random" in note for note in forgetting(curve).notes)
    cycles = make_curve(
        [[0, 0.0, 0.1, 0.4, 0.4], [0, 0.0, -0.2, 0.1, 0.4]], [1, 1], cycles=2
    )
    result = recovery(cycles)
    assert result.value == pytest.approx(0.4 / -0.2)
    assert result.notes == (
        "A left out, its score after cycle 1 was zero",
        "B was below random after cycle 1: its ratio misleads",
    )


def test_forward_transfer_tells_whose_single_task_runs_it_used():
    curves = single(method="DV3", A=[0, 1, 1], B=[0, 1, 1], C=[0, 1, 1])
    notes = forward_transfer(DEFAULT, curves).notes
    assert notes == ("compared with DV3's single-task runs",)


def test_forward_transfer_tells_of_missing_zero_and_short_single_task_curves():
    curves = single(A=[0, 0, 0], B=[0, 1])
    result = forward_transfer(DEFAULT, curves)
    assert result.value == pytest.approx((0.8 - 1) / 1)
    assert result.notes == (
        "A: left out, its single-task curve averages zero",
        "B: its single-task run has only 1 epochs",
        "C: left out, no single-task run",
    )


def test_a_run_without_early_evaluations_says_that_a_task_is_left_out():
    late = RunCurve(
        "ARROW",
        "toy",
        "default",
        1,
        ("A", "B"),
        (Exposure("A", 1, 0, 2), Exposure("B", 1, 2, 4)),
        np.array([3, 4]),
        np.array([3, 4]),
        np.array([[0.5, 0.5], [0.25, 0.75]]),
    )
    result = forgetting(late)
    assert result.value == 0.0
    assert any("left out" in note for note in result.notes)


@pytest.mark.parametrize(
    "change",
    [
        {"epochs": np.array([0, 2, 1])},
        {"frames": np.array([0])},
        {"scores": np.zeros((3, 2))},
        {"exposures": ()},
    ],
)
def test_a_curve_that_does_not_fit_together_is_refused(change):
    good = {
        "method": "ARROW",
        "suite": "toy",
        "setting": "default",
        "seed": 1,
        "tasks": ("A",),
        "exposures": (Exposure("A", 1, 0, 2),),
        "epochs": np.array([0, 1, 2]),
        "frames": np.array([0, 1, 2]),
        "scores": np.zeros((3, 1)),
    }
    RunCurve(**good)
    with pytest.raises(ValueError):
        RunCurve(**good | change)


plateaus = st.lists(st.floats(0.1, 3), min_size=2, max_size=6)


@settings(deadline=None)
@given(plateaus, st.integers(1, 4), st.integers(1, 3))
def test_a_method_that_never_forgets_has_no_forgetting_and_keeps_its_plateau(
    levels, length, cycles
):
    """Every task jumps to its level when first trained and stays there."""
    tasks = "ABCDEF"[: len(levels)]
    exposures = plan_exposures(tasks, [length] * len(levels), cycles)
    epochs = np.arange(exposures[-1].end + 1)
    scores = [
        np.where(epochs > exposures[i].start, level, 0.0)
        for i, level in enumerate(levels)
    ]
    curve = make_curve(scores, [length] * len(levels), cycles)
    values = {name: v.value for name, v in continual_metrics(curve).items()}
    assert values["F"] == 0
    assert values["ACC"] == pytest.approx(np.mean(levels))
    assert values["min_ACC"] == pytest.approx(np.mean(levels[:-1]))
    assert values["WC_ACC"] == pytest.approx(np.mean(levels))
    if cycles > 1:
        assert (values["Max_F"], values["C1_F"], values["C2_F"]) == (0, 0, 0)
        assert values["Recovery"] == pytest.approx(1)


@st.composite
def random_runs(draw):
    tasks = draw(st.integers(2, 4))
    cycles = draw(st.integers(1, 2))
    lengths = draw(st.lists(st.integers(1, 3), min_size=tasks, max_size=tasks))
    stop = draw(st.integers(0, cycles * sum(lengths)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return make_curve(rng.normal(0.5, 0.5, (tasks, stop + 1)), lengths, cycles)


@settings(deadline=None)
@given(random_runs(), st.randoms(use_true_random=False))
def test_the_order_of_the_columns_changes_nothing(curve, random):
    order = list(range(len(curve.tasks)))
    random.shuffle(order)
    shuffled = RunCurve(
        curve.method,
        curve.suite,
        curve.setting,
        curve.seed,
        tuple(curve.tasks[i] for i in order),
        curve.exposures,
        curve.epochs,
        curve.frames,
        curve.scores[:, order],
    )
    curves = single(A=[0, 0.5, 1], B=[0, 0.2, 0.7], C=[0, 1, 2], D=[0, 0.1, 0.2])
    before, after = (continual_metrics(c, curves) for c in (curve, shuffled))
    assert before.keys() == after.keys()
    for name in before:
        expected = pytest.approx(before[name].value, nan_ok=True)
        assert after[name].value == expected


@settings(deadline=None)
@given(random_runs())
def test_running_metrics_are_the_final_ones_once_the_run_has_ended(curve):
    final = continual_metrics(curve)
    for name, value in running_metrics(curve).items():
        assert value == final[name].value


def test_what_was_lost_counts_also_where_the_newest_task_has_no_scale():
    """A, B, C: B is lost while C, of which nothing is known, is trained."""
    curve = make_curve([[0, 1, 1, 1], [0, 0, 1, 0], [0, 0, 0, 0]], [1, 1, 1])
    found = continual_metrics(curve.without({"C"}))
    assert found["retention"].value == 0.5
    assert found["min_ACC"].value == 0.5
    assert found["F"].value == 0.5
    assert np.isnan(found["WC_ACC"].value) and "C" in found["WC_ACC"].notes[0]
    early = continual_metrics(curve.without({"A"}).until(1))  # while A is trained
    for name in ("retention", "min_ACC", "zero_shot"):
        assert early[name].notes == ("needs a second task",), name
    # Where the first is left out, all others had a score before their training.
    later = make_curve([[0, 0, 0], [0.2, 0.4, 1]], [1, 1]).without({"A"})
    assert continual_metrics(later)["zero_shot"].value == 0.4
