"""ARROW and its baselines for continual reinforcement learning, as an RLlib plugin.

Public names are loaded when they are first used: Ray takes seconds to import, and the
`rllib` command answers many questions without it.
"""

from __future__ import annotations

import logging
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

# Where each public name is defined.
_HOMES = {
    "ARROW": "algorithms.arrow",
    "ARROWConfig": "algorithms.arrow",
    "AugmentedReplay": "replay",
    "Chunk": "replay",
    "Curriculum": "curriculum.schedule",
    "DV3": "algorithms.dv3",
    "DV3Config": "algorithms.dv3",
    "QUIVER": "algorithms.quiver",
    "QUIVERConfig": "algorithms.quiver",
    "TESSAC": "algorithms.tes_sac",
    "TESSACConfig": "algorithms.tes_sac",
    "TaskScheduler": "curriculum.task_scheduler",
    "load_runs": "runs.load",
}
__all__ = [*_HOMES]

# The algorithms' names for Ray Tune and tuned examples, and their classes.
ALGORITHMS = {
    "ARROW": "ARROW",
    "DV3": "DV3",
    "QUIVER": "QUIVER",
    "TES-SAC": "TESSAC",
}
CONTINUAL = "Continual"  # the environment of a curriculum, likewise


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"rllib_arrow.{_HOMES[name]}"), name)
    if name == "__version__":
        return import_module("importlib.metadata").version("rllib_arrow")
    raise AttributeError(f"module 'rllib_arrow' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES, "__version__"])


def algorithm_class(name: str) -> Any:
    """Returns the algorithm of that name in Ray Tune."""
    return __getattr__(ALGORITHMS[name])


@cache
def register() -> None:
    """Makes the algorithms and the environment known to Ray Tune by their names."""
    # Importing Ray sets the levels of its loggers; those chosen before it shall stay.
    loggers = [logging.getLogger(name) for name in ("ray", "ray.rllib")]
    levels = [logger.level for logger in loggers]
    from ray import tune

    from rllib_arrow.envs.continual import Continual

    for name in ALGORITHMS:
        tune.register_trainable(name, algorithm_class(name))
    tune.register_env(CONTINUAL, lambda context: Continual(context))
    for logger, level in zip(loggers, levels, strict=True):
        if level != logging.NOTSET:
            logger.setLevel(level)


def _is_actor() -> bool:
    """Returns whether this is an actor's process: its driver registers the names."""
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        return False
    return ray.get_runtime_context().get_actor_id() is not None


# The `rllib` command registers when it needs Ray; every other program at once.
if Path(sys.argv[0] if sys.argv else "").name != "rllib" and not _is_actor():
    register()
