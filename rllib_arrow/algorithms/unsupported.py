"""Settings of RLlib's that these algorithms cannot honour: refused by name."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.utils import force_list

from rllib_arrow.curriculum.task_scheduler import class_of
from rllib_arrow.settings import SettingError

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

logger = logging.getLogger(__name__)

# Setting: what it has to be, and what to do instead. A leading underscore is RLlib's
# way to keep a setting whose method has no underscore.
ONLY = {
    "enable_rl_module_and_learner": (True, "only the new API stack is supported"),
    "enable_env_runner_and_connector_v2": (True, "only the new API stack is supported"),
    "_env_to_module_connector": (None, "env runners have no connectors"),
    "_module_to_env_connector": (None, "env runners have no connectors"),
    "_learner_connector": (None, "learners take batches straight from replay"),
    "explore": (True, "actions are drawn from the policy, in evaluations too"),
    "input_": ("sampler", "there is no training from offline data"),
    "evaluation_duration_unit": ("episodes", "whole episodes are evaluated"),
    "custom_evaluation_function": (
        None,
        "every task is evaluated; use on_evaluate_end",
    ),
    "framework_str": ("torch", "models are written in torch"),
}
# Setting of RLlib's that an algorithm may have several of: how those are called.
INSTEAD = {
    "lr": "_lr",
    "grad_clip": "_grad_clip_by_global_norm",
    "_train_batch_size_per_learner": "batch_size_B",
}
# RLlib's settings that nothing here reads.
IDLE = {
    "min_time_s_per_iteration": "an iteration is one epoch",
    "min_train_timesteps_per_iteration": "an iteration is one epoch",
    "min_sample_timesteps_per_iteration": "an iteration is one epoch",
    "num_epochs": "set how many updates an epoch has (..._updates, updates_per_epoch)",
    "minibatch_size": "set batch_size_B, or TES-SAC's train_batch_size_per_learner",
    "train_batch_size": "set batch_size_B, or TES-SAC's train_batch_size_per_learner",
    "clip_rewards": "give a task a reward_scale",
    "replay_buffer_config": "set replay_capacity_chunks",
    "num_steps_sampled_before_learning_starts": "the first epoch is played at random",
}
CALLED = ("on_environment_created", "on_episode_end", "on_sample_end")
NEVER_CALLED = ("on_episode_created", "on_episode_start", "on_episode_step")


def refuse_unsupported(config: AlgorithmConfig) -> None:
    """Raises for the first setting that would be ignored; warns of callbacks."""
    prefix = "evaluation_config." if config.in_evaluation else ""
    for key, (only, reason) in ONLY.items():
        value = getattr(config, key)
        if value != only:
            name = prefix + key.removeprefix("_").removesuffix("_str")
            raise SettingError(name, value, f"must be {only!r}: {reason}")
    if config.is_multi_agent:
        names = sorted(config.policies)
        raise SettingError("policies", names, "must be left out: there is one agent")
    _refuse_namesakes(config)
    if not config.in_evaluation:
        _warn_of_callbacks(config)


def _refuse_namesakes(config: AlgorithmConfig) -> None:
    """Raises for a setting in whose place the algorithm has others, or none."""
    default = config.algo_class.get_default_config()
    declared = default.declared_settings
    for key, ending in INSTEAD.items():
        name, value = key.removeprefix("_"), getattr(config, key)
        if name not in declared and value != getattr(default, key):
            others = [other for other in declared if other.endswith(ending)]
            problem = f"must be left alone: set {', '.join(others)}"
            raise SettingError(name, value, problem)
    for name, instead in IDLE.items():
        value, usual = getattr(config, name, None), getattr(default, name, None)
        if name not in declared and value != usual and (value or usual):
            raise SettingError(name, value, f"must be left alone: {instead}")


def _warn_of_callbacks(config: AlgorithmConfig) -> None:
    for event in NEVER_CALLED:
        if has_callback(config, event):
            logger.warning(
                "%s is never called: environments are stepped side by side without "
                "episode objects. on_episode_end and on_sample_end are called.",
                event,
            )


def has_callback(config: AlgorithmConfig, *events: str) -> bool:
    """Whether a user has a callback for any of the events."""
    classes = [class_of(entry) for entry in force_list(config.callbacks_class)]
    return any(
        getattr(config, f"callbacks_{event}")
        or any(getattr(c, event) is not getattr(RLlibCallback, event) for c in classes)
        for event in events
    )
