"""Mistakes of the user's that only show when something runs."""

from __future__ import annotations

import sys
from pathlib import Path

from ray.exceptions import RayActorError

from rllib_arrow import algorithm_class
from rllib_arrow.algorithms.spaces import shared_spaces
from rllib_arrow.checkpoints.seal import CheckpointError
from rllib_arrow.errors import UserError
from rllib_arrow.experiments.experiment import Experiment
from rllib_arrow.experiments.progress import reason
from rllib_arrow.experiments.yaml_settings import examples
from rllib_arrow.replay.snapshot import SnapshotError


def search_here() -> None:
    """Has modules looked for in the current directory too, as Ray's workers do."""
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))


def try_environments(experiment: Experiment) -> None:
    """Makes every environment once; one that cannot be made is refused at once."""
    search_here()
    tried = []
    for plain in examples(experiment.config):
        config = algorithm_class(experiment.run).get_default_config()
        config.update_from_dict({"env": experiment.env, **plain})
        tasks = (config.curriculum_object(), config.env_options)
        if tasks in tried:
            continue
        tried.append(tasks)
        try:
            shared_spaces(*tasks)
        except UserError as error:
            raise UserError(f"{experiment.file}: {error}") from error


def is_users_mistake(error: BaseException | None) -> bool:
    """Whether a trial failed for a reason that would come again in a retry.

    A checkpoint that cannot be read may be back the next time.
    """
    if isinstance(error, RayActorError):  # in its __init__: there is only the text
        return reason(str(error)).startswith(("UserError: ", "SettingError: "))
    cause = getattr(error, "cause", None) or error
    passing = (CheckpointError, SnapshotError)
    return isinstance(cause, UserError) and not isinstance(cause, passing)
