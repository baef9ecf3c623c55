"""What each setting may do on a restore, and random changes of several at once.

Written down independently of the code that decides it; `tests/algorithms/tiny.py` has
the values that a run starts with.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from rllib_arrow.models.native.build import find_compiler
from rllib_arrow.settings import Setting
from tests.algorithms.tiny import METHODS, tiny_config

Changes = dict[str, Any]

FINISHED = 3  # epochs of the checkpoint: two of the first task, one of the second

# Refused, naming both values.
STAYS: dict[str, tuple] = {
    "seed": (0, 1, 7, 2**31),
    "env_options": ({"sticky": 0.5}, {"max_episode_steps": 90}),
    "num_envs_per_env_runner": (1, 3, 16),
    "rollout_fragment_length": (1, 39, 41, 4096),
    "replay_capacity_chunks": (8, 15, 17, 1024),
    "replay_chunk_length": (8, 25, 512),
    "ltdm_fraction": (0.25, 0.75, 1.0),
    "ltdm_probability_rule": ("after_change", "balanced"),
    "ltdm_fraction_rule": ("after_change", "balanced"),
    "ltdm_bounds": ([0.1, 0.9],),
    "exploration_rule": ("after_change",),
    "fifo_retention": ("local_forgetting",),
    "fifo_sampling": ("curious",),
    "model_size": ("micro",),
    "gru_norm": (True,),
    "posterior_skip": (True,),
    "learned_initial_state": (True,),
    "cnn_depth": (2, 8),
    "mlp_units": (8, 32),
    "mlp_layers": (0, 1, 3),
    "curriculum.tasks": (
        ["space_invaders", "breakout"],
        ["breakout"],
        ["breakout", "freeway"],
        ["breakout", "space_invaders", "freeway"],
    ),
    "curriculum.order": ("reversed",),
    "curriculum.epochs_per_task": (1, 3, 9, [1, 2], [3, 2]),
}
# Not one byte of what is learnt and scored differs from a run that began so.
SAME: dict[str, tuple] = {
    "replay_prefetch": (1, 2, 9),
    "replay_max_bytes": (10**9, 10**12),
    "custom_resources_for_replay": ({"CPU": 0.0},),
    "sample_timeout_s": (60.0, None),
    "evaluation_sample_timeout_s": (60.0, None),
    "max_steps_per_evaluated_episode": (50_000, 10**6),
    "pictures_interval": (1,),
    "label_settings": (["seed"], ["seed", "replay_chunk_length"]),
    "curriculum.cycles": (2, 5),
    "curriculum.epochs_per_task": ([2, 3], [2, 50], [2, 5000]),
    # What was learnt of these is in the checkpoint, which counts.
    "initial_alpha": (0.1, 0.5),
    "target_entropy": (0.5,),
    "target_entropy_fraction": (0.5,),
    "use_compile": (True, False) if find_compiler() else (False,),
}
# Likewise, but some epochs are not evaluated.
FEWER_SCORES: dict[str, tuple] = {"evaluation_interval": (2, 3, 0, None)}
# What is learnt is the same; what is scored from now on is not.
OTHER_SCORES: dict[str, tuple] = {
    "evaluation_duration": (1, 3, 9),
    "num_envs_per_evaluation": (1, 3),
    "max_steps_per_evaluated_episode": (3,),
}
# Meant to change what is learnt from now on.
LEARNS: dict[str, tuple] = {
    "gamma": (0.5, 0.9),
    "world_model_lr": (1e-3, 1e-6),
    "actor_lr": (1e-3, 1e-6),
    "critic_lr": (1e-3, 1e-6),
    "alpha_lr": (1e-2, 1e-6),
    "world_model_updates": (1, 5),
    "actor_critic_updates": (0, 4),
    "updates_per_epoch": (1, 7),
    "interleaved": (True,),
    "batch_size_B": (1, 5),
    "train_batch_size_per_learner": (1, 9),
    "batch_length_T": (4, 9, 24),
    "horizon_H": (1, 5),
    "dream_starts": (0, 3),
    "gae_lambda": (0.5,),
    "rehearsal_interval": (1, 2),
    "entropy_scale": (0.1,),
    "return_normalization_decay": (0.5,),
    "free_bits": (20.0,),
    "reward_loss_scale": (10.0,),
    "slow_critic_decay": (0.5,),
    "slow_critic_scale": (0.1,),
    "world_model_grad_clip_by_global_norm": (1e-3,),
    "actor_grad_clip_by_global_norm": (1e-6,),
    "critic_grad_clip_by_global_norm": (1e-3,),
    "grad_clip": (1e-3, None),
    "mixed_precision": (True,),
    "ltdm_probability": (0.0, 1.0),
    "tau": (0.5,),
    "max_logit_gap": (1e-3,),
    "tes_lambda": (0.5,),
    "tes_mean_threshold": (9.0,),
    "tes_std_threshold": (9.0,),
    "tes_discount": (0.5,),
    "tes_period": (1,),
    "tes_counting": ("cumulative",),
    "tes_start_epoch": (9,),
    "exploration_epsilon": (0.9,),
    "exploration_epochs": (0,),
    "alpha_min": (0.2,),
}
# Bites only beside others, or where a run has come so far; goes on in any case.
MAY_LEARN: dict[str, tuple] = {
    "collect_ahead": (True,),
    "rehearsal_siblings": (2, 6),
    "rehearsal_scale": (0.1,),
    "alpha_max": (0.2, 0.9),
    "kl_dynamics_scale": (0.9,),
    "kl_representation_scale": (0.9,),
    "curriculum.switch": ({"rule": "plateau", "patience": 1},),
}
# Other processes do the work. In a test they take seconds.
PROCESSES: dict[str, tuple] = {
    "num_env_runners": (1,),
    "num_learners": (1,),
    "evaluation_num_env_runners": (1, 2),
}
TABLES = (STAYS, SAME, FEWER_SCORES, OTHER_SCORES, LEARNS, MAY_LEARN, PROCESSES)


def another(declared: Setting) -> Any:
    """Returns a value that is not the default, and allowed."""
    had = declared.default
    tries = [not had] if isinstance(had, bool) else [*declared.values]
    if not tries and isinstance(had, int | float):
        tries = [had + 1, had + 0.25, had / 2]
    fitting = (v for v in tries if v != had and not declared.problem(v))
    return next(fitting, had)


def untold(method: str) -> dict[str, tuple]:
    """Returns settings that stand in no table, with another value; {} if all do."""
    told = {key for table in TABLES for key in table} | {"curriculum"}
    declared = METHODS[method].declared_settings
    others = {name: another(declared[name]) for name in declared.keys() - told}
    return {k: (v,) for k, v in others.items() if v != declared[k].default}


def is_in(table: dict[str, tuple], changes: Changes) -> bool:
    return any(
        any(value == one and type(value) is type(one) for one in table.get(key, ()))
        for key, value in changes.items()
    )


def known(method: str, table: dict[str, tuple]) -> list[str]:
    """Returns the settings of a table that a method has."""
    config = METHODS[method]()
    return sorted(k for k in table if hasattr(config, k.partition(".")[0]))


def draw(rng: random.Random, method: str, tables: Iterable[dict]) -> Changes:
    """Returns one to four changes, each from one of the tables."""
    tables, changes = list(tables), {}
    for _ in range(rng.randint(1, 4)):
        table = rng.choice(tables)
        key = rng.choice(known(method, table))
        changes[key] = rng.choice(table[key])
    return changes


def configured(method: str, changes: Changes) -> Any:
    """Returns the configuration of `tiny_config` with some changes."""
    own = {k: v for k, v in changes.items() if not k.startswith("curriculum.")}
    curriculum = {k.partition(".")[2]: v for k, v in changes.items() if k not in own}
    config = tiny_config(method, **curriculum)
    config.env_runners(num_cpus_per_env_runner=0)
    config.learners(num_cpus_per_learner=0)
    config.evaluation(evaluation_config={"num_cpus_per_env_runner": 0})
    for key, value in own.items():
        setattr(config, key, value)
    return config
