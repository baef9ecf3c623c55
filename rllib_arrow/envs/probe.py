"""Looks at tasks once before anything is trained on them."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import numpy as np

from rllib_arrow.envs.base import Rows, VectorTask
from rllib_arrow.envs.suites import Task, is_of_suite, make_task, task_name

logger = logging.getLogger(__name__)

SEED = 1
STEPS = 32


def ignores_seed(suite: str, task: Task, options: dict[str, Any]) -> bool:
    """Whether a short rollout that is repeated with its seed comes out differently.

    Resuming exactly rests on it. The suites' own tasks are tested and not asked here.
    """
    if is_of_suite(suite, task):
        return False
    made = make_task(suite, task, 1, **options)
    try:
        first, second = _rollout(made), _rollout(made)
    finally:
        made.close()
    return any(
        not np.array_equal(one, other)
        for before, after in zip(first, second, strict=True)
        for one, other in zip(before, after, strict=True)
    )


def warn_of_ignored_seeds(
    suite: str, tasks: Iterable[Task], options: dict[str, Any]
) -> None:
    """Logs one line for each task whose episodes cannot be repeated."""
    for task in tasks:
        if ignores_seed(suite, task, options):
            logger.warning(
                "Task %r ignores the seed given to reset(): the same seed and actions "
                "gave other rows. Runs cannot be repeated, nor resumed exactly.",
                task_name(suite, task),
            )


def _rollout(task: VectorTask) -> list[Rows]:
    rng = np.random.default_rng(SEED)
    actions = rng.integers(task.action_space.n, size=(STEPS, task.num_envs))
    return [task.reset(SEED), *(task.step(row) for row in actions)]
