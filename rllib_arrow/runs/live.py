"""Continual-learning metrics of a run that is still under way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rllib_arrow.curriculum.schedule import Curriculum
from rllib_arrow.envs.suites import reference_of
from rllib_arrow.metrics.continual import running_metrics
from rllib_arrow.metrics.curve import RunCurve
from rllib_arrow.runs.normalise import reference_scale


def live_metrics(
    rows: Sequence[Mapping[str, Any]], curriculum: Curriculum
) -> dict[str, float]:
    """Returns ACC, F, WC_ACC and the mean score over all tasks as of now.

    Scores are normalised if every task has reference scores (then `normalised` is 1),
    else raw: never by the run itself, so that a number means the same in every trial.
    """
    tasks = curriculum.task_names
    epochs = np.array(sorted({row["epoch"] for row in rows}))
    scores = np.array([row["return_mean"] for row in rows]).reshape(len(epochs), -1)
    references = [reference_of(curriculum.suite, curriculum.spec(t)) for t in tasks]
    scales = [reference_scale(reference) for reference in references]
    normalised = all(scales)
    if normalised:
        pairs = zip(scales, scores.T, strict=True)
        scores = np.stack([scale.apply(column) for scale, column in pairs], axis=1)
    curve = RunCurve(
        method=rows[0]["method"],
        suite=curriculum.suite,
        setting=curriculum.setting,
        seed=rows[0]["seed"],
        tasks=tasks,
        exposures=curriculum.exposures,
        epochs=epochs,
        frames=epochs,
        scores=scores,
    )
    return running_metrics(curve) | {
        "score_mean": float(curve.scores[-1].mean()),
        "normalised": float(normalised),
    }
