"""What a checkpoint was made with, and what of it a restore may not change.

Weights, memory and scores belong to one seed, one order of tasks and one layout. With
another, a run would mix two experiments in one table without a word. All other
settings (learning rates, more epochs, resources) may change.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from rllib_arrow.curriculum.exposure import Exposure
from rllib_arrow.curriculum.schedule import Curriculum
from rllib_arrow.errors import UserError
from rllib_arrow.files import write_aside
from rllib_arrow.replay.rules import DEFAULTS
from rllib_arrow.settings import SettingError

MADE_WITH = "made_with.json"

FIXED = (
    "seed",
    "env_options",
    "num_envs_per_env_runner",
    "rollout_fragment_length",
    "model_size",
    "cnn_depth",
    "mlp_units",
    "mlp_layers",
    "gru_norm",
    "posterior_skip",
    "learned_initial_state",
    "cloning",
    "advantage_scale",
)
# What settings were before they could be chosen: older checkpoints do not name them.
UNNAMED = {
    **{key: list(v) if isinstance(v, tuple) else v for key, v in DEFAULTS.items()},
    **dict.fromkeys(("gru_norm", "posterior_skip", "learned_initial_state"), False),
    "cloning": False,
    "advantage_scale": "range",
}
# Settings of the memory that may change, and those that are called otherwise there.
FREE_IN_REPLAY = ("seed", "max_bytes", "ltdm_probability")
NAMES_IN_REPLAY = {
    "capacity_chunks": "replay_capacity_chunks",
    "chunk_length": "replay_chunk_length",
}


def fixed_settings(config: Any) -> dict[str, Any]:
    """Returns the settings that a checkpoint's contents depend on, by name."""
    curriculum = config.curriculum_object().to_dict()
    replay = {
        NAMES_IN_REPLAY.get(key, key): value
        for key, value in config.replay_settings().items()
        if key not in FREE_IN_REPLAY
    }
    settings = {
        "run": config.algo_class.__name__,
        **{f"curriculum.{key}": curriculum[key] for key in ("suite", "order", "tasks")},
        **{key: getattr(config, key) for key in FIXED if hasattr(config, key)},
        "num_env_runners": config.num_collectors,
        **replay,
    }
    # Through JSON, so that both sides of a comparison have the same types.
    return json.loads(json.dumps(settings, default=str))


def write_made_with(
    path: str | Path, config: Any, curriculum: Curriculum, finished: int
) -> None:
    """Writes down what a checkpoint after so many finished epochs is made with."""
    content = {
        "settings": fixed_settings(config),
        "finished": finished,
        "early_ends": list(curriculum.early_ends),
        "trained": trained(curriculum, finished),
    }
    write_aside(Path(path) / MADE_WITH, json.dumps(content, indent=1) + "\n")


def check_made_with(path: str | Path, config: Any) -> None:
    """Raises if a checkpoint cannot go on with a configuration, naming both values."""
    file = Path(path) / MADE_WITH
    if not file.exists():
        return  # written before there was such a file
    then = json.loads(file.read_text(encoding="utf-8"))
    settings = fixed_settings(config)
    for key in {**then["settings"], **settings}:
        was, now = then["settings"].get(key, UNNAMED.get(key)), settings.get(key)
        if was != now:
            problem = f"must stay {was!r}, with which {path} was made"
            raise SettingError(key, now, problem)
    plan = replace(config.curriculum_object(), early_ends=tuple(then["early_ends"]))
    now = trained(plan, then["finished"])
    if now != then["trained"]:
        raise UserError(
            f"curriculum plans {_shown(now)} for the first {then['finished']} epochs, "
            f"but must stay as {path} was trained: {_shown(then['trained'])}."
        )


def trained(curriculum: Curriculum, finished: int) -> list[list[Any]]:
    """Returns `[task, start, end]` of every exposure of the finished epochs."""

    def cut(exposure: Exposure) -> list[Any]:
        return [exposure.task, exposure.start, min(exposure.end, finished)]

    return [cut(e) for e in curriculum.exposures if e.start < finished]


def _shown(exposures: list[list[Any]]) -> str:
    return ", ".join(f"{task} {start + 1}-{end}" for task, start, end in exposures)
