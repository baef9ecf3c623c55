"""Moves the env runners to the task that is on."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from ray.rllib.callbacks.callbacks import RLlibCallback

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm import Algorithm

logger = logging.getLogger(__name__)


class TaskScheduler(RLlibCallback):
    """Tells every train runner its task: at the start, at a boundary, after a crash.

    Which task is on is a pure function of the epoch, so nothing has to be saved.
    """

    def on_algorithm_init(self, *, algorithm: Algorithm, **kwargs: Any) -> None:
        move_runners(algorithm)

    def on_checkpoint_loaded(self, *, algorithm: Algorithm, **kwargs: Any) -> None:
        move_runners(algorithm)

    def on_train_result(
        self, *, algorithm: Algorithm, result: dict, **kwargs: Any
    ) -> None:
        progress = result["curriculum"]
        if progress["switch"]:
            logger.info("Task switch: %(task)s -> %(next_task)s", progress)
            move_runners(algorithm, epoch=progress["epoch"])

    def on_env_runners_recreated(
        self,
        *,
        algorithm: Algorithm,
        env_runner_group: Any,
        env_runner_indices: list[int],
        is_evaluation: bool,
        **kwargs: Any,
    ) -> None:
        if not is_evaluation:
            move_runners(algorithm, only=env_runner_indices)


def move_runners(
    algorithm: Algorithm, epoch: int | None = None, only: list[int] | None = None
) -> None:
    """Sets the task of the epoch about to run on the train runners."""
    curriculum = algorithm.config.curriculum_object()
    epoch = algorithm.iteration if epoch is None else epoch
    if epoch >= curriculum.total_epochs or algorithm.env_runner_group is None:
        return
    task = curriculum.task_at(epoch)
    algorithm.env_runner_group.foreach_env_runner(
        lambda runner: runner.set_task(task),
        remote_worker_ids=only,
        local_env_runner=only is None,
    )
