"""Evaluates a checkpoint, with none of the workers that made it."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ray.rllib.utils.checkpoints import Checkpointable

from rllib_arrow import ALGORITHMS
from rllib_arrow.checkpoints.save_and_restore import SealedCheckpoints
from rllib_arrow.checkpoints.seal import CheckpointError, check_seal
from rllib_arrow.errors import UserError


def restore_to_act(path: str | Path) -> SealedCheckpoints:
    """Returns a checkpoint's algorithm in this process alone, on the CPU.

    It has no replay and no directory of its own, and writes nothing.
    """
    path = Path(path).resolve()
    check_seal(path, replay=False)
    file = path / Checkpointable.CLASS_AND_CTOR_ARGS_FILE_NAME
    try:
        stored = pickle.loads(file.read_bytes())
        algorithm_class, ((config,), _) = (
            stored["class"],
            stored["ctor_args_and_kwargs"],
        )
        config = algorithm_class.get_default_config().from_state(config)
    except Exception as error:
        raise CheckpointError(f"{file} is damaged: {error!r}") from error
    if not issubclass(algorithm_class, SealedCheckpoints):
        raise CheckpointError(
            f"{path} holds {algorithm_class.__name__}, which is none of "
            f"{', '.join(ALGORITHMS)}."
        )
    config = config.copy(copy_frozen=False)
    # One collector with the environments of all: an epoch keeps its number of frames.
    environments = config.num_collectors * config.num_envs_per_env_runner
    config.env_runners(num_env_runners=0, num_envs_per_env_runner=environments)
    config.learners(num_learners=0, num_gpus_per_learner=0)
    config.evaluation(
        evaluation_num_env_runners=0, evaluation_parallel_to_training=False
    )
    config.forget_training()
    try:
        return algorithm_class.from_checkpoint(
            path.as_posix(), config=config, to_act=True, seal_checked=True
        )
    except Exception as error:
        raise CheckpointError(f"{path} cannot be restored: {error!r}") from error


def evaluate_checkpoint(
    path: str | Path,
    episodes: int | None = None,
    tasks: Sequence[str] | None = None,
) -> list[dict[str, Any]]:
    """Returns one row per task, with the columns of `evaluations.csv`.

    With the run's own number of episodes, the scores equal those the run logged at
    this epoch: the same weights, environments and random streams.
    """
    algorithm = restore_to_act(path)
    try:
        names = algorithm.curriculum.task_names
        for task in tasks or ():
            if task not in names:
                raise UserError(f"task ({task!r}) must be one of {', '.join(names)}.")
        return algorithm.evaluator.score(algorithm.iteration, tasks or names, episodes)
    finally:
        algorithm.stop()
