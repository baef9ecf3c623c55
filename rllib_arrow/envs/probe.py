"""Looks at tasks once before anything is trained on them."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TookTooLong
from threading import Thread
from typing import Any

import numpy as np

from rllib_arrow.envs.base import Rows, VectorTask
from rllib_arrow.envs.suites import Task, is_of_suite, make_task, task_name
from rllib_arrow.errors import UserError

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
    suite: str,
    tasks: Iterable[Task],
    options: dict[str, Any],
    limit_s: float | None = None,
) -> None:
    """Logs one line for each task whose episodes cannot be repeated.

    A task that raises, or hangs for longer than the limit, is left to the workers:
    they can make it anew.
    """
    for task in tasks:
        name = task_name(suite, task)
        try:
            if _asked_aside(suite, task, options).result(limit_s):
                logger.warning(
                    "Task %r ignores the seed given to reset(): the same seed and "
                    "actions gave other rows. Runs cannot be repeated, nor resumed "
                    "exactly.",
                    name,
                )
        except TookTooLong:
            logger.warning(
                "Task %r hung when it was tried: %d steps took more than %g s "
                "(sample_timeout_s). Whether it can be repeated is not known.",
                name,
                2 * STEPS,
                limit_s,
            )
        except UserError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            logger.warning("Task %r failed when it was tried: %s", name, reason)


def _asked_aside(suite: str, task: Task, options: dict[str, Any]) -> Future[bool]:
    """Asks whether a task ignores its seed in a thread that nobody has to wait for."""
    answer: Future[bool] = Future()

    def ask() -> None:
        try:
            answer.set_result(ignores_seed(suite, task, options))
        except BaseException as error:
            answer.set_exception(error)

    Thread(target=ask, daemon=True).start()
    return answer


def _rollout(task: VectorTask) -> list[Rows]:
    rng = np.random.default_rng(SEED)
    actions = rng.integers(task.action_space.n, size=(STEPS, task.num_envs))
    return [task.reset(SEED), *(task.step(row) for row in actions)]
