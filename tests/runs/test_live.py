"""Metrics of a run under way: they mean the same in every trial."""

from __future__ import annotations

import pytest

from rllib_arrow.curriculum.schedule import Curriculum
from rllib_arrow.envs.suites import reference_scores
from rllib_arrow.runs.live import live_metrics

OWN = {"id": "Mine-v0", "name": "mine"}


def curriculum(suite, tasks):
    plan = {"suite": suite, "tasks": tasks, "epochs_per_task": 1}
    return Curriculum.from_dict(plan)


def rows(*evaluations):
    """One row per epoch and task, from one list of raw scores per epoch."""
    return [
        {"method": "ARROW", "seed": 1, "epoch": epoch, "return_mean": score}
        for epoch, scores in enumerate(evaluations)
        for score in scores
    ]


def test_tasks_with_reference_scores_are_normalised_by_them():
    known = [reference_scores("coinrun")[task] for task in ("coinrun", "nb")]

    def at(*shares):
        return [
            r.random + share * (r.arrow - r.random)
            for r, share in zip(known, shares, strict=True)
        ]

    plan = curriculum("coinrun", ["coinrun", "nb"])
    found = live_metrics(rows(at(0, 0), at(0.8, 0.1), at(0.2, 0.6)), plan)
    assert found == pytest.approx(
        {
            "ACC": 0.4,
            "F": 0.3,  # 0.6 of the first of two tasks
            "WC_ACC": 0.6 / 2 + 0.2 / 2,
            "min_ACC": 0.2,
            "score_mean": 0.4,
            "normalised": 1,
        }
    )


def test_the_mean_is_over_all_tasks_from_the_first_evaluation_on():
    plan = curriculum("coinrun", ["coinrun", "nb"])
    random = [reference_scores("coinrun")[task].random for task in ("coinrun", "nb")]
    learned = reference_scores("coinrun")["coinrun"].arrow
    found = live_metrics(rows(random, [learned, random[1]]), plan)
    assert (found["ACC"], found["score_mean"]) == pytest.approx((1, 0.5))


def test_a_task_without_reference_scores_leaves_all_scores_raw():
    plan = curriculum("coinrun", ["coinrun", OWN])
    found = live_metrics(rows([1, -50], [5, -40], [3, 20]), plan)
    assert found["normalised"] == 0
    assert found["score_mean"] == found["ACC"] == pytest.approx((3 + 20) / 2)
    assert found["F"] == pytest.approx((5 - 3) / 2)


def test_what_came_before_does_not_change_the_score_to_tune_by():
    plan = curriculum("coinrun", ["coinrun", OWN])
    one = live_metrics(rows([0, 0], [9, 9], [3, 4]), plan)
    two = live_metrics(rows([2, 1], [3, 4], [3, 4]), plan)
    assert one["score_mean"] == two["score_mean"] == 3.5


def test_low_and_high_given_with_a_task_are_its_reference():
    own = OWN | {"low": -50, "high": 50}
    plan = curriculum("coinrun", ["coinrun", own])
    known = reference_scores("coinrun")["coinrun"]
    found = live_metrics(rows([known.random, -50], [known.arrow, 0]), plan)
    assert found["normalised"] == 1
    assert found["score_mean"] == pytest.approx((1 + 0.5) / 2)
