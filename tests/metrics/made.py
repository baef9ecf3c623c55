"""Small runs with scores a reader can work with on paper."""

from __future__ import annotations

import numpy as np

from rllib_arrow.curriculum.exposure import plan_exposures
from rllib_arrow.metrics.curve import RunCurve
from rllib_arrow.metrics.transfer import SingleTask


def make_curve(scores, epochs_per_task, cycles=1, epochs=None, tasks=None):
    """A run from one list of scores per task."""
    table = np.array(scores, dtype=float).T
    epochs = np.arange(len(table)) if epochs is None else np.array(epochs)
    tasks = tasks or tuple("ABCDEF"[: table.shape[1]])
    exposures = plan_exposures(tasks, epochs_per_task, cycles)
    return RunCurve(
        "ARROW", "toy", "default", 1, tasks, exposures, epochs, 100 * epochs, table
    )


def single(method="ARROW", **curves):
    """Single-task curves, each from its first evaluation at epoch 0."""
    return {
        task: SingleTask(method, np.arange(len(scores)), np.array(scores, dtype=float))
        for task, scores in curves.items()
    }


# Default order: three tasks of two epochs, evaluated after each epoch.
DEFAULT = make_curve(
    [
        [0.0, 0.4, 0.8, 0.6, 0.5, 0.3, 0.4],
        [0.0, 0.1, 0.2, 0.6, 1.0, 0.7, 0.8],
        [0.0, 0.0, 0.1, 0.1, 0.2, 0.4, 0.6],
    ],
    [2, 2, 2],
)
# Reversed order, and a grid coarser than the exposures: epochs 0, 3 and 6 only.
REVERSED = make_curve(
    [[0.0, 0.5, 0.3], [0.1, 0.6, 0.4], [0.0, 0.2, 0.9]],
    [2, 2, 2],
    epochs=[0, 3, 6],
    tasks=("C", "B", "A"),
)
# Two cycles of two tasks of two epochs.
TWO_CYCLE = make_curve(
    [
        [0.0, 0.5, 0.8, 0.4, 0.2, 0.6, 1.0, 0.7, 0.5],
        [0.0, 0.1, 0.1, 0.3, 0.5, 0.4, 0.3, 0.6, 0.9],
    ],
    [2, 2],
    cycles=2,
)
