"""Films the agent of a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ray.rllib.core import (
    COMPONENT_LEARNER,
    COMPONENT_LEARNER_GROUP,
    COMPONENT_RL_MODULE,
    DEFAULT_MODULE_ID,
)
from ray.rllib.core.rl_module import RLModule

from rllib_arrow.checkpoints.restore_to_act import restore_to_act
from rllib_arrow.evaluation.video import write_films

# The learner's module: that of the env runners has no decoder.
MODULE = Path(
    COMPONENT_LEARNER_GROUP, COMPONENT_LEARNER, COMPONENT_RL_MODULE, DEFAULT_MODULE_ID
)


def film_checkpoint(
    checkpoint: Path, directory: Path, tasks: Sequence[str] | None = None
) -> list[Path]:
    """Writes a GIF per task into the directory; returns their paths."""
    algorithm = restore_to_act(checkpoint)
    try:
        return write_films(
            directory,
            RLModule.from_checkpoint((checkpoint.resolve() / MODULE).as_posix()),
            algorithm.curriculum,
            tasks or algorithm.curriculum.task_names,
            seed=algorithm.config.seed,
            **algorithm.config.env_options,
        )
    finally:
        algorithm.stop()
