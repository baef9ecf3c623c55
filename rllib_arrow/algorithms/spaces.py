"""The spaces that all tasks of a curriculum share."""

from __future__ import annotations

from typing import Any

from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.env import INPUT_ENV_SPACES

from rllib_arrow.curriculum.schedule import Curriculum
from rllib_arrow.envs.suites import make_task
from rllib_arrow.errors import UserError


def shared_spaces(
    curriculum: Curriculum, env_options: dict[str, Any]
) -> dict[str, Any]:
    """Returns the spaces all tasks of the curriculum share, having compared them."""
    first, *others = curriculum.task_names
    shared = _task_spaces(curriculum, first, env_options)
    # Tasks of a suite agree by construction; a user's own have to be asked.
    for name in filter(curriculum.is_custom, others):
        spaces = _task_spaces(curriculum, name, env_options)
        if spaces != shared:
            raise UserError(
                f"Tasks {first!r} and {name!r} cannot share a curriculum: their "
                f"spaces are {shared} and {spaces}."
            )
    return {INPUT_ENV_SPACES: shared, DEFAULT_MODULE_ID: shared}


def _task_spaces(curriculum: Curriculum, name: str, env_options: dict) -> tuple:
    env = make_task(curriculum.suite, curriculum.spec(name), 1, **env_options)
    env.close()
    return env.observation_space, env.action_space
