"""Continual-learning metrics of a run that is still under way."""

from __future__ import annotations

from typing import Any

import numpy as np

from rllib_arrow.curriculum.schedule import Curriculum
from rllib_arrow.envs.suites import SUITES, reference_scores
from rllib_arrow.metrics.continual import running_metrics
from rllib_arrow.metrics.curve import RunCurve, plan_exposures


def running_metrics_of(
    rows: list[dict[str, Any]], curriculum: Curriculum
) -> dict[str, float]:
    """Returns ACC, F and WC_ACC so far, for the progress display and TensorBoard.

    A task is normalised by its shipped reference scores (random and single-task
    ARROW); where there are none, 0 is the run's own score at epoch 0 and 1 its best
    so far. The report, which sees all runs, has the last word.
    """
    tasks = tuple(curriculum.task_names)
    epochs = np.array(sorted({row["epoch"] for row in rows}))
    raw = np.array([row["return_mean"] for row in rows]).reshape(len(epochs), -1)
    curve = RunCurve(
        method=rows[0]["method"],
        suite=curriculum.suite,
        setting=curriculum.setting,
        seed=rows[0]["seed"],
        tasks=tasks,
        exposures=plan_exposures(curriculum.epochs_of_tasks, curriculum.cycles),
        epochs=epochs,
        frames=epochs,
        scores=_normalise(raw, tasks, curriculum.suite),
    )
    return running_metrics(curve)


def _normalise(raw: np.ndarray, tasks: tuple[str, ...], suite: str) -> np.ndarray:
    """Takes and returns float [evaluations, tasks]."""
    known = reference_scores(suite) if suite in SUITES else {}
    low, high = raw[0].copy(), raw.max(axis=0)
    for i, task in enumerate(tasks):
        reference = known.get(task)
        if reference is not None and reference.arrow is not None:
            low[i], high[i] = reference.random, reference.arrow
    return (raw - low) / np.where(high > low, high - low, 1.0)
